//! Examples of request and response bodies.
//!
//! They are in `examples.json`, by schema name. Every body has one; `.ci/contract` validates each against its
//! schema.

use super::operations_mut;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static EXAMPLES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../examples.json")).expect("the examples are an object")
});

/// Adds the examples to the document.
pub(crate) fn show(document: &mut Value) {
    for operation in operations_mut(document) {
        let responses = operation["responses"].as_object_mut().expect("an operation has responses");
        responses.values_mut().for_each(fill);
        operation.get_mut("requestBody").into_iter().for_each(fill);
    }
}

fn fill(body: &mut Value) {
    let content = body.get_mut("content").and_then(|content| content.get_mut("application/json"));
    let Some(content) = content else { return };
    let reference = content["schema"]["$ref"].as_str().unwrap_or_default();
    let name = reference.rsplit('/').next().unwrap_or_default();
    if let Some(example) = EXAMPLES.get(name) {
        content["example"] = example.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_described_and_every_body_has_an_example() {
        let document: Value = serde_json::from_str(&crate::document()).unwrap();
        let operations = document["paths"].as_object().unwrap().values().filter_map(Value::as_object);
        for operation in operations.flat_map(Map::values) {
            let id = operation["operationId"].as_str().unwrap();
            for key in ["summary", "description"] {
                assert!(operation[key].is_string(), "{id} has no {key}");
            }
            assert!(operation["tags"][0].is_string(), "{id} has no tag");
            let responses = operation["responses"].as_object().unwrap().values();
            for body in responses.chain(operation.get("requestBody")) {
                for content in body["content"].as_object().into_iter().flat_map(Map::values) {
                    let has_one = content.get("example").or(content.get("examples")).is_some();
                    assert!(has_one, "{id} has a body without an example: {}", content["schema"]);
                }
            }
        }
        for name in EXAMPLES.keys() {
            assert!(document["components"]["schemas"].get(name).is_some(), "there is no schema {name}");
        }
    }
}
