//! YAML files, read into the values of JSON, so that one module knows that they were YAML. Also compiled into the behavior
//! suite of the platforms.

use serde_json::Value;

/// Returns the documents of a YAML file, with what `<<` names merged. Those that are empty or null are left out.
///
/// # Panics
///
/// If the text is no YAML, or a mapping names a key twice.
pub fn yaml(text: &str) -> Vec<Value> {
    let options = serde_saphyr::options! {
        // In YAML 1.2, `on` and `no` are texts, the latter a country as well.
        strict_booleans: true,
        // Programs differ in what number this is.
        leading_zero_numbers_as_strings: true,
    };
    serde_saphyr::from_multiple_with_options(text, options).expect("valid YAML")
}
