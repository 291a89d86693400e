//! JSON Schemas of operations, derived from the OpenAPI document.
//!
//! Path, query and body become one object, and references are inlined, since many
//! hosts pass schemas to models that do not resolve them. <https://json-schema.org/draft/2020-12>

use poem::http::Method;
use serde_json::{Map, Value, json};

/// An operation of the document.
pub(super) struct Operation<'a> {
    /// HTTP method.
    pub(super) method: Method,
    /// Path.
    pub(super) path: &'a str,
    /// The operation object of the document.
    pub(super) says: &'a Value,
}

/// The operation with this id.
pub(super) fn operation<'a>(document: &'a Value, id: &str) -> Operation<'a> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| methods.as_object().into_iter().flatten().map(move |found| (path, found)))
        .find(|(_, (_, says))| says["operationId"] == id)
        .map(|(path, (method, says))| {
            let method = method.to_uppercase().parse().expect("the document knows methods");
            Operation { method, path, says }
        })
        .expect("a tool stands for an operation")
}

/// Input schema of an operation, whose objects with named members have no others: a model that invents one is to be
/// told. Headers are omitted, since the body has the same fields.
pub(super) fn input(document: &Value, operation: &Value) -> Map<String, Value> {
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let mut schema = match body {
        Value::Null => Map::new(),
        body => object(document, body, Others::Refused),
    };
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema.insert("type".to_owned(), json!("object"));
    let mut required =
        schema.remove("required").and_then(|names| names.as_array().cloned()).unwrap_or_default();
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters.filter(|parameter| parameter["in"] != "header") {
        let name = parameter["name"].as_str().expect("a parameter has a name");
        let mut taken = plain(document, &parameter["schema"], Others::Refused);
        if !parameter["description"].is_null() {
            taken["description"] = parameter["description"].clone();
        }
        properties[name] = taken;
        if parameter["required"] == true {
            required.insert(0, json!(name));
        }
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

/// Output schema of an operation's success response.
pub(super) fn output(document: &Value, operation: &Value) -> Map<String, Value> {
    let responses = operation["responses"].as_object().into_iter().flatten();
    let success =
        responses.filter(|(status, _)| status.starts_with('2')).map(|(_, response)| response).next();
    let schema = success.map(|response| &response["content"]["application/json"]["schema"]);
    object(document, schema.expect("an operation answers with JSON"), Others::Allowed)
}

/// Treatment of members of an object that its schema does not name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Allowed,
    Refused,
}

fn object(document: &Value, schema: &Value, others: Others) -> Map<String, Value> {
    match plain(document, schema, others) {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Converts an OpenAPI schema to JSON Schema.
fn plain(document: &Value, schema: &Value, others: Others) -> Value {
    match schema {
        Value::Array(all) => all.iter().map(|one| plain(document, one, others)).collect(),
        Value::Object(says) => {
            if let Some(reference) = says.get("$ref").and_then(Value::as_str) {
                let found = document.pointer(reference.trim_start_matches('#'));
                return plain(document, found.expect("a reference leads somewhere"), others);
            }
            let mut kept = Map::new();
            // A description can be beside a reference.
            if let Some([reference]) = says.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
                kept = object(document, reference, others);
            }
            for (key, value) in says {
                match key.as_str() {
                    "allOf" | "title" => {}
                    "properties" => {
                        let properties = value.as_object().into_iter().flatten();
                        let properties =
                            properties.map(|(name, schema)| (name.clone(), plain(document, schema, others)));
                        kept.insert(key.clone(), Value::Object(properties.collect()));
                    }
                    "items" | "additionalProperties" | "anyOf" | "oneOf" => {
                        kept.insert(key.clone(), plain(document, value, others));
                    }
                    "example" => {
                        kept.insert("examples".to_owned(), json!([value]));
                    }
                    // Formats of numbers are specific to OpenAPI.
                    "format" if !is_text(&says["type"]) => {}
                    _ => {
                        kept.insert(key.clone(), value.clone());
                    }
                }
            }
            // Parts of `allOf` name members of the same object, which are left out here.
            if others == Others::Refused && says.contains_key("properties") && !says.contains_key("allOf") {
                kept.entry("additionalProperties").or_insert_with(|| json!(false));
            }
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

fn is_text(kind: &Value) -> bool {
    *kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({ "components": { "schemas": {
            "EnumString": { "type": "string", "enum": ["a", "b"], "description": "A word" },
            "Thing": { "type": "object", "required": ["word"], "title": "Thing", "properties": {
                "word": { "allOf": [{ "$ref": "#/components/schemas/EnumString" }], "description": "Its word" },
                "other": { "anyOf": [
                    { "$ref": "#/components/schemas/EnumString" },
                    { "type": "null" },
                ] },
                "at": { "type": ["string", "null"], "format": "date-time", "example": "now" },
                "count": { "type": "integer", "format": "uint64" },
                "title": { "type": "string" },
            } },
        } } })
    }

    #[test]
    fn a_schema_says_the_same_without_openapi() {
        let document = document();
        assert_eq!(
            plain(&document, &json!({ "$ref": "#/components/schemas/Thing" }), Others::Allowed),
            json!({ "type": "object", "required": ["word"], "properties": {
                "word": { "type": "string", "enum": ["a", "b"], "description": "Its word" },
                "other": { "anyOf": [
                    { "type": "string", "enum": ["a", "b"], "description": "A word" }, { "type": "null" },
                ] },
                "at": { "type": ["string", "null"], "format": "date-time", "examples": ["now"] },
                "count": { "type": "integer" },
                "title": { "type": "string" },
            } })
        );
    }

    #[test]
    fn the_members_of_an_input_are_all_there_are() {
        let document = json!({ "components": { "schemas": {
            "Settings": { "type": "object", "properties": { "title": { "type": "string" } } },
            "Own": { "type": "object", "properties": { "content": { "type": "string" } } },
        } } });
        let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let schema = json!({ "type": "object", "properties": {
            "one": reference("Own"),
            "list": { "type": "array", "items": reference("Own") },
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
            // Has the members of all of its parts.
            "block": { "allOf": [reference("Settings"), reference("Own")], "properties": { "accounts": {} } },
        } });
        let found = plain(&document, &schema, Others::Refused);
        let of = |pointer: &str| found.pointer(pointer).unwrap()["additionalProperties"].clone();
        for (pointer, expected) in [
            ("", json!(false)),
            ("/properties/one", json!(false)),
            ("/properties/list/items", json!(false)),
            ("/properties/map", json!({ "type": "string" })),
            ("/properties/block", Value::Null),
        ] {
            assert_eq!(of(pointer), expected, "{pointer}");
        }
        assert_eq!(plain(&document, &schema, Others::Allowed)["additionalProperties"], Value::Null);
    }

    #[test]
    fn path_query_and_body_are_one_object() {
        let operation = json!({
            "parameters": [
                { "in": "path", "name": "id", "required": true, "schema": { "type": "string" } },
                { "in": "query", "name": "limit", "description": "How many", "schema": { "type": "integer" } },
                { "in": "header", "name": "Idempotency-Key", "schema": { "type": "string" } },
            ],
            "requestBody": { "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Thing" },
            } } },
        });
        let found = Value::Object(input(&document(), &operation));
        assert_eq!(found["required"], json!(["id", "word"]));
        assert_eq!(found["properties"]["limit"], json!({ "type": "integer", "description": "How many" }));
        let names: Vec<_> = found["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["at", "count", "id", "limit", "other", "title", "word"]);
        let nothing = Value::Object(input(&document(), &json!({})));
        assert_eq!(nothing, json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    }
}
