//! Members of an organization.
//!
//! A member belongs to the organization, not to one of its modes, so these queries have no mode. An
//! invitation's token contains 256 random bits, so a plain SHA-256 digest of it is stored.

use crate::{
    decode::{self, Parsed},
    page::{Cursor, Page, Request},
    people::{
        self,
        audit::{self, Action, Actor, Change},
        keys,
    },
    usage::ceilings::{self, Exceeded, Kind},
};
use chrono::{DateTime, Utc};
use domain::{
    MemberId, Mode, OrgId, Owner, PersonId,
    member::{INVITATION_TTL, Role},
};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Number of random characters in an invitation's token: 256 bits.
const TOKEN_LENGTH: usize = 43;

domain::string_enum! {
    /// Status of a member.
    Status, "status" {
        /// Invited, not yet accepted.
        Invited = "invited",
        /// Accepted the invitation, or created the organization.
        Active = "active",
    }
}

decode::into_inner!(Status);

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
    /// True if the member has access to test data only, because they were invited with a test key.
    pub is_test_only: bool,
}

/// Why a member is not changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The member is the only owner of the organization and stays one.
    LastOwner,
    /// The member has access to live data, which a caller in test mode must not decide about.
    Live,
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
/// replaced. Upper and lower case of the address don't matter. In test mode the member gets access to test data only,
/// and does not take the place of one with access to live data.
pub async fn invite(
    db: &PgPool,
    owner: Owner,
    email: &str,
    role: Role,
    limit: Option<u64>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<InviteResult> {
    let token = keys::random_text(TOKEN_LENGTH);
    let mut tx = crate::begin(db).await?;
    // Before the insert, whose row another invitation of the address may wait for.
    let checked = ceilings::check(&mut tx, owner, Kind::TeamMembers, 1, limit, now).await?;
    let member = sqlx::query_as!(
        Member,
        r#"insert into members (id, org_id, email, role, status, invitation_digest, invited_at, is_test_only)
           values ($1, $2, $3, $4, 'invited', $5, $6, $8)
           on conflict (org_id, lower(email)) do update
             set email = excluded.email, role = excluded.role, invitation_digest = excluded.invitation_digest,
               invited_at = excluded.invited_at, is_test_only = excluded.is_test_only
             where members.status = 'invited' and members.invited_at <= $7
           returning id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>",
             invited_at, joined_at, is_test_only"#,
        Uuid::now_v7(),
        owner.org.0,
        email,
        role.as_str(),
        keys::digest(&token),
        now,
        now - INVITATION_TTL,
        owner.mode == Mode::Test
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(member) = member else { return Ok(InviteResult::IsMember) };
    if let Err(exceeded) = checked {
        return Ok(InviteResult::Exceeded(exceeded));
    }
    let details = json!({ "email": email, "role": role.as_str() });
    let change = Change { action: Action::MemberInvited, object: member.id.0, details };
    audit::record_shared(&mut tx, owner.org, by, now, change).await?;
    tx.commit().await?;
    Ok(InviteResult::Invited(member, token))
}

/// Invites a member again who can't sign in any more, and returns the invitation's token; `None` if the organization
/// has no member with this address. Their sessions end, and nothing leads from the member to the person any more: a new
/// one accepts, or one who is signed in. Without a `role` they keep theirs.
pub async fn invite_again(
    db: &PgPool,
    org: OrgId,
    email: &str,
    role: Option<Role>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    let token = keys::random_text(TOKEN_LENGTH);
    let mut tx = crate::begin(db).await?;
    let member = sqlx::query!(
        "select id, person_id from members where org_id = $1 and lower(email) = lower($2) for update",
        org.0,
        email
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(member) = member else { return Ok(None) };
    let invited = sqlx::query!(
        r#"update members
           set status = 'invited', person_id = null, name = null, joined_at = null, role = coalesce($2, role),
             invitation_digest = $3, invited_at = $4
           where id = $1
           returning email, role as "role: Parsed<Role>""#,
        member.id,
        role.map(|role| role.as_str()),
        keys::digest(&token),
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    sqlx::query!("delete from sessions where member_id = $1", member.id).execute(&mut *tx).await?;
    if let Some(person) = member.person_id {
        people::forget(&mut tx, PersonId(person)).await?;
    }
    let details = json!({ "email": invited.email, "role": invited.role.0.as_str(), "again": true });
    let change = Change { action: Action::MemberInvited, object: member.id, details };
    audit::record_shared(&mut tx, org, by, now, change).await?;
    tx.commit().await?;
    Ok(Some(token))
}

/// Returns a page of the members of an organization, in the order of their invitations.
pub async fn list(db: &PgPool, org: OrgId, page: Request) -> sqlx::Result<Page<Member>> {
    let beyond = page.beyond();
    let rows = sqlx::query_as!(
        Member,
        r#"select id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>", invited_at,
             joined_at, is_test_only
           from members where org_id = $1 and (invited_at, id) > ($2, $3) order by invited_at, id limit $4"#,
        org.0,
        beyond.created_at,
        beyond.id,
        page.rows()
    )
    .fetch_all(db)
    .await?;
    Ok(page.page(rows, |row| Cursor { created_at: row.invited_at, id: row.id.0 }))
}

/// Returns a member of an organization.
pub async fn get(db: &PgPool, org: OrgId, id: MemberId) -> sqlx::Result<Option<Member>> {
    sqlx::query_as!(
        Member,
        r#"select id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>", invited_at,
             joined_at, is_test_only
           from members where id = $1 and org_id = $2"#,
        id.0,
        org.0
    )
    .fetch_optional(db)
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
    /// True if it gives access to test data only.
    pub is_test_only: bool,
}

/// Returns the invitation of a token; `None` when it was accepted or withdrawn, or has expired.
pub async fn invitation(db: &PgPool, token: &str, now: DateTime<Utc>) -> sqlx::Result<Option<Invitation>> {
    sqlx::query_as!(
        Invitation,
        r#"select o.name as organization, m.email, m.role as "role: Parsed<Role>", m.is_test_only
           from members m join organizations o on o.id = m.org_id
           where m.invitation_digest = $1 and m.status = 'invited' and m.invited_at > $2"#,
        keys::digest(token),
        now - INVITATION_TTL
    )
    .fetch_optional(db)
    .await
}

/// An accepted invitation.
pub(crate) struct Joined {
    pub(crate) member: MemberId,
    pub(crate) email: String,
    pub(crate) owner: Owner,
}

/// Accepts an invitation for a person. Returns `None` when it was accepted or withdrawn before, or has expired.
/// Fails on the constraint `members_person_key` when the person is a member already.
pub(crate) async fn join(
    tx: &mut PgConnection,
    token: &str,
    person: PersonId,
    name: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Joined>> {
    let joined = sqlx::query!(
        "update members set status = 'active', name = $2, joined_at = $3, invitation_digest = null, person_id = $5
         where invitation_digest = $1 and status = 'invited' and invited_at > $4
         returning id, org_id, email, is_test_only",
        keys::digest(token),
        name,
        now,
        now - INVITATION_TTL,
        person.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = joined else { return Ok(None) };
    let details = json!({ "email": row.email, "name": name });
    let change = Change { action: Action::MemberJoined, object: row.id, details };
    audit::record_shared(tx, OrgId(row.org_id), by, now, change).await?;
    let mode = if row.is_test_only { Mode::Test } else { Mode::Live };
    let owner = Owner { org: OrgId(row.org_id), mode };
    Ok(Some(Joined { member: MemberId(row.id), email: row.email, owner }))
}

/// Removes a member, unless they are the last owner, and ends their sessions. Nothing of the person is kept if they are
/// in no other organization. An invited owner doesn't replace an active one, because they may never accept, nor one with
/// access to test data only an owner of both.
pub async fn remove(
    db: &PgPool,
    owner: Owner,
    id: MemberId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Result<(), Refused>> {
    let mut tx = crate::begin(db).await?;
    if let Err(refused) = check(&mut tx, owner, id, true).await? {
        return Ok(Err(refused));
    }
    let removed = sqlx::query!(
        "delete from members where id = $1 and org_id = $2 returning email, person_id",
        id.0,
        owner.org.0
    )
    .fetch_one(&mut *tx)
    .await?;
    if let Some(person) = removed.person_id {
        people::forget(&mut tx, PersonId(person)).await?;
    }
    let details = json!({ "email": removed.email });
    let change = Change { action: Action::MemberRemoved, object: id.0, details };
    audit::record_shared(&mut tx, owner.org, by, now, change).await?;
    tx.commit().await?;
    Ok(Ok(()))
}

/// Changes the role of a member, unless they are the last owner.
pub async fn set_role(
    db: &PgPool,
    owner: Owner,
    id: MemberId,
    role: Role,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Result<Member, Refused>> {
    let mut tx = crate::begin(db).await?;
    let before = match check(&mut tx, owner, id, role != Role::Owner).await? {
        Ok(before) => before,
        Err(refused) => return Ok(Err(refused)),
    };
    let member = sqlx::query_as!(
        Member,
        r#"update members set role = $3 where id = $1 and org_id = $2
           returning id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>",
             invited_at, joined_at, is_test_only"#,
        id.0,
        owner.org.0,
        role.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    if before != role {
        let details = json!({ "email": member.email, "from": before.as_str(), "role": role.as_str() });
        let change = Change { action: Action::MemberRoleChanged, object: id.0, details };
        audit::record_shared(&mut tx, owner.org, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(Ok(member))
}

/// Locks a member and returns their role, or why they can't be changed. `is_leaving` is true if they would be no owner
/// any more.
async fn check(
    tx: &mut PgConnection,
    owner: Owner,
    id: MemberId,
    is_leaving: bool,
) -> sqlx::Result<Result<Role, Refused>> {
    // Locks all owners, so that of the last two who remove each other concurrently one stays.
    let rows = sqlx::query!(
        r#"select id, role as "role: Parsed<Role>", status as "status: Parsed<Status>", is_test_only from members
           where org_id = $1 and (role = 'owner' or id = $2) order by id for update"#,
        owner.org.0,
        id.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let Some(member) = rows.iter().find(|row| row.id == id.0) else { return Ok(Err(Refused::NotFound)) };
    if owner.mode == Mode::Test && !member.is_test_only {
        return Ok(Err(Refused::Live));
    }
    let mut others = rows.iter().filter(|other| other.id != id.0 && other.role.0 == Role::Owner);
    let can_replace = others.any(|other| {
        (other.status.0 == Status::Active || member.status.0 == Status::Invited)
            && (member.is_test_only || !other.is_test_only)
    });
    if is_leaving && member.role.0 == Role::Owner && !can_replace {
        return Ok(Err(Refused::LastOwner));
    }
    Ok(Ok(member.role.0))
}
