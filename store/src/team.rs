//! The people of an organization.
//!
//! They belong to the organization and not to one of its modes: who looks after it does so for both,
//! so these queries name no mode. An invitation's token is far beyond guessing, so a plain SHA-256
//! digest is all that is kept of it.

use crate::decode::Parsed;
use chrono::{DateTime, Utc};
use domain::{MemberId, OrgId};
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

/// Random characters of an invitation's token: 256 bits.
const TOKEN_LENGTH: usize = 43;

domain::string_enum! {
    /// What a person may do.
    Role, "role" {
        /// Everything, the organization's end included.
        Owner = "owner",
        /// Everything about its data and people.
        Admin = "admin",
        /// Write and publish.
        Publisher = "publisher",
        /// Look.
        Viewer = "viewer",
    }
}

domain::string_enum! {
    /// How far a person has come.
    Status, "status" {
        /// Invited, and not there yet.
        Invited = "invited",
        /// There.
        Active = "active",
    }
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its identifier.
    pub id: MemberId,
    /// Its address, as it was written.
    pub email: String,
    /// Its name, once it told it.
    pub name: Option<String>,
    /// What it may do.
    pub role: Role,
    /// How far it has come.
    pub status: Status,
    /// When it was invited.
    pub invited_at: DateTime<Utc>,
    /// When it accepted.
    pub joined_at: Option<DateTime<Utc>>,
}

/// What removing a person came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Done,
    /// It stays, for nobody else owns the organization.
    LastOwner,
    /// There is no such person.
    None,
}

/// Invites a person and gives the invitation's token, here and never again; `None` when somebody of
/// this address is there already, whatever its capitals.
pub async fn invite(
    db: &PgPool,
    org: OrgId,
    email: &str,
    role: Role,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<(Member, String)>> {
    // `rand::rng()` is a cryptographically secure generator, seeded by the operating system.
    let token = Alphanumeric.sample_string(&mut rand::rng(), TOKEN_LENGTH);
    let member = sqlx::query_as!(
        Member,
        r#"insert into members (id, org_id, email, role, status, invitation_digest, invited_at)
           values ($1, $2, $3, $4, 'invited', $5, $6)
           on conflict (org_id, lower(email)) do nothing
           returning id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>",
             invited_at, joined_at"#,
        Uuid::now_v7(),
        org.0,
        email,
        role.as_str(),
        Sha256::digest(&token).to_vec(),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(member.map(|member| (member, token)))
}

/// Makes the person who founds an organization its owner; `None` when it is there already.
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

/// The people of an organization, in the order they came.
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

/// What a person was invited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The organization's name.
    pub organization: String,
    /// Whom the invitation is for.
    pub email: String,
    /// What the person may do.
    pub role: Role,
}

/// The invitation that a token stands for; `None` when it was accepted or withdrawn.
pub async fn invitation(db: &PgPool, token: &str) -> sqlx::Result<Option<Invitation>> {
    sqlx::query_as!(
        Invitation,
        r#"select o.name as organization, m.email, m.role as "role: Parsed<Role>"
           from members m join organizations o on o.id = m.org_id
           where m.invitation_digest = $1 and m.status = 'invited'"#,
        Sha256::digest(token).to_vec()
    )
    .fetch_optional(db)
    .await
}

/// Accepts an invitation, once; `None` when it was accepted or withdrawn before.
pub async fn accept(
    db: &PgPool,
    token: &str,
    name: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Member>> {
    sqlx::query_as!(
        Member,
        r#"update members set status = 'active', name = $2, joined_at = $3, invitation_digest = null
           where invitation_digest = $1 and status = 'invited'
           returning id, email, name, role as "role: Parsed<Role>", status as "status: Parsed<Status>",
             invited_at, joined_at"#,
        Sha256::digest(token).to_vec(),
        name,
        now
    )
    .fetch_optional(db)
    .await
}

/// Removes a person, unless nobody else owns the organization. One who is only invited does not stand in
/// for an owner who is there: it may never come.
pub async fn remove(db: &PgPool, org: OrgId, id: MemberId) -> sqlx::Result<Removal> {
    let mut tx = db.begin().await?;
    // All owners are locked, so that of the last two who remove each other one stays.
    let owners = sqlx::query!(
        r#"select id, status as "status: Parsed<Status>" from members
           where org_id = $1 and role = 'owner' order by id for update"#,
        org.0
    )
    .fetch_all(&mut *tx)
    .await?;
    if let Some(one) = owners.iter().find(|owner| owner.id == id.0) {
        let stands_in = |other: Status| other == Status::Active || one.status.0 == Status::Invited;
        if !owners.iter().any(|other| other.id != id.0 && stands_in(other.status.0)) {
            return Ok(Removal::LastOwner);
        }
    }
    let done = sqlx::query!("delete from members where id = $1 and org_id = $2", id.0, org.0)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(if done.rows_affected() > 0 { Removal::Done } else { Removal::None })
}
