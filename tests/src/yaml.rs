//! YAML files, read into the values of JSON, so that one crate knows that they were YAML.

use serde::Deserialize;
use serde_json::Value;

/// Returns the documents of a YAML file, with what `<<` names merged.
///
/// # Panics
///
/// If the text is no YAML, or has keys that are no text.
pub fn yaml(text: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(text).map(|document| {
        let mut document = serde_yaml::Value::deserialize(document).expect("valid YAML");
        // What is merged may have something to merge itself.
        for _ in 0..2 {
            document.apply_merge().expect("a merged value is a mapping");
        }
        serde_json::to_value(document).expect("keys are text")
    });
    documents.collect()
}
