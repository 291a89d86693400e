//! The time zone of a page: the one that a person chose, else the browser's, else UTC.
//!
//! Both are cookies: `page.js` writes the browser's, the page `/me` the choice. While a request is answered, its zone is
//! that of the task, so that no time of any page can miss it. A form tells the zone that it was drawn in: the browser's
//! may have become known since.

use api::http::{
    browser,
    problem::{Code, Problem, clip},
};
use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use poem::Request;

/// Cookie with the browser's zone; `page.js` writes it.
const BROWSER: &str = "fanfare-zone";
/// Cookie with the zone that a person chose.
const CHOICE: &str = "fanfare-zone-choice";
/// Lifetime of the choice: as long as browsers keep a cookie.
const CHOICE_SECONDS: u32 = 400 * 86_400;

tokio::task_local! {
    static ZONE: Tz;
}

/// Answers a request in its zone.
pub(crate) async fn scope<T>(request: &Request, answer: impl Future<Output = T>) -> T {
    ZONE.scope(chosen(request).or(of_browser(request)).unwrap_or(Tz::UTC), answer).await
}

/// The zone of the request that is answered.
pub(crate) fn current() -> Tz {
    ZONE.try_with(|zone| *zone).unwrap_or(Tz::UTC)
}

/// The zone that a person chose.
pub(crate) fn chosen(request: &Request) -> Option<Tz> {
    browser::cookie(request, CHOICE)?.parse().ok()
}

/// The zone that the browser tells.
pub(crate) fn of_browser(request: &Request) -> Option<Tz> {
    browser::cookie(request, BROWSER)?.parse().ok()
}

/// The cookie that keeps a choice; `None` goes back to the browser's zone.
pub(crate) fn cookie(choice: Option<Tz>) -> String {
    let (name, seconds) = choice.map_or(("", 0), |zone| (zone.name(), CHOICE_SECONDS));
    format!("{CHOICE}={name}; Path={}; Max-Age={seconds}; HttpOnly; SameSite=Lax", crate::PATH)
}

/// Reads a local time as form fields have it, `2026-03-29T02:30`.
///
/// # Errors
///
/// If it is no time, or the clocks of the zone skip or repeat it.
pub(crate) fn read(text: &str, zone: Tz) -> Result<DateTime<Utc>, Problem> {
    let invalid = |detail: String| Problem::new(Code::InvalidRequest, detail);
    if text.is_empty() {
        return Err(invalid("choose a date and a time".to_owned()));
    }
    let parsed = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let Some(local) = parsed else {
        return Err(invalid(format!("'{}' is not a date with a time", clip(text))));
    };
    let said = local.format("%-d %b %Y, %H:%M");
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) => Ok(at.to_utc()),
        LocalResult::Ambiguous(first, second) => Err(invalid(format!(
            "{said} occurs twice in {zone}, where the clocks go back: at {} and {} UTC; choose another time, or \
             UTC as your time zone",
            first.to_utc().format("%H:%M"),
            second.to_utc().format("%H:%M")
        ))),
        LocalResult::None => {
            let gap = GapInfo::new(&local, &zone);
            let ends = gap.and_then(|gap| Some((gap.begin?.0, gap.end?.naive_local())));
            let why = ends.map_or_else(String::new, |(begin, end)| {
                format!(": the clocks go forward from {} to {}", begin.format("%H:%M"), end.format("%H:%M"))
            });
            Err(invalid(format!("{said} does not exist in {zone}{why}; choose another time")))
        }
    }
}

/// Writes a time as [`read`] reads it.
pub(crate) fn write(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%dT%H:%M").to_string()
}

/// The instant at which a day begins; `None` beyond the calendar.
pub(crate) fn start_of(day: NaiveDate, zone: Tz) -> Option<DateTime<Utc>> {
    domain::slot::instant(zone, day.and_time(NaiveTime::MIN))
}

/// The beginning or the end of a day of a form, as the API takes it. A text that is no day is passed on: the API
/// rejects it.
pub(crate) fn bound(text: &str, is_end: bool) -> String {
    let day = text.parse().ok().and_then(|day: NaiveDate| if is_end { day.succ_opt() } else { Some(day) });
    let bound = day.and_then(|day| start_of(day, current()));
    bound.map_or_else(|| text.to_owned(), domain::event::timestamp)
}

/// The day of a time.
pub(crate) fn day_of(at: DateTime<Utc>, zone: Tz) -> NaiveDate {
    at.with_timezone(&zone).date_naive()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_are_read_in_their_zone() {
        for (text, zone, expected) in [
            ("2026-07-01T12:00", Tz::Europe__Berlin, "2026-07-01T10:00:00Z"),
            ("2026-12-01T12:00:30", Tz::Europe__Berlin, "2026-12-01T11:00:30Z"),
            ("2026-07-01T12:00", Tz::UTC, "2026-07-01T12:00:00Z"),
            ("2026-07-01T00:15", Tz::Asia__Kathmandu, "2026-06-30T18:30:00Z"),
        ] {
            let at = read(text, zone).unwrap();
            assert_eq!(at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true), expected, "{text} {zone}");
            assert!(text.starts_with(&write(at, zone)), "{text}");
        }
    }

    #[test]
    fn a_time_that_clocks_skip_or_repeat_is_not_guessed() {
        for (text, expected) in [
            (
                "2026-03-29T02:30",
                "29 Mar 2026, 02:30 does not exist in Europe/Berlin: the clocks go forward from 02:00 to 03:00; \
                 choose another time",
            ),
            (
                "2026-10-25T02:30",
                "25 Oct 2026, 02:30 occurs twice in Europe/Berlin, where the clocks go back: at 00:30 and 01:30 UTC; \
                 choose another time, or UTC as your time zone",
            ),
            ("2026-02-30T02:30", "'2026-02-30T02:30' is not a date with a time"),
            ("", "choose a date and a time"),
            ("tomorrow", "'tomorrow' is not a date with a time"),
        ] {
            assert_eq!(read(text, Tz::Europe__Berlin).unwrap_err().detail, expected);
        }
    }

    #[test]
    fn a_day_begins_when_its_first_moment_is() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let start = |text, zone| start_of(day(text), zone).unwrap().to_string();
        assert_eq!(start("2026-07-01", Tz::Europe__Berlin), "2026-06-30 22:00:00 UTC");
        // Its clocks went forward at midnight.
        assert_eq!(start("2018-11-04", Tz::America__Sao_Paulo), "2018-11-04 03:00:00 UTC");
        let at = start_of(day("2026-07-01"), Tz::Asia__Tokyo).unwrap();
        assert_eq!(day_of(at, Tz::Asia__Tokyo), day("2026-07-01"));
        assert_eq!(day_of(at, Tz::UTC), day("2026-06-30"));
    }

    #[test]
    fn the_choice_goes_before_the_browsers_zone() {
        let zone = |cookies: &str| {
            let request = Request::builder().header("cookie", cookies).finish();
            chosen(&request).or(of_browser(&request)).map(Tz::name)
        };
        assert_eq!(zone("fanfare-zone=Europe/Berlin"), Some("Europe/Berlin"));
        assert_eq!(zone("fanfare-zone=Europe/Berlin; fanfare-zone-choice=Asia/Tokyo"), Some("Asia/Tokyo"));
        assert_eq!(zone("fanfare-zone=<script>; fanfare-zone-choice=Nowhere"), None);
        assert_eq!(zone(""), None);
    }
}
