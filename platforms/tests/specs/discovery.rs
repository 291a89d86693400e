//! Validates a request and its response against one of Google's discovery documents.
//! <https://developers.google.com/discovery/v1/reference/apis>

use super::Heard;
use serde_json::Value;
use std::{fs, path::Path};

/// A discovery document.
pub(crate) struct Document(Value);

impl Document {
    /// Opens the document whose file name begins with `name`.
    pub(crate) fn open(folder: &Path, name: &str) -> Self {
        let text = fs::read_to_string(folder.join(format!("{name}.discovery.json"))).expect("it is there");
        Self::of(serde_json::from_str(&text).expect("it is JSON"))
    }

    pub(crate) fn of(root: Value) -> Self {
        Self(root)
    }

    /// Returns the faults of a request and its response. `path` is without the host.
    pub(crate) fn faults(&self, call: &Heard, path: &str) -> Vec<String> {
        let at = format!("{} {path}", call.method);
        let Some((method, is_upload)) = self.method(&self.0["resources"], call, path.trim_start_matches('/'))
        else {
            return vec![format!("{at}: no such method")];
        };
        let mut faults = Vec::new();
        for (name, value) in &call.query {
            let known = [&method["parameters"][name], &self.0["parameters"][name]];
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
            match method["request"]["$ref"].as_str() {
                Some(schema) => self.judge(&self.0["schemas"][schema], &body, &at, &mut faults),
                None => faults.push(format!("{at}: takes no body")),
            }
        }
        if (200..300).contains(&call.status) && call.answer.is_object() {
            match method["response"]["$ref"].as_str() {
                Some(schema) => {
                    self.judge(&self.0["schemas"][schema], &call.answer, &format!("{at} ->"), &mut faults);
                }
                None => faults.push(format!("{at}: answers nothing")),
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

    fn judge(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let schema = match schema["$ref"].as_str() {
            Some(name) => &self.0["schemas"][name],
            None => schema,
        };
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
        let is_time = matches!(schema["format"].as_str(), Some("date-time" | "google-datetime"));
        if is_time && value.as_str().is_none_or(|text| chrono::DateTime::parse_from_rfc3339(text).is_err()) {
            faults.push(format!("{at}: {value} is no time"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.judge(&schema["items"], item, &format!("{at}[{index}]"), faults);
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (property, _) if property.is_object() => {
                    self.judge(property, inner, &format!("{at}.{name}"), faults)
                }
                (_, more) if more.is_object() => self.judge(more, inner, &format!("{at}.{name}"), faults),
                _ if schema["type"] == "any" => {}
                _ => faults.push(format!("{at}: no member {name}")),
            }
        }
    }
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
