//! Search over everything that one may see: an id leads to its page, a text lists what has it in its name.

use crate::{
    context::{PageContext, see},
    fields,
    labels::ShortTime,
    layout::{Layout, PageError, render},
    posts::{self, Row},
};
use api::http::{problem::Problem, query};
use askama::Template;
use domain::scope::Scope;
use poem::{Response, http::StatusCode};
use store::dashboard::search::{self, Hit, Located};
use uuid::Uuid;

/// Shortest text that is sought, as in the list of posts.
const MIN_CHARS: usize = 2;
/// Most of each kind.
const LIMIT: i64 = 10;

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    layout: Layout,
    text: String,
    posts: Vec<Row>,
    can_select: bool,
    is_filtered: bool,
    /// The list of all posts that were found.
    all_posts: String,
    groups: Vec<Group>,
}

/// Hits of one kind.
struct Group {
    id: &'static str,
    name: &'static str,
    hits: Vec<Line>,
}

struct Line {
    name: String,
    detail: String,
    /// Platform id of an account, which is also that of its icon.
    icon: Option<String>,
    link: String,
    created: ShortTime,
}

impl Search {
    fn is_empty(&self) -> bool {
        self.posts.is_empty() && self.groups.iter().all(|group| group.hits.is_empty())
    }
}

/// Shows what was found, or leads to the page of an id.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let text = context.query.get("q").trim();
    if let Ok(id) = text.parse()
        && let Some(place) = place(context, id).await?
    {
        return Ok(see(&place));
    }
    let may = |scope| context.may(scope).is_ok();
    let mut page = Search {
        layout: context.layout("Search", "/search"),
        text: text.to_owned(),
        posts: Vec::new(),
        can_select: false,
        is_filtered: true,
        all_posts: fields::write([("q", text)]),
        groups: Vec::new(),
    };
    if text.chars().count() < MIN_CHARS {
        if !text.is_empty() {
            let words = format!("Enter at least {MIN_CHARS} characters.");
            page.layout.error = Some(PageError::new("search", StatusCode::BAD_REQUEST, words));
        }
        return Ok(render(page.layout.status(), &page));
    }
    if may(Scope::PostsRead) && may(Scope::AccountsRead) {
        let limit = LIMIT.to_string();
        let found = match query::read(&fields::write([("q", text), ("limit", limit.as_str())])) {
            Ok(filter) => posts::lines(context, filter).await,
            Err(problem) => Err(problem),
        };
        match found {
            Ok((rows, _)) => page.posts = rows,
            Err(problem) if problem.code.status().is_server_error() => return Err(problem),
            Err(problem) => page.layout.error = Some(PageError::of("search", problem)),
        }
    }
    let (db, whole) = (context.db(), context.whole()?);
    let line = |hit: Hit, icon, link| Line {
        name: hit.name,
        detail: hit.detail,
        icon,
        link,
        created: ShortTime(hit.created_at),
    };
    if may(Scope::AccountsRead) {
        let hits = search::accounts(db, whole, text, LIMIT).await?.into_iter().map(|hit| {
            let (icon, link) = (hit.detail.clone(), account(hit.id));
            let detail = platforms::display_name(&hit.detail).to_owned();
            line(Hit { detail, ..hit }, Some(icon), link)
        });
        page.groups.push(Group { id: "accounts", name: "Accounts", hits: hits.collect() });
    }
    if may(Scope::MediaRead) {
        let hits = search::media(db, whole, text, LIMIT).await?.into_iter().map(|hit| {
            let link = medium(hit.id);
            line(hit, None, link)
        });
        page.groups.push(Group { id: "media", name: "Media", hits: hits.collect() });
    }
    // An endpoint's address may hold a token, so that not everyone sees it.
    if may(Scope::WebhooksRead) {
        let hits = search::webhooks(db, whole, text, LIMIT).await?.into_iter().map(|hit| {
            let link = format!("/webhooks/{}", hit.id);
            line(hit, None, link)
        });
        page.groups.push(Group { id: "webhooks", name: "Webhooks", hits: hits.collect() });
    }
    if may(Scope::KeysWrite) {
        let hits = search::keys(db, whole, text, LIMIT).await?.into_iter().map(|hit| {
            let link = key(hit.id);
            line(hit, None, link)
        });
        page.groups.push(Group { id: "keys", name: "API keys", hits: hits.collect() });
    }
    Ok(render(page.layout.status(), &page))
}

/// The page of an id, if one may open it.
async fn place(context: &PageContext<'_>, id: Uuid) -> Result<Option<String>, Problem> {
    let located = search::locate(context.db(), context.whole()?, id).await?;
    let found = located.map(|located| match located {
        Located::Post(id) => (Scope::PostsRead, format!("/posts/{id}")),
        Located::Account(id) => (Scope::AccountsRead, account(id)),
        Located::Medium(id) => (Scope::MediaRead, medium(id)),
        Located::Webhook(id) => (Scope::WebhooksRead, format!("/webhooks/{id}")),
        Located::Key(id) => (Scope::KeysWrite, key(id)),
    });
    Ok(found.and_then(|(scope, place)| context.may(scope).ok().map(|()| place)))
}

fn account(id: Uuid) -> String {
    format!("/accounts#account-{id}")
}

fn medium(id: Uuid) -> String {
    format!("/media#media-{id}")
}

fn key(id: Uuid) -> String {
    format!("/keys#key-{id}")
}
