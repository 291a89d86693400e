//! Validates a request against an OpenAPI 3 document, with the parts of JSON Schema that it uses.

use super::Heard;
use crate::yaml::yaml;
use serde_json::Value;
use std::{fs, path::Path};

/// An OpenAPI document.
pub(crate) struct Document {
    root: Value,
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

    pub(crate) fn of(root: Value, base: &'static str) -> Self {
        Self { root, base }
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
                    self.judge(schema, &value, &format!("{at}?{name}"), &mut faults);
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
                self.judge(schema, &Value::from_iter(form), &at, &mut faults);
            }
            mime => self.judge(&content[mime]["schema"], &call.body, &at, &mut faults),
        }
        let responses = &operation["responses"];
        let status = call.status.to_string();
        let response = if responses[&status].is_null() { &responses["default"] } else { &responses[&status] };
        let schema = &self.resolve(response)["content"]["application/json"]["schema"];
        if (200..300).contains(&call.status) && call.status != 204 && schema.is_object() {
            self.judge(schema, &call.answer, &format!("{at} answered {status}"), &mut faults);
        }
        faults
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => {
                self.root.pointer(reference.trim_start_matches('#')).expect("references lead somewhere")
            }
            None => value,
        }
    }

    fn judge(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let schema = self.resolve(schema);
        if value.is_null() && schema["nullable"] == true {
            return;
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.judge(part, value, at, faults);
        }
        let discriminator = &schema["discriminator"];
        let word = discriminator["propertyName"].as_str().and_then(|name| value[name].as_str());
        if let Some(reference) = word.and_then(|word| discriminator["mapping"][word].as_str()) {
            let meant = self.root.pointer(reference.trim_start_matches('#'));
            self.judge(meant.expect("references lead somewhere"), value, at, faults);
        } else if let Some(options) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let fits = options.iter().any(|option| {
                let mut faults = Vec::new();
                self.judge(option, value, at, &mut faults);
                faults.is_empty()
            });
            if !fits {
                faults.push(format!("{at}: {value} is nothing of what it can be"));
            }
        }
        let is_typed = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            _ => true,
        };
        if !is_typed {
            faults.push(format!("{at}: {value} is no {}", schema["type"]));
            return;
        }
        if schema["enum"].as_array().is_some_and(|options| !options.contains(value)) {
            faults.push(format!("{at}: {value} is none of {}", schema["enum"]));
        }
        if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
            && !regex::Regex::new(pattern).expect("a pattern").is_match(text)
        {
            faults.push(format!("{at}: {text} is not as {pattern}"));
        }
        let number = value
            .as_f64()
            .or_else(|| value.as_array().map(|items| items.len() as f64))
            .or_else(|| value.as_str().map(|text| text.chars().count() as f64));
        let lower = ["minimum", "minItems", "minLength"].iter().find_map(|key| schema[*key].as_f64());
        let upper = ["maximum", "maxItems", "maxLength"].iter().find_map(|key| schema[*key].as_f64());
        if number.is_some_and(|number| {
            lower.is_some_and(|lower| number < lower) || upper.is_some_and(|upper| number > upper)
        }) {
            faults.push(format!("{at}: {value} is out of bounds"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.judge(&schema["items"], item, &format!("{at}[{index}]"), faults);
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        faults.extend(required.filter(|name| lacks(value, name)).map(|name| format!("{at}: lacks {name}")));
        for (name, inner) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(name) {
                Some(property) => self.judge(property, inner, &format!("{at}.{name}"), faults),
                None if schema["additionalProperties"] == false => {
                    faults.push(format!("{at}: no member {name}"))
                }
                None => {}
            }
        }
    }
}

/// Returns whether a value lacks a member, under its old name too.
fn lacks(value: &Value, name: &str) -> bool {
    let old = RENAMED.iter().find(|(_, new)| *new == name).map(|(old, _)| *old);
    value.get(name).is_none() && old.is_none_or(|old| value.get(old).is_none())
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len() && template.iter().zip(path).all(|(a, b)| a.starts_with('{') || *a == b)
}
