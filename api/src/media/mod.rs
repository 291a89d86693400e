//! Media assets: announced, uploaded, confirmed, and then used by posts.
//!
//! Bytes are sent to `upload_url`, which is [`crate::media::content`] or a bucket. Confirming waits for a
//! worker that inspects them and stores the result.

pub mod content;
pub mod settings;

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, MediaRead, MediaWrite},
        outbound_url,
        page::page_size,
        plan,
        problem::{Code, Issue, Problem},
        query::Query,
        workers,
    },
    openapi::{
        tag::Tag,
        validate::{Null, Rules},
    },
    types::{deleted::DeletedResource, enum_string::EnumString, timestamp::Timestamp, url::Link},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Bound, MediaId, MediaKind, MediaStatus,
    media::{DeclaredFile, Metadata},
};
use futures::Stream;
use media::{Piece, StoredFile};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path, types::MaybeUndefined};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};
use store::{
    media::{DeleteResult, DescribeResult, NewMedia, Reason},
    usage::ceilings::Exceeded,
};
use tokio::time::Instant;
use tracing::error;
use url::Url;
use uuid::Uuid;
use workflows::{
    activities::{ConfirmResult, MediaRef},
    worker_request::ConfirmMedia,
};

/// Lifetime of an upload URL: a large video on a slow connection takes hours.
const UPLOAD_URL_TTL: TimeDelta = TimeDelta::hours(12);
/// Lifetime of a download URL.
const DOWNLOAD_URL_TTL: Duration = Duration::from_secs(3600);
/// First and longest pause between two looks at an asset that is waited for.
const POLL_INTERVAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Name of the storage ceiling in the message of a refusal.
pub(crate) const STORAGE: &str = "bytes of media";
/// A content type without information.
const UNKNOWN_CONTENT_TYPE: &str = "application/octet-stream";

/// The operations on media.
pub struct MediaAssets;

#[OpenApi(tag = "Tag::Media")]
impl MediaAssets {
    /// Create an upload
    ///
    /// Returns a URL that takes the file by one PUT request, with the headers in `upload_headers` and without
    /// an API key. The PUT can be repeated until the upload is confirmed. The file must match the declared
    /// properties. Scope `media:write`.
    #[oai(path = "/media/upload", method = "post", operation_id = "uploadMedia")]
    async fn upload(
        &self,
        caller: Caller<MediaWrite>,
        body: Json<NewUpload>,
    ) -> Result<AnnouncedUpload, Problem> {
        Ok(AnnouncedUpload::New(Json(upload(&caller.call(), body.0).await?)))
    }

    /// Confirm an upload
    ///
    /// Inspects the uploaded bytes and sets the asset's type and status. Small files become `ready`; larger
    /// ones, and pictures that no platform takes as they are (HEIC, AVIF, TIFF), are `uploaded` until they are fully read
    /// and decoded. Posts can use both. Repeating the call has no effect.
    /// Fails with 409 while nothing is uploaded, and as the PUT did if that was refused; a rejected file is `failed`
    /// permanently. Scope `media:write`.
    #[oai(path = "/media/:id/confirm", method = "post", operation_id = "confirmMedia")]
    async fn confirm(&self, caller: Caller<MediaWrite>, id: Path<String>) -> Result<Json<Media>, Problem> {
        Ok(Json(confirm(&caller.call(), &id).await?))
    }

    /// Import a file
    ///
    /// Fetches a file from a public URL in the background; afterwards the asset is `ready` or `failed`. Scope
    /// `media:write`.
    #[oai(path = "/media/import", method = "post", operation_id = "importMedia")]
    async fn import(
        &self,
        caller: Caller<MediaWrite>,
        body: Json<NewImport>,
    ) -> Result<AcceptedImport, Problem> {
        Ok(AcceptedImport::Accepted(Json(import(&caller.call(), body.0).await?)))
    }

    /// List media
    ///
    /// Lists media assets, newest first. Scope `media:read`.
    #[oai(path = "/media", method = "get", operation_id = "listMedia")]
    async fn list(
        &self,
        caller: Caller<MediaRead>,
        query: Query<Filter>,
    ) -> Result<Json<MediaPage>, Problem> {
        Ok(Json(list(&caller.call(), query.0).await?))
    }

    /// Get a media asset
    ///
    /// With `wait`, returns as soon as the asset is `ready` or `failed`, or as it is when that many seconds are
    /// over. The events `media.ready` and `media.failed` tell the same. Scope `media:read`.
    #[oai(path = "/media/:id", method = "get", operation_id = "getMedia")]
    async fn get(
        &self,
        caller: Caller<MediaRead>,
        id: Path<String>,
        query: Query<Wait>,
    ) -> Result<Json<Media>, Problem> {
        Ok(Json(get(&caller.call(), &id, query.0).await?))
    }

    /// Update a media asset
    ///
    /// Changes the alt text. A post that names no alt text for the asset is published with the one that the asset has
    /// then, also if it was created before; a published post keeps the text that it was sent with. Fails with 409 while
    /// a post with the asset is being published or retried. Scope `media:write`.
    #[oai(path = "/media/:id", method = "patch", operation_id = "updateMedia")]
    async fn update(
        &self,
        caller: Caller<MediaWrite>,
        id: Path<String>,
        body: Json<MediaPatch>,
    ) -> Result<Json<Media>, Problem> {
        Ok(Json(update(&caller.call(), &id, body.0).await?))
    }

    /// Delete a media asset
    ///
    /// Also deletes the file. Fails with 409 while an unfinished post uses the asset. Scope `media:write`.
    #[oai(path = "/media/:id", method = "delete", operation_id = "deleteMedia")]
    async fn delete(
        &self,
        caller: Caller<MediaWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }
}

/// Fails if no file can be uploaded that has the declared size. What its type is, only the bytes tell.
fn check_declared(call: &Call<'_>, body: &NewUpload) -> Result<(), Problem> {
    let claimed = media::claimed(body.content_type.as_deref(), &body.filename);
    let most = call.app.config.media.size_limits().for_declared(claimed);
    if body.size.is_some_and(|size| size > most) {
        return Err(too_large(format!("the maximum for this type of file is {most} bytes")));
    }
    Ok(())
}

/// Creates an upload.
pub async fn upload(call: &Call<'_>, body: NewUpload) -> Result<Upload, Problem> {
    check_declared(call, &body)?;
    if body.size.is_none()
        && call.app.config.media.is_in_bucket()
        && plan::of(call).await?.storage_bytes.is_some()
    {
        // A bucket takes a file of any size that the signature does not fix, whether there is room or not.
        let message = "Is required, because the plan limits the storage and the file goes to a bucket";
        return Err(Problem::invalid_body(vec![Issue::custom(["size"], message)]));
    }
    let now = call.now();
    let row = announce(call, body, now).await?;
    let file = asset(call, &row);
    let (files, size) = (&call.app.config.media, row.declared.size);
    let address = files.upload_address(&file, size, row.upload_expires_at, now).await;
    let content_type = row.declared.content_type.clone().unwrap_or_else(|| UNKNOWN_CONTENT_TYPE.to_owned());
    Ok(Upload {
        upload_url: address.map_err(|error| unopened(&error))?.into(),
        upload_method: "PUT".to_owned(),
        upload_headers: [("Content-Type".to_owned(), content_type)].into(),
        expires_at: row.upload_expires_at.into(),
        asset: asset_of(call, row).await?,
    })
}

/// Creates and confirms an asset with bytes that came with the request.
pub async fn receive(
    call: &Call<'_>,
    body: NewUpload,
    bytes: impl Stream<Item = Piece>,
) -> Result<Media, Problem> {
    check_declared(call, &body)?;
    let row = announce(call, body, call.now()).await?;
    let received = content::receive(call.app, call.owner, &row, None, bytes).await?;
    received.map_err(|error| content::refusal(&row.declared, error).0)?;
    confirm(call, &row.id.to_string()).await
}

/// Returns the origin to which browsers upload files, if it is a bucket's.
pub async fn upload_origin(call: &Call<'_>) -> Result<Option<String>, Problem> {
    let files = &call.app.config.media;
    if !files.is_in_bucket() {
        return Ok(None);
    }
    let any = StoredFile {
        media: MediaId(Uuid::nil()),
        owner: call.owner,
        filename: String::new(),
        rendition: None,
    };
    let now = call.now();
    let address = files.upload_address(&any, None, now + UPLOAD_URL_TTL, now).await;
    Ok(Some(address.map_err(|error| unopened(&error))?.origin().ascii_serialization()))
}

/// Creates an asset that waits for its file.
async fn announce(
    call: &Call<'_>,
    body: NewUpload,
    now: DateTime<Utc>,
) -> Result<store::media::Media, Problem> {
    let claimed = media::claimed(body.content_type.as_deref(), &body.filename);
    let declared = DeclaredFile {
        content_type: body.content_type.filter(|text| essence(text) != UNKNOWN_CONTENT_TYPE),
        size: body.size,
        sha256: body.sha256.map(|digest| digest.to_lowercase()),
    };
    let new = NewMedia {
        kind: claimed.unwrap_or(MediaKind::Document),
        filename: body.filename,
        declared,
        alt_text: body.alt_text,
        source_url: None,
        upload_expires_at: now + UPLOAD_URL_TTL,
        bound: call.bound.clone(),
        storage_limit: None,
    };
    create(call, new, now).await
}

/// Confirms an upload.
pub async fn confirm(call: &Call<'_>, id: &str) -> Result<Media, Problem> {
    let row = find(call, id).await?;
    if row.source_url.is_some() && row.status == MediaStatus::PendingUpload {
        return Err(Problem::new(Code::Conflict, "the file is still being fetched"));
    }
    if row.status != MediaStatus::PendingUpload {
        return settled(call, row).await;
    }
    let request = ConfirmMedia(MediaRef { media: row.id, owner: call.owner });
    match workers::request(call, request).await? {
        ConfirmResult::Settled => settled(call, find(call, id).await?).await,
        ConfirmResult::Missing => Err(refused(&row).unwrap_or_else(awaited)),
    }
}

/// The reason why an asset can't be used, if it is known: why its file was rejected, or why no file was taken.
fn refused(row: &store::media::Media) -> Option<Problem> {
    let fault = row.fault.as_ref()?;
    let message = fault.message.clone();
    Some(match fault.reason {
        Reason::TooLarge => too_large(message),
        Reason::Unfit => Problem::new(Code::Unprocessable, message),
        Reason::Unfetched => Problem::new(Code::Conflict, message),
    })
}

/// The inspected asset, or the reason why it was rejected.
async fn settled(call: &Call<'_>, row: store::media::Media) -> Result<Media, Problem> {
    match (row.status, refused(&row)) {
        (MediaStatus::Failed | MediaStatus::PendingUpload, Some(problem)) => Err(problem),
        (MediaStatus::PendingUpload, None) => Err(awaited()),
        _ => shown(call, row).await,
    }
}

/// Starts fetching a file.
pub async fn import(call: &Call<'_>, body: NewImport) -> Result<Media, Problem> {
    let url = body.url.url;
    if let Some(issue) = outbound_url::check(&url, call.app.config.opened.of(call.owner.mode)).await {
        return Err(Problem::invalid_body(vec![issue]));
    }
    let now = call.now();
    let row = create(call, imported(url, body.alt_text, call.bound.clone(), now), now).await?;
    shown(call, row).await
}

/// Creates an asset within the plan's storage.
async fn create(call: &Call<'_>, new: NewMedia, now: DateTime<Utc>) -> Result<store::media::Media, Problem> {
    let plan = plan::of(call).await?;
    let new = NewMedia { storage_limit: plan.storage_bytes, ..new };
    let created = store::media::create(call.db(), call.owner, new, now).await?;
    created.map_err(|exceeded| plan.refuse_more(STORAGE, exceeded))
}

/// 402: the plan's storage has no room for the files of a post.
pub(crate) async fn no_room(call: &Call<'_>, exceeded: Exceeded) -> Problem {
    match plan::of(call).await {
        Ok(plan) => plan.refuse_more(STORAGE, exceeded),
        Err(problem) => problem,
    }
}

/// Returns the asset to create for a file at a URL.
pub(crate) fn imported(url: Url, alt_text: Option<String>, bound: Bound, now: DateTime<Utc>) -> NewMedia {
    let filename = name(&url);
    NewMedia {
        kind: media::claimed(None, &filename).unwrap_or(MediaKind::Document),
        filename,
        declared: DeclaredFile::default(),
        alt_text,
        source_url: Some(url.into()),
        upload_expires_at: now + UPLOAD_URL_TTL,
        bound,
        storage_limit: None,
    }
}

/// The last segment of a URL's path.
fn name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    if last.is_empty() { "import".to_owned() } else { media::Name::of(last).as_str().to_owned() }
}

/// Lists the assets that match a filter.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<MediaPage, Problem> {
    let limit = page_size(filter.limit);
    let offset = u64::try_from(filter.offset.unwrap_or_default()).unwrap_or_default();
    let which = store::media::Filter {
        kind: filter.kind.map(|kind| kind.value()),
        status: filter.status.map(|status| status.value()),
    };
    let found = store::media::list(call.db(), call.access(), which, limit, offset).await?;
    let data = shown_all(call, found.items).await?;
    Ok(MediaPage { data, pagination: Pagination { limit, offset, total: found.total } })
}

/// Returns an asset, once it is ready or failed or the wait is over.
pub async fn get(call: &Call<'_>, id: &str, wait: Wait) -> Result<Media, Problem> {
    let until = Instant::now() + Duration::from_secs(wait.wait.unwrap_or_default().into());
    let mut pause = POLL_INTERVAL.0;
    loop {
        let row = find(call, id).await?;
        let has_ended = matches!(row.status, MediaStatus::Ready | MediaStatus::Failed);
        let left = until.saturating_duration_since(Instant::now());
        if has_ended || left.is_zero() {
            return shown(call, row).await;
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(POLL_INTERVAL.1);
    }
}

/// Changes an asset.
pub async fn update(call: &Call<'_>, id: &str, body: MediaPatch) -> Result<Media, Problem> {
    let alt_text = match body.alt_text {
        MaybeUndefined::Undefined => return shown(call, find(call, id).await?).await,
        MaybeUndefined::Null => None,
        MaybeUndefined::Value(text) => Some(text),
    };
    match store::media::describe(call.db(), call.access(), read(id)?, alt_text.as_deref(), call.now()).await?
    {
        DescribeResult::Described(row) => shown(call, *row).await,
        DescribeResult::InUse => Err(Problem::new(
            Code::Conflict,
            "a post with this file is being published or retried; change the alt text when it has ended",
        )),
        DescribeResult::NotFound => Err(missing()),
    }
}

/// Deletes an asset.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    match store::media::delete(call.db(), call.access(), id, call.now()).await? {
        DeleteResult::Deleted => Ok(DeletedResource { id: id.0, deleted: true }),
        DeleteResult::InUse => Err(Problem::new(Code::Conflict, "a post that has not ended needs it")),
        DeleteResult::NotFound => Err(missing()),
    }
}

async fn find(call: &Call<'_>, id: &str) -> Result<store::media::Media, Problem> {
    store::media::get(call.db(), call.access(), read(id)?).await?.ok_or_else(missing)
}

/// Reads the id of an asset.
///
/// # Errors
///
/// `not_found` if it is none.
pub fn read(id: &str) -> Result<MediaId, Problem> {
    id.parse().map_err(|_| missing())
}

pub(crate) fn missing() -> Problem {
    Problem::not_found("media asset")
}

pub(crate) fn too_large(detail: String) -> Problem {
    Problem::new(Code::PayloadTooLarge, detail)
}

fn awaited() -> Problem {
    Problem::new(Code::Conflict, "no file was uploaded yet; PUT it to upload_url first")
}

fn unopened(error: &anyhow::Error) -> Problem {
    error!(error = %format!("{error:#}"), "No URL can be created for a file");
    Problem::internal()
}

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn asset(call: &Call<'_>, row: &store::media::Media) -> StoredFile {
    StoredFile { media: row.id, owner: call.owner, filename: row.filename.clone(), rendition: None }
}

/// Converts an asset for a response.
async fn shown(call: &Call<'_>, row: store::media::Media) -> Result<Media, Problem> {
    let mut shown = shown_all(call, vec![row]).await?;
    Ok(shown.pop().expect("one asset for each row"))
}

/// Converts assets for a response, in the same order.
async fn shown_all(call: &Call<'_>, rows: Vec<store::media::Media>) -> Result<Vec<Media>, Problem> {
    let ids: Vec<_> = rows.iter().map(|row| row.id.0).collect();
    let retention = call.app.config.media_retention;
    let expiry = store::media::expiry(call.db(), call.access(), &ids, retention).await?;
    let mut shown = Vec::with_capacity(rows.len());
    for row in rows {
        let expires_at = expiry.get(&row.id).copied().map(Timestamp::from);
        shown.push(Media { asset: asset_of(call, row).await?, expires_at });
    }
    Ok(shown)
}

/// Converts the properties of an asset; a ready one has a temporary download URL.
async fn asset_of(call: &Call<'_>, row: store::media::Media) -> Result<Asset, Problem> {
    let mut url = None;
    if let (MediaStatus::Ready, Some(mime)) = (row.status, &row.content_type) {
        let address =
            call.app.config.media.address(&asset(call, &row), mime, DOWNLOAD_URL_TTL, call.now()).await;
        url = Some(address.map_err(|error| unopened(&error))?.into());
    }
    Ok(Asset {
        id: row.id.0,
        kind: EnumString::of(row.kind.as_str()),
        filename: row.filename,
        content_type: row.content_type,
        size: row.size,
        width: row.width,
        height: row.height,
        duration_ms: row.duration_ms,
        facts: row.facts.map(Facts::from),
        sha256: row.sha256,
        has_location: row.metadata.map(|metadata| metadata == Metadata::Location),
        alt_text: row.alt_text,
        status: EnumString::of(row.status.as_str()),
        error: row.fault.map(|fault| fault.message),
        url,
        created_at: row.created_at.into(),
    })
}

/// How long to wait for an asset.
#[derive(Debug, Default, Object)]
#[oai(rename = "MediaWait")]
pub struct Wait {
    /// Maximum time to wait until the asset is `ready` or `failed`, in seconds; 0 by default.
    #[oai(validator(minimum(value = "0"), maximum(value = "60")))]
    pub wait: Option<u32>,
}

impl Rules for Wait {}

/// An upload to create.
#[derive(Debug, Object)]
pub struct NewUpload {
    /// File name.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub filename: String,
    /// Declared content type, a hint: a file of another kind, such as a video declared as a picture, is rejected; within
    /// a kind the type of the bytes is stored. Not needed.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub content_type: Option<String>,
    /// Declared size in bytes. Required on a plan that limits the storage, where files are uploaded to a bucket.
    #[oai(validator(minimum(value = "1"), maximum(value = "1099511627776")))]
    pub size: Option<u64>,
    /// Declared SHA-256, in hex.
    #[oai(validator(min_length = 64, max_length = 64))]
    pub sha256: Option<String>,
    /// Alt text.
    #[oai(validator(max_length = 5000))]
    pub alt_text: Option<String>,
}

impl Rules for NewUpload {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        if text("sha256").is_some_and(|text| text.len() == 64 && !text.chars().all(|c| c.is_ascii_hexdigit()))
        {
            issues.push(Issue::custom(["sha256"], "Must be hexadecimal"));
        }
        // It goes into headers of platforms, which refuse it when the post is due. U+0000 is reported for every body.
        if text("filename").is_some_and(|text| text.contains(|c: char| c != '\0' && c.is_control())) {
            issues.push(Issue::custom(["filename"], "Must not contain control characters"));
        }
        check_alt_text(body, issues);
        // The value is returned as a response header.
        if text("content_type").is_some_and(|text| !text.chars().all(|c| matches!(c, ' '..='~'))) {
            issues.push(Issue::custom(["content_type"], "Must be a content type, such as image/png"));
        }
    }
}

/// A file to fetch.
#[derive(Debug, Object)]
#[oai(rename = "NewMediaImport")]
pub struct NewImport {
    /// `https` URL on the public internet.
    #[oai(validator(max_length = 8192))]
    pub url: Link,
    /// Alt text.
    #[oai(validator(max_length = 5000))]
    pub alt_text: Option<String>,
}

impl Rules for NewImport {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        check_alt_text(body, issues);
    }
}

/// A change of a media asset. Omitted members stay unchanged.
#[derive(Debug, Object)]
pub struct MediaPatch {
    /// Alt text; null removes it.
    #[oai(nullable, validator(max_length = 5000))]
    pub alt_text: MaybeUndefined<String>,
}

impl Rules for MediaPatch {
    const NULL: Null = Null::Clears;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        check_alt_text(body, issues);
    }
}

/// Reports an alt text with a control character. The check of a post refuses these, so a post that was accepted before its
/// medium got one would fail when it is due.
fn check_alt_text(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
    let wrong = body.get("alt_text").and_then(Value::as_str).and_then(platforms::check::control_character);
    // U+0000 is reported for every body.
    if wrong.is_some_and(|c| c != '\0') {
        issues.push(Issue::custom(["alt_text"], "Must not contain control characters"));
    }
}

/// Filter for media assets. All conditions must hold.
#[derive(Debug, Default, Object)]
#[oai(rename = "MediaFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// Number of assets to skip; 0 by default.
    pub offset: Option<i64>,
    /// Assets of this kind.
    pub kind: Option<EnumString<MediaKind>>,
    /// Assets with this status.
    pub status: Option<EnumString<MediaStatus>>,
}

impl Rules for Filter {}

/// A page of media assets.
#[derive(Debug, Object)]
pub struct MediaPage {
    /// The assets, newest first.
    pub data: Vec<Media>,
    /// Position of the page in the list.
    pub pagination: Pagination,
}

/// Position of a page in a list.
#[derive(Debug, Object)]
pub struct Pagination {
    /// Requested page size.
    pub limit: u32,
    /// Number of skipped items.
    pub offset: u64,
    /// Total number of matching items.
    pub total: u64,
}

/// A media asset.
#[derive(Debug, Object)]
pub struct Media {
    /// Properties.
    #[oai(flatten)]
    pub asset: Asset,
    /// When the asset is deleted unless a post needs it until then; null while an unfinished post uses it, or if
    /// the operator keeps files without limit.
    #[oai(nullable)]
    pub expires_at: Option<Timestamp>,
}

/// The properties of a media asset.
#[derive(Debug, Object)]
#[oai(rename = "MediaAsset")]
pub struct Asset {
    /// The media asset's id.
    pub id: Uuid,
    /// Kind of media, determined from the bytes; before inspection, from the declared type. Files of kind `audio` are kept,
    /// and no platform takes them.
    pub kind: EnumString<MediaKind>,
    /// File name.
    pub filename: String,
    /// Content type; before inspection, as declared.
    #[oai(nullable)]
    pub content_type: Option<String>,
    /// Size in bytes; before inspection, as declared.
    #[oai(nullable)]
    pub size: Option<u64>,
    /// Width in pixels.
    #[oai(nullable)]
    pub width: Option<u32>,
    /// Height in pixels.
    #[oai(nullable)]
    pub height: Option<u32>,
    /// Duration in milliseconds.
    #[oai(nullable)]
    pub duration_ms: Option<u64>,
    /// Encoding of a file; null until the file is inspected.
    #[oai(nullable)]
    pub facts: Option<Facts>,
    /// SHA-256 in lower-case hex.
    #[oai(nullable)]
    pub sha256: Option<String>,
    /// True if the file says where it was taken; removed before it is published unless the organization's media settings
    /// say otherwise. Null until the file is `ready`, and for files that are neither a picture nor a video.
    #[oai(nullable)]
    pub has_location: Option<bool>,
    /// Alt text; a post can override it.
    #[oai(nullable)]
    pub alt_text: Option<String>,
    /// Status. `uploaded` and `ready` assets can be posted; `failed` is permanent.
    pub status: EnumString<MediaStatus>,
    /// Human-readable error of a failed asset.
    #[oai(nullable)]
    pub error: Option<String>,
    /// Download URL, valid for one hour; only if `ready`.
    #[oai(nullable)]
    pub url: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
}

/// Encoding of a file; a member that it does not state is null.
#[derive(Debug, Object)]
#[oai(rename = "MediaFacts")]
pub struct Facts {
    /// Codec of the pictures of a video, such as `h264`, `hevc`, `vp9` or `av1`.
    #[oai(nullable)]
    pub video_codec: Option<String>,
    /// Codec of its sound, such as `aac`, `mp3` or `opus`; null also if it is silent.
    #[oai(nullable)]
    pub audio_codec: Option<String>,
    /// Average number of frames per second.
    #[oai(nullable)]
    pub frame_rate: Option<f64>,
    /// Bits per color.
    #[oai(nullable)]
    pub bit_depth: Option<u32>,
    /// Chroma subsampling of a video: `4:2:0`, `4:2:2`, `4:4:4`, or `4:0:0` without colors.
    #[oai(nullable)]
    pub chroma: Option<String>,
    /// True if the index of an MP4 or MOV file precedes the samples (`faststart`).
    #[oai(nullable)]
    pub index_first: Option<bool>,
    /// True if an MP4 or MOV file consists of fragments.
    #[oai(nullable)]
    pub is_fragmented: Option<bool>,
    /// True if an edit list of an MP4 or MOV file leaves out, repeats or delays some of its pictures. One that only begins
    /// with the first picture does not count.
    #[oai(nullable)]
    pub has_edits: Option<bool>,
    /// True if a PDF is encrypted.
    #[oai(nullable)]
    pub is_locked: Option<bool>,
    /// True if a GIF ends before its last frame does; what is missing is not published.
    #[oai(nullable)]
    pub is_truncated: Option<bool>,
    /// Reason why a picture can't be decoded: it has no thumbnail, and can't be scaled or converted for a platform. Found
    /// soon after the asset is `ready`.
    #[oai(nullable)]
    pub undecodable: Option<String>,
    /// Reason why the metadata of a picture or video can't be removed: it is published only if the organization's media
    /// settings leave them, or as a rendition, which has none.
    #[oai(nullable)]
    pub uncleanable: Option<String>,
}

impl From<domain::media::Facts> for Facts {
    fn from(facts: domain::media::Facts) -> Self {
        Self {
            video_codec: facts.video_codec,
            audio_codec: facts.audio_codec,
            frame_rate: facts.frame_rate.map(|rate| f64::from(rate) / 1000.0),
            bit_depth: facts.bit_depth.map(u32::from),
            chroma: facts.chroma,
            index_first: facts.index_first,
            is_fragmented: facts.is_fragmented,
            has_edits: facts.has_edits,
            is_locked: facts.is_locked,
            is_truncated: facts.is_truncated,
            undecodable: facts.undecodable,
            uncleanable: facts.uncleanable,
        }
    }
}

/// An upload that waits for its file.
#[derive(Object)]
#[oai(rename = "MediaUpload")]
pub struct Upload {
    /// Properties of the media asset.
    #[oai(flatten)]
    pub asset: Asset,
    /// URL to send the file to.
    pub upload_url: String,
    /// HTTP method: `PUT`.
    pub upload_method: String,
    /// Headers to send.
    pub upload_headers: BTreeMap<String, String>,
    /// Expiry time of the URL. Of an asset, `expires_at` is when it is deleted.
    pub expires_at: Timestamp,
}

/// The response to creating an upload.
#[derive(ApiResponse)]
enum AnnouncedUpload {
    /// The upload was created.
    #[oai(status = 201)]
    New(Json<Upload>),
}

/// The response to an import.
#[derive(ApiResponse)]
enum AcceptedImport {
    /// The file is being fetched.
    #[oai(status = 202)]
    Accepted(Json<Media>),
}
