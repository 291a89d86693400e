//! Settings of retention.

use chrono::TimeDelta;
use clap::Args;

/// How long data is kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct RetentionConfig {
    /// Days that events and their deliveries are kept; the API promises 30. They are deleted by the week
    #[arg(long, env = "FANFARE_KEEP_EVENTS", default_value_t = 30,
        value_parser = clap::value_parser!(u16).range(30..))]
    pub(crate) keep_events: u16,
    /// Days that the timeline of a post is kept after the post has ended
    #[arg(long, env = "FANFARE_KEEP_TIMELINES", default_value_t = 365,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) keep_timelines: u16,
}

impl RetentionConfig {
    pub(crate) fn retention(&self) -> store::upkeep::retention::Retention {
        store::upkeep::retention::Retention {
            events: TimeDelta::days(self.keep_events.into()),
            timelines: TimeDelta::days(self.keep_timelines.into()),
        }
    }
}
