//! Pinterest, over its API v5: <https://developers.pinterest.com/docs/api/v5>.
//!
//! A pin is a picture, up to five of them, or a video, and always belongs to a board. A picture beside a video is its
//! cover. Images are sent in the publishing call, so that our URLs need not be public; they are encoded while they are
//! read. There is no idempotency key: after a lost response, the account's latest pins are searched. The API can't
//! create comments.
//!
//! An app has trial access until Pinterest has seen a video of it creating a pin, and with trial access it
//! creates pins in the API sandbox only: another host, with tokens, boards and pins of its own, which only their
//! owner sees. <https://developers.pinterest.com/docs/developer-tools/sandbox/>

use crate::{
    AccountProfile, Adapter, AltTextLimit, Analytics, AppAccess, Auth, Call, Cap, Checkpoint, Committed,
    Content, Counted, Deletion, Edit, Editing, Encoding, Feature, History, Idempotency, Identity, Limits,
    Located, Media, MediaKind, MediaLimit, OAuth2, Options, Page, Prepared, PublishRequest, Publisher,
    Publishing, RemotePost, Reply, Result, SelectOption, Session, Shape, Source, TextLimit, Window,
    check::{self, ContainerContent, Issue, Severity},
    classify, fit,
    listing::{self, Listing},
    look_up::{self, Findings, Subject},
    pages, required, schema, storage,
    text::collapse_whitespace,
    timeout_for,
    upload::{self, Begun, Processing, Sent, Upload, Uploaded},
};
use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure, Metrics};
use futures::{Stream, StreamExt, stream};
use reqwest::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Pinterest. <https://developers.pinterest.com/docs/api/v5>
struct Pinterest;

const API: &str = "https://api.pinterest.com/v5";
/// API of the sandbox, for apps with trial access.
const SANDBOX_API: &str = "https://api-sandbox.pinterest.com/v5";
/// Name of the board that is created in the API sandbox, where an account begins without any.
const SANDBOX_BOARD: &str = "Fanfare";
/// Error code of a code or refresh token that is not valid.
const INVALID_GRANT: &str = "283";

/// Bytes that are encoded at once; a multiple of three, so that there is no padding between chunks.
const BASE64_BLOCK_BYTES: u64 = 3 << 18;
/// Time between two polls of a video.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Longest alt text.
const MAX_ALT_TEXT: usize = 500;
/// Maximum size of a picture.
const MAX_PICTURE_BYTES: u64 = 20 << 20;
/// Longest side of pictures that are made to have one size, in pixels: twice what Pinterest recommends, and few enough
/// that every picture has few enough bytes, and none is made smaller than the others for it.
const SHARED_SIDE: u32 = 2000;

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "pinterest",
    name: "Pinterest",
    limits: Limits {
        text: TextLimit::characters(800),
        content: Content::Media,
        media: &[
            MediaLimit {
                kind: MediaKind::Image,
                count: 0..=5,
                mimes: &["image/jpeg", "image/png"],
                max_bytes: MAX_PICTURE_BYTES,
                ..MediaLimit::ANY
            },
            MediaLimit {
                kind: MediaKind::Video,
                count: 0..=1,
                mimes: &["video/mp4", "video/quicktime"],
                max_bytes: 2 << 30,
                duration: Some(Duration::from_secs(4)..=Duration::from_secs(15 * 60)),
                encoding: Some(Encoding {
                    video_codecs: &["h264", "hevc"],
                    audio_codecs: &[],
                    frame_rate: None,
                    max_bit_depth: None,
                    chroma: &[],
                    index_first: false,
                    no_edits: false,
                    source: "https://help.pinterest.com/business/article/pinterest-product-specs",
                    checked: "2026-11",
                }),
                ..MediaLimit::ANY
            },
        ],
        // A video with its cover.
        mixed_media: true,
        alt_text: Some(AltTextLimit { max: MAX_ALT_TEXT, kinds: &[MediaKind::Image, MediaKind::Video] }),
        publishing: Publishing::Asynchronous { window: Duration::from_secs(1800) },
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(20) },
        sources: &[Source { url: "https://developers.pinterest.com/docs/api/v5", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://www.pinterest.com/oauth/",
        token: "https://api.pinterest.com/v5/oauth/token",
        trial_token: Some("https://api-sandbox.pinterest.com/v5/oauth/token"),
        scopes: &["user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write"],
        // A pin is created with all four of boards and pins.
        features: &[(
            Feature::Publishing,
            &[&["user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write"]],
        )],
        separator: ",",
        // Only apps from before September 2025 need this; the others ignore it.
        exchange_parameters: &[("continuous_refresh", "true")],
        // A wrong client secret is answered with another code, and costs no account.
        revoked_errors: &[INVALID_GRANT],
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &Pinterest,
    analytics: Some(&Pinterest),
    history: Some(&Pinterest),
    deletion: Some(&Pinterest),
    editing: Ok(&Pinterest),
    options: Some(&Pinterest),
    // 100 writes a minute per user with standard access.
    caps: &[Cap {
        name: "posts",
        limit: 100,
        window: Window::Rolling(Duration::from_mins(1)),
        counts: Counted::All,
    }],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Id of the board to save the pin to. Defaults to the account's only board.
    #[schemars(regex(pattern = "^[0-9]+$"))]
    board_id: Option<String>,
    /// Id of the board's section to save the pin to.
    #[schemars(regex(pattern = "^[0-9]+$"))]
    board_section_id: Option<String>,
    /// Title of the pin.
    #[schemars(length(max = 100))]
    title: Option<String>,
    /// URL that the pin links to.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    link: Option<String>,
    /// Color to show until the image has loaded.
    #[schemars(regex(pattern = "^#[0-9A-Fa-f]{6}$"))]
    dominant_color: Option<String>,
    /// URL of a video's cover image, if no image is beside the video.
    #[schemars(extend("kinds" = ["video"], "format" = "uri", "excludes" = ["cover_image_key_frame_time"]))]
    cover_image_url: Option<String>,
    /// Second of a video to use as its cover, if no image is beside the video. Defaults to 0.
    #[schemars(extend("kinds" = ["video"]))]
    cover_image_key_frame_time: Option<u64>,
    /// Declarations of the pin about AI in it, which Pinterest shows with the pin.
    #[schemars(length(max = 2), extend("kinds" = ["image", "images", "video"], "isPromise" = true))]
    ai_disclosures: Option<Vec<AiDisclosure>>,
    /// Titles, descriptions and links of several pictures, in the order of the pictures. A pin of one picture has its own.
    #[schemars(length(max = 5), extend("kinds" = ["images"]))]
    carousel_slots: Option<Vec<Slot>>,
    /// How several pictures of different shapes get the first one's size: `crop` keeps the middle of each, `pad` lays it on
    /// a white ground. Without, they are refused.
    #[schemars(extend("kinds" = ["images"]))]
    #[expect(dead_code, reason = "the fitting of pictures reads it")]
    fit: Option<fit::Fitting>,
}

/// A declaration about AI. Named by API 5.28, of which only clients that are generated from it are public:
/// <https://github.com/oapicf/pinterest-sdk>.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum AiDisclosure {
    AiModified,
    SyntheticPerformer,
}

/// Properties of one of several pictures.
#[derive(Deserialize, JsonSchema)]
struct Slot {
    title: Option<String>,
    description: Option<String>,
    #[schemars(extend("format" = "uri"))]
    link: Option<String>,
}

impl Settings {
    /// Returns what belongs to the picture at `index` of several, as members of its item.
    fn item(&self, index: usize) -> Map<String, Value> {
        let slot = self.carousel_slots.as_ref().and_then(|slots| slots.get(index));
        let texts = slot.map(|Slot { title, description, link }| {
            [("title", title), ("description", description), ("link", link)]
        });
        let given = texts.into_iter().flatten().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        given.filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name.into(), json!(text))).collect()
    }
}

/// Returns the sizes of several pictures of one pin, as far as they are known; `None` if it has a video or one picture.
fn carousel(media: &[Media]) -> Option<Vec<(u32, u32)>> {
    let has_several = media.len() > 1 && !is_video(media);
    has_several.then(|| media.iter().filter_map(|medium| medium.width.zip(medium.height)).collect())
}

/// Returns the API that serves the session's app.
fn api(cx: &Session<'_>) -> &'static str {
    if is_trial(cx) { SANDBOX_API } else { API }
}

fn is_trial(cx: &Session<'_>) -> bool {
    cx.app.is_some_and(|app| app.access == AppAccess::Trial)
}

#[async_trait]
impl Publisher for Pinterest {
    /// Several pictures have one size: of different ones the first one's, or the smallest if all have the same shape.
    fn shape(&self, media: &[Media], _index: usize, _settings: &Value) -> Option<Shape> {
        let sizes = carousel(media)?;
        let first = *sizes.first()?;
        // One of too many bytes may have to be made smaller, and so are the others then.
        let are_small = media.iter().all(|medium| medium.size_bytes <= MAX_PICTURE_BYTES);
        if are_small && sizes.iter().all(|size| *size == first) {
            return None;
        }
        let have_one_shape = sizes.iter().all(|size| fit::have_one_shape(*size, first));
        let smallest = *sizes.iter().min_by_key(|size| size.0)?;
        let (width, height) = if have_one_shape { smallest } else { first };
        let scale = (f64::from(SHARED_SIDE) / f64::from(width.max(height))).min(1.0);
        let [width, height] = [width, height].map(|side| ((f64::from(side) * scale).round() as u32).max(1));
        Some(Shape::Exactly(width, height))
    }

    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let is_uneven =
            |media| carousel(media).is_some_and(|sizes| sizes.iter().any(|size| *size != sizes[0]));
        let uneven = containers.iter().enumerate().filter(|(_, container)| is_uneven(container.media));
        let has_fit = settings[fit::SETTING].is_string();
        let issue = |(index, container): (usize, &ContainerContent<'_>)| Issue {
            severity: Severity::Error,
            code: "media_dimensions".to_owned(),
            message: format!(
                "pinterest takes several pictures only if all have the same width and height{}",
                if !has_fit && container.media.iter().all(fit::is_readable) { fit::REMEDY } else { "" }
            ),
            path: vec![json!("containers"), json!(index), json!("media")],
        };
        let mut issues: Vec<Issue> = uneven.map(issue).collect();
        if let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) {
            issues.extend(objections(main.media, &settings).into_iter().map(|(setting, message)| {
                let message = format!("pinterest {message}");
                match setting {
                    None => Issue::of_main(Severity::Error, "media_mixed", "media", message),
                    Some(setting) => {
                        Issue::of_setting(Severity::Error, "settings_conflict", ADAPTER.id, setting, message)
                    }
                }
            }));
            issues.extend(alts(main.media).1.into_iter().map(unheard));
        }
        issues
    }

    fn looks_up(&self, _subject: &Subject) -> bool {
        // A pin needs a board, also where none is named.
        true
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings: Settings = schema::read(&subject.settings)?;
        let board = match &settings.board_id {
            Some(board) => {
                let answer = cx.get(format!("{}/boards/{board}", api(cx))).send_ok().await;
                if look_up::found(answer)?.is_none() {
                    let message = format!("shows the account no board {board}");
                    found.error(look_up::NOT_FOUND, "board_id", &message);
                    return Ok(());
                }
                Some(board.clone())
            }
            None => match sole(cx, &boards(cx).await?) {
                Ok(board) => board,
                Err(message) => {
                    let message = format!("publishes no pin without a board: {message}");
                    found.error(look_up::REQUIRED, "board_id", &message);
                    return Ok(());
                }
            },
        };
        if let (Some(section), Some(board)) = (&settings.board_section_id, board)
            && sections(cx, &board).await?.iter().all(|known| known.id != *section)
        {
            let message = format!("has no section {section} in the board {board}");
            found.error(look_up::NOT_FOUND, "board_section_id", &message);
        }
        Ok(())
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        if reply.status.is_success() {
            return None;
        }
        let code = reply.body["code"].as_u64().unwrap_or_default();
        let message = classify::message(reply);
        match (reply.status.as_u16(), code) {
            (400, 1104) => Some(Failure::token_expired(message)),
            // Transient: the file may be reachable later. Nothing was published.
            (400, _) if message.contains("Unable to reach") => {
                Some(Failure::upstream(502, message).certain())
            }
            // A missing scope, or another account's board: a new token does not help.
            (401, 3 | 7 | 29) => Some(Failure::rejected(401, message)),
            (403, _) if message.contains("Trial access") => {
                let advice = "the app has trial access: set extra_config.access of its network to trial, so that \
                              pins go to Pinterest's API sandbox, or ask Pinterest for standard access";
                Some(Failure::app_refused(format!("{advice} ({message})"), None))
            }
            (403, _) => Some(Failure::rejected(403, message)),
            (429, _) => Some(Failure::rate_limited(message, reset(reply))),
            _ => None,
        }
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let me: User = cx.get(format!("{}/user_account", api(cx))).send().await?;
        Ok(vec![Identity {
            profile: AccountProfile {
                display_name: me.business_name.filter(|name| !name.is_empty()).unwrap_or(me.username.clone()),
                profile_url: Some(format!("https://www.pinterest.com/{}/", me.username)),
                account_type: if me.account_type.as_deref() == Some("BUSINESS") {
                    "business"
                } else {
                    "profile"
                }
                .to_owned(),
                profile_image_url: me.profile_image.filter(|url| !url.is_empty()),
                network_unique_id: me.id,
                username: me.username,
            },
            grant: None,
        }])
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        let settings: Settings = post.settings()?;
        let is_video = is_video(&post.media);
        if is_video && is_trial(cx) {
            let message =
                "an app with trial access can't create video pins, which Pinterest's API sandbox lacks";
            return Err(Failure::rejected(403, message));
        }
        if step.board.is_none() {
            step.board = Some(board(cx, &settings).await?);
            cx.save(&step).await?;
        }
        // Images are sent in the publishing call.
        let videos = post.media.iter().filter(|media| media.kind == MediaKind::Video);
        let videos: Vec<Media> = videos.cloned().collect();
        let pause = upload::advance(self, cx, &videos, &mut step, |step| &mut step.uploads).await?;
        Ok(upload::prepared(&step, pause))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let step: Step = at.read()?;
        let settings: Settings = post.settings()?;
        let (length, body) = body(cx, post, &settings, &step)?;
        let address = format!("{}/pins", api(cx));
        let pin: Result<Created> = cx.post(&address).upload("application/json", length, body).send().await;
        match pin {
            // The pictures are too large to be sent together: Pinterest fetches them from us.
            Err(failure)
                if failure.code == ErrorCode::Rejected(413)
                    && (step.uploads.is_empty() || cover(&post.media).is_some()) =>
            {
                let body = body_of_addresses(cx, post, &settings, &step).await?;
                let pin: Created = cx.post(&address).json(&body).send().await?;
                Ok(Committed::Live(pin.id))
            }
            pin => Ok(Committed::Live(pin?.id)),
        }
    }

    /// Returns the time limit, which allows for images in base64 in the body.
    fn commit_limit(&self, post: &PublishRequest) -> Duration {
        let pictures = post.media.iter().filter(|media| media.kind == MediaKind::Image);
        timeout_for(pictures.map(|picture| picture.size_bytes / 3 * 4).sum())
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let (step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        listing::locate(&Pins { cx, board: step.board, settings }, post).await
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        Ok(address(cx, id))
    }
}

#[async_trait]
impl Analytics for Pinterest {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let address = format!("{}/pins/{id}", api(cx));
        let pin: Pin = cx.get(address).query(&[("pin_metrics", "true")]).send().await?;
        let mut metrics = pin.metrics();
        if pin.media.kind.as_deref() == Some("video") {
            metrics.video_views = views(cx, id).await?;
        }
        Ok(metrics)
    }
}

/// Returns the views of a video, as far back as Pinterest stores them; only business accounts have any.
async fn views(cx: &Session<'_>, id: &str) -> Result<u64> {
    let today = (cx.now)().date_naive();
    let start = today - TimeDelta::days(89);
    let answer: Result<BTreeMap<String, Figures>> = cx
        .get(format!("{}/pins/{id}/analytics", api(cx)))
        .query(&[
            ("start_date", start.to_string().as_str()),
            ("end_date", today.to_string().as_str()),
            ("metric_types", "VIDEO_MRC_VIEW"),
        ])
        .send()
        .await;
    match answer {
        Ok(figures) => {
            let views = figures.get("all").and_then(|all| all.summary_metrics.get("VIDEO_MRC_VIEW").copied());
            Ok(views.flatten().unwrap_or_default().max(0.0) as u64)
        }
        Err(failure) if failure.code.is_permanent() => Ok(0),
        Err(failure) => Err(failure),
    }
}

#[async_trait]
impl History for Pinterest {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        Ok(pins(cx, cursor, true).await?.map(|pin| RemotePost {
            url: address(cx, &pin.id),
            media: pin.media.addresses(),
            metrics: pin.metrics(),
            text: pin.description.unwrap_or_default(),
            published_at: pin.created_at.unwrap_or_default(),
            id: pin.id,
        }))
    }
}

#[async_trait]
impl Deletion for Pinterest {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        cx.delete(format!("{}/pins/{id}", api(cx))).delete_ok().await
    }
}

/// <https://developers.pinterest.com/docs/api/v5/pins-update/>
#[async_trait]
impl Editing for Pinterest {
    fn settings(&self) -> &'static [&'static str] {
        &["title", "link", "board_id", "board_section_id"]
    }

    // Each member is set to a value, so that a repeated call changes nothing.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        let mut changes = Map::new();
        if let Some(text) = &edit.text {
            let text = Some(text).filter(|text| !text.is_empty());
            changes.insert("description".into(), json!(text));
        }
        for name in self.settings().iter().filter(|name| edit.sets(name)) {
            changes.insert((*name).into(), edit.settings[*name].clone());
        }
        cx.patch(format!("{}/pins/{id}", api(cx))).json(&Value::Object(changes)).send_ok().await
    }
}

#[async_trait]
impl Options for Pinterest {
    fn kinds(&self) -> &'static [&'static str] {
        &["boards", "board_sections"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>> {
        match (kind, parent) {
            ("boards", _) => boards(cx).await,
            ("board_sections", Some(board)) if is_id(board) => sections(cx, board).await,
            ("board_sections", _) => {
                Err(Failure::rejected(422, "sections belong to a board: name its id as parent"))
            }
            _ => Err(Failure::rejected(422, format!("Pinterest has no list of {kind}"))),
        }
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if the pin is a video.
fn is_video(media: &[Media]) -> bool {
    media.iter().any(|medium| medium.kind == MediaKind::Video)
}

/// Returns the image beside a video, which is its cover.
fn cover(media: &[Media]) -> Option<&Media> {
    media.iter().find(|medium| is_video(media) && medium.kind == MediaKind::Image)
}

/// Returns what does not fit the media: the setting, if it is one, and a message.
fn objections(media: &[Media], settings: &Settings) -> Vec<(Option<&'static str>, String)> {
    let slots = settings.carousel_slots.as_ref().map_or(0, Vec::len);
    if let Some(count) = carousel(media).map(|_| media.len()).filter(|count| slots > *count) {
        let message = format!(
            "takes one of carousel_slots for each picture, and there are {slots} for {count} pictures"
        );
        return vec![(Some("carousel_slots"), message)];
    }
    let Some(_) = cover(media) else { return Vec::new() };
    let count = media.iter().filter(|medium| medium.kind == MediaKind::Image).count();
    let mixed = (count > 1)
        .then(|| (None, format!("takes one image beside a video, its cover, and there are {count}")));
    let given = [
        ("cover_image_url", settings.cover_image_url.is_some()),
        ("cover_image_key_frame_time", settings.cover_image_key_frame_time.is_some()),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(setting, _)| {
        (Some(setting), format!("takes one cover of a video: {setting}, or the image beside it"))
    });
    mixed.into_iter().chain(given).collect()
}

/// Returns the account's boards.
async fn boards(cx: &Session<'_>) -> Result<Vec<SelectOption>> {
    names(cx, &format!("{}/boards", api(cx))).await
}

/// Returns the sections of a board.
async fn sections(cx: &Session<'_>, board: &str) -> Result<Vec<SelectOption>> {
    names(cx, &format!("{}/boards/{board}/sections", api(cx))).await
}

/// Returns a whole list of named objects, except those for ads only.
async fn names(cx: &Session<'_>, address: &str) -> Result<Vec<SelectOption>> {
    let all = pages(|bookmark: Option<String>| async move {
        page::<Named>(cx.get(address).query(&[("page_size", "250")]), bookmark.as_deref()).await
    });
    let open = all.await?.into_iter().filter(|one| !one.is_ads_only);
    Ok(open.map(|one| SelectOption { id: one.id, name: one.name }).collect())
}

/// Returns the selected board, or the only one.
async fn board(cx: &Session<'_>, settings: &Settings) -> Result<String> {
    if let Some(board) = &settings.board_id {
        return Ok(board.clone());
    }
    match sole(cx, &boards(cx).await?) {
        Ok(Some(board)) => Ok(board),
        Ok(None) => {
            let board = json!({ "name": SANDBOX_BOARD });
            let made: Created = cx.post(format!("{}/boards", api(cx))).json(&board).send().await?;
            Ok(made.id)
        }
        Err(message) => Err(Failure::rejected(422, format!("a pin needs a board: {message}"))),
    }
}

/// Returns the board of a pin that names none: the account's only one, or `None` for one that is created in Pinterest's
/// API sandbox, where nobody but its owner sees it and Pinterest's own pages can't create one.
fn sole(cx: &Session<'_>, boards: &[SelectOption]) -> Result<Option<String>, String> {
    match boards {
        [board] => Ok(Some(board.id.clone())),
        [] if is_trial(cx) => Ok(None),
        [] => Err("the account has none".to_owned()),
        boards => Err(format!("name one of the account's {} as board_id", boards.len())),
    }
}

#[async_trait]
impl Upload for Pinterest {
    /// The medium's id.
    type Ticket = String;

    /// Registers a video and sends its bytes; an upload that no pin uses expires.
    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<String>> {
        let begun: Registered =
            cx.post(format!("{}/media", api(cx))).json(&json!({ "media_type": "video" })).send().await?;
        let Some(address) = begun.upload_url else {
            let message = format!("Pinterest gave no address to upload medium {} to", begun.media_id);
            return Err(Failure::upstream(502, message).certain());
        };
        let body = Body::wrap_stream(cx.stream(media));
        let file = storage::File { name: &media.filename, mime: &media.mime, length: media.size_bytes, body };
        storage::send(cx, &address, begun.upload_parameters, file).await?;
        Ok(Begun { ticket: begun.media_id, expires_at: None, sent: Sent::Whole(Processing::Unchecked) })
    }

    async fn status(
        &self,
        cx: &Session<'_>,
        _media: &Media,
        upload: &mut Uploaded<String>,
    ) -> Result<Processing> {
        let now: Registered = cx.get(format!("{}/media/{}", api(cx), upload.ticket)).send().await?;
        Ok(match now.status.as_deref() {
            Some("succeeded") => Processing::Done,
            Some("failed") => Processing::Failed(Failure::rejected(
                400,
                "Pinterest could not process the video and does not say why",
            )),
            _ => Processing::Busy(POLL_INTERVAL),
        })
    }
}

/// A chunk of a streamed body.
enum Piece {
    Text(String),
    Picture(Box<Media>),
}

/// Returns the members of a pin except its media.
fn members(post: &PublishRequest, settings: &Settings, step: &Step) -> Map<String, Value> {
    let mut pin = Map::new();
    if let Some(board) = &step.board {
        pin.insert("board_id".into(), json!(board));
    }
    for (name, setting) in [
        ("board_section_id", &settings.board_section_id),
        ("title", &settings.title),
        ("link", &settings.link),
        ("dominant_color", &settings.dominant_color),
    ] {
        if let Some(text) = setting.as_ref().filter(|text| !text.is_empty()) {
            pin.insert(name.into(), json!(text));
        }
    }
    if !post.text.is_empty() {
        pin.insert("description".into(), json!(post.text));
    }
    if let Some(alt) = alt(&post.media) {
        pin.insert("alt_text".into(), json!(alt));
    }
    if let Some(values) = settings.ai_disclosures.as_ref().filter(|values| !values.is_empty()) {
        pin.insert("ai_disclosures".into(), json!({ "values": values }));
    }
    pin
}

/// Returns the body of the publishing call with the addresses of the pictures instead of their bytes.
async fn body_of_addresses(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
) -> Result<Value> {
    let mut items = Vec::new();
    for (index, media) in post.media.iter().filter(|media| media.kind == MediaKind::Image).enumerate() {
        let address = cx.media.address(media).await?;
        let mut item = settings.item(index);
        item.insert("url".into(), json!(address.as_str()));
        items.push(Value::Object(item));
    }
    let source = match (items.as_mut_slice(), step.uploads.first()) {
        ([one], Some(video)) => {
            json!({ "source_type": "video_id", "media_id": video.ticket, "cover_image_url": one["url"].take() })
        }
        ([one], None) => json!({ "source_type": "image_url", "url": one["url"].take() }),
        _ => json!({ "source_type": "multiple_image_urls", "items": items }),
    };
    let mut pin = members(post, settings, step);
    pin.insert("media_source".into(), source);
    Ok(Value::Object(pin))
}

/// Returns the body of the publishing call and its length. Images are read and encoded while it is sent.
fn body(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
) -> Result<(u64, impl Stream<Item = Result<Bytes>> + Send + use<>)> {
    let mut head = Value::Object(members(post, settings, step)).to_string();
    head.pop();
    let comma = if head.len() > 1 { "," } else { "" };
    let mut pieces = vec![Piece::Text(format!("{head}{comma}\"media_source\":"))];
    match (post.media.as_slice(), step.uploads.first(), cover(&post.media)) {
        (_, Some(video), Some(cover)) => {
            let open = format!("{{\"source_type\":\"video_id\",\"media_id\":{},", json!(video.ticket));
            picture(&mut pieces, &open, "cover_image_", cover)?;
        }
        ([media], Some(video), None) if media.kind == MediaKind::Video => {
            let mut source = json!({ "source_type": "video_id", "media_id": video.ticket });
            match &settings.cover_image_url {
                Some(url) => source["cover_image_url"] = json!(url),
                None => {
                    let second = settings.cover_image_key_frame_time.unwrap_or(0);
                    source["cover_image_key_frame_time"] = json!(second);
                }
            }
            pieces.push(Piece::Text(source.to_string()));
        }
        ([media], ..) if media.kind == MediaKind::Image => {
            picture(&mut pieces, "{\"source_type\":\"image_base64\",", "", media)?;
        }
        (media @ [_, _, ..], _, None) => {
            pieces.push(Piece::Text("{\"source_type\":\"multiple_image_base64\",\"items\":[".into()));
            for (index, media) in media.iter().enumerate() {
                let mut item = Value::Object(settings.item(index)).to_string();
                item.pop();
                let (before, after) =
                    (if index > 0 { "," } else { "" }, if item.len() > 1 { "," } else { "" });
                picture(&mut pieces, &format!("{before}{item}{after}"), "", media)?;
            }
            pieces.push(Piece::Text("]}".into()));
        }
        _ => return Err(Failure::rejected(400, "a pin needs pictures or an uploaded video")),
    }
    pieces.push(Piece::Text("}".into()));
    let length = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.len() as u64,
            Piece::Picture(media) => media.size_bytes.div_ceil(3) * 4,
        })
        .sum();
    let store = cx.media.clone();
    let body = stream::iter(pieces).flat_map(move |piece| match piece {
        Piece::Text(text) => stream::once(async { Ok(Bytes::from(text)) }).boxed(),
        Piece::Picture(media) => {
            let store = store.clone();
            let starts = stream::iter((0..media.size_bytes).step_by(BASE64_BLOCK_BYTES as usize));
            starts
                .then(move |start| {
                    let (store, media) = (store.clone(), media.clone());
                    async move {
                        let bytes = store
                            .read(&media, start..(start + BASE64_BLOCK_BYTES).min(media.size_bytes))
                            .await?;
                        Ok(Bytes::from(BASE64_STANDARD.encode(bytes)))
                    }
                })
                .boxed()
        }
    });
    Ok((length, body))
}

/// Adds an image to the end of an object; the names of its members begin with `prefix`.
fn picture(pieces: &mut Vec<Piece>, open: &str, prefix: &str, media: &Media) -> Result<()> {
    if media.kind != MediaKind::Image {
        return Err(Failure::rejected(415, format!("a pin of several media takes no {}", media.kind)));
    }
    let mime = json!(media.mime);
    pieces.push(Piece::Text(format!("{open}\"{prefix}content_type\":{mime},\"{prefix}data\":\"")));
    pieces.push(Piece::Picture(Box::new(media.clone())));
    pieces.push(Piece::Text("\"}".into()));
    Ok(())
}

/// Returns the alt text of a pin, which has one whatever it shows; its items have none.
fn alt(media: &[Media]) -> Option<String> {
    let (texts, _) = alts(media);
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns the alt texts of a pin's media, in order and up to the limit, and the indices of the media whose alt text has
/// no room.
fn alts(media: &[Media]) -> (Vec<&str>, Vec<usize>) {
    let (mut texts, mut left_out): (Vec<&str>, Vec<usize>) = Default::default();
    let all = media.iter().enumerate().filter_map(|(index, media)| Some((index, media.alt_text.as_deref()?)));
    for (index, alt) in all.filter(|(_, alt)| !alt.is_empty()) {
        let length: usize = texts.iter().map(|one| one.chars().count() + 1).sum();
        match length + alt.chars().count() <= MAX_ALT_TEXT {
            _ if texts.contains(&alt) => {}
            true => texts.push(alt),
            false => left_out.push(index),
        }
    }
    (texts, left_out)
}

/// Says that the alt text of the medium at `index` is left out.
fn unheard(index: usize) -> Issue {
    let message = format!(
        "pinterest has one alt text of a pin, of {MAX_ALT_TEXT} characters, to which those of its media are joined; \
         that of medium {} is left out",
        index + 1
    );
    check::alt_text_left_out(index, message)
}

/// The account's pins.
struct Pins<'a> {
    cx: &'a Session<'a>,
    board: Option<String>,
    /// Settings of the pin to find.
    settings: Settings,
}

#[async_trait]
impl Listing for Pins<'_> {
    type Item = Pin;
    const MAX_PAGES: usize = 4;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Pin>> {
        // Without figures: a look-up depends on nothing that it does not compare.
        pins(self.cx, cursor, false).await
    }

    fn id(pin: &Pin) -> &str {
        &pin.id
    }

    fn published_at(pin: &Pin) -> Option<DateTime<Utc>> {
        pin.created_at
    }

    fn matches(&self, pin: &Pin, post: &PublishRequest) -> bool {
        pin.matches(post, self.board.as_deref(), &self.settings)
    }
}

/// Returns one page of the account's pins, newest first.
async fn pins(cx: &Session<'_>, bookmark: Option<&str>, with_metrics: bool) -> Result<Page<Pin>> {
    let call = cx.get(format!("{}/pins", api(cx)));
    let call = call.query(&[("page_size", "100"), ("pin_filter", "exclude_repins")]);
    let call = if with_metrics { call.query(&[("pin_metrics", "true")]) } else { call };
    page(call, bookmark).await
}

/// Sends the call for a page of a list.
async fn page<T: DeserializeOwned>(call: Call, bookmark: Option<&str>) -> Result<Page<T>> {
    let call = match bookmark {
        Some(bookmark) => call.query(&[("bookmark", bookmark)]),
        None => call,
    };
    let list: List<T> = call.send().await?;
    Ok(Page { items: list.items, next: list.bookmark.filter(|bookmark| !bookmark.is_empty()) })
}

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.transport.rewrite_url(&format!("https://www.pinterest.com/pin/{id}/"))
}

/// Returns the wait in the headers, in seconds. Some responses list further windows after the first number.
fn reset(reply: &Reply) -> Option<Duration> {
    let seconds = reply.header("x-ratelimit-reset").and_then(|value| {
        let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        value[..digits].parse().ok()
    });
    seconds.map(Duration::from_secs).or_else(|| classify::retry_after(reply))
}

/// The adapter's checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    board: Option<String>,
    #[serde(default)]
    uploads: Vec<Uploaded<String>>,
}

#[derive(Deserialize)]
struct Created {
    #[serde(deserialize_with = "required::id")]
    id: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(deserialize_with = "required::id")]
    id: String,
    username: String,
    account_type: Option<String>,
    business_name: Option<String>,
    profile_image: Option<String>,
}

#[derive(Deserialize)]
struct Registered {
    #[serde(deserialize_with = "required::id")]
    media_id: String,
    status: Option<String>,
    upload_url: Option<String>,
    #[serde(default)]
    upload_parameters: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
    bookmark: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    is_ads_only: bool,
}

#[derive(Deserialize)]
struct Figures {
    #[serde(default)]
    summary_metrics: BTreeMap<String, Option<f64>>,
}

#[derive(Deserialize)]
struct Pin {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default, deserialize_with = "time")]
    created_at: Option<DateTime<Utc>>,
    board_id: Option<String>,
    title: Option<String>,
    description: Option<String>,
    link: Option<String>,
    alt_text: Option<String>,
    #[serde(default)]
    media: Shown,
    /// Of no documented type.
    #[serde(default)]
    pin_metrics: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown {
    #[serde(rename = "media_type")]
    kind: Option<String>,
    images: Option<BTreeMap<String, Size>>,
    items: Vec<Item>,
    cover_image_url: Option<String>,
    video_url: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    images: Option<BTreeMap<String, Size>>,
    title: Option<String>,
    link: Option<String>,
}

impl Item {
    /// Returns true unless its title or link shows that it is another picture's.
    fn matches(&self, slot: &Slot) -> bool {
        let agree = |own: &Option<String>, sent: &Option<String>, same: fn(&str, &str) -> bool| {
            own.as_deref().zip(sent.as_deref()).is_none_or(|(own, sent)| same(own, sent))
        };
        agree(&self.title, &slot.title, |a, b| collapse_whitespace(a) == collapse_whitespace(b))
            && agree(&self.link, &slot.link, |a, b| bare_link(a) == bare_link(b))
    }
}

#[derive(Deserialize)]
struct Size {
    url: Option<String>,
    #[serde(default)]
    width: Option<u64>,
}

impl Shown {
    fn addresses(&self) -> Vec<String> {
        let largest = |images: &Option<BTreeMap<String, Size>>| {
            let sizes = images.as_ref()?.values().filter(|size| size.url.is_some());
            sizes.max_by_key(|size| size.width)?.url.clone()
        };
        let one = self.video_url.clone().or_else(|| largest(&self.images));
        let one = one.or_else(|| self.cover_image_url.clone());
        one.into_iter().chain(self.items.iter().filter_map(|item| largest(&item.images))).collect()
    }
}

impl Pin {
    /// Returns true if it has the content of `post`.
    fn matches(&self, post: &PublishRequest, board: Option<&str>, settings: &Settings) -> bool {
        let same = |kept: &Option<String>, sent: &str| {
            collapse_whitespace(kept.as_deref().unwrap_or_default()) == collapse_whitespace(sent)
        };
        let kind = match post.media.as_slice() {
            media if is_video(media) => "video",
            [_] => "image",
            _ => "multiple_images",
        };
        board.is_none_or(|board| self.board_id.as_deref() == Some(board))
            && self.media.kind.as_deref().is_none_or(|own| own == kind)
            && same(&self.description, &post.text)
            && settings.title.as_ref().is_none_or(|title| title.is_empty() || same(&self.title, title))
            && self
                .link
                .as_deref()
                .is_none_or(|link| bare_link(link) == bare_link(settings.link.as_deref().unwrap_or_default()))
            && alt(&post.media).is_none_or(|alt| self.alt_text.is_none() || same(&self.alt_text, &alt))
            && self
                .media
                .items
                .iter()
                .zip(settings.carousel_slots.iter().flatten())
                .all(|(a, b)| a.matches(b))
    }

    fn metrics(&self) -> Metrics {
        let figure = |name: &str| {
            let window = |key: &str| self.pin_metrics.get(key)?.get(name)?.as_f64();
            window("lifetime_metrics").or_else(|| window("90d")).unwrap_or(0.0).max(0.0) as u64
        };
        Metrics {
            impressions: figure("impression"),
            likes: figure("reaction"),
            comments: figure("comment"),
            saves: figure("save"),
            clicks: figure("clickthrough"),
            ..Metrics::default()
        }
    }
}

/// Returns a link without the parts that Pinterest may write in another way.
fn bare_link(link: &str) -> &str {
    let link = link.trim();
    let rest = link.strip_prefix("https://").or_else(|| link.strip_prefix("http://")).unwrap_or(link);
    rest.trim_end_matches('/')
}

/// Parses a time with or without a time zone, which is UTC.
fn time<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<DateTime<Utc>>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    Ok(text.and_then(|text| {
        let zoned = DateTime::parse_from_rfc3339(&text).map(|at| at.to_utc());
        zoned
            .or_else(|_| NaiveDateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f").map(|at| at.and_utc()))
            .ok()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&'static str, &str)], text: &str) -> Failure {
        Reply::of(status, headers, text).into_result(&ADAPTER).unwrap_err()
    }

    fn described(alt: &str) -> Media {
        Media {
            id: uuid::Uuid::nil(),
            kind: MediaKind::Image,
            mime: "image/png".into(),
            filename: "a.png".into(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: None,
            alt_text: Some(alt.into()),
            facts: None,
            rendition: None,
        }
    }

    #[test]
    fn each_documented_error_has_its_error_code() {
        for (status, body, code, doubt) in [
            (
                400,
                r#"{"code":1,"message":"Invalid request: 'x' does not match '^\\d+$'"}"#,
                "rejected_400",
                false,
            ),
            (400, r#"{"code":1,"message":"Unable to reach the URL."}"#, "upstream_502", false),
            (
                400,
                r#"{"code":1104,"message":"The token is not valid or has expired."}"#,
                "token_expired",
                false,
            ),
            (401, r#"{"code":2,"message":"Authentication failed."}"#, "token_expired", false),
            (401, r#"{"code":3,"message":"Authorization failed."}"#, "rejected_401", false),
            (401, r#"{"code":29,"message":"You are not permitted."}"#, "rejected_401", false),
            (403, r#"{"code":7,"message":"Not authorized."}"#, "rejected_403", false),
            (
                403,
                r#"{"code":29,"message":"Apps with Trial access may not create Pins in production https://api.pinterest.com - use API Sandbox https://api-sandbox.pinterest.com instead."}"#,
                "app_refused",
                false,
            ),
            (403, r#"{"code":2625,"message":"Disapproved."}"#, "rejected_403", false),
            (404, r#"{"code":40,"message":"Board not found."}"#, "rejected_404", false),
            (404, r#"{"code":50,"message":"Pin not found."}"#, "rejected_404", false),
            (409, r#"{"code":409,"message":"Conflict"}"#, "rejected_409", false),
            (429, r#"{"code":8,"message":"This request exceeded a rate limit."}"#, "rate_limited", false),
            (500, "", "upstream_500", true),
            (503, r#"{"code":4197,"message":"off"}"#, "upstream_503", true),
        ] {
            let failure = failure(status, &[], body);
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (code, doubt),
                "{status} {body}"
            );
            assert!(!failure.is_revoked());
        }
    }

    #[test]
    fn the_wait_of_a_limit_is_its_first_number_of_seconds() {
        for value in ["17", "17, 3;w=1"] {
            let failure = failure(429, &[("x-ratelimit-reset", value)], "{}");
            assert_eq!(failure.retry_after, Some(Duration::from_secs(17)), "{value}");
        }
        let bare = failure(429, &[("retry-after", "3")], "{}");
        assert_eq!(bare.retry_after, Some(Duration::from_secs(3)));
    }

    #[test]
    fn times_are_read_with_and_without_a_zone() {
        for text in ["2022-02-14T20:15:12", "2022-02-14T20:15:12Z", "2022-02-14T20:15:12.000+00:00"] {
            let pin: Pin = serde_json::from_value(json!({ "id": "1", "created_at": text })).unwrap();
            assert_eq!(pin.created_at.unwrap().timestamp(), 1_644_869_712, "{text}");
        }
    }

    #[test]
    fn figures_of_any_type_are_read() {
        for (figures, expected) in [
            (json!({ "90d": { "impression": 3 }, "lifetime_metrics": null }), 3),
            (json!({ "90d": null, "lifetime_metrics": { "impression": 4.75, "watched": [1] } }), 4),
            (json!({ "90d": 1, "lifetime_metrics": "none" }), 0),
            (json!([1]), 0),
            (Value::Null, 0),
        ] {
            let pin: Pin = serde_json::from_value(json!({ "id": "1", "pin_metrics": figures })).unwrap();
            assert_eq!(pin.metrics().impressions, expected, "{figures}");
        }
    }

    #[test]
    fn a_pin_without_words_is_told_apart_by_its_link_and_alt_text() {
        let settings = |link: Option<&str>| Settings {
            link: link.map(str::to_owned),
            ..serde_json::from_value(json!({})).expect("no settings")
        };
        let mut post = PublishRequest::of_test();
        post.text = String::new();
        let pin = |link: Value, alt: Value| -> Pin {
            serde_json::from_value(json!({ "id": "1", "link": link, "alt_text": alt })).expect("a pin")
        };
        let same = |pin: Pin, link| pin.matches(&post, None, &settings(link));
        let link = "https://example.com/a";
        assert!(same(pin(json!(link), Value::Null), Some(link)));
        assert!(same(pin(json!("http://example.com/a/"), Value::Null), Some(link)));
        // Pinterest may drop a link.
        assert!(same(pin(Value::Null, Value::Null), Some(link)));
        assert!(!same(pin(json!("https://example.com/b"), Value::Null), Some(link)));
        assert!(!same(pin(json!(link), Value::Null), None));

        let media = vec![described("a cat")];
        let post = PublishRequest { text: String::new(), media, ..PublishRequest::of_test() };
        for (alt, expected) in [(json!("a cat"), true), (Value::Null, true), (json!("a dog"), false)] {
            assert_eq!(pin(Value::Null, alt).matches(&post, None, &settings(None)), expected);
        }
    }

    #[test]
    fn the_alt_texts_of_all_images_are_joined_up_to_the_limit() {
        let long = "l".repeat(MAX_ALT_TEXT - 1);
        assert_eq!(alt(&[described("a"), described("a"), described("b"), described("")]).unwrap(), "a\nb");
        assert_eq!(alt(&[described("a"), described(&long), described("b")]).unwrap(), "a\nb");
        assert_eq!(alt(&[]), None);
    }
}
