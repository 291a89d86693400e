//! `/metrics`, for Prometheus.
//!
//! Events are recorded where they happen; the backlog is read from the database when it is asked for, by processes with
//! the API, each of which shows the same. So alerts take the maximum.

use crate::readiness::Probes;
use anyhow::Context;
use domain::Mode;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use std::{sync::LazyLock, time::Duration};
use store::{
    Pool,
    usage::backlog::{self, Backlog, Count},
};
use telemetry::{
    health::Outcome,
    metrics::{self, Kind, Metric},
};
use tokio::time::{Instant, interval, timeout};

/// Age up to which the backlog is shown again.
const BACKLOG_AGE: Duration = Duration::from_secs(5);
/// Time limit of reading the backlog, below the usual timeout of a scrape (10 s).
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which recorded values are summed up.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Media type of the text format, <https://prometheus.io/docs/instrumenting/exposition_formats/>.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Bounds of the SDK's latencies, in seconds.
const SDK_SECONDS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 86_400.0];

/// Ids of the platforms whose grants are renewed ahead of expiry.
static RENEWED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let renewed = platforms::all().iter().filter(|platform| platform.auth.renewal_age().is_some());
    renewed.map(|platform| platform.id.to_owned()).collect()
});

/// The metrics of the process.
pub(crate) struct Exporter {
    handle: PrometheusHandle,
    process: Collector,
    probes: Probes,
    /// When the backlog was read. The lock is held meanwhile.
    read_at: tokio::sync::Mutex<Option<Instant>>,
}

impl Exporter {
    /// Starts to record.
    pub(crate) fn install(probes: &Probes) -> anyhow::Result<Self> {
        let mut builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Prefix("temporal_".to_owned()), SDK_SECONDS)?;
        for Metric { name, kind, .. } in metrics::ALL {
            if let Kind::Histogram(bounds) = kind {
                builder = builder.set_buckets_for_metric(Matcher::Full((*name).to_owned()), bounds)?;
            }
        }
        let handle = builder.install_recorder().context("a recorder of metrics is already installed")?;
        metrics::describe();
        metrics::build(env!("CARGO_PKG_VERSION"), probes.role);
        let process = Collector::default();
        process.describe();
        let upkeep = handle.clone();
        tokio::spawn(async move {
            let mut ticks = interval(UPKEEP_INTERVAL);
            loop {
                ticks.tick().await;
                upkeep.run_upkeep();
            }
        });
        Ok(Self { handle, process, probes: probes.clone(), read_at: tokio::sync::Mutex::default() })
    }

    /// Returns the metrics as text.
    pub(crate) async fn render(&self) -> String {
        let database = self.probes.database.get();
        let backlog = async {
            if let Some((db, true)) = database {
                self.read_backlog(db).await;
            }
        };
        // At once, since either may wait for its time limit.
        let (report, ()) = tokio::join!(self.probes.health.ready(), backlog);
        for (name, outcome) in report.checks {
            metrics::check(name, outcome == Outcome::Ok);
        }
        self.process.collect();
        if let Some((db, _)) = database {
            let idle = db.num_idle();
            let used = (db.size() as usize).saturating_sub(idle);
            metrics::connections(used, idle, db.options().get_max_connections());
        }
        self.handle.render()
    }

    async fn read_backlog(&self, db: &Pool) {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|at| at.elapsed() < BACKLOG_AGE) {
            return;
        }
        let read = timeout(BACKLOG_TIMEOUT, backlog::read(db, &RENEWED)).await;
        show(read.ok().and_then(Result::ok));
        *read_at = Some(Instant::now());
    }
}

/// Sets the gauges of the backlog; to NaN if it is unknown, which no alert compares with success.
fn show(backlog: Option<Backlog>) {
    let set =
        |metric, part: fn(&Backlog) -> f64| metrics::set(metric, backlog.as_ref().map_or(f64::NAN, part));
    set(metrics::OUTBOX_MESSAGES, |backlog| backlog.outbox.number as f64);
    set(metrics::OUTBOX_AGE, |backlog| backlog.outbox.age_seconds);
    set(metrics::OUTBOX_PARKED, |backlog| backlog.parked as f64);
    set(metrics::OVERDUE_POSTS, |backlog| backlog.posts.number as f64);
    set(metrics::OVERDUE_POST_AGE, |backlog| backlog.posts.age_seconds);
    set(metrics::OVERDUE_TARGETS, |backlog| backlog.targets.number as f64);
    set(metrics::OVERDUE_TARGET_AGE, |backlog| backlog.targets.age_seconds);
    set(metrics::OVERDUE_DELIVERIES, |backlog| backlog.deliveries.number as f64);
    set(metrics::OVERDUE_DELIVERY_AGE, |backlog| backlog.deliveries.age_seconds);
    set(metrics::UNRENEWED_ACCOUNTS, |backlog| backlog.unrenewed as f64);
    // Each, so that an empty queue is 0 and not what it was.
    for platform in platforms::all() {
        for mode in Mode::ALL {
            let of_it = |counts: fn(&Backlog) -> &[Count]| {
                let found = |backlog| {
                    let mut counts = counts(backlog).iter();
                    counts.find(|count| count.platform == platform.id && count.mode == *mode)
                };
                backlog
                    .as_ref()
                    .map_or(f64::NAN, |backlog| found(backlog).map_or(0, |count| count.number) as f64)
            };
            let set = |metric, number| metrics::set_of(metric, platform.id, mode.as_str(), number);
            set(metrics::DUE, of_it(|backlog| &backlog.due));
            set(metrics::HELD_APPS, of_it(|backlog| &backlog.held_apps));
        }
    }
    metrics::set(metrics::BACKLOG_READ, f64::from(u8::from(backlog.is_some())));
}
