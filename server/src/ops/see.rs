//! Lists of stuck rows and of freezes, and the record of a post.

use super::{Show, Stuck, connect};
use crate::{
    clock,
    console::{Refusal, table},
    database::Database,
    temporal::Fault,
};
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use starter::inspect;
use std::time::Duration;
use store::{
    Pool,
    operators::{self, Filter, Item},
    publishing::freezes,
};

/// Age up to which targets are listed that may be live.
const MAY_BE_LIVE_SINCE: TimeDelta = TimeDelta::days(7);
/// Maximum rows of each kind that are counted although they are not stuck yet.
const MOST_WAITING: i64 = 1000;
/// Time in which Temporal has to be reached.
const TEMPORAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists what is stuck.
pub(super) async fn stuck(options: Stuck) -> anyhow::Result<()> {
    let db = connect(&options.database).await?;
    let filter = Filter {
        kind: options.kind,
        org: options.org,
        platform: options.platform.map(str::to_owned),
        account: options.account,
        code: options.code,
        is_failing: options.failing,
        patience: if options.failing { Duration::ZERO } else { Duration::from_secs(options.after.into()) },
        limit: options.limit.into(),
    };
    let items = if options.may_be_live {
        operators::may_be_live(&db, &filter, MAY_BE_LIVE_SINCE).await?
    } else {
        operators::stuck(&db, &filter, &platforms::renewals()).await?
    };
    let frozen = freezes::list(&db).await?;
    let waiting = if options.may_be_live { Vec::new() } else { waiting(&db, &filter).await? };
    if options.json {
        return print(&json!({ "stuck": items, "waiting": waiting, "frozen": frozen }));
    }
    for freeze in &frozen {
        println!("{}", line(freeze));
    }
    let now = clock::now();
    let rows = items.iter().map(|item| row(item, now)).collect::<Vec<_>>();
    match rows.len() {
        0 if waiting.is_empty() => println!("Nothing is stuck."),
        0 => println!("{}", told(&waiting, filter.patience, now)),
        _ => table(
            ["SINCE", "KIND", "ID", "ORGANIZATION", "MODE", "PLATFORM", "STATUS", "NEXT STEP", "WHY"],
            &rows,
        ),
    }
    Ok(())
}

/// Rows of a kind that wait for less time than those that are stuck.
#[derive(Debug, Serialize)]
struct Waiting {
    kind: &'static str,
    /// Number; at the limit of the list there may be more.
    number: usize,
    /// Since when the first of them waits.
    since: DateTime<Utc>,
}

/// Returns what waits for less than the filter's patience.
async fn waiting(db: &Pool, filter: &Filter) -> anyhow::Result<Vec<Waiting>> {
    let now = clock::now();
    if filter.patience.is_zero() {
        return Ok(Vec::new());
    }
    let all = Filter { patience: Duration::ZERO, limit: MOST_WAITING, ..filter.clone() };
    let mut waiting: Vec<Waiting> = Vec::new();
    // Oldest first.
    for item in operators::stuck(db, &all, &platforms::renewals()).await? {
        if item.since < now - filter.patience {
            continue;
        }
        match waiting.iter_mut().find(|known| known.kind == item.kind) {
            Some(known) => known.number += 1,
            None => waiting.push(Waiting { kind: item.kind, number: 1, since: item.since }),
        }
    }
    Ok(waiting)
}

/// Says that nothing is stuck yet, and what waits.
fn told(waiting: &[Waiting], patience: Duration, now: DateTime<Utc>) -> String {
    let parts = waiting.iter().map(|Waiting { kind, number, since }| {
        let least = if *number as i64 >= MOST_WAITING { "at least " } else { "" };
        format!("{least}{number} of kind {kind} since {}", age(now - since))
    });
    let patience = age(TimeDelta::from_std(patience).unwrap_or(TimeDelta::MAX));
    let parts = parts.collect::<Vec<_>>().join(", ");
    format!("Nothing has waited for more than {patience}. For less: {parts}. List it with --after 0")
}

fn row(item: &Item, now: DateTime<Utc>) -> [String; 9] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        age(now - item.since),
        item.kind.to_owned(),
        item.id.clone(),
        or_dash(item.org.map(|org| org.to_string())),
        or_dash(item.mode.clone()),
        or_dash(item.platform.clone()),
        item.status.clone(),
        match item.next_at {
            Some(at) if at > now => format!("in {}", age(at - now)),
            Some(at) => format!("overdue {}", age(now - at)),
            None => "-".to_owned(),
        },
        item.why.clone(),
    ]
}

/// A duration in its largest units: 45s, 12m, 3h05m, 2d4h.
fn age(delta: TimeDelta) -> String {
    let seconds = delta.num_seconds().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

fn line(freeze: &freezes::Freeze) -> String {
    let mode = freeze.mode.as_deref().map_or_else(|| "both modes".to_owned(), |mode| format!("{mode} mode"));
    format!(
        "Frozen: {} {} in {mode}, since {} by {}: {} ({} targets wait)",
        freeze.kind,
        freeze.subject,
        freeze.created_at.format("%F %T UTC"),
        freeze.frozen_by,
        freeze.reason,
        freeze.waiting
    )
}

/// Lists what is frozen.
pub(super) async fn frozen(database: &Database, json: bool) -> anyhow::Result<()> {
    let frozen = freezes::list(&connect(database).await?).await?;
    if json {
        return print(&json!({ "frozen": frozen }));
    }
    if frozen.is_empty() {
        println!("Nothing is frozen.");
    }
    for freeze in &frozen {
        println!("{}", line(freeze));
    }
    Ok(())
}

pub(super) fn print(value: &Value) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints the story of a post.
pub(super) async fn show(options: Show) -> anyhow::Result<()> {
    let db = connect(&options.database).await?;
    let story = operators::story(&db, options.id).await?;
    let Some(story) = story else {
        return Err(Refusal::missing(format!("there is no post or target {}", options.id)));
    };
    let mut rows = story.rows;
    let client = tokio::time::timeout(TEMPORAL_TIMEOUT, options.temporal.server.connect()).await;
    let client =
        client.context("Temporal does not answer").and_then(|connected| connected.map_err(Fault::into_error));
    rows["workflows"] = match client {
        Ok(client) => inspect::workflows(&client, &story.workflows).await,
        Err(error) => inspect::unknown(&story.workflows, &format!("{error:#}")),
    }
    .into();
    print(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_their_largest_units() {
        for (seconds, expected) in
            [(-5, "0s"), (59, "59s"), (60, "1m"), (3_600, "1h00m"), (11_100, "3h05m"), (187_200, "2d4h")]
        {
            assert_eq!(age(TimeDelta::seconds(seconds)), expected);
        }
    }
}
