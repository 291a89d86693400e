//! Google Business Profile: posts with My Business v4, locations with its successor APIs.
//! <https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts>
//!
//! A location is an account, and its id is the whole path for creating posts. There is no idempotency key, so
//! after a lost response the location's list is searched. The adapter waits for moderation up to a limit,
//! so that a rejection is reported as a failure. There are no metrics: Google has returned none for single
//! posts since 2023.
//!
//! With the setting `photo` or `video`, the file is added to the location's photos and videos instead:
//! <https://developers.google.com/my-business/content/upload-photos>. Its id has another collection in its path than a
//! post's, and Google does not say whether it passed its review.

use crate::{
    AccountProfile, Adapter, Auth, Checkpoint, ClientAuth, Committed, Deletion, Edit, Editing, Feature,
    History, Idempotency, Identity, Limits, Located, MediaKind, MediaLimit, Metrics, OAuth2, Options, Page,
    Prepared, PublishRequest, Publisher, Publishing, RemotePost, Reply, Result, SelectOption, Session,
    Source, TextLimit,
    check::{ContainerContent, Issue, Severity},
    fit, google,
    listing::{self, Listing, Search},
    pages, required, schema, text,
};
use async_trait::async_trait;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use domain::{ErrorCode, Failure};
use futures::{StreamExt, TryStreamExt, stream};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
    time::Duration,
};
use tracing::warn;
use url::Url;

/// Google Business Profile. <https://developers.google.com/my-business>
struct GoogleBusiness;

const POSTS: &str = "https://mybusiness.googleapis.com/v4";
const ACCOUNTS: &str = "https://mybusinessaccountmanagement.googleapis.com/v1";
const LOCATIONS: &str = "https://mybusinessbusinessinformation.googleapis.com/v1";
const VERIFICATIONS: &str = "https://mybusinessverifications.googleapis.com/v1";

/// Fields of a location that are read.
const LOCATION_FIELDS: &str = "name,title,storeCode,storefrontAddress,metadata";
/// Number of accounts whose locations are read at the same time; an agency has many.
const PARALLEL_ACCOUNTS: usize = 8;

/// Time limit of moderation; a post that is still in moderation then counts as published.
const MODERATION_TIMEOUT: TimeDelta = TimeDelta::minutes(10);

/// A video of a location: <https://support.google.com/business/answer/6103862>. The API's documentation names no type but
/// MP4.
const VIDEO: &[MediaLimit] = &[MediaLimit {
    kind: MediaKind::Video,
    mimes: &["video/mp4"],
    max_bytes: 75 << 20,
    duration: Some(Duration::ZERO..=Duration::from_secs(30)),
    pixels: Some((MIN_VIDEO_SIDE..=u32::MAX, MIN_VIDEO_SIDE..=u32::MAX)),
    ..MediaLimit::ANY
}];
/// Minimum of a video's width and height, in pixels: 720p.
const MIN_VIDEO_SIDE: u32 = 720;

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "google_business",
    name: "Google Business Profile",
    limits: Limits {
        text: TextLimit::characters(1500),
        media: &[MediaLimit {
            kind: MediaKind::Image,
            count: 0..=1,
            mimes: &["image/jpeg", "image/png"],
            min_bytes: 10 << 10,
            max_bytes: 5 << 20,
            pixels: Some((250..=10_000, 250..=10_000)),
            ..MediaLimit::ANY
        }],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(30 * 60) },
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(30) },
        sources: &[Source {
            url: "https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts",
            checked: "2026-11-21",
        }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: google::AUTHORIZE,
        token: google::TOKEN,
        scopes: &["https://www.googleapis.com/auth/business.manage"],
        features: &[(Feature::Publishing, &[&["https://www.googleapis.com/auth/business.manage"]])],
        authorize_parameters: google::PARAMETERS,
        pkce: true,
        client_auth: ClientAuth::Body,
        force_login: google::FORCE_LOGIN,
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &GoogleBusiness,
    analytics: None,
    history: Some(&GoogleBusiness),
    deletion: Some(&GoogleBusiness),
    editing: Ok(&GoogleBusiness),
    options: Some(&GoogleBusiness),
    caps: &[],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Settings {
    /// Topic of the post. Defaults to what the other settings imply.
    topic_type: Option<TopicType>,
    /// Language of the text (BCP 47).
    #[schemars(regex(pattern = schema::LANGUAGE))]
    language_code: Option<String>,
    /// The button below the post; an offer has its own.
    #[schemars(extend("kinds" = ["STANDARD", "EVENT", "ALERT"]))]
    call_to_action: Option<CallToAction>,
    /// The event with its times in the location's time zone. Required for an offer as well.
    #[schemars(extend("kinds" = ["EVENT", "OFFER"]))]
    event: Option<Event>,
    #[schemars(extend("kinds" = ["OFFER"]))]
    offer: Option<Offer>,
    /// Topic of an alert.
    #[schemars(extend("kinds" = ["ALERT"]))]
    alert_type: Option<AlertType>,
    /// Time at which Google shows the post.
    #[schemars(extend("format" = "date-time"))]
    scheduled_time: Option<String>,
    /// Adds the image to the location's photos instead of creating a post. The text becomes its description.
    #[schemars(extend("excludes" = [
        "topicType", "languageCode", "callToAction", "event", "offer", "alertType", "scheduledTime",
    ]))]
    photo: Option<Place>,
    /// Adds the video to the location's videos instead of creating a post, which takes none. The text becomes its
    /// description.
    #[schemars(extend("excludes" = [
        "topicType", "languageCode", "callToAction", "event", "offer", "alertType", "scheduledTime", "photo",
    ]))]
    video: Option<Place>,
    /// How a picture of less than 250 pixels, which is enlarged, is made to fit where it is too long as well: `crop` keeps
    /// its middle, `pad` lays it on a white ground. Without, a small picture is refused.
    #[expect(dead_code, reason = "the fitting of pictures reads it")]
    fit: Option<fit::Fitting>,
}

/// Place among the location's photos and videos.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Place {
    /// Category of the photo or video.
    category: Category,
}

/// A category of photos and videos. A new cover or profile photo replaces the one before, whose resource has a fixed name, so
/// that it is no publication of its own.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Category {
    Exterior,
    Interior,
    Product,
    AtWork,
    FoodAndDrink,
    Menu,
    CommonArea,
    Rooms,
    Teams,
    Additional,
}

domain::string_enum! {
    /// Topic of a post.
    #[derive(JsonSchema)]
    TopicType, "topic" {
        Standard = "STANDARD",
        Event = "EVENT",
        Offer = "OFFER",
        Alert = "ALERT",
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CallToAction {
    action_type: ActionType,
    /// URL that the button links to; CALL has none.
    #[schemars(extend("format" = "uri"))]
    url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum ActionType {
    Book,
    Order,
    Shop,
    LearnMore,
    SignUp,
    Call,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[schemars(length(min = 1, max = 58))]
    title: String,
    /// A date, or a date and a time.
    #[schemars(regex(pattern = MOMENT))]
    start: Option<String>,
    /// A date, or a date and a time.
    #[schemars(regex(pattern = MOMENT))]
    end: Option<String>,
    /// Google's `TimeInterval`, in place of start and end.
    schedule: Option<Map<String, Value>>,
    /// Recurrence of the event, as in Google's API.
    recurrence_info: Option<Map<String, Value>>,
}

const MOMENT: &str = r"^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$";

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Offer {
    #[serde(skip_serializing_if = "Option::is_none")]
    coupon_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "uri"))]
    redeem_online_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terms_conditions: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
enum AlertType {
    #[serde(rename = "COVID_19")]
    Covid19,
}

/// A file that is added to the location's photos and videos.
#[derive(Clone, Copy)]
struct Addition {
    /// Google's word for photos or videos.
    format: &'static str,
    /// Word for people.
    name: &'static str,
    category: Category,
}

impl Settings {
    /// Returns what is added to the location's photos and videos; `None` for a post.
    fn addition(&self) -> Option<Addition> {
        let video =
            || self.video.map(|Place { category }| Addition { format: "VIDEO", name: "video", category });
        let photo = |Place { category }: Place| Addition { format: "PHOTO", name: "image", category };
        self.photo.map(photo).or_else(video)
    }
}

impl Addition {
    /// Returns the reason for which a post without media can't be one.
    fn lacks_file(self) -> String {
        format!("needs a {} for the location's media, and there is none", self.name)
    }
}

/// Returns true if a text outside of its links seems to contain a telephone number: with the prefix of a country or an
/// area, or in the form 555-123-4567. Dates, times and prices are none.
/// <https://support.google.com/business/answer/7213077>
fn has_telephone_number(text: &str) -> bool {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        let forms = [
            r"\+[1-9][0-9 ()./-]{6,}[0-9]",
            r"\(0?[0-9]{2,5}\) ?[0-9][0-9 -]{4,}[0-9]",
            r"\b0[1-9][0-9]{0,3}[ /-]?[0-9]{3,}[0-9 ]{2,}[0-9]\b",
            r"\b[2-9][0-9]{2}[-. ][0-9]{3}[-. ][0-9]{4}\b",
        ];
        Regex::new(&forms.join("|")).expect("the pattern is well-formed")
    });
    let mut rest = text.to_owned();
    for link in text::links(text).into_iter().rev() {
        rest.replace_range(link.range, " ");
    }
    NUMBER.is_match(&rest)
}

#[async_trait]
impl Publisher for GoogleBusiness {
    fn post_kind(&self, _: &ContainerContent<'_>, settings: &Value) -> Option<&'static str> {
        let settings: Settings = schema::read(settings).ok()?;
        // A photo or video of the location takes no other setting.
        settings.addition().is_none().then(|| topic(&settings).as_str())
    }

    fn media_limits(
        &self,
        _account_type: &str,
        _position: usize,
        settings: &Value,
    ) -> Option<&'static [MediaLimit]> {
        let addition = schema::read::<Settings>(settings).ok()?.addition()?;
        (addition.format == "VIDEO").then_some(VIDEO)
    }

    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) else {
            return Vec::new();
        };
        if let Some(addition) = settings.addition() {
            let missing = main.media.is_empty().then(|| {
                let message = format!("{} {}", ADAPTER.id, addition.lacks_file());
                Issue::of_main(Severity::Error, "media_required", "media", message)
            });
            return missing.into_iter().collect();
        }
        let issue = |(setting, message): (&str, &str)| {
            let message = format!("{} {message}", ADAPTER.id);
            Issue::of_setting(Severity::Error, "setting_invalid", ADAPTER.id, setting, message)
        };
        let mut issues: Vec<_> = objections(&settings).into_iter().map(issue).collect();
        if has_telephone_number(main.text) {
            let message = format!(
                "{} rejects many posts with a telephone number in the text; the button CALL calls the location's own",
                ADAPTER.id
            );
            issues.push(Issue::of_main(Severity::Warning, "text_may_be_rejected", "content", message));
        }
        if let Some(CallToAction { action_type: ActionType::Call, url: Some(_) }) = button(&settings) {
            let message = format!("{} calls the location's number, and does not use the url", ADAPTER.id);
            let path = ["config", ADAPTER.id, "callToAction", "url"].map(Value::from).to_vec();
            issues.push(Issue {
                path,
                ..Issue::of_setting(Severity::Warning, "setting_not_used", ADAPTER.id, "", message)
            });
        }
        issues
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        match google::classify(reply) {
            // Google fetches the picture during the call. It may be reachable later, and nothing was published.
            Some(failure)
                if failure.code == ErrorCode::Rejected(400)
                    && failure.message.contains("Fetching image failed") =>
            {
                Some(Failure::upstream(502, failure.message).certain())
            }
            failure => failure,
        }
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        // A location may be managed by several accounts of the same person.
        let mut seen = HashSet::new();
        let mut found = managed(cx).await?;
        found.retain(|(_, location)| location.may_post() && seen.insert(location.name.clone()));
        let mut titles = HashMap::<String, usize>::new();
        for (_, location) in &found {
            *titles.entry(location.title.clone()).or_default() += 1;
        }
        let identity = |(account, location): (String, Location)| {
            let is_unique = titles.get(&location.title) == Some(&1);
            Identity {
                profile: AccountProfile {
                    network_unique_id: format!("{account}/{}", location.name),
                    display_name: if is_unique { location.title.clone() } else { location.full_name() },
                    username: location.title,
                    account_type: "location".to_owned(),
                    profile_image_url: None,
                    profile_url: location.metadata.maps_uri,
                },
                grant: None,
            }
        };
        Ok(found.into_iter().map(identity).collect())
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        check_eligible(cx).await
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        google::revoke(cx).await
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        // Rejected before anything is fetched or created.
        let settings: Settings = post.settings()?;
        match settings.addition() {
            Some(addition) if post.media.is_empty() => {
                return Err(Failure::rejected(422, format!("Google {}", addition.lacks_file())));
            }
            Some(_) => {}
            None => drop(resource(&post.text, &settings)?),
        }
        if !step.is_eligible {
            check_eligible(cx).await?;
            step.is_eligible = true;
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let settings: Settings = post.settings()?;
        if let Some(addition) = settings.addition() {
            return Ok(Committed::Live(add(cx, post, addition).await?));
        }
        let mut body = resource(&post.text, &settings)?;
        if let Some(image) = post.media.first() {
            let address = cx.media.address(image).await;
            let address = address.map_err(|failure| failure.certain())?;
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

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let (step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        if let Some(addition) = settings.addition() {
            return listing::locate(&Additions::new(cx, addition, post).await?, post).await;
        }
        let begun = post.begun();
        let (found, live): (LocalPost, fn(String) -> Located) = match step.post {
            Some(name) => (cx.get(format!("{POSTS}/{name}")).send().await?, Located::certain),
            None => {
                let topic = json!(topic(&settings));
                match listing::find(&LocalPosts { cx, topic }, post).await? {
                    Search::Post(found) => (found, Located::by_text),
                    Search::Absent => return Ok(Located::Absent),
                    Search::TooMany => return Ok(Located::TooMany),
                }
            }
        };
        let age = (cx.now)() - begun;
        Ok(match found.is_settled() {
            Err(failure) => Located::Failed(failure),
            Ok(is_settled) if is_settled || age > MODERATION_TIMEOUT => live(found.name),
            Ok(_) => Located::Processing {
                poll_after: Duration::from_secs(age.num_seconds().clamp(20, 240) as u64 / 2),
            },
        })
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        // The address of a photo or video itself changes over time.
        if id.contains("/media/") {
            return Ok(cx.transport.rewrite_url(&place(cx).await?));
        }
        let post: LocalPost = cx.get(format!("{POSTS}/{id}")).send().await?;
        match post.search_url {
            Some(address) => Ok(cx.transport.rewrite_url(&address)),
            None => Ok(cx.transport.rewrite_url(&place(cx).await?)),
        }
    }
}

#[async_trait]
impl History for GoogleBusiness {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let page = list(cx, cursor).await?;
        let place = match page.items.iter().any(|post| post.search_url.is_none()) {
            true => place(cx).await?,
            false => String::new(),
        };
        Ok(page.map(|post| RemotePost {
            url: cx.transport.rewrite_url(post.search_url.as_deref().unwrap_or(&place)),
            text: post.summary,
            media: post.media.into_iter().filter_map(|media| media.google_url).collect(),
            published_at: post.create_time.unwrap_or_default(),
            metrics: Metrics::default(),
            id: post.name,
        }))
    }
}

#[async_trait]
impl Deletion for GoogleBusiness {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        cx.delete(format!("{POSTS}/{id}")).delete_ok().await
    }
}

/// <https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts/patch>
#[async_trait]
impl Editing for GoogleBusiness {
    fn settings(&self) -> &'static [&'static str] {
        &["callToAction", "event", "offer"]
    }

    fn objection(&self, edit: &Edit) -> Option<String> {
        let settings = schema::read::<Settings>(&edit.settings).ok()?;
        match settings.addition() {
            Some(_) => Some("Google lets no app change the description of a photo or video".to_owned()),
            None => resource(edit.after(), &settings).err().map(|failure| failure.message),
        }
    }

    // The mask names the fields that are set, to the same values when the call is repeated.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        let whole = resource(edit.after(), &schema::read(&edit.settings)?)?;
        let settings = self.settings().iter().copied().filter(|name| edit.sets(name));
        let fields: Vec<_> = edit.text.iter().map(|_| "summary").chain(settings).collect();
        let changes: Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), whole[*field].clone())).collect();
        let call = cx.patch(format!("{POSTS}/{id}")).query(&[("updateMask", fields.join(","))]);
        let changed: LocalPost = call.json(&Value::Object(changes)).send().await?;
        // An edited post is moderated again.
        changed.is_settled().map(drop)
    }
}

#[async_trait]
impl Options for GoogleBusiness {
    fn kinds(&self) -> &'static [&'static str] {
        &["locations"]
    }

    async fn options(
        &self,
        cx: &Session<'_>,
        kind: &str,
        _parent: Option<&str>,
    ) -> Result<Vec<SelectOption>> {
        if kind != "locations" {
            return Err(Failure::rejected(404, format!("Google Business Profile has no list of {kind}")));
        }
        let all = self.identities(cx).await?.into_iter();
        Ok(all
            .map(|one| SelectOption { id: one.profile.network_unique_id, name: one.profile.display_name })
            .collect())
    }
}

/// Returns the parent path of the account's posts: `accounts/1/locations/2`.
fn parent<'a>(cx: &'a Session<'_>) -> &'a str {
    &cx.account.network_unique_id
}

/// Returns the names of all accounts that the login manages; the personal one is the first.
async fn accounts(cx: &Session<'_>) -> Result<Vec<String>> {
    let read = pages(|page: Option<String>| async move {
        let call = cx.get(format!("{ACCOUNTS}/accounts")).query(&[("pageSize", "20")]);
        let found: Accounts = google::paged(call, page.as_deref()).send().await?;
        Ok(Page { items: found.accounts, next: google::next(found.next_page_token) })
    });
    Ok(read.await?.into_iter().map(|account| account.name).collect())
}

/// Returns the locations of all accounts, each with its account. An account that refuses is left out, unless all
/// do.
async fn managed(cx: &Session<'_>) -> Result<Vec<(String, Location)>> {
    let read = stream::iter(accounts(cx).await?)
        .map(|account| async move {
            match locations(cx, &account).await {
                Err(failure) if failure.code.is_permanent() => Ok((account, Err(failure))),
                Err(failure) => Err(failure),
                Ok(locations) => Ok((account, Ok(locations))),
            }
        })
        .buffered(PARALLEL_ACCOUNTS);
    let read: Vec<(String, Result<Vec<Location>>)> = read.try_collect().await?;
    let is_any_read = read.iter().any(|(_, locations)| locations.is_ok());
    let mut found = Vec::new();
    for (account, locations) in read {
        match locations {
            Ok(locations) => {
                found.extend(locations.into_iter().map(|location| (account.clone(), location)));
            }
            Err(failure) if !is_any_read => return Err(failure),
            Err(failure) => {
                warn!(account, error.code = %failure.code, "The locations of {account} are left out: {failure}");
            }
        }
    }
    Ok(found)
}

async fn locations(cx: &Session<'_>, account: &str) -> Result<Vec<Location>> {
    pages(|page: Option<String>| async move {
        let call = cx
            .get(format!("{LOCATIONS}/{account}/locations"))
            .query(&[("readMask", LOCATION_FIELDS), ("pageSize", "100")]);
        let found: Locations = google::paged(call, page.as_deref()).send().await?;
        Ok(Page { items: found.locations, next: google::next(found.next_page_token) })
    })
    .await
}

/// Returns the account's location. Its path in the newer API does not contain the managing account.
async fn location(cx: &Session<'_>) -> Result<Location> {
    let name = location_name(cx);
    cx.get(format!("{LOCATIONS}/{name}")).query(&[("readMask", LOCATION_FIELDS)]).send().await
}

fn location_name<'a>(cx: &'a Session<'_>) -> &'a str {
    parent(cx).find("locations/").map_or(parent(cx), |at| &parent(cx)[at..])
}

/// Fails if the account's location may not post, with Google's reason.
async fn check_eligible(cx: &Session<'_>) -> Result<()> {
    if location(cx).await?.may_post() {
        return Ok(());
    }
    let name = location_name(cx);
    let state: Result<VoiceOfMerchant> =
        cx.get(format!("{VERIFICATIONS}/{name}/VoiceOfMerchantState")).send().await;
    let reason = match &state {
        Ok(state) => state.reason(),
        Err(failure) if failure.code.is_permanent() => "it is not verified",
        Err(_) => return state.map(drop),
    };
    Err(Failure::rejected(403, format!("the location {} can't post: {reason}", parent(cx))))
}

/// Returns the location's public URL, because a post gets its own URL only later.
async fn place(cx: &Session<'_>) -> Result<String> {
    let place = location(cx).await?.metadata.maps_uri;
    Ok(place.unwrap_or_else(|| "https://www.google.com/maps".to_owned()))
}

async fn list(cx: &Session<'_>, page: Option<&str>) -> Result<Page<LocalPost>> {
    let call = cx.get(format!("{POSTS}/{}/localPosts", parent(cx))).query(&[("pageSize", "100")]);
    let list: List = google::paged(call, page).send().await?;
    Ok(Page { items: list.local_posts, next: google::next(list.next_page_token) })
}

/// The location's posts of one topic, in no documented order.
struct LocalPosts<'a> {
    cx: &'a Session<'a>,
    topic: Value,
}

#[async_trait]
impl Listing for LocalPosts<'_> {
    type Item = LocalPost;
    const MAX_PAGES: usize = 20;
    const IS_NEWEST_FIRST: bool = false;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<LocalPost>> {
        list(self.cx, cursor).await
    }

    fn id(other: &LocalPost) -> &str {
        &other.name
    }

    fn published_at(other: &LocalPost) -> Option<DateTime<Utc>> {
        other.create_time
    }

    fn matches(&self, other: &LocalPost, post: &PublishRequest) -> bool {
        other.summary.trim() == post.text.trim() && self.topic == other.topic_type.as_str()
    }
}

/// Adds the post's file to the location's photos and videos, and returns its name there.
async fn add(cx: &Session<'_>, post: &PublishRequest, addition: Addition) -> Result<String> {
    let file = post.media.first();
    let file = file.ok_or_else(|| Failure::rejected(422, format!("Google {}", addition.lacks_file())))?;
    let address = cx.media.address(file).await.map_err(|failure| failure.certain())?;
    let mut body = json!({
        "mediaFormat": addition.format,
        "locationAssociation": { "category": addition.category },
        "sourceUrl": address.as_str(),
    });
    if !post.text.trim().is_empty() {
        body["description"] = json!(post.text);
    }
    let created: MediaItem = cx.post(format!("{POSTS}/{}/media", parent(cx))).json(&body).send().await?;
    Ok(created.name)
}

/// The location's photos and videos, in no documented order.
struct Additions<'a> {
    cx: &'a Session<'a>,
    format: &'static str,
    category: Value,
    /// Name of the file, which ends the address that Google fetched it from.
    file: Option<String>,
}

impl<'a> Additions<'a> {
    async fn new(cx: &'a Session<'a>, addition: Addition, post: &PublishRequest) -> Result<Self> {
        let file = match post.media.first() {
            Some(file) => file_name(&cx.media.address(file).await?),
            None => None,
        };
        Ok(Self { cx, format: addition.format, category: json!(addition.category), file })
    }
}

/// Returns the last part of an address, which does not change when the address is signed again.
fn file_name(address: &Url) -> Option<String> {
    address.path_segments()?.next_back().map(str::to_owned)
}

#[async_trait]
impl Listing for Additions<'_> {
    type Item = MediaItem;
    const MAX_PAGES: usize = 20;
    const IS_NEWEST_FIRST: bool = false;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<MediaItem>> {
        let call = self.cx.get(format!("{POSTS}/{}/media", parent(self.cx))).query(&[("pageSize", "100")]);
        let list: MediaItems = google::paged(call, cursor).send().await?;
        Ok(Page { items: list.media_items, next: google::next(list.next_page_token) })
    }

    fn id(item: &MediaItem) -> &str {
        &item.name
    }

    fn published_at(item: &MediaItem) -> Option<DateTime<Utc>> {
        item.create_time
    }

    fn matches(&self, item: &MediaItem, post: &PublishRequest) -> bool {
        let source = item.source_url.as_ref().and_then(|address| Url::parse(address).ok());
        self.format == item.media_format
            && self.category == item.location_association.category.as_str()
            && item.description.trim() == post.text.trim()
            && source.is_none_or(|source| file_name(&source) == self.file)
    }
}

/// Returns the topic of the post: the setting, else the one that other settings imply.
fn topic(settings: &Settings) -> TopicType {
    match settings.topic_type {
        Some(topic) => topic,
        None if settings.offer.is_some() => TopicType::Offer,
        None if settings.event.is_some() => TopicType::Event,
        None if settings.alert_type.is_some() => TopicType::Alert,
        None => TopicType::Standard,
    }
}

/// Returns the settings that Google would refuse, each with the reason.
fn objections(settings: &Settings) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let topic = topic(settings);
    match (topic, &settings.event) {
        (TopicType::Event | TopicType::Offer, Some(event)) => {
            if event.title.trim().is_empty() {
                found.push(("event", "needs a title of the event"));
            }
            found.extend(schedule(event).err().map(|message| ("event", message)));
        }
        (TopicType::Event | TopicType::Offer, None) => {
            let setting = if settings.topic_type.is_some() { "topicType" } else { "offer" };
            found.push((setting, "needs an event with its title, start and end for an EVENT or OFFER"));
        }
        (TopicType::Standard | TopicType::Alert, _) => {}
    }
    if let Some(CallToAction { action_type, url }) = button(settings)
        && *action_type != ActionType::Call
        && url.as_deref().is_none_or(str::is_empty)
    {
        found.push(("callToAction", "needs a url for callToAction, unless it is CALL"));
    }
    found
}

/// Returns the button below the post: Google shows no other one below an offer.
fn button(settings: &Settings) -> Option<&CallToAction> {
    settings.call_to_action.as_ref().filter(|_| topic(settings) != TopicType::Offer)
}

/// Returns the post's resource without its photo.
fn resource(text: &str, settings: &Settings) -> Result<Value> {
    if let Some((_, message)) = objections(settings).first() {
        return Err(Failure::rejected(422, format!("Google {message}")));
    }
    let topic = topic(settings);
    let mut body = json!({ "topicType": topic });
    if !text.trim().is_empty() {
        body["summary"] = json!(text);
    }
    if let Some(language) = &settings.language_code {
        body["languageCode"] = json!(language);
    }
    if let Some(time) = &settings.scheduled_time {
        body["scheduledTime"] = json!(time);
    }
    if let (TopicType::Event | TopicType::Offer, Some(event)) = (topic, &settings.event) {
        body["event"] = event_of(event)?;
    }
    if let Some(CallToAction { action_type, url }) = button(settings) {
        body["callToAction"] = match action_type {
            ActionType::Call => json!({ "actionType": action_type }),
            _ => json!({ "actionType": action_type, "url": url }),
        };
    }
    if let (TopicType::Offer, Some(offer)) = (topic, &settings.offer) {
        body["offer"] = json!(offer);
    }
    if topic == TopicType::Alert {
        body["alertType"] = json!(settings.alert_type.unwrap_or(AlertType::Covid19));
    }
    Ok(body)
}

/// Returns the event with its schedule; Google requires every part of it.
fn event_of(event: &Event) -> Result<Value> {
    let schedule = schedule(event).map_err(|message| Failure::rejected(422, format!("Google {message}")))?;
    let mut made = json!({ "title": event.title, "schedule": schedule });
    if let Some(recurrence) = &event.recurrence_info {
        made["recurrenceInfo"] = json!(recurrence);
    }
    Ok(made)
}

/// Returns Google's `TimeInterval` of an event.
fn schedule(event: &Event) -> Result<Value, &'static str> {
    if let Some(schedule) = &event.schedule {
        let is_given = |part: &&str| schedule.get(*part).is_some_and(Value::is_object);
        return match ["startDate", "startTime", "endDate", "endTime"].iter().all(is_given) {
            true => Ok(json!(schedule)),
            false => Err("needs startDate, startTime, endDate and endTime in the event's schedule"),
        };
    }
    let day_ends = NaiveTime::from_hms_opt(23, 59, 0).expect("a time of the day");
    let start = event.start.as_deref().and_then(|start| moment(start, NaiveTime::MIN));
    let end = event.end.as_deref().and_then(|end| moment(end, day_ends));
    let (Some(start), Some(end)) = (start, end) else {
        return Err("needs start and end of the event, each a day or a day and a time");
    };
    if end < start {
        return Err("needs an event that ends after it starts");
    }
    let date = |at: NaiveDateTime| json!({ "year": at.year(), "month": at.month(), "day": at.day() });
    let time = |at: NaiveDateTime| json!({ "hours": at.hour(), "minutes": at.minute(), "seconds": at.second(), "nanos": 0 });
    Ok(json!({
        "startDate": date(start), "startTime": time(start), "endDate": date(end), "endTime": time(end),
    }))
}

/// Parses a date with an optional time, which defaults to `usual`.
fn moment(text: &str, usual: NaiveTime) -> Option<NaiveDateTime> {
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|day| day.and_time(usual));
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M"))
        .ok()
        .or_else(day)
}

/// The adapter's checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    /// True when the location was checked and may post.
    #[serde(default)]
    is_eligible: bool,
    /// The created post, which is in moderation.
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
    #[serde(deserialize_with = "required::id")]
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
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(deserialize_with = "required::id")]
    name: String,
    #[serde(default)]
    title: String,
    store_code: Option<String>,
    #[serde(default)]
    storefront_address: Address,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Address {
    address_lines: Vec<String>,
    locality: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    /// True when its owner is verified and may post. Google leaves false out.
    #[serde(default, rename = "hasVoiceOfMerchant")]
    has_voice: bool,
    maps_uri: Option<String>,
}

impl Location {
    fn may_post(&self) -> bool {
        self.metadata.has_voice
    }

    /// Returns the title with what distinguishes the location from others with the same title.
    fn full_name(&self) -> String {
        let address = &self.storefront_address;
        let mut parts: Vec<&str> = vec![&self.title];
        parts.extend(address.address_lines.iter().map(String::as_str));
        parts.extend(address.locality.as_deref());
        parts.retain(|part| !part.is_empty());
        let code = self.store_code.as_deref().filter(|code| !code.is_empty());
        match code {
            Some(code) => format!("{} ({code})", parts.join(", ")),
            None if parts.len() < 2 => format!("{} ({})", self.title, self.name),
            None => parts.join(", "),
        }
    }
}

/// The steps that are left until a location may post.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VoiceOfMerchant {
    wait_for_voice_of_merchant: Option<Value>,
    verify: Option<Value>,
    resolve_ownership_conflict: Option<Value>,
    comply_with_guidelines: Option<Value>,
}

impl VoiceOfMerchant {
    fn reason(&self) -> &'static str {
        match self {
            Self { comply_with_guidelines: Some(_), .. } => "it does not comply with Google's guidelines",
            Self { resolve_ownership_conflict: Some(_), .. } => "another Google account owns it as well",
            Self { verify: Some(verify), .. } if verify["hasPendingVerification"] == true => {
                "it is not verified; the verification that was begun has to be completed"
            }
            Self { wait_for_voice_of_merchant: Some(_), .. } => "it is not verified; Google is reviewing it",
            _ => "it is not verified",
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
    #[serde(deserialize_with = "required::id")]
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
struct MediaItems {
    #[serde(default)]
    media_items: Vec<MediaItem>,
    next_page_token: Option<String>,
}

/// A photo or video of the location.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MediaItem {
    #[serde(deserialize_with = "required::id")]
    name: String,
    #[serde(default)]
    media_format: String,
    #[serde(default)]
    description: String,
    source_url: Option<String>,
    create_time: Option<DateTime<Utc>>,
    #[serde(default)]
    location_association: Association,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Association {
    category: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    google_url: Option<String>,
}

impl LocalPost {
    /// Returns true if moderation is over; fails if the post was rejected. Google returns no reason.
    fn is_settled(&self) -> Result<bool> {
        match self.state.as_str() {
            "REJECTED" => Err(Failure::rejected(
                422,
                "Google rejected the post: it does not comply with the content policy",
            )),
            "LIVE" | "SCHEDULED" | "RECURRING" => Ok(true),
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    #[test]
    fn a_telephone_number_in_a_text_is_told() {
        for text in [
            "Call +49 30 1234567 now",
            "+1 (555) 123-4567",
            "(030) 1234 567",
            "030 123456",
            "0301234567",
            "07700 900123",
            "555-123-4567",
            "Dial 212.555.0123!",
        ] {
            assert!(has_telephone_number(text), "{text}");
        }
        for text in [
            "Open 24.12.2026, 10:00-18:00",
            "01/12/2026 and 2026-12-01",
            "0900-1800",
            "10,000,000 served since 1998",
            "EUR 1200.00, 3 for 2",
            "Code 123456789",
            "https://example.com/0301234567?a=555-123-4567",
            "",
        ] {
            assert!(!has_telephone_number(text), "{text}");
        }
        let content = ContainerContent { text: "Call 030 123456", media: &[] };
        let issues = GoogleBusiness.validate(&[content], &Value::Null);
        assert_eq!(issues[0].code, "text_may_be_rejected");
        let photo = json!({ "photo": { "category": "EXTERIOR" } });
        let issues =
            GoogleBusiness.validate(&[ContainerContent { text: "Call 030 123456", media: &[] }], &photo);
        assert_eq!(issues[0].code, "media_required", "a photo's description is no post");
    }

    #[test]
    fn an_event_has_every_part_of_its_schedule() {
        let event_of = |event: Value| event_of(&serde_json::from_value(event).expect("an event of a test"));
        let made =
            event_of(json!({ "title": "Sale", "start": "2026-12-01", "end": "2026-12-02T18:30" })).unwrap();
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
            json!({ "title": "Sale", "start": "2026-12-01" }),
            json!({ "title": "Sale", "start": "2026-12-02", "end": "2026-12-01" }),
            json!({ "title": "Sale", "start": "2026-13-01", "end": "2026-12-01" }),
        ] {
            assert!(event_of(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_google_refuses_of_the_settings_is_told_before() {
        let told = |settings: Value| -> Vec<_> {
            let issues = check::check(&ADAPTER, &[ContainerContent { text: "a", media: &[] }], &settings);
            issues.into_iter().map(|issue| (issue.code, issue.path[2].clone())).collect()
        };
        let wrong = |setting: &str| vec![("setting_invalid".to_owned(), json!(setting))];
        let event = json!({ "title": "Sale", "start": "2026-12-01", "end": "2026-12-02" });
        for (settings, expected) in [
            (json!({ "callToAction": { "actionType": "LEARN_MORE" } }), wrong("callToAction")),
            (json!({ "callToAction": { "actionType": "CALL" } }), vec![]),
            (json!({ "topicType": "EVENT" }), wrong("topicType")),
            (json!({ "offer": {} }), wrong("offer")),
            (json!({ "event": event }), vec![]),
            (
                json!({ "event": { "title": " ", "start": "2026-12-01", "end": "2026-12-02" } }),
                wrong("event"),
            ),
            (
                json!({ "event": { "title": "Sale", "start": "2026-12-02", "end": "2026-12-01" } }),
                wrong("event"),
            ),
            // Google shows no other button below an offer.
            (
                json!({ "offer": {}, "event": event, "callToAction": { "actionType": "BOOK" } }),
                vec![("setting_not_used".to_owned(), json!("callToAction"))],
            ),
            (
                json!({ "callToAction": { "actionType": "CALL", "url": "https://example.com" } }),
                vec![("setting_not_used".to_owned(), json!("callToAction"))],
            ),
        ] {
            assert_eq!(told(settings.clone()), expected, "{settings}");
            let read = schema::read::<Settings>(&settings).unwrap();
            let is_refused = expected.iter().any(|(code, _)| code == "setting_invalid");
            assert_eq!(resource("a", &read).is_err(), is_refused, "{settings}");
        }
    }
}
