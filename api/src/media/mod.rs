//! Media assets: announced, sent, confirmed, and then used by posts.
//!
//! The bytes go past the API: to where `upload_url` says, which is [`crate::media::content`] or a bucket. What they
//! are is found out by a worker, which confirming waits for; what it found is in the row.

pub mod content;

use crate::{
    ask,
    http::{
        body::Json,
        caller::{Call, Caller, MediaRead, MediaWrite},
        outbound_url,
        problem::{Code, Issue, Problem},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{deleted::DeletedResource, enum_string::EnumString, timestamp::Timestamp, url::Link},
};
use chrono::TimeDelta;
use domain::{MediaId, MediaKind, MediaStatus};
use media::Asset;
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};
use store::media::{Claim, Deleted, NewMedia, Reason};
use tracing::error;
use url::Url;
use uuid::Uuid;
use workflows::{
    activities,
    ask::{Answer, Question},
};

/// How long bytes are awaited: a large film on a slow line takes its time.
const UPLOAD_URL_TTL: TimeDelta = TimeDelta::hours(12);
/// How long an address that is shown can be fetched.
const DOWNLOAD_URL_TTL: Duration = Duration::from_secs(3600);
/// How many rows a page has when nobody says, and at most.
const PAGE_LIMITS: (i64, i64) = (25, 100);
/// What says nothing of what a file is.
const UNKNOWN_CONTENT_TYPE: &str = "application/octet-stream";

/// The operations on media.
pub struct MediaAssets;

#[OpenApi(tag = "Tag::Media")]
impl MediaAssets {
    /// Announce an upload
    ///
    /// Gives an address that takes the bytes by one PUT, with the headers in `upload_headers` and without
    /// an API key. It may be repeated until the upload is confirmed. What is announced of the bytes they
    /// are held to. Scope `media:write`.
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
    /// Looks at the bytes, which decide what the asset is. Small files are `ready` then; larger ones are
    /// `uploaded` until all of them was read, and posts may refer to both. Repeating it does nothing. 409
    /// as long as no bytes have arrived; what is refused stays `failed`. Scope `media:write`.
    #[oai(path = "/media/:id/confirm", method = "post", operation_id = "confirmMedia")]
    async fn confirm(&self, caller: Caller<MediaWrite>, id: Path<String>) -> Result<Json<Media>, Problem> {
        Ok(Json(confirm(&caller.call(), &id).await?))
    }

    /// Import a file
    ///
    /// A worker fetches it from an address on the public internet; the asset is `ready` or `failed` then.
    /// Scope `media:write`.
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
    /// Newest first. Scope `media:read`.
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
    /// Scope `media:read`.
    #[oai(path = "/media/:id", method = "get", operation_id = "getMedia")]
    async fn get(&self, caller: Caller<MediaRead>, id: Path<String>) -> Result<Json<Media>, Problem> {
        Ok(Json(get(&caller.call(), &id).await?))
    }

    /// Delete a media asset
    ///
    /// Its bytes go with it. 409 while a post that has not ended needs it. Scope `media:write`.
    #[oai(path = "/media/:id", method = "delete", operation_id = "deleteMedia")]
    async fn delete(
        &self,
        caller: Caller<MediaWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }
}

/// Announces an upload.
pub async fn upload(call: &Call<'_>, body: NewUpload) -> Result<Upload, Problem> {
    let claimed = media::claimed(body.content_type.as_deref(), &body.filename);
    if let Some(content_type) =
        body.content_type.as_deref().filter(|text| essence(text) != UNKNOWN_CONTENT_TYPE)
        && media::format(content_type).is_none()
    {
        let issue = Issue::custom(["content_type"], format!("'{content_type}' is no type that is taken"));
        let problem = Problem::new(Code::Unprocessable, "files of this type are not taken");
        return Err(problem.with_issues(vec![issue]));
    }
    let most = call.app.config.media.caps().of_claim(claimed);
    if body.size.is_some_and(|size| size > most) {
        return Err(too_large(format!("at most {most} bytes are taken of such a file")));
    }
    let now = call.now();
    let claim = Claim {
        content_type: body.content_type.filter(|text| essence(text) != UNKNOWN_CONTENT_TYPE),
        size: body.size,
        sha256: body.sha256.map(|digest| digest.to_lowercase()),
    };
    let new = NewMedia {
        kind: claimed.unwrap_or(MediaKind::Document),
        filename: body.filename,
        claim,
        alt_text: body.alt_text,
        source_url: None,
        upload_expires_at: now + UPLOAD_URL_TTL,
    };
    let row = store::media::create(call.db(), call.owner, new, now).await?;
    let file = asset(call, &row);
    let address = call.app.config.media.upload_address(&file, row.upload_expires_at, now).await;
    let content_type = row.claim.content_type.clone().unwrap_or_else(|| UNKNOWN_CONTENT_TYPE.to_owned());
    Ok(Upload {
        upload_url: address.map_err(|error| unopened(&error))?.into(),
        upload_method: "PUT".to_owned(),
        upload_headers: [("Content-Type".to_owned(), content_type)].into(),
        expires_at: row.upload_expires_at.into(),
        media: shown(call, row).await?,
    })
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
    let asset = activities::Asset { media: row.id, owner: call.owner };
    match ask::ask(call, Question::Media(asset)).await? {
        Answer::Media(activities::Confirmed::Settled) => settled(call, find(call, id).await?).await,
        Answer::Media(activities::Confirmed::Missing) => Err(awaited()),
        _ => Err(ask::mistaken()),
    }
}

/// An asset that was looked at, or why it is not taken.
async fn settled(call: &Call<'_>, row: store::media::Media) -> Result<Media, Problem> {
    match &row.fault {
        Some(fault) if row.status == MediaStatus::Failed => Err(match fault.reason {
            Reason::TooLarge => too_large(fault.message.clone()),
            Reason::Unfit => Problem::new(Code::Unprocessable, fault.message.clone()),
            Reason::Unfetched => Problem::new(Code::Conflict, fault.message.clone()),
        }),
        _ if row.status == MediaStatus::PendingUpload => Err(awaited()),
        _ => shown(call, row).await,
    }
}

/// Lets a file be fetched.
pub async fn import(call: &Call<'_>, body: NewImport) -> Result<Media, Problem> {
    let url = body.url.url;
    if let Some(issue) = outbound_url::objection(&url, call.app.config.opened.of(call.owner.mode)).await {
        return Err(Problem::invalid_body(vec![issue]));
    }
    let now = call.now();
    let filename = name(&url);
    let new = NewMedia {
        kind: media::claimed(None, &filename).unwrap_or(MediaKind::Document),
        filename,
        claim: Claim::default(),
        alt_text: body.alt_text,
        source_url: Some(url.into()),
        upload_expires_at: now + UPLOAD_URL_TTL,
    };
    let row = store::media::create(call.db(), call.owner, new, now).await?;
    shown(call, row).await
}

/// The last part of an address's path.
fn name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    if last.is_empty() { "import".to_owned() } else { media::Name::of(last).as_str().to_owned() }
}

/// A stretch of the assets that fit.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<MediaPage, Problem> {
    let limit =
        u32::try_from(filter.limit.unwrap_or(PAGE_LIMITS.0).clamp(1, PAGE_LIMITS.1)).expect("at most 100");
    let offset = u64::try_from(filter.offset.unwrap_or_default()).unwrap_or_default();
    let which = store::media::Filter {
        kind: filter.kind.map(|kind| kind.value()),
        status: filter.status.map(|status| status.value()),
    };
    let found = store::media::list(call.db(), call.owner, which, limit, offset).await?;
    let mut data = Vec::with_capacity(found.items.len());
    for row in found.items {
        data.push(shown(call, row).await?);
    }
    Ok(MediaPage { data, pagination: Pagination { limit, offset, total: found.total } })
}

/// An asset.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Media, Problem> {
    shown(call, find(call, id).await?).await
}

/// Deletes an asset.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    match store::media::delete(call.db(), call.owner, id, call.now()).await? {
        Deleted::Gone => Ok(DeletedResource { id: id.0, deleted: true }),
        Deleted::Needed => Err(Problem::new(Code::Conflict, "a post that has not ended needs it")),
        Deleted::Unknown => Err(missing()),
    }
}

async fn find(call: &Call<'_>, id: &str) -> Result<store::media::Media, Problem> {
    store::media::get(call.db(), call.owner, read(id)?).await?.ok_or_else(missing)
}

fn read(id: &str) -> Result<MediaId, Problem> {
    id.parse().map_err(|_| missing())
}

pub(crate) fn missing() -> Problem {
    Problem::not_found("media asset")
}

pub(crate) fn too_large(detail: String) -> Problem {
    Problem::new(Code::PayloadTooLarge, detail)
}

fn awaited() -> Problem {
    Problem::new(Code::Conflict, "the bytes have not arrived yet; PUT them to upload_url first")
}

fn unopened(error: &anyhow::Error) -> Problem {
    error!(error = %format!("{error:#}"), "No address can be made for a file");
    Problem::internal()
}

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn asset(call: &Call<'_>, row: &store::media::Media) -> Asset {
    Asset { media: row.id, owner: call.owner, filename: row.filename.clone() }
}

/// An asset as it is shown; what is ready, with an address for a while.
async fn shown(call: &Call<'_>, row: store::media::Media) -> Result<Media, Problem> {
    let mut url = None;
    if let (MediaStatus::Ready, Some(mime)) = (row.status, &row.content_type) {
        let address =
            call.app.config.media.address(&asset(call, &row), mime, DOWNLOAD_URL_TTL, call.now()).await;
        url = Some(address.map_err(|error| unopened(&error))?.into());
    }
    Ok(Media {
        id: row.id.0,
        kind: EnumString::of(row.kind.as_str()),
        filename: row.filename,
        content_type: row.content_type,
        size: row.size,
        width: row.width,
        height: row.height,
        duration_ms: row.duration_ms,
        sha256: row.sha256,
        alt_text: row.alt_text,
        status: EnumString::of(row.status.as_str()),
        error: row.fault.map(|fault| fault.message),
        url,
        created_at: row.created_at.into(),
    })
}

/// A file to upload.
#[derive(Debug, Object)]
pub struct NewUpload {
    /// Its name.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub filename: String,
    /// Its content type. The bytes decide; one that contradicts them is refused.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub content_type: Option<String>,
    /// How many bytes will come.
    #[oai(validator(minimum(value = "1"), maximum(value = "1099511627776")))]
    pub size: Option<u64>,
    /// Their SHA-256, in hex.
    #[oai(validator(min_length = 64, max_length = 64))]
    pub sha256: Option<String>,
    /// What it shows, for those who can't see it.
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
        // It goes back as a header.
        if text("content_type").is_some_and(|text| !text.chars().all(|c| matches!(c, ' '..='~'))) {
            issues.push(Issue::custom(["content_type"], "Must be a content type, such as image/png"));
        }
    }
}

/// A file to fetch.
#[derive(Debug, Object)]
#[oai(rename = "NewMediaImport")]
pub struct NewImport {
    /// Where it is: an https URL that leads to the public internet.
    #[oai(validator(max_length = 8192))]
    pub url: Link,
    /// What it shows, for those who can't see it.
    #[oai(validator(max_length = 5000))]
    pub alt_text: Option<String>,
}

impl Rules for NewImport {}

/// Which assets to list. All conditions must hold.
#[derive(Debug, Default, Object)]
#[oai(rename = "MediaFilter")]
pub struct Filter {
    /// How many to list, 1 to 100; values beyond are clamped. 25 by default.
    pub limit: Option<i64>,
    /// How many to pass over; 0 by default.
    pub offset: Option<i64>,
    /// Assets of this kind.
    pub kind: Option<EnumString<MediaKind>>,
    /// Assets in this state.
    pub status: Option<EnumString<MediaStatus>>,
}

impl Rules for Filter {}

/// A stretch of the assets.
#[derive(Debug, Object)]
pub struct MediaPage {
    /// The assets, newest first.
    pub data: Vec<Media>,
    /// Where the stretch lies.
    pub pagination: Pagination,
}

/// Where a stretch of a list lies.
#[derive(Debug, Object)]
pub struct Pagination {
    /// How many were asked for.
    pub limit: u32,
    /// How many were passed over.
    pub offset: u64,
    /// How many fit in all.
    pub total: u64,
}

/// A media asset.
#[derive(Debug, Object)]
pub struct Media {
    /// Its identifier.
    pub id: Uuid,
    /// What it is, as its bytes say; before they were looked at, what it claims to be.
    pub kind: EnumString<MediaKind>,
    /// Its name.
    pub filename: String,
    /// Its content type; before it was looked at, as it was declared.
    #[oai(nullable)]
    pub content_type: Option<String>,
    /// Its size in bytes; before it was looked at, as it was announced.
    #[oai(nullable)]
    pub size: Option<u64>,
    /// How wide it is, in pixels.
    #[oai(nullable)]
    pub width: Option<u32>,
    /// How high it is, in pixels.
    #[oai(nullable)]
    pub height: Option<u32>,
    /// How long it plays, in milliseconds.
    #[oai(nullable)]
    pub duration_ms: Option<u64>,
    /// The SHA-256 of its bytes, in lower-case hex.
    #[oai(nullable)]
    pub sha256: Option<String>,
    /// What it shows, for those who can't see it. A post may say it otherwise.
    #[oai(nullable)]
    pub alt_text: Option<String>,
    /// Its state. `uploaded` and `ready` can be posted; `failed` never can.
    pub status: EnumString<MediaStatus>,
    /// Why it failed, for people.
    #[oai(nullable)]
    pub error: Option<String>,
    /// Where it can be fetched for the next hour, once it is `ready`.
    #[oai(nullable)]
    pub url: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A media asset whose bytes are awaited.
#[derive(Debug, Object)]
#[oai(rename = "MediaUpload")]
pub struct Upload {
    /// The asset.
    #[oai(flatten)]
    pub media: Media,
    /// Where the bytes are to be sent.
    pub upload_url: String,
    /// How: `PUT`.
    pub upload_method: String,
    /// With which headers.
    pub upload_headers: BTreeMap<String, String>,
    /// Until when.
    pub expires_at: Timestamp,
}

/// The answer to an announcement.
#[derive(ApiResponse)]
enum AnnouncedUpload {
    /// The bytes are awaited.
    #[oai(status = 201)]
    New(Json<Upload>),
}

/// The answer to an import.
#[derive(ApiResponse)]
enum AcceptedImport {
    /// A worker fetches it.
    #[oai(status = 202)]
    Accepted(Json<Media>),
}
