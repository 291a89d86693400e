//! Validates a request and its response against an OpenAPI 3.0 document.
//!
//! Its schemas are converted once and judge parameters, bodies and answers. What is no part of a schema is compared here:
//! paths, methods, the notation of parameters and forms, media types and statuses. Of a form in parts only the names are
//! known, because a file is cut off.

use super::{
    Heard,
    schemas::{ADDRESS, Schemas},
};
use crate::yaml::yaml;
use serde_json::{Value, json};
use std::{fs, path::Path, sync::Arc};

/// An OpenAPI document.
pub(crate) struct Document {
    root: Arc<Value>,
    schemas: Schemas,
    /// Prefix of its paths: the host, and the common path.
    base: &'static str,
}

/// Names that the service still accepts and the current document has renamed.
const RENAMED: [(&str, &str); 2] = [("tweet.fields", "post.fields"), ("retweet_count", "repost_count")];

impl Document {
    /// Opens the document whose file name begins with `name`, in JSON or YAML.
    pub(crate) fn open(folder: &Path, name: &str, base: &'static str) -> Self {
        let files = fs::read_dir(folder).expect("the folder can be read").filter_map(Result::ok);
        let file = files
            .map(|file| file.path())
            .find(|path| path.file_name().is_some_and(|own| own.to_string_lossy().starts_with(name)));
        let text = fs::read_to_string(file.expect("the document is there")).expect("it can be read");
        // JSON is valid YAML, but the JSON parser is faster.
        let root = serde_json::from_str(&text).unwrap_or_else(|_| yaml(&text).remove(0));
        Self::of(root, base)
    }

    pub(crate) fn of(mut root: Value, base: &'static str) -> Self {
        convert(&mut root);
        let root = Arc::new(root);
        Self { schemas: Schemas::of(root.clone()), root, base }
    }

    /// Returns whether the document applies to a request.
    pub(crate) fn covers(&self, call: &Heard) -> bool {
        call.path.starts_with(self.base)
    }

    /// Returns the faults of a request and its response.
    pub(crate) fn faults(&self, call: &Heard) -> Vec<String> {
        let path = call.path.strip_prefix(self.base).unwrap_or(&call.path);
        let at = format!("{} {path}", call.method);
        let paths = self.root["paths"].as_object().expect("a document has paths");
        // A literal path takes precedence over one with a variable.
        let exact = paths.get(path).filter(|item| item.get(call.method.to_lowercase()).is_some());
        let item = exact.or_else(|| {
            paths
                .iter()
                .find(|(template, item)| {
                    fits(template, path) && item.get(call.method.to_lowercase()).is_some()
                })
                .map(|(_, item)| item)
        });
        let Some(operation) = item.map(|item| &item[call.method.to_lowercase()]) else {
            return vec![format!("{at}: no such operation")];
        };
        let mut faults = Vec::new();
        let parameters: Vec<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|parameter| self.resolve(parameter))
            .collect();
        for (name, value) in &call.query {
            let name = RENAMED.iter().find(|(old, _)| old == name).map_or(name.as_str(), |(_, new)| new);
            match parameters.iter().find(|parameter| parameter["name"] == name) {
                None => faults.push(format!("{at}: no parameter {name}")),
                // Field names were renamed too.
                Some(_) if name == "post.fields" => {}
                Some(parameter) => {
                    let schema = self.resolve(&parameter["schema"]);
                    let value = match schema["type"].as_str() {
                        Some("array") => value.split(',').map(Value::from).collect(),
                        Some("integer") => value.parse::<i64>().map_or(Value::Null, Value::from),
                        Some("boolean") => value.parse::<bool>().map_or(Value::Null, Value::from),
                        _ => Value::from(value.as_str()),
                    };
                    self.schemas.judge(schema, &value, &format!("{at}?{name}"), &mut faults);
                }
            }
        }
        for parameter in
            parameters.iter().filter(|parameter| parameter["required"] == true && parameter["in"] == "query")
        {
            if !call.query.iter().any(|(name, _)| parameter["name"] == name.as_str()) {
                faults.push(format!("{at}: lacks {}", parameter["name"]));
            }
        }
        let content = &self.resolve(&operation["requestBody"])["content"];
        match call.mime.split(';').next().unwrap_or_default() {
            "" => {
                if operation["requestBody"]["required"] == true {
                    faults.push(format!("{at}: lacks its body"));
                }
            }
            mime if content[mime].is_null() => faults.push(format!("{at}: takes no {mime}")),
            "multipart/form-data" => {
                let schema = self.resolve(&content["multipart/form-data"]["schema"]);
                let parts: Vec<_> =
                    call.text.split(" name=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
                let known = schema["properties"].as_object().expect("a form has properties");
                faults.extend(
                    parts
                        .iter()
                        .filter(|part| !known.contains_key(**part))
                        .map(|part| format!("{at}: no part {part}")),
                );
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                faults.extend(
                    required
                        .filter(|name| !parts.contains(name))
                        .map(|name| format!("{at}: lacks part {name}")),
                );
            }
            "application/x-www-form-urlencoded" => {
                let form: Vec<(String, Value)> = url::form_urlencoded::parse(call.text.as_bytes())
                    .map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())))
                    .collect();
                let schema = &content["application/x-www-form-urlencoded"]["schema"];
                self.schemas.judge(schema, &Value::from_iter(form), &at, &mut faults);
            }
            mime => self.schemas.judge(&content[mime]["schema"], &renamed(&call.body), &at, &mut faults),
        }
        let responses = &operation["responses"];
        let status = call.status.to_string();
        let response = if responses[&status].is_null() { &responses["default"] } else { &responses[&status] };
        let schema = &self.resolve(response)["content"]["application/json"]["schema"];
        if (200..300).contains(&call.status) && call.status != 204 && schema.is_object() {
            let at = format!("{at} answered {status}");
            self.schemas.judge(schema, &renamed(&call.answer), &at, &mut faults);
        }
        faults
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => {
                let pointer = reference.trim_start_matches(ADDRESS).trim_start_matches('#');
                self.root.pointer(pointer).expect("references lead somewhere")
            }
            None => value,
        }
    }
}

/// Makes the schemas of a document those of [`Schemas`]: null is a type, the word of a discriminator a condition, and
/// references begin with the document's address. <https://spec.openapis.org/oas/v3.0.3#schema-object>
fn convert(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(convert),
        Value::Object(members) => members.values_mut().for_each(convert),
        _ => return,
    }
    if let Some(Value::String(reference)) = value.get_mut("$ref") {
        reference.insert_str(0, ADDRESS);
    }
    let chosen = choices(&value["discriminator"]);
    if !chosen.is_empty() {
        value["allOf"] = value["allOf"].as_array().into_iter().flatten().cloned().chain(chosen).collect();
    }
    if value["nullable"] == true {
        *value = json!({ "anyOf": [{ "type": "null" }, value.take()] });
    }
}

/// Returns what a discriminator says: for each word that it maps, that an object without this word, or the schema fits.
fn choices(discriminator: &Value) -> Vec<Value> {
    let name = discriminator["propertyName"].as_str().unwrap_or_default();
    let choice = |(word, reference): (&String, &Value)| {
        let is_meant = json!({
            "type": "object", "required": [name], "properties": { name: { "enum": [word] } },
        });
        let reference = format!("{ADDRESS}{}", reference.as_str().expect("a reference"));
        json!({ "anyOf": [{ "not": is_meant }, { "$ref": reference }] })
    };
    discriminator["mapping"].as_object().into_iter().flatten().map(choice).collect()
}

/// Returns a value with the names that the document has.
fn renamed(value: &Value) -> Value {
    let name = |old: &String| {
        let new = RENAMED.iter().find(|(known, _)| known == old).map(|(_, new)| (*new).to_owned());
        new.unwrap_or_else(|| old.clone())
    };
    match value {
        Value::Array(items) => items.iter().map(renamed).collect(),
        Value::Object(members) => members.iter().map(|(old, value)| (name(old), renamed(value))).collect(),
        value => value.clone(),
    }
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len() && template.iter().zip(path).all(|(a, b)| a.starts_with('{') || *a == b)
}
