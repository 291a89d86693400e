//! Client tokens: for a page that a customer's user has open, which must not hold an API key.
//!
//! A token connects accounts for one end tenant, lists them, and does nothing else (`http::reach`). It is short-lived,
//! so that a page asks its own server for it, which knows who is signed in. Its holder may be an attacker who sends
//! their authorization URL to another person; so its logins are always bound: confirmed by a token of the same tenant
//! at the `redirect_uri`, or hosted.

use crate::{
    connect::redirect_uri,
    http::{
        body::Json,
        caller::{AccountsRead, AccountsWrite, Call, Caller},
        problem::{Issue, Problem},
        reach,
    },
    keys::hold,
    openapi::{tag::Tag, validate::Rules},
    types::{
        deleted::DeletedResource,
        enum_string::{EnumString, Platform},
        timestamp::Timestamp,
        url::Link,
    },
};
use chrono::TimeDelta;
use domain::{Bound, KeyId, client::Client};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use store::people::keys;
use uuid::Uuid;

/// Lifetime in seconds unless the request says otherwise.
const DEFAULT_SECONDS: u32 = 900;

/// The operations on client tokens.
pub struct ClientTokens;

#[OpenApi(tag = "Tag::Accounts")]
impl ClientTokens {
    /// Create a client token
    ///
    /// Returns a token for a page of yours that connects accounts for one `tenant_id`. The page sends it as
    /// `Authorization: Bearer`, also from another origin, to list platforms and the tenant's accounts, create
    /// authorization URLs, connect a Bluesky account and finalize pending logins; anything else fails with 403. Logins
    /// end at the token's `redirect_uri` and are finalized there with a token of the same tenant (as with
    /// `confirm`); without it they are `hosted`. The calling key must have the token's scopes, `accounts:read` and
    /// `accounts:write`. Scope `accounts:write`.
    #[oai(path = "/client-tokens", method = "post", operation_id = "createClientToken")]
    async fn create(
        &self,
        caller: Caller<AccountsWrite>,
        body: Json<NewClientToken>,
    ) -> Result<Made, Problem> {
        Ok(Made::New(Json(create(&caller.call(), body.0).await?)))
    }

    /// Revoke a client token
    ///
    /// Takes effect immediately. Scope `accounts:write`.
    #[oai(path = "/client-tokens/:id", method = "delete", operation_id = "deleteClientToken")]
    async fn delete(
        &self,
        caller: Caller<AccountsWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// List platforms
    ///
    /// Lists the platforms whose accounts the caller can connect, and how. Scope `accounts:read`.
    #[oai(path = "/connect/platforms", method = "get", operation_id = "listConnectPlatforms")]
    async fn platforms(&self, caller: Caller<AccountsRead>) -> Result<Json<ConnectPlatforms>, Problem> {
        Ok(Json(platforms(&caller.call())))
    }
}

/// Creates a client token.
pub async fn create(call: &Call<'_>, body: NewClientToken) -> Result<ClientToken, Problem> {
    if !matches!(call.bound, Bound::Organization | Bound::Tenant(_)) {
        let detail =
            format!("this API key is limited to {}, which a new account would not be within", call.bound);
        return Err(reach::forbidden(detail));
    }
    let tenant = call.tenant(Some(body.tenant_id))?.expect("one was asked for");
    hold(call.scopes, &keys::CLIENT_SCOPES, "give a client token with")?;
    if let Some(issue) = body
        .redirect_uri
        .as_ref()
        .and_then(|link| redirect_uri::check_landing("redirect_uri", &link.url, false))
    {
        return Err(Problem::invalid_body(vec![issue]));
    }
    let client = Client {
        platforms: body
            .platforms
            .into_iter()
            .flatten()
            .map(|platform| platform.as_str().to_owned())
            .collect(),
        redirect_uri: body.redirect_uri.map(|link| link.text),
    };
    let now = call.now();
    let expires_at = now + TimeDelta::seconds(body.expires_in.unwrap_or(DEFAULT_SECONDS).into());
    let (id, token) =
        keys::create_client(call.db(), call.owner, &tenant, &client, expires_at, call.by, now).await?;
    Ok(ClientToken {
        id: id.0,
        token,
        tenant_id: tenant,
        platforms: (!client.platforms.is_empty())
            .then(|| client.platforms.iter().map(|platform| EnumString::of(platform)).collect()),
        redirect_uri: client.redirect_uri,
        expires_at: expires_at.into(),
    })
}

/// Revokes a client token.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let missing = || Problem::not_found("client token");
    let id: KeyId = id.parse().map_err(|_| missing())?;
    if !keys::revoke_client(call.db(), call.owner, call.bound, id, call.by, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// Lists the platforms that the caller can connect.
pub fn platforms(call: &Call<'_>) -> ConnectPlatforms {
    let may_connect = |id: &str| call.client.is_none_or(|client| client.may_connect(id));
    let all = platforms::all().iter().filter(|platform| may_connect(platform.id));
    let data = all.map(|platform| ConnectPlatform {
        platform: EnumString::of(platform.id),
        name: platforms::display_name(platform.id).to_owned(),
        takes_password: platform.auth.oauth().is_none(),
    });
    ConnectPlatforms { data: data.collect() }
}

/// A client token to create.
#[derive(Debug, Object)]
pub struct NewClientToken {
    /// End tenant that accounts are connected for.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub tenant_id: String,
    /// Platforms that can be connected; all by default.
    #[oai(validator(min_items = 1, max_items = 100, unique_items))]
    pub platforms: Option<Vec<EnumString<Platform>>>,
    /// URI of your page at which logins end; this service's own pages by default.
    #[oai(validator(max_length = 2048))]
    pub redirect_uri: Option<Link>,
    /// Lifetime in seconds, 15 to 60 minutes; 15 by default.
    #[oai(validator(minimum(value = "900"), maximum(value = "3600")))]
    pub expires_in: Option<u32>,
}

impl Rules for NewClientToken {
    fn check(_: &serde_json::Map<String, serde_json::Value>, _: &mut Vec<Issue>) {}
}

/// A client token.
#[derive(Object)]
pub struct ClientToken {
    /// The token's id, to revoke it.
    pub id: Uuid,
    /// The token's text. Only in this response.
    pub token: String,
    /// End tenant that accounts are connected for.
    pub tenant_id: String,
    /// Platforms that can be connected; null for all.
    #[oai(nullable)]
    pub platforms: Option<Vec<EnumString<Platform>>>,
    /// URI at which logins end.
    #[oai(nullable)]
    pub redirect_uri: Option<String>,
    /// Expiry time.
    pub expires_at: Timestamp,
}

/// Platforms that can be connected.
#[derive(Debug, Object)]
pub struct ConnectPlatforms {
    /// The platforms.
    pub data: Vec<ConnectPlatform>,
}

/// A platform that can be connected.
#[derive(Debug, Object)]
pub struct ConnectPlatform {
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// Name, for people.
    pub name: String,
    /// True if an account is connected with an app password, and not by an authorization URL.
    pub takes_password: bool,
}

/// The response to creating a token.
#[derive(ApiResponse)]
enum Made {
    /// The token was created.
    #[oai(status = 201)]
    New(Json<ClientToken>),
}
