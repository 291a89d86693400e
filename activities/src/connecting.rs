//! Connecting accounts: a login becomes one account, or a choice among several.
//!
//! The code or password arrives sealed, and the grant is sealed again before it is stored, so that no workflow
//! history holds either; only ids are returned. A login that covers several accounts is stored with its grants
//! sealed until the user chooses; accounts without a grant of their own share the login's, which is revoked with the
//! last of them. The quota of accounts is checked under a lock on the organization. The exchange is made once: a code is valid once, and platforms count wrong passwords.
//! Only listing the identities is retried.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, share::Shares};
use ::publishing::{NoCheckpoints, NoMedia, Stop};
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, AccountProfile, ErrorCode, Failure, LoginError, NetworkId, Owner, audit::Actor};
use platforms::{Adapter, App, AppPassword, Code, Feature, Grant, Identity, Session, Transport};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    slice,
    sync::Arc,
    time::Duration,
};
use store::{
    accounts::{
        Connect, Connected,
        connect::{self, Login},
        oauth_states::{self, AuthorizationRequest, Begun},
        pending_logins::{self, Digest, Pending, Selection},
    },
    upkeep::vault,
};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use workflows::{
    activities::{
        AccountQuota, CallbackResult, ConnectedAccount, LoginResult, LoginSelection, OAuthCallback,
        PasswordLogin, SelectionResult, definition,
    },
    worker_request,
};

/// Time that the user has to choose.
const SELECTION_TTL: TimeDelta = TimeDelta::minutes(30);
/// Number of tries to list the identities of a login, and the pause between them.
const IDENTITY_RETRIES: (u32, Duration) = (3, Duration::from_millis(500));

/// Longest name that is stored.
const MAX_NAME_CHARS: usize = 500;
/// Longest address that is stored.
const MAX_URL_BYTES: usize = 4096;

/// The account of a session before the account is known.
static NO_ACCOUNT: platforms::Account = platforms::Account {
    network_unique_id: String::new(),
    username: String::new(),
    account_type: String::new(),
};

/// The activities that connect accounts.
pub(crate) struct Connecting {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Arc<Shares>,
}

#[activities]
impl Connecting {
    #[activity(definition = definition::ExchangeCode)]
    pub(crate) async fn exchange_code(
        self: Arc<Self>,
        _cx: ActivityContext,
        callback: OAuthCallback,
    ) -> Result<CallbackResult, ActivityError> {
        let (deps, owner) = (&self.deps, callback.owner);
        let Some(intent) = oauth_states::get(&deps.engine.db, owner, callback.authorization).await? else {
            return Ok(refuse(LoginError::StateExpired, "nothing is known of this authorization any more"));
        };
        let code: Code = deps.unseal(&callback.sealed, &vault::aad_login(owner, &intent.platform))?;
        let session = match LoginSession::open(deps, owner, &intent.platform, intent.network).await {
            Ok(session) => session,
            Err(Stop::Failure(failure)) => return Ok(refuse(LoginError::ExchangeFailed, failure.message)),
            Err(Stop::Fault(error)) => return Err(error.into()),
        };
        let exchange =
            tokio::time::timeout(worker_request::LOGIN_TIMEOUT, session.exchange_code(&intent, &code)).await;
        let exchanged = exchange.unwrap_or_else(|_| Err((LoginError::ExchangeFailed, late())));
        let (grant, mut identities) = match exchanged {
            Ok(exchanged) => exchanged,
            Err((error, detail)) => {
                info!(platform = callback.platform, %error, "A login connected nothing: {detail}");
                return Ok(refuse(error, detail));
            }
        };
        let context = LoginContext {
            owner,
            platform: intent.platform.clone(),
            network: intent.network,
            tenant_id: intent.tenant_id.clone(),
            shared: None,
            begun: intent.begun.clone(),
            by: callback.by,
        };
        if identities.len() > 1 || intent.confirm {
            let digest = callback.token_digest.parse().context("a digest reads back as written")?;
            self.store_pending(digest, &context, intent, grant, identities).await?;
            return Ok(CallbackResult::Choice);
        }
        let only = identities.pop().context("a login covers an identity")?;
        let own = only.grant.clone().unwrap_or(grant);
        let only = self.shown_profile(&context, only.profile);
        let mut tx = store::begin(&deps.engine.db).await?;
        if let Some(quota) =
            quota_exceeded(&mut tx, &context, slice::from_ref(&only.network_unique_id), callback.limit)
                .await?
        {
            let detail = format!("the {} accounts of the plan are all connected", quota.limit);
            return Ok(refuse(LoginError::QuotaExceeded, detail));
        }
        self.move_account(&mut tx, &context, intent.account).await?;
        let Some(connected) = self.connect_account(&mut tx, &context, only, own).await? else {
            return Ok(refuse(LoginError::WrongAccount, "the account belongs to another tenant"));
        };
        tx.commit().await?;
        Ok(CallbackResult::Connected { account: connected.account })
    }

    #[activity(definition = definition::SignIn)]
    pub(crate) async fn sign_in(
        self: Arc<Self>,
        _cx: ActivityContext,
        login: PasswordLogin,
    ) -> Result<LoginResult, ActivityError> {
        let (deps, owner) = (&self.deps, login.owner);
        let _share = self.shares.admit(owner.org)?;
        let password: AppPassword = deps.unseal(&login.sealed, &vault::aad_login(owner, &login.platform))?;
        let session = match LoginSession::open(deps, owner, &login.platform, None).await {
            Ok(session) => session,
            Err(Stop::Failure(failure)) => return Ok(LoginResult::Refused(failure)),
            Err(Stop::Fault(error)) => return Err(error.into()),
        };
        let exchange = tokio::time::timeout(worker_request::LOGIN_TIMEOUT, session.sign_in(&password)).await;
        let (grant, only) = match exchange.unwrap_or_else(|_| Err(Failure::network(late(), false))) {
            Ok(signed_in) => signed_in,
            Err(failure) => return Ok(LoginResult::Refused(failure)),
        };
        let context = LoginContext {
            owner,
            platform: login.platform,
            network: None,
            tenant_id: login.tenant_id,
            shared: None,
            begun: Begun { is_limited: login.is_limited, ..Begun::default() },
            by: login.by,
        };
        let only = self.shown_profile(&context, only.profile);
        let mut tx = store::begin(&deps.engine.db).await?;
        if let Some(quota) =
            quota_exceeded(&mut tx, &context, slice::from_ref(&only.network_unique_id), login.limit).await?
        {
            return Ok(LoginResult::Full(quota));
        }
        let Some(connected) = self.connect_account(&mut tx, &context, only, grant).await? else {
            return Ok(LoginResult::OtherTenant);
        };
        tx.commit().await?;
        Ok(LoginResult::Connected(connected))
    }

    #[activity(definition = definition::FinalizeLogin)]
    pub(crate) async fn finalize_login(
        self: Arc<Self>,
        _cx: ActivityContext,
        selection: LoginSelection,
    ) -> Result<SelectionResult, ActivityError> {
        Ok(self.finalize(&selection).await?)
    }
}

/// A session with a platform before the account is known.
struct LoginSession<'a> {
    platform: &'static Adapter,
    transport: Cow<'a, Transport>,
    app: Option<App>,
    now: fn() -> DateTime<Utc>,
}

impl<'a> LoginSession<'a> {
    /// Opens a session through the app of a network.
    async fn open(
        deps: &'a Deps,
        owner: Owner,
        platform: &str,
        network: Option<NetworkId>,
    ) -> Result<Self, Stop> {
        let (platform, transport) = deps.engine.connect(owner, platform)?;
        let app = deps.engine.app(owner, platform.id, network).await?;
        Ok(Self { platform, transport, app, now: deps.engine.now })
    }

    fn session(&'a self, grant: &'a Grant) -> Session<'a> {
        Session {
            platform: self.platform,
            account: &NO_ACCOUNT,
            grant,
            app: self.app.as_ref(),
            now: self.now,
            transport: &self.transport,
            checkpoints: &NoCheckpoints,
            media: Arc::new(NoMedia),
            skew: Arc::default(),
        }
    }

    /// Exchanges a code for a grant, and returns the identities to connect.
    async fn exchange_code(
        &self,
        intent: &AuthorizationRequest,
        code: &Code,
    ) -> Result<(Grant, Vec<Identity>), (LoginError, String)> {
        let failed = |failure: Failure| (LoginError::ExchangeFailed, failure.message);
        // A platform that names no scopes granted those that it was asked for.
        let asked = Grant { scopes: intent.scopes.clone(), ..Grant::default() };
        let grant = self.platform.publisher.exchange(&self.session(&asked), code).await.map_err(failed)?;
        let missing = self.platform.missing(Feature::Publishing, &grant.scopes);
        if !missing.is_empty() {
            return Err((LoginError::InsufficientScope, not_granted(&missing, &intent.scopes)));
        }
        let mut identities = self.identities(&grant).await.map_err(|failure| match failure.code {
            // There are some, and the message tells why none can be posted to.
            ErrorCode::Rejected(404) => (LoginError::NoPages, failure.message),
            _ => failed(failure),
        })?;
        if identities.is_empty() {
            let detail = format!("the login covers nothing on {} that can be posted to", self.platform.id);
            return Err((LoginError::NoPages, detail));
        }
        if let Some(expected) = &intent.network_unique_id {
            identities.retain(|identity| identity.profile.network_unique_id == *expected);
            if identities.is_empty() {
                let detail = format!("the login does not cover {expected}, which was to be connected");
                return Err((LoginError::WrongAccount, detail));
            }
        }
        Ok((grant, identities))
    }

    /// Signs in with an app password; returns the grant and the account's identity.
    async fn sign_in(&self, password: &AppPassword) -> Result<(Grant, Identity), Failure> {
        let grant = self.platform.publisher.refresh(&self.session(&password.grant())).await?;
        let only = self.identities(&grant).await?.into_iter().next();
        let only = only.ok_or_else(|| Failure::rejected(404, "the login has no account"))?;
        Ok((grant, only))
    }

    /// Lists the identities that a grant covers, without duplicates. Retries, since a transient error here would
    /// cost the login.
    async fn identities(&self, grant: &Grant) -> Result<Vec<Identity>, Failure> {
        let (most, pause) = IDENTITY_RETRIES;
        for look in 1.. {
            match self.platform.publisher.identities(&self.session(grant)).await {
                Ok(mut identities) => {
                    let mut seen = HashSet::new();
                    identities.retain(|identity| seen.insert(identity.profile.network_unique_id.clone()));
                    return Ok(identities);
                }
                Err(failure)
                    if look < most
                        && matches!(failure.code, ErrorCode::Upstream(_) | ErrorCode::NetworkError) => {}
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(pause).await;
        }
        unreachable!("the last look returns")
    }
}

/// Names scopes that a grant lacks: those that the user declined, and those that the login did not ask for.
fn not_granted(missing: &[&str], asked: &[String]) -> String {
    let (declined, unasked): (Vec<&str>, Vec<&str>) =
        missing.iter().partition(|missing| asked.iter().any(|asked| asked == **missing));
    let mut parts = Vec::new();
    if !declined.is_empty() {
        parts.push(format!("not granted: {}", declined.join(", ")));
    }
    if !unasked.is_empty() {
        parts.push(format!("not requested: {}", unasked.join(", ")));
    }
    parts.join("; ")
}

/// True for platforms that may give a refresh token with the first consent only: a later login keeps the
/// stored one. A login by password makes a session with tokens of its own, at a server that the user names;
/// that server must never receive a token of an earlier one.
fn gives_refresh_token_once(platform: &str) -> bool {
    platforms::get(platform).is_some_and(|platform| platform.auth.oauth().is_some())
}

/// Owner, app and grant digest shared by the accounts of one login.
struct LoginContext {
    owner: Owner,
    platform: String,
    network: Option<NetworkId>,
    tenant_id: Option<String>,
    /// Digest of the login, if it covers several accounts.
    shared: Option<Digest>,
    /// Who began the login.
    begun: Begun,
    /// Who finishes it.
    by: Actor,
}

impl LoginContext {
    /// Returns true if an account has the end tenant that the login is to connect it for. An account keeps its tenant if
    /// the login names none; one without a tenant is not given away by a caller who is limited to one.
    fn is_meant(&self, connected: &Connected) -> bool {
        let has_tenant = connected.account.tenant_id == self.tenant_id;
        match self.begun.is_limited {
            true => has_tenant && !connected.is_assigned,
            false => has_tenant || self.tenant_id.is_none(),
        }
    }
}

/// Grants of a login that waits for the user's choice.
#[derive(Serialize, Deserialize)]
struct Grants {
    /// Grant of the login itself.
    login: Grant,
    /// Grants of the accounts that have one of their own, by the platform's id.
    own: BTreeMap<String, Grant>,
}

impl Connecting {
    /// Moves the account that a login was to connect again to the login's end tenant: to name the account is to wish it.
    async fn move_account(
        &self,
        tx: &mut store::Connection,
        context: &LoginContext,
        account: Option<AccountId>,
    ) -> store::Result<()> {
        let (Some(account), Some(to)) = (account, &context.tenant_id) else { return Ok(()) };
        let tenants = (context.begun.account_tenant.as_deref(), to.as_str());
        let now = (self.deps.engine.now)();
        connect::move_to_tenant(tx, context.owner, account, tenants, &context.by, now).await
    }

    /// Connects one account. Returns `None` when it belongs to another end tenant: the transaction must not be
    /// committed then.
    async fn connect_account(
        &self,
        tx: &mut store::Connection,
        context: &LoginContext,
        profile: AccountProfile,
        mut grant: Grant,
    ) -> anyhow::Result<Option<ConnectedAccount>> {
        let LoginContext { owner, platform, network, tenant_id, .. } = context;
        if grant.refresh_token().is_none() && gives_refresh_token_once(platform) {
            let held = connect::previous_grant(tx, *owner, platform, &profile.network_unique_id).await?;
            if let Some(held) = held.filter(|held| held.network == *network)
                // One that no key opens any more is no loss: it could not have been used either.
                && let Ok(opened) = self.deps.engine.opener.open(&held.sealed, &vault::aad_grant(*owner, held.account))
            {
                let before: Grant =
                    serde_json::from_slice(&opened).context("a grant reads back as written")?;
                grant.refresh_token = before.refresh_token;
                grant.ends_at = before.ends_at;
            }
        }
        let connect = Connect {
            platform: platform.clone(),
            profile,
            tenant_id: tenant_id.clone(),
            social_network_id: network.map(|network| network.0),
            scopes: grant.scopes.clone(),
            token_expires_at: grant.expires_at,
            grant_expires_at: grant.ends_at,
        };
        let plain = serde_json::to_vec(&grant).expect("a grant is plain data");
        let seal = |id| self.deps.engine.sealer.seal(&plain, &vault::aad_grant(*owner, id));
        let login = Login { shared: context.shared, by: &context.by, begun_with: context.begun.with };
        let connected = connect::connect(tx, *owner, connect, &login, seal, (self.deps.engine.now)()).await?;
        if !context.is_meant(&connected) {
            return Ok(None);
        }
        let id = connected.account.id;
        info!(account.id = %id, platform, org.id = %owner.org, "Connected account {id} of {platform}");
        Ok(Some(ConnectedAccount { account: id, is_new: connected.is_new }))
    }

    /// Stores what a login covers until the user chooses.
    async fn store_pending(
        &self,
        digest: Digest,
        context: &LoginContext,
        intent: AuthorizationRequest,
        login: Grant,
        identities: Vec<Identity>,
    ) -> anyhow::Result<()> {
        let own = identities.iter().filter_map(|identity| {
            let grant = identity.grant.clone()?;
            Some((identity.profile.network_unique_id.clone(), grant))
        });
        let grants = Grants { login, own: own.collect() };
        let plain = serde_json::to_vec(&grants).expect("a grant is plain data");
        let sealed = self.deps.engine.sealer.seal(&plain, &vault::aad_pending(context.owner, digest));
        let now = (self.deps.engine.now)();
        let pending = Pending {
            owner: context.owner,
            platform: context.platform.clone(),
            network: context.network,
            tenant_id: context.tenant_id.clone(),
            redirect_uri: intent.redirect_uri,
            offers: identities
                .into_iter()
                .map(|identity| self.shown_profile(context, identity.profile))
                .collect(),
            selection: None,
            confirm: intent.confirm,
            account: intent.account,
            begun: intent.begun,
            expires_at: now + SELECTION_TTL,
        };
        Ok(pending_logins::store(&self.deps.engine.db, digest, &pending, &sealed, now).await?)
    }

    /// Connects the chosen accounts, all of them or none.
    async fn finalize(&self, selection: &LoginSelection) -> anyhow::Result<SelectionResult> {
        let digest: Digest = selection.token_digest.parse().context("a digest reads back as written")?;
        let owner = selection.owner;
        let mut tx = store::begin(&self.deps.engine.db).await?;
        let Some(locked) = pending_logins::lock(&mut tx, owner, digest, (self.deps.engine.now)()).await?
        else {
            return Ok(SelectionResult::Gone);
        };
        let pending = locked.pending;
        if let Some(made) = pending.selection {
            return Ok(match made.is_same(&selection.ids) {
                true => SelectionResult::Repeated { accounts: made.accounts },
                false => SelectionResult::Other,
            });
        }
        let sealed = locked.grants_sealed.context("grants are kept until the choice is made")?;
        let opened = self.deps.engine.opener.open(&sealed, &vault::aad_pending(owner, digest))?;
        let grants: Grants = serde_json::from_slice(&opened).context("grants read back as written")?;
        let mut context = LoginContext {
            owner,
            platform: pending.platform,
            network: pending.network,
            tenant_id: pending.tenant_id,
            shared: None,
            begun: pending.begun,
            by: selection.by.clone(),
        };
        if let Some(quota) = quota_exceeded(&mut tx, &context, &selection.ids, selection.limit).await? {
            return Ok(SelectionResult::Full(quota));
        }
        self.move_account(&mut tx, &context, pending.account).await?;
        let mut offers: HashMap<_, _> =
            pending.offers.into_iter().map(|offer| (offer.network_unique_id.clone(), offer)).collect();
        // In an order of its own: two choices of the same accounts must not wait for each other.
        let mut ids = selection.ids.clone();
        ids.sort_unstable();
        let mut accounts: HashMap<String, AccountId> = HashMap::new();
        for id in ids {
            let Some(offer) = offers.remove(&id) else { return Ok(SelectionResult::Gone) };
            let own = grants.own.get(&id);
            context.shared = own.is_none().then_some(digest);
            let grant = own.unwrap_or(&grants.login).clone();
            let Some(connected) = self.connect_account(&mut tx, &context, offer, grant).await? else {
                return Ok(SelectionResult::OtherTenant { id });
            };
            accounts.insert(id, connected.account);
        }
        let accounts: Vec<_> = selection.ids.iter().filter_map(|id| accounts.get(id).copied()).collect();
        let made = Selection { chosen: selection.ids.clone(), accounts };
        pending_logins::settle(&mut tx, owner, digest, &made).await?;
        tx.commit().await?;
        Ok(SelectionResult::Connected { accounts: made.accounts })
    }
}

/// Returns the quota of accounts if the plan has no room for `ids`.
async fn quota_exceeded(
    tx: &mut store::Connection,
    context: &LoginContext,
    ids: &[String],
    limit: Option<u64>,
) -> store::Result<Option<AccountQuota>> {
    let Some(limit) = limit else { return Ok(None) };
    let full = connect::quota_exceeded(tx, context.owner, &context.platform, ids, limit).await?;
    Ok(full.map(|full| AccountQuota { limit: full.limit, used: full.used }))
}

impl Connecting {
    /// The profile as it is stored. In test mode its link leads to the sandbox: the real platform's page of this name
    /// is a stranger's.
    fn shown_profile(&self, context: &LoginContext, profile: AccountProfile) -> AccountProfile {
        let mut profile = bounded_profile(profile);
        if let Ok((_, transport)) = self.deps.engine.connect(context.owner, &context.platform) {
            profile.profile_url = profile.profile_url.map(|url| transport.rewrite_url(&url));
        }
        profile
    }
}

/// The part of a profile that is stored and shown. Postgres stores no U+0000.
fn bounded_profile(profile: AccountProfile) -> AccountProfile {
    let clean = |text: String| text.replace('\0', "");
    // Any server may answer here: names and addresses are bounded.
    let name = |text: String| clean(text).chars().take(MAX_NAME_CHARS).collect();
    let link = |text: String| {
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        (is_web && text.len() <= MAX_URL_BYTES).then(|| clean(text))
    };
    AccountProfile {
        network_unique_id: clean(profile.network_unique_id),
        username: name(profile.username),
        display_name: name(profile.display_name),
        account_type: profile.account_type,
        profile_image_url: profile.profile_image_url.and_then(link),
        profile_url: profile.profile_url.and_then(link),
    }
}

fn refuse(error: LoginError, detail: impl Into<String>) -> CallbackResult {
    CallbackResult::Refused { error, detail: detail.into() }
}

fn late() -> String {
    format!("the platform did not answer within {} s", worker_request::LOGIN_TIMEOUT.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_scope_was_declined_or_not_requested() {
        let asked = ["a".to_owned(), "b".to_owned()];
        assert_eq!(not_granted(&["a"], &asked), "not granted: a");
        assert_eq!(not_granted(&["c", "a"], &asked), "not granted: a; not requested: c");
    }

    #[test]
    fn no_refresh_token_outlives_a_login_by_password() {
        for platform in platforms::all() {
            let is_oauth = platform.auth.oauth().is_some();
            assert_eq!(gives_refresh_token_once(platform.id), is_oauth, "{}", platform.id);
        }
    }

    #[test]
    fn what_a_server_says_of_an_account_is_bounded() {
        let of = |image: &str, name: &str| {
            bounded_profile(AccountProfile {
                network_unique_id: "did:plc:a".into(),
                username: name.into(),
                display_name: name.into(),
                account_type: "profile".into(),
                profile_image_url: Some(image.into()),
                profile_url: Some("javascript:alert(1)".into()),
            })
        };
        let found = of("https://example.com/a.jpg", &"é\0".repeat(1_000));
        assert_eq!(
            (found.username.as_str(), &found.display_name),
            ("é".repeat(MAX_NAME_CHARS).as_str(), &found.username)
        );
        assert_eq!(
            (found.profile_image_url.as_deref(), found.profile_url),
            (Some("https://example.com/a.jpg"), None)
        );
        for image in [
            "javascript:alert(1)".to_owned(),
            "data:text/html,a".into(),
            format!("https://a/{}", "a".repeat(MAX_URL_BYTES)),
        ] {
            assert_eq!(of(&image, "a").profile_image_url, None, "{image}");
        }
    }
}
