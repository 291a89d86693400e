//! Facebook: Pages over the Graph API v26.0, as <https://developers.facebook.com/docs/pages-api>, the
//! guides to videos, reels and stories, and Meta's SDK say.
//!
//! An account of the sandbox is a Page. Who logs in names the Pages that they tick, and gets a token
//! of their own and with it one for each Page.

mod feed;
mod media;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    graph::{self, DAY, Login, Token},
    host::{Card, Grants, Host},
    page,
    window::Rule,
    tokens,
};
use crate::Identity;
use hmac::{Hmac, KeyInit, Mac};
use poem::http::Method;
use serde_json::{Value, json};
use sha2::Sha256;

/// The platform's identifier.
const ID: &str = "facebook";

/// The word of the header on usage.
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

/// Calls with a Page's token; the documented figure for a Page that nobody sees is not.
const CALLS: Rule = Rule { name: "facebook.calls", limit: 48_000, seconds: DAY };

static LOGIN: Login = Login {
    host: &Facebook,
    client: CLIENT_ID,
    scopes: SCOPES,
    granted: SCOPES.split_at(6).0,
    kind: graph::Kind::Page,
    fragment: "#_=_",
};

/// Facebook.
pub(super) struct Facebook;

impl Host for Facebook {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, _path: &str) -> bool {
        matches!(
            host,
            "graph.facebook.com" | "graph-video.facebook.com" | "rupload.facebook.com" | "www.facebook.com"
                | "facebook.com" | "media.facebook.sandbox"
        )
    }

    fn intake(&self, call: &Call) -> Intake {
        match call.mime() {
            Some("multipart/form-data") => Intake::Form("source|video_file_chunk"),
            _ if call.host == "rupload.facebook.com" && call.header("file_url").is_none() => Intake::Bytes,
            _ => Intake::Whole(1 << 20),
        }
    }

    fn fetches(&self, call: &Call) -> Vec<String> {
        if call.method != Method::POST {
            return Vec::new();
        }
        let place = match graph::path(call).last() {
            Some(&"photos") => "url",
            Some(&"videos") => "file_url",
            Some(&"comments") => "attachment_url",
            _ if call.host == "rupload.facebook.com" => {
                return call.header("file_url").map(str::to_owned).into_iter().collect();
            }
            _ => return Vec::new(),
        };
        graph::param(call, place).into_iter().collect()
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        graph::owner(turn, ID, call)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        match call.host.as_str() {
            "media.facebook.sandbox" => {
                graph::serve(turn, call.segments().last().copied().unwrap_or_default())
            }
            "rupload.facebook.com" => media::receive(turn, call).unwrap_or_else(|refusal| refusal),
            "graph.facebook.com" | "graph-video.facebook.com" => {
                api(turn, call).unwrap_or_else(|refusal| refusal)
            }
            _ => site(turn, call),
        }
    }

    fn refuse(&self, turn: &mut Turn<'_>, call: &Call, status: u16) -> Answer {
        let id = graph::carried(turn, call).and_then(|token| token.page).unwrap_or_default();
        graph::refuse(status, KIND, &id, turn.now)
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (1..=50).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".".contains(&byte));
        is_name.then(|| wish.to_owned()).ok_or_else(|| {
            format!("`{wish}` is no name of a Page: 1 to 50 letters, digits and points")
        })
    }

    fn number(&self, username: &str) -> String {
        graph::number(ID, username, 100_000_000_000_000)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("page", Some(avatar(account)), format!("https://www.facebook.com/{}", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        feed::cards(turn, &account.id)
    }
}

fn avatar(account: &Account) -> String {
    format!("https://media.facebook.sandbox/avatars/{}.jpg", account.id)
}

/// What a browser finds: the dialog, Pages, posts, videos and stories.
fn site(turn: &mut Turn<'_>, call: &Call) -> Answer {
    let path = graph::path(call);
    let shown = match path.as_slice() {
        ["dialog", "oauth"] => return LOGIN.dialog(turn, call),
        [page, "posts", post] => {
            let id = call.query("comment_id").map_or_else(|| format!("{page}_{post}"), |id| format!("{post}_{id}"));
            feed::shown(turn, &id)
        }
        ["reel", id] | [_, "videos", id] | ["stories", _, id] => feed::shown(turn, id),
        [name] => account::named(turn.shelf, ID, name)
            .or_else(|| account::numbered(turn.shelf, ID, name))
            .map(|account| page::account(&Facebook.identity(&account), ID, &Facebook.posts(turn, &account))),
        _ => None,
    };
    shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn api(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let path = graph::path(call);
    let method = call.method.as_str();
    match (method, path.as_slice()) {
        ("GET" | "POST", ["oauth", "access_token"]) => return tokens(turn, call),
        ("GET", ["debug_token"]) => return LOGIN.inspect(turn, call),
        _ => {}
    }
    let token = graph::admit(turn, ID, call, &[])?;
    prove(call, &token)?;
    let Some(own) = token.page.clone() else { return person(turn, call, &token, &path) };
    let me = graph::account(turn, ID, &token)?;
    turn.spend(CALLS, &me.id, 1).map_err(|_| {
        let message = "(#80001) There have been too many calls to this Page account. Wait a bit and try again.";
        graph::throttled(message, KIND, &me.id)
    })?;
    let is_own = |id: &str| id == "me" || id == own;
    match (method, path.as_slice()) {
        ("GET", [id]) if is_own(id) => page_node(turn, call, &me, None),
        ("POST", [id, "feed"]) if is_own(id) => feed::create(turn, call, &me),
        ("POST", [id, "photos"]) if is_own(id) => media::photo(turn, call, &me),
        ("POST", [id, "videos"]) if is_own(id) => media::video(turn, call, &me),
        ("POST", [id, edge @ ("video_reels" | "video_stories")]) if is_own(id) => media::reel(turn, call, &me, edge),
        ("POST", [id, "photo_stories"]) if is_own(id) => feed::photo_story(turn, call, &me),
        ("GET", [id, "feed" | "posts" | "published_posts"]) if is_own(id) => feed::list(turn, call, &me),
        ("GET", [id, "videos" | "video_reels"]) if is_own(id) => media::list(turn, call, &me, path[1]),
        ("GET", [id, "stories"]) if is_own(id) => feed::stories(turn, call, &me),
        ("GET", [id, "insights"]) if is_own(id) => feed::page_insights(turn, call, &me),
        ("GET", [id, edge]) if is_own(id) => {
            Err(graph::invalid(&format!("Tried accessing nonexisting field ({edge}) on node type (Page)")))
        }
        ("GET", [id]) => feed::node(turn, call, &me, id),
        ("POST", [id]) => feed::edit(turn, call, &me, id),
        ("DELETE", [id]) => feed::delete(turn, call, &me, id),
        ("GET", [id, "comments"]) => feed::comments(turn, call, id),
        ("POST", [id, "comments"]) => feed::comment(turn, call, &me, id),
        ("GET", [id, "insights"]) => feed::insights(turn, call, &me, id),
        ("GET", [id, "video_insights"]) => media::insights(turn, call, &me, id),
        (_, [id, ..]) => Err(graph::missing(method, id)),
        _ => Err(graph::error(404, 2500, 0, "Unknown path components")),
    }
}

/// A proof that the caller is the app is checked where one is sent.
fn prove(call: &Call, token: &Token) -> Result<(), Answer> {
    let Some(proof) = graph::param(call, "appsecret_proof") else { return Ok(()) };
    let mut mac = Hmac::<Sha256>::new_from_slice(tokens::SECRET.as_bytes()).expect("any key will do");
    mac.update(token.token.as_bytes());
    match hex::encode(mac.finalize().into_bytes()) == proof {
        true => Ok(()),
        false => Err(graph::error(400, 100, 0, "Invalid appsecret_proof provided in the API argument")),
    }
}

/// `/oauth/access_token`: for a code, for a short-lived token, or for the app itself.
fn tokens(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let get = |name: &str| graph::param(call, name).unwrap_or_default();
    match get("grant_type").as_str() {
        "" | "authorization_code" => {
            let redeemed = LOGIN.redeem(turn, call).map_err(graph::Unredeemed::graph)?;
            let mut token = graph::issue(turn, ID, &redeemed.user, redeemed.scopes, graph::Kind::Short, None);
            token.pages = redeemed.pages;
            turn.shelf.put(&token);
            Ok(graph::told(&token, turn.now))
        }
        _ if get("client_id") != CLIENT_ID => Err(graph::Unredeemed::App.graph()),
        _ if get("client_secret") != tokens::SECRET => Err(graph::Unredeemed::Secret.graph()),
        "client_credentials" => {
            let token = format!("{CLIENT_ID}|{}", tokens::SECRET);
            Ok(Answer::json(200, &json!({ "access_token": token, "token_type": "bearer" })))
        }
        "fb_exchange_token" => {
            let short = graph::alive(turn, ID, &get("fb_exchange_token"))?;
            let mut long = graph::issue(turn, ID, &short.user, short.scopes, graph::Kind::Long, None);
            long.pages = short.pages;
            turn.shelf.put(&long);
            Ok(graph::told(&long, turn.now))
        }
        other => Err(graph::invalid(&format!("Unsupported grant_type {other}"))),
    }
}

/// What a person's token reaches: themselves, their permissions, and the Pages that they ticked.
fn person(turn: &mut Turn<'_>, call: &Call, token: &Token, path: &[&str]) -> Result<Answer, Answer> {
    let method = call.method.as_str();
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
            Ok(Answer::json(200, &graph::select(&node, &graph::fields(call), "User", &["id", "name"])?))
        }
        ("GET", [id, "permissions"]) if is_own(id) => {
            let all = token.scopes.iter().map(|scope| json!({ "permission": scope, "status": "granted" }));
            Ok(Answer::json(200, &json!({ "data": all.collect::<Vec<_>>() })))
        }
        ("DELETE", [id, "permissions"]) if is_own(id) => {
            for page in token.pages.iter().chain([&token.user]) {
                graph::revoke(turn, page);
            }
            Ok(Answer::json(200, &json!({ "success": true })))
        }
        ("GET", [id, "accounts"]) if is_own(id) => {
            graph::admit(turn, ID, call, &["pages_show_list"])?;
            let pages: Vec<Account> =
                token.pages.iter().filter_map(|id| account::numbered(turn.shelf, ID, id)).collect();
            let mut tokens = Vec::new();
            for page in &pages {
                let scopes = token.scopes.clone();
                let own = graph::issue(turn, ID, &token.user, scopes, graph::Kind::Page, Some(page.id.clone()));
                tokens.push((page.id.clone(), own.token));
            }
            let fields = graph::fields(call);
            let names = ["access_token", "category", "category_list", "name", "id", "tasks"];
            graph::paged(call, pages, |page| &page.id, |page| {
                let token = tokens.iter().find(|(id, _)| *id == page.id).map(|(_, token)| token.as_str());
                graph::select(&page_value(turn, page, token), &fields, "Page", &names)
            })
        }
        ("GET", [id]) if token.pages.iter().any(|page| page == id) => {
            let page = account::numbered(turn.shelf, ID, id).ok_or_else(|| graph::missing(method, id))?;
            let scopes = token.scopes.clone();
            let own = graph::issue(turn, ID, &token.user, scopes, graph::Kind::Page, Some(page.id.clone()));
            page_node(turn, call, &page, Some(&own.token))
        }
        ("POST", [id, ..]) if token.pages.iter().any(|page| page == id) => Err(graph::error(
            403,
            200,
            0,
            "(#200) If posting to a page, requires both pages_read_engagement and pages_manage_posts permission with page token",
        )),
        (_, [id, ..]) => Err(graph::missing(method, id)),
        _ => Err(graph::error(404, 2500, 0, "Unknown path components")),
    }
}

fn page_node(turn: &Turn<'_>, call: &Call, page: &Account, token: Option<&str>) -> Result<Answer, Answer> {
    let node = page_value(turn, page, token);
    Ok(Answer::json(200, &graph::select(&node, &graph::fields(call), "Page", &["id", "name"])?))
}

fn page_value(turn: &Turn<'_>, page: &Account, token: Option<&str>) -> Value {
    let followers = crate::figures::figure(&page.id, "followers", turn.now - page.created_at, 5_000);
    json!({
        "id": page.id,
        "name": page.username,
        "username": page.username,
        "link": format!("https://www.facebook.com/{}", page.username),
        "access_token": token,
        "category": "Software",
        "category_list": [{ "id": "2211", "name": "Software" }],
        "tasks": ["ANALYZE", "ADVERTISE", "MODERATE", "CREATE_CONTENT", "MANAGE"],
        "picture": { "data": { "url": avatar(page), "height": 200, "width": 200, "is_silhouette": false } },
        "fan_count": followers,
        "followers_count": followers,
        "is_published": true,
        "has_transitioned_to_new_page_experience": true,
        "instagram_business_account": null,
    })
}
