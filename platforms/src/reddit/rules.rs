//! The rules of a subreddit that Reddit enforces when a post is submitted.
//! <https://www.reddit.com/dev/api#GET_api_v1_{subreddit}_post_requirements>

use super::{
    Settings,
    content::{PostKind, title_and_text},
    given, read,
    subreddit::{flairs, own},
};
use crate::{
    Result, Session,
    look_up::{self, Findings, Subject},
};
use domain::{ErrorCode, Failure};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// True for a subreddit that takes crossposts, by the preference that
/// <https://praw.readthedocs.io/en/stable/code_overview/other/subredditmoderation.html> names `allow_post_crossposts`.
const CROSSPOSTABLE: &str = "is_crosspostable_subreddit";

/// Asks whether a subreddit exists and takes a post.
pub(super) async fn look_up(
    cx: &Session<'_>,
    subject: &Subject,
    settings: &Settings,
    found: &mut Findings,
) -> Result<()> {
    let name = settings.subreddit(cx);
    let flair = given(&settings.flair);
    // A profile has no rules but Reddit's own.
    if !name.eq_ignore_ascii_case(&own(cx)) {
        // The kind of a post with files that are not known yet is not known either.
        let media = subject.media.as_deref();
        let kind = media.and_then(|media| PostKind::of(media, &subject.text, settings).ok());
        let about = match about(cx, &name).await? {
            Ok(about) => about,
            Err((code, message)) => {
                found.error(code, "subreddit", &message);
                return Ok(());
            }
        };
        if let Some(what) = kind.as_ref().and_then(|kind| closed_to(&about, kind)) {
            found.error(look_up::NOT_ALLOWED, "subreddit", &format!("says that r/{name} takes no {what}"));
        }
        let rules = requirements(cx, &name).await?;
        if rules.is_flair_required && flair.is_none() {
            let message = format!("takes a post to r/{name} only with a flair: options/flairs lists them");
            found.error(look_up::REQUIRED, "flair", &message);
        }
        let (title, text) = title_and_text(&subject.text, media.unwrap_or_default(), settings);
        // The title may be the name of the file that is not known yet.
        if media.is_some() || given(&settings.title).is_some() || !subject.text.trim().is_empty() {
            rules.check_title(&name, &title, settings, found);
        }
        if let Some(kind) = &kind {
            rules.check_content(&name, kind, &text, found);
        }
    }
    if let Some(flair) = flair {
        let all = flairs(cx, &name).await?;
        // A moderator may use those for moderators too, by their ids.
        if !all.iter().any(|known| known.id == flair || (!known.mod_only && known.has_text(flair))) {
            let message = format!("has no flair {flair:?} in r/{name}: options/flairs lists them");
            found.error(look_up::NOT_FOUND, "flair", &message);
        }
    }
    Ok(())
}

/// Returns what Reddit tells about a subreddit; if the account can't post there, the code and the message of the issue.
pub(super) async fn about(cx: &Session<'_>, name: &str) -> Result<Result<Value, (&'static str, String)>> {
    let reply = read(cx, &format!("/r/{name}/about")).send_raw().await?;
    // `private`, `banned`, `quarantined` and the like; other refusals have no reason.
    if let (403 | 404, Some(reason)) = (reply.status.as_u16(), reply.body["reason"].as_str()) {
        let message = format!("shows the account no r/{name}, which is {reason}");
        return Ok(Err((look_up::NOT_ALLOWED, message)));
    }
    match reply.into_result(cx.platform) {
        Ok(reply) if reply.body["data"]["user_is_banned"] == true => {
            Ok(Err((look_up::NOT_ALLOWED, format!("has banned the account from r/{name}"))))
        }
        // The account's own was recognized by its name.
        Ok(reply) if reply.body["data"]["subreddit_type"] == "user" => {
            Ok(Err((look_up::NOT_ALLOWED, "takes no post on the profile of somebody else".to_owned())))
        }
        Ok(reply) => Ok(Ok(reply.body)),
        Err(Failure { code: ErrorCode::Rejected(404), .. }) => {
            Ok(Err((look_up::NOT_FOUND, format!("has no subreddit r/{name}"))))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the name of this kind of post if a subreddit takes none of it. `about` is Reddit's answer about it.
pub(super) fn closed_to(about: &Value, kind: &PostKind) -> Option<&'static str> {
    let about = &about["data"];
    let flag = |name: &str| about[name] == false;
    let only = |kind: &str| about["submission_type"] == kind;
    match kind {
        PostKind::Text if only("link") => Some("text posts"),
        PostKind::Link(_) if only("self") => Some("links"),
        PostKind::Picture if flag("allow_images") => Some("images"),
        PostKind::Gallery if flag("allow_galleries") => Some("galleries"),
        PostKind::Video | PostKind::Videogif if flag("allow_videos") => Some("videos"),
        PostKind::Poll(_) if flag("allow_polls") => Some("polls"),
        PostKind::Crosspost(_) if flag(CROSSPOSTABLE) => Some("crossposts"),
        _ => None,
    }
}

/// Returns the name of crossposts if a subreddit takes none of them.
pub(super) fn closed_to_crossposts(about: &Value) -> Option<&'static str> {
    (about["data"][CROSSPOSTABLE] == false).then_some("crossposts")
}

/// Asks whether a subreddit takes posts with a flair only.
pub(super) async fn needs_flair(cx: &Session<'_>, name: &str) -> Result<bool> {
    Ok(requirements(cx, name).await?.is_flair_required)
}

async fn requirements(cx: &Session<'_>, name: &str) -> Result<Requirements> {
    read(cx, &format!("/api/v1/{name}/post_requirements")).send().await
}

/// Requirements of moderators for posts. Their regular expressions are not evaluated.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requirements {
    is_flair_required: bool,
    title_text_min_length: Option<usize>,
    title_text_max_length: Option<usize>,
    title_required_strings: Option<Vec<String>>,
    title_blacklisted_strings: Option<Vec<String>>,
    body_text_min_length: Option<usize>,
    body_text_max_length: Option<usize>,
    body_restriction_policy: Option<String>,
    body_required_strings: Option<Vec<String>>,
    body_blacklisted_strings: Option<Vec<String>>,
    link_restriction_policy: Option<String>,
    domain_whitelist: Option<Vec<String>>,
    domain_blacklist: Option<Vec<String>>,
}

impl Requirements {
    fn check_title(&self, name: &str, title: &str, settings: &Settings, found: &mut Findings) {
        let (required, banned) = (&self.title_required_strings, &self.title_blacklisted_strings);
        let range = (self.title_text_min_length, self.title_text_max_length);
        for wrong in wrongs(title, range, required, banned) {
            let message = format!("requires in r/{name} a title {wrong}");
            match given(&settings.title) {
                Some(_) => found.error(look_up::NOT_ALLOWED, "title", &message),
                None => found.text_error(look_up::NOT_ALLOWED, &message),
            }
        }
    }

    fn check_content(&self, name: &str, kind: &PostKind, text: &str, found: &mut Findings) {
        let mut refuse = |wrong: &str| {
            found.text_error(look_up::NOT_ALLOWED, &format!("requires in r/{name} {wrong}"));
        };
        match kind {
            PostKind::Text => {
                let text = text.trim();
                match self.body_restriction_policy.as_deref() {
                    Some("required") if text.is_empty() => refuse("a text below the title"),
                    Some("notAllowed") if !text.is_empty() => refuse("a post without a text below the title"),
                    _ => {}
                }
                let range = (self.body_text_min_length, self.body_text_max_length);
                if !text.is_empty() {
                    for wrong in
                        wrongs(text, range, &self.body_required_strings, &self.body_blacklisted_strings)
                    {
                        refuse(&format!("a text {wrong}"));
                    }
                }
            }
            PostKind::Link(url) => {
                let is_of = |domains: &Option<Vec<String>>| {
                    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_lowercase));
                    let is = |domain: &String| {
                        let domain = domain.to_lowercase();
                        host.as_ref()
                            .is_some_and(|host| *host == domain || host.ends_with(&format!(".{domain}")))
                    };
                    domains.iter().flatten().any(is)
                };
                match self.link_restriction_policy.as_deref() {
                    Some("whitelist") if !is_of(&self.domain_whitelist) => {
                        refuse("a link to one of the domains that its moderators list");
                    }
                    Some("blacklist") if is_of(&self.domain_blacklist) => {
                        refuse("a link to another domain");
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Returns what is wrong with a text, as the rest of a sentence that names it.
fn wrongs(
    text: &str,
    (min, max): (Option<usize>, Option<usize>),
    required: &Option<Vec<String>>,
    banned: &Option<Vec<String>>,
) -> Vec<String> {
    let length = text.chars().count();
    let lower = text.to_lowercase();
    let has = |word: &&String| lower.contains(&word.to_lowercase());
    let mut wrongs = Vec::new();
    wrongs.extend(
        min.filter(|min| length < *min)
            .map(|min| format!("of at least {min} characters, and this has {length}")),
    );
    wrongs.extend(
        max.filter(|max| *max > 0 && length > *max)
            .map(|max| format!("of at most {max} characters, and this has {length}")),
    );
    let required = required.as_deref().unwrap_or_default();
    if !required.is_empty() && !required.iter().any(|word| has(&word)) {
        wrongs.push(format!("with one of: {}", required.join(", ")));
    }
    if let Some(word) = banned.iter().flatten().find(has) {
        wrongs.push(format!("without {word:?}"));
    }
    wrongs
}

/// Checks that a subreddit accepts this kind of post, before up to a gigabyte is uploaded.
pub(super) async fn open(cx: &Session<'_>, name: &str, kind: &PostKind) -> Result<()> {
    if name.eq_ignore_ascii_case(&own(cx)) {
        return Ok(());
    }
    let about: Value = read(cx, &format!("/r/{name}/about")).send().await?;
    match closed_to(&about, kind) {
        Some(what) => Err(Failure::rejected(403, format!("r/{name} takes no {what}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_requirements_of_moderators_are_checked() {
        let check = |rules: Value, kind: PostKind, title: &str, text: &str| {
            let rules: Requirements = serde_json::from_value(rules).unwrap();
            let mut found = Findings::of("reddit");
            let settings: Settings = serde_json::from_value(json!({ "title": title })).unwrap();
            rules.check_title("pics", title, &settings, &mut found);
            rules.check_content("pics", &kind, text, &mut found);
            let issues = found.into_issues().into_iter();
            issues.map(|issue| issue.path[2].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        let link = |url: &str| PostKind::Link(url.to_owned());
        let open = json!({
            "is_flair_required": false, "title_text_min_length": null, "title_required_strings": [],
            "body_restriction_policy": "none", "link_restriction_policy": "none", "domain_whitelist": [],
        });
        assert_eq!(check(open, PostKind::Text, "Dawn", "light"), Vec::<String>::new());
        let lengths = json!({ "title_text_min_length": 5, "title_text_max_length": 8 });
        for (title, is_fine) in [("Dawn", false), ("Dawns", true), ("Dawn Dawn", false)] {
            assert_eq!(check(lengths.clone(), PostKind::Text, title, "").is_empty(), is_fine, "{title}");
        }
        let words =
            json!({ "title_required_strings": ["[OC]", "[Art]"], "title_blacklisted_strings": ["sale"] });
        for (title, count) in [("[oc] Dawn", 0), ("Dawn", 1), ("SALE", 2), ("[Art] sale", 1)] {
            assert_eq!(check(words.clone(), PostKind::Text, title, "").len(), count, "{title}");
        }
        let body = |policy: &str| json!({ "body_restriction_policy": policy, "body_text_max_length": 5 });
        for (policy, text, is_fine) in [
            ("required", "", false),
            ("required", "light", true),
            ("required", "lights", false),
            ("notAllowed", "light", false),
            ("notAllowed", " ", true),
            ("none", "", true),
        ] {
            assert_eq!(check(body(policy), PostKind::Text, "a", text).is_empty(), is_fine, "{policy} {text}");
            assert!(check(body(policy), PostKind::Picture, "a", text).is_empty(), "of text posts only");
        }
        let domains = |policy: &str| {
            json!({ "link_restriction_policy": policy, "domain_whitelist": ["a.example"],
                "domain_blacklist": ["a.example"] })
        };
        for (url, is_listed) in
            [("https://a.example/x", true), ("https://i.A.example", true), ("https://ba.example", false)]
        {
            assert_eq!(check(domains("whitelist"), link(url), "a", "").is_empty(), is_listed, "{url}");
            assert_eq!(check(domains("blacklist"), link(url), "a", "").is_empty(), !is_listed, "{url}");
        }
    }
}
