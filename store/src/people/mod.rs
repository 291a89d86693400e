//! People, who are members of organizations and sign in to the dashboard.
//!
//! Only an invitation makes somebody a member, and an e-mail address identifies no person: an administrator of an
//! organization can invite any address and open the link. So an invitation is accepted by a new person, or by the one
//! who is signed in. The operator's OpenID provider is the exception, because it has verified the address.
//!
//! Tables: `organizations`, `members`, `people`, `passkeys`, `identities`, `spent_challenges`, `sessions`, `api_keys`,
//! `audit_entries`.

pub mod audit;
pub mod identities;
pub mod keys;
pub mod organizations;
pub mod passkeys;
pub mod sessions;
pub mod team;

use self::{
    audit::{Action, Actor, Change},
    passkeys::NewPasskey,
    sessions::Method,
};
use crate::decode::Parsed;
use chrono::{DateTime, Utc};
use domain::{
    MemberId, Mode, OrgId, Owner, PersonId,
    member::{INVITATION_TTL, Role},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Attempts to join with an identity: each is lost to a transaction that committed what the next one finds.
const JOIN_ATTEMPTS: usize = 5;
/// Maximum number of invitations that are listed.
const MAX_INVITATIONS: i64 = 100;
/// Constraint that a person is one member of an organization.
const MEMBER_OF_ORG: &str = "members_person_key";

/// An organization that a person is a member of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The organization.
    pub org: OrgId,
    /// Its name.
    pub organization: String,
    /// The person as a member.
    pub member: MemberId,
    /// E-mail address.
    pub email: String,
    /// Role.
    pub role: Role,
    /// True if it gives access to test data only.
    pub is_test_only: bool,
}

impl Membership {
    /// Returns the data that a session starts with.
    fn owner(&self) -> Owner {
        Owner { org: self.org, mode: if self.is_test_only { Mode::Test } else { Mode::Live } }
    }
}

/// Returns the organizations of a person, in the order in which they joined.
pub async fn memberships(db: &PgPool, person: PersonId) -> sqlx::Result<Vec<Membership>> {
    let mut connection = db.acquire().await?;
    memberships_of(&mut connection, person).await
}

async fn memberships_of(tx: &mut PgConnection, person: PersonId) -> sqlx::Result<Vec<Membership>> {
    sqlx::query_as!(
        Membership,
        r#"select m.org_id as org, o.name as organization, m.id as member, m.email, m.role as "role: Parsed<Role>",
             m.is_test_only
           from members m join organizations o on o.id = m.org_id
           where m.person_id = $1 and m.status = 'active'
           order by m.joined_at, m.id"#,
        person.0
    )
    .fetch_all(tx)
    .await
}

/// The person who accepts an invitation.
#[derive(Clone, Debug)]
pub enum Invitee {
    /// A new person, with their first passkey.
    New(PersonId, NewPasskey),
    /// One who is signed in.
    Known(PersonId),
}

/// The result of accepting an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The person is a member and signed in; the token of the session.
    Joined(String),
    /// The person is a member of the organization already.
    IsMember,
    /// The authenticator's credential is in use.
    KnownPasskey,
    /// The invitation was accepted or withdrawn before, or has expired.
    Gone,
}

/// Accepts an invitation and signs the person in.
pub async fn accept(
    db: &PgPool,
    token: &str,
    invitee: Invitee,
    name: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Acceptance> {
    let mut tx = crate::begin(db).await?;
    let (person, passkey) = match invitee {
        Invitee::New(person, passkey) => {
            insert(&mut tx, person, now).await?;
            (person, Some(passkey))
        }
        Invitee::Known(person) => (person, None),
    };
    let joined = match team::join(&mut tx, token, person, name, by, now).await {
        Ok(Some(joined)) => joined,
        Ok(None) => return Ok(Acceptance::Gone),
        Err(sqlx::Error::Database(error)) if error.constraint() == Some(MEMBER_OF_ORG) => {
            return Ok(Acceptance::IsMember);
        }
        Err(error) => return Err(error),
    };
    let by = Actor { member: Some((joined.member, joined.email)), ..by.clone() };
    let passkey = match passkey {
        Some(passkey) => match passkeys::insert(&mut tx, person, passkey, &by, now).await? {
            Some(id) => Some(id),
            None => return Ok(Acceptance::KnownPasskey),
        },
        None => None,
    };
    let method = Method::Invitation(passkey);
    let token = sessions::begin_member(&mut tx, joined.owner, joined.member, method, &by, now).await?;
    tx.commit().await?;
    Ok(Acceptance::Joined(token))
}

async fn insert(tx: &mut PgConnection, person: PersonId, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!("insert into people (id, created_at) values ($1, $2)", person.0, now).execute(tx).await?;
    Ok(())
}

/// Deletes a person who is a member of no organization any more, with their passkeys and identities.
pub(crate) async fn forget(tx: &mut PgConnection, person: PersonId) -> sqlx::Result<()> {
    // Locked first, so that the next statement sees an organization that they join meanwhile.
    sqlx::query!("select from people where id = $1 for update", person.0).execute(&mut *tx).await?;
    sqlx::query!(
        "delete from people where id = $1 and not exists (select from members where person_id = $1)",
        person.0
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A passkey that was verified.
#[derive(Clone, Debug)]
pub struct UsedPasskey {
    /// The passkey's id here.
    pub id: Uuid,
    /// The person who has it.
    pub person: PersonId,
    /// Its new counter and flags.
    pub dynamic_state: Vec<u8>,
}

/// Signs in the person of a passkey and returns the token of the session; `None` when they are a member of no
/// organization.
pub async fn sign_in(
    db: &PgPool,
    passkey: &UsedPasskey,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    let mut tx = crate::begin(db).await?;
    passkeys::touch(&mut tx, passkey.id, &passkey.dynamic_state, now).await?;
    let token = begin(&mut tx, passkey.person, Method::Passkey(passkey.id), by, now).await?;
    tx.commit().await?;
    Ok(token)
}

async fn begin(
    tx: &mut PgConnection,
    person: PersonId,
    method: Method,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    let memberships = memberships_of(tx, person).await?;
    // Live data first: what most sign in for.
    let Some(first) = memberships.iter().find(|one| !one.is_test_only).or(memberships.first()) else {
        return Ok(None);
    };
    let by = Actor { member: Some((first.member, first.email.clone())), ..by.clone() };
    sessions::begin_member(tx, first.owner(), first.member, method, &by, now).await.map(Some)
}

/// A person at the OpenID provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// The provider's id of the person.
    pub subject: String,
    /// E-mail address that the provider has verified, if it has.
    pub email: Option<String>,
    /// Name.
    pub name: Option<String>,
}

/// An invitation of a verified address, or a membership of it from before people could sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    /// The member that the person will be.
    pub member: MemberId,
    /// Name of the organization.
    pub organization: String,
    /// The address.
    pub email: String,
    /// Role.
    pub role: Role,
    /// True if it gives access to test data only.
    pub is_test_only: bool,
}

/// Returns the open invitations of a verified address, by the names of the organizations, without those of which the
/// person is a member.
pub async fn invitations(db: &PgPool, identity: &Identity, now: DateTime<Utc>) -> sqlx::Result<Vec<Invited>> {
    sqlx::query_as!(
        Invited,
        r#"select m.id as member, o.name as organization, m.email, m.role as "role: Parsed<Role>", m.is_test_only
           from members m join organizations o on o.id = m.org_id
           where lower(m.email) = lower($1) and m.person_id is null and (m.status = 'active' or m.invited_at > $2)
             and not exists (
               select from members own join identities i on i.person_id = own.person_id
               where own.org_id = m.org_id and i.issuer = $3 and i.subject = $4)
           order by o.name, m.id limit $5"#,
        identity.email,
        now - INVITATION_TTL,
        identity.issuer,
        identity.subject,
        MAX_INVITATIONS
    )
    .fetch_all(db)
    .await
}

/// Signs in a person by their identity at the OpenID provider and returns the token of the session; `None` when they
/// are a member of no organization. It accepts no invitation: anybody can invite any address.
pub async fn sign_in_with(
    db: &PgPool,
    identity: &Identity,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    let mut tx = crate::begin(db).await?;
    let Some(person) = person(&mut tx, identity).await? else { return Ok(None) };
    let token = begin(&mut tx, person, Method::OpenId, by, now).await?;
    tx.commit().await?;
    Ok(token)
}

/// Accepts one invitation of a verified address, which the person has chosen, and signs them in there. Returns `None`
/// when it was accepted or withdrawn before, or has expired.
pub async fn join_with(
    db: &PgPool,
    identity: &Identity,
    member: MemberId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    for _ in 1..JOIN_ATTEMPTS {
        match attempt_join_with(db, identity, member, by, now).await {
            // Another acceptance of the person has committed first: the next attempt sees it.
            Err(sqlx::Error::Database(error))
                if error
                    .constraint()
                    .is_some_and(|name| ["identities_pkey", MEMBER_OF_ORG].contains(&name)) => {}
            done => return done,
        }
    }
    attempt_join_with(db, identity, member, by, now).await
}

async fn attempt_join_with(
    db: &PgPool,
    identity: &Identity,
    member: MemberId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    let mut tx = crate::begin(db).await?;
    let person = match person(&mut tx, identity).await? {
        Some(person) => person,
        None => {
            let person = PersonId(Uuid::now_v7());
            insert(&mut tx, person, now).await?;
            sqlx::query!(
                "insert into identities (issuer, subject, person_id, created_at) values ($1, $2, $3, $4)",
                identity.issuer,
                identity.subject,
                person.0,
                now
            )
            .execute(&mut *tx)
            .await?;
            person
        }
    };
    let joined = sqlx::query!(
        "update members m set status = 'active', person_id = $1, joined_at = coalesce(joined_at, $3),
           name = coalesce(name, $4), invitation_digest = null
         where id = $6 and lower(email) = lower($2) and person_id is null and (status = 'active' or invited_at > $5)
           and not exists (select from members o where o.org_id = m.org_id and o.person_id = $1)
         returning org_id, email, name, is_test_only",
        person.0,
        identity.email,
        now,
        identity.name,
        now - INVITATION_TTL,
        member.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    // Who joins nothing leaves nothing behind: the transaction is rolled back.
    let Some(row) = joined else { return Ok(None) };
    let details = json!({ "email": row.email, "name": row.name });
    let change = Change { action: Action::MemberJoined, object: member.0, details };
    let by = Actor { member: Some((member, row.email)), ..by.clone() };
    audit::record_shared(&mut tx, OrgId(row.org_id), &by, now, change).await?;
    let mode = if row.is_test_only { Mode::Test } else { Mode::Live };
    let owner = Owner { org: OrgId(row.org_id), mode };
    let token = sessions::begin_member(&mut tx, owner, member, Method::OpenId, &by, now).await?;
    tx.commit().await?;
    Ok(Some(token))
}

/// Returns the person of an identity.
async fn person(tx: &mut PgConnection, identity: &Identity) -> sqlx::Result<Option<PersonId>> {
    let person = sqlx::query_scalar!(
        "select person_id from identities where issuer = $1 and subject = $2",
        identity.issuer,
        identity.subject
    )
    .fetch_optional(tx)
    .await?;
    Ok(person.map(PersonId))
}
