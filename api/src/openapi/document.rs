//! The OpenAPI document: what the derives say, put right where they can't say it.
//!
//! `openapi.json` beside the sources is this document, so that a change of the interface shows in a
//! review. <https://spec.openapis.org/oas/v3.0.3>

use crate::{
    accounts::{Accounts, app_password::Passwords, imports::Imports, pending::Pending},
    keys::Keys,
    media::MediaAssets,
    networks::Networks,
    openapi::{examples, responses, validate::NEVER},
    posts::{
        Posts,
        analytics::Analytics,
        batch::Batches,
        settings::{self, Config, TopLevel},
        validate::Previews,
    },
    profiles::Profiles,
    slots::Slots,
    team::Team,
    usage::Account,
    webhooks::Webhooks,
};
use poem_openapi::{LicenseObject, OpenApiService, Tags, types::Type};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The path that all operations are under.
pub const PREFIX: &str = "/api/v1";

/// All operations.
pub type Operations = (
    Posts,
    Batches,
    Previews,
    Analytics,
    Slots,
    MediaAssets,
    Accounts,
    Imports,
    Networks,
    Passwords,
    Pending,
    Webhooks,
    Profiles,
    Team,
    Keys,
    Account,
);

const DESCRIPTION: &str = "Publishes one piece of content to many social accounts through one call, and \
    tells by signed webhook what became of it.\n\nKeys that begin with `sk_test_` act on test data and \
    publish to a built-in sandbox; `sk_live_` keys act on live data and on the real platforms.\n\n\
    Calls are bounded per organization in fixed windows; `X-RateLimit-Limit` and `X-RateLimit-Remaining` \
    tell of the tightest one that a call counts in.";

/// The headers that tell what is left.
const LEVELS: [(&str, &str); 2] = [
    ("X-RateLimit-Limit", "How many calls the tightest of the applicable buckets takes in a window"),
    ("X-RateLimit-Remaining", "How many it still takes"),
];

/// The groups of operations.
#[derive(Tags)]
pub enum Tag {
    /// Content, and the accounts it goes to
    Posts,
    /// Times of the week at which queued posts go out
    Scheduling,
    /// Images, films and other files that posts show
    Media,
    /// Connected social accounts
    #[oai(rename = "Social accounts")]
    Accounts,
    /// An organization's own OAuth apps
    #[oai(rename = "Social networks")]
    Networks,
    /// Receivers of signed events
    Webhooks,
    /// Groups of accounts: a brand, a client
    Profiles,
    /// People
    Team,
    /// What calls are made with
    #[oai(rename = "API keys")]
    Keys,
    /// What is used of a plan
    Usage,
}

/// The operations, ready to be routed.
pub(crate) fn service() -> OpenApiService<Operations, ()> {
    let operations = (
        Posts,
        Batches,
        Previews,
        Analytics,
        Slots,
        MediaAssets,
        Accounts,
        Imports,
        Networks,
        Passwords,
        Pending,
        Webhooks,
        Profiles,
        Team,
        Keys,
        Account,
    );
    OpenApiService::new(operations, "Fanfare API", "1.0.0")
        .description(DESCRIPTION)
        .license(LicenseObject::new("Apache-2.0").url("https://www.apache.org/licenses/LICENSE-2.0"))
}

/// The document of a service that clients reach at `base_url`.
pub(crate) fn at(base_url: &str) -> String {
    let mut document = serde_json::from_str(&service().spec()).expect("the document is JSON");
    amend(&mut document);
    describe_settings(&mut document);
    expand_queries(&mut document);
    spell_headers(&mut document);
    accept_nulls(&mut document);
    part_nulls(&mut document);
    responses::narrow(&mut document);
    tell_levels(&mut document);
    examples::show(&mut document);
    link(&mut document);
    document["openapi"] = json!("3.0.3");
    document["servers"] = json!([{ "url": base_url }]);
    serde_json::to_string_pretty(&sorted(document)).expect("the document is plain data")
}

/// The document without a host, as it is committed.
pub fn document() -> String {
    at(PREFIX) + "\n"
}

/// A page that shows the document, with everything it needs inside.
pub(crate) fn page(document: &str) -> String {
    let service = service();
    service
        .scalar_html()
        .replacen("<title>Scalar</title>", "<title>Fanfare API</title>", 1)
        // Without this the page would fetch fonts from elsewhere.
        .replacen(
            r#"id="api-reference""#,
            r#"id="api-reference" data-configuration='{"withDefaultFonts":false}'"#,
            1,
        )
        .replacen(&service.spec(), &document.replace("</", "<\\/"), 1)
}

fn amend(value: &mut Value) {
    match value {
        Value::Object(object) => {
            // A choice between scalars is no object.
            if object.contains_key("oneOf") {
                object.remove("type");
            }
            if object.get("additionalProperties").is_some_and(|schema| schema["type"] == NEVER) {
                object.insert("additionalProperties".to_owned(), false.into());
            }
            // What is said of a reference stands beside it: generators make nothing of it within.
            if let Some([_, Value::Object(said)]) =
                object.get_mut("allOf").and_then(Value::as_array_mut).map(|all| &mut all[..])
                && !said.contains_key("$ref")
            {
                let said = std::mem::take(said);
                object["allOf"].as_array_mut().expect("it was just read").truncate(1);
                object.extend(said);
            }
            object.values_mut().for_each(amend);
        }
        Value::Array(items) => items.iter_mut().for_each(amend),
        _ => {}
    }
}

/// Puts each platform's own schema of its settings where they are taken: the one that `validate` holds
/// them against and `capabilities` shows.
fn describe_settings(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the document has schemas");
    for platform in platforms::all() {
        let words = platform.id().split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        let name = words.collect::<String>() + "Settings";
        for blocks in [Config::name(), TopLevel::name()] {
            if let Some(blocks) = schemas.get_mut(&*blocks) {
                blocks["properties"][platform.id()] =
                    json!({ "$ref": format!("#/components/schemas/{name}") });
            }
        }
        let mut schema = platforms::check::schema(*platform);
        translate(&mut schema);
        schema["description"] =
            json!("Settings of this platform; what else a block holds is kept and ignored");
        schema["maxProperties"] = json!(settings::KEYS);
        schemas.insert(name, schema);
    }
}

/// A JSON Schema (2020-12) of ours in the dialect of OpenAPI 3.0. Null is the same as absent, and what
/// excludes what can only be told in words.
fn translate(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("$schema");
    if let Some(Value::Array(others)) = object.remove("excludes") {
        let others: Vec<_> = others.iter().filter_map(Value::as_str).collect();
        let said = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let said = format!("{said} Not together with {}.", others.join(", "));
        object.insert("description".to_owned(), said.trim_start().into());
    }
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, part) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        translate(part);
        if !required.contains(&json!(name)) {
            part["nullable"] = json!(true);
            // An enumeration holds what may be, so null as well.
            if let Some(options) = part.get_mut("enum").and_then(Value::as_array_mut) {
                options.push(Value::Null);
            }
        }
    }
    if let Some(items) = object.get_mut("items") {
        translate(items);
    }
}

/// Shows each property of a query object as the parameter that it is.
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
    let paths = document["paths"].as_object_mut().expect("the document has paths");
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for parameters in operations.filter_map(|operation| operation.get_mut("parameters")?.as_array_mut()) {
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
        // Whole numbers of any size are taken, and clamped.
        if schema.get("type") == Some(&json!("integer")) {
            schema.remove("format");
        }
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameter
    };
    properties.iter().map(single).collect()
}

/// The names of headers as they are written, which the derives put in capitals.
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

/// Whatever a recognized caller is answered tells what is left.
fn tell_levels(document: &mut Value) {
    let (limit, remaining) = (LEVELS[0].0, LEVELS[1].0);
    let reference = |name| json!({ "$ref": format!("#/components/headers/{name}") });
    let operations = document["paths"].as_object_mut().expect("the document has paths");
    let operations = operations.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for operation in operations.filter(|operation| operation["responses"].get("429").is_some()) {
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
    for (name, description) in LEVELS {
        document["components"]["headers"][name] =
            json!({ "description": description, "schema": { "type": "integer" } });
    }
}

/// Null is the same as absent wherever something is created, and below the root of what is changed.
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

/// The names of the schemas that a schema refers to, and those that these refer to.
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

/// Says where an id that was answered leads: to the operations on one of its kind.
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

/// All operations, each with its method.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flat_map(Map::values);
    paths.filter_map(Value::as_object).flatten().map(|(method, operation)| (method.as_str(), operation))
}

/// Keys in order, whatever the build's features make of maps.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_document_is_current() {
        let committed = include_str!("../../openapi.json");
        assert!(document() == committed, "renew it: cargo run -q -- openapi > api/openapi.json");
    }

    /// Every part of a body is read and checked, so that each needs a ceiling. Where a format
    /// or an enumeration says what fits, the check looks at a bounded part of the text, and an issue repeats
    /// no more of it.
    #[test]
    fn every_text_list_and_map_of_a_body_has_a_ceiling() {
        fn walk(document: &Value, schema: &Value, path: &str, open: &mut Vec<String>) {
            if let Some(name) = schema["$ref"].as_str() {
                return walk(document, document.pointer(&name[1..]).unwrap(), path, open);
            }
            for choice in ["allOf", "anyOf", "oneOf"].iter().flat_map(|key| schema[key].as_array()).flatten()
            {
                walk(document, choice, path, open);
            }
            let formats = ["uuid", "date-time", "email", crate::types::time_of_day::FORMAT];
            let is_bounded = match schema["type"].as_str() {
                Some("string") => {
                    schema["maxLength"].is_u64()
                        || schema["enum"].is_array()
                        || schema["format"].as_str().is_some_and(|format| formats.contains(&format))
                }
                Some("array") => schema["maxItems"].is_u64(),
                Some("object") => {
                    // A map is one without a ceiling; below a platform's block its size is bounded.
                    schema["maxProperties"].is_u64()
                        || matches!(&schema["additionalProperties"], Value::Null | Value::Bool(false))
                }
                _ => true,
            };
            if !is_bounded {
                open.push(path.to_owned());
            }
            if let Some(items) = schema.get("items") {
                walk(document, items, &format!("{path}[]"), open);
            }
            for (name, part) in schema["properties"].as_object().into_iter().flatten() {
                walk(document, part, &format!("{path}.{name}"), open);
            }
        }
        let document: Value = serde_json::from_str(&document()).unwrap();
        let (mut open, mut bodies) = (Vec::new(), 0);
        for (_, operation) in operations(&document) {
            let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
            for body in content.values() {
                let name = operation["operationId"].as_str().unwrap_or_default();
                walk(&document, &body["schema"], name, &mut open);
                bodies += 1;
            }
        }
        assert!(bodies > 15, "only {bodies} bodies were found");
        assert!(open.is_empty(), "without a ceiling: {open:#?}");
    }

    #[test]
    fn the_page_shows_the_amended_document_and_fetches_nothing() {
        let page = page(&at("https://example.test/api/v1"));
        assert!(page.contains(r#""openapi": "3.0.3""#) && page.contains("https://example.test/api/v1"));
        assert!(
            !page.contains(r#""openapi":"3.0.0""#)
                && !page.contains("<script src")
                && !page.contains("<link")
        );
    }
}
