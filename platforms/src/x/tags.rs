//! People that are tagged in a post's media: <https://docs.x.com/x-api/posts/create-post>.
//!
//! X takes ids, and people know usernames. Who does not let others tag them is left out by X without a word.

use super::{API, Settings, User};
use crate::{Media, Result, Session, look_up};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of people of a post.
pub(super) const MAX_PEOPLE: usize = 10;

#[derive(Default, Deserialize)]
struct Users {
    #[serde(default)]
    data: Vec<User>,
}

/// Returns the people to tag; none without media.
pub(super) fn of<'a>(settings: &'a Settings, media: Option<&[Media]>) -> &'a [String] {
    let has_media = media.is_some_and(|media| !media.is_empty());
    settings.tagged_users.as_deref().filter(|_| has_media).unwrap_or_default()
}

/// Looks usernames up, and returns the ids by the names as they are given. Ids are not looked up.
///
/// <https://docs.x.com/x-api/users/get-users-by-usernames>
pub(super) async fn resolve(cx: &Session<'_>, people: &[String]) -> Result<BTreeMap<String, String>> {
    let names: Vec<_> = people.iter().filter_map(|person| username(person)).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let call = cx.get(format!("{API}/users/by")).query(&[("usernames", &names.join(","))]);
    let users = look_up::found(call.send::<Users>().await)?.unwrap_or_default().data;
    let id_of = |name: &str| users.iter().find(|user| user.username.eq_ignore_ascii_case(name));
    let known = names.into_iter().filter_map(|name| Some((name.to_owned(), id_of(name)?.id.clone())));
    Ok(known.collect())
}

/// Returns the ids of people, each once.
pub(super) fn ids<'a>(people: &'a [String], users: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let mut ids = Vec::new();
    for id in people.iter().filter_map(|person| id(person, users)) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Returns a person's id; `None` for a username that was not found.
pub(super) fn id<'a>(person: &'a str, users: &'a BTreeMap<String, String>) -> Option<&'a str> {
    match username(person) {
        None => Some(person),
        Some(name) => users.get(name).map(String::as_str),
    }
}

/// Returns the first username that was not found.
pub(super) fn missing<'a>(people: &'a [String], users: &BTreeMap<String, String>) -> Option<&'a str> {
    people.iter().find(|person| id(person, users).is_none()).and_then(|person| username(person))
}

/// Says that nobody has a username; the subject is the platform.
pub(super) fn not_found(name: &str) -> String {
    format!("has no user @{name} to tag")
}

/// Returns the username of a person; `None` for an id.
fn username(person: &str) -> Option<&str> {
    let is_id = person.bytes().all(|byte| byte.is_ascii_digit());
    person.strip_prefix('@').or_else(|| (!is_id).then_some(person))
}
