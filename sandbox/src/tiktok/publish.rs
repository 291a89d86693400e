//! Content Posting API: <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>,
//! and its guide to transfers, <https://developers.tiktok.com/doc/content-posting-api-media-transfer-guide>.
//!
//! A post is begun, gets its bytes, is processed for a while and then complete; a public one gets an id
//! of its own after half as long again, when it has passed moderation. Only the clock decides.

use super::{Account, Answer, Call, Host, ID, MINUTE, Rule, TikTok, Turn, account, admit, body, refusal, success};
use crate::{
    fault::{self, Kind},
    files::{KEPT_BYTES, Upload},
    shelf::Record,
    tokens,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

const INITS: Rule = Rule { name: "tiktok.inits", limit: 6, seconds: MINUTE };
const CREATORS: Rule = Rule { name: "tiktok.creators", limit: 20, seconds: MINUTE };
const STATUSES: Rule = Rule { name: "tiktok.statuses", limit: 30, seconds: MINUTE };
/// Posts of one creator, over all apps.
const POSTS: Rule = Rule { name: "tiktok.posts", limit: 15, seconds: 86_400 };

const DIRECT: &[&str] = &["video.publish"];
const DRAFT: &[&str] = &["video.upload"];
const EITHER: &[&str] = &["video.publish", "video.upload"];

const MEGABYTE: u64 = 1_000_000;
const SMALLEST: u64 = 5 * MEGABYTE;
/// 64 MB, in whichever count they are meant.
const LARGEST: u64 = 64 << 20;
const LAST: u64 = 128 << 20;
const VIDEO_BYTES: u64 = 4 << 30;
const PHOTO_BYTES: u64 = 20 << 20;
const UPLOAD_SECONDS: i64 = 3_600;

/// A post, from its beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Publish {
    id: String,
    number: u64,
    owner: String,
    /// Whether it is a video; else photos.
    pub(super) is_video: bool,
    is_pulled: bool,
    is_draft: bool,
    info: Value,
    size: u64,
    chunk_size: u64,
    chunks: u64,
    pieces: Vec<Upload>,
    upload: String,
    token: String,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    /// Its files, each with what it is.
    pub(super) files: Vec<(String, String)>,
    is_stuck: bool,
    failure: Option<String>,
    /// The id that it has once it is public.
    pub(super) post: String,
}

impl Record for Publish {
    const SHELF: &'static str = "tiktok.publish";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The ways to a post: by its upload, and by its creator in order.
#[derive(Serialize, Deserialize)]
struct Way {
    key: String,
    publish: String,
}

impl Record for Way {
    const SHELF: &'static str = "tiktok.way";

    fn key(&self) -> String {
        self.key.clone()
    }
}

impl Publish {
    fn stored(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.size_bytes).sum()
    }

    /// Its text.
    pub(super) fn words(&self) -> &str {
        let text = |name: &str| self.info[name].as_str().filter(|text| !text.is_empty());
        let description = if self.is_video { None } else { text("description") };
        description.or_else(|| text("title")).unwrap_or_default()
    }

    /// Who may see it.
    pub(super) fn privacy(&self) -> &str {
        self.info["privacy_level"].as_str().unwrap_or("SELF_ONLY")
    }

    /// What else a page tells of it.
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
        notes
    }

    /// When it had all that it needed, if it is to be seen at all.
    pub(super) fn came_into_being(&self) -> Option<DateTime<Utc>> {
        self.finished_at.filter(|_| !self.is_draft && self.failure.is_none())
    }

    fn state(&self, turn: &Turn<'_>) -> &'static str {
        let busy = if self.is_pulled { "PROCESSING_DOWNLOAD" } else { "PROCESSING_UPLOAD" };
        let Some(finished_at) = self.finished_at else { return busy };
        let spent = u64::try_from((turn.now - finished_at).num_milliseconds()).unwrap_or(0);
        match () {
            () if self.failure.as_deref() == Some("publish_cancelled") => "FAILED",
            () if self.is_stuck || spent < turn.settings.processing_ms => busy,
            () if self.failure.is_some() => "FAILED",
            () if self.is_draft => "SEND_TO_USER_INBOX",
            () => "PUBLISH_COMPLETE",
        }
    }

    /// Whether everybody can see it: complete, for everybody, and through moderation.
    fn is_public(&self, turn: &Turn<'_>) -> bool {
        let needed = turn.settings.processing_ms + turn.settings.processing_ms / 2;
        let needed = TimeDelta::milliseconds(i64::try_from(needed).unwrap_or(i64::MAX));
        self.state(turn) == "PUBLISH_COMPLETE"
            && self.privacy() == "PUBLIC_TO_EVERYONE"
            && self.finished_at.is_some_and(|at| turn.now - at >= needed)
    }
}

/// The addresses in a request from which TikTok fetches.
pub(super) fn addresses(body: &Value) -> Vec<String> {
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

/// Whether an address is of a site that the app was shown to own. On one's own machine all are; a name
/// with `unverified` in it stands for those of strangers.
fn is_own(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    (url.scheme() == "https" || is_local) && !host.contains("unverified")
}

/// Whose upload it is.
pub(super) fn uploader(turn: &Turn<'_>, upload: &str) -> Option<String> {
    by_upload(turn, upload).map(|publish| publish.owner)
}

fn by_upload(turn: &Turn<'_>, upload: &str) -> Option<Publish> {
    let way: Way = turn.shelf.get(&format!("upload/{upload}"))?;
    turn.shelf.get(&way.publish)
}

/// All that a creator began, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, owner: &str) -> impl DoubleEndedIterator<Item = Publish> + use<'a> {
    turn.shelf.under::<Way>(&format!("by/{owner}/")).filter_map(|way| turn.shelf.get(&way.publish))
}

/// A creator's public posts, newest first; lists run a little behind.
pub(super) fn public(turn: &Turn<'_>, owner: &str, is_list: bool) -> Vec<Publish> {
    let lag = if is_list { turn.settings.lag_ms } else { 0 };
    let lag = TimeDelta::milliseconds(i64::try_from(lag).unwrap_or(i64::MAX));
    let mut posts: Vec<_> = by(turn, owner)
        .filter(|post| post.is_public(turn) && post.finished_at.is_some_and(|at| turn.now - at >= lag))
        .collect();
    posts.sort_by_key(|post| std::cmp::Reverse((post.finished_at, post.number)));
    posts
}

/// What a creator may choose.
struct Choices {
    privacy: &'static [&'static str],
    is_strict: bool,
}

impl Choices {
    fn of(account: &Account) -> Self {
        let is_private = account.username.starts_with("private");
        Self {
            privacy: match is_private {
                true => &["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"],
                false => &["PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"],
            },
            is_strict: account.username.starts_with("strict"),
        }
    }
}

/// `POST /v2/post/publish/creator_info/query/`.
pub(super) fn creator(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, DIRECT, CREATORS)?;
    let choices = Choices::of(&caller);
    Ok(success(&json!({
        "creator_avatar_url": super::avatar(&caller),
        "creator_username": caller.username,
        "creator_nickname": caller.username,
        "privacy_level_options": choices.privacy,
        "comment_disabled": choices.is_strict,
        "duet_disabled": choices.is_strict,
        "stitch_disabled": choices.is_strict,
        "max_video_post_duration_sec": if choices.is_strict { 60 } else { 600 },
    })))
}

/// `POST /v2/post/publish/video/init/`, or of a draft.
pub(super) fn video(turn: &mut Turn<'_>, call: &Call, is_draft: bool) -> Result<Answer, Answer> {
    let caller = admit(turn, call, if is_draft { DRAFT } else { DIRECT }, INITS)?;
    let body = body(call, "invalid_param")?;
    let info = if is_draft { json!({}) } else { described(&caller, &body["post_info"], true)? };
    refuse(turn, call, &caller, &info)?;
    let source = &body["source_info"];
    let number = |name: &str| source[name].as_u64().unwrap_or(0);
    let mut publish = begin(turn, &caller, if is_draft { "v_inbox" } else { "v_pub" }, source, info)?;
    (publish.is_video, publish.is_draft) = (true, is_draft);
    if publish.is_pulled {
        let address = source["video_url"].as_str().unwrap_or_default();
        pull(&mut publish, call, &[address.to_owned()])?;
        return complete(turn, call, &caller, publish);
    }
    (publish.size, publish.chunk_size, publish.chunks) =
        (number("video_size"), number("chunk_size"), number("total_chunk_count"));
    fits(&publish)?;
    allow(turn, &caller)?;
    keep(turn, &publish);
    // An address of this sandbox, whose client would look for the real one elsewhere.
    let origin = format!("http://{}", call.header("host").unwrap_or("localhost"));
    let address = format!(
        "{origin}/open-upload.tiktokapis.com/video/?upload_id={}&upload_token={}",
        publish.upload, publish.token
    );
    Ok(success(&json!({ "publish_id": publish.id, "upload_url": address })))
}

/// `POST /v2/post/publish/content/init/`: photos.
pub(super) fn photos(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let body = body(call, "invalid_param")?;
    let is_draft = body["post_mode"] == "MEDIA_UPLOAD";
    let caller = admit(turn, call, if is_draft { DRAFT } else { DIRECT }, INITS)?;
    let wrong = |what: &str| refusal(400, "invalid_param", what);
    if body["media_type"] != "PHOTO" {
        return Err(wrong("media_type has to be PHOTO."));
    }
    if !is_draft && body["post_mode"] != "DIRECT_POST" {
        return Err(wrong("post_mode has to be DIRECT_POST or MEDIA_UPLOAD."));
    }
    let mut info = match is_draft {
        true => body["post_info"].clone(),
        false => described(&caller, &body["post_info"], false)?,
    };
    if body["is_aigc"] == json!(true) {
        info["is_aigc"] = json!(true);
    }
    refuse(turn, call, &caller, &info)?;
    let source = &body["source_info"];
    let photos: Vec<String> = source["photo_images"]
        .as_array()
        .map(|photos| photos.iter().filter_map(|photo| photo.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if source["source"] != "PULL_FROM_URL" || photos.is_empty() || photos.len() > 35 {
        return Err(wrong("source_info has to name PULL_FROM_URL and 1 to 35 photo_images."));
    }
    if source["photo_cover_index"].as_u64().is_none_or(|index| index >= photos.len() as u64) {
        return Err(wrong("photo_cover_index has to be one of the photos."));
    }
    let mut publish = begin(turn, &caller, "p_pub", source, info)?;
    publish.is_draft = is_draft;
    pull(&mut publish, call, &photos)?;
    complete(turn, call, &caller, publish)
}

/// `post_info`, if its creator may have it.
fn described(caller: &Account, info: &Value, is_video: bool) -> Result<Value, Answer> {
    let wrong = |what: &str| refusal(400, "invalid_param", what);
    let length = |name: &str| info[name].as_str().map_or(0, |text| text.encode_utf16().count());
    let Some(level) = info["privacy_level"].as_str() else {
        return Err(wrong("post_info.privacy_level is required."));
    };
    if !Choices::of(caller).privacy.contains(&level) {
        return Err(refusal(
            403,
            "privacy_level_option_mismatch",
            "Privacy level is not among the privacy_level_options of the creator.",
        ));
    }
    let (title, description) = if is_video { (2200, 0) } else { (90, 4000) };
    if length("title") > title || (!is_video && length("description") > description) {
        return Err(wrong("The title or description is too long."));
    }
    for name in ["disable_comment", "disable_duet", "disable_stitch", "brand_content_toggle", "brand_organic_toggle", "is_aigc", "auto_add_music"] {
        if !info[name].is_null() && !info[name].is_boolean() {
            return Err(wrong(&format!("post_info.{name} has to be true or false.")));
        }
    }
    if info["brand_content_toggle"] == json!(true) && level == "SELF_ONLY" {
        return Err(wrong("Branded content can't be for the creator alone."));
    }
    Ok(info.clone())
}

/// Faults that a request as such meets; those of publishing strike when it publishes.
fn refuse(turn: &mut Turn<'_>, call: &Call, caller: &Account, info: &Value) -> Result<(), Answer> {
    let words = words(info);
    match fault::draw_only(turn, ID, &caller.username, &words, |kind| matches!(kind, Kind::Refuse(400..=499))) {
        Ok(_) => Ok(()),
        Err(fault) => Err(TikTok.fail(turn, call, fault)),
    }
}

fn words(info: &Value) -> String {
    let text = |name: &str| info[name].as_str().filter(|text| !text.is_empty());
    text("description").or_else(|| text("title")).unwrap_or_default().to_owned()
}

fn begin(turn: &Turn<'_>, caller: &Account, kind: &str, source: &Value, info: Value) -> Result<Publish, Answer> {
    let is_pulled = match source["source"].as_str() {
        Some("PULL_FROM_URL") => true,
        Some("FILE_UPLOAD") => false,
        _ => return Err(refusal(400, "invalid_param", "source_info.source has to be FILE_UPLOAD or PULL_FROM_URL.")),
    };
    let draw = rand::random::<u32>();
    let seconds = u64::try_from(turn.now.timestamp()).unwrap_or(0);
    let way = if is_pulled { "url" } else { "file" };
    Ok(Publish {
        id: format!("{kind}_{way}~v2-1.{}{draw:010}", seconds),
        number: by(turn, &caller.id).count() as u64,
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
        created_at: turn.now,
        finished_at: None,
        files: Vec::new(),
        is_stuck: false,
        failure: None,
        // The time stands in the upper half, as in the ids that TikTok gives.
        post: (seconds << 32 | u64::from(draw)).to_string(),
    })
}

/// Whether the announced pieces are as they have to be.
fn fits(publish: &Publish) -> Result<(), Answer> {
    let Publish { size, chunk_size, chunks, .. } = publish;
    let last = chunks.checked_sub(1).and_then(|before| size.checked_sub(before * chunk_size)).unwrap_or(0);
    let is_cut = match *size {
        0 => false,
        size if size < SMALLEST => *chunk_size == size && *chunks == 1,
        _ => {
            let is_sized = (SMALLEST..=LARGEST).contains(chunk_size);
            is_sized && *chunks == size / chunk_size && (1..=1000).contains(chunks) && last <= LAST
        }
    };
    match is_cut && *size <= VIDEO_BYTES {
        true => Ok(()),
        false => Err(refusal(400, "invalid_param", "The chunk size or the total chunk count is invalid.")),
    }
}

/// Takes a post of the creator's day.
fn allow(turn: &mut Turn<'_>, caller: &Account) -> Result<(), Answer> {
    match turn.spend(POSTS, &caller.id, 1) {
        Ok(_) => Ok(()),
        Err(_) => Err(refusal(
            403,
            "spam_risk_too_many_posts",
            "The daily post cap from the API is reached for the current user.",
        )),
    }
}

/// Takes in what was fetched; what could not be had fails later, as it does there.
fn pull(publish: &mut Publish, call: &Call, addresses: &[String]) -> Result<(), Answer> {
    if addresses.iter().any(|address| !is_own(address)) {
        return Err(refusal(
            403,
            "url_ownership_unverified",
            "Please review our URL ownership verification rules.",
        ));
    }
    for address in addresses {
        match call.at(address) {
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
    judge(publish);
    Ok(())
}

/// What is wrong with the bytes.
fn judge(publish: &mut Publish) {
    let is_taken = |upload: &Upload| match upload.mime.as_deref() {
        Some(mime) if publish.is_video => ["video/mp4", "video/quicktime", "video/webm"].contains(&mime),
        Some(mime) => ["image/jpeg", "image/webp"].contains(&mime),
        None => false,
    };
    let checked = if publish.is_video { publish.pieces.get(..1).unwrap_or_default() } else { &publish.pieces };
    let is_large = !publish.is_video && publish.pieces.iter().any(|photo| photo.size_bytes > PHOTO_BYTES);
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
pub(super) fn put(turn: &mut Turn<'_>, call: &Call) -> Answer {
    let discard = |turn: &Turn<'_>, status: u16| {
        if let Some(upload) = &call.upload {
            turn.files.discard(&upload.id);
        }
        Answer::empty(status)
    };
    let Some(mut publish) = call.query("upload_id").and_then(|id| by_upload(turn, id)) else {
        return discard(turn, 404);
    };
    let is_over = turn.now - publish.created_at >= TimeDelta::seconds(UPLOAD_SECONDS);
    if call.query("upload_token") != Some(&publish.token) || is_over {
        return discard(turn, 403);
    }
    let stored = publish.stored();
    let told = |answer: Answer, publish: &Publish| {
        let last = publish.stored().saturating_sub(1);
        answer.with("content-range", format!("bytes 0-{last}/{}", publish.size))
    };
    let range = call.header("content-range").and_then(range);
    let (Some((first, last, total)), Some(piece)) = (range, call.upload.clone()) else {
        return discard(turn, 400);
    };
    let is_typed =
        call.mime().is_some_and(|mime| ["video/mp4", "video/quicktime", "video/webm"].contains(&mime));
    if !is_typed || total != publish.size || last < first || last - first + 1 != piece.size_bytes {
        return discard(turn, 400);
    }
    if first != stored || publish.finished_at.is_some() {
        return told(discard(turn, 416), &publish);
    }
    let index = publish.pieces.len() as u64;
    let is_last = index + 1 == publish.chunks;
    let expected = if is_last { publish.size - stored } else { publish.chunk_size };
    if piece.size_bytes != expected {
        return discard(turn, 400);
    }
    let Some(owner) = account::numbered(turn.shelf, ID, &publish.owner) else { return discard(turn, 404) };
    if is_last {
        let fault = fault::draw_only(turn, ID, &owner.username, &words(&publish.info), |kind| {
            !matches!(kind, Kind::Refuse(400..=499))
        });
        let fault = match fault {
            Ok(fault) => fault,
            Err(fault) => {
                turn.files.discard(&piece.id);
                return TikTok.fail(turn, call, fault);
            }
        };
        publish.pieces.push(piece);
        judge(&mut publish);
        finish(turn, &mut publish);
        let answer = told(Answer::empty(201), &publish).because(fault);
        return match publish.came_into_being() {
            Some(_) => answer.publishing(publish.post),
            None => answer,
        };
    }
    publish.pieces.push(piece);
    if publish.stored() > KEPT_BYTES {
        // Nobody can look at a part of a film; what is known of it stays.
        publish.pieces.iter().for_each(|piece| turn.files.discard(&piece.id));
    }
    turn.shelf.put(&publish);
    told(Answer::empty(206), &publish)
}

fn range(text: &str) -> Option<(u64, u64, u64)> {
    let (span, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = span.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, total.parse().ok()?))
}

/// A post that came with all it needs.
fn complete(turn: &mut Turn<'_>, call: &Call, caller: &Account, mut publish: Publish) -> Result<Answer, Answer> {
    let fault = fault::draw_only(turn, ID, &caller.username, &words(&publish.info), |kind| {
        !matches!(kind, Kind::Refuse(400..=499))
    });
    let fault = match fault {
        Ok(fault) => fault,
        Err(fault) => return Err(TikTok.fail(turn, call, fault)),
    };
    allow(turn, caller)?;
    keep(turn, &publish);
    finish(turn, &mut publish);
    let answer = success(&json!({ "publish_id": publish.id })).because(fault);
    Ok(match publish.came_into_being() {
        Some(_) => answer.publishing(publish.post),
        None => answer,
    })
}

fn keep(turn: &mut Turn<'_>, publish: &Publish) {
    turn.shelf.put(publish);
    for key in [
        format!("upload/{}", publish.upload),
        format!("by/{}/{:020}/{}", publish.owner, publish.number, publish.id),
    ] {
        turn.shelf.put(&Way { key, publish: publish.id.clone() });
    }
}

/// All bytes are here.
fn finish(turn: &mut Turn<'_>, publish: &mut Publish) {
    let mime = |piece: &Upload| piece.mime.clone().unwrap_or_default();
    let is_whole = !publish.is_video || publish.pieces.len() == 1;
    publish.files = match is_whole {
        true => publish.pieces.iter().map(|piece| (piece.id.clone(), mime(piece))).collect(),
        false => joined(turn, &publish.pieces).into_iter().collect(),
    };
    publish.finished_at = Some(turn.now);
    turn.shelf.put(publish);
}

/// The pieces of a film put together, where they were kept.
fn joined(turn: &Turn<'_>, pieces: &[Upload]) -> Option<(String, String)> {
    let mut whole = Vec::new();
    for piece in pieces {
        whole.extend_from_slice(&turn.files.read(&piece.id)?);
    }
    let kept = turn.files.keep(whole.into()).ok()?;
    pieces.iter().for_each(|piece| turn.files.discard(&piece.id));
    Some((kept.id, pieces.first()?.mime.clone().unwrap_or_default()))
}

/// `POST /v2/post/publish/status/fetch/`.
pub(super) fn status(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, EITHER, STATUSES)?;
    let publish = own(turn, &caller, &body(call, "invalid_param")?)?;
    let state = publish.state(turn);
    let mut data = json!({ "status": state, "publicaly_available_post_id": [] });
    if state == "FAILED" {
        data["fail_reason"] = json!(publish.failure);
    }
    let count = if publish.is_pulled { "downloaded_bytes" } else { "uploaded_bytes" };
    data[count] = json!(publish.stored());
    if publish.is_public(turn) {
        // A number, although it is larger than what a float holds.
        data["publicaly_available_post_id"] = json!([publish.post.parse::<u64>().unwrap_or_default()]);
    }
    Ok(success(&data))
}

/// `POST /v2/post/publish/cancel/`: only of what is being fetched.
pub(super) fn cancel(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, EITHER, STATUSES)?;
    let mut publish = own(turn, &caller, &body(call, "invalid_param")?)?;
    if publish.state(turn) != "PROCESSING_DOWNLOAD" {
        return Err(refusal(400, "publish_not_cancellable", "The publish can't be canceled any more."));
    }
    publish.failure = Some("publish_cancelled".into());
    turn.shelf.put(&publish);
    Ok(success(&json!({})))
}

fn own(turn: &Turn<'_>, caller: &Account, body: &Value) -> Result<Publish, Answer> {
    let id = body["publish_id"].as_str().unwrap_or_default();
    let publish: Publish = turn
        .shelf
        .get(id)
        .ok_or_else(|| refusal(400, "invalid_publish_id", "The publish_id does not exist."))?;
    match publish.owner == caller.id {
        true => Ok(publish),
        false => Err(refusal(
            400,
            "token_not_authorized_for_specified_publish_id",
            "The access_token does not have authorization for the publish_id.",
        )),
    }
}
