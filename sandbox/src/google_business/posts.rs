//! Local posts: created at once, moderated for a while, and public with their address after that.

use super::{
    Account, Answer, Call, GoogleBusiness, Host, ID, Turn, admit, detailed, invalid, is_verified,
    managed, missing, page_of, refusal,
};
use crate::{fault, shelf::Record};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest text, in characters.
const LONGEST: usize = 1_500;
const IMAGE_BYTES: std::ops::RangeInclusive<u64> = (10 << 10)..=(5 << 20);
const SIDE: u32 = 250;

/// A post.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    name: String,
    number: u64,
    resource: Value,
    /// Its pictures, each with what it is.
    pub(super) files: Vec<(String, String)>,
    /// When it was created.
    pub(super) created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Record for Post {
    const SHELF: &'static str = "google_business.post";

    fn key(&self) -> String {
        format!("{}/{:020}", self.parent(), self.number)
    }
}

/// The way from a post's id to the post.
#[derive(Serialize, Deserialize)]
struct Way {
    id: String,
    post: String,
}

impl Record for Way {
    const SHELF: &'static str = "google_business.way";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Post {
    /// The last part of its name.
    pub(super) fn id(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The location's path.
    pub(super) fn parent(&self) -> &str {
        self.name.split_once("/localPosts/").map_or(self.name.as_str(), |(parent, _)| parent)
    }

    /// Its text.
    pub(super) fn words(&self) -> &str {
        self.resource["summary"].as_str().unwrap_or_default()
    }

    /// What else a page tells of it.
    pub(super) fn notes(&self, turn: &Turn<'_>) -> Vec<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut notes = vec![format!("{} {}", self.resource["topicType"].as_str().unwrap_or_default(), self.state(turn))];
        let action = &self.resource["callToAction"];
        if let Some(kind) = text(&action["actionType"]) {
            notes.push(format!("Button: {kind} {}", text(&action["url"]).unwrap_or_default()));
        }
        let event = &self.resource["event"];
        if let Some(title) = text(&event["title"]) {
            let day = |name: &str| {
                let date = &event["schedule"][name];
                format!("{}-{}-{}", date["year"], date["month"], date["day"])
            };
            notes.push(format!("Event: {title}, {} to {}", day("startDate"), day("endDate")));
        }
        let offer = &self.resource["offer"];
        notes.extend(text(&offer["couponCode"]).map(|code| format!("Coupon: {code}")));
        notes.extend(text(&offer["redeemOnlineUrl"]).map(|url| format!("Redeem at {url}")));
        notes
    }

    fn state(&self, turn: &Turn<'_>) -> &'static str {
        let needed = TimeDelta::milliseconds(i64::try_from(turn.settings.processing_ms).unwrap_or(i64::MAX));
        let shown = self.resource["scheduledTime"].as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        match () {
            () if turn.now - self.created_at < needed => "PROCESSING",
            () if self.is_refused() => "REJECTED",
            () if shown.is_some_and(|at| at.to_utc() > turn.now) => "SCHEDULED",
            () if self.resource["event"]["recurrenceInfo"].is_object() => "RECURRING",
            () => "LIVE",
        }
    }

    /// Whether moderation is against it.
    fn is_refused(&self) -> bool {
        self.words().contains("sandbox-rejected")
    }

    fn view(&self, turn: &Turn<'_>) -> Value {
        let mut view = self.resource.clone();
        let state = self.state(turn);
        view["name"] = json!(self.name);
        view["state"] = json!(state);
        view["createTime"] = json!(time(self.created_at));
        view["updateTime"] = json!(time(self.updated_at));
        if !["PROCESSING", "REJECTED"].contains(&state) {
            view["searchUrl"] = json!(format!("https://local.google.com/place?use=posts&lpsid={}", self.id()));
        }
        let media: Vec<_> = self
            .files
            .iter()
            .map(|(file, _)| {
                json!({
                    "name": format!("{}/media/localPosts/{file}", self.parent()),
                    "mediaFormat": "PHOTO",
                    "googleUrl": format!("https://lh3.googleusercontent.com/p/{file}"),
                })
            })
            .collect();
        if !media.is_empty() {
            view["media"] = json!(media);
        }
        view
    }
}

/// A location's posts, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, parent: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    turn.shelf.under(&format!("{parent}/"))
}

/// The post with this id.
pub(super) fn find(turn: &Turn<'_>, id: &str) -> Option<Post> {
    let way: Way = turn.shelf.get(id)?;
    turn.shelf.get(&way.post)
}

/// The addresses in a post from which Google fetches.
pub(super) fn addresses(body: &Value) -> Vec<String> {
    let media = body["media"].as_array().into_iter().flatten();
    media.filter_map(|item| item["sourceUrl"].as_str()).map(str::to_owned).collect()
}

/// `POST …/localPosts`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call, parent: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let location = managed(turn, &caller, parent)?;
    let body = body(call)?;
    let words = body["summary"].as_str().unwrap_or_default();
    let fault = match fault::draw(turn, ID, &location.username, words) {
        Ok(fault) => fault,
        Err(fault) => return Err(GoogleBusiness.fail(turn, call, fault)),
    };
    if !is_verified(&location) {
        return Err(refusal(400, "FAILED_PRECONDITION", "The location is not verified."));
    }
    let files = judge(call, &body)?;
    let number = by(turn, parent).next_back().map_or(0, |last| last.number + 1);
    let mut resource = body;
    if let Some(members) = resource.as_object_mut() {
        members.remove("media");
    }
    let id = (7_000_000_000_000_000_000 | (rand::random::<u64>() >> 4)).to_string();
    let post = Post {
        name: format!("{parent}/localPosts/{id}"),
        number,
        resource,
        files,
        created_at: turn.now,
        updated_at: turn.now,
    };
    turn.shelf.put(&Way { id, post: post.key() });
    turn.shelf.put(&post);
    let answer = Answer::json(200, &post.view(turn)).because(fault);
    Ok(if post.is_refused() { answer } else { answer.publishing(post.name) })
}

/// The pictures of a post that is as it has to be.
fn judge(call: &Call, body: &Value) -> Result<Vec<(String, String)>, Answer> {
    let mut issues: Vec<(u32, &str, &str)> = Vec::new();
    let topic = body["topicType"].as_str().unwrap_or_default();
    if !["STANDARD", "EVENT", "OFFER", "ALERT"].contains(&topic) {
        issues.push((2, "topic_type", "topic_type is required"));
    }
    let words = body["summary"].as_str().unwrap_or_default();
    if words.chars().count() > LONGEST {
        issues.push((3, "summary", "summary is too long"));
    }
    if words.trim().is_empty() && body["media"].as_array().is_none_or(Vec::is_empty) && topic == "STANDARD" {
        issues.push((2, "summary", "summary is required"));
    }
    if topic == "EVENT" || topic == "OFFER" {
        let event = &body["event"];
        if event["title"].as_str().is_none_or(|title| title.trim().is_empty()) {
            issues.push((2, "event.title", "event.title is required"));
        }
        let schedule = &event["schedule"];
        if ["startDate", "startTime", "endDate", "endTime"].iter().any(|part| !schedule[*part].is_object()) {
            issues.push((2, "event.schedule", "event.schedule must contain all fields to be valid"));
        }
    }
    if topic == "ALERT" && body["alertType"] != "COVID_19" {
        issues.push((2, "alert_type", "alert_type is required"));
    }
    if topic != "OFFER" && body["offer"].is_object() {
        issues.push((3, "offer", "offer is only for posts of type OFFER"));
    }
    let action = &body["callToAction"];
    if action.is_object() {
        let kind = action["actionType"].as_str().unwrap_or_default();
        let url = action["url"].as_str().unwrap_or_default();
        match kind {
            "CALL" if !url.is_empty() => issues.push((3, "call_to_action.url", "url has to be unset for CALL")),
            "CALL" => {}
            "BOOK" | "ORDER" | "SHOP" | "LEARN_MORE" | "SIGN_UP" => {
                if url::Url::parse(url).is_err() {
                    issues.push((2, "call_to_action.url", "call_to_action.url is required"));
                }
            }
            _ => issues.push((3, "call_to_action.action_type", "action_type is unknown")),
        }
    }
    let mut files = Vec::new();
    for item in body["media"].as_array().into_iter().flatten() {
        let address = item["sourceUrl"].as_str().unwrap_or_default();
        let upload = call.at(address).filter(|upload| {
            !upload.is_failing && upload.name.as_deref().is_none_or(|name| !name.contains("sandbox-failed"))
        });
        match (item["mediaFormat"].as_str(), upload) {
            (Some("PHOTO"), Some(upload)) => {
                let mime = upload.mime.clone().unwrap_or_default();
                if mime == "image/gif" {
                    issues.push((5, "media", "Multiframe images not supported"));
                } else if mime != "image/jpeg" && mime != "image/png" {
                    issues.push((5, "media", "The image format is not supported."));
                } else if !IMAGE_BYTES.contains(&upload.size_bytes) {
                    issues.push((5, "media", "The image has to have 10 KB to 5 MB."));
                } else if upload.pixels.is_none_or(|(width, height)| width < SIDE || height < SIDE) {
                    issues.push((5, "media", "The image has to be at least 250 by 250 pixels."));
                }
                files.push((upload.id.clone(), mime));
            }
            (Some("PHOTO"), None) => issues.push((1000, "", "Fetching image failed.")),
            _ => issues.push((5, "media", "The media format is not supported for local posts.")),
        }
    }
    if issues.is_empty() { Ok(files) } else { Err(invalid(&issues)) }
}

/// `GET …/localPosts`: newest first; the list runs a little behind.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call, parent: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    managed(turn, &caller, parent)?;
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let all: Vec<_> = by(turn, parent)
        .rev()
        .filter(|post| turn.now - post.created_at >= lag)
        .map(|post| post.view(turn))
        .collect();
    page_of(call, "localPosts", 20, 100, &all)
}

/// `GET …/localPosts/{id}`.
pub(super) fn get(turn: &mut Turn<'_>, call: &Call, parent: &str, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let post = own(turn, &caller, parent, id)?;
    Ok(Answer::json(200, &post.view(turn)))
}

/// `PATCH …/localPosts/{id}`: the fields that the mask names.
pub(super) fn patch(turn: &mut Turn<'_>, call: &Call, parent: &str, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let mut post = own(turn, &caller, parent, id)?;
    let body = body(call)?;
    let mask = call.query("updateMask").unwrap_or_default();
    let known = ["summary", "callToAction", "event", "offer", "topicType", "languageCode", "alertType"];
    for field in mask.split(',').map(str::trim).filter(|field| !field.is_empty()) {
        if !known.contains(&field) {
            return Err(invalid(&[(3, "update_mask", "The mask names a field that can't be changed.")]));
        }
        post.resource[field] = body[field].clone();
    }
    let mut whole = post.resource.clone();
    if !post.files.is_empty() {
        // What was fetched is not fetched again.
        whole["summary"] = json!(if post.words().is_empty() { " with its picture" } else { post.words() });
    }
    judge(call, &whole)?;
    post.updated_at = turn.now;
    turn.shelf.put(&post);
    Ok(Answer::json(200, &post.view(turn)))
}

/// `DELETE …/localPosts/{id}`.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, parent: &str, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let post = own(turn, &caller, parent, id)?;
    post.files.iter().for_each(|(file, _)| turn.files.discard(file));
    turn.shelf.remove::<Way>(id);
    turn.shelf.remove::<Post>(&post.key());
    Ok(Answer::json(200, &json!({})))
}

/// `GET …/media`: the location's own pictures, of which the sandbox has none.
pub(super) fn media(turn: &mut Turn<'_>, call: &Call, parent: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    managed(turn, &caller, parent)?;
    page_of(call, "mediaItems", 100, 2_500, &[])
}

fn own(turn: &Turn<'_>, caller: &Account, parent: &str, id: &str) -> Result<Post, Answer> {
    managed(turn, caller, parent)?;
    find(turn, id).filter(|post| post.parent() == parent).ok_or_else(missing)
}

fn body(call: &Call) -> Result<Value, Answer> {
    let value = call.json().ok().filter(Value::is_object);
    value.ok_or_else(|| {
        let violation = json!([{
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{ "description": "Invalid JSON payload received." }],
        }]);
        detailed(400, "INVALID_ARGUMENT", "Invalid JSON payload received.", &violation)
    })
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
