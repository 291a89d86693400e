//! Transactions, and who is told that one was committed.
//!
//! A relay learns of new messages from the process that commits them, not from the transaction: Postgres sends
//! notifications under a lock of the whole cluster that is held while the transaction is committed, so that transactions
//! which notify are committed one after the other, each with a write to the disk of its own.

use sqlx::{PgConnection, PgPool, Postgres};
use std::{
    ops::{Deref, DerefMut},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// Channel on which processes without a relay tell of new messages.
pub const CHANNEL: &str = "outbox";
/// Shortest time between two notifications of a process.
pub const NOTIFY_INTERVAL: Duration = Duration::from_millis(50);

/// Messages pushed by transactions of this process, committed or not.
static PUSHED: AtomicU64 = AtomicU64::new(0);
/// Changes with each commit that may have written messages.
static COMMITTED: LazyLock<watch::Sender<()>> = LazyLock::new(|| watch::Sender::new(()));

/// Notes that a message is pushed, before it is committed.
pub(crate) fn pushed() {
    PUSHED.fetch_add(1, Ordering::Relaxed);
}

/// A transaction, rolled back unless it is committed.
pub struct Transaction {
    inner: sqlx::Transaction<'static, Postgres>,
    /// Messages pushed when it began. If others were pushed since, it may have pushed one.
    pushed: u64,
}

impl Transaction {
    pub(crate) fn new(inner: sqlx::Transaction<'static, Postgres>) -> Self {
        Self { inner, pushed: PUSHED.load(Ordering::Relaxed) }
    }

    /// Commits, and wakes the relay of this process if a message was pushed meanwhile.
    ///
    /// # Errors
    ///
    /// When the server doesn't answer. Then the transaction may be committed.
    pub async fn commit(self) -> sqlx::Result<()> {
        // Also if the answer is lost, or nobody waits for it any more: the transaction may be committed.
        let _wake = (PUSHED.load(Ordering::Relaxed) != self.pushed).then_some(Wake);
        self.inner.commit().await
    }

    /// Rolls back.
    ///
    /// # Errors
    ///
    /// When the server doesn't answer. Then it rolls back by itself.
    pub async fn rollback(self) -> sqlx::Result<()> {
        self.inner.rollback().await
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

/// Returns what wakes the relay of this process when it is dropped: after a statement that pushed a message, and is a
/// transaction of its own, was answered or given up.
pub(crate) fn wake() -> impl Drop {
    Wake
}

/// Wakes the waiting when it is dropped.
struct Wake;

impl Drop for Wake {
    fn drop(&mut self) {
        COMMITTED.send_replace(());
    }
}

/// Waits for commits of this process that may have written messages.
#[derive(Debug)]
pub struct Commits(watch::Receiver<()>);

impl Commits {
    /// Waits for commits from now on.
    pub fn subscribe() -> Self {
        Self(COMMITTED.subscribe())
    }

    /// Returns when something was committed since the last call; at once if that has happened already.
    pub async fn next(&mut self) {
        // The sender is never dropped.
        let _ = self.0.changed().await;
    }
}

/// Tells the relays of other processes what this process commits, at most once in [`NOTIFY_INTERVAL`], until it is
/// dropped. For processes without a relay of their own.
///
/// # Errors
///
/// When a notification can't be sent. Relays find the messages nevertheless, since they also poll.
pub async fn notify_relays(db: &PgPool, commits: &mut Commits) -> sqlx::Result<()> {
    loop {
        commits.next().await;
        sqlx::query!("select pg_notify($1, '')", CHANNEL).execute(db).await?;
        tokio::time::sleep(NOTIFY_INTERVAL).await;
    }
}
