//! Connecting an account with an app password.
//!
//! Bluesky has no OAuth apps to register: connecting takes an identifier and an app password. Both are
//! encrypted for a worker; no log, response or workflow history contains them.

use crate::{
    accounts::{Account, pending::OTHER_TENANT, refused},
    http::{
        body::Json,
        caller::{AccountsWrite, Call, Caller},
        plan,
        problem::{Code, Issue, Problem},
        reach, workers,
    },
    openapi::{tag::Tag, validate::Rules},
    types::url::Link,
};
use domain::{Bound, ErrorCode, Failure};
use platforms::AppPassword;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::{Map, Value};
use store::{accounts, upkeep::vault};
use url::Host;
use workflows::activities::{LoginResult, PasswordLogin};

/// The platform that takes app passwords.
const PLATFORM: &str = "bluesky";

/// Status by which the adapter reports an identity that could not be verified.
const INVALID_CREDENTIALS_STATUS: u16 = 422;

/// The operations that take an app password.
pub struct Passwords;

#[OpenApi(tag = "Tag::Accounts")]
impl Passwords {
    /// Connect a Bluesky account
    ///
    /// Takes an app password, which users create and revoke in Bluesky's settings. The account's DID and
    /// handle must resolve to the server that accepts the password, otherwise the call fails with 422.
    /// Reconnecting keeps the account's id and tenant; naming another tenant fails with 422, unless the account was
    /// disconnected: then it is a new account of that tenant. Scope `accounts:write`.
    #[oai(path = "/social-accounts/bluesky/connect", method = "post", operation_id = "connectBlueskyAccount")]
    async fn connect(
        &self,
        caller: Caller<AccountsWrite>,
        body: Json<BlueskyLogin>,
    ) -> Result<Entry, Problem> {
        let (account, is_new) = connect(&caller.call(), body.0).await?;
        Ok(if is_new { Entry::New(Json(account)) } else { Entry::Known(Json(account)) })
    }
}

/// Connects an account; true if it is new.
pub async fn connect(call: &Call<'_>, body: BlueskyLogin) -> Result<(Account, bool), Problem> {
    if !matches!(call.bound, Bound::Organization | Bound::Tenant(_)) {
        let detail =
            format!("this API key is limited to {}, which a new account would not be within", call.bound);
        return Err(reach::forbidden(detail));
    }
    reach::check_platform(call.client, PLATFORM)?;
    let tenant_id = call.tenant(body.tenant_id)?;
    let has_service = body.service.is_some();
    let password = AppPassword {
        identifier: body.identifier.trim().trim_start_matches('@').to_owned(),
        app_password: body.app_password,
        service: body.service.map(|service| service.url.origin().ascii_serialization()),
    };
    let plan = plan::of(call).await?;
    let login = PasswordLogin {
        owner: call.owner,
        platform: PLATFORM.to_owned(),
        sealed: workers::seal(call.app, &password, &vault::aad_login(call.owner, PLATFORM)),
        tenant_id,
        is_limited: call.bound.is_limited(),
        by: call.by.clone(),
        limit: plan.social_accounts,
    };
    match workers::request(call, login).await? {
        LoginResult::Connected(joined) => {
            let account = accounts::get(call.db(), call.access(), joined.account).await?;
            // Disconnected concurrently.
            let account = account.ok_or_else(|| Problem::not_found("social account"))?;
            Ok((account.into(), joined.is_new))
        }
        LoginResult::Refused(failure) => Err(rejected(failure, has_service)),
        LoginResult::OtherTenant => {
            let issue = Issue::custom(["tenant_id"], "The account belongs to another tenant");
            Err(Problem::new(Code::Unprocessable, OTHER_TENANT).with_issues(vec![issue]))
        }
        LoginResult::Full(room) => Err(plan.refuse_accounts(room)),
    }
}

/// Converts a login failure to a problem that tells the client what to do.
fn rejected(failure: Failure, has_service: bool) -> Problem {
    match failure.code {
        ErrorCode::TokenExpired => {
            let issue = |field| Issue::custom([field], "The service does not know this login");
            Problem::new(Code::InvalidCredentials, format!("{PLATFORM} refused: {}", failure.message))
                .with_issues(vec![issue("identifier"), issue("app_password")])
        }
        // The service is not the account's server, or that can't be verified.
        ErrorCode::Rejected(INVALID_CREDENTIALS_STATUS) => {
            let field = if has_service { "service" } else { "identifier" };
            let issue = Issue::custom([field], "Not the server of this account");
            Problem::new(Code::Unprocessable, failure.message).with_issues(vec![issue])
        }
        // The caller named the service, so a failure to reach it is the caller's error.
        ErrorCode::NetworkError | ErrorCode::Rejected(_) | ErrorCode::Upstream(_) if has_service => {
            let issue = Issue::custom(["service"], "No Bluesky service responded");
            Problem::new(Code::Unprocessable, "the service could not be reached").with_issues(vec![issue])
        }
        _ => refused(PLATFORM, failure),
    }
}

/// A Bluesky login.
// No `Debug`: the password must not be logged.
#[derive(Object)]
pub struct BlueskyLogin {
    /// Handle, e-mail address or DID.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub identifier: String,
    /// App password. Stored encrypted, never shown.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub app_password: String,
    /// The account's server (PDS), if it is not Bluesky's own: `https` and a public host name, without a
    /// path.
    #[oai(validator(max_length = 2048))]
    pub service: Option<Link>,
    /// End tenant to assign a new account to. An account that belongs to another tenant is not moved.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub tenant_id: Option<String>,
}

impl Rules for BlueskyLogin {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let blank = |field: &str| body.get(field).and_then(Value::as_str).is_some_and(is_blank);
        if blank("identifier") {
            issues.push(Issue::custom(["identifier"], "Must name an account"));
        }
        let service = body.get("service").and_then(Value::as_str).and_then(Link::read);
        if let Some(message) = service.and_then(|service| check(&service)) {
            issues.push(Issue::new(["service"], "invalid_string", message).with("validation", "url"));
        }
    }
}

/// True if a handle is empty apart from `@`. An empty string is reported by the schema.
fn is_blank(identifier: &str) -> bool {
    !identifier.is_empty() && identifier.trim().trim_start_matches('@').is_empty()
}

/// Returns the error of a service URL, or `None`. The addresses that its host resolves to are checked when it
/// is called.
fn check(Link { url, .. }: &Link) -> Option<&'static str> {
    if url.scheme() != "https" {
        return Some("Must be https");
    }
    if !matches!(url.host(), Some(Host::Domain(name)) if name.trim_end_matches('.').contains('.')) {
        return Some("Must be a public host name");
    }
    let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    (!is_origin || has_credentials).then_some("Must consist of a host and an optional port")
}

/// The response to a login.
#[derive(ApiResponse)]
enum Entry {
    /// The account is connected.
    #[oai(status = 201)]
    New(Json<Account>),
    /// An existing account was reconnected.
    #[oai(status = 200)]
    Known(Json<Account>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_public_name() {
        for (service, is_fine) in [
            ("https://bsky.social", true),
            ("https://pds.example.com:8443/", true),
            ("http://bsky.social", false),
            ("https://localhost", false),
            ("https://127.0.0.1", false),
            ("https://[::1]", false),
            ("https://2130706433", false),
            ("https://intranet.", false),
            ("https://ada@bsky.social", false),
            ("https://bsky.social/xrpc", false),
            ("https://bsky.social/?a", false),
            ("https://bsky.social/#a", false),
            ("ftp://bsky.social", false),
        ] {
            assert_eq!(check(&Link::read(service).unwrap()).is_none(), is_fine, "{service}");
        }
    }

    #[test]
    fn who_is_to_blame_decides_the_status() {
        for (failure, has_service, code) in [
            (Failure::revoked("no"), false, Code::InvalidCredentials),
            (Failure::revoked("no"), true, Code::InvalidCredentials),
            (Failure::network("no", false), true, Code::Unprocessable),
            (Failure::network("no", false), false, Code::Unavailable),
            (Failure::upstream(502, "no"), false, Code::Unavailable),
            (Failure::rate_limited("no", None), true, Code::Unavailable),
            (Failure::rejected(404, "no"), true, Code::Unprocessable),
            (Failure::rejected(422, "no"), true, Code::Unprocessable),
            (Failure::rejected(422, "no"), false, Code::Unprocessable),
        ] {
            assert_eq!(rejected(failure.clone(), has_service).code, code, "{failure}");
        }
    }
}
