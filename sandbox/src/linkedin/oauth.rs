//! Apps, their products, and logins.
//! <https://learn.microsoft.com/en-us/linkedin/shared/authentication/authorization-code-flow>
//!
//! LinkedIn refuses the whole login when an app asks for one scope that none of its products has, by redirecting
//! back with `unauthorized_scope_error`. Refresh tokens are for approved apps only.
//! <https://learn.microsoft.com/en-us/linkedin/shared/authentication/programmatic-refresh-tokens>

use super::{ID, LinkedIn, Outcome, Request, Response, Transaction};
use crate::exchange::Cause::State;
use crate::{
    App, Grant,
    account::Account,
    exchange::first,
    login::{Login, TokenError},
    simulator::Grants,
    tokens::{self, CLIENT_SECRET, Rotation, Token, TokenPolicy},
};
use serde_json::json;

/// Client id of the app that has the Community Management API only.
pub(super) const COMMUNITY_CLIENT: &str = "fanfaresandbox-community";

/// All scopes that the sandbox knows.
const SCOPES: &[&str] = &[
    "openid",
    "profile",
    "email",
    "r_basicprofile",
    "w_member_social",
    "w_member_social_feed",
    "w_organization_social",
    "w_organization_social_feed",
    "r_organization_social",
    "r_organization_social_feed",
    "rw_organization_admin",
    "r_organization_admin",
    "r_organization_followers",
    "r_member_social",
    "r_member_social_feed",
    "r_member_postAnalytics",
];

/// Scopes of *Share on LinkedIn* and *Sign In with LinkedIn using OpenID Connect*.
const SELF_SERVICE: &[&str] = &["openid", "profile", "email", "w_member_social"];

/// Scopes of the Community Management API, which has no OpenID Connect.
const COMMUNITY: &[&str] = &[
    "r_basicprofile",
    "w_member_social",
    "w_member_social_feed",
    "w_organization_social",
    "w_organization_social_feed",
    "r_organization_social",
    "r_organization_social_feed",
    "rw_organization_admin",
    "r_organization_followers",
    "r_member_postAnalytics",
];

const TOKENS: TokenPolicy = TokenPolicy {
    simulator: &LinkedIn,
    client: "fanfaresandbox",
    granted: SCOPES,
    code_seconds: 1_800,
    access: ("", 5_184_000),
    refresh: ("", 31_536_000),
    rotation: Rotation::Never,
};

/// The products of an app, which determine its scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Products {
    /// Those that every app can add by itself.
    SelfService,
    /// The Community Management API, and no other.
    Community,
    /// All that there are.
    All,
}

impl Products {
    /// Returns the products of the sandbox's first app.
    fn of_first(tx: &Transaction) -> Self {
        if tx.settings.is_approved() { Self::All } else { Self::SelfService }
    }

    /// Returns the products of the app with this client id.
    fn of(tx: &Transaction, client: &str) -> Option<Self> {
        match client {
            COMMUNITY_CLIENT => Some(Self::Community),
            client if client == TOKENS.client => Some(Self::of_first(tx)),
            _ => None,
        }
    }

    fn scopes(self) -> &'static [&'static str] {
        match self {
            Self::SelfService => SELF_SERVICE,
            Self::Community => COMMUNITY,
            Self::All => SCOPES,
        }
    }

    fn login(self) -> Login {
        let client = if self == Self::Community { COMMUNITY_CLIENT } else { TOKENS.client };
        Login {
            tokens: TokenPolicy { client, granted: self.scopes(), ..TOKENS },
            scopes: SCOPES,
            has_refresh_token: if self == Self::SelfService { |_| false } else { |_| true },
            denied_error: "user_cancelled_authorize",
            fragment: "",
        }
    }
}

/// The grants of the sandbox's first app.
pub(super) struct Granting;

impl Grants for Granting {
    fn app(&self) -> Option<App> {
        TOKENS.app()
    }

    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant {
        let products = Products::of_first(tx);
        let grant = products.login().tokens.grant(tx, account);
        // An app of self-service gets no refresh token.
        Grant { refresh_token: grant.refresh_token.filter(|_| products != Products::SelfService), ..grant }
    }

    fn expire(&self, tx: &mut Transaction, account: &mut Account) {
        TOKENS.expire(tx, account);
    }

    fn revoke(&self, tx: &mut Transaction, account: &mut Account) {
        TOKENS.revoke(tx, account);
    }
}

/// `/oauth/v2/authorization`: the consent page, or the way back with the reason why there is none.
pub(super) fn authorize(tx: &mut Transaction, request: &Request) -> Response {
    let fields = if request.method == "POST" { &request.fields } else { &request.query };
    let field = |name: &str| first(fields, name).unwrap_or_default();
    // An unknown app is refused like another platform's.
    let products = Products::of(tx, field("client_id")).unwrap_or(Products::SelfService);
    let asked = field("scope").split([',', ' ']).filter(|scope| SCOPES.contains(scope));
    let refused = asked.into_iter().find(|scope| !products.scopes().contains(scope));
    let back = url::Url::parse(field("redirect_uri")).ok().filter(url::Url::has_host);
    if let (Some(scope), Some(mut back)) = (refused, back) {
        back.query_pairs_mut()
            .append_pair("error", "unauthorized_scope_error")
            // Escaped twice, as LinkedIn sends it.
            .append_pair(
                "error_description",
                &format!("Scope &quot;{scope}&quot; is not authorized for your application"),
            )
            .append_pair("state", field("state"));
        return Response::redirect(back.as_str());
    }
    products.login().dialog(tx, request)
}

/// Returns true if the app of a token has scopes of their own for comments, without which it can't comment.
pub(super) fn has_feed_scopes(tx: &Transaction, token: &Token) -> bool {
    tokens::client(tx, token).as_deref() == Some(COMMUNITY_CLIENT)
}

/// Returns the login of the app that a request authenticates as.
fn app(tx: &Transaction, request: &Request) -> Result<Login, Response> {
    let products = request.field("client_id").and_then(|client| Products::of(tx, client));
    let products = products.filter(|_| request.field("client_secret") == Some(CLIENT_SECRET));
    let refused = || oauth_error(401, "invalid_client", "Client authentication failed");
    products.map(Products::login).ok_or_else(refused)
}

fn oauth_error(status: u16, word: &str, description: &str) -> Response {
    Response::json(status, &json!({ "error": word, "error_description": description })).because(State)
}

/// `POST /oauth/v2/accessToken`.
pub(super) fn token(tx: &mut Transaction, request: &Request) -> Outcome {
    let issued = app(tx, request)?.token(tx, request).map_err(|refusal| match refusal {
        TokenError::InvalidCode => oauth_error(
            400,
            "invalid_request",
            "Unable to retrieve access token: appid/redirect uri/code verifier does not match authorization code. Or authorization code expired. Or external member binding exists",
        ),
        TokenError::InvalidRefreshToken => oauth_error(
            400,
            "invalid_grant",
            "The provided authorization grant or refresh token is invalid, expired or revoked.",
        ),
        TokenError::UnsupportedGrantType => oauth_error(400, "unsupported_grant_type", "The grant type is not supported"),
    })?;
    let mut body = json!({
        "access_token": issued.access,
        "expires_in": issued.access_seconds,
        "scope": issued.scopes.join(","),
    });
    if let Some(refresh) = issued.refresh {
        body["refresh_token"] = json!(refresh);
        body["refresh_token_expires_in"] = json!(issued.refresh_seconds);
    }
    Ok(Response::json(200, &body))
}

/// `POST /oauth/v2/introspectToken`.
pub(super) fn introspect(tx: &mut Transaction, request: &Request) -> Outcome {
    let login = app(tx, request)?;
    let token = request.field("token").and_then(|token| tokens::find(tx, ID, token));
    let token = token.ok_or_else(|| oauth_error(400, "invalid_request", "Invalid token"))?;
    let status = match (token.is_revoked, token.is_valid(tx.now)) {
        (true, _) => "revoked",
        (_, true) => "active",
        _ => "expired",
    };
    Ok(Response::json(
        200,
        &json!({
            "active": status == "active",
            "status": status,
            "client_id": login.tokens.client,
            "expires_at": token.expires_at.timestamp(),
            "scope": token.scopes.join(","),
            "auth_type": "3L",
        }),
    ))
}

/// `POST /oauth/v2/revoke`.
pub(super) fn revoke(tx: &mut Transaction, request: &Request) -> Outcome {
    app(tx, request)?;
    let token = request.field("token").unwrap_or_default();
    if tokens::find(tx, ID, token).is_none() {
        return Err(oauth_error(400, "invalid_request", "Invalid access token"));
    }
    tokens::revoke(tx, ID, token);
    Ok(Response::json(200, &json!({})))
}
