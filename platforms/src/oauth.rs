//! OAuth 2.0 as most platforms implement it: obtaining, refreshing and revoking a grant.
//!
//! Platforms differ only in the authentication of the app and in the errors that mean a revoked grant; both
//! are in [`OAuth2`]. RFC 6749 sections 4.1.3 and 6, RFC 7636, RFC 7009.
//! <https://www.rfc-editor.org/rfc/rfc6749>

use crate::{
    Result,
    auth::{ClientAuth, Code, OAuth2},
    classify,
    platform::Platform,
    reply::Reply,
    required,
    session::{Call, Session},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{App, AppAccess, ErrorCode, Failure, Grant};
use serde::Deserialize;
use serde_json::Value;
use tracing::error;

/// Errors of a token endpoint that concern the app, not the account: a wrong or replaced client secret, or an app
/// that may not use the grant type. <https://www.rfc-editor.org/rfc/rfc6749#section-5.2>
const APP_ERRORS: [&str; 2] = ["invalid_client", "unauthorized_client"];

/// Shortest life of an access token that is a grant of its own, without a refresh token.
const LONG_LIVED: TimeDelta = TimeDelta::days(14);

/// Exchanges a code for a grant at the platform's token endpoint.
///
/// # Errors
///
/// `token_expired` when the code is rejected, which is permanent: a code is valid once. `app_refused` when the app's own
/// credentials are refused. Otherwise the failure of the call.
pub async fn exchange(cx: &Session<'_>, code: &Code) -> Result<Grant> {
    let oauth = standard(cx)?;
    let mut form = vec![
        ("grant_type", "authorization_code"),
        ("code", code.code.as_str()),
        ("redirect_uri", code.redirect_uri.as_str()),
    ];
    form.extend(code.verifier.as_deref().map(|verifier| ("code_verifier", verifier)));
    form.extend(oauth.exchange_parameters);
    let call = request(cx, token_endpoint(cx, oauth), &form)?.hiding(&code.code);
    let call = code.verifier.iter().fold(call, |call, verifier| call.hiding(verifier));
    let reply = call.send_raw().await?;
    if is_refused(&reply) {
        return Err(refused(cx.platform, &reply, Asked::Code));
    }
    Ok(reply.read_secrets::<Tokens>()?.grant(cx))
}

/// Exchanges the session's grant for a new one at the platform's token endpoint.
///
/// # Errors
///
/// [`Failure::revoked`] for one of [`OAuth2::revoked_errors`]; `app_refused` when the app's own credentials are refused;
/// `network_error` for every other refusal, because it does not end the grant; otherwise the failure of the call.
pub async fn refresh(cx: &Session<'_>) -> Result<Grant> {
    let oauth = standard(cx)?;
    let Some(token) = cx.grant.refresh_token() else {
        return Err(Failure::token_expired("the account was connected without a refresh token"));
    };
    let form = [("grant_type", "refresh_token"), ("refresh_token", token)];
    let reply = request(cx, token_endpoint(cx, oauth), &form)?.send_raw().await?;
    if is_refused(&reply) {
        return Err(refused(cx.platform, &reply, Asked::Grant(oauth.revoked_errors)));
    }
    Ok(reply.read_secrets::<Tokens>()?.grant(cx))
}

/// Revokes the grant at the platform's revocation endpoint, if it has one.
///
/// # Errors
///
/// When the call fails. A grant that is already revoked is a success.
pub async fn revoke(cx: &Session<'_>) -> Result<()> {
    let Some(address) = cx.platform.oauth().and_then(|oauth| oauth.revoke) else { return Ok(()) };
    let (token, kind) = match cx.grant.refresh_token() {
        Some(refresh) => (refresh, "refresh_token"),
        None => (cx.grant.access_token.as_str(), "access_token"),
    };
    let reply = request(cx, address, &[("token", token), ("token_type_hint", kind)])?.send_raw().await?;
    match reply.status.as_u16() {
        200..=299 => Ok(()),
        400 if !reply.is_block() => Ok(()),
        _ => Err(refused(cx.platform, &reply, Asked::Grant(&[]))),
    }
}

/// Returns the platform's OAuth.
fn standard(cx: &Session<'_>) -> Result<&'static OAuth2> {
    let none =
        || Failure::rejected(400, format!("{} accounts are not connected by OAuth", cx.platform.name()));
    cx.platform.oauth().ok_or_else(none)
}

/// Returns the token endpoint for the session's app.
fn token_endpoint(cx: &Session<'_>, oauth: &OAuth2) -> &'static str {
    let trial = oauth.trial_token.filter(|_| cx.app.is_some_and(|app| app.access == AppAccess::Trial));
    trial.unwrap_or(oauth.token)
}

/// Returns the app; fails if the operator has configured none, which is retried: nothing is lost meanwhile.
pub(crate) fn app<'a>(cx: &'a Session<'_>) -> Result<&'a App> {
    cx.app.ok_or_else(|| Failure::network(format!("no OAuth app is set up for {}", cx.platform.id()), false))
}

/// Creates a form request authenticated as the app: with its secret where the platform expects it, or with
/// the client id in the body for a public client.
pub(crate) fn request(cx: &Session<'_>, address: &str, form: &[(&str, &str)]) -> Result<Call> {
    let app = app(cx)?;
    let oauth = standard(cx)?;
    let secret = app.client_secret.as_deref().filter(|secret| !secret.is_empty());
    let call = match (secret, oauth.client_auth) {
        (Some(secret), ClientAuth::Header) => cx.post(address).basic(&app.client_id, secret).form(form),
        (secret, _) => {
            let secret = secret.map(|secret| ("client_secret", secret));
            let form: Vec<_> = form
                .iter()
                .copied()
                .chain([(oauth.client_id, app.client_id.as_str())])
                .chain(secret)
                .collect();
            cx.post(address).authorized_otherwise().form(&form)
        }
    };
    Ok(match oauth.user_agent {
        Some(agent) => call.header("user-agent", agent(&cx.account.username)),
        None => call,
    })
}

/// Returns true if a token endpoint returned an error, which some do with a status of success.
fn is_refused(reply: &Reply) -> bool {
    let word = reply.body.get("error").and_then(Value::as_str);
    !reply.status.is_success() || word.is_some_and(|word| !word.is_empty())
}

/// The request that a token endpoint refuses.
#[derive(Clone, Copy)]
enum Asked {
    /// A grant for a code, which is valid once.
    Code,
    /// A new grant for an old one, or its end, with the errors that mean that it was revoked.
    Grant(&'static [&'static str]),
}

fn refused(platform: &dyn Platform, reply: &Reply, asked: Asked) -> Failure {
    // As at any other address.
    if let Some(failure) = platform.classify(reply).filter(|failure| failure.code == ErrorCode::AppRefused) {
        return failure;
    }
    let word = ["error", "code"].iter().find_map(|name| match &reply.body[*name] {
        Value::String(word) => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let word = word.unwrap_or_default();
    let status = reply.status.as_u16();
    let is_app = APP_ERRORS.contains(&word.as_str()) || status == 401;
    let revoked = |word: &str| matches!(asked, Asked::Grant(errors) if errors.contains(&word));
    match status {
        408 | 425 | 429 | 500.. => classify::by_status(reply),
        // A page of something in between, such as a block of our network, says nothing about the grant.
        300.. if !reply.body.is_object() => Failure::network(classify::message(reply), false),
        200..=299 | 400 | 401 | 403 if revoked(&word) => Failure::revoked(classify::message(reply)),
        _ if is_app => refused_app(reply),
        200..=299 | 400 if matches!(asked, Asked::Code) => Failure::token_expired(classify::message(reply)),
        // Another word of RFC 6749, such as `temporarily_unavailable`, a moved or paused endpoint, or a bill that is not
        // paid. Every account that is due meanwhile would be lost.
        _ => {
            let message = format!("the token endpoint answered {status}: {}", classify::message(reply));
            Failure::network(message, false)
        }
    }
}

/// Returns the failure of an app whose credentials the platform refuses. The operator has to correct them: until
/// then nothing is lost, and no account has to be connected again.
fn refused_app(reply: &Reply) -> Failure {
    let message = classify::message(reply);
    error!("A token endpoint refuses the credentials of the OAuth app: {message}");
    Failure::app_refused(format!("the platform refuses the OAuth app's credentials: {message}"), None)
}

/// Returns the expiry of a token that is valid for `seconds`; `None` without a number, or for one that no date
/// can represent.
pub(crate) fn end(now: DateTime<Utc>, seconds: Option<i64>) -> Option<DateTime<Utc>> {
    now.checked_add_signed(TimeDelta::try_seconds(seconds?)?)
}

/// A successful response of a token endpoint.
#[derive(Deserialize)]
struct Tokens {
    #[serde(deserialize_with = "required::token")]
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<i64>,
    /// Lifetime of the refresh token, in seconds, where it ends: Google's for an app in *Testing*, LinkedIn's, Pinterest's;
    /// TikTok's by the other name.
    /// <https://developers.google.com/identity/protocols/oauth2/web-server#exchange-authorization-code>,
    /// <https://developers.tiktok.com/doc/oauth-user-access-token-management>
    #[serde(alias = "refresh_expires_in")]
    refresh_token_expires_in: Option<i64>,
    scope: Option<String>,
}

impl Tokens {
    /// Returns the grant; members that the response omits keep their value.
    fn grant(self, cx: &Session<'_>) -> Grant {
        let scopes = self.scope.map_or_else(
            || cx.grant.scopes.clone(),
            |scope| scope.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        );
        let now = (cx.now)();
        let expires_at = end(now, self.expires_in);
        let is_refreshable = [&self.refresh_token, &cx.grant.refresh_token]
            .into_iter()
            .flatten()
            .any(|token| !token.is_empty());
        let told = match is_refreshable {
            true => end(now, self.refresh_token_expires_in.filter(|seconds| *seconds > 0)),
            // Nothing extends the access token. One that lives for days is the whole grant; a shorter one is of a login
            // without offline access, whose end is known to its owner.
            false => expires_at.filter(|at| *at - now >= LONG_LIVED),
        };
        Grant {
            access_token: self.access_token,
            refresh_token: self.refresh_token,
            expires_at,
            ends_at: told.or(cx.grant.ends_at),
            scopes,
            extra: cx.grant.extra.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ErrorCode;

    #[test]
    fn only_a_document_can_say_that_a_grant_is_revoked() {
        let page = "<html><body>You've been blocked by network security.</body></html>";
        for (status, body, code, is_revoked) in [
            (400, r#"{"error":"invalid_grant"}"#, ErrorCode::TokenExpired, true),
            (200, r#"{"error":"invalid_grant"}"#, ErrorCode::TokenExpired, true),
            (403, r#"{"error":"access_denied"}"#, ErrorCode::TokenExpired, true),
            // The app's credentials.
            (401, r#"{"error":401}"#, ErrorCode::AppRefused, false),
            (401, r#"{"error":"deleted_client"}"#, ErrorCode::AppRefused, false),
            (400, r#"{"error":"invalid_client"}"#, ErrorCode::AppRefused, false),
            (400, r#"{"error":"unauthorized_client"}"#, ErrorCode::AppRefused, false),
            // Words that say nothing of the grant.
            (400, r#"{"error":"temporarily_unavailable"}"#, ErrorCode::NetworkError, false),
            (400, r#"{"error":"unsupported_grant_type"}"#, ErrorCode::NetworkError, false),
            (400, r#"{"title":"Invalid Request"}"#, ErrorCode::NetworkError, false),
            (200, r#"{"error":"server_error"}"#, ErrorCode::NetworkError, false),
            (403, page, ErrorCode::NetworkError, false),
            (403, "", ErrorCode::NetworkError, false),
            (302, "", ErrorCode::NetworkError, false),
            // A bill that is not paid, an endpoint that has moved.
            (402, r#"{"title":"CreditsDepleted"}"#, ErrorCode::AppRefused, false),
            (403, r#"{"title":"SpendCapReached"}"#, ErrorCode::AppRefused, false),
            (405, r#"{"title":"Method Not Allowed"}"#, ErrorCode::NetworkError, false),
            (404, r#"{"title":"Not Found"}"#, ErrorCode::NetworkError, false),
            (410, r#"{"error":"gone"}"#, ErrorCode::NetworkError, false),
            (429, page, ErrorCode::RateLimited, false),
            (503, page, ErrorCode::Upstream(503), false),
        ] {
            let failure = refused(
                &crate::x::ADAPTER,
                &Reply::of(status, &[], body),
                Asked::Grant(&["invalid_grant", "access_denied"]),
            );
            assert_eq!((failure.code, failure.is_revoked()), (code, is_revoked), "{status} {body}");
        }
        let code =
            refused(&crate::x::ADAPTER, &Reply::of(400, &[], r#"{"error":"invalid_grant"}"#), Asked::Code);
        assert_eq!((code.code, code.is_revoked()), (ErrorCode::TokenExpired, false), "a code is no grant");
    }

    #[test]
    fn an_unrepresentable_token_lifetime_has_no_expiry() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("a valid time");
        assert_eq!(end(now, Some(3600)), Some(now + TimeDelta::hours(1)));
        for seconds in [None, Some(i64::MAX), Some(i64::MIN), Some(i64::MAX / 1000), Some(9_000_000_000_000)]
        {
            assert_eq!(end(now, seconds), None, "{seconds:?}");
        }
    }
}
