//! Messages that wake an endpoint: a transaction that adds deliveries wakes the endpoints that are asleep, and one that
//! opens a delivery again has its endpoint look for due ones now. When an endpoint sleeps and wakes is the matter of [`drain`](super::drain).

use crate::outbox;
use domain::{
    DeliveryId, Owner, WebhookId,
    outbox::{EndpointRef, Message},
};
use sqlx::PgConnection;
use uuid::Uuid;

/// Pushes messages that wake those of the endpoints that are asleep, in the transaction that added deliveries to them
/// and that has locked none of the endpoints.
pub(crate) async fn wake_sleeping(
    tx: &mut PgConnection,
    owner: Owner,
    webhooks: &[Uuid],
) -> sqlx::Result<()> {
    let asleep =
        sqlx::query_scalar!(r#"select endpoints_asleep($1) as "id!""#, webhooks).fetch_all(&mut *tx).await?;
    for id in asleep {
        outbox::push(tx, &message(owner, id.into())).await?;
    }
    Ok(())
}

/// Has an endpoint try again now what is due, also a dead one, until an attempt fails, and pushes the message that wakes
/// it. For deliveries that are open again, `oldest` is the first of them.
pub(crate) async fn revive(
    tx: &mut PgConnection,
    owner: Owner,
    webhook: WebhookId,
    oldest: Option<DeliveryId>,
) -> sqlx::Result<()> {
    sqlx::query!("update webhooks set probe_at = null where id = $1", webhook.0).execute(&mut *tx).await?;
    if let Some(oldest) = oldest {
        open(&mut *tx, webhook, oldest).await?;
    }
    outbox::push(tx, &message(owner, webhook)).await
}

/// Notes that a delivery is open that may be older than the endpoint's others.
async fn open(tx: &mut PgConnection, webhook: WebhookId, id: DeliveryId) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhooks
         set open_from = least(coalesce(open_from, now() - interval '1 day'), uuid_time($2) - interval '1 second')
         where id = $1",
        webhook.0,
        id.0
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the message that wakes an endpoint.
pub(crate) fn message(owner: Owner, webhook: WebhookId) -> Message {
    Message::DrainEndpoint(EndpointRef { webhook, owner })
}
