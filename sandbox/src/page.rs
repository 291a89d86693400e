//! HTML pages: accounts and posts, the control panel, and the consent page of logins.

use super::{
    Transaction,
    account::Account,
    exchange::Response,
    fault::{self, Armed},
    settings::Settings,
    simulator::{PostView, Simulator},
};
use crate::Identity;
use askama::Template;
use std::collections::HashSet;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#14171a;background:#fff}\
a{color:#0b57d0}h1,h2,h3{overflow-wrap:anywhere}article{border:1px solid #dde3e8;border-radius:.75rem;padding:1rem;margin:1rem 0}article article{border-width:0 0 0 2px;border-radius:0;margin-left:.5rem}\
article h3{margin:0}form{display:inline-flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.25rem 0}.state{font-weight:600}\
p.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}time,small{color:#5b6670;overflow-wrap:anywhere}img,video{max-width:100%;border-radius:.5rem}\
button,input,select{font:inherit;padding:.4rem .8rem;max-width:100%}@media(prefers-color-scheme:dark){:root{color-scheme:dark}body{color:#e7e9ea;background:#15181c}article{border-color:#38434d}a{color:#8ab4f8}time,small{color:#a3adb5}}";

/// Style of the pages with posts, in addition to that of posts.
const WALL: &str = "body{margin:0;font:16px/1.5 system-ui,sans-serif;color:#14171a;background:#f4f6f7}\
.site{display:flex;gap:.75rem;align-items:baseline;padding:.6rem 1rem;background:#fff;border-bottom:1px solid #dde3e8}.site a{color:#0b57d0;font-size:.875rem}\
.wall{max-width:36rem;margin:1.25rem auto;padding:0 1rem}.profile{display:flex;gap:1rem;align-items:center;margin:0 0 1rem}.profile h1{margin:0;font-size:1.375rem;overflow-wrap:anywhere}.profile h1 a{color:inherit;text-decoration:none}.profile p{margin:0}\
.face{display:grid;place-items:center;flex:none;width:4rem;height:4rem;border-radius:50%;background:#37434d;color:#fff;font-size:1.5rem;font-weight:700}\
.wall.pinterest,.wall.instagram,.wall.tiktok{max-width:64rem}.wall.pinterest .posts,.wall.instagram .posts,.wall.tiktok .posts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(17rem,100%),1fr));gap:1rem;align-items:start}\
.post .post{margin-inline-start:.5rem}.facts{margin:.1rem .3rem 1rem;overflow-wrap:anywhere;font-size:.875rem}.facts summary{padding:.2rem 0;cursor:pointer;color:#56626c}.facts p{margin:.2rem 0}p.text{white-space:pre-wrap}small,.site b+small{color:#56626c}\
@media(prefers-color-scheme:dark){:root{color-scheme:dark}body{color:#e7e9ea;background:#0f1214}.site{background:#16191c;border-color:#333b42}.site a{color:#8ab4f8}small,.facts summary{color:#a9b3bb}}";

/// Style of posts: the one of the dashboard's previews.
const POSTS: &str = include_str!("../../api/templates/dashboard/platforms.css");

/// Faults with a button of their own; the others are in a list.
const CLICKS: [&str; 4] = ["429", "503", "drop", "lost-reply"];

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sandbox</title><style>{{ style|safe }}</style>
<main><h1>Sandbox</h1><p>Posts to these accounts stay on this machine.</p>
<h2>Accounts</h2>
{% for account in accounts %}<article id="{{ account.platform }}-{{ account.username }}"><h3><a href="/{{ account.platform }}/{{ account.username }}">{{ account.username }}</a> <small>{{ account.platform }}</small></h3>
{% if let Some(armed) = account.armed %}<p class="state" role="status">The next {% if armed.tries == 1 %}try fails{% else %}{{ armed.tries }} tries fail{% endif %} with {{ armed.word }}.</p>
<form method="post" action="/_panel/faults"><input type="hidden" name="platform" value="{{ account.platform }}"><input type="hidden" name="username" value="{{ account.username }}"><input type="hidden" name="word" value="{{ armed.word }}"><input type="hidden" name="tries" value="0"><button>Remove the fault</button></form>{% endif %}
<div>Next try: {% for word in clicks %}<form method="post" action="/_panel/faults"><input type="hidden" name="platform" value="{{ account.platform }}"><input type="hidden" name="username" value="{{ account.username }}"><input type="hidden" name="tries" value="1"><button name="word" value="{{ word }}" aria-label="{{ word }}: the next try of {{ account.username }} on {{ account.platform }}">{{ word }}</button></form> {% endfor %}</div>
<form method="post" action="/_panel/faults"><input type="hidden" name="platform" value="{{ account.platform }}"><input type="hidden" name="username" value="{{ account.username }}"><label>Next <input name="tries" type="number" min="0" max="1000" value="3" required></label> <label>tries: <select name="word">{% for word in words %}<option>{{ word }}</option>{% endfor %}</select></label> <button>Fail</button></form>
<div><form method="post" action="/_panel/tokens"><input type="hidden" name="platform" value="{{ account.platform }}"><input type="hidden" name="username" value="{{ account.username }}"><button name="end" value="expire">Expire the token</button> <button name="end" value="revoke">Revoke the access</button></form></div></article>
{% else %}<p>No accounts yet.</p>{% endfor %}
<h2>Failures on purpose</h2><p>A post fails when its text contains one of these words; append <code>x2</code> for the first two tries only.</p>
<ul>{% for word in words %}<li><code>#sandbox-{{ word }}</code></li>{% endfor %}</ul>
<h2 id="settings">Settings</h2><form method="post" action="/_panel/settings">{% for (name, label, value) in settings %}<label>{{ label }} <input name="{{ name }}" type="number" min="0" value="{{ value }}" required></label> {% endfor %}<button>Change</button></form></main></html>"#
)]
struct AdminPage<'a> {
    style: &'static str,
    accounts: Vec<AccountPanel<'a>>,
    clicks: [&'static str; 4],
    words: Vec<&'static str>,
    settings: [(&'static str, &'static str, u64); 5],
}

/// An account of the control panel.
struct AccountPanel<'a> {
    platform: &'a str,
    username: &'a str,
    armed: Option<&'a Armed>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ who.profile.display_name }} on {{ name }}, in the sandbox</title><style>{{ style|safe }}</style>
<header class="site"><a href="/">Sandbox</a> <b>{{ name }}</b></header>
<main class="wall {{ platform }}"><div class="profile"><span class="face {{ platform }}" aria-hidden="true">{{ initial }}</span><div><h1 dir="auto"><a href="/{{ platform }}/{{ who.profile.username }}">{{ who.profile.display_name }}</a></h1><p><small>{{ who.profile.username }}, {% if views.len() == 1 %}one post{% else %}{{ views.len() }} posts{% endif %}</small></p></div></div>
<div class="posts">{% for view in views %}{{ view|safe }}{% else %}<p>No posts yet.</p>{% endfor %}</div></main></html>"#
)]
struct Page<'a> {
    style: String,
    who: &'a Identity,
    platform: &'a str,
    name: String,
    initial: String,
    views: Vec<String>,
}

// The same markup as that of the dashboard's previews, so that one style sheet lays out both.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<div class="post" id="{{ post.id }}"><article class="mock {{ platform }}{% if look.is_upright %} upright{% endif %}{% if is_reply %} reply{% endif %}">
<header class="mock-head"><span class="mock-avatar" aria-hidden="true">{{ initial }}</span><p class="mock-who">{% if !look.place.is_empty() %}<span class="mock-place" dir="auto">{{ look.place }}</span> {% endif %}<b dir="auto">{{ name }}</b> <span class="mock-handle" dir="auto">{{ handle }}</span> <span class="mock-time"><a href="/{{ platform }}/{{ username }}/{{ post.id }}"><time datetime="{{ post.at.to_rfc3339() }}">{{ time }}</time></a></span></p></header>
{% if !look.title.is_empty() %}<p class="mock-title" dir="auto">{{ look.title }}</p>{% endif %}
<p class="mock-text" dir="auto">{{ look.text }}</p>
{% if !post.media.is_empty() %}<div class="mock-media of-{{ post.media.len() }}">{% for medium in post.media %}<div class="mock-file">
{%- if medium.files.len() == 1 && medium.mime.starts_with("image/") %}<img src="/_media/{{ medium.files[0] }}" alt="{{ medium.alt }}">
{%- else if medium.files.len() == 1 && medium.mime.starts_with("video/") %}<video controls src="/_media/{{ medium.files[0] }}" aria-label="{{ medium.alt }}"></video>
{%- else %}<span>{{ medium.mime }}: {{ medium.alt }}</span>{% endif -%}
</div>{% endfor %}</div>{% endif %}
{% for note in look.notes %}<p class="mock-note" dir="auto">{{ note }}</p>{% endfor %}
<ul class="mock-acts" aria-hidden="true">{% for action in actions %}<li>{{ action }}</li>{% endfor %}</ul></article>
<details class="facts"><summary>What arrived</summary><p class="text">{{ post.text }}</p>
{%- for note in post.notes %}<p><small>{{ note }}</small></p>{% endfor %}
<p><small>https://{{ post.address }}{% if let Some(id) = post.reply_to %}, in reply to {{ id }}{% endif %}</small></p></details>
{% for reply in replies %}{{ reply|safe }}{% endfor %}</div>"#
)]
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
    /// Where it was posted: a subreddit or a board.
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
                _ if platform == "instagram" && note == "FEED" => {}
                _ if ["REELS", "STORY", "Story"].contains(&note.as_str()) => look.is_upright = true,
                _ => look.notes.push(note.clone()),
            }
        }
        if platform == "reddit" && !is_reply {
            let (title, text) = post.text.split_once("\n\n").unwrap_or((&post.text, ""));
            (look.title, look.text) = (title.to_owned(), text.to_owned());
        }
        look
    }
}

/// Returns what viewers can do with a post.
fn actions(platform: &str) -> &'static [&'static str] {
    match platform {
        "linkedin" => &["Like", "Comment", "Repost", "Send"],
        "facebook" => &["Like", "Comment", "Share"],
        "instagram" | "tiktok" => &["Like", "Comment", "Share", "Save"],
        "youtube" => &["Like", "Dislike", "Share"],
        "pinterest" => &["Save"],
        "google_business" => &["Share"],
        "reddit" => &["Upvote", "Downvote", "Comment", "Share"],
        _ => &["Reply", "Repost", "Like", "Share"],
    }
}

/// Returns a username as the platform writes it beside the name.
fn handle(platform: &str, username: &str) -> String {
    match platform {
        "reddit" => format!("u/{username}"),
        "linkedin" | "facebook" | "google_business" => String::new(),
        "instagram" | "threads" | "pinterest" => username.to_owned(),
        _ => format!("@{}", username.trim_start_matches('@')),
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

/// Returns the first letter or digit of a name, in upper case.
fn initial(name: &str) -> String {
    name.chars().find(|letter| letter.is_alphanumeric()).into_iter().flat_map(char::to_uppercase).collect()
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Authorize</title><style>{{ style|safe }}</style>
<h1>{{ client }} wants to access an account</h1><p>It asks for:</p><ul>{% for scope in scopes %}<li>{{ scope }}</li>{% endfor %}</ul>
<form method="post"><p><label>Account <input name="username" value="{{ username }}" required></label> <small>created if there is none</small></p>
{% for (name, value) in hidden %}<input type="hidden" name="{{ name }}" value="{{ value }}">{% endfor %}
<p><button name="decision" value="allow">Allow</button> <button name="decision" value="deny" formnovalidate>Deny</button></p></form></html>"#
)]
struct Consent<'a> {
    style: &'static str,
    client: &'a str,
    scopes: Vec<&'a str>,
    username: &'a str,
    hidden: &'a [(String, String)],
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><title>{{ title }}</title><style>{{ style|safe }}</style><h1>{{ title }}</h1><p>{{ text }}</p></html>"#
)]
struct Notice<'a> {
    style: &'static str,
    title: &'a str,
    text: &'a str,
}

/// Renders the first page: all accounts, their armed faults and the settings.
pub(crate) fn admin(accounts: &[Account], armed: &[Armed], settings: &Settings) -> String {
    let panels = accounts.iter().map(|account| AccountPanel {
        platform: &account.platform,
        username: &account.username,
        armed: armed.iter().find(|armed| armed.is_for(account)),
    });
    render(&AdminPage {
        style: STYLE,
        accounts: panels.collect(),
        clicks: CLICKS,
        words: fault::WORDS.iter().map(|(word, _)| *word).collect(),
        settings: [
            ("processing_ms", "Processing time of a video (ms)", settings.processing_ms),
            ("lag_ms", "Lag of lists (ms)", settings.lag_ms),
            ("slow_ms", "Delay of a slow response (ms)", settings.slow_ms),
            ("duplicate_ms", "Period for duplicate texts (ms)", settings.duplicate_ms),
            ("renew_after_ms", "Minimum age to refresh a Meta token (ms)", settings.renew_after_ms),
        ],
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
    render(&Page {
        style: format!("{WALL}{POSTS}"),
        who,
        platform,
        name: name(platform),
        initial: initial(&who.profile.display_name),
        views,
    })
}

/// Responds with a page, or with 404 when what it would show does not exist.
pub(crate) fn serve(html: Option<String>) -> Response {
    html.map_or_else(|| Response::page(404, missing()), |html| Response::page(200, html))
}

/// Renders the page on which an account's owner allows or denies an app.
pub(crate) fn consent(
    client: &str,
    scopes: Vec<&str>,
    username: &str,
    hidden: &[(String, String)],
) -> String {
    render(&Consent { style: STYLE, client, scopes, username, hidden })
}

/// Renders a page with a message.
pub(crate) fn notice(title: &str, text: &str) -> String {
    render(&Notice { style: STYLE, title, text })
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
    fn every_platform_has_a_layout() {
        for simulator in crate::SIMULATORS {
            let id = simulator.id();
            assert!(POSTS.contains(&format!(".mock.{id}")), "{id}");
            assert!(!actions(id).is_empty() && !name(id).is_empty());
        }
    }
}
