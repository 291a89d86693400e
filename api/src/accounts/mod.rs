//! Connected social accounts.

pub mod app_password;
pub mod capabilities;
pub mod imports;
pub(crate) mod login;
pub mod pending;
pub(crate) mod resolve;

use crate::{
    accounts::capabilities::Accepted,
    ask,
    http::{
        body::{self, Json},
        caller::{AccountsRead, AccountsWrite, Call, Caller},
        page::List,
        problem::{Code, Issue, Problem},
        query::Query,
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
use domain::{AccountId, Choice, ErrorCode, Failure, ProfileId};
use poem_openapi::{Object, OpenApi, param::Path, types::MaybeUndefined};
use serde_json::{Map, Value};
use store::{
    accounts::{self, AccountStatus},
    disconnect,
};
use uuid::Uuid;
use workflows::{
    activities::{Menu, Voice},
    ask::{Answer, Question},
};

/// Seconds after which a platform that did not answer may be asked again, where it says nothing itself.
const RETRY_AFTER_SECONDS: u32 = 30;

/// The operations on accounts.
pub struct Accounts;

#[OpenApi(tag = "Tag::Accounts")]
impl Accounts {
    /// List accounts
    ///
    /// Newest first, without disconnected ones. Scope `accounts:read`.
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

    /// Change an account
    ///
    /// Only what is sent changes; null clears what can be null. Scope `accounts:write`.
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
    /// What was to be published on it is canceled; what is live stays live. The platform is told where it
    /// wants to know, and the tokens are erased. Connecting the account again brings its id back. Scope
    /// `accounts:write`.
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
    /// Makes one real call in its name, with a fresh token where the old one has expired. The account's
    /// status follows what the platform says. Scope `accounts:read`.
    #[oai(path = "/social-accounts/:id/health", method = "get", operation_id = "getSocialAccountHealth")]
    async fn health(&self, caller: Caller<AccountsRead>, id: Path<String>) -> Result<Json<Health>, Problem> {
        Ok(Json(health(&caller.call(), &id).await?))
    }

    /// Get what an account accepts
    ///
    /// Texts, media, replies, and the JSON Schema of its platform's block in `config`. Scope
    /// `accounts:read`.
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
        Ok(Json(capabilities::of(platform(&find(&caller.call(), &id).await?)?)))
    }

    /// List what a setting can be
    ///
    /// For example `boards` or `flairs`, as the platform lists them now; `capabilities` names those that
    /// an account has. Scope `accounts:read`.
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

/// One page of the accounts that fit.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<AccountPage, Problem> {
    let page = List::Accounts.request(call, filter.limit, filter.cursor.as_deref())?;
    let found = accounts::list(call.db(), call.owner, &filter.into(), page).await?;
    let next_cursor = List::Accounts.next(call, found.next);
    Ok(AccountPage { data: found.items.into_iter().map(Account::from).collect(), next_cursor })
}

/// One account.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Account, Problem> {
    Ok(find(call, id).await?.into())
}

/// Changes an account.
pub async fn edit(call: &Call<'_>, id: &str, body: AccountPatch) -> Result<Account, Problem> {
    let id = read(id)?;
    // First whether there is an account: of it and the profile, the path is the more basic fault.
    accounts::get(call.db(), call.owner, id).await?.ok_or_else(missing)?;
    let edit = accounts::Edit {
        tenant_id: body::change(body.tenant_id),
        profile: body::change(body.profile_id).map(ProfileId),
        display_name: body.display_name,
    };
    let edited = accounts::edit(call.db(), call.owner, id, edit, call.now()).await?;
    edited.map(Account::from).ok_or_else(|| {
        let issue = Issue::custom(["profile_id"], "There is no such profile");
        Problem::new(Code::Unprocessable, "the profile was not found").with_issues(vec![issue])
    })
}

/// Disconnects an account.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    if !disconnect::disconnect(call.db(), call.owner, id, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// One real call in an account's name.
pub async fn health(call: &Call<'_>, id: &str) -> Result<Health, Problem> {
    let account = find(call, id).await?;
    platform(&account)?;
    let Answer::Health(checkup) = ask::ask(call, Question::Health(voice(call, &account))).await? else {
        return Err(ask::mistaken());
    };
    // The call may have changed it, or brought the account back.
    let status = find(call, id).await?.status;
    let (error_code, detail) = match checkup.failure {
        Some(failure) => (Some(failure.code.to_string()), Some(failure.message)),
        None => (None, None),
    };
    Ok(Health {
        healthy: error_code.is_none(),
        status: EnumString::of(status.as_str()),
        checked_at: checkup.at.into(),
        error_code,
        detail,
    })
}

/// What a setting can be for an account.
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
    let menu = Menu { voice: voice(call, &account), kind: kind.to_owned(), parent };
    match ask::ask(call, Question::Options(menu)).await? {
        Answer::Options(Ok(choices)) => {
            let choices = choices.into_iter().map(|Choice { id, name }| AccountOption { id, name });
            Ok(OptionList { data: choices.collect() })
        }
        Answer::Options(Err(failure)) => Err(refused(&account.platform, failure)),
        _ => Err(ask::mistaken()),
    }
}

/// A platform's refusal, as whoever asked can act on it.
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
        | ErrorCode::NetworkError => {
            let asked = failure.retry_after.map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX));
            let wait = asked.map_or(RETRY_AFTER_SECONDS, |seconds| seconds.max(1));
            Problem::away(format!("{platform} did not answer: {}", failure.message), wait)
        }
    }
}

pub(crate) async fn find(call: &Call<'_>, id: &str) -> Result<accounts::Account, Problem> {
    accounts::get(call.db(), call.owner, read(id)?).await?.ok_or_else(missing)
}

fn read(id: &str) -> Result<AccountId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("social account")
}

pub(crate) fn platform(account: &accounts::Account) -> Result<&'static dyn platforms::Platform, Problem> {
    platforms::get(&account.platform).ok_or_else(|| {
        let detail = format!("this version of the service does not speak to {}", account.platform);
        Problem::new(Code::Unprocessable, detail)
    })
}

fn voice(call: &Call<'_>, account: &accounts::Account) -> Voice {
    Voice { account: account.id, owner: call.owner, platform: account.platform.clone() }
}

/// Which accounts to list. All conditions must hold.
#[derive(Debug, Default, Object)]
#[oai(rename = "SocialAccountFilter")]
pub struct Filter {
    /// How many to list, 1 to 100; values beyond are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Only this account.
    pub id: Option<Uuid>,
    /// Accounts of this end tenant.
    pub tenant_id: Option<String>,
    /// Accounts of this profile.
    pub profile_id: Option<Uuid>,
    /// Accounts of this platform.
    pub platform: Option<EnumString<Platform>>,
    /// Exactly this handle.
    pub username: Option<String>,
    /// Exactly this platform-side id.
    pub network_unique_id: Option<String>,
    /// The same as `network_unique_id`.
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

/// What changes about an account.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountPatch")]
pub struct AccountPatch {
    /// The end tenant it belongs to.
    #[oai(nullable, validator(min_length = 1, max_length = 255))]
    pub tenant_id: MaybeUndefined<String>,
    /// The profile it is grouped under.
    #[oai(nullable)]
    pub profile_id: MaybeUndefined<Uuid>,
    /// Its name, for people; connecting it again leaves it as it is.
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
    /// Where the next page begins; null on the last.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// How an account's platform answered for it.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountHealth")]
pub struct Health {
    /// Whether the account can be spoken for.
    pub healthy: bool,
    /// The account's state, after the call.
    pub status: EnumString<AccountStatus>,
    /// When the platform was asked.
    pub checked_at: Timestamp,
    /// What stands against it, for example `token_expired` or `upstream_503`.
    #[oai(nullable)]
    pub error_code: Option<String>,
    /// What stands against it, for people.
    #[oai(nullable)]
    pub detail: Option<String>,
}

/// Which options to list.
#[derive(Debug, Default, Object)]
#[oai(rename = "SocialAccountOptionFilter")]
pub struct OptionFilter {
    /// What the options belong to where one account has several, for example a subreddit for its flairs.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub parent: Option<String>,
}

impl Rules for OptionFilter {}

/// What a setting can be.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountOptionList")]
pub struct OptionList {
    /// The options, in the platform's order.
    pub data: Vec<AccountOption>,
}

/// One thing that a setting can be.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountOption")]
pub struct AccountOption {
    /// What the setting wants.
    pub id: String,
    /// Its name, for people.
    pub name: String,
}

/// A connected account. Its tokens are in no response.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccount")]
pub struct Account {
    /// Its identifier.
    pub id: Uuid,
    /// Its platform.
    pub platform: EnumString<Platform>,
    /// The end tenant it belongs to.
    #[oai(nullable)]
    pub tenant_id: Option<String>,
    /// The profile it is grouped under.
    #[oai(nullable)]
    pub profile_id: Option<Uuid>,
    /// The OAuth app it was connected through; null for a shared app.
    #[oai(nullable)]
    pub social_network_id: Option<Uuid>,
    /// The platform's own id of it.
    pub network_unique_id: String,
    /// Its handle there.
    pub username: String,
    /// Its name, for people.
    pub display_name: String,
    /// What it is there, for example `profile` or `page`.
    pub account_type: String,
    /// Its picture.
    #[oai(nullable)]
    pub profile_image_url: Option<String>,
    /// Its public page.
    #[oai(nullable)]
    pub profile_url: Option<String>,
    /// Whether posts can go to it.
    pub status: EnumString<AccountStatus>,
    /// What the platform allows.
    pub scopes: Vec<String>,
    /// When the access token ends; it is renewed before.
    #[oai(nullable)]
    pub token_expires_at: Option<Timestamp>,
    /// When the platform last answered for it.
    #[oai(nullable)]
    pub last_synced_at: Option<Timestamp>,
    /// Why it is not active.
    #[oai(nullable)]
    pub last_error_code: Option<String>,
    /// When it was first connected.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
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
            scopes: account.scopes,
            token_expires_at: account.token_expires_at.map(Timestamp),
            last_synced_at: account.last_synced_at.map(Timestamp),
            last_error_code: account.last_error_code,
            created_at: account.created_at.into(),
            updated_at: account.updated_at.into(),
        }
    }
}
