//! Google Business Profile: posts by My Business v4, locations by the APIs that followed it.
//! <https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts>
//!
//! A location is an account here, and its id is the whole path that posts are made at. Nothing makes a
//! repeated post harmless, so a lost answer is settled by the location's list. What is created is then
//! moderated, which is waited for a while: a rejection is worth more than a quick success. Google has
//! told no figures of single posts since 2023, so there are none.

use crate::*;
use async_trait::async_trait;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use domain::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::HashSet, time::Duration};

/// Google Business Profile. <https://developers.google.com/my-business>
pub(crate) struct GoogleBusiness;

const POSTS: &str = "https://mybusiness.googleapis.com/v4";
const ACCOUNTS: &str = "https://mybusinessaccountmanagement.googleapis.com/v1";
const LOCATIONS: &str = "https://mybusinessbusinessinformation.googleapis.com/v1";

/// How much earlier than our clock's commit a post of ours may seem to Google.
const SKEW: TimeDelta = TimeDelta::minutes(5);
/// How long moderation is waited for; a post that is still in it then is taken for published.
const MODERATION: TimeDelta = TimeDelta::minutes(10);
/// Pages of the location's posts that are searched for a lost one.
const PAGES: usize = 20;

static CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::characters(1500),
    content: Content::TextOrMedia,
    media: &[MediaLimit {
        kind: MediaKind::Image,
        count: 0..=1,
        mimes: &["image/jpeg", "image/png"],
        max_bytes: 5 << 20,
        duration: None,
        pixels: Some((250..=10_000, 250..=10_000)),
        aspect_ratio: None,
    }],
    mixed_media: false,
    alt_text: None,
    replies: Replies::None,
    publishing: Publishing::Asynchronous { window: Duration::from_secs(30 * 60) },
    repeat: Repeat::Doubles { settling: Duration::from_secs(30) },
    settings,
};

static CONNECTION: Connection = Connection::OAuth2 {
    authorize: google::AUTHORIZE,
    token: google::TOKEN,
    scopes: &["https://www.googleapis.com/auth/business.manage"],
    separator: " ",
    client_id: "client_id",
    parameters: google::PARAMETERS,
    pkce: true,
};

fn settings() -> Value {
    let moment = r"^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$";
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "topicType": {
                "type": "string",
                "enum": ["STANDARD", "EVENT", "OFFER", "ALERT"],
                "description": "What the post is about; without it what the other settings make it.",
            },
            "languageCode": { "type": "string", "description": "The language of the text (BCP 47)." },
            "callToAction": {
                "type": "object",
                "required": ["actionType"],
                "description": "The button below it; an offer has its own.",
                "properties": {
                    "actionType": {
                        "type": "string",
                        "enum": ["BOOK", "ORDER", "SHOP", "LEARN_MORE", "SIGN_UP", "CALL"],
                    },
                    "url": { "type": "string", "description": "Where it leads; CALL has none." },
                },
            },
            "event": {
                "type": "object",
                "required": ["title"],
                "description": "What happens when, in the location's own time. An offer needs it as well.",
                "properties": {
                    "title": { "type": "string", "minLength": 1, "maxLength": 58 },
                    "start": { "type": "string", "pattern": moment, "description": "A day, or a day and a time." },
                    "end": { "type": "string", "pattern": moment, "description": "A day, or a day and a time." },
                    "schedule": { "type": "object", "description": "Both as Google writes them, in place of start and end." },
                    "recurrenceInfo": { "type": "object", "description": "How it repeats, as Google writes it." },
                },
            },
            "offer": {
                "type": "object",
                "properties": {
                    "couponCode": { "type": "string" },
                    "redeemOnlineUrl": { "type": "string" },
                    "termsConditions": { "type": "string" },
                },
            },
            "alertType": { "type": "string", "enum": ["COVID_19"], "description": "What an alert is about." },
            "scheduledTime": { "type": "string", "format": "date-time", "description": "When Google shows it." },
        },
    })
}

#[async_trait]
impl Platform for GoogleBusiness {
    fn id(&self) -> &'static str {
        "google_business"
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn connection(&self) -> &'static Connection {
        &CONNECTION
    }

    fn credentials(&self) -> Credentials {
        Credentials::Body
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        google::classify(reply)
    }

    fn relogin(&self) -> &'static [(&'static str, &'static str)] {
        google::RELOGIN
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let mut found = Vec::new();
        // A location may be managed by several accounts of the same person.
        let mut seen = HashSet::new();
        for account in accounts(cx).await? {
            for location in locations(cx, &account).await? {
                if location.metadata.voice == Some(false) || !seen.insert(location.name.clone()) {
                    continue;
                }
                found.push(Identity {
                    network_unique_id: format!("{account}/{}", location.name),
                    username: location.title.clone(),
                    display_name: location.title,
                    account_type: "location".to_owned(),
                    profile_image_url: None,
                    profile_url: location.metadata.maps_uri,
                    grant: None,
                });
            }
        }
        Ok(found)
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        location(cx).await?.eligible(cx)
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        google::refresh(cx).await
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        google::revoke(cx).await
    }

    async fn prepare(&self, cx: &Session<'_>, post: &Publication, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        // Told before anything is fetched or created.
        resource(post)?;
        if !step.is_eligible {
            location(cx).await?.eligible(cx)?;
            step.is_eligible = true;
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed> {
        let mut body = resource(post)?;
        if let Some(image) = post.media.first() {
            let address = cx.media.address(image).await;
            let address = address.map_err(|failure| Failure { doubt: false, ..failure })?;
            body["media"] = json!([{ "mediaFormat": "PHOTO", "sourceUrl": address.as_str() }]);
        }
        let created: LocalPost =
            cx.post(format!("{POSTS}/{}/localPosts", parent(cx))).json(&body).send().await?;
        let step = Step { post: Some(created.name.clone()), ..at.read()? };
        match created.is_settled()? {
            true => Ok(Committed::Live(created.name)),
            false => {
                Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: Duration::from_secs(10) })
            }
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located> {
        let step: Step = at.read()?;
        let begun = post.commit_begun_at.unwrap_or(post.created_at);
        let found = match step.post {
            Some(name) => {
                let found: LocalPost = cx.get(format!("{POSTS}/{name}")).send().await?;
                found
            }
            None => match found(cx, post, begun).await? {
                Found::Post(found) => *found,
                Found::Nothing => return Ok(Located::Absent),
                Found::Unknown => return Ok(Located::Unknown),
            },
        };
        let age = (cx.now)() - begun;
        if found.is_settled()? || age > MODERATION {
            return Ok(Located::Live(found.name));
        }
        Ok(Located::Processing {
            poll_after: Duration::from_secs(age.num_seconds().clamp(20, 240) as u64 / 2),
        })
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        let post: LocalPost = cx.get(format!("{POSTS}/{id}")).send().await?;
        match post.search_url {
            Some(address) => Ok(cx.wire.route(&address)),
            None => Ok(cx.wire.route(&place(cx).await?)),
        }
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn deletion(&self) -> Option<&dyn Deletion> {
        Some(self)
    }

    fn options(&self) -> Option<&dyn Options> {
        Some(self)
    }
}

#[async_trait]
impl History for GoogleBusiness {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let list = list(cx, cursor).await?;
        let place = match list.local_posts.iter().any(|post| post.search_url.is_none()) {
            true => place(cx).await?,
            false => String::new(),
        };
        let posts = list.local_posts.into_iter().map(|post| RemotePost {
            url: cx.wire.route(post.search_url.as_deref().unwrap_or(&place)),
            text: post.summary,
            media: post.media.into_iter().filter_map(|media| media.google_url).collect(),
            published_at: post.create_time.unwrap_or_default(),
            metrics: Metrics::default(),
            id: post.name,
        });
        Ok(Page { posts: posts.collect(), next: list.next_page_token.filter(|token| !token.is_empty()) })
    }
}

#[async_trait]
impl Deletion for GoogleBusiness {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        match cx.delete(format!("{POSTS}/{id}")).done().await {
            Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(()),
            answer => answer,
        }
    }
}

#[async_trait]
impl Options for GoogleBusiness {
    fn kinds(&self) -> &'static [&'static str] {
        &["locations"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, _parent: Option<&str>) -> Result<Vec<SelectOption>> {
        if kind != "locations" {
            return Err(Failure::rejected(404, format!("Google Business Profile has no list of {kind}")));
        }
        let all = self.identities(cx).await?.into_iter();
        Ok(all.map(|one| SelectOption { id: one.network_unique_id, name: one.display_name }).collect())
    }
}

/// The path that the account's posts are made at: `accounts/1/locations/2`.
fn parent<'a>(cx: &'a Session<'_>) -> &'a str {
    &cx.account.network_unique_id
}

/// The names of all accounts that the login manages; the personal one is the first.
async fn accounts(cx: &Session<'_>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let mut page: Option<String> = None;
    loop {
        let call = cx.get(format!("{ACCOUNTS}/accounts")).query(&[("pageSize", "20")]);
        let found: Accounts = paged(call, page.as_deref()).send().await?;
        all.extend(found.accounts.into_iter().map(|account| account.name));
        page = found.next_page_token.filter(|token| !token.is_empty());
        if page.is_none() {
            return Ok(all);
        }
    }
}

async fn locations(cx: &Session<'_>, account: &str) -> Result<Vec<Location>> {
    let mut all = Vec::new();
    let mut page: Option<String> = None;
    loop {
        let call = cx
            .get(format!("{LOCATIONS}/{account}/locations"))
            .query(&[("readMask", "name,title,metadata"), ("pageSize", "100")]);
        let found: Locations = paged(call, page.as_deref()).send().await?;
        all.extend(found.locations);
        page = found.next_page_token.filter(|token| !token.is_empty());
        if page.is_none() {
            return Ok(all);
        }
    }
}

/// The account's own location. The newer API knows it without the account that manages it.
async fn location(cx: &Session<'_>) -> Result<Location> {
    let name = parent(cx).find("locations/").map_or(parent(cx), |at| &parent(cx)[at..]);
    cx.get(format!("{LOCATIONS}/{name}")).query(&[("readMask", "name,title,metadata")]).send().await
}

/// Where the location is seen: Google gives a post its own address a while after it is there.
async fn place(cx: &Session<'_>) -> Result<String> {
    let place = location(cx).await?.metadata.maps_uri;
    Ok(place.unwrap_or_else(|| "https://www.google.com/maps".to_owned()))
}

async fn list(cx: &Session<'_>, page: Option<&str>) -> Result<List> {
    let call = cx.get(format!("{POSTS}/{}/localPosts", parent(cx))).query(&[("pageSize", "100")]);
    paged(call, page).send().await
}

fn paged(call: Call, page: Option<&str>) -> Call {
    match page {
        Some(page) => call.query(&[("pageToken", page)]),
        None => call,
    }
}

/// The result of a search in the location's list.
enum Found {
    /// The post.
    Post(Box<LocalPost>),
    /// It is not in the list.
    Nothing,
    /// The list is longer than what is read of it.
    Unknown,
}

/// Looks for a post of ours in the location's list, which need not be in any order.
async fn found(cx: &Session<'_>, post: &Publication, begun: DateTime<Utc>) -> Result<Found> {
    let ours = resource(post)?;
    let mut page: Option<String> = None;
    for _ in 0..PAGES {
        let list = list(cx, page.as_deref()).await?;
        let nearest = list
            .local_posts
            .into_iter()
            .filter(|other| {
                other.summary.trim() == post.text.trim()
                    && ours["topicType"] == other.topic_type.as_str()
                    && other.create_time.is_some_and(|at| at > begun - SKEW)
                    && !post.is_taken(&other.name)
            })
            .min_by_key(|other| other.create_time.map_or(TimeDelta::MAX, |at| (at - begun).abs()));
        if let Some(nearest) = nearest {
            return Ok(Found::Post(Box::new(nearest)));
        }
        page = list.next_page_token.filter(|token| !token.is_empty());
        if page.is_none() {
            return Ok(Found::Nothing);
        }
    }
    Ok(Found::Unknown)
}

/// The post as Google wants it, but for its photo.
fn resource(post: &Publication) -> Result<Value> {
    let set = |name: &str| post.settings.get(name).filter(|value| !value.is_null());
    let refuse = |message: &str| Err(Failure::rejected(422, message));
    let topic = match set("topicType").and_then(Value::as_str) {
        Some(topic) => topic,
        None if set("offer").is_some() => "OFFER",
        None if set("event").is_some() => "EVENT",
        None if set("alertType").is_some() => "ALERT",
        None => "STANDARD",
    };
    let mut body = Map::new();
    body.insert("topicType".into(), json!(topic));
    if !post.text.trim().is_empty() {
        body.insert("summary".into(), json!(post.text));
    }
    for name in ["languageCode", "scheduledTime"] {
        body.extend(set(name).map(|value| (name.to_owned(), value.clone())));
    }
    match (topic, set("event")) {
        ("EVENT" | "OFFER", Some(event)) => {
            body.insert("event".into(), event_of(event)?);
        }
        ("EVENT" | "OFFER", None) => {
            return refuse("an EVENT or OFFER needs an event with its title, start and end");
        }
        _ => {}
    }
    match (topic, set("callToAction")) {
        // Google shows no other button below an offer.
        ("OFFER", _) | (_, None) => {}
        (_, Some(action)) => {
            let kind = action["actionType"].as_str().unwrap_or_default();
            let url = action["url"].as_str().filter(|url| !url.is_empty());
            let action = match (kind, url) {
                ("CALL", _) => json!({ "actionType": kind }),
                (_, Some(url)) => json!({ "actionType": kind, "url": url }),
                (_, None) => return refuse("callToAction needs a url, unless it is CALL"),
            };
            body.insert("callToAction".into(), action);
        }
    }
    if topic == "OFFER" {
        body.extend(set("offer").map(|offer| ("offer".to_owned(), offer.clone())));
    }
    if topic == "ALERT" {
        body.insert("alertType".into(), set("alertType").cloned().unwrap_or(json!("COVID_19")));
    }
    Ok(Value::Object(body))
}

/// An event with its schedule, of which Google wants every part.
fn event_of(event: &Value) -> Result<Value> {
    let refuse = |message: &str| Err(Failure::rejected(422, message));
    let Some(title) = event["title"].as_str().filter(|title| !title.trim().is_empty()) else {
        return refuse("an event needs a title");
    };
    let mut made = json!({ "title": title });
    if event["schedule"].is_object() {
        made["schedule"] = event["schedule"].clone();
    } else {
        let day_ends = NaiveTime::from_hms_opt(23, 59, 0).expect("a time of the day");
        let start = moment(&event["start"], NaiveTime::MIN);
        let end = moment(&event["end"], day_ends);
        let (Some(start), Some(end)) = (start, end) else {
            return refuse("an event needs start and end, each a day or a day and a time");
        };
        if end < start {
            return refuse("an event ends after it starts");
        }
        let date = |at: NaiveDateTime| json!({ "year": at.year(), "month": at.month(), "day": at.day() });
        let time = |at: NaiveDateTime| {
            json!({ "hours": at.hour(), "minutes": at.minute(), "seconds": at.second(), "nanos": 0 })
        };
        made["schedule"] = json!({
            "startDate": date(start), "startTime": time(start), "endDate": date(end), "endTime": time(end),
        });
    }
    if event["recurrenceInfo"].is_object() {
        made["recurrenceInfo"] = event["recurrenceInfo"].clone();
    }
    Ok(made)
}

/// A day and a time; of a day alone the time is `usual`.
fn moment(value: &Value, usual: NaiveTime) -> Option<NaiveDateTime> {
    let text = value.as_str()?;
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|day| day.and_time(usual));
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M"))
        .ok()
        .or_else(day)
}

/// How far it has come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    /// Whether the location may post.
    #[serde(default)]
    is_eligible: bool,
    /// What was created, and is being moderated.
    post: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accounts {
    #[serde(default)]
    accounts: Vec<Named>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Locations {
    #[serde(default)]
    locations: Vec<Location>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Location {
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    /// Whether its owner was verified, and so may speak for it.
    #[serde(rename = "hasVoiceOfMerchant")]
    voice: Option<bool>,
    maps_uri: Option<String>,
}

impl Location {
    fn eligible(&self, cx: &Session<'_>) -> Result<()> {
        match self.metadata.voice {
            Some(false) => {
                let message = format!("the location {} is not verified, so it can't post", parent(cx));
                Err(Failure::rejected(403, message))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    #[serde(default)]
    local_posts: Vec<LocalPost>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocalPost {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    topic_type: String,
    #[serde(default)]
    state: String,
    search_url: Option<String>,
    create_time: Option<DateTime<Utc>>,
    #[serde(default)]
    media: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    google_url: Option<String>,
}

impl LocalPost {
    /// Whether moderation is over; fails when it ended badly. Google gives no reason.
    fn is_settled(&self) -> Result<bool> {
        match self.state.as_str() {
            "REJECTED" => {
                Err(Failure::rejected(422, "Google rejected the post: it does not comply with the content policy"))
            }
            "LIVE" | "SCHEDULED" | "RECURRING" => Ok(true),
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_every_part_of_its_schedule() {
        let made = event_of(&json!({ "title": "Sale", "start": "2026-12-01", "end": "2026-12-02T18:30" })).unwrap();
        assert_eq!(
            made["schedule"],
            json!({
                "startDate": { "year": 2026, "month": 12, "day": 1 },
                "startTime": { "hours": 0, "minutes": 0, "seconds": 0, "nanos": 0 },
                "endDate": { "year": 2026, "month": 12, "day": 2 },
                "endTime": { "hours": 18, "minutes": 30, "seconds": 0, "nanos": 0 },
            })
        );
        for wrong in [
            json!({ "start": "2026-12-01", "end": "2026-12-02" }),
            json!({ "title": "Sale", "start": "2026-12-01" }),
            json!({ "title": "Sale", "start": "2026-12-02", "end": "2026-12-01" }),
            json!({ "title": "Sale", "start": "2026-13-01", "end": "2026-12-01" }),
        ] {
            assert!(event_of(&wrong).is_err(), "{wrong}");
        }
    }
}
