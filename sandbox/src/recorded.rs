//! Answers of real platforms that no request alone brings about: the state of an operator's contract, of a service or
//! of a person's address, or the page of an edge in front of any platform. `POST /_settings` `{ "recorded": { "/2/": "x.spend-cap-reached" } }` gives one to each request
//! below a path.

use super::exchange::Response;
use crate::exchange::Cause;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An answer, under the name that the setting has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recorded {
    /// X, when what the app may spend in a billing cycle is spent; autumn 2026.
    #[serde(rename = "x.spend-cap-reached")]
    XSpendCapReached,
    /// The same with the day on which the next cycle begins; spring 2026.
    #[serde(rename = "x.spend-cap-until")]
    XSpendCapUntil,
    /// X, when the app's credits are used up.
    #[serde(rename = "x.credits-depleted")]
    XCreditsDepleted,
    /// X, when the app's access level does not have the endpoint; August 2025,
    /// <https://github.com/socioboard/Socioboard-5.0/issues/440>.
    #[serde(rename = "x.access-level")]
    XAccessLevel,
    /// Cloudflare, in place of any platform: a challenge that only browsers solve.
    /// <https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/>
    #[serde(rename = "edge.challenge")]
    EdgeChallenge,
    /// An edge that refuses the request before any platform sees it.
    #[serde(rename = "edge.bad-request")]
    EdgeBadRequest,
    /// An edge that knows no server behind it.
    #[serde(rename = "edge.not-found")]
    EdgeNotFound,
    /// Bluesky's video service, for an account without a confirmed address; October 2026.
    #[serde(rename = "bluesky.unconfirmed-email")]
    BlueskyUnconfirmedEmail,
    /// The same service, for a token that it was not made for.
    #[serde(rename = "bluesky.invalid-token")]
    BlueskyInvalidToken,
}

impl Recorded {
    /// Returns the answer.
    pub(crate) fn response(self) -> Response {
        let (status, body) = match self {
            Self::EdgeChallenge => return challenge(),
            Self::EdgeBadRequest => return edge(400, "400 Bad Request"),
            Self::EdgeNotFound => return edge(404, "404 Not Found"),
            Self::XAccessLevel => (
                403,
                r#"{"errors":[{"message":"You currently have access to a subset of X API V2 endpoints and limited v1.1 endpoints (e.g. media post, oauth) only. If you need access to this endpoint, you may need a different access level. You can learn more here: https://developer.x.com/en/portal/product","code":453}]}"#,
            ),
            Self::XSpendCapReached => (
                403,
                r#"{"title":"Forbidden","detail":"Your monthly spend cap has been reached.","type":"https://api.x.com/2/problems/spend-cap-reached"}"#,
            ),
            Self::XSpendCapUntil => (
                403,
                r#"{"title":"SpendCapReached","detail":"Your account has reached its billing cycle spend cap. API requests will be blocked until the next cycle begins on 2026-05-12.","reset_date":"2026-05-12","type":"https://api.x.com/2/problems/credits"}"#,
            ),
            Self::XCreditsDepleted => (
                402,
                r#"{"title":"CreditsDepleted","detail":"Your enrolled account does not have any credits to fulfill this request.","type":"https://api.x.com/2/problems/credits-depleted"}"#,
            ),
            Self::BlueskyUnconfirmedEmail => (
                401,
                r#"{"canUpload":false,"error":"unconfirmed_email","message":"Confirm your email address to upload videos"}"#,
            ),
            Self::BlueskyInvalidToken => (
                401,
                r#"{"did":"","error":"invalid token: invalid token aud","jobId":"","message":"invalid token: invalid token aud","state":""}"#,
            ),
        };
        let body: Value = serde_json::from_str(body).expect("it was recorded");
        Response::json(status, &body).because(Cause::State)
    }
}

/// Creates the page of a challenge.
fn challenge() -> Response {
    let page = "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title>\
                <meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"></head>\
                <body><noscript>Enable JavaScript and cookies to continue</noscript></body></html>";
    Response::bytes(403, "text/html; charset=UTF-8", page.into())
        .because(Cause::State)
        .with("cf-mitigated", "challenge")
}

/// Creates the page that nginx, and edges that are built on it, show for an error.
fn edge(status: u16, title: &str) -> Response {
    let page = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n\
         <hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
    );
    Response::bytes(status, "text/html", page.into()).because(Cause::State)
}
