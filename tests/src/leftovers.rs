//! Work that a test leaves unfinished.
//!
//! All work that an organization started must finish: an undelivered message, a pending delivery or a hanging
//! workflow is a fault, even if the test checked something else.

use crate::{runtime::RUNTIME, shared::temporal_client, wait::wait_until};
use domain::OrgId;
use futures::TryStreamExt;
use sqlx::{Connection, PgConnection};
use std::{collections::HashSet, thread};
use temporalio_client::Client;

/// Workflows that may still run: those of drafts and scheduled posts.
const WAITING: &str = "
    select 'post-' || id from posts where org_id = $1 and status in ('draft', 'scheduled')
    union all
    select 'target-' || t.id from targets t join posts p on p.id = t.post_id
    where p.org_id = $1 and p.status in ('draft', 'scheduled')";

/// Rows with unfinished work.
const OPEN: &str = "
    select 'message ' || id || ' in the outbox' from outbox where org_id = $1
    union all
    select 'delivery of ' || event from deliveries where org_id = $1 and status in ('pending', 'delivering')
    union all
    select status || ' post ' || id from posts
    where org_id = $1 and deleted_at is null and status in ('queued', 'publishing')
    union all
    select 'the rest of target ' || t.id from targets t join posts p on p.id = t.post_id
    where p.org_id = $1 and p.deleted_at is null and t.status = 'published' and t.next_attempt_at is not null";

/// An organization to check for unfinished work.
pub(crate) struct Leftovers {
    pub(crate) database_url: String,
    /// Address of Temporal, as `host:port`.
    pub(crate) temporal: String,
    pub(crate) org: OrgId,
    /// Substrings of descriptions that are allowed to be left over.
    pub(crate) allowed: Vec<String>,
}

impl Leftovers {
    /// Waits until nothing is left over. Blocks, because `World::drop` calls it.
    pub(crate) fn wait(self) {
        // `block_on` panics inside the test's runtime, so it is called on another thread.
        let waited = thread::spawn(move || RUNTIME.block_on(self.gone())).join();
        assert!(waited.is_ok(), "work that the test started has not finished");
    }

    async fn gone(&self) {
        let mut db = PgConnection::connect(&self.database_url).await.expect("a connection");
        let temporal = temporal_client(&self.temporal).await;
        let look = async || {
            let left = self.left(&mut db, &temporal).await;
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        };
        wait_until("all work of the test to finish (see World::leave)", look).await;
        db.close().await.expect("closed");
    }

    async fn left(&self, db: &mut PgConnection, temporal: &Client) -> Vec<String> {
        let read = async |db: &mut PgConnection, query: &'static str| -> Vec<String> {
            sqlx::query_scalar(query).bind(self.org.0).fetch_all(db).await.expect("an answer")
        };
        let mut left = read(db, OPEN).await;
        let query = format!("FanfareOrg = '{}' and ExecutionStatus = 'Running'", self.org);
        let running = temporal.list_workflows(query, Default::default());
        let running: Vec<_> = match running.try_collect().await {
            Ok(running) => running,
            // A development server whose database is stuck answers with an error until it is restarted.
            Err(error) => {
                left.push(format!("an answer of Temporal: {error}"));
                return left;
            }
        };
        let waiting: HashSet<String> = read(db, WAITING).await.into_iter().collect();
        // The workflow that renews a grant runs for as long as the account is connected.
        let open =
            running.iter().filter(|run| run.workflow_type() != "RenewGrant" && !waiting.contains(run.id()));
        left.extend(open.map(|run| format!("{} {}", run.workflow_type(), run.id())));
        left.retain(|left| !self.allowed.iter().any(|part| left.contains(part)));
        left
    }
}
