//! Facebook: Pages over the Graph API v26.0, as <https://developers.facebook.com/docs/pages-api>, the
//! guides to videos, reels and stories, and Meta's SDK say.
//!
//! An account of the sandbox is a Page. A person who logs in names the Pages that they grant, and gets a user
//! token and with it one token for each Page. The beginning of a Page's name says what the person may do:
//!
//! | Name | Page |
//! |---|---|
//! | `portfolio.…`, `client.…` | owned by a business portfolio, or managed by one for a client: not in `me/accounts` |
//! | `plus.…` | of the new Pages experience, whose tasks have other names |
//! | `analyst.…` | one that the person may only analyze |
//! | `stranger.…` | of a person without a role on the app, who can't log in before the app is reviewed |

mod feed;
mod media;
mod post;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    graph::{self, DAY, Login, Token},
    page,
    rate_limit::RateLimit,
    routes::routes,
    simulator::{Grants, PostView, Simulator},
    tokens,
};
use crate::Identity;
use crate::exchange::Cause::{Protocol, State};
use hmac::{Hmac, KeyInit, Mac};
use poem::http::Method;
use serde_json::{Value, json};
use sha2::Sha256;

/// The platform's identifier.
const ID: &str = "facebook";

/// Type in the usage header.
const KIND: &str = "pages";

const CLIENT_ID: &str = "1000000000000001";

const SCOPES: &[&str] = &[
    "pages_show_list",
    "pages_manage_posts",
    "pages_read_engagement",
    "pages_manage_engagement",
    "pages_read_user_content",
    "read_insights",
    "pages_manage_metadata",
    "business_management",
    "public_profile",
    "email",
];

/// Calls with a Page's token. The documented limit depends on engagement.
const CALLS: RateLimit = RateLimit::new("facebook.calls", 48_000, DAY);

static LOGIN: Login = Login {
    simulator: &Facebook,
    client: CLIENT_ID,
    scopes: SCOPES,
    granted: SCOPES.split_at(6).0,
    kind: graph::Kind::Page,
    fragment: "#_=_",
    no_role: "App not active: This app is not accessible right now and the app developer is aware of the issue. You will be able to log in when the app is reactivated.",
    remembers_declined: true,
};

/// The person's business portfolio.
const PORTFOLIO: &str = "900000000000001";
/// Beginnings of the names of Pages that only a portfolio's edges list, with the edges.
const PORTFOLIO_EDGES: [(&str, &str); 2] = [("portfolio.", "owned_pages"), ("client.", "client_pages")];

pub(super) struct Facebook;

impl Simulator for Facebook {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, _path: &str) -> bool {
        matches!(
            host,
            "graph.facebook.com"
                | "graph-video.facebook.com"
                | "rupload.facebook.com"
                | "www.facebook.com"
                | "facebook.com"
                | "media.facebook.sandbox"
        )
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match request.mime() {
            Some("multipart/form-data") => BodyMode::Multipart("source|video_file_chunk"),
            _ if request.host == "rupload.facebook.com" && request.header("file_url").is_none() => {
                BodyMode::Upload
            }
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn media_urls(&self, request: &Request) -> Vec<String> {
        if request.method != Method::POST {
            return Vec::new();
        }
        let place = match graph::path(request).last() {
            Some(&"photos") => "url",
            Some(&"videos") => "file_url",
            Some(&"comments") => "attachment_url",
            _ if request.host == "rupload.facebook.com" => {
                return request.header("file_url").map(str::to_owned).into_iter().collect();
            }
            _ => return Vec::new(),
        };
        graph::param(request, place).into_iter().collect()
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        graph::owner(tx, ID, request)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        match request.host.as_str() {
            "media.facebook.sandbox" => {
                graph::serve_media(tx, request.segments().last().copied().unwrap_or_default())
            }
            "rupload.facebook.com" => media::receive(tx, request).unwrap_or_else(|refusal| refusal),
            "graph.facebook.com" | "graph-video.facebook.com" => {
                let response = api(tx, request).unwrap_or_else(|refusal| refusal);
                graph::with_usage(tx, request, response, KIND)
            }
            _ => site(tx, request),
        }
    }

    fn refuse(&self, tx: &mut Transaction, request: &Request, status: u16) -> Response {
        let id = graph::presented_token(tx, request).and_then(|token| token.page).unwrap_or_default();
        graph::refuse(status, KIND, &id, tx.now)
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "name of a Page: 1 to 50 letters, digits and points";
        account::check_username(username, 1..=50, b".", rule).map(str::to_owned)
    }

    fn account_id(&self, username: &str) -> String {
        graph::account_id(ID, username, 100_000_000_000_000)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "page",
            Some(graph::avatar(account)),
            format!("https://www.facebook.com/{}", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        feed::views(tx, &account.id)
    }
}

/// Pages for browsers: the login dialog, Pages, posts, videos and stories.
fn site(tx: &mut Transaction, request: &Request) -> Response {
    let path = graph::path(request);
    let shown = match path.as_slice() {
        ["dialog", "oauth"] => return LOGIN.dialog(tx, request),
        [page, "posts", post] => {
            let id = request
                .query("comment_id")
                .map_or_else(|| format!("{page}_{post}"), |id| format!("{post}_{id}"));
            feed::post_page(tx, &id)
        }
        ["reel", id] | [_, "videos", id] | ["stories", _, id] => feed::post_page(tx, id),
        [name] => account::by_username(tx.store, ID, name)
            .or_else(|| account::by_id(tx.store, ID, name))
            .map(|account| page::account(tx, &Facebook, &account)),
        _ => None,
    };
    page::serve(shown)
}

fn api(tx: &mut Transaction, request: &Request) -> Outcome {
    let path = graph::path(request);
    let method = request.method.as_str();
    match (method, path.as_slice()) {
        ("GET" | "POST", ["oauth", "access_token"]) => return tokens(tx, request),
        ("GET", ["debug_token"]) => return LOGIN.inspect(tx, request),
        _ => {}
    }
    let token = graph::admit(tx, ID, request, &[])?;
    check_proof(request, &token)?;
    let Some(own) = token.page.clone() else { return person(tx, request, &token, &path) };
    let me = graph::account(tx, ID, &token)?;
    let quota = tx.spend(CALLS, &me.id, 1).map_err(|_| {
        let message =
            "(#80001) There have been too many calls to this Page account. Wait a bit and try again.";
        graph::throttled(message, KIND, &me.id)
    })?;
    tx.quota = Some(quota);
    let is_own = |id: &str| id == "me" || id == own;
    if let ("GET", [id]) = (method, path.as_slice())
        && is_own(id)
    {
        return page_node(tx, request, &me, None);
    }
    routes! { tx, request, path.as_slice(), admit, not_routed(method, &path, is_own(path.first().unwrap_or(&"")));
        "POST"   [id, "feed"] if is_own(id)                                    => (POST)     feed::create();
        "POST"   [id, "photos"] if is_own(id)                                  => (POST)     media::photo();
        "POST"   [id, "videos"] if is_own(id)                                  => (POST)     media::video();
        "POST"   [id, edge @ ("video_reels" | "video_stories")] if is_own(id)  => (POST)     media::reel(edge);
        "POST"   [id, "photo_stories"] if is_own(id)                           => (POST)     feed::photo_story();
        "GET"    [id, "feed" | "posts" | "published_posts"] if is_own(id)      => (READ)     feed::list();
        "GET"    [id, edge @ ("videos" | "video_reels")] if is_own(id)         => (ANY)      media::list(edge);
        "GET"    [id, "stories"] if is_own(id)                                 => (READ)     feed::stories();
        "GET"    [id, "insights"] if is_own(id)                                => (PAGE)     feed::page_insights();
        "GET"    [id]                                                          => (ANY)      feed::node(id);
        "POST"   [id]                                                          => (EDIT)     feed::edit(id);
        "DELETE" [id]                                                          => (EDIT)     feed::delete(id);
        "GET"    [id, "comments"] if !is_own(id)                               => (READ)     feed::comments(id);
        "POST"   [id, "comments"]                                              => (COMMENT)  feed::comment(id);
        "GET"    [id, "insights"]                                              => (INSIGHTS) feed::insights(id);
        "GET"    [id, "thumbnails"] if !is_own(id)                             => (READ)     media::thumbnails(id);
        "POST"   [id, "thumbnails"] if !is_own(id)                             => (COVER)    media::add_thumbnail(id);
        "GET"    [id, "collaborators"] if !is_own(id)                          => (READ)     media::collaborators(id);
        "POST"   [id, "collaborators"] if !is_own(id)                          => (POST)     media::invite(id);
        "GET"    [id, "video_insights"] if !is_own(id)                         => (INSIGHTS) media::insights(id);
    }
}

const ANY: &[&str] = &[];
const READ: &[&str] = &["pages_read_engagement"];
const POST: &[&str] = &["pages_manage_posts", "pages_read_engagement"];
const EDIT: &[&str] = &["pages_manage_posts"];
const COMMENT: &[&str] = &["pages_manage_engagement"];
const COVER: &[&str] = &["pages_read_user_content", "pages_manage_engagement", "pages_show_list"];
const INSIGHTS: &[&str] = &["read_insights", "pages_read_engagement"];
const PAGE: &[&str] = &["read_insights"];

fn admit(tx: &Transaction, request: &Request, scopes: &[&str]) -> Result<Account, Response> {
    graph::admit(tx, ID, request, scopes).and_then(|token| graph::account(tx, ID, &token))
}

fn not_routed(method: &str, path: &[&str], is_own: bool) -> Outcome {
    match path {
        [_, edge] if is_own && method == "GET" => Err(graph::invalid(
            Protocol,
            &format!("Tried accessing nonexisting field ({edge}) on node type (Page)"),
        )),
        _ => graph::not_routed(method, path),
    }
}

/// Checks `appsecret_proof`, which is optional.
fn check_proof(request: &Request, token: &Token) -> Result<(), Response> {
    let Some(proof) = graph::param(request, "appsecret_proof") else { return Ok(()) };
    let mut mac = Hmac::<Sha256>::new_from_slice(tokens::CLIENT_SECRET.as_bytes()).expect("any key will do");
    mac.update(token.token.as_bytes());
    match hex::encode(mac.finalize().into_bytes()) == proof {
        true => Ok(()),
        false => {
            Err(graph::error(State, 400, 100, 0, "Invalid appsecret_proof provided in the API argument"))
        }
    }
}

/// `/oauth/access_token`: for a code, for a short-lived token, or for the app itself.
fn tokens(tx: &mut Transaction, request: &Request) -> Outcome {
    let get = |name: &str| graph::param(request, name).unwrap_or_default();
    match get("grant_type").as_str() {
        "" | "authorization_code" => {
            let redeemed = LOGIN.redeem(tx, request).map_err(graph::CodeError::graph)?;
            let mut token = graph::issue(tx, ID, &redeemed.user, redeemed.scopes, graph::Kind::Short, None);
            (token.pages, token.declined) = (redeemed.pages, redeemed.declined);
            tx.store.put(&token);
            Ok(graph::token_response(&token, tx.now))
        }
        _ if get("client_id") != CLIENT_ID => Err(graph::CodeError::App.graph()),
        _ if get("client_secret") != tokens::CLIENT_SECRET => Err(graph::CodeError::Secret.graph()),
        "client_credentials" => {
            let token = format!("{CLIENT_ID}|{}", tokens::CLIENT_SECRET);
            Ok(Response::json(200, &json!({ "access_token": token, "token_type": "bearer" })))
        }
        "fb_exchange_token" => {
            let short = graph::valid_token(tx, ID, &get("fb_exchange_token"))?;
            let mut long = graph::issue(tx, ID, &short.user, short.scopes, graph::Kind::Long, None);
            (long.pages, long.declined) = (short.pages, short.declined);
            tx.store.put(&long);
            Ok(graph::token_response(&long, tx.now))
        }
        other => Err(graph::invalid(Protocol, &format!("Unsupported grant_type {other}"))),
    }
}

/// Responds to a person's token: their profile, their permissions, and the Pages that they granted.
fn person(tx: &mut Transaction, request: &Request, token: &Token, path: &[&str]) -> Outcome {
    let method = request.method.as_str();
    let number = format!("1{}", token.user);
    let is_own = |id: &str| id == "me" || id == number;
    match (method, path) {
        ("GET", [id]) if is_own(id) => {
            let node = json!({
                "id": number,
                "name": "A person of the sandbox",
                "first_name": "A person",
                "last_name": "of the sandbox",
                "picture": { "data": { "url": null, "is_silhouette": true } },
            });
            Ok(Response::json(200, &graph::select(&node, &graph::fields(request), "User", &["id", "name"])?))
        }
        ("GET", [id, "permissions"]) if is_own(id) => {
            let permission = |scope: &String, status: &str| json!({ "permission": scope, "status": status });
            let granted = token.scopes.iter().map(|scope| permission(scope, "granted"));
            let declined = token.declined.iter().map(|scope| permission(scope, "declined"));
            Ok(Response::json(200, &json!({ "data": granted.chain(declined).collect::<Vec<_>>() })))
        }
        ("DELETE", [id, "permissions"]) if is_own(id) => {
            for page in token.pages.iter().chain([&token.user]) {
                graph::revoke(tx, page);
            }
            Ok(Response::json(200, &json!({ "success": true })))
        }
        ("GET", [id, "accounts"]) if is_own(id) => {
            graph::admit(tx, ID, request, &["pages_show_list"])?;
            let is_own =
                |page: &Account| !PORTFOLIO_EDGES.iter().any(|(prefix, _)| page.username.starts_with(prefix));
            let pages =
                token.pages.iter().filter_map(|id| account::by_id(tx.store, ID, id)).filter(is_own).collect();
            let fields = graph::fields(request);
            let names = ["access_token", "category", "category_list", "name", "id", "tasks"];
            let nodes = page_nodes(tx, token, pages, true);
            graph::paged(request, nodes, page_id, |page| graph::select(page, &fields, "Page", &names))
        }
        ("GET", [id, "businesses"]) if is_own(id) => {
            admit_business(tx, request)?;
            let node = json!({ "id": PORTFOLIO, "name": "A portfolio of the sandbox" });
            let fields = graph::fields(request);
            let nodes = if portfolio(tx, "").is_empty() { Vec::new() } else { vec![node] };
            graph::paged(request, nodes, page_id, |node| {
                graph::select(node, &fields, "Business", &["id", "name"])
            })
        }
        ("GET", [PORTFOLIO, edge @ ("owned_pages" | "client_pages")]) => {
            admit_business(tx, request)?;
            // The tasks of a person are in the list of their own Pages only.
            let mut nodes = page_nodes(tx, token, portfolio(tx, edge), *edge == "owned_pages");
            for node in &mut nodes {
                node.as_object_mut().expect("a node").remove("tasks");
            }
            let fields = graph::fields(request);
            graph::paged(request, nodes, page_id, |page| {
                graph::select(page, &fields, "Page", &["id", "name"])
            })
        }
        ("GET", [id]) if token.pages.iter().any(|page| page == id) => {
            let page = account::by_id(tx.store, ID, id).ok_or_else(|| graph::missing(method, id))?;
            let scopes = token.scopes.clone();
            let own = graph::issue(tx, ID, &token.user, scopes, graph::Kind::Page, Some(page.id.clone()));
            page_node(tx, request, &page, Some(&own.token))
        }
        ("POST", [id, ..]) if token.pages.iter().any(|page| page == id) => Err(graph::error(
            State,
            403,
            200,
            0,
            "(#200) If posting to a page, requires both pages_read_engagement and pages_manage_posts permission with page token",
        )),
        (_, [id, ..]) => Err(graph::missing(method, id)),
        _ => Err(graph::error(Protocol, 404, 2500, 0, "Unknown path components")),
    }
}

fn admit_business(tx: &Transaction, request: &Request) -> Result<(), Response> {
    let refusal = |_| {
        let message = "(#200) Requires business_management permission to manage the object.";
        graph::error(State, 403, 200, 0, message)
    };
    graph::admit(tx, ID, request, &["business_management"]).map(drop).map_err(refusal)
}

/// Returns the Pages of the portfolio on this edge, or on any, ticked in a login or not.
fn portfolio(tx: &Transaction, edge: &str) -> Vec<Account> {
    let edges = PORTFOLIO_EDGES.iter().filter(|(_, one)| edge.is_empty() || *one == edge);
    edges.flat_map(|(prefix, _)| tx.store.with_prefix::<Account>(&format!("{ID}/{prefix}"))).collect()
}

/// Returns Pages as nodes, those that the person granted with a token if the list has tokens.
fn page_nodes(tx: &mut Transaction, token: &Token, pages: Vec<Account>, has_tokens: bool) -> Vec<Value> {
    let mut nodes = Vec::new();
    for page in pages {
        let own = (has_tokens && token.pages.contains(&page.id)).then(|| {
            let scopes = token.scopes.clone();
            graph::issue(tx, ID, &token.user, scopes, graph::Kind::Page, Some(page.id.clone())).token
        });
        nodes.push(page_value(tx, &page, own.as_deref()));
    }
    nodes
}

fn page_id(node: &Value) -> &str {
    node["id"].as_str().unwrap_or_default()
}

/// Returns the person's tasks on a Page; those of the new Pages experience have other names.
fn tasks(page: &Account) -> &'static [&'static str] {
    match page.username.split('.').next() {
        Some("analyst") => &["ANALYZE"],
        Some("plus") => &["PROFILE_PLUS_ANALYZE", "PROFILE_PLUS_MODERATE", "PROFILE_PLUS_CREATE_CONTENT"],
        _ => &["ANALYZE", "ADVERTISE", "MODERATE", "CREATE_CONTENT", "MANAGE"],
    }
}

fn page_node(tx: &Transaction, request: &Request, page: &Account, token: Option<&str>) -> Outcome {
    let mut node = page_value(tx, page, token);
    node.as_object_mut().expect("a node").remove("tasks");
    Ok(Response::json(200, &graph::select(&node, &graph::fields(request), "Page", &["id", "name"])?))
}

fn page_value(tx: &Transaction, page: &Account, token: Option<&str>) -> Value {
    let followers = crate::fake_metrics::figure(&page.id, "followers", tx.now - page.created_at, 5_000);
    json!({
        "id": page.id,
        "name": page.display_name(),
        "username": page.username,
        "link": format!("https://www.facebook.com/{}", page.username),
        "access_token": token,
        "category": "Software",
        "category_list": [{ "id": "2211", "name": "Software" }],
        "tasks": tasks(page),
        "picture": { "data": { "url": graph::avatar(page), "height": 200, "width": 200, "is_silhouette": false } },
        "fan_count": followers,
        "followers_count": followers,
        "is_published": true,
        "has_transitioned_to_new_page_experience": true,
        "instagram_business_account": null,
    })
}
