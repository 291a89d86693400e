//! Threads: its API v1.0 as <https://developers.facebook.com/docs/threads> and Meta's own collection of
//! requests (<https://github.com/fbsamples/threads_api>) say: paths with and without a version,
//! parameters in the query, a form or JSON.

mod posts;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    graph::{self, DAY, Login},
    host::{Card, Grants, Host},
    page,
    window::Rule,
    tokens,
};
use crate::Identity;
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

/// Calls of any kind; the documented figure for an account that nobody sees.
const CALLS: Rule = Rule { name: "threads.calls", limit: 48_000, seconds: DAY };

static LOGIN: Login = Login {
    host: &Threads,
    client: CLIENT_ID,
    scopes: SCOPES,
    granted: SCOPES.split_at(6).0,
    kind: graph::Kind::Long,
    fragment: "#_",
};

/// Threads.
pub(super) struct Threads;

impl Host for Threads {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "graph.threads.com" | "graph.threads.net" | "threads.com" | "threads.net" | "www.threads.com"
            | "www.threads.net" | "media.threads.sandbox" => true,
            "" => path.starts_with("/v1.0/"),
            _ => false,
        }
    }

    fn intake(&self, call: &Call) -> Intake {
        match call.mime() {
            Some("multipart/form-data") => Intake::Form("file"),
            _ => Intake::Whole(1 << 20),
        }
    }

    fn fetches(&self, call: &Call) -> Vec<String> {
        let is_filling = call.method == Method::POST && graph::path(call).last() == Some(&"threads");
        let places = ["image_url", "video_url"].iter().filter(|_| is_filling);
        places.filter_map(|name| graph::param(call, name)).collect()
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        graph::owner(turn, ID, call)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        match call.host.as_str() {
            "media.threads.sandbox" => graph::serve(turn, call.segments().last().copied().unwrap_or_default()),
            "" | "graph.threads.com" | "graph.threads.net" => {
                api(turn, call).unwrap_or_else(|refusal| refusal)
            }
            _ => site(turn, call),
        }
    }

    fn refuse(&self, turn: &mut Turn<'_>, call: &Call, status: u16) -> Answer {
        let id = graph::carried(turn, call).map(|token| token.user).unwrap_or_default();
        graph::refuse(status, ID, &id, turn.now)
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (1..=30).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
        is_name.then(|| wish.to_lowercase()).ok_or_else(|| {
            format!("`{wish}` is no name on Threads: 1 to 30 letters, digits, points and underscores")
        })
    }

    fn number(&self, username: &str) -> String {
        graph::number(ID, username, 17_840_000_000_000_000)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("profile", Some(avatar(account)), format!("https://www.threads.com/@{}", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        posts::by(turn, &account.id).rev().map(|post| post.card(turn)).collect()
    }
}

fn avatar(account: &Account) -> String {
    format!("https://media.threads.sandbox/avatars/{}.jpg", account.id)
}

/// What a browser finds: the consent page, profiles and posts.
fn site(turn: &mut Turn<'_>, call: &Call) -> Answer {
    let segments = call.segments();
    let shown = match segments.as_slice() {
        ["oauth", "authorize"] => return LOGIN.dialog(turn, call),
        [name] if name.starts_with('@') => account::named(turn.shelf, ID, &name[1..])
            .map(|account| page::account(&Threads.identity(&account), ID, &Threads.posts(turn, &account))),
        [_, "post", code] | ["t", code] => posts::coded(turn, code).and_then(|post| {
            let author = account::numbered(turn.shelf, ID, &post.author)?;
            let cards = Threads.posts(turn, &author);
            Some(page::post(&Threads.identity(&author), ID, &post.card(turn), &cards))
        }),
        _ => None,
    };
    shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn api(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let path = graph::path(call);
    let method = call.method.as_str();
    match (method, path.as_slice()) {
        ("POST", ["oauth", "access_token"]) => {
            let graph::Redeemed { user, scopes, .. } = LOGIN.redeem(turn, call).map_err(graph::Unredeemed::flat)?;
            let token = graph::issue(turn, ID, &user, scopes, graph::Kind::Short, None);
            let number: u64 = user.parse().unwrap_or(0);
            return Ok(Answer::json(200, &json!({ "access_token": token.token, "user_id": number })));
        }
        ("GET", ["oauth", "access_token"]) => return app_token(call),
        ("GET", ["access_token"]) => return LOGIN.lengthen(turn, call, "th_exchange_token"),
        ("GET", ["refresh_access_token"]) => return LOGIN.renew(turn, call, "th_refresh_token"),
        ("GET", ["debug_token"]) => return LOGIN.inspect(turn, call),
        _ => {}
    }
    let token = graph::admit(turn, ID, call, &["threads_basic"])?;
    let me = graph::account(turn, ID, &token)?;
    turn.spend(CALLS, &me.id, 1)
        .map_err(|_| graph::throttled("(#4) Application request limit reached", ID, &me.id))?;
    // What belongs to an account is reached by its id or by `me`.
    let own = |id: &str| id == "me" || id == me.id;
    match (method, path.as_slice()) {
        ("GET", [id]) if own(id) => posts::profile(call, &me),
        ("POST", [id, "threads"]) if own(id) => posts::fill(turn, call, &me),
        ("POST", [id, "threads_publish"]) if own(id) => posts::publish(turn, call, &me),
        ("GET", [id, "threads"]) if own(id) => posts::list(turn, call, &me, false),
        ("GET", [id, "replies"]) if own(id) => posts::list(turn, call, &me, true),
        ("GET", [id, "threads_publishing_limit"]) if own(id) => posts::limits(turn, call, &me),
        ("GET", [id, "threads_insights"]) if own(id) => posts::account_insights(turn, call, &me),
        ("GET", [_, "mentions"] | ["keyword_search"] | ["location_search"]) => {
            Ok(Answer::json(200, &json!({ "data": [] })))
        }
        ("GET", [id]) => posts::node(turn, call, &me, id),
        ("DELETE", [id]) => posts::delete(turn, call, &me, id),
        ("GET", [id, "insights"]) => posts::insights(turn, call, &me, id),
        ("GET", [id, "replies"]) => posts::replies(turn, call, id, true),
        ("GET", [id, "conversation"]) => posts::replies(turn, call, id, false),
        ("POST", [id, "repost"]) => posts::repost(turn, call, &me, id),
        ("POST", [id, "manage_reply"]) => posts::hide(turn, call, &me, id),
        (_, [id, ..]) => Err(graph::missing(method, id)),
        _ => Err(graph::error(404, 2500, 0, "Unknown path components")),
    }
}

/// A token that speaks for the app alone.
fn app_token(call: &Call) -> Result<Answer, Answer> {
    let get = |name: &str| graph::param(call, name).unwrap_or_default();
    if get("grant_type") != "client_credentials" {
        return Err(graph::invalid("Param grant_type must be one of {client_credentials}"));
    }
    if get("client_id") != CLIENT_ID || get("client_secret") != tokens::SECRET {
        return Err(graph::error(400, 1, 0, "Error validating client secret."));
    }
    let token = format!("TH|{CLIENT_ID}|{}", graph::random());
    Ok(Answer::json(200, &json!({ "access_token": token, "token_type": "bearer" })))
}
