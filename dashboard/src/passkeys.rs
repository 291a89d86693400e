//! Passkeys on pages: what a page offers, challenges for its script, and errors in words.

use crate::{
    fields::Fields,
    people::passkeys::{Answer, Challenge, Refusal, RelyingParty},
};
use api::{
    app::App,
    http::{
        headers,
        problem::{Code, Problem},
    },
};
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use serde_json::json;
use tracing::error;

/// Ways to create a passkey that a page offers.
pub(crate) enum Offer {
    /// Passkeys can be used on this page.
    Here,
    /// They can be used at this address: a passkey belongs to a name, and this page was opened by another one.
    At(String),
    /// They can't be used, because the base URL has no name that they could belong to.
    Impossible,
}

impl Offer {
    /// Returns what a page can offer that was requested like this.
    pub(crate) fn of(app: &App, request: &Request) -> Self {
        let Some(party) = RelyingParty::of(&app.config.base_url) else { return Self::Impossible };
        let host = headers::text(request.headers(), "Host").ok().flatten();
        if party.origin.split_once("://").is_some_and(|(_, own)| Some(own) == host) {
            return Self::Here;
        }
        Self::At(format!("{}{}", party.origin, request.original_uri().path()))
    }

    /// True if passkeys can be used on the page.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Here)
    }
}

/// The party that passkeys of this installation belong to.
pub(crate) fn party(app: &App) -> Result<RelyingParty, Problem> {
    let detail = "passkeys need a base URL with https and a name; the service's operator can set one";
    RelyingParty::of(&app.config.base_url).ok_or_else(|| Problem::new(Code::Conflict, detail))
}

/// Answers the script of a page with a challenge.
pub(crate) fn challenge(challenge: anyhow::Result<Challenge>) -> Result<Response, Problem> {
    let Challenge { options, state } = challenge.map_err(fault)?;
    Ok(Response::builder()
        .status(StatusCode::OK)
        .content_type("application/json")
        .header(header::CACHE_CONTROL, "no-store")
        .body(json!({ "options": options, "state": state }).to_string()))
}

/// Returns the answer in a form, which the script of a page fills in.
pub(crate) fn answer(form: &Fields) -> Answer<'_> {
    Answer { state: form.get("state"), credential: form.get("credential") }
}

/// A fault of ours.
pub(crate) fn fault(fault: anyhow::Error) -> Problem {
    match fault.downcast::<store::Error>() {
        Ok(error) => error.into(),
        Err(error) => {
            error!(error = format!("{error:#}"), "A passkey can't be handled");
            Problem::internal()
        }
    }
}

/// Says why an answer is not accepted. The details are in the log, because they help only who makes passkeys.
pub(crate) fn message(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Stale => "This took more than five minutes, or was sent twice. Try again.",
        Refusal::Unknown => {
            "This passkey is not known here: it was removed, or belongs to another installation."
        }
        Refusal::Invalid(..) => "The passkey was not accepted. Try again, or use another one.",
    }
}
