//! Members of an organization.
//!
//! A member belongs to the organization, not to one of its modes, so these queries have no mode. An
//! invitation's token contains 256 random bits, so a plain SHA-256 digest of it is stored.

use crate::{
    audit::{self, Action, Actor, Change},
    ceilings::{self, Exceeded, Kind},
    decode::Parsed,
    keys,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{MemberId, OrgId, Owner};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

/// Time for which an invitation can be accepted.
pub const INVITATION_TTL: TimeDelta = TimeDelta::days(7);
/// Number of random characters in an invitation's token: 256 bits.
const TOKEN_LENGTH: usize = 43;

domain::string_enum! {
    /// Role of a member. It is recorded for its readers: the scopes of an API key decide what a caller may do.
    Role, "role" {
        /// One who can't be removed while there is no other owner.
        Owner = "owner",
        /// One who administers the organization.
        Admin = "admin",
        /// One who writes and publishes posts.
        Publisher = "publisher",
        /// One who reads.
        Viewer = "viewer",
    }
}

domain::string_enum! {
    /// Status of a member.
    Status, "status" {
        /// Invited, not yet accepted.
        Invited = "invited",
        /// Accepted the invitation, or created the organization.
        Active = "active",
    }
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Member id.
    pub id: MemberId,
    /// E-mail address, in its original spelling.
    pub email: String,
    /// Name; `None` until the invitation is accepted.
    pub name: Option<String>,
    /// Permissions.
    pub role: Role,
    /// Member status.
    pub status: Status,
    /// When the member was invited.
    pub invited_at: DateTime<Utc>,
    /// When the member accepted the invitation.
    pub joined_at: Option<DateTime<Utc>>,
}

/// The result of removing a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveResult {
    /// The member was removed.
    Removed,
    /// The member is the only owner of the organization and stays.
    LastOwner,
    /// There is no such member.
    NotFound,
}

/// The result of inviting a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InviteResult {
    /// The person was invited, with the invitation's token, which can't be read again.
    Invited(Member, String),
    /// The organization has a member with this address, or one who can still accept.
    IsMember,
    /// The organization has as many members as it may have.
    Exceeded(Exceeded),
}

/// Invites a person, unless that would exceed the `limit` of members. An invitation that was not accepted in time is
/// replaced. Upper and lower case of the address don't matter.
pub async fn invite(
    db: &PgPool,
    owner: Owner,
    email: &str,
    role: Role,
    limit: Option<u64>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<InviteResult> {
    let org = owner.org;
    let token = keys::random_text(TOKEN_LENGTH);
    let mut tx = crate::begin(db).await?;
    // Before the insert, whose row another invitation of the address may wait for.
    let checked = ceilings::check(&mut tx, owner, Kind::TeamMembers, 1, limit, now).await?;
    let member = sqlx::query_as!(
        Member,
        r#"insert into members (id, org_id, email, role, status, invitation_digest, invited_at)
           values ($1, $2, $3, $4, 'invited', $5, $6)
           on conflict (org_id, lower(email)) do update
             set email = excluded.email, role = excluded.role, invitation_digest = excluded.invitation_digest,
               invited_at = excluded.invited_at
             where members.status = 'invited' and members.invited_at <= $7
           returning id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>",
             invited_at, joined_at"#,
        Uuid::now_v7(),
        org.0,
        email,
        role.as_str(),
        keys::digest(&token),
        now,
        now - INVITATION_TTL
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(member) = member else { return Ok(InviteResult::IsMember) };
    if let Err(exceeded) = checked {
        return Ok(InviteResult::Exceeded(exceeded));
    }
    let details = json!({ "email": email, "role": role.as_str() });
    let change = Change { action: Action::MemberInvited, object: member.id.0, details };
    audit::record_shared(&mut tx, org, by, now, change).await?;
    tx.commit().await?;
    Ok(InviteResult::Invited(member, token))
}

/// Creates the owner of a new organization; `None` when it has a member with this address.
pub async fn create_owner(
    db: &PgPool,
    org: OrgId,
    email: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Member>> {
    sqlx::query_as!(
        Member,
        r#"insert into members (id, org_id, email, role, status, invited_at, joined_at)
           values ($1, $2, $3, 'owner', 'active', $4, $4)
           on conflict (org_id, lower(email)) do nothing
           returning id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>",
             invited_at, joined_at"#,
        Uuid::now_v7(),
        org.0,
        email,
        now
    )
    .fetch_optional(db)
    .await
}

/// Returns the members of an organization, in the order of their invitations.
pub async fn list(db: &PgPool, org: OrgId) -> sqlx::Result<Vec<Member>> {
    sqlx::query_as!(
        Member,
        r#"select id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>", invited_at,
             joined_at
           from members where org_id = $1 order by invited_at, id"#,
        org.0
    )
    .fetch_all(db)
    .await
}

/// An open invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Name of the organization.
    pub organization: String,
    /// E-mail address of the invited person.
    pub email: String,
    /// Permissions after accepting.
    pub role: Role,
}

/// Returns the invitation of a token; `None` when it was accepted or withdrawn, or has expired.
pub async fn invitation(db: &PgPool, token: &str, now: DateTime<Utc>) -> sqlx::Result<Option<Invitation>> {
    sqlx::query_as!(
        Invitation,
        r#"select o.name as organization, m.email, m.role as "role: Parsed<Role>"
           from members m join organizations o on o.id = m.org_id
           where m.invitation_digest = $1 and m.status = 'invited' and m.invited_at > $2"#,
        keys::digest(token),
        now - INVITATION_TTL
    )
    .fetch_optional(db)
    .await
}

/// Accepts an invitation. Returns false when it was accepted or withdrawn before, or has expired.
pub async fn accept(
    db: &PgPool,
    token: &str,
    name: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let joined = sqlx::query!(
        "update members set status = 'active', name = $2, joined_at = $3, invitation_digest = null
         where invitation_digest = $1 and status = 'invited' and invited_at > $4
         returning id, org_id, email",
        keys::digest(token),
        name,
        now,
        now - INVITATION_TTL
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(member) = joined else { return Ok(false) };
    let details = json!({ "email": member.email, "name": name });
    let change = Change { action: Action::MemberJoined, object: member.id, details };
    audit::record_shared(&mut tx, OrgId(member.org_id), by, now, change).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes a member, unless they are the last owner. An invited owner doesn't replace an active one,
/// because they may never accept.
pub async fn remove(
    db: &PgPool,
    org: OrgId,
    id: MemberId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<RemoveResult> {
    let mut tx = crate::begin(db).await?;
    // Locks all owners, so that of the last two who remove each other concurrently one stays.
    let owners = sqlx::query!(
        r#"select id, status as "status: Parsed<Status>" from members
           where org_id = $1 and role = 'owner' order by id for update"#,
        org.0
    )
    .fetch_all(&mut *tx)
    .await?;
    if let Some(member) = owners.iter().find(|owner| owner.id == id.0) {
        let can_replace = |other: Status| other == Status::Active || member.status.0 == Status::Invited;
        if !owners.iter().any(|other| other.id != id.0 && can_replace(other.status.0)) {
            return Ok(RemoveResult::LastOwner);
        }
    }
    let removed =
        sqlx::query_scalar!("delete from members where id = $1 and org_id = $2 returning email", id.0, org.0)
            .fetch_optional(&mut *tx)
            .await?;
    let Some(email) = removed else { return Ok(RemoveResult::NotFound) };
    let change = Change { action: Action::MemberRemoved, object: id.0, details: json!({ "email": email }) };
    audit::record_shared(&mut tx, org, by, now, change).await?;
    tx.commit().await?;
    Ok(RemoveResult::Removed)
}
