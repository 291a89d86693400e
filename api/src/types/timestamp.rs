//! Timestamps: any ISO 8601 form is accepted, one form is returned.
//!
//! A time without an offset is in UTC, the zone of the contract. A date alone is accepted only as a bound of a
//! range, where it is its midnight. Responses always use UTC with milliseconds and `Z`.
//! <https://www.iso.org/iso-8601-date-and-time-format.html>

use crate::types::scalar::scalar;
use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeDelta, Utc};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};

/// Maximum length of a timestamp, in bytes.
const MAX_BYTES: usize = 64;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub DateTime<Utc>);

impl Timestamp {
    /// Parses ISO 8601, basic or extended, with calendar, week or ordinal date.
    pub fn read(text: &str) -> Option<Self> {
        if !text.is_ascii() || text.len() > MAX_BYTES {
            return None;
        }
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let (time, offset) = offset(rest)?;
        let (time, days) = time_of_day(time)?;
        let local = read_date(date)?.and_time(time).checked_add_signed(TimeDelta::days(days))?;
        let utc = local.checked_sub_signed(TimeDelta::minutes(offset))?.and_utc();
        (1..=9999).contains(&utc.year()).then_some(Self(utc))
    }
}

fn read_date(text: &str) -> Option<NaiveDate> {
    ["%Y-%m-%d", "%Y%m%d", "%G-W%V-%u", "%GW%V%u", "%Y-%j", "%Y%j"]
        .into_iter()
        .zip([10, 8, 10, 8, 8, 7])
        .filter(|(_, length)| text.len() == *length)
        .find_map(|(format, _)| NaiveDate::parse_from_str(text, format).ok())
}

/// Parses the time of day; 24:00 is the next day's midnight.
fn time_of_day(text: &str) -> Option<(NaiveTime, i64)> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let shape: String = whole.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    let has_seconds = match shape.as_str() {
        "99:99:99" | "999999" => true,
        // The standard's fractional minutes and hours are not supported.
        "99:99" | "9999" | "99" if fraction.is_none() => false,
        _ => return None,
    };
    let whole = whole.replace(':', "");
    let two = |at: usize| whole.get(at..at + 2).map_or(Some(0), |text| digits(text, 2));
    let (hour, minute, second) = (two(0)?, two(2)?, if has_seconds { two(4)? } else { 0 });
    let micros = match fraction {
        // Truncated to the precision of Postgres.
        Some(fraction) if !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits(&format!("{fraction:0<6}")[..6], 6)?
        }
        Some(_) => return None,
        None => 0,
    };
    match (hour, minute, second, micros) {
        (24, 0, 0, 0) => Some((NaiveTime::MIN, 1)),
        // A leap second is the last moment before midnight.
        (23, 59, 60, _) => Some((NaiveTime::from_hms_micro_opt(23, 59, 59, 999_999)?, 0)),
        _ => Some((NaiveTime::from_hms_micro_opt(hour, minute, second, micros)?, 0)),
    }
}

/// Splits off the offset and returns it in minutes east of Greenwich; 0 if there is none.
fn offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (time, offset) = text.split_at(at);
    let (sign, offset) = (if offset.starts_with('-') { -1 } else { 1 }, &offset[1..]);
    let (hours, minutes) = match offset.len() {
        2 => (digits(offset, 2)?, 0),
        4 => (digits(&offset[..2], 2)?, digits(&offset[2..], 2)?),
        5 if offset.as_bytes()[2] == b':' => (digits(&offset[..2], 2)?, digits(&offset[3..], 2)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then(|| (time, sign * i64::from(hours * 60 + minutes)))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let are_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().ok()).flatten()
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(at: DateTime<Utc>) -> Self {
        Self(at)
    }
}

scalar! {
    [] Timestamp {
        name: "string_date-time",
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            example: Some("2026-01-02T03:04:05.000Z".into()),
            ..MetaSchema::new_with_format("string", "date-time")
        })),
        parse: |value| value.as_str().and_then(Self::read).ok_or(value),
        write: |timestamp| domain::event::timestamp(timestamp.0).into(),
    }
}

/// Format of a [`TimeBound`] in the document. Not one of JSON Schema's, which have no such union.
pub(crate) const BOUND_FORMAT: &str = "date-time-or-date";

/// A bound of a range of time: a timestamp or a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBound(pub DateTime<Utc>);

impl TimeBound {
    /// Parses a timestamp, or a date as its midnight in UTC.
    pub fn read(text: &str) -> Option<Self> {
        let date = || Some(read_date(text)?.and_time(NaiveTime::MIN).and_utc());
        let at = Timestamp::read(text).map(|Timestamp(at)| at).or_else(date)?;
        (1..=9999).contains(&at.year()).then_some(Self(at))
    }
}

scalar! {
    [] TimeBound {
        name: "string_date-time-or-date",
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            example: Some("2026-01-02".into()),
            ..MetaSchema::new_with_format("string", BOUND_FORMAT)
        })),
        parse: |value| value.as_str().and_then(Self::read).ok_or(value),
        write: |bound| domain::event::timestamp(bound.0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poem_openapi::types::ToJSON;

    #[test]
    fn iso_8601_is_read() {
        for (text, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
            ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678Z"),
            ("2026-01-02T03:04:05,5+02:00", "2026-01-02T01:04:05.500Z"),
            ("2026-01-02t03:04z", "2026-01-02T03:04:00.000Z"),
            ("2026-01-02 03:04:05-0330", "2026-01-02T06:34:05.000Z"),
            ("20260102T030405+01", "2026-01-02T02:04:05.000Z"),
            ("2026-01-02T03Z", "2026-01-02T03:00:00.000Z"),
            ("2026-12-31T24:00:00Z", "2027-01-01T00:00:00.000Z"),
            ("2026-W01-5T00:00Z", "2026-01-02T00:00:00.000Z"),
            ("2026-032T00:00Z", "2026-02-01T00:00:00.000Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999Z"),
            ("2026-01-02T03:04:05", "2026-01-02T03:04:05.000Z"),
            ("20260102T0304", "2026-01-02T03:04:00.000Z"),
        ] {
            let read = Timestamp::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.to_json().unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for text in [
            "",
            "tomorrow",
            "1767323045",
            "2026-01-02",
            "2026-01-02T",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-02T25:00:00Z",
            "2026-01-02T24:00:01Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04.5Z",
            "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05+1:00",
            "2026-01-02T03:04:05ZZ",
            "2026-1-2T03:04:05Z",
            "2026-01-02T03a04:05Z",
            "+12026-01-02T03:04:05Z",
            "0000-01-02T03:04:05Z",
            "2026-01-02T03:04:05Zé",
            " 2026-01-02T03:04:05Z",
            &format!("2026-01-02T03:04:05.{}Z", "0".repeat(64)),
        ] {
            assert_eq!(Timestamp::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_bound_may_be_a_date() {
        for (text, expected) in [
            ("2026-01-02", Some("2026-01-02T00:00:00.000Z")),
            ("20260102", Some("2026-01-02T00:00:00.000Z")),
            ("2026-W01-5", Some("2026-01-02T00:00:00.000Z")),
            ("2026-01-02T03:04:05+01:00", Some("2026-01-02T02:04:05.000Z")),
            ("2026-02-29", None),
            ("0000-01-02", None),
            ("2026", None),
            ("", None),
        ] {
            let read = TimeBound::read(text).map(|bound| bound.to_json().unwrap());
            assert_eq!(read, expected.map(Into::into), "{text}");
        }
    }
}
