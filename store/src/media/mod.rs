//! Metadata of media assets; the bytes are in the file store.
//!
//! Creating or editing a post locks the rows of its assets (`lock_for_post`). Deleting an asset locks its
//! row and then looks for posts, so that no post is left with a deleted asset.
//!
//! Table: `media`.

use crate::{
    bounds::{self, Access, Resource, Whole},
    decode::Parsed,
    outbox,
    usage::ceilings::{self, Exceeded, Kind},
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Bound, Fit, MediaId, MediaKind, MediaStatus, Owner, PostId,
    event::{self, EventName},
    media::{DeclaredFile, Facts, Metadata},
    outbox::{MediaAction, MediaJob, Message},
};
use serde_json::Value;
use sqlx::{PgConnection, PgPool, QueryBuilder, types::Json};
use std::{collections::HashMap, time::Duration};
use uuid::Uuid;

/// Time after which an upload that was not confirmed is deleted.
pub const UPLOAD_TTL: TimeDelta = TimeDelta::hours(24);
/// Targets that are woken at once when their asset is ready.
const MAX_WOKEN: i64 = 500;

/// A media asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// Asset id.
    pub id: MediaId,
    /// Processing status.
    pub status: MediaStatus,
    /// Kind of media; the declared one until the bytes are inspected.
    pub kind: MediaKind,
    /// File name.
    pub filename: String,
    /// Content type; the declared one until the bytes are inspected.
    pub content_type: Option<String>,
    /// Size in bytes; the declared one until the bytes are inspected.
    pub size: Option<u64>,
    /// SHA-256 of the bytes, in lower-case hex.
    pub sha256: Option<String>,
    /// Width in pixels; `None` for audio.
    pub width: Option<u32>,
    /// Height in pixels; `None` for audio.
    pub height: Option<u32>,
    /// Number of frames of an animation.
    pub frames: Option<u32>,
    /// Playing time in milliseconds; `None` for still images.
    pub duration_ms: Option<u64>,
    /// Encoding; `None` before it was looked for.
    pub facts: Option<Facts>,
    /// Metadata of a picture or video; `None` before they were looked for.
    pub metadata: Option<Metadata>,
    /// Alt text.
    pub alt_text: Option<String>,
    /// Properties that the bytes must have.
    pub declared: DeclaredFile,
    /// URL that the service downloads the bytes from; `None` when they are uploaded.
    pub source_url: Option<String>,
    /// Why the asset can't be used.
    pub fault: Option<Fault>,
    /// When the upload expires.
    pub upload_expires_at: DateTime<Utc>,
    /// When the asset was created.
    pub created_at: DateTime<Utc>,
}

impl Media {
    /// Returns true while the file is fetched from its address.
    pub fn is_being_fetched(&self) -> bool {
        self.status == MediaStatus::PendingUpload && self.source_url.is_some()
    }

    /// Returns the asset as platforms see it. A post's own alt text replaces the asset's.
    pub fn medium(&self, alt_text: Option<String>) -> domain::Media {
        domain::Media {
            id: self.id.0,
            kind: self.kind,
            mime: self.content_type.clone().unwrap_or_default(),
            filename: self.filename.clone(),
            size_bytes: self.size.unwrap_or_default(),
            width: self.width,
            height: self.height,
            frames: self.frames,
            duration: self.duration_ms.map(Duration::from_millis),
            facts: self.facts.clone(),
            alt_text: alt_text.or_else(|| self.alt_text.clone()),
            rendition: None,
        }
    }
}

domain::string_enum! {
    /// Category of a [`Fault`].
    Reason, "reason" {
        /// The asset exceeds the size limit of its kind.
        TooLarge = "too_large",
        /// The bytes differ from the declaration, or their format is not supported.
        Unfit = "unfit",
        /// The download from the source URL failed.
        Unfetched = "unfetched",
    }
}

/// Why an asset can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Category.
    pub reason: Reason,
    /// Human-readable explanation.
    pub message: String,
}

/// An asset to create.
#[derive(Clone, Debug)]
pub struct NewMedia {
    /// Declared kind of media.
    pub kind: MediaKind,
    /// File name.
    pub filename: String,
    /// Properties that the bytes must have.
    pub declared: DeclaredFile,
    /// Alt text.
    pub alt_text: Option<String>,
    /// URL to download the bytes from; `None` when they are uploaded.
    pub source_url: Option<String>,
    /// When the upload expires.
    pub upload_expires_at: DateTime<Utc>,
    /// Bound of the key that creates the asset; keys with the same bound can use it.
    pub bound: Bound,
    /// Maximum size of all media files of the owner.
    pub storage_limit: Option<u64>,
}

/// Properties of an asset's bytes, as inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Kind of media.
    pub kind: MediaKind,
    /// Content type.
    pub content_type: String,
    /// Size in bytes.
    pub size: u64,
    /// Width in pixels; `None` for audio.
    pub width: Option<u32>,
    /// Height in pixels; `None` for audio.
    pub height: Option<u32>,
    /// Number of frames of an animation.
    pub frames: Option<u32>,
    /// Playing time in milliseconds; `None` for still images.
    pub duration_ms: Option<u64>,
    /// Encoding.
    pub facts: Facts,
    /// SHA-256 of the bytes; `None` when not all of them were read.
    pub sha256: Option<String>,
    /// Metadata of a picture or video; `None` when they were not looked for.
    pub metadata: Option<Metadata>,
}

/// Filter of a list of assets; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Kind of media.
    pub kind: Option<MediaKind>,
    /// Processing status.
    pub status: Option<MediaStatus>,
}

/// A page of a list, with the length of the whole list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaPage {
    /// Assets of the page.
    pub items: Vec<Media>,
    /// Number of assets that match the filter.
    pub total: u64,
}

/// The result of deleting an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteResult {
    /// The asset was deleted.
    Deleted,
    /// A post that has not finished uses the asset.
    InUse,
    /// There is no such asset.
    NotFound,
}

/// The result of changing an asset's alt text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribeResult {
    /// The alt text is set.
    Described(Box<Media>),
    /// A publication with the asset has begun, and may have to be looked up.
    InUse,
    /// There is no such asset.
    NotFound,
}

macro_rules! select {
    ($tail:literal, $($arg:expr),+ $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"select id, status as "status: Parsed<MediaStatus>", kind as "kind: Parsed<MediaKind>", filename,
                 content_type, size, sha256, width, height, frames, duration_ms, facts as "facts: Json<Facts>", metadata as "metadata: Parsed<Metadata>", alt_text,
                 declared as "declared: Json<DeclaredFile>", source_url, error_code as "error_code: Parsed<Reason>", error,
                 upload_expires_at, created_at
               from media "# + $tail,
            $($arg),+
        )
    };
}

/// Creates an asset without bytes, unless the storage has no room for it. One with a source URL is queued for download.
///
/// A file whose size is not declared needs room for a byte; for more when its size is known.
pub async fn create(
    db: &PgPool,
    owner: Owner,
    new: NewMedia,
    now: DateTime<Utc>,
) -> sqlx::Result<Result<Media, Exceeded>> {
    let mut tx = crate::begin(db).await?;
    let size = new.declared.size.unwrap_or(1);
    if let Err(exceeded) =
        ceilings::check(&mut tx, owner, Kind::StorageBytes, size, new.storage_limit, now).await?
    {
        return Ok(Err(exceeded));
    }
    let media = insert(&mut tx, owner, MediaId(Uuid::now_v7()), &new, now).await?;
    tx.commit().await?;
    Ok(Ok(media))
}

/// Checks that the storage has room for files that were just inserted, of which each needs a byte at least.
///
/// Called when the transaction has locked all its assets: an upload locks its asset before the organization, too.
pub(crate) async fn check_room(
    tx: &mut PgConnection,
    owner: Owner,
    imports: &[(MediaId, NewMedia)],
    now: DateTime<Utc>,
) -> sqlx::Result<Result<(), Exceeded>> {
    let Some((_, first)) = imports.first() else { return Ok(Ok(())) };
    let count = imports.len().try_into().unwrap_or(u64::MAX);
    ceilings::check(tx, owner, Kind::StorageBytes, count, first.storage_limit, now).await
}

/// Creates an asset with this id, as [`create`] does.
pub(crate) async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    id: MediaId,
    new: &NewMedia,
    now: DateTime<Utc>,
) -> sqlx::Result<Media> {
    let row = sqlx::query_as!(
        Row,
        r#"insert into media (id, org_id, mode, kind, filename, content_type, size, alt_text, declared, source_url,
             upload_expires_at, created_at, updated_at, bound, storage_limit)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14)
           returning id, status as "status: Parsed<MediaStatus>", kind as "kind: Parsed<MediaKind>", filename,
             content_type, size, sha256, width, height, frames, duration_ms, facts as "facts: Json<Facts>", metadata as "metadata: Parsed<Metadata>", alt_text,
             declared as "declared: Json<DeclaredFile>", source_url, error_code as "error_code: Parsed<Reason>", error,
             upload_expires_at, created_at"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        new.kind.as_str(),
        new.filename,
        new.declared.content_type,
        new.declared.size.map(to_i64),
        new.alt_text,
        Json(&new.declared) as _,
        new.source_url,
        new.upload_expires_at,
        now,
        bounds::stored(&new.bound) as _,
        new.storage_limit.map(to_i64)
    )
    .fetch_one(&mut *tx)
    .await?;
    if new.source_url.is_some() {
        let fetch = Message::ProcessMedia(MediaJob { what: MediaAction::Fetch, media: id, owner });
        outbox::push(tx, &fetch).await?;
    }
    Ok(row.into())
}

/// Returns an asset.
pub async fn get(db: &PgPool, access: Access<'_>, id: MediaId) -> sqlx::Result<Option<Media>> {
    let Some(owner) = access.reach(db, Resource::Media, id.0).await? else { return Ok(None) };
    let row = select!(
        "where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(Media::from))
}

/// Returns those of the assets with these ids that a caller reaches.
pub async fn find(db: &PgPool, access: Access<'_>, ids: &[Uuid]) -> sqlx::Result<Vec<Media>> {
    let (owner, ids) = access.reach_all(db, Resource::Media, ids.to_vec()).await?;
    let rows = select!(
        "where id = any($1) and org_id = $2 and mode = $3 and deleted_at is null",
        &ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(Media::from).collect())
}

/// Returns those of the assets with these ids that are attached to a post, if a caller reaches the post: one that another
/// key uploaded is seen through the post that it was attached to.
pub async fn attached(
    db: &PgPool,
    access: Access<'_>,
    post: PostId,
    ids: &[Uuid],
) -> sqlx::Result<Vec<Media>> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(Vec::new()) };
    let rows = select!(
        "where id = any($1) and org_id = $2 and mode = $3 and deleted_at is null
           and exists (select from post_media m
                       where m.post_id = $4 and m.media @> jsonb_build_array(jsonb_build_object('id', media.id::text)))",
        ids,
        owner.org.0,
        owner.mode.as_str(),
        post.0
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(Media::from).collect())
}

/// Returns an asset, deleted or not, for the workflow that processes its bytes.
pub async fn find_deleted(db: &PgPool, owner: Owner, id: MediaId) -> sqlx::Result<Option<Media>> {
    let row = select!("where id = $1 and org_id = $2 and mode = $3", id.0, owner.org.0, owner.mode.as_str())
        .fetch_optional(db)
        .await?;
    Ok(row.map(Media::from))
}

/// Returns a page of the assets that a caller reaches, newest first.
pub async fn list(
    db: &PgPool,
    access: Access<'_>,
    filter: Filter,
    limit: u32,
    offset: u64,
) -> sqlx::Result<MediaPage> {
    let (owner, bound) = access.parts();
    let among = |query: &mut QueryBuilder<sqlx::Postgres>| {
        query.push(" from media where deleted_at is null and org_id = ").push_bind(owner.org.0);
        query.push(" and mode = ").push_bind(owner.mode.as_str());
        if let Some(kind) = filter.kind {
            query.push(" and kind = ").push_bind(kind.as_str());
        }
        if let Some(status) = filter.status {
            query.push(" and status = ").push_bind(status.as_str());
        }
        query.push(" and ");
        bounds::push_media(query, bound);
    };
    let mut count = QueryBuilder::new("select count(*)");
    among(&mut count);
    let total: i64 = count.build_query_scalar().fetch_one(db).await?;
    let mut query = QueryBuilder::new(
        "select id, status, kind, filename, content_type, size, sha256, width, height, frames, duration_ms, facts, metadata, alt_text, declared,
           source_url, error_code, error, upload_expires_at, created_at",
    );
    among(&mut query);
    query.push(" order by created_at desc, id desc limit ").push_bind(i64::from(limit));
    query.push(" offset ").push_bind(to_i64(offset));
    let rows: Vec<Row> = query.build_query_as().fetch_all(db).await?;
    Ok(MediaPage { items: rows.into_iter().map(Media::from).collect(), total: to_u64(total) })
}

/// The result of settling an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleResult {
    /// The asset can be used.
    Settled,
    /// The asset was settled before.
    WasSettled,
    /// Nothing was written, because the file is larger than the room in the storage.
    Exceeded(Exceeded),
}

/// Records the properties of the complete bytes: the asset is `ready` when their digest is known, else
/// `uploaded` and queued for reading.
pub async fn settle(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    inspected: &Inspected,
    now: DateTime<Utc>,
) -> sqlx::Result<SettleResult> {
    let status = if inspected.sha256.is_some() { MediaStatus::Ready } else { MediaStatus::Uploaded };
    let mut tx = crate::begin(db).await?;
    let settled = sqlx::query!(
        "update media
         set status = $4, kind = $5, content_type = $6, size = $7, width = $8, height = $9, duration_ms = $10,
           sha256 = $11, updated_at = $12, frames = $13, metadata = $14,
           facts = $15
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           and (status = 'pending_upload' or (status = 'uploaded' and $4 = 'ready'))
         returning filename, storage_limit",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        status.as_str(),
        inspected.kind.as_str(),
        inspected.content_type,
        to_i64(inspected.size),
        inspected.width.map(to_i32),
        inspected.height.map(to_i32),
        inspected.duration_ms.map(to_i64),
        inspected.sha256,
        now,
        inspected.frames.map(to_i32),
        inspected.metadata.map(|metadata| metadata.as_str()),
        Json(&inspected.facts) as _
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(settled) = settled else { return Ok(SettleResult::WasSettled) };
    let limit = settled.storage_limit.map(to_u64);
    // The file is counted already.
    if let Err(Exceeded { limit, used }) =
        ceilings::check(&mut tx, owner, Kind::StorageBytes, 0, limit, now).await?
    {
        return Ok(SettleResult::Exceeded(Exceeded { limit, used: used.saturating_sub(inspected.size) }));
    }
    if status == MediaStatus::Uploaded {
        let probe = Message::ProcessMedia(MediaJob { what: MediaAction::Probe, media: id, owner });
        outbox::push(&mut tx, &probe).await?;
    } else {
        let data = event::media(owner.org, id, inspected.kind, &settled.filename, None);
        append(&mut tx, owner, EventName::MediaReady, data, now).await?;
        wake_targets(&mut tx, owner, id).await?;
        push_thumbnail(&mut tx, owner, id, &inspected.content_type, inspected.width, inspected.height)
            .await?;
    }
    tx.commit().await?;
    Ok(SettleResult::Settled)
}

/// Queues the making of a thumbnail: nobody waits for it. The job for a file that is ready does nothing else.
async fn push_thumbnail(
    tx: &mut PgConnection,
    owner: Owner,
    id: MediaId,
    content_type: &str,
    width: Option<u32>,
    height: Option<u32>,
) -> sqlx::Result<()> {
    let fit = width.zip(height).and_then(|(width, height)| Fit::thumbnail(content_type, width, height));
    if fit.is_some() {
        let probe = Message::ProcessMedia(MediaJob { what: MediaAction::Probe, media: id, owner });
        outbox::push(tx, &probe).await?;
    }
    Ok(())
}

/// Records why the picture of an asset can't be decoded.
pub async fn note_undecodable(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update media
         set facts = coalesce(facts, '{}') || jsonb_build_object('undecodable', $4::text), updated_at = $5
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        reason,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Returns how large the file of an asset may be by the ceiling on storage; `None` without one. [`settle`] decides.
pub async fn room(db: &PgPool, owner: Owner, id: MediaId) -> sqlx::Result<Option<u64>> {
    let room = sqlx::query_scalar!(
        r#"select greatest(0, m.storage_limit - (
             select coalesce(sum(stored_bytes(other)), 0) from media other
             where other.org_id = $2 and other.mode = $3 and other.deleted_at is null and other.id <> $1
           ))::bigint as room
           from media m where m.id = $1 and m.org_id = $2 and m.mode = $3 and m.storage_limit is not null"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(room.flatten().map(to_u64))
}

/// The right to receive the bytes of an asset, which one upload at a time has.
#[derive(Clone, Copy, Debug)]
pub struct Upload {
    owner: Owner,
    media: MediaId,
    id: Uuid,
    /// Maximum number of bytes to receive.
    pub max_bytes: u64,
    /// Bytes that an earlier upload left.
    before: Option<i64>,
}

/// The result of beginning to receive bytes.
#[derive(Debug)]
pub enum BeginUpload {
    /// Bytes can be received.
    Begun(Upload),
    /// Another upload of the asset is running.
    Busy,
    /// The storage has no room for the bytes.
    Exceeded(Exceeded),
    /// The asset takes no bytes.
    Closed,
}

/// Begins to receive the bytes of an asset: `length` of them if that is known, and at most `max_bytes`. They count for
/// the owner's storage from now on. A running upload keeps others away for `lease` after it was last seen
/// ([`keep_upload`]).
pub async fn begin_upload(
    db: &PgPool,
    owner: Owner,
    media: MediaId,
    length: Option<u64>,
    max_bytes: u64,
    lease: TimeDelta,
    now: DateTime<Utc>,
) -> sqlx::Result<BeginUpload> {
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query!(
        r#"select upload_seen_at > $4 as is_busy, storage_limit, held_bytes from media
           where id = $1 and org_id = $2 and mode = $3 and deleted_at is null and status = 'pending_upload'
             and source_url is null
           for no key update"#,
        media.0,
        owner.org.0,
        owner.mode.as_str(),
        now - lease
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(BeginUpload::Closed) };
    if row.is_busy == Some(true) {
        return Ok(BeginUpload::Busy);
    }
    let mut held = length.unwrap_or(max_bytes);
    if let Some(limit) = row.storage_limit.map(to_u64) {
        ceilings::lock(&mut tx, owner.org).await?;
        let used = sqlx::query_scalar!(
            r#"select coalesce(sum(stored_bytes(m)), 0)::bigint as "used!" from media m
               where org_id = $2 and mode = $3 and deleted_at is null and id <> $1"#,
            media.0,
            owner.org.0,
            owner.mode.as_str()
        )
        .fetch_one(&mut *tx)
        .await?;
        let room = limit.saturating_sub(to_u64(used));
        if room < length.unwrap_or(1) {
            return Ok(BeginUpload::Exceeded(Exceeded { limit, used: to_u64(used) }));
        }
        held = held.min(room);
    }
    let id = Uuid::now_v7();
    sqlx::query!(
        "update media set upload_id = $2, upload_seen_at = $3, held_bytes = greatest(held_bytes, $4) where id = $1",
        media.0,
        id,
        now,
        to_i64(held)
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    let max_bytes = held.min(max_bytes);
    Ok(BeginUpload::Begun(Upload { owner, media, id, max_bytes, before: row.held_bytes }))
}

/// Tells that an upload is still running. Returns false when it must stop: the asset was deleted or confirmed, or
/// another upload has taken its place.
pub async fn keep_upload(db: &PgPool, upload: Upload, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "update media set upload_seen_at = $4
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null and status = 'pending_upload'
           and upload_id = $5",
        upload.media.0,
        upload.owner.org.0,
        upload.owner.mode.as_str(),
        now,
        upload.id
    )
    .execute(db)
    .await?;
    Ok(kept.rows_affected() > 0)
}

/// Ends an upload, which left `size` bytes; `None` when it failed, and those of an earlier one are still there. A file
/// that arrived makes an earlier refusal void.
pub async fn end_upload(db: &PgPool, upload: Upload, size: Option<u64>) -> sqlx::Result<()> {
    sqlx::query!(
        "update media set upload_id = null, upload_seen_at = null, held_bytes = $4,
           error_code = case when $4::bigint is null then error_code end,
           error = case when $4::bigint is null then error end
         where id = $1 and org_id = $2 and mode = $3 and upload_id = $5",
        upload.media.0,
        upload.owner.org.0,
        upload.owner.mode.as_str(),
        size.map(to_i64).or(upload.before),
        upload.id
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Records why the file of an upload was not taken, for who confirms an asset that has no file. The asset stays as it is
/// and takes another file.
pub async fn refuse_upload(db: &PgPool, owner: Owner, id: MediaId, fault: &Fault) -> sqlx::Result<()> {
    sqlx::query!(
        "update media set error_code = $4, error = $5
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           and status = 'pending_upload' and held_bytes is null",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        fault.reason.as_str(),
        fault.message
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Claims the processing of the bytes, so that one caller moves them to their final place. Returns false
/// when another caller claimed it after `stale`.
pub async fn claim_processing(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    stale: DateTime<Utc>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let claimed = sqlx::query!(
        "update media set processing_claimed_at = $5
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           and (processing_claimed_at is null or processing_claimed_at < $4)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        stale,
        now
    )
    .execute(db)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Marks an asset as failed for good. Returns false when it was already settled.
pub async fn fail(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    fault: &Fault,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let failed = sqlx::query!(
        r#"update media set status = 'failed', error_code = $4, error = $5, updated_at = $6
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           and status in ('pending_upload', 'uploaded')
         returning kind as "kind: Parsed<MediaKind>", filename"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        fault.reason.as_str(),
        fault.message,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(failed) = failed else { return Ok(false) };
    let data = event::media(owner.org, id, failed.kind.0, &failed.filename, Some(&fault.message));
    append(&mut tx, owner, EventName::MediaFailed, data, now).await?;
    wake_targets(&mut tx, owner, id).await?;
    tx.commit().await?;
    Ok(true)
}

/// Lets the targets begin that waited for an asset, the oldest ones at once: a post is seldom one of many with the same
/// new file, and the others look again by themselves.
async fn wake_targets(tx: &mut PgConnection, owner: Owner, id: MediaId) -> sqlx::Result<()> {
    let waiting = sqlx::query!(
        "select t.id, t.post_id from post_media m join posts p on p.id = m.post_id join targets t on t.post_id = p.id
         where m.media @> jsonb_build_array(jsonb_build_object('id', $1::text))
           and p.org_id = $2 and p.mode = $3 and p.status in ('scheduled', 'queued', 'publishing')
           and t.status in ('pending', 'queued')
           and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) <= clock_timestamp()
           and p.starts_at is null
         group by t.id order by t.id limit $4",
        id.0.to_string(),
        owner.org.0,
        owner.mode.as_str(),
        MAX_WOKEN
    )
    .fetch_all(&mut *tx)
    .await?;
    let woken = waiting.into_iter().map(|row| Message::RetryTarget {
        target: row.id.into(),
        post: row.post_id.into(),
        owner,
    });
    outbox::push_all(tx, &woken.collect::<Vec<_>>()).await
}

async fn append(
    tx: &mut PgConnection,
    owner: Owner,
    name: EventName,
    data: Value,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let event = NewEvent { name, post: None, target: None, account: None, data };
    events::append(tx, owner, now, &event).await
}

/// Sets the alt text of an asset.
///
/// Attempts read it, and platforms that are searched for a lost publication may be searched by it: it stays the same
/// while an attempt is under way or its outcome is unknown, so that a look-up finds what was sent.
pub async fn describe(
    db: &PgPool,
    access: Access<'_>,
    id: MediaId,
    alt_text: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<DescribeResult> {
    let Some(owner) = access.reach(db, Resource::Media, id.0).await? else {
        return Ok(DescribeResult::NotFound);
    };
    let mut tx = crate::begin(db).await?;
    // No attempt takes up a target of these posts before the text is set: it locks them, too. Posts before the asset,
    // as an edit of a post locks them.
    sqlx::query!(
        "select p.id from posts p
         where p.id in (select m.post_id from post_media m
                        where m.media @> jsonb_build_array(jsonb_build_object('id', $1::text)))
           and p.org_id = $2 and p.mode = $3
           and (p.status in ('draft', 'scheduled', 'queued', 'publishing')
                or exists (select from targets t where t.post_id = p.id and t.next_attempt_at is not null))
         order by p.id for share of p",
        id.0.to_string(),
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(&mut *tx)
    .await?;
    if !lock(&mut tx, owner, id).await? {
        return Ok(DescribeResult::NotFound);
    }
    // In a separate statement, so that an attempt that held a lock until now is visible to it.
    let is_under_way = sqlx::query_scalar!(
        r#"select exists (
             select from post_media m join posts p on p.id = m.post_id join targets t on t.post_id = p.id
             where m.media @> jsonb_build_array(jsonb_build_object('id', $1::text))
               and p.org_id = $2 and p.mode = $3
               and (t.fence > 0 and t.status in ('pending', 'queued', 'failed')
                    or t.next_attempt_at is not null
                    or exists (select from publications o
                               where o.target_id = t.id and o.platform_id is null
                                 and (o.commit_begun_at is not null or o.doubted_since is not null)))
           ) as "is_under_way!""#,
        id.0.to_string(),
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    if is_under_way {
        return Ok(DescribeResult::InUse);
    }
    let row = sqlx::query_as!(
        Row,
        r#"update media set alt_text = $2, updated_at = $3 where id = $1
           returning id, status as "status: Parsed<MediaStatus>", kind as "kind: Parsed<MediaKind>", filename,
             content_type, size, sha256, width, height, frames, duration_ms, facts as "facts: Json<Facts>", metadata as "metadata: Parsed<Metadata>", alt_text,
             declared as "declared: Json<DeclaredFile>", source_url, error_code as "error_code: Parsed<Reason>", error,
             upload_expires_at, created_at"#,
        id.0,
        alt_text,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(DescribeResult::Described(Box::new(row.into())))
}

/// Deletes an asset, unless a post uses it, and queues the deletion of its bytes.
pub async fn delete(
    db: &PgPool,
    access: Access<'_>,
    id: MediaId,
    now: DateTime<Utc>,
) -> sqlx::Result<DeleteResult> {
    let Some(owner) = access.reach(db, Resource::Media, id.0).await? else {
        return Ok(DeleteResult::NotFound);
    };
    let mut tx = crate::begin(db).await?;
    if !lock(&mut tx, owner, id).await? {
        return Ok(DeleteResult::NotFound);
    }
    // In a separate statement, so that a post that held the row's lock until now is visible to it.
    if is_in_use(&mut tx, owner, id).await? {
        return Ok(DeleteResult::InUse);
    }
    sqlx::query!("update media set deleted_at = $2, updated_at = $2 where id = $1", id.0, now)
        .execute(&mut *tx)
        .await?;
    outbox::push(&mut tx, &Message::ProcessMedia(MediaJob { what: MediaAction::Discard, media: id, owner }))
        .await?;
    tx.commit().await?;
    Ok(DeleteResult::Deleted)
}

/// Locks an asset that is to be changed. Returns false if there is none.
async fn lock(tx: &mut PgConnection, owner: Owner, id: MediaId) -> sqlx::Result<bool> {
    let known = sqlx::query_scalar!(
        "select id from media where id = $1 and org_id = $2 and mode = $3 and deleted_at is null for update",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    );
    Ok(known.fetch_optional(tx).await?.is_some())
}

/// A post that uses an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The asset.
    pub media: MediaId,
    /// The post.
    pub post: PostId,
    /// Beginning of the post's text.
    pub text: String,
}

/// Returns up to `limit` posts that use each of the owner's assets with these ids, newest first.
pub async fn uses(db: &PgPool, owner: Whole, ids: &[Uuid], limit: i64) -> sqlx::Result<Vec<Use>> {
    let rows = sqlx::query!(
        r#"select wanted.id as "media!", p.id as "post!",
             coalesce((select left(c.content, 80) from containers c where c.post_id = p.id and c.variant = 0 and c.position = 0), '') as "text!"
           from unnest($1::uuid[]) as wanted(id)
           cross join lateral (
             select distinct found.post_id from (
               select c.post_id from post_media c
               where c.media @> jsonb_build_array(jsonb_build_object('id', wanted.id::text))
               limit $4
             ) found
           ) used
           join posts p on p.id = used.post_id
           where p.org_id = $2 and p.mode = $3 and p.deleted_at is null
           order by p.id desc"#,
        ids,
        owner.org.0,
        owner.mode.as_str(),
        limit
    )
    .fetch_all(db)
    .await?;
    let used =
        rows.into_iter().map(|row| Use { media: row.media.into(), post: row.post.into(), text: row.text });
    Ok(used.collect())
}

/// Returns whether an unfinished post uses the asset. A live post whose thread is still being completed is
/// unfinished.
async fn is_in_use(tx: &mut PgConnection, owner: Owner, id: MediaId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from post_media c join posts p on p.id = c.post_id
             where c.media @> jsonb_build_array(jsonb_build_object('id', $1::text))
               and p.org_id = $2 and p.mode = $3
               and (p.status in ('draft', 'scheduled', 'queued', 'publishing')
                    or exists (select from targets t where t.post_id = p.id and t.next_attempt_at is not null))
           ) as "needed!""#,
        id.0.to_string(),
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(tx)
    .await
}

/// Locks the assets of a post to be written. Returns false when one is missing or not usable.
pub(crate) async fn lock_for_post(tx: &mut PgConnection, owner: Owner, ids: &[Uuid]) -> sqlx::Result<bool> {
    if ids.is_empty() {
        return Ok(true);
    }
    let held = sqlx::query_scalar!(
        "select id from media
         where id = any($1) and org_id = $2 and mode = $3 and deleted_at is null
           and (status in ('uploaded', 'ready') or status = 'pending_upload' and source_url is not null)
         order by id for share",
        ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(tx)
    .await?;
    Ok(ids.iter().all(|id| held.contains(id)))
}

/// Returns when the owner's assets with these ids are deleted, as [`expire`] does it; an asset that is kept, and
/// an unknown one, is not in the map.
pub async fn expiry(
    db: &PgPool,
    access: Access<'_>,
    ids: &[Uuid],
    retention: Option<TimeDelta>,
) -> sqlx::Result<HashMap<MediaId, DateTime<Utc>>> {
    let (owner, ids) = access.reach_all(db, Resource::Media, ids.to_vec()).await?;
    let rows = sqlx::query!(
        r#"select id, media_expires_at(m, $4, $5) as expires_at from media m
           where id = any($1) and org_id = $2 and mode = $3 and deleted_at is null"#,
        &ids,
        owner.org.0,
        owner.mode.as_str(),
        UPLOAD_TTL as _,
        retention as _
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().filter_map(|row| Some((row.id.into(), row.expires_at?))).collect())
}

/// Deletes up to `limit` expired assets of all owners and returns their number: those whose bytes did not arrive
/// within [`UPLOAD_TTL`], and those that no post has used for `retention`, if there is one.
// Model: DeleteFile.
pub async fn expire(
    db: &PgPool,
    retention: Option<TimeDelta>,
    limit: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<usize> {
    let mut tx = crate::begin(db).await?;
    // The conditions on the row alone come first: they are cheap.
    let candidates = sqlx::query!(
        r#"select id, org_id, mode as "mode: Parsed<domain::Mode>" from media m
           where deleted_at is null and (status = 'pending_upload' or created_at < $1::timestamptz - $3::interval)
             and created_at < $1::timestamptz - least($2::interval, $3::interval)
             and media_expires_at(m, $2, $3) < $1
           order by id limit $4 for update skip locked"#,
        now,
        UPLOAD_TTL as _,
        retention as _,
        limit
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut expired = 0;
    for row in candidates {
        let owner = Owner { org: row.org_id.into(), mode: row.mode.0 };
        let id = MediaId(row.id);
        // The query above doesn't see a post that held the row's lock until now.
        if is_in_use(&mut tx, owner, id).await? {
            continue;
        }
        sqlx::query!("update media set deleted_at = $2, updated_at = $2 where id = $1", id.0, now)
            .execute(&mut *tx)
            .await?;
        outbox::push(
            &mut tx,
            &Message::ProcessMedia(MediaJob { what: MediaAction::Discard, media: id, owner }),
        )
        .await?;
        expired += 1;
    }
    tx.commit().await?;
    Ok(expired)
}

/// Deletes the row of a deleted asset whose bytes are erased.
pub async fn erase(db: &PgPool, owner: Owner, id: MediaId) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from media where id = $1 and org_id = $2 and mode = $3 and deleted_at is not null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .execute(db)
    .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    status: Parsed<MediaStatus>,
    kind: Parsed<MediaKind>,
    filename: String,
    content_type: Option<String>,
    size: Option<i64>,
    sha256: Option<String>,
    width: Option<i32>,
    height: Option<i32>,
    frames: Option<i32>,
    duration_ms: Option<i64>,
    facts: Option<Json<Facts>>,
    metadata: Option<Parsed<Metadata>>,
    alt_text: Option<String>,
    declared: Json<DeclaredFile>,
    source_url: Option<String>,
    error_code: Option<Parsed<Reason>>,
    error: Option<String>,
    upload_expires_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
}

impl From<Row> for Media {
    fn from(row: Row) -> Self {
        let fault =
            row.error_code.map(|reason| Fault { reason: reason.0, message: row.error.unwrap_or_default() });
        Self {
            id: row.id.into(),
            status: row.status.0,
            kind: row.kind.0,
            filename: row.filename,
            content_type: row.content_type,
            size: row.size.map(to_u64),
            sha256: row.sha256,
            width: row.width.map(i32::unsigned_abs),
            height: row.height.map(i32::unsigned_abs),
            frames: row.frames.map(i32::unsigned_abs),
            duration_ms: row.duration_ms.map(to_u64),
            facts: row.facts.map(|facts| facts.0),
            metadata: row.metadata.map(|metadata| metadata.0),
            alt_text: row.alt_text,
            declared: row.declared.0,
            source_url: row.source_url,
            fault,
            upload_expires_at: row.upload_expires_at,
            created_at: row.created_at,
        }
    }
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn to_i32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn to_u64(number: i64) -> u64 {
    number.unsigned_abs()
}
