//! Reading a published target's engagement, and keeping what its platform told.
//!
//! Somebody asks, or the clock does: what was published of late is asked about again and again, ever more
//! rarely. An account is asked one thing at a time, and left alone as soon as its platform has enough.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, publishing::alive, share::Shares, voice};
use chrono::TimeDelta;
use domain::Failure;
use futures::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::metrics::{self as facts, Due, Rhythm, Snapshot};
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
const RHYTHM: Rhythm = Rhythm {
    horizon: TimeDelta::days(30),
    least: Duration::from_secs(60 * 60),
    per_hour: Duration::from_secs(10 * 60),
    per_account: 20,
    per_platform: 1000,
};
/// Accounts of a platform that are asked side by side.
const HANDS: usize = 8;
/// Snapshots that one statement forgets.
const BATCH: i64 = 1000;
/// How many such statements a round makes at most.
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
            let (least, per_hour) =
                (deps.time_scale.scale(RHYTHM.least), deps.time_scale.scale(RHYTHM.per_hour));
            let rhythm = Rhythm { least, per_hour, ..RHYTHM };
            let mut accounts = BTreeMap::<_, Vec<_>>::new();
            for due in facts::due(&deps.db, &platform, rhythm, (deps.now)()).await? {
                accounts.entry(due.account.0).or_default().push(reading(due, &platform));
            }
            let until = Instant::now() + SPAN;
            let rounds = stream::iter(accounts.into_values())
                .map(|readings| round(deps, readings, until))
                .buffer_unordered(HANDS);
            let rounds: Vec<CollectionSummary> = rounds.try_collect().await?;
            Ok(rounds.into_iter().sum())
        };
        alive(&cx, collecting).await
    }

    #[activity(definition = definition::PruneMetrics)]
    pub(crate) async fn prune_metrics(self: Arc<Self>, cx: ActivityContext) -> Result<u64, ActivityError> {
        let deps = &self.deps;
        let forgetting = async {
            let mut forgotten = 0;
            for _ in 0..BATCHES {
                let batch = facts::forget(&deps.db, BATCH, (deps.now)()).await?;
                forgotten += batch;
                if batch < BATCH.unsigned_abs() {
                    break;
                }
            }
            Ok(forgotten)
        };
        alive(&cx, forgetting).await
    }
}

fn reading(due: Due, platform: &str) -> MetricsRequest {
    let account_ref = AccountRef { account: due.account, owner: due.owner, platform: platform.to_owned() };
    MetricsRequest { target: due.target, account_ref, platform_post_id: due.platform_post_id }
}

/// Asks one account about its targets, one after the other.
async fn round(
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
    facts::ask(&deps.db, owner, target, (deps.now)()).await?;
    let said = voice::ask(deps, &reading.account_ref, |cx| {
        let id = reading.platform_post_id.clone();
        Box::pin(async move {
            match cx.platform.analytics() {
                Some(analytics) => analytics.metrics(cx, &id).await,
                None => Err(Failure::rejected(501, format!("{} tells no metrics", cx.platform.id()))),
            }
        })
    })
    .await?;
    match said.answer {
        Ok(metrics) => {
            let now = (deps.now)();
            facts::record(&deps.db, owner, &Snapshot { target, metrics, captured_at: now }).await?;
            facts::thin(&deps.db, owner, target, now).await?;
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
