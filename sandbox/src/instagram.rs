//! Instagram: its API with Instagram Login, as <https://developers.facebook.com/docs/instagram-platform>
//! says. All accounts are professional ones, and none is shown on Facebook.

mod posts;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    graph::{self, DAY, Login},
    host::{Card, Grants, Host},
    page,
    window::Rule,
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

/// Calls of any kind; the documented figure for an account that nobody sees.
const CALLS: Rule = Rule { name: "instagram.calls", limit: 48_000, seconds: DAY };

static LOGIN: Login = Login {
    host: &Instagram,
    client: CLIENT_ID,
    scopes: SCOPES,
    granted: SCOPES.split_at(4).0,
    kind: graph::Kind::Long,
    fragment: "#_",
};

/// Instagram.
pub(super) struct Instagram;

impl Host for Instagram {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, _path: &str) -> bool {
        matches!(
            host,
            "graph.instagram.com" | "api.instagram.com" | "www.instagram.com" | "instagram.com"
                | "media.instagram.sandbox"
        )
    }

    fn intake(&self, call: &Call) -> Intake {
        match call.mime() {
            Some("multipart/form-data") => Intake::Form("file"),
            _ => Intake::Whole(1 << 20),
        }
    }

    fn fetches(&self, call: &Call) -> Vec<String> {
        let is_filling = call.method == Method::POST && graph::path(call).last() == Some(&"media");
        let places = ["image_url", "video_url", "cover_url"].iter().filter(|_| is_filling);
        places.filter_map(|name| graph::param(call, name)).collect()
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        graph::owner(turn, ID, call)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        match call.host.as_str() {
            "media.instagram.sandbox" => {
                graph::serve(turn, call.segments().last().copied().unwrap_or_default())
            }
            "graph.instagram.com" | "api.instagram.com" => {
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
            format!("`{wish}` is no name on Instagram: 1 to 30 letters, digits, points and underscores")
        })
    }

    fn number(&self, username: &str) -> String {
        graph::number(ID, username, 17_841_400_000_000_000)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("business", Some(avatar(account)), format!("https://www.instagram.com/{}/", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        posts::cards(turn, &account.id)
    }
}

fn avatar(account: &Account) -> String {
    format!("https://media.instagram.sandbox/avatars/{}.jpg", account.id)
}

/// What a browser finds: the consent page, profiles, posts and comments.
fn site(turn: &mut Turn<'_>, call: &Call) -> Answer {
    let segments = call.segments();
    let shown = match segments.as_slice() {
        ["oauth", "authorize"] => return LOGIN.dialog(turn, call),
        [_, _, "c", comment] => posts::shown(turn, comment),
        ["p" | "reel", code] => posts::coded(turn, code).and_then(|id| posts::shown(turn, &id)),
        ["stories", _, id] => posts::shown(turn, id),
        [name] => account::named(turn.shelf, ID, name)
            .map(|account| page::account(&Instagram.identity(&account), ID, &Instagram.posts(turn, &account))),
        _ => None,
    };
    shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn api(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let path = graph::path(call);
    let method = call.method.as_str();
    match (method, path.as_slice()) {
        ("POST", ["oauth", "access_token"]) => {
            if graph::param(call, "grant_type").as_deref() != Some("authorization_code") {
                return Err(graph::Unredeemed::App.flat());
            }
            let graph::Redeemed { user, scopes, .. } = LOGIN.redeem(turn, call).map_err(graph::Unredeemed::flat)?;
            let permissions = scopes.join(",");
            let token = graph::issue(turn, ID, &user, scopes, graph::Kind::Short, None);
            let data = json!({ "access_token": token.token, "user_id": user, "permissions": permissions });
            return Ok(Answer::json(200, &json!({ "data": [data] })));
        }
        ("GET", ["access_token"]) => return LOGIN.lengthen(turn, call, "ig_exchange_token"),
        ("GET", ["refresh_access_token"]) => return LOGIN.renew(turn, call, "ig_refresh_token"),
        _ => {}
    }
    let token = graph::admit(turn, ID, call, &["instagram_business_basic"])?;
    let me = graph::account(turn, ID, &token)?;
    turn.spend(CALLS, &me.id, 1)
        .map_err(|_| graph::throttled("(#4) Application request limit reached", ID, &me.id))?;
    let own = |id: &str| id == "me" || id == me.id;
    match (method, path.as_slice()) {
        ("GET", [id]) if own(id) => posts::profile(turn, call, &me),
        ("POST", [id, "media"]) if own(id) => posts::fill(turn, call, &me),
        // The second spelling is the one of Meta's generated clients.
        ("POST", [id, "media_publish" | "mediapublish"]) if own(id) => posts::publish(turn, call, &me),
        ("GET", [id, "media"]) if own(id) => posts::list(turn, call, &me, false),
        ("GET", [id, "stories"]) if own(id) => posts::list(turn, call, &me, true),
        ("GET", [id, "content_publishing_limit"]) if own(id) => posts::limits(turn, call, &me),
        ("GET", [id, "insights"]) if own(id) => posts::account_insights(turn, call, &me),
        ("GET", [id]) => posts::node(turn, call, &me, id),
        ("POST", [id]) => posts::change(turn, call, &me, id),
        ("DELETE", [id]) => posts::delete(turn, call, &me, id),
        ("GET", [id, "children"]) => posts::children(turn, call, &me, id),
        ("GET", [id, "insights"]) => posts::insights(turn, call, &me, id),
        ("GET", [id, "comments" | "replies"]) => posts::comments(turn, call, &me, id),
        ("POST", [id, "comments"]) => posts::comment(turn, call, &me, id, false),
        ("POST", [id, "replies"]) => posts::comment(turn, call, &me, id, true),
        (_, [id, ..]) => Err(graph::missing(method, id)),
        _ => Err(graph::error(404, 2500, 0, "Unknown path components")),
    }
}
