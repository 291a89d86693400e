//! Temporal's answers, as they are logged and shown.

use temporalio_client::tonic::{Code, Status};

/// Returns whether Temporal does not accept this client. A proxy before it may say so too.
pub fn is_unauthorized(code: Code) -> bool {
    matches!(code, Code::Unauthenticated | Code::PermissionDenied)
}

/// Returns the text of an answer. The message of a server that does not accept this client is left out: it may repeat
/// the API key.
pub fn shown(status: &Status) -> String {
    match status.code() {
        code if is_unauthorized(code) => format!("{code:?}"),
        code => format!("{code:?}: {}", status.message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_shown_without_the_servers_message() {
        for (code, expected) in [
            (Code::Unauthenticated, "Unauthenticated"),
            (Code::PermissionDenied, "PermissionDenied"),
            (Code::InvalidArgument, "InvalidArgument: a key"),
        ] {
            assert_eq!(shown(&Status::new(code, "a key")), expected);
        }
    }
}
