//! Local posts: created at once, moderated for a while, then public with an address.

use super::{
    Account, GoogleBusiness, Outcome, Request, Response, Simulator, Transaction, detailed, invalid,
    is_verified, managed, missing, page_of, refusal,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{files::Upload, store::Record};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum number of characters of a text.
const MAX_CHARS: usize = 1_500;
const IMAGE_BYTES: std::ops::RangeInclusive<u64> = (10 << 10)..=(5 << 20);
const SIDE: u32 = 250;

/// Index of posts by the last part of their names.
const BY_ID: &str = "google_business.id";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    name: String,
    number: u64,
    resource: Value,
    /// Ids and content types of its images.
    pub(super) files: Vec<(String, String)>,
    pub(super) created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Record for Post {
    const TABLE: &'static str = "google_business.post";

    fn key(&self) -> String {
        format!("{}/{:020}", self.parent(), self.number)
    }
}

impl Post {
    /// Returns the last part of its name.
    pub(super) fn id(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the location's path.
    pub(super) fn parent(&self) -> &str {
        self.name.split_once("/localPosts/").map_or(self.name.as_str(), |(parent, _)| parent)
    }

    pub(super) fn text(&self) -> &str {
        self.resource["summary"].as_str().unwrap_or_default()
    }

    /// Returns the further lines on its page.
    pub(super) fn notes(&self, tx: &Transaction) -> Vec<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut notes =
            vec![format!("{} {}", self.resource["topicType"].as_str().unwrap_or_default(), self.state(tx))];
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

    fn state(&self, tx: &Transaction) -> &'static str {
        let needed = tx.settings.processing();
        let shown =
            self.resource["scheduledTime"].as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        match () {
            () if tx.now - self.created_at < needed => "PROCESSING",
            () if self.is_refused() => "REJECTED",
            () if shown.is_some_and(|at| at.to_utc() > tx.now) => "SCHEDULED",
            () if self.resource["event"]["recurrenceInfo"].is_object() => "RECURRING",
            () => "LIVE",
        }
    }

    /// Returns whether moderation rejects it.
    fn is_refused(&self) -> bool {
        self.text().contains("sandbox-rejected")
    }

    fn view(&self, tx: &Transaction) -> Value {
        let mut view = self.resource.clone();
        let state = self.state(tx);
        view["name"] = json!(self.name);
        view["state"] = json!(state);
        view["createTime"] = json!(time(self.created_at));
        view["updateTime"] = json!(time(self.updated_at));
        if !["PROCESSING", "REJECTED"].contains(&state) {
            view["searchUrl"] =
                json!(format!("https://local.google.com/place?use=posts&lpsid={}", self.id()));
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

/// Returns a location's posts, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, parent: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    tx.store.with_prefix(&format!("{parent}/"))
}

/// Returns the post with this id.
pub(super) fn find(tx: &Transaction, id: &str) -> Option<Post> {
    tx.store.linked(BY_ID, id).next()
}

/// Returns the addresses of a post's media, which Google fetches.
pub(super) fn media_urls(body: &Value) -> Vec<String> {
    let media = body["media"].as_array().into_iter().flatten();
    media.filter_map(|item| item["sourceUrl"].as_str()).map(str::to_owned).collect()
}

/// `POST …/localPosts`.
pub(super) fn create(tx: &mut Transaction, request: &Request, caller: &Account, parent: &str) -> Outcome {
    let location = managed(tx, caller, parent)?;
    let body = body(request)?;
    let words = body["summary"].as_str().unwrap_or_default();
    let fault = GoogleBusiness.trigger_fault(tx, request, &location.username, words)?;
    if !is_verified(&location) {
        return Err(refusal(State, 400, "FAILED_PRECONDITION", "The location is not verified."));
    }
    let files = validate(request, &body)?;
    let number = by(tx, parent).next_back().map_or(0, |last| last.number + 1);
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
        created_at: tx.now,
        updated_at: tx.now,
    };
    tx.store.link(BY_ID, &id, &post.key());
    tx.store.put(&post);
    let response = Response::json(200, &post.view(tx)).with_fault(fault);
    Ok(if post.is_refused() { response } else { response.with_post(post.name) })
}

/// Validates a post and returns its images.
fn validate(request: &Request, body: &Value) -> Result<Vec<(String, String)>, Response> {
    let mut issues: Vec<super::Issue> = Vec::new();
    let topic = body["topicType"].as_str().unwrap_or_default();
    if !["STANDARD", "EVENT", "OFFER", "ALERT"].contains(&topic) {
        issues.push((Protocol, 2, "topic_type", "topic_type is required"));
    }
    let words = body["summary"].as_str().unwrap_or_default();
    if words.chars().count() > MAX_CHARS {
        issues.push((Content("text_too_long"), 3, "summary", "summary is too long"));
    }
    if words.trim().is_empty() && body["media"].as_array().is_none_or(Vec::is_empty) && topic == "STANDARD" {
        issues.push((Content("empty"), 2, "summary", "summary is required"));
    }
    if topic == "EVENT" || topic == "OFFER" {
        let event = &body["event"];
        if event["title"].as_str().is_none_or(|title| title.trim().is_empty()) {
            issues.push((Content("title_of_an_event"), 2, "event.title", "event.title is required"));
        }
        let schedule = &event["schedule"];
        if ["startDate", "startTime", "endDate", "endTime"].iter().any(|part| !schedule[*part].is_object()) {
            issues.push((
                Content("times_of_an_event"),
                2,
                "event.schedule",
                "event.schedule must contain all fields to be valid",
            ));
        }
    }
    if topic == "ALERT" && body["alertType"] != "COVID_19" {
        issues.push((Content("type_of_an_alert"), 2, "alert_type", "alert_type is required"));
    }
    if topic != "OFFER" && body["offer"].is_object() {
        issues.push((Content("offer_of_another_post"), 3, "offer", "offer is only for posts of type OFFER"));
    }
    let action = &body["callToAction"];
    if action.is_object() {
        let kind = action["actionType"].as_str().unwrap_or_default();
        let url = action["url"].as_str().unwrap_or_default();
        match kind {
            "CALL" if !url.is_empty() => issues.push((
                Content("address_of_a_call"),
                3,
                "call_to_action.url",
                "url has to be unset for CALL",
            )),
            "CALL" => {}
            "BOOK" | "ORDER" | "SHOP" | "LEARN_MORE" | "SIGN_UP" => {
                if url::Url::parse(url).is_err() {
                    issues.push((
                        Content("address_of_a_button"),
                        2,
                        "call_to_action.url",
                        "call_to_action.url is required",
                    ));
                }
            }
            _ => issues.push((Protocol, 3, "call_to_action.action_type", "action_type is unknown")),
        }
    }
    let mut files = Vec::new();
    for item in body["media"].as_array().into_iter().flatten() {
        let address = item["sourceUrl"].as_str().unwrap_or_default();
        let upload = request.fetched(address).filter(|upload| {
            !upload.is_failing && upload.name.as_deref().is_none_or(|name| !name.contains("sandbox-failed"))
        });
        match (item["mediaFormat"].as_str(), upload) {
            (Some("PHOTO"), Some(upload)) => {
                issues.extend(image_issue(upload).map(|(cause, message)| (cause, 5, "media", message)));
                files.push((upload.id.clone(), upload.mime.clone().unwrap_or_default()));
            }
            (Some("PHOTO"), None) => issues.push((State, 1000, "", "Fetching image failed.")),
            // As <https://github.com/spotonlive/php-google-my-business/issues/18> quotes it.
            (Some("VIDEO"), _) => {
                issues.push((
                    Content("video_of_a_post"),
                    5,
                    "media",
                    "Video uploaded from post is not currently supported.",
                ));
            }
            _ => issues.push((Protocol, 2, "media.media_format", "media.media_format is required")),
        }
    }
    if issues.is_empty() { Ok(files) } else { Err(invalid(&issues)) }
}

/// Returns the reason for which an image is refused.
pub(super) fn image_issue(upload: &Upload) -> Option<(Cause, &'static str)> {
    match upload.mime.as_deref() {
        Some("image/gif") => Some((Content("image_animated"), "Multiframe images not supported")),
        Some("image/jpeg" | "image/png") if !IMAGE_BYTES.contains(&upload.size_bytes) => {
            Some((Content("image_bytes"), "The image has to have 10 KB to 5 MB."))
        }
        Some("image/jpeg" | "image/png") => {
            let is_small = upload.pixels.is_none_or(|(width, height)| width < SIDE || height < SIDE);
            is_small
                .then_some((Content("image_too_small"), "The image has to be at least 250 by 250 pixels."))
        }
        _ => Some((Content("image_type"), "The image format is not supported.")),
    }
}

/// `GET …/localPosts`: newest first; the list lags behind.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account, parent: &str) -> Outcome {
    managed(tx, caller, parent)?;
    let lag = tx.settings.lag();
    let all: Vec<_> = by(tx, parent)
        .rev()
        .filter(|post| tx.now - post.created_at >= lag)
        .map(|post| post.view(tx))
        .collect();
    page_of(request, "localPosts", 20, 100, &all)
}

/// `GET …/localPosts/{id}`.
pub(super) fn get(tx: &mut Transaction, _: &Request, caller: &Account, parent: &str, id: &str) -> Outcome {
    let post = own(tx, caller, parent, id)?;
    Ok(Response::json(200, &post.view(tx)))
}

/// `PATCH …/localPosts/{id}`: the fields that the mask names.
pub(super) fn patch(
    tx: &mut Transaction,
    request: &Request,
    caller: &Account,
    parent: &str,
    id: &str,
) -> Outcome {
    let mut post = own(tx, caller, parent, id)?;
    let body = body(request)?;
    let mask = request.query("updateMask").unwrap_or_default();
    let known = ["summary", "callToAction", "event", "offer", "topicType", "languageCode", "alertType"];
    for field in mask.split(',').map(str::trim).filter(|field| !field.is_empty()) {
        if !known.contains(&field) {
            return Err(invalid(&[(
                Protocol,
                3,
                "update_mask",
                "The mask names a field that can't be changed.",
            )]));
        }
        post.resource[field] = body[field].clone();
    }
    let mut whole = post.resource.clone();
    if !post.files.is_empty() {
        // Images that were fetched are not fetched again.
        whole["summary"] = json!(if post.text().is_empty() { " with its picture" } else { post.text() });
    }
    validate(request, &whole)?;
    post.updated_at = tx.now;
    tx.store.put(&post);
    Ok(Response::json(200, &post.view(tx)))
}

/// `DELETE …/localPosts/{id}`.
pub(super) fn delete(tx: &mut Transaction, _: &Request, caller: &Account, parent: &str, id: &str) -> Outcome {
    let post = own(tx, caller, parent, id)?;
    post.files.iter().for_each(|(file, _)| tx.files.discard(file));
    tx.store.unlink(BY_ID, id, &post.key());
    tx.store.remove::<Post>(&post.key());
    Ok(Response::json(200, &json!({})))
}

fn own(tx: &Transaction, caller: &Account, parent: &str, id: &str) -> Result<Post, Response> {
    managed(tx, caller, parent)?;
    find(tx, id).filter(|post| post.parent() == parent).ok_or_else(missing)
}

/// Returns the body of a request.
pub(super) fn body(request: &Request) -> Result<Value, Response> {
    let value = request.json().ok().filter(Value::is_object);
    value.ok_or_else(|| {
        let violation = json!([{
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{ "description": "Invalid JSON payload received." }],
        }]);
        detailed(State, 400, "INVALID_ARGUMENT", "Invalid JSON payload received.", &violation)
    })
}

/// Returns a time as Google writes it.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
