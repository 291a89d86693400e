//! API keys: what other calls are made with.
//!
//! Nobody gets more through this than he has: a key grants what its caller may do and no more, and
//! that includes the text of the key that takes another's place. A key's text is in one answer only.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, KeysWrite},
        problem::{Code, Issue, Problem},
    },
    openapi::{tag::Tag, validate::Rules},
    types::{deleted::DeletedResource, enum_string::EnumString, timestamp::Timestamp},
};
use chrono::TimeDelta;
use domain::{
    KeyId, Mode, Owner,
    scope::{self, Scope},
};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use store::keys;
use uuid::Uuid;

/// The operations on keys.
pub struct Keys;

#[OpenApi(tag = "Tag::Keys")]
impl Keys {
    /// Create a key
    ///
    /// With scopes that the calling key has itself. A test key can't create a live one. The answer is
    /// the only one that holds `key`. Scope `keys:write`.
    #[oai(path = "/api-keys", method = "post", operation_id = "createApiKey")]
    async fn create(&self, caller: Caller<KeysWrite>, body: Json<NewKey>) -> Result<Made, Problem> {
        Ok(Made::New(Json(create(&caller.call(), caller.scopes(), body.0).await?)))
    }

    /// List keys
    ///
    /// Those of the calling key's mode, newest first, without revoked ones. Scope `keys:write`.
    #[oai(path = "/api-keys", method = "get", operation_id = "listApiKeys")]
    async fn list(&self, caller: Caller<KeysWrite>) -> Result<Json<KeyList>, Problem> {
        Ok(Json(list(&caller.call()).await?))
    }

    /// Revoke a key
    ///
    /// At once. Scope `keys:write`.
    #[oai(path = "/api-keys/:id", method = "delete", operation_id = "deleteApiKey")]
    async fn delete(
        &self,
        caller: Caller<KeysWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// Rotate a key
    ///
    /// Gives a new key with the same name, scopes and expiry; the old one is valid for `grace_seconds`
    /// more. The calling key must have all scopes of the key. Scope `keys:write`.
    #[oai(path = "/api-keys/:id/rotate", method = "post", operation_id = "rotateApiKey")]
    async fn rotate(
        &self,
        caller: Caller<KeysWrite>,
        id: Path<String>,
        body: Json<Rotation>,
    ) -> Result<Made, Problem> {
        Ok(Made::New(Json(rotate(&caller.call(), caller.scopes(), &id, body.0).await?)))
    }
}

/// Creates a key, with no more than the caller was granted.
pub async fn create(call: &Call<'_>, granted: &[Scope], body: NewKey) -> Result<Key, Problem> {
    let now = call.now();
    let expires_at = body.expires_at.map(|at| at.0);
    if expires_at.is_some_and(|at| at <= now) {
        return Err(Problem::invalid_body(vec![Issue::custom(["expires_at"], "Must be in the future")]));
    }
    let mode = body.mode.map_or(call.owner.mode, |mode| mode.value());
    if (call.owner.mode, mode) == (Mode::Test, Mode::Live) {
        return Err(Problem::new(Code::Forbidden, "a test key can't create a live key"));
    }
    let scopes: Vec<_> = body.scopes.iter().map(EnumString::value).collect();
    hold(granted, &scopes)?;
    let owner = Owner { mode, ..call.owner };
    let new = keys::NewKey { owner, name: body.name, scopes, expires_at };
    let (key, text) = keys::create(call.db(), new, now).await?;
    Ok(Key { key: Some(text), ..key.into() })
}

/// All keys of the caller's mode that are not revoked.
pub async fn list(call: &Call<'_>) -> Result<KeyList, Problem> {
    let keys = keys::list(call.db(), call.owner, call.now()).await?;
    Ok(KeyList { data: keys.into_iter().map(Key::from).collect() })
}

/// Revokes a key.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    if !keys::revoke(call.db(), call.owner, id, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// Gives a key another text, if the caller was granted all that it may do.
pub async fn rotate(call: &Call<'_>, granted: &[Scope], id: &str, body: Rotation) -> Result<Key, Problem> {
    let (id, now) = (read(id)?, call.now());
    let key = keys::get(call.db(), call.owner, id, now).await?.ok_or_else(missing)?;
    hold(granted, &key.scopes)?;
    let until = now + TimeDelta::seconds(body.grace_seconds.unwrap_or(0).into());
    // It was there a moment ago: it has expired, was rotated before, or somebody else was faster.
    let ended =
        || Problem::new(Code::Conflict, "the API key has expired, was revoked or was rotated already");
    let (key, text) = keys::rotate(call.db(), call.owner, id, until, now).await?.ok_or_else(ended)?;
    Ok(Key { key: Some(text), ..key.into() })
}

fn hold(granted: &[Scope], wanted: &[Scope]) -> Result<(), Problem> {
    let lacking: Vec<_> =
        wanted.iter().filter(|scope| !scope::allows(granted, **scope)).map(|scope| scope.as_str()).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let detail = format!("the calling API key can't grant what it lacks: {}", lacking.join(", "));
    Err(Problem::new(Code::Forbidden, detail))
}

fn read(id: &str) -> Result<KeyId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("API key")
}

/// A key to create.
#[derive(Debug, Object)]
pub struct NewKey {
    /// A name, for people.
    #[oai(validator(min_length = 1, max_length = 100))]
    pub name: String,
    /// What it may do; `*` stands for everything.
    #[oai(validator(min_items = 1, max_items = 100, unique_items))]
    pub scopes: Vec<EnumString<Scope>>,
    /// When it ends by itself; never, where none is given.
    pub expires_at: Option<Timestamp>,
    /// Which data it opens; those of the calling key, where none is given.
    pub mode: Option<EnumString<Mode>>,
}

impl Rules for NewKey {}

/// How a key is rotated.
#[derive(Debug, Object)]
pub struct Rotation {
    /// How long the old key stays valid.
    #[oai(validator(minimum(value = "0"), maximum(value = "86400")))]
    pub grace_seconds: Option<u32>,
}

impl Rules for Rotation {
    const IS_OPTIONAL: bool = true;
}

/// An API key.
#[derive(Debug, Object)]
#[oai(rename = "Key")]
pub struct Key {
    /// Its identifier.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// Which data it opens.
    pub mode: EnumString<Mode>,
    /// What it may do.
    pub scopes: Vec<EnumString<Scope>>,
    /// Its last four characters, to tell keys apart.
    pub last_four: String,
    /// When it ends; for a key that was rotated, with its time of grace. Null: never.
    #[oai(nullable)]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[oai(nullable)]
    pub last_used_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The key itself. Only in the answer to the call that made it.
    #[oai(skip_serializing_if_is_none)]
    pub key: Option<String>,
}

impl From<keys::Key> for Key {
    fn from(key: keys::Key) -> Self {
        let ends_at = key.expires_at.into_iter().chain(key.revoked_at).min();
        Self {
            id: key.id.0,
            name: key.name,
            mode: EnumString::of(key.owner.mode.as_str()),
            scopes: key.scopes.iter().map(|scope| EnumString::of(scope.as_str())).collect(),
            last_four: key.last_four,
            expires_at: ends_at.map(Timestamp::from),
            last_used_at: key.last_used_at.map(Timestamp::from),
            created_at: key.created_at.into(),
            key: None,
        }
    }
}

/// API keys.
#[derive(Debug, Object)]
pub struct KeyList {
    /// The keys, newest first.
    pub data: Vec<Key>,
}

/// The answer to a call that made a key.
#[derive(ApiResponse)]
enum Made {
    /// The key was made.
    #[oai(status = 201)]
    New(Json<Key>),
}
