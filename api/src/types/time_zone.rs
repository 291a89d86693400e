//! Time zones by their IANA names. <https://www.iana.org/time-zones>

use crate::http::problem::{Issue, clip};
use chrono_tz::Tz;
use serde_json::{Map, Value};

/// Default time zone.
pub(crate) const DEFAULT: Tz = Tz::UTC;

/// Reports a field whose value is not a time zone.
pub(crate) fn check(body: &Map<String, Value>, field: &str, issues: &mut Vec<Issue>) {
    if let Some(zone) = body.get(field).and_then(Value::as_str)
        && zone.parse::<Tz>().is_err()
    {
        issues.push(Issue::custom([field], format!("'{}' is not an IANA time zone", clip(zone))));
    }
}

/// Parses the time zone of a validated field.
pub(crate) fn read(name: Option<&str>) -> Tz {
    name.map_or(DEFAULT, |name| name.parse().expect("the rules of the body have checked it"))
}
