//! JSON pointers of the members and items of a document, which tests replace one at a time. Also compiled into the
//! behavior suite of the platforms.

use serde_json::Value;

/// Returns the pointers of all members and of the first `items` items of each list, outer ones first.
pub fn pointers(value: &Value, items: usize) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        let mut all = vec![format!("/{name}")];
        all.extend(pointers(value, items).into_iter().map(|rest| format!("/{name}{rest}")));
        all
    };
    match value {
        Value::Object(members) => members.iter().flat_map(|(name, value)| below(name, value)).collect(),
        Value::Array(list) => {
            let first = list.iter().take(items).enumerate();
            first.flat_map(|(index, item)| below(&index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    }
}
