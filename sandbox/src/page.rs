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
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ who.profile.display_name }} on {{ platform }}</title><style>{{ style|safe }}</style>
<main><p><a href="/">Sandbox</a> / {{ platform }}</p><h1><a href="/{{ platform }}/{{ who.profile.username }}">{{ who.profile.display_name }}</a> <small>@{{ who.profile.username }}</small></h1>
{% for view in views %}{{ view|safe }}{% else %}<p>No posts yet.</p>{% endfor %}</main></html>"#
)]
struct Page<'a> {
    style: &'static str,
    who: &'a Identity,
    platform: &'a str,
    views: Vec<String>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<article id="{{ post.id }}"><p class="text">{{ post.text }}</p>
{%- for medium in post.media -%}
{%- if medium.files.len() == 1 && medium.mime.starts_with("image/") %}<p><img src="/_media/{{ medium.files[0] }}" alt="{{ medium.alt }}"></p>
{%- else if medium.files.len() == 1 && medium.mime.starts_with("video/") %}<p><video controls src="/_media/{{ medium.files[0] }}" aria-label="{{ medium.alt }}"></video></p>
{%- else %}<p><small>{{ medium.mime }}: {{ medium.alt }}</small></p>{% endif -%}
{%- endfor -%}
{%- for note in post.notes %}<p><small>{{ note }}</small></p>{% endfor %}
<p><a href="/{{ platform }}/{{ username }}/{{ post.id }}"><time datetime="{{ post.at.to_rfc3339() }}">{{ time }}</time></a> <small>https://{{ post.address }}{% if let Some(id) = post.reply_to %}, in reply to {{ id }}{% endif %}</small></p>
{% for reply in replies %}{{ reply|safe }}{% endfor %}</article>"#
)]
struct View<'a> {
    post: &'a PostView,
    platform: &'a str,
    username: &'a str,
    time: String,
    replies: Vec<String>,
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
    render(&Page { style: STYLE, who, platform, views })
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
    render(&Page { style: STYLE, who, platform, views: vec![shown] })
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
    let time = post.at.format("%-d %B %Y, %H:%M:%S UTC").to_string();
    render(&View { post, platform, username: &who.profile.username, time, replies })
}

fn render(template: &impl Template) -> String {
    template.render().expect("writing to a string does not fail")
}
