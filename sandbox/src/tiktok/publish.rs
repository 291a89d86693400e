//! Content Posting API: <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>,
//! and its guide to transfers, <https://developers.tiktok.com/doc/content-posting-api-media-transfer-guide>.
//!
//! A post is initialized, gets its bytes, is processed for a while and then complete; a public one gets an id
//! after half as long again, when it has passed moderation. All of it depends on the clock only. A post for the
//! inbox (<https://developers.tiktok.com/doc/content-posting-api-reference-upload-video>) stays there, since nobody
//! finishes it.

use super::{
    Account, DIRECT, DRAFT, ID, INITS, Outcome, RateLimit, Request, Response, Simulator, TikTok, Transaction,
    account, admit, body, refusal, success,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{
    fault::{self, Kind},
    files::{MAX_KEPT_BYTES, Upload},
    store::Record,
    tokens,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;
use url::Url;

/// Posts of one creator, over all apps.
const POSTS: RateLimit = RateLimit::new("tiktok.posts", 15, 86_400);
/// Posts that wait in a creator's inbox.
const PENDING: RateLimit = RateLimit::new("tiktok.pending", 5, 86_400);
/// Creators that an app which is not audited posts for.
const CREATORS: RateLimit = RateLimit::new("tiktok.users", 5, 86_400);

const MEGABYTE: u64 = 1_000_000;
const MIN_CHUNK_BYTES: u64 = 5 * MEGABYTE;
const MAX_CHUNK_BYTES: u64 = 64 * MEGABYTE;
const MAX_LAST_CHUNK_BYTES: u64 = 128 * MEGABYTE;
const VIDEO_BYTES: u64 = 4 << 30;
const PHOTO_BYTES: u64 = 20 << 20;
/// Maximum length of a picture's shorter and longer side, in pixels: 1080p, upright or not.
const PHOTO_SIDES: (u32, u32) = (1080, 1920);
const UPLOAD_SECONDS: i64 = 3_600;

/// A post, from initialization on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Publish {
    id: String,
    number: u64,
    owner: String,
    /// True for a video, false for photos.
    pub(super) is_video: bool,
    is_pulled: bool,
    /// True for a post in the creator's inbox.
    pub(super) is_draft: bool,
    info: Value,
    size: u64,
    chunk_size: u64,
    chunks: u64,
    pieces: Vec<Upload>,
    upload: String,
    token: String,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    /// Ids and content types of its files.
    pub(super) files: Vec<(String, String)>,
    is_stuck: bool,
    failure: Option<String>,
    /// Id that it has once it is public.
    pub(super) post: String,
}

impl Record for Publish {
    const TABLE: &'static str = "tiktok.publish";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Publish {
    fn stored(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.size_bytes).sum()
    }

    pub(super) fn text(&self) -> &str {
        let text = |name: &str| self.info[name].as_str().filter(|text| !text.is_empty());
        let description = if self.is_video { None } else { text("description") };
        description.or_else(|| text("title")).unwrap_or_default()
    }

    /// Returns its privacy level.
    pub(super) fn privacy(&self) -> &str {
        self.info["privacy_level"].as_str().unwrap_or("SELF_ONLY")
    }

    /// Returns the further lines on its page.
    pub(super) fn notes(&self) -> Vec<String> {
        let flags = [
            ("disable_comment", "No comments"),
            ("disable_duet", "No duets"),
            ("disable_stitch", "No stitches"),
            ("brand_content_toggle", "Paid partnership"),
            ("brand_organic_toggle", "Promotes the creator's own business"),
            ("is_aigc", "Made with AI"),
        ];
        let mut notes: Vec<String> = flags
            .iter()
            .filter(|(name, _)| self.info[*name] == json!(true))
            .map(|(_, note)| (*note).to_owned())
            .collect();
        if let Some(title) = self.info["title"].as_str().filter(|title| !self.is_video && !title.is_empty()) {
            notes.push(format!("Title: {title}"));
        }
        notes.extend(self.info["video_cover_timestamp_ms"].as_i64().map(|at| format!("Cover: {at} ms")));
        notes
    }

    /// Returns the time when all bytes had arrived, if its creator sees it at all.
    pub(super) fn published_at(&self) -> Option<DateTime<Utc>> {
        self.finished_at.filter(|_| self.failure.is_none())
    }

    fn state(&self, tx: &Transaction) -> &'static str {
        let busy = if self.is_pulled { "PROCESSING_DOWNLOAD" } else { "PROCESSING_UPLOAD" };
        let Some(finished_at) = self.finished_at else { return busy };
        let spent = u64::try_from((tx.now - finished_at).num_milliseconds()).unwrap_or(0);
        match () {
            () if self.failure.as_deref() == Some("publish_cancelled") => "FAILED",
            () if self.is_stuck || spent < tx.settings.processing_ms => busy,
            () if self.failure.is_some() => "FAILED",
            () if self.is_draft => "SEND_TO_USER_INBOX",
            () => "PUBLISH_COMPLETE",
        }
    }

    /// Returns whether it is public: complete, public by its settings, and past moderation.
    fn is_public(&self, tx: &Transaction) -> bool {
        let needed = tx.settings.processing_ms + tx.settings.processing_ms / 2;
        let needed = TimeDelta::milliseconds(i64::try_from(needed).unwrap_or(i64::MAX));
        self.state(tx) == "PUBLISH_COMPLETE"
            && self.privacy() == "PUBLIC_TO_EVERYONE"
            && self.finished_at.is_some_and(|at| tx.now - at >= needed)
    }
}

/// Returns the addresses of media that TikTok fetches.
pub(super) fn media_urls(body: &Value) -> Vec<String> {
    let source = &body["source_info"];
    if source["source"] != "PULL_FROM_URL" {
        return Vec::new();
    }
    let photos = source["photo_images"].as_array().into_iter().flatten();
    photos
        .chain([&source["video_url"]])
        .filter_map(Value::as_str)
        .filter(|address| is_own(address))
        .map(str::to_owned)
        .collect()
}

/// Returns whether an address belongs to a verified site. Local addresses do; a host with `unverified` in its
/// name does not.
fn is_own(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    (url.scheme() == "https" || is_local) && !host.contains("unverified")
}

/// Returns the id of the account behind an upload.
pub(super) fn uploader(tx: &Transaction, upload: &str) -> Option<String> {
    by_upload(tx, upload).map(|publish| publish.owner)
}

fn by_upload(tx: &Transaction, upload: &str) -> Option<Publish> {
    tx.store.linked("tiktok.upload", upload).next()
}

/// Returns everything that a creator initialized, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, owner: &str) -> impl DoubleEndedIterator<Item = Publish> + use<'a> {
    tx.store.linked("tiktok.creator", owner)
}

/// Returns a creator's public posts, newest first; lists lag behind.
pub(super) fn public(tx: &Transaction, owner: &str, is_list: bool) -> Vec<Publish> {
    let lag = if is_list { tx.settings.lag_ms } else { 0 };
    let lag = TimeDelta::milliseconds(i64::try_from(lag).unwrap_or(i64::MAX));
    let mut posts: Vec<_> = by(tx, owner)
        .filter(|post| post.is_public(tx) && post.finished_at.is_some_and(|at| tx.now - at >= lag))
        .collect();
    posts.sort_by_key(|post| std::cmp::Reverse((post.finished_at, post.number)));
    posts
}

/// Options of a creator.
struct CreatorOptions {
    privacy: &'static [&'static str],
    is_private: bool,
    is_strict: bool,
}

impl CreatorOptions {
    fn of(account: &Account) -> Self {
        let is_private = account.username.starts_with("private");
        Self {
            privacy: match is_private {
                true => &["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"],
                false => &["PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"],
            },
            is_private,
            is_strict: account.username.starts_with("strict"),
        }
    }
}

/// `POST /v2/post/publish/creator_info/query/`.
pub(super) fn creator(_: &mut Transaction, _: &Request, caller: &Account) -> Outcome {
    let choices = CreatorOptions::of(caller);
    Ok(success(&json!({
        "creator_avatar_url": super::avatar(caller),
        "creator_username": caller.username,
        "creator_nickname": super::nickname(caller),
        "privacy_level_options": choices.privacy,
        "comment_disabled": choices.is_strict,
        "duet_disabled": choices.is_strict,
        "stitch_disabled": choices.is_strict,
        "max_video_post_duration_sec": if choices.is_strict { 60 } else { 600 },
    })))
}

/// `POST /v2/post/publish/video/init/`, or of a draft.
pub(super) fn video(tx: &mut Transaction, request: &Request, caller: &Account, is_draft: bool) -> Outcome {
    let body = body(request, "invalid_param")?;
    let info = if is_draft { json!({}) } else { post_info(tx, caller, &body["post_info"], true)? };
    refuse_early(tx, request, caller, &info)?;
    let source = &body["source_info"];
    let number = |name: &str| source[name].as_u64().unwrap_or(0);
    let mut publish = begin(tx, caller, if is_draft { "v_inbox" } else { "v_pub" }, source, info)?;
    (publish.is_video, publish.is_draft) = (true, is_draft);
    if publish.is_pulled {
        let address = source["video_url"].as_str().unwrap_or_default();
        take_fetched(&mut publish, request, &[address.to_owned()])?;
        return complete(tx, request, caller, publish);
    }
    (publish.size, publish.chunk_size, publish.chunks) =
        (number("video_size"), number("chunk_size"), number("total_chunk_count"));
    check_chunks(&publish, CreatorOptions::of(caller).is_strict)?;
    spend_post(tx, caller, is_draft)?;
    keep(tx, &publish);
    // An address of this sandbox: the client would look for the real host elsewhere.
    let origin = format!("http://{}", request.header("host").unwrap_or("localhost"));
    let address = format!(
        "{origin}/open-upload.tiktokapis.com/video/?upload_id={}&upload_token={}",
        publish.upload, publish.token
    );
    Ok(success(&json!({ "publish_id": publish.id, "upload_url": address })))
}

/// `POST /v2/post/publish/content/init/`: photos.
pub(super) fn photos(tx: &mut Transaction, request: &Request) -> Outcome {
    let body = body(request, "invalid_param")?;
    let is_draft = body["post_mode"] == "MEDIA_UPLOAD";
    let caller = admit(tx, request, if is_draft { DRAFT } else { DIRECT }, INITS)?;
    let wrong = |cause: Cause, what: &str| refusal(cause, 400, "invalid_param", what);
    if body["media_type"] != "PHOTO" {
        return Err(wrong(Protocol, "media_type has to be PHOTO."));
    }
    if !is_draft && body["post_mode"] != "DIRECT_POST" {
        return Err(wrong(Protocol, "post_mode has to be DIRECT_POST or MEDIA_UPLOAD."));
    }
    let mut info = match is_draft {
        true => draft_info(&body["post_info"])?,
        false => post_info(tx, &caller, &body["post_info"], false)?,
    };
    if body["is_aigc"] == json!(true) {
        info["is_aigc"] = json!(true);
    }
    refuse_early(tx, request, &caller, &info)?;
    let source = &body["source_info"];
    let photos: Vec<String> = source["photo_images"]
        .as_array()
        .map(|photos| photos.iter().filter_map(|photo| photo.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if source["source"] != "PULL_FROM_URL" || photos.is_empty() || photos.len() > 35 {
        let cause = if photos.len() > 35 { Content("photos") } else { Protocol };
        return Err(wrong(cause, "source_info has to name PULL_FROM_URL and 1 to 35 photo_images."));
    }
    if source["photo_cover_index"].as_u64().is_none_or(|index| index >= photos.len() as u64) {
        return Err(wrong(Content("cover"), "photo_cover_index has to be one of the photos."));
    }
    let mut publish = begin(tx, &caller, if is_draft { "p_inbox" } else { "p_pub" }, source, info)?;
    publish.is_draft = is_draft;
    take_fetched(&mut publish, request, &photos)?;
    complete(tx, request, &caller, publish)
}

/// Returns `post_info`, if the creator's options and the app's standing allow it.
fn post_info(tx: &Transaction, caller: &Account, info: &Value, is_video: bool) -> Result<Value, Response> {
    let wrong = |cause: Cause, what: &str| refusal(cause, 400, "invalid_param", what);
    let length = |name: &str| info[name].as_str().map_or(0, |text| text.encode_utf16().count());
    let Some(level) = info["privacy_level"].as_str() else {
        return Err(wrong(Protocol, "post_info.privacy_level is required."));
    };
    if !CreatorOptions::of(caller).privacy.contains(&level) {
        return Err(refusal(
            State,
            403,
            "privacy_level_option_mismatch",
            "Privacy level is not among the privacy_level_options of the creator.",
        ));
    }
    if !tx.settings.is_approved() {
        // The account has to be private too: a post for its creator alone is refused on a public one.
        if level != "SELF_ONLY" || !CreatorOptions::of(caller).is_private {
            return Err(refusal(
                State,
                403,
                "unaudited_client_can_only_post_to_private_accounts",
                "Please review our integration guidelines at https://developers.tiktok.com/doc/content-sharing-guidelines/.",
            ));
        }
        check_user_cap(tx, caller)?;
    }
    let (title, description) = if is_video { (2200, 0) } else { (90, 4000) };
    if length("title") > title {
        let cause = Content(if is_video { "text_too_long" } else { "title_too_long" });
        return Err(wrong(cause, "The title or description is too long."));
    }
    if !is_video && length("description") > description {
        return Err(wrong(Content("text_too_long"), "The title or description is too long."));
    }
    for name in [
        "disable_comment",
        "disable_duet",
        "disable_stitch",
        "brand_content_toggle",
        "brand_organic_toggle",
        "is_aigc",
        "auto_add_music",
    ] {
        if !info[name].is_null() && !info[name].is_boolean() {
            return Err(wrong(Protocol, &format!("post_info.{name} has to be true or false.")));
        }
    }
    let cover = &info["video_cover_timestamp_ms"];
    if !cover.is_null() && cover.as_i64().is_none_or(|at| i32::try_from(at).is_err()) {
        return Err(wrong(
            Content("time_of_the_cover"),
            "post_info.video_cover_timestamp_ms has to be an int32.",
        ));
    }
    if info["brand_content_toggle"] == json!(true) && level == "SELF_ONLY" {
        return Err(wrong(
            Content("branded_content_for_nobody"),
            "Branded content can't be for the creator alone.",
        ));
    }
    Ok(info.clone())
}

/// Returns the members of a draft's `post_info` that have an effect: the texts of photos.
fn draft_info(info: &Value) -> Result<Value, Response> {
    let length = |name: &str| info[name].as_str().map_or(0, |text| text.encode_utf16().count());
    let wrong = |cause: Cause| refusal(cause, 400, "invalid_param", "The title or description is too long.");
    if length("title") > 90 {
        return Err(wrong(Content("title_too_long")));
    }
    if length("description") > 4000 {
        return Err(wrong(Content("text_too_long")));
    }
    Ok(json!({ "title": info["title"], "description": info["description"] }))
}

/// Refuses a further creator of an app that is not audited.
fn check_user_cap(tx: &Transaction, caller: &Account) -> Result<(), Response> {
    let limit = tx.settings.limits.get(CREATORS.name).copied().unwrap_or(CREATORS.limit);
    let since = tx.now - TimeDelta::seconds(CREATORS.seconds);
    let recent = tx.store.with_prefix::<Publish>("").filter(|post| post.created_at > since);
    let creators: HashSet<String> = recent.map(|post| post.owner).collect();
    match creators.contains(&caller.id) || (creators.len() as u64) < limit {
        true => Ok(()),
        false => Err(refusal(
            State,
            403,
            "reached_active_user_cap",
            "The daily quota for active publishing users from the client is reached.",
        )),
    }
}

/// Applies the faults that refuse the request itself; the others apply when it publishes.
fn refuse_early(
    tx: &mut Transaction,
    request: &Request,
    caller: &Account,
    info: &Value,
) -> Result<(), Response> {
    let words = words(info);
    match fault::trigger_kinds(tx, ID, &caller.username, &words, |kind| {
        matches!(kind, Kind::Refuse(400..=499))
    }) {
        Ok(_) => Ok(()),
        Err(fault) => Err(TikTok.fail(tx, request, fault)),
    }
}

fn words(info: &Value) -> String {
    let text = |name: &str| info[name].as_str().filter(|text| !text.is_empty());
    text("description").or_else(|| text("title")).unwrap_or_default().to_owned()
}

fn begin(
    tx: &Transaction,
    caller: &Account,
    kind: &str,
    source: &Value,
    info: Value,
) -> Result<Publish, Response> {
    let is_pulled = match source["source"].as_str() {
        Some("PULL_FROM_URL") => true,
        Some("FILE_UPLOAD") => false,
        _ => {
            return Err(refusal(
                Protocol,
                400,
                "invalid_param",
                "source_info.source has to be FILE_UPLOAD or PULL_FROM_URL.",
            ));
        }
    };
    let draw = rand::random::<u32>();
    let seconds = u64::try_from(tx.now.timestamp()).unwrap_or(0);
    let way = if is_pulled { "url" } else { "file" };
    Ok(Publish {
        id: format!("{kind}_{way}~v2-1.{}{draw:010}", seconds),
        number: by(tx, &caller.id).count() as u64,
        owner: caller.id.clone(),
        is_video: false,
        is_pulled,
        is_draft: false,
        info,
        size: 0,
        chunk_size: 0,
        chunks: 0,
        pieces: Vec::new(),
        upload: tokens::random(),
        token: tokens::random(),
        created_at: tx.now,
        finished_at: None,
        files: Vec::new(),
        is_stuck: false,
        failure: None,
        // The upper half is the time, as in TikTok's ids.
        post: (seconds << 32 | u64::from(draw)).to_string(),
    })
}

/// Checks the announced chunks. Some of TikTok's servers refuse several for a video that fits into one.
fn check_chunks(publish: &Publish, is_strict: bool) -> Result<(), Response> {
    let Publish { size, chunk_size, chunks, .. } = publish;
    let last = chunks.checked_sub(1).and_then(|before| size.checked_sub(before * chunk_size)).unwrap_or(0);
    let is_cut = match (*size, *chunks) {
        (0, _) => false,
        (size, 1) => *chunk_size == size && size <= MAX_CHUNK_BYTES,
        (size, 2..=1000) => {
            (MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(chunk_size)
                && *chunks == size / chunk_size
                && last <= MAX_LAST_CHUNK_BYTES
                && !(is_strict && size <= MAX_CHUNK_BYTES)
        }
        _ => false,
    };
    match is_cut && *size <= VIDEO_BYTES {
        true => Ok(()),
        false => {
            let cause = if *size > VIDEO_BYTES { Content("video_too_large") } else { Protocol };
            Err(refusal(cause, 400, "invalid_param", "The chunk size is invalid"))
        }
    }
}

/// Spends one of the creator's posts of the day, or one place in their inbox.
fn spend_post(tx: &mut Transaction, caller: &Account, is_draft: bool) -> Result<(), Response> {
    match tx.spend(if is_draft { PENDING } else { POSTS }, &caller.id, 1) {
        Ok(_) => Ok(()),
        Err(_) if is_draft => Err(refusal(
            State,
            403,
            "spam_risk_too_many_pending_share",
            "There may be at most 5 pending shares within any 24-hour period.",
        )),
        Err(_) => Err(refusal(
            State,
            403,
            "spam_risk_too_many_posts",
            "The daily post cap from the API is reached for the current user.",
        )),
    }
}

/// Adds the fetched media; a failed fetch fails the post later, as on TikTok.
fn take_fetched(publish: &mut Publish, request: &Request, addresses: &[String]) -> Result<(), Response> {
    if addresses.iter().any(|address| !is_own(address)) {
        return Err(refusal(
            State,
            403,
            "url_ownership_unverified",
            "Please review our URL ownership verification rules.",
        ));
    }
    for address in addresses {
        match request.fetched(address) {
            None => {
                let reason = if publish.is_video { "video_pull_failed" } else { "photo_pull_failed" };
                publish.failure = Some(reason.into());
            }
            Some(upload) => {
                let mut upload = upload.clone();
                let named = |word: &str| upload.name.as_deref().is_some_and(|name| name.contains(word));
                (upload.is_stuck, upload.is_failing) =
                    (upload.is_stuck || named("sandbox-stuck"), upload.is_failing || named("sandbox-failed"));
                publish.pieces.push(upload);
            }
        }
    }
    publish.size = publish.stored();
    check_files(publish);
    Ok(())
}

/// Checks the files.
fn check_files(publish: &mut Publish) {
    let is_taken = |upload: &Upload| match upload.mime.as_deref() {
        Some(mime) if publish.is_video => ["video/mp4", "video/quicktime", "video/webm"].contains(&mime),
        Some(mime) => ["image/jpeg", "image/webp"].contains(&mime),
        None => false,
    };
    let checked =
        if publish.is_video { publish.pieces.get(..1).unwrap_or_default() } else { &publish.pieces };
    let is_oversized = |photo: &Upload| {
        let sides = photo.pixels.map(|(width, height)| (width.min(height), width.max(height)));
        photo.size_bytes > PHOTO_BYTES
            || sides.is_some_and(|(short, long)| short > PHOTO_SIDES.0 || long > PHOTO_SIDES.1)
    };
    let is_large = !publish.is_video && publish.pieces.iter().any(is_oversized);
    let is_failing = publish.pieces.iter().any(|piece| piece.is_failing);
    if publish.failure.is_none() {
        publish.failure = match () {
            () if is_failing || !checked.iter().all(is_taken) => Some("file_format_check_failed".into()),
            () if is_large => Some("picture_size_check_failed".into()),
            () => None,
        };
    }
    publish.is_stuck = publish.pieces.iter().any(|piece| piece.is_stuck);
}

/// `PUT` of a piece to an upload's address.
pub(super) fn put(tx: &mut Transaction, request: &Request) -> Response {
    let discard = |tx: &Transaction, cause: Cause, status: u16| {
        if let Some(upload) = &request.upload {
            tx.files.discard(&upload.id);
        }
        Response::empty(status).because(cause)
    };
    let Some(mut publish) = request.query("upload_id").and_then(|id| by_upload(tx, id)) else {
        return discard(tx, State, 404);
    };
    let is_over = tx.now - publish.created_at >= TimeDelta::seconds(UPLOAD_SECONDS);
    if request.query("upload_token") != Some(&publish.token) || is_over {
        return discard(tx, State, 403);
    }
    let stored = publish.stored();
    let selected = |response: Response, publish: &Publish| {
        let last = publish.stored().saturating_sub(1);
        response.with("content-range", format!("bytes 0-{last}/{}", publish.size))
    };
    let range = request.header("content-range").and_then(range);
    let (Some((first, last, total)), Some(piece)) = (range, request.upload.clone()) else {
        return discard(tx, Protocol, 400);
    };
    let is_typed =
        request.mime().is_some_and(|mime| ["video/mp4", "video/quicktime", "video/webm"].contains(&mime));
    if !is_typed {
        return discard(tx, Content("video_type"), 400);
    }
    if total != publish.size || last < first || last - first + 1 != piece.size_bytes {
        return discard(tx, Protocol, 400);
    }
    if first != stored || publish.finished_at.is_some() {
        return selected(discard(tx, State, 416), &publish);
    }
    let index = publish.pieces.len() as u64;
    let is_last = index + 1 == publish.chunks;
    let expected = if is_last { publish.size - stored } else { publish.chunk_size };
    if piece.size_bytes != expected {
        return discard(tx, Protocol, 400);
    }
    let Some(owner) = account::by_id(tx.store, ID, &publish.owner) else { return discard(tx, State, 404) };
    if is_last {
        let fault = fault::trigger_kinds(tx, ID, &owner.username, &words(&publish.info), |kind| {
            !matches!(kind, Kind::Refuse(400..=499))
        });
        let fault = match fault {
            Ok(fault) => fault,
            Err(fault) => {
                tx.files.discard(&piece.id);
                return TikTok.fail(tx, request, fault);
            }
        };
        publish.pieces.push(piece);
        check_files(&mut publish);
        finish(tx, &mut publish);
        let response = selected(Response::empty(201), &publish).with_fault(fault);
        return match publish.published_at() {
            Some(_) => response.with_post(publish.post),
            None => response,
        };
    }
    publish.pieces.push(piece);
    if publish.stored() > MAX_KEPT_BYTES {
        // A part of a video can't be shown; only its metadata is kept.
        publish.pieces.iter().for_each(|piece| tx.files.discard(&piece.id));
    }
    tx.store.put(&publish);
    selected(Response::empty(206), &publish)
}

fn range(text: &str) -> Option<(u64, u64, u64)> {
    let (span, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = span.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, total.parse().ok()?))
}

/// Finishes a post that came with all its media.
fn complete(tx: &mut Transaction, request: &Request, caller: &Account, mut publish: Publish) -> Outcome {
    let fault = fault::trigger_kinds(tx, ID, &caller.username, &words(&publish.info), |kind| {
        !matches!(kind, Kind::Refuse(400..=499))
    });
    let fault = match fault {
        Ok(fault) => fault,
        Err(fault) => return Err(TikTok.fail(tx, request, fault)),
    };
    spend_post(tx, caller, publish.is_draft)?;
    keep(tx, &publish);
    finish(tx, &mut publish);
    let response = success(&json!({ "publish_id": publish.id })).with_fault(fault);
    Ok(match publish.published_at() {
        Some(_) => response.with_post(publish.post),
        None => response,
    })
}

fn keep(tx: &mut Transaction, publish: &Publish) {
    tx.store.put(publish);
    tx.store.link("tiktok.upload", &publish.upload, &publish.id);
    tx.store.link("tiktok.creator", &publish.owner, &publish.id);
}

/// Finishes a post whose bytes have all arrived.
fn finish(tx: &mut Transaction, publish: &mut Publish) {
    let mime = |piece: &Upload| piece.mime.clone().unwrap_or_default();
    let is_whole = !publish.is_video || publish.pieces.len() == 1;
    publish.files = match is_whole {
        true => publish.pieces.iter().map(|piece| (piece.id.clone(), mime(piece))).collect(),
        false => join(tx, &publish.pieces).into_iter().collect(),
    };
    publish.finished_at = Some(tx.now);
    // TikTok's own error, which does not happen again.
    let words = words(&publish.info);
    let has_failed =
        |other: Publish| other.failure.as_deref() == Some("internal") && other.info == publish.info;
    if words.contains("sandbox-internal") && !by(tx, &publish.owner).any(has_failed) {
        publish.failure = Some("internal".into());
    }
    tx.store.put(publish);
}

/// Joins the pieces of a video, if they were stored.
fn join(tx: &Transaction, pieces: &[Upload]) -> Option<(String, String)> {
    let mut whole = Vec::new();
    for piece in pieces {
        whole.extend_from_slice(&tx.files.read(&piece.id)?);
    }
    let kept = tx.files.store_bytes(whole.into()).ok()?;
    pieces.iter().for_each(|piece| tx.files.discard(&piece.id));
    Some((kept.id, pieces.first()?.mime.clone().unwrap_or_default()))
}

/// `POST /v2/post/publish/status/fetch/`.
pub(super) fn status(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let publish = own(tx, caller, &body(request, "invalid_param")?)?;
    let state = publish.state(tx);
    let mut data = json!({ "status": state, "publicaly_available_post_id": [] });
    if state == "FAILED" {
        data["fail_reason"] = json!(publish.failure);
    }
    let count = if publish.is_pulled { "downloaded_bytes" } else { "uploaded_bytes" };
    data[count] = json!(publish.stored());
    if publish.is_public(tx) {
        // A number, although a float can't hold it.
        data["publicaly_available_post_id"] = json!([publish.post.parse::<u64>().unwrap_or_default()]);
    }
    let is_refused = state == "FAILED" && !publish.pieces.iter().any(|piece| piece.is_failing);
    let cause = match publish.failure.as_deref().filter(|_| is_refused) {
        Some("file_format_check_failed") => Some(Content("file_type")),
        Some("picture_size_check_failed") => Some(Content("photo_too_large")),
        _ => None,
    };
    Ok(success(&data).because(cause))
}

/// `POST /v2/post/publish/cancel/`: only while media are being fetched.
pub(super) fn cancel(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let mut publish = own(tx, caller, &body(request, "invalid_param")?)?;
    if publish.state(tx) != "PROCESSING_DOWNLOAD" {
        return Err(refusal(
            State,
            400,
            "publish_not_cancellable",
            "The publish can't be canceled any more.",
        ));
    }
    publish.failure = Some("publish_cancelled".into());
    tx.store.put(&publish);
    Ok(success(&json!({})))
}

fn own(tx: &Transaction, caller: &Account, body: &Value) -> Result<Publish, Response> {
    let id = body["publish_id"].as_str().unwrap_or_default();
    let publish: Publish = tx
        .store
        .get(id)
        .ok_or_else(|| refusal(State, 400, "invalid_publish_id", "The publish_id does not exist."))?;
    match publish.owner == caller.id {
        true => Ok(publish),
        false => Err(refusal(
            State,
            400,
            "token_not_authorized_for_specified_publish_id",
            "The access_token does not have authorization for the publish_id.",
        )),
    }
}
