//! HTML pages: accounts and posts, the control panel, and the consent page of logins.

use super::{
    Transaction,
    account::Account,
    exchange::Response,
    fault::{self, Armed},
    journal::Entry,
    reddit::markdown,
    settings::Settings,
    simulator::{PostView, Simulator},
    store::Store,
};
use crate::Identity;
use askama::Template;
use domain::appearance::{actions, handle, initial};
use std::collections::HashSet;

/// Policy of the pages.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Policy of consent pages: browsers apply `form-action` to the redirects after a form as well, which lead to the
/// app and to wherever that goes on.
const CONSENT_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// Faults with a button of their own; the others are in a list.
const CLICKS: [&str; 4] = ["429", "503", "drop", "lost-reply"];

/// Number of requests on the first page.
const REQUESTS: usize = 12;

#[derive(Template)]
#[template(path = "panel.html")]
struct Panel<'a> {
    accounts: Vec<AccountPanel<'a>>,
    requests: &'a [Entry],
    /// Faults, each with its meaning.
    clicks: Vec<(&'static str, &'static str)>,
    words: Vec<(&'static str, &'static str)>,
    settings: [(&'static str, &'static str, u64); 5],
    is_approved: bool,
}

/// An account of the control panel.
struct AccountPanel<'a> {
    platform: &'a str,
    /// Name of the platform.
    name: String,
    username: &'a str,
    initial: String,
    armed: Option<&'a Armed>,
    /// Meaning of the armed fault.
    meaning: &'static str,
}

#[derive(Template)]
#[template(path = "account.html")]
struct Page<'a> {
    who: &'a Identity,
    platform: &'a str,
    name: String,
    initial: String,
    views: Vec<String>,
}

#[derive(Template)]
#[template(path = "post.html")]
struct View<'a> {
    post: &'a PostView,
    look: Look,
    platform: &'a str,
    name: &'a str,
    username: &'a str,
    handle: String,
    initial: String,
    time: String,
    is_reply: bool,
    actions: &'static [&'static str],
    replies: Vec<String>,
}

/// The parts of a post that its platform shows in different places.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    title: String,
    text: String,
    /// The text as HTML, where the platform reads markup in it.
    html: Option<String>,
    /// Place where it was posted: a subreddit or a board.
    place: String,
    notes: Vec<String>,
    /// True for a story, a reel, and on TikTok.
    is_upright: bool,
}

impl Look {
    fn of(platform: &str, post: &PostView, is_reply: bool) -> Self {
        let mut look = Self {
            title: String::new(),
            text: post.text.clone(),
            html: None,
            place: String::new(),
            notes: Vec::new(),
            is_upright: platform == "tiktok" && !is_reply,
        };
        for note in &post.notes {
            let place =
                note.strip_prefix("On the board ").or_else(|| note.strip_prefix("In r/").map(|_| &note[3..]));
            match (note.strip_prefix("Title: "), place) {
                (Some(title), _) => title.clone_into(&mut look.title),
                (_, Some(place)) => {
                    place.split(": ").next().unwrap_or(place).clone_into(&mut look.place);
                }
                _ if ["REELS", "STORY", "Story"].contains(&note.as_str()) => look.is_upright = true,
                _ => look.notes.extend(shown(platform, note)),
            }
        }
        if platform == "reddit" && !is_reply {
            let (title, text) = post.text.split_once("\n\n").unwrap_or((&post.text, ""));
            (look.title, look.text) = (title.to_owned(), text.to_owned());
        }
        if platform == "reddit" {
            look.html = Some(markdown::html(&look.text));
        }
        look
    }
}

/// Returns a note as the platform shows it to viewers; `None` for what only its API tells.
fn shown(platform: &str, note: &str) -> Option<String> {
    let (label, value) = note.split_once(": ").unwrap_or((note, ""));
    match (platform, label) {
        ("linkedin", _) if note.starts_with("By ") || note.starts_with("Mentions ") => None,
        ("google_business", "Button") => {
            Some(value.split(' ').next().unwrap_or_default().replace('_', " ").to_lowercase())
        }
        ("google_business", _) if note.ends_with(" LIVE") || note.starts_with("PHOTO of ") => None,
        ("youtube" | "tiktok", "Visible") if ["public", "PUBLIC_TO_EVERYONE"].contains(&value) => None,
        ("tiktok", "Visible") if value == "SELF_ONLY" => Some("Only you can see it".to_owned()),
        ("youtube", _) if note.starts_with("Category ") => None,
        // Parameters of its API.
        ("instagram", _) => None,
        _ => {
            let about = ["Quotes", "Shares", "Repost of"]
                .into_iter()
                .find(|verb| note.strip_prefix(*verb).is_some_and(|rest| rest.starts_with([' ', ':'])));
            Some(about.map_or_else(|| note.to_owned(), |verb| format!("{verb} another post")))
        }
    }
}

/// Returns the platform's name.
fn name(platform: &str) -> String {
    match platform {
        "linkedin" => "LinkedIn".to_owned(),
        "tiktok" => "TikTok".to_owned(),
        "youtube" => "YouTube".to_owned(),
        "google_business" => "Google Business Profile".to_owned(),
        other => initial(other) + &other[1..],
    }
}

#[derive(Template)]
#[template(path = "consent.html")]
struct Consent<'a> {
    platform: &'a str,
    name: String,
    client: &'a str,
    scopes: Vec<&'a str>,
    username: &'a str,
    hidden: &'a [(String, String)],
}

#[derive(Template)]
#[template(path = "notice.html")]
struct Notice<'a> {
    title: &'a str,
    text: &'a str,
}

/// Renders the first page: all accounts, their armed faults, the latest requests and the settings.
pub(crate) fn panel(store: &Store, settings: &Settings) -> String {
    let accounts: Vec<_> = store.with_prefix::<Account>("").collect();
    let armed: Vec<_> = store.with_prefix::<Armed>("").collect();
    let requests: Vec<_> = store.with_prefix::<Entry>("").rev().take(REQUESTS).collect();
    let meaning = |word: &str| {
        fault::WORDS.iter().find(|(known, _)| *known == word).map_or("", |(_, kind)| kind.meaning())
    };
    let panels = accounts.iter().map(|account| {
        let armed = armed.iter().find(|armed| armed.is_for(account));
        AccountPanel {
            platform: &account.platform,
            name: name(&account.platform),
            username: &account.username,
            initial: initial(&account.username),
            armed,
            meaning: armed.map_or("", |armed| meaning(&armed.word)),
        }
    });
    let mut words = fault::WORDS.map(|(word, kind)| (word, kind.meaning()));
    words.sort_unstable();
    render(&Panel {
        accounts: panels.collect(),
        requests: &requests,
        clicks: CLICKS.map(|word| (word, meaning(word))).into(),
        words: words.into(),
        settings: [
            ("processing_ms", "Processing of a video (ms)", settings.processing_ms),
            ("lag_ms", "Lag of lists behind posts (ms)", settings.lag_ms),
            ("slow_ms", "Delay of a slow answer (ms)", settings.slow_ms),
            ("duplicate_ms", "Duplicate texts are refused for (ms)", settings.duplicate_ms),
            ("renew_after_ms", "Age from which Meta refreshes a token (ms)", settings.renew_after_ms),
        ],
        is_approved: settings.is_approved(),
    })
}

/// Renders an account's posts, newest first, each with its replies.
pub(crate) fn account(tx: &Transaction, simulator: &dyn Simulator, account: &Account) -> String {
    let (who, platform) = (&simulator.identity(account), simulator.id());
    let views = &simulator.posts(tx, account)[..];
    let is_below = |post: &PostView| {
        post.reply_to.as_ref().is_some_and(|parent| views.iter().any(|other| other.id == *parent))
    };
    let mut seen = HashSet::new();
    let tops = views.iter().filter(|post| !is_below(post));
    let views = tops.map(|post| view(who, platform, post, views, &mut seen)).collect();
    wall(who, platform, views)
}

/// Renders one post with its replies.
pub(crate) fn post(
    tx: &Transaction,
    simulator: &dyn Simulator,
    account: &Account,
    post: &PostView,
) -> String {
    let (who, platform) = (&simulator.identity(account), simulator.id());
    let views = simulator.posts(tx, account);
    let shown = view(who, platform, post, &views, &mut HashSet::new());
    wall(who, platform, vec![shown])
}

fn wall(who: &Identity, platform: &str, views: Vec<String>) -> String {
    render(&Page { who, platform, name: name(platform), initial: initial(&who.profile.display_name), views })
}

/// Responds with a page, or with 404 when what it would show does not exist.
pub(crate) fn serve(html: Option<String>) -> Response {
    html.map_or_else(|| Response::page(404, missing()), |html| Response::page(200, html))
}

/// Responds with the page on which an account's owner allows or denies an app.
pub(crate) fn consent(
    platform: &str,
    client: &str,
    scopes: Vec<&str>,
    username: &str,
    hidden: &[(String, String)],
) -> Response {
    let page = Consent { platform, name: name(platform), client, scopes, username, hidden };
    Response::page(200, render(&page)).with("content-security-policy", CONSENT_POLICY)
}

/// Renders a page with a message.
pub(crate) fn notice(title: &str, text: &str) -> String {
    render(&Notice { title, text })
}

/// Renders the page for 404.
pub(crate) fn missing() -> String {
    notice("Not found", "There is no such account or post, or it was deleted.")
}

/// Renders a post with its replies. A post can be edited into a reply to one of its own replies, so none is
/// rendered twice.
fn view<'a>(
    who: &Identity,
    platform: &str,
    post: &'a PostView,
    views: &'a [PostView],
    seen: &mut HashSet<&'a str>,
) -> String {
    seen.insert(&post.id);
    let mut replies = Vec::new();
    for reply in views.iter().rev().filter(|other| other.reply_to.as_ref() == Some(&post.id)) {
        if !seen.contains(reply.id.as_str()) {
            replies.push(view(who, platform, reply, views, seen));
        }
    }
    let is_reply = post.reply_to.is_some();
    let (display, username) = (who.profile.display_name.as_str(), who.profile.username.as_str());
    render(&View {
        post,
        look: Look::of(platform, post, is_reply),
        platform,
        name: display,
        username,
        handle: handle(platform, username),
        initial: initial(display),
        time: post.at.format("%-d %B %Y, %H:%M UTC").to_string(),
        is_reply,
        actions: actions(platform),
        replies,
    })
}

fn render(template: &impl Template) -> String {
    template.render().expect("writing to a string does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::STYLE;

    fn post(text: &str, notes: &[&str]) -> PostView {
        PostView {
            id: "1".into(),
            address: "example.com/1".into(),
            text: text.into(),
            at: chrono::DateTime::UNIX_EPOCH,
            media: Vec::new(),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            reply_to: None,
        }
    }

    #[test]
    fn parts_of_a_post_are_shown_where_the_platform_shows_them() {
        let look = |platform, text, notes: &[&str]| Look::of(platform, &post(text, notes), false);
        let reddit = look("reddit", "A title\n\nA text\n\nand more", &["In r/cats: self"]);
        assert_eq!(
            (&*reddit.title, &*reddit.text, &*reddit.place),
            ("A title", "A text\n\nand more", "r/cats")
        );
        let pin =
            look("pinterest", "Text", &["On the board Cats", "Title: A cat", "Leads to https://example.com"]);
        assert_eq!(
            (&*pin.title, &*pin.place, &pin.notes[..]),
            ("A cat", "Cats", &["Leads to https://example.com".to_owned()][..])
        );
        assert!(look("instagram", "", &["REELS"]).is_upright && look("tiktok", "", &[]).is_upright);
        assert!(
            !look("instagram", "", &["FEED"]).is_upright && look("instagram", "", &["FEED"]).notes.is_empty()
        );
    }

    #[test]
    fn what_only_the_api_tells_is_no_part_of_a_post() {
        for (platform, notes, shown) in [
            (
                "linkedin",
                ["By urn:li:person:1, visible: PUBLIC", "Leads to https://a.example"],
                "Leads to https://a.example",
            ),
            ("google_business", ["STANDARD LIVE", "Button: LEARN_MORE https://a.example"], "learn more"),
            ("youtube", ["Category 22", "Visible: private"], "Visible: private"),
            ("tiktok", ["Visible: PUBLIC_TO_EVERYONE", "Made with AI"], "Made with AI"),
            ("x", ["Quotes 17", "Title: A title"], "Quotes another post"),
        ] {
            let post = post("Text", &notes);
            assert_eq!(Look::of(platform, &post, false).notes, [shown], "{platform}");
            let page = render(&View {
                look: Look::of(platform, &post, false),
                post: &post,
                platform,
                name: "Ada",
                username: "ada",
                handle: handle(platform, "ada"),
                initial: initial("Ada"),
                time: String::new(),
                is_reply: false,
                actions: actions(platform),
                replies: Vec::new(),
            });
            let arrived = page.split_once("What arrived").unwrap().1;
            assert!(notes.iter().all(|note| arrived.contains(note)), "{platform}: {page}");
        }
        let refused = Look::of("google_business", &post("Text", &["STANDARD REJECTED"]), false);
        assert_eq!(refused.notes, ["STANDARD REJECTED"]);
    }

    #[test]
    fn every_platform_has_a_layout() {
        for simulator in crate::SIMULATORS {
            let id = simulator.id();
            assert!(STYLE.contains(&format!(".mock.{id}")), "{id}");
            assert!(!actions(id).is_empty() && !name(id).is_empty());
        }
    }
}
