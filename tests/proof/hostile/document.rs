//! The operations of the OpenAPI document.

use reqwest::Method;
use serde_json::Value;

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    /// Path with parameters, below the API's prefix.
    pub(crate) path: String,
    /// Names of the query parameters.
    pub(crate) query: Vec<String>,
    /// Names of the header parameters.
    pub(crate) headers: Vec<String>,
    /// The body, if it has one.
    pub(crate) body: Option<Body>,
}

/// A body: an example, and the names of all its members.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) example: Value,
    pub(crate) members: Vec<String>,
}

impl Operation {
    /// Returns the names of the path parameters, in order.
    pub(crate) fn parameters(&self) -> Vec<&str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect()
    }

    /// Returns the path with each parameter replaced.
    pub(crate) fn filled(&self, mut value: impl FnMut(&str) -> String) -> String {
        let fill = |segment: &str| match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => value(name),
            None => segment.to_owned(),
        };
        self.path.split('/').map(fill).collect::<Vec<_>>().join("/")
    }

    /// Returns the segment before a path parameter, which names the collection.
    pub(crate) fn collection(&self, parameter: &str) -> &str {
        let (before, _) =
            self.path.split_once(&format!("/{{{parameter}}}")).expect("a parameter of the path");
        before.rsplit('/').next().expect("a segment")
    }
}

/// Returns the operations of a document.
pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let named = |place: &str| {
                let all = operation["parameters"].as_array().into_iter().flatten();
                let those = all.filter(|parameter| parameter["in"] == place);
                those.map(|parameter| parameter["name"].as_str().expect("a name").to_owned()).collect()
            };
            let content = &operation["requestBody"]["content"]["application/json"];
            let body = content.is_object().then(|| {
                let schema = resolve(document, &content["schema"]);
                let members = schema["properties"].as_object().expect("a body is an object");
                Body { example: content["example"].clone(), members: members.keys().cloned().collect() }
            });
            operations.push(Operation {
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                query: named("query"),
                headers: named("header"),
                body,
            });
        }
    }
    assert!(operations.len() > 50, "only {} operations were found", operations.len());
    operations
}

/// Resolves references, and the first alternative of `allOf` and `anyOf`.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) = schema["$ref"].as_str() {
        return resolve(document, document.pointer(&name[1..]).expect("a schema of the document"));
    }
    match ["allOf", "anyOf"].into_iter().find_map(|key| schema[key].get(0)) {
        Some(first) => resolve(document, first),
        None => schema,
    }
}
