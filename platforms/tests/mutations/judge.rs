//! The rules for the result of a call whose answer was changed.

use super::{
    Ended,
    calls::{Call, Outcome, Recorded},
    changes::{Change, excerpt},
    stage::Answer,
};
use crate::fixtures::{Actor, VERIFIER};
use domain::{
    ErrorCode, Failure,
    failure::{MAX_MESSAGE_CHARS, MAX_RETRY_AFTER},
};
use platforms::{Committed, Located, Prepared};
use serde_json::Value;
use std::time::Duration;

/// Requests after which a call counts as endless.
const MAX_REQUESTS: usize = 400;
/// The platforms of Meta.
const META: [&str; 3] = ["facebook", "instagram", "threads"];
/// Longest id, in bytes: the database indexes ids.
const MAX_ID_BYTES: usize = 1_000;

/// A call that was made with one answer changed.
pub(crate) struct Case<'a> {
    pub(crate) actor: &'a Actor,
    pub(crate) recorded: &'a Recorded,
    /// Index of the exchange whose answer was changed.
    pub(crate) index: usize,
    pub(crate) change: &'a Change,
    pub(crate) answer: &'a Answer,
}

impl Case<'_> {
    /// Returns what is wrong with the result of the call.
    pub(crate) fn objection(&self, requests: usize, ended: &Ended) -> Option<String> {
        if requests > MAX_REQUESTS {
            return Some(format!("{requests} requests"));
        }
        match ended {
            Err(how) => Some(how.clone()),
            Ok(Err(failure)) => self
                .unclassified(failure)
                .or_else(|| self.shown(failure))
                .or_else(|| self.too_certain(failure)),
            Ok(Ok(outcome)) => self.invalid(outcome).or_else(|| self.shown(outcome)),
        }
    }

    /// Returns what is wrong with a failure of any call.
    fn unclassified(&self, failure: &Failure) -> Option<String> {
        let is_known = match failure.code {
            ErrorCode::Rejected(status) => (400..500).contains(&status),
            ErrorCode::Upstream(status) => (500..600).contains(&status),
            _ => true,
        };
        let length = failure.message.chars().count();
        if !is_known {
            Some(format!("unknown code: {failure:?}"))
        } else if length > MAX_MESSAGE_CHARS || failure.message.contains('\0') {
            Some(format!("a message of {length} characters: {:?}", failure.message))
        } else if failure.retry_after.is_some_and(|wait| wait > MAX_RETRY_AFTER) {
            Some(format!("a wait of {:?}", failure.retry_after))
        } else {
            None
        }
    }

    /// Returns the secret that a result shows.
    fn shown(&self, result: &impl std::fmt::Debug) -> Option<String> {
        let text = format!("{result:?}");
        let secret =
            secrets(self.actor, &self.recorded.call).into_iter().find(|secret| text.contains(secret))?;
        Some(format!("it shows the secret {secret}: {text}"))
    }

    /// Returns what is wrong with a failed publishing call: only an answer that says so means that nothing was
    /// published.
    fn too_certain(&self, failure: &Failure) -> Option<String> {
        let is_publishing = matches!(self.recorded.call, Call::Commit(..))
            && self.recorded.exchanges[self.index].method != "GET";
        let is_refused = match self.answer.status {
            // Google's "Resume Incomplete": not all bytes have arrived.
            308 if self.actor.name() == "youtube" => true,
            100..=399 => !self.answer.is_broken && states_an_error(&self.answer.body),
            // Meta names an invalid parameter or medium with 500, too.
            500.. if META.contains(&self.actor.name()) => names_an_invalid_parameter(&self.answer.body),
            status => status < 500,
        };
        (is_publishing && !is_refused && !failure.is_ambiguous())
            .then(|| format!("certain that nothing was published: {failure:?}"))
    }

    /// Returns what is wrong with a successful result.
    fn invalid(&self, outcome: &Outcome) -> Option<String> {
        let none = |text: &str, what: &str| text.trim().is_empty().then(|| format!("{what} is empty"));
        match outcome {
            Outcome::Committed(Committed::Live(id)) => self.unsent(id),
            Outcome::Located(Located::Live(found)) => self.unsent(found.id()),
            Outcome::Committed(Committed::Accepted { at, poll_after })
            | Outcome::Prepared(Prepared::Processing { at, poll_after }) => {
                too_long(*poll_after).or_else(|| unstorable(&at.0.to_string()))
            }
            Outcome::Prepared(Prepared::Ready(at)) => unstorable(&at.0.to_string()),
            Outcome::Located(Located::Processing { poll_after }) => too_long(*poll_after),
            Outcome::Located(Located::Absent) => self.unread(),
            Outcome::Located(Located::Failed(failure)) => {
                self.unclassified(failure).or_else(|| self.unread())
            }
            Outcome::Located(Located::Unknown | Located::TooMany) | Outcome::Done(()) => None,
            Outcome::Grant(grant) => none(&grant.access_token, "the access token"),
            Outcome::Identities(all) => {
                all.iter().find_map(|identity| none(&identity.profile.network_unique_id, "an account's id"))
            }
            Outcome::Page(page) => page.items.iter().find_map(|post| none(&post.id, "a post's id")),
            Outcome::Options(all) => all.iter().find_map(|option| none(&option.id, "an option's id")),
            Outcome::Url(url) => unstorable(url),
        }
    }

    /// Returns what is wrong with an id: the platform must have sent it, and the database must take it.
    fn unsent(&self, id: &str) -> Option<String> {
        if id.trim().is_empty() || id.contains('\0') || id.len() > MAX_ID_BYTES {
            return Some(format!("an id of {} bytes: {:?}", id.len(), excerpt(id.as_bytes())));
        }
        let mut texts = vec![format!("{:?}", self.recorded.call)];
        for (index, exchange) in self.recorded.exchanges.iter().enumerate() {
            let answer = if index == self.index { self.answer } else { &exchange.answer };
            texts.push(exchange.path.clone());
            texts.push(String::from_utf8_lossy(&answer.body).into_owned());
            texts.extend(answer.headers.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()));
        }
        // An adapter may add a prefix.
        let core = id.split(['/', ':', '_']).rfind(|part| !part.is_empty()).unwrap_or(id);
        let quoted = Value::from(core).to_string();
        let is_sent = texts.iter().any(|text| text.contains(core) || text.contains(quoted.trim_matches('"')));
        (!is_sent).then(|| format!("an id that the platform did not send: {id:?}"))
    }

    /// Returns what is wrong with the result that nothing was published: the answer must have been read.
    fn unread(&self) -> Option<String> {
        let platform = self.actor.name();
        let is_read = match self.answer.status {
            // Google leaves empty lists out.
            200..=299 if self.answer.body == b"{}" => ["google_business", "youtube"].contains(&platform),
            200..=299 => !self.change.is_unreadable(),
            308 => platform == "youtube",
            // Its list is closed to most apps, and it refuses a second post with the id of the first.
            403 => platform == "linkedin",
            400 | 404 | 410 => true,
            _ => false,
        };
        (!is_read).then(|| "absent, although the answer can't be read".to_owned())
    }
}

/// Returns the secrets that a call contains.
pub(crate) fn secrets(actor: &Actor, call: &Call) -> Vec<String> {
    let grant = &actor.grant;
    let mut secrets = match call {
        Call::Exchange(code) => {
            let has_verifier = actor.platform.auth.oauth().is_some_and(|oauth| oauth.pkce);
            [code.clone()].into_iter().chain(has_verifier.then(|| VERIFIER.to_owned())).collect()
        }
        _ => {
            let tokens = [Some(grant.access_token.clone()), grant.refresh_token.clone()];
            let password = grant.extra["app_password"].as_str().map(str::to_owned);
            tokens.into_iter().flatten().chain(password).collect::<Vec<_>>()
        }
    };
    secrets.extend(actor.app.as_ref().and_then(|app| app.client_secret.clone()));
    secrets.retain(|secret| !secret.is_empty());
    secrets
}

/// Returns true if a body with a status of success states an error.
fn states_an_error(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return false };
    let is_stated = |value: &Value| value.is_number() || value.as_str().is_some_and(|text| !text.is_empty());
    let states = |value: &Value| match value {
        Value::Array(errors) => !errors.is_empty(),
        Value::Object(error) => {
            ["code", "message"].iter().any(|name| error.get(*name).is_some_and(is_stated))
        }
        value => is_stated(value),
    };
    ["/error", "/errors", "/json/errors", "/debug_info", "/error_type"]
        .iter()
        .any(|place| body.pointer(place).is_some_and(states))
}

fn names_an_invalid_parameter(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return false };
    let error = &body["error"];
    matches!(error["code"].as_i64(), Some(100 | 36_000..=36_999)) && error["is_transient"] != true
}

fn too_long(pause: Duration) -> Option<String> {
    (pause > MAX_RETRY_AFTER).then(|| format!("a pause of {pause:?}"))
}

/// Postgres stores no U+0000.
fn unstorable(text: &str) -> Option<String> {
    (text.contains('\0') || text.contains("\\u0000")).then(|| format!("it contains U+0000: {text:?}"))
}
