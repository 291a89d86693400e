//! Media assets: what is known of them. Their bytes lie elsewhere.
//!
//! Whoever creates or edits a post takes the assets' rows with him (`lock_for_post`), and whoever deletes an asset
//! takes its row first and looks for posts then, so that no post is left with an asset that is gone.

use crate::{decode::Parsed, outbox};
use chrono::{DateTime, Utc};
use domain::{
    MediaId, MediaKind, MediaStatus, Owner,
    outbox::{MediaAction, MediaJob, Message},
};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool, QueryBuilder, types::Json};
use std::time::Duration;
use uuid::Uuid;

/// A media asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// Its identifier.
    pub id: MediaId,
    /// How far it has come.
    pub status: MediaStatus,
    /// What it is, or claims to be as long as its bytes were not looked at.
    pub kind: MediaKind,
    /// Its name.
    pub filename: String,
    /// Its content type; before it was looked at, as it was declared.
    pub content_type: Option<String>,
    /// Its size in bytes; before it was looked at, as it was announced.
    pub size: Option<u64>,
    /// The SHA-256 of its bytes, in lower-case hex.
    pub sha256: Option<String>,
    /// Pixels, where it has any.
    pub width: Option<u32>,
    /// Pixels, where it has any.
    pub height: Option<u32>,
    /// How long it plays, in milliseconds.
    pub duration_ms: Option<u64>,
    /// What it shows, for those who can't see it.
    pub alt_text: Option<String>,
    /// What its bytes are held to.
    pub declared: DeclaredFile,
    /// Where it is fetched from, unless its owner sends it.
    pub source_url: Option<String>,
    /// Why it can't be used.
    pub fault: Option<Fault>,
    /// Until when its bytes are awaited.
    pub upload_expires_at: DateTime<Utc>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl Media {
    /// What a platform is told of it. An alt text of the post's own comes before the asset's.
    pub fn medium(&self, alt_text: Option<String>) -> domain::Media {
        domain::Media {
            id: self.id.0,
            kind: self.kind,
            mime: self.content_type.clone().unwrap_or_default(),
            filename: self.filename.clone(),
            size_bytes: self.size.unwrap_or_default(),
            width: self.width,
            height: self.height,
            duration: self.duration_ms.map(Duration::from_millis),
            alt_text: alt_text.or_else(|| self.alt_text.clone()),
        }
    }
}

/// What was announced of an asset's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredFile {
    /// Their type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// How many they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Their SHA-256, in lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

domain::string_enum! {
    /// What kind of reason an asset can't be used for.
    Reason, "reason" {
        /// It is over the cap of its kind.
        TooLarge = "too_large",
        /// It is not what it claims to be, or nothing that is taken.
        Unfit = "unfit",
        /// It could not be fetched.
        Unfetched = "unfetched",
    }
}

/// Why an asset can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of reason.
    pub reason: Reason,
    /// The reason, for people.
    pub message: String,
}

/// What a new asset is to be.
#[derive(Clone, Debug)]
pub struct NewMedia {
    /// What it claims to be.
    pub kind: MediaKind,
    /// Its name.
    pub filename: String,
    /// What its bytes are held to.
    pub declared: DeclaredFile,
    /// What it shows, for those who can't see it.
    pub alt_text: Option<String>,
    /// Where it is fetched from, unless its owner sends it.
    pub source_url: Option<String>,
    /// Until when its bytes are awaited.
    pub upload_expires_at: DateTime<Utc>,
}

/// What was found out about an asset's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub kind: MediaKind,
    /// Its content type.
    pub content_type: String,
    /// Its size in bytes.
    pub size: u64,
    /// Pixels, where it has any.
    pub width: Option<u32>,
    /// Pixels, where it has any.
    pub height: Option<u32>,
    /// How long it plays, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The SHA-256 of its bytes, when all of them were read.
    pub sha256: Option<String>,
}

/// Which assets to list; every condition that is given must hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// Of this kind.
    pub kind: Option<MediaKind>,
    /// In this state.
    pub status: Option<MediaStatus>,
}

/// A stretch of a list, and how long the list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The assets.
    pub items: Vec<Media>,
    /// How many fit in all.
    pub total: u64,
}

/// What deleting an asset came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// A post that has not ended needs it.
    Needed,
    /// There is no such asset.
    Unknown,
}

macro_rules! select {
    ($tail:literal, $($arg:expr),+ $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"select id, status as "status: Parsed<MediaStatus>", kind as "kind: Parsed<MediaKind>", filename,
                 content_type, size, sha256, width, height, duration_ms, alt_text,
                 declared as "declared: Json<DeclaredFile>", source_url, error_code as "error_code: Parsed<Reason>", error,
                 upload_expires_at, created_at
               from media "# + $tail,
            $($arg),+
        )
    };
}

/// Makes an asset whose bytes are still to come. One that is to be fetched is on its way with it.
pub async fn create(db: &PgPool, owner: Owner, new: NewMedia, now: DateTime<Utc>) -> sqlx::Result<Media> {
    let id = MediaId(Uuid::now_v7());
    let is_fetched = new.source_url.is_some();
    let mut tx = db.begin().await?;
    let row = sqlx::query_as!(
        Row,
        r#"insert into media (id, org_id, mode, kind, filename, content_type, size, alt_text, declared, source_url,
             upload_expires_at, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
           returning id, status as "status: Parsed<MediaStatus>", kind as "kind: Parsed<MediaKind>", filename,
             content_type, size, sha256, width, height, duration_ms, alt_text,
             declared as "declared: Json<DeclaredFile>", source_url, error_code as "error_code: Parsed<Reason>", error,
             upload_expires_at, created_at"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        new.kind.as_str(),
        new.filename,
        new.declared.content_type,
        new.declared.size.map(signed),
        new.alt_text,
        Json(&new.declared) as _,
        new.source_url,
        new.upload_expires_at,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    if is_fetched {
        outbox::push(
            &mut tx,
            &Message::ProcessMedia(MediaJob { what: MediaAction::Fetch, media: id, owner }),
        )
        .await?;
    }
    tx.commit().await?;
    Ok(row.into())
}

/// One asset.
pub async fn get(db: &PgPool, owner: Owner, id: MediaId) -> sqlx::Result<Option<Media>> {
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

/// Those of the owner's assets that have these ids.
pub async fn find(db: &PgPool, owner: Owner, ids: &[Uuid]) -> sqlx::Result<Vec<Media>> {
    let rows = select!(
        "where id = any($1) and org_id = $2 and mode = $3 and deleted_at is null",
        ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(Media::from).collect())
}

/// One asset, deleted or not: for who tends its bytes.
pub async fn find_deleted(db: &PgPool, owner: Owner, id: MediaId) -> sqlx::Result<Option<Media>> {
    let row = select!("where id = $1 and org_id = $2 and mode = $3", id.0, owner.org.0, owner.mode.as_str())
        .fetch_optional(db)
        .await?;
    Ok(row.map(Media::from))
}

/// A stretch of the owner's assets, newest first.
pub async fn list(
    db: &PgPool,
    owner: Owner,
    filter: Filter,
    limit: u32,
    offset: u64,
) -> sqlx::Result<Stretch> {
    let among = |query: &mut QueryBuilder<sqlx::Postgres>| {
        query.push(" from media where deleted_at is null and org_id = ").push_bind(owner.org.0);
        query.push(" and mode = ").push_bind(owner.mode.as_str());
        if let Some(kind) = filter.kind {
            query.push(" and kind = ").push_bind(kind.as_str());
        }
        if let Some(status) = filter.status {
            query.push(" and status = ").push_bind(status.as_str());
        }
    };
    let mut count = QueryBuilder::new("select count(*)");
    among(&mut count);
    let total: i64 = count.build_query_scalar().fetch_one(db).await?;
    let mut query = QueryBuilder::new(
        "select id, status, kind, filename, content_type, size, sha256, width, height, duration_ms, alt_text, declared,
           source_url, error_code, error, upload_expires_at, created_at",
    );
    among(&mut query);
    query.push(" order by created_at desc, id desc limit ").push_bind(i64::from(limit));
    query.push(" offset ").push_bind(signed(offset));
    let rows: Vec<Row> = query.build_query_as().fetch_all(db).await?;
    Ok(Stretch { items: rows.into_iter().map(Media::from).collect(), total: unsigned(total) })
}

/// The bytes were looked at and are all there: the asset is `ready` when their digest is known, else
/// `uploaded`, and somebody will read them. False when it was decided before.
pub async fn settle(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    found: &Found,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let status = if found.sha256.is_some() { MediaStatus::Ready } else { MediaStatus::Uploaded };
    let mut tx = db.begin().await?;
    let settled = sqlx::query!(
        "update media
         set status = $4, kind = $5, content_type = $6, size = $7, width = $8, height = $9, duration_ms = $10,
           sha256 = $11, updated_at = $12
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           and (status = 'pending_upload' or (status = 'uploaded' and $4 = 'ready'))",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        status.as_str(),
        found.kind.as_str(),
        found.content_type,
        signed(found.size),
        found.width.map(small),
        found.height.map(small),
        found.duration_ms.map(signed),
        found.sha256,
        now
    )
    .execute(&mut *tx)
    .await?
    .rows_affected()
        == 1;
    if settled && status == MediaStatus::Uploaded {
        outbox::push(
            &mut tx,
            &Message::ProcessMedia(MediaJob { what: MediaAction::Probe, media: id, owner }),
        )
        .await?;
    }
    tx.commit().await?;
    Ok(settled)
}

/// Takes it upon the caller to bring the bytes to where nobody changes them; false when somebody else is
/// at it, who began after `stale`.
pub async fn claim_processing(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    stale: DateTime<Utc>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let seized = sqlx::query!(
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
    Ok(seized.rows_affected() == 1)
}

/// The asset can't be used, and never will be. False when it was decided before.
pub async fn fail(
    db: &PgPool,
    owner: Owner,
    id: MediaId,
    fault: &Fault,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let failed = sqlx::query!(
        "update media set status = 'failed', error_code = $4, error = $5, updated_at = $6
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           and status in ('pending_upload', 'uploaded')",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        fault.reason.as_str(),
        fault.message,
        now
    )
    .execute(db)
    .await?;
    Ok(failed.rows_affected() == 1)
}

/// Deletes an asset, unless a post needs it; its bytes go after it.
pub async fn delete(db: &PgPool, owner: Owner, id: MediaId, now: DateTime<Utc>) -> sqlx::Result<Deleted> {
    let mut tx = db.begin().await?;
    let known = sqlx::query_scalar!(
        "select id from media where id = $1 and org_id = $2 and mode = $3 and deleted_at is null for update",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    if known.is_none() {
        return Ok(Deleted::Unknown);
    }
    // In a statement of its own: a post that held the row until now is seen by the next statement.
    if is_needed(&mut tx, owner, id).await? {
        return Ok(Deleted::Needed);
    }
    sqlx::query!("update media set deleted_at = $2, updated_at = $2 where id = $1", id.0, now)
        .execute(&mut *tx)
        .await?;
    outbox::push(&mut tx, &Message::ProcessMedia(MediaJob { what: MediaAction::Discard, media: id, owner }))
        .await?;
    tx.commit().await?;
    Ok(Deleted::Gone)
}

/// Whether a post that has not ended refers to it. One that is live and whose thread is still being
/// completed has not.
async fn is_needed(tx: &mut PgConnection, owner: Owner, id: MediaId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from containers c join posts p on p.id = c.post_id
             where c.media <> '[]' and c.media @> jsonb_build_array(jsonb_build_object('id', $1::text))
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

/// Takes the assets of a post that is being written; false when one is not there, or not usable.
pub(crate) async fn lock_for_post(tx: &mut PgConnection, owner: Owner, ids: &[Uuid]) -> sqlx::Result<bool> {
    if ids.is_empty() {
        return Ok(true);
    }
    let held = sqlx::query_scalar!(
        "select id from media
         where id = any($1) and org_id = $2 and mode = $3 and deleted_at is null and status in ('uploaded', 'ready')
         order by id for share",
        ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(tx)
    .await?;
    Ok(ids.iter().all(|id| held.contains(id)))
}

/// Deletes up to `limit` assets that nobody waits for any more, whosoever they are, and gives how many:
/// those whose bytes did not come until `uploads`, and those that no post has needed since `idle`.
pub async fn expire(
    db: &PgPool,
    uploads: DateTime<Utc>,
    idle: Option<DateTime<Utc>>,
    limit: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<usize> {
    let mut tx = db.begin().await?;
    let candidates = sqlx::query!(
        r#"select id, org_id, mode as "mode: Parsed<domain::Mode>" from media m
           where deleted_at is null and (
             (status = 'pending_upload' and created_at < $1)
             or (created_at < $2 and not exists (
               select from containers c join posts p on p.id = c.post_id
               where c.media <> '[]' and c.media @> jsonb_build_array(jsonb_build_object('id', m.id::text))
                 and p.org_id = m.org_id and p.mode = m.mode
                 and (p.status in ('draft', 'scheduled', 'queued', 'publishing') or p.updated_at >= $2
                      or exists (select from targets t where t.post_id = p.id and t.next_attempt_at is not null)))))
           order by id limit $3 for update skip locked"#,
        uploads,
        idle,
        limit
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut expired = 0;
    for row in candidates {
        let owner = Owner { org: row.org_id.into(), mode: row.mode.0 };
        let id = MediaId(row.id);
        // A post that held the row until now was not seen above.
        if is_needed(&mut tx, owner, id).await? {
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

/// The bytes of a deleted asset are gone, and so is its row.
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
    duration_ms: Option<i64>,
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
            size: row.size.map(unsigned),
            sha256: row.sha256,
            width: row.width.map(i32::unsigned_abs),
            height: row.height.map(i32::unsigned_abs),
            duration_ms: row.duration_ms.map(unsigned),
            alt_text: row.alt_text,
            declared: row.declared.0,
            source_url: row.source_url,
            fault,
            upload_expires_at: row.upload_expires_at,
            created_at: row.created_at,
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn unsigned(number: i64) -> u64 {
    number.unsigned_abs()
}
