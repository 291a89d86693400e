//! The OAuth callback, and this service's page for selecting accounts.
//!
//! Requests here carry no API key. The callback is authorized by its sealed state, which is claimed once, and
//! the page by its random token. The authorization code goes to a worker encrypted; this process does not
//! exchange it. The user always ends at the redirect URI or on an HTML page, never at a problem document.

use crate::{
    accounts::pending::{self, Chosen},
    app::App,
    connect::{
        binding,
        brand::Brand,
        oauth_state::Refusal,
        pages::{self, ChoicePage},
    },
    http::{
        admission, browser,
        caller::{Call, actor},
        plan,
        problem::{Code, Problem},
        workers,
    },
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{AccountId, LoginError, StateId};
use platforms::Code as AuthorizationCode;
use poem::{
    Body, Request, Response, handler,
    http::{StatusCode, header},
    web::{Data, Path},
};
use std::collections::HashMap;
use store::{
    accounts::{
        self,
        oauth_states::{self, AuthorizationRequest, Claim},
        pending_logins::{Digest, Pending},
    },
    people::audit::{Actor, ActorKind},
    upkeep::vault,
};
use tracing::warn;
use url::{Url, form_urlencoded};
use workflows::activities::{CallbackResult, OAuthCallback};

/// Path of the OAuth callback, below the API's prefix.
pub const CALLBACK: &str = "/connect/callback";
/// Path of the page on which a hosted login begins, below the API's prefix.
pub const BEGIN: &str = "/connect/begin";
/// Path of the selection page, below the API's prefix.
pub const CHOOSE: &str = "/connect/choose";

/// Maximum size of the form, in bytes.
const MAX_FORM_BYTES: usize = 256 << 10;
/// Maximum number of selected accounts.
const MAX_CHOICES: usize = 1000;
/// Maximum length of the platform's error description that is passed on, in characters.
const MAX_DESCRIPTION_LENGTH: usize = 300;

/// Handles the redirect from a platform.
#[handler]
pub(crate) async fn callback(app: Data<&App>, request: &Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let result = match admission::count_login(&app, request).await {
        Ok(()) => handle_callback(&app, request, query).await,
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(error_page)
}

/// Serves the selection page.
#[handler]
pub(crate) async fn choice(app: Data<&App>, request: &Request, token: Path<String>) -> Response {
    let result = match admission::count_login(&app, request).await {
        Ok(()) => show_choice(&app, &token).await,
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(error_page)
}

/// Handles the form of the selection page.
#[handler]
pub(crate) async fn choose(app: Data<&App>, request: &Request, token: Path<String>, body: Body) -> Response {
    let result = match admission::count_login(&app, request).await {
        Ok(()) => {
            let by = actor(&app, request, ActorKind::Login, None);
            submit_choice(&app, &token, body, &by).await
        }
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(error_page)
}

/// Query parameters of the callback.
struct CallbackParams {
    state: String,
    code: Option<String>,
    error: Option<(LoginError, String)>,
}

impl CallbackParams {
    fn read(query: &str) -> Self {
        let mut fields = HashMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            fields.entry(name.into_owned()).or_insert(value.into_owned());
        }
        let mut field = |name: &str| fields.remove(name).filter(|value| !value.is_empty());
        let state = field("state").unwrap_or_default();
        let code = field("code");
        // The standard parameter, and those that platforms use in addition or instead.
        let codes =
            ["error", "error_reason", "error_type", "error_code", "errCode", "denied"].map(&mut field);
        let codes: Vec<_> = codes.into_iter().flatten().collect();
        let description =
            ["error_description", "error_message", "error_msg"].into_iter().find_map(&mut field);
        let error = codes.first().map(|first| {
            let known = codes.iter().map(|code| LoginError::from_oauth_error(code));
            let known = known.into_iter().find(|error| *error != LoginError::ExchangeFailed);
            (known.unwrap_or(LoginError::ExchangeFailed), description.unwrap_or_else(|| first.clone()))
        });
        Self { state, code, error }
    }
}

/// Result of an authorization.
enum CallbackOutcome {
    Connected(AccountId),
    Choice(String),
    Failed(LoginError, String),
}

async fn handle_callback(app: &App, request: &Request, query: &str) -> Result<Response, Problem> {
    let params = CallbackParams::read(query);
    let (state, is_expired) = match app.config.states.open(&params.state, (app.now)()) {
        Ok(state) => (state, false),
        Err(Refusal::Expired(state)) => (state, true),
        Err(Refusal::Forged) => return Ok(pages::invalid()),
    };
    let by = actor(app, request, ActorKind::Login, None);
    let call = Call::new(app, state.owner, &[], &by);
    // Before the state is claimed, so that the login can still be finished where it began.
    if state.is_hosted && !binding::is_same_browser(browser::is_plain(app, request), &params.state, request) {
        return Ok(pages::other_browser(&Brand::of(app, state.owner).await?));
    }
    let (intent, is_first) = match oauth_states::claim(call.db(), call.owner, state.id).await? {
        Some(Claim::First(intent)) => (intent, true),
        Some(Claim::Repeated(intent)) => (intent, false),
        // Claimed states are deleted after a day.
        None => {
            return Ok(pages::failed(&Brand::of(app, state.owner).await?, "", LoginError::StateExpired));
        }
    };
    let failed = |error, detail: &str| CallbackOutcome::Failed(error, detail.to_owned());
    let outcome = if is_expired {
        failed(LoginError::StateExpired, "the login took longer than 15 minutes")
    } else if !is_first {
        failed(LoginError::StateUsed, "this authorization was used before")
    } else if let Some((error, description)) = params.error {
        CallbackOutcome::Failed(error, description)
    } else if let Some(code) = params.code {
        let verifier = app.config.states.verifier(state.id);
        exchange(&call, state.id, &intent, code, verifier).await.unwrap_or_else(|problem| {
            // The state is claimed, so the user must start again.
            warn!(platform = intent.platform, %problem, "An authorization could not be finished");
            failed(LoginError::ExchangeFailed, "the service could not finish the login; start again")
        })
    } else {
        failed(LoginError::ExchangeFailed, "the platform sent neither a code nor an error")
    };
    finish(&call, &intent, outcome).await
}

/// Asks a worker to exchange the authorization code.
async fn exchange(
    call: &Call<'_>,
    authorization: StateId,
    intent: &AuthorizationRequest,
    code: String,
    verifier: String,
) -> Result<CallbackOutcome, Problem> {
    let platform = platforms::get(&intent.platform);
    let sends_verifier = platform.and_then(|platform| platform.auth.oauth()).is_some_and(|oauth| oauth.pkce);
    let credentials = AuthorizationCode {
        code,
        redirect_uri: intent.callback.clone(),
        verifier: sends_verifier.then_some(verifier),
    };
    let token = BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let request = OAuthCallback {
        authorization,
        owner: call.owner,
        platform: intent.platform.clone(),
        sealed: workers::seal(call.app, &credentials, &vault::aad_login(call.owner, &intent.platform)),
        token_digest: Digest::of(&token).to_string(),
        by: call.by.clone(),
        limit: plan::of(call).await?.social_accounts,
    };
    Ok(match workers::request(call, request).await? {
        CallbackResult::Connected { account } => CallbackOutcome::Connected(account),
        CallbackResult::Choice => CallbackOutcome::Choice(token),
        CallbackResult::Refused { error, detail } => CallbackOutcome::Failed(error, detail),
    })
}

/// Redirects the user, or shows a page if there is no redirect URI.
async fn finish(
    call: &Call<'_>,
    intent: &AuthorizationRequest,
    outcome: CallbackOutcome,
) -> Result<Response, Problem> {
    let Some(uri) = &intent.redirect_uri else {
        return match outcome {
            CallbackOutcome::Connected(account) => {
                let account = accounts::get(call.db(), call.access(), account).await?;
                Ok(pages::finished(
                    &Brand::of(call.app, call.owner).await?,
                    &intent.platform,
                    account.as_slice(),
                ))
            }
            CallbackOutcome::Choice(token) => {
                let base_url = call.app.config.base_url.trim_end_matches('/');
                Ok(redirect(&format!("{base_url}{CHOOSE}/{token}")))
            }
            CallbackOutcome::Failed(error, _) => {
                Ok(pages::failed(&Brand::of(call.app, call.owner).await?, &intent.platform, error))
            }
        };
    };
    let result: Vec<(&str, String)> = match outcome {
        CallbackOutcome::Connected(account) => {
            vec![("status", "connected".into()), ("account_ids", account.to_string())]
        }
        CallbackOutcome::Choice(token) => vec![("status", "pending".into()), ("token", token)],
        CallbackOutcome::Failed(error, detail) => vec![
            ("status", "error".into()),
            ("error", error.to_string()),
            (
                "error_description",
                detail.chars().filter(|c| !c.is_control()).take(MAX_DESCRIPTION_LENGTH).collect(),
            ),
        ],
    };
    Ok(redirect(&with_query(uri, &intent.platform, intent.tenant_id.as_deref(), &result)))
}

/// Appends the result to a redirect URI.
fn with_query(uri: &str, platform: &str, tenant_id: Option<&str>, result: &[(&str, String)]) -> String {
    let mut url = Url::parse(uri).expect("a stored redirect URI was validated");
    url.query_pairs_mut()
        .append_pair("platform", platform)
        .extend_pairs(tenant_id.map(|tenant| ("tenant_id", tenant)))
        .extend_pairs(result);
    url.into()
}

fn redirect(to: &str) -> Response {
    pages::private(Response::builder().status(StatusCode::FOUND)).header(header::LOCATION, to).finish()
}

/// The brand of a pending login's pages.
async fn brand_of(app: &App, pending: &Pending) -> Result<Brand, Problem> {
    Brand::of(app, pending.owner).await
}

/// The page of a selection that has expired, or was never there.
async fn gone(app: &App, token: &str) -> Result<Response, Problem> {
    let brand = match pending::owner(app, token).await? {
        Some(owner) => Brand::of(app, owner).await?,
        None => Brand::none(),
    };
    Ok(pages::gone(&brand))
}

async fn show_choice(app: &App, token: &str) -> Result<Response, Problem> {
    let Some(pending) = pending::find(app, token).await? else { return gone(app, token).await };
    if pending.confirm {
        return Ok(pages::elsewhere(&brand_of(app, &pending).await?));
    }
    match &pending.selection {
        Some(made) => {
            let accounts = pending::accounts(app, pending.owner, &made.accounts).await?;
            Ok(pages::finished(&brand_of(app, &pending).await?, &pending.platform, &accounts))
        }
        None => choice_page(app, &pending, StatusCode::OK, &[], None).await,
    }
}

async fn choice_page(
    app: &App,
    pending: &Pending,
    status: StatusCode,
    chosen: &[String],
    error: Option<&str>,
) -> Result<Response, Problem> {
    let page = ChoicePage {
        brand: &brand_of(app, pending).await?,
        platform: &pending.platform,
        offers: &pending.offers,
        connected: &pending::connected(app, pending).await?,
        chosen,
        redirect_uri: pending.redirect_uri.as_deref(),
    };
    Ok(pages::choice(status, &page, error))
}

async fn submit_choice(app: &App, token: &str, body: Body, by: &Actor) -> Result<Response, Problem> {
    let Some(login) = pending::find(app, token).await? else { return gone(app, token).await };
    if login.confirm {
        return Ok(pages::elsewhere(&brand_of(app, &login).await?));
    }
    let Ok(form) = body.into_bytes_limit(MAX_FORM_BYTES).await else { return Ok(pages::invalid()) };
    let ids: Vec<_> = form_urlencoded::parse(&form)
        .filter(|(name, _)| name == "page")
        .map(|(_, value)| value.into_owned())
        .take(MAX_CHOICES + 1)
        .collect();
    if ids.len() > MAX_CHOICES {
        return Ok(pages::invalid());
    }
    if ids.is_empty() {
        let error = "Choose at least one account.";
        return choice_page(app, &login, StatusCode::BAD_REQUEST, &[], Some(error)).await;
    }
    let Chosen { accounts, .. } = match pending::finalize(app, token, &login, &ids, by).await {
        Ok(chosen) => chosen,
        Err(problem) => {
            let status = problem.code.status();
            return match problem.code {
                Code::NotFound => gone(app, token).await,
                Code::Conflict => Ok(pages::already_chosen(&brand_of(app, &login).await?)),
                Code::QuotaExceeded => {
                    let error = "The plan does not allow that many accounts. Select fewer.";
                    choice_page(app, &login, status, &ids, Some(error)).await
                }
                _ if problem.detail == pending::OTHER_TENANT => {
                    let error = "One of these accounts belongs to another tenant. Select others.";
                    choice_page(app, &login, status, &ids, Some(error)).await
                }
                _ if status.is_client_error() => {
                    let error = "Select from the accounts below.";
                    choice_page(app, &login, status, &[], Some(error)).await
                }
                _ => Err(problem),
            };
        }
    };
    let Some(uri) = &login.redirect_uri else {
        let accounts = pending::accounts(app, login.owner, &accounts).await?;
        return Ok(pages::finished(&brand_of(app, &login).await?, &login.platform, &accounts));
    };
    let ids: Vec<_> = accounts.iter().map(AccountId::to_string).collect();
    let result = [("status", "connected".to_owned()), ("account_ids", ids.join(","))];
    Ok(redirect(&with_query(uri, &login.platform, login.tenant_id.as_deref(), &result)))
}

/// Shows a problem as an HTML page.
pub(crate) fn error_page(problem: Problem) -> Response {
    pages::unavailable(problem.code.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_parameter_is_mapped() {
        for (query, expected, description) in [
            ("error=access_denied&error_description=No+thanks", LoginError::AccessDenied, "No thanks"),
            ("error=access_denied&error_reason=user_denied", LoginError::AccessDenied, "access_denied"),
            (
                "error_code=200&error_message=Permissions+error",
                LoginError::ExchangeFailed,
                "Permissions error",
            ),
            ("error=server_error&code=a", LoginError::ExchangeFailed, "server_error"),
            ("error_type=x&error_reason=user_denied", LoginError::AccessDenied, "user_denied"),
            ("error=unauthorized_scope_error", LoginError::InsufficientScope, "unauthorized_scope_error"),
            ("denied=yes", LoginError::ExchangeFailed, "yes"),
        ] {
            let params = CallbackParams::read(&format!("{query}&state=s&state=t"));
            assert_eq!(params.state, "s", "of two the first counts");
            assert_eq!(params.error, Some((expected, description.to_owned())), "{query}");
        }
        let params = CallbackParams::read("code=c%2Bd&state=s&error=");
        assert_eq!((params.code.as_deref(), params.error), (Some("c+d"), None));
        assert!(CallbackParams::read("%ff&&=&code=").code.is_none());
    }

    #[test]
    fn what_an_address_says_already_stays() {
        let result = [("status", "error".to_owned()), ("error_description", "a & b".to_owned())];
        assert_eq!(
            with_query("https://app.example/done?a=b%20c", "x", Some("t/1"), &result),
            "https://app.example/done?a=b%20c&platform=x&tenant_id=t%2F1&status=error&error_description=a+%26+b"
        );
        assert_eq!(with_query("http://localhost:3000", "x", None, &[]), "http://localhost:3000/?platform=x");
    }
}
