//! Parts of a stack, and those of them that talk to each other: where a fault is injected.

/// A part that can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Postgres,
    Temporal,
    Api,
    Worker,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::Postgres, Self::Temporal, Self::Api, Self::Worker];

    /// Returns the name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "Postgres",
            Self::Temporal => "Temporal",
            Self::Api => "API",
            Self::Worker => "worker",
        }
    }
}

/// A pair of parts that talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pair {
    ApiPostgres,
    WorkerPostgres,
    ApiTemporal,
    WorkerTemporal,
    WorkerPlatforms,
    WorkerReceiver,
}

impl Pair {
    pub(crate) const ALL: [Self; 6] = [
        Self::ApiPostgres,
        Self::WorkerPostgres,
        Self::ApiTemporal,
        Self::WorkerTemporal,
        Self::WorkerPlatforms,
        Self::WorkerReceiver,
    ];

    /// Returns the name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiPostgres => "API and Postgres",
            Self::WorkerPostgres => "worker and Postgres",
            Self::ApiTemporal => "API and Temporal",
            Self::WorkerTemporal => "worker and Temporal",
            Self::WorkerPlatforms => "worker and platforms",
            Self::WorkerReceiver => "worker and webhook receiver",
        }
    }
}
