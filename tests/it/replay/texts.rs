//! Texts of posts, which no history may contain.
//!
//! Operators read histories, so that workflows have ids and activities read the rows. Each text of an organization whose
//! workflows are replayed has the word [`MARK`], and a history is searched for it. [`check_marked`] looks at the rows, so
//! that no branch is recorded with a text that would not be found.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tests::World;

/// Word in all texts of posts whose workflows are replayed, and in nothing else.
const MARK: &str = "Xanadu";

/// Texts of an organization's posts: as they were published, as they are or were to be changed, and alt texts.
const TEXTS: &str = "
    select content from containers where org_id = $1
    union all select content from imported_posts where org_id = $1
    union all select edit.value from targets t, jsonb_each_text(t.edits -> 'containers') edit where t.org_id = $1
    union all select edit ->> 'text' from targets t, jsonb_array_elements(t.edit_changes) edit
      where t.org_id = $1 and edit ->> 'text' is not null
    union all select medium ->> 'alt_text' from containers c, jsonb_array_elements(c.media) medium
      where c.org_id = $1 and medium ->> 'alt_text' is not null";

/// Returns a text that is found in histories.
pub(crate) fn marked(text: &str) -> String {
    format!("{MARK}: {text}")
}

/// Fails unless each text of the organization's posts is found in histories.
pub(super) async fn check_marked(world: &World) {
    let texts: Vec<String> =
        sqlx::query_scalar(TEXTS).bind(world.owner.org.0).fetch_all(&world.db).await.unwrap();
    let unmarked: Vec<_> = texts.iter().filter(|text| !text.contains(MARK)).collect();
    assert!(
        unmarked.is_empty(),
        "use marked() for the texts of posts whose workflows are replayed: {unmarked:?}"
    );
}

/// Returns where marked texts are in a history, as JSON pointers, which go on in what is encoded.
pub(super) fn find(history: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(history, "", &mut |place, text| {
        if text.contains(MARK) {
            found.push(place.to_owned());
        }
    });
    found
}

/// Calls `see` with each text of a document and its place: names, strings, and what payloads encode, which is JSON or
/// bytes in base64, or a list of bytes.
pub(crate) fn walk(value: &Value, place: &str, see: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => {
            see(place, text);
            if let Ok(bytes) = BASE64_STANDARD.decode(text) {
                walk_bytes(&bytes, place, see);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{place}/{index}"), see);
            }
            let byte = |item: &Value| u8::try_from(item.as_u64()?).ok();
            if let Some(bytes) = items.iter().map(byte).collect::<Option<Vec<_>>>() {
                walk_bytes(&bytes, place, see);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                see(place, name);
                walk(member, &format!("{place}/{name}"), see);
            }
        }
        _ => {}
    }
}

fn walk_bytes(bytes: &[u8], place: &str, see: &mut impl FnMut(&str, &str)) {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => walk(&value, place, see),
        Err(_) => see(place, &String::from_utf8_lossy(bytes)),
    }
}

/// In a history with payloads of each kind: of inputs and results, of failures, of search attributes and of a memo.
#[test]
fn a_text_is_found_wherever_it_is_planted_in_a_history() {
    let file = super::kept().join("disconnect_account-unrevoked.json");
    let mut history: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let payload = json!({ "metadata": { "encoding": "anNvbi9wbGFpbg==" }, "data": "e30=" });
    history["events"][0]["attributes"]["WorkflowExecutionStartedEventAttributes"]["memo"] =
        json!({ "fields": { "note": payload } });
    assert_eq!(find(&history), Vec::<String>::new());
    let text = marked("planted");
    let nested = json!({ "a": [{ "text": text }] }).to_string();
    let bytes = json!({ "a": text.as_bytes() }).to_string();
    let of_payloads = [&text, &nested, &bytes].map(|plain| BASE64_STANDARD.encode(plain));
    let places: Vec<_> = tests::pointers(&history, usize::MAX)
        .into_iter()
        .filter(|place| history.pointer(place).unwrap().is_string())
        .collect();
    for part in
        ["/input/payloads/", "/failure/message", "/last_failure/", "/indexedFields/", "/memo/", "/summary/"]
    {
        assert!(places.iter().any(|place| place.contains(part)), "the history has no {part}");
    }
    for place in places {
        let texts = if place.ends_with("/data") { &of_payloads[..] } else { std::slice::from_ref(&text) };
        for planted in texts {
            let before = history.pointer(&place).unwrap().clone();
            *history.pointer_mut(&place).unwrap() = json!(planted);
            let found = find(&history);
            assert!(found.len() == 1 && found[0].starts_with(&place), "{place}: {found:?}");
            *history.pointer_mut(&place).unwrap() = before;
        }
    }
}
