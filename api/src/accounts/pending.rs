//! Logins that cover several accounts, of which the user selects some.
//!
//! The token authorizes the calls, so that a client's own page can list and select accounts without an API
//! key. Only a worker can decrypt the grant; this module shows the public part.

use crate::{
    accounts::Account,
    app::App,
    http::{
        admission,
        body::Json,
        caller::{Call, FIRST_PARAMETER, actor, identify, path_of},
        plan,
        problem::{Code, Issue, Problem, Segment},
        reach, workers,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{
        bounded_string::Text,
        enum_string::{EnumString, Platform},
        timestamp::Timestamp,
    },
};
use domain::{AccountId, Bound, Owner, scope::Scope};
use poem::{FromRequest, Request, RequestBody, web::Data};
use poem_openapi::{
    ApiResponse, Object, OpenApi,
    auth::{Bearer, BearerAuthorization},
    param::Path,
};
use std::collections::HashSet;
use store::{
    accounts::{self, pending_logins::Digest},
    bounds::{Resource, unbounded},
    people::audit::{Actor, ActorKind},
};
use uuid::Uuid;
use workflows::activities::{LoginSelection, SelectionResult};

/// The operations on pending logins.
pub struct Pending;

#[OpenApi(tag = "Tag::Accounts")]
impl Pending {
    /// Get a pending login
    ///
    /// Takes the token that the connect flow sent with `status=pending`, which is valid for 30 minutes. Needs
    /// no API key.
    #[oai(path = "/social-accounts/pending/:token", method = "get", operation_id = "getPendingLogin")]
    async fn get(
        &self,
        app: Data<&App>,
        #[oai(name = "token")] _token: Path<String>,
        login: Login,
    ) -> Result<Json<PendingLogin>, Problem> {
        Ok(Json(get(&app, login.0).await?))
    }

    /// Finalize a pending login
    ///
    /// Connects all selected accounts, or none. Repeating the same selection returns the same result; a
    /// different selection fails with 409. Needs no API key, unless the login was begun with `confirm`: then a key
    /// with the scope `accounts:write`.
    #[oai(
        path = "/social-accounts/pending/:token/finalize",
        method = "post",
        operation_id = "finalizePendingLogin"
    )]
    async fn finalize(
        &self,
        app: Data<&App>,
        token: Path<String>,
        login: Authorized,
        body: Json<Choice>,
    ) -> Result<Finalization, Problem> {
        let ids: Vec<_> = body.0.page_ids.into_iter().map(|id| id.0).collect();
        let chosen = finalize(&app, &token, &login.login, &ids, &login.by).await?;
        let data = accounts(&app, chosen.owner, &chosen.accounts).await?;
        let list = Json(ConnectedList {
            account_ids: chosen.accounts.iter().map(|account| account.0).collect(),
            data: data.into_iter().map(Account::from).collect(),
        });
        Ok(if chosen.is_new { Finalization::New(list) } else { Finalization::Again(list) })
    }
}

/// The pending login of the token in the path. The request is counted by IP address and the login looked up
/// before the body is read, since there is no API key.
struct Login(accounts::pending_logins::Pending);

impl<'a> FromRequest<'a> for Login {
    async fn from_request(request: &'a Request, _: &mut RequestBody) -> poem::Result<Self> {
        let app: &App = request.data().expect("the router adds the state to every request");
        admission::count_login(app, request).await?;
        let token = request.raw_path_param(FIRST_PARAMETER).unwrap_or_default();
        Ok(Self(find(app, token).await?.ok_or_else(gone)?))
    }
}

/// The pending login of the token in the path, whose accounts the caller may select. One that was begun with
/// `confirm` takes an API key of its organization, and of its tenant if the key has one; to others it is not there.
struct Authorized {
    login: accounts::pending_logins::Pending,
    /// Who selects them.
    by: Actor,
}

impl<'a> FromRequest<'a> for Authorized {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<Self> {
        let Login(login) = Login::from_request(request, body).await?;
        let by = if login.confirm {
            let bearer = Bearer::from_request(request).map_err(|_| {
                Problem::unauthorized(
                    "this login was begun with confirm: an API key finalizes it, as a Bearer token",
                )
            })?;
            let (method, path) = (request.method(), path_of(request));
            let caller = identify(request, &bearer, method, path).await?;
            let call = caller.authorize(Scope::AccountsWrite, method, path, None).await?;
            reach::check_platform(call.client, &login.platform)?;
            let is_own = call.owner == login.owner && is_within(&call, &login).await?;
            if !is_own {
                return Err(gone().into());
            }
            call.by.clone()
        } else {
            let app: &App = request.data().expect("the router adds the state to every request");
            actor(app, request, ActorKind::Login, None)
        };
        Ok(Self { login, by })
    }
}

/// True if the accounts of a login will be within the bound of the caller's key.
async fn is_within(call: &Call<'_>, pending: &accounts::pending_logins::Pending) -> Result<bool, Problem> {
    Ok(match (call.bound, pending.account) {
        (Bound::Organization, _) => true,
        (Bound::Tenant(own), _) => pending.tenant_id.as_ref() == Some(own),
        (_, Some(AccountId(id))) => call.access().contains(call.db(), Resource::Account, id).await?,
        (_, None) => false,
    })
}

/// Returns a pending login.
async fn get(app: &App, pending: accounts::pending_logins::Pending) -> Result<PendingLogin, Problem> {
    let connected = connected(app, &pending).await?;
    let offer = |offer: domain::AccountProfile| Offer {
        already_connected: connected.contains(&offer.network_unique_id),
        id: offer.network_unique_id,
        account_type: offer.account_type,
        name: offer.display_name,
        username: offer.username,
        profile_image_url: offer.profile_image_url,
    };
    Ok(PendingLogin {
        platform: EnumString::of(&pending.platform),
        tenant_id: pending.tenant_id,
        confirm: pending.confirm,
        expires_at: pending.expires_at.into(),
        data: pending.offers.into_iter().map(offer).collect(),
    })
}

/// Detail of the problem that an account belongs to another tenant.
pub(crate) const OTHER_TENANT: &str =
    "the account belongs to another tenant; change its tenant_id first, or reconnect it by its id";

/// The result of finalizing a login.
pub(crate) struct Chosen {
    /// Owner of the accounts.
    pub(crate) owner: Owner,
    /// Account ids, in the order of the selection.
    pub(crate) accounts: Vec<AccountId>,
    /// False if the same selection was finalized before.
    pub(crate) is_new: bool,
}

/// Connects the selected accounts of a pending login.
pub(crate) async fn finalize(
    app: &App,
    token: &str,
    pending: &accounts::pending_logins::Pending,
    ids: &[String],
    by: &Actor,
) -> Result<Chosen, Problem> {
    let offered: HashSet<_> = pending.offers.iter().map(|offer| &offer.network_unique_id).collect();
    let is_offered = |id: &String| offered.contains(id);
    let issues: Vec<_> = (0u64..)
        .zip(ids)
        .filter(|(_, id)| !is_offered(id))
        .map(|(index, _)| {
            let path = [Segment::from("page_ids"), Segment::Index(index)];
            Issue::custom(path, "Not offered by this login")
        })
        .collect();
    if !issues.is_empty() {
        let detail = "the login does not offer all selected accounts";
        return Err(Problem::new(Code::Unprocessable, detail).with_issues(issues));
    }
    let mut seen = HashSet::new();
    let chosen: Vec<String> = ids.iter().filter(|id| seen.insert(*id)).cloned().collect();
    let owner = pending.owner;
    if let Some(selection) = pending.selection.as_ref().filter(|selection| selection.is_same(&chosen)) {
        return Ok(Chosen { owner, accounts: selection.accounts.clone(), is_new: false });
    }
    let call = Call::new(app, owner, &[], by);
    let plan = plan::of(&call).await?;
    let selection = LoginSelection {
        token_digest: Digest::of(token).to_string(),
        owner,
        platform: pending.platform.clone(),
        ids: chosen,
        by: by.clone(),
        limit: plan.social_accounts,
    };
    match workers::request(&call, selection).await? {
        SelectionResult::Connected { accounts } => Ok(Chosen { owner, accounts, is_new: true }),
        SelectionResult::Repeated { accounts } => Ok(Chosen { owner, accounts, is_new: false }),
        SelectionResult::Other => Err(Problem::new(
            Code::Conflict,
            "other accounts were selected before; to connect more, start again",
        )),
        SelectionResult::OtherTenant { id } => {
            let index = ids.iter().position(|chosen| *chosen == id).unwrap_or_default();
            let path = [Segment::from("page_ids"), Segment::Index(index as u64)];
            let issue = Issue::custom(path, "The account belongs to another tenant");
            Err(Problem::new(Code::Unprocessable, OTHER_TENANT).with_issues(vec![issue]))
        }
        SelectionResult::Full(room) => Err(plan.refuse_accounts(room)),
        SelectionResult::Gone => Err(gone()),
    }
}

/// Returns the pending login of a token, unless it has expired.
pub(crate) async fn find(
    app: &App,
    token: &str,
) -> Result<Option<accounts::pending_logins::Pending>, Problem> {
    Ok(accounts::pending_logins::find(&app.db, Digest::of(token), (app.now)()).await?)
}

/// Returns the owner of a pending login, also of one that has expired until it is deleted.
pub(crate) async fn owner(app: &App, token: &str) -> Result<Option<Owner>, Problem> {
    Ok(accounts::pending_logins::owner(&app.db, Digest::of(token)).await?)
}

/// Platform ids of the offered accounts that are already connected.
pub(crate) async fn connected(
    app: &App,
    pending: &accounts::pending_logins::Pending,
) -> Result<Vec<String>, Problem> {
    let ids: Vec<_> = pending.offers.iter().map(|offer| offer.network_unique_id.clone()).collect();
    Ok(accounts::connected_ids(&app.db, pending.owner, &pending.platform, &ids).await?)
}

/// Returns accounts in this order, without disconnected ones.
pub(crate) async fn accounts(
    app: &App,
    owner: Owner,
    ids: &[AccountId],
) -> Result<Vec<accounts::Account>, Problem> {
    let mut found = accounts::get_many(&app.db, unbounded(owner), ids).await?;
    found.sort_by_key(|account| ids.iter().position(|id| *id == account.id));
    Ok(found)
}

fn gone() -> Problem {
    Problem::not_found("pending login")
}

/// A selection of accounts.
#[derive(Debug, Object)]
#[oai(rename = "PendingChoice")]
pub struct Choice {
    /// Ids of the offers to connect.
    #[oai(validator(min_items = 1, max_items = 1000))]
    pub page_ids: Vec<Text<255>>,
}

impl Rules for Choice {}

/// A login that covers several accounts.
#[derive(Debug, Object)]
pub struct PendingLogin {
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// End tenant to assign the accounts to.
    #[oai(nullable)]
    pub tenant_id: Option<String>,
    /// True if finalizing the login takes an API key.
    pub confirm: bool,
    /// Expiry time of the login.
    pub expires_at: Timestamp,
    /// Accounts that can be connected.
    pub data: Vec<Offer>,
}

/// A page, board, channel, organization or location that can be connected.
#[derive(Debug, Object)]
#[oai(rename = "PendingAccount")]
pub struct Offer {
    /// The platform's id, used for the selection.
    pub id: String,
    /// Type of account, for example `page` or `location`.
    pub account_type: String,
    /// Display name.
    pub name: String,
    /// Username.
    pub username: String,
    /// URL of the picture.
    #[oai(nullable)]
    pub profile_image_url: Option<String>,
    /// True if the account is already connected; selecting it reconnects it.
    pub already_connected: bool,
}

/// Accounts connected by a login.
#[derive(Debug, Object)]
#[oai(rename = "ConnectedAccounts")]
pub struct ConnectedList {
    /// Account ids, in the order of the selection.
    pub account_ids: Vec<Uuid>,
    /// The accounts, without disconnected ones.
    pub data: Vec<Account>,
}

/// The response to a selection.
#[derive(ApiResponse)]
enum Finalization {
    /// The accounts are connected.
    #[oai(status = 201)]
    New(Json<ConnectedList>),
    /// The same selection was finalized before.
    #[oai(status = 200)]
    Again(Json<ConnectedList>),
}
