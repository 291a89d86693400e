//! YouTube, over its Data API v3: <https://developers.google.com/youtube/v3>.
//!
//! A video is created with its last byte, so all parts but the last are uploaded by `prepare`, and the last
//! part is the publishing call. After a lost response, the upload's URL shows whether the video exists.
//! Processing, thumbnail, captions and playlists follow; a video that is processed for long counts as published
//! meanwhile. A first comment has no such URL and is searched for.

mod captions;
mod channel;
mod comments;
mod content;
mod localizations;
mod long_videos;
mod playlists;
mod snippet;
mod upload;
mod videos;

use self::{
    captions::Caption,
    channel::Channel,
    comments::{Comments, Thread, comment, is_comment},
    content::{
        DEFAULT_CATEGORY, MAX_TAGS, objections, resource, thumbnail, title, title_of, title_of_file, video,
    },
    localizations::Localization,
    upload::{CHUNK_BYTES, Stored, begin, ended, probe, send, stalled},
    videos::{Video, found_video},
};
use crate::{
    Adapter, Auth, Cap, Checkpoint, ClientAuth, CommentLimits, Committed, Content, Counted, Deletion, Edit,
    Editing, Feature, Idempotency, Identity, Limits, Located, MediaKind, MediaLimit, Number, OAuth2, Options,
    Page, Prepared, Preset, PublishRequest, Publisher, Publishing, Replies, Reply, Result, ScopeSet,
    SelectOption, Session, Source, TIMEOUT, TextLimit, Window,
    check::{ContainerContent, Issue, Severity},
    google, listing,
    look_up::{self, Findings, Subject},
    pages, required, schema, text, timeout_for,
};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta};
use domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, time::Duration};
use uuid::Uuid;

/// YouTube. <https://developers.google.com/youtube/v3/docs>
struct YouTube;

const API: &str = "https://www.googleapis.com/youtube/v3";
const UPLOAD: &str = "https://www.googleapis.com/upload/youtube/v3";

const FORCE_SSL: &str = "https://www.googleapis.com/auth/youtube.force-ssl";
const MANAGE: &str = "https://www.googleapis.com/auth/youtube";
/// The scopes of uploads and thumbnails, and of the reads that publishing needs.
const UPLOAD_SCOPES: ScopeSet =
    &["https://www.googleapis.com/auth/youtube.upload", "https://www.googleapis.com/auth/youtube.readonly"];
/// The scopes that change playlists and videos, one of which is enough.
const MANAGING: &[ScopeSet] = &[&[FORCE_SSL], &[MANAGE]];

/// Time until a video appears in the lists; until then a missing upload is no evidence.
const LISTING_LAG: TimeDelta = TimeDelta::minutes(2);
/// Time limit of processing; a video that takes longer then counts as published, since its id is final.
const PROCESSING_TIMEOUT: TimeDelta = TimeDelta::hours(1);
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 100;
/// Maximum length of a description, in bytes.
const MAX_DESCRIPTION: usize = 5000;

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

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.transport.rewrite_url(&format!("https://www.youtube.com/watch?v={id}"))
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
