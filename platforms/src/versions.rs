//! The versions of the platforms' APIs that end on a date.
//!
//! A version that has ended breaks every call at once, so that its end is told months before: as a metric, an alert and a
//! line of the log. LinkedIn's version is a month that a header names; Meta's is a part of each address. The others have
//! none, or one without an end.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Utc};
use std::{fmt, str::FromStr};

/// How a platform's API is versioned.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    /// By LinkedIn's months.
    Month,
    /// By a version with this name, which is served until this day.
    Named { name: &'static str, ends: NaiveDate },
    /// Without an announced end.
    Endless,
}

/// Returns a day of the table below.
const fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).expect("a day of the calendar")
}

/// Version of the Graph API, for Facebook and Instagram. v26.0 was released on 2026-07-29; Meta serves a version for at least
/// two years, and answers calls that name an earlier one as the oldest that is left:
/// <https://developers.facebook.com/docs/graph-api/changelog>.
macro_rules! graph_api {
    () => {
        "v26.0"
    };
}

pub(crate) use graph_api;

const GRAPH: Scheme = Scheme::Named { name: graph_api!(), ends: day(2028, 7, 29) };

/// The platforms with the page that says how their API is versioned. LinkedIn's was read in August 2026, Meta's in
/// November 2026.
const SCHEMES: &[(&str, Scheme, &str)] = &[
    ("x", Scheme::Endless, "https://docs.x.com/x-api/fundamentals/versioning"),
    ("linkedin", Scheme::Month, "https://learn.microsoft.com/en-us/linkedin/marketing/versioning"),
    ("instagram", GRAPH, "https://developers.facebook.com/docs/graph-api/changelog"),
    (
        "tiktok",
        Scheme::Endless,
        "https://developers.tiktok.com/doc/content-posting-api-reference-direct-post",
    ),
    ("youtube", Scheme::Endless, "https://developers.google.com/youtube/v3/revision_history"),
    ("facebook", GRAPH, "https://developers.facebook.com/docs/graph-api/changelog"),
    // v1.0 is the only one.
    ("threads", Scheme::Endless, "https://developers.facebook.com/docs/threads/changelog"),
    ("bluesky", Scheme::Endless, "https://atproto.com/specs/lexicon#lexicon-evolution"),
    ("pinterest", Scheme::Endless, "https://developers.pinterest.com/docs/api/v5"),
    ("google_business", Scheme::Endless, "https://developers.google.com/my-business/content/sunset-dates"),
    ("reddit", Scheme::Endless, "https://www.reddit.com/dev/api"),
];

/// Key of the forms of calls to LinkedIn.
pub(crate) const LINKEDIN: &str = "linkedin";

/// Days before the end of a version from which its operator is told.
pub const NOTICE_DAYS: i64 = 61;

/// A version of a platform's API that ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatedVersion {
    /// The platform's id.
    pub platform: &'static str,
    /// The version's name, such as `v26.0` or `202606`.
    pub version: String,
    /// The day on which the platform stops to serve it, as far as it is known.
    pub ends: NaiveDate,
    /// The page that tells.
    pub source: &'static str,
}

impl DatedVersion {
    /// Days until its end; negative afterwards.
    pub fn days_left(&self, now: DateTime<Utc>) -> i64 {
        (self.ends - now.date_naive()).num_days()
    }

    /// True from two months before its end on.
    pub fn is_ending(&self, now: DateTime<Utc>) -> bool {
        self.days_left(now) < NOTICE_DAYS
    }
}

/// Returns the versions that end: those that the adapters were written for, and LinkedIn's as the operator set it.
pub fn dated(linkedin: Option<Month>) -> Vec<DatedVersion> {
    let versions = SCHEMES.iter().filter_map(|&(platform, scheme, source)| {
        let (version, ends) = match scheme {
            Scheme::Month => {
                let month = linkedin.unwrap_or(Month::TESTED);
                (month.to_string(), month.ends())
            }
            Scheme::Named { name, ends } => (name.to_owned(), ends),
            Scheme::Endless => return None,
        };
        Some(DatedVersion { platform, version, ends, source })
    });
    versions.collect()
}

/// A version of LinkedIn's API: a month, of which December has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month(NaiveDate);

impl Month {
    /// The version that the adapter was written for.
    pub const TESTED: Self = Self(day(2026, 6, 1));
    /// Age at which a version is replaced by a later one.
    const AGE: Months = Months::new(9);
    /// Months for which LinkedIn serves a version: "202511 sunsets Nov 16 2026", "202601 Jan 15 2027".
    const SERVED: Months = Months::new(12);
    /// Number of versions that are named in turn when LinkedIn refuses one.
    const TRIES: usize = 6;

    /// Returns the version of a day's month; that of November in December.
    fn of(day: NaiveDate) -> Self {
        let first = day.with_day(1).unwrap_or(day);
        Self(if first.month() == 12 { first - Months::new(1) } else { first })
    }

    /// Returns the version to name by default: the tested one until LinkedIn is about to end it, then the oldest that is
    /// still served for some months. An untested version is likelier to work than one that was ended.
    pub(crate) fn at(now: DateTime<Utc>) -> Self {
        let moving = now.date_naive().checked_sub_months(Self::AGE).unwrap_or(now.date_naive());
        Self::of(moving).max(Self::TESTED)
    }

    /// The day in the middle of the month a year later from which it may be refused.
    fn ends(self) -> NaiveDate {
        self.0 + Self::SERVED + Days::new(14)
    }

    /// Returns the versions to name, one after the other, when LinkedIn does not serve `first`: the tested one, that of
    /// the day, and those of the last year, the nearest to that first.
    pub(crate) fn candidates(first: Self, now: DateTime<Utc>) -> Vec<Self> {
        let usual = Self::at(now);
        let newest = Self::of(now.date_naive()).max(usual);
        let mut others: Vec<_> = (0..12).map(|months| Self::of(newest.0 - Months::new(months))).collect();
        others.sort_by_key(|month| (month.0 - usual.0).num_days().abs());
        let mut all = Vec::new();
        for month in [first, Self::TESTED, usual].into_iter().chain(others) {
            if !all.contains(&month) {
                all.push(month);
            }
        }
        all.truncate(Self::TRIES);
        all
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y%m"))
    }
}

/// A text that names no version.
#[derive(Clone, Copy, Debug)]
pub struct NoVersion;

impl fmt::Display for NoVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected a version of LinkedIn's API, such as 202606: a year and a month, and December has none",
        )
    }
}

impl std::error::Error for NoVersion {}

impl FromStr for Month {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let is_number = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = text.parse().ok().filter(|_| is_number).ok_or(NoVersion)?;
        let (year, month) = (number / 100, number % 100);
        let year = i32::try_from(year).ok().filter(|year| *year >= 2022).ok_or(NoVersion)?;
        let first = NaiveDate::from_ymd_opt(year, month, 1).filter(|_| month != 12);
        first.map(Self).ok_or(NoVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon(day: &str) -> DateTime<Utc> {
        format!("{day}T12:00:00Z").parse().expect("a time")
    }

    #[test]
    fn every_platform_has_its_row() {
        let rows: Vec<_> = SCHEMES.iter().map(|(platform, ..)| *platform).collect();
        assert_eq!(rows, crate::IDS);
    }

    #[test]
    fn the_version_moves_before_linkedin_ends_it_and_never_to_a_december() {
        for (day, expected) in [
            ("2026-11-23", "202606"),
            ("2027-03-31", "202606"),
            ("2027-04-01", "202607"),
            ("2027-08-31", "202611"),
            ("2027-09-01", "202611"),
            ("2027-09-30", "202611"),
            ("2027-10-01", "202701"),
            ("2031-01-15", "203004"),
        ] {
            assert_eq!(Month::at(noon(day)).to_string(), expected, "{day}");
        }
        let mut now = noon("2026-11-01");
        for _ in 0..3000 {
            now = now + Days::new(1);
            let version = Month::at(now);
            assert!(version.0.month() != 12 && version.ends() > now.date_naive(), "{version} on {now}");
            let candidates = Month::candidates(version, now);
            assert_eq!((candidates[0], candidates.len()), (version, Month::TRIES));
            assert!(candidates.iter().all(|month| month.0.month() != 12), "{candidates:?}");
        }
    }

    #[test]
    fn a_refused_version_is_followed_by_the_tested_one_and_its_neighbours() {
        let candidates = |day, first: &str| {
            let first = first.parse().expect("a version");
            let all = Month::candidates(first, noon(day));
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(candidates("2026-11-23", "202501"), "202501 202606 202607 202605 202608 202604");
        assert_eq!(candidates("2027-09-10", "202611"), "202611 202606 202610 202701 202702 202703");
    }

    #[test]
    fn a_version_is_a_year_and_a_month_without_december() {
        assert_eq!("202606".parse::<Month>().expect("a version"), Month::TESTED);
        for text in ["202612", "202600", "202613", "2026-06", "20266", "+20266", "", "000001", "latest"] {
            assert!(text.parse::<Month>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_end_is_told_two_months_before() {
        let told = |day: &str, linkedin: Option<&str>| {
            let now = noon(day);
            let month = linkedin.map(|text| text.parse().expect("a version"));
            let ending = dated(month).into_iter().filter(|version| version.is_ending(now));
            ending.map(|version| format!("{} {}", version.platform, version.version)).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(told("2026-11-27", None), none);
        assert_eq!(told("2027-04-15", None), none);
        assert_eq!(told("2027-04-16", None), ["linkedin 202606"]);
        assert_eq!(told("2026-11-27", Some("202601")), ["linkedin 202601"]);
        assert_eq!(told("2026-11-27", Some("202603")), none);
        assert_eq!(told("2028-05-28", Some("202711")), none);
        assert_eq!(told("2028-05-30", Some("202711")), ["instagram v26.0", "facebook v26.0"]);
    }
}
