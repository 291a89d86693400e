//! Metrics of Temporal's SDK, recorded beside Fanfare's own.
//!
//! The SDK can serve them on a port of its own; one page for both is easier to scrape and to protect. Names are
//! those of <https://docs.temporal.io/references/sdk-metrics>, with seconds and the suffixes of Prometheus.

use metrics::{Key, Label, Level, Metadata, with_recorder};
use std::{collections::HashMap, error::Error, fmt::Debug, sync::Arc, time::Duration};
use temporalio_common::telemetry::{
    METRIC_PREFIX, TaskQueueLabelStrategy, TelemetryOptions,
    metrics::{
        CoreMeter, Counter, CounterBase, Gauge, GaugeBase, GaugeF64, GaugeF64Base, Histogram, HistogramBase,
        HistogramDuration, HistogramDurationBase, HistogramF64, HistogramF64Base, MetricAttributable,
        MetricAttributes, MetricParameters, NewAttributes, TemporalMeter, UpDownCounter, UpDownCounterBase,
    },
};

/// Records the SDK's metrics with the recorder of the process.
#[derive(Debug)]
struct Meter;

/// Returns the meter for a client's connection.
pub fn for_client() -> TemporalMeter {
    TemporalMeter::new(Arc::new(Meter), NewAttributes::default(), TaskQueueLabelStrategy::UseNormal)
}

/// Returns the telemetry of the workers.
pub(crate) fn for_workers() -> TelemetryOptions {
    let meter: Arc<dyn CoreMeter> = Arc::new(Meter);
    // The meter adds the prefix, so that it is the same for clients.
    TelemetryOptions::builder().metrics(meter).attach_service_name(false).metric_prefix(String::new()).build()
}

/// An instrument that is not bound to labels yet.
struct Instrument {
    name: String,
}

impl Instrument {
    fn new(parameters: &MetricParameters, suffix: &str) -> Arc<Self> {
        Arc::new(Self { name: format!("{METRIC_PREFIX}{}{suffix}", parameters.name) })
    }

    fn key(&self, attributes: &MetricAttributes) -> Key {
        let labels = labels(attributes).into_iter().map(|(name, value)| Label::new(name, value));
        Key::from_parts(self.name.clone(), labels.collect::<Vec<_>>())
    }
}

/// The attributes are kept as the SDK's own "no-op" ones, a map that every meter may use.
fn labels(attributes: &MetricAttributes) -> HashMap<String, String> {
    match attributes {
        MetricAttributes::NoOp(labels) => HashMap::clone(labels),
        _ => HashMap::new(),
    }
}

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

/// A metric that is bound to labels.
struct Bound<T>(T);

impl CounterBase for Bound<metrics::Counter> {
    fn adds(&self, value: u64) {
        self.0.increment(value);
    }
}

impl UpDownCounterBase for Bound<metrics::Gauge> {
    fn adds(&self, value: i64) {
        self.0.increment(value as f64);
    }
}

impl GaugeBase for Bound<metrics::Gauge> {
    fn records(&self, value: u64) {
        self.0.set(value as f64);
    }
}

impl GaugeF64Base for Bound<metrics::Gauge> {
    fn records(&self, value: f64) {
        self.0.set(value);
    }
}

impl HistogramBase for Bound<metrics::Histogram> {
    fn records(&self, value: u64) {
        self.0.record(value as f64);
    }
}

impl HistogramF64Base for Bound<metrics::Histogram> {
    fn records(&self, value: f64) {
        self.0.record(value);
    }
}

impl HistogramDurationBase for Bound<metrics::Histogram> {
    fn records(&self, value: Duration) {
        self.0.record(value);
    }
}

macro_rules! attributable {
    ($($base:ident: $register:ident),*) => {
        $(impl MetricAttributable<Box<dyn $base>> for Instrument {
            fn with_attributes(&self, attributes: &MetricAttributes) -> Result<Box<dyn $base>, Box<dyn Error>> {
                let key = self.key(attributes);
                Ok(Box::new(Bound(with_recorder(|recorder| recorder.$register(&key, &METADATA)))))
            }
        })*
    };
}

attributable!(
    CounterBase: register_counter,
    UpDownCounterBase: register_gauge,
    GaugeBase: register_gauge,
    GaugeF64Base: register_gauge,
    HistogramBase: register_histogram,
    HistogramF64Base: register_histogram,
    HistogramDurationBase: register_histogram
);

impl CoreMeter for Meter {
    fn new_attributes(&self, attributes: NewAttributes) -> MetricAttributes {
        MetricAttributes::NoOp(Arc::new(attributes.into()))
    }

    fn extend_attributes(&self, existing: MetricAttributes, attributes: NewAttributes) -> MetricAttributes {
        let mut all = labels(&existing);
        all.extend(HashMap::from(attributes));
        MetricAttributes::NoOp(Arc::new(all))
    }

    fn counter(&self, parameters: MetricParameters) -> Counter {
        Counter::new(Instrument::new(&parameters, "_total"))
    }

    fn histogram(&self, parameters: MetricParameters) -> Histogram {
        Histogram::new(Instrument::new(&parameters, ""))
    }

    fn histogram_f64(&self, parameters: MetricParameters) -> HistogramF64 {
        HistogramF64::new(Instrument::new(&parameters, ""))
    }

    fn histogram_duration(&self, parameters: MetricParameters) -> HistogramDuration {
        HistogramDuration::new(Instrument::new(&parameters, "_seconds"))
    }

    fn gauge(&self, parameters: MetricParameters) -> Gauge {
        Gauge::new(Instrument::new(&parameters, ""))
    }

    fn gauge_f64(&self, parameters: MetricParameters) -> GaugeF64 {
        GaugeF64::new(Instrument::new(&parameters, ""))
    }

    fn up_down_counter(&self, parameters: MetricParameters) -> UpDownCounter {
        UpDownCounter::new(Instrument::new(&parameters, ""))
    }
}
