//! Growth of metrics in a period, by day, platform and account, and the best posts of the period.
//!
//! Growth is read from the sums of each account and day that [`crate::usage::metrics::record`] keeps, so that its cost does
//! not grow with the number of posts. The best posts are those among the latest of the period, a bounded number.

use crate::bounds::Whole;
use chrono::{DateTime, NaiveDate, Utc};
use domain::{AccountId, Metrics, PostId};
use sqlx::PgPool;

/// The latest published targets of a period that are compared.
pub const COMPARED: i64 = 1_000;
/// Maximum number of accounts.
const ACCOUNTS: i64 = 100;
/// Length of an excerpt in characters.
const EXCERPT_CHARS: i32 = 140;

domain::string_enum! {
    /// A metric of a published post.
    Metric, "metric" {
        /// Number of times a post was shown.
        Impressions = "impressions",
        /// Number of people who saw a post.
        Reach = "reach",
        /// Likes and other reactions.
        Likes = "likes",
        /// Comments and replies.
        Comments = "comments",
        /// Shares, reposts and quotes.
        Shares = "shares",
        /// Saves and bookmarks.
        Saves = "saves",
        /// Clicks on links.
        Clicks = "clicks",
        /// Plays of a post's video.
        VideoViews = "video_views",
    }
}

impl Metric {
    /// Its place in an array of SQL.
    fn place(self) -> i32 {
        self as i32 + 1
    }
}

/// A number for each metric, negative if it shrank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth([i64; 8]);

impl Growth {
    /// The number of a metric.
    pub fn of(&self, metric: Metric) -> i64 {
        self.0[metric as usize]
    }

    /// Adds another growth.
    pub fn add(&mut self, other: &Self) {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            *one = one.saturating_add(other);
        }
    }
}

impl From<Metrics> for Growth {
    fn from(metrics: Metrics) -> Self {
        let Metrics { impressions, reach, likes, comments, shares, saves, clicks, video_views } = metrics;
        let all = [impressions, reach, likes, comments, shares, saves, clicks, video_views];
        Self(all.map(|count| i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

/// The days and targets that are summed up.
#[derive(Clone, Debug)]
pub struct Filter {
    /// First day, in UTC.
    pub first: NaiveDate,
    /// Last day, in UTC.
    pub last: NaiveDate,
    /// Only this platform.
    pub platform: Option<String>,
    /// Only this account.
    pub account: Option<AccountId>,
}

/// Growth on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// The day, in UTC.
    pub day: NaiveDate,
    /// Platform id.
    pub platform: String,
    /// Growth of all its accounts.
    pub growth: Growth,
}

/// Growth of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Account id.
    pub account: AccountId,
    /// Platform id.
    pub platform: String,
    /// Handle on the platform.
    pub username: String,
    /// Growth in the period.
    pub growth: Growth,
}

/// A published target with its latest metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// Post of the target.
    pub post: PostId,
    /// Beginning of the text.
    pub excerpt: String,
    /// Platform id.
    pub platform: String,
    /// Handle of the account.
    pub username: String,
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// Latest metrics.
    pub metrics: Growth,
}

macro_rules! growth {
    ($row:ident) => {
        // A sum that does not fit becomes the largest number.
        Growth(
            [
                $row.impressions,
                $row.reach,
                $row.likes,
                $row.comments,
                $row.shares,
                $row.saves,
                $row.clicks,
                $row.video_views,
            ]
            .map(|sum| sum as i64),
        )
    };
}

/// Returns growth by day and platform, earliest first. Days without growth are left out.
pub async fn days(db: &PgPool, owner: Whole, filter: &Filter) -> sqlx::Result<Vec<Day>> {
    let rows = sqlx::query!(
        r#"select d.day, a.platform, sum(d.impressions)::float8 as "impressions!", sum(d.reach)::float8 as "reach!",
             sum(d.likes)::float8 as "likes!", sum(d.comments)::float8 as "comments!",
             sum(d.shares)::float8 as "shares!", sum(d.saves)::float8 as "saves!",
             sum(d.clicks)::float8 as "clicks!", sum(d.video_views)::float8 as "video_views!"
           from metric_days d join accounts a on a.id = d.account_id
           where d.org_id = $1 and d.mode = $2 and d.day between $3 and $4
             and ($5::text is null or a.platform = $5) and ($6::uuid is null or d.account_id = $6)
           group by d.day, a.platform order by d.day, a.platform"#,
        owner.org.0,
        owner.mode.as_str(),
        filter.first,
        filter.last,
        filter.platform,
        filter.account.map(|account| account.0)
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Day { growth: growth!(row), day: row.day, platform: row.platform })
        .collect())
}

/// Returns growth by account, that with most of a metric first.
pub async fn accounts(
    db: &PgPool,
    owner: Whole,
    filter: &Filter,
    metric: Metric,
) -> sqlx::Result<Vec<Account>> {
    let rows = sqlx::query!(
        r#"with grown as (
             select d.account_id, sum(d.impressions)::float8 as impressions, sum(d.reach)::float8 as reach,
               sum(d.likes)::float8 as likes, sum(d.comments)::float8 as comments, sum(d.shares)::float8 as shares,
               sum(d.saves)::float8 as saves, sum(d.clicks)::float8 as clicks,
               sum(d.video_views)::float8 as video_views
             from metric_days d
             where d.org_id = $1 and d.mode = $2 and d.day between $3 and $4
             group by d.account_id)
           select a.id, a.platform, a.username, g.impressions as "impressions!", g.reach as "reach!",
             g.likes as "likes!", g.comments as "comments!", g.shares as "shares!", g.saves as "saves!",
             g.clicks as "clicks!", g.video_views as "video_views!"
           from grown g join accounts a on a.id = g.account_id
           where ($5::text is null or a.platform = $5) and ($6::uuid is null or a.id = $6)
           order by (array[g.impressions, g.reach, g.likes, g.comments, g.shares, g.saves, g.clicks, g.video_views])
             [$7::integer] desc, a.platform, a.username limit $8"#,
        owner.org.0,
        owner.mode.as_str(),
        filter.first,
        filter.last,
        filter.platform,
        filter.account.map(|account| account.0),
        metric.place(),
        ACCOUNTS
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Account {
            growth: growth!(row),
            account: row.id.into(),
            platform: row.platform,
            username: row.username,
        })
        .collect())
}

/// Returns the targets with most of a metric among the latest [`COMPARED`] that were published in the period.
pub async fn best(
    db: &PgPool,
    owner: Whole,
    filter: &Filter,
    metric: Metric,
    limit: i64,
) -> sqlx::Result<Vec<Best>> {
    let rows = sqlx::query!(
        r#"with latest as materialized (
             select id, post_id, account_id, platform, published_at from targets
             where org_id = $1 and mode = $2 and published_at >= $3::date::timestamp at time zone 'UTC'
               and published_at < ($4::date + 1)::timestamp at time zone 'UTC'
               and ($5::text is null or platform = $5) and ($6::uuid is null or account_id = $6)
             order by published_at desc limit $7),
           best as (
             select l.post_id, l.account_id, l.platform, l.published_at, s.*
             from latest l cross join lateral (
               select impressions, reach, likes, comments, shares, saves, clicks, video_views
               from metric_snapshots where target_id = l.id order by captured_at desc, id desc limit 1) s
             order by (array[impressions, reach, likes, comments, shares, saves, clicks, video_views])
               [$8::integer] desc, l.published_at desc limit $9)
           select b.post_id, left(c.content, $10) as "excerpt!", b.platform, a.username,
             b.published_at as "published_at!", b.impressions, b.reach, b.likes, b.comments, b.shares, b.saves,
             b.clicks, b.video_views
           from best b join accounts a on a.id = b.account_id
           join containers c on c.post_id = b.post_id and c.variant = 0 and c.position = 0
           order by (array[b.impressions, b.reach, b.likes, b.comments, b.shares, b.saves, b.clicks, b.video_views])
             [$8::integer] desc, b.published_at desc"#,
        owner.org.0,
        owner.mode.as_str(),
        filter.first,
        filter.last,
        filter.platform,
        filter.account.map(|account| account.0),
        COMPARED,
        metric.place(),
        limit,
        EXCERPT_CHARS
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Best {
            metrics: growth!(row),
            post: row.post_id.into(),
            excerpt: row.excerpt,
            platform: row.platform,
            username: row.username,
            published_at: row.published_at,
        })
        .collect())
}
