//! Who owns an account, and its session: <https://atproto.com/guides/identity>.
//!
//! A handle leads to an identity (DID), and its document to the server that stores the account's records. A server may
//! claim any identity, so an account is connected only if its document, read from a place that the server does not
//! control, names that server, and its handle leads back.

use super::{PUBLIC, SERVICE};
use crate::{Grant, Reply, Result, Session, required};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure};
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Host, Url};

/// The directory of `did:plc` identifiers: <https://web.plc.directory>.
const DIRECTORY: &str = "https://plc.directory";

/// Errors of `refreshSession` that end a session.
/// <https://github.com/bluesky-social/atproto/blob/main/lexicons/com/atproto/server/refreshSession.json>
pub(super) const ENDED_SESSION: [&str; 2] = ["ExpiredToken", "InvalidToken"];
/// Errors of `createSession` after which only the account's owner can log in: a wrong or deleted password, and a second
/// factor, for which app passwords are not asked.
/// <https://github.com/bluesky-social/atproto/blob/main/lexicons/com/atproto/server/createSession.json>
pub(super) const REFUSED_LOGIN: [&str; 2] = ["AuthenticationRequired", "AuthFactorTokenRequired"];

pub(super) fn says_one_of(reply: &Reply, words: &[&str]) -> bool {
    reply.status.is_client_error() && reply.body["error"].as_str().is_some_and(|word| words.contains(&word))
}

/// Returns the failure of a refresh or a login that was refused without one of the words that end the grant.
pub(super) fn unlisted(cx: &Session<'_>, reply: Reply) -> Failure {
    let status = reply.status;
    let failure = reply.into_result(cx.platform).expect_err("it is no success");
    match failure.code {
        ErrorCode::TokenExpired => {
            Failure::network(format!("the server answered {status}: {failure}"), false)
        }
        _ => failure,
    }
}

/// Returns the service that the user named.
pub(super) fn named_service(grant: &Grant) -> Option<&str> {
    grant.extra["service"].as_str().filter(|service| !service.is_empty())
}

/// Returns the service of the account's session: the one that the user named, else the account's server as it was
/// resolved for the session.
pub(super) fn session_service(grant: &Grant) -> Result<String> {
    match (named_service(grant), grant.extra["pds"].as_str()) {
        (Some(service), _) => public_origin(service),
        (None, Some(pds)) => Ok(login_service(public_origin(pds)?)),
        (None, None) => Ok(SERVICE.to_owned()),
    }
}

/// Returns the service that creates sessions for a server: Bluesky's own servers have a common one.
fn login_service(pds: String) -> String {
    let host = pds.rsplit("//").next().unwrap_or_default();
    if host.ends_with(".host.bsky.network") { SERVICE.to_owned() } else { pds }
}

/// Resolves the service that creates sessions for a login: a handle leads to an identity, and its document to the
/// account's server. Bluesky's own service takes e-mail addresses, and logins that lead nowhere.
/// <https://atproto.com/guides/identity>
///
/// # Errors
///
/// When the identity can't be resolved now: another service would refuse the login, as if the password were wrong.
pub(super) async fn service_of(cx: &Session<'_>, identifier: &str) -> Result<String> {
    // A connected account may have another handle by now.
    let known = Some(cx.account.network_unique_id.as_str()).filter(|did| !did.is_empty());
    let did = match known.or(Some(identifier).filter(|text| text.starts_with("did:"))) {
        Some(did) => Some(did.to_owned()),
        None => identity_of(cx, &identifier.to_lowercase()).await?,
    };
    let Some(did) = did else { return Ok(SERVICE.to_owned()) };
    match Document::of(cx, &did).await {
        Ok(document) => Ok(login_service(document.pds)),
        Err(failure) if failure.code.is_permanent() => Ok(SERVICE.to_owned()),
        Err(failure) => Err(failure),
    }
}

/// Returns the identity that a handle leads to, as Bluesky's own view sees it (by DNS or HTTPS) or as the handle's
/// host says.
async fn identity_of(cx: &Session<'_>, handle: &str) -> Result<Option<String>> {
    if !is_name(handle) {
        return Ok(None);
    }
    let seen = resolve_in_view(cx, handle).await;
    match seen {
        Ok(found) => Ok(Some(found.did)),
        Err(failure) => match resolve_at_host(cx, handle).await {
            Some(did) => Ok(Some(did)),
            None if failure.code.is_permanent() => Ok(None),
            None => Err(failure),
        },
    }
}

/// Resolves a handle in Bluesky's own view.
async fn resolve_in_view(cx: &Session<'_>, handle: &str) -> Result<Did> {
    cx.get(format!("{PUBLIC}/xrpc/com.atproto.identity.resolveHandle"))
        .without_grant()
        .query(&[("handle", handle)])
        .send()
        .await
}

/// Resolves a handle at its host.
async fn resolve_at_host(cx: &Session<'_>, handle: &str) -> Option<String> {
    let reply =
        cx.get(format!("https://{handle}/.well-known/atproto-did")).without_grant().send_raw().await.ok()?;
    let did = reply.text.trim();
    (reply.status.is_success() && did.starts_with("did:")).then(|| did.to_owned())
}

/// Returns the server that holds the account's records, as its session named it; until then the service,
/// which passes calls on.
pub(super) fn home_server(cx: &Session<'_>) -> Result<String> {
    match cx.grant.extra["pds"].as_str() {
        Some(pds) => public_origin(pds),
        None => session_service(cx.grant),
    }
}

/// Returns the origin of an address that a user or their server gave: `https`, and a name to be resolved, so
/// that the resolver judges where it leads.
pub(super) fn public_origin(address: &str) -> Result<String> {
    let no = |why: &str| Failure::rejected(400, format!("{address} is no service of Bluesky: {why}"));
    let url = Url::parse(address).map_err(|error| no(&error.to_string()))?;
    if url.scheme() != "https" {
        return Err(no("only https is spoken to"));
    }
    match url.host() {
        Some(Host::Domain(name)) if name.contains('.') => Ok(url.origin().ascii_serialization()),
        _ => Err(no("it has no public name")),
    }
}

/// A DID document, read from a place that the account's server does not control.
/// <https://atproto.com/specs/did>
pub(super) struct Document {
    pub(super) did: String,
    /// Origin of the server that stores its records.
    pub(super) pds: String,
    /// Handle that it claims.
    handle: Option<String>,
}

impl Document {
    /// Resolves an identity.
    ///
    /// # Errors
    ///
    /// `rejected_422` when the identity does not exist or names no public server.
    pub(super) async fn of(cx: &Session<'_>, did: &str) -> Result<Self> {
        let no = |why: &str| unverified(did, why);
        let address = match (did.strip_prefix("did:plc:"), did.strip_prefix("did:web:")) {
            (Some(id), _) if id.len() == 24 && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7')) => {
                format!("{DIRECTORY}/{did}")
            }
            (_, Some(host)) if is_name(host) => format!("https://{host}/.well-known/did.json"),
            _ => return Err(no("it is no identifier of the AT Protocol")),
        };
        let reply = cx.get(address).without_grant().send_raw().await?;
        // A page may be all that an account's own site has to say. The directory answers in JSON.
        let is_blocked = reply.is_block() && did.starts_with("did:plc:");
        if matches!(reply.status.as_u16(), 300..=407 | 409..=424 | 426..=428 | 430..=499) && !is_blocked {
            return Err(no("it does not exist"));
        }
        let body = reply.into_result(cx.platform)?.body;
        if body["id"] != did {
            return Err(no("its document is another's"));
        }
        let pds = pds_endpoint(&body).ok_or_else(|| no("its document names no server"))?;
        let pds = public_origin(pds).map_err(|failure| no(&failure.message))?;
        let names = body["alsoKnownAs"].as_array().into_iter().flatten();
        // Only the first counts: any account may list another account's handle after it.
        let handle = names.filter_map(Value::as_str).find_map(|name| name.strip_prefix("at://"));
        Ok(Self { did: did.to_owned(), pds, handle: handle.map(str::to_lowercase) })
    }

    /// Checks that a server may act for the identity: its own server, or the entryway, which forwards calls.
    ///
    /// # Errors
    ///
    /// `rejected_422` when it may not.
    pub(super) fn admit(&self, server: &str) -> Result<()> {
        if server == self.pds || server == SERVICE {
            return Ok(());
        }
        Err(unverified(&self.did, &format!("its server is {}, not {server}", self.pds)))
    }

    /// Returns the handle, if it resolves to this identity: in Bluesky's own view (by DNS or HTTPS), or at the
    /// handle's host. <https://atproto.com/specs/handle#handle-resolution>
    ///
    /// # Errors
    ///
    /// `rejected_422` when it resolves to another identity; the view's failure when the view is unavailable.
    pub(super) async fn handle(self, cx: &Session<'_>) -> Result<String> {
        let no = |why: &str| unverified(&self.did, why);
        let Some(handle) = self.handle.as_deref().filter(|handle| is_name(handle)) else {
            return Err(no("its document names no handle"));
        };
        let seen = resolve_in_view(cx, handle).await;
        if seen.as_ref().is_ok_and(|found| found.did == self.did) {
            return Ok(handle.to_owned());
        }
        if resolve_at_host(cx, handle).await.is_some_and(|did| did == self.did) {
            return Ok(handle.to_owned());
        }
        match seen {
            Err(failure) if !failure.code.is_permanent() => Err(failure),
            _ => Err(no(&format!("the handle {handle} does not lead back to it"))),
        }
    }
}

/// Returns the failure of an identity that could not be verified.
fn unverified(did: &str, why: &str) -> Failure {
    Failure::rejected(422, format!("{did} can't be connected: {why}"))
}

/// Returns true for a bare host name, which may be put into an address.
fn is_name(text: &str) -> bool {
    let url = Url::parse(&format!("https://{text}"));
    url.is_ok_and(|url| url.host_str() == Some(text) && public_origin(url.as_str()).is_ok())
}

/// Returns the server that a document of an identity names.
pub(super) fn pds_endpoint(document: &Value) -> Option<&str> {
    let mut services = document["service"].as_array().into_iter().flatten();
    let pds = services.find(|service| service["id"].as_str().is_some_and(|id| id.ends_with("#atproto_pds")));
    pds?["serviceEndpoint"].as_str()
}

/// Returns the account of a session, as its server claims.
///
/// # Errors
///
/// `rejected_403` when the account is deactivated, suspended or taken down: it has a session, but can't post.
pub(super) async fn session_account(cx: &Session<'_>, home: &str) -> Result<Me> {
    let me: Me = cx.get(format!("{home}/xrpc/com.atproto.server.getSession")).send().await?;
    if me.active == Some(false) {
        let status = me.status.as_deref().unwrap_or("inactive");
        return Err(Failure::rejected(403, format!("the account is not active at its server: {status}")));
    }
    Ok(me)
}

/// Checks that an identity is the session's account. Before an account is connected, any identity passes.
pub(super) fn is_account(cx: &Session<'_>, did: &str) -> Result<()> {
    let ours = &cx.account.network_unique_id;
    if ours.is_empty() || ours == did {
        return Ok(());
    }
    Err(Failure::revoked(format!("its server speaks for {did}, which is another account")))
}

/// Returns the grant of a session, with the account's server `pds` if it was just resolved.
pub(super) fn grant_of(cx: &Session<'_>, tokens: Tokens, pds: Option<String>) -> Result<Grant> {
    is_account(cx, &tokens.did)?;
    let mut extra = if cx.grant.extra.is_object() { cx.grant.extra.clone() } else { json!({}) };
    if let Some(pds) = pds {
        extra["pds"] = json!(pds);
    }
    Ok(Grant {
        ends_at: None,
        expires_at: expiry(&tokens.access_jwt),
        access_token: tokens.access_jwt,
        refresh_token: Some(tokens.refresh_jwt),
        scopes: cx.grant.scopes.clone(),
        extra,
    })
}

/// Returns the expiry that a token claims. Its signature is not ours to verify.
fn expiry(token: &str) -> Option<DateTime<Utc>> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    DateTime::from_timestamp(claims["exp"].as_i64()?, 0)
}

/// Returns the identity behind a handle, or `None` when it can't be resolved.
pub(super) async fn resolve_handle(cx: &Session<'_>, home: &str, handle: &str) -> Result<Option<String>> {
    let found: Result<Did> = cx
        .get(format!("{home}/xrpc/com.atproto.identity.resolveHandle"))
        .query(&[("handle", handle)])
        .send()
        .await;
    match found {
        Ok(found) => Ok(Some(found.did)),
        // A mentioned user's domain that does not answer must not delay the post.
        Err(failure) if failure.code.is_permanent() || matches!(failure.code, ErrorCode::Upstream(_)) => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    #[serde(deserialize_with = "required::id")]
    pub(super) did: String,
    #[serde(deserialize_with = "required::token")]
    access_jwt: String,
    #[serde(deserialize_with = "required::token")]
    refresh_jwt: String,
    #[serde(default)]
    pub(super) did_doc: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    #[serde(deserialize_with = "required::id")]
    pub(super) did: String,
    active: Option<bool>,
    /// Why it is not active.
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) did_doc: Value,
}

#[derive(Deserialize)]
struct Did {
    did: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_public_host_name_is_a_name() {
        for name in ["ada.bsky.social", "example.com", "xn--bcher-kva.example"] {
            assert!(is_name(name), "{name}");
        }
        for text in [
            "",
            "localhost",
            "127.0.0.1",
            "10.0.0.1",
            "2130706433",
            "[::1]",
            "example.com:8443",
            "example.com%3A8443",
            "example.com/a",
            "example.com?a",
            "example.com#a",
            "ada@example.com",
            "a\\b.example",
            "handle invalid.example",
        ] {
            assert!(!is_name(text), "{text}");
        }
    }

    #[test]
    fn bluesky_creates_the_sessions_of_its_own_servers() {
        let extra = |service: &str, pds: Option<&str>| {
            let extra = json!({ "service": service, "pds": pds });
            service_of_grant(&Grant { extra, ..Grant::default() })
        };
        let own = "https://morel.us-east.host.bsky.network";
        for (service, pds, expected) in [
            ("", None, SERVICE),
            ("", Some(SERVICE), SERVICE),
            ("", Some(own), SERVICE),
            ("", Some("https://pds.example.com"), "https://pds.example.com"),
            ("", Some("https://evilhost.bsky.network.example"), "https://evilhost.bsky.network.example"),
            (own, Some(own), own),
            ("https://pds.example.com", None, "https://pds.example.com"),
        ] {
            assert_eq!(extra(service, pds), expected, "{service} {pds:?}");
        }
    }

    fn service_of_grant(grant: &Grant) -> String {
        session_service(grant).expect("a public name")
    }

    #[test]
    fn only_public_names_are_services() {
        assert_eq!(public_origin("https://pds.example.com/path").unwrap(), "https://pds.example.com");
        for address in
            ["http://pds.example.com", "https://127.0.0.1", "https://[::1]", "https://localhost", "no"]
        {
            assert!(public_origin(address).is_err(), "{address}");
        }
    }
}
