//! Validates a request and its response against one of Google's discovery documents.
//! <https://developers.google.com/discovery/v1/reference/apis>
//!
//! Its schemas are converted once and judge bodies and answers. What is no part of a schema is compared here: paths,
//! methods, uploads, and parameters, which are texts of a type.

use super::{
    Heard,
    schemas::{ADDRESS, Schemas},
};
use serde_json::{Map, Value, json};
use std::{fs, path::Path, sync::Arc};

/// A discovery document.
pub(crate) struct Document {
    root: Value,
    schemas: Schemas,
}

impl Document {
    /// Opens the document whose file name begins with `name`.
    pub(crate) fn open(folder: &Path, name: &str) -> Self {
        let text = fs::read_to_string(folder.join(format!("{name}.discovery.json"))).expect("it is there");
        Self::of(serde_json::from_str(&text).expect("it is JSON"))
    }

    pub(crate) fn of(mut root: Value) -> Self {
        let mut schemas = root["schemas"].take();
        schemas.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(convert);
        Self { root, schemas: Schemas::of(Arc::new(schemas)) }
    }

    /// Returns the faults of a request and its response. `path` is without the host.
    pub(crate) fn faults(&self, call: &Heard, path: &str) -> Vec<String> {
        let at = format!("{} {path}", call.method);
        let Some((method, is_upload)) =
            self.method(&self.root["resources"], call, path.trim_start_matches('/'))
        else {
            return vec![format!("{at}: no such method")];
        };
        let mut faults = Vec::new();
        for (name, value) in &call.query {
            let known = [&method["parameters"][name], &self.root["parameters"][name]];
            match known.into_iter().find(|parameter| parameter.is_object()) {
                // A parameter of the upload protocol, which the document does not list.
                None if is_upload && name == "upload_id" => {}
                None if is_nested(name, &method["parameters"]) => {}
                None => faults.push(format!("{at}: no parameter {name}")),
                Some(parameter) => {
                    let is_typed = match parameter["type"].as_str() {
                        Some("integer") => value.parse::<i64>().is_ok(),
                        Some("boolean") => value == "true" || value == "false",
                        _ => true,
                    };
                    let is_option = parameter["enum"]
                        .as_array()
                        .is_none_or(|all| all.contains(&Value::from(value.as_str())));
                    if !is_typed || !is_option {
                        faults.push(format!("{at}: {name} is {value}"));
                    }
                }
            }
        }
        for (name, parameter) in method["parameters"].as_object().into_iter().flatten() {
            let is_needed = parameter["required"] == true && parameter["location"] == "query";
            if is_needed && !call.query.iter().any(|(given, _)| given == name) {
                faults.push(format!("{at}: lacks {name}"));
            }
        }
        let body = description(call).unwrap_or_else(|| call.body.clone());
        if body.is_object() {
            match &method["request"] {
                Value::Null => faults.push(format!("{at}: takes no body")),
                schema => self.judge(schema, &body, &at, &mut faults),
            }
        }
        if (200..300).contains(&call.status) && call.answer.is_object() {
            match &method["response"] {
                Value::Null => faults.push(format!("{at}: answers nothing")),
                schema => self.judge(schema, &call.answer, &format!("{at} ->"), &mut faults),
            }
        }
        faults
    }

    fn method<'a>(&self, resources: &'a Value, call: &Heard, path: &str) -> Option<(&'a Value, bool)> {
        for resource in resources.as_object()?.values() {
            for method in resource["methods"].as_object().into_iter().flatten().map(|(_, method)| method) {
                let upload = method["mediaUpload"]["protocols"]["simple"]["path"].as_str();
                let is_upload = upload.is_some_and(|upload| fits(upload.trim_start_matches('/'), path));
                // Parts of an upload are sent with PUT to the path that began it.
                if is_upload && (call.method == "PUT" || method["httpMethod"] == call.method.as_str()) {
                    return Some((method, true));
                }
                let template = method["flatPath"].as_str().or(method["path"].as_str()).unwrap_or_default();
                if method["httpMethod"] == call.method.as_str() && fits(template, path) {
                    return Some((method, false));
                }
            }
            if let Some(found) = self.method(&resource["resources"], call, path) {
                return Some(found);
            }
        }
        None
    }

    /// Adds the faults of an object, for which a method names the schema.
    fn judge(&self, named: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let mut schema = named.clone();
        convert(&mut schema);
        self.schemas.judge(&schema, value, at, faults);
    }
}

/// Makes a schema of the document one of [`Schemas`]: references are addresses, an object has no other members than it
/// lists, and may be anything where it says so.
fn convert(schema: &mut Value) {
    if let Some(name) = schema["$ref"].as_str() {
        *schema = json!({ "$ref": format!("{ADDRESS}#/{name}") });
        return;
    }
    let Some(members) = schema.as_object_mut() else { return };
    // A name, where draft 4 expects an address.
    members.remove("id");
    if members.get("type").is_some_and(|kind| kind == "any") {
        members.remove("type");
    } else {
        members.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    for name in ["items", "additionalProperties"] {
        members.get_mut(name).into_iter().for_each(convert);
    }
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(convert);
}

/// Returns the description in an upload that contains it beside the file.
fn description(call: &Heard) -> Option<Value> {
    let (_, rest) =
        call.text.split_once("\r\n\r\n").filter(|_| call.mime.starts_with("multipart/related"))?;
    serde_json::from_str(rest.split_once("\r\n")?.0).ok()
}

/// Returns whether a parameter is a member of a documented one: the document may list
/// `dailyRange.startDate.year` itself, or only `dailyRange`.
fn is_nested(name: &str, parameters: &Value) -> bool {
    name.rsplit_once('.').is_some_and(|(outer, _)| parameters[outer].is_object())
}

/// Returns whether a path matches a template such as `v1/accounts/{accountsId}/locations:search`.
fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let is_same = |(template, part): (&&str, &&str)| match template.split_once('{') {
        None => template == part,
        Some((before, rest)) => {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            let verb = part.find(':').map_or("", |at| &part[at..]);
            part.starts_with(before) && part.ends_with(after) && verb == after
        }
    };
    template.len() == path.len() && template.iter().zip(&path).all(is_same)
}
