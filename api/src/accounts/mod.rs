//! Connected social accounts.

pub mod app_password;
pub mod capabilities;
pub mod imports;
pub mod limits;
pub mod pending;
pub(crate) mod resolve;

use crate::{
    accounts::capabilities::Accepted,
    http::{
        body::{self, Json},
        caller::{AccountsRead, AccountsWrite, Call, Caller, PostsWrite},
        page::List,
        problem::{Code, Issue, Problem},
        query::Query,
        reach, workers,
    },
    openapi::{
        tag::Tag,
        validate::{Null, Rules},
    },
    types::{
        deleted::DeletedResource,
        enum_string::{EnumString, Platform},
        timestamp::Timestamp,
    },
};
use domain::{AccountId, Bound, ErrorCode, Failure, ProfileId, SelectOption};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path, types::MaybeUndefined};
use serde_json::{Map, Value};
use store::{
    accounts::{self, AccountStatus, disconnect},
    bounds::Resource,
    publishing::{self, Revived},
};
use uuid::Uuid;
use workflows::{
    activities::{AccountRef, OptionsRequest},
    worker_request::CheckHealth,
};

/// `Retry-After` in seconds when a platform is unavailable and names no time itself.
const RETRY_AFTER_SECONDS: u32 = 30;
/// Maximum number of targets that one call starts over.
const MAX_RETRIED: i64 = 500;

/// The operations on accounts.
pub struct Accounts;

#[OpenApi(tag = "Tag::Accounts")]
impl Accounts {
    /// List accounts
    ///
    /// Lists accounts, newest first, without disconnected ones. Scope `accounts:read`.
    #[oai(path = "/social-accounts", method = "get", operation_id = "listSocialAccounts")]
    async fn list(
        &self,
        caller: Caller<AccountsRead>,
        query: Query<Filter>,
    ) -> Result<Json<AccountPage>, Problem> {
        Ok(Json(list(&caller.call(), query.0).await?))
    }

    /// Get an account
    ///
    /// Scope `accounts:read`.
    #[oai(path = "/social-accounts/:id", method = "get", operation_id = "getSocialAccount")]
    async fn get(&self, caller: Caller<AccountsRead>, id: Path<String>) -> Result<Json<Account>, Problem> {
        Ok(Json(get(&caller.call(), &id).await?))
    }

    /// Update an account
    ///
    /// Updates the fields sent; null clears a nullable field. An account that changes its `tenant_id` leaves its profile,
    /// unless `profile_id` names one, and the keys that are limited to a list of accounts. Scope `accounts:write`.
    #[oai(path = "/social-accounts/:id", method = "patch", operation_id = "updateSocialAccount")]
    async fn edit(
        &self,
        caller: Caller<AccountsWrite>,
        id: Path<String>,
        body: Json<AccountPatch>,
    ) -> Result<Json<Account>, Problem> {
        Ok(Json(edit(&caller.call(), &id, body.0).await?))
    }

    /// Disconnect an account
    ///
    /// Cancels the account's pending targets; published posts stay live. Revokes the grant on platforms that
    /// support it and erases the tokens. Connecting the account again for the same tenant restores its id; for another
    /// tenant it is a new account. Scope `accounts:write`.
    #[oai(path = "/social-accounts/:id", method = "delete", operation_id = "deleteSocialAccount")]
    async fn delete(
        &self,
        caller: Caller<AccountsWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// Check an account
    ///
    /// Calls the platform once as the account, refreshing an expired token, and updates the account's status
    /// from the response. Scope `accounts:read`.
    #[oai(path = "/social-accounts/:id/health", method = "get", operation_id = "getSocialAccountHealth")]
    async fn health(&self, caller: Caller<AccountsRead>, id: Path<String>) -> Result<Json<Health>, Problem> {
        Ok(Json(health(&caller.call(), &id).await?))
    }

    /// Retry what an account lost
    ///
    /// Starts the targets of an account over that ended `dead` with `token_expired` in the last seven days, once
    /// the account is connected again: at most 500 in a call, the latest first. Returns their number. Fails with
    /// 409 while the account is not `active`. Scope `posts:write`.
    #[oai(path = "/social-accounts/:id/retry-failed", method = "post", operation_id = "retryFailedTargets")]
    async fn retry_failed(&self, caller: Caller<PostsWrite>, id: Path<String>) -> Result<Retried, Problem> {
        Ok(Retried::Accepted(Json(retry_failed(&caller.call(), &id).await?)))
    }

    /// Get an account's capabilities
    ///
    /// Returns limits for texts, media and replies, and the JSON Schema of the platform's settings in
    /// `config`. Scope `accounts:read`.
    #[oai(
        path = "/social-accounts/:id/capabilities",
        method = "get",
        operation_id = "getSocialAccountCapabilities"
    )]
    async fn capabilities(
        &self,
        caller: Caller<AccountsRead>,
        id: Path<String>,
    ) -> Result<Json<Accepted>, Problem> {
        Ok(Json(capabilities(&caller.call(), &id).await?))
    }

    /// List options for a setting
    ///
    /// Asks the platform for the options of a kind, for example `boards` or `flairs`; `capabilities` lists
    /// the kinds that an account has. `mentions` (LinkedIn) looks up the organizations and members that a
    /// text can mention. Scope `accounts:read`.
    #[oai(
        path = "/social-accounts/:id/options/:kind",
        method = "get",
        operation_id = "listSocialAccountOptions"
    )]
    async fn options(
        &self,
        caller: Caller<AccountsRead>,
        id: Path<String>,
        kind: Path<String>,
        query: Query<OptionFilter>,
    ) -> Result<Json<OptionList>, Problem> {
        Ok(Json(options(&caller.call(), &id, &kind, query.0.parent).await?))
    }
}

/// Lists the accounts that match a filter.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<AccountPage, Problem> {
    let page = List::Accounts.request(call, filter.limit, filter.cursor.as_deref())?;
    let found = accounts::list(call.db(), call.access(), &filter.into(), page).await?;
    let next_cursor = List::Accounts.next(call, found.next);
    Ok(AccountPage { data: found.items.into_iter().map(Account::from).collect(), next_cursor })
}

/// Returns an account.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Account, Problem> {
    Ok(find(call, id).await?.into())
}

/// Updates an account.
pub async fn edit(call: &Call<'_>, id: &str, body: AccountPatch) -> Result<Account, Problem> {
    let id = read(id)?;
    check_move(call, &body).await?;
    // The account is checked before the profile, since an error in the path takes precedence.
    accounts::get(call.db(), call.access(), id).await?.ok_or_else(missing)?;
    let edit = accounts::Edit {
        tenant_id: body::change(body.tenant_id),
        profile: body::change(body.profile_id).map(ProfileId),
        display_name: body.display_name,
    };
    let edited = accounts::edit(call.db(), call.access(), id, edit, call.by, call.now()).await?;
    edited.map(Account::from).ok_or_else(|| {
        let issue = Issue::custom(["profile_id"], "The profile does not exist");
        Problem::new(Code::Unprocessable, "the profile was not found").with_issues(vec![issue])
    })
}

/// Checks that an edit keeps the account within the bound of the caller's key.
async fn check_move(call: &Call<'_>, body: &AccountPatch) -> Result<(), Problem> {
    let bound = call.bound;
    if !bound.is_limited() {
        return Ok(());
    }
    let keeps_tenant = match &body.tenant_id {
        MaybeUndefined::Undefined => true,
        MaybeUndefined::Null => false,
        MaybeUndefined::Value(tenant) => bound.tenant() == Some(tenant),
    };
    let keeps_profile = match (&body.profile_id, bound) {
        (MaybeUndefined::Undefined, _) | (MaybeUndefined::Null, Bound::Tenant(_)) => true,
        (MaybeUndefined::Null, _) => false,
        (MaybeUndefined::Value(id), _) => call.access().contains(call.db(), Resource::Profile, *id).await?,
    };
    for (keeps, field) in [(keeps_tenant, "tenant_id"), (keeps_profile, "profile_id")] {
        if !keeps {
            return Err(reach::forbidden(format!(
                "this API key is limited to {bound}; {field} must stay within it"
            )));
        }
    }
    Ok(())
}

/// Disconnects an account.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    if !disconnect::disconnect(call.db(), call.access(), id, call.by, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// Checks an account by calling its platform.
pub async fn health(call: &Call<'_>, id: &str) -> Result<Health, Problem> {
    let account = find(call, id).await?;
    platform(&account)?;
    let report = workers::request(call, CheckHealth(account_ref(call, &account))).await?;
    // The check may have changed the account's status.
    let status = find(call, id).await?.status;
    let (error_code, detail) = match report.failure {
        Some(failure) => (Some(failure.code.to_string()), Some(failure.message)),
        None => (None, None),
    };
    Ok(Health {
        healthy: error_code.is_none(),
        status: EnumString::of(status.as_str()),
        checked_at: report.at.into(),
        error_code,
        detail,
    })
}

/// Returns what an account accepts.
pub async fn capabilities(call: &Call<'_>, id: &str) -> Result<Accepted, Problem> {
    let account = find(call, id).await?;
    Ok(capabilities::of(platform(&account)?, &account))
}

/// Returns true if an account can start targets over that ended because its grant was lost.
pub async fn has_lost_targets(call: &Call<'_>, account: &Account) -> Result<bool, Problem> {
    if account.status.value() != AccountStatus::Active {
        return Ok(false);
    }
    let id = AccountId(account.id);
    Ok(!publishing::lost_with_grant(call.db(), call.access(), id, 1, call.now()).await?.is_empty())
}

/// Starts the targets of an account over that ended because its grant was lost.
pub async fn retry_failed(call: &Call<'_>, id: &str) -> Result<RetriedTargets, Problem> {
    let account = find(call, id).await?;
    if account.status != AccountStatus::Active {
        let detail = format!("the account is {}; connect it again first", account.status);
        return Err(Problem::new(Code::Conflict, detail));
    }
    let now = call.now();
    let lost = publishing::lost_with_grant(call.db(), call.access(), account.id, MAX_RETRIED, now).await?;
    let mut retried = 0;
    for (post, target) in lost {
        let revived = publishing::revive(call.db(), call.access(), post, Some(&[target]), now).await?;
        retried += usize::from(matches!(revived, Revived::Targets(_)));
    }
    Ok(RetriedTargets { retried })
}

/// Lists the options of a setting for an account.
pub async fn options(
    call: &Call<'_>,
    id: &str,
    kind: &str,
    parent: Option<String>,
) -> Result<OptionList, Problem> {
    let account = find(call, id).await?;
    let kinds = capabilities::kinds(platform(&account)?);
    if !kinds.contains(&kind) {
        let detail = match kinds {
            [] => format!("accounts of {} have no options", account.platform),
            kinds => format!("accounts of {} have the options {}", account.platform, kinds.join(", ")),
        };
        return Err(Problem::new(Code::NotFound, detail));
    }
    let request = OptionsRequest { account_ref: account_ref(call, &account), kind: kind.to_owned(), parent };
    let options = workers::request(call, request).await?;
    let options = options.map_err(|failure| refused(&account.platform, failure))?;
    let data = options.into_iter().map(|SelectOption { id, name }| AccountOption { id, name }).collect();
    Ok(OptionList { data })
}

/// Converts a platform's failure to a problem that tells the client what to do.
pub(crate) fn refused(platform: &str, failure: Failure) -> Problem {
    match failure.code {
        ErrorCode::Rejected(_) => {
            Problem::new(Code::Unprocessable, format!("{platform} refused: {}", failure.message))
        }
        ErrorCode::TokenExpired => {
            let message =
                format!("{platform} refused the account's token, connect it again: {}", failure.message);
            Problem::new(Code::Unprocessable, message)
        }
        ErrorCode::RateLimited
        | ErrorCode::Upstream(_)
        | ErrorCode::PollTimeout
        | ErrorCode::NetworkError
        | ErrorCode::Stopped
        | ErrorCode::Frozen
        | ErrorCode::AppRefused => {
            let asked = failure.retry_after.map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX));
            let wait = asked.map_or(RETRY_AFTER_SECONDS, |seconds| seconds.max(1));
            let did = match failure.code {
                ErrorCode::RateLimited => "throttles",
                ErrorCode::AppRefused => "refuses the app",
                _ => "did not answer",
            };
            Problem::away(format!("{platform} {did}: {}", failure.message), wait)
        }
    }
}

/// Returns those of these accounts that are connected and within the bound of the caller's key.
pub(crate) async fn within(call: &Call<'_>, ids: &[AccountId]) -> Result<Vec<AccountId>, Problem> {
    let found = accounts::get_many(call.db(), call.access(), ids).await?;
    Ok(found.into_iter().map(|account| account.id).collect())
}

pub(crate) async fn find(call: &Call<'_>, id: &str) -> Result<accounts::Account, Problem> {
    accounts::get(call.db(), call.access(), read(id)?).await?.ok_or_else(missing)
}

fn read(id: &str) -> Result<AccountId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("social account")
}

pub(crate) fn platform(account: &accounts::Account) -> Result<&'static platforms::Adapter, Problem> {
    platforms::get(&account.platform).ok_or_else(|| {
        let detail = format!("this version of the service does not speak to {}", account.platform);
        Problem::new(Code::Unprocessable, detail)
    })
}

pub(crate) fn account_ref(call: &Call<'_>, account: &accounts::Account) -> AccountRef {
    AccountRef { account: account.id, owner: call.owner, platform: account.platform.clone() }
}

/// Targets that start over.
#[derive(Debug, Object)]
pub struct RetriedTargets {
    /// Number of targets that start over.
    pub retried: usize,
}

/// The response to a retry of an account's targets.
#[derive(ApiResponse)]
enum Retried {
    /// The targets start over.
    #[oai(status = 202)]
    Accepted(Json<RetriedTargets>),
}

/// Filter for accounts. All conditions must hold.
#[derive(Debug, Default, Object)]
#[oai(rename = "SocialAccountFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// The account with this id.
    pub id: Option<Uuid>,
    /// Accounts of this end tenant.
    pub tenant_id: Option<String>,
    /// Accounts of this profile.
    pub profile_id: Option<Uuid>,
    /// Accounts of this platform.
    pub platform: Option<EnumString<Platform>>,
    /// Accounts with exactly this username.
    pub username: Option<String>,
    /// The account with exactly this platform-side id.
    pub network_unique_id: Option<String>,
    /// Alias of `network_unique_id`.
    #[oai(rename = "networkUniqueId")]
    pub network_unique_id_alias: Option<String>,
}

impl Rules for Filter {
    fn check(query: &Map<String, Value>, issues: &mut Vec<Issue>) {
        if let (Some(one), Some(other)) = (query.get("network_unique_id"), query.get("networkUniqueId"))
            && one != other
        {
            issues.push(Issue::custom(
                ["networkUniqueId"],
                "Differs from network_unique_id, which is the same parameter",
            ));
        }
    }
}

impl From<Filter> for accounts::Filter {
    fn from(filter: Filter) -> Self {
        Self {
            id: filter.id.map(AccountId),
            tenant_id: filter.tenant_id,
            profile_id: filter.profile_id,
            platform: filter.platform.map(|platform| platform.as_str().to_owned()),
            username: filter.username,
            network_unique_id: filter.network_unique_id.or(filter.network_unique_id_alias),
        }
    }
}

/// Changes to an account.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountPatch")]
pub struct AccountPatch {
    /// End tenant that it belongs to.
    #[oai(nullable, validator(min_length = 1, max_length = 255))]
    pub tenant_id: MaybeUndefined<String>,
    /// Id of the account's profile.
    #[oai(nullable)]
    pub profile_id: MaybeUndefined<Uuid>,
    /// Display name; reconnecting the account keeps it.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub display_name: Option<String>,
}

impl Rules for AccountPatch {
    const NULL: Null = Null::Clears;
}

/// A page of accounts.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountPage")]
pub struct AccountPage {
    /// The accounts, newest first.
    pub data: Vec<Account>,
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// Result of checking an account.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountHealth")]
pub struct Health {
    /// True if the account's access works.
    pub healthy: bool,
    /// Account status after the check.
    pub status: EnumString<AccountStatus>,
    /// Time of the check.
    pub checked_at: Timestamp,
    /// Error code, for example `token_expired` or `upstream_503`.
    #[oai(nullable)]
    pub error_code: Option<String>,
    /// Human-readable error.
    #[oai(nullable)]
    pub detail: Option<String>,
}

/// Filter for options.
#[derive(Debug, Default, Object)]
#[oai(rename = "SocialAccountOptionFilter")]
pub struct OptionFilter {
    /// Parent of the options, if an account has several, for example a subreddit for its flairs. For
    /// `mentions`, the name to look for; an organization is also found by its number, its e-mail domain or
    /// the address of its page, `https://www.linkedin.com/company/devtestco`.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub parent: Option<String>,
}

impl Rules for OptionFilter {}

/// Options of a setting.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountOptionList")]
pub struct OptionList {
    /// The options, in the platform's order.
    pub data: Vec<AccountOption>,
}

/// An option of a setting.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountOption")]
pub struct AccountOption {
    /// Value for the setting. For `mentions`, the text that mentions it, to be put into a post:
    /// `@[Devtestco](urn:li:organization:2414183)`.
    pub id: String,
    /// Display name.
    pub name: String,
}

/// A connected account. No response contains its tokens.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccount")]
pub struct Account {
    /// The account's id.
    pub id: Uuid,
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// End tenant that it belongs to.
    #[oai(nullable)]
    pub tenant_id: Option<String>,
    /// Id of the account's profile.
    #[oai(nullable)]
    pub profile_id: Option<Uuid>,
    /// Id of the OAuth app that the account was connected through; null for a shared app.
    #[oai(nullable)]
    pub social_network_id: Option<Uuid>,
    /// The platform's id of the account.
    pub network_unique_id: String,
    /// Username on the platform.
    pub username: String,
    /// Display name.
    pub display_name: String,
    /// Type of account on the platform, for example `profile` or `page`.
    pub account_type: String,
    /// URL of the profile picture.
    #[oai(nullable)]
    pub profile_image_url: Option<String>,
    /// URL of the public profile.
    #[oai(nullable)]
    pub profile_url: Option<String>,
    /// Connection status.
    pub status: EnumString<AccountStatus>,
    /// Permissions granted by the platform.
    pub scopes: Vec<String>,
    /// Features that are off because the platform granted too few scopes. Connecting the account again with these
    /// scopes turns them on.
    pub unavailable: Vec<UnavailableFeature>,
    /// Expiry time of the access token, which is refreshed before.
    #[oai(nullable)]
    pub token_expires_at: Option<Timestamp>,
    /// Time at which the platform ends the whole grant, if it tells one: the account has to be connected again until then.
    #[oai(nullable)]
    pub grant_expires_at: Option<Timestamp>,
    /// Time of the last successful call to the platform.
    #[oai(nullable)]
    pub last_synced_at: Option<Timestamp>,
    /// Error code of an account that is not active.
    #[oai(nullable)]
    pub last_error_code: Option<String>,
    /// Time of the first connection.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
}

/// A feature that is off because the account's grant lacks scopes.
#[derive(Debug, Object)]
pub struct UnavailableFeature {
    /// The feature.
    pub feature: EnumString<platforms::Feature>,
    /// Scopes that it needs and that were not granted.
    pub missing_scopes: Vec<String>,
}

/// Returns the features that a grant with these scopes does not open.
fn unavailable(platform: &str, scopes: &[String]) -> Vec<UnavailableFeature> {
    let closed = platforms::get(platform).map(|platform| platform.closed(scopes)).unwrap_or_default();
    let feature = |missing: platforms::Missing| UnavailableFeature {
        feature: EnumString::of(missing.feature.as_str()),
        missing_scopes: missing.scopes.into_iter().map(str::to_owned).collect(),
    };
    closed.into_iter().map(feature).collect()
}

impl From<accounts::Account> for Account {
    fn from(account: accounts::Account) -> Self {
        Self {
            id: account.id.0,
            platform: EnumString::of(&account.platform),
            tenant_id: account.tenant_id,
            profile_id: account.profile_id,
            social_network_id: account.social_network_id,
            network_unique_id: account.network_unique_id,
            username: account.username,
            display_name: account.display_name,
            account_type: account.account_type,
            profile_image_url: account.profile_image_url,
            profile_url: account.profile_url,
            status: EnumString::of(account.status.as_str()),
            unavailable: unavailable(&account.platform, &account.scopes),
            scopes: account.scopes,
            token_expires_at: account.token_expires_at.map(Timestamp),
            grant_expires_at: account.grant_expires_at.map(Timestamp),
            last_synced_at: account.last_synced_at.map(Timestamp),
            last_error_code: account.last_error_code,
            created_at: account.created_at.into(),
            updated_at: account.updated_at.into(),
        }
    }
}
