//! A platform's settings as form fields, drawn from the JSON schema that validates them.
//!
//! A field is named `set:{platform}:{path}`. What fields can't express, such as lists of objects, stays in the JSON
//! below the form, to which the fields are added.

use crate::{choice::Choice, fields::Fields};
use platforms::{Adapter, check};
use serde_json::{Map, Value, json};

/// Longest text that has a field of one line, in characters.
const MAX_LINE: u64 = 10_000;

/// The settings of a platform.
pub(crate) struct Section {
    /// Settings of their own, then groups of settings.
    pub(crate) groups: Vec<Group>,
}

/// Settings that belong together.
pub(crate) struct Group {
    /// Heading and explanation; empty for the settings of their own.
    pub(crate) name: String,
    /// Explanation of the group.
    pub(crate) hint: String,
    /// The settings.
    pub(crate) settings: Vec<Setting>,
}

/// A setting.
pub(crate) struct Setting {
    /// Name of the form field.
    pub(crate) field: String,
    /// Label.
    pub(crate) label: String,
    /// Explanation; may be empty.
    pub(crate) hint: String,
    /// The field.
    pub(crate) input: Input,
}

/// A field for a setting.
pub(crate) enum Input {
    /// Yes or no, of which one is the default. What is on by default sends a value in either case.
    Check {
        /// Its state.
        is_on: bool,
        /// Its state by default.
        is_default: bool,
    },
    /// One of several values, or none.
    Select(Vec<Choice>),
    /// Any of several values.
    Several(Vec<Choice>),
    /// A number.
    Number {
        /// The number as text.
        value: String,
        /// Its least value, as text.
        min: String,
        /// Its greatest value, as text.
        max: String,
    },
    /// A line of text.
    Line(String),
    /// A text with several lines, or one value a line.
    Lines(String),
}

/// A setting that a field can express.
struct Leaf<'a> {
    platform: &'static str,
    /// Keys that lead to it: one, or two in a group.
    path: Vec<&'a str>,
    schema: &'a Value,
}

impl Leaf<'_> {
    fn field(&self) -> String {
        format!("set:{}:{}", self.platform, self.path.join("."))
    }

    fn kind(&self) -> &str {
        self.schema["type"].as_str().unwrap_or_default()
    }

    fn is_on_by_default(&self) -> bool {
        self.schema["default"] == true
    }
}

/// Returns true if a field can express a value with this schema.
fn is_leaf(schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string" | "boolean" | "integer" | "number") => true,
        Some("array") => schema["items"]["type"] == "string",
        _ => false,
    }
}

/// Calls `each` for every setting that a field can express, with the group's name and schema.
fn walk<'a>(
    platform: &'static str,
    schema: &'a Value,
    mut each: impl FnMut(Option<(&'a str, &'a Value)>, Leaf<'a>),
) {
    let members = |schema: &'a Value| schema["properties"].as_object().into_iter().flatten();
    for (key, member) in members(schema) {
        if is_leaf(member) {
            each(None, Leaf { platform, path: vec![key], schema: member });
        }
        for (inner, part) in members(member).filter(|(_, part)| is_leaf(part)) {
            each(Some((key, member)), Leaf { platform, path: vec![key, inner], schema: part });
        }
    }
}

/// Returns the settings of a platform, with the values of a form.
pub(crate) fn section(platform: &'static Adapter, values: &Fields) -> Section {
    let schema = check::schema(platform);
    let mut own = Group { name: String::new(), hint: String::new(), settings: Vec::new() };
    let mut groups: Vec<Group> = Vec::new();
    walk(platform.id, &schema, |group, leaf| {
        let setting = setting(&leaf, values);
        let Some((key, schema)) = group else { return own.settings.push(setting) };
        let name = words(key);
        match groups.last_mut().filter(|last| last.name == name) {
            Some(last) => last.settings.push(setting),
            None => groups.push(Group { name, hint: hint(schema), settings: vec![setting] }),
        }
    });
    if !own.settings.is_empty() {
        groups.insert(0, own);
    }
    Section { groups }
}

fn setting(leaf: &Leaf<'_>, values: &Fields) -> Setting {
    let field = leaf.field();
    let value = values.last(&field).unwrap_or_default().to_owned();
    let choices = |schema: &Value, is_chosen: &dyn Fn(&str) -> bool| {
        let options = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let choice = |option: &str| Choice::new(option, words(option), is_chosen(option));
        options.map(choice).collect::<Vec<_>>()
    };
    let (items, is_enum) = (&leaf.schema["items"], leaf.schema["enum"].is_array());
    let number = |key: &str| match &leaf.schema[key] {
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let input = match leaf.kind() {
        // Left open, it is neither yes nor no.
        "boolean" if leaf.schema["default"].is_null() => Input::Select(
            [("true", "Yes"), ("false", "No")]
                .map(|(option, name)| Choice::new(option, name, option == value))
                .into(),
        ),
        "boolean" => {
            let is_default = leaf.is_on_by_default();
            let is_on = if values.all(&field).next().is_some() { value == "true" } else { is_default };
            Input::Check { is_on, is_default }
        }
        "integer" | "number" => Input::Number { value, min: number("minimum"), max: number("maximum") },
        "array" if items["enum"].is_array() => {
            Input::Several(choices(items, &|option| values.all(&field).any(|value| value == option)))
        }
        "array" => Input::Lines(value),
        _ if is_enum => Input::Select(choices(leaf.schema, &|option| option == value)),
        _ if leaf.schema["maxLength"].as_u64().is_some_and(|max| max > MAX_LINE) => Input::Lines(value),
        _ => Input::Line(value),
    };
    let mut hint = hint(leaf.schema);
    if matches!(input, Input::Lines(_)) && leaf.kind() == "array" {
        hint = format!("{hint} One a line.").trim_start().to_owned();
    }
    Setting { label: words(leaf.path[leaf.path.len() - 1]), hint, input, field }
}

/// Adds the settings of a form to blocks by platform.
pub(crate) fn apply(values: &Fields, blocks: &mut Map<String, Value>) {
    for platform in platforms::all() {
        if !values
            .names()
            .any(|name| name.strip_prefix("set:").is_some_and(|rest| rest.starts_with(platform.id)))
        {
            continue;
        }
        let schema = check::schema(platform);
        walk(platform.id, &schema, |_, leaf| {
            let Some(value) = read(&leaf, values) else { return };
            let mut at = blocks.entry(platform.id).or_insert_with(|| json!({}));
            for (depth, key) in leaf.path.iter().enumerate() {
                // A member of another type is reported by the validation.
                let Some(object) = at.as_object_mut() else { return };
                let is_last = depth + 1 == leaf.path.len();
                at = object.entry(*key).or_insert_with(|| if is_last { Value::Null } else { json!({}) });
            }
            *at = value;
        });
    }
}

/// Returns the value of a setting; `None` if none is given.
fn read(leaf: &Leaf<'_>, values: &Fields) -> Option<Value> {
    let field = leaf.field();
    let text = values.last(&field)?.trim().replace("\r\n", "\n");
    let parse = |text: &str| serde_json::from_str(text).ok().filter(Value::is_number);
    match leaf.kind() {
        _ if text.is_empty() && leaf.kind() != "array" => None,
        "boolean" => {
            let is_on = text == "true";
            (leaf.schema["default"] != is_on).then_some(json!(is_on))
        }
        "array" => {
            let all: Vec<String> = match leaf.schema["items"]["enum"].is_array() {
                true => values.all(&field).map(str::to_owned).collect(),
                false => text.lines().map(|line| line.trim().to_owned()).collect(),
            };
            let all: Vec<_> = all.into_iter().filter(|one| !one.is_empty()).collect();
            (!all.is_empty()).then(|| json!(all))
        }
        "integer" | "number" => Some(parse(&text).unwrap_or_else(|| json!(text))),
        _ => Some(json!(text)),
    }
}

/// Takes the settings that fields can express out of blocks, as fields.
pub(crate) fn take(blocks: &mut Value) -> Vec<(String, String)> {
    let mut taken = Vec::new();
    for platform in platforms::all() {
        let Some(block) = blocks.get_mut(platform.id).and_then(Value::as_object_mut) else { continue };
        let schema = check::schema(platform);
        walk(platform.id, &schema, |_, leaf| {
            let (last, before) = leaf.path.split_last().expect("a setting has a name");
            let mut at = Some(&mut *block);
            for key in before {
                at = at.and_then(|object| object.get_mut(*key)).and_then(Value::as_object_mut);
            }
            let Some(object) = at else { return };
            let texts: Vec<String> = match object.get(*last) {
                Some(Value::String(text)) if leaf.kind() == "string" => vec![text.clone()],
                Some(Value::Bool(is_on)) => vec![is_on.to_string()],
                Some(Value::Number(number)) => vec![number.to_string()],
                Some(Value::Array(all)) if all.iter().all(Value::is_string) => {
                    let all: Vec<_> = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                    if leaf.schema["items"]["enum"].is_array() { all } else { vec![all.join("\n")] }
                }
                _ => return,
            };
            // A checkbox can't tell a setting that is off by default from one that was switched off.
            if leaf.schema["default"] == false && texts[0] == "false" {
                return;
            }
            object.remove(*last);
            taken.extend(texts.into_iter().map(|text| (leaf.field(), text)));
            if let [group] = before
                && block.get(*group).and_then(Value::as_object).is_some_and(Map::is_empty)
            {
                block.remove(*group);
            }
        });
    }
    if let Some(blocks) = blocks.as_object_mut() {
        blocks.retain(|_, block| block.as_object().is_none_or(|block| !block.is_empty()));
    }
    taken
}

/// Returns a schema's explanation, without what refers to operations of the API.
fn hint(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    let sentences = text.split_inclusive(". ").filter_map(|sentence| match sentence.find("options/") {
        None => Some(sentence.to_owned()),
        Some(at) => {
            let before = sentence[..at].trim_end().trim_end_matches(';');
            (!before.is_empty()).then(|| format!("{before}. "))
        }
    });
    sentences.collect::<String>().trim_end().replace('`', "")
}

/// Returns the words of a key or a value, such as `reply_settings`, `callToAction` or `LEARN_MORE`.
fn words(name: &str) -> String {
    let has_lower = name.chars().any(char::is_lowercase);
    let mut words = String::new();
    for letter in name.chars() {
        match letter {
            '_' | '-' => words.push(' '),
            upper if upper.is_uppercase() && has_lower && !words.is_empty() => {
                words.push(' ');
                words.extend(upper.to_lowercase());
            }
            letter => words.extend(letter.to_lowercase()),
        }
    }
    let words: Vec<_> = words
        .split_whitespace()
        .map(|word| match word {
            "id" | "url" | "ai" | "nsfw" | "ig" => word.to_uppercase(),
            word => word.to_owned(),
        })
        .collect();
    let words = words.join(" ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pairs: &[(&str, &str)]) -> Value {
        let mut blocks = Map::new();
        apply(&Fields::from_pairs(pairs.iter().map(|(name, value)| (*name, *value))), &mut blocks);
        Value::Object(blocks)
    }

    #[test]
    fn fields_become_settings_of_their_type() {
        let found = blocks(&[
            ("set:x:reply_settings", "following"),
            ("set:x:made_with_ai", "true"),
            ("set:x:poll.options", "Yes\r\nNo\r\n"),
            ("set:x:poll.duration_minutes", "60"),
            ("set:x:community_id", " "),
            ("set:youtube:notifySubscribers", "false"),
            ("set:bluesky:labels", "nudity"),
            ("set:bluesky:labels", "porn"),
            ("set:pinterest:cover_image_key_frame_time", "soon"),
        ]);
        let expected = json!({
            "x": {
                "reply_settings": "following", "made_with_ai": true,
                "poll": { "options": ["Yes", "No"], "duration_minutes": 60 },
            },
            "youtube": { "notifySubscribers": false },
            "bluesky": { "labels": ["nudity", "porn"] },
            // Validation says what is wrong.
            "pinterest": { "cover_image_key_frame_time": "soon" },
        });
        assert_eq!(found, expected);
        assert_eq!(blocks(&[("set:youtube:notifySubscribers", "true")]), json!({}), "the default");
    }

    #[test]
    fn settings_become_fields_and_the_rest_stays_json() {
        let all = json!({
            "x": { "reply_settings": "verified", "poll": { "options": ["a", "b"], "duration_minutes": 5 } },
            "instagram": { "user_tags": [{ "username": "ada" }], "share_to_feed": false, "collaborators": ["a", "b"] },
            "youtube": { "notifySubscribers": false },
        });
        let mut rest = all.clone();
        let fields = take(&mut rest);
        let expected = json!({ "instagram": { "user_tags": [{ "username": "ada" }] } });
        assert_eq!(rest, expected);
        let mut again = rest.as_object().unwrap().clone();
        let pairs = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        apply(&Fields::from_pairs(pairs), &mut again);
        assert_eq!(Value::Object(again), all);
    }

    #[test]
    fn what_is_neither_on_nor_off_by_default_has_three_choices() {
        const FIELD: &str = "set:instagram:share_to_feed";
        assert_eq!(blocks(&[(FIELD, "")]), json!({}));
        assert_eq!(blocks(&[(FIELD, "false")]), json!({ "instagram": { "share_to_feed": false } }));
        assert_eq!(blocks(&[(FIELD, "true")]), json!({ "instagram": { "share_to_feed": true } }));
        let values = Fields::from_pairs([(FIELD, "false")]);
        let section = section(platforms::get("instagram").unwrap(), &values);
        let found =
            section.groups.into_iter().flat_map(|group| group.settings).find(|one| one.field == FIELD);
        let Input::Select(options) = found.unwrap().input else { panic!("it is no select") };
        let options: Vec<_> = options.into_iter().map(|option| (option.name, option.is_chosen)).collect();
        assert_eq!(options, [("Yes".to_owned(), false), ("No".to_owned(), true)]);
    }

    #[test]
    fn every_platform_has_a_form() {
        for platform in platforms::all() {
            let section = section(platform, &Fields::default());
            let settings = || section.groups.iter().flat_map(|group| &group.settings);
            assert!(settings().count() >= 5, "{}", platform.id);
            for setting in settings() {
                assert!(!setting.label.is_empty() && !setting.hint.contains("options/"), "{}", setting.field);
            }
        }
    }

    #[test]
    fn names_become_words() {
        for (name, expected) in [
            ("reply_settings", "Reply settings"),
            ("callToAction", "Call to action"),
            ("LEARN_MORE", "Learn more"),
            ("board_id", "Board ID"),
            ("graphic-media", "Graphic media"),
        ] {
            assert_eq!(words(name), expected);
        }
    }
}
