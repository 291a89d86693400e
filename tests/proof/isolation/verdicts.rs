//! Answers that those who must not get in are to get.

use super::scene::Kind;
use crate::surface::tables::{
    About::{self, Login, Named, One, OneOfOrganization, Organization, Reached},
    FOR_CLIENTS, FORBIDDEN,
};

/// Answer that a caller is to get.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Expected {
    /// One of these codes.
    Refused(&'static [&'static str]),
    /// An answer without what they must not see.
    Nothing,
    /// Not tried: it creates something of the caller's own.
    Untried,
}

/// Returns what a kind of callers is to get.
pub(super) fn expected(operation: &str, about: About, kind: Kind) -> Expected {
    use Expected::{Nothing, Refused, Untried};
    let is_read = operation.starts_with("GET ");
    match (about, kind) {
        // The token in the path authorizes, and there is no such login.
        (Login, _) => Refused(&["not_found"]),
        (_, Kind::Ended) => Refused(&["unauthorized"]),
        (_, Kind::Client) if !FOR_CLIENTS.contains(&operation) => {
            Refused(&["forbidden", "insufficient_scope"])
        }
        (One(_), _) => Refused(&["not_found"]),
        (Reached, _) => Nothing,
        (Named(..), Kind::Client) if operation.ends_with("/auth-url") => {
            Refused(&["forbidden", "account_not_found"])
        }
        // Live mode has no app of the platform.
        (Named(..), Kind::Mode) if operation.ends_with("/auth-url") => {
            Refused(&["account_not_found", "no_app_available"])
        }
        (Named(_, limited, _), Kind::Bound | Kind::Client) if !limited.is_empty() => Refused(limited),
        (Named(_, _, strangers), Kind::Organization | Kind::Mode) if !strangers.is_empty() => {
            Refused(strangers)
        }
        (Named(..), _) => Untried,
        (Organization | OneOfOrganization(_), Kind::Bound | Kind::Client) => Refused(FORBIDDEN),
        (Organization, _) if is_read => Nothing,
        (Organization, _) => Untried,
        // Both modes share the team.
        (OneOfOrganization("team"), Kind::Mode) => Untried,
        (OneOfOrganization(_), _) => Refused(&["not_found"]),
    }
}
