//! Engagement metrics of published targets.
//!
//! Metrics are fetched on request and on a schedule whose interval grows with the post's age. An account has one
//! call at a time, and no more in this run as soon as its platform throttles or fails.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, heartbeat::with_heartbeat, share::Shares};
use chrono::TimeDelta;
use domain::Failure;
use futures::{StreamExt, TryStreamExt, stream};
use platforms::{Collection, Feature};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::usage::metrics::{CollectionSchedule, Due, Snapshot};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use tracing::info;
use workflows::{
    activities::{AccountRef, CollectionSummary, MetricsRequest, definition},
    collect_metrics::COLLECTION_SPAN,
};

/// Schedule of collecting: hourly at first, then after a sixth of the post's age; about forty calls in a month.
const SCHEDULE: CollectionSchedule = CollectionSchedule {
    max_age: TimeDelta::days(30),
    min_interval: Duration::from_secs(60 * 60),
    per_hour: Duration::from_secs(10 * 60),
    per_account: 20,
    // Of a round; a run has as many rounds as its time allows.
    per_platform: 1000,
};
/// Number of accounts of a platform that are called concurrently.
const CONCURRENCY: usize = 8;
/// Number of snapshots that one statement deletes.
const BATCH: i64 = 1000;
/// Maximum number of such statements of a `collect_account`.
const BATCHES: u64 = 100;

/// Activities that fetch metrics.
pub(crate) struct Metrics {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Arc<Shares>,
}

#[activities]
impl Metrics {
    #[activity(definition = definition::FetchMetrics)]
    pub(crate) async fn fetch_metrics(
        self: Arc<Self>,
        _cx: ActivityContext,
        request: MetricsRequest,
    ) -> Result<Result<(), Failure>, ActivityError> {
        let _share = self.shares.admit(request.account_ref.owner.org)?;
        Ok(fetch(&self.deps, &request).await?)
    }

    #[activity(definition = definition::CollectMetrics)]
    pub(crate) async fn collect_metrics(
        self: Arc<Self>,
        cx: ActivityContext,
        platform: String,
    ) -> Result<CollectionSummary, ActivityError> {
        let deps = &self.deps;
        let analytics = (deps.engine.adapters)(&platform).and_then(|platform| platform.analytics);
        let analytics = analytics.filter(|analytics| analytics.collection() != Collection::OnRequest);
        let Some(analytics) = analytics else { return Ok(CollectionSummary::default()) };
        let has_replies = analytics.covers_replies();
        let collecting = async {
            let until = Instant::now() + COLLECTION_SPAN;
            let mut rounds = Vec::new();
            // Each round moves what it was given behind what is due, so the next one starts where it ended.
            loop {
                let (schedule, now) = (schedule(deps), (deps.engine.now)());
                let due = store::usage::metrics::due(&deps.engine.db, &platform, has_replies, schedule, now)
                    .await?;
                let is_last = (due.len() as i64) < schedule.per_platform;
                let mut accounts = BTreeMap::<_, Vec<_>>::new();
                for due in due {
                    accounts.entry(due.account.0).or_default().push(request(due, &platform));
                }
                let summaries = stream::iter(accounts.into_values())
                    .map(|requests| collect_account(deps, &self.shares, requests, until))
                    .buffer_unordered(CONCURRENCY);
                rounds.extend(summaries.try_collect::<Vec<CollectionSummary>>().await?);
                if is_last || Instant::now() >= until {
                    break;
                }
            }
            Ok(rounds.into_iter().sum())
        };
        with_heartbeat(&cx, collecting).await
    }

    #[activity(definition = definition::PruneMetrics)]
    pub(crate) async fn prune_metrics(self: Arc<Self>, cx: ActivityContext) -> Result<u64, ActivityError> {
        let deps = &self.deps;
        let pruning = async {
            let mut pruned = 0;
            for _ in 0..BATCHES {
                let batch = store::usage::metrics::prune(&deps.engine.db, BATCH, (deps.engine.now)()).await?;
                pruned += batch;
                if batch < BATCH.unsigned_abs() {
                    break;
                }
            }
            Ok(pruned)
        };
        with_heartbeat(&cx, pruning).await
    }
}

fn request(due: Due, platform: &str) -> MetricsRequest {
    let account_ref = AccountRef { account: due.account, owner: due.owner, platform: platform.to_owned() };
    MetricsRequest { target: due.target, account_ref, platform_post_id: due.platform_post_id }
}

/// Returns the schedule at the time scale of this process.
fn schedule(deps: &Deps) -> CollectionSchedule {
    let scale = deps.engine.time_scale;
    let (min_interval, per_hour) = (scale.scale(SCHEDULE.min_interval), scale.scale(SCHEDULE.per_hour));
    CollectionSchedule { min_interval, per_hour, ..SCHEDULE }
}

/// Fetches the metrics of one account's targets, one after the other.
async fn collect_account(
    deps: &Arc<Deps>,
    shares: &Shares,
    requests: Vec<MetricsRequest>,
    until: Instant,
) -> anyhow::Result<CollectionSummary> {
    let mut collected =
        CollectionSummary { left: u32::try_from(requests.len())?, ..CollectionSummary::default() };
    let Some(first) = requests.first() else { return Ok(collected) };
    let _share = loop {
        match shares.take(first.account_ref.owner.org, (deps.engine.jitter)()) {
            Ok(share) => break share,
            // The next run goes on with them.
            Err(wait) if Instant::now() + wait >= until => return Ok(collected),
            Err(wait) => tokio::time::sleep(wait).await,
        }
    };
    for request in &requests {
        if Instant::now() >= until {
            break;
        }
        let outcome = fetch(deps, request).await?;
        collected.left -= 1;
        match outcome {
            Ok(()) => collected.read += 1,
            Err(failure) => {
                collected.failed += 1;
                // A deleted post says nothing about the others; throttling, a refused token or a transient error
                // would repeat for all of them.
                if !failure.code.is_permanent() {
                    let left = requests.len() - collected.left as usize;
                    let targets: Vec<_> = requests[left..].iter().map(|request| request.target).collect();
                    let (owner, now) = (request.account_ref.owner, (deps.engine.now)());
                    store::usage::metrics::postpone(&deps.engine.db, owner, &targets, schedule(deps), now)
                        .await?;
                    break;
                }
            }
        }
    }
    Ok(collected)
}

/// Fetches and stores a target's metrics.
async fn fetch(deps: &Arc<Deps>, request: &MetricsRequest) -> anyhow::Result<Result<(), Failure>> {
    let (owner, target) = (request.account_ref.owner, request.target);
    let now = (deps.engine.now)();
    store::usage::metrics::mark_requested(&deps.engine.db, owner, target, schedule(deps), now).await?;
    let outcome = deps
        .call(&request.account_ref, |platform, cx| {
            let id = request.platform_post_id.clone();
            Box::pin(async move {
                if let Some(why) = platform.explain(Feature::Analytics, &cx.grant.scopes) {
                    return Err(Failure::rejected(403, why));
                }
                match platform.analytics {
                    Some(analytics) => analytics.metrics(cx, &id).await,
                    None => Err(Failure::rejected(501, format!("{} has no metrics", platform.id))),
                }
            })
        })
        .await?;
    match outcome.answer {
        Ok(metrics) => {
            let now = (deps.engine.now)();
            store::usage::metrics::record(
                &deps.engine.db,
                owner,
                &Snapshot { target, metrics, captured_at: now },
            )
            .await?;
            store::usage::metrics::downsample(&deps.engine.db, owner, target, now).await?;
            Ok(Ok(()))
        }
        Err(failure) => {
            info!(
                target.id = %target, org.id = %owner.org, platform = request.account_ref.platform,
                error.code = %failure.code, "No metrics of target {target}: {failure}"
            );
            Ok(Err(failure))
        }
    }
}
