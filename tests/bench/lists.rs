//! Rows 6 and 8: reading posts at ten thousand and at a million, and a million posts that wait for next month.

use crate::{
    Bench, TURNS,
    load::{closed, in_turns},
    processes::{Cpu, Part, resident_mib},
    report::{Compared, Goal, Line, Report, each_of, median, number},
};
use anyhow::Context;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::time::{Duration, Instant};
use tests::World;

/// Posts of the two organizations that are compared.
const SIZES: (u32, u32) = (10_000, 1_000_000);
/// Failed posts, and posts on a rare platform.
const RARE: u32 = 200;
/// Time over which an idle program is watched.
const WATCH: Duration = Duration::from_secs(15);
/// Requests of one measurement, and how many at a time.
const REQUESTS: (usize, usize) = (40, 2);

/// Rows 6 and 8.
pub(crate) async fn rows(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let start = async |command| {
        let mut world = World::of(bench.program).pace(1.0).running(command).start().await;
        world.leave("", "its posts wait for next month");
        world
    };
    let (small, large) = (start(&["api"]).await, start(&["all"]).await);
    fill(&small, SIZES.0).await?;
    // Background work has started after a few seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = Watched::of(&large).await;
    let began = Instant::now();
    fill(&large, SIZES.1).await?;
    eprintln!("       inserted {} posts in {:.0} s", SIZES.1, began.elapsed().as_secs_f64());
    let after = Watched::of(&large).await;
    let work = format!("CPU of Fanfare and Postgres for {} posts that wait for next month", SIZES.1);
    let more = (after.cpu - before.cpu).max(0.0);
    report.add(Line::limit("8", work, Goal::AtMost(1.0), vec![more], "% of a core"));
    let of = Compared { ours: &[after.mib], theirs: &[before.mib], unit: "MiB" };
    report.add(Line::ratio("8", "… memory of API and worker", Goal::AtMost(1.1), of));
    let query = format!("FanfareOrg = '{}'", large.owner.org);
    let workflows = bench.client.count_workflows(query, Default::default()).await?;
    report.add(Line::limit("8", "… workflows", Goal::AtMost(0.0), vec![workflows.count() as f64], ""));
    reading(report, &small, &large).await
}

/// An idle program.
struct Watched {
    /// Of Fanfare and Postgres, in percent of a core.
    cpu: f64,
    mib: f64,
}

impl Watched {
    async fn of(world: &World) -> Self {
        let before = Cpu::now();
        tokio::time::sleep(WATCH).await;
        let used = Cpu::now().since(&before);
        let used = used.of(Part::Fanfare) + used.of(Part::Postgres);
        Self { cpu: used.as_secs_f64() / WATCH.as_secs_f64() * 100.0, mib: resident_mib(&world.pids()) }
    }
}

/// Gives an organization posts: nearly all are scheduled for next month, some failed, none is queued; nearly all are
/// on one platform and ten accounts, some on a rare platform and account.
pub(crate) async fn fill(world: &World, posts: u32) -> anyhow::Result<()> {
    let org = world.owner.org;
    let statements = format!(
        "set synchronous_commit = off;
         create function bench_id(kind bigint, number bigint) returns uuid language sql immutable as
           $$ select ('01900000-0000-7' || lpad(to_hex(kind), 3, '0') || '-8000-' || lpad(to_hex(number), 12, '0'))::uuid $$;
         insert into profiles (id, org_id, mode, name, timezone)
         select bench_id(1, n), '{org}', 'test', n, 'UTC' from generate_series(1, 2) n;
         insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name, profile_id, tenant_id)
         select bench_id(2, n), '{org}', 'test', case when n < 10 then 'x' else 'reddit' end, n, n, n,
           bench_id(1, n / 10 + 1), case when n < 10 then 'busy' else 'quiet' end
         from generate_series(0, 10) n;
         insert into posts (id, org_id, mode, status, is_draft, scheduled_at, starts_at, external_ref, metadata,
           created_at, updated_at)
         select bench_id(3, n), '{org}', 'test', case when is_rare then 'failed' else 'scheduled' end, false,
           case when is_rare then at else at + interval '60 days' end,
           case when not is_rare then at + interval '60 days' end, 'ref-' || n,
           case when is_rare then '{{\"campaign\": \"spring\"}}' else '{{}}' end::jsonb, at, at
         from generate_series(1, {posts}) n,
           lateral (select now() - {posts} * interval '1 s' + n * interval '1 s' as at, n % ({posts} / {RARE}) = 0 as is_rare) t;
         insert into containers (id, post_id, org_id, mode, position, content)
         select bench_id(4, n), bench_id(3, n), '{org}', 'test', 0, repeat(md5(n::text) || ' ', 5)
         from generate_series(1, {posts}) n;
         insert into targets (id, post_id, org_id, mode, account_id, platform, status, error_message, created_at, updated_at)
         select bench_id(5, p.n), p.id, '{org}', 'test', bench_id(2, case when p.status = 'failed' then 10 else p.n % 10 end),
           case when p.status = 'failed' then 'reddit' else 'x' end,
           case when p.status = 'failed' then 'dead' else 'pending' end,
           case when p.status = 'failed' then 'refused' end, p.created_at, p.created_at
         from (select id, status, created_at, row_number() over (order by id) as n from posts where org_id = '{org}') p;
         reset synchronous_commit;"
    );
    // A connection without the time limit of the service's.
    let mut db = PgConnection::connect(world.variable("DATABASE_URL")).await?;
    let maintenance =
        ["vacuum analyze posts", "vacuum analyze containers", "vacuum analyze targets", "checkpoint"];
    for statement in std::iter::once(statements).chain(maintenance.map(str::to_owned)) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut db).await?;
    }
    Ok(db.close().await?)
}

/// Row 6: the same requests at both sizes.
async fn reading(report: &mut Report, small: &World, large: &World) -> anyhow::Result<()> {
    let id = |kind: &str, number: &str| format!("01900000-0000-7{kind}-8000-{number:0>12}");
    let middle = |world: &World| {
        let posts = if std::ptr::eq(world, small) { SIZES.0 } else { SIZES.1 };
        (tests::now() - chrono::TimeDelta::seconds(i64::from(posts / 2)))
            .format("%Y-%m-%dT%H:%M:%SZ")
            .to_string()
    };
    let mut requests = vec![
        ("`GET /posts/{id}`", format!("/{}", id("003", "777"))),
        ("`GET /posts?limit=25`", "?limit=25".to_owned()),
    ];
    let filters = [
        ("status=scheduled", "status=scheduled"),
        ("status=failed, 200 posts", "status=failed"),
        ("status=queued, none", "status=queued"),
        ("platform=x", "platform=x"),
        ("platform=reddit, 200 posts", "platform=reddit"),
        ("platform=threads, none", "platform=threads"),
        ("social_account_id of a busy account", &*format!("social_account_id={}", id("002", "3"))),
        ("social_account_id of a quiet account", &*format!("social_account_id={}", id("002", "a"))),
        ("profile_id", &*format!("profile_id={}", id("001", "1"))),
        ("tenant_id", "tenant_id=quiet"),
        ("status=failed and platform=reddit", "status=failed&platform=reddit"),
        ("metadata, 200 posts", "metadata[campaign]=spring"),
        ("q", "q=zebra"),
        ("created_before the middle", "created_before=MIDDLE"),
        ("scheduled_after the middle", "scheduled_after=MIDDLE"),
    ];
    for (name, filter) in filters {
        requests.push((name, format!("?limit=25&{filter}")));
    }
    let mut slowest: Option<(String, Vec<f64>, Vec<f64>)> = None;
    let mut ratios = Vec::new();
    for (name, path) in requests {
        let ask = async |world: &World| {
            let url = format!("{}/posts{}", world.base, path.replace("MIDDLE", &middle(world)));
            let run = closed(REQUESTS.1, REQUESTS.0, || async {
                let began = Instant::now();
                let answer = world.http.get(&url).bearer_auth(&world.key).send().await?;
                let status = answer.status();
                let body = answer.text().await?;
                anyhow::ensure!(status.is_success(), "{url}: {status}: {body}");
                Ok((began.elapsed(), Vec::new()))
            });
            Ok(median(&run.await?.latencies))
        };
        for world in [small, large] {
            ask(world).await?;
        }
        let (large, small) = in_turns(TURNS, async || ask(large).await, async || ask(small).await).await?;
        if name.starts_with('`') {
            let of = Compared { ours: &large, theirs: &small, unit: "ms" };
            report.add(Line::ratio(
                "6",
                format!("{name}, p50, at {} posts against {}", SIZES.1, SIZES.0),
                Goal::AtMost(1.3),
                of,
            ));
            continue;
        }
        let ratio = median(&each_of(&large, &small));
        ratios.push(format!("{name} {} ({} ms)", number(ratio), number(median(&large))));
        if slowest.as_ref().is_none_or(|(_, large, small)| ratio > median(&each_of(large, small))) {
            slowest = Some((name.to_owned(), large, small));
        }
    }
    let (name, large, small) = slowest.context("a filter")?;
    let of = Compared { ours: &large, theirs: &small, unit: "ms" };
    report.add(Line::ratio("6", format!("… the filter that grows most: {name}"), Goal::AtMost(1.3), of));
    report.note(format!("Row 6, p50 at {} posts over that at {}: {}.", SIZES.1, SIZES.0, ratios.join("; ")));
    Ok(())
}
