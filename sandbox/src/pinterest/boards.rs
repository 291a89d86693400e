//! Boards and their sections: <https://developers.pinterest.com/docs/api/v5/boards-list>.

use super::{
    Account, Answer, Call, READ, Record, Turn, WRITE, admit, body, error, invalid, next, paged, pins, text, time,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A board.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Board {
    /// Its id.
    pub(super) id: String,
    /// Whose it is.
    pub(super) owner: String,
    /// Its name.
    pub(super) name: String,
    description: Option<String>,
    privacy: String,
    is_ads_only: bool,
    sections: Vec<Section>,
    created_at: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    id: String,
    name: String,
}

impl Record for Board {
    const SHELF: &'static str = "pinterest.board";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Board {
    /// Whether it has this section.
    pub(super) fn has(&self, section: &str) -> bool {
        self.sections.iter().any(|own| own.id == section)
    }

    fn view(&self, turn: &Turn<'_>, owner: &str) -> Value {
        let pins: Vec<_> = pins::by(turn, &self.owner).filter(|pin| pin.board == self.id).collect();
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

/// The board with this id.
pub(super) fn get(turn: &Turn<'_>, id: &str) -> Option<Board> {
    turn.shelf.get(id)
}

/// The boards of a user, oldest first.
pub(super) fn of(turn: &Turn<'_>, user: &str) -> Vec<Board> {
    turn.shelf.under("").filter(|board: &Board| board.owner == user).collect()
}

/// Gives an account the board that it begins with.
pub(super) fn found(turn: &mut Turn<'_>, account: &Account) {
    if of(turn, &account.id).is_empty() {
        let id = next(turn);
        turn.shelf.put(&Board {
            id,
            owner: account.id.clone(),
            name: "Ideas".into(),
            description: None,
            privacy: "PUBLIC".into(),
            is_ads_only: false,
            sections: Vec::new(),
            created_at: turn.now,
        });
    }
}

/// `GET /v5/boards`.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["boards:read"], READ)?;
    let privacy = call.query("privacy").unwrap_or("ALL");
    if !["ALL", "PUBLIC", "PROTECTED", "SECRET", "PUBLIC_AND_SECRET"].contains(&privacy) {
        return Err(invalid(&format!("'{privacy}' is no privacy of a board")));
    }
    let own = of(turn, &caller.account.id).into_iter().filter(|board| match privacy {
        "ALL" => true,
        "PUBLIC_AND_SECRET" => board.privacy != "PROTECTED",
        one => board.privacy == one,
    });
    let (boards, bookmark) = paged(call, own.collect(), |board: &Board| &board.id)?;
    let items: Vec<_> = boards.iter().map(|board| board.view(turn, &caller.account.username)).collect();
    Ok(caller.reply(turn, 200, &json!({ "items": items, "bookmark": bookmark })))
}

/// `POST /v5/boards`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["boards:read", "boards:write"], WRITE)?;
    let body = body(call)?;
    let name = text(&body, "name", 180)?.ok_or_else(|| invalid("'name' is a required property"))?;
    let privacy = text(&body, "privacy", 20)?.unwrap_or_else(|| "PUBLIC".into());
    if !["PUBLIC", "PROTECTED", "SECRET"].contains(&privacy.as_str()) {
        return Err(invalid(&format!("'{privacy}' is no privacy of a board")));
    }
    if of(turn, &caller.account.id).iter().any(|board| board.name == name) {
        return Err(error(400, 58, "You already have a board with that name."));
    }
    let board = Board {
        id: next(turn),
        owner: caller.account.id.clone(),
        name,
        description: text(&body, "description", 500)?,
        privacy,
        is_ads_only: body["is_ads_only"] == true,
        sections: Vec::new(),
        created_at: turn.now,
    };
    turn.shelf.put(&board);
    let view = board.view(turn, &caller.account.username);
    Ok(caller.reply(turn, 201, &view))
}

/// `GET /v5/boards/{board_id}`.
pub(super) fn show(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["boards:read"], READ)?;
    let board = own(turn, &caller.account, id)?;
    let view = board.view(turn, &caller.account.username);
    Ok(caller.reply(turn, 200, &view))
}

/// `GET /v5/boards/{board_id}/sections`.
pub(super) fn sections(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["boards:read"], READ)?;
    let board = own(turn, &caller.account, id)?;
    let (sections, bookmark) = paged(call, board.sections, |section: &Section| &section.id)?;
    Ok(caller.reply(turn, 200, &json!({ "items": sections, "bookmark": bookmark })))
}

/// `POST /v5/boards/{board_id}/sections`.
pub(super) fn divide(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["boards:read", "boards:write"], WRITE)?;
    let body = body(call)?;
    let mut board = own(turn, &caller.account, id)?;
    let name = text(&body, "name", 180)?.ok_or_else(|| invalid("'name' is a required property"))?;
    if board.sections.iter().any(|section| section.name == name) {
        return Err(error(409, 409, "There is a section of that name already."));
    }
    let section = Section { id: next(turn), name };
    board.sections.push(section.clone());
    turn.shelf.put(&board);
    Ok(caller.reply(turn, 201, &json!(section)))
}

/// The user's own board with this id.
///
/// # Errors
///
/// The refusal.
pub(super) fn own(turn: &Turn<'_>, account: &Account, id: &str) -> Result<Board, Answer> {
    let board = get(turn, id).ok_or_else(|| error(404, 40, "Board not found."))?;
    if board.owner == account.id { Ok(board) } else { Err(super::forbidden()) }
}
