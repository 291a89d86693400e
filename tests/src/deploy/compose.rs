//! Docker Compose: the environment of each service, and what a service gets from it.

use super::{BEGIN, Role, Value, Variable, read, replaced, value, variables};
use crate::yaml;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Path of the compose file.
pub const FILE: &str = "docker-compose.temporal.yml";

/// Values that differ from the program's defaults. A name below `.localhost` is this machine for a browser, and a
/// container for the others, because it is an alias in their networks.
const VALUES: [(&str, Option<Role>, Value); 22] = [
    (
        "DATABASE_URL",
        Some(Role::Api),
        Value::Fixed("postgres://fanfare_api:${FANFARE_API_PASSWORD:?set it in .env}@postgres:5432/fanfare"),
    ),
    (
        "DATABASE_URL",
        Some(Role::Migrate),
        Value::Fixed("postgres://fanfare:${FANFARE_MIGRATE_PASSWORD:?set it in .env}@postgres:5432/fanfare"),
    ),
    (
        "DATABASE_URL",
        Some(Role::Worker),
        Value::Fixed(
            "postgres://fanfare_worker:${FANFARE_WORKER_PASSWORD:?set it in .env}@postgres:5432/fanfare",
        ),
    ),
    ("FANFARE_ADMIN_LISTEN", None, Value::Fixed("0.0.0.0:9464")),
    ("FANFARE_API_ROLE", None, Value::Fixed("fanfare_api")),
    ("FANFARE_BASE_URL", None, Value::Default("http://fanfare.localhost:8080/api/v1")),
    ("FANFARE_DRAIN", None, Value::Default("5")),
    ("FANFARE_LISTEN", None, Value::Fixed("0.0.0.0:8080")),
    ("FANFARE_LOG_JSON", None, Value::Default("true")),
    ("FANFARE_MEDIA", None, Value::Default("file:///var/lib/fanfare/media")),
    ("FANFARE_SANDBOX_APP", None, Value::Default("approved")),
    ("FANFARE_SANDBOX_DATA", None, Value::Fixed("/var/lib/fanfare")),
    ("FANFARE_SANDBOX_LISTEN", None, Value::Fixed("0.0.0.0:8090")),
    (
        "FANFARE_SANDBOX_MEDIA",
        None,
        Value::Fixed("${FANFARE_BASE_URL:-http://fanfare.localhost:8080/api/v1}/media/,${AWS_ENDPOINT:-}"),
    ),
    ("FANFARE_SANDBOX_TOKEN", None, Value::Required),
    ("FANFARE_SANDBOX_URL", None, Value::Default("http://sandbox.localhost:8090")),
    ("FANFARE_SECRET", None, Value::Required),
    ("FANFARE_TEMPORAL_UI", None, Value::Default("http://localhost:8233")),
    ("FANFARE_TRUSTED_HOPS", None, Value::Default("1")),
    ("FANFARE_WORKER_ROLE", None, Value::Fixed("fanfare_worker")),
    ("TEMPORAL_ADDRESS", None, Value::Default("http://temporal:7233")),
    ("TEMPORAL_NAMESPACE", None, Value::Default("fanfare")),
];

/// Returns the compose file with the environments of its services.
pub(super) fn files() -> BTreeMap<String, String> {
    let mut content = read(FILE);
    for role in Role::ALL {
        let lines: Vec<String> = variables(role).iter().map(|variable| line(role, variable)).collect();
        content = replaced(&content, &format!("variables of fanfare {}", role.name()), &lines);
    }
    [(FILE.to_owned(), content)].into()
}

fn line(role: Role, variable: &Variable) -> String {
    let name = &variable.name;
    match value(&VALUES, role, variable) {
        Value::Fixed(value) => format!("{name}: {value}"),
        Value::Default(value) if value.contains(':') => format!("{name}: ${{{name}:-{value}}}"),
        Value::Default(value) => format!("{name}: \"${{{name}:-{value}}}\""),
        Value::Required => format!("{name}: ${{{name}:?set it in .env}}"),
        // Compose passes a variable without a value on if it is set.
        Value::Optional => format!("{name}:"),
    }
}

/// Returns the names of the generated parts in a text, in order.
pub fn parts(content: &str) -> Vec<&str> {
    let begun = content.lines().filter_map(|line| line.trim_start().strip_prefix(BEGIN));
    begun.collect()
}

/// Returns the environment of a service as Docker Compose passes it, given the variables of `.env`.
///
/// # Panics
///
/// If a variable that must be set is missing.
pub fn service(name: &str, env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let file = yaml(&read(FILE)).remove(0);
    let environment = file["services"][name]["environment"].as_object().expect("an environment");
    let passed = environment.iter().filter_map(|(name, value)| {
        let value = match value {
            Json::Null => env.get(name)?.clone(),
            Json::String(text) => interpolated(text, env),
            Json::Number(number) => number.to_string(),
            Json::Bool(is_true) => is_true.to_string(),
            other => panic!("{name} is {other:?}"),
        };
        Some((name.clone(), value))
    });
    passed.collect()
}

/// Replaces `${NAME}`, `${NAME:-default}` and `${NAME:?message}`; a default may contain further ones.
fn interpolated(text: &str, env: &BTreeMap<String, String>) -> String {
    let Some(begin) = text.find("${") else { return text.to_owned() };
    let mut depth = 0;
    let length = text[begin..]
        .char_indices()
        .find(|(at, char)| {
            depth += i32::from(text[begin + at..].starts_with("${")) - i32::from(*char == '}');
            *char == '}' && depth == 0
        })
        .expect("a variable ends")
        .0;
    let inner = &text[begin + 2..begin + length];
    let split = inner.find(":-").or_else(|| inner.find(":?"));
    let (name, rest) = split.map_or((inner, None), |at| (&inner[..at], Some(&inner[at..])));
    let set = env.get(name).filter(|value| !value.is_empty());
    let value = match (set, rest) {
        (Some(value), _) => value.clone(),
        (None, Some(rest)) if rest.starts_with(":-") => interpolated(&rest[2..], env),
        (None, Some(rest)) => panic!("{name} is not set: {}", &rest[2..]),
        (None, None) => String::new(),
    };
    format!("{}{value}{}", &text[..begin], interpolated(&text[begin + length + 1..], env))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_compose_does() {
        let env =
            [("A", "one"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (text, expected) in [
            ("plain", "plain"),
            ("${A}-${B}", "one-"),
            ("${A:-no} ${B:-two} ${EMPTY:-three}", "one two three"),
            ("${B:-${A:-no}}/x", "one/x"),
            ("${B:-${C:-http://host:80/p}}/media/,${D:-}", "http://host:80/p/media/,"),
            ("u:${A:?must}@h", "u:one@h"),
        ] {
            assert_eq!(interpolated(text, &env), expected, "{text}");
        }
    }

    #[test]
    #[should_panic(expected = "B is not set: set it")]
    fn a_missing_variable_is_named() {
        interpolated("${B:?set it}", &BTreeMap::new());
    }
}
