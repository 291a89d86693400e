//! Members of a body that its type does not know.
//!
//! Ignoring them is what most APIs do, and what lets a client send a body back that it has read. But a post can't be
//! taken back: one with `scheduledAt` would be published at once. So names that resemble a known one, and those that
//! belong into an object inside, are refused in the bodies that say so ([`Rules::REFUSES_SLIPS`]); where there is a
//! place to tell it, all others are told.

use crate::{
    http::problem::{Issue, Segment, clip},
    openapi::validate::{Rules, Schema},
};
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::Type,
};
use serde_json::{Map, Value};

/// Largest edit distance of a name to the one it resembles.
const MAX_DISTANCE: usize = 2;
/// Maximum length of a name that is compared, in bytes; no known one is as long.
const MAX_NAME_BYTES: usize = 40;
/// Maximum number of unknown members of a body; comparing them takes time.
const MAX_UNKNOWN: usize = 1000;

/// A member that the type of its object does not know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unknown {
    /// Path of the object.
    path: Vec<Segment>,
    /// Name of the member, shortened.
    name: String,
    /// Name that was probably meant.
    meant: Option<Meant>,
}

/// The place that a name was probably meant for.
#[derive(Clone, Debug, PartialEq)]
enum Meant {
    /// A member of the object.
    Here(String),
    /// A member of the objects in one of its members.
    Inside(String, &'static str),
}

impl Unknown {
    /// Path of the member.
    pub(crate) fn path(&self) -> Vec<Segment> {
        [&self.path[..], &[Segment::from(&*self.name)]].concat()
    }

    /// Puts the path of the value before the member's.
    #[must_use]
    pub(crate) fn under(self, path: &[Segment]) -> Self {
        Self { path: [path, &self.path].concat(), ..self }
    }

    /// The refusal of the member.
    fn issue(&self) -> Issue {
        let unknown = &self.name;
        let hint = match &self.meant {
            Some(Meant::Here(name)) => format!(". Did you mean `{name}`?"),
            Some(Meant::Inside(name, member)) => format!(". Did you mean `{name}` in `{member}`?"),
            None => String::new(),
        };
        let message = format!("Unrecognized key(s) in object: '{unknown}'{hint}");
        let issue = Issue::new(self.path.iter().cloned(), "unrecognized_keys", message);
        issue.with("keys", vec![unknown.clone()])
    }
}

/// Returns the refusals of slips, or of all unknown members in a closed body. Too many are refused in any case.
pub(crate) fn issues(found: &[Unknown], is_closed: bool) -> Vec<Issue> {
    if found.len() > MAX_UNKNOWN {
        return vec![Issue::whole(format!("Must have at most {MAX_UNKNOWN} unknown members"))];
    }
    found.iter().filter(|unknown| is_closed || unknown.meant.is_some()).map(Unknown::issue).collect()
}

/// Returns true if no further unknown members count.
pub(crate) fn is_full(found: &[Unknown]) -> bool {
    found.len() > MAX_UNKNOWN
}

/// Returns the members of a body that `T` does not know, at any depth.
pub(crate) fn of<T: Type + Rules + 'static>(body: &Value) -> Vec<Unknown> {
    let schema = Schema::of::<T>();
    let homes: Vec<_> = T::homes().into_iter().map(|(member, inner)| (member, inner.names())).collect();
    let mut search = Search { path: Vec::new(), found: Vec::new() };
    search.visit(&schema, schema.root(), body, &homes);
    search.found
}

/// Returns the members of an object that are not among `known`.
pub(crate) fn beside(object: &Map<String, Value>, known: &[&str]) -> Vec<Unknown> {
    let mut search = Search { path: Vec::new(), found: Vec::new() };
    search.members(object, known, &[]);
    search.found
}

/// Returns the members that a JSON Schema does not know, in the objects below the properties of `object`.
pub(crate) fn below(object: &Map<String, Value>, schema: &Value) -> Vec<Unknown> {
    let mut search = Search { path: Vec::new(), found: Vec::new() };
    search.properties(object, schema);
    search.found
}

struct Search {
    path: Vec<Segment>,
    found: Vec<Unknown>,
}

impl Search {
    fn visit(
        &mut self,
        all: &Schema,
        schema: &MetaSchemaRef,
        value: &Value,
        homes: &[(&'static str, Vec<&'static str>)],
    ) {
        let schema = all.essence(schema);
        match value {
            Value::Object(object) if is_open(schema) => {
                let known: Vec<_> = schema.properties.iter().map(|(name, _)| *name).collect();
                self.members(object, &known, homes);
                for (name, property) in &schema.properties {
                    if let Some(value) = object.get(*name) {
                        self.under(*name, |search| search.visit(all, property, value, &[]));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                for (index, item) in items.iter().enumerate() {
                    if self.is_full() {
                        return;
                    }
                    self.under(index, |search| search.visit(all, schema, item, &[]));
                }
            }
            _ => {}
        }
    }

    fn properties(&mut self, object: &Map<String, Value>, schema: &Value) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = object.get(name) {
                self.under(name.as_str(), |search| search.json(value, property));
            }
        }
    }

    fn json(&mut self, value: &Value, schema: &Value) {
        match (value, &schema["properties"]) {
            (Value::Object(object), Value::Object(properties)) => {
                let known: Vec<_> = properties.keys().map(String::as_str).collect();
                self.members(object, &known, &[]);
                self.properties(object, schema);
            }
            (Value::Array(items), _) => {
                for (index, item) in items.iter().enumerate() {
                    if self.is_full() {
                        return;
                    }
                    self.under(index, |search| search.json(item, &schema["items"]));
                }
            }
            _ => {}
        }
    }

    fn members(
        &mut self,
        object: &Map<String, Value>,
        known: &[&str],
        homes: &[(&'static str, Vec<&'static str>)],
    ) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            if self.is_full() {
                return;
            }
            let inside = || {
                homes.iter().find_map(|(member, names)| Some(Meant::Inside(resembled(key, names)?, member)))
            };
            let meant = resembled(key, known).map(Meant::Here).or_else(inside);
            self.found.push(Unknown { path: self.path.clone(), name: clip(key), meant });
        }
    }

    fn under(&mut self, segment: impl Into<Segment>, look: impl FnOnce(&mut Self)) {
        self.path.push(segment.into());
        look(self);
        self.path.pop();
    }

    fn is_full(&self) -> bool {
        is_full(&self.found)
    }
}

/// True for an object with named members that may have others.
fn is_open(schema: &MetaSchema) -> bool {
    schema.ty == "object" && schema.additional_properties.is_none()
}

/// Returns the known name that differs from a name only in its case, in underscores and hyphens, or by a slip of the
/// pen: at most two letters, and fewer in a short name.
fn resembled(name: &str, known: &[&str]) -> Option<String> {
    let written = plain(name)?;
    let candidates = known.iter().filter_map(|known| {
        let meant = plain(known)?;
        let most = MAX_DISTANCE.min(written.len().max(meant.len()) / 3);
        if written.len().abs_diff(meant.len()) > most {
            return None;
        }
        let distance = strsim::osa_distance(&written, &meant);
        (distance <= most).then_some((distance, known))
    });
    candidates.min().map(|(_, known)| (*known).to_owned())
}

/// Returns a name in small letters without underscores and hyphens; `None` if it is too long to be one of ours, or is
/// not written in ASCII.
fn plain(name: &str) -> Option<String> {
    let is_plain = name.len() <= MAX_NAME_BYTES && name.is_ascii();
    let letters = || name.bytes().filter(|byte| !b"_-".contains(byte));
    is_plain.then(|| letters().map(|byte| char::from(byte.to_ascii_lowercase())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::{Post, create::NewPost};

    #[test]
    fn a_slip_is_told_from_another_word() {
        let schema = Schema::of::<NewPost>();
        let known = schema.names();
        for (name, expected) in [
            ("scheduledAt", Some("scheduled_at")),
            ("scheduled-at", Some("scheduled_at")),
            ("SCHEDULED_AT", Some("scheduled_at")),
            ("schedule_at", Some("scheduled_at")),
            ("sheduled_ta", Some("scheduled_at")),
            ("scheduled", Some("scheduled_at")),
            ("isDraft", Some("is_draft")),
            ("draft", Some("is_draft")),
            ("account", Some("accounts")),
            ("account_ids", Some("accounts")),
            ("contents", Some("content")),
            ("container", Some("containers")),
            ("replyTo", Some("reply_to")),
            ("X", Some("x")),
            ("LinkedIn", Some("linkedin")),
            ("you_tube", Some("youtube")),
            ("thread", Some("threads")),
            ("conf", Some("config")),
            // Too far away, or too short to be a slip of anything.
            ("y", None),
            ("id", None),
            ("to", None),
            ("tag", None),
            ("text", None),
            ("tenant", None),
            ("tenant_id", None),
            ("title", None),
            ("labels", None),
            ("source", None),
            ("campaign", None),
            ("timezone", None),
            ("profile_id", None),
            ("inhalt", None),
            ("", None),
            ("_", None),
        ] {
            assert_eq!(resembled(name, &known).as_deref(), expected, "{name}");
        }
        assert_eq!(resembled(&"content".repeat(1000), &known), None);
    }

    #[test]
    fn what_a_response_has_can_be_sent_back() {
        let (sent, returned) = (Schema::of::<NewPost>(), Schema::of::<Post>());
        for name in returned.names().into_iter().filter(|name| !sent.names().contains(name)) {
            assert_eq!(resembled(name, &sent.names()), None, "{name}");
        }
    }

    #[test]
    fn the_search_is_bounded_and_says_so() {
        let many = |count| Value::Object((0..count).map(|n| (format!("k{n}"), Value::Null)).collect());
        let found = of::<NewPost>(&many(100_000));
        assert_eq!((found.len(), issues(&found, false).len()), (MAX_UNKNOWN + 1, 1));
        let found = of::<NewPost>(&many(MAX_UNKNOWN));
        assert_eq!((found.len(), issues(&found, false).len()), (MAX_UNKNOWN, 0));
    }
}
