//! Threads: its API v1.0 as <https://developers.facebook.com/docs/threads> and Meta's own collection of
//! requests (<https://github.com/fbsamples/threads_api>) say: paths with and without a version,
//! parameters in the query, a form or JSON.

mod posts;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    graph::{self, DAY, Login},
    page,
    rate_limit::RateLimit,
    routes::routes,
    simulator::{Grants, PostView, Simulator},
    tokens,
};
use crate::Identity;
use crate::exchange::Cause::{Protocol, State};
use poem::http::Method;
use serde_json::json;

/// The platform's identifier.
const ID: &str = "threads";

const CLIENT_ID: &str = "1000000000000003";

const SCOPES: &[&str] = &[
    "threads_basic",
    "threads_content_publish",
    "threads_manage_replies",
    "threads_read_replies",
    "threads_manage_insights",
    "threads_delete",
    "threads_keyword_search",
    "threads_manage_mentions",
    "threads_location_tagging",
    "threads_profile_discovery",
    "threads_share_to_instagram",
];

/// Calls of any kind; the documented limit of an account without impressions.
const CALLS: RateLimit = RateLimit::new("threads.calls", 48_000, DAY);

static LOGIN: Login = Login {
    simulator: &Threads,
    client: CLIENT_ID,
    scopes: SCOPES,
    granted: SCOPES.split_at(6).0,
    kind: graph::Kind::Long,
    fragment: "#_",
    no_role: "The user has not accepted the invite to test the app (1349245).",
    remembers_declined: false,
};

pub(super) struct Threads;

impl Simulator for Threads {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "graph.threads.com"
            | "graph.threads.net"
            | "threads.com"
            | "threads.net"
            | "www.threads.com"
            | "www.threads.net"
            | "media.threads.sandbox" => true,
            "" => path.starts_with("/v1.0/"),
            _ => false,
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match request.mime() {
            Some("multipart/form-data") => BodyMode::Multipart("file"),
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn media_urls(&self, request: &Request) -> Vec<String> {
        let is_filling = request.method == Method::POST && graph::path(request).last() == Some(&"threads");
        let places = ["image_url", "video_url"].iter().filter(|_| is_filling);
        places.filter_map(|name| graph::param(request, name)).collect()
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        graph::owner(tx, ID, request)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        match request.host.as_str() {
            "media.threads.sandbox" => {
                graph::serve_media(tx, request.segments().last().copied().unwrap_or_default())
            }
            "" | "graph.threads.com" | "graph.threads.net" => {
                let response = api(tx, request).unwrap_or_else(|refusal| refusal);
                graph::with_usage(tx, request, response, ID)
            }
            _ => site(tx, request),
        }
    }

    fn refuse(&self, tx: &mut Transaction, request: &Request, status: u16) -> Response {
        let id = graph::presented_token(tx, request).map(|token| token.user).unwrap_or_default();
        graph::refuse(status, ID, &id, tx.now)
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "name on Threads: 1 to 30 letters, digits, points and underscores";
        account::check_username(username, 1..=30, b"._", rule).map(str::to_lowercase)
    }

    fn account_id(&self, username: &str) -> String {
        graph::account_id(ID, username, 17_840_000_000_000_000)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "profile",
            Some(graph::avatar(account)),
            format!("https://www.threads.com/@{}", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        posts::by(tx, &account.id).rev().map(|post| post.post_view(tx)).collect()
    }
}

/// Pages for browsers: the consent page, profiles and posts.
fn site(tx: &mut Transaction, request: &Request) -> Response {
    let segments = request.segments();
    let shown = match segments.as_slice() {
        ["oauth", "authorize"] => return LOGIN.dialog(tx, request),
        [name] if name.starts_with('@') => account::by_username(tx.store, ID, &name[1..])
            .map(|account| page::account(tx, &Threads, &account)),
        [_, "post", code] | ["t", code] => posts::by_shortcode(tx, code).and_then(|post| {
            let author = account::by_id(tx.store, ID, &post.author)?;
            Some(page::post(tx, &Threads, &author, &post.post_view(tx)))
        }),
        _ => None,
    };
    page::serve(shown)
}

fn api(tx: &mut Transaction, request: &Request) -> Outcome {
    let path = graph::path(request);
    let method = request.method.as_str();
    match (method, path.as_slice()) {
        ("POST", ["oauth", "access_token"]) => {
            let graph::RedeemedCode { user, scopes, .. } =
                LOGIN.redeem(tx, request).map_err(graph::CodeError::flat)?;
            let token = graph::issue(tx, ID, &user, scopes, graph::Kind::Short, None);
            let number: u64 = user.parse().unwrap_or(0);
            return Ok(Response::json(200, &json!({ "access_token": token.token, "user_id": number })));
        }
        ("GET", ["oauth", "access_token"]) => return app_token(request),
        ("GET", ["access_token"]) => return LOGIN.exchange_token(tx, request, "th_exchange_token"),
        ("GET", ["refresh_access_token"]) => return LOGIN.refresh_token(tx, request, "th_refresh_token"),
        ("GET", ["debug_token"]) => return LOGIN.inspect(tx, request),
        _ => {}
    }
    let me = graph::admit_call(tx, ID, request, "threads_basic", CALLS)?;
    if let ("GET", [_, "mentions"] | ["keyword_search"] | ["location_search"]) = (method, path.as_slice()) {
        return Ok(Response::json(200, &json!({ "data": [] })));
    }
    // An account's own edges are reached by its id or by `me`.
    let own = |id: &str| id == "me" || id == me.id;
    routes! { tx, request, path.as_slice(), admit, graph::not_routed(method, &path);
        "GET"    [id] if own(id)                             => (BASIC)    posts::profile();
        "POST"   [id, "threads"] if own(id)                  => (PUBLISH)  posts::create_container();
        "POST"   [id, "threads_publish"] if own(id)          => (PUBLISH)  posts::publish();
        "GET"    [id, "threads"] if own(id)                  => (BASIC)    posts::list(false);
        "GET"    [id, "replies"] if own(id)                  => (REPLIES)  posts::list(true);
        "GET"    [id, "threads_publishing_limit"] if own(id) => (BASIC)    posts::limits();
        "GET"    [id, "threads_insights"] if own(id)         => (INSIGHTS) posts::account_insights();
        "GET"    [id]                                        => (BASIC)    posts::node(id);
        "DELETE" [id]                                        => (DELETE)   posts::delete(id);
        "GET"    [id, "insights"]                            => (INSIGHTS) posts::insights(id);
        "GET"    [id, "replies"]                             => (REPLIES)  posts::replies(id, true);
        "GET"    [id, "conversation"]                        => (REPLIES)  posts::replies(id, false);
        "POST"   [id, "repost"]                              => (PUBLISH)  posts::repost(id);
        "POST"   [id, "manage_reply"]                        => (MANAGE)   posts::hide(id);
    }
}

const BASIC: &[&str] = &["threads_basic"];
const PUBLISH: &[&str] = &["threads_content_publish"];
const REPLIES: &[&str] = &["threads_read_replies"];
const MANAGE: &[&str] = &["threads_manage_replies"];
const INSIGHTS: &[&str] = &["threads_manage_insights"];
const DELETE: &[&str] = &["threads_delete"];

fn admit(tx: &Transaction, request: &Request, scopes: &[&str]) -> Result<Account, Response> {
    graph::admit(tx, ID, request, scopes).and_then(|token| graph::account(tx, ID, &token))
}

/// Issues an app access token.
fn app_token(request: &Request) -> Outcome {
    let get = |name: &str| graph::param(request, name).unwrap_or_default();
    if get("grant_type") != "client_credentials" {
        return Err(graph::invalid(Protocol, "Param grant_type must be one of {client_credentials}"));
    }
    if get("client_id") != CLIENT_ID || get("client_secret") != tokens::CLIENT_SECRET {
        return Err(graph::error(State, 400, 1, 0, "Error validating client secret."));
    }
    let token = format!("TH|{CLIENT_ID}|{}", graph::random());
    Ok(Response::json(200, &json!({ "access_token": token, "token_type": "bearer" })))
}
