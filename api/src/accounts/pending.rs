//! Logins that cover several accounts: what they offer, and the choice among it.
//!
//! The token is the permission, so that a client's own page can ask and choose without an API key. What
//! was granted is opened by a worker only; here is what people may see of it.

use crate::{
    accounts::{Account, login::plan},
    app::App,
    ask::{self, mistaken},
    http::{
        admission,
        body::Json,
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
    openapi::{tag::Tag, validate::Rules},
    types::{
        bounded_string::Text,
        enum_string::{EnumString, Platform},
        timestamp::Timestamp,
    },
};
use domain::{AccountId, Owner};
use poem::{FromRequest, Request, RequestBody, web::Data};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use std::collections::HashSet;
use store::{accounts, pending::Digest};
use uuid::Uuid;
use workflows::{
    activities::{Finalized, Selection},
    ask::{Answer, Question},
};

/// The operations on logins that wait for a choice.
pub struct Pending;

#[OpenApi(tag = "Tag::Accounts")]
impl Pending {
    /// Get what a login offers
    ///
    /// The token is what the connect flow sent with `status=pending`; it is good for 30 minutes and
    /// needs no API key.
    #[oai(path = "/social-accounts/pending/:token", method = "get", operation_id = "getPendingLogin")]
    async fn get(
        &self,
        app: Data<&App>,
        #[oai(name = "token")] _token: Path<String>,
        login: Login,
    ) -> Result<Json<PendingLogin>, Problem> {
        Ok(Json(get(&app, login.0).await?))
    }

    /// Choose what to connect
    ///
    /// All that is chosen is connected, or nothing. The same choice again is answered again; another is
    /// a conflict. Needs no API key.
    #[oai(
        path = "/social-accounts/pending/:token/finalize",
        method = "post",
        operation_id = "finalizePendingLogin"
    )]
    async fn finalize(
        &self,
        app: Data<&App>,
        token: Path<String>,
        login: Login,
        body: Json<Choice>,
    ) -> Result<Finalization, Problem> {
        let ids: Vec<_> = body.0.page_ids.into_iter().map(|id| id.0).collect();
        let chosen = finalize(&app, &token, &login.0, &ids).await?;
        let data = accounts(&app, chosen.owner, &chosen.accounts).await?;
        let list = Json(ConnectedList {
            account_ids: chosen.accounts.iter().map(|account| account.0).collect(),
            data: data.into_iter().map(Account::from).collect(),
        });
        Ok(if chosen.is_new { Finalization::New(list) } else { Finalization::Again(list) })
    }
}

/// The login that the token in a request's path leads to. It is counted by address and found before the
/// body is read: there is no key that would say who asks.
struct Login(store::pending::Pending);

/// How `poem-openapi` names the first parameter of a path to the router.
const TOKEN: &str = "param0";

impl<'a> FromRequest<'a> for Login {
    async fn from_request(request: &'a Request, _: &mut RequestBody) -> poem::Result<Self> {
        let app: &App = request.data().expect("the endpoint hands its parts to every request");
        admission::count_login(app, request).await?;
        let token = request.raw_path_param(TOKEN).unwrap_or_default();
        Ok(Self(find(app, token).await?.ok_or_else(gone)?))
    }
}

/// What a login offers.
async fn get(app: &App, pending: store::pending::Pending) -> Result<PendingLogin, Problem> {
    let connected = connected(app, &pending).await?;
    let offer = |offer: store::pending::Offer| Offer {
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
        expires_at: pending.expires_at.into(),
        data: pending.offers.into_iter().map(offer).collect(),
    })
}

/// Why an account is not connected for a tenant.
pub(crate) const OTHER_TENANT: &str =
    "the account belongs to another tenant; change its tenant_id first, or reconnect it by its id";

/// Accounts that were chosen.
pub(crate) struct Chosen {
    /// Whose they are.
    pub(crate) owner: Owner,
    /// Which, in the order of the choice.
    pub(crate) accounts: Vec<AccountId>,
    /// Whether it was chosen just now.
    pub(crate) is_new: bool,
}

/// Connects what is chosen of the login that the token leads to.
pub(crate) async fn finalize(
    app: &App,
    token: &str,
    pending: &store::pending::Pending,
    ids: &[String],
) -> Result<Chosen, Problem> {
    let offered: HashSet<_> = pending.offers.iter().map(|offer| &offer.network_unique_id).collect();
    let is_offered = |id: &String| offered.contains(id);
    let issues: Vec<_> = (0u64..)
        .zip(ids)
        .filter(|(_, id)| !is_offered(id))
        .map(|(index, _)| {
            let path = [Segment::from("page_ids"), Segment::Index(index)];
            Issue::custom(path, "The login does not cover it")
        })
        .collect();
    if !issues.is_empty() {
        let detail = "the login does not cover all that was chosen";
        return Err(Problem::new(Code::Unprocessable, detail).with_issues(issues));
    }
    let mut seen = HashSet::new();
    let chosen: Vec<String> = ids.iter().filter(|id| seen.insert(*id)).cloned().collect();
    let owner = pending.owner;
    if let Some(made) = pending.made.as_ref().filter(|made| made.is_of(&chosen)) {
        return Ok(Chosen { owner, accounts: made.accounts.clone(), is_new: false });
    }
    let call = Call { app, owner };
    let plan = plan(&call).await?;
    let selection = Selection {
        token_digest: Digest::of(token).to_string(),
        owner,
        platform: pending.platform.clone(),
        ids: chosen,
        limit: plan.social_accounts,
    };
    match ask::ask(&call, Question::Selection(selection)).await? {
        Answer::Selection(Finalized::Connected { accounts }) => Ok(Chosen { owner, accounts, is_new: true }),
        Answer::Selection(Finalized::Repeated { accounts }) => Ok(Chosen { owner, accounts, is_new: false }),
        Answer::Selection(Finalized::Other) => Err(Problem::new(
            Code::Conflict,
            "something else was chosen before; to connect more, begin again",
        )),
        Answer::Selection(Finalized::OtherTenant { id }) => {
            let index = ids.iter().position(|chosen| *chosen == id).unwrap_or_default();
            let path = [Segment::from("page_ids"), Segment::Index(index as u64)];
            let issue = Issue::custom(path, "The account belongs to another tenant");
            Err(Problem::new(Code::Unprocessable, OTHER_TENANT).with_issues(vec![issue]))
        }
        Answer::Selection(Finalized::Full(room)) => Err(plan.refuse_accounts(room)),
        Answer::Selection(Finalized::Gone) => Err(gone()),
        _ => Err(mistaken()),
    }
}

/// The login that a token leads to, while there is time.
pub(crate) async fn find(app: &App, token: &str) -> Result<Option<store::pending::Pending>, Problem> {
    Ok(store::pending::find(&app.db, Digest::of(token), (app.now)()).await?)
}

/// The platform's ids of what is connected already.
pub(crate) async fn connected(app: &App, pending: &store::pending::Pending) -> Result<Vec<String>, Problem> {
    let ids: Vec<_> = pending.offers.iter().map(|offer| offer.network_unique_id.clone()).collect();
    Ok(accounts::connected(&app.db, pending.owner, &pending.platform, &ids).await?)
}

/// Accounts in this order, without those that were disconnected since.
pub(crate) async fn accounts(
    app: &App,
    owner: Owner,
    ids: &[AccountId],
) -> Result<Vec<accounts::Account>, Problem> {
    let mut found = accounts::some(&app.db, owner, ids).await?;
    found.sort_by_key(|account| ids.iter().position(|id| *id == account.id));
    Ok(found)
}

fn gone() -> Problem {
    Problem::not_found("pending login")
}

/// What is chosen of a login.
#[derive(Debug, Object)]
#[oai(rename = "PendingChoice")]
pub struct Choice {
    /// The ids of what is to be connected, as the login offers them.
    #[oai(validator(min_items = 1, max_items = 1000))]
    pub page_ids: Vec<Text<255>>,
}

impl Rules for Choice {}

/// A login that waits for a choice.
#[derive(Debug, Object)]
pub struct PendingLogin {
    /// Its platform.
    pub platform: EnumString<Platform>,
    /// The end tenant that the accounts are to belong to.
    #[oai(nullable)]
    pub tenant_id: Option<String>,
    /// Until when the choice can be made.
    pub expires_at: Timestamp,
    /// What it offers.
    pub data: Vec<Offer>,
}

/// A page, board, channel, organization or location that can be connected.
#[derive(Debug, Object)]
#[oai(rename = "PendingAccount")]
pub struct Offer {
    /// What it is chosen by: the platform's own id of it.
    pub id: String,
    /// What it is, for example `page` or `location`.
    pub account_type: String,
    /// Its name, for people.
    pub name: String,
    /// Its handle.
    pub username: String,
    /// Its picture.
    #[oai(nullable)]
    pub profile_image_url: Option<String>,
    /// Whether it is connected already; choosing it again renews it.
    pub already_connected: bool,
}

/// The accounts that a choice became.
#[derive(Debug, Object)]
#[oai(rename = "ConnectedAccounts")]
pub struct ConnectedList {
    /// Their ids, in the order of the choice.
    pub account_ids: Vec<Uuid>,
    /// The accounts, without those that were disconnected since.
    pub data: Vec<Account>,
}

/// The answer to a choice.
#[derive(ApiResponse)]
enum Finalization {
    /// The accounts are connected.
    #[oai(status = 201)]
    New(Json<ConnectedList>),
    /// The same choice was made before.
    #[oai(status = 200)]
    Again(Json<ConnectedList>),
}
