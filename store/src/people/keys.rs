//! API keys: authentication and scopes of callers.
//!
//! A key contains 40 random characters and can't be guessed, so a plain SHA-256 digest is stored: slow
//! hashes protect passwords that people choose, and would cost time on every request. The digest of a key with
//! a bound is of another kind, so that a process that knows no bounds does not find the key: during a deploy it
//! would have all data of the organization.

use crate::{
    bounds,
    decode::Parsed,
    page::{Cursor, Page, Request},
    people::audit::{self, Action, Actor, Change},
    usage::ceilings::{self, Exceeded, Kind},
};
use chrono::{DateTime, SubsecRound, Utc};
use domain::{Bound, KeyId, Mode, Owner, client::Client, scope::Scope};
use rand::distr::{Alphanumeric, SampleString};
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

/// Number of random characters in a key.
const LENGTH: usize = 40;
/// Accounts in the bounds of all keys on a page, which ends with the key that reaches it. Keys that have expired are listed
/// as well, and no plan limits their number.
const PAGE_ACCOUNTS: i64 = 10_000;

/// An API key, without its secret text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Key id.
    pub id: KeyId,
    /// Organization and mode that the key gives access to.
    pub owner: Owner,
    /// Label of the key.
    pub name: String,
    /// Operations that the key allows.
    pub scopes: Vec<Scope>,
    /// The data that the key is limited to.
    pub bound: Bound,
    /// Limits of a client token beside its tenant; `None` for an API key.
    pub client: Option<Client>,
    /// Last four characters of the key's text, to tell keys apart.
    pub last_four: String,
    /// When the key expires.
    pub expires_at: Option<DateTime<Utc>>,
    /// When the key was or will be revoked; in the future while a rotated key still works.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When the key was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When the key was created.
    pub created_at: DateTime<Utc>,
    /// E-mail address of the member who created it; `None` for one created by other means.
    pub created_by: Option<String>,
}

/// A key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Organization and mode that the key gives access to; the mode shows in its text.
    pub owner: Owner,
    /// Label of the key.
    pub name: String,
    /// Operations that the key allows.
    pub scopes: Vec<Scope>,
    /// When the key expires; `None` for never.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Reads a [`Key`] from a row that selects its columns.
macro_rules! key {
    ($row:expr) => {
        $crate::people::keys::Key {
            id: $row.id.into(),
            owner: domain::Owner { org: $row.org_id.into(), mode: $row.mode.0 },
            name: $row.name,
            scopes: $crate::decode::unwrap($row.scopes),
            bound: $row.bound.map(|sqlx::types::Json(bound)| bound).unwrap_or_default(),
            client: $row.client.map(|sqlx::types::Json(client)| client),
            last_four: $row.last_four,
            expires_at: $row.expires_at,
            revoked_at: $row.revoked_at,
            last_used_at: $row.last_used_at,
            created_at: $row.created_at,
            created_by: $row.created_by,
        }
    };
}
pub(crate) use key;

struct Row {
    id: Uuid,
    org_id: Uuid,
    mode: Parsed<Mode>,
    name: String,
    scopes: Vec<Parsed<Scope>>,
    bound: Option<Json<Bound>>,
    client: Option<Json<Client>>,
    last_four: String,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    created_by: Option<String>,
}

impl From<Row> for Key {
    fn from(row: Row) -> Self {
        key!(row)
    }
}

/// Creates a key of the whole organization for an operator and returns it with its text, which can't be read again.
pub async fn create(db: &PgPool, new: NewKey, now: DateTime<Utc>) -> sqlx::Result<(Key, String)> {
    let created = create_within(db, new, Bound::Organization, None, &Actor::OPERATOR, now).await?;
    Ok(created.expect("there is no limit"))
}

/// Creates a key with a bound and returns it with its text, which can't be read again; unless that would exceed the
/// `limit` of keys.
pub async fn create_within(
    db: &PgPool,
    new: NewKey,
    bound: Bound,
    limit: Option<u64>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Result<(Key, String), Exceeded>> {
    let text = generate(new.owner.mode);
    let key = Key {
        id: KeyId(Uuid::now_v7()),
        owner: new.owner,
        name: new.name,
        scopes: new.scopes,
        bound,
        client: None,
        last_four: last_four(&text).to_owned(),
        expires_at: new.expires_at.map(|at| at.trunc_subsecs(6)),
        revoked_at: None,
        last_used_at: None,
        created_at: now.trunc_subsecs(6),
        created_by: by.member.as_ref().map(|(_, email)| email.clone()),
    };
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.to_string()).collect();
    let mut tx = crate::begin(db).await?;
    if let Err(exceeded) = ceilings::check(&mut tx, key.owner, Kind::ApiKeys, 1, limit, now).await? {
        return Ok(Err(exceeded));
    }
    sqlx::query!(
        "insert into api_keys (id, org_id, mode, name, digest, last_four, scopes, expires_at, created_at, bound, created_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        key.id.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.name,
        digest(&text),
        key.last_four,
        &scopes,
        key.expires_at,
        key.created_at,
        bounds::stored(&key.bound) as _,
        key.created_by
    )
    .execute(&mut *tx)
    .await?;
    let details = json!({ "name": key.name, "scopes": scopes, "bound": key.bound.to_string() });
    let change = Change { action: Action::KeyCreated, object: key.id.0, details };
    audit::record(&mut tx, key.owner, by, now, change).await?;
    tx.commit().await?;
    Ok(Ok((key, text)))
}

/// Scopes of a client token.
pub const CLIENT_SCOPES: [Scope; 2] = [Scope::AccountsRead, Scope::AccountsWrite];
/// Prefixes of client tokens, by mode.
const CLIENT_PREFIXES: [(Mode, &str); 2] = [(Mode::Live, "ct_live_"), (Mode::Test, "ct_test_")];

/// Creates a client token of a tenant and returns its id and text, which can't be read again. Deletes tokens that
/// expired a day ago.
pub async fn create_client(
    db: &PgPool,
    owner: Owner,
    tenant: &str,
    client: &Client,
    expires_at: DateTime<Utc>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<(KeyId, String)> {
    let (_, prefix) =
        CLIENT_PREFIXES.iter().find(|(mode, _)| *mode == owner.mode).expect("each mode has one");
    let bound = Bound::Tenant(tenant.to_owned());
    let (id, text) = (KeyId(Uuid::now_v7()), format!("{prefix}{}", random_text(LENGTH)));
    let mut tx = crate::begin(db).await?;
    sqlx::query!(
        "with ended as (
           delete from api_keys where id in (
             select id from api_keys
             where org_id = $2 and mode = $3 and client is not null and expires_at < $8::timestamptz - interval '1 day'
             limit 100 for update skip locked)
         )
         insert into api_keys (id, org_id, mode, name, digest, last_four, scopes, expires_at, created_at, bound, client)
         values ($1, $2, $3, 'Client token', $4, $5, $6, $7, $8, $9, $10)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        digest(&text),
        last_four(&text),
        &CLIENT_SCOPES.map(|scope| scope.to_string()),
        expires_at,
        now,
        bounds::stored(&bound) as _,
        Json(client) as _
    )
    .execute(&mut *tx)
    .await?;
    let details = json!({ "bound": bound.to_string(), "expires_at": expires_at });
    let change = Change { action: Action::ClientTokenCreated, object: id.0, details };
    // One is created for each visitor of a customer's page.
    audit::record_counted(&mut tx, owner, by, now, change).await?;
    tx.commit().await?;
    Ok((id, text))
}

/// Revokes a client token within a bound. Returns false when it doesn't exist or is revoked.
pub async fn revoke_client(
    db: &PgPool,
    owner: Owner,
    bound: &Bound,
    id: KeyId,
    by: &Actor,
    at: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let done = sqlx::query!(
        "update api_keys set revoked_at = $4
         where id = $1 and org_id = $2 and mode = $3 and client is not null and revoked_at is null
           and ($5::jsonb is null or bound = $5)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        at,
        bounds::stored(bound) as _
    )
    .execute(&mut *tx)
    .await?;
    if done.rows_affected() > 0 {
        let change = Change { action: Action::ClientTokenRevoked, object: id.0, details: json!({}) };
        audit::record(&mut tx, owner, by, at, change).await?;
    }
    tx.commit().await?;
    Ok(done.rows_affected() > 0)
}

/// Why a client token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedClient {
    /// It expired.
    Expired,
    /// It was revoked.
    Revoked,
}

/// Returns whether a text looks like a key or a client token: what doesn't needs no look-up.
pub fn is_well_formed(text: &str) -> bool {
    let prefixes = ["sk_live_", "sk_test_"].into_iter().chain(CLIENT_PREFIXES.map(|(_, prefix)| prefix));
    let mut rests = prefixes.filter_map(|prefix| text.strip_prefix(prefix));
    rests
        .next()
        .is_some_and(|rest| rest.len() == LENGTH && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns why a client token is not accepted; `None` for any other text, or one that is unknown by now.
pub async fn ended_client(db: &PgPool, text: &str) -> sqlx::Result<Option<EndedClient>> {
    if !CLIENT_PREFIXES.iter().any(|(_, prefix)| text.starts_with(prefix)) {
        return Ok(None);
    }
    let revoked = sqlx::query_scalar!(
        r#"select revoked_at is not null as "revoked!" from api_keys where digest = $1 and client is not null"#,
        digest(text)
    )
    .fetch_optional(db)
    .await?;
    Ok(revoked.map(|revoked| if revoked { EndedClient::Revoked } else { EndedClient::Expired }))
}

/// Returns the key of a text, without counting a request; `None` when it is unknown, revoked or expired.
pub async fn authenticate(db: &PgPool, presented: &str, now: DateTime<Utc>) -> sqlx::Result<Option<Key>> {
    let row = sqlx::query_as!(
        Row,
        r#"update api_keys set last_used_at = $2
           where digest = $1 and client is null and (revoked_at is null or revoked_at > $2) and (expires_at is null or expires_at > $2)
           returning id, org_id, mode as "mode: Parsed<Mode>", name, scopes as "scopes: Vec<Parsed<Scope>>", bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four,
             expires_at, revoked_at, last_used_at, created_at, created_by"#,
        digest(presented),
        now
    );
    Ok(row.fetch_optional(db).await?.map(Key::from))
}

/// Returns the owner and id of a key that has ended or is limited; `None` for one that is valid or unknown.
pub async fn refused(db: &PgPool, text: &str, now: DateTime<Utc>) -> sqlx::Result<Option<(Owner, KeyId)>> {
    let row = sqlx::query!(
        r#"select id, org_id, mode as "mode: Parsed<Mode>" from api_keys
           where digest = $1 and client is null
             and (revoked_at <= $2 or expires_at <= $2 or bound is not null)"#,
        digest(text),
        now
    );
    let row = row.fetch_optional(db).await?;
    Ok(row.map(|row| (Owner { org: row.org_id.into(), mode: row.mode.0 }, row.id.into())))
}

/// Returns a page of the owner's keys that are not revoked, expired ones included, newest first. It may have fewer than
/// its limit.
pub async fn list(db: &PgPool, owner: Owner, now: DateTime<Utc>, page: Request) -> sqlx::Result<Page<Key>> {
    let before = page.before();
    let rows = sqlx::query!(
        r#"select id, org_id, mode as "mode: Parsed<Mode>", name, scopes as "scopes: Vec<Parsed<Scope>>", bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four,
                  expires_at, revoked_at, last_used_at, created_at, created_by, found as "found!"
           from (
             select page.*, count(*) over () as found,
               sum(coalesce(jsonb_array_length(bound -> 'accounts'), 0)) over (order by created_at desc, id desc)
                 - coalesce(jsonb_array_length(bound -> 'accounts'), 0) as before
             from (
               select * from api_keys
               where org_id = $1 and mode = $2 and client is null and (revoked_at is null or revoked_at > $3)
                 and (created_at, id) < ($4, $5)
               order by created_at desc, id desc limit $6) page) sized
           where before < $7
           order by created_at desc, id desc"#,
        owner.org.0,
        owner.mode.as_str(),
        now,
        before.created_at,
        before.id,
        page.rows(),
        PAGE_ACCOUNTS
    )
    .fetch_all(db)
    .await?;
    let found = rows.first().map_or(0, |row| row.found);
    let rows = rows.into_iter().map(|row| key!(row)).collect();
    Ok(page.part(rows, found, |key: &Key| Cursor { created_at: key.created_at, id: key.id.0 }))
}

/// Revokes a key at `at`. Returns false when it doesn't exist or is revoked earlier.
pub async fn revoke(
    db: &PgPool,
    owner: Owner,
    id: KeyId,
    by: &Actor,
    at: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let done = sqlx::query!(
        "update api_keys set revoked_at = $4
         where id = $1 and org_id = $2 and mode = $3 and client is null and (revoked_at is null or revoked_at > $4)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        at
    )
    .execute(&mut *tx)
    .await?;
    if done.rows_affected() > 0 {
        let change = Change { action: Action::KeyRevoked, object: id.0, details: json!({}) };
        audit::record(&mut tx, owner, by, at, change).await?;
    }
    tx.commit().await?;
    Ok(done.rows_affected() > 0)
}

/// Returns a key of the owner, unless it is revoked.
pub async fn get(db: &PgPool, owner: Owner, id: KeyId, now: DateTime<Utc>) -> sqlx::Result<Option<Key>> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, org_id, mode as "mode: Parsed<Mode>", name, scopes as "scopes: Vec<Parsed<Scope>>", bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four,
                  expires_at, revoked_at, last_used_at, created_at, created_by
           from api_keys
           where id = $1 and org_id = $2 and mode = $3 and client is null
             and (revoked_at is null or revoked_at > $4)"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(Key::from))
}

/// Creates a key that replaces another, which is revoked at `until`: the same name, scopes, bound and expiry
/// with another text. Returns `None` when the other key doesn't exist, has expired or is revoked or rotated
/// already; of concurrent calls, one succeeds.
pub async fn rotate(
    db: &PgPool,
    owner: Owner,
    id: KeyId,
    until: DateTime<Utc>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<(Key, String)>> {
    let text = generate(owner.mode);
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query_as!(
        Row,
        r#"with old as (
             update api_keys set revoked_at = $4
             where id = $1 and org_id = $2 and mode = $3 and client is null and revoked_at is null
               and (expires_at is null or expires_at > $5)
             returning name, scopes, bound, expires_at
           )
           insert into api_keys (id, org_id, mode, name, digest, last_four, scopes, bound, expires_at, created_at, created_by)
           select $6, $2, $3, name, $7, $8, scopes, bound, expires_at, $5, $9 from old
           returning id, org_id, mode as "mode: Parsed<Mode>", name, scopes as "scopes: Vec<Parsed<Scope>>", bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four,
                     expires_at, revoked_at, last_used_at, created_at, created_by"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        until,
        now,
        Uuid::now_v7(),
        digest(&text),
        last_four(&text),
        by.member.as_ref().map(|(_, email)| email)
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let details = json!({ "replaces": id.0, "until": until });
    let change = Change { action: Action::KeyRotated, object: row.id, details };
    audit::record(&mut tx, owner, by, now, change).await?;
    tx.commit().await?;
    Ok(Some((row.into(), text)))
}

fn generate(mode: Mode) -> String {
    let prefix = match mode {
        Mode::Live => "sk_live_",
        Mode::Test => "sk_test_",
    };
    prefix.to_owned() + &random_text(LENGTH)
}

fn last_four(text: &str) -> &str {
    &text[text.len() - 4..]
}

/// Returns random letters and digits, for a secret: 43 of them hold 256 bits.
pub fn random_text(length: usize) -> String {
    // `rand::rng()` is a cryptographically secure generator, seeded by the operating system.
    Alphanumeric.sample_string(&mut rand::rng(), length)
}

/// Returns the digest by which the text of a key or token is stored.
pub(crate) fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text).to_vec()
}
