//! Metrics of posts and videos: <https://developers.facebook.com/docs/graph-api/reference/insights>.
//!
//! Meta removes metrics, and one removed name fails the call for all names. Names are then asked for one by one, and
//! what was removed is remembered, so that the calls for other posts leave it out.

use super::{Insights, get};
use crate::{Result, Session};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

/// Time for which a removed name is not asked for.
const REMEMBERED: TimeDelta = TimeDelta::days(1);
/// Maximum number of names that are remembered.
const MAX_REMEMBERED: usize = 1000;

/// Times at which names were found to be removed, by the API's address, which is the sandbox's in test mode, and name.
type Removed = HashMap<(String, &'static str), DateTime<Utc>>;

/// The names that this process found to be removed.
static REMOVED: LazyLock<Mutex<Removed>> = LazyLock::new(Mutex::default);

/// Returns metrics by name, without those that Meta has removed.
pub(super) async fn read(cx: &Session<'_>, path: &str, names: &[&'static str]) -> Result<Insights> {
    let ask = |metric: String| get(cx, path).query(&[("metric", metric)]).send::<Insights>();
    let names = asked(cx, names);
    if names.is_empty() {
        return Ok(Insights::default());
    }
    match ask(names.join(",")).await {
        Err(failure) if is_refused(&failure) => {}
        answer => return answer,
    }
    let mut all = Insights::default();
    let (mut refused, mut has_any) = (Vec::new(), false);
    for name in names {
        match ask(name.to_owned()).await {
            Ok(one) => {
                all.join(one);
                has_any = true;
            }
            Err(failure) if is_refused(&failure) => refused.push((name, failure)),
            Err(failure) => return Err(failure),
        }
    }
    let is_there = has_any || refused.iter().any(|(_, failure)| failure.code == ErrorCode::Rejected(400));
    // An object without a single metric may be another one than it seems to be.
    if has_any {
        remember(cx, refused.iter().filter(|(_, failure)| is_removed(failure)).map(|(name, _)| *name));
    }
    match refused.pop().filter(|_| !is_there) {
        Some((_, failure)) => Err(failure),
        None => Ok(all),
    }
}

/// Returns true if the failure may be that of a name. Some objects answer a removed one as if they did not exist.
fn is_refused(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Rejected(400 | 404))
}

/// Returns true if an object that has other metrics refuses a name in the words for one that no object has. For other
/// words, another post may have it.
fn is_removed(failure: &Failure) -> bool {
    let words = ["must be a valid insights metric", "must be one of the following values"];
    failure.code == ErrorCode::Rejected(404) || words.iter().any(|words| failure.message.contains(words))
}

/// Returns the names that were not found to be removed lately.
fn asked(cx: &Session<'_>, names: &[&'static str]) -> Vec<&'static str> {
    let (api, now) = (cx.transport.rewrite_url(super::API), (cx.now)());
    let mut removed = REMOVED.lock().unwrap_or_else(PoisonError::into_inner);
    removed.retain(|_, at| now - *at < REMEMBERED);
    names.iter().copied().filter(|name| !removed.contains_key(&(api.clone(), *name))).collect()
}

/// Remembers removed names.
fn remember(cx: &Session<'_>, names: impl Iterator<Item = &'static str>) {
    let (api, now) = (cx.transport.rewrite_url(super::API), (cx.now)());
    let mut removed = REMOVED.lock().unwrap_or_else(PoisonError::into_inner);
    for name in names {
        if removed.len() < MAX_REMEMBERED {
            removed.insert((api.clone(), name), now);
        }
    }
}
