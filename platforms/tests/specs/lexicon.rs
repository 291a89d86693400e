//! Validates a request against AT Protocol's lexicons. <https://atproto.com/specs/lexicon>
//!
//! By hand, because a lexicon is no JSON Schema, although it looks like one: a text has a length in bytes and another in
//! graphemes, a union is chosen by `$type`, and references, blobs, CIDs and NSIDs are its own. Converted, each of these
//! would be a keyword or a format that is written here all the same.

use super::Heard;
use serde_json::Value;
use std::{collections::HashMap, fs, path::Path};
use unicode_segmentation::UnicodeSegmentation;

/// Lexicons by their NSID.
pub(crate) struct Lexicons(HashMap<String, Value>);

impl Lexicons {
    pub(crate) fn open(folder: &Path) -> Self {
        let mut all = Vec::new();
        read(&folder.join("atproto-lexicons"), &mut all);
        assert!(all.len() > 50, "lexicons are missing");
        Self::of(all)
    }

    pub(crate) fn of(all: impl IntoIterator<Item = Value>) -> Self {
        let id = |lexicon: &Value| lexicon["id"].as_str().expect("a lexicon has an id").to_owned();
        Self(all.into_iter().map(|lexicon| (id(&lexicon), lexicon)).collect())
    }

    /// Returns the faults of a request.
    pub(crate) fn faults(&self, call: &Heard) -> Vec<String> {
        let nsid = call.path.rsplit('/').next().unwrap_or_default();
        let Some(main) = self.0.get(nsid).map(|lexicon| &lexicon["defs"]["main"]) else {
            return vec![format!("{nsid}: no such lexicon")];
        };
        let mut faults = Vec::new();
        let verb = if main["type"] == "query" { "GET" } else { "POST" };
        if call.method != verb {
            faults.push(format!("{nsid}: {} and not {verb}", call.method));
        }
        let parameters = &main["parameters"];
        for (name, value) in &call.query {
            let kind = &parameters["properties"][name]["type"];
            // The production service accepts two parameters that the lexicon omits.
            let is_known = kind.is_string()
                || (nsid == "app.bsky.video.uploadVideo" && ["did", "name"].contains(&name.as_str()));
            if !is_known || (kind == "integer" && value.parse::<i64>().is_err()) {
                faults.push(format!("{nsid}: parameter {name}={value}"));
            }
        }
        for name in parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !call.query.iter().any(|(key, _)| key == name) {
                faults.push(format!("{nsid}: lacks parameter {name}"));
            }
        }
        match main["input"]["encoding"].as_str() {
            None if !call.text.is_empty() => faults.push(format!("{nsid}: takes no body")),
            Some("application/json") => {
                self.judge(nsid, &main["input"]["schema"], &call.body, nsid, &mut faults)
            }
            Some("*/*") | None => {}
            // The official app sends GIFs to the same method.
            Some("video/mp4") if nsid == "app.bsky.video.uploadVideo" && call.mime == "image/gif" => {}
            Some(mime) if call.mime != mime => faults.push(format!("{nsid}: {} and not {mime}", call.mime)),
            Some(_) => {}
        }
        if nsid == "com.atproto.repo.putRecord" {
            let collection = call.body["collection"].as_str().unwrap_or_default();
            match self.0.get(collection).map(|lexicon| &lexicon["defs"]["main"]["record"]) {
                Some(record) => self.judge(collection, record, &call.body["record"], collection, &mut faults),
                None => faults.push(format!("{nsid}: no collection {collection}")),
            }
        }
        faults
    }

    /// Returns the definition that a reference in `home` names, and the NSID of its lexicon.
    fn find<'a>(&'a self, home: &'a str, reference: &'a str) -> (&'a str, &'a Value) {
        let (nsid, name) = reference.split_once('#').unwrap_or((reference, "main"));
        let nsid = if nsid.is_empty() { home } else { nsid };
        let (nsid, lexicon) = self.0.get_key_value(nsid).unwrap_or_else(|| panic!("no lexicon {nsid}"));
        (nsid, &lexicon["defs"][name])
    }

    fn judge(&self, home: &str, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let mut wrong = |what: &str| faults.push(format!("{at}: {value} {what}"));
        match schema["type"].as_str().unwrap_or_default() {
            "ref" => {
                let (home, schema) = self.find(home, schema["ref"].as_str().expect("a reference"));
                self.judge(home, schema, value, at, faults);
            }
            "union" => {
                let kind = value["$type"].as_str().unwrap_or_default();
                let options = schema["refs"].as_array().expect("a union has references");
                let full = |option: &str| {
                    if option.starts_with('#') { format!("{home}{option}") } else { option.to_owned() }
                };
                match options.iter().filter_map(Value::as_str).find(|option| full(option) == kind) {
                    None => wrong("is none of the union"),
                    Some(option) => {
                        let (home, schema) = self.find(home, option);
                        self.judge(home, schema, value, at, faults);
                    }
                }
            }
            "object" => {
                let Some(members) = value.as_object() else { return wrong("is no object") };
                for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if !members.contains_key(name) {
                        wrong(&format!("lacks {name}"));
                    }
                }
                let may_be_null = |name: &str| {
                    schema["nullable"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
                };
                for (name, inner) in members.iter().filter(|(name, _)| *name != "$type") {
                    match schema["properties"].get(name) {
                        Some(_) if inner.is_null() && may_be_null(name) => {}
                        Some(property) => self.judge(home, property, inner, &format!("{at}.{name}"), faults),
                        None => faults.push(format!("{at}: no member {name}")),
                    }
                }
            }
            "array" => {
                let Some(items) = value.as_array() else { return wrong("is no array") };
                if schema["maxLength"].as_u64().is_some_and(|max| items.len() as u64 > max) {
                    wrong("is too long");
                }
                for (index, item) in items.iter().enumerate() {
                    self.judge(home, &schema["items"], item, &format!("{at}[{index}]"), faults);
                }
            }
            "string" => {
                let Some(text) = value.as_str() else { return wrong("is no string") };
                let graphemes = text.graphemes(true).count() as u64;
                if schema["maxLength"].as_u64().is_some_and(|max| text.len() as u64 > max)
                    || schema["maxGraphemes"].as_u64().is_some_and(|max| graphemes > max)
                {
                    wrong("is too long");
                }
                let is_formed = match schema["format"].as_str() {
                    Some("did") => text.starts_with("did:"),
                    Some("at-uri") => text.starts_with("at://"),
                    Some("uri") => url::Url::parse(text).is_ok(),
                    Some("datetime") => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
                    Some("cid") => cid::Cid::try_from(text).is_ok(),
                    Some("nsid") => text.split('.').count() > 2,
                    _ => true,
                };
                if !is_formed {
                    wrong(&format!("is no {}", schema["format"]));
                }
            }
            "integer" => {
                let Some(number) = value.as_i64() else { return wrong("is no integer") };
                if schema["minimum"].as_i64().is_some_and(|min| number < min) {
                    wrong("is too small");
                }
            }
            "boolean" if !value.is_boolean() => wrong("is no boolean"),
            "blob" => {
                let accepts = schema["accept"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let mime = value["mimeType"].as_str().unwrap_or_default();
                let is_accepted =
                    accepts.map(|glob| glob.trim_end_matches('*')).any(|start| mime.starts_with(start));
                let size = value["size"].as_u64().unwrap_or(u64::MAX);
                if value["$type"] != "blob"
                    || !is_accepted
                    || schema["maxSize"].as_u64().is_some_and(|max| size > max)
                {
                    wrong("is no blob for this");
                }
            }
            _ => {}
        }
    }
}

fn read(folder: &Path, all: &mut Vec<Value>) {
    for file in fs::read_dir(folder).expect("the folder can be read").filter_map(Result::ok) {
        if file.path().is_dir() {
            read(&file.path(), all);
        } else if file.path().extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(file.path()).expect("a lexicon can be read");
            all.push(serde_json::from_str(&text).expect("a lexicon is JSON"));
        }
    }
}
