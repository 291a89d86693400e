//! YouTube, over its Data API v3: <https://developers.google.com/youtube/v3>.
//!
//! A video is created with its last byte, so all parts but the last are uploaded by `prepare`, and the last
//! part is the publishing call. After a lost response, the upload's URL shows whether the video exists.
//! Processing, thumbnail, captions and playlists follow; a video that is processed for long counts as published
//! meanwhile. A first comment has no such URL and is searched for.

mod captions;
mod localizations;
mod long_videos;
mod playlists;

use self::{captions::Caption, localizations::Localization};
use crate::{
    AccountProfile, Adapter, Analytics, Auth, Cap, Checkpoint, ClientAuth, CommentLimits, Committed, Content,
    Counted, Deletion, Edit, Editing, Feature, History, Idempotency, Identity, Limits, Located, Media,
    MediaKind, MediaLimit, Metrics, Number, OAuth2, Options, Page, Prepared, Preset, PublishRequest,
    Publisher, Publishing, RemotePost, Replies, Reply, Result, ScopeSet, SelectOption, Session, Source,
    TIMEOUT, TextLimit, Window,
    check::{ContainerContent, Issue, Severity},
    google,
    listing::{self, Listing},
    look_up::{self, Findings, Subject},
    pages, required, schema, text, timeout_for,
};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, time::Duration};
use uuid::Uuid;

/// YouTube. <https://developers.google.com/youtube/v3/docs>
struct YouTube;

const API: &str = "https://www.googleapis.com/youtube/v3";
const UPLOAD: &str = "https://www.googleapis.com/upload/youtube/v3";
const REPORTS: &str = "https://youtubeanalytics.googleapis.com/v2/reports";

const FORCE_SSL: &str = "https://www.googleapis.com/auth/youtube.force-ssl";
const MANAGE: &str = "https://www.googleapis.com/auth/youtube";
/// The scopes of uploads and thumbnails, and of the reads that publishing needs.
const UPLOAD_SCOPES: ScopeSet =
    &["https://www.googleapis.com/auth/youtube.upload", "https://www.googleapis.com/auth/youtube.readonly"];
/// The scopes that change playlists and videos, one of which is enough.
const MANAGING: &[ScopeSet] = &[&[FORCE_SSL], &[MANAGE]];

/// Size of one part of an upload: a multiple of 256 KiB.
const CHUNK_BYTES: u64 = 8 << 20;
/// Time until a video appears in the lists; until then a missing upload is no evidence.
const LISTING_LAG: TimeDelta = TimeDelta::minutes(2);
/// Time limit of processing; a video that takes longer then counts as published, since its id is final.
const PROCESSING_TIMEOUT: TimeDelta = TimeDelta::hours(1);
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 100;
/// Maximum length of a description, in bytes.
const MAX_DESCRIPTION: usize = 5000;
/// Maximum length of a Short.
const MAX_SHORT: Duration = Duration::from_secs(180);
/// Maximum length of all tags together, in characters.
const MAX_TAGS: usize = 500;
/// Default category: people and blogs.
const DEFAULT_CATEGORY: &str = "22";
/// First day of reports: YouTube's founding.
const FIRST_REPORT_DAY: NaiveDate = NaiveDate::from_ymd_opt(2005, 2, 14).expect("a date");

/// Members of a video's snippet that an update sets.
const MUTABLE: [&str; 6] =
    ["title", "description", "tags", "categoryId", "defaultLanguage", "defaultAudioLanguage"];

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "youtube",
    name: "YouTube",
    limits: Limits {
        text: TextLimit {
            max: MAX_DESCRIPTION,
            usual: None,
            unit: "bytes",
            count: str::len,
            max_bytes: None,
        },
        content: Content::Media,
        media: &[
            MediaLimit {
                kind: MediaKind::Video,
                count: 1..=1,
                mimes: &["video/mp4", "video/quicktime", "video/webm", "video/x-matroska", "video/x-msvideo"],
                max_bytes: 256 << 30,
                duration: Some(Duration::ZERO..=Duration::from_secs(12 * 3600)),
                ..MediaLimit::ANY
            },
            // The thumbnail.
            MediaLimit {
                kind: MediaKind::Image,
                count: 0..=1,
                mimes: &["image/jpeg", "image/png"],
                max_bytes: 50 << 20,
                ..MediaLimit::ANY
            },
        ],
        mixed_media: true,
        replies: Replies::FirstComment,
        publishing: Publishing::Asynchronous { window: Duration::from_secs(6 * 3600) },
        // A repeated upload creates no second video; a repeated comment is a duplicate.
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(30) },
        forbidden: &['<', '>'],
        required_media: Some(MediaKind::Video),
        comment: Some(CommentLimits { text: TextLimit::characters(10_000), media: &[], has_alt_text: false }),
        numbers: &[
            Number::max("characters of a title", MAX_TITLE),
            Number::max("characters of all tags", MAX_TAGS),
        ],
        sources: &[Source { url: "https://developers.google.com/youtube/v3/docs", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: google::AUTHORIZE,
        token: google::TOKEN,
        // The first covers uploads, reads, comments and captions; no narrower scope covers the last two.
        scopes: &[FORCE_SSL, "https://www.googleapis.com/auth/yt-analytics.readonly"],
        // Without the second one, figures lack what only YouTube Analytics knows. Each set of publishing opens reads.
        features: &[
            (Feature::Publishing, &[UPLOAD_SCOPES, &[FORCE_SSL], &[MANAGE]]),
            (Feature::Replies, &[&[FORCE_SSL]]),
            (Feature::Deletion, MANAGING),
            (Feature::Editing, MANAGING),
        ],
        presets: &[
            Preset { name: "publishing", scopes: &[FORCE_SSL] },
            Preset { name: "upload", scopes: UPLOAD_SCOPES },
        ],
        authorize_parameters: google::PARAMETERS,
        pkce: true,
        client_auth: ClientAuth::Body,
        force_login: google::FORCE_LOGIN,
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &YouTube,
    analytics: Some(&YouTube),
    history: Some(&YouTube),
    deletion: Some(&YouTube),
    editing: Ok(&YouTube),
    options: Some(&YouTube),
    // 100 uploads a day per project, until midnight Pacific time.
    caps: &[Cap {
        name: "videos",
        limit: 100,
        window: Window::Day("America/Los_Angeles"),
        counts: Counted::PostsOfApp,
    }],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Settings {
    /// Title of the video. Defaults to the text's first line, or to the file name.
    #[schemars(length(min = 1, max = MAX_TITLE), regex(pattern = "^[^<>]*$"))]
    title: Option<String>,
    /// Who can watch the video.
    #[schemars(extend("default" = "public", "isPromise" = ["unlisted", "private"]))]
    privacy_status: Option<PrivacyStatus>,
    /// Time at which YouTube makes the video public; it is private until then.
    #[schemars(
        regex(pattern = r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$"),
        extend("format" = "date-time")
    )]
    publish_at: Option<String>,
    /// Requires the video to be fit for a Short: square or upright, and at most three minutes long.
    is_short: Option<bool>,
    /// Keywords, with at most 500 characters together.
    #[schemars(inner(length(min = 1), regex(pattern = "^[^<>,]*$")))]
    tags: Option<Vec<String>>,
    /// Id of the category; options/categories lists them.
    #[schemars(regex(pattern = "^[0-9]+$"), extend("default" = DEFAULT_CATEGORY))]
    category: Option<String>,
    /// Id of the playlist to add the video to; options/playlists lists them.
    #[schemars(length(min = 1))]
    playlist: Option<String>,
    /// Ids of further playlists to add the video to, each once.
    #[schemars(length(max = playlists::MAX_FURTHER), inner(length(min = 1)))]
    playlists: Option<Vec<String>>,
    /// Id of the container's medium to use as the thumbnail. Defaults to its image.
    thumbnail: Option<String>,
    /// Caption tracks, which are uploaded once the video is live. Each costs 400 units of the project's quota.
    #[schemars(length(max = captions::MAX_TRACKS))]
    captions: Option<Vec<Caption>>,
    /// Declares the video as made for children.
    made_for_kids: Option<bool>,
    /// Declares realistic content that was made or changed with AI.
    #[schemars(extend("isPromise" = true))]
    contains_synthetic_media: Option<bool>,
    /// Declares paid product placement, sponsorship or endorsement in the video; YouTube tells its viewers.
    #[schemars(extend("isPromise" = true))]
    paid_promotion: Option<bool>,
    /// Notifies subscribers.
    #[schemars(extend("default" = true))]
    notify_subscribers: Option<bool>,
    /// License of the video.
    license: Option<License>,
    /// Allows other sites to embed the video.
    embeddable: Option<bool>,
    /// Makes the video's statistics public.
    public_stats_viewable: Option<bool>,
    /// Language of title and text (BCP 47).
    #[schemars(regex(pattern = schema::LANGUAGE))]
    default_language: Option<String>,
    /// Language spoken in the video (BCP 47).
    #[schemars(regex(pattern = schema::LANGUAGE))]
    default_audio_language: Option<String>,
    /// Title and description in other languages, which YouTube shows to viewers of these; needs defaultLanguage.
    localizations: Option<Vec<Localization>>,
    /// Day on which the video was recorded, or its time.
    #[schemars(regex(pattern = r"^\d{4}-\d\d-\d\d([Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d))?$"))]
    recording_date: Option<String>,

    // YouTube's own names of three settings above, which are accepted and not validated.
    #[schemars(skip)]
    category_id: Option<Value>,
    #[schemars(skip)]
    playlist_id: Option<Value>,
    #[schemars(skip)]
    self_declared_made_for_kids: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PrivacyStatus {
    Public,
    Unlisted,
    Private,
}

impl PrivacyStatus {
    /// Returns the API's word.
    fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unlisted => "unlisted",
            Self::Private => "private",
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum License {
    Youtube,
    CreativeCommon,
}

impl Settings {
    /// Returns the privacy level to begin with.
    fn privacy(&self) -> PrivacyStatus {
        match given(self.publish_at.as_deref()) {
            Some(_) => PrivacyStatus::Private,
            None => self.privacy_status.unwrap_or(PrivacyStatus::Public),
        }
    }

    /// Returns true if a video may have this privacy level. One with a time becomes public by itself.
    fn asked_for(&self, level: &str) -> bool {
        self.privacy().name() == level || (level == "public" && given(self.publish_at.as_deref()).is_some())
    }

    /// Returns the reason for which YouTube refuses comments on the video.
    fn forbids_comments(&self) -> Option<&'static str> {
        match () {
            () if given(self.publish_at.as_deref()).is_some() => Some("that is private until its publishAt"),
            () if self.privacy() == PrivacyStatus::Private => Some("that is private"),
            () if self.made_for_kids() == Some(true) => Some("made for kids"),
            () => None,
        }
    }

    fn category(&self) -> Option<Cow<'_, str>> {
        let text = given(self.category.as_deref()).or_else(|| given(self.category_id.as_ref()?.as_str()));
        // YouTube's examples have a number.
        let number = || self.category_id.as_ref()?.as_u64().map(|id| id.to_string());
        text.map(Cow::Borrowed).or_else(|| number().map(Cow::Owned))
    }

    fn playlist(&self) -> Option<&str> {
        given(self.playlist.as_deref()).or_else(|| given(self.playlist_id.as_ref()?.as_str()))
    }

    /// Returns the ids of all playlists, each once.
    fn playlists(&self) -> Vec<&str> {
        let further = self.playlists.iter().flatten().filter_map(|id| given(Some(id)));
        let mut ids = Vec::new();
        for id in self.playlist().into_iter().chain(further) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// Returns the languages of title and description beside the default one.
    fn localizations(&self) -> &[Localization] {
        self.localizations.as_deref().unwrap_or_default()
    }

    /// Returns the time of the recording as YouTube takes it, which is the beginning of a day that has no time; `None`
    /// if the calendar has no such day.
    fn recorded_at(&self) -> Option<String> {
        let text = given(self.recording_date.as_deref())?;
        match text.parse::<NaiveDate>() {
            Ok(day) => Some(format!("{day}T00:00:00Z")),
            Err(_) => DateTime::parse_from_rfc3339(text).is_ok().then(|| text.to_owned()),
        }
    }

    fn made_for_kids(&self) -> Option<bool> {
        self.self_declared_made_for_kids.as_ref().and_then(Value::as_bool).or(self.made_for_kids)
    }
}

/// Returns a setting without surrounding white space; `None` if it is blank.
fn given(setting: Option<&str>) -> Option<&str> {
    setting.map(str::trim).filter(|text| !text.is_empty())
}

#[async_trait]
impl Publisher for YouTube {
    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) else {
            return Vec::new();
        };
        let error = |message: String, path: Vec<Value>| Issue {
            severity: Severity::Error,
            code: "settings_conflict".to_owned(),
            message: format!("youtube: {message}"),
            path,
        };
        let mut found: Vec<Issue> = objections(main.media, &settings)
            .into_iter()
            .map(|(setting, message)| {
                error(message, vec![json!("config"), json!(ADAPTER.id), json!(setting)])
            })
            .collect();
        found.extend(captions::issues(&settings));
        if containers.len() > 1
            && let Some(why) = settings.forbids_comments()
        {
            let message = format!("takes no comment on a video {why}");
            found.push(error(message, vec![json!("containers"), json!(1)]));
        }
        let video = main.media.iter().find(|medium| medium.kind == MediaKind::Video);
        let title_and_source = match title_of(main.text, &settings) {
            Some(title) => Some((title, "content", "the text's first line")),
            None => video.map(|video| (title_of_file(video), "media", "the file's name")),
        };
        if let Some((title, member, source)) = title_and_source
            && let (cut, true) = text::shorten(&title, MAX_TITLE)
        {
            found.push(Issue::title_cut(ADAPTER.id, MAX_TITLE, (member, source), &cut));
        }
        found.extend(localizations::issues(&settings));
        if let Some(date) = given(settings.recording_date.as_deref())
            && settings.recorded_at().is_none()
        {
            let message = format!(
                "youtube takes recordingDate as a day of the calendar, or its time, and it is {date}"
            );
            let (severity, code) = (Severity::Error, "setting_invalid");
            found.push(Issue::of_setting(severity, code, ADAPTER.id, "recordingDate", message));
        }
        if settings.made_for_kids().is_none() {
            let message = "youtube requires that the owner declares whether the video is made for kids; without \
                           madeForKids it has the channel's default, or waits for the declaration in YouTube Studio";
            let message = message.to_owned();
            let (severity, code) = (Severity::Warning, "setting_not_chosen");
            found.push(Issue::of_setting(severity, code, ADAPTER.id, "madeForKids", message));
        }
        found
    }

    /// <https://developers.google.com/youtube/v3/docs/captions/insert> and
    /// <https://developers.google.com/youtube/v3/docs/playlistItems/insert>
    fn scopes(&self, settings: &Value) -> Option<(&'static str, &'static [ScopeSet])> {
        let settings: Settings = schema::read(settings).ok()?;
        match settings.captions.as_ref().is_some_and(|captions| !captions.is_empty()) {
            true => Some(("captions", &[&[FORCE_SSL]])),
            false => {
                let playlists = settings.playlists();
                let needy = playlists.first().map(|playlist| settings.setting_of(playlist));
                needy.map(|setting| (setting, MANAGING))
            }
        }
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        let settings = schema::read::<Settings>(&subject.settings);
        long_videos::find(subject.media.as_deref().unwrap_or_default()).is_some()
            || settings
                .is_ok_and(|settings| settings.category().is_some() || !settings.playlists().is_empty())
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings: Settings = schema::read(&subject.settings)?;
        if let Some(category) = settings.category()
            && !is_category(cx, &category).await?
        {
            let message = format!("takes no video in a category {category}: options/categories lists them");
            found.error(look_up::NOT_FOUND, "category", &message);
        }
        playlists::look_up(cx, &settings, found).await?;
        long_videos::look_up(cx, subject, found).await
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        google::classify(reply)
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let channels: List<Channel> = cx
            .get(format!("{API}/channels"))
            .query(&[("part", "snippet"), ("mine", "true"), ("maxResults", "50")])
            .send()
            .await?;
        Ok(channels.items.into_iter().map(Channel::identity).collect())
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        let ours = &cx.account.network_unique_id;
        match self.identities(cx).await?.iter().any(|channel| channel.profile.network_unique_id == *ours) {
            true => Ok(()),
            false => Err(Failure::rejected(404, format!("the login no longer leads to channel {ours}"))),
        }
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        google::revoke(cx).await
    }

    // Not by `crate::upload`: the last part publishes the video, so `prepare` and `commit` share one loop, and
    // YouTube returns the offset to resume at.
    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        if post.reply_to.is_some() {
            return Ok(Prepared::Ready(at));
        }
        let video = video(post)?;
        let mut step: Step = at.read()?;
        if step.media != Some(video.id) {
            step = Step { media: Some(video.id), ..Step::default() };
        }
        if step.video.is_some() {
            return Ok(Prepared::Ready(Checkpoint::of(&step)));
        }
        let settings: Settings = post.settings()?;
        let body = resource(post, &settings, video);
        // An earlier attempt may have died between sending a part and saving its progress.
        if let Some(upload) = step.upload.clone() {
            match probe(cx, &upload, video.size_bytes).await? {
                Stored::Bytes(count) => step.sent = count,
                Stored::Video(id) => step.video = Some(id),
                Stored::Nothing => step = Step { media: Some(video.id), ..Step::default() },
            }
        }
        if step.upload.is_none() {
            // Before anything is uploaded.
            long_videos::check(cx, video).await?;
            playlists::check(cx, &settings).await?;
            step.upload = Some(begin(cx, &settings, video, &body).await?);
            cx.save(&step).await?;
        }
        while step.video.is_none() && step.sent + CHUNK_BYTES < video.size_bytes {
            let upload = step.upload.as_deref().expect("it was begun above");
            match send(cx, video, upload, step.sent).await? {
                Stored::Bytes(count) if count > step.sent => step.sent = count,
                Stored::Bytes(count) => return Err(stalled(count)),
                Stored::Video(id) => step.video = Some(id),
                Stored::Nothing => {
                    cx.save(&Step::default()).await?;
                    return Err(ended());
                }
            }
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        if let Some(reply) = &post.reply_to {
            return Ok(Committed::Live(comment(cx, &reply.root, &post.text).await?));
        }
        let video = video(post)?;
        let mut step: Step = at.read()?;
        while step.video.is_none() {
            let Some(upload) = step.upload.as_deref() else {
                return Err(Failure::network("the video was never begun to be uploaded", false));
            };
            match send(cx, video, upload, step.sent).await? {
                Stored::Video(id) => step.video = Some(id),
                Stored::Bytes(count) if count > step.sent => step.sent = count,
                Stored::Bytes(count) => return Err(stalled(count)),
                Stored::Nothing => {
                    cx.save(&Step::default()).await?;
                    return Err(ended());
                }
            }
        }
        Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: Duration::from_secs(5) })
    }

    /// Returns the time limit for the last part of a video, which publishes it.
    fn commit_limit(&self, post: &PublishRequest) -> Duration {
        match (&post.reply_to, video(post)) {
            (None, Ok(video)) => timeout_for(video.size_bytes.min(CHUNK_BYTES)),
            _ => TIMEOUT,
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let begun = post.begun();
        if let Some(reply) = &post.reply_to {
            return listing::locate(&Comments { cx, video: &reply.root }, post).await;
        }
        let video = video(post)?;
        let (mut step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        let mut found_by_text = None;
        if post.is_restored {
            let found = found_video(cx, post, &title(post, &settings, video)).await?;
            let Located::Live(found) = found else { return Ok(found) };
            found_by_text = Some(found.into_id());
            step = Step::default();
        } else if step.video.is_none() {
            let Some(upload) = step.upload.as_deref() else { return Ok(Located::Absent) };
            match probe(cx, upload, video.size_bytes).await? {
                Stored::Video(id) => step.video = Some(id),
                Stored::Bytes(_) => return Ok(Located::Absent),
                Stored::Nothing => match found_video(cx, post, &title(post, &settings, video)).await? {
                    Located::Live(found) => found_by_text = Some(found.into_id()),
                    located if (cx.now)() - begun > LISTING_LAG => return Ok(located),
                    _ => return Ok(Located::Processing { poll_after: Duration::from_secs(30) }),
                },
            }
        }
        let (id, live): (_, fn(String) -> Located) = match found_by_text {
            // Not kept in the checkpoint, which names the video of this upload only.
            Some(id) => (id, Located::by_text),
            None => (step.video.clone().expect("probed above"), Located::certain),
        };
        if step.video.is_some() && !step.is_complete {
            complete(cx, post, &settings, &id).await?;
            step.is_complete = true;
            cx.save(&step).await?;
        }
        let videos: List<Video> = cx
            .get(format!("{API}/videos"))
            .query(&[("part", "status,processingDetails"), ("id", &id)])
            .send()
            .await?;
        let age = (cx.now)() - begun;
        // The interval grows, because each poll costs quota.
        let busy = Located::Processing {
            poll_after: Duration::from_secs(age.num_seconds().clamp(20, 1200) as u64 / 4),
        };
        let Some(video) = videos.items.into_iter().next() else { return Ok(busy) };
        match video.is_processed() {
            Err(failure) => Ok(Located::Failed(failure)),
            Ok(is_processed) if is_processed || age > PROCESSING_TIMEOUT => {
                if let Some(told) = video.status.privacy_status.filter(|told| !settings.asked_for(told)) {
                    let asked = settings.privacy().name();
                    let message = format!("YouTube made the video {told}; the post asked for {asked}");
                    cx.note(&message).await?;
                }
                if step.video.is_none() {
                    complete(cx, post, &settings, &id).await?;
                }
                Ok(live(id))
            }
            Ok(_) => Ok(busy),
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        if !is_comment(id) {
            return Ok(address(cx, id));
        }
        let threads: List<Thread> =
            cx.get(format!("{API}/commentThreads")).query(&[("part", "snippet"), ("id", id)]).send().await?;
        let video = threads.items.into_iter().find_map(|thread| thread.snippet.video_id);
        let video = video.ok_or_else(|| Failure::rejected(404, format!("comment {id} is not there")))?;
        Ok(format!("{}&lc={id}", address(cx, &video)))
    }
}

#[async_trait]
impl Analytics for YouTube {
    /// A comment has no figures of its own.
    fn covers_replies(&self) -> bool {
        false
    }

    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        // It costs nothing of the 10,000 units that all other calls of the project share:
        // <https://developers.google.com/youtube/v3/docs/videos/batchGetStats>
        let videos: List<Video> = cx
            .get(format!("{API}/videos:batchGetStats"))
            .query(&[("part", "statistics"), ("id", id)])
            .send()
            .await?;
        let Some(video) = videos.items.into_iter().next() else {
            return Err(Failure::rejected(404, format!("video {id} is not there")));
        };
        let mut metrics = video.statistics.metrics();
        // The counters are current; reports lag by some days, and not every grant covers them.
        // Impressions need a separate query, and not every channel has them.
        let figures = report(cx, id, "shares,videosAddedToPlaylists").await?;
        metrics.shares = figures.first().copied().unwrap_or(0);
        metrics.saves = figures.get(1).copied().unwrap_or(0);
        metrics.impressions =
            report(cx, id, "videoThumbnailImpressions").await?.first().copied().unwrap_or(0);
        Ok(metrics)
    }
}

/// Returns all-time metrics of a video in the order of `metrics`; none if the grant does not cover reports.
async fn report(cx: &Session<'_>, id: &str, metrics: &str) -> Result<Vec<u64>> {
    let table: Result<Table> = cx
        .get(REPORTS)
        .query(&[
            ("ids", "channel==MINE"),
            ("startDate", &FIRST_REPORT_DAY.to_string()),
            ("endDate", &(cx.now)().date_naive().to_string()),
            ("metrics", metrics),
            ("filters", &format!("video=={id}")),
        ])
        .send()
        .await;
    match table {
        Ok(table) => {
            let row = table.rows.into_iter().next().unwrap_or_default();
            Ok(row.iter().map(|value| value.as_f64().unwrap_or(0.0).max(0.0) as u64).collect())
        }
        Err(failure) if failure.code.is_permanent() => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

#[async_trait]
impl History for YouTube {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let Some(list) = uploads(cx).await? else { return Ok(Page::default()) };
        let listed = uploaded(cx, &list, cursor).await?;
        let ids: Vec<_> = listed.items.iter().map(|item| item.content_details.video_id.clone()).collect();
        if ids.is_empty() {
            return Ok(Page { items: Vec::new(), next: listed.next });
        }
        let videos: List<Video> = cx
            .get(format!("{API}/videos"))
            .query(&[("part", "snippet,statistics"), ("id", &ids.join(","))])
            .send()
            .await?;
        let posts = listed.items.into_iter().filter_map(|item| {
            let video = videos.items.iter().find(|video| video.id == item.content_details.video_id)?;
            Some(RemotePost {
                url: address(cx, &video.id),
                id: video.id.clone(),
                text: match video.snippet.description.as_str() {
                    "" => video.snippet.title.clone(),
                    text => text.to_owned(),
                },
                media: video.snippet.thumbnails.largest().into_iter().collect(),
                published_at: item
                    .content_details
                    .video_published_at
                    .or(video.snippet.published_at)
                    .unwrap_or_default(),
                metrics: video.statistics.metrics(),
            })
        });
        Ok(Page { items: posts.collect(), next: listed.next })
    }
}

#[async_trait]
impl Deletion for YouTube {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        let kind = if is_comment(id) { "comments" } else { "videos" };
        cx.delete(format!("{API}/{kind}")).query(&[("id", id)]).delete_ok().await
    }
}

/// <https://developers.google.com/youtube/v3/docs/videos/update> and
/// <https://developers.google.com/youtube/v3/docs/comments/update>
#[async_trait]
impl Editing for YouTube {
    fn settings(&self) -> &'static [&'static str] {
        &["title", "tags", "category", "defaultLanguage"]
    }

    // The whole snippet is set, to the same values when the call is repeated.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        if edit.is_reply() {
            let body = json!({ "id": id, "snippet": { "textOriginal": edit.after() } });
            let call = cx.put(format!("{API}/comments")).query(&[("part", "snippet")]);
            return call.json(&body).send_ok().await;
        }
        let settings: Settings = schema::read(&edit.settings)?;
        // YouTube erases what an update leaves out.
        let found: List<Value> =
            cx.get(format!("{API}/videos")).query(&[("part", "snippet"), ("id", id)]).send().await?;
        let video = found.items.into_iter().next();
        let video = video.ok_or_else(|| Failure::rejected(404, format!("video {id} is not there")))?;
        let mut snippet: Map<String, Value> = MUTABLE
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), video["snippet"].get(*name)?.clone())))
            .collect();
        if let Some(text) = &edit.text {
            snippet.insert("description".into(), json!(text));
        }
        if (edit.text.is_some() || edit.sets("title"))
            && let Some(title) = title_of(edit.after(), &settings)
        {
            snippet.insert("title".into(), json!(text::shorten(&title, MAX_TITLE).0));
        }
        if edit.sets("tags") {
            snippet.insert("tags".into(), json!(settings.tags.as_deref().unwrap_or_default()));
        }
        if let Some(category) = settings.category().filter(|_| edit.sets("category")) {
            snippet.insert("categoryId".into(), json!(category));
        }
        if edit.sets("defaultLanguage") {
            snippet.insert("defaultLanguage".into(), json!(given(settings.default_language.as_deref())));
        }
        let call = cx.put(format!("{API}/videos")).query(&[("part", "snippet")]);
        call.json(&json!({ "id": id, "snippet": snippet })).send_ok().await
    }
}

#[async_trait]
impl Options for YouTube {
    fn kinds(&self) -> &'static [&'static str] {
        &["playlists", "categories", "privacy_levels"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>> {
        let choice = |(id, name): (&str, &str)| SelectOption { id: id.to_owned(), name: name.to_owned() };
        match kind {
            "playlists" => {
                let all = pages(|page: Option<String>| async move {
                    let call = cx.get(format!("{API}/playlists")).query(&[
                        ("part", "snippet"),
                        ("mine", "true"),
                        ("maxResults", "50"),
                    ]);
                    Ok(google::paged(call, page.as_deref()).send::<List<Titled>>().await?.page())
                });
                Ok(all.await?.iter().map(|item| choice((&item.id, &item.snippet.title))).collect())
            }
            "categories" => {
                let found: List<Titled> = cx
                    .get(format!("{API}/videoCategories"))
                    .query(&[("part", "snippet"), ("regionCode", parent.unwrap_or("US"))])
                    .send()
                    .await?;
                let open = found.items.iter().filter(|item| item.snippet.assignable != Some(false));
                Ok(open.map(|item| choice((&item.id, &item.snippet.title))).collect())
            }
            "privacy_levels" => {
                let levels = [("public", "Public"), ("unlisted", "Unlisted"), ("private", "Private")];
                Ok(levels.into_iter().map(choice).collect())
            }
            _ => Err(Failure::rejected(404, format!("YouTube has no list of {kind}"))),
        }
    }
}

/// Returns the post's video.
fn video(post: &PublishRequest) -> Result<&Media> {
    let video = post.media.iter().find(|medium| medium.kind == MediaKind::Video && medium.size_bytes > 0);
    video.ok_or_else(|| Failure::rejected(422, "YouTube needs a video, and the post has none"))
}

/// Returns the image for the thumbnail.
fn thumbnail<'a>(media: &'a [Media], settings: &Settings) -> Option<&'a Media> {
    let mut images = media.iter().filter(|medium| medium.kind == MediaKind::Image);
    match given(settings.thumbnail.as_deref()) {
        None => images.next(),
        Some(id) => images.find(|image| Uuid::try_parse(id).is_ok_and(|id| id == image.id)),
    }
}

/// Returns the settings that do not fit the media or each other, which YouTube would refuse or accept with another
/// meaning.
fn objections(media: &[Media], settings: &Settings) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let video = media.iter().find(|medium| medium.kind == MediaKind::Video);
    if let Some(video) = video.filter(|_| settings.is_short == Some(true)) {
        let shape = video.width.zip(video.height).filter(|(width, height)| width > height);
        if let Some((width, height)) = shape {
            let message = format!("a Short is square or upright, and the video has {width}x{height}");
            found.push(("isShort", message));
        }
        if let Some(length) = video.duration.filter(|length| *length > MAX_SHORT) {
            let message = format!(
                "a Short plays {} seconds at most, and the video {}",
                MAX_SHORT.as_secs(),
                length.as_secs()
            );
            found.push(("isShort", message));
        }
    }
    if let Some(id) = given(settings.thumbnail.as_deref()).filter(|_| thumbnail(media, settings).is_none()) {
        let message = format!("the thumbnail {id} is none of the images of the post's first container");
        found.push(("thumbnail", message));
    }
    if let Some(tags) = settings.tags.as_ref().filter(|tags| !tags.is_empty()) {
        // YouTube counts quotes around a tag with a space, and the separators.
        let weight = |tag: &str| tag.chars().count() + if tag.contains(' ') { 2 } else { 0 };
        let length: usize = tags.iter().map(|tag| weight(tag)).sum();
        let length = length + tags.len() - 1;
        if length > MAX_TAGS {
            let message = format!("YouTube takes {MAX_TAGS} characters of tags, and there are {length}");
            found.push(("tags", message));
        }
    }
    let is_timed = given(settings.publish_at.as_deref()).is_some();
    if is_timed && settings.privacy_status == Some(PrivacyStatus::Unlisted) {
        let message = "publishAt makes a video public, and privacyStatus is unlisted".to_owned();
        found.push(("publishAt", message));
    }
    found
}

/// Returns the title: the setting, else the text's first line, else the file name.
fn title(post: &PublishRequest, settings: &Settings, video: &Media) -> String {
    let title = title_of(&post.text, settings).unwrap_or_else(|| title_of_file(video));
    text::shorten(&title, MAX_TITLE).0.into_owned()
}

/// Returns the title that the file's name gives.
fn title_of_file(video: &Media) -> String {
    let stem = video.filename.rsplit_once('.').map_or(video.filename.as_str(), |(stem, _)| stem);
    let title = stem.replace(['<', '>'], "");
    if title.trim().is_empty() { "Video".to_owned() } else { title }
}

/// Returns the title that the setting or the text gives.
fn title_of(text: &str, settings: &Settings) -> Option<String> {
    let line = || text.lines().map(str::trim).find(|line| !line.is_empty());
    given(settings.title.as_deref()).or_else(line).map(str::to_owned)
}

/// Returns the video's resource.
fn resource(post: &PublishRequest, settings: &Settings, video: &Media) -> Value {
    let mut snippet = Map::new();
    snippet.insert("title".into(), json!(title(post, settings, video)));
    snippet.insert("description".into(), json!(post.text));
    snippet.insert("categoryId".into(), json!(settings.category().as_deref().unwrap_or(DEFAULT_CATEGORY)));
    if let Some(tags) = settings.tags.as_ref().filter(|tags| !tags.is_empty()) {
        snippet.insert("tags".into(), json!(tags));
    }
    let keep = |to: &mut Map<String, Value>, name: &str, value: Option<Value>| {
        to.extend(value.map(|value| (name.to_owned(), value)));
    };
    keep(&mut snippet, "defaultLanguage", given(settings.default_language.as_deref()).map(Value::from));
    keep(
        &mut snippet,
        "defaultAudioLanguage",
        given(settings.default_audio_language.as_deref()).map(Value::from),
    );

    let mut status = Map::new();
    status.insert("privacyStatus".into(), json!(settings.privacy()));
    keep(&mut status, "publishAt", given(settings.publish_at.as_deref()).map(Value::from));
    keep(&mut status, "selfDeclaredMadeForKids", settings.made_for_kids().map(Value::from));
    keep(&mut status, "containsSyntheticMedia", settings.contains_synthetic_media.map(Value::from));
    keep(&mut status, "license", settings.license.map(|license| json!(license)));
    keep(&mut status, "embeddable", settings.embeddable.map(Value::from));
    keep(&mut status, "publicStatsViewable", settings.public_stats_viewable.map(Value::from));
    let mut resource = json!({ "snippet": snippet, "status": status });
    if let Some(is_paid) = settings.paid_promotion {
        resource["paidProductPlacementDetails"] = json!({ "hasPaidProductPlacement": is_paid });
    }
    if !settings.localizations().is_empty() {
        resource["localizations"] = json!(localizations::resource(settings.localizations()));
    }
    if let Some(time) = settings.recorded_at() {
        resource["recordingDetails"] = json!({ "recordingDate": time });
    }
    resource
}

/// Begins an upload and returns its address. YouTube validates the resource here.
async fn begin(cx: &Session<'_>, settings: &Settings, video: &Media, body: &Value) -> Result<String> {
    // YouTube reads the parts that are named, and no others.
    let parts: Vec<_> = body.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let parts = parts.join(",");
    let mut query = vec![("uploadType", "resumable"), ("part", &*parts)];
    if settings.notify_subscribers == Some(false) {
        query.push(("notifySubscribers", "false"));
    }
    let mut call = cx
        .post(format!("{UPLOAD}/videos"))
        .query(&query)
        .header("x-upload-content-type", &video.mime)
        .header("x-upload-content-length", video.size_bytes.to_string());
    // The file name, in ASCII because it is a header.
    if video.filename.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        call = call.header("slug", &video.filename);
    }
    let reply = call.json(body).reply().await?;
    let address = reply.header("location").map(str::to_owned);
    address.ok_or_else(|| Failure::upstream(502, "YouTube began an upload and gave it no address"))
}

/// State of an upload.
enum Stored {
    /// Number of bytes that are stored.
    Bytes(u64),
    /// All bytes are stored, and this is the video.
    Video(String),
    /// The upload no longer exists.
    Nothing,
}

/// Sends the part that begins at `from`.
async fn send(cx: &Session<'_>, video: &Media, upload: &str, from: u64) -> Result<Stored> {
    let total = video.size_bytes;
    let end = (from + CHUNK_BYTES).min(total);
    let piece = cx.read(video, from..end).await?;
    let range = format!("bytes {from}-{}/{total}", end - 1);
    let call = cx.put(upload).header("content-range", range).bytes(&video.mime, piece);
    stored(cx, call.send_raw().await?, total)
}

/// Returns the state of an upload.
async fn probe(cx: &Session<'_>, upload: &str, total: u64) -> Result<Stored> {
    let call =
        cx.put(upload).header("content-range", format!("bytes */{total}")).header("content-length", "0");
    stored(cx, call.send_raw().await?, total)
}

fn stored(cx: &Session<'_>, reply: Reply, total: u64) -> Result<Stored> {
    match reply.status.as_u16() {
        308 => {
            let last = reply.header("range").and_then(|range| range.rsplit_once('-')?.1.parse::<u64>().ok());
            match last.map_or(0, |last| last.saturating_add(1)) {
                // The last byte publishes the video, so that only a look-up finds out.
                count if count >= total => Err(Failure::upstream(
                    502,
                    format!("YouTube keeps {count} bytes of {total}, and asks for more"),
                )),
                count => Ok(Stored::Bytes(count)),
            }
        }
        404 | 410 => Ok(Stored::Nothing),
        _ => {
            let video: Created = reply.into_result(cx.platform)?.read()?;
            Ok(Stored::Video(video.id))
        }
    }
}

fn stalled(count: u64) -> Failure {
    let message = format!("YouTube keeps no more than {count} bytes of the upload");
    Failure::upstream(503, message).certain()
}

/// Returns the failure of an expired upload. Nothing was published before the last byte, so a retry is safe.
fn ended() -> Failure {
    let message = "the upload ended before its last byte; it begins again";
    Failure::upstream(503, message).certain()
}

/// Returns true if videos may have this category. Categories have the same ids in all regions.
/// <https://developers.google.com/youtube/v3/docs/videoCategories/list>
async fn is_category(cx: &Session<'_>, id: &str) -> Result<bool> {
    let call = cx.get(format!("{API}/videoCategories")).query(&[("part", "snippet"), ("id", id)]);
    // YouTube answers an unknown id with an empty list, or with 404.
    let found = look_up::found(call.send::<List<Titled>>().await)?;
    Ok(found.is_some_and(|found| found.items.iter().any(|item| item.snippet.assignable != Some(false))))
}

/// Sets a video's thumbnail, uploads its captions and adds it to its playlists. The video is already live, so a
/// permanent rejection is told to its owner and does not fail the post.
async fn complete(cx: &Session<'_>, post: &PublishRequest, settings: &Settings, id: &str) -> Result<()> {
    if let Some(image) = thumbnail(&post.media, settings) {
        let set = cx
            .post(format!("{UPLOAD}/thumbnails/set"))
            .query(&[("videoId", id), ("uploadType", "media")])
            .upload(&image.mime, image.size_bytes, cx.stream(image))
            .send_ok()
            .await;
        // The usual cause.
        let advice =
            "; YouTube takes them from channels verified by phone only: https://www.youtube.com/verify";
        cx.note_refusal(set, "its own thumbnail", advice, false).await?;
    }
    captions::upload(cx, settings, id).await?;
    playlists::add(cx, settings, id).await
}

/// Comments on a video and returns the comment's id.
async fn comment(cx: &Session<'_>, video: &str, text: &str) -> Result<String> {
    let comment = json!({ "snippet": { "textOriginal": text } });
    let snippet = json!({
        "channelId": cx.account.network_unique_id,
        "videoId": video,
        "topLevelComment": comment,
    });
    let created: Created = cx
        .post(format!("{API}/commentThreads"))
        .query(&[("part", "snippet")])
        .json(&json!({ "snippet": snippet }))
        .send()
        .await?;
    Ok(created.id)
}

/// The comments on a video, newest first.
struct Comments<'a> {
    cx: &'a Session<'a>,
    video: &'a str,
}

#[async_trait]
impl Listing for Comments<'_> {
    type Item = Thread;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Thread>> {
        let call = self.cx.get(format!("{API}/commentThreads")).query(&[
            ("part", "snippet"),
            ("videoId", self.video),
            ("order", "time"),
            ("textFormat", "plainText"),
            ("maxResults", "100"),
        ]);
        Ok(google::paged(call, cursor).send::<List<Thread>>().await?.page())
    }

    fn id(thread: &Thread) -> &str {
        &thread.id
    }

    fn published_at(thread: &Thread) -> Option<DateTime<Utc>> {
        thread.snippet.top_level_comment.snippet.published_at
    }

    fn matches(&self, thread: &Thread, post: &PublishRequest) -> bool {
        let said = &thread.snippet.top_level_comment.snippet;
        // Only the author receives the original text.
        let text = said.text_original.as_deref().unwrap_or(&said.text_display);
        said.author_channel_id.value == self.cx.account.network_unique_id && text.trim() == post.text.trim()
    }
}

/// The channel's uploads, newest first. One page is read, because lists cost quota.
struct Uploads<'a> {
    cx: &'a Session<'a>,
    playlist: &'a str,
    title: &'a str,
}

#[async_trait]
impl Listing for Uploads<'_> {
    type Item = Item;
    const MAX_PAGES: usize = 1;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Item>> {
        uploaded(self.cx, self.playlist, cursor).await
    }

    fn id(item: &Item) -> &str {
        &item.content_details.video_id
    }

    fn published_at(item: &Item) -> Option<DateTime<Utc>> {
        item.snippet.published_at
    }

    fn matches(&self, item: &Item, _post: &PublishRequest) -> bool {
        item.snippet.title == self.title
    }
}

/// Finds a video among the channel's latest uploads.
async fn found_video(cx: &Session<'_>, post: &PublishRequest, title: &str) -> Result<Located> {
    match uploads(cx).await? {
        Some(playlist) => listing::locate(&Uploads { cx, playlist: &playlist, title }, post).await,
        None => Ok(Located::Absent),
    }
}

/// Returns the id of the playlist with the channel's uploads.
async fn uploads(cx: &Session<'_>) -> Result<Option<String>> {
    let details = channel(cx, "contentDetails").await?.and_then(|channel| channel.content_details);
    Ok(details.map(|details| details.related_playlists.uploads))
}

/// Returns one part of the account's channel.
async fn channel(cx: &Session<'_>, part: &str) -> Result<Option<Channel>> {
    let channels: List<Channel> =
        cx.get(format!("{API}/channels")).query(&[("part", part), ("mine", "true")]).send().await?;
    Ok(channels.items.into_iter().find(|channel| channel.id == cx.account.network_unique_id))
}

/// Returns one page of an uploads playlist, newest first.
async fn uploaded(cx: &Session<'_>, list: &str, page: Option<&str>) -> Result<Page<Item>> {
    let call = cx.get(format!("{API}/playlistItems")).query(&[
        ("part", "snippet,contentDetails"),
        ("playlistId", list),
        ("maxResults", "50"),
    ]);
    match google::paged(call, page).send::<List<Item>>().await {
        Ok(list) => Ok(list.page()),
        // A channel without uploads has no such playlist.
        Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(Page::default()),
        Err(failure) => Err(failure),
    }
}

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.transport.rewrite_url(&format!("https://www.youtube.com/watch?v={id}"))
}

/// Returns true for a comment's id, which is longer than a video's eleven characters.
fn is_comment(id: &str) -> bool {
    id.len() > 11
}

/// The adapter's checkpoint. The upload's address is valid for this video only.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    /// The uploaded video.
    media: Option<Uuid>,
    upload: Option<String>,
    #[serde(default)]
    sent: u64,
    video: Option<String>,
    /// True when thumbnail, captions and playlists are set.
    #[serde(default)]
    is_complete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    // Absent in an empty list.
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    next_page_token: Option<String>,
}

impl<T> List<T> {
    fn page(self) -> Page<T> {
        Page { items: self.items, next: self.next_page_token }
    }
}

#[derive(Deserialize)]
struct Created {
    #[serde(deserialize_with = "required::id")]
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Channel {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    snippet: Snippet,
    content_details: Option<ChannelDetails>,
    #[serde(default)]
    status: ChannelStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChannelDetails {
    related_playlists: Related,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChannelStatus {
    long_uploads_status: Option<String>,
}

#[derive(Deserialize)]
struct Related {
    uploads: String,
}

impl Channel {
    fn identity(self) -> Identity {
        let handle = self.snippet.custom_url.as_deref().map(|handle| handle.trim_start_matches('@'));
        let profile_url = match handle.filter(|handle| !handle.is_empty()) {
            Some(handle) => format!("https://www.youtube.com/@{handle}"),
            None => format!("https://www.youtube.com/channel/{}", self.id),
        };
        Identity {
            profile: AccountProfile {
                // A channel may have no handle.
                username: handle.filter(|handle| !handle.is_empty()).unwrap_or(&self.id).to_owned(),
                display_name: if self.snippet.title.is_empty() {
                    self.id.clone()
                } else {
                    self.snippet.title
                },
                account_type: "channel".to_owned(),
                profile_image_url: self.snippet.thumbnails.largest(),
                profile_url: Some(profile_url),
                network_unique_id: self.id,
            },
            grant: None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Snippet {
    title: String,
    description: String,
    custom_url: Option<String>,
    published_at: Option<DateTime<Utc>>,
    thumbnails: Thumbnails,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Thumbnails {
    default: Option<Picture>,
    medium: Option<Picture>,
    high: Option<Picture>,
    standard: Option<Picture>,
    maxres: Option<Picture>,
    fhd: Option<Picture>,
    qhd: Option<Picture>,
    uhd: Option<Picture>,
}

#[derive(Clone, Deserialize)]
struct Picture {
    url: String,
}

impl Thumbnails {
    fn largest(&self) -> Option<String> {
        let (large, small) = (
            [&self.uhd, &self.qhd, &self.fhd, &self.maxres],
            [&self.standard, &self.high, &self.medium, &self.default],
        );
        large.into_iter().chain(small).find_map(|picture| Some(picture.as_ref()?.url.clone()))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Video {
    #[serde(default)]
    id: String,
    #[serde(default)]
    snippet: Snippet,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    statistics: Statistics,
    #[serde(default)]
    processing_details: Processing,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    upload_status: String,
    privacy_status: Option<String>,
    failure_reason: Option<String>,
    rejection_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Processing {
    processing_status: String,
    processing_failure_reason: Option<String>,
}

impl Video {
    /// Returns true if processing has finished; fails if it failed.
    fn is_processed(&self) -> Result<bool> {
        let no = |what: &str, why: Option<&str>| {
            Err(Failure::rejected(
                422,
                format!("YouTube {what} the video: {}", why.unwrap_or("it does not say why")),
            ))
        };
        let details = &self.processing_details;
        match (self.status.upload_status.as_str(), details.processing_status.as_str()) {
            ("failed", _) => no("could not process", self.status.failure_reason.as_deref()),
            ("rejected", _) => no("rejected", self.status.rejection_reason.as_deref()),
            ("deleted", _) => no("deleted", Some("it was removed")),
            ("processed", _) => Ok(true),
            (_, "failed" | "terminated") => {
                no("could not process", details.processing_failure_reason.as_deref())
            }
            _ => Ok(false),
        }
    }
}

/// Counters, encoded as strings. YouTube omits hidden ones.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Statistics {
    view_count: Option<String>,
    like_count: Option<String>,
    comment_count: Option<String>,
}

impl Statistics {
    fn metrics(&self) -> Metrics {
        let count = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        Metrics {
            video_views: count(&self.view_count),
            likes: count(&self.like_count),
            comments: count(&self.comment_count),
            ..Metrics::default()
        }
    }
}

#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    rows: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    snippet: Snippet,
    content_details: ItemDetails,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemDetails {
    #[serde(deserialize_with = "required::id")]
    video_id: String,
    video_published_at: Option<DateTime<Utc>>,
}

/// A playlist or a category.
#[derive(Deserialize)]
struct Titled {
    #[serde(deserialize_with = "required::id")]
    id: String,
    snippet: Naming,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Naming {
    #[serde(default)]
    title: String,
    channel_id: Option<String>,
    assignable: Option<bool>,
}

#[derive(Deserialize)]
struct Thread {
    #[serde(deserialize_with = "required::id")]
    id: String,
    snippet: ThreadSnippet,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadSnippet {
    video_id: Option<String>,
    top_level_comment: Said,
}

#[derive(Deserialize)]
struct Said {
    snippet: CommentText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommentText {
    #[serde(default)]
    text_display: String,
    text_original: Option<String>,
    published_at: Option<DateTime<Utc>>,
    #[serde(default)]
    author_channel_id: Author,
}

#[derive(Default, Deserialize)]
struct Author {
    #[serde(default)]
    value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_thumbnail_is_taken() {
        let sizes = ["default", "medium", "high", "standard", "maxres", "fhd", "qhd", "uhd"];
        for (last, size) in sizes.iter().enumerate() {
            let all: Map<String, Value> =
                sizes[..=last].iter().map(|name| ((*name).to_owned(), json!({ "url": name }))).collect();
            let thumbnails: Thumbnails = serde_json::from_value(Value::Object(all)).expect("thumbnails");
            assert_eq!(thumbnails.largest().as_deref(), Some(*size));
        }
    }
}
