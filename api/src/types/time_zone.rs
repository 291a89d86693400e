//! Time zones by their IANA names. <https://www.iana.org/time-zones>

use crate::http::problem::{Issue, clip};
use chrono_tz::{TZ_VARIANTS, Tz};
use serde_json::{Map, Value};

/// Default time zone.
pub(crate) const DEFAULT: Tz = Tz::UTC;

/// Reports a field whose value is not a time zone. Names are taken as IANA writes them.
pub(crate) fn check(body: &Map<String, Value>, field: &str, issues: &mut Vec<Issue>) {
    if let Some(zone) = body.get(field).and_then(Value::as_str)
        && zone.parse::<Tz>().is_err()
    {
        let meant = TZ_VARIANTS.iter().find(|known| known.name().eq_ignore_ascii_case(zone));
        let hint = meant.map_or_else(String::new, |known| format!(": its name is '{}'", known.name()));
        issues.push(Issue::custom([field], format!("'{}' is not an IANA time zone{hint}", clip(zone))));
    }
}

/// Parses the time zone of a validated field.
pub(crate) fn read(name: Option<&str>) -> Tz {
    name.map_or(DEFAULT, |name| name.parse().expect("the rules of the body have checked it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_in_another_case_is_told_with_the_right_one() {
        let told = |zone: &str| -> Vec<String> {
            let mut issues = Vec::new();
            let body = json!({ "timezone": zone });
            check(body.as_object().unwrap(), "timezone", &mut issues);
            issues.into_iter().map(|issue| issue.message).collect()
        };
        assert_eq!(told("Europe/Berlin"), [""; 0]);
        assert_eq!(
            told("europe/berlin"),
            ["'europe/berlin' is not an IANA time zone: its name is 'Europe/Berlin'"]
        );
        assert_eq!(told("Berlin"), ["'Berlin' is not an IANA time zone"]);
    }
}
