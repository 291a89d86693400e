//! Workflows: deterministic orchestration, without side effects.
//!
//! A workflow is replayed from its history after a crash, so it sees only its context, the domain and the
//! declarations in [`activities`]. Postgres holds the facts; a workflow holds progress. Inputs and results are
//! ids and small values, since operators read histories: no content, no tokens. What a request has to bring along because
//! no row has it, such as a code or a post that is only validated, is sealed to the workers.

pub mod activities;
pub mod attributes;
pub mod clean_up_media;
pub mod collect_metrics;
pub mod disconnect_account;
pub mod drain_endpoint;
pub mod import_posts;
pub mod lenient;
pub mod options;
pub mod process_media;
pub mod publish_post;
pub mod publish_target;
pub mod queue;
pub mod renew_grant;
mod start;
mod timer;
pub mod worker_request;

pub use clean_up_media::CleanUpMedia;
pub use collect_metrics::CollectMetrics;
pub use disconnect_account::DisconnectAccount;
pub use drain_endpoint::DrainEndpoint;
pub use import_posts::ImportPosts;
pub use process_media::ProcessMedia;
pub use publish_post::PublishPost;
pub use publish_target::PublishTarget;
pub use renew_grant::RenewGrant;
pub use start::Start;
pub use worker_request::WorkerRequest;
