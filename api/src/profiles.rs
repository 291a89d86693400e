//! Profiles: groups of accounts, such as a brand or a client. An account is in at most one.

use crate::{
    accounts,
    http::{
        body::{self, Json},
        caller::{Call, Caller, ProfilesRead, ProfilesWrite},
        page::{List, Paging},
        plan,
        problem::{Code, Issue, Problem, Segment},
        query::Query,
        reach,
    },
    openapi::{
        tag::Tag,
        unknown,
        validate::{Null, Rules},
    },
    posts::{
        body::{Defaults, check_size, unknown_members},
        checks, settings,
    },
    types::{
        deleted::DeletedResource,
        json_object::{JsonObject, json_object},
        time_zone,
        timestamp::Timestamp,
    },
};
use domain::{AccountId, Bound, ProfileId};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path, types::MaybeUndefined};
use serde_json::{Map, Value};
use store::{
    accounts::profiles::{self, Created, Edit, NewProfile as New, Saved},
    page::Page,
};
use uuid::Uuid;

/// The operations on profiles.
pub struct Profiles;

#[OpenApi(tag = "Tag::Profiles")]
impl Profiles {
    /// Create a profile
    ///
    /// Accounts listed are removed from their previous profiles. Scope `profiles:write`.
    #[oai(path = "/profiles", method = "post", operation_id = "createProfile")]
    async fn create(
        &self,
        caller: Caller<ProfilesWrite>,
        body: Json<NewProfile>,
    ) -> Result<CreatedProfile, Problem> {
        Ok(CreatedProfile::New(Json(create(&caller.call(), body.0).await?)))
    }

    /// List profiles
    ///
    /// Lists profiles, newest first. A page may have fewer profiles than `limit`, if their settings are large, or none,
    /// with a limited key, while `next_cursor` leads to more. Scope `profiles:read`.
    #[oai(path = "/profiles", method = "get", operation_id = "listProfiles")]
    async fn list(
        &self,
        caller: Caller<ProfilesRead>,
        query: Query<Paging>,
    ) -> Result<Json<ProfileList>, Problem> {
        Ok(Json(list(&caller.call(), &query.0).await?))
    }

    /// Get a profile
    ///
    /// Scope `profiles:read`.
    #[oai(path = "/profiles/:id", method = "get", operation_id = "getProfile")]
    async fn get(&self, caller: Caller<ProfilesRead>, id: Path<String>) -> Result<Json<Profile>, Problem> {
        Ok(Json(get(&caller.call(), &id).await?))
    }

    /// Update a profile
    ///
    /// Updates the fields sent; null clears a nullable field. Scope `profiles:write`.
    #[oai(path = "/profiles/:id", method = "patch", operation_id = "updateProfile")]
    async fn edit(
        &self,
        caller: Caller<ProfilesWrite>,
        id: Path<String>,
        body: Json<ProfilePatch>,
    ) -> Result<Json<Profile>, Problem> {
        Ok(Json(edit(&caller.call(), &id, body.0).await?))
    }

    /// Delete a profile
    ///
    /// The profile's accounts stay connected, without a profile. Scope `profiles:write`.
    #[oai(path = "/profiles/:id", method = "delete", operation_id = "deleteProfile")]
    async fn delete(
        &self,
        caller: Caller<ProfilesWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }
}

/// Creates a profile.
pub async fn create(call: &Call<'_>, body: NewProfile) -> Result<Profile, Problem> {
    let asked = body.social_account_ids.unwrap_or_default();
    if !matches!(call.bound, Bound::Organization | Bound::Tenant(_)) {
        let detail =
            format!("this API key is limited to {}, which a new profile would not be within", call.bound);
        return Err(reach::forbidden(detail));
    }
    let tenant_id = call.tenant(body.tenant_id)?;
    check_accounts(call, &asked).await?;
    let new = New {
        name: body.name,
        tenant_id,
        description: body.description,
        timezone: body.timezone.unwrap_or_else(|| time_zone::DEFAULT.name().to_owned()),
        default_config: config(body.default_config.unwrap_or_default())?,
        accounts: asked.iter().copied().map(AccountId).collect(),
    };
    let plan = plan::of(call).await?;
    match profiles::create(call.db(), call.owner, new, plan.profiles, call.by, call.now()).await? {
        Created::Stored(profile) => shown(call, profile).await,
        Created::UnknownAccounts(strangers) => Err(unknown(&strangers, &asked)),
        Created::Exceeded(exceeded) => Err(plan.refuse_more("profiles", exceeded)),
    }
}

/// Lists profiles.
pub async fn list(call: &Call<'_>, paging: &Paging) -> Result<ProfileList, Problem> {
    let page = List::Profiles.paged(call, paging)?;
    let Page { items: profiles, next } = profiles::list(call.db(), call.access(), page).await?;
    let mut data = Vec::with_capacity(profiles.len());
    for profile in profiles {
        data.push(shown(call, profile).await?);
    }
    Ok(ProfileList { data, next_cursor: List::Profiles.next(call, next) })
}

/// Returns a profile.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Profile, Problem> {
    let profile = profiles::get(call.db(), call.access(), read(id)?).await?;
    shown(call, profile.ok_or_else(missing)?).await
}

/// The profile with those of its accounts that are within the bound of the caller's key.
async fn shown(call: &Call<'_>, mut profile: profiles::Profile) -> Result<Profile, Problem> {
    if call.bound.is_limited() {
        let ids: Vec<_> = profile.social_account_ids.iter().copied().map(AccountId).collect();
        let own = accounts::within(call, &ids).await?;
        profile.social_account_ids.retain(|id| own.contains(&AccountId(*id)));
    }
    Ok(profile.into())
}

/// Checks that the accounts that join a profile are within the bound of the caller's key.
async fn check_accounts(call: &Call<'_>, asked: &[Uuid]) -> Result<(), Problem> {
    if !call.bound.is_limited() {
        return Ok(());
    }
    let ids: Vec<_> = asked.iter().copied().map(AccountId).collect();
    let own = accounts::within(call, &ids).await?;
    let strangers: Vec<_> = ids.into_iter().filter(|id| !own.contains(id)).collect();
    if strangers.is_empty() { Ok(()) } else { Err(unknown(&strangers, asked)) }
}

/// Checks that a change of a profile's accounts to `kept`, or its deletion, which keeps none, changes no account outside
/// of the bound of the caller's key, and takes none out of it.
async fn check_members(call: &Call<'_>, id: ProfileId, kept: &[Uuid]) -> Result<(), Problem> {
    if !call.bound.is_limited() {
        return Ok(());
    }
    let profile = profiles::get(call.db(), call.access(), id).await?.ok_or_else(missing)?;
    let is_left = profile.social_account_ids.iter().any(|account| !kept.contains(account));
    let ids: Vec<_> = profile.social_account_ids.into_iter().map(AccountId).collect();
    if accounts::within(call, &ids).await?.len() < ids.len() {
        let detail = format!("the profile has accounts that are not within {}", call.bound);
        return Err(reach::forbidden(detail));
    }
    // Accounts that leave the profile leave what a key of the profile reaches.
    if is_left && matches!(call.bound, Bound::Profile(_)) {
        let detail =
            format!("this API key is limited to {}; the profile's accounts must stay within it", call.bound);
        return Err(reach::forbidden(detail));
    }
    Ok(())
}

/// Updates a profile.
pub async fn edit(call: &Call<'_>, id: &str, body: ProfilePatch) -> Result<Profile, Problem> {
    let id = read(id)?;
    let asked = body.social_account_ids;
    if call.bound.is_limited() {
        let keeps_tenant = match &body.tenant_id {
            MaybeUndefined::Undefined => true,
            MaybeUndefined::Null => false,
            MaybeUndefined::Value(tenant) => call.bound.tenant() == Some(tenant),
        };
        if !keeps_tenant {
            let detail = format!("this API key is limited to {} and can't change the tenant_id", call.bound);
            return Err(reach::forbidden(detail));
        }
    }
    if let Some(asked) = &asked {
        check_accounts(call, asked).await?;
        check_members(call, id, asked).await?;
    }
    let edit = Edit {
        name: body.name,
        tenant_id: body::change(body.tenant_id),
        description: body::change(body.description),
        timezone: body.timezone,
        default_config: body.default_config.map(config).transpose()?,
        accounts: asked.as_ref().map(|asked| asked.iter().copied().map(AccountId).collect()),
    };
    let edited = profiles::edit(call.db(), call.access(), id, edit, call.by, call.now()).await?;
    shown(call, saved(edited.ok_or_else(missing)?, &asked.unwrap_or_default())?).await
}

/// Deletes a profile.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    check_members(call, id, &[]).await?;
    if !profiles::delete(call.db(), call.access(), id, call.by, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

fn saved(saved: Saved, asked: &[Uuid]) -> Result<profiles::Profile, Problem> {
    let strangers = match saved {
        Saved::Stored(profile) => return Ok(profile),
        Saved::UnknownAccounts(unknown) => unknown,
    };
    Err(unknown(&strangers, asked))
}

/// 422: accounts of the request do not exist.
fn unknown(strangers: &[AccountId], asked: &[Uuid]) -> Problem {
    let is_stranger = |id: &Uuid| strangers.contains(&AccountId(*id));
    let issues = asked.iter().enumerate().filter(|(_, id)| is_stranger(id)).map(|(index, _)| {
        Issue::custom([Segment::from("social_account_ids"), index.into()], "The account does not exist")
    });
    let problem = Problem::new(Code::AccountNotFound, "one or more accounts were not found");
    problem.with_issues(issues.collect())
}

/// Checks the settings and fails if a platform would reject them in any post.
fn config(config: Defaults) -> Result<Value, Problem> {
    let config = settings::defaults(config)?;
    checks::reject_errors(checks::check_settings(&config, "default_config"))?;
    Ok(config)
}

fn read(id: &str) -> Result<ProfileId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("profile")
}

/// A profile to create.
#[derive(Debug, Object)]
pub struct NewProfile {
    /// Display name.
    #[oai(validator(min_length = 1, max_length = 100))]
    pub name: String,
    /// End tenant that it belongs to.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub tenant_id: Option<String>,
    /// Description.
    #[oai(validator(max_length = 1000))]
    pub description: Option<String>,
    /// IANA time zone; `UTC` by default.
    #[oai(validator(max_length = 64))]
    pub timezone: Option<String>,
    /// Default settings by platform for posts to the profile's accounts. A post's own settings override them,
    /// key by key. Each account of a post gets those of its own profile; a reply those that concern replies. They are
    /// copied when a post is created: later changes of the profile do not affect it.
    pub default_config: Option<Defaults>,
    /// Ids of the profile's accounts.
    #[oai(validator(max_items = 1000, unique_items))]
    pub social_account_ids: Option<Vec<Uuid>>,
}

impl Rules for NewProfile {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        time_zone::check(body, "timezone", issues);
        check_size(body, "default_config", issues);
        issues.extend(unknown::issues(&unknown_members(body, "default_config"), false));
    }
}

/// Changes to a profile.
#[derive(Debug, Object)]
pub struct ProfilePatch {
    /// Display name.
    #[oai(validator(min_length = 1, max_length = 100))]
    pub name: Option<String>,
    /// End tenant that it belongs to.
    #[oai(nullable, validator(min_length = 1, max_length = 255))]
    pub tenant_id: MaybeUndefined<String>,
    /// Description.
    #[oai(nullable, validator(max_length = 1000))]
    pub description: MaybeUndefined<String>,
    /// IANA time zone.
    #[oai(validator(max_length = 64))]
    pub timezone: Option<String>,
    /// Default settings by platform; replaces all of them.
    pub default_config: Option<Defaults>,
    /// Ids of the profile's accounts; replaces the list.
    #[oai(validator(max_items = 1000, unique_items))]
    pub social_account_ids: Option<Vec<Uuid>>,
}

impl Rules for ProfilePatch {
    const NULL: Null = Null::Clears;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        time_zone::check(body, "timezone", issues);
        check_size(body, "default_config", issues);
        issues.extend(unknown::issues(&unknown_members(body, "default_config"), false));
    }
}

/// A group of accounts.
#[derive(Debug, Object)]
pub struct Profile {
    /// The profile's id.
    pub id: Uuid,
    /// Display name.
    pub name: String,
    /// End tenant that it belongs to.
    #[oai(nullable)]
    pub tenant_id: Option<String>,
    /// Description.
    #[oai(nullable)]
    pub description: Option<String>,
    /// IANA time zone.
    pub timezone: String,
    /// Settings by platform.
    pub default_config: JsonObject,
    /// Ids of the profile's accounts, oldest first, without disconnected ones.
    pub social_account_ids: Vec<Uuid>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
}

impl From<profiles::Profile> for Profile {
    fn from(profile: profiles::Profile) -> Self {
        Self {
            id: profile.id.0,
            name: profile.name,
            tenant_id: profile.tenant_id,
            description: profile.description,
            timezone: profile.timezone,
            default_config: json_object(profile.default_config),
            social_account_ids: profile.social_account_ids,
            created_at: profile.created_at.into(),
            updated_at: profile.updated_at.into(),
        }
    }
}

/// A page of profiles.
#[derive(Debug, Object)]
pub struct ProfileList {
    /// The profiles, newest first.
    pub data: Vec<Profile>,
    /// Cursor of the next page; absent on the last page.
    #[oai(skip_serializing_if_is_none)]
    pub next_cursor: Option<String>,
}

/// The response to a creation.
#[derive(ApiResponse)]
enum CreatedProfile {
    /// The profile was created.
    #[oai(status = 201)]
    New(Json<Profile>),
}
