//! Signing in at the operator's OpenID provider.
//!
//! The browser keeps what must come back together, sealed in a cookie of its own: so a login that was begun in another
//! browser ends nowhere, and one that is never finished leaves nothing behind. The provider is asked by a worker.

use api::{
    app::App,
    http::{
        caller::Call,
        problem::{Code, Problem},
        workers,
    },
    seal,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Owner, PersonId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::{
    people::{Identity, audit::Actor, passkeys},
    upkeep::vault,
};
use tracing::warn;
use workflows::activities::{OpenIdCallback, OpenIdLogin, OpenIdResult, OpenIdStart};

/// Time for a login.
pub(crate) const TTL: TimeDelta = TimeDelta::minutes(10);
/// Purpose of the sealed cookie.
const PURPOSE: &str = "openid login";
/// Purpose of the sealed cookie while a person chooses among invitations.
const CHOICE: &str = "openid invitations";
/// Path of the callback, below the dashboard's.
pub(crate) const CALLBACK: &str = "/sign-in/openid/callback";

/// A login that was begun, as the browser keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Login {
    state: String,
    nonce: String,
    verifier: String,
    /// Path to return to.
    pub(crate) next: String,
    /// Who links the identity, instead of signing in with it.
    #[serde(default)]
    pub(crate) link: Option<Link>,
    /// Id of the session that the browser had: its cookie does not come back from another site.
    #[serde(default)]
    pub(crate) earlier: Option<String>,
}

/// One who links an identity. The provider's page leads back without the cookie of the session, which is
/// `SameSite=Strict`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Link {
    /// Id of the session.
    pub(crate) session: String,
    /// The person who is signed in.
    pub(crate) person: PersonId,
}

/// Start of a login.
pub(crate) struct Begun {
    /// The provider's page.
    pub(crate) url: String,
    /// Sealed state that the browser keeps.
    pub(crate) cookie: String,
}

fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

fn redirect_uri(app: &App) -> String {
    format!("{}{}{CALLBACK}", app.config.root(), crate::PATH)
}

/// The person is not known yet.
fn call<'a>(app: &'a App, by: &'a Actor) -> Call<'a> {
    Call::new(app, Owner::NOBODY, &[], by)
}

/// Begins a login, to sign in or to link an identity.
pub(crate) async fn begin(
    app: &App,
    by: &Actor,
    next: &str,
    link: Option<Link>,
    earlier: Option<String>,
    now: DateTime<Utc>,
) -> Result<Begun, Problem> {
    let (state, nonce, verifier) = (random(), random(), random());
    let login = Login { state, nonce, verifier, next: next.to_owned(), link, earlier };
    let request = OpenIdLogin {
        redirect_uri: redirect_uri(app),
        state: login.state.clone(),
        nonce: login.nonce.clone(),
        challenge: BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&login.verifier)),
    };
    match workers::request(&call(app, by), request).await? {
        OpenIdStart::At { url } => {
            let plain = serde_json::to_vec(&login).expect("it is plain data");
            Ok(Begun { url, cookie: app.config.seal.seal(PURPOSE, &plain, TTL, now) })
        }
        OpenIdStart::Refused { detail } => {
            warn!(%detail, "A login at the OpenID provider could not begin");
            Err(Problem::new(
                Code::Unavailable,
                "the OpenID provider can't be used now; tell the service's operator",
            ))
        }
    }
}

/// Opens what the browser kept, if it belongs to the state that came back.
pub(crate) fn open(key: &seal::Key, cookie: Option<&str>, state: &str, now: DateTime<Utc>) -> Option<Login> {
    let login: Login = serde_json::from_slice(&key.open(PURPOSE, cookie?, now)?).ok()?;
    (!state.is_empty() && login.state == state).then_some(login)
}

/// One who came back from the provider and chooses among invitations, as the browser keeps them.
#[derive(Serialize, Deserialize)]
pub(crate) struct Choice {
    /// The person at the provider.
    pub(crate) identity: Identity,
    /// Path to return to.
    pub(crate) next: String,
}

impl Choice {
    /// Seals it for the browser.
    pub(crate) fn seal(&self, key: &seal::Key, now: DateTime<Utc>) -> String {
        key.seal(CHOICE, &serde_json::to_vec(self).expect("it is plain data"), TTL, now)
    }

    /// Opens what the browser kept.
    pub(crate) fn open(key: &seal::Key, cookie: Option<&str>, now: DateTime<Utc>) -> Option<Self> {
        serde_json::from_slice(&key.open(CHOICE, cookie?, now)?).ok()
    }
}

/// Finishes a login. `None` if the provider returned no identity, or the login was finished before. A login that a provider
/// did not answer is finished as well: its code counts once, and may have counted.
pub(crate) async fn finish(
    app: &App,
    by: &Actor,
    login: &Login,
    code: &str,
    now: DateTime<Utc>,
) -> Result<Option<Identity>, Problem> {
    if !passkeys::spend(&app.db, &Sha256::digest(&login.state), now + TTL, now).await? {
        return Ok(None);
    }
    let code = json!({ "code": code, "verifier": login.verifier, "nonce": login.nonce });
    let sealed = workers::seal(app, &code, vault::AAD_OPENID);
    let request = OpenIdCallback { sealed, redirect_uri: redirect_uri(app) };
    Ok(match workers::request(&call(app, by), request).await? {
        OpenIdResult::Person { issuer, subject, email, name } => {
            Some(Identity { issuer, subject, email, name })
        }
        OpenIdResult::Refused { detail } => {
            warn!(%detail, "A login at the OpenID provider was refused");
            None
        }
        OpenIdResult::Away { detail } => {
            warn!(%detail, "The OpenID provider did not finish a login");
            return Err(Problem::new(
                Code::Unavailable,
                "the OpenID provider does not answer; sign in again in a moment",
            ));
        }
    })
}
