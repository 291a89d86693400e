//! Request ids: one per request, in its response, its errors, its log lines and the timelines it adds to.
//!
//! The id is always generated here. A client's own `X-Request-Id` identifies nothing, because anybody can send
//! any: it is only logged beside the id, so that a proxy's logs can be compared. The id is task-local, since an
//! error becomes a document in many places, some of them in libraries.

use poem::http::{HeaderName, HeaderValue};
use std::fmt;
use tracing::{Instrument, Span, error_span, field};
use uuid::Uuid;

/// The header with a request's id.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of a client's own id that is logged.
const MAX_LENGTH: usize = 128;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of a request: `req_` and 32 hexadecimal digits, which begin with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl RequestId {
    /// Generates an id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Returns the id of the request that the current task handles; `None` outside of a request.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|id| *id).ok()
    }

    /// Runs a part of the request's work, with the id in its errors and log lines.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        self.scope_in(self.span(), work).await
    }

    /// Runs the request's work, and also logs the id that the client sent.
    pub(super) async fn scope_of<F: Future>(self, sent: Option<&str>, work: F) -> F::Output {
        let span = self.span();
        if let Some(sent) = sent.filter(|sent| is_loggable(sent)) {
            span.record("client_id", sent);
        }
        self.scope_in(span, work).await
    }

    /// At the level of errors, so that no filter removes it from a line that is logged.
    fn span(self) -> Span {
        error_span!("request", id = %self, client_id = field::Empty)
    }

    async fn scope_in<F: Future>(self, span: Span, work: F) -> F::Output {
        CURRENT.scope(self, work.instrument(span)).await
    }

    /// Returns the id as it is stored.
    pub(super) fn uuid(self) -> Uuid {
        self.0
    }

    /// Returns the header's value.
    pub(super) fn value(self) -> HeaderValue {
        HeaderValue::from_str(&self.to_string()).expect("an id is plain ASCII")
    }
}

impl From<Uuid> for RequestId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "req_{}", self.0.simple())
    }
}

/// Returns whether the client's own id is safe to log.
fn is_loggable(sent: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_LENGTH).contains(&sent.len()) && sent.bytes().all(is_safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_own_id_is_logged_if_it_is_short_and_plain() {
        let long = "a".repeat(128);
        for (text, is_logged) in [
            ("a", true),
            ("order-7_retry.2", true),
            (&*long, true),
            (&*format!("{long}a"), false),
            ("", false),
            ("a b", false),
            ("a=b", false),
            ("\"", false),
        ] {
            assert_eq!(is_loggable(text), is_logged, "{text}");
        }
    }

    #[tokio::test]
    async fn an_id_is_current_within_its_request_only() {
        assert_eq!(RequestId::current(), None);
        let id = RequestId::generate();
        assert_eq!(id.scope(async { RequestId::current() }).await, Some(id));
        assert_ne!(RequestId::generate(), id);
        let text = id.to_string();
        assert!(text.len() == 36 && text.starts_with("req_"), "{text}");
    }
}
