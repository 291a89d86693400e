//! Validation of records by their lexicons (<https://atproto.com/specs/lexicon>), and their encoding as
//! DAG-CBOR.
//!
//! `lexicons.json` has the rules of the record types that accounts publish. A record of another type is
//! stored without checks, as by a server that does not know its lexicon.

use crate::exchange::Cause;
use chrono::DateTime;
use cid::{Cid, multihash::Multihash};
use domain::json::type_name;
use ipld_core::ipld::Ipld;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, sync::LazyLock};

/// Codec of a CID: DAG-CBOR.
const DAG_CBOR: u64 = 0x71;
/// Codec of a CID: bytes.
const RAW: u64 = 0x55;
/// Hash of a CID: SHA-256.
const SHA2_256: u64 = 0x12;

static LEXICONS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("lexicons.json")).expect("the lexicons are JSON"));

/// A blob that a record refers to, with the constraints of its place in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlobRef {
    pub(super) cid: String,
    /// Its content type, as the record has it.
    pub(super) mime: String,
    /// Its size in bytes, as the record has it.
    pub(super) size: u64,
    /// Accepted content types, with `*` for any subtype; empty for all.
    pub(super) accept: Vec<String>,
    /// Maximum size in bytes.
    pub(super) max_bytes: Option<u64>,
    /// Place of its rule.
    pub(super) place: String,
}

/// A violation of a lexicon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// Message, with the location.
    pub(super) message: String,
    /// Cause: a rule about content, if it is a constraint on a value.
    pub(super) cause: Cause,
}

fn broken(constraint: &str, place: &str, message: String) -> Result<(), Violation> {
    Err(Violation { message, cause: schema(constraint, place) })
}

fn form<T>(message: String) -> Result<T, Violation> {
    Err(Violation { message, cause: Cause::Protocol })
}

/// Returns the rule of a constraint at a place of a lexicon.
pub(super) fn schema(constraint: &str, place: &str) -> Cause {
    Cause::Schema(key(constraint, place))
}

fn key(constraint: &str, place: &str) -> String {
    format!("{constraint} {place}")
}

/// Constraints on a value.
const CONSTRAINTS: [&str; 7] =
    ["maxLength", "maxGraphemes", "minimum", "maximum", "format", "accept", "maxSize"];

/// Adds the keys of the rules about content to `rules`.
pub(super) fn rules(rules: &mut BTreeSet<String>) {
    fn add(rule: &Value, place: &str, rules: &mut BTreeSet<String>) {
        rules.extend(CONSTRAINTS.iter().filter(|name| rule.get(name).is_some()).map(|name| key(name, place)));
        for (name, rule) in rule["properties"].as_object().into_iter().flatten() {
            add(rule, &format!("{place}.{name}"), rules);
        }
        for (part, end) in [("items", "[]"), ("record", "")] {
            if let Some(rule) = rule.get(part) {
                add(rule, &format!("{place}{end}"), rules);
            }
        }
    }
    for (lexicon, definitions) in LEXICONS.as_object().into_iter().flatten() {
        for (name, rule) in definitions.as_object().into_iter().flatten() {
            add(rule, &format!("{lexicon}#{name}"), rules);
        }
    }
}

/// Returns whether the record type's lexicon is known.
pub(super) fn is_known(collection: &str) -> bool {
    LEXICONS[collection]["main"]["type"] == "record"
}

/// Checks a record of a known type.
///
/// # Errors
///
/// The first violation and its location.
pub(super) fn check(collection: &str, record: &Value) -> Result<Vec<BlobRef>, Violation> {
    let mut blobs = Vec::new();
    let mut walk = Walk { context: collection, blobs: &mut blobs };
    let rule = &LEXICONS[collection]["main"]["record"];
    walk.value(rule, record, "$.record", &format!("{collection}#main"))?;
    if collection == "app.bsky.feed.post" {
        facets(record)?;
    }
    Ok(blobs)
}

/// Returns all blobs of a record of a type that is not known.
pub(super) fn blobs(value: &Value) -> Vec<BlobRef> {
    match value {
        Value::Object(_) if value["$type"] == "blob" => blob(value, &Value::Null, "").into_iter().collect(),
        Value::Object(members) => members.values().flat_map(blobs).collect(),
        Value::Array(items) => items.iter().flat_map(blobs).collect(),
        _ => Vec::new(),
    }
}

struct Walk<'a> {
    context: &'a str,
    blobs: &'a mut Vec<BlobRef>,
}

impl Walk<'_> {
    /// Checks a value at a path of the record. `place` is the rule's own, in its lexicon.
    fn value(&mut self, rule: &Value, value: &Value, at: &str, place: &str) -> Result<(), Violation> {
        let expected =
            |what: &str| form(format!("Expected {what} value type (got {}) at {at}", type_name(value)));
        let broken = |constraint: &str, message: String| broken(constraint, place, message);
        let max = |name: &str| rule[name].as_u64();
        match rule["type"].as_str().unwrap_or_default() {
            "object" => {
                let Some(members) = value.as_object() else { return expected("object") };
                for name in rule["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if !members.contains_key(name) {
                        return form(format!("Missing required key \"{name}\" at {at}"));
                    }
                }
                for (name, value) in members {
                    if let Some(rule) = rule["properties"].get(name) {
                        self.value(rule, value, &format!("{at}.{name}"), &format!("{place}.{name}"))?;
                    }
                }
                Ok(())
            }
            "array" => {
                let Some(items) = value.as_array() else { return expected("array") };
                if let Some(max) = max("maxLength").filter(|max| items.len() as u64 > *max) {
                    return broken(
                        "maxLength",
                        format!("array too big (maximum {max}, got {}) at {at}", items.len()),
                    );
                }
                for (index, item) in items.iter().enumerate() {
                    self.value(&rule["items"], item, &format!("{at}[{index}]"), &format!("{place}[]"))?;
                }
                Ok(())
            }
            "string" => match value.as_str() {
                Some(text) => string(rule, text, at, place),
                None => expected("string"),
            },
            "integer" => {
                let Some(number) = value.as_i64() else { return expected("integer") };
                if let Some(least) = rule["minimum"].as_i64().filter(|least| number < *least) {
                    return broken(
                        "minimum",
                        format!("integer too small (minimum {least}, got {number}) at {at}"),
                    );
                }
                if let Some(max) = rule["maximum"].as_i64().filter(|max| number > *max) {
                    return broken(
                        "maximum",
                        format!("integer too big (maximum {max}, got {number}) at {at}"),
                    );
                }
                Ok(())
            }
            "boolean" if !value.is_boolean() => expected("boolean"),
            "blob" => match blob(value, rule, place) {
                Some(blob) => {
                    self.blobs.push(blob);
                    Ok(())
                }
                None => expected("blob"),
            },
            "ref" => self.refer(rule["ref"].as_str().unwrap_or_default(), value, at),
            "union" => {
                let Some(kind) = value["$type"].as_str() else {
                    return form(format!("Expected an object with a \"$type\" at {at}"));
                };
                let named =
                    |reference: &&str| absolute(self.context, reference) == kind.trim_end_matches("#main");
                let reference =
                    rule["refs"].as_array().into_iter().flatten().filter_map(Value::as_str).find(named);
                match reference {
                    Some(reference) => self.refer(reference, value, at),
                    None if rule["closed"] == true => form(format!("Unexpected \"$type\" {kind} at {at}")),
                    // Unions are open: an unknown type may mean something to another client.
                    None => {
                        self.blobs.extend(blobs(value));
                        Ok(())
                    }
                }
            }
            _ => Ok(()),
        }
    }

    fn refer(&mut self, reference: &str, value: &Value, at: &str) -> Result<(), Violation> {
        let absolute = absolute(self.context, reference);
        let (lexicon, name) = absolute.split_once('#').unwrap_or((&absolute, "main"));
        let rule = &LEXICONS[lexicon][name];
        let mut walk = Walk { context: lexicon, blobs: &mut *self.blobs };
        walk.value(rule, value, at, &format!("{lexicon}#{name}"))
    }
}

/// Checks the lengths and the format of a text.
fn string(rule: &Value, text: &str, at: &str, place: &str) -> Result<(), Violation> {
    let max = |name: &str| rule[name].as_u64();
    let broken = |constraint: &str, message: String| broken(constraint, place, message);
    if let Some(max) = max("maxLength").filter(|max| text.len() as u64 > *max) {
        return broken("maxLength", format!("string too big (maximum {max}, got {}) at {at}", text.len()));
    }
    if let Some(max) = max("maxGraphemes") {
        let length = crate::unicode::graphemes(text).len();
        if length as u64 > max {
            return broken("maxGraphemes", format!("grapheme too big (maximum {max}, got {length}) at {at}"));
        }
    }
    match rule["format"].as_str() {
        Some(format) if !is_format(format, text) => {
            broken("format", format!("Invalid {format} value at {at}"))
        }
        _ => Ok(()),
    }
}

fn absolute(context: &str, reference: &str) -> String {
    if reference.starts_with('#') { format!("{context}{reference}") } else { reference.to_owned() }
}

fn blob(value: &Value, rule: &Value, place: &str) -> Option<BlobRef> {
    if value["$type"] != "blob" {
        return None;
    }
    let cid = value["ref"]["$link"].as_str()?;
    Cid::try_from(cid).ok()?;
    Some(BlobRef {
        cid: cid.to_owned(),
        mime: value["mimeType"].as_str()?.to_owned(),
        size: value["size"].as_u64()?,
        accept: rule["accept"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        max_bytes: rule["maxSize"].as_u64(),
        place: place.to_owned(),
    })
}

/// Checks that the byte ranges of facets lie within the text, on character boundaries, without overlap.
fn facets(record: &Value) -> Result<(), Violation> {
    let text = record["text"].as_str().unwrap_or_default();
    let mut ranges = Vec::new();
    for (index, facet) in record["facets"].as_array().into_iter().flatten().enumerate() {
        let edge = |name: &str| facet["index"][name].as_u64().and_then(|edge| usize::try_from(edge).ok());
        let (Some(start), Some(end)) = (edge("byteStart"), edge("byteEnd")) else { continue };
        if start >= end || text.get(start..end).is_none() {
            return form(format!(
                "facet range {start}..{end} is not within the text at $.record.facets[{index}].index"
            ));
        }
        ranges.push((start, end));
    }
    ranges.sort_unstable();
    match ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        Some(pair) => form(format!("facet ranges overlap at byte {} at $.record.facets", pair[1].0)),
        None => Ok(()),
    }
}

fn is_format(format: &str, text: &str) -> bool {
    match format {
        "datetime" => {
            DateTime::parse_from_rfc3339(text).is_ok() && text.contains('T') && !text.ends_with("-00:00")
        }
        "did" => {
            let mut parts = text.splitn(3, ':');
            parts.next() == Some("did")
                && parts.next().is_some_and(|method| {
                    !method.is_empty() && method.bytes().all(|b| b.is_ascii_lowercase())
                })
                && parts.next().is_some_and(|id| {
                    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:%-".contains(&b))
                })
        }
        "at-uri" => text
            .strip_prefix("at://")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace)),
        "uri" => {
            let scheme = text.split(':').next().unwrap_or_default();
            text.len() > scheme.len() + 1
                && scheme.starts_with(|c: char| c.is_ascii_lowercase())
                && !text.contains(char::is_whitespace)
        }
        "cid" => Cid::try_from(text).is_ok(),
        "language" => {
            let mut tags = text.split('-');
            let is_word =
                |tag: &str| (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric());
            tags.next().is_some_and(|tag| {
                tag == "i" || (2..=3).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_lowercase())
            }) && tags.all(is_word)
        }
        _ => true,
    }
}

/// Returns whether a text may be a key of a record (<https://atproto.com/specs/record-key>).
pub(super) fn is_record_key(text: &str) -> bool {
    (1..=512).contains(&text.len())
        && text != "."
        && text != ".."
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:~".contains(&byte))
}

/// Returns whether a text is a timestamp identifier (<https://atproto.com/specs/tid>).
pub(super) fn is_tid(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'2'..=b'7' | b'a'..=b'z');
    text.len() == 13 && text.bytes().all(is_digit) && matches!(text.as_bytes()[0], b'2'..=b'7' | b'a'..=b'j')
}

/// Returns the timestamp identifier of a microsecond, with a clock identifier of ten bits.
pub(super) fn tid(micros: u64, clock: u64) -> String {
    const ALPHABET: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
    let value = (micros << 10 | clock & 0x3ff) & (u64::MAX >> 1);
    (0..13).rev().map(|digit| char::from(ALPHABET[(value >> (digit * 5) & 31) as usize])).collect()
}

/// Returns whether a text is a namespaced identifier (<https://atproto.com/specs/nsid>).
pub(super) fn is_nsid(text: &str) -> bool {
    text.len() <= 317
        && text.split('.').count() >= 3
        && text
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
}

/// Returns the CID of a value, as DAG-CBOR.
///
/// # Errors
///
/// When the value contains something that the data model lacks, such as a fraction.
pub(super) fn cid(value: &Value) -> Result<String, String> {
    let bytes = serde_ipld_dagcbor::to_vec(&ipld(value)?).map_err(|error| error.to_string())?;
    Ok(address(DAG_CBOR, &Sha256::digest(bytes)))
}

/// Returns the CID of bytes with this digest.
pub(super) fn raw_cid(sha256: &[u8]) -> String {
    address(RAW, sha256)
}

fn address(codec: u64, sha256: &[u8]) -> String {
    let hash = Multihash::<64>::wrap(SHA2_256, sha256).expect("a digest fits");
    Cid::new_v1(codec, hash).to_string()
}

/// Converts JSON to the data model (<https://atproto.com/specs/data-model>), where links and bytes are
/// objects.
fn ipld(value: &Value) -> Result<Ipld, String> {
    Ok(match value {
        Value::Null => Ipld::Null,
        Value::Bool(flag) => Ipld::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Ipld::Integer(number.into()),
            None => return Err(format!("{number} is no integer")),
        },
        Value::String(text) => Ipld::String(text.clone()),
        Value::Array(items) => Ipld::List(items.iter().map(ipld).collect::<Result<_, _>>()?),
        Value::Object(members) => match (members.len(), members.get("$link"), members.get("$bytes")) {
            (1, Some(Value::String(link)), _) => {
                Ipld::Link(Cid::try_from(link.as_str()).map_err(|error| format!("{link}: {error}"))?)
            }
            (1, _, Some(Value::String(bytes))) => {
                use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
                let bytes = BASE64_STANDARD_NO_PAD.decode(bytes.trim_end_matches('='));
                Ipld::Bytes(bytes.map_err(|error| error.to_string())?)
            }
            _ => {
                let members = members.iter().map(|(name, value)| Ok((name.clone(), ipld(value)?)));
                Ipld::Map(members.collect::<Result<_, String>>()?)
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn post(text: &str) -> Value {
        json!({ "$type": "app.bsky.feed.post", "text": text, "createdAt": "2026-01-02T03:04:05.678Z" })
    }

    #[test]
    fn a_post_is_measured_in_graphemes_and_bytes() {
        assert_eq!(check("app.bsky.feed.post", &post(&"👨‍👩‍👧‍👦".repeat(100))), Ok(vec![]));
        assert_eq!(
            check("app.bsky.feed.post", &post(&"a".repeat(301))),
            Err(Violation {
                message: "grapheme too big (maximum 300, got 301) at $.record.text".into(),
                cause: schema("maxGraphemes", "app.bsky.feed.post#main.text"),
            })
        );
        assert!(
            check("app.bsky.feed.post", &post(&"👨‍👩‍👧‍👦".repeat(121)))
                .unwrap_err()
                .message
                .contains("maximum 3000")
        );
    }

    #[test]
    fn records_that_violate_their_lexicon_are_rejected() {
        let with = |name: &str, value: Value| {
            let mut record = post("héllo");
            record[name] = value;
            check("app.bsky.feed.post", &record)
        };
        let facet = |start: u64, end: u64| json!({ "index": { "byteStart": start, "byteEnd": end }, "features": [{ "$type": "app.bsky.richtext.facet#tag", "tag": "a" }] });
        assert!(with("facets", json!([facet(0, 3)])).is_ok());
        for (name, value) in [
            ("createdAt", json!("yesterday")),
            ("langs", json!(["en", "de", "fr", "it"])),
            ("langs", json!(["english language"])),
            ("tags", json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"])),
            ("facets", json!([facet(0, 2)])),
            ("facets", json!([facet(0, 9)])),
            ("facets", json!([facet(0, 4), facet(3, 5)])),
            ("facets", json!([{ "index": { "byteStart": -1, "byteEnd": 2 }, "features": [] }])),
            ("embed", json!({ "$type": "app.bsky.embed.images", "images": [{ "alt": "" }] })),
            (
                "embed",
                json!({ "$type": "app.bsky.embed.external", "external": { "uri": "https://a.b", "title": "" } }),
            ),
            ("reply", json!({ "root": { "uri": "at://did:plc:a/b/c", "cid": "no" } })),
        ] {
            assert!(with(name, value.clone()).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn cids_are_computed_as_specified() {
        // CIDs of the empty map and the empty file, as other implementations compute them.
        assert_eq!(cid(&json!({})), Ok("bafyreigbtj4x7ip5legnfznufuopl4sg4knzc2cof6duas4b3q2fy6swua".into()));
        assert_eq!(
            raw_cid(&Sha256::digest(b"")),
            "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
        );
        assert!(cid(&json!({ "a": 1.5 })).is_err());
    }

    #[test]
    fn timestamp_identifiers_sort_and_are_recognized() {
        let (early, late) = (tid(1_700_000_000_000_000, 3), tid(1_700_000_000_000_001, 0));
        assert!(early < late && is_tid(&early) && is_tid(&late));
        assert!(!is_tid("zzzzzzzzzzzzz") && !is_tid("abc"));
    }
}
