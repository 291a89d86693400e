//! Subreddits and their flairs: names in every spelling, and the choices of an account.
//!
//! A profile is a subreddit too, whose name begins with `u_`.

use super::{Reddit, ids::is_name, posts::list, read};
use crate::{Options, Result, SelectOption, Session, pages, required};
use async_trait::async_trait;
use domain::{ErrorCode, Failure};
use serde::Deserialize;
use uuid::Uuid;

#[async_trait]
impl Options for Reddit {
    fn kinds(&self) -> &'static [&'static str] {
        &["subreddits", "flairs"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>> {
        match (kind, parent) {
            ("subreddits", _) => subreddits(cx).await,
            ("flairs", Some(parent)) => match place(parent) {
                name if is_name(&name) => {
                    let flairs = flairs(cx, &name).await?;
                    Ok(flairs
                        .into_iter()
                        .filter(|flair| !flair.mod_only)
                        .map(|flair| SelectOption { id: flair.id, name: flair.text })
                        .collect())
                }
                _ => Err(Failure::rejected(422, format!("{parent:?} is no subreddit's name"))),
            },
            ("flairs", None) => {
                Err(Failure::rejected(422, "flairs belong to a subreddit: name it as parent"))
            }
            _ => Err(Failure::rejected(422, format!("Reddit has no list of {kind}"))),
        }
    }
}

/// Returns the canonical name of a subreddit.
pub(super) fn place(written: &str) -> String {
    let name = written.trim().trim_start_matches('/');
    match name.split_once('/') {
        Some(("u" | "U", user)) => format!("u_{user}"),
        Some(("r" | "R", name)) => name.to_owned(),
        _ => name.to_owned(),
    }
}

pub(super) fn own(cx: &Session<'_>) -> String {
    format!("u_{}", cx.account.username)
}

/// Returns the account's own profile and the subreddits that it subscribes to.
async fn subreddits(cx: &Session<'_>) -> Result<Vec<SelectOption>> {
    let own = SelectOption { id: own(cx), name: format!("u/{}", cx.account.username) };
    let read = pages(|after: Option<String>| async move {
        list(cx, "/subreddits/mine/subscriber", after.as_deref()).await
    })
    .await?;
    let names = read.into_iter().filter_map(|subreddit| subreddit.display_name);
    let names = names.filter(|name| required::is_id(name));
    let choices = names.map(|name| SelectOption { name: format!("r/{name}"), id: name });
    Ok(std::iter::once(own).chain(choices).collect())
}

/// Returns the flairs of a subreddit, those for its moderators too.
pub(super) async fn flairs(cx: &Session<'_>, name: &str) -> Result<Vec<Flair>> {
    let answer = read(cx, &format!("/r/{name}/api/link_flair_v2")).reply().await;
    match answer.and_then(|reply| reply.read_list::<Flair>()) {
        Ok(flairs) => Ok(flairs),
        // Profiles have no flairs.
        Err(failure) if failure.code == ErrorCode::Rejected(403) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// Returns the id of a flair, given by its id or text.
pub(super) async fn flair_id(cx: &Session<'_>, name: &str, flair: &str) -> Result<String> {
    if Uuid::try_parse(flair).is_ok() {
        return Ok(flair.to_owned());
    }
    let mut all = flairs(cx, name).await?;
    all.retain(|flair| !flair.mod_only);
    let known: Vec<_> = all.iter().map(|flair| flair.text.as_str()).collect();
    let found = all.iter().find(|known| known.has_text(flair));
    found.map(|flair| flair.id.clone()).ok_or_else(|| {
        let message = match known.is_empty() {
            true => format!("r/{name} has no flairs to choose from"),
            false => format!("r/{name} has no flair {flair:?}, but {}", known.join(", ")),
        };
        Failure::rejected(422, message)
    })
}

#[derive(Deserialize)]
pub(super) struct Flair {
    #[serde(deserialize_with = "required::id")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) mod_only: bool,
}

impl Flair {
    /// Returns true for the flair's text as an author may write it.
    pub(super) fn has_text(&self, written: &str) -> bool {
        self.text.trim().eq_ignore_ascii_case(written.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::linked;
    use super::*;

    #[test]
    fn a_subreddit_is_recognized_in_every_spelling() {
        for (written, name) in [
            ("rust", "rust"),
            ("r/rust", "rust"),
            ("/r/rust", "rust"),
            ("u/ada", "u_ada"),
            ("u_ada", "u_ada"),
        ] {
            assert_eq!(place(written), name);
        }
        let id = linked("https://www.reddit.com/r/test/comments/4bbe4b/a_title/");
        assert_eq!(id.as_deref(), Some("t3_4bbe4b"));
        assert_eq!(linked("https://www.reddit.com/r/test/"), None);
    }
}
