//! Subreddits: <https://www.reddit.com/dev/api#section_subreddits>. There is one of every name but of
//! those that begin with `missing`; these few are special, so that each refusal can be met:
//! `announcements` (nobody may post), `private` (nobody may look), `textonly`, `linksonly` (no texts,
//! no media), `nomedia` (texts and links only), `flaired` (needs a flair).

use super::{Account, Answer, Call, Caller, ID, Turn, account, admit, base36, error, forbidden, listing};
use serde_json::{Value, json};
use uuid::Uuid;

/// What an account reads that follows nothing else.
const MINE: [&str; 4] = ["test", "pics", "flaired", "textonly"];

/// The flairs of every subreddit: name, and whether its words are the author's own.
const FLAIRS: [(&str, bool); 3] = [("Discussion", false), ("News", false), ("In other words", true)];

/// A subreddit, or a user's profile.
pub(super) struct Place {
    /// Its name as it is written.
    pub(super) name: String,
    is_profile: bool,
}

/// A flair.
pub(super) struct Flair {
    /// Its id.
    pub(super) id: String,
    /// Its words.
    pub(super) text: &'static str,
    /// Whether its words are the author's own.
    pub(super) is_editable: bool,
}

/// The place of this name, where there is one.
pub(super) fn find(turn: &Turn<'_>, name: &str) -> Option<Place> {
    if let Some(user) = name.strip_prefix("u_") {
        let account = account::named(turn.shelf, ID, user)?;
        return Some(Place { name: format!("u_{}", account.username), is_profile: true });
    }
    let is_name = (2..=21).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.to_lowercase().starts_with("missing");
    is_name.then(|| Place { name: name.to_owned(), is_profile: false })
}

impl Place {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Whether the account may post here.
    pub(super) fn admits(&self, account: &Account) -> bool {
        match self.is_profile {
            true => self.is(&format!("u_{}", account.username)),
            false => !self.is("announcements") && !self.is("private"),
        }
    }

    /// Whether posts of text only are taken.
    pub(super) fn takes_texts(&self) -> bool {
        !self.is("linksonly")
    }

    /// Whether links are taken.
    pub(super) fn takes_links(&self) -> bool {
        !self.is("textonly")
    }

    /// Whether pictures, galleries and videos are taken.
    pub(super) fn takes_media(&self) -> bool {
        !["textonly", "linksonly", "nomedia"].iter().any(|name| self.is(name))
    }

    /// Whether a post needs a flair.
    pub(super) fn needs_flair(&self) -> bool {
        self.is("flaired")
    }

    /// The flairs that posts can have.
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

    /// Its id.
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
            "allow_polls": false,
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

fn visible(turn: &Turn<'_>, name: &str) -> Result<Place, Answer> {
    let place = find(turn, name).ok_or_else(|| error(404, "Not Found"))?;
    if place.is("private") { Err(forbidden(Some("private"))) } else { Ok(place) }
}

/// `GET /r/{subreddit}/about`.
pub(super) fn about(turn: &mut Turn<'_>, call: &Call, name: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "read")?;
    let view = visible(turn, name)?.view();
    Ok(caller.reply(turn, &json!({ "kind": "t5", "data": view })))
}

/// `GET /api/v1/{subreddit}/post_requirements`.
pub(super) fn requirements(turn: &mut Turn<'_>, call: &Call, name: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "submit")?;
    let place = visible(turn, name)?;
    let body = json!({
        "is_flair_required": place.needs_flair(),
        "title_text_min_length": null, "title_text_max_length": null,
        "body_text_min_length": null, "body_text_max_length": null,
        "title_required_strings": [], "title_blacklisted_strings": [], "title_regexes": [],
        "body_required_strings": [], "body_blacklisted_strings": [], "body_regexes": [],
        "body_restriction_policy": "none", "link_restriction_policy": "none",
        "domain_whitelist": [], "domain_blacklist": [],
        "link_repost_age": null, "guidelines_text": null, "guidelines_display_policy": null,
    });
    Ok(caller.reply(turn, &body))
}

/// `GET /r/{subreddit}/api/link_flair_v2`.
pub(super) fn flairs(turn: &mut Turn<'_>, call: &Call, name: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "flair")?;
    let flairs = visible(turn, name)?.flairs();
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
    Ok(caller.reply(turn, &json!(all)))
}

fn list(turn: &Turn<'_>, call: &Call, caller: &Caller, places: Vec<Place>) -> Answer {
    let all = places.into_iter().map(|place| (place.id(), "t5", place.view())).collect();
    caller.reply(turn, &listing(call, all))
}

/// `GET /subreddits/mine/subscriber`.
pub(super) fn mine(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "mysubreddits")?;
    let places = MINE.iter().filter_map(|name| find(turn, name)).collect();
    Ok(list(turn, call, &caller, places))
}

/// `GET /subreddits/search` and `GET /api/subreddit_autocomplete_v2`: those that begin so.
pub(super) fn search(turn: &mut Turn<'_>, call: &Call, parameter: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "read")?;
    let wanted = call.query(parameter).unwrap_or_default().to_lowercase();
    let known = MINE.into_iter().filter(|name| !wanted.is_empty() && name.starts_with(&wanted));
    let exact = Some(wanted.as_str()).filter(|name| !MINE.contains(name));
    let places = known.chain(exact).filter_map(|name| find(turn, name)).collect();
    Ok(list(turn, call, &caller, places))
}
