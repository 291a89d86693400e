//! API keys.
//!
//! A caller can only grant scopes that their own key has, both when creating and when rotating a key. The
//! key's text is in one response only. A key can be limited to a part of the organization's data; such a key
//! manages no keys (`http::reach`), so that it can't create one without its bound.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, KeysWrite},
        page::{List, Paging},
        plan,
        problem::{Code, Issue, Problem, Segment},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{deleted::DeletedResource, enum_string::EnumString, timestamp::Timestamp},
};
use chrono::TimeDelta;
use domain::{
    AccountId, Bound, KeyId, Mode, Owner, ProfileId,
    scope::{self, Scope},
};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use serde_json::{Map, Value};
use store::{
    accounts,
    bounds::{Resource, unbounded},
    people::keys,
};
use uuid::Uuid;

/// The operations on keys.
pub struct Keys;

#[OpenApi(tag = "Tag::Keys")]
impl Keys {
    /// Create a key
    ///
    /// Grants only scopes that the calling key has. A test key can't create a live key. Only this response
    /// contains `key`. With `tenant_id`, `profile_id` or `account_ids` the key sees and changes only what belongs to
    /// it: accounts, posts all of whose accounts do, their analytics and events, profiles, slots, connect flows and
    /// media that were uploaded with such a key. What concerns the whole organization fails with 403. Scope
    /// `keys:write`.
    #[oai(path = "/api-keys", method = "post", operation_id = "createApiKey")]
    async fn create(&self, caller: Caller<KeysWrite>, body: Json<NewKey>) -> Result<Made, Problem> {
        Ok(Made::New(Json(create(&caller.call(), caller.scopes(), body.0).await?)))
    }

    /// List keys
    ///
    /// Lists the keys of the calling key's mode, newest first, without revoked ones. A page of keys that are limited to many
    /// accounts may have fewer keys than `limit`, while `next_cursor` leads to more. Scope `keys:write`.
    #[oai(path = "/api-keys", method = "get", operation_id = "listApiKeys")]
    async fn list(&self, caller: Caller<KeysWrite>, query: Query<Paging>) -> Result<Json<KeyList>, Problem> {
        Ok(Json(list(&caller.call(), &query.0).await?))
    }

    /// Revoke a key
    ///
    /// Takes effect immediately. The calling key must have all scopes of the revoked key. Scope `keys:write`.
    #[oai(path = "/api-keys/:id", method = "delete", operation_id = "deleteApiKey")]
    async fn delete(
        &self,
        caller: Caller<KeysWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), caller.scopes(), &id).await?))
    }

    /// Rotate a key
    ///
    /// Creates a key with the same name, scopes, bound and expiry; the old key stays valid for `grace_seconds`. The
    /// calling key must have all scopes of the rotated key. Scope `keys:write`.
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

/// Creates a key, limited to the caller's scopes.
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
    hold(granted, &scopes, "grant")?;
    let owner = Owner { mode, ..call.owner };
    let bound = match (body.tenant_id, body.profile_id, body.account_ids) {
        (Some(tenant), _, _) => Bound::Tenant(tenant),
        (_, Some(profile), _) => Bound::Profile(ProfileId(profile)),
        (_, _, Some(accounts)) => Bound::Accounts(accounts.into_iter().map(AccountId).collect()),
        (None, None, None) => Bound::Organization,
    };
    check_bound(call, owner, &bound).await?;
    let new = keys::NewKey { owner, name: body.name, scopes, expires_at };
    let plan = plan::of(call).await?;
    let created = keys::create_within(call.db(), new, bound, plan.api_keys, call.by, now).await?;
    let (key, text) = created.map_err(|exceeded| plan.refuse_more("API keys", exceeded))?;
    Ok(Key { key: Some(text), ..key.into() })
}

/// Checks that the profile or the accounts of a bound exist. A tenant is only a name.
async fn check_bound(call: &Call<'_>, owner: Owner, bound: &Bound) -> Result<(), Problem> {
    // Only a key of the whole organization creates keys, and may do so for the other mode.
    let access = unbounded(owner);
    match bound {
        Bound::Organization | Bound::Tenant(_) => Ok(()),
        Bound::Profile(ProfileId(id)) => {
            if access.contains(call.db(), Resource::Profile, *id).await? {
                return Ok(());
            }
            let issue = Issue::custom(["profile_id"], "The profile does not exist");
            Err(Problem::new(Code::Unprocessable, "the profile was not found").with_issues(vec![issue]))
        }
        Bound::Accounts(ids) => {
            let found = accounts::get_many(call.db(), access, ids).await?;
            let is_unknown = |id: &AccountId| !found.iter().any(|account| account.id == *id);
            let unknown = ids.iter().enumerate().filter(|(_, id)| is_unknown(id)).map(|(index, _)| {
                Issue::custom([Segment::from("account_ids"), index.into()], "The account does not exist")
            });
            let issues: Vec<_> = unknown.collect();
            if issues.is_empty() {
                return Ok(());
            }
            let problem = Problem::new(Code::AccountNotFound, "one or more accounts were not found");
            Err(problem.with_issues(issues))
        }
    }
}

/// Lists the keys of the caller's mode that are not revoked.
pub async fn list(call: &Call<'_>, paging: &Paging) -> Result<KeyList, Problem> {
    let page = List::Keys.paged(call, paging)?;
    let found = keys::list(call.db(), call.owner, call.now(), page).await?;
    let next_cursor = List::Keys.next(call, found.next);
    Ok(KeyList { data: found.items.into_iter().map(Key::from).collect(), next_cursor })
}

/// Revokes a key, if the caller has all of its scopes: a narrow key must not lock its organization out.
pub async fn delete(call: &Call<'_>, granted: &[Scope], id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    let key = keys::get(call.db(), call.owner, id, call.now()).await?.ok_or_else(missing)?;
    hold(granted, &key.scopes, "revoke a key with")?;
    if !keys::revoke(call.db(), call.owner, id, call.by, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// Replaces a key, if the caller has all of its scopes.
pub async fn rotate(call: &Call<'_>, granted: &[Scope], id: &str, body: Rotation) -> Result<Key, Problem> {
    let (id, now) = (read(id)?, call.now());
    let key = keys::get(call.db(), call.owner, id, now).await?.ok_or_else(missing)?;
    hold(granted, &key.scopes, "grant")?;
    let until = now + TimeDelta::seconds(body.grace_seconds.unwrap_or(0).into());
    // The key existed a moment ago: it expired, or was rotated or revoked concurrently.
    let ended =
        || Problem::new(Code::Conflict, "the API key has expired, was revoked or was rotated already");
    let (key, text) =
        keys::rotate(call.db(), call.owner, id, until, call.by, now).await?.ok_or_else(ended)?;
    Ok(Key { key: Some(text), ..key.into() })
}

/// Fails unless all of the scopes are granted; `act` is what the caller wants to do with them.
pub(crate) fn hold(granted: &[Scope], wanted: &[Scope], act: &str) -> Result<(), Problem> {
    let lacking: Vec<_> =
        wanted.iter().filter(|scope| !scope::allows(granted, **scope)).map(|scope| scope.as_str()).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let detail = format!("the caller can't {act} scopes that it lacks: {}", lacking.join(", "));
    Err(Problem::new(Code::Forbidden, detail))
}

fn read(id: &str) -> Result<KeyId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("API key")
}

/// An API key to create.
#[derive(Debug, Object)]
pub struct NewKey {
    /// Display name.
    #[oai(validator(min_length = 1, max_length = 100))]
    pub name: String,
    /// Scopes to grant; `*` grants all.
    #[oai(validator(min_items = 1, max_items = 100, unique_items))]
    pub scopes: Vec<EnumString<Scope>>,
    /// Expiry time. Without it the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// Mode of the data that the key can access; the calling key's mode by default.
    pub mode: Option<EnumString<Mode>>,
    /// Limits the key to this end tenant. At most one of `tenant_id`, `profile_id` and `account_ids`.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub tenant_id: Option<String>,
    /// Limits the key to this profile.
    pub profile_id: Option<Uuid>,
    /// Limits the key to these accounts.
    #[oai(validator(min_items = 1, max_items = 1000, unique_items))]
    pub account_ids: Option<Vec<Uuid>>,
}

/// The members of a new key that limit it.
const BOUNDS: [&str; 3] = ["tenant_id", "profile_id", "account_ids"];

impl Rules for NewKey {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let given = BOUNDS.iter().filter(|name| body.get(**name).is_some_and(|value| !value.is_null()));
        issues.extend(given.skip(1).map(|name| {
            Issue::custom([*name], "Only one of tenant_id, profile_id and account_ids can be given")
        }));
    }
}

/// Options for rotating a key.
#[derive(Debug, Object)]
pub struct Rotation {
    /// Seconds for which the old key stays valid.
    #[oai(validator(minimum(value = "0"), maximum(value = "86400")))]
    pub grace_seconds: Option<u32>,
}

impl Rules for Rotation {
    const IS_OPTIONAL: bool = true;
}

/// An API key.
#[derive(Object)]
#[oai(rename = "Key")]
pub struct Key {
    /// The key's id.
    pub id: Uuid,
    /// Display name.
    pub name: String,
    /// Mode of the data that the key can access.
    pub mode: EnumString<Mode>,
    /// Granted scopes.
    pub scopes: Vec<EnumString<Scope>>,
    /// The end tenant that the key is limited to.
    #[oai(nullable)]
    pub tenant_id: Option<String>,
    /// The profile that the key is limited to.
    #[oai(nullable)]
    pub profile_id: Option<Uuid>,
    /// The accounts that the key is limited to.
    #[oai(nullable)]
    pub account_ids: Option<Vec<Uuid>>,
    /// The key's last four characters, for telling keys apart.
    pub last_four: String,
    /// Expiry time; for a rotated key, the end of its grace period. Null if the key does not expire.
    #[oai(nullable)]
    pub expires_at: Option<Timestamp>,
    /// Time of last use, to the minute.
    #[oai(nullable)]
    pub last_used_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// E-mail address of the member who created the key on the dashboard; null if it was created by other means.
    #[oai(nullable)]
    pub created_by: Option<String>,
    /// The key's text. Only in the response that created the key.
    #[oai(skip_serializing_if_is_none)]
    pub key: Option<String>,
}

impl From<keys::Key> for Key {
    fn from(key: keys::Key) -> Self {
        let (tenant_id, profile_id, account_ids) = match key.bound {
            Bound::Organization => (None, None, None),
            Bound::Tenant(tenant) => (Some(tenant), None, None),
            Bound::Profile(profile) => (None, Some(profile.0), None),
            Bound::Accounts(ids) => (None, None, Some(ids.into_iter().map(|id| id.0).collect())),
        };
        let ends_at = key.expires_at.into_iter().chain(key.revoked_at).min();
        Self {
            id: key.id.0,
            name: key.name,
            mode: EnumString::of(key.owner.mode.as_str()),
            scopes: key.scopes.iter().map(|scope| EnumString::of(scope.as_str())).collect(),
            tenant_id,
            profile_id,
            account_ids,
            last_four: key.last_four,
            expires_at: ends_at.map(Timestamp::from),
            last_used_at: key.last_used_at.map(Timestamp::from),
            created_at: key.created_at.into(),
            created_by: key.created_by,
            key: None,
        }
    }
}

/// API keys.
#[derive(Object)]
pub struct KeyList {
    /// The keys, newest first.
    pub data: Vec<Key>,
    /// Cursor of the next page; absent on the last page.
    #[oai(skip_serializing_if_is_none)]
    pub next_cursor: Option<String>,
}

/// The response to creating or rotating a key.
#[derive(ApiResponse)]
enum Made {
    /// The key was created.
    #[oai(status = 201)]
    New(Json<Key>),
}
