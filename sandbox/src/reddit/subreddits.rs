//! Subreddits: <https://www.reddit.com/dev/api#section_subreddits>. There is one of every name, except names
//! that begin with `missing`. A few are special, so that each refusal can be tested: `announcements` (closed
//! for posts), `private` (closed for readers), `textonly`, `linksonly` (no texts, no media), `nomedia` (texts
//! and links only), `nocrossposts`, `flaired` (needs a flair).

use super::{
    Account, Caller, ID, Outcome, Request, Response, Transaction, account, base36, forbidden, listing,
};
use serde_json::{Value, json};
use uuid::Uuid;

/// Default subscriptions.
const SUBSCRIBED: [&str; 4] = ["test", "pics", "flaired", "textonly"];

/// Flairs of every subreddit: name, and whether its text can be edited.
const FLAIRS: [(&str, bool); 3] = [("Discussion", false), ("News", false), ("In other words", true)];

/// A subreddit, or a user's profile.
pub(super) struct Subreddit {
    /// Name as it is written.
    pub(super) name: String,
    is_profile: bool,
}

pub(super) struct Flair {
    pub(super) id: String,
    /// Text.
    pub(super) text: &'static str,
    /// True when the author may edit the text.
    pub(super) is_editable: bool,
}

/// Returns the subreddit of this name, if there is one.
pub(super) fn find(tx: &Transaction, name: &str) -> Option<Subreddit> {
    if let Some(user) = name.strip_prefix("u_") {
        let account = account::by_username(tx.store, ID, user)?;
        return Some(Subreddit { name: format!("u_{}", account.username), is_profile: true });
    }
    let is_name = (2..=21).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.to_lowercase().starts_with("missing");
    is_name.then(|| Subreddit { name: name.to_owned(), is_profile: false })
}

impl Subreddit {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns whether the account may post here.
    pub(super) fn may_post(&self, account: &Account) -> bool {
        match self.is_profile {
            true => self.is(&format!("u_{}", account.username)),
            false => !self.is("announcements") && !self.is("private"),
        }
    }

    /// Returns whether text posts are allowed.
    pub(super) fn takes_texts(&self) -> bool {
        !self.is("linksonly")
    }

    /// Returns whether links are allowed.
    pub(super) fn takes_links(&self) -> bool {
        !self.is("textonly")
    }

    /// Returns whether images, galleries and videos are allowed.
    pub(super) fn takes_media(&self) -> bool {
        !["textonly", "linksonly", "nomedia"].iter().any(|name| self.is(name))
    }

    /// Returns whether posts of other subreddits can be crossposted here.
    pub(super) fn takes_crossposts(&self) -> bool {
        !["nocrossposts", "announcements"].iter().any(|name| self.is(name))
    }

    /// Returns whether a post needs a flair.
    pub(super) fn needs_flair(&self) -> bool {
        self.is("flaired")
    }

    /// Returns the flairs of posts.
    pub(super) fn flairs(&self) -> Vec<Flair> {
        if self.is_profile {
            return Vec::new();
        }
        let one = |(text, is_editable): (&'static str, bool)| {
            let digest = account::digest(&self.name.to_lowercase(), text);
            let id = Uuid::from_slice(&digest[..16]).expect("sixteen bytes of a digest");
            Flair { id: id.to_string(), text, is_editable }
        };
        FLAIRS.into_iter().map(one).collect()
    }

    pub(super) fn id(&self) -> String {
        let digest = account::digest("subreddit", &self.name);
        let draw = u32::from_be_bytes(digest[..4].try_into().expect("four bytes of a digest"));
        format!("t5_{}", base36(1_679_616 + u64::from(draw)))
    }

    fn view(&self) -> Value {
        let kind = match (self.is_profile, self.takes_texts(), self.takes_links()) {
            (_, true, true) => "any",
            (_, true, false) => "self",
            _ => "link",
        };
        let path = match self.name.strip_prefix("u_").filter(|_| self.is_profile) {
            Some(user) => format!("/user/{user}/"),
            None => format!("/r/{}/", self.name),
        };
        json!({
            "id": self.id().trim_start_matches("t5_"),
            "name": self.id(),
            "display_name": self.name,
            "display_name_prefixed": path.trim_matches('/').replacen("user/", "u/", 1),
            "title": self.name,
            "url": path,
            "submission_type": kind,
            "allow_images": self.takes_media(),
            "allow_videos": self.takes_media(),
            "allow_galleries": self.takes_media(),
            "allow_videogifs": self.takes_media(),
            "allow_polls": self.takes_texts(),
            "is_crosspostable_subreddit": self.takes_crossposts(),
            "subreddit_type": match () {
                () if self.is_profile => "user",
                () if self.is("announcements") => "restricted",
                () if self.is("private") => "private",
                () => "public",
            },
            "user_is_banned": false,
            "over18": false,
            "link_flair_enabled": !self.is_profile,
            "subscribers": 1_000,
        })
    }
}

fn visible(tx: &Transaction, name: &str) -> Result<Subreddit, Response> {
    let subreddit = find(tx, name).ok_or_else(|| {
        // A subreddit that does not exist is searched for.
        Response::empty(302).with("location", format!("https://www.reddit.com/subreddits/search?q={name}"))
    })?;
    if subreddit.is("private") { Err(forbidden(Some("private"))) } else { Ok(subreddit) }
}

/// `GET /r/{subreddit}/about`.
pub(super) fn about(tx: &mut Transaction, _: &Request, caller: &Caller, name: &str) -> Outcome {
    let view = visible(tx, name)?.view();
    Ok(caller.reply(tx, &json!({ "kind": "t5", "data": view })))
}

/// `GET /api/v1/{subreddit}/post_requirements`.
pub(super) fn requirements(tx: &mut Transaction, _: &Request, caller: &Caller, name: &str) -> Outcome {
    let subreddit = visible(tx, name)?;
    let body = json!({
        "is_flair_required": subreddit.needs_flair(),
        "title_text_min_length": null, "title_text_max_length": null,
        "body_text_min_length": null, "body_text_max_length": null,
        "title_required_strings": [], "title_blacklisted_strings": [], "title_regexes": [],
        "body_required_strings": [], "body_blacklisted_strings": [], "body_regexes": [],
        "body_restriction_policy": "none", "link_restriction_policy": "none",
        "domain_whitelist": [], "domain_blacklist": [],
        "link_repost_age": null, "guidelines_text": null, "guidelines_display_policy": null,
    });
    Ok(caller.reply(tx, &body))
}

/// `GET /r/{subreddit}/api/link_flair_v2`.
pub(super) fn flairs(tx: &mut Transaction, _: &Request, caller: &Caller, name: &str) -> Outcome {
    let flairs = visible(tx, name)?.flairs();
    if flairs.is_empty() {
        return Err(forbidden(None));
    }
    let all: Vec<_> = flairs
        .into_iter()
        .map(|flair| {
            json!({
                "id": flair.id, "text": flair.text, "text_editable": flair.is_editable, "type": "text",
                "mod_only": false, "css_class": "", "text_color": "dark", "background_color": "",
                "allowable_content": "all", "max_emojis": 10, "richtext": [],
            })
        })
        .collect();
    Ok(caller.reply(tx, &json!(all)))
}

/// `POST /r/{subreddit}/api/flairselector`: the flairs under the names that older clients know.
pub(super) fn flair_selector(tx: &mut Transaction, _: &Request, caller: &Caller, name: &str) -> Outcome {
    let choices: Vec<_> = visible(tx, name)?
        .flairs()
        .into_iter()
        .map(|flair| {
            json!({
                "flair_template_id": flair.id, "flair_text": flair.text, "flair_text_editable": flair.is_editable,
                "flair_css_class": "", "flair_position": "left",
            })
        })
        .collect();
    let current = json!({ "flair_template_id": null, "flair_text": null, "flair_css_class": "" });
    Ok(caller.reply(tx, &json!({ "current": current, "choices": choices })))
}

fn list(tx: &Transaction, request: &Request, caller: &Caller, subreddits: Vec<Subreddit>) -> Response {
    let all = subreddits.into_iter().map(|subreddit| (subreddit.id(), "t5", subreddit.view())).collect();
    caller.reply(tx, &listing(request, all))
}

/// `GET /subreddits/mine/subscriber`.
pub(super) fn mine(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let subreddits = SUBSCRIBED.iter().filter_map(|name| find(tx, name)).collect();
    Ok(list(tx, request, caller, subreddits))
}

/// `GET /subreddits/search` and `GET /api/subreddit_autocomplete_v2`: subreddits with this prefix.
pub(super) fn search(tx: &mut Transaction, request: &Request, caller: &Caller, parameter: &str) -> Outcome {
    let wanted = request.query(parameter).unwrap_or_default().to_lowercase();
    let known = SUBSCRIBED.into_iter().filter(|name| !wanted.is_empty() && name.starts_with(&wanted));
    let exact = Some(wanted.as_str()).filter(|name| !SUBSCRIBED.contains(name));
    let subreddits = known.chain(exact).filter_map(|name| find(tx, name)).collect();
    Ok(list(tx, request, caller, subreddits))
}
