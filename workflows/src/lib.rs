//! Deterministic orchestration: what happens next, and nothing of how.
//!
//! A workflow is replayed from its history after a crash, so it sees only its context, the domain and
//! the declarations in [`activities`]. Facts are in Postgres; here is progress. Inputs and results
//! are ids and small values, since histories are read by operators: no content, no token.

pub mod activities;
pub mod ask;
pub mod attributes;
pub mod collect_metrics;
pub mod deliver_event;
pub mod import_posts;
pub mod keep_account;
pub mod lenient;
pub mod part_account;
pub mod publish_post;
pub mod publish_target;
pub mod queue;
pub mod tend_media;
pub mod tidy_media;

pub use ask::Ask;
pub use collect_metrics::CollectMetrics;
pub use deliver_event::DeliverEvent;
pub use import_posts::ImportPosts;
pub use keep_account::KeepAccount;
pub use part_account::PartAccount;
pub use publish_post::PublishPost;
pub use publish_target::PublishTarget;
pub use tend_media::TendMedia;
pub use tidy_media::TidyMedia;
