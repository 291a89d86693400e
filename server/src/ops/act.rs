//! Actions on what is stuck.

use super::{What, connect};
use crate::{
    clock,
    console::{Refusal, actor},
    database::Database,
};
use chrono::{DateTime, Utc};
use domain::{DeliveryId, TargetId, WebhookId};
use std::time::Duration;
use store::{
    operators::{self, Deliveries, EndResult, Reconciled, Redelivered, Retried},
    publishing::freezes::{self, FreezeResult},
    webhooks::deliveries::RedeliverResult,
};
use uuid::Uuid;

/// Maximum deliveries that one command repeats.
const REDELIVER_LIMIT: i64 = 10_000;

/// Retries a target, or the targets of a post.
pub(super) async fn retry(database: &Database, id: Uuid, reason: Option<&str>) -> anyhow::Result<()> {
    let db = connect(database).await?;
    let results = operators::retry(&db, id, reason, &actor(), clock::now()).await?;
    if results.is_empty() {
        return Err(Refusal::missing(format!("there is no target or post {id}")));
    }
    for (target, result) in &results {
        let text = match result {
            Retried::BroughtForward => "the next attempt begins now".to_owned(),
            Retried::Revived => "was dead and starts over".to_owned(),
            Retried::RevivedFrozen => "was dead and starts over when what is frozen is released".to_owned(),
            Retried::Frozen => "is frozen by an operator and waits for the release".to_owned(),
            Retried::Unchanged(status) => format!("is {status}; nothing to retry"),
            Retried::Disconnected => "is dead, and its account is disconnected".to_owned(),
        };
        println!("target {target} {text}");
    }
    if !results.iter().any(|(_, result)| result.is_done()) {
        return Err(Refusal::nothing("nothing was retried"));
    }
    Ok(())
}

/// Ends a target.
pub(super) async fn end(
    database: &Database,
    target: TargetId,
    reason: &str,
    may_be_live: bool,
) -> anyhow::Result<()> {
    let db = connect(database).await?;
    match operators::end(&db, target, reason, may_be_live, &actor(), clock::now()).await? {
        EndResult::Ended(status) => println!("target {target} has ended: {status}"),
        EndResult::LookingUp => println!(
            "target {target} may be live: a worker looks it up and ends it then; --may-be-live ends it at once"
        ),
        EndResult::Already(status) => {
            return Err(Refusal::nothing(format!("target {target} had ended before: {status}")));
        }
        EndResult::Draft => return Err(Refusal::nothing(format!("the post of target {target} is a draft"))),
        EndResult::Missing => return Err(Refusal::missing(format!("there is no target {target}"))),
    }
    Ok(())
}

/// Resumes what is overdue.
pub(super) async fn reconcile(database: &Database, parked: bool, reason: Option<&str>) -> anyhow::Result<()> {
    let db = connect(database).await?;
    let Reconciled { resumed, unparked } =
        operators::reconcile(&db, &platforms::renewals(), parked, reason, &actor(), clock::now()).await?;
    println!("{resumed} messages for overdue rows were written; {unparked} parked messages are sent again");
    Ok(())
}

/// Freezes publishing.
pub(super) async fn freeze(database: &Database, what: &What, reason: &str) -> anyhow::Result<()> {
    let (scope, modes) = (what.scope()?, what.modes());
    let db = connect(database).await?;
    match freezes::freeze(&db, &scope, what.mode, reason, &actor(), clock::now()).await? {
        FreezeResult::Frozen => println!("{scope} is frozen in {modes}"),
        FreezeResult::Already => {
            return Err(Refusal::nothing(format!("{scope} was frozen in {modes} before")));
        }
        FreezeResult::Missing => return Err(Refusal::missing(format!("there is no {scope}"))),
    }
    Ok(())
}

/// Releases what was frozen.
pub(super) async fn release(database: &Database, what: &What, rate: Option<u32>) -> anyhow::Result<()> {
    let (scope, modes) = (what.scope()?, what.modes());
    let pause = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(60) / rate);
    let db = connect(database).await?;
    match freezes::release(&db, &scope, what.mode, pause, &actor(), clock::now()).await? {
        Some(targets) => println!("{scope} is released in {modes}; {targets} targets go on"),
        None => return Err(Refusal::nothing(format!("{scope} is not frozen in {modes}"))),
    }
    Ok(())
}

/// Repeats deliveries.
pub(super) async fn redeliver(
    database: &Database,
    delivery: Option<DeliveryId>,
    endpoint: Option<WebhookId>,
    since: Option<DateTime<Utc>>,
) -> anyhow::Result<()> {
    let which = match (delivery, endpoint) {
        (Some(id), _) => Deliveries::One(id),
        (None, Some(endpoint)) => Deliveries::Endpoint(endpoint, since),
        (None, None) => return Err(Refusal::usage("name a delivery or --endpoint")),
    };
    let db = connect(database).await?;
    let Some(Redelivered { queued, refused }) =
        operators::redeliver(&db, which, REDELIVER_LIMIT, &actor(), clock::now()).await?
    else {
        return Err(Refusal::missing(match which {
            Deliveries::One(id) => format!("there is no delivery {id}"),
            Deliveries::Endpoint(id, _) => format!("there is no endpoint {id}"),
        }));
    };
    for (id, refusal) in &refused {
        match refusal {
            RedeliverResult::Queued(_) => {}
            RedeliverResult::InProgress => println!("delivery {id} is still under way"),
            RedeliverResult::Paused => println!("delivery {id} can't be repeated: its endpoint is paused"),
            RedeliverResult::NotFound => {
                println!("delivery {id} can't be repeated: its endpoint was deleted")
            }
        }
    }
    println!("{queued} deliveries are repeated");
    if queued == 0 {
        return Err(Refusal::nothing("nothing was repeated"));
    }
    Ok(())
}
