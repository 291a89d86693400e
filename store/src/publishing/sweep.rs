//! Sweeping: finds rows that need a workflow and have none.
//!
//! A row contains the time of its next step, or of its next look at what it waits for: one that merely waits is not
//! overdue. A post that waits for its time in the database only ([`posts::horizon`]) needs a workflow once that time is
//! within the scheduling horizon. When a step is overdue, the row's workflow may be gone: terminated, or lost with
//! Temporal's data. The row's message is then pushed to the outbox again, which does nothing if the workflow runs. An
//! overdue row is swept again only after an interval, and not while its message waits.

use crate::{decode::Parsed, outbox, posts, webhooks::drain};
use domain::{
    Mode, OrgId, Owner, PostId,
    outbox::{Disconnection, ExpiringGrant, ImportRef, MediaAction, MediaJob, Message, PostJob},
    renewal,
};
use sqlx::{PgConnection, PgPool};
use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use uuid::Uuid;

/// Maximum posts that one transaction starts because their time has come within the horizon: it locks them against
/// edits.
const STARTED: i64 = 200;
/// Maximum number of these transactions in a sweep.
const ROUNDS: usize = 25;

/// Number of sweeps of the process, each of which begins with another kind of rows.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// Factor on the interval of a row for a grant, whose workflow retries with growing pauses.
const RENEWAL_INTERVAL_FACTOR: f64 = 10.0;

/// Timing of sweeps.
#[derive(Clone, Copy, Debug)]
pub struct Timing<'a> {
    /// Delay of a step after which its row is overdue.
    pub grace: Duration,
    /// Shortest time between two sweeps of a row.
    pub row_interval: Duration,
    /// Time before a post is due at which its workflow is started.
    pub horizon: Duration,
    /// Least age at which platforms' grants are renewed, where it is not a share of their lives.
    pub renewal_ages: &'a [(&'static str, Duration)],
}

/// Number of messages that a sweep wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// For posts whose time has come within the horizon: the normal course of a far-off post.
    pub near: usize,
    /// For overdue rows, whose workflow may be gone.
    pub overdue: usize,
}

impl Swept {
    /// Number of all messages.
    pub fn total(self) -> usize {
        self.near + self.overdue
    }
}

/// Pushes a message for each post that has come within the horizon, and for each overdue row, up to `limit` rows of a
/// kind. Returns the number of messages.
pub async fn sweep(db: &PgPool, timing: Timing<'_>, limit: i64) -> sqlx::Result<Swept> {
    let mut swept = Swept::default();
    for round in 0..ROUNDS {
        let mut tx = crate::begin(db).await?;
        let may_have_more = push_posts(&mut tx, timing, round, limit, &mut swept).await?;
        tx.commit().await?;
        if !may_have_more {
            break;
        }
    }
    let mut kinds = KINDS;
    // A kind that takes too long or fails keeps the others waiting until the next sweep only.
    let turn = TURN.fetch_add(1, Ordering::Relaxed) % kinds.len();
    kinds.rotate_left(turn);
    for kind in kinds {
        let mut tx = crate::begin(db).await?;
        swept.overdue += push_rows(&mut tx, kind, timing, limit).await?;
        tx.commit().await?;
    }
    Ok(swept)
}

/// [`sweep`] in a transaction. It locks all that it sweeps until the end.
pub(crate) async fn sweep_in(tx: &mut PgConnection, timing: Timing<'_>, limit: i64) -> sqlx::Result<Swept> {
    let mut swept = Swept::default();
    for round in 0..ROUNDS {
        if !push_posts(tx, timing, round, limit, &mut swept).await? {
            break;
        }
    }
    for kind in KINDS {
        swept.overdue += push_rows(tx, kind, timing, limit).await?;
    }
    Ok(swept)
}

/// Pushes messages for posts. Returns true if more may have come within the horizon.
async fn push_posts(
    tx: &mut PgConnection,
    timing: Timing<'_>,
    round: usize,
    limit: i64,
    swept: &mut Swept,
) -> sqlx::Result<bool> {
    // Overdue posts are limited: they come in great numbers when Temporal has lost its data.
    let found = unpublished(&mut *tx, timing, if round == 0 { limit } else { 0 }).await?;
    let messages: Vec<_> = found.near.into_iter().map(Message::PostChanged).collect();
    outbox::push_all(&mut *tx, &messages).await?;
    swept.near += messages.len();
    let overdue: Vec<_> = found.overdue.into_iter().map(|message| (row(&message), message)).collect();
    swept.overdue += outbox::push_overdue(&mut *tx, &overdue).await?;
    Ok(found.may_have_more)
}

/// Pushes messages for overdue rows of a kind. Returns how many.
async fn push_rows(tx: &mut PgConnection, kind: Kind, timing: Timing<'_>, limit: i64) -> sqlx::Result<usize> {
    let (grace, interval) = (timing.grace.as_secs_f64(), timing.row_interval.as_secs_f64());
    let messages = match kind {
        Kind::Endpoints => drain::overdue(&mut *tx, grace, interval, limit).await?,
        Kind::Imports => imports(&mut *tx, grace, interval, limit).await?,
        Kind::Media => media(&mut *tx, grace, interval, limit).await?,
        Kind::Disconnected => disconnected(&mut *tx, grace, interval, limit).await?,
        Kind::Grants => grants(&mut *tx, timing, limit).await?,
    };
    let messages: Vec<_> = messages.into_iter().map(|message| (row(&message), message)).collect();
    outbox::push_overdue(&mut *tx, &messages).await
}

/// Returns the id of the row that a message is for.
fn row(message: &Message) -> Uuid {
    match message {
        Message::PublishPost(job) | Message::ResumePost(job) | Message::PostChanged(job) => job.post.0,
        Message::PostCanceled { post, .. } => post.0,
        Message::RetryTarget { target, .. } => target.0,
        Message::ReviveTarget { target, .. } => target.target.0,
        Message::DrainEndpoint(endpoint) => endpoint.webhook.0,
        Message::DisconnectAccount(disconnection) => disconnection.account.0,
        Message::ImportPosts(import) => import.import.0,
        Message::RenewGrant(grant) => grant.account.0,
        Message::ProcessMedia(job) => job.media.0,
    }
}

fn owner(org: Uuid, mode: Parsed<Mode>) -> Owner {
    Owner { org: OrgId(org), mode: mode.into() }
}

/// Kinds of rows other than posts.
const KINDS: [Kind; 5] = [Kind::Endpoints, Kind::Imports, Kind::Media, Kind::Disconnected, Kind::Grants];

#[derive(Clone, Copy)]
enum Kind {
    Endpoints,
    Imports,
    Media,
    Disconnected,
    Grants,
}

/// Posts that need a workflow.
struct OpenPosts {
    /// Their time has come within the horizon. A run that an earlier version of the post left gets the new job.
    near: Vec<PostJob>,
    /// For those that are due, or whose targets' next steps are. A run that exists is left alone.
    overdue: Vec<Message>,
    /// True if more posts have come within the horizon.
    may_have_more: bool,
}

/// Finds the posts that need a workflow, and marks them: overdue ones that were never swept, the oldest first, and those
/// that were, the longest ago first, half of the `limit` each. So however many rows wait, each has its turn.
// Model: Sweep.
async fn unpublished(tx: &mut PgConnection, timing: Timing<'_>, limit: i64) -> sqlx::Result<OpenPosts> {
    let swept = sqlx::query!(
        r#"with near as (
             select id from posts
             where starts_at < now() + make_interval(secs => $4)
             order by starts_at limit $5 for no key update skip locked),
           unswept as (
             select p.id from posts p
             where p.status in ('scheduled', 'queued', 'publishing') and p.starts_at is null and p.swept_at is null
               and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
               and p.updated_at < now() - make_interval(secs => $1)
               and exists (
                 select from targets t
                 where t.post_id = p.id and t.status in ('pending', 'queued', 'failed')
                   and coalesce(greatest(t.next_attempt_at, t.look_at), t.updated_at) < now() - make_interval(secs => $1))
             order by coalesce(p.scheduled_at, p.created_at) limit ($3::bigint + 1) / 2 for no key update skip locked),
           again as (
             select p.id from posts p
             where p.status in ('scheduled', 'queued', 'publishing') and p.starts_at is null
               and p.swept_at < now() - make_interval(secs => $2)
               and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
               and p.updated_at < now() - make_interval(secs => $1)
               and exists (
                 select from targets t
                 where t.post_id = p.id and t.status in ('pending', 'queued', 'failed')
                   and coalesce(greatest(t.next_attempt_at, t.look_at), t.updated_at) < now() - make_interval(secs => $1))
             order by p.swept_at limit ($3::bigint + 1) / 2 for no key update skip locked),
           incomplete as (
             select p.id from posts p
             where p.id in (
                 select t.post_id from targets t join posts o on o.id = t.post_id
                 where t.status = 'published' and t.next_attempt_at < now() - make_interval(secs => $1)
                   and greatest(t.next_attempt_at, t.look_at) < now() - make_interval(secs => $1)
                   and (o.swept_at is null or o.swept_at < now() - make_interval(secs => $2))
                 order by o.swept_at nulls first, t.next_attempt_at limit $3)
               and (p.swept_at is null or p.swept_at < now() - make_interval(secs => $2))
             for no key update skip locked)
           update posts p
           set starts_at = null,
             swept_at = case when p.id in (select id from near) then p.swept_at else now() end
           where p.id in (
             select id from near union select id from unswept union select id from again
             union select id from incomplete)
           returning p.id, p.id in (select id from near) as "is_near!""#,
        timing.grace.as_secs_f64(),
        timing.row_interval.as_secs_f64(),
        limit,
        timing.horizon.as_secs_f64(),
        STARTED
    )
    .fetch_all(&mut *tx)
    .await?;
    let ids: Vec<_> = swept.iter().map(|row| row.id).collect();
    let near: HashSet<_> = swept.iter().filter(|row| row.is_near).map(|row| row.id).collect();
    let open = if ids.is_empty() {
        Vec::new()
    } else {
        posts::horizon::open(&mut *tx, &ids, Some(timing.grace)).await?
    };
    let may_have_more = near.len() as i64 == STARTED;
    let (near, overdue): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|open| near.contains(&open.job.post.0));
    Ok(OpenPosts {
        near: near.into_iter().map(|open| open.job).collect(),
        overdue: overdue.into_iter().map(posts::horizon::Open::resumption).collect(),
        may_have_more,
    })
}

/// Returns up to `limit` posts that are open, due for `grace` and have no open target, so that nothing ends them: there
/// should be none.
pub async fn unending(db: &PgPool, grace: Duration, limit: i64) -> sqlx::Result<Vec<PostId>> {
    let ids = sqlx::query_scalar!(
        "select p.id from posts p
         where p.status in ('scheduled', 'queued', 'publishing') and p.starts_at is null
           and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
           and p.updated_at < now() - make_interval(secs => $1)
           and not exists (
             select from targets t where t.post_id = p.id and t.status in ('pending', 'queued', 'failed'))
         order by coalesce(p.scheduled_at, p.created_at) limit $2",
        grace.as_secs_f64(),
        limit
    )
    .fetch_all(db)
    .await?;
    Ok(ids.into_iter().map(PostId).collect())
}

/// Returns messages for imports that have not ended.
async fn imports(tx: &mut PgConnection, grace: f64, interval: f64, limit: i64) -> sqlx::Result<Vec<Message>> {
    let swept = sqlx::query!(
        r#"with open as (
             select id from imports
             where status in ('pending', 'running') and created_at < now() - make_interval(secs => $1)
               and (swept_at is null or swept_at < now() - make_interval(secs => $2))
             order by created_at limit $3 for update skip locked)
           update imports i set swept_at = now()
           from open o, accounts a
           where i.id = o.id and a.id = i.account_id
           returning i.id, i.account_id, i.org_id, i.mode as "mode: Parsed<Mode>", a.platform"#,
        grace,
        interval,
        limit
    )
    .fetch_all(tx)
    .await?;
    Ok(swept
        .into_iter()
        .map(|row| {
            Message::ImportPosts(ImportRef {
                import: row.id.into(),
                owner: owner(row.org_id, row.mode),
                account: row.account_id.into(),
                platform: row.platform,
            })
        })
        .collect())
}

/// Returns messages for media to download, inspect or discard.
async fn media(tx: &mut PgConnection, grace: f64, interval: f64, limit: i64) -> sqlx::Result<Vec<Message>> {
    let swept = sqlx::query!(
        r#"with open as (
             select id from media
             where (deleted_at is not null or status = 'uploaded'
                    or status = 'pending_upload' and source_url is not null)
               and updated_at < now() - make_interval(secs => $1)
               and (swept_at is null or swept_at < now() - make_interval(secs => $2))
             order by updated_at limit $3 for update skip locked)
           update media m set swept_at = now() from open o where m.id = o.id
           returning m.id, m.org_id, m.mode as "mode: Parsed<Mode>", m.deleted_at is not null as "is_deleted!",
             m.status = 'uploaded' as "is_uploaded!""#,
        grace,
        interval,
        limit
    )
    .fetch_all(tx)
    .await?;
    Ok(swept
        .into_iter()
        .map(|row| {
            let what = match (row.is_deleted, row.is_uploaded) {
                (true, _) => MediaAction::Discard,
                (false, true) => MediaAction::Probe,
                (false, false) => MediaAction::Fetch,
            };
            let owner = owner(row.org_id, row.mode);
            Message::ProcessMedia(MediaJob { what, media: row.id.into(), owner })
        })
        .collect())
}

/// Returns messages for disconnected accounts with a stored grant.
async fn disconnected(
    tx: &mut PgConnection,
    grace: f64,
    interval: f64,
    limit: i64,
) -> sqlx::Result<Vec<Message>> {
    let swept = sqlx::query!(
        r#"with leaving as (
             select id from granted_accounts
             where status = 'disconnected' and updated_at < now() - make_interval(secs => $1)
               and (swept_at is null or swept_at < now() - make_interval(secs => $2))
             order by updated_at limit $3 for no key update skip locked)
           update accounts a set swept_at = now() from leaving l where a.id = l.id
           returning a.id, a.org_id, a.mode as "mode: Parsed<Mode>", a.platform, a.grant_version"#,
        grace,
        interval,
        limit
    )
    .fetch_all(tx)
    .await?;
    Ok(swept
        .into_iter()
        .map(|row| {
            let owner = owner(row.org_id, row.mode);
            let (account, grant_version) = (row.id.into(), row.grant_version);
            Message::DisconnectAccount(Disconnection {
                account,
                owner,
                platform: row.platform,
                grant_version,
            })
        })
        .collect())
}

/// Returns messages for grants that should have been renewed.
async fn grants(tx: &mut PgConnection, timing: Timing<'_>, limit: i64) -> sqlx::Result<Vec<Message>> {
    let (platforms, ages): (Vec<_>, Vec<_>) =
        timing.renewal_ages.iter().map(|(id, age)| ((*id).to_owned(), age.as_secs_f64())).unzip();
    let swept = sqlx::query!(
        r#"with ending as (
             select id from granted_accounts a
             where status = 'active' and token_expires_at is not null
               and now() > coalesce(granted_at, updated_at) + make_interval(secs => $1) + greatest(
                 (token_expires_at - coalesce(granted_at, updated_at)) * $4,
                 (select make_interval(secs => age) from unnest($5::text[], $6::float8[]) ages (id, age)
                  where id = a.platform))
               and (swept_at is null or swept_at < now() - make_interval(secs => $2))
             order by token_expires_at limit $3 for no key update skip locked)
           update accounts a set swept_at = now() from ending e where a.id = e.id
           returning a.id, a.org_id, a.mode as "mode: Parsed<Mode>", a.platform, a.grant_version,
             coalesce(a.granted_at, a.updated_at) as "granted_at!", a.token_expires_at as "expires_at!""#,
        timing.grace.as_secs_f64(),
        timing.row_interval.as_secs_f64() * RENEWAL_INTERVAL_FACTOR,
        limit,
        renewal::LATEST,
        &platforms,
        &ages
    )
    .fetch_all(tx)
    .await?;
    Ok(swept
        .into_iter()
        .map(|row| {
            Message::RenewGrant(ExpiringGrant {
                account: row.id.into(),
                owner: owner(row.org_id, row.mode),
                platform: row.platform,
                grant_version: row.grant_version,
                granted_at: row.granted_at,
                expires_at: row.expires_at,
            })
        })
        .collect())
}
