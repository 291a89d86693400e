//! Reading a published target's engagement, and keeping what its platform told.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, voice};
use domain::Failure;
use std::sync::Arc;
use store::metrics::{self as facts, Snapshot};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use workflows::activities::{Reading, definition};

/// The activities of engagement.
pub(crate) struct Metrics {
    pub(crate) deps: Arc<Deps>,
}

#[activities]
impl Metrics {
    #[activity(definition = definition::ReadMetrics)]
    pub(crate) async fn read_metrics(
        self: Arc<Self>,
        _cx: ActivityContext,
        reading: Reading,
    ) -> Result<Result<(), Failure>, ActivityError> {
        let deps = &self.deps;
        let said = voice::ask(deps, &reading.voice, |cx| {
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
                let snapshot = Snapshot { target: reading.target, metrics, captured_at: (deps.now)() };
                facts::record(&deps.db, reading.voice.owner, &snapshot).await?;
                Ok(Ok(()))
            }
            Err(failure) => {
                info!(
                    target.id = %reading.target, org.id = %reading.voice.owner.org, platform = reading.voice.platform,
                    error.code = %failure.code, "No figures of target {}: {failure}", reading.target
                );
                Ok(Err(failure))
            }
        }
    }
}
