//! Boards and their sections: <https://developers.pinterest.com/docs/api/v5/boards-list>.

use super::{
    Account, Outcome, Realm, Record, Request, Response, Transaction, body, error, invalid, next, paged, pins,
    text, time,
};
use crate::exchange::Cause::{Protocol, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Board {
    pub(super) id: String,
    /// Id of the owner.
    pub(super) owner: String,
    pub(super) name: String,
    description: Option<String>,
    privacy: String,
    is_ads_only: bool,
    sections: Vec<Section>,
    #[serde(default)]
    realm: Realm,
    created_at: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    id: String,
    name: String,
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

    fn view(&self, tx: &Transaction, owner: &str) -> Value {
        let pins: Vec<_> = pins::by(tx, &self.owner).filter(|pin| pin.board == self.id).collect();
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "owner": { "username": owner },
            "privacy": self.privacy,
            "pin_count": pins.len(),
            "follower_count": 0,
            "collaborator_count": 0,
            "created_at": time(self.created_at),
            "board_pins_modified_at": time(pins.last().map_or(self.created_at, |pin| pin.created_at)),
            "media": { "image_cover_url": null, "pin_thumbnail_urls": [] },
            "is_ads_only": self.is_ads_only,
        })
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

/// `GET /v5/boards`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let privacy = request.query("privacy").unwrap_or("ALL");
    if !["ALL", "PUBLIC", "PROTECTED", "SECRET", "PUBLIC_AND_SECRET"].contains(&privacy) {
        return Err(invalid(Protocol, &format!("'{privacy}' is no privacy of a board")));
    }
    let own = of(tx, &caller.id, Realm::of(request)).into_iter().filter(|board| match privacy {
        "ALL" => true,
        "PUBLIC_AND_SECRET" => board.privacy != "PROTECTED",
        one => board.privacy == one,
    });
    let (boards, bookmark) = paged(request, own.collect(), |board: &Board| &board.id)?;
    let items: Vec<_> = boards.iter().map(|board| board.view(tx, &caller.username)).collect();
    Ok(Response::json(200, &json!({ "items": items, "bookmark": bookmark })))
}

/// `POST /v5/boards`.
pub(super) fn create(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let body = body(request)?;
    let name = text(&body, "name", 180, Protocol)?
        .ok_or_else(|| invalid(Protocol, "'name' is a required property"))?;
    let privacy = text(&body, "privacy", 20, Protocol)?.unwrap_or_else(|| "PUBLIC".into());
    if !["PUBLIC", "PROTECTED", "SECRET"].contains(&privacy.as_str()) {
        return Err(invalid(Protocol, &format!("'{privacy}' is no privacy of a board")));
    }
    let realm = Realm::of(request);
    if of(tx, &caller.id, realm).iter().any(|board| board.name == name) {
        return Err(error(State, 400, 58, "You already have a board with that name."));
    }
    let board = Board {
        id: next(tx),
        owner: caller.id.clone(),
        name,
        description: text(&body, "description", 500, Protocol)?,
        privacy,
        is_ads_only: body["is_ads_only"] == true,
        sections: Vec::new(),
        realm,
        created_at: tx.now,
    };
    tx.store.put(&board);
    let view = board.view(tx, &caller.username);
    Ok(Response::json(201, &view))
}

/// `GET /v5/boards/{board_id}`.
pub(super) fn show(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let board = own(tx, request, caller, id)?;
    let view = board.view(tx, &caller.username);
    Ok(Response::json(200, &view))
}

/// `GET /v5/boards/{board_id}/sections`.
pub(super) fn sections(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let board = own(tx, request, caller, id)?;
    let (sections, bookmark) = paged(request, board.sections, |section: &Section| &section.id)?;
    Ok(Response::json(200, &json!({ "items": sections, "bookmark": bookmark })))
}

/// `POST /v5/boards/{board_id}/sections`.
pub(super) fn create_section(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let body = body(request)?;
    let mut board = own(tx, request, caller, id)?;
    let name = text(&body, "name", 180, Protocol)?
        .ok_or_else(|| invalid(Protocol, "'name' is a required property"))?;
    if board.sections.iter().any(|section| section.name == name) {
        return Err(error(State, 409, 409, "There is a section of that name already."));
    }
    let section = Section { id: next(tx), name };
    board.sections.push(section.clone());
    tx.store.put(&board);
    Ok(Response::json(201, &json!(section)))
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
