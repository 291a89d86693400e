//! What the accounts would look like on their platforms, roughly; and where logins are consented to.

use super::{account::Account, fault, host::Card};
use crate::Identity;
use askama::Template;
use std::collections::HashSet;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;color:#14171a;background:#fff}\
a{color:#0b57d0}article{border:1px solid #dde3e8;border-radius:.75rem;padding:1rem;margin:1rem 0}article article{border-width:0 0 0 2px;border-radius:0;margin-left:.5rem}\
p.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}time,small{color:#5b6670}img,video{max-width:100%;border-radius:.5rem}\
button,input{font:inherit;padding:.4rem .8rem}@media(prefers-color-scheme:dark){body{color:#e7e9ea;background:#15181c}article{border-color:#38434d}a{color:#8ab4f8}}";

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sandbox</title><style>{{ style|safe }}</style>
<h1>Sandbox</h1><p>What was published to these accounts stayed on this machine.</p>
<ul>{% for account in accounts %}<li><a href="/{{ account.platform }}/{{ account.username }}">{{ account.username }}</a> <small>{{ account.platform }}</small></li>{% else %}<li>No account yet.</li>{% endfor %}</ul>
<h2>Failures on purpose</h2><p>Put one of these into a text; add <code>x2</code> for the first two tries only.</p>
<ul>{% for word in words %}<li><code>#sandbox-{{ word }}</code></li>{% endfor %}</ul></html>"#
)]
struct Index<'a> {
    style: &'static str,
    accounts: &'a [Account],
    words: Vec<&'static str>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{ who.display_name }} on {{ platform }}</title><style>{{ style|safe }}</style>
<p><a href="/">Sandbox</a> / {{ platform }}</p><h1><a href="/{{ platform }}/{{ who.username }}">{{ who.display_name }}</a> <small>@{{ who.username }}</small></h1>
{% for view in views %}{{ view|safe }}{% else %}<p>Nothing published yet.</p>{% endfor %}</html>"#
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

/// All accounts.
pub(crate) fn index(accounts: &[Account]) -> String {
    render(&Index { style: STYLE, accounts, words: fault::WORDS.iter().map(|(word, _)| *word).collect() })
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
