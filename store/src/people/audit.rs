//! The audit trail: who changed what concerns an organization's security, when and from where.
//!
//! An entry is written in the transaction of its change, so that there is neither a change without an entry nor an
//! entry without its change. It contains no secret; of changed members only the names.

use crate::page::{Cursor, Page, Request};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
pub use domain::audit::{Actor, ActorKind};
use domain::{MemberId, OrgId, Owner, PersonId};
use serde_json::Value;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use uuid::Uuid;

domain::string_enum! {
    /// A change.
    Action, "action" {
        /// An API key was created.
        KeyCreated = "api_key.created",
        /// An API key was replaced by the object.
        KeyRotated = "api_key.rotated",
        /// An API key was revoked.
        KeyRevoked = "api_key.revoked",
        /// A client token was created.
        ClientTokenCreated = "client_token.created",
        /// A client token was revoked.
        ClientTokenRevoked = "client_token.revoked",
        /// Somebody signed in to the dashboard.
        SessionStarted = "session.started",
        /// Somebody could not sign in to the dashboard: a key that has ended or is limited, or a passkey that was not
        /// accepted.
        SessionRefused = "session.refused",
        /// A session of the dashboard was ended.
        SessionEnded = "session.ended",
        /// A person was invited.
        MemberInvited = "member.invited",
        /// A person accepted their invitation.
        MemberJoined = "member.joined",
        /// A person was removed, or their invitation withdrawn.
        MemberRemoved = "member.removed",
        /// The role of a person was changed.
        MemberRoleChanged = "member.role_changed",
        /// A person added a passkey.
        PasskeyAdded = "passkey.added",
        /// A person removed a passkey.
        PasskeyRemoved = "passkey.removed",
        /// A person linked an identity at the OpenID provider.
        IdentityLinked = "identity.linked",
        /// A person unlinked an identity.
        IdentityUnlinked = "identity.unlinked",
        /// A webhook endpoint was created.
        WebhookCreated = "webhook.created",
        /// A webhook endpoint was changed.
        WebhookUpdated = "webhook.updated",
        /// A webhook endpoint was deleted.
        WebhookDeleted = "webhook.deleted",
        /// The signing secret of a webhook endpoint was shown.
        SecretRevealed = "webhook.secret_revealed",
        /// The next signing secret of a webhook endpoint was made and shown.
        SecretPrepared = "webhook.secret_prepared",
        /// The signing secret of a webhook endpoint was replaced.
        SecretRotated = "webhook.secret_rotated",
        /// An OAuth app was registered.
        NetworkCreated = "social_network.created",
        /// An OAuth app was changed.
        NetworkUpdated = "social_network.updated",
        /// An OAuth app was removed.
        NetworkDeleted = "social_network.deleted",
        /// An account was connected.
        AccountConnected = "social_account.connected",
        /// A connected account got another grant.
        AccountReconnected = "social_account.reconnected",
        /// An account changed its end tenant.
        AccountMoved = "social_account.moved",
        /// An account was put into a profile or taken out of one.
        AccountGrouped = "social_account.profile_changed",
        /// An account was disconnected.
        AccountDisconnected = "social_account.disconnected",
        /// A profile was created.
        ProfileCreated = "profile.created",
        /// A profile was changed.
        ProfileUpdated = "profile.updated",
        /// A profile was deleted.
        ProfileDeleted = "profile.deleted",
        /// The branding of the connect pages was set.
        BrandingSet = "connect_branding.updated",
        /// The settings for media were changed.
        MediaSettingsUpdated = "media_settings.updated",
        /// An operator retried a target.
        TargetRetried = "target.retried",
        /// An operator ended a target.
        TargetStopped = "target.stopped",
        /// An operator repeated a delivery.
        Redelivered = "delivery.repeated",
        /// An operator froze a platform, an account or the organization.
        Frozen = "publishing.frozen",
        /// An operator released what was frozen.
        Released = "publishing.released",
        /// An operator ended sessions of the dashboard.
        SessionsEnded = "sessions.ended",
        /// An operator had overdue rows resumed.
        Reconciled = "installation.reconciled",
        /// An operator prepared a database that was restored from a backup.
        Restored = "installation.restored",
        /// An operator signed in to the operators' pages.
        OperatorSignedIn = "operator.signed_in",
    }
}

/// Stands for the organization in entries about the whole installation, such as a frozen platform.
pub const INSTALLATION: OrgId = OrgId(Uuid::nil());

/// A change to record.
pub(crate) struct Change {
    pub(crate) action: Action,
    /// Id of what was changed.
    pub(crate) object: Uuid,
    /// A JSON object without secrets.
    pub(crate) details: Value,
}

/// Records a change of an owner's data.
pub(crate) async fn record(
    tx: &mut PgConnection,
    owner: Owner,
    by: &Actor,
    now: DateTime<Utc>,
    change: Change,
) -> sqlx::Result<()> {
    insert(tx, owner.org, Some(owner.mode.as_str()), by, now, change).await
}

/// Records a change that programs make all the time, such as the creation of client tokens: one entry per key and hour, of
/// the first one, with their number as `count`.
pub(crate) async fn record_counted(
    tx: &mut PgConnection,
    owner: Owner,
    by: &Actor,
    now: DateTime<Utc>,
    change: Change,
) -> sqlx::Result<()> {
    let key = by.key.as_ref().map(|(id, _)| id.0);
    // Of two calls that begin an hour at once, the second waits for the first one's entry.
    sqlx::query!("select from api_keys where id = $1 for no key update", key).execute(&mut *tx).await?;
    let hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let counted = sqlx::query!(
        "update audit_entries set details = jsonb_set(details, '{count}', to_jsonb((details ->> 'count')::bigint + 1))
         where id = (
           select id from audit_entries
           where org_id = $1 and mode = $2 and key_id = $3 and action = $4 and at >= $5 and details ? 'count'
           order by at desc, id desc limit 1)",
        owner.org.0,
        owner.mode.as_str(),
        key,
        change.action.as_str(),
        hour
    )
    .execute(&mut *tx)
    .await?;
    if counted.rows_affected() > 0 {
        return Ok(());
    }
    let mut details = change.details;
    details["count"] = 1.into();
    record(tx, owner, by, now, Change { details, ..change }).await
}

/// Records a change of what both modes of an organization share.
pub(crate) async fn record_shared(
    tx: &mut PgConnection,
    org: OrgId,
    by: &Actor,
    now: DateTime<Utc>,
    change: Change,
) -> sqlx::Result<()> {
    insert(tx, org, None, by, now, change).await
}

/// Records a change of a person in each of their organizations, which know them by different addresses.
pub(crate) async fn record_person(
    tx: &mut PgConnection,
    person: PersonId,
    by: &Actor,
    now: DateTime<Utc>,
    change: &Change,
) -> sqlx::Result<()> {
    let members =
        sqlx::query!("select org_id, id, email from members where person_id = $1 order by org_id", person.0)
            .fetch_all(&mut *tx)
            .await?;
    for member in members {
        let change = Change { details: change.details.clone(), ..*change };
        let by = by.known_as(MemberId(member.id), member.email);
        record_shared(tx, OrgId(member.org_id), &by, now, change).await?;
    }
    Ok(())
}

async fn insert(
    tx: &mut PgConnection,
    org: OrgId,
    mode: Option<&str>,
    by: &Actor,
    now: DateTime<Utc>,
    change: Change,
) -> sqlx::Result<()> {
    let (key, last_four) = by.key.as_ref().map(|(id, last_four)| (id.0, last_four.as_str())).unzip();
    let (member_id, member) = by.member.as_ref().map(|(id, email)| (id.0, email.as_str())).unzip();
    sqlx::query!(
        "insert into audit_entries
           (id, org_id, mode, at, actor, key_id, last_four, address, request_id, action, object_id, details,
            operator, member_id, member, user_agent)
         values ($1, $2, $3, $4, $5, $6, $7, ($8::text)::inet, $9, $10, $11, $12, $13, $14, $15, $16)",
        Uuid::now_v7(),
        org.0,
        mode,
        now,
        by.kind.as_str(),
        key,
        last_four,
        by.address.map(|address| address.to_canonical().to_string()),
        by.request,
        change.action.as_str(),
        change.object,
        change.details,
        by.operator,
        member_id,
        member,
        by.agent
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// An entry of the trail.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Entry {
    /// The entry's id.
    pub id: Uuid,
    /// When the change was made.
    pub at: DateTime<Utc>,
    /// [`ActorKind`] of the one who made it.
    pub actor: String,
    /// The key of the call, or the one that the session was started with.
    pub key_id: Option<Uuid>,
    /// Last four characters of the key.
    pub last_four: Option<String>,
    /// The member of the session.
    pub member_id: Option<Uuid>,
    /// E-mail address of that member at that time.
    pub member: Option<String>,
    /// The client's IP address.
    pub address: Option<String>,
    /// `User-Agent` of the request, shortened.
    pub user_agent: Option<String>,
    /// Id of the request.
    pub request_id: Option<String>,
    /// [`Action`].
    pub action: String,
    /// Id of what was changed.
    pub object_id: Uuid,
    /// Further details, a JSON object.
    pub details: Value,
}

/// Filter for entries; all must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Name of the action.
    pub action: Option<String>,
    /// The member who made the change.
    pub member: Option<Uuid>,
    /// The key with which it was made.
    pub key: Option<Uuid>,
    /// Id of what was changed.
    pub object: Option<Uuid>,
    /// Not before.
    pub from: Option<DateTime<Utc>>,
    /// Before.
    pub to: Option<DateTime<Utc>>,
}

/// Returns one page of an owner's trail, newest first, with the entries of what both modes share.
pub async fn list(db: &PgPool, owner: Owner, filter: Filter, page: Request) -> sqlx::Result<Page<Entry>> {
    let mut query = QueryBuilder::new(
        "select id, at, actor, key_id, last_four, member_id, member, request_id, action, object_id, details,
           -- Who an operator is, and where they are, is not shown.
           case when operator is null then host(address) end as address,
           case when operator is null then user_agent end as user_agent
         from audit_entries where org_id = ",
    );
    query.push_bind(owner.org.0).push(" and (mode is null or mode = ");
    query.push_bind(owner.mode.as_str()).push(")");
    let Filter { action, member, key, object, from, to } = filter;
    if let Some(action) = action {
        query.push(" and action = ").push_bind(action);
    }
    for (column, id) in [("member_id", member), ("key_id", key), ("object_id", object)] {
        if let Some(id) = id {
            query.push(format!(" and {column} = ")).push_bind(id);
        }
    }
    for (comparison, at) in [(" and at >= ", from), (" and at < ", to)] {
        if let Some(at) = at {
            query.push(comparison).push_bind(at);
        }
    }
    page.close_by("at", &mut query);
    let rows = query.build_query_as::<Entry>().fetch_all(db).await?;
    Ok(page.page(rows, |entry| Cursor { created_at: entry.at, id: entry.id }))
}

/// Deletes entries that are older than 400 days, at most `limit`.
pub async fn prune(db: &PgPool, limit: i64) -> sqlx::Result<u64> {
    let pruned = sqlx::query!(
        "delete from audit_entries
         where id in (select id from audit_entries where at < now() - interval '400 days' order by at limit $1)",
        limit
    )
    .execute(db)
    .await?;
    Ok(pruned.rows_affected())
}
