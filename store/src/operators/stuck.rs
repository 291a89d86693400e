//! Stuck rows of all organizations: rows whose next step is overdue, or that wait longer than they should.

use crate::{decode::Parsed, publishing::sweep, webhooks::drain::TOLD_AFTER};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, OrgId, PostId, TargetStatus, renewal};
use serde::Serialize;
use sqlx::PgPool;
use std::time::Duration;
use uuid::Uuid;

domain::string_enum! {
    /// Kind of a row that is stuck.
    Kind, "kind" {
        /// A post that is open and has no open target.
        Post = "post",
        /// A target of a post.
        Target = "target",
        /// The delivery of an event.
        Delivery = "delivery",
        /// An import of earlier posts.
        Import = "import",
        /// A media file that is fetched, read or deleted.
        Media = "media",
        /// A message to Temporal.
        Message = "message",
        /// A grant that is not renewed.
        Grant = "grant",
        /// A disconnected account whose grant is not erased.
        Disconnection = "disconnection",
    }
}

/// Something that is stuck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Kind of the item, as [`Kind`] spells it.
    pub kind: &'static str,
    /// Id of the row.
    pub id: String,
    /// The organization; `None` if the row belongs to none.
    pub org: Option<OrgId>,
    /// The mode.
    pub mode: Option<String>,
    /// The platform, if one is concerned.
    pub platform: Option<String>,
    /// The account, if one is concerned.
    pub account: Option<Uuid>,
    /// The post, if one is concerned.
    pub post: Option<PostId>,
    /// Status of the row.
    pub status: String,
    /// Code of the last failure.
    pub code: Option<String>,
    /// Why it is stuck.
    pub why: String,
    /// Since when: when it was due.
    pub since: DateTime<Utc>,
    /// When the next step is due; `None` when none has a time.
    pub next_at: Option<DateTime<Utc>>,
    /// True if the step is overdue: nobody works on the row, and reconciling resumes it.
    pub is_overdue: bool,
}

impl Item {
    /// A row that nobody works on, and about which nothing else is known.
    fn new(kind: Kind, id: impl ToString, org: Option<Uuid>, since: DateTime<Utc>) -> Self {
        Self {
            kind: kind.as_str(),
            id: id.to_string(),
            org: org.map(OrgId),
            mode: None,
            platform: None,
            account: None,
            post: None,
            status: String::new(),
            code: None,
            why: String::new(),
            since,
            next_at: None,
            is_overdue: true,
        }
    }
}

/// Limits of a list; all given conditions must hold.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only this kind.
    pub kind: Option<Kind>,
    /// Only this organization.
    pub org: Option<OrgId>,
    /// Only this platform.
    pub platform: Option<String>,
    /// Only this account.
    pub account: Option<AccountId>,
    /// Only with this code of the last failure.
    pub code: Option<String>,
    /// Only targets whose last attempt failed and that are retried.
    pub is_failing: bool,
    /// Time that a row may wait before it counts as stuck.
    pub patience: Duration,
    /// Maximum rows of each kind.
    pub limit: i64,
}

/// The least age at which platforms' grants are renewed, by platform id. Others are not renewed ahead.
pub type Renewals<'a> = &'a [(&'static str, Duration)];

impl Filter {
    fn wants(&self, kind: Kind) -> bool {
        let of_platform = matches!(kind, Kind::Target | Kind::Import | Kind::Grant | Kind::Disconnection);
        self.kind.is_none_or(|only| only == kind)
            && (!self.is_failing || kind == Kind::Target)
            && (self.platform.is_none() && self.account.is_none() || of_platform)
            && (self.code.is_none() || matches!(kind, Kind::Target | Kind::Grant))
    }

    pub(super) fn org(&self) -> Option<Uuid> {
        self.org.map(|org| org.0)
    }

    pub(super) fn account(&self) -> Option<Uuid> {
        self.account.map(|account| account.0)
    }
}

/// Returns what is stuck, oldest first, at most [`Filter::limit`] rows of each kind.
pub async fn stuck(db: &PgPool, filter: &Filter, renewals: Renewals<'_>) -> sqlx::Result<Vec<Item>> {
    let mut items = Vec::new();
    if filter.wants(Kind::Post) {
        items.extend(posts(db, filter).await?);
    }
    if filter.wants(Kind::Target) {
        items.extend(targets(db, filter).await?);
    }
    if filter.wants(Kind::Delivery) {
        items.extend(deliveries(db, filter).await?);
    }
    if filter.wants(Kind::Import) {
        items.extend(imports(db, filter).await?);
    }
    if filter.wants(Kind::Media) {
        items.extend(media(db, filter).await?);
    }
    if filter.wants(Kind::Message) {
        items.extend(messages(db, filter).await?);
    }
    if filter.wants(Kind::Grant) {
        items.extend(grants(db, filter, renewals).await?);
    }
    if filter.wants(Kind::Disconnection) {
        items.extend(disconnections(db, filter).await?);
    }
    items.sort_by(|one, other| one.since.cmp(&other.since).then_with(|| one.id.cmp(&other.id)));
    Ok(items)
}

/// Posts that nothing ends.
async fn posts(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    let ids: Vec<_> =
        sweep::unending(db, filter.patience, filter.limit).await?.into_iter().map(|post| post.0).collect();
    let rows = sqlx::query!(
        r#"select id, org_id, mode, status, coalesce(scheduled_at, created_at) as "due!" from posts
           where id = any($1) and ($2::uuid is null or org_id = $2)"#,
        &ids,
        filter.org()
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Item {
            mode: Some(row.mode),
            post: Some(PostId(row.id)),
            status: row.status,
            why: "it has no open target, so that nothing ends it".to_owned(),
            is_overdue: false,
            ..Item::new(Kind::Post, row.id, Some(row.org_id), row.due)
        })
        .collect())
}

/// Targets that were due and have not ended, and live ones without their replies.
async fn targets(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    // Two parts, each of which reads an index of open rows only, in its order.
    let rows = sqlx::query!(
        r#"with open as (
             (select t.id from posts p join targets t on t.post_id = p.id
              where p.status in ('scheduled', 'queued', 'publishing') and t.status in ('pending', 'queued', 'failed')
                and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
                and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
                and ($2::uuid is null or p.org_id = $2) and ($3::text is null or t.platform = $3)
                and ($4::text is null or t.error_code = $4) and ($6::uuid is null or t.account_id = $6)
                and (not $7 or t.status = 'failed')
              order by coalesce(p.scheduled_at, p.created_at) limit $5)
             union all
             (select t.id from targets t join posts p on p.id = t.post_id
              where t.status = 'published' and t.next_attempt_at is not null and not $7
                and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
                and ($2::uuid is null or p.org_id = $2) and ($3::text is null or t.platform = $3)
                and ($4::text is null or t.error_code = $4) and ($6::uuid is null or t.account_id = $6)
              order by t.next_attempt_at limit $5))
           select t.id, t.post_id, t.org_id, t.mode, t.platform, t.account_id,
             t.status as "status: Parsed<TargetStatus>", t.error_code, t.error_message, t.attempts,
             -- One that is frozen has a time at which it looks again, and goes on when that is released.
             case when t.freeze_id is null then t.next_attempt_at end as next_attempt_at,
             t.processing_since, t.stop_reason,
             coalesce(t.scheduled_at, p.scheduled_at, p.created_at) as "due!",
             coalesce(greatest(t.next_attempt_at, t.look_at), greatest(t.scheduled_at, p.scheduled_at, t.updated_at))
               < now() - make_interval(secs => $1) as "is_overdue!",
             exists (select from open_intents i where i.target_id = t.id) as "in_doubt!"
           from open join targets t on t.id = open.id join posts p on p.id = t.post_id
           order by "due!" limit $5"#,
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.platform,
        filter.code,
        filter.limit,
        filter.account(),
        filter.is_failing
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let failure = || match (&row.error_code, &row.error_message) {
                (Some(code), Some(message)) => Some(format!("{code}: {message}")),
                (code, message) => code.clone().or_else(|| message.clone()),
            };
            let doubt = if row.in_doubt { "its publishing call has no known result" } else { "" };
            let state = match (&row.stop_reason, row.processing_since, row.status.0) {
                (Some(reason), ..) => {
                    format!("an operator ends it ({reason}) once its call has been looked up")
                }
                (_, _, TargetStatus::Published) => {
                    format!(
                        "live, but incomplete: {}",
                        failure().unwrap_or_else(|| "its address is unknown".into())
                    )
                }
                (_, Some(since), _) => {
                    format!("{} has been processing it since {}", row.platform, since.format("%F %T UTC"))
                }
                (None, None, status) => match failure() {
                    Some(failure) => format!("attempt {}: {failure}", row.attempts),
                    None if status == TargetStatus::Pending => "no workflow has taken it up".to_owned(),
                    None if row.attempts > 0 => format!("attempt {} has no result yet", row.attempts),
                    None => "no worker has begun it".to_owned(),
                },
            };
            let overdue = if row.is_overdue { "its next step is overdue" } else { "" };
            let why = [state.as_str(), doubt, overdue].into_iter().filter(|part| !part.is_empty());
            Item {
                mode: Some(row.mode),
                platform: Some(row.platform.clone()),
                account: Some(row.account_id),
                post: Some(PostId(row.post_id)),
                status: row.status.0.to_string(),
                code: row.error_code.clone(),
                why: why.collect::<Vec<_>>().join("; "),
                next_at: row.next_attempt_at,
                is_overdue: row.is_overdue,
                ..Item::new(Kind::Target, row.id, Some(row.org_id), row.due)
            }
        })
        .collect())
}

/// Returns targets that ended since a time although their publishing call has no known result, latest first: each may
/// be live.
pub async fn may_be_live(db: &PgPool, filter: &Filter, since: TimeDelta) -> sqlx::Result<Vec<Item>> {
    let rows = sqlx::query!(
        r#"select t.id, t.post_id, t.org_id, t.mode, t.platform, t.account_id, t.error_code, t.error_message,
             t.updated_at
           from targets t
           where t.status = 'dead' and t.updated_at > now() - make_interval(secs => $1)
             and ($2::uuid is null or t.org_id = $2) and ($3::text is null or t.platform = $3)
             and ($4::text is null or t.error_code = $4) and ($6::uuid is null or t.account_id = $6)
             and exists (select from open_intents i where i.target_id = t.id)
           order by t.updated_at desc limit $5"#,
        since.num_seconds() as f64,
        filter.org(),
        filter.platform,
        filter.code,
        filter.limit,
        filter.account()
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Item {
            mode: Some(row.mode),
            platform: Some(row.platform),
            account: Some(row.account_id),
            post: Some(PostId(row.post_id)),
            status: TargetStatus::Dead.to_string(),
            code: row.error_code,
            why: row.error_message.unwrap_or_default(),
            is_overdue: false,
            ..Item::new(Kind::Target, row.id, Some(row.org_id), row.updated_at)
        })
        .collect())
}

async fn deliveries(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    let rows = sqlx::query!(
        r#"select d.id, d.org_id, d.mode, d.event, d.status, d.attempts, d.error, d.created_at, e.post_id,
             -- A delivery to a dead endpoint waits for a probe.
             greatest(coalesce(d.next_attempt_at, d.created_at), w.probe_at) < now() - make_interval(secs => $1)
               as "is_overdue!",
             case when w.probe_at > now() then greatest(d.next_attempt_at, w.probe_at) else d.next_attempt_at end
               as next_attempt_at,
             substring(w.url from '^[^:]+://(?:[^/?#\\]*@)?([^/?#\\]+)') as host,
             case when w.failures >= $4 then w.failing_since end as failing_since
           from deliveries d join events e on e.id = d.event_id left join webhooks w on w.id = d.webhook_id
           where d.status in ('pending', 'delivering')
             -- What waits for an endpoint that fails is of interest at once.
             and (d.created_at < now() - make_interval(secs => $1) or w.failures >= $4)
             and ($2::uuid is null or d.org_id = $2)
           order by coalesce(d.next_attempt_at, d.created_at) limit $3"#,
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.limit,
        TOLD_AFTER.cast_signed()
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let host = row.host.unwrap_or_else(|| "the endpoint".to_owned());
            let mut why = match row.error {
                Some(error) => format!("{} to {host}, attempt {}: {error}", row.event, row.attempts),
                None => format!("{} to {host} has not been sent", row.event),
            };
            if let Some(since) = row.failing_since {
                why += &format!("; the endpoint has accepted nothing since {}", since.format("%F %T UTC"));
            }
            Item {
                mode: Some(row.mode),
                post: row.post_id.map(PostId),
                status: row.status,
                why,
                next_at: row.next_attempt_at,
                is_overdue: row.is_overdue,
                ..Item::new(Kind::Delivery, row.id, Some(row.org_id), row.created_at)
            }
        })
        .collect())
}

async fn imports(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    let rows = sqlx::query!(
        "select i.id, i.org_id, i.mode, i.account_id, i.status, i.created_at, a.platform
         from imports i join accounts a on a.id = i.account_id
         where i.status in ('pending', 'running') and i.created_at < now() - make_interval(secs => $1)
           and ($2::uuid is null or i.org_id = $2) and ($3::text is null or a.platform = $3)
           and ($5::uuid is null or a.id = $5)
         order by i.created_at limit $4",
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.platform,
        filter.limit,
        filter.account()
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Item {
            mode: Some(row.mode),
            platform: Some(row.platform),
            account: Some(row.account_id),
            status: row.status,
            why: "the import has not ended".to_owned(),
            ..Item::new(Kind::Import, row.id, Some(row.org_id), row.created_at)
        })
        .collect())
}

async fn media(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    let rows = sqlx::query!(
        r#"select id, org_id, mode, status, updated_at, deleted_at is not null as "is_deleted!" from media
           where (deleted_at is not null or status = 'uploaded'
                  or status = 'pending_upload' and source_url is not null)
             and updated_at < now() - make_interval(secs => $1) and ($2::uuid is null or org_id = $2)
           order by updated_at limit $3"#,
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.limit
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let why = match (row.is_deleted, row.status.as_str()) {
                (true, _) => "the file of the deleted asset still exists",
                (false, "uploaded") => "the file has not been read",
                (false, _) => "the file has not been fetched",
            };
            Item {
                mode: Some(row.mode),
                status: row.status,
                why: why.to_owned(),
                ..Item::new(Kind::Media, row.id, Some(row.org_id), row.updated_at)
            }
        })
        .collect())
}

/// Messages that are parked, or that no relay has sent.
async fn messages(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    let rows = sqlx::query!(
        r#"select id, org_id, message->>'type' as name, message->>'post' as post, attempts, available_at, parked_at, error
           from outbox
           where (parked_at is not null or attempts > 3 or available_at < now() - make_interval(secs => $1))
             and ($2::uuid is null or org_id = $2)
           order by coalesce(parked_at, available_at), id limit $3"#,
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.limit
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let name = row.name.unwrap_or_else(|| "unknown".to_owned());
            let (status, why) = match (&row.parked_at, row.attempts) {
                (Some(_), _) => (
                    "parked",
                    format!("{name} can't be sent: {}", row.error.as_deref().unwrap_or("no reason kept")),
                ),
                (None, 0) => (
                    "waiting",
                    format!("no relay has sent {name}: no API process runs, or none reaches Temporal"),
                ),
                (None, tries) => {
                    ("waiting", format!("{name} was not sent in {tries} tries: Temporal does not answer"))
                }
            };
            Item {
                post: row.post.and_then(|id| id.parse().ok()),
                status: status.to_owned(),
                why,
                next_at: row.parked_at.is_none().then_some(row.available_at),
                ..Item::new(
                    Kind::Message,
                    row.id,
                    Some(row.org_id),
                    row.parked_at.unwrap_or(row.available_at),
                )
            }
        })
        .collect())
}

/// Grants that should have been renewed, and accounts that their owners must connect again.
async fn grants(db: &PgPool, filter: &Filter, renewals: Renewals<'_>) -> sqlx::Result<Vec<Item>> {
    let (platforms, ages): (Vec<_>, Vec<_>) =
        renewals.iter().map(|(id, age)| ((*id).to_owned(), age.as_secs_f64())).unzip();
    let rows = sqlx::query!(
        r#"select a.id, a.org_id, a.mode, a.platform, a.username, a.status, a.last_error_code, a.token_expires_at as "expires!",
             coalesce(a.granted_at, a.updated_at) + greatest(
               (a.token_expires_at - coalesce(a.granted_at, a.updated_at)) * $6, make_interval(secs => ages.age)) as "due!"
           from accounts a join granted_accounts g on g.id = a.id
             join unnest($7::text[], $8::float8[]) ages (id, age) on ages.id = a.platform
           where a.status = 'active' and a.token_expires_at is not null
             and now() > coalesce(a.granted_at, a.updated_at) + make_interval(secs => $1) + greatest(
               (a.token_expires_at - coalesce(a.granted_at, a.updated_at)) * $6, make_interval(secs => ages.age))
             and ($2::uuid is null or a.org_id = $2) and ($3::text is null or a.platform = $3)
             and ($4::text is null or a.last_error_code = $4) and ($9::uuid is null or a.id = $9)
           order by a.token_expires_at limit $5"#,
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.platform,
        filter.code,
        filter.limit,
        renewal::LATEST,
        &platforms,
        &ages,
        filter.account()
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Item {
            mode: Some(row.mode),
            why: format!(
                "the grant of {} on {} is not renewed; it expires at {}",
                row.username,
                row.platform,
                row.expires.format("%F %T UTC")
            ),
            platform: Some(row.platform),
            account: Some(row.id),
            status: row.status,
            code: row.last_error_code,
            ..Item::new(Kind::Grant, row.id, Some(row.org_id), row.due)
        })
        .collect())
}

async fn disconnections(db: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Item>> {
    let rows = sqlx::query!(
        "select id as \"id!\", org_id as \"org_id!\", mode as \"mode!\", platform as \"platform!\", status as \"status!\",
           updated_at as \"updated_at!\"
         from granted_accounts
         where status = 'disconnected'
           and updated_at < now() - make_interval(secs => $1) and ($2::uuid is null or org_id = $2)
           and ($3::text is null or platform = $3) and ($5::uuid is null or id = $5)
         order by updated_at limit $4",
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.platform,
        filter.limit,
        filter.account()
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Item {
            mode: Some(row.mode),
            platform: Some(row.platform),
            account: Some(row.id),
            status: row.status,
            why: "the grant of the disconnected account is not erased".to_owned(),
            ..Item::new(Kind::Disconnection, row.id, Some(row.org_id), row.updated_at)
        })
        .collect())
}
