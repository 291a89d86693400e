//! What the accounts would look like on their platforms, roughly; and where logins are consented to.

use super::{
    account::Account,
    fault::{self, Armed},
    host::Card,
    settings::Settings,
};
use crate::Identity;
use askama::Template;
use std::collections::HashSet;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#14171a;background:#fff}\
a{color:#0b57d0}h1,h2,h3{overflow-wrap:anywhere}article{border:1px solid #dde3e8;border-radius:.75rem;padding:1rem;margin:1rem 0}article article{border-width:0 0 0 2px;border-radius:0;margin-left:.5rem}\
article h3{margin:0}form{display:inline-flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.25rem 0}.state{font-weight:600}\
p.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}time,small{color:#5b6670;overflow-wrap:anywhere}img,video{max-width:100%;border-radius:.5rem}\
button,input,select{font:inherit;padding:.4rem .8rem;max-width:100%}@media(prefers-color-scheme:dark){:root{color-scheme:dark}body{color:#e7e9ea;background:#15181c}article{border-color:#38434d}a{color:#8ab4f8}time,small{color:#a3adb5}}";

/// The faults that a click arms; the others are in the list beside them.
const CLICKS: [&str; 4] = ["429", "503", "drop", "lost-reply"];

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sandbox</title><style>{{ style|safe }}</style>
<main><h1>Sandbox</h1><p>What was published to these accounts stayed on this machine.</p>
<h2>Accounts</h2>
{% for card in cards %}<article id="{{ card.platform }}-{{ card.username }}"><h3><a href="/{{ card.platform }}/{{ card.username }}">{{ card.username }}</a> <small>{{ card.platform }}</small></h3>
{% if let Some(armed) = card.armed %}<p class="state" role="status">The next {% if armed.tries == 1 %}try fails{% else %}{{ armed.tries }} tries fail{% endif %} with {{ armed.word }}.</p>
<form method="post" action="/_panel/faults"><input type="hidden" name="platform" value="{{ card.platform }}"><input type="hidden" name="username" value="{{ card.username }}"><input type="hidden" name="word" value="{{ armed.word }}"><input type="hidden" name="tries" value="0"><button>Let them through</button></form>{% endif %}
<div>Next try: {% for word in clicks %}<form method="post" action="/_panel/faults"><input type="hidden" name="platform" value="{{ card.platform }}"><input type="hidden" name="username" value="{{ card.username }}"><input type="hidden" name="tries" value="1"><button name="word" value="{{ word }}" aria-label="{{ word }}: the next try of {{ card.username }} on {{ card.platform }}">{{ word }}</button></form> {% endfor %}</div>
<form method="post" action="/_panel/faults"><input type="hidden" name="platform" value="{{ card.platform }}"><input type="hidden" name="username" value="{{ card.username }}"><label>Next <input name="tries" type="number" min="0" max="1000" value="3" required></label> <label>tries: <select name="word">{% for word in words %}<option>{{ word }}</option>{% endfor %}</select></label> <button>Fail</button></form>
<div><form method="post" action="/_panel/tokens"><input type="hidden" name="platform" value="{{ card.platform }}"><input type="hidden" name="username" value="{{ card.username }}"><button name="end" value="expire">Expire the token</button> <button name="end" value="revoke">Revoke the access</button></form></div></article>
{% else %}<p>No account yet.</p>{% endfor %}
<h2>Failures on purpose</h2><p>Or put one of these into a text; add <code>x2</code> for the first two tries only.</p>
<ul>{% for word in words %}<li><code>#sandbox-{{ word }}</code></li>{% endfor %}</ul>
<h2 id="settings">Settings</h2><form method="post" action="/_panel/settings">{% for (name, label, value) in settings %}<label>{{ label }} <input name="{{ name }}" type="number" min="0" value="{{ value }}" required></label> {% endfor %}<button>Change</button></form></main></html>"#
)]
struct Index<'a> {
    style: &'static str,
    cards: Vec<Panel<'a>>,
    clicks: [&'static str; 4],
    words: Vec<&'static str>,
    settings: [(&'static str, &'static str, u64); 5],
}

/// An account of the control panel.
struct Panel<'a> {
    platform: &'a str,
    username: &'a str,
    armed: Option<&'a Armed>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ who.display_name }} on {{ platform }}</title><style>{{ style|safe }}</style>
<main><p><a href="/">Sandbox</a> / {{ platform }}</p><h1><a href="/{{ platform }}/{{ who.username }}">{{ who.display_name }}</a> <small>@{{ who.username }}</small></h1>
{% for view in views %}{{ view|safe }}{% else %}<p>Nothing published yet.</p>{% endfor %}</main></html>"#
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
    source = r#"<article id="{{ card.id }}"><p class="text">{{ card.text }}</p>
{%- for picture in card.media -%}
{%- if picture.files.len() == 1 && picture.mime.starts_with("image/") %}<p><img src="/_media/{{ picture.files[0] }}" alt="{{ picture.alt }}"></p>
{%- else if picture.files.len() == 1 && picture.mime.starts_with("video/") %}<p><video controls src="/_media/{{ picture.files[0] }}" aria-label="{{ picture.alt }}"></video></p>
{%- else %}<p><small>{{ picture.mime }}: {{ picture.alt }}</small></p>{% endif -%}
{%- endfor -%}
{%- for note in card.notes %}<p><small>{{ note }}</small></p>{% endfor %}
<p><a href="/{{ platform }}/{{ username }}/{{ card.id }}"><time datetime="{{ card.at.to_rfc3339() }}">{{ time }}</time></a> <small>https://{{ card.address }}{% if let Some(id) = card.reply_to %}, in reply to {{ id }}{% endif %}</small></p>
{% for reply in replies %}{{ reply|safe }}{% endfor %}</article>"#
)]
struct View<'a> {
    card: &'a Card,
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
<form method="post"><p><label>Account <input name="username" value="{{ username }}" required></label> <small>made if there is none</small></p>
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

/// All accounts, and what is to go wrong with them.
pub(crate) fn index(accounts: &[Account], armed: &[Armed], settings: &Settings) -> String {
    let cards = accounts.iter().map(|account| Panel {
        platform: &account.platform,
        username: &account.username,
        armed: armed.iter().find(|armed| armed.is_for(account)),
    });
    render(&Index {
        style: STYLE,
        cards: cards.collect(),
        clicks: CLICKS,
        words: fault::WORDS.iter().map(|(word, _)| *word).collect(),
        settings: [
            ("processing_ms", "Processing of a video (ms)", settings.processing_ms),
            ("lag_ms", "Lists lag behind by (ms)", settings.lag_ms),
            ("slow_ms", "A slow reply takes (ms)", settings.slow_ms),
            ("duplicate_ms", "A text is a duplicate for (ms)", settings.duplicate_ms),
            ("renew_after_ms", "A token of Meta's can be renewed after (ms)", settings.renew_after_ms),
        ],
    })
}

/// An account: its posts, newest first, each with what answers it.
pub(crate) fn account(who: &Identity, platform: &str, cards: &[Card]) -> String {
    let is_below = |card: &Card| {
        card.reply_to.as_ref().is_some_and(|parent| cards.iter().any(|other| other.id == *parent))
    };
    let mut seen = HashSet::new();
    let tops = cards.iter().filter(|card| !is_below(card));
    let views = tops.map(|card| view(who, platform, card, cards, &mut seen)).collect();
    render(&Page { style: STYLE, who, platform, views })
}

/// One post, with what answers it.
pub(crate) fn post(who: &Identity, platform: &str, card: &Card, cards: &[Card]) -> String {
    render(&Page {
        style: STYLE,
        who,
        platform,
        views: vec![view(who, platform, card, cards, &mut HashSet::new())],
    })
}

/// Where an account's owner lets an app in, or not.
pub(crate) fn consent(
    client: &str,
    scopes: Vec<&str>,
    username: &str,
    hidden: &[(String, String)],
) -> String {
    render(&Consent { style: STYLE, client, scopes, username, hidden })
}

/// Something to tell.
pub(crate) fn notice(title: &str, text: &str) -> String {
    render(&Notice { style: STYLE, title, text })
}

/// There is no such page.
pub(crate) fn missing() -> String {
    notice("Not found", "There is no such account or post, or it was deleted.")
}

/// A post may be edited to answer one of its own answers, so none is shown twice.
fn view<'a>(
    who: &Identity,
    platform: &str,
    card: &'a Card,
    cards: &'a [Card],
    seen: &mut HashSet<&'a str>,
) -> String {
    seen.insert(&card.id);
    let mut replies = Vec::new();
    for reply in cards.iter().rev().filter(|other| other.reply_to.as_ref() == Some(&card.id)) {
        if !seen.contains(reply.id.as_str()) {
            replies.push(view(who, platform, reply, cards, seen));
        }
    }
    let time = card.at.format("%-d %B %Y, %H:%M:%S UTC").to_string();
    render(&View { card, platform, username: &who.username, time, replies })
}

fn render(template: &impl Template) -> String {
    template.render().expect("writing to a string does not fail")
}
