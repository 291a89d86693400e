//! Requirements of the publishing protocol on Postgres: commits survive, the server accepts writes, and a connection
//! has a session of its own. A process that publishes also requires that the database was not restored since: see
//! [`crate::upkeep::lineage`].
//!
//! An intent is committed before the publishing call. If a crash of the server's machine loses that commit, the
//! next attempt does not know of the call and publishes again. So the settings that let Postgres lose or damage a
//! commit are refused when a service starts, and again for every new connection: after a failover the server may
//! be another one. See <https://www.postgresql.org/docs/current/wal-reliability.html> and
//! <https://www.postgresql.org/docs/current/runtime-config-wal.html>.

use crate::{
    Pool, options, pool_options, session,
    upkeep::{
        lineage,
        reach::{self, Unreachable},
    },
};
use sqlx::{Connection as _, PgConnection};
use std::{fmt, str::FromStr, time::Duration};

/// Oldest supported version, as in `server_version_num`.
const MIN_VERSION: i32 = 150_000;
/// Time limit of a check.
const TIMEOUT: Duration = Duration::from_secs(10);

domain::string_enum! {
    /// A setting with which Postgres may lose a committed transaction.
    Setting, "setting of Postgres that is checked" {
        /// Commits are flushed to disk.
        Fsync = "fsync",
        /// Pages that a crash left half-written can be restored.
        FullPageWrites = "full_page_writes",
        /// A commit returns when it is flushed, and replicated if there is a synchronous standby.
        SynchronousCommit = "synchronous_commit",
    }
}

/// Use that a process makes of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It serves the API.
    Serve,
    /// It publishes.
    Publish,
}

/// Settings that are not checked: the server has other means to keep commits, or they may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unchecked(Vec<Setting>);

impl FromStr for Unchecked {
    type Err = domain::string_enum::UnknownValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Reason why a server is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `fsync` is off.
    NoFsync,
    /// `full_page_writes` is off.
    TornPages,
    /// `synchronous_commit` is off.
    AsynchronousCommit,
    /// There is a synchronous standby, and commits do not wait for it.
    LocalCommit,
    /// The server is a standby.
    InRecovery,
    /// Transactions are read-only by default.
    ReadOnly,
    /// A pooler in front of the server gives each transaction another session.
    SharedSession,
    /// The server is too old; its version, as in `server_version_num`.
    Outdated(i32),
    /// The rows were written on another server, timeline or database.
    Restored,
}

impl Fault {
    /// Returns the setting that is to blame, if its check can be left out.
    fn setting(self) -> Option<Setting> {
        match self {
            Self::NoFsync => Some(Setting::Fsync),
            Self::TornPages => Some(Setting::FullPageWrites),
            Self::AsynchronousCommit | Self::LocalCommit => Some(Setting::SynchronousCommit),
            Self::InRecovery | Self::ReadOnly | Self::SharedSession | Self::Outdated(_) | Self::Restored => {
                None
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NoFsync => {
                "fsync is off, so that a crash of its machine loses or damages what was committed, and a post may be \
                 published twice; set fsync = on in its configuration and reload it"
            }
            Self::TornPages => {
                "full_page_writes is off, so that a crash of its machine leaves pages that can't be restored; set \
                 full_page_writes = on in its configuration and reload it"
            }
            Self::AsynchronousCommit => {
                "synchronous_commit is off, so that a crash loses the last commits, and a post may be published twice; \
                 set synchronous_commit = on in its configuration, and reset it for the role and the database of \
                 DATABASE_URL (alter role … reset synchronous_commit, alter database … reset synchronous_commit)"
            }
            Self::LocalCommit => {
                "synchronous_commit is local although synchronous_standby_names is set, so that a failover loses the \
                 last commits, and a post may be published twice; set synchronous_commit = on"
            }
            Self::InRecovery => {
                "it is a standby in recovery and accepts no writes; let DATABASE_URL name the primary"
            }
            Self::ReadOnly => {
                "default_transaction_read_only is on, so that it accepts no writes; reset it for the server, the \
                 database and the role of DATABASE_URL"
            }
            Self::SharedSession => {
                "a pooler in front of it gives each transaction another session, so that settings, prepared statements \
                 and notifications get lost; let it keep sessions (pool_mode = session of PgBouncer), or let \
                 DATABASE_URL name the server itself"
            }
            Self::Restored => RESTORED,
            Self::Outdated(version) => {
                return write!(
                    f,
                    "its version {} is older than {}; upgrade it",
                    version / 10_000,
                    MIN_VERSION / 10_000
                );
            }
        };
        f.write_str(text)
    }
}

/// Why a restored database is refused, and what to do.
pub const RESTORED: &str = "its rows were written on another server, as after a restore or a failover, so that they may \
    not know what was published since, and posts may be published twice; run `fanfare ops restored --since TIME`, or \
    `fanfare ops restored --nothing-was-lost` if everything that was committed is there";

/// The settings and state of a server.
#[derive(Clone, Debug)]
struct State {
    version: i32,
    is_in_recovery: bool,
    is_read_only: bool,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    standby_names: String,
}

impl State {
    async fn read(connection: &mut PgConnection) -> sqlx::Result<Self> {
        let reading = sqlx::query_as!(
            State,
            r#"select current_setting('server_version_num')::int as "version!",
                 pg_is_in_recovery() as "is_in_recovery!",
                 current_setting('default_transaction_read_only')::bool as "is_read_only!",
                 current_setting('fsync') as "fsync!",
                 current_setting('full_page_writes') as "full_page_writes!",
                 current_setting('synchronous_commit') as "synchronous_commit!",
                 current_setting('synchronous_standby_names') as "standby_names!""#
        )
        .fetch_one(connection);
        tokio::time::timeout(TIMEOUT, reading).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    fn faults(&self) -> impl Iterator<Item = Fault> {
        let is_off = |value: &str| value == "off";
        [
            (self.version < MIN_VERSION, Fault::Outdated(self.version)),
            (self.is_in_recovery, Fault::InRecovery),
            (self.is_read_only, Fault::ReadOnly),
            (is_off(&self.fsync), Fault::NoFsync),
            (is_off(&self.full_page_writes), Fault::TornPages),
            (is_off(&self.synchronous_commit), Fault::AsynchronousCommit),
            (self.synchronous_commit == "local" && !self.standby_names.is_empty(), Fault::LocalCommit),
        ]
        .into_iter()
        .filter_map(|(is_wrong, fault)| is_wrong.then_some(fault))
    }
}

/// Returns the faults of a server, and whether each is refused: those of settings in `unchecked` are not.
async fn faults(
    connection: &mut PgConnection,
    unchecked: &Unchecked,
    purpose: Purpose,
) -> sqlx::Result<Vec<(Fault, bool)>> {
    let state = State::read(connection).await?;
    let is_refused = |fault: Fault| !fault.setting().is_some_and(|setting| unchecked.0.contains(&setting));
    let mut faults: Vec<_> = state.faults().map(|fault| (fault, is_refused(fault))).collect();
    // A standby has no lineage of its own.
    if purpose == Purpose::Publish && !state.is_in_recovery && lineage::is_foreign(connection).await? {
        faults.push((Fault::Restored, true));
    }
    Ok(faults)
}

/// Returns a pool that connects on first use, and uses no connection to a server that could lose commits or accepts
/// no writes.
///
/// # Errors
///
/// When the URL can't be parsed.
pub fn connect_lazy(
    url: &str,
    max_connections: u32,
    unchecked: &Unchecked,
    purpose: Purpose,
) -> anyhow::Result<Pool> {
    let unchecked = unchecked.clone();
    let pool = pool_options(max_connections).after_connect(move |connection, _| {
        let unchecked = unchecked.clone();
        Box::pin(async move {
            session::prepare(connection).await?;
            let found = faults(connection, &unchecked, purpose).await?;
            let refused = found.into_iter().find(|(_, is_refused)| *is_refused);
            // The pool logs it, and tries again until the caller's time is over.
            refused.map_or(Ok(()), |(fault, _)| Err(sqlx::Error::Configuration(Refusal(fault).into())))
        })
    });
    Ok(pool.connect_lazy_with(options(url)?))
}

/// The server is refused.
#[derive(Clone, Copy, Debug)]
struct Refusal(Fault);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the Postgres server at DATABASE_URL is refused: {}", self.0)
    }
}

impl std::error::Error for Refusal {}

/// Checks the server of a URL, and returns the faulty settings that `unchecked` allows.
///
/// # Errors
///
/// When the server is refused, with the reason, or doesn't answer; [`may_recover`] tells which need no change of the
/// configuration.
pub async fn check(url: &str, unchecked: &Unchecked, purpose: Purpose) -> anyhow::Result<Vec<Setting>> {
    let options = options(url)?;
    let unreachable = |error| Unreachable::new(&options, TIMEOUT, Some(&error));
    let mut connection = reach::open(&options, TIMEOUT).await?;
    // First, since other statements fail behind such a pooler, for reasons that don't tell it.
    if !session::is_own(&mut connection, &options, TIMEOUT).await? {
        anyhow::bail!(Refusal(Fault::SharedSession));
    }
    let found = faults(&mut connection, unchecked, purpose).await.map_err(unreachable)?;
    connection.close().await.map_err(unreachable)?;
    if let Some((fault, _)) = found.iter().find(|(_, is_refused)| *is_refused) {
        anyhow::bail!(Refusal(*fault));
    }
    Ok(found.into_iter().filter_map(|(fault, _)| fault.setting()).collect())
}

/// Returns whether an error of [`check`] may be over in a moment: the server doesn't answer, is a standby that a failover
/// may make the primary, or an operator is preparing a restored database.
pub fn may_recover(error: &anyhow::Error) -> bool {
    let is_awaited = matches!(error.downcast_ref(), Some(Refusal(Fault::InRecovery | Fault::Restored)));
    is_awaited || error.is::<Unreachable>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> State {
        State {
            version: 150_018,
            is_in_recovery: false,
            is_read_only: false,
            fsync: "on".into(),
            full_page_writes: "on".into(),
            synchronous_commit: "on".into(),
            standby_names: String::new(),
        }
    }

    fn found(state: &State) -> Vec<Fault> {
        state.faults().collect()
    }

    #[test]
    fn each_fault_is_found() {
        assert_eq!(found(&sound()), []);
        assert_eq!(found(&State { version: 140_021, ..sound() }), [Fault::Outdated(140_021)]);
        assert_eq!(found(&State { fsync: "off".into(), ..sound() }), [Fault::NoFsync]);
        assert_eq!(found(&State { full_page_writes: "off".into(), ..sound() }), [Fault::TornPages]);
        for (commit, standbys, expected) in [
            ("off", "", vec![Fault::AsynchronousCommit]),
            ("local", "", vec![]),
            ("local", "ANY 1 (two, three)", vec![Fault::LocalCommit]),
            ("remote_write", "two", vec![]),
            ("remote_apply", "two", vec![]),
        ] {
            let state =
                State { synchronous_commit: commit.into(), standby_names: standbys.into(), ..sound() };
            assert_eq!(found(&state), expected, "{commit} {standbys}");
        }
        let standby = State { is_in_recovery: true, is_read_only: true, ..sound() };
        assert_eq!(found(&standby), [Fault::InRecovery, Fault::ReadOnly]);
    }

    #[test]
    fn settings_are_parsed() {
        assert_eq!("".parse(), Ok(Unchecked::default()));
        let both = Unchecked(vec![Setting::Fsync, Setting::FullPageWrites]);
        assert_eq!("fsync, full_page_writes".parse(), Ok(both));
        assert!("fsync,wal_level".parse::<Unchecked>().is_err());
    }
}
