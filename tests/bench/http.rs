//! Row 5: `POST /posts` against a bare handler that inserts the same rows.

use crate::{
    Bench, TURNS,
    load::{closed, each, in_turns, next},
    processes::Part,
    report::{Compared, Goal, Line, Report, median, number},
};
use anyhow::Context;
use poem::{
    EndpointExt, IntoResponse, Route, handler,
    http::StatusCode,
    post,
    web::{Data, Json},
};
use reqwest::Client;
use serde_json::{Value, json};
use std::time::Instant;
use store::Pool;
use tests::World;
use uuid::Uuid;

/// Connections of the load, and of each program to Postgres.
const CONNECTIONS: (usize, u32) = (32, 16);

/// Values that the bare handler knows from the start.
#[derive(Clone)]
struct Bare {
    db: Pool,
    org: Uuid,
    accounts: Vec<Uuid>,
}

/// Row 5: creation of drafts, so that only the API works.
pub(crate) async fn creation(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut world = World::of(bench.program).pace(1.0).running(&["api"]).start().await;
    world.leave("", "drafts are not published");
    let mut accounts: Vec<Uuid> = Vec::new();
    for n in 0..10 {
        accounts.push(world.connect("x", &format!("ada{n}")).await.parse()?);
    }
    let db = store::connect(world.variable("DATABASE_URL"), CONNECTIONS.1).await?;
    let bare = Bare { db, org: world.owner.org.0, accounts: accounts.clone() };
    let address = tests::serve(Route::new().at("/posts", post(insert)).data(bare)).await;
    let bare = format!("http://{address}/posts");
    let ours = format!("{}/posts", world.base);
    for (count, rounds) in [(1, 1500), (10, 600)] {
        let ids: Vec<_> = accounts[..count].iter().map(Uuid::to_string).collect();
        let create = async |url: &str, rounds| {
            let one = || send(&world.http, url, &world.key, &ids);
            closed(CONNECTIONS.0, rounds, one).await
        };
        // Fills pools and caches.
        for url in [&ours, &bare] {
            create(url, 200).await?;
        }
        let (our_runs, their_runs) =
            in_turns(TURNS, async || create(&ours, rounds).await, async || create(&bare, rounds).await)
                .await?;
        let rates = (each(&our_runs, |run| run.per_second), each(&their_runs, |run| run.per_second));
        let of = Compared { ours: &rates.0, theirs: &rates.1, unit: "posts/s" };
        let plural = if count == 1 { "" } else { "s" };
        let work = format!("`POST /posts`, {count} account{plural}, {} connections", CONNECTIONS.0);
        report.add(Line::ratio("5", &*work, Goal::AtLeast(0.7), of));
        let last = our_runs.last().context("a run")?;
        report.note(format!(
            "Row 5, {count} account{plural}: p50 {} ms, p99 {} ms; CPU per post: Fanfare {:.2} ms, Postgres {:.2} ms.",
            number(median(&last.latencies)),
            number(crate::report::percentile(&last.latencies, 99)),
            last.cpu.ms_per(Part::Fanfare, rounds),
            last.cpu.ms_per(Part::Postgres, rounds),
        ));
    }
    Ok(())
}

async fn send(http: &Client, url: &str, key: &str, accounts: &[String]) -> anyhow::Result<crate::load::Done> {
    let began = Instant::now();
    let body = json!({ "content": format!("Benchmark {}", next()), "accounts": accounts, "is_draft": true });
    let answer = http.post(url).bearer_auth(key).json(&body).send().await?;
    let status = answer.status();
    let body = answer.text().await?;
    anyhow::ensure!(status == StatusCode::CREATED, "{status}: {body}");
    Ok((began.elapsed(), Vec::new()))
}

/// Inserts the rows of a draft and returns it: no key, no limits, no checks, no idempotency.
#[handler]
async fn insert(Data(bare): Data<&Bare>, Json(body): Json<Value>) -> poem::Result<impl IntoResponse> {
    let now = tests::now();
    let (post, container) = (Uuid::now_v7(), Uuid::now_v7());
    let count = body["accounts"].as_array().map_or(0, Vec::len);
    let accounts = &bare.accounts[..count.min(bare.accounts.len())];
    let targets: Vec<_> = accounts.iter().map(|_| Uuid::now_v7()).collect();
    let inserted = sqlx::query(
        "with post as (
           insert into posts (id, org_id, mode, status, is_draft, version, default_config, created_at, updated_at,
             metadata, starts_at)
           values ($1, $2, 'test', 'draft', true, 1, '{}', $3, $3, '{}', 'infinity')),
         text as (
           insert into containers (id, post_id, org_id, mode, position, content, media)
           values ($4, $1, $2, 'test', 0, $5, '[]')),
         fan as (
           insert into targets (id, post_id, org_id, mode, account_id, platform, variant, created_at, updated_at)
           select t.id, $1, $2, 'test', t.account_id, 'x', 0, $3, $3
           from unnest($6::uuid[], $7::uuid[]) as t (id, account_id))
         insert into timeline (org_id, mode, post_id, at, kind, message, detail)
         values ($2, 'test', $1, $3, 'created', 'Created as a draft', '{\"to\": \"draft\"}')",
    )
    .bind(post)
    .bind(bare.org)
    .bind(now)
    .bind(container)
    .bind(body["content"].as_str())
    .bind(&targets)
    .bind(accounts)
    .execute(&bare.db)
    .await;
    inserted.map_err(poem::error::InternalServerError)?;
    Ok((StatusCode::CREATED, Json(json!({ "id": post, "targets": targets, "status": "draft" }))))
}
