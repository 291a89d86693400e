//! Reading a published target's engagement, and keeping what its platform told.
//!
//! Somebody asks, or the clock does: what was published of late is asked about again and again, ever more
//! rarely. An account is asked one thing at a time, and left alone as soon as its platform has enough.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, heartbeat::with_heartbeat, share::Shares};
use chrono::TimeDelta;
use domain::Failure;
use futures::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::metrics::{CollectionSchedule, Due, Snapshot};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use tracing::info;
use workflows::{
    activities::{AccountRef, CollectionSummary, MetricsRequest, definition},
    collect_metrics::SPAN,
};

/// How often what nobody asks about is asked about: hourly at first, then after a sixth of its age. In a
/// month that makes some forty calls.
const SCHEDULE: CollectionSchedule = CollectionSchedule {
    horizon: TimeDelta::days(30),
    least: Duration::from_secs(60 * 60),
    per_hour: Duration::from_secs(10 * 60),
    per_account: 20,
    per_platform: 1000,
};
/// Accounts of a platform that are asked side by side.
const CONCURRENCY: usize = 8;
/// Snapshots that one statement forgets.
const BATCH: i64 = 1000;
/// How many such statements a collect_account makes at most.
const BATCHES: u64 = 100;

/// The activities of engagement.
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
        reading: MetricsRequest,
    ) -> Result<Result<(), Failure>, ActivityError> {
        let _share = self.shares.admit(reading.account_ref.owner.org)?;
        Ok(read(&self.deps, &reading).await?)
    }

    #[activity(definition = definition::CollectMetrics)]
    pub(crate) async fn collect_metrics(
        self: Arc<Self>,
        cx: ActivityContext,
        platform: String,
    ) -> Result<CollectionSummary, ActivityError> {
        let deps = &self.deps;
        let collecting = async {
            let (least, per_hour) = (
                deps.engine.time_scale.scale(SCHEDULE.least),
                deps.engine.time_scale.scale(SCHEDULE.per_hour),
            );
            let rhythm = CollectionSchedule { least, per_hour, ..SCHEDULE };
            let mut accounts = BTreeMap::<_, Vec<_>>::new();
            for due in store::metrics::due(&deps.engine.db, &platform, rhythm, (deps.engine.now)()).await? {
                accounts.entry(due.account.0).or_default().push(reading(due, &platform));
            }
            let until = Instant::now() + SPAN;
            let rounds = stream::iter(accounts.into_values())
                .map(|readings| collect_account(deps, readings, until))
                .buffer_unordered(CONCURRENCY);
            let rounds: Vec<CollectionSummary> = rounds.try_collect().await?;
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
                let batch = store::metrics::prune(&deps.engine.db, BATCH, (deps.engine.now)()).await?;
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

fn reading(due: Due, platform: &str) -> MetricsRequest {
    let account_ref = AccountRef { account: due.account, owner: due.owner, platform: platform.to_owned() };
    MetricsRequest { target: due.target, account_ref, platform_post_id: due.platform_post_id }
}

/// Asks one account about its targets, one after the other.
async fn collect_account(
    deps: &Arc<Deps>,
    readings: Vec<MetricsRequest>,
    until: Instant,
) -> anyhow::Result<CollectionSummary> {
    let mut collected =
        CollectionSummary { left: u32::try_from(readings.len())?, ..CollectionSummary::default() };
    for reading in &readings {
        if Instant::now() >= until {
            break;
        }
        let outcome = read(deps, reading).await?;
        collected.left -= 1;
        match outcome {
            Ok(()) => collected.read += 1,
            Err(failure) => {
                collected.failed += 1;
                // A post that is gone says nothing of the others; a platform that throttles, refuses the
                // token or has a bad moment would say the same of all.
                if !failure.code.is_permanent() {
                    break;
                }
            }
        }
    }
    Ok(collected)
}

/// Reads a target's figures and keeps them; or why there are none.
async fn read(deps: &Arc<Deps>, reading: &MetricsRequest) -> anyhow::Result<Result<(), Failure>> {
    let (owner, target) = (reading.account_ref.owner, reading.target);
    store::metrics::mark_requested(&deps.engine.db, owner, target, (deps.engine.now)()).await?;
    let outcome2 = deps
        .call(&reading.account_ref, |cx| {
            let id = reading.platform_post_id.clone();
            Box::pin(async move {
                match cx.platform.analytics {
                    Some(analytics) => analytics.metrics(cx, &id).await,
                    None => Err(Failure::rejected(501, format!("{} tells no metrics", cx.platform.id))),
                }
            })
        })
        .await?;
    match outcome2.answer {
        Ok(metrics) => {
            let now = (deps.engine.now)();
            store::metrics::record(&deps.engine.db, owner, &Snapshot { target, metrics, captured_at: now })
                .await?;
            store::metrics::downsample(&deps.engine.db, owner, target, now).await?;
            Ok(Ok(()))
        }
        Err(failure) => {
            info!(
                target.id = %target, org.id = %owner.org, platform = reading.account_ref.platform,
                error.code = %failure.code, "No figures of target {target}: {failure}"
            );
            Ok(Err(failure))
        }
    }
}
