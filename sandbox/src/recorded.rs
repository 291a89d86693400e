//! Answers of real platforms that no request alone brings about: the state of an operator's contract, of a service or
//! of a person's address. `POST /_settings` `{ "recorded": { "/2/": "x.spend-cap-reached" } }` gives one to each request
//! below a path.

use super::exchange::Response;
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
        Response::json(status, &body)
    }
}
