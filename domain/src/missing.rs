//! Parts of a live post that are not published: the rest of a thread that was refused or given up, and what its
//! platform has no place for.

use crate::ErrorCode;
use serde::{Deserialize, Serialize};

/// A part of a live post that is not published, and that no attempt will publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Position of its container in the post, from 0.
    pub position: u16,
    /// Code of the failure; `None` if its platform never refused it.
    pub error_code: Option<String>,
    /// Why it is not published.
    pub error_message: String,
    /// True if its platform has no place for it. Stored only: the message says so to everybody else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left_out: bool,
}

/// A part of a post, as people count them: from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Position of its container in the post, from 0.
    pub position: u16,
    /// Number of containers of the post.
    pub count: u16,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "part {} of {}", self.position + 1, self.count)
    }
}

impl Part {
    /// Returns a message that names the part; one that names it already stays as it is.
    pub fn name(self, message: &str) -> String {
        format!("{self}: {}", self.unnamed(message))
    }

    fn unnamed(self, message: &str) -> &str {
        message.strip_prefix(&format!("{self}: ")).unwrap_or(message)
    }
}

/// Returns what is missing of a post of `count` containers when those at `positions`, in order, were given up with this
/// code and message. With a code the first of them has failed, and the others were not tried.
pub fn given_up(positions: &[u16], count: u16, code: Option<ErrorCode>, message: &str) -> Vec<Missing> {
    let Some(&position) = positions.first() else { return Vec::new() };
    let first = Part { position, count };
    let reason = |position: u16| match code {
        Some(code) if position == first.position => {
            (Some(code.to_string()), first.unnamed(message).to_owned())
        }
        Some(_) => (None, format!("not tried, since it follows {first}, which is not live")),
        None => (None, message.to_owned()),
    };
    let parts = positions.iter().map(|position| {
        let (error_code, error_message) = reason(*position);
        Missing { position: *position, error_code, error_message, is_left_out: false }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_failed_has_the_reason_and_the_others_name_it() {
        let told = |code, message| -> Vec<_> {
            let missing = given_up(&[2, 3], 4, code, message);
            missing.into_iter().map(|part| (part.position, part.error_code, part.error_message)).collect()
        };
        let refused = Some(ErrorCode::Rejected(400));
        let expected = vec![
            (2, Some("rejected_400".to_owned()), "no such tag".to_owned()),
            (3, None, "not tried, since it follows part 3 of 4, which is not live".to_owned()),
        ];
        assert_eq!(told(refused, "no such tag"), expected);
        assert_eq!(told(refused, "part 3 of 4: no such tag"), expected, "the position names the part");
        let deleted = "the post was deleted".to_owned();
        assert_eq!(told(None, &deleted), vec![(2, None, deleted.clone()), (3, None, deleted)]);
        assert_eq!(given_up(&[], 4, refused, "no such tag"), []);
    }

    #[test]
    fn a_message_names_its_part_once() {
        let part = Part { position: 2, count: 4 };
        assert_eq!(part.name("no such tag"), "part 3 of 4: no such tag");
        assert_eq!(part.name(&part.name("no such tag")), "part 3 of 4: no such tag");
    }
}
