//! Errors, tokens and two-step publishing, shared by Meta's three platforms.
//!
//! Errors are classified by code and subcode instead of the HTTP status, which is 400 for nearly all of them:
//! <https://developers.facebook.com/docs/graph-api/guides/error-handling>.
//! Threads and Instagram publish by containers. A container is created, polled until it is finished, and can
//! be published once, so its status shows the result of a lost call.

use crate::{
    Call, Checkpoint, Code, Committed, Encoding, Grant, LimitUsage, Located, Media, MediaKind, Page,
    Prepared, PublishRequest, Publisher, Reply, Result, Session, classify, oauth, required,
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use reqwest::multipart::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Wait after the publishing cap, which counts the last 24 hours: the attempts of a post last longer than that.
const PUBLISHING_CAP_BACKOFF: Duration = Duration::from_secs(3 * 3600);
/// Share of a limit, in percent, above which polls are made rarely, and the pause between them.
const HIGH_USAGE: u64 = 80;
const HIGH_USAGE_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Wait after a container was refused as not ready.
const NOT_READY_BACKOFF: Duration = Duration::from_secs(30);
/// Default lifetime of a long-lived token.
const LONG_LIVED_TOKEN_TTL: TimeDelta = TimeDelta::days(60);
/// Minimum age of a long-lived token that can be refreshed.
pub(crate) const MIN_REFRESH_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Containers expire after 24 hours; one older than this is not used any more.
const CONTAINER_TTL: TimeDelta = TimeDelta::hours(23);
/// Number of times that containers are created again because their state can't be read. Meta allows 400 a day.
const MAX_REBUILDS: u32 = 2;
/// Time after which a video whose state can't be read is published, and the pause until then.
const BLIND_PROCESSING: TimeDelta = TimeDelta::minutes(3);
const BLIND_PAUSE: Duration = Duration::from_secs(60);
/// Number of times that a container is not found when it is published, after which a new one is made: "generate a new
/// container ID and use it to try again".
const MAX_MISSES: u32 = 2;
/// Number of times that the parent of a reply is looked for again, and the pause, which doubles: together a minute.
const MAX_PARENT_MISSES: u32 = 5;
const PARENT_PAUSE: Duration = Duration::from_secs(1);
/// Pause before the parts of a post that was just published.
const PARTS_PAUSE: Duration = Duration::from_secs(1);
/// Time from the publishing call within which a failed part of a live post is tried again; its owner is told then, and
/// the post counts as published without it.
pub(crate) const PARTS_TIMEOUT: TimeDelta = TimeDelta::minutes(15);
/// Time until a published container's post appears in the lists.
const LISTING_LAG: TimeDelta = TimeDelta::minutes(10);

/// Returns the failure for a reply of the Graph API.
pub(crate) fn classify(reply: &Reply) -> Option<Failure> {
    if let Some(debug) = reply.body.get("debug_info") {
        let message = debug["message"].as_str().unwrap_or("the upload was refused").to_owned();
        return Some(match debug["retriable"] == true {
            true => Failure::upstream(503, message).certain(),
            false => Failure::rejected(400, message),
        });
    }
    if reply.body.get("error_type").is_some() {
        let message = reply.body["error_message"].as_str().unwrap_or("the code was refused");
        // The token endpoints' error format.
        return Some(match reply.status.as_u16() {
            429 | 500.. => classify::by_status(reply),
            _ if is_of_credentials(message) => Failure::app_refused(message, None),
            _ => Failure::token_expired(message),
        });
    }
    // An object without a code and a message in a success says nothing of a refusal.
    let says = |error: &Value| {
        error["code"].is_i64() || ["code", "message"].iter().any(|name| error[*name].is_string())
    };
    let is_error = |error: &Value| error.is_object() && (says(error) || reply.status.is_client_error());
    let error = reply.body.get("error").filter(|error| is_error(error))?;
    let message = error_message(error);
    let refused = match reply.status.as_u16() {
        status @ 400..=499 => status,
        _ => 400,
    };
    let broken = |status: u16| Failure::upstream(reply.status.as_u16().max(status), &*message);
    let unready = || Failure::upstream(503, &*message).certain().after(Some(NOT_READY_BACKOFF));
    let subcode = error["error_subcode"].as_u64().unwrap_or(0);
    let Some(code) = error["code"].as_i64().or_else(|| error["code"].as_str()?.parse().ok()) else {
        // An error code of a feature, such as THREADS_API__LINK_LIMIT_EXCEEDED.
        return Some(Failure::rejected(refused, message));
    };
    Some(match (code, subcode) {
        // Said of a deleted app with the code of a token.
        (102 | 190, _) if message.contains("validating application") => Failure::app_refused(message, None),
        (1 | INVALID, _) if is_of_credentials(&message) => Failure::app_refused(message, None),
        (102 | 190, 458 | 460 | 467 | 490 | 492) => Failure::revoked(message),
        // The same token works again afterwards.
        (102 | 190, 459 | 464) => Failure::token_expired(format!(
            "the account's owner has to log in to the platform's own site and confirm the account: {message}"
        )),
        (102 | 190, _) => Failure::token_expired(message),
        // Held for spam, by the code of a rate limit; waiting does not help.
        (_, 2_207_051) => Failure::rejected(403, message),
        (_, 2_207_042) => Failure::rate_limited(message, Some(PUBLISHING_CAP_BACKOFF)),
        (_, 2_207_006 | 2_207_008 | 2_207_020 | 2_207_027 | 4_279_009) => unready(),
        // An error of the server's own, which may follow the call's effect.
        (_, 2_207_001) => broken(500),
        (_, subcode) if is_transient(subcode) => Failure::upstream(502, message).certain(),
        (506, _) | (_, 1_366_051 | 1_455_006) => Failure::rejected(refused, message).ambiguous(),
        (4 | 17 | 32 | 341 | 613 | 80_000..=80_014, _) | (_, 1_390_008) => {
            Failure::rate_limited(message, retry_after(reply))
        }
        (100, 33) | (803, _) => Failure::rejected(404, message),
        // The app is deleted, blocked, or has no access to the call.
        (101 | 3, _) => Failure::app_refused(message, None),
        (200, _) if message.contains("API access") => Failure::app_refused(message, None),
        (10 | 200..=299, _) => Failure::rejected(403, message),
        (1, 2_207_057) => Failure::rejected(refused, message),
        (-2 | -1 | 1, _) => broken(500),
        (2, _) => broken(503),
        _ if error["is_transient"] == true => broken(503),
        (INVALID | 36_000..=36_999, _) => Failure::rejected(refused, message),
        _ => match reply.status.as_u16() {
            401 => Failure::token_expired(message),
            429 => Failure::rate_limited(message, retry_after(reply)),
            500.. => broken(500),
            status => Failure::rejected(if status < 400 { 400 } else { status }, message),
        },
    })
}

/// Encoding of videos for Instagram and Threads, whose pages name the same; without the page.
pub(crate) const ENCODING: Encoding = Encoding {
    video_codecs: &["h264", "hevc"],
    audio_codecs: &["aac"],
    frame_rate: Some(23..=60),
    max_bit_depth: None,
    chroma: &["4:2:0"],
    index_first: true,
    no_edits: true,
    source: "",
    checked: "2026-11",
};

/// True for the refusal of the app's own id or secret, such as after the secret was replaced. It has the code of an
/// invalid parameter, or of an unknown error.
/// <https://github.com/facebook/facebook-python-business-sdk/issues/528>,
/// <https://github.com/facebookarchive/php-graph-sdk/issues/538>
fn is_of_credentials(message: &str) -> bool {
    let words = ["Invalid appsecret_proof", "Error validating client secret", "Invalid platform app"];
    words.iter().any(|words| message.contains(words))
}

/// Code of an invalid parameter.
const INVALID: i64 = 100;

/// True if the body of a reply refuses a parameter, or a medium, for certain. Threads answers some of these with status 500,
/// such as a text that is too long.
pub(crate) fn is_definite(reply: &Reply) -> bool {
    let error = &reply.body["error"];
    let is_refusal = matches!(error["code"].as_i64(), Some(INVALID | 36_000..=36_999));
    is_refusal
        && error["is_transient"] != true
        && classify(reply).is_some_and(|failure| matches!(failure.code, ErrorCode::Rejected(_)))
}

/// True for the subcode of a container whose media could not be fetched or processed this time, at its creation or in its
/// state: another container may do.
/// <https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/error-codes> (2026-11)
pub(crate) const fn is_transient(subcode: u64) -> bool {
    matches!(
        subcode,
        2_207_001
            | 2_207_003
            | 2_207_020
            | 2_207_032
            | 2_207_052
            | 2_207_053
            | 2_207_076
            | 2_207_077
            | 2_207_082
    )
}

/// True for the refusal to publish a container that does not exist, has expired or has failed.
fn is_missing(body: &Value) -> bool {
    matches!(body["error"]["error_subcode"].as_u64(), Some(2_207_006 | 2_207_008 | 2_207_020 | 4_279_009))
}

/// Returns the subcodes that a text names.
pub(crate) fn subcodes(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|digits| digits.len() == 7)
        .filter_map(|digits| digits.parse().ok())
}

/// Returns Meta's messages for developers and users, with the numbers that its support needs.
fn error_message(error: &Value) -> String {
    let mut message = error["message"].as_str().unwrap_or("refused without a reason").to_owned();
    for more in ["error_user_title", "error_user_msg"] {
        if let Some(more) = error[more].as_str().filter(|more| !more.is_empty() && !message.contains(*more)) {
            message = format!("{message} {more}");
        }
    }
    let numbers = ["code", "error_subcode", "fbtrace_id"].iter().filter_map(|name| match &error[*name] {
        Value::Null => None,
        Value::String(text) => Some(format!("{name} {text}")),
        number => Some(format!("{name} {number}")),
    });
    let numbers: Vec<_> = numbers.collect();
    if numbers.is_empty() { message } else { format!("{message} ({})", numbers.join(", ")) }
}

/// Returns the wait after a rate limit, if a header contains one. Most limits count the calls of the last hour and
/// name no time; the attempts that follow are spread over more than that.
/// <https://developers.facebook.com/docs/graph-api/overview/rate-limiting>
fn retry_after(reply: &Reply) -> Option<Duration> {
    let minutes = usages(reply)
        .iter()
        .filter_map(|usage| usage["estimated_time_to_regain_access"].as_u64())
        .filter(|minutes| *minutes > 0)
        .max();
    minutes
        .map(|minutes| Duration::from_secs(minutes.saturating_mul(60)))
        .or_else(|| classify::retry_after(reply))
}

/// Returns the shares of the limits that have been used: the app's, and those per account and use case.
fn usages(reply: &Reply) -> Vec<Value> {
    let header = |name: &str| serde_json::from_str::<Value>(reply.header(name)?).ok();
    let accounts = header("x-business-use-case-usage");
    let accounts = accounts.as_ref().and_then(Value::as_object).into_iter().flat_map(|all| all.values());
    let accounts = accounts.flat_map(|uses| uses.as_array().into_iter().flatten()).cloned();
    header("x-app-usage").into_iter().chain(accounts).collect()
}

/// Returns the pause before the next poll when a limit is nearly used up, so that the calls that are left
/// can publish. Calls beyond a limit count as well and prolong it.
pub(crate) fn throttle(reply: &Reply) -> Option<Duration> {
    let figures = ["call_count", "total_time", "total_cputime"];
    let usages = usages(reply);
    let mut shares =
        usages.iter().flat_map(|usage| figures.map(|figure| usage[figure].as_u64().unwrap_or(0)));
    shares.any(|share| share >= HIGH_USAGE).then_some(HIGH_USAGE_PAUSE)
}

/// Returns the app's client id and secret; fails if the operator has configured no app.
pub(crate) fn app<'a>(cx: &'a Session<'_>) -> Result<(&'a str, &'a str)> {
    let app = oauth::app(cx)?;
    Ok((&app.client_id, app.client_secret.as_deref().unwrap_or_default()))
}

/// A token endpoint's response in a list.
#[derive(Deserialize)]
struct List {
    data: Vec<Tokens>,
}

/// A token endpoint's response.
#[derive(Deserialize)]
struct Tokens {
    #[serde(deserialize_with = "required::token")]
    access_token: String,
    expires_in: Option<i64>,
    #[serde(default)]
    permissions: Value,
}

/// Exchanges a code for a short-lived token at `address`, by a multipart form as in Meta's examples,
/// and that for a long-lived one.
pub(crate) async fn exchange(
    cx: &Session<'_>,
    code: &Code,
    address: &str,
    long: (&str, &str),
) -> Result<Grant> {
    let (id, secret) = app(cx)?;
    let form = Form::new()
        .text("client_id", id.to_owned())
        .text("client_secret", secret.to_owned())
        .text("grant_type", "authorization_code")
        .text("redirect_uri", code.redirect_uri.clone())
        .text("code", code.code.trim_end_matches("#_").to_owned());
    let reply = cx.post(address).authorized_otherwise().multipart(form).hiding(&code.code).send_raw().await?;
    let short = tokens(cx, reply)?;
    let (address, kind) = long;
    let reply = cx
        .get(address)
        .authorized_otherwise()
        .query(&[("grant_type", kind), ("client_secret", secret), ("access_token", &short.access_token)])
        .hiding(&short.access_token)
        .hiding(&code.code)
        .send_raw()
        .await?;
    Ok(grant(cx, tokens(cx, reply)?, &short.permissions))
}

/// Renews a long-lived token at `address`. It has to be a day old for that; one that is too young is
/// refused with a message that Meta does not document, and stays valid.
pub(crate) async fn renew(cx: &Session<'_>, address: &str, kind: &str) -> Result<Grant> {
    let reply = cx
        .get(address)
        .authorized_otherwise()
        .query(&[("grant_type", kind), ("access_token", &cx.grant.access_token)])
        .send_raw()
        .await?;
    match tokens(cx, reply) {
        Ok(fresh) => Ok(grant(cx, fresh, &Value::Null)),
        Err(failure) if failure.code.is_permanent() => Ok(cx.grant.clone()),
        Err(failure) => Err(failure),
    }
}

fn tokens(cx: &Session<'_>, reply: Reply) -> Result<Tokens> {
    let reply = reply.into_result(cx.platform)?;
    match reply.read_secrets::<List>().ok().and_then(|list| list.data.into_iter().next()) {
        Some(first) => Ok(first),
        None => reply.read_secrets(),
    }
}

fn grant(cx: &Session<'_>, tokens: Tokens, permissions: &Value) -> Grant {
    let permissions = if tokens.permissions.is_null() { permissions } else { &tokens.permissions };
    let scopes: Vec<String> = match permissions {
        Value::String(list) => list.split([',', ' ']).map(str::to_owned).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => cx.grant.scopes.clone(),
    };
    let now = (cx.now)();
    Grant {
        access_token: tokens.access_token,
        refresh_token: None,
        ends_at: None,
        expires_at: Some(oauth::end(now, tokens.expires_in).unwrap_or(now + LONG_LIVED_TOKEN_TTL)),
        scopes,
        extra: cx.grant.extra.clone(),
    }
}

/// A response with the id of the created object.
#[derive(Debug, Deserialize)]
pub(crate) struct Made {
    #[serde(deserialize_with = "required::id")]
    pub(crate) id: String,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Listed<T> {
    pub(crate) data: Vec<T>,
    #[serde(default)]
    paging: Paging,
}

#[derive(Debug, Default, Deserialize)]
struct Paging {
    #[serde(default)]
    cursors: Cursors,
}

#[derive(Debug, Default, Deserialize)]
struct Cursors {
    after: Option<String>,
}

impl<T> Listed<T> {
    /// Returns the page. Only an empty one is the last: what an account may not see is left out of a page
    /// after it was cut.
    fn page(self) -> Page<T> {
        let next = self.paging.cursors.after.filter(|after| !after.is_empty() && !self.data.is_empty());
        Page { items: self.data, next }
    }
}

/// Sends the call for a page of a list.
pub(crate) async fn page<T: DeserializeOwned>(call: Call, cursor: Option<&str>) -> Result<Page<T>> {
    Ok(paged(call, cursor).send::<Listed<T>>().await?.page())
}

/// Sends the call for a page of a list whose entries have tokens.
pub(crate) async fn page_with_secrets<T: DeserializeOwned>(
    call: Call,
    cursor: Option<&str>,
) -> Result<Page<T>> {
    Ok(paged(call, cursor).send_for_secrets::<Listed<T>>().await?.page())
}

fn paged(call: Call, cursor: Option<&str>) -> Call {
    match cursor {
        Some(cursor) => call.query(&[("after", cursor)]),
        None => call,
    }
}

/// Parses a time in the Graph API's format: `2026-09-28T17:05:11+0000`.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(moment))
}

fn moment(text: &str) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%z");
    parsed.or_else(|_| DateTime::parse_from_rfc3339(text)).ok().map(|at| at.to_utc())
}

/// The metrics of an insights response by name; a metric with a breakdown is the sum of its parts.
#[derive(Default, Deserialize)]
pub(crate) struct Insights {
    #[serde(default)]
    data: Vec<Insight>,
}

#[derive(Deserialize)]
struct Insight {
    name: String,
    #[serde(default)]
    values: Vec<Reading>,
    total_value: Option<Reading>,
}

#[derive(Deserialize)]
struct Reading {
    #[serde(default)]
    value: Value,
}

impl Insights {
    /// Returns a metric, or 0 if it is missing.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.part(name, None)
    }

    /// Adds the metrics of another response.
    pub(crate) fn join(&mut self, other: Self) {
        self.data.extend(other.data);
    }

    /// Returns one part of a metric with a breakdown.
    pub(crate) fn part(&self, name: &str, part: Option<&str>) -> u64 {
        let Some(insight) = self.data.iter().find(|insight| insight.name == name) else { return 0 };
        match insight.total_value.as_ref().or(insight.values.last()).map(|reading| &reading.value) {
            Some(Value::Object(parts)) => {
                let wanted = parts.iter().filter(|(name, _)| part.is_none_or(|part| part == *name));
                wanted.filter_map(|(_, value)| value.as_u64()).sum()
            }
            Some(value) => value.as_u64().unwrap_or(0),
            None => 0,
        }
    }
}

/// Returns the pause before the next poll of something that Meta has been processing since `since`; it grows
/// with the time that has passed.
pub(crate) fn pause(since: DateTime<Utc>, now: DateTime<Utc>, is_moving: bool) -> Duration {
    let least = Duration::from_secs(if is_moving { 5 } else { 2 });
    let half = (now - since).to_std().unwrap_or_default() / 2;
    half.clamp(least, Duration::from_secs(60))
}

/// The fields of a container.
pub(crate) type Fields = Vec<(&'static str, String)>;

/// Setting for the part of the site that shows the post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum MediaType {
    Feed,
    Reels,
    Stories,
}

/// Returns the image of the post that the setting `cover` names.
pub(crate) fn cover<'a>(media: &'a [Media], setting: Option<&str>) -> Option<&'a Media> {
    let id = Uuid::try_parse(setting?.trim()).ok()?;
    media.iter().find(|medium| medium.kind == MediaKind::Image && medium.id == id)
}

/// Returns the media of the post without the cover.
pub(crate) fn shown<'a>(media: &'a [Media], setting: Option<&str>) -> Vec<&'a Media> {
    let cover = cover(media, setting).map(|cover| cover.id);
    media.iter().filter(|medium| Some(medium.id) != cover).collect()
}

/// Returns an error message if the setting `cover` does not fit the post's media: one video needs to be beside the
/// image, and a story has no cover.
pub(crate) fn uncoverable(platform: &str, media: &[Media], setting: &str, is_story: bool) -> Option<String> {
    if cover(media, Some(setting)).is_none() {
        let place = "the images of the post's first container";
        return Some(format!("{platform}: the cover {setting} is none of {place}"));
    }
    if is_story {
        return Some(format!("{platform} shows no cover on a story"));
    }
    match shown(media, Some(setting)).as_slice() {
        [one] if one.kind == MediaKind::Video => None,
        others => {
            let count = others.len();
            Some(format!(
                "{platform} takes a cover with one video, and there are {count} other media beside it"
            ))
        }
    }
}

/// State of a container.
#[derive(Debug)]
pub(crate) enum Status {
    Processing,
    Finished,
    Published,
    /// Processing failed.
    Failed(Failure),
    /// It expired.
    Expired,
    /// It does not exist, or Meta does not show it; then it can be published nevertheless.
    Unreadable,
}

/// A platform that publishes by containers.
#[async_trait]
pub(crate) trait Containers: Publisher {
    /// Base URL of the API, version included.
    const API: &'static str;
    /// The account's edge that creates containers.
    const CREATE: &'static str;
    /// The account's edge that publishes a container.
    const PUBLISH: &'static str;
    /// The fields with a container's state.
    const STATUS: &'static str;

    /// Returns true if the post is a carousel, in which each medium has a container of its own.
    fn is_carousel(&self, post: &PublishRequest) -> Result<bool> {
        Ok(post.media.len() > 1)
    }

    /// Returns the fields of one item of a carousel, which has the post's medium at `index`.
    async fn child_fields(&self, cx: &Session<'_>, post: &PublishRequest, index: usize) -> Result<Fields>;

    /// Returns the fields of the container that is published; `items` is empty unless it is a carousel.
    async fn parent_fields(
        &self,
        cx: &Session<'_>,
        post: &PublishRequest,
        items: &[String],
    ) -> Result<Fields>;

    /// Reads a container's state.
    fn status(&self, body: &Value) -> Status;

    /// Finds the post of a published container among the account's latest posts.
    async fn find(&self, cx: &Session<'_>, post: &PublishRequest) -> Result<Located>;

    /// Returns true if [`Self::complete`] makes a call for the post.
    fn has_parts(&self, _post: &PublishRequest) -> Result<bool> {
        Ok(false)
    }

    /// Completes a live post with what needs its id. May be repeated; a refusal is told and does not fail the post.
    async fn complete(&self, _cx: &Session<'_>, _post: &PublishRequest, _id: &str) -> Result<()> {
        Ok(())
    }

    /// Creates a container.
    async fn create(&self, cx: &Session<'_>, fields: Fields) -> Result<String> {
        create::<Self>(cx, &fields).await
    }
}

/// Creates a container of these fields.
pub(crate) async fn create<P: Containers + ?Sized>(cx: &Session<'_>, fields: &Fields) -> Result<String> {
    let address = format!("{}/{}/{}", P::API, cx.account.network_unique_id, P::CREATE);
    Ok(cx.post(address).form(fields).send::<Made>().await?.id)
}

/// The checkpoint: the containers of a carousel's items, and the one that is published.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    #[serde(default)]
    media: Vec<Uuid>,
    #[serde(default)]
    items: Vec<Container>,
    #[serde(default)]
    whole: Option<Container>,
    /// Number of times that containers were created again because their state could not be read.
    #[serde(default)]
    rebuilds: u32,
    /// Number of times that the parent of a reply was not found.
    #[serde(default)]
    parent_misses: u32,
    /// Number of times that the finished container was not found when it was published.
    #[serde(default)]
    misses: u32,
    /// Id of the live post, from the response of the publishing call, if parts follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    live: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Container {
    id: String,
    since: DateTime<Utc>,
    #[serde(default)]
    is_ready: bool,
}

impl Step {
    fn is_stale(&self, media: &[Uuid], now: DateTime<Utc>) -> bool {
        let mut all = self.items.iter().chain(&self.whole);
        self.media != media || all.any(|container| container.since + CONTAINER_TTL < now)
    }
}

/// Creates the containers and polls them until all are finished.
pub(crate) async fn prepare<P: Containers>(
    platform: &P,
    cx: &Session<'_>,
    post: &PublishRequest,
    at: Checkpoint,
) -> Result<Prepared> {
    let mut step: Step = at.read()?;
    let media: Vec<Uuid> = post.media.iter().map(|media| media.id).collect();
    if step.is_stale(&media, (cx.now)()) {
        step = Step { media, ..Step::default() };
    }
    let container = |id: String| Container { id, since: (cx.now)(), is_ready: false };
    let is_moving = post.media.iter().any(|media| media.kind == MediaKind::Video);
    if step.whole.is_none() && platform.is_carousel(post)? {
        for index in step.items.len()..post.media.len() {
            let made = platform.create(cx, platform.child_fields(cx, post, index).await?).await?;
            step.items.push(container(made));
            cx.save(&step).await?;
        }
        if let Some(busy) = watch(platform, cx, &mut step, is_moving).await? {
            return Ok(busy);
        }
    }
    if step.whole.is_none() {
        let items: Vec<String> = step.items.iter().map(|item| item.id.clone()).collect();
        let made = match platform.create(cx, platform.parent_fields(cx, post, &items).await?).await {
            // A parent that was just published is not found for some seconds.
            Err(failure)
                if post.reply_to.is_some()
                    && failure.code == ErrorCode::Rejected(404)
                    && step.parent_misses < MAX_PARENT_MISSES =>
            {
                step.parent_misses += 1;
                let poll_after = PARENT_PAUSE * 2_u32.pow(step.parent_misses);
                return Ok(Prepared::Processing { at: Checkpoint::of(&step), poll_after });
            }
            made => made?,
        };
        step.whole = Some(container(made));
        cx.save(&step).await?;
    }
    match watch(platform, cx, &mut step, is_moving).await? {
        Some(busy) => Ok(busy),
        None => Ok(Prepared::Ready(Checkpoint::of(&step))),
    }
}

/// Polls every container that is not ready; `None` when all are.
async fn watch<P: Containers>(
    platform: &P,
    cx: &Session<'_>,
    step: &mut Step,
    is_moving: bool,
) -> Result<Option<Prepared>> {
    let now = (cx.now)();
    let mut wait: Option<Duration> = None;
    let mut lost: Option<Lost> = None;
    let is_last_build = step.rebuilds >= MAX_REBUILDS;
    for container in step.items.iter_mut().chain(&mut step.whole).filter(|container| !container.is_ready) {
        let (status, throttle) = status(platform, cx, &container.id).await?;
        match status {
            Status::Finished | Status::Published => container.is_ready = true,
            Status::Processing => {
                wait = wait.max(throttle).max(Some(pause(container.since, now, is_moving)));
            }
            Status::Failed(failure) => lost = Some(Lost::Failed(failure)),
            Status::Expired => lost = Some(Lost::Expired),
            // Meta had outages in which containers could be published and not read.
            Status::Unreadable
                if is_last_build && !(is_moving && now < container.since + BLIND_PROCESSING) =>
            {
                container.is_ready = true;
            }
            Status::Unreadable if is_last_build => wait = wait.max(Some(BLIND_PAUSE)),
            Status::Unreadable => lost = Some(Lost::Unreadable),
        }
    }
    let Some(lost) = lost else {
        return Ok(wait.map(|poll_after| Prepared::Processing { at: Checkpoint::of(step), poll_after }));
    };
    // Another attempt creates new ones.
    let rebuilds = step.rebuilds + u32::from(matches!(lost, Lost::Unreadable));
    *step = Step { media: step.media.clone(), rebuilds, ..Step::default() };
    cx.save(step).await?;
    match lost {
        Lost::Failed(failure) => Err(failure),
        Lost::Expired | Lost::Unreadable => {
            Ok(Some(Prepared::Processing { at: Checkpoint::of(step), poll_after: NOT_READY_BACKOFF }))
        }
    }
}

/// Why containers are dropped.
enum Lost {
    Failed(Failure),
    Expired,
    Unreadable,
}

/// Reads a container's state, with a pause if few calls are left.
async fn status<P: Containers>(
    platform: &P,
    cx: &Session<'_>,
    id: &str,
) -> Result<(Status, Option<Duration>)> {
    let asked = cx.get(format!("{}/{id}", P::API)).query(&[("fields", P::STATUS)]).reply().await;
    match asked {
        Ok(reply) => Ok((platform.status(&reply.read::<Value>()?), throttle(&reply))),
        Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok((Status::Unreadable, None)),
        Err(failure) => Err(failure),
    }
}

/// Publishes the container. A rejection because it is already published means that an earlier call with a
/// lost response published it, or that this call did although it failed, which is known to happen.
pub(crate) async fn commit<P: Containers>(
    platform: &P,
    cx: &Session<'_>,
    post: &PublishRequest,
    at: &Checkpoint,
) -> Result<Committed> {
    let mut step: Step = at.read()?;
    let Some(whole) = step.whole.clone() else {
        return Err(Failure::rejected(409, "nothing was prepared that could be published"));
    };
    let has_parts = platform.has_parts(post)?;
    let address = format!("{}/{}/{}", P::API, cx.account.network_unique_id, P::PUBLISH);
    let reply = cx.post(address).form(&[("creation_id", whole.id.as_str())]).send_raw().await?;
    let is_missing = is_missing(&reply.body);
    let made: Result<Made> = reply.into_result(cx.platform).and_then(|reply| reply.read());
    match made {
        Ok(made) if has_parts => {
            let at = Checkpoint::of(&Step { live: Some(made.id), ..step });
            Ok(Committed::Accepted { at, poll_after: PARTS_PAUSE })
        }
        Ok(made) => Ok(Committed::Live(made.id)),
        Err(failure) if !failure.is_ambiguous() && failure.code != ErrorCode::TokenExpired => {
            match status(platform, cx, &whole.id).await {
                Ok((Status::Published, _)) => {
                    Ok(Committed::Accepted { at: at.clone(), poll_after: Duration::from_secs(2) })
                }
                // At first it may only not be found yet. While an earlier call is in doubt the container stays: it is
                // what tells that call's outcome.
                _ if is_missing && post.commit_begun_at.is_none() => {
                    step.misses += 1;
                    if step.misses >= MAX_MISSES {
                        step = Step { media: step.media, ..Step::default() };
                    }
                    cx.save(&step).await?;
                    Err(failure)
                }
                _ => Err(failure),
            }
        }
        Err(failure) => Err(failure),
    }
}

/// Finds out whether the container was published, and completes a live post with its parts.
pub(crate) async fn locate<P: Containers>(
    platform: &P,
    cx: &Session<'_>,
    post: &PublishRequest,
    at: &Checkpoint,
) -> Result<Located> {
    let located = look(platform, cx, post, at).await?;
    if let Some(id) = located.id() {
        platform.complete(cx, post, id).await?;
    }
    Ok(located)
}

async fn look<P: Containers>(
    platform: &P,
    cx: &Session<'_>,
    post: &PublishRequest,
    at: &Checkpoint,
) -> Result<Located> {
    if post.is_restored {
        return platform.find(cx, post).await;
    }
    let step: Step = at.read()?;
    if let Some(id) = step.live {
        return Ok(Located::certain(id));
    }
    let Some(whole) = step.whole else { return Ok(Located::Absent) };
    let now = (cx.now)();
    let begun = post.begun();
    let (status, throttle) = status(platform, cx, &whole.id).await?;
    match status {
        Status::Finished | Status::Failed(_) => Ok(Located::Absent),
        Status::Processing => {
            let pause = pause(whole.since, now, !post.media.is_empty());
            Ok(Located::Processing { poll_after: throttle.unwrap_or_default().max(pause) })
        }
        // No call returns the post of a container.
        Status::Published | Status::Expired | Status::Unreadable => {
            Ok(match platform.find(cx, post).await? {
                live @ Located::Live(_) => live,
                _ if now < begun + LISTING_LAG => Located::Processing { poll_after: pause(begun, now, true) },
                _ => Located::Unknown,
            })
        }
    }
}

/// Adds a setting as a field: a string unchanged, anything else as JSON. Omits an absent or empty one.
pub(crate) fn set(fields: &mut Fields, name: &'static str, setting: &Option<impl Serialize>) {
    let value = json!(setting);
    if !value.is_null() && value != json!("") && value != json!([]) {
        fields.push((name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
}

/// Reads the fields of a node.
pub(crate) async fn read<T: DeserializeOwned>(cx: &Session<'_>, address: &str, fields: &str) -> Result<T> {
    cx.get(address).query(&[("fields", fields)]).send().await
}

/// Reads the usage of limits from the node that lists them: for each name a prefix of its fields, such as `reply_`.
pub(crate) async fn usage(
    cx: &Session<'_>,
    address: &str,
    limits: &[(&'static str, &str)],
) -> Result<Vec<LimitUsage>> {
    let fields: Vec<_> =
        limits.iter().map(|(_, prefix)| format!("{prefix}quota_usage,{prefix}config")).collect();
    let answer: Value = read(cx, address, &fields.join(",")).await?;
    let node = &answer["data"][0];
    let read = |(name, prefix): &(&str, &str)| {
        let (used, config) = (&node[format!("{prefix}quota_usage")], &node[format!("{prefix}config")]);
        Some(LimitUsage {
            name: (*name).to_owned(),
            used: used.as_u64()?,
            limit: config["quota_total"].as_u64()?,
            window_seconds: config["quota_duration"].as_u64()?,
            resets_at: None,
            is_observed: false,
        })
    };
    let missing = || Failure::upstream(502, "the answer lacks the usage of a limit");
    limits.iter().map(|limit| read(limit).ok_or_else(missing)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn each_documented_error_has_its_error_code() {
        for (status, code, subcode, expected, doubt, revoked) in [
            (400, json!(190), 463, "token_expired", false, false),
            (401, json!(190), 0, "token_expired", false, false),
            (400, json!(190), 458, "token_expired", false, true),
            (400, json!(190), 460, "token_expired", false, true),
            (400, json!(102), 467, "token_expired", false, true),
            (400, json!(190), 459, "token_expired", false, false),
            (400, json!(4), 0, "rate_limited", false, false),
            (403, json!(32), 0, "rate_limited", false, false),
            (400, json!(80_002), 0, "rate_limited", false, false),
            (400, json!(613), 1996, "rate_limited", false, false),
            (400, json!(4), 2_207_051, "rejected_403", false, false),
            (400, json!(9), 2_207_042, "rate_limited", false, false),
            (400, json!(24), 4_279_009, "upstream_503", false, false),
            (400, json!(9007), 2_207_027, "upstream_503", false, false),
            (400, json!(9004), 2_207_052, "upstream_502", false, false),
            (400, json!(506), 1_455_006, "rejected_400", true, false),
            (400, json!(100), 33, "rejected_404", false, false),
            (400, json!(100), 4_279_071, "rejected_400", false, false),
            (400, json!(36_003), 2_207_009, "rejected_400", false, false),
            // Public code tells of it for the text's length on Threads.
            (500, json!(100), 0, "rejected_400", false, false),
            (500, json!(36_003), 2_207_009, "rejected_400", false, false),
            (400, json!(101), 0, "app_refused", false, false),
            (400, json!(3), 0, "app_refused", false, false),
            (400, json!(10), 0, "rejected_403", false, false),
            (403, json!(200), 0, "rejected_403", false, false),
            (400, json!(368), 0, "rejected_400", false, false),
            (400, json!(1), 0, "upstream_500", true, false),
            (500, json!(1), 0, "upstream_500", true, false),
            (503, json!(2), 0, "upstream_503", true, false),
            (400, json!("THREADS_API__LINK_LIMIT_EXCEEDED"), 0, "rejected_400", false, false),
        ] {
            let body = json!({ "error": { "message": "m", "code": code, "error_subcode": subcode } });
            let failure = classify(&Reply::of(status, &[], &body.to_string())).unwrap();
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous(), failure.is_revoked()),
                (expected, doubt, revoked),
                "{status} {body}"
            );
        }
        assert!(classify(&Reply::of(500, &[], "<html>")).is_none());
        for success in [r#"{"id":"1"}"#, r#"{"id":"1","error":{}}"#, r#"{"id":"1","error":{"code":[]}}"#] {
            assert!(classify(&Reply::of(200, &[], success)).is_none(), "{success}");
        }
        for (code, message) in [
            (190, "Error validating application. Application has been deleted."),
            (200, "API access blocked."),
            (100, "Invalid appsecret_proof provided in the API argument"),
            (1, "Error validating client secret."),
        ] {
            let body = json!({ "error": { "message": message, "code": code } });
            let failure = classify(&Reply::of(400, &[], &body.to_string())).unwrap();
            assert_eq!(failure.code, ErrorCode::AppRefused, "{message}");
        }
        // The form of the token endpoints of Threads and Instagram.
        for (message, expected) in [
            ("Invalid platform app", ErrorCode::AppRefused),
            ("Error validating client secret.", ErrorCode::AppRefused),
            ("Matching code was not found or was already used", ErrorCode::TokenExpired),
        ] {
            let body = json!({ "error_type": "OAuthException", "code": 400, "error_message": message });
            let failure = classify(&Reply::of(400, &[], &body.to_string())).unwrap();
            assert_eq!(failure.code, expected, "{message}");
        }
        let transient = json!({ "error": { "message": "m", "code": 7, "is_transient": true } });
        let failure = classify(&Reply::of(400, &[], &transient.to_string())).unwrap();
        assert_eq!(failure.code, ErrorCode::Upstream(503));
    }

    #[test]
    fn a_limit_is_waited_for_as_long_as_its_header_says() {
        let body = r#"{"error":{"message":"m","code":80001}}"#;
        let usage = r#"{"1":[{"type":"pages","call_count":97,"estimated_time_to_regain_access":19}]}"#;
        let retry_after =
            |headers: &[(&'static str, &str)]| classify(&Reply::of(400, headers, body)).unwrap().retry_after;
        let accounts = "x-business-use-case-usage";
        assert_eq!(retry_after(&[(accounts, usage)]), Some(Duration::from_secs(19 * 60)));
        // Without a time, the growing backoff of the attempts outlasts the hour that is counted.
        assert_eq!(retry_after(&[]), None);
        assert_eq!(retry_after(&[("x-app-usage", r#"{"call_count":100}"#)]), None);
        assert_eq!(
            retry_after(&[(accounts, "nonsense"), ("retry-after", "7")]),
            Some(Duration::from_secs(7))
        );
        let cap = json!({ "error": { "message": "m", "code": 9, "error_subcode": 2_207_042 } });
        let cap = classify(&Reply::of(400, &[], &cap.to_string())).unwrap().retry_after.unwrap();
        assert!(cap * (domain::retry::ATTEMPTS - 1) > Duration::from_secs(24 * 3600));
    }

    #[test]
    fn polls_are_rare_when_a_limit_is_nearly_used_up() {
        let app =
            |percent: u64| json!({ "call_count": 3, "total_time": percent, "total_cputime": 1 }).to_string();
        let page = |percent: u64| json!({ "1": [{ "type": "pages", "call_count": percent }] }).to_string();
        for (name, value, is_rare) in [
            ("x-app-usage", app(79), false),
            ("x-app-usage", app(80), true),
            ("x-business-use-case-usage", page(79), false),
            ("x-business-use-case-usage", page(100), true),
            ("x-app-usage", "[7]".to_owned(), false),
        ] {
            assert_eq!(
                throttle(&Reply::of(200, &[(name, &value)], "{}")).is_some(),
                is_rare,
                "{name} {value}"
            );
        }
    }

    #[test]
    fn a_checkpoint_of_metas_tells_the_owner_what_to_do() {
        for subcode in [459, 464] {
            let body = json!({ "error": { "message": "m", "code": 190, "error_subcode": subcode } });
            let failure = classify(&Reply::of(400, &[], &body.to_string())).unwrap();
            assert!(!failure.is_revoked() && failure.message.contains("has to log in"), "{failure}");
        }
    }

    #[test]
    fn times_are_read_in_both_spellings() {
        let expected = moment("2026-09-28T17:05:11+0000");
        assert!(expected.is_some());
        assert_eq!(moment("2026-09-28T17:05:11Z"), expected);
        assert_eq!(moment("yesterday"), None);
    }

    #[test]
    fn figures_are_read_in_all_their_shapes() {
        let insights: Insights = serde_json::from_value(json!({ "data": [
            { "name": "views", "values": [{ "value": 1 }, { "value": 7 }] },
            { "name": "likes", "total_value": { "value": 3 } },
            { "name": "actions", "values": [{ "value": { "like": 2, "share": 5 } }] },
        ] }))
        .unwrap();
        assert_eq!((insights.get("views"), insights.get("likes"), insights.get("none")), (7, 3, 0));
        assert_eq!((insights.get("actions"), insights.part("actions", Some("share"))), (7, 5));
    }
}
