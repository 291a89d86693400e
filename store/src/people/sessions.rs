//! Dashboard sessions.
//!
//! A session is of an API key or of a member, and is found together with them: revoking, expiring or rotating the key
//! and removing the member end it at the next request, and a changed role counts from the next request on. The
//! cookie contains 256 random bits, so a plain SHA-256 digest of it is stored, which is also the session's id.

use crate::{
    decode::Parsed,
    people::{
        audit::{self, Action, Actor, Change},
        keys::{self, Key, key},
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Bound, KeyId, MemberId, Mode, OrgId, Owner, PersonId, client::Client, member::Role, scope::Scope,
};
use serde_json::json;
use sqlx::{PgConnection, PgPool, types::Json};
use uuid::Uuid;

/// Lifetime of a session; activity doesn't extend it.
pub const TTL: TimeDelta = TimeDelta::hours(12);
/// Time without use after which a session ends.
pub const IDLE_TTL: TimeDelta = TimeDelta::hours(2);
/// Maximum number of sessions that are listed.
const SHOWN: i64 = 100;
/// Number of random characters in a session's token: 256 bits.
const LENGTH: usize = 43;

/// A member who is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMember {
    /// Member id.
    pub id: MemberId,
    /// The person.
    pub person: PersonId,
    /// E-mail address.
    pub email: String,
    /// Name.
    pub name: Option<String>,
    /// Role.
    pub role: Role,
    /// True if the member has access to test data only.
    pub is_test_only: bool,
}

/// The one who is signed in.
#[derive(Clone, Debug)]
pub enum Holder {
    /// One with an API key.
    Key(Key),
    /// A member.
    Member(SessionMember),
}

/// A session of the dashboard.
#[derive(Clone, Debug)]
pub struct Session {
    /// Session id.
    pub id: String,
    /// Organization and mode of the data.
    pub owner: Owner,
    /// The one who is signed in.
    pub holder: Holder,
    /// Name of the organization.
    pub organization: String,
}

impl Session {
    /// Returns the scopes of the one who is signed in.
    pub fn scopes(&self) -> &[Scope] {
        match &self.holder {
            Holder::Key(key) => &key.scopes,
            Holder::Member(member) => member.role.scopes(),
        }
    }
}

/// Starts a session of a key and returns its token, which can't be read again. Deletes expired sessions.
pub async fn begin(db: &PgPool, key: &Key, by: &Actor, now: DateTime<Utc>) -> sqlx::Result<String> {
    let token = keys::random_text(LENGTH);
    let mut tx = crate::begin(db).await?;
    insert(&mut tx, &token, key.owner, Credential::Key(key.id), by, now).await?;
    let change =
        Change { action: Action::SessionStarted, object: key.id.0, details: json!({ "key": key.name }) };
    audit::record(&mut tx, key.owner, by, now, change).await?;
    tx.commit().await?;
    Ok(token)
}

/// How a member signed in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method {
    /// With a passkey, by its id here.
    Passkey(Uuid),
    /// By accepting an invitation, and with the passkey of a new person.
    Invitation(Option<Uuid>),
    /// At the OpenID provider.
    OpenId,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Passkey(_) => "passkey",
            Self::Invitation(_) => "invitation",
            Self::OpenId => "openid",
        }
    }

    fn passkey(self) -> Option<Uuid> {
        match self {
            Self::Passkey(id) => Some(id),
            Self::Invitation(id) => id,
            Self::OpenId => None,
        }
    }
}

/// Starts a session of a member in one of their modes and returns its token.
pub(crate) async fn begin_member(
    tx: &mut PgConnection,
    owner: Owner,
    member: MemberId,
    method: Method,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<String> {
    let token = keys::random_text(LENGTH);
    insert(tx, &token, owner, Credential::Member(member, method.passkey()), by, now).await?;
    record_start(tx, owner.org, member, method.name(), by, now).await?;
    Ok(token)
}

/// The key or the member that a new session is of, and the member's passkey.
enum Credential {
    Key(KeyId),
    Member(MemberId, Option<Uuid>),
}

/// Records the start of a member's session in their organization.
async fn record_start(
    tx: &mut PgConnection,
    org: OrgId,
    member: MemberId,
    method: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let details = json!({ "method": method });
    let change = Change { action: Action::SessionStarted, object: member.0, details };
    audit::record_shared(tx, org, by, now, change).await
}

async fn insert(
    tx: &mut PgConnection,
    token: &str,
    owner: Owner,
    credential: Credential,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (key, member, passkey) = match credential {
        Credential::Key(key) => (Some(key.0), None, None),
        Credential::Member(member, passkey) => (None, Some(member.0), passkey),
    };
    sqlx::query!(
        "with ended as (delete from sessions where expires_at <= $6)
         insert into sessions
           (digest, org_id, mode, key_id, member_id, created_at, expires_at, last_used_at, address, user_agent,
            passkey_id)
         values ($1, $2, $3, $4, $5, $6, $7, $6, ($8::text)::inet, $9, $10)",
        keys::digest(token),
        owner.org.0,
        owner.mode.as_str(),
        key,
        member,
        now,
        now + TTL,
        by.address.map(|address| address.to_canonical().to_string()),
        by.agent,
        passkey
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the session of a token; `None` when it has ended, or its key or member is no longer valid. `is_use` counts
/// as a use, to the minute.
pub async fn find(
    db: &PgPool,
    token: &str,
    is_use: bool,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Session>> {
    find_by_digest(db, keys::digest(token), is_use, now).await
}

/// Returns the session with an id, without using it.
pub async fn get(db: &PgPool, id: &str, now: DateTime<Utc>) -> sqlx::Result<Option<Session>> {
    let Ok(digest) = hex::decode(id) else { return Ok(None) };
    find_by_digest(db, digest, false, now).await
}

async fn find_by_digest(
    db: &PgPool,
    digest: Vec<u8>,
    is_use: bool,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Session>> {
    let row = sqlx::query!(
        r#"select s.org_id, s.mode as "mode: Parsed<Mode>", s.key_id, s.member_id, o.name as organization,
             coalesce(s.last_used_at, s.created_at) < $2::timestamptz - interval '1 minute' as "is_stale!"
           from sessions s join organizations o on o.id = s.org_id
           where s.digest = $1 and s.expires_at > $2 and coalesce(s.last_used_at, s.created_at) > $3"#,
        digest,
        now,
        now - IDLE_TTL
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let owner = Owner { org: OrgId(row.org_id), mode: row.mode.0 };
    let holder = match (row.key_id, row.member_id) {
        (Some(id), _) => valid_key(db, owner, id, now).await?.map(Holder::Key),
        (None, Some(id)) => member(db, owner, id).await?.map(Holder::Member),
        (None, None) => None,
    };
    let Some(holder) = holder else { return Ok(None) };
    if is_use && row.is_stale {
        sqlx::query!("update sessions set last_used_at = $2 where digest = $1", digest, now)
            .execute(db)
            .await?;
    }
    Ok(Some(Session { id: hex::encode(digest), owner, holder, organization: row.organization }))
}

async fn valid_key(db: &PgPool, owner: Owner, id: Uuid, now: DateTime<Utc>) -> sqlx::Result<Option<Key>> {
    let row = sqlx::query!(
        r#"select id, org_id, mode as "mode: Parsed<Mode>", name, scopes as "scopes: Vec<Parsed<Scope>>",
             bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four, expires_at, revoked_at,
             last_used_at, created_at, created_by
           from api_keys
           where id = $1 and org_id = $2 and mode = $3 and bound is null and client is null
             and (revoked_at is null or revoked_at > $4) and (expires_at is null or expires_at > $4)"#,
        id,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| key!(row)))
}

async fn member(db: &PgPool, owner: Owner, id: Uuid) -> sqlx::Result<Option<SessionMember>> {
    let row = sqlx::query!(
        r#"select id, person_id as "person_id!", email, name, role as "role: Parsed<Role>", is_test_only
           from members
           where id = $1 and org_id = $2 and status = 'active' and person_id is not null
             and (not is_test_only or $3 = 'test')"#,
        id,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| SessionMember {
        id: MemberId(row.id),
        person: PersonId(row.person_id),
        email: row.email,
        name: row.name,
        role: row.role.0,
        is_test_only: row.is_test_only,
    }))
}

/// A session in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Session id.
    pub id: String,
    /// Name of the organization.
    pub organization: String,
    /// Mode of the data.
    pub mode: Mode,
    /// When it was started.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub last_used_at: DateTime<Utc>,
    /// IP address that it was started from.
    pub address: Option<String>,
    /// `User-Agent` that it was started with.
    pub user_agent: Option<String>,
}

/// Returns the sessions of the same person, or of the same key, latest use first: those that were used last if there
/// are more than [`SHOWN`].
pub async fn list(db: &PgPool, of: &Session, now: DateTime<Utc>) -> sqlx::Result<Vec<Listed>> {
    let (key, person) = holder(of);
    let rows = sqlx::query!(
        r#"select s.digest, o.name as organization, s.mode as "mode: Parsed<Mode>", s.created_at,
             coalesce(s.last_used_at, s.created_at) as "last_used_at!", host(s.address) as address, s.user_agent
           from sessions s join organizations o on o.id = s.org_id left join members m on m.id = s.member_id
           where (s.key_id = $1 or m.person_id = $2) and s.expires_at > $3
             and coalesce(s.last_used_at, s.created_at) > $4
           order by 5 desc, s.digest limit $5"#,
        key,
        person,
        now,
        now - IDLE_TTL,
        SHOWN
    )
    .fetch_all(db)
    .await?;
    let listed = rows.into_iter().map(|row| Listed {
        id: hex::encode(row.digest),
        organization: row.organization,
        mode: row.mode.0,
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        address: row.address,
        user_agent: row.user_agent,
    });
    Ok(listed.collect())
}

/// Sessions to end, of the one who is signed in.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// The session with this id.
    One(&'a str),
    /// All but the present one.
    Others,
}

/// Ends sessions of the same person, or of the same key, and returns how many.
pub async fn end(
    db: &PgPool,
    of: &Session,
    ended: Ended<'_>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<usize> {
    let (key, person) = holder(of);
    let (id, is_kept) = match ended {
        Ended::One(id) => (id, false),
        Ended::Others => (of.id.as_str(), true),
    };
    let Ok(digest) = hex::decode(id) else { return Ok(0) };
    let mut tx = crate::begin(db).await?;
    let rows = sqlx::query!(
        r#"with ended as (
             delete from sessions s
             where (s.digest = $3) <> $4
               and (s.key_id = $1 or s.member_id in (select m.id from members m where m.person_id = $2))
             returning org_id, mode, key_id, member_id
           )
           select e.org_id as "org_id!", e.mode as "mode!: Parsed<Mode>", e.key_id, m.id as "member_id?",
             m.email as "email?"
           from ended e left join members m on m.id = e.member_id"#,
        key,
        person,
        digest,
        is_kept
    )
    .fetch_all(&mut *tx)
    .await?;
    let count = rows.len();
    for row in rows {
        let owner = Owner { org: OrgId(row.org_id), mode: row.mode.0 };
        match (&of.holder, row.key_id, row.member_id.zip(row.email)) {
            (Holder::Key(key), Some(id), _) => {
                let details = json!({ "key": key.name });
                let change = Change { action: Action::SessionEnded, object: id, details };
                audit::record(&mut tx, owner, by, now, change).await?;
            }
            (Holder::Member(_), _, Some((id, email))) => {
                record_end(&mut tx, owner.org, MemberId(id), email, by, now).await?;
            }
            _ => {}
        }
    }
    tx.commit().await?;
    Ok(count)
}

/// Ends the sessions that a passkey started, except the one with the id `kept`.
pub(crate) async fn end_of_passkey(
    tx: &mut PgConnection,
    passkey: Uuid,
    kept: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let rows = sqlx::query!(
        r#"with ended as (
             delete from sessions where passkey_id = $1 and digest <> $2 returning member_id
           )
           select m.org_id, m.id, m.email from ended e join members m on m.id = e.member_id"#,
        passkey,
        hex::decode(kept).unwrap_or_default()
    )
    .fetch_all(&mut *tx)
    .await?;
    for row in rows {
        record_end(tx, OrgId(row.org_id), MemberId(row.id), row.email, by, now).await?;
    }
    Ok(())
}

/// Records the end of a member's session in their organization.
async fn record_end(
    tx: &mut PgConnection,
    org: OrgId,
    member: MemberId,
    email: String,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let change = Change { action: Action::SessionEnded, object: member.0, details: json!({}) };
    audit::record_shared(tx, org, &by.known_as(member, email), now, change).await
}

/// Leads a member's session to another organization or mode of the same person. Returns false when they have no
/// access to it. For each of two organizations it is the end or the start of a session.
pub async fn switch(
    db: &PgPool,
    of: &Session,
    to: Owner,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let Holder::Member(from) = &of.holder else { return Ok(false) };
    let Ok(digest) = hex::decode(&of.id) else { return Ok(false) };
    let mut tx = crate::begin(db).await?;
    let switched = sqlx::query!(
        "update sessions s set org_id = m.org_id, mode = $4, member_id = m.id
         from members m
         where s.digest = $1 and m.person_id = $2 and m.org_id = $3 and m.status = 'active'
           and (not m.is_test_only or $4 = 'test')
         returning m.id, m.email",
        digest,
        from.person.0,
        to.org.0,
        to.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(member) = switched else { return Ok(false) };
    if of.owner.org != to.org {
        record_end(&mut tx, of.owner.org, from.id, from.email.clone(), by, now).await?;
        let id = MemberId(member.id);
        record_start(&mut tx, to.org, id, "switch", &by.known_as(id, member.email), now).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Records that a key which is known was refused for signing in.
pub async fn refuse(
    db: &PgPool,
    owner: Owner,
    key: Uuid,
    reason: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let change = Change { action: Action::SessionRefused, object: key, details: json!({ "reason": reason }) };
    audit::record(&mut tx, owner, by, now, change).await?;
    tx.commit().await
}

/// Records that a person was refused, in each of their organizations.
pub async fn refuse_person(
    db: &PgPool,
    person: PersonId,
    reason: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let details = json!({ "reason": reason });
    let change = Change { action: Action::SessionRefused, object: person.0, details };
    audit::record_person(&mut tx, person, by, now, &change).await?;
    tx.commit().await
}

fn holder(of: &Session) -> (Option<Uuid>, Option<Uuid>) {
    match &of.holder {
        Holder::Key(key) => (Some(key.id.0), None),
        Holder::Member(member) => (None, Some(member.person.0)),
    }
}
