//! The shape of a reply: names and types without values.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Number of digits from which a part of an address or a name is taken for an id.
const ID_DIGITS: usize = 4;

/// The JSON types at each place of a document, such as `string` at `data.id` or `object` at `data.media[]`. A name
/// that is an id is written `{id}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(BTreeMap<String, BTreeSet<String>>);

impl Shape {
    /// Returns the shape of a document.
    pub fn of(document: &Value) -> Self {
        let mut shape = Self::default();
        shape.add(String::new(), document);
        shape
    }

    fn add(&mut self, place: String, value: &Value) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(items) => {
                items.iter().for_each(|item| self.add(format!("{place}[]"), item));
                "array"
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let name = template(name);
                    self.add(if place.is_empty() { name } else { format!("{place}.{name}") }, value);
                }
                "object"
            }
        };
        self.0.entry(place).or_default().insert(kind.to_owned());
    }

    /// Adds the places and types of another shape.
    pub(crate) fn merge(&mut self, other: Self) {
        for (place, kinds) in other.0 {
            self.0.entry(place).or_default().extend(kinds);
        }
    }

    /// Returns the differences between a platform's shape and the simulator's. Below a place that only one of them
    /// has, nothing more is said; neither is of the items of a list that is empty on one side.
    pub(crate) fn differences(&self, simulator: &Self) -> Vec<String> {
        let places: BTreeSet<&String> = self.0.keys().chain(simulator.0.keys()).collect();
        let mut told: Vec<String> = Vec::new();
        let mut differences = Vec::new();
        for place in places {
            let is_below = |parent: &String| {
                let rest = place.strip_prefix(parent.as_str());
                rest.is_some_and(|rest| rest.starts_with(['.', '[']) || parent.is_empty())
            };
            if told.iter().any(is_below) {
                continue;
            }
            let shown = if place.is_empty() { "the body" } else { place };
            let difference = match (self.0.get(place), simulator.0.get(place)) {
                (Some(real), Some(simulated)) if real == simulated => continue,
                (Some(real), Some(simulated)) => {
                    format!("{shown}: {}, the simulator {}", words(real), words(simulated))
                }
                // A list that is empty on one side.
                _ if place.ends_with("[]") => {
                    told.push(place.clone());
                    continue;
                }
                (Some(real), None) => format!("{shown}: {}, the simulator nothing", words(real)),
                (None, Some(simulated)) => format!("{shown}: nothing, the simulator {}", words(simulated)),
                (None, None) => continue,
            };
            told.push(place.clone());
            differences.push(difference);
        }
        differences
    }
}

fn words(kinds: &BTreeSet<String>) -> String {
    kinds.iter().map(String::as_str).collect::<Vec<_>>().join(" or ")
}

/// Returns a name or a part of an address with `{id}` in place of an id: of several digits, or with a colon, as a URN.
pub(crate) fn template(part: &str) -> String {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    if digits >= ID_DIGITS || part.contains(':') { "{id}".to_owned() } else { part.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        let document = json!({
            "data": { "id": "1881", "edit_history": ["1881"], "n": 1 }, "users": [{ "a": 1 }, { "a": null }],
            "1789456123": true,
        });
        let shape = Shape::of(&document);
        let text = serde_json::to_string(&shape).unwrap();
        assert!(!text.contains("1881") && !text.contains("1789"), "{text}");
        let expected = json!({
            "": ["object"], "data": ["object"], "data.id": ["string"], "data.edit_history": ["array"],
            "data.edit_history[]": ["string"], "data.n": ["number"], "users": ["array"], "users[]": ["object"],
            "users[].a": ["null", "number"], "{id}": ["boolean"],
        });
        assert_eq!(serde_json::to_value(&shape).unwrap(), expected);
    }

    #[test]
    fn differences_name_the_outermost_place() {
        let real = Shape::of(&json!({ "id": "1", "owner": { "name": "a", "age": 1 }, "list": [], "n": 1 }));
        let simulated = Shape::of(&json!({ "id": 1, "list": [{ "a": 1 }], "n": 2, "more": true }));
        assert_eq!(
            real.differences(&simulated),
            [
                "id: string, the simulator number",
                "more: nothing, the simulator boolean",
                "owner: object, the simulator nothing",
            ]
        );
        assert_eq!(real.differences(&real), [""; 0]);
        let other = Shape::of(&json!([1]));
        assert_eq!(real.differences(&other), ["the body: object, the simulator array"]);
    }
}
