//! Failures on purpose.
//!
//! A word in the text of a post makes the publishing call fail in a chosen way, so that anyone can
//! see what becomes of a post then. `xN` after the word limits it to the first N tries of that text
//! by that account. Those that strike after the post was accepted count accepting tries only: what
//! follows is the platform's own affair (a duplicate is refused, an idempotent write changes nothing).
//!
//! The control panel arms an account instead: its next tries meet the fault, whatever their text says.

use super::{Turn, account::Account, shelf::Record};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What begins the word.
const MARK: &str = "#sandbox-";

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Refused with this status.
    Refuse(u16),
    /// Answered, but late.
    Slow,
    /// Never answered, nor accepted.
    Stuck,
    /// The connection drops before anything is accepted.
    Drop,
    /// Accepted, then the connection drops.
    LostReply,
    /// Accepted, then answered with 500.
    BrokenAfter,
    /// Accepted, then answered with a success whose body can't be read.
    Garbage,
}

/// The words and what they stand for. The longer of two that begin alike stands first.
pub(crate) const WORDS: [(&str, Kind); 12] = [
    ("500-after", Kind::BrokenAfter),
    ("400", Kind::Refuse(400)),
    ("401", Kind::Refuse(401)),
    ("403", Kind::Refuse(403)),
    ("429", Kind::Refuse(429)),
    ("500", Kind::Refuse(500)),
    ("503", Kind::Refuse(503)),
    ("slow", Kind::Slow),
    ("stuck", Kind::Stuck),
    ("lost-reply", Kind::LostReply),
    ("drop", Kind::Drop),
    ("garbage", Kind::Garbage),
];

/// A fault that takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its word.
    pub(crate) word: &'static str,
    /// What goes wrong.
    pub(crate) kind: Kind,
    tally: Option<String>,
    is_armed_for: Option<String>,
}

/// A fault that an account's next tries meet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Armed {
    platform: String,
    username: String,
    /// The fault's word.
    pub(crate) word: String,
    /// How many tries meet it.
    pub(crate) tries: u64,
}

impl Record for Armed {
    const SHELF: &'static str = "armed";

    fn key(&self) -> String {
        armory(&self.platform, &self.username)
    }
}

impl Armed {
    /// A fault for this account's next tries.
    pub(crate) fn of(account: &Account, word: &str, tries: u64) -> Self {
        let (platform, username) = (account.platform.clone(), account.username.clone());
        Self { platform, username, word: word.to_owned(), tries }
    }

    /// Whether it is this account that meets it.
    pub(crate) fn is_for(&self, account: &Account) -> bool {
        self.platform == account.platform && self.username == account.username
    }
}

fn armory(platform: &str, username: &str) -> String {
    format!("{platform}/{username}")
}

/// The fault's word, where there is such a fault.
pub(crate) fn word(asked: &str) -> Option<&'static str> {
    WORDS.into_iter().map(|(word, _)| word).find(|word| *word == asked)
}

/// Lets an account's next tries meet a fault; none, where there are no tries.
pub(crate) fn arm(turn: &mut Turn<'_>, armed: &Armed) {
    if armed.tries == 0 {
        turn.shelf.remove::<Armed>(&armed.key());
    } else {
        turn.shelf.put(armed);
    }
}

/// How often a fault took place.
#[derive(Serialize, Deserialize)]
struct Tally {
    id: String,
    times: u64,
}

impl Record for Tally {
    const SHELF: &'static str = "fault";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The fault that the text asks for and that still has tries left: as an error where it strikes
/// before the post is accepted, and otherwise for the reply.
///
/// # Errors
///
/// The fault, in place of accepting anything.
pub(crate) fn draw(
    turn: &mut Turn<'_>,
    platform: &str,
    username: &str,
    text: &str,
) -> Result<Option<Fault>, Fault> {
    draw_only(turn, platform, username, text, |_| true)
}

/// The same of some kinds only, where several calls publish together and each can refuse in its own way.
///
/// # Errors
///
/// The fault, in place of accepting anything.
pub(crate) fn draw_only(
    turn: &mut Turn<'_>,
    platform: &str,
    username: &str,
    text: &str,
    is_meant: impl Fn(Kind) -> bool,
) -> Result<Option<Fault>, Fault> {
    for (word, kind, tries) in asked(text).filter(|(_, kind, _)| is_meant(*kind)) {
        let mut fault = Fault { word, kind, tally: None, is_armed_for: None };
        if let Some(tries) = tries {
            let id = hex::encode(Sha256::digest(format!("{platform}\n{username}\n{word}\n{text}")));
            if turn.shelf.get::<Tally>(&id).is_some_and(|tally| tally.times >= tries) {
                continue;
            }
            fault.tally = Some(id);
        }
        return strike(turn, fault);
    }
    let id = armory(platform, username);
    let armed = turn.shelf.get::<Armed>(&id);
    let kind = armed.and_then(|armed| WORDS.into_iter().find(|(word, _)| *word == armed.word));
    match kind.filter(|(_, kind)| is_meant(*kind)) {
        Some((word, kind)) => strike(turn, Fault { word, kind, tally: None, is_armed_for: Some(id) }),
        None => Ok(None),
    }
}

/// A fault that takes place before the post is accepted does so now.
fn strike(turn: &mut Turn<'_>, fault: Fault) -> Result<Option<Fault>, Fault> {
    if matches!(fault.kind, Kind::Refuse(_) | Kind::Stuck | Kind::Drop) {
        spend(turn, &fault);
        return Err(fault);
    }
    Ok(Some(fault))
}

/// Counts a fault that took place.
pub(crate) fn spend(turn: &mut Turn<'_>, fault: &Fault) {
    if let Some(id) = &fault.tally {
        let times = turn.shelf.get::<Tally>(id).map_or(0, |tally| tally.times);
        turn.shelf.put(&Tally { id: id.clone(), times: times + 1 });
    }
    if let Some(armed) = fault.is_armed_for.as_deref().and_then(|id| turn.shelf.get::<Armed>(id)) {
        let left = Armed { tries: armed.tries.saturating_sub(1), ..armed };
        arm(turn, &left);
    }
}

/// The faults a text asks for, in order, each with how many tries it is limited to.
fn asked(text: &str) -> impl Iterator<Item = (&'static str, Kind, Option<u64>)> + '_ {
    text.match_indices(MARK).filter_map(|(start, _)| {
        let rest = &text[start + MARK.len()..];
        let (word, kind) = WORDS.into_iter().find(|(word, _)| rest.starts_with(word))?;
        let rest = &rest[word.len()..];
        let tries = rest.strip_prefix('x').and_then(|rest| {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok()
        });
        Some((word, kind, tries))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_with_their_tries() {
        let found: Vec<_> =
            asked("a #sandbox-429x2, #sandbox-500-after b #sandbox-nonsense #sandbox-drop").collect();
        assert_eq!(
            found,
            [
                ("429", Kind::Refuse(429), Some(2)),
                ("500-after", Kind::BrokenAfter, None),
                ("drop", Kind::Drop, None),
            ]
        );
    }
}
