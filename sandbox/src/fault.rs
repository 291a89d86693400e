//! Faults: failures on purpose.
//!
//! A word in the text of a post makes the publishing request fail in a chosen way. `xN` after the word limits
//! it to the first N tries of that text by that account. Faults after acceptance count accepting tries only;
//! what follows is up to the platform (a duplicate is refused, an idempotent write changes nothing).
//!
//! The control panel can arm an account instead: the fault then applies to its next tries, regardless of
//! their text.

use super::{Transaction, account::Account, store::Record};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Prefix of the words.
const PREFIX: &str = "#sandbox-";

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Refused with this status.
    Refuse(u16),
    /// Answered late.
    Slow,
    /// Never answered and not accepted.
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

impl Kind {
    /// Returns what happens, in words for people.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Refuse(400) => "refused as invalid",
            Self::Refuse(401) => "refused, since the token is not valid",
            Self::Refuse(403) => "refused, since it is not allowed",
            Self::Refuse(429) => "refused, since there were too many requests",
            Self::Refuse(_) => "not published, a server error",
            Self::Slow => "published, answered late",
            Self::Stuck => "not published, never answered",
            Self::Drop => "not published, the connection drops",
            Self::LostReply => "published, then the connection drops",
            Self::BrokenAfter => "published, then a server error",
            Self::Garbage => "published, with an unreadable answer",
        }
    }
}

/// The words and their faults. Of two with a common beginning the longer comes first.
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

/// A fault that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) word: &'static str,
    /// Kind of failure.
    pub(crate) kind: Kind,
    count_id: Option<String>,
    armed_id: Option<String>,
}

/// A fault that applies to an account's next requests that publish.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Armed {
    platform: String,
    username: String,
    /// Word of the fault.
    pub(crate) word: String,
    /// Number of requests left.
    pub(crate) tries: u64,
}

impl Record for Armed {
    const TABLE: &'static str = "armed";

    fn key(&self) -> String {
        armed_key(&self.platform, &self.username)
    }
}

impl Armed {
    /// Creates a fault for an account's next requests.
    pub(crate) fn of(account: &Account, word: &str, tries: u64) -> Self {
        let (platform, username) = (account.platform.clone(), account.username.clone());
        Self { platform, username, word: word.to_owned(), tries }
    }

    /// Returns whether it is armed for this account.
    pub(crate) fn is_for(&self, account: &Account) -> bool {
        self.platform == account.platform && self.username == account.username
    }
}

fn armed_key(platform: &str, username: &str) -> String {
    format!("{platform}/{username}")
}

/// Returns the fault's word when there is such a fault.
pub(crate) fn word(asked: &str) -> Option<&'static str> {
    WORDS.into_iter().map(|(word, _)| word).find(|word| *word == asked)
}

/// Arms an account, or disarms it when no tries are left.
pub(crate) fn arm(tx: &mut Transaction, armed: &Armed) {
    if armed.tries == 0 {
        tx.store.remove::<Armed>(&armed.key());
    } else {
        tx.store.put(armed);
    }
}

/// Number of times that a fault applied.
#[derive(Serialize, Deserialize)]
struct FaultCount {
    id: String,
    times: u64,
}

impl Record for FaultCount {
    const TABLE: &'static str = "fault";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the fault that the text or the control panel asks for and that has tries left.
///
/// # Errors
///
/// A fault that applies before the post is accepted.
pub(crate) fn trigger(
    tx: &mut Transaction,
    platform: &str,
    username: &str,
    text: &str,
) -> Result<Option<Fault>, Fault> {
    trigger_kinds(tx, platform, username, text, |_| true)
}

/// Considers only some kinds of faults, for platforms where several requests publish together.
///
/// # Errors
///
/// A fault that applies before the post is accepted.
pub(crate) fn trigger_kinds(
    tx: &mut Transaction,
    platform: &str,
    username: &str,
    text: &str,
    is_meant: impl Fn(Kind) -> bool,
) -> Result<Option<Fault>, Fault> {
    for (word, kind, tries) in asked(text).filter(|(_, kind, _)| is_meant(*kind)) {
        let mut fault = Fault { word, kind, count_id: None, armed_id: None };
        if let Some(tries) = tries {
            let id = hex::encode(Sha256::digest(format!("{platform}\n{username}\n{word}\n{text}")));
            if tx.store.get::<FaultCount>(&id).is_some_and(|count| count.times >= tries) {
                continue;
            }
            fault.count_id = Some(id);
        }
        return apply(tx, fault);
    }
    let id = armed_key(platform, username);
    let armed = tx.store.get::<Armed>(&id);
    let kind = armed.and_then(|armed| WORDS.into_iter().find(|(word, _)| *word == armed.word));
    match kind.filter(|(_, kind)| is_meant(*kind)) {
        Some((word, kind)) => apply(tx, Fault { word, kind, count_id: None, armed_id: Some(id) }),
        None => Ok(None),
    }
}

/// Applies a fault at once when it precedes acceptance.
fn apply(tx: &mut Transaction, fault: Fault) -> Result<Option<Fault>, Fault> {
    if matches!(fault.kind, Kind::Refuse(_) | Kind::Stuck | Kind::Drop) {
        count(tx, &fault);
        return Err(fault);
    }
    Ok(Some(fault))
}

/// Counts a fault that applied.
pub(crate) fn count(tx: &mut Transaction, fault: &Fault) {
    if let Some(id) = &fault.count_id {
        let times = tx.store.get::<FaultCount>(id).map_or(0, |count| count.times);
        tx.store.put(&FaultCount { id: id.clone(), times: times + 1 });
    }
    if let Some(armed) = fault.armed_id.as_deref().and_then(|id| tx.store.get::<Armed>(id)) {
        let left = Armed { tries: armed.tries.saturating_sub(1), ..armed };
        arm(tx, &left);
    }
}

/// Returns the faults that a text asks for, in order, each with its limit of tries.
fn asked(text: &str) -> impl Iterator<Item = (&'static str, Kind, Option<u64>)> + '_ {
    text.match_indices(PREFIX).filter_map(|(start, _)| {
        let rest = &text[start + PREFIX.len()..];
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
    fn fault_words_are_parsed_with_their_number_of_tries() {
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
