//! Boards and their sections: <https://developers.pinterest.com/docs/api/v5/boards-list>.

use super::{
    Account, Outcome, Realm, Request, Response, Transaction,
    board::{Board, Section, of, own},
    body, error, invalid, next, paged, pins, text, time,
};
use crate::exchange::Cause::{Protocol, State};
use serde_json::{Value, json};

impl Board {
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
