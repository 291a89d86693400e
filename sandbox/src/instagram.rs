//! Instagram: its API with Instagram Login, as documented at
//! <https://developers.facebook.com/docs/instagram-platform>. All accounts are professional accounts without
//! a Facebook Page.

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
};
use crate::Identity;
use poem::http::Method;
use serde_json::json;

/// The platform's identifier.
const ID: &str = "instagram";

const CLIENT_ID: &str = "1000000000000002";

const SCOPES: &[&str] = &[
    "instagram_business_basic",
    "instagram_business_content_publish",
    "instagram_business_manage_comments",
    "instagram_business_manage_insights",
    "instagram_business_manage_messages",
];

/// Calls of any kind; the documented limit of an account without impressions.
const CALLS: RateLimit = RateLimit::new("instagram.calls", 48_000, DAY);

static LOGIN: Login = Login {
    simulator: &Instagram,
    client: CLIENT_ID,
    scopes: SCOPES,
    granted: SCOPES.split_at(4).0,
    kind: graph::Kind::Long,
    fragment: "#_",
    no_role: "Insufficient Developer Role: The account has no role on this app, which was not reviewed.",
    remembers_declined: false,
};

pub(super) struct Instagram;

impl Simulator for Instagram {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, _path: &str) -> bool {
        matches!(
            host,
            "graph.instagram.com"
                | "api.instagram.com"
                | "www.instagram.com"
                | "instagram.com"
                | "media.instagram.sandbox"
        )
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match request.mime() {
            Some("multipart/form-data") => BodyMode::Multipart("file"),
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn media_urls(&self, request: &Request) -> Vec<String> {
        let is_filling = request.method == Method::POST && graph::path(request).last() == Some(&"media");
        let places = ["image_url", "video_url", "cover_url"].iter().filter(|_| is_filling);
        places.filter_map(|name| graph::param(request, name)).collect()
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        graph::owner(tx, ID, request)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        match request.host.as_str() {
            "media.instagram.sandbox" => {
                graph::serve_media(tx, request.segments().last().copied().unwrap_or_default())
            }
            "graph.instagram.com" | "api.instagram.com" => {
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
        let rule = "name on Instagram: 1 to 30 letters, digits, points and underscores";
        account::check_username(username, 1..=30, b"._", rule).map(str::to_lowercase)
    }

    fn account_id(&self, username: &str) -> String {
        graph::account_id(ID, username, 17_841_400_000_000_000)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "business",
            Some(graph::avatar(account)),
            format!("https://www.instagram.com/{}/", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        posts::views(tx, &account.id)
    }
}

/// Pages for browsers: the consent page, profiles, posts and comments.
fn site(tx: &mut Transaction, request: &Request) -> Response {
    let segments = request.segments();
    let shown = match segments.as_slice() {
        ["oauth", "authorize"] => return LOGIN.dialog(tx, request),
        [_, _, "c", comment] => posts::post_page(tx, comment),
        ["p" | "reel", code] => posts::by_shortcode(tx, code).and_then(|id| posts::post_page(tx, &id)),
        ["stories", _, id] => posts::post_page(tx, id),
        [name] => {
            account::by_username(tx.store, ID, name).map(|account| page::account(tx, &Instagram, &account))
        }
        _ => None,
    };
    page::serve(shown)
}

fn api(tx: &mut Transaction, request: &Request) -> Outcome {
    let path = graph::path(request);
    let method = request.method.as_str();
    match (method, path.as_slice()) {
        ("POST", ["oauth", "access_token"]) => {
            if graph::param(request, "grant_type").as_deref() != Some("authorization_code") {
                return Err(graph::CodeError::App.flat());
            }
            let graph::RedeemedCode { user, scopes, .. } =
                LOGIN.redeem(tx, request).map_err(graph::CodeError::flat)?;
            let permissions = scopes.join(",");
            let token = graph::issue(tx, ID, &user, scopes, graph::Kind::Short, None);
            let data = json!({ "access_token": token.token, "user_id": user, "permissions": permissions });
            return Ok(Response::json(200, &json!({ "data": [data] })));
        }
        ("GET", ["access_token"]) => return LOGIN.exchange_token(tx, request, "ig_exchange_token"),
        ("GET", ["refresh_access_token"]) => return LOGIN.refresh_token(tx, request, "ig_refresh_token"),
        _ => {}
    }
    let me = graph::admit_call(tx, ID, request, "instagram_business_basic", CALLS)?;
    let own = |id: &str| id == "me" || id == me.id;
    // `mediapublish` is the spelling of Meta's generated clients.
    routes! { tx, request, path.as_slice(), admit, graph::not_routed(method, &path);
        "GET"    [id] if own(id)                                   => (BASIC)    posts::profile();
        "POST"   [id, "media"] if own(id)                          => (PUBLISH)  posts::create_container();
        "POST"   [id, "media_publish" | "mediapublish"] if own(id) => (PUBLISH)  posts::publish();
        "GET"    [id, "media"] if own(id)                          => (BASIC)    posts::list(false);
        "GET"    [id, "stories"] if own(id)                        => (BASIC)    posts::list(true);
        "GET"    [id, "content_publishing_limit"] if own(id)       => (BASIC)    posts::limits();
        "GET"    [id, "insights"] if own(id)                       => (INSIGHTS) posts::account_insights();
        "GET"    [id]                                              => (BASIC)    posts::node(id);
        "POST"   [id]                                              => (COMMENTS) posts::change(id);
        "DELETE" [id]                                              => (COMMENTS) posts::delete(id);
        "GET"    [id, "children"]                                  => (BASIC)    posts::children(id);
        "GET"    [id, "insights"]                                  => (INSIGHTS) posts::insights(id);
        "GET"    [id, "comments" | "replies"]                      => (COMMENTS) posts::comments(id);
        "POST"   [id, "comments"]                                  => (COMMENTS) posts::comment(id, false);
        "POST"   [id, "replies"]                                   => (COMMENTS) posts::comment(id, true);
    }
}

const BASIC: &[&str] = &["instagram_business_basic"];
const PUBLISH: &[&str] = &["instagram_business_content_publish"];
const COMMENTS: &[&str] = &["instagram_business_manage_comments"];
const INSIGHTS: &[&str] = &["instagram_business_manage_insights"];

fn admit(tx: &Transaction, request: &Request, scopes: &[&str]) -> Result<Account, Response> {
    graph::admit(tx, ID, request, scopes).and_then(|token| graph::account(tx, ID, &token))
}
