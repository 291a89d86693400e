//! Passkeys: <https://www.w3.org/TR/webauthn-3/>.
//!
//! A passkey is a discoverable credential whose authenticator verifies its user, so that it suffices alone. What the
//! server must remember between a challenge and its answer travels through the browser, sealed: so a page that
//! nobody answers leaves nothing behind. A challenge is answered once and within five minutes.

use anyhow::Context;
use api::seal;
use chrono::{DateTime, TimeDelta, Utc};
use domain::PersonId;
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::{
    Pool,
    people::{
        UsedPasskey,
        passkeys::{self, NewPasskey, Passkey},
    },
};
use url::{Host, Url};
use uuid::Uuid;
use webauthn_rp::{
    AuthenticatedCredential, DiscoverableAuthentication16, DiscoverableAuthenticationServerState,
    DiscoverableCredentialRequestOptions, PublicKeyCredentialCreationOptions, Registration,
    RegistrationServerState,
    bin::{Decode, Encode},
    request::{
        AsciiDomain, ExtensionInfo, PublicKeyCredentialDescriptor, RpId,
        auth::AuthenticationVerificationOptions,
        register::{
            CredProtect, Nickname, PublicKeyCredentialUserEntity, RegistrationVerificationOptions,
            UserHandle16, Username,
        },
    },
    response::{
        AuthTransports, CredentialId,
        auth::ser_relaxed::DiscoverableAuthenticationRelaxed16,
        register::{DynamicState, StaticState, ser_relaxed::RegistrationRelaxed},
    },
};

/// Time to answer a challenge; the options for the browser say the same.
const TTL: TimeDelta = TimeDelta::minutes(5);
/// Purpose of the sealed state of a sign-in.
const SIGN_IN: &str = "passkey sign-in";

/// This service towards browsers: the name that passkeys are bound to, and the origin of the pages.
#[derive(Clone, Debug)]
pub(crate) struct RelyingParty {
    id: RpId,
    /// The origin of pages that can use passkeys.
    pub(crate) origin: String,
}

/// Passkeys that are registered: a challenge for one kind registers none of the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Registered {
    /// The first passkey of a new person, who accepts an invitation.
    First,
    /// A further passkey of a person who is signed in.
    Further,
}

impl Registered {
    /// Purpose of the sealed state of the registration.
    fn purpose(self) -> &'static str {
        match self {
            Self::First => "registration of a first passkey",
            Self::Further => "registration of a further passkey",
        }
    }
}

/// A challenge for the browser.
pub(crate) struct Challenge {
    /// Argument of `navigator.credentials`, as JSON.
    pub(crate) options: Value,
    /// Sealed state that comes back with the answer.
    pub(crate) state: String,
}

/// The browser's answer to a challenge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// The challenge's sealed state.
    pub(crate) state: &'a str,
    /// Result of `navigator.credentials`, as JSON.
    pub(crate) credential: &'a str,
}

/// Why an answer is not accepted.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The challenge is unknown, or was answered before, or too late.
    Stale,
    /// The passkey is not known here.
    Unknown,
    /// The answer is not valid: the person who has the passkey, if known, and why.
    Invalid(Option<PersonId>, String),
}

impl RelyingParty {
    /// Returns what the base URL says; `None` if passkeys can't be bound to it, because its host is an IP address other
    /// than loopback, which is reached as `localhost` as well, or because it is not https.
    pub(crate) fn of(base_url: &str) -> Option<Self> {
        let url = Url::parse(base_url).ok()?;
        let (name, origin) = match url.host()? {
            Host::Domain(name) => (name.to_owned(), url.origin().ascii_serialization()),
            Host::Ipv4(address) if address.is_loopback() => local(&url)?,
            Host::Ipv6(address) if address.is_loopback() => local(&url)?,
            Host::Ipv4(_) | Host::Ipv6(_) => return None,
        };
        let is_local = name == "localhost" || name.ends_with(".localhost");
        if url.scheme() != "https" && !is_local {
            return None;
        }
        Some(Self { id: RpId::Domain(AsciiDomain::try_from(name).ok()?), origin })
    }

    /// Begins a registration for a person who has the `known` passkeys.
    pub(crate) fn begin_registration(
        &self,
        key: &seal::Key,
        registered: Registered,
        person: PersonId,
        email: &str,
        known: &[Passkey],
        now: DateTime<Utc>,
    ) -> anyhow::Result<Challenge> {
        let id = handle(person);
        let name = Username::try_from(email).or_else(|_| Username::try_from("member"));
        let user = PublicKeyCredentialUserEntity {
            name: name.ok().context("a fixed name is valid")?,
            id: &id,
            display_name: Nickname::try_from(email).ok(),
        };
        let known = known.iter().filter_map(|passkey| {
            let id = CredentialId::decode(passkey.credential_id.clone()).ok()?;
            Some(PublicKeyCredentialDescriptor { id, transports: AuthTransports::decode(0).ok()? })
        });
        let mut options = PublicKeyCredentialCreationOptions::passkey(&self.id, user, known.collect());
        // Authenticators of phones and computers don't know the policy, and browsers refuse them where it is enforced.
        // Each answer is checked for user verification all the same.
        options.extensions.cred_protect =
            CredProtect::UserVerificationRequired(ExtensionInfo::AllowDontEnforceValue);
        let (server, client) = options.start_ceremony().ok().context("the options are consistent")?;
        let mut state = person.0.as_bytes().to_vec();
        state.extend(server.encode().context("a time after 1970 can be encoded")?);
        let state = key.seal(registered.purpose(), &state, TTL, now);
        Ok(Challenge { options: serde_json::to_value(client)?, state })
    }

    /// Verifies the answer to a registration. Returns the person that it was begun for, and the passkey.
    pub(crate) async fn finish_registration(
        &self,
        db: &Pool,
        key: &seal::Key,
        registered: Registered,
        answer: Answer<'_>,
        name: &str,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Result<(PersonId, NewPasskey), Refusal>> {
        let Some(opened) = key.open(registered.purpose(), answer.state, now) else {
            return Ok(Err(Refusal::Stale));
        };
        let Some((person, server)) = split(&opened) else { return Ok(Err(Refusal::Stale)) };
        let Ok(server) = RegistrationServerState::<16>::decode(server) else {
            return Ok(Err(Refusal::Stale));
        };
        let registration: Registration = match serde_json::from_str::<RegistrationRelaxed>(answer.credential)
        {
            Ok(registration) => registration.0,
            Err(error) => return Ok(Err(Refusal::Invalid(None, error.to_string()))),
        };
        let origins = [self.origin.as_str()];
        let options = RegistrationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            // Authenticators add what nobody asked for.
            error_on_unsolicited_extensions: false,
            ..Default::default()
        };
        let passkey = match server.verify(&self.id, &registration, &options) {
            Ok(credential) => NewPasskey {
                credential_id: credential.id().as_ref().to_vec(),
                static_state: credential.static_state().encode()?,
                dynamic_state: credential.dynamic_state().encode()?.to_vec(),
                name: name.to_owned(),
            },
            Err(error) => return Ok(Err(Refusal::Invalid(None, error.to_string()))),
        };
        if !spend(db, answer.state, now).await? {
            return Ok(Err(Refusal::Stale));
        }
        Ok(Ok((person, passkey)))
    }

    /// Begins a sign-in with any passkey.
    pub(crate) fn begin_sign_in(&self, key: &seal::Key, now: DateTime<Utc>) -> anyhow::Result<Challenge> {
        let options = DiscoverableCredentialRequestOptions::passkey(&self.id);
        let (server, client) = options.start_ceremony().ok().context("the options are consistent")?;
        let state = server.encode().context("a time after 1970 can be encoded")?;
        Ok(Challenge { options: serde_json::to_value(client)?, state: key.seal(SIGN_IN, &state, TTL, now) })
    }

    /// Verifies the answer to a sign-in.
    pub(crate) async fn finish_sign_in(
        &self,
        db: &Pool,
        key: &seal::Key,
        answer: Answer<'_>,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Result<UsedPasskey, Refusal>> {
        let Some(opened) = key.open(SIGN_IN, answer.state, now) else { return Ok(Err(Refusal::Stale)) };
        let Ok(server) = DiscoverableAuthenticationServerState::decode(&opened) else {
            return Ok(Err(Refusal::Stale));
        };
        let authentication: DiscoverableAuthentication16 =
            match serde_json::from_str::<DiscoverableAuthenticationRelaxed16>(answer.credential) {
                Ok(authentication) => authentication.0,
                Err(error) => return Ok(Err(Refusal::Invalid(None, error.to_string()))),
            };
        let Some(passkey) = passkeys::find(db, authentication.raw_id().as_ref()).await? else {
            return Ok(Err(Refusal::Unknown));
        };
        let id = handle(passkey.person);
        let dynamic_state: [u8; 7] =
            passkey.dynamic_state.as_slice().try_into().context("the stored state of a passkey")?;
        let mut credential = AuthenticatedCredential::new(
            authentication.raw_id(),
            &id,
            StaticState::decode(passkey.static_state.as_slice()).context("the stored key of a passkey")?,
            DynamicState::decode(dynamic_state).context("the stored state of a passkey")?,
        )
        .ok()
        .context("a stored passkey is consistent")?;
        let origins = [self.origin.as_str()];
        let options = AuthenticationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..Default::default()
        };
        if let Err(error) = server.verify(&self.id, &authentication, &mut credential, &options) {
            return Ok(Err(Refusal::Invalid(Some(passkey.person), error.to_string())));
        }
        if !spend(db, answer.state, now).await? {
            return Ok(Err(Refusal::Stale));
        }
        let dynamic_state = credential.dynamic_state().encode()?.to_vec();
        Ok(Ok(UsedPasskey { id: passkey.id, person: passkey.person, dynamic_state }))
    }
}

/// Loopback by its name, which passkeys can be bound to.
fn local(url: &Url) -> Option<(String, String)> {
    let mut url = url.clone();
    url.set_host(Some("localhost")).ok()?;
    Some(("localhost".to_owned(), url.origin().ascii_serialization()))
}

/// The user handle of a person: their id.
fn handle(person: PersonId) -> UserHandle16 {
    let Ok(handle) = UserHandle16::decode(*person.0.as_bytes());
    handle
}

fn split(opened: &[u8]) -> Option<(PersonId, &[u8])> {
    let (id, server) = opened.split_first_chunk::<16>()?;
    Some((PersonId(Uuid::from_bytes(*id)), server))
}

/// Notes that a challenge was answered. Returns false when it was before.
async fn spend(db: &Pool, state: &str, now: DateTime<Utc>) -> store::Result<bool> {
    passkeys::spend(db, &Sha256::digest(state), now + TTL, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_are_bound_to_the_name_in_the_base_url() {
        for (base_url, origin) in [
            ("https://fanfare.example/api/v1", Some("https://fanfare.example")),
            ("https://fanfare.example:8443/api/v1", Some("https://fanfare.example:8443")),
            ("http://127.0.0.1:8080/api/v1", Some("http://localhost:8080")),
            ("http://[::1]:8080/api/v1", Some("http://localhost:8080")),
            ("http://localhost:8080/api/v1", Some("http://localhost:8080")),
            ("http://fanfare.example/api/v1", None),
            ("https://10.0.0.1/api/v1", None),
            ("nonsense", None),
        ] {
            let found = RelyingParty::of(base_url).map(|party| party.origin);
            assert_eq!(found.as_deref(), origin, "{base_url}");
        }
    }
}
