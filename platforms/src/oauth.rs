//! OAuth 2.0 as most platforms speak it: getting, refreshing and revoking a grant.
//!
//! Platforms differ only in how the app authenticates and how a dead grant is told from a transient
//! error; [`OAuth2`] says both. RFC 6749 sections 4.1.3 and 6, RFC 7636, RFC 7009. <https://www.rfc-editor.org/rfc/rfc6749>

use crate::{Call, ClientAuth, Code, ErrorNames, Grant, OAuth2, Reply, Result, Session, classify};
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use serde::Deserialize;
use serde_json::Value;

/// Exchanges a code for a grant at the platform's token endpoint.
///
/// # Errors
///
/// `token_expired` when the code is refused, which is final: it is valid once. Else what went wrong.
pub async fn exchange(cx: &Session<'_>, code: &Code) -> Result<Grant> {
    let oauth = standard(cx)?;
    let mut form = vec![
        ("grant_type", "authorization_code"),
        ("code", code.code.as_str()),
        ("redirect_uri", code.redirect_uri.as_str()),
    ];
    form.extend(code.verifier.as_deref().map(|verifier| ("code_verifier", verifier)));
    form.extend(oauth.exchange_parameters);
    let reply = request(cx, oauth.token, &form)?.send_raw().await?;
    if is_refused(&reply) {
        return Err(refused(&reply, ErrorNames::OneOf(&[])));
    }
    Ok(reply.read::<Tokens>()?.grant(cx))
}

/// Exchanges the session's grant for a fresh one at the platform's token endpoint.
///
/// # Errors
///
/// [`Failure::revoked`] for one of [`OAuth2::revoked_errors`]; `token_expired` when the platform refuses
/// for a reason that another try won't change, such as an app it does not know; else what went wrong.
pub async fn refresh(cx: &Session<'_>) -> Result<Grant> {
    let oauth = standard(cx)?;
    let Some(token) = refresh_token(cx) else {
        return Err(Failure::token_expired("the account was connected without a refresh token"));
    };
    let form = [("grant_type", "refresh_token"), ("refresh_token", token)];
    let reply = request(cx, oauth.token, &form)?.send_raw().await?;
    if is_refused(&reply) {
        return Err(refused(&reply, oauth.revoked_errors));
    }
    Ok(reply.read::<Tokens>()?.grant(cx))
}

/// Revokes the grant at the platform's revocation endpoint, where it has one.
///
/// # Errors
///
/// When the platform could not be asked. A grant that is already gone is a success.
pub async fn revoke(cx: &Session<'_>) -> Result<()> {
    let Some(address) = cx.platform.auth.oauth().and_then(|oauth| oauth.revoke) else { return Ok(()) };
    let (token, kind) = match refresh_token(cx) {
        Some(refresh) => (refresh, "refresh_token"),
        None => (cx.grant.access_token.as_str(), "access_token"),
    };
    let reply = request(cx, address, &[("token", token), ("token_type_hint", kind)])?.send_raw().await?;
    match reply.status.as_u16() {
        200..=299 | 400 => Ok(()),
        _ => Err(refused(&reply, ErrorNames::OneOf(&[]))),
    }
}

/// The grant's refresh token, where it has one.
pub(crate) fn refresh_token<'a>(cx: &'a Session<'_>) -> Option<&'a str> {
    cx.grant.refresh_token.as_deref().filter(|token| !token.is_empty())
}

/// The platform's OAuth.
fn standard(cx: &Session<'_>) -> Result<&'static OAuth2> {
    let none = || Failure::rejected(400, format!("{} accounts are not connected by OAuth", cx.platform.name));
    cx.platform.auth.oauth().ok_or_else(none)
}

/// A form in the app's name: a secret goes where the platform wants it, a public client names itself
/// in the body.
pub(crate) fn request(cx: &Session<'_>, address: &str, form: &[(&str, &str)]) -> Result<Call> {
    let Some(app) = cx.app else {
        // The operator's to mend, and nothing is lost meanwhile.
        return Err(Failure::network(format!("no OAuth app is set up for {}", cx.platform.id), false));
    };
    let oauth = standard(cx)?;
    let secret = app.client_secret.as_deref().filter(|secret| !secret.is_empty());
    Ok(match (secret, oauth.client_auth) {
        (Some(secret), ClientAuth::Header) => cx.post(address).basic(&app.client_id, secret).form(form),
        (secret, _) => {
            let secret = secret.map(|secret| ("client_secret", secret));
            let form: Vec<_> = form
                .iter()
                .copied()
                .chain([(oauth.client_id, app.client_id.as_str())])
                .chain(secret)
                .collect();
            cx.post(address).anonymous().form(&form)
        }
    })
}

/// True when a token endpoint refused. Some do so with a status of success.
fn is_refused(reply: &Reply) -> bool {
    let word = reply.body.get("error").and_then(Value::as_str);
    !reply.status.is_success() || word.is_some_and(|word| !word.is_empty())
}

fn refused(reply: &Reply, revoked: ErrorNames) -> Failure {
    let word = match &reply.body["error"] {
        Value::String(word) => word.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    match reply.status.as_u16() {
        200..=299 | 400 | 401 | 403 if revoked.contains(&word) => Failure::revoked(classify::message(reply)),
        408 | 425 | 429 | 500.. => classify::by_status(reply),
        _ => Failure::token_expired(classify::message(reply)),
    }
}

/// When a token expires that is valid for so many seconds; `None` without a number, or for one that no date
/// can represent.
pub(crate) fn end(now: DateTime<Utc>, seconds: Option<i64>) -> Option<DateTime<Utc>> {
    now.checked_add_signed(TimeDelta::try_seconds(seconds?)?)
}

/// A successful answer of a token endpoint.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<i64>,
    scope: Option<String>,
}

impl Tokens {
    /// The grant, with what the platform left out as it was before.
    fn grant(self, cx: &Session<'_>) -> Grant {
        let scopes = self.scope.map_or_else(
            || cx.grant.scopes.clone(),
            |scope| scope.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        );
        Grant {
            access_token: self.access_token,
            refresh_token: self.refresh_token,
            expires_at: end((cx.now)(), self.expires_in),
            scopes,
            extra: cx.grant.extra.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_that_no_date_can_hold_has_no_end() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("a moment of a test");
        assert_eq!(end(now, Some(3600)), Some(now + TimeDelta::hours(1)));
        for seconds in [None, Some(i64::MAX), Some(i64::MIN), Some(i64::MAX / 1000), Some(9_000_000_000_000)]
        {
            assert_eq!(end(now, seconds), None, "{seconds:?}");
        }
    }
}
