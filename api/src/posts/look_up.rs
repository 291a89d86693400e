//! Asking platforms for what only they know about a post: `look_up` of `POST /posts/validate`.
//!
//! Workers ask, for all accounts side by side, within a time that a person waits. A platform that does not answer in time,
//! or must not be asked now, refuses nothing: the account gets a warning. Each look-up costs its account calls that
//! publishing needs too, so that they are counted by account.

use crate::{
    accounts,
    http::{
        caller::Call,
        problem::{Issue, Problem, Segment},
        rate_limits::LOOK_UPS,
        workers,
    },
    posts::{checks::Finding, resolve::ResolvedPost},
};
use domain::{AccountId, Severity, Subject, event::timestamp};
use platforms::{Adapter, look_up::FAILED};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use store::{
    accounts::{Account, AccountStatus, limits},
    publishing::freezes,
    upkeep::vault,
    usage,
};
use tracing::warn;
use workflows::worker_request::LookUp;

/// Time that all look-ups of a request have together; with the check it answers within ten seconds.
const TIMEOUT: Duration = Duration::from_secs(9);
/// Maximum number of accounts that are looked up in a request.
const MAX_ACCOUNTS: usize = 50;

/// An account of a post that its platform is asked about.
struct Asked<'a> {
    account: &'a Account,
    platform: &'static Adapter,
    /// Index of the variant that it gets.
    variant: usize,
    /// Index of the text and settings that it gets.
    subject: usize,
}

/// Asks the platforms of a post's accounts, apart from those for which `findings` has an error already.
///
/// # Errors
///
/// If the database is unavailable.
pub(crate) async fn look_up(
    call: &Call<'_>,
    post: &ResolvedPost,
    findings: &[Finding],
) -> Result<Vec<Finding>, Problem> {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let refused: HashSet<_> = errors.flat_map(|finding| finding.accounts.iter().copied()).collect();
    let (mut subjects, mut wanted) = (Vec::new(), Vec::new());
    // A reply uses next to no settings, and what it replies to is known here.
    for (variant, own) in post.variants.iter().enumerate().filter(|(_, own)| !own.is_reply) {
        let Some(platform) = platforms::get(&own.accounts[0].platform) else { continue };
        let content = &own.content;
        let subject = Subject {
            text: content.containers[0].content.clone(),
            media: (!content.is_partial).then(|| content.media[0].clone()),
            settings: own.settings.clone(),
        };
        if !platform.publisher.looks_up(&subject) {
            continue;
        }
        let accounts = own.accounts.iter().filter(|account| !refused.contains(&account.id));
        let index = subjects.len();
        let aad = vault::aad_look_up(call.owner, platform.id);
        wanted.extend(accounts.map(|account| Asked { account, platform, variant, subject: index }));
        subjects.push(workers::seal(call.app, &subject, &aad));
    }
    let (mut asked, mut found) = (Vec::new(), Vec::new());
    let hindered = hindered(call, &wanted).await?;
    for one in wanted {
        match hindered.get(&one.account.id) {
            Some(why) => found.push(failed(post, &one, why)),
            None => asked.push(one),
        }
    }
    if asked.is_empty() {
        return Ok(found);
    }
    let request = LookUp {
        owner: call.owner,
        subjects,
        accounts: asked.iter().map(|one| (accounts::account_ref(call, one.account), one.subject)).collect(),
    };
    let answer = tokio::time::timeout(TIMEOUT, call.app.workers.call(request)).await;
    let reports = match answer {
        Ok(Ok(reports)) => reports,
        Ok(Err(reason)) => {
            warn!(%reason, "No look-up was answered");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let mut reports = reports.into_iter();
    for one in &asked {
        let Some(report) = reports.next().flatten() else {
            found.push(failed(post, one, "no worker answered in time"));
            continue;
        };
        for issue in report.issues {
            let place = |path: &[_]| post.path(&post.variants[one.variant], path);
            let finding = Finding::of(one.platform, issue, place);
            found.push(Finding { accounts: vec![one.account.id], ..finding });
        }
        if let Some(failure) = report.failure {
            found.push(failed(post, one, &failure.message));
        }
    }
    Ok(found)
}

/// Returns why some of the accounts are not asked about.
async fn hindered(call: &Call<'_>, wanted: &[Asked<'_>]) -> Result<HashMap<AccountId, String>, Problem> {
    let ids: Vec<_> = wanted.iter().map(|one| one.account.id).collect();
    let mut reasons = HashMap::new();
    if ids.is_empty() {
        return Ok(reasons);
    }
    let rests = limits::rests(call.db(), call.access(), &ids, call.now()).await?;
    let frozen = freezes::frozen(call.db(), call.access(), &ids).await?;
    let bucket = call.app.config.limits.in_force(LOOK_UPS);
    let mut count = 0;
    for one in wanted {
        let id = one.account.id;
        let why = if one.account.status != AccountStatus::Active {
            format!("the account is {}: it must be reconnected first", one.account.status)
        } else if let Some(until) = rests.get(&id) {
            format!("the platform throttles the account until {}", timestamp(*until))
        } else if frozen.contains(&id) {
            "an operator of the service has frozen publishing there".to_owned()
        } else if count == MAX_ACCOUNTS {
            format!("a request looks up {MAX_ACCOUNTS} accounts at most")
        } else {
            count += 1;
            let level = usage::count_one(call.db(), bucket, id.0, call.now()).await?;
            if !level.is_exceeded() {
                continue;
            }
            format!("the account was looked up too often; again from {}", timestamp(level.ends_at))
        };
        reasons.insert(id, why);
    }
    Ok(reasons)
}

/// The warning that an account's platform was not asked, or did not answer.
fn failed(post: &ResolvedPost, one: &Asked<'_>, why: &str) -> Finding {
    let index = post.accounts.iter().position(|account| account.id == one.account.id).unwrap_or_default();
    let message = format!("{} was not asked for what only it knows: {why}", one.platform.id);
    Finding {
        platform: one.platform.id,
        accounts: vec![one.account.id],
        severity: Severity::Warning,
        issue: Issue::new([Segment::from("accounts"), index.into()], FAILED, message),
    }
}
