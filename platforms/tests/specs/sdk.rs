//! Validates requests against the code of Meta's SDK: fields of objects, and parameters of edges. It has names and no
//! schemas.

use super::Heard;
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

/// Objects of the API, merged because an id does not show its object's type.
pub(crate) struct Sdk {
    fields: HashSet<String>,
    /// Parameters by method and edge; the edge of a node itself is empty.
    edges: HashMap<(String, String), HashSet<String>>,
}

/// Query parameters that the Graph API accepts on every edge, and that the SDK therefore does not list.
const COMMON: [&str; 8] =
    ["fields", "limit", "after", "since", "until", "metric", "access_token", "appsecret_proof"];

/// Fields that are documented but not in the extract: of a Page in `/me/accounts`, and of an attachment
/// (<https://developers.facebook.com/docs/graph-api/reference/story-attachment>).
const DOCUMENTED: [&str; 4] = ["tasks", "media", "type", "subattachments"];

impl Sdk {
    pub(crate) fn open(folder: &Path, objects: &[&str]) -> Self {
        let path = folder.join("meta-graph-v26-sdk-extract.json");
        let text = fs::read_to_string(path).expect("the extract can be read");
        Self::of(&serde_json::from_str(&text).expect("it is JSON"), objects)
    }

    pub(crate) fn of(all: &Value, objects: &[&str]) -> Self {
        let fields = DOCUMENTED.iter().map(|field| (*field).to_owned()).collect();
        let mut sdk = Self { fields, edges: HashMap::new() };
        for name in objects {
            let object = &all["objects"][*name];
            let fields = object["fields"].as_object().expect("an object has fields");
            sdk.fields.extend(fields.keys().cloned());
            for edge in object["edges"].as_array().into_iter().flatten() {
                let word = plain(edge["endpoint"].as_str().unwrap_or_default());
                // An edge can be requested as a field.
                sdk.fields.insert(word.clone());
                let method = edge["method"].as_str().unwrap_or_default().to_owned();
                let known = sdk.edges.entry((method, word)).or_default();
                let parameters = edge["param_types"].as_object();
                known.extend(parameters.into_iter().flat_map(|all| all.keys().cloned()));
            }
        }
        sdk
    }

    /// Returns the faults of a request.
    pub(crate) fn faults(&self, call: &Heard) -> Vec<String> {
        let segments: Vec<&str> = call.path.split('/').filter(|part| !part.is_empty()).skip(2).collect();
        let edge = plain(segments.get(1).copied().unwrap_or_default());
        let at = format!("{} /{}", call.method, segments.join("/"));
        let Some(known) = self.edges.get(&(call.method.clone(), edge)) else {
            return vec![format!("{at}: no such edge")];
        };
        let mut faults = Vec::new();
        let form: Vec<(String, String)> = match call.mime.ends_with("urlencoded") {
            true => url::form_urlencoded::parse(call.text.as_bytes()).into_owned().collect(),
            false => Vec::new(),
        };
        for (name, value) in call.query.iter().chain(&form) {
            // `attached_media[0]` is an item of `attached_media`.
            let bare = name.split('[').next().unwrap_or_default();
            if !known.contains(bare) && !COMMON.contains(&bare) {
                faults.push(format!("{at}: no parameter {name}"));
            }
            if name == "fields" {
                let asked = value.split([',', '{', '}']).map(|field| field.split(['.', '(']).next());
                let asked = asked.flatten().map(str::trim).filter(|field| !field.is_empty());
                let unknown = asked.filter(|field| !self.fields.contains(*field));
                faults.extend(unknown.map(|field| format!("{at}: no field {field}")));
            }
        }
        faults
    }
}

/// Removes the separators between words, because the SDK's generator dropped them from some edges.
fn plain(edge: &str) -> String {
    edge.trim_matches('/').replace('_', "")
}
