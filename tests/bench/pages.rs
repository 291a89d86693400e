//! Row 14: the dashboard's pages of an organization with a hundred thousand posts.

use crate::{
    Bench,
    lists::fill,
    load::closed,
    report::{Goal, Line, Report, median, number},
};
use anyhow::Context;
use reqwest::header;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::time::Instant;
use tests::{World, login::browser};

/// Posts of the organization; nine tenths are published.
const POSTS: u32 = 100_000;
/// Requests of each page.
const REQUESTS: usize = 40;
/// Pages, by path and query. `POST` is a post's id.
const PAGES: [&str; 20] = [
    "",
    "/posts",
    "/posts?status=failed",
    "/posts?q=zebra",
    "/posts/POST",
    "/calendar",
    "/calendar?account=ACCOUNT",
    "/compose",
    "/media",
    "/accounts",
    "/analytics",
    "/analytics?days=365",
    "/webhooks",
    "/events",
    "/requests",
    "/keys",
    "/team",
    "/audit",
    "/usage",
    "/search?q=zebra",
];

/// Row 14.
pub(crate) async fn all(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut world = World::of(bench.program).pace(1.0).running(&["api"]).start().await;
    world.leave("", "its posts wait for next month");
    fill(&world, POSTS).await?;
    publish(&world).await?;
    let origin = world.base.trim_end_matches("/api/v1");
    let http = browser();
    let sign_in = http.post(format!("{origin}/dashboard/sign-in")).header(header::ORIGIN, origin);
    let answer = sign_in.form(&[("key", &world.key)]).send().await?;
    let cookie = answer.headers().get(header::SET_COOKIE).context("a session")?.to_str()?;
    let cookie = cookie.split(';').next().unwrap_or_default();
    let mut pages = Vec::new();
    for page in PAGES {
        let path = page.replace("POST", &id("003", 777)).replace("ACCOUNT", &id("002", 3));
        let url = format!("{origin}/dashboard{path}");
        let look = async || {
            let began = Instant::now();
            let answer = http.get(&url).header(header::COOKIE, cookie).send().await?;
            let (status, html) = (answer.status(), answer.text().await?);
            anyhow::ensure!(status.is_success(), "{url}: {status}: {html}");
            Ok((began.elapsed(), Vec::new()))
        };
        closed(1, 3, look).await?;
        pages.push((page, closed(1, REQUESTS, look).await?.latencies));
    }
    pages.sort_by(|a, b| median(&b.1).total_cmp(&median(&a.1)));
    let (slowest, times) = pages.first().context("a page")?;
    let work = format!("the slowest of {} pages with {POSTS} posts: `/dashboard{slowest}`", pages.len());
    report.add(Line::limit("14", work, Goal::AtMost(50.0), times.clone(), "ms"));
    let all: Vec<_> =
        pages.iter().map(|(page, times)| format!("`{page}` {}", number(median(times)))).collect();
    report.note(format!("Row 14, p50 of each page in ms: {}.", all.join(", ")));
    Ok(())
}

/// Id of the rows of [`fill`].
fn id(kind: &str, number: u32) -> String {
    format!("01900000-0000-7{kind}-8000-{number:012x}")
}

/// Publishes nine of ten posts that [`fill`] scheduled, with what that leaves: events, the timeline and metrics.
async fn publish(world: &World) -> anyhow::Result<()> {
    let org = world.owner.org;
    let statements = format!(
        "set synchronous_commit = off;
         update posts set status = 'published', scheduled_at = null, starts_at = null, published_at = created_at
         where org_id = '{org}' and status = 'scheduled' and ('x' || right(id::text, 8))::bit(32)::bigint % 10 > 0;
         update targets t set status = 'published', published_at = t.created_at, attempts = 1,
           platform_post_id = right(t.id::text, 12), platform_post_url = 'https://example.com/' || right(t.id::text, 12)
         from posts p where p.id = t.post_id and p.status = 'published';
         insert into events (id, org_id, mode, event, post_id, target_id, body, created_at)
         select (left(uuid_at(t.created_at)::text, 24) || right(t.id::text, 12))::uuid, '{org}', 'test', 'post.target.published', t.post_id,
           t.id, repeat('x', 500), t.created_at
         from targets t where t.org_id = '{org}' and t.status = 'published';
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
         select '{org}', 'test', post_id, id, created_at, 'published', 'Published', '{{}}'
         from targets where org_id = '{org}' and status = 'published';
         insert into metric_snapshots (org_id, mode, target_id, impressions, reach, likes, comments, shares, saves, clicks,
           video_views, captured_at)
         select '{org}', 'test', id, 9, 8, 7, 6, 5, 4, 3, 2, created_at + interval '1 hour'
         from targets where org_id = '{org}' and status = 'published';
         insert into metric_days (account_id, day, org_id, mode, impressions, reach, likes, comments, shares, saves,
           clicks, video_views)
         select a.id, current_date - d, '{org}', 'test', 9, 8, 7, 6, 5, 4, 3, 2
         from accounts a, generate_series(0, 400) d where a.org_id = '{org}';
         reset synchronous_commit;"
    );
    let mut db = PgConnection::connect(world.variable("DATABASE_URL")).await?;
    for statement in [&*statements, "vacuum analyze", "checkpoint"] {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut db).await?;
    }
    Ok(db.close().await?)
}
