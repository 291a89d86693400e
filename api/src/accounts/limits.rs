//! How much of its platform's limits an account has used, and when it can take the next post.
//!
//! A worker asks the platform where it tells; the other documented limits are counted from what was published.

use crate::{
    accounts,
    http::{
        body::Json,
        caller::{AccountsRead, Call, Caller},
        problem::Problem,
        workers,
    },
    openapi::tag::Tag,
    types::{enum_string::EnumString, timestamp::Timestamp},
};
use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::{AccountId, LimitSource, LimitUsage};
use platforms::{Adapter, Cap, Counted, Window};
use poem_openapi::{Object, OpenApi, param::Path};
use serde_json::Value;
use std::collections::HashMap;
use store::accounts::{Account, limits as counts};
use workflows::worker_request::ReadUsage;

/// The operation on limits.
pub struct Limits;

#[OpenApi(tag = "Tag::Accounts")]
impl Limits {
    /// Get an account's limits
    ///
    /// Returns how much of each limit of the platform the account has used, and when it can take the next post.
    /// Asks the platform where it tells; other documented limits are counted from what was published here. Scope
    /// `accounts:read`.
    #[oai(path = "/social-accounts/:id/limits", method = "get", operation_id = "getSocialAccountLimits")]
    async fn limits(
        &self,
        caller: Caller<AccountsRead>,
        id: Path<String>,
    ) -> Result<Json<AccountLimits>, Problem> {
        Ok(Json(read(&caller.call(), &id).await?))
    }
}

/// Reads the limits of an account.
///
/// # Errors
///
/// If the platform was asked and refused, or did not answer.
pub async fn read(call: &Call<'_>, id: &str) -> Result<AccountLimits, Problem> {
    let account = accounts::find(call, id).await?;
    let platform = accounts::platform(&account)?;
    let told = match platform.usage {
        Some(_) => {
            let usage = workers::request(call, ReadUsage(accounts::account_ref(call, &account))).await?;
            usage.map_err(|failure| accounts::refused(&account.platform, failure))?
        }
        None => Vec::new(),
    };
    let now = call.now();
    let mut limits: Vec<_> = told.into_iter().map(|usage| AccountLimit::told(usage, now)).collect();
    for cap in platform.caps {
        let counted = counted(call, account.id, cap, now).await?;
        match limits.iter_mut().find(|limit| limit.name == cap.name) {
            // The platform tells no time. Ours is right unless the account also publishes elsewhere.
            Some(limit) => limit.resets_at = limit.resets_at.or(counted.resets_at),
            None => limits.push(counted),
        }
    }
    let rests = counts::rests(call.db(), call.access(), &[account.id], now).await?;
    let rests_until = rests.get(&account.id).copied();
    // A limit of some posts leaves room for others.
    let is_of_some =
        |limit: &AccountLimit| platform.caps.iter().any(|cap| cap.name == limit.name && with(cap).is_some());
    let exhausted = limits
        .iter()
        .filter(|limit| limit.remaining == 0 && !is_of_some(limit))
        .map(|limit| limit.resets_at.map_or_else(|| now + seconds(limit.window_seconds), |Timestamp(at)| at));
    let next_possible_at = exhausted.chain(rests_until).max();
    Ok(AccountLimits {
        limits,
        rests_until: rests_until.map(Timestamp::from),
        next_possible_at: next_possible_at.map(Timestamp::from),
    })
}

/// Counts what was published in the window of a cap that contains `now`.
async fn counted(
    call: &Call<'_>,
    account: AccountId,
    cap: &Cap,
    now: DateTime<Utc>,
) -> Result<AccountLimit, Problem> {
    let (start, end) = bounds(cap.window, now);
    let counts = counts::Countable {
        posts: cap.counts != Counted::Replies,
        replies: matches!(cap.counts, Counted::Replies | Counted::All),
        of_app: cap.counts == Counted::PostsOfApp,
        with: with(cap),
    };
    let found = counts::published(call.db(), call.access(), account, counts, start, cap.limit).await?;
    let used = found.map_or(0, |count| count.used);
    let resets_at = match cap.window {
        Window::Rolling(_) => found.map(|count| count.oldest + (now - start)),
        Window::Day(_) => Some(end),
    };
    Ok(AccountLimit {
        name: cap.name.to_owned(),
        used,
        limit: cap.limit.into(),
        remaining: u64::from(cap.limit).saturating_sub(used),
        window_seconds: (end - start).num_seconds().unsigned_abs(),
        resets_at: resets_at.map(Timestamp::from),
        source: EnumString::of(LimitSource::Counted.as_str()),
        as_of: now.into(),
    })
}

/// Returns the setting, and the value, that the posts of a cap have.
fn with(cap: &Cap) -> Option<(&'static str, &'static str)> {
    match cap.counts {
        Counted::PostsWith { setting, value } => Some((setting, value)),
        _ => None,
    }
}

/// Returns the start and the end of a window that contains a time; a rolling one ends at it.
fn bounds(window: Window, at: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
    match window {
        Window::Rolling(length) => (at - TimeDelta::from_std(length).expect("a window of days"), at),
        Window::Day(zone) => {
            let zone: Tz = zone.parse().expect("a cap names a time zone");
            let day = at.with_timezone(&zone).date_naive();
            let midnight = |day: chrono::NaiveDate| {
                let local = day.and_time(NaiveTime::MIN).and_local_timezone(zone);
                // Clocks change later in the night in the zones that caps name.
                local.earliest().expect("a day has a midnight").to_utc()
            };
            (midnight(day), midnight(day + Days::new(1)))
        }
    }
}

fn seconds(count: u64) -> TimeDelta {
    TimeDelta::seconds(i64::try_from(count).unwrap_or(i64::MAX / 1000))
}

/// Returns why accounts of one platform can't take a post with these settings, or a reply, at a time, by account: they rest,
/// or a documented limit is used up by what was published and what is planned. Asks no platform.
pub(crate) async fn exhausted(
    call: &Call<'_>,
    accounts: &[Account],
    settings: &Value,
    is_reply: bool,
    due: DateTime<Utc>,
) -> Result<HashMap<AccountId, String>, Problem> {
    let ids: Vec<_> = accounts.iter().map(|account| account.id).collect();
    let mut reasons = HashMap::new();
    if let Some(platform) = accounts.first().and_then(|account| platforms::get(&account.platform)) {
        let concerns = |cap: &&Cap| cap.counts.counts(settings, is_reply);
        // Planned replies are not counted.
        let caps = platform.caps.iter().filter(concerns).filter(|cap| cap.counts != Counted::Replies);
        for cap in caps {
            let (start, end) = bounds(cap.window, due);
            let planned = counts::planned(call.db(), call.access(), &ids, with(cap), start, end).await?;
            for (account, count) in planned.into_iter().filter(|(_, count)| *count >= cap.limit.into()) {
                reasons.entry(account).or_insert_with(|| full(platform, cap, count));
            }
        }
    }
    for (account, until) in counts::rests(call.db(), call.access(), &ids, due).await? {
        let until = domain::event::timestamp(until);
        reasons.insert(
            account,
            format!("The platform throttles the account; the next post is tried at {until}"),
        );
    }
    Ok(reasons)
}

/// Usage of the documented limit that an account is nearest to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Main posts that are published or planned in the window.
    pub used: u64,
    /// Number allowed in the window.
    pub limit: u64,
    /// The window.
    pub window: Window,
}

/// Returns what each account has left, as counted here: no platform is asked. An account without documented limits is
/// not in the map.
pub async fn left(
    call: &Call<'_>,
    accounts: &[(AccountId, &str)],
) -> Result<HashMap<AccountId, Left>, Problem> {
    let mut by_platform = HashMap::<&str, Vec<AccountId>>::new();
    for (id, platform) in accounts {
        by_platform.entry(platform).or_default().push(*id);
    }
    let mut nearest = HashMap::<AccountId, Left>::new();
    for (platform, ids) in by_platform {
        let caps = platforms::get(platform).map_or(&[][..], |platform| platform.caps);
        for cap in caps.iter().filter(|cap| cap.counts.counts(&Value::Null, false)) {
            let (start, end) = bounds(cap.window, call.now());
            let counts = counts::planned(call.db(), call.access(), &ids, None, start, end).await?;
            for id in &ids {
                let used = counts.get(id).copied().unwrap_or(0);
                let left = Left { used, limit: cap.limit.into(), window: cap.window };
                let known = nearest.entry(*id).or_insert(left);
                if left.used * known.limit > known.used * left.limit {
                    *known = left;
                }
            }
        }
    }
    Ok(nearest)
}

/// Returns until when accounts rest because their platform throttled them; those that don't are not in the map.
pub async fn resting(
    call: &Call<'_>,
    accounts: &[AccountId],
) -> Result<HashMap<AccountId, DateTime<Utc>>, Problem> {
    Ok(counts::rests(call.db(), call.access(), accounts, call.now()).await?)
}

fn full(platform: &Adapter, cap: &Cap, count: u64) -> String {
    let within = match cap.window {
        Window::Rolling(length) => match length.as_secs() / 60 {
            1 => "a minute".to_owned(),
            60 => "an hour".to_owned(),
            minutes if minutes % 60 == 0 => format!("{} hours", minutes / 60),
            minutes => format!("{minutes} minutes"),
        },
        Window::Day(zone) => format!("a day ({zone})"),
    };
    format!(
        "{} takes {} {} in {within}, and {count} are published or planned at that time",
        platform.name,
        cap.limit,
        cap.name.replace('_', " ")
    )
}

/// The limits of an account.
#[derive(Debug, Object)]
pub struct AccountLimits {
    /// The limits; empty if the platform documents none that can be counted.
    pub limits: Vec<AccountLimit>,
    /// Until when no post of the account is attempted because its platform throttled one; null if it did not.
    #[oai(nullable)]
    pub rests_until: Option<Timestamp>,
    /// When the account can take the next post, at the latest; null if it can take one now. Limits of some posts only,
    /// such as `reels`, are left out.
    #[oai(nullable)]
    pub next_possible_at: Option<Timestamp>,
}

/// Usage of one limit.
#[derive(Debug, Object)]
pub struct AccountLimit {
    /// Name, for example `posts`.
    pub name: String,
    /// Number used in the window.
    pub used: u64,
    /// Number allowed in the window.
    pub limit: u64,
    /// Number left in the window.
    pub remaining: u64,
    /// Length of the window in seconds.
    pub window_seconds: u64,
    /// When the window ends; of a rolling window, when its oldest post leaves it. Null if that is unknown.
    #[oai(nullable)]
    pub resets_at: Option<Timestamp>,
    /// `platform`: the platform was asked. `observed`: from the rate-limit headers of its answer. `counted`: from
    /// what was published through this service.
    pub source: EnumString<LimitSource>,
    /// When this was so.
    pub as_of: Timestamp,
}

impl AccountLimit {
    fn told(usage: LimitUsage, now: DateTime<Utc>) -> Self {
        let source = if usage.is_observed { LimitSource::Observed } else { LimitSource::Platform };
        Self {
            name: usage.name,
            used: usage.used,
            limit: usage.limit,
            remaining: usage.limit.saturating_sub(usage.used),
            window_seconds: usage.window_seconds,
            resets_at: usage.resets_at.map(Timestamp::from),
            source: EnumString::of(source.as_str()),
            as_of: now.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_a_zone_has_its_length() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let zone = Window::Day("America/Los_Angeles");
        for (now, start, end) in [
            ("2026-11-23T07:59:59Z", "2026-11-22T08:00:00Z", "2026-11-23T08:00:00Z"),
            ("2026-11-23T08:00:00Z", "2026-11-23T08:00:00Z", "2026-11-24T08:00:00Z"),
            // Clocks are set back.
            ("2026-11-01T12:00:00Z", "2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z"),
        ] {
            assert_eq!(bounds(zone, at(now)), (at(start), at(end)), "{now}");
        }
    }

    #[test]
    fn the_zone_of_each_cap_is_known() {
        for cap in platforms::all().iter().flat_map(|platform| platform.caps) {
            let (start, end) = bounds(cap.window, DateTime::UNIX_EPOCH);
            assert!(start < end, "{}", cap.name);
        }
    }
}
