//! Social networks: an organization's own OAuth apps, and authorization URLs.
//!
//! The client secret is encrypted for the workers before it is stored, and never shown. This process can't
//! decrypt it and does not need to: an authorization URL takes the client id only.

use crate::{
    connect::{
        callback::{BEGIN, CALLBACK},
        oauth_state::{self, State},
        redirect_uri,
    },
    http::{
        body::{self, Json},
        caller::{AccountsWrite, Call, Caller, NetworksRead, NetworksWrite},
        problem::{Code, Issue, Problem},
        reach,
    },
    openapi::{
        tag::Tag,
        validate::{Null, Rules, limit_size},
    },
    types::{
        bounded_string::Text,
        deleted::DeletedResource,
        enum_string::{EnumString, Platform},
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
        url::Link,
    },
};
use chrono::SubsecRound;
use domain::{AccountId, AppAccess, AppConfig, Bound, Mode, NetworkId, client::Client};
use platforms::{
    Adapter, Feature,
    authorization::{self, Authorization},
};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path, types::MaybeUndefined};
use serde::Deserialize;
use serde_json::{Map, Value};
use store::{
    Change,
    accounts::{
        self,
        networks::{self, Edit},
        oauth_states::{self, AuthorizationRequest, Begun},
    },
    upkeep::vault,
};
use uuid::Uuid;

/// Maximum size of `extra_config` as JSON, in bytes.
const MAX_CONFIG_BYTES: usize = 64 << 10;
/// The member of `extra_config` that lists allowed redirect URIs.
const REDIRECT_URIS: &str = "redirect_uris";
/// The member of `extra_config` that names a set of scopes.
const PRESET: &str = "preset";
/// The member of `extra_config` with further parameters of the authorization request.
const PARAMETERS: &str = "authorize_parameters";
/// The member of `extra_config` that tells the access that the platform has given the app.
const ACCESS: &str = "access";

/// The operations on OAuth apps.
pub struct Networks;

#[OpenApi(tag = "Tag::Networks")]
impl Networks {
    /// Register an app
    ///
    /// Registers one app per platform. If the platform has one, the fields sent replace its fields. The
    /// client secret is stored encrypted and is in no response. Scope `networks:write`.
    #[oai(path = "/social-networks", method = "post", operation_id = "createSocialNetwork")]
    async fn create(
        &self,
        caller: Caller<NetworksWrite>,
        body: Json<NewNetwork>,
    ) -> Result<Registered, Problem> {
        let saved = create(&caller.call(), body.0).await?;
        let network = Json(saved.network.into());
        Ok(if saved.is_new { Registered::New(network) } else { Registered::Updated(network) })
    }

    /// List apps
    ///
    /// Ordered by platform. Scope `networks:read`.
    #[oai(path = "/social-networks", method = "get", operation_id = "listSocialNetworks")]
    async fn list(&self, caller: Caller<NetworksRead>) -> Result<Json<NetworkList>, Problem> {
        Ok(Json(list(&caller.call()).await?))
    }

    /// Get an app
    ///
    /// Scope `networks:read`.
    #[oai(path = "/social-networks/:id", method = "get", operation_id = "getSocialNetwork")]
    async fn get(&self, caller: Caller<NetworksRead>, id: Path<String>) -> Result<Json<Network>, Problem> {
        Ok(Json(get(&caller.call(), &id).await?))
    }

    /// Update an app
    ///
    /// Updates the fields sent; null clears a nullable field. Scope `networks:write`.
    #[oai(path = "/social-networks/:id", method = "patch", operation_id = "updateSocialNetwork")]
    async fn edit(
        &self,
        caller: Caller<NetworksWrite>,
        id: Path<String>,
        body: Json<NetworkPatch>,
    ) -> Result<Json<Network>, Problem> {
        Ok(Json(edit(&caller.call(), &id, body.0).await?))
    }

    /// Remove an app
    ///
    /// Accounts connected through the app stay connected; no further accounts can be connected until an app
    /// is registered again. Scope `networks:write`.
    #[oai(path = "/social-networks/:id", method = "delete", operation_id = "deleteSocialNetwork")]
    async fn delete(
        &self,
        caller: Caller<NetworksWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// Create an authorization URL
    ///
    /// Returns the URL to send the user to: the platform's, or with `hosted` our page before it. It is valid once
    /// and for 15 minutes. The organization's own
    /// enabled app is used, or else a shared one. The path takes a platform, not an app's id. Scope
    /// `accounts:write`.
    #[oai(path = "/social-networks/:platform/auth-url", method = "post", operation_id = "createAuthUrl")]
    async fn authorize(
        &self,
        caller: Caller<AccountsWrite>,
        platform: Path<String>,
        body: Json<NewAuthorization>,
    ) -> Result<Json<AuthUrl>, Problem> {
        Ok(Json(authorize(&caller.call(), &platform, body.0).await?))
    }
}

/// Registers an app, or updates the platform's app.
pub async fn create(call: &Call<'_>, body: NewNetwork) -> Result<networks::Saved, Problem> {
    check_callback(call, body.redirect_uri.as_ref())?;
    check_preset(body.platform.as_str(), body.extra_config.as_ref())?;
    let edit = Edit {
        display_name: body.display_name.into(),
        client_id: body.client_id.into(),
        redirect_uri: Change::from(body.redirect_uri).map(|link| link.text),
        scopes: body.scopes.map(scopes),
        extra_config: body.extra_config.map(object),
        is_enabled: body.is_enabled,
    };
    let secret = Change::from(body.client_secret);
    let seal = |id| secret.map(|secret| seal(call, id, &secret));
    Ok(networks::upsert(call.db(), call.owner, body.platform.as_str(), edit, seal, call.by, call.now())
        .await?)
}

/// Lists all apps.
pub async fn list(call: &Call<'_>) -> Result<NetworkList, Problem> {
    let networks = networks::list(call.db(), call.owner).await?;
    Ok(NetworkList { data: networks.into_iter().map(Network::from).collect() })
}

/// Returns an app.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Network, Problem> {
    let network = networks::get(call.db(), call.owner, read(id)?).await?;
    network.map(Network::from).ok_or_else(missing)
}

/// Updates an app.
pub async fn edit(call: &Call<'_>, id: &str, body: NetworkPatch) -> Result<Network, Problem> {
    let id = read(id)?;
    check_callback(call, body.redirect_uri.value())?;
    if body.extra_config.is_some() {
        let network = networks::get(call.db(), call.owner, id).await?.ok_or_else(missing)?;
        check_preset(&network.platform, body.extra_config.as_ref())?;
    }
    let edit = Edit {
        display_name: body::change(body.display_name),
        client_id: body::change(body.client_id),
        redirect_uri: body::change(body.redirect_uri).map(|link| link.text),
        scopes: body.scopes.map(scopes),
        extra_config: body.extra_config.map(object),
        is_enabled: body.is_enabled,
    };
    let secret = body::change(body.client_secret).map(|secret| seal(call, id, &secret));
    let network = networks::edit(call.db(), call.owner, id, edit, secret, call.by, call.now()).await?;
    network.map(Network::from).ok_or_else(missing)
}

/// Removes an app.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    if !networks::delete(call.db(), call.owner, id, call.by, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// Returns the platform's authorization URL.
pub async fn authorize(call: &Call<'_>, platform: &str, body: NewAuthorization) -> Result<AuthUrl, Problem> {
    let adapter = platforms::get(platform).ok_or_else(|| Problem::not_found("platform"))?;
    if adapter.auth.oauth().is_none() {
        let detail = format!(
            "{platform} has no apps: an account is connected with a password made for this purpose, \
             by POST /social-accounts/{platform}/connect"
        );
        return Err(Problem::new(Code::NoAppAvailable, detail));
    }
    let tenant_id = call.tenant(body.tenant_id.clone())?;
    check_bound(call, &body)?;
    let body = match call.client {
        Some(client) => for_client(client, platform, body)?,
        None => body,
    };
    let network = networks::get_by_platform(call.db(), call.owner, platform).await?;
    if let Some(link) = &body.redirect_uri {
        check_landing(network.as_ref(), link)?;
    }
    let app = app(call, platform, network)?;
    let account = reconnected(call, platform, &body).await?;
    let account_tenant = account.as_ref().and_then(|account| account.tenant_id.clone());

    let asked = match body.scopes.map(scopes) {
        Some(asked) => {
            check_scopes(adapter, &asked)?;
            asked
        }
        None => app.scopes,
    };
    let intent = AuthorizationRequest {
        platform: platform.to_owned(),
        network: app.network,
        callback: app.callback,
        redirect_uri: body.redirect_uri.map(|link| link.text),
        // An account that is connected again keeps its tenant, unless another one is asked for.
        tenant_id: tenant_id.or_else(|| account_tenant.clone()),
        scopes: authorization::scopes(&adapter.auth, &asked, &app.config),
        network_unique_id: match &account {
            Some(account) => Some(account.network_unique_id.clone()),
            None => body.expected_network_unique_id,
        },
        account: account.map(|account| account.id),
        is_forced: body.force_reauth.unwrap_or_default(),
        confirm: body.confirm.unwrap_or_default(),
        begun: Begun {
            with: call.by.key.as_ref().map(|(id, _)| *id),
            is_limited: call.bound.is_limited(),
            account_tenant,
        },
    };
    let expires_at = (call.now() + oauth_state::TTL).trunc_subsecs(0);
    let id = oauth_states::store(call.db(), call.owner, &intent, call.now(), expires_at).await?;
    let state = State { id, owner: call.owner, expires_at, is_hosted: body.hosted.unwrap_or_default() };
    let text = call.app.config.states.seal(&state);
    let auth_url = match state.is_hosted {
        true => format!("{}{BEGIN}/{text}", call.app.config.base_url.trim_end_matches('/')),
        false => address(call, adapter, &app.client_id, &app.config, &intent, &state, &text),
    };
    Ok(AuthUrl { auth_url })
}

/// The platform's authorization URL of a login that begins on our page; `None` if its app is not available any more.
pub(crate) async fn address_of(
    call: &Call<'_>,
    intent: &AuthorizationRequest,
    state: &State,
    text: &str,
) -> Result<Option<String>, Problem> {
    let Some(adapter) = platforms::get(&intent.platform) else { return Ok(None) };
    let network = networks::get_by_platform(call.db(), call.owner, &intent.platform).await?;
    Ok(match app(call, &intent.platform, network) {
        Ok(app) if app.network == intent.network => {
            Some(address(call, adapter, &app.client_id, &app.config, intent, state, text))
        }
        _ => None,
    })
}

fn address(
    call: &Call<'_>,
    adapter: &Adapter,
    client_id: &str,
    config: &AppConfig,
    intent: &AuthorizationRequest,
    state: &State,
    text: &str,
) -> String {
    let address = authorization::address(
        adapter,
        &Authorization {
            client_id,
            redirect_uri: &intent.callback,
            scopes: &intent.scopes,
            parameters: &config.authorize_parameters,
            state: text,
            verifier: &call.app.config.states.verifier(state.id),
            is_forced: intent.is_forced,
        },
    )
    .expect("a platform without app passwords has OAuth");
    match (call.owner.mode, &call.app.config.sandbox) {
        (Mode::Test, Some(sandbox)) => platforms::in_sandbox(&sandbox.of(call.owner.org), &address),
        _ => address,
    }
}

/// Checks that the account will be within the bound of the caller's key: a new one has the tenant of the
/// authorization, and is in no profile and no list yet.
fn check_bound(call: &Call<'_>, body: &NewAuthorization) -> Result<(), Problem> {
    let bound = call.bound;
    if matches!(bound, Bound::Organization | Bound::Tenant(_)) {
        return Ok(());
    }
    if body.reconnect_account_id.is_none() {
        let detail = format!(
            "this API key is limited to {bound}, which a new account would not be within; it can reconnect \
             an account, with reconnect_account_id"
        );
        return Err(reach::forbidden(detail));
    }
    if body.tenant_id.is_some() {
        return Err(reach::forbidden(format!(
            "this API key is limited to {bound} and can't change a tenant_id"
        )));
    }
    Ok(())
}

/// The authorization as a client token allows it: at its platforms, to its page, and bound to who began it.
fn for_client(client: &Client, platform: &str, body: NewAuthorization) -> Result<NewAuthorization, Problem> {
    reach::check_platform(Some(client), platform)?;
    if body.redirect_uri.as_ref().is_some_and(|link| Some(&link.text) != client.redirect_uri.as_ref()) {
        return Err(reach::forbidden("this client token was not created for this redirect_uri"));
    }
    let redirect_uri = client.redirect_uri.as_deref().and_then(Link::read);
    let (confirm, hosted) = match &redirect_uri {
        Some(_) => (Some(true), body.hosted),
        None => (Some(false), Some(true)),
    };
    Ok(NewAuthorization { redirect_uri, confirm, hosted, ..body })
}

/// The OAuth app that an authorization uses.
struct App {
    network: Option<NetworkId>,
    client_id: String,
    callback: String,
    scopes: Vec<String>,
    config: AppConfig,
}

/// Selects the organization's own app if it is enabled and has a client id, or else a shared one.
fn app(call: &Call<'_>, platform: &str, network: Option<networks::Network>) -> Result<App, Problem> {
    let config = &call.app.config;
    if call.owner.mode == Mode::Test && config.sandbox.is_none() {
        let detail = "this installation has no sandbox, so no accounts can be connected in test mode";
        return Err(Problem::new(Code::NoAppAvailable, detail));
    }
    let ours = || format!("{}{CALLBACK}", config.base_url.trim_end_matches('/'));
    if let Some(network) = network.filter(|network| network.is_enabled)
        && let Some(client_id) = network.client_id
    {
        let callback = network.redirect_uri.unwrap_or_else(ours);
        let config = AppConfig::read(&network.extra_config);
        return Ok(App { network: Some(network.id), client_id, callback, scopes: network.scopes, config });
    }
    let shared = match call.owner.mode {
        Mode::Live => &config.shared_clients,
        Mode::Test => &config.sandbox_clients,
    };
    let client_id = shared.get(platform).cloned().ok_or_else(|| {
        let detail = format!(
            "no app for {platform}: register one with POST /social-networks, with its client_id, \
             and enable it"
        );
        Problem::new(Code::NoAppAvailable, detail)
    })?;
    Ok(App { network: None, client_id, callback: ours(), scopes: Vec::new(), config: AppConfig::default() })
}

/// The account to reconnect, if the request names one.
async fn reconnected(
    call: &Call<'_>,
    platform: &str,
    body: &NewAuthorization,
) -> Result<Option<accounts::Account>, Problem> {
    let Some(id) = body.reconnect_account_id else { return Ok(None) };
    let account = accounts::get(call.db(), call.access(), AccountId(id)).await?;
    let Some(account) = account.filter(|account| account.platform == platform) else {
        let issue =
            Issue::custom(["reconnect_account_id"], format!("There is no such account of {platform}"));
        let problem = Problem::new(Code::AccountNotFound, "the account to reconnect was not found");
        return Err(problem.with_issues(vec![issue]));
    };
    if body.expected_network_unique_id.as_ref().is_some_and(|id| *id != account.network_unique_id) {
        let issue = Issue::custom(
            ["expected_network_unique_id"],
            "Must equal the network_unique_id of reconnect_account_id",
        );
        let detail = "the account to reconnect is not the expected one";
        return Err(Problem::new(Code::Unprocessable, detail).with_issues(vec![issue]));
    }
    Ok(Some(account))
}

/// Checks the address that users land on, also against the app's list, if it has one.
fn check_landing(network: Option<&networks::Network>, link: &Link) -> Result<(), Problem> {
    let allowed =
        network.and_then(|network| network.extra_config.get(REDIRECT_URIS)).and_then(Value::as_array);
    let is_listed = allowed.is_some_and(|allowed| allowed.iter().any(|one| *one == link.text));
    let issue = redirect_uri::check_landing("redirect_uri", &link.url, is_listed).or_else(|| {
        let message = format!("Must be one of {REDIRECT_URIS} in the extra_config of the social network");
        (allowed.is_some() && !is_listed).then(|| Issue::custom(["redirect_uri"], message))
    });
    issue.map_or(Ok(()), |issue| Err(Problem::invalid_body(vec![issue])))
}

fn check_callback(call: &Call<'_>, link: Option<&Link>) -> Result<(), Problem> {
    let check = |link: &Link| redirect_uri::check_callback("redirect_uri", &link.url, call.owner.mode);
    link.and_then(check).map_or(Ok(()), |issue| Err(Problem::invalid_body(vec![issue])))
}

fn seal(call: &Call<'_>, id: NetworkId, secret: &str) -> Vec<u8> {
    call.app.config.sealer.seal(secret.as_bytes(), &vault::aad_client_secret(call.owner, id))
}

fn scopes(scopes: Vec<Text<255>>) -> Vec<String> {
    scopes.into_iter().map(|scope| scope.0).collect()
}

fn object(free: JsonObject) -> Value {
    Value::Object(free.into_iter().collect())
}

fn read(id: &str) -> Result<NetworkId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("social network")
}

/// Checks that scopes for an authorization suffice to publish: without them its login would be refused.
fn check_scopes(adapter: &Adapter, scopes: &[String]) -> Result<(), Problem> {
    let missing = adapter.missing(Feature::Publishing, scopes);
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("Lacks what publishing on {} needs: {}", adapter.id, missing.join(", "));
    let problem = Problem::new(Code::Unprocessable, "an account can't publish with these scopes");
    Err(problem.with_issues(vec![Issue::custom(["scopes"], message)]))
}

/// Checks that the platform has the preset that `extra_config` names.
fn check_preset(platform: &str, extra_config: Option<&JsonObject>) -> Result<(), Problem> {
    let preset = extra_config.and_then(|config| config.get(PRESET)).and_then(Value::as_str);
    let oauth = platforms::get(platform).and_then(|platform| platform.auth.oauth());
    let Some((name, oauth)) = preset.zip(oauth).filter(|(name, oauth)| oauth.preset(name).is_none()) else {
        return Ok(());
    };
    let names: Vec<_> = oauth.presets.iter().map(|preset| preset.name).collect();
    let message = match names[..] {
        [] => format!("{platform} has no presets, so there is no `{name}`"),
        _ => format!("Must be one of {platform}'s presets: {}", names.join(", ")),
    };
    Err(Problem::invalid_body(vec![Issue::custom(["extra_config", PRESET], message)]))
}

/// Validates the members of `extra_config` that this service uses; others are not checked.
fn check_config(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
    let Some(config) = body.get("extra_config") else { return };
    limit_size(config, MAX_CONFIG_BYTES, ["extra_config"], issues);
    let is_list = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let is_map = |value: &Value| value.as_object().is_some_and(|all| all.values().all(Value::is_string));
    let is_access = |value: &Value| AppAccess::deserialize(value).is_ok();
    let mut check = |name: &str, is_valid: fn(&Value) -> bool, message: &str| {
        if config.get(name).is_some_and(|value| !is_valid(value)) {
            issues.push(Issue::custom(["extra_config", name], message));
        }
    };
    check(REDIRECT_URIS, is_list, "Must be an array of strings");
    check(PRESET, Value::is_string, "Must be a string");
    check(PARAMETERS, is_map, "Must be an object whose values are strings");
    check(ACCESS, is_access, "Must be `trial` or `full`");
    let parameters = config.get(PARAMETERS).and_then(Value::as_object);
    for name in parameters.into_iter().flat_map(Map::keys) {
        if authorization::RESERVED.contains(&name.as_str()) {
            issues.push(Issue::custom(["extra_config", PARAMETERS, name], "Is set by this service"));
        }
    }
}

// No `Debug` on bodies with a secret, which must not be logged.

/// An OAuth app to register.
#[derive(Object)]
#[oai(rename = "NewSocialNetwork")]
pub struct NewNetwork {
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// Client id.
    #[oai(validator(min_length = 1, max_length = 1024))]
    pub client_id: Option<String>,
    /// Client secret. Never shown; if not sent, the stored one is kept.
    #[oai(validator(min_length = 1, max_length = 4096))]
    pub client_secret: Option<String>,
    /// Display label.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub display_name: Option<String>,
    /// Redirect URI registered with the platform; this service's callback by default. Must be `https`; in
    /// test mode `http` to localhost is allowed too.
    #[oai(validator(max_length = 2048))]
    pub redirect_uri: Option<Link>,
    /// OAuth scopes to request. By default those of `extra_config.preset`, or those that most apps of the
    /// platform have. Publishing needs some of them; a feature whose scopes are missing is off
    /// (`unavailable` of the account).
    #[oai(validator(max_items = 100))]
    pub scopes: Option<Vec<Text<255>>>,
    /// Additional configuration; members that are not listed here are kept and ignored. `redirect_uris`, an array
    /// of strings, lists the URIs that users may be redirected to after connecting; without it any https
    /// or loopback URI is allowed. An app's own scheme (`com.example.app:/connected`) must be listed. `preset` names the scopes to request: for LinkedIn `self_service` (the default),
    /// `community_management`, `community_management_feed` or `advertising`, after the app's products; for
    /// Facebook, Instagram, Reddit, Threads, TikTok and YouTube `publishing` for the scopes that publishing
    /// needs and no others.
    /// `authorize_parameters`, an object of strings, is added to authorization URLs, for example `config_id` of
    /// Facebook Login for Business, which takes the scopes' place. `access` is `trial` for a Pinterest app with
    /// trial access, which publishes to Pinterest's API sandbox, and otherwise `full`, the default.
    #[oai(validator(max_properties = 100))]
    pub extra_config: Option<JsonObject>,
    /// True, the default, to let accounts be connected through the app.
    pub is_enabled: Option<bool>,
}

impl Rules for NewNetwork {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        check_config(body, issues);
    }
}

/// Changes to an OAuth app.
#[derive(Object)]
#[oai(rename = "SocialNetworkPatch")]
pub struct NetworkPatch {
    /// Client id.
    #[oai(nullable, validator(min_length = 1, max_length = 1024))]
    pub client_id: MaybeUndefined<String>,
    /// Client secret. Never shown.
    #[oai(nullable, validator(min_length = 1, max_length = 4096))]
    pub client_secret: MaybeUndefined<String>,
    /// Display label.
    #[oai(nullable, validator(min_length = 1, max_length = 255))]
    pub display_name: MaybeUndefined<String>,
    /// Redirect URI registered with the platform; null for this service's callback.
    #[oai(nullable, validator(max_length = 2048))]
    pub redirect_uri: MaybeUndefined<Link>,
    /// OAuth scopes to request; empty for the default ones.
    #[oai(validator(max_items = 100))]
    pub scopes: Option<Vec<Text<255>>>,
    /// Additional configuration; replaces the stored object.
    #[oai(validator(max_properties = 100))]
    pub extra_config: Option<JsonObject>,
    /// True if accounts can be connected through the app.
    pub is_enabled: Option<bool>,
}

impl Rules for NetworkPatch {
    const NULL: Null = Null::Clears;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        check_config(body, issues);
    }
}

/// An organization's own OAuth app on a platform. The client secret is in no response.
#[derive(Debug, Object)]
#[oai(rename = "SocialNetwork")]
pub struct Network {
    /// The app's id.
    pub id: Uuid,
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// Display label.
    #[oai(nullable)]
    pub display_name: Option<String>,
    /// Client id.
    #[oai(nullable)]
    pub client_id: Option<String>,
    /// Redirect URI registered with the platform.
    #[oai(nullable)]
    pub redirect_uri: Option<String>,
    /// OAuth scopes that are requested; empty for the default ones.
    pub scopes: Vec<String>,
    /// Additional configuration.
    pub extra_config: JsonObject,
    /// True if accounts can be connected through the app.
    pub is_enabled: bool,
    /// Registration time.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
}

impl From<networks::Network> for Network {
    fn from(network: networks::Network) -> Self {
        Self {
            id: network.id.0,
            platform: EnumString::of(&network.platform),
            display_name: network.display_name,
            client_id: network.client_id,
            redirect_uri: network.redirect_uri,
            scopes: network.scopes,
            extra_config: json_object(network.extra_config),
            is_enabled: network.is_enabled,
            created_at: network.created_at.into(),
            updated_at: network.updated_at.into(),
        }
    }
}

/// Lists all apps.
#[derive(Debug, Object)]
#[oai(rename = "SocialNetworkList")]
pub struct NetworkList {
    /// The apps, ordered by platform.
    pub data: Vec<Network>,
}

/// Options for connecting an account.
#[derive(Debug, Object)]
pub struct NewAuthorization {
    /// URI to redirect the user to afterwards; this service's own pages by default. Must be `https`; in test
    /// mode `http` to localhost is allowed too.
    #[oai(validator(max_length = 2048))]
    pub redirect_uri: Option<Link>,
    /// End tenant to assign the account to. An account of another tenant is moved only if
    /// `reconnect_account_id` names it; otherwise the login fails with `wrong_account`.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub tenant_id: Option<String>,
    /// OAuth scopes to request, instead of the app's.
    #[oai(validator(min_items = 1, max_items = 100))]
    pub scopes: Option<Vec<Text<255>>>,
    /// Id of the account to reconnect. A login to any other account fails.
    pub reconnect_account_id: Option<Uuid>,
    /// The platform's id of the account that must be connected.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub expected_network_unique_id: Option<String>,
    /// True to force a new login on platforms that support it, even if the user is logged in.
    pub force_reauth: Option<bool>,
    /// True to connect nothing until a call with an API key finalizes the login: it always ends with
    /// `status=pending` at `redirect_uri`, which is required then. Before you finalize it, compare the `tenant_id` of
    /// the redirect with the user's session. Without it, somebody who sends their authorization URL to another person
    /// connects that person's account for themselves. False by default.
    pub confirm: Option<bool>,
    /// True to begin on a page of this service: it names the organization and the tenant, and binds the login to the
    /// browser, so that it can't be finished in another one. False by default.
    pub hosted: Option<bool>,
}

impl Rules for NewAuthorization {
    const IS_OPTIONAL: bool = true;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        if body.get("confirm") == Some(&Value::Bool(true))
            && body.get("redirect_uri").is_none_or(Value::is_null)
        {
            issues.push(Issue::custom(["redirect_uri"], "Is required with confirm"));
        }
    }
}

/// An authorization URL.
#[derive(Debug, Object)]
pub struct AuthUrl {
    /// The URL to send the user to.
    pub auth_url: String,
}

/// The response to a registration.
#[derive(ApiResponse)]
enum Registered {
    /// The app was registered.
    #[oai(status = 201)]
    New(Json<Network>),
    /// The platform's app existed and was updated.
    #[oai(status = 200)]
    Updated(Json<Network>),
}
