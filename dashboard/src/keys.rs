//! API keys.

use crate::{
    context::{PageContext, done},
    fields::Fields,
    labels::{Done, ShortTime},
    layout::{Layout, PageError, render},
    zone,
};
use api::{
    http::{body, problem::Problem},
    keys,
};
use askama::Template;
use domain::scope::{self, Scope};
use poem::Response;
use serde_json::json;
use uuid::Uuid;

#[derive(Template)]
#[template(path = "keys.html")]
struct Keys<'a> {
    layout: Layout,
    keys: Vec<Row>,
    older: Option<String>,
    scopes: Vec<&'static str>,
    made: Option<Made>,
    form: &'a Fields,
}

struct Row {
    id: String,
    name: String,
    last_four: String,
    scopes: String,
    bound: Option<String>,
    expires: Option<ShortTime>,
    used: Option<ShortTime>,
    created: ShortTime,
    is_own: bool,
    made_by: Option<String>,
}

/// A new key with its text.
struct Made {
    name: String,
    mode: String,
    key: String,
    /// A command that calls the API with it.
    curl: String,
}

/// Something to read with each scope, to try a key with.
const READABLE: [(Scope, &str); 6] = [
    (Scope::PostsRead, "/posts"),
    (Scope::AccountsRead, "/social-accounts"),
    (Scope::MediaRead, "/media"),
    (Scope::WebhooksRead, "/webhooks"),
    (Scope::TeamRead, "/team"),
    (Scope::UsageRead, "/account/usage"),
];

impl Made {
    fn of(context: &PageContext<'_>, made: keys::Key) -> Self {
        let scopes: Vec<_> = made.scopes.iter().map(|scope| scope.value()).collect();
        let found = READABLE.iter().find(|(scope, _)| scope::allows(&scopes, *scope));
        let path = found.map_or("/posts", |(_, path)| path);
        let key = made.key.unwrap_or_default();
        let base_url = context.app.config.base_url.trim_end_matches('/');
        let curl = format!("curl {base_url}{path} -H 'Authorization: Bearer {key}'");
        Self { name: made.name, mode: made.mode.as_str().to_owned(), key, curl }
    }
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    draw(context, error, None).await
}

async fn draw(
    context: &PageContext<'_>,
    error: Option<PageError>,
    made: Option<Made>,
) -> Result<Response, Problem> {
    let own = context.key();
    let found = keys::list(&context.call(), &context.paging()).await?;
    let page = Keys {
        layout: context.layout_with_error("API keys", "/keys", error),
        older: found.next_cursor,
        keys: found
            .data
            .into_iter()
            .map(|key| Row {
                id: key.id.to_string(),
                name: key.name,
                last_four: key.last_four,
                scopes: key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
                bound: bound(&key.tenant_id, key.profile_id, key.account_ids.as_deref()),
                expires: key.expires_at.map(|at| ShortTime(at.0)),
                used: key.last_used_at.map(|at| ShortTime(at.0)),
                created: ShortTime(key.created_at.0),
                is_own: Some(key.id) == own,
                made_by: key.created_by,
            })
            .collect(),
        scopes: Scope::ALL
            .iter()
            .filter(|scope| scope::allows(context.scopes(), **scope))
            .map(|scope| scope.as_str())
            .collect(),
        made,
        form: &context.form,
    };
    Ok(render(page.layout.status(), &page))
}

/// Creates a key and shows its text.
pub(crate) async fn create(context: &PageContext<'_>) -> Result<Response, Problem> {
    let form = &context.form;
    let wish = json!({
        "name": form.get("name").trim(),
        "scopes": form.all("scope").collect::<Vec<_>>(),
        "tenant_id": form.given("tenant"),
        "profile_id": form.given("profile"),
        "account_ids": accounts(form),
        // The field is a date; the key expires at the end of that day.
        "expires_at": form.given("expires").map(|day| zone::bound(day, true)),
    });
    let created = match body::read(wish) {
        Ok(new) => keys::create(&context.call(), context.scopes(), new).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(key) => draw(context, None, Some(Made::of(context, key))).await,
        Err(problem) => draw(context, Some(PageError::of("new", problem)), None).await,
    }
}

/// The accounts that a new key is limited to, separated by spaces or commas in the field.
fn accounts(form: &Fields) -> Option<Vec<&str>> {
    let accounts = form.given("accounts")?;
    Some(accounts.split([' ', ',', '\n', '\r']).filter(|id| !id.is_empty()).collect())
}

/// Returns the bound of a key in words.
fn bound(tenant: &Option<String>, profile: Option<Uuid>, accounts: Option<&[Uuid]>) -> Option<String> {
    let tenant = tenant.as_ref().map(|tenant| format!("tenant {tenant}"));
    let profile = || profile.map(|profile| format!("profile {profile}"));
    let accounts = || {
        let ids: Vec<_> = accounts?.iter().map(Uuid::to_string).collect();
        Some(format!("accounts {}", ids.join(", ")))
    };
    tenant.or_else(profile).or_else(accounts)
}

/// Rotates a key and shows the new text. The old key is revoked immediately.
pub(crate) async fn rotate(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match keys::rotate(&context.call(), context.scopes(), id, body::read(json!({}))?).await {
        Ok(key) => draw(context, None, Some(Made::of(context, key))).await,
        Err(problem) => draw(context, Some(PageError::of(id, problem)), None).await,
    }
}

/// Revokes a key.
pub(crate) async fn revoke(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match keys::delete(&context.call(), context.scopes(), id).await {
        Ok(_) => Ok(done("/keys", Done::Revoked)),
        Err(problem) => draw(context, Some(PageError::of(id, problem)), None).await,
    }
}

impl Keys<'_> {
    fn is_chosen(&self, scope: &str) -> bool {
        self.form.all("scope").any(|chosen| chosen == scope)
    }
}
