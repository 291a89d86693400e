//! Values at the limits of their schemas, which may be expensive.

use super::scene::Scene;
use chrono::TimeDelta;
use rand::{Rng, RngExt, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tests::now;

/// Bytes of a body that values may fill. The service reads 1 MiB.
const ROOM: usize = 900 << 10;
/// Depth below which objects and lists are left empty.
const DEPTH: usize = 6;
/// Pieces of texts that differ in what is done with them.
const PIECES: [&str; 10] =
    ["-", "é", "a.com ", "@ada ", " #a", "http://a.b/", "👩\u{200d}", "\u{301}\u{316}", "<", "\u{1}"];
/// Members whose value decides what a request does, not what it costs: a look-up waits for a platform, and what is no draft
/// is published. The connected apps, languages and hosts of the sandbox are few.
const FIXED: [&str; 8] =
    ["look_up", "is_draft", "scheduled_at", "identifier", "app_password", "mode", "url", "sha256"];

/// Makes values, for one body at a time.
pub(super) struct Maker<'a> {
    random: &'a mut StdRng,
    document: &'a Value,
    ids: &'a BTreeMap<&'static str, Vec<String>>,
    hook: &'a str,
    room: usize,
}

impl<'a> Maker<'a> {
    pub(super) fn of(scene: &'a Scene, random: &'a mut StdRng) -> Self {
        Self { random, document: &scene.document, ids: &scene.ids, hook: &scene.hook, room: ROOM }
    }

    /// Resolves references, and the first alternative of `allOf`, `anyOf` and `oneOf`.
    pub(super) fn resolve(&self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str() {
            return self.resolve(self.document.pointer(&name[1..]).expect("a schema of the document"));
        }
        match ["allOf", "anyOf", "oneOf"].into_iter().find_map(|key| schema[key].get(0)) {
            Some(first) => self.resolve(first),
            None => schema,
        }
    }

    /// Returns the source of randomness.
    pub(super) fn random(&mut self) -> &mut StdRng {
        self.random
    }

    /// Returns an id of a collection; the first ones, which are the largest, more often than the others.
    fn id(&mut self, collection: &str) -> Option<String> {
        let ids = self.ids.get(collection)?;
        if self.random.random_bool(0.5) { ids.first().cloned() } else { ids.choose(self.random).cloned() }
    }

    /// Returns the collection whose ids a member has.
    fn collection(name: &str) -> Option<&'static str> {
        Some(match name {
            "accounts"
            | "account_ids"
            | "social_account_ids"
            | "social_account_id"
            | "account"
            | "queued_from_account"
            | "reconnect_account_id" => "social-accounts",
            "profile_id" => "profiles",
            "media" => "media",
            "targets" => "targets",
            "post_id" | "reply_to" => "posts",
            _ => return None,
        })
    }

    /// Returns the value of a parameter of a path.
    pub(super) fn segment(&mut self, collection: &str) -> Option<String> {
        self.id(collection)
    }

    /// Returns a value of a member; `None` to leave it as it is.
    pub(super) fn member(&mut self, name: &str, schema: &'a Value) -> Option<Value> {
        self.room = ROOM;
        if FIXED.contains(&name) { None } else { self.value(name, schema, 0) }
    }

    fn value(&mut self, name: &str, schema: &'a Value, depth: usize) -> Option<Value> {
        if FIXED.contains(&name) {
            return None;
        }
        let schema = self.resolve(schema);
        let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
        if let Some(choices) = schema["enum"].as_array() {
            return choices.choose(self.random).cloned();
        }
        Some(match kind.as_str().unwrap_or("object") {
            "boolean" => json!(self.random.random::<bool>()),
            "integer" | "number" => self.number(schema),
            "string" => Value::String(self.text(name, schema)?),
            "array" => Value::Array(self.list(name, schema, depth)),
            _ => Value::Object(self.object(name, schema, depth)),
        })
    }

    fn number(&mut self, schema: &Value) -> Value {
        let limits = ["minimum", "maximum"].map(|limit| schema[limit].as_f64());
        let known = limits.into_iter().flatten().map(|limit| limit as i64);
        let all: Vec<_> = known.chain([0, 1, 100, i64::from(i32::MAX)]).collect();
        json!(all.choose(self.random))
    }

    fn text(&mut self, name: &str, schema: &Value) -> Option<String> {
        if let Some(id) = Self::collection(name).and_then(|collection| self.id(collection)) {
            return Some(id);
        }
        let days = *[-3000, -1, 1, 300, 3000].choose(self.random).expect("a day");
        Some(match schema["format"].as_str() {
            Some("uuid") => uuid::Uuid::from_u128(self.random.random()).to_string(),
            Some(format) if format.starts_with("date-time") || format.contains("time-bound") => {
                let far = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"].choose(self.random).copied();
                let near = (now() + TimeDelta::days(days)).to_rfc3339();
                if self.random.random_bool(0.3) { far.expect("a time").to_owned() } else { near }
            }
            Some("email") => format!("{}@example.com", self.random.next_u64()),
            Some("uri" | "url") => self.hook.to_owned(),
            Some(_) => return None,
            None => {
                let most = schema["maxLength"].as_u64().map_or(200, |most| most as usize);
                let length = *[most, most.min(250), most / 2].choose(self.random).expect("a length");
                let piece = *PIECES.choose(self.random).expect("a piece");
                let characters = piece.chars().count();
                let times = (length / characters).min(self.room / 2 / piece.len()).max(1);
                let text = piece.repeat(times);
                self.room = self.room.saturating_sub(text.len());
                text
            }
        })
    }

    fn list(&mut self, name: &str, schema: &'a Value, depth: usize) -> Vec<Value> {
        let most = schema["maxItems"].as_u64().map_or(100, |most| most as usize);
        let count = *[most, most, 1].choose(self.random).expect("a number");
        let ids = Self::collection(name).and_then(|collection| self.ids.get(collection));
        if let (Some(ids), "string") =
            (ids, self.resolve(&schema["items"])["type"].as_str().unwrap_or_default())
        {
            return ids.iter().take(count).map(|id| json!(id)).collect();
        }
        let is_unique = schema["uniqueItems"] == true;
        let mut items = Vec::new();
        while items.len() < count && self.room > 100 && depth < DEPTH {
            let Some(item) = self.value(name, &schema["items"], depth + 1) else { break };
            if !is_unique {
                // Alike, so that large lists are made at once.
                let length = item.to_string().len().max(1);
                let times = (count - items.len()).min((self.room / length).max(1));
                self.room = self.room.saturating_sub(length * times);
                items.extend(std::iter::repeat_n(item, times));
                break;
            }
            self.room = self.room.saturating_sub(40);
            if !items.contains(&item) {
                items.push(item);
            } else if items.len() > 3 && self.random.random_bool(0.2) {
                break;
            }
        }
        items
    }

    fn object(&mut self, name: &str, schema: &'a Value, depth: usize) -> Map<String, Value> {
        let mut members = Map::new();
        if name == "media"
            && let Some(id) = self.id("media")
        {
            return Map::from_iter([("id".to_owned(), json!(id))]);
        }
        if depth >= DEPTH {
            return members;
        }
        let required: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            if !required.contains(&name.as_str()) && self.random.random_bool(0.6) {
                continue;
            }
            if let Some(value) = self.value(name, member, depth + 1) {
                members.insert(name.clone(), value);
            }
        }
        if schema["additionalProperties"].is_object() {
            let most = schema["maxProperties"].as_u64().map_or(50, |most| most as usize);
            for number in 0..most {
                let Some(value) = self.value("", &schema["additionalProperties"], depth + 1) else { break };
                members.insert(format!("key-{number}"), value);
            }
        }
        members
    }
}
