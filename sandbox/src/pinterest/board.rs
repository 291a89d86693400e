//! A board as it is stored. Pins are on boards, and [`super::boards`] tells what is on one.

use super::{Account, Realm, Record, Request, Response, Transaction, error, next};
use crate::exchange::Cause::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Board {
    pub(super) id: String,
    /// Id of the owner.
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) privacy: String,
    pub(super) is_ads_only: bool,
    pub(super) sections: Vec<Section>,
    #[serde(default)]
    pub(super) realm: Realm,
    pub(super) created_at: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) id: String,
    pub(super) name: String,
}

impl Record for Board {
    const TABLE: &'static str = "pinterest.board";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Board {
    /// Returns whether it has this section.
    pub(super) fn has(&self, section: &str) -> bool {
        self.sections.iter().any(|own| own.id == section)
    }
}

/// Returns the board with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Board> {
    tx.store.get(id)
}

/// Returns the boards of a user, oldest first.
pub(super) fn of(tx: &Transaction, user: &str, realm: Realm) -> Vec<Board> {
    let is_theirs = |board: &Board| board.owner == user && board.realm == realm;
    tx.store.with_prefix("").filter(is_theirs).collect()
}

/// Creates an account's first board.
pub(super) fn ensure_first(tx: &mut Transaction, account: &Account) {
    let realm = Realm::Production;
    if of(tx, &account.id, realm).is_empty() {
        let id = next(tx);
        tx.store.put(&Board {
            id,
            owner: account.id.clone(),
            name: "Ideas".into(),
            description: None,
            privacy: "PUBLIC".into(),
            is_ads_only: false,
            sections: Vec::new(),
            realm,
            created_at: tx.now,
        });
    }
}

/// Returns the user's own board with this id.
///
/// # Errors
///
/// The refusal.
pub(super) fn own(
    tx: &Transaction,
    request: &Request,
    account: &Account,
    id: &str,
) -> Result<Board, Response> {
    let board = get(tx, id).filter(|board| board.realm == Realm::of(request));
    let board = board.ok_or_else(|| error(State, 404, 40, "Board not found."))?;
    if board.owner == account.id { Ok(board) } else { Err(super::forbidden()) }
}
