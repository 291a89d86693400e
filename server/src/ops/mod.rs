//! `fanfare ops`: what operators see and do, in all organizations.
//!
//! Every command works on rows, so that it takes effect while services run, needs only the database, and can be
//! repeated. Changes are recorded in the audit trail with the user and host that ran the command. Nothing asks for a
//! confirmation. The exit code is 0 if it was done, 1 if the database or Temporal failed, 2 for a wrong argument, 3 if
//! there is no such thing, and 4 if there was nothing to do.

mod act;
mod keys;
mod see;

use crate::{config, console::Refusal, database::Database};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use domain::{AccountId, DeliveryId, KeyId, Mode, OrgId, TargetId, WebhookId};
use store::{Pool, operators::Kind, publishing::freezes::Scope};
use uuid::Uuid;

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Ops {
    /// Lists what is stuck in all organizations: posts, deliveries, imports, media, messages and grants whose next step
    /// is overdue or that wait for long, each with the reason
    Stuck(Stuck),
    /// Prints the whole story of a post as JSON: its rows, and the state of its workflows if Temporal answers
    Show(Box<Show>),
    /// Starts the next attempt of a target now, or of all targets of a post; one that is dead starts over
    Retry {
        /// Id of a target or post
        id: Uuid,
        /// Why, for the audit trail
        #[arg(long, value_parser = reason)]
        reason: Option<String>,
        #[command(flatten)]
        database: Database,
    },
    /// Ends a target with the error code `stopped`: nothing more is published for it
    End {
        /// Target id
        target: TargetId,
        /// Why, as the post's owner is told
        #[arg(long, value_parser = reason)]
        reason: String,
        /// End it at once although its publishing call has no known result, instead of after a look-up
        #[arg(long)]
        may_be_live: bool,
        #[command(flatten)]
        database: Database,
    },
    /// Resumes everything that is overdue now, as every API process does periodically
    Reconcile {
        /// Also sends parked messages again, which Temporal refused
        #[arg(long)]
        parked: bool,
        /// Why, for the audit trail
        #[arg(long, value_parser = reason)]
        reason: Option<String>,
        #[command(flatten)]
        database: Database,
    },
    /// Prepares a database that was restored from a backup: what was due since the backup is looked up before it
    /// is published. Run it after the restore, before the API and the workers start
    Restored {
        /// Time of the last transaction in the backup, such as 2026-11-23T03:00:00Z; an earlier time is safe
        #[arg(long, required_unless_present = "nothing_was_lost")]
        since: Option<DateTime<Utc>>,
        /// Also freezes publishing to every platform for this reason, so that posts which were canceled since the
        /// backup can be ended first
        #[arg(long, value_parser = reason, requires = "since")]
        freeze: Option<String>,
        /// The database is on another server and has everything that was committed, as after a failover to a
        /// synchronous standby, a move with all processes stopped, or pg_upgrade
        #[arg(long, conflicts_with = "since")]
        nothing_was_lost: bool,
        #[command(flatten)]
        database: Database,
    },
    /// Stops publishing to a platform, to an account or for an organization. What is due waits, and costs no attempt
    Freeze {
        #[command(flatten)]
        what: What,
        /// Why, as the owners of the posts are told
        #[arg(long, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        database: Database,
    },
    /// Releases what was frozen: what waits is published in the order in which it was due
    Release {
        #[command(flatten)]
        what: What,
        /// Maximum attempts per minute that begin; all at once by default
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        rate: Option<u32>,
        #[command(flatten)]
        database: Database,
    },
    /// Lists what is frozen
    Frozen {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        database: Database,
    },
    /// Delivers an event to an endpoint again, or all events whose delivery to an endpoint failed or waits
    Redeliver {
        /// Delivery id
        #[arg(required_unless_present = "endpoint", conflicts_with = "endpoint")]
        delivery: Option<DeliveryId>,
        /// Endpoint id: repeats its failed deliveries, and attempts now what waits
        #[arg(long)]
        endpoint: Option<WebhookId>,
        /// With --endpoint, only deliveries since this time
        #[arg(long, requires = "endpoint")]
        since: Option<DateTime<Utc>>,
        #[command(flatten)]
        database: Database,
    },
    /// Manages API keys of any organization
    #[command(subcommand)]
    Keys(Keys),
    /// Manages sessions of the dashboard
    #[command(subcommand)]
    Sessions(Sessions),
}

/// Options of the list.
#[derive(Args, Debug)]
pub(crate) struct Stuck {
    /// Only rows of this kind: post, target, delivery, import, media, message, grant or disconnection
    #[arg(long)]
    kind: Option<Kind>,
    /// Only this organization
    #[arg(long)]
    org: Option<OrgId>,
    /// Only this platform
    #[arg(long, value_parser = config::platform)]
    platform: Option<&'static str>,
    /// Only this account
    #[arg(long)]
    account: Option<AccountId>,
    /// Only with this error code, such as rate_limited
    #[arg(long)]
    code: Option<String>,
    /// Seconds that something may wait before it counts as stuck
    #[arg(long, default_value_t = 300)]
    after: u32,
    /// Only targets whose last attempt failed and that are retried, however short they have waited
    #[arg(long, conflicts_with_all = ["kind", "after", "may_be_live"])]
    failing: bool,
    /// Instead, lists targets that ended within the last week although it is not known whether they are live
    #[arg(long, conflicts_with = "kind")]
    may_be_live: bool,
    /// Maximum rows of each kind
    #[arg(long, default_value_t = 100)]
    limit: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

/// Options of a story.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Id of a post, or of one of its targets
    id: Uuid,
    #[command(flatten)]
    temporal: config::Temporal,
    #[command(flatten)]
    database: Database,
}

/// The subject of a freeze.
#[derive(Args, Debug)]
pub(crate) struct What {
    /// Kind of the subject
    kind: ScopeKind,
    /// Id of the platform, account or organization
    id: String,
    /// Mode, `live` or `test`; both by default
    #[arg(long)]
    mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeKind {
    /// Everything that is published to a platform
    Platform,
    /// One account
    Account,
    /// All accounts of an organization
    Organization,
}

impl What {
    fn scope(&self) -> anyhow::Result<Scope> {
        let wrong = || Refusal::usage(format!("{} is not an id", self.id));
        Ok(match self.kind {
            ScopeKind::Platform => Scope::Platform(
                config::platform(&self.id)
                    .map_err(|known| Refusal::usage(format!("unknown platform: {known}")))?
                    .to_owned(),
            ),
            ScopeKind::Account => Scope::Account(AccountId(self.id.parse().map_err(|_| wrong())?)),
            ScopeKind::Organization => Scope::Organization(OrgId(self.id.parse().map_err(|_| wrong())?)),
        })
    }

    fn modes(&self) -> String {
        self.mode.map_or_else(|| "both modes".to_owned(), |mode| format!("{mode} mode"))
    }
}

/// Commands for API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Creates an API key of an organization and prints it
    Issue(Box<crate::NewKey>),
    /// Lists the API keys of an organization, in both modes
    List {
        /// Organization id
        org: OrgId,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        database: Database,
    },
    /// Revokes an API key, effective from the next request, and ends the dashboard sessions that were started with it
    Revoke {
        /// Key id
        key: KeyId,
        #[command(flatten)]
        database: Database,
    },
}

/// Commands for sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// Ends the sessions of an organization, or all
    End {
        /// Organization id
        #[arg(long, required_unless_present = "all", conflicts_with = "all")]
        org: Option<OrgId>,
        /// All organizations
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        database: Database,
    },
}

/// Runs a command.
pub(crate) async fn run(command: Ops) -> anyhow::Result<()> {
    match command {
        Ops::Stuck(options) => see::stuck(options).await,
        Ops::Show(options) => see::show(*options).await,
        Ops::Frozen { json, database } => see::frozen(&database, json).await,
        Ops::Retry { id, reason, database } => act::retry(&database, id, reason.as_deref()).await,
        Ops::End { target, reason, may_be_live, database } => {
            act::end(&database, target, &reason, may_be_live).await
        }
        Ops::Reconcile { parked, reason, database } => {
            act::reconcile(&database, parked, reason.as_deref()).await
        }
        Ops::Restored { since, freeze, nothing_was_lost: _, database } => {
            crate::commands::restored(&database, since, freeze.as_deref()).await
        }
        Ops::Freeze { what, reason, database } => act::freeze(&database, &what, &reason).await,
        Ops::Release { what, rate, database } => act::release(&database, &what, rate).await,
        Ops::Redeliver { delivery, endpoint, since, database } => {
            act::redeliver(&database, delivery, endpoint, since).await
        }
        Ops::Keys(Keys::Issue(options)) => crate::commands::create_key(*options).await,
        Ops::Keys(Keys::List { org, json, database }) => keys::list(&database, org, json).await,
        Ops::Keys(Keys::Revoke { key, database }) => keys::revoke(&database, key).await,
        Ops::Sessions(Sessions::End { org, all: _, database }) => keys::end_sessions(&database, org).await,
    }
}

/// Connects to the database.
async fn connect(database: &Database) -> anyhow::Result<Pool> {
    store::connect(&database.database_url, 2).await
}

/// Parses a reason, which is shown to the owners of posts.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("give a reason".to_owned()),
        1..=200 => Ok(text.to_owned()),
        _ => Err("use at most 200 characters".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_given_and_short() {
        assert_eq!(reason(" the platform is down ").as_deref(), Ok("the platform is down"));
        assert!(reason("  ").is_err() && reason(&"a".repeat(201)).is_err());
        assert_eq!(reason(&"é".repeat(200)).map(|text| text.chars().count()), Ok(200));
    }
}
