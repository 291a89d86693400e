//! Posting slots: weekly local times, and the instants they fall on.
//!
//! Only the local times are stored; the instants are computed from them and a time zone each time, so that
//! a slot at nine is at nine in summer and in winter. A time that a clock change skips moves forward by the
//! gap, and of a time that occurs twice the first is used, so that each week has each slot.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, iter, str::FromStr};

/// How far ahead slots are computed.
pub const HORIZON: TimeDelta = TimeDelta::days(365);
/// More than any zone's offset from UTC, past or present.
const MAX_UTC_OFFSET: TimeDelta = TimeDelta::hours(16);

crate::string_enum! {
    /// A day of the week.
    Weekday, "weekday" {
        /// Day 1 of ISO 8601.
        Monday = "monday",
        /// Day 2 of ISO 8601.
        Tuesday = "tuesday",
        /// Day 3 of ISO 8601.
        Wednesday = "wednesday",
        /// Day 4 of ISO 8601.
        Thursday = "thursday",
        /// Day 5 of ISO 8601.
        Friday = "friday",
        /// Day 6 of ISO 8601.
        Saturday = "saturday",
        /// Day 7 of ISO 8601.
        Sunday = "sunday",
    }
}

impl Weekday {
    fn of(date: NaiveDate) -> Self {
        Self::ALL[date.weekday().num_days_from_monday() as usize]
    }
}

/// A local time of day in minutes, formatted `HH:MM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(NaiveTime);

/// The error of parsing a text that is not a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTime;

impl fmt::Display for InvalidTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a time from 00:00 to 23:59")
    }
}

impl std::error::Error for InvalidTime {}

impl FromStr for Time {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let two = |part: &str| {
            let are_digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            are_digits.then(|| part.parse().ok()).flatten()
        };
        let (hour, minute) = text.split_once(':').ok_or(InvalidTime)?;
        let time = NaiveTime::from_hms_opt(two(hour).ok_or(InvalidTime)?, two(minute).ok_or(InvalidTime)?, 0);
        time.map(Self).ok_or(InvalidTime)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%H:%M").fmt(f)
    }
}

impl TryFrom<String> for Time {
    type Error = InvalidTime;

    fn try_from(text: String) -> Result<Self, InvalidTime> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

/// A weekly time at which a post may be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// Day of the week, in the schedule's time zone.
    pub weekday: Weekday,
    /// Local time of day.
    pub time: Time,
}

/// Slots and the time zone they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The slots, in any order.
    pub slots: Vec<Slot>,
    /// Time zone of the slots.
    pub zone: Tz,
}

impl Schedule {
    /// Returns the instants of the slots after `after` and within [`HORIZON`], in order and without duplicates.
    pub fn after(&self, after: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        let end = after.checked_add_signed(HORIZON).unwrap_or(DateTime::<Utc>::MAX_UTC);
        let first = after.naive_utc().checked_sub_signed(MAX_UTC_OFFSET).unwrap_or(NaiveDateTime::MIN);
        let mut days = first.date().iter_days().peekable();
        let mut ahead = BTreeSet::new();
        iter::from_fn(move || {
            loop {
                // The slots of later days come after this instant, so the ones before it are in order.
                let settled = days
                    .peek()
                    .and_then(|day| day.and_time(NaiveTime::MIN).checked_sub_signed(MAX_UTC_OFFSET));
                let next = ahead.first().copied();
                if next.is_some_and(|next: DateTime<Utc>| settled.is_none_or(|at| next.naive_utc() < at)) {
                    return ahead.pop_first();
                }
                if settled.is_some_and(|at| at > end.naive_utc()) {
                    return None;
                }
                let day = days.next()?;
                let slots = self.slots.iter().filter(|slot| slot.weekday == Weekday::of(day));
                let instants = slots.filter_map(|slot| instant(self.zone, day.and_time(slot.time.0)));
                ahead.extend(instants.filter(|at| *at > after && *at <= end));
            }
        })
    }
}

/// Returns the first instant that has this local time; `None` beyond the calendar.
pub fn instant(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Utc>> {
    if let Some(shown) = zone.from_local_datetime(&local).earliest() {
        return Some(shown.to_utc());
    }
    // Inside a gap, the offset before the change gives the local time moved forward by the gap.
    let (_, before) = GapInfo::new(&local, &zone)?.begin?;
    before.fix().from_local_datetime(&local).single().map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Timelike;
    use chrono_tz::TZ_VARIANTS;
    use proptest::{collection, prelude::*, sample};
    use std::collections::HashSet;

    const MINUTE: TimeDelta = TimeDelta::minutes(1);

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn slot(weekday: Weekday, time: &str) -> Slot {
        Slot { weekday, time: time.parse().unwrap() }
    }

    fn of_date(local: NaiveDateTime) -> Slot {
        Slot { weekday: Weekday::of(local.date()), time: Time(local.time()) }
    }

    /// Returns the local time in a zone: the only conversion that the reference implementations use.
    fn wall(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
        at.with_timezone(&zone).naive_local()
    }

    /// Returns the bounds of twenty years that include the day that Samoa skipped in 2011.
    fn years() -> (DateTime<Utc>, DateTime<Utc>) {
        (at("2011-01-01T00:00:00Z"), at("2031-01-01T00:00:00Z"))
    }

    /// Returns the first minute after each clock change of a zone in the twenty years.
    fn changes(zone: Tz) -> Vec<DateTime<Utc>> {
        let (mut day, end) = years();
        let offset = |at: DateTime<Utc>| wall(zone, at) - at.naive_utc();
        let mut changes = Vec::new();
        while day < end {
            let (mut before, mut after) = (day, day + TimeDelta::days(1));
            day = after;
            if offset(before) == offset(after) {
                continue;
            }
            while after - before > MINUTE {
                let middle = before + MINUTE * ((after - before).num_minutes() / 2) as i32;
                if offset(middle) == offset(before) { before = middle } else { after = middle }
            }
            changes.push(after);
        }
        changes
    }

    /// Reference implementation: steps through every minute. It uses the conversion from instants to local
    /// times only.
    fn walked(schedule: &Schedule, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let mut found = BTreeSet::new();
        let mut seen = HashSet::new();
        let is_slot = |local: NaiveDateTime| schedule.slots.contains(&of_date(local));
        let start = from - TimeDelta::days(2) - TimeDelta::seconds(from.second().into());
        let (mut now, mut shown) = (start, wall(schedule.zone, start));
        while now < to {
            let (later, next) = (now + MINUTE, wall(schedule.zone, now + MINUTE));
            // A skipped local time is as long after the last minute as without the change.
            let mut skipped = shown + MINUTE;
            while skipped < next {
                if is_slot(skipped) {
                    found.insert(now + (skipped - shown));
                }
                skipped += MINUTE;
            }
            if seen.insert(next) && is_slot(next) {
                found.insert(later);
            }
            (now, shown) = (later, next);
        }
        found.into_iter().filter(|at| *at > from && *at <= to).collect()
    }

    fn slots() -> impl Strategy<Value = Vec<Slot>> {
        let slot =
            (sample::select(Weekday::ALL), 0_u32..24, 0_u32..60).prop_map(|(weekday, hour, minute)| Slot {
                weekday,
                time: Time(NaiveTime::from_hms_opt(hour, minute, 0).unwrap()),
            });
        collection::vec(slot, 1..16)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

        #[test]
        fn slots_match_the_reference_implementation(
            zone in sample::select(&TZ_VARIANTS[..]),
            change in any::<sample::Index>(),
            minutes in -5_000_i64..5_000,
            slots in slots(),
        ) {
            // Close to a clock change, if the zone has any.
            let changes = changes(zone);
            let near = if changes.is_empty() { years().0 } else { changes[change.index(changes.len())] };
            let after = near + TimeDelta::minutes(minutes) - TimeDelta::seconds(1);
            let schedule = Schedule { slots, zone };
            let to = after + TimeDelta::days(9);
            let found: Vec<_> = schedule.after(after).take_while(|at| *at <= to).collect();
            prop_assert_eq!(found, walked(&schedule, after, to), "{:?} in {} after {}", schedule.slots, zone, after);
        }

        #[test]
        fn a_year_of_slots_is_ordered_and_includes_every_week(
            zone in sample::select(&TZ_VARIANTS[..]),
            days in 0_i64..7_300,
            seconds in 0_i64..86_400,
            slots in slots(),
        ) {
            let after = years().0 + TimeDelta::days(days) + TimeDelta::seconds(seconds);
            let schedule = Schedule { slots, zone };
            let all: Vec<_> = schedule.after(after).collect();
            prop_assert!(all.is_sorted_by(|one, next| one < next));
            prop_assert!(all[0] > after && *all.last().unwrap() <= after + HORIZON);
            for slot in &schedule.slots {
                let single = Schedule { slots: vec![*slot], zone };
                let own: Vec<_> = single.after(after).collect();
                prop_assert!(own.iter().all(|at| all.binary_search(at).is_ok()));
                let week = TimeDelta::weeks(1);
                let ends = [(after, own[0]), (*own.last().unwrap(), after + HORIZON)];
                prop_assert!(ends.iter().all(|(one, next)| *next - *one <= week + TimeDelta::days(1)));
                for pair in own.windows(2) {
                    // One local week apart, unless a gap moved one of them.
                    let (one, next) = (wall(zone, pair[0]), wall(zone, pair[1]));
                    let are_kept = [one, next].into_iter().all(|local| of_date(local) == *slot);
                    prop_assert!(!are_kept || next - one == week, "{} {}", one, next);
                    prop_assert!((next - one - week).abs() <= TimeDelta::days(1), "{} {}", one, next);
                }
            }
        }
    }

    #[test]
    fn every_clock_change_in_twenty_years_moves_only_skipped_times() {
        let (mut gaps, mut folds) = (0, 0);
        for zone in TZ_VARIANTS {
            for change in changes(zone) {
                let (before, after) = (wall(zone, change - MINUTE) + MINUTE, wall(zone, change));
                let moved = after - before;
                let from = change - TimeDelta::days(2);
                let first = |local: NaiveDateTime| {
                    let schedule = Schedule { slots: vec![of_date(local)], zone };
                    let found = schedule.after(from).next().unwrap();
                    (found, wall(zone, found))
                };
                // The bounds of the skipped or repeated time, its middle, and the adjacent minutes.
                let middle = before + moved / 2;
                let middle = middle - TimeDelta::seconds(i64::from(middle.second()));
                for local in [before - MINUTE, before, middle, after - MINUTE, after, after + MINUTE] {
                    let (found, shown) = first(local);
                    let is_skipped = before <= local && local < after;
                    let expected = if is_skipped { local + moved } else { local };
                    assert_eq!(shown, expected, "{local} in {zone}");
                    let is_twice = after <= local && local < before;
                    assert!(!is_twice || found < change, "{local} in {zone} is not the first of two");
                    gaps += i32::from(is_skipped);
                    folds += i32::from(is_twice);
                }
            }
        }
        assert!(gaps > 10_000 && folds > 10_000, "{gaps} skipped, {folds} twice");
    }

    #[test]
    fn slots_keep_their_local_time_across_clock_changes() {
        use Weekday::{Friday, Monday, Saturday, Sunday};
        for (zone, slots, after, expected) in [
            // Clocks change from 02:00 to 03:00 on 29 March 2026.
            (
                "Europe/Berlin",
                vec![slot(Sunday, "02:30"), slot(Sunday, "03:15"), slot(Sunday, "03:30")],
                "2026-03-22T12:00:00Z",
                vec!["2026-03-29T01:15:00Z", "2026-03-29T01:30:00Z", "2026-04-05T00:30:00Z"],
            ),
            // Clocks change from 03:00 to 02:00 on 25 October 2026.
            (
                "Europe/Berlin",
                vec![slot(Sunday, "02:30"), slot(Monday, "09:00")],
                "2026-10-24T12:00:00Z",
                vec!["2026-10-25T00:30:00Z", "2026-10-26T08:00:00Z", "2026-11-01T01:30:00Z"],
            ),
            // Clocks change by half an hour.
            (
                "Australia/Lord_Howe",
                vec![slot(Sunday, "02:10")],
                "2026-10-03T00:00:00Z",
                vec!["2026-10-03T15:40:00Z", "2026-10-10T15:10:00Z"],
            ),
            // Friday, 30 December 2011 is skipped entirely: its slots move to Saturday.
            (
                "Pacific/Apia",
                vec![slot(Friday, "10:00"), slot(Saturday, "10:00")],
                "2011-12-29T00:00:00Z",
                vec!["2011-12-30T20:00:00Z", "2012-01-05T20:00:00Z", "2012-01-06T20:00:00Z"],
            ),
            ("UTC", vec![slot(Monday, "00:00")], "2026-01-05T00:00:00Z", vec!["2026-01-12T00:00:00Z"]),
            ("UTC", vec![slot(Monday, "00:00")], "2026-01-04T23:59:59.999Z", vec!["2026-01-05T00:00:00Z"]),
        ] {
            let schedule = Schedule { slots, zone: zone.parse().unwrap() };
            let found: Vec<_> = schedule.after(at(after)).take(expected.len()).collect();
            assert_eq!(found, expected.into_iter().map(at).collect::<Vec<_>>(), "{schedule:?}");
        }
    }

    #[test]
    fn slots_end_at_the_horizon_and_an_empty_schedule_has_none() {
        let after = at("2026-01-05T09:00:00Z");
        let count = |slots: Vec<Slot>, after| Schedule { slots, zone: Tz::UTC }.after(after).count();
        assert_eq!(count(vec![], after), 0);
        assert_eq!(count(vec![slot(Weekday::Monday, "09:00")], after), 52);
        assert_eq!(
            count(vec![slot(Weekday::Tuesday, "09:00"); 3], after),
            53,
            "365 days are 52 weeks and one"
        );
        assert_eq!(count(vec![slot(Weekday::Monday, "09:00")], DateTime::<Utc>::MAX_UTC), 0);
    }

    #[test]
    fn a_time_is_formatted_as_hours_and_minutes() {
        for text in ["00:00", "09:05", "23:59"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        for text in [
            "24:00",
            "9:05",
            "09:5",
            "09:60",
            "0905",
            "09:05:00",
            "+9:05",
            "",
            ":",
            "٠٩:٠٥",
            "-1:00",
            " 9:00",
        ] {
            assert_eq!(text.parse::<Time>(), Err(InvalidTime), "{text}");
        }
        let slot = slot(Weekday::Sunday, "07:30");
        let written = serde_json::to_value(slot).unwrap();
        assert_eq!(written, serde_json::json!({ "weekday": "sunday", "time": "07:30" }));
        assert_eq!(serde_json::from_value::<Slot>(written).unwrap(), slot);
        assert!(serde_json::from_str::<Slot>(r#"{ "weekday": "sunday", "time": "24:00" }"#).is_err());
    }
}
