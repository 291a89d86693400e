//! API keys and sessions of any organization.

use super::{connect, see::print};
use crate::{
    clock,
    console::{Refusal, actor, table},
    database::Database,
};
use domain::{KeyId, Mode, OrgId, Owner};
use serde_json::json;
use store::{
    operators,
    page::Request,
    people::{keys, organizations},
};

/// Keys that are read at once.
const PAGE: u32 = 1000;

/// Lists the keys of an organization.
pub(super) async fn list(database: &Database, org: OrgId, json: bool) -> anyhow::Result<()> {
    let db = connect(database).await?;
    if organizations::name(&db, org).await?.is_none() {
        return Err(Refusal::missing(format!("there is no organization {org}")));
    }
    let mut found = Vec::new();
    for mode in Mode::ALL {
        let (owner, mut after) = (Owner { org, mode: *mode }, None);
        loop {
            let page = Request { after, limit: PAGE };
            let keys = keys::list(&db, owner, clock::now(), page).await?;
            found.extend(keys.items);
            after = keys.next;
            if after.is_none() {
                break;
            }
        }
    }
    let scopes = |key: &keys::Key| key.scopes.iter().map(ToString::to_string).collect::<Vec<_>>();
    if json {
        let keys: Vec<_> = found
            .iter()
            .map(|key| {
                json!({
                    "id": key.id, "mode": key.owner.mode.as_str(), "name": key.name, "last_four": key.last_four,
                    "scopes": scopes(key), "bound": key.bound.to_string(), "created_at": key.created_at,
                    "last_used_at": key.last_used_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at,
                })
            })
            .collect();
        return print(&json!({ "keys": keys }));
    }
    let rows: Vec<_> = found
        .iter()
        .map(|key| {
            let time = |at: Option<chrono::DateTime<chrono::Utc>>| {
                at.map_or_else(|| "-".to_owned(), |at| at.format("%F %T UTC").to_string())
            };
            [
                key.id.to_string(),
                key.owner.mode.to_string(),
                format!("…{}", key.last_four),
                key.name.clone(),
                scopes(key).join(","),
                key.bound.to_string(),
                time(key.last_used_at),
                time(key.expires_at),
            ]
        })
        .collect();
    table(["ID", "MODE", "KEY", "NAME", "SCOPES", "FOR", "LAST USED", "EXPIRES"], &rows);
    Ok(())
}

/// Revokes a key.
pub(super) async fn revoke(database: &Database, key: KeyId) -> anyhow::Result<()> {
    let db = connect(database).await?;
    let Some(owner) = operators::owner_of_key(&db, key).await? else {
        return Err(Refusal::missing(format!("there is no key {key}")));
    };
    if !keys::revoke(&db, owner, key, &actor(), clock::now()).await? {
        return Err(Refusal::nothing(format!("key {key} was revoked before")));
    }
    println!("key {key} of organization {} is revoked", owner.org);
    Ok(())
}

/// Ends sessions of the dashboard.
pub(super) async fn end_sessions(database: &Database, org: Option<OrgId>) -> anyhow::Result<()> {
    let db = connect(database).await?;
    if let Some(org) = org
        && organizations::name(&db, org).await?.is_none()
    {
        return Err(Refusal::missing(format!("there is no organization {org}")));
    }
    let ended = operators::end_sessions(&db, org, &actor(), clock::now()).await?;
    println!("{ended} sessions have ended");
    Ok(())
}
