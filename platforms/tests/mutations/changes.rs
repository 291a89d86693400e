//! Changes of an answer.

use super::stage::Answer;
use crate::pointers::pointers;
use proptest::{
    prelude::{Just, Strategy, any, prop_oneof},
    strategy::ValueTree,
    test_runner::TestRunner,
};
use rand::RngExt;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// A change of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Another status, with a `Retry-After`.
    Status(u16, Option<&'static [u8]>),
    /// An upload that is to be resumed at a byte range.
    Resumed(&'static [u8]),
    /// Without a header.
    WithoutHeader(usize),
    /// Another value of a header.
    Header(usize, &'static [u8]),
    /// One of [`BODIES`], with a status.
    Body(usize, u16),
    /// The first bytes of the body; true if the connection breaks after them.
    Cut(usize, bool),
    /// Without a member, given as a JSON pointer.
    Without(String),
    /// One of [`VALUES`] as a member.
    Member(String, usize),
    /// An error that repeats the secrets of the request.
    Echo(u16),
    /// An arbitrary status and body.
    Arbitrary(u16, Vec<u8>),
}

/// Number of items of a list that are changed.
const ITEMS: usize = 2;
/// Cuts of a body.
const CUTS: usize = 48;
/// Size of a huge body, in bytes.
const HUGE_BYTES: usize = 10 << 20;

/// Statuses that replace the real one.
const STATUSES: [u16; 21] =
    [200, 201, 204, 206, 301, 302, 304, 400, 401, 402, 403, 404, 408, 409, 410, 413, 422, 429, 500, 502, 503];

/// Values of `Retry-After`, of which few are valid.
const WAITS: [&[u8]; 10] = [
    b"0",
    b"60",
    b"-1",
    b"1.5",
    b"soon",
    b"",
    b"18446744073709551616",
    b"99999999999999",
    b"Fri, 31 Dec 9999 23:59:59 GMT",
    b"\xff\xfe",
];

/// Ranges that a server may say to have.
const RANGES: [&[u8]; 5] =
    [b"bytes=0-18446744073709551615", b"bytes=0-99999999", b"bytes=7-3", b"bytes=0-1,5-6", b"all"];

/// Values of any other header.
const HEADER_VALUES: [&[u8]; 7] =
    [b"", b"0", b"-1", b"99999999999999999999", b"9223372036854775807", b"soon", b"\xff\xfe"];

/// Values of a member.
static VALUES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(""),
        json!(" "),
        json!("x"),
        json!("\0"),
        json!("a\0b"),
        json!("18446744073709551616"),
        json!("-9223372036854775808"),
        json!("9999-12-31T23:59:59Z"),
        json!("-262143-01-01T00:00:00Z"),
        json!("../../\u{202e}\u{1f4a3}\r\n%00?#"),
        json!("long".repeat(4_000)),
        json!([]),
        json!([[]]),
        json!([null]),
        json!({}),
        json!({ "a": {} }),
    ]
});

/// Whole bodies that no platform documents.
static BODIES: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    vec![
        ("nothing", Vec::new()),
        ("a page", b"<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>".to_vec()),
        ("text", b"upstream connect error or disconnect/reset before headers".to_vec()),
        ("null", b"null".to_vec()),
        ("true", b"true".to_vec()),
        ("a number", b"7".to_vec()),
        ("a huge number", b"1e999".to_vec()),
        ("a string", b"\"x\"".to_vec()),
        ("an empty list", b"[]".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("a list", b"[{}]".to_vec()),
        ("lists", nested(100)),
        ("deep lists", nested(100_000)),
        ("invalid UTF-8", b"{\"id\":\"\xff\xfe\xc3\"}".to_vec()),
        ("a lone surrogate", b"{\"id\":\"\\ud800\"}".to_vec()),
        ("UTF-16", utf16("{\"id\":\"1\"}")),
        ("two documents", b"{}{}".to_vec()),
        ("a byte order mark", b"\xef\xbb\xbf{}".to_vec()),
        ("NUL", vec![0; 64]),
        ("10 MiB", vec![b' '; HUGE_BYTES]),
    ]
});

/// Returns all changes of an answer, except for arbitrary ones.
pub(crate) fn all(answer: &Answer) -> Vec<Change> {
    let mut all = Vec::new();
    all.extend(STATUSES.iter().filter(|status| **status != answer.status).map(|s| Change::Status(*s, None)));
    for status in [400, 403, 429, 500, 503] {
        all.extend(WAITS.iter().map(|wait| Change::Status(status, Some(wait))));
    }
    all.extend(RANGES.iter().map(|range| Change::Resumed(range)));
    for index in 0..answer.headers.len() {
        all.push(Change::WithoutHeader(index));
        all.extend(HEADER_VALUES.iter().map(|value| Change::Header(index, value)));
    }
    for index in 0..BODIES.len() {
        all.extend([answer.status, 200, 400, 500, 503].map(|status| Change::Body(index, status)));
    }
    let length = answer.body.len();
    for cut in 0..CUTS.min(length) {
        let end = cut * length / CUTS.min(length);
        all.push(Change::Cut(end, false));
        if cut % 8 == 0 {
            all.push(Change::Cut(end, true));
        }
    }
    if let Ok(body) = serde_json::from_slice::<Value>(&answer.body) {
        for place in pointers(&body, ITEMS) {
            all.push(Change::Without(place.clone()));
            all.extend((0..VALUES.len()).map(|value| Change::Member(place.clone(), value)));
        }
    }
    all.extend([200, 302, 400, 401, 403, 429, 500].map(Change::Echo));
    all
}

/// Returns an arbitrary change: several members at once, an arbitrary document, or arbitrary bytes.
pub(crate) fn arbitrary(answer: &Answer, runner: &mut TestRunner) -> Change {
    let status = match runner.rng().random_range(0..3) {
        0 => STATUSES[runner.rng().random_range(0..STATUSES.len())],
        _ => answer.status,
    };
    let body = match serde_json::from_slice::<Value>(&answer.body) {
        Ok(mut body) if runner.rng().random_range(0..4) > 0 => {
            for _ in 0..runner.rng().random_range(1..5) {
                let all = pointers(&body, ITEMS);
                if !all.is_empty() {
                    let place = &all[runner.rng().random_range(0..all.len())];
                    let value = json_value().new_tree(runner).expect("a value").current();
                    *body.pointer_mut(place).expect("a place of this body") = value;
                }
            }
            body.to_string().into_bytes()
        }
        _ if runner.rng().random() => {
            json_value().new_tree(runner).expect("a value").current().to_string().into_bytes()
        }
        _ => proptest::collection::vec(any::<u8>(), 0..200).new_tree(runner).expect("bytes").current(),
    };
    Change::Arbitrary(status, body)
}

impl Change {
    /// Returns the changed answer.
    pub(crate) fn apply(&self, answer: &Answer, secrets: &[String]) -> Answer {
        let mut changed = answer.clone();
        match self {
            Self::Status(status, wait) => {
                changed.status = *status;
                changed.headers.extend(wait.map(|wait| ("retry-after".to_owned(), wait.to_vec())));
            }
            Self::Resumed(range) => {
                changed.status = 308;
                changed.headers.push(("range".to_owned(), range.to_vec()));
            }
            Self::WithoutHeader(index) => drop(changed.headers.remove(*index)),
            Self::Header(index, value) => changed.headers[*index].1 = value.to_vec(),
            Self::Body(index, status) => {
                changed.status = *status;
                changed.body = BODIES[*index].1.clone();
            }
            Self::Cut(end, is_broken) => {
                changed.body.truncate(*end);
                changed.is_broken = *is_broken;
            }
            Self::Without(place) => {
                let mut body = document(answer);
                let (parent, name) = place.rsplit_once('/').expect("a pointer");
                match body.pointer_mut(parent) {
                    Some(Value::Object(members)) => {
                        drop(members.remove(&name.replace("~1", "/").replace("~0", "~")))
                    }
                    Some(Value::Array(items)) => drop(items.remove(name.parse::<usize>().expect("an index"))),
                    _ => unreachable!("a place of this body"),
                }
                changed.body = body.to_string().into_bytes();
            }
            Self::Member(place, value) => {
                let mut body = document(answer);
                *body.pointer_mut(place).expect("a place of this body") = VALUES[*value].clone();
                changed.body = body.to_string().into_bytes();
            }
            Self::Echo(status) => {
                changed.status = *status;
                changed.body = echo(&secrets.join(" and ")).to_string().into_bytes();
            }
            Self::Arbitrary(status, body) => {
                changed.status = *status;
                changed.body.clone_from(body);
            }
        }
        changed
    }

    /// Returns the change in words.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Arbitrary(status, _) => format!("arbitrary, status {status}"),
            Self::Member(place, value) => {
                format!("{place} = {}", excerpt(VALUES[*value].to_string().as_bytes()))
            }
            Self::Body(index, status) => format!("{} as the body, status {status}", BODIES[*index].0),
            other => format!("{other:?}"),
        }
    }

    /// Returns true if it makes the result of a publishing call doubtful: an answer that can't be read, or an
    /// unusable id.
    pub(crate) fn is_vital(&self) -> bool {
        match self {
            Self::Body(_, status) => (200..300).contains(status),
            Self::Member(_, value) => VALUES[*value].as_str().is_some_and(is_no_id),
            Self::Resumed(_) => true,
            _ => false,
        }
    }

    /// Returns true if the body is not what the platform sends, whatever its status.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Self::Body(..) | Self::Cut(..))
    }
}

fn is_no_id(text: &str) -> bool {
    text.trim().is_empty() || text.contains('\0') || text.len() > 1_000
}

fn document(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("the body has places")
}

/// Returns a body with a text in every member that a platform uses for a message.
fn echo(text: &str) -> Value {
    json!({
        "message": text, "detail": text, "title": text, "error_description": text, "explanation": text,
        "reason": text, "error_type": text, "error_message": text,
        "error": { "message": text, "code": "x", "status": text, "error_user_msg": text },
        "errors": [{ "message": text, "detail": text }],
        "json": { "errors": [[text, text, text]] },
        "debug_info": { "message": text },
    })
}

/// Arbitrary JSON.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        proptest::sample::select(&VALUES[..]),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let names = ["id", "error", "data", "code", "message", "status", "items"];
        let names = proptest::sample::select(names.to_vec());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names, inner), 0..4).prop_map(|all| {
                all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

/// Returns the beginning of a body as text.
pub(crate) fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(200).collect()
}
