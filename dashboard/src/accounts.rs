//! Accounts and their connection status.

use crate::{
    PATH,
    context::{PageContext, done},
    fields,
    labels::{self, Done, Label, RelativeTime},
    layout::{Layout, PageError, render_leading},
    story::happened,
};
use api::{
    accounts::{self, Filter, app_password, limits},
    connect::{callback, redirect_uri},
    http::{
        body,
        problem::{Code, Problem},
    },
    networks,
};
use askama::Template;
use domain::AccountId;
use platforms::Window;
use poem::{
    Response,
    http::{StatusCode, header},
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use store::accounts::{AccountStatus, grants::END_NOTICE};
use url::Url;

#[derive(Template)]
#[template(path = "accounts.html")]
struct Accounts {
    layout: Layout,
    accounts: Vec<Account>,
    connectable: Vec<(&'static str, String)>,
    older: Option<String>,
    login_result: Option<Result<String, String>>,
    identifier: String,
    service: String,
}

struct Account {
    id: String,
    who: String,
    initial: String,
    name: String,
    /// Platform id, which is also that of its icon.
    platform_id: String,
    label: Label,
    /// True if it has to be connected again.
    is_lost: bool,
    limit: Option<Limit>,
    /// When the next post is tried, if its platform throttles it.
    rests_until: Option<RelativeTime>,
    tenant: Option<String>,
    error: Option<String>,
    expires: Option<RelativeTime>,
    /// End of its grant, within a week.
    ending: Option<RelativeTime>,
    /// Last successful call to the platform.
    synced: Option<RelativeTime>,
    profile: Option<String>,
    /// Values to prefill for reconnecting with an app password.
    handle: Option<String>,
    checkup: Option<String>,
    /// True if targets can be started over that ended because the account's grant was lost.
    has_lost: bool,
}

impl Account {
    /// True if there is something to say below its row.
    fn has_more(&self, layout: &Layout) -> bool {
        let can_retry = self.has_lost && layout.may("posts:write");
        self.checkup.is_some() || self.error.is_some() || can_retry || layout.has_error(&self.id)
    }
}

/// Remaining posts under the limit that an account is nearest to.
struct Limit {
    left: u64,
    limit: u64,
    meaning: String,
}

impl Limit {
    fn of(left: &limits::Left) -> Self {
        let remaining = left.limit.saturating_sub(left.used);
        let window = match left.window {
            Window::Rolling(length) if length.as_secs() % 3_600 == 0 => {
                format!("in any {} h", length.as_secs() / 3_600)
            }
            Window::Rolling(length) => format!("in any {} min", length.as_secs() / 60),
            Window::Day(zone) => format!("today ({zone})"),
        };
        let meaning = format!(
            "{remaining} of {} posts left {window}, after what is published and planned here",
            left.limit
        );
        Self { left: remaining, limit: left.limit, meaning }
    }

    /// Returns the highest number of remaining posts that counts as low.
    fn low(&self) -> u64 {
        self.limit / 5
    }
}

/// Result of checking an account.
pub(crate) struct Checkup {
    account: String,
    message: String,
}

/// Shows the page. After a login that covers several accounts it redirects to the selection page, which leads
/// back here.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    match (context.query.get("status"), context.query.given("token")) {
        ("pending", Some(token)) if token.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) => {
            let base_url = context.app.config.base_url.trim_end_matches('/');
            Ok(lead_to(&format!("{base_url}{}/{token}", callback::CHOOSE)))
        }
        _ => draw(context, None, None).await,
    }
}

async fn draw(
    context: &PageContext<'_>,
    error: Option<PageError>,
    checkup: Option<Checkup>,
) -> Result<Response, Problem> {
    let cursor = context.query.given("cursor").map(str::to_owned);
    let found = accounts::list(&context.call(), Filter { cursor, ..Filter::default() }).await?;
    let mut has_lost = HashSet::new();
    for account in &found.data {
        if accounts::has_lost_targets(&context.call(), account).await? {
            has_lost.insert(account.id);
        }
    }
    let listed: Vec<_> =
        found.data.iter().map(|account| (AccountId(account.id), account.platform.as_str())).collect();
    let now = context.now();
    let left = limits::left(&context.call(), &listed).await?;
    let ids: Vec<_> = listed.iter().map(|(id, _)| *id).collect();
    let resting = limits::resting(&context.call(), &ids).await?;
    let filled = |name| context.form.given(name).or(context.query.given(name)).unwrap_or_default().to_owned();
    let page = Accounts {
        layout: context.layout_with_error("Accounts", "/accounts", error),
        accounts: found
            .data
            .into_iter()
            .map(|account| {
                let id = account.id.to_string();
                let platform = account.platform.as_str();
                let checkup = checkup.as_ref().filter(|checkup| checkup.account == id);
                Account {
                    who: format!("{} on {}", account.username, platforms::display_name(platform)),
                    initial: labels::initial(&account.username),
                    name: account.display_name,
                    platform_id: platform.to_owned(),
                    is_lost: account.status.value() != AccountStatus::Active,
                    limit: left.get(&AccountId(account.id)).map(Limit::of),
                    rests_until: resting.get(&AccountId(account.id)).map(|at| RelativeTime::of(*at, now)),
                    label: labels::account(account.status.value()),
                    tenant: account.tenant_id,
                    error: account
                        .last_error_code
                        .map(|code| happened(&code, platforms::display_name(platform))),
                    expires: account.token_expires_at.map(|at| RelativeTime::of(at.0, now)),
                    ending: (account.grant_expires_at.filter(|at| at.0 < now + END_NOTICE))
                        .map(|at| RelativeTime::of(at.0, now)),
                    synced: account.last_synced_at.map(|at| RelativeTime::of(at.0, now)),
                    profile: account.profile_url.filter(|link| link.starts_with("http")),
                    handle: (!is_oauth(platform))
                        .then(|| fields::write([("identifier", account.username.as_str())])),
                    checkup: checkup.map(|checkup| checkup.message.clone()),
                    has_lost: has_lost.contains(&account.id),
                    id,
                }
            })
            .collect(),
        connectable: platforms::IDS
            .into_iter()
            .filter(|id| is_oauth(id))
            .map(|id| (id, platforms::display_name(id).to_owned()))
            .collect(),
        older: found.next_cursor,
        login_result: login_result(context),
        identifier: filled("identifier"),
        service: filled("service"),
    };
    // The form redirects to a platform's page, or to the sandbox.
    let sandbox =
        context.app.config.sandbox.as_ref().map(|sandbox| sandbox.url().origin().ascii_serialization());
    let places = format!(" https: {}", sandbox.unwrap_or_default());
    Ok(render_leading(page.layout.status(), &page, &places))
}

/// Checks the account by calling its platform.
pub(crate) async fn check(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let health = match accounts::health(&context.call(), id).await {
        Ok(health) => health,
        Err(problem) => return draw(context, Some(PageError::of(id, problem)), None).await,
    };
    let message = match (health.healthy, health.detail) {
        (true, _) => "It works: the platform answered just now.".to_owned(),
        (false, Some(detail)) => format!("It does not work. The platform says: {detail}"),
        (false, None) => "It does not work.".to_owned(),
    };
    draw(context, None, Some(Checkup { account: id.to_owned(), message })).await
}

/// Starts the targets over that the account lost with its grant.
pub(crate) async fn retry(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let retried = match accounts::retry_failed(&context.call(), id).await {
        Ok(answer) => answer.retried,
        Err(problem) => return draw(context, Some(PageError::of(id, problem)), None).await,
    };
    let message = match retried {
        1 => "1 post starts over now.".to_owned(),
        retried => format!("{retried} posts start over now."),
    };
    draw(context, None, Some(Checkup { account: id.to_owned(), message })).await
}

/// Redirects to the platform to reconnect an account.
pub(crate) async fn reconnect(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let account = accounts::get(&context.call(), id).await?;
    let wish = json!({ "reconnect_account_id": account.id });
    lead(context, account.platform.as_str(), id, wish).await
}

/// Redirects to a platform to connect an account.
pub(crate) async fn connect(context: &PageContext<'_>) -> Result<Response, Problem> {
    let Some(platform) = context.form.given("platform") else {
        let problem = Problem::new(Code::InvalidRequest, "choose a platform");
        return draw(context, Some(PageError::of("connect", problem)), None).await;
    };
    lead(context, platform, "connect", json!({})).await
}

async fn lead(
    context: &PageContext<'_>,
    platform: &str,
    at: &str,
    mut wish: Value,
) -> Result<Response, Problem> {
    let call = context.call();
    // Returns to this page if its URL is a valid redirect URI, else to the hosted pages.
    let back = format!("{}{PATH}/accounts", context.app.config.root());
    let fits = |url: &Url| redirect_uri::check_landing("redirect_uri", url, false).is_none();
    if Url::parse(&back).is_ok_and(|url| fits(&url)) {
        wish["redirect_uri"] = back.into();
    }
    match networks::authorize(&call, platform, body::read(wish)?).await {
        Ok(answer) => Ok(lead_to(&answer.auth_url)),
        Err(problem) => draw(context, Some(PageError::of(at, problem)), None).await,
    }
}

fn lead_to(address: &str) -> Response {
    Response::builder()
        .status(StatusCode::SEE_OTHER)
        .header(header::LOCATION, address)
        .header(header::CACHE_CONTROL, "no-store")
        .finish()
}

/// Connects or reconnects an account with an app password.
pub(crate) async fn sign_in(context: &PageContext<'_>) -> Result<Response, Problem> {
    let login: Map<_, _> = context
        .form
        .only(&["identifier", "app_password", "service"])
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .collect();
    let connected = match body::read(Value::Object(login)) {
        Ok(login) => app_password::connect(&context.call(), login).await,
        Err(problem) => Err(problem),
    };
    match connected {
        Ok(_) => Ok(done("/accounts", Done::Connected)),
        Err(problem) => draw(context, Some(PageError::of("bluesky", problem)), None).await,
    }
}

/// Disconnects the account.
pub(crate) async fn disconnect(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match accounts::delete(&context.call(), id).await {
        Ok(_) => Ok(done("/accounts", Done::Disconnected)),
        Err(problem) => draw(context, Some(PageError::of(id, problem)), None).await,
    }
}

/// Returns the notice of a login that redirected here.
fn login_result(context: &PageContext<'_>) -> Option<Result<String, String>> {
    let platform = platforms::display_name(context.query.given("platform")?).to_owned();
    match context.query.given("status")? {
        "connected" => Some(Ok(format!("The account of {platform} is connected."))),
        "error" => Some(Err(match context.query.get("error") {
            "access_denied" => format!("Access to {platform} was denied."),
            "state_expired" => "The login took more than 15 minutes. Start again.".to_owned(),
            "state_used" => "This authorization was used before. Start again.".to_owned(),
            "insufficient_scope" => format!("{platform} granted fewer permissions than publishing needs."),
            "no_pages" => format!("The login has no account on {platform} that can be posted to."),
            "wrong_account" => "This is a different account than the one to reconnect.".to_owned(),
            _ => format!("{platform} did not grant access."),
        })),
        _ => None,
    }
}

fn is_oauth(platform: &str) -> bool {
    platforms::get(platform).is_some_and(|adapter| adapter.auth.oauth().is_some())
}
