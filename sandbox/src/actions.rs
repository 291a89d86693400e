//! Actions of the control API that the forms of the control panel have as well, and how both answer.

use super::{
    Sandbox, Transaction, account, account::Account, find, settings::Settings, simulator::Simulator,
};
use poem::{IntoResponse, Response, Result, http::StatusCode, web::Json};
use serde_json::{Map, Value, json};

/// Does something with an account, and answers whether there is one.
pub(super) fn with_account(
    sandbox: &Sandbox,
    (platform, username): &(String, String),
    work: impl FnOnce(&'static dyn Simulator, &mut Transaction, &mut Account),
) -> Result<Response> {
    let done = sandbox.transaction(|tx| {
        let simulator = find(platform)?;
        let username = simulator.validate_username(username).ok()?;
        let mut account = account::by_username(tx.store, platform, &username)?;
        work(simulator, tx, &mut account);
        Some(())
    });
    Ok(match done.map_err(internal)? {
        Some(()) => StatusCode::NO_CONTENT.into_response(),
        None => problem(StatusCode::NOT_FOUND, "no such account"),
    })
}

/// Applies changes to single settings.
pub(super) fn apply(sandbox: &Sandbox, changes: Map<String, Value>) -> Result<serde_json::Result<Settings>> {
    let changed = sandbox.transaction(|tx| {
        let mut all = serde_json::to_value(&*tx.settings)?;
        for (name, value) in changes {
            all[name] = value;
        }
        *tx.settings = serde_json::from_value(all)?;
        let settings = tx.settings.clone();
        tx.store.put(&settings);
        Ok::<_, serde_json::Error>(settings)
    });
    changed.map_err(internal)
}

pub(super) fn internal(error: anyhow::Error) -> poem::Error {
    poem::Error::from_string(format!("{error:#}"), StatusCode::INTERNAL_SERVER_ERROR)
}

pub(super) fn problem(status: StatusCode, detail: impl Into<String>) -> Response {
    Json(json!({ "error": detail.into() })).with_status(status).into_response()
}
