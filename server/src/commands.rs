//! One-shot commands, and the stand-alone sandbox.

use crate::{
    NewKey, clock,
    config::Pricing,
    console::{Refusal, actor, table},
    database::Database,
    secrets, services,
};
use anyhow::Context;
use chrono::{DateTime, Utc};
use domain::{Bound, Email, Mode, OrgId, Owner, member::Role, scope::Scope};
use sandbox::{Access, AppStatus, Options, Sandbox};
use serde_json::json;
use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    time::Duration,
};
use store::{
    Pool,
    bounds::{Resource, unbounded},
    operators,
    people::{
        audit::Action,
        keys, organizations,
        team::{self, InviteResult},
    },
    publishing::freezes::{self, Scope as Frozen},
    upkeep::vault::PrivateKey,
};
use telemetry::health::Health;
use url::Url;

/// Posts due later that are listed after a restore.
const LATER_SHOWN: i64 = 20;
/// Number of an installation's first key pair.
pub(crate) const FIRST_KEY: u32 = 1;

/// Runs the sandbox as a separate process.
pub(crate) async fn sandbox(
    listen: SocketAddr,
    data: Option<PathBuf>,
    app: AppStatus,
    access: Access,
) -> anyhow::Result<()> {
    let stop = services::on_signal(Health::default(), Duration::ZERO)?;
    let sandbox = Sandbox::open_with(Options { data, clock: clock::now, app }, access)?;
    let listener =
        TcpListener::bind(listen).with_context(|| format!("the sandbox can't listen on {listen}"))?;
    println!("The sandbox listens on http://{}", listener.local_addr()?);
    sandbox::serve(sandbox, listener, stop.cancelled_owned()).await
}

/// A new organization and its first API keys, one per mode.
pub(crate) struct NewOrganization {
    pub(crate) org: OrgId,
    pub(crate) live_key: String,
    pub(crate) test_key: String,
}

/// Creates an organization with an API key of scope `*` in each mode.
pub(crate) async fn create_organization(db: &Pool, name: &str) -> anyhow::Result<NewOrganization> {
    let org = organizations::create(db, name).await?;
    let key = async |mode| {
        let owner = Owner { org, mode };
        let new =
            keys::NewKey { owner, name: "First key".to_owned(), scopes: vec![Scope::All], expires_at: None };
        keys::create(db, new, clock::now()).await.map(|(_, text)| text)
    };
    Ok(NewOrganization { org, live_key: key(Mode::Live).await?, test_key: key(Mode::Test).await? })
}

/// Creates an organization and prints its id, its API keys, and the invitation of its first owner if given.
pub(crate) async fn create_org(
    database: &Database,
    name: &str,
    owner: Option<&Email>,
    base_url: &Url,
) -> anyhow::Result<()> {
    let db = store::connect(&database.database_url, 2).await?;
    let NewOrganization { org, live_key, test_key } = create_organization(&db, name).await?;
    println!("organization {org}\nlive key     {live_key}\ntest key     {test_key}");
    if let Some(email) = owner {
        println!("invitation   {}", invitation(&db, org, email, Some(Role::Owner), false, base_url).await?);
    }
    Ok(())
}

/// Invites a person to an organization, or a member `again`, and prints the invitation.
pub(crate) async fn invite(
    database: &Database,
    org: OrgId,
    email: &Email,
    role: Option<Role>,
    again: bool,
    base_url: &Url,
) -> anyhow::Result<()> {
    let db = store::connect(&database.database_url, 2).await?;
    is_organization(&db, org).await?;
    println!("{}", invitation(&db, org, email, role, again, base_url).await?);
    Ok(())
}

/// Invites a person and returns the URL for accepting.
async fn invitation(
    db: &Pool,
    org: OrgId,
    email: &Email,
    role: Option<Role>,
    again: bool,
    base_url: &Url,
) -> anyhow::Result<String> {
    let (email, by, now) = (email.as_str(), &actor(), clock::now());
    let token = if again {
        let token = team::invite_again(db, org, email, role, by, now).await?;
        token
            .with_context(|| format!("the organization has no member {email}; invite them without --again"))?
    } else {
        // An operator is not bound by the plan.
        let (owner, role) = (Owner { org, mode: Mode::Live }, role.unwrap_or(Role::Viewer));
        match team::invite(db, owner, email, role, None, by, now).await? {
            InviteResult::Invited(_, token) => token,
            _ => anyhow::bail!(
                "{email} is in the team already; --again replaces their invitation, and ends the access of one who joined"
            ),
        }
    };
    let root = base_url.as_str().trim_end_matches('/').trim_end_matches("/api/v1");
    Ok(format!("{root}/dashboard/invite/{token}"))
}

/// Fails unless an organization exists.
async fn is_organization(db: &Pool, org: OrgId) -> anyhow::Result<()> {
    match organizations::plan(db, org).await? {
        Some(_) => Ok(()),
        None => Err(no_organization(org)),
    }
}

fn no_organization(org: OrgId) -> anyhow::Error {
    Refusal::missing(format!("there is no organization {org}"))
}

/// Creates an API key and prints it.
pub(crate) async fn create_key(options: NewKey) -> anyhow::Result<()> {
    let NewKey { org, name, mode, scopes, expires_at, tenant, profile, accounts, database } = options;
    if expires_at.is_some_and(|at| at <= clock::now()) {
        return Err(Refusal::usage("--expires-at is not in the future"));
    }
    let db = store::connect(&database.database_url, 2).await?;
    let owner = Owner { org, mode };
    let exists = async |resource, id| {
        if unbounded(owner).contains(&db, resource, id).await? {
            return Ok(());
        }
        let resource = format!("{resource:?}").to_lowercase();
        Err(Refusal::missing(format!("the organization has no {mode} {resource} {id}")))
    };
    is_organization(&db, org).await?;
    let bound = match (tenant, profile) {
        (Some(tenant), _) => Bound::Tenant(tenant),
        (None, Some(profile)) => {
            exists(Resource::Profile, profile.0).await?;
            Bound::Profile(profile)
        }
        (None, None) if accounts.is_empty() => Bound::Organization,
        (None, None) => {
            for account in &accounts {
                exists(Resource::Account, account.0).await?;
            }
            Bound::Accounts(accounts)
        }
    };
    let new = keys::NewKey { owner, name, scopes, expires_at };
    let created = keys::create_within(&db, new, bound, None, &actor(), clock::now()).await?;
    let (key, text) = created.map_err(|_| anyhow::anyhow!("an operator has no limit of keys"))?;
    println!("{mode} key {} for {}\n{text}", key.id, key.bound);
    Ok(())
}

/// Changes the plan of an organization.
pub(crate) async fn set_plan(
    database: &Database,
    pricing: &Pricing,
    org: OrgId,
    plan: &str,
) -> anyhow::Result<()> {
    anyhow::ensure!(pricing.plans.has(plan), "FANFARE_PLANS has no plan {plan}");
    let db = store::connect(&database.database_url, 2).await?;
    if !organizations::set_plan(&db, org, plan).await? {
        return Err(no_organization(org));
    }
    println!("organization {org} is on the plan {plan}");
    Ok(())
}

/// Prepares a restored database; without `since`, only records that it has everything that was committed.
pub(crate) async fn restored(
    database: &Database,
    since: Option<DateTime<Utc>>,
    freeze: Option<&str>,
) -> anyhow::Result<()> {
    let Some(since) = since else {
        let db = store::connect(&database.database_url, 2).await?;
        store::upkeep::restored::accept(&db).await?;
        let details = json!({ "nothing_was_lost": true });
        operators::record(&db, Action::Restored, details, &actor(), clock::now()).await?;
        println!("recorded: the database has everything that was committed");
        return Ok(());
    };
    if since > clock::now() {
        return Err(Refusal::usage(format!("--since {since} is in the future")));
    }
    let db = store::connect(&database.database_url, 2).await?;
    // First: what is prepared goes out as soon as processes run.
    if let Some(reason) = freeze {
        for platform in platforms::all() {
            let scope = Frozen::Platform(platform.id.to_owned());
            freezes::freeze(&db, &scope, None, reason, &actor(), clock::now()).await?;
        }
    }
    let prepared = store::upkeep::restored::prepare(&db, since, store::upkeep::restored::PART).await?;
    let store::upkeep::restored::Prepared { posts, containers, is_continued } = prepared;
    let details = json!({ "since": since, "posts": posts, "containers": containers });
    operators::record(&db, Action::Restored, details, &actor(), clock::now()).await?;
    if is_continued {
        println!("continued what was interrupted");
    }
    println!("{posts} open posts; {containers} publications are looked up before they are repeated");
    let (later, total) = store::upkeep::restored::later(&db, LATER_SHOWN).await?;
    if total > 0 {
        println!(
            "{total} posts are due later as the backup has them, also if they were canceled since. The next:"
        );
        let rows: Vec<_> = later
            .iter()
            .map(|later| {
                let due = later.due.format("%F %T UTC").to_string();
                [due, later.owner.mode.to_string(), later.owner.org.to_string(), later.post.to_string()]
            })
            .collect();
        table(["DUE", "MODE", "ORGANIZATION", "POST"], &rows);
    }
    if freeze.is_some() {
        println!("publishing is frozen on every platform until `fanfare ops release platform` releases it");
    }
    Ok(())
}

/// Prints a new key pair for encryption, and with the first one a new secret: a rotation keeps that, since another one
/// ends what it has signed.
pub(crate) fn generate_key(id: u32) {
    let pair = pair(id);
    println!("FANFARE_SEAL_KEY={}\nFANFARE_OPEN_KEYS={}", pair.seal, pair.open);
    if id == FIRST_KEY {
        println!("# once, for all API processes:\nFANFARE_SECRET={}", secrets::fresh_secret());
    }
}

/// A key pair for encryption, in text form.
pub(crate) struct Pair {
    pub(crate) seal: String,
    pub(crate) open: String,
}

pub(crate) fn pair(id: u32) -> Pair {
    let private = PrivateKey::generate();
    Pair { seal: format!("{id}:{}", private.public()), open: format!("{id}:{}", private.reveal()) }
}
