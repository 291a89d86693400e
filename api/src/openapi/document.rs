//! The OpenAPI document: what the derives generate, corrected where they cannot express it.
//!
//! The derives generate OpenAPI 3.0; it is converted to 3.1 at the end. <https://spec.openapis.org/oas/v3.1.0>

use crate::openapi::{examples, operations_mut, responses, validate::NEVER, webhooks};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Response headers with rate limits.
const RATE_LIMIT_HEADERS: [(&str, &str); 2] = [
    ("X-RateLimit-Limit", "Limit of the tightest applicable bucket, in calls per window"),
    ("X-RateLimit-Remaining", "Remaining calls in that bucket"),
];

/// Response header with the request's id.
const REQUEST_ID: &str = "X-Request-Id";

/// Completes a generated document for clients that reach the API at `base_url`. `describe` runs on the
/// generated schemas before nullability is worked out.
pub(crate) fn complete(generated: &str, base_url: &str, describe: impl FnOnce(&mut Value)) -> String {
    let mut document = serde_json::from_str(generated).expect("the document is JSON");
    amend(&mut document);
    describe(&mut document);
    expand_queries(&mut document);
    spell_headers(&mut document);
    accept_nulls(&mut document);
    require_nulls(&mut document);
    bound_inputs(&mut document);
    part_nulls(&mut document);
    responses::narrow(&mut document);
    offer_key(&mut document);
    tell_levels(&mut document);
    tell_request_ids(&mut document);
    examples::show(&mut document);
    link(&mut document);
    modernize(&mut document);
    webhooks::describe(&mut document);
    document["openapi"] = json!("3.1.0");
    document["servers"] = json!([{ "url": base_url }]);
    serde_json::to_string_pretty(&sorted(document)).expect("the document is plain data")
}

/// The operation that takes a key for some of its calls.
const OPTIONAL_KEY: (&str, &str) = ("/social-accounts/pending/{token}/finalize", "post");

/// Documents that an operation takes a key or none.
fn offer_key(document: &mut Value) {
    let (path, method) = OPTIONAL_KEY;
    document["paths"][path][method]["security"] = json!([{}, { "ApiKey": [] }]);
}

fn amend(value: &mut Value) {
    match value {
        Value::Object(object) => {
            // `oneOf` of scalars must not have the type `object`.
            if object.contains_key("oneOf") {
                object.remove("type");
            }
            if object.get("additionalProperties").is_some_and(|schema| schema["type"] == NEVER) {
                object.insert("additionalProperties".to_owned(), false.into());
            }
            // Descriptions are moved beside the reference, since generators ignore them inside `allOf`.
            if let Some([_, Value::Object(siblings)]) =
                object.get_mut("allOf").and_then(Value::as_array_mut).map(|all| &mut all[..])
                && !siblings.contains_key("$ref")
            {
                let siblings = std::mem::take(siblings);
                object["allOf"].as_array_mut().expect("it was just read").truncate(1);
                object.extend(siblings);
            }
            object.values_mut().for_each(amend);
        }
        Value::Array(items) => items.iter_mut().for_each(amend),
        _ => {}
    }
}

/// Replaces query objects by one parameter per property.
fn expand_queries(document: &mut Value) {
    let operations = document["paths"].as_object().expect("the document has paths").values();
    let parameters = operations.filter_map(Value::as_object).flat_map(Map::values).filter_map(|operation| {
        let parameters = operation.get("parameters")?.as_array()?;
        parameters.iter().find(|parameter| parameter["name"] == "query" && parameter["in"] == "query")
    });
    let names: BTreeSet<String> = parameters
        .filter_map(|parameter| parameter["schema"]["$ref"].as_str()?.rsplit('/').next().map(str::to_owned))
        .collect();
    let schemas = document["components"]["schemas"].as_object_mut().expect("the document has schemas");
    let objects = names
        .into_iter()
        .map(|name| {
            let schema = schemas.remove(&name).expect("a reference leads to a schema");
            (format!("#/components/schemas/{name}"), schema)
        })
        .collect();
    for parameters in
        operations_mut(document).filter_map(|operation| operation.get_mut("parameters")?.as_array_mut())
    {
        *parameters = parameters.drain(..).flat_map(|parameter| expand(parameter, &objects)).collect();
    }
}

fn expand(parameter: Value, objects: &Map<String, Value>) -> Vec<Value> {
    let object = parameter["schema"]["$ref"].as_str().and_then(|name| objects.get(name));
    let Some(properties) = object.and_then(|object| object["properties"].as_object()) else {
        return vec![parameter];
    };
    let required = object.and_then(|object| object["required"].as_array());
    let single = |(name, schema): (&String, &Value)| {
        let required = required.is_some_and(|names| names.contains(&json!(name)));
        let mut parameter = json!({ "name": name, "in": "query", "required": required, "schema": schema });
        let schema = parameter["schema"].as_object_mut().expect("a schema is an object");
        let description = schema.remove("description");
        // Integers of any size are accepted and clamped.
        if schema.get("type") == Some(&json!("integer")) {
            schema.remove("format");
        }
        // Its entries are `name[key]=value`.
        if schema.get("type") == Some(&json!("object")) {
            (parameter["style"], parameter["explode"]) = (json!("deepObject"), json!(true));
        }
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameter
    };
    properties.iter().map(single).collect()
}

/// Restores the spelling of header names, which the derives put in capitals.
fn spell_headers(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Object(headers)) = object.get_mut("headers") {
                let named =
                    std::mem::take(headers).into_iter().map(|(name, header)| (spelled(&name), header));
                *headers = named.collect();
            }
            object.values_mut().for_each(spell_headers);
        }
        Value::Array(items) => items.iter_mut().for_each(spell_headers),
        _ => {}
    }
}

/// `RETRY-AFTER` as `Retry-After`; what has small letters is as it was written.
fn spelled(name: &str) -> String {
    if name.chars().any(|letter| letter.is_ascii_lowercase()) {
        return name.to_owned();
    }
    let word = |word: &str| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_owned() + &rest.to_ascii_lowercase()
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

/// Adds the rate limit headers to all responses of operations that are counted.
fn tell_levels(document: &mut Value) {
    let (limit, remaining) = (RATE_LIMIT_HEADERS[0].0, RATE_LIMIT_HEADERS[1].0);
    let reference = |name| json!({ "$ref": format!("#/components/headers/{name}") });
    let is_counted = |operation: &&mut Value| {
        operation.get("security").is_some() || operation["responses"].get("429").is_some()
    };
    for operation in operations_mut(document).filter(is_counted) {
        let responses = operation["responses"].as_object_mut().expect("an operation has responses");
        for (status, response) in responses.iter_mut() {
            if status == "401" {
                response["headers"]["WWW-Authenticate"] = json!({ "description": "Always `Bearer`", "required": true, "schema": { "type": "string" } });
                continue;
            }
            response["headers"][limit] = reference(limit);
            response["headers"][remaining] = reference(remaining);
        }
    }
    for (name, description) in RATE_LIMIT_HEADERS {
        document["components"]["headers"][name] =
            json!({ "description": description, "schema": { "type": "integer" } });
    }
}

/// Adds the header with the request's id to all responses.
fn tell_request_ids(document: &mut Value) {
    let reference = json!({ "$ref": format!("#/components/headers/{REQUEST_ID}") });
    for operation in operations_mut(document) {
        let responses = operation["responses"].as_object_mut().expect("an operation has responses");
        for response in responses.values_mut() {
            response["headers"][REQUEST_ID] = reference.clone();
        }
    }
    document["components"]["headers"][REQUEST_ID] = json!({
        "description": "Id of the request, different for each. Quote it when asking for help; errors repeat it \
            as `request_id`",
        "required": true,
        "schema": { "type": "string" },
    });
}

/// Marks optional fields of request bodies nullable: null means absent, except at the root of an update.
fn accept_nulls(document: &mut Value) {
    let mut names = BTreeSet::new();
    for (method, operation) in operations(document) {
        let Some(body) = operation.get("requestBody") else { continue };
        let root = &body["content"]["application/json"]["schema"];
        match method {
            "patch" => {
                let root = root["$ref"].as_str().and_then(|name| document.pointer(&name[1..]));
                gather(document, root.unwrap_or(&Value::Null), &mut names);
            }
            _ => gather(document, root, &mut names),
        }
    }
    for name in names {
        let schema = document.pointer_mut(&name[1..]).expect("a reference leads to a schema");
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
        for (_, property) in properties.filter(|(name, _)| !required.contains(&json!(name))) {
            if let Some(reference) = property.get("$ref").cloned() {
                *property = json!({ "allOf": [{ "$ref": reference }] });
            }
            property["nullable"] = json!(true);
        }
    }
}

/// Marks members of responses that are always there, though possibly null, as required.
fn require_nulls(document: &mut Value) {
    let (mut sent, mut returned) = (BTreeSet::new(), BTreeSet::new());
    for (_, operation) in operations(document) {
        gather(document, operation.get("requestBody").unwrap_or(&Value::Null), &mut sent);
        gather(document, &operation["responses"], &mut returned);
    }
    // A problem has `upgradeUrl` only where a quota is exceeded.
    sent.insert("#/components/schemas/Problem".to_owned());
    for name in returned.difference(&sent) {
        let schema = document.pointer_mut(&name[1..]).expect("a reference leads to a schema");
        let properties = schema["properties"].as_object().into_iter().flatten();
        let nullable = properties.filter(|(_, property)| property["nullable"] == true);
        let mut names: BTreeSet<_> = nullable.map(|(name, _)| name.clone()).collect();
        let required = schema["required"].as_array().into_iter().flatten();
        names.extend(required.filter_map(|name| name.as_str().map(str::to_owned)));
        if !names.is_empty() {
            schema["required"] = json!(names);
        }
    }
}

/// Adds bounds of inputs that are checked by hand.
fn bound_inputs(document: &mut Value) {
    let parameters =
        operations_mut(document).filter_map(|operation| operation.get_mut("parameters")?.as_array_mut());
    for parameter in parameters.flatten().filter(|parameter| parameter["name"] == "Idempotency-Key") {
        parameter["schema"] = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
    }
    let required = &mut document["components"]["schemas"]["NewSlotSet"]["required"];
    required.as_array_mut().expect("the slots are required").push(json!("social_account_id"));
}

/// `nullable` counts only beside a type of its own: where there is a reference, null is the other choice.
fn part_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("nullable") == Some(&json!(true))
                && let Some([reference]) = object.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
            {
                let nothing = json!({ "type": "object", "nullable": true, "enum": [null] });
                let choice = json!([reference, nothing]);
                object.insert("anyOf".to_owned(), choice);
                object.remove("allOf");
                object.remove("nullable");
            }
            object.values_mut().for_each(part_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(part_nulls),
        _ => {}
    }
}

/// Converts `nullable` of OpenAPI 3.0 to the types of JSON Schema.
fn modernize(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("nullable") == Some(&json!(true)) {
                object.remove("nullable");
                match (object.get("type").cloned(), object.get_mut("enum").and_then(Value::as_array_mut)) {
                    (_, Some(options)) if *options == [Value::Null] => {
                        object.remove("enum");
                        object.insert("type".to_owned(), json!("null"));
                    }
                    (Some(one), options) => {
                        if let Some(options) = options
                            && !options.contains(&Value::Null)
                        {
                            options.push(Value::Null);
                        }
                        object.insert("type".to_owned(), json!([one, "null"]));
                    }
                    // Any value is null as well.
                    (None, _) => {}
                }
            }
            object.values_mut().for_each(modernize);
        }
        Value::Array(items) => items.iter_mut().for_each(modernize),
        _ => {}
    }
}

/// Collects the names of all schemas that a schema refers to, transitively.
fn gather(document: &Value, schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            let reference = object.get("$ref").and_then(Value::as_str);
            if let Some(name) = reference
                && names.insert(name.to_owned())
            {
                gather(document, document.pointer(&name[1..]).unwrap_or(&Value::Null), names);
            }
            object.values().for_each(|value| gather(document, value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(document, item, names)),
        _ => {}
    }
}

/// Adds links from ids in responses to the operations that take them.
fn link(document: &mut Value) {
    let paths: Vec<_> = document["paths"].as_object().into_iter().flatten().collect();
    let mut links = Vec::new();
    for (path, operations) in &paths {
        for (method, status, id) in [("post", "201", "/id"), ("get", "200", "/data/0/id")] {
            if operations[method]["responses"].get(status).is_none() || path.contains('{') {
                continue;
            }
            let below = format!("{path}/{{id}}");
            let ones = paths
                .iter()
                .filter(|(other, _)| other.strip_prefix(&below).is_some_and(|rest| !rest.contains('{')));
            for one in
                ones.flat_map(|(_, operations)| operations.as_object().into_iter().flat_map(Map::values))
            {
                let name = one["operationId"].clone();
                let link =
                    json!({ "operationId": name, "parameters": { "id": format!("$response.body#{id}") } });
                links.push(((*path).clone(), method, status, name, link));
            }
        }
    }
    for (path, method, status, name, link) in links {
        let response = &mut document["paths"][path.as_str()][method]["responses"][status];
        response["links"][name.as_str().unwrap_or_default()] = link;
    }
}

/// Returns all operations, each with its method.
pub(crate) fn operations(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flat_map(Map::values);
    paths.filter_map(Value::as_object).flatten().map(|(method, operation)| (method.as_str(), operation))
}

/// Sorts keys, independent of the features of `serde_json`.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.into_iter().collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        value => value,
    }
}
