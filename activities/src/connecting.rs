//! Connecting accounts: what somebody brings to a login becomes accounts, or a choice among them.
//!
//! What he brings (a code, a password) comes sealed, and what it is exchanged for is sealed again before
//! it is kept, so that no history holds either. The calls are made once: a code is good once, and wrong
//! passwords are counted. Only reading what the login covers is tried again.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    grants::{self, Unkept},
    media,
    share::Shares,
};
use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, ErrorCode, Failure, LoginError, NetworkId, Owner};
use platforms::{App, AppPassword, Code, Connection, Grant, Identity, Platform, Session, Wire};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    slice,
    sync::Arc,
    time::Duration,
};
use store::{
    accounts::Connect,
    connect,
    pending::{self, Digest, Made, Offer, Pending},
    states::{self, Intent},
    vault,
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

/// How long somebody may take to choose.
const CHOOSING: TimeDelta = TimeDelta::minutes(30);
/// How often it is asked what a login covers, and the pause in between.
const LOOKS: (u32, Duration) = (3, Duration::from_millis(500));

/// The longest name that is kept, in characters.
const NAME: usize = 500;
/// The longest address that is kept, in bytes.
const LINK: usize = 4096;

/// Who speaks before it is known for which account.
static NOBODY: platforms::Account = platforms::Account {
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
    pub(crate) async fn authorize(
        self: Arc<Self>,
        _cx: ActivityContext,
        back: OAuthCallback,
    ) -> Result<CallbackResult, ActivityError> {
        let (deps, owner) = (&self.deps, back.owner);
        let Some(intent) = states::get(&deps.db, owner, back.authorization).await? else {
            return Ok(refuse(LoginError::StateExpired, "nothing is known of this authorization any more"));
        };
        let code: Code = deps.unseal(&back.sealed, owner, &intent.platform)?;
        let door = match Door::open(deps, owner, &intent.platform, intent.network).await? {
            Ok(door) => door,
            Err(failure) => return Ok(refuse(LoginError::ExchangeFailed, failure.message)),
        };
        let talk = tokio::time::timeout(worker_request::LOGIN_TIMEOUT, door.admit(&intent, &code)).await;
        let admitted = talk.unwrap_or_else(|_| Err((LoginError::ExchangeFailed, late())));
        let (grant, mut covered) = match admitted {
            Ok(admitted) => admitted,
            Err((error, detail)) => {
                info!(platform = back.platform, %error, "A login connected nothing: {detail}");
                return Ok(refuse(error, detail));
            }
        };
        let bond = Bond {
            owner,
            platform: intent.platform,
            network: intent.network,
            tenant_id: intent.tenant_id,
            shared: None,
        };
        if covered.len() > 1 {
            let digest = back.token_digest.parse().context("a digest reads back as written")?;
            deps.keep(digest, &bond, intent.redirect_uri, grant, covered).await?;
            return Ok(CallbackResult::Choice);
        }
        let only = covered.pop().context("an admitted login covers something")?;
        let own = only.grant.clone().unwrap_or(grant);
        let only = offer(only);
        let mut tx = deps.db.begin().await?;
        if let Some(room) = full(&mut tx, &bond, slice::from_ref(&only.network_unique_id), back.limit).await?
        {
            let detail = format!("the {} accounts of the plan are all connected", room.limit);
            return Ok(refuse(LoginError::QuotaExceeded, detail));
        }
        // To name the account is to wish that it changes its end tenant.
        if let (Some(account), Some(tenant)) = (intent.account, &bond.tenant_id) {
            connect::hand_over(&mut tx, owner, account, tenant).await?;
        }
        let Some(joined) = deps.join(&mut tx, &bond, only, own).await? else {
            return Ok(refuse(LoginError::WrongAccount, "the account belongs to another tenant"));
        };
        tx.commit().await?;
        Ok(CallbackResult::Connected { account: joined.account })
    }

    #[activity(definition = definition::SignIn)]
    pub(crate) async fn sign_in(
        self: Arc<Self>,
        _cx: ActivityContext,
        sign_in: PasswordLogin,
    ) -> Result<LoginResult, ActivityError> {
        let (deps, owner) = (&self.deps, sign_in.owner);
        let _share = self.shares.admit(owner.org)?;
        let password: AppPassword = deps.unseal(&sign_in.sealed, owner, &sign_in.platform)?;
        let door = match Door::open(deps, owner, &sign_in.platform, None).await? {
            Ok(door) => door,
            Err(failure) => return Ok(LoginResult::Refused(failure)),
        };
        let talk = tokio::time::timeout(worker_request::LOGIN_TIMEOUT, door.welcome(&password)).await;
        let (grant, only) = match talk.unwrap_or_else(|_| Err(Failure::network(late(), false))) {
            Ok(welcome) => welcome,
            Err(failure) => return Ok(LoginResult::Refused(failure)),
        };
        let bond = Bond {
            owner,
            platform: sign_in.platform,
            network: None,
            tenant_id: sign_in.tenant_id,
            shared: None,
        };
        let only = offer(only);
        let mut tx = deps.db.begin().await?;
        if let Some(room) =
            full(&mut tx, &bond, slice::from_ref(&only.network_unique_id), sign_in.limit).await?
        {
            return Ok(LoginResult::Full(room));
        }
        let Some(joined) = deps.join(&mut tx, &bond, only, grant).await? else {
            return Ok(LoginResult::OtherTenant);
        };
        tx.commit().await?;
        Ok(LoginResult::Connected(joined))
    }

    #[activity(definition = definition::FinalizeLogin)]
    pub(crate) async fn finalize(
        self: Arc<Self>,
        _cx: ActivityContext,
        selection: LoginSelection,
    ) -> Result<SelectionResult, ActivityError> {
        Ok(self.deps.choose(&selection).await?)
    }
}

/// A platform's door, before any account is known.
struct Door<'a> {
    platform: &'static dyn Platform,
    wire: Cow<'a, Wire>,
    app: Option<App>,
    now: fn() -> DateTime<Utc>,
}

impl<'a> Door<'a> {
    /// The door of a platform, for the users of an app.
    async fn open(
        deps: &'a Deps,
        owner: Owner,
        platform: &str,
        network: Option<NetworkId>,
    ) -> anyhow::Result<Result<Self, Failure>> {
        let Some(platform) = platforms::get(platform) else {
            return Ok(Err(Failure::rejected(501, format!("{platform} is not supported"))));
        };
        let Some(wire) = deps.wires.of(owner) else {
            return Ok(Err(Failure::rejected(501, "this installation runs no sandbox for test mode")));
        };
        let app = grants::app(deps, owner, platform.id(), network).await?;
        Ok(Ok(Self { platform, wire, app, now: deps.now }))
    }

    fn session(&'a self, grant: &'a Grant) -> Session<'a> {
        Session {
            platform: self.platform,
            account: &NOBODY,
            grant,
            app: self.app.as_ref(),
            now: self.now,
            wire: &self.wire,
            checkpoints: &Unkept,
            media: Arc::new(media::NoMedia),
        }
    }

    /// What a code is worth: a grant, and what of it is to be connected.
    async fn admit(
        &self,
        intent: &Intent,
        code: &Code,
    ) -> Result<(Grant, Vec<Identity>), (LoginError, String)> {
        let failed = |failure: Failure| (LoginError::ExchangeFailed, failure.message);
        // A platform that names no scopes granted those that it was asked for.
        let asked = Grant {
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scopes: intent.scopes.clone(),
            extra: serde_json::Value::Null,
        };
        let grant = self.platform.exchange(&self.session(&asked), code).await.map_err(failed)?;
        let missing = missing(self.platform.connection(), &grant.scopes);
        if !missing.is_empty() {
            return Err((LoginError::InsufficientScope, format!("not granted: {}", missing.join(", "))));
        }
        let mut covered = self.covered(&grant).await.map_err(failed)?;
        if covered.is_empty() {
            let detail = format!("the login covers nothing on {} that can be posted to", self.platform.id());
            return Err((LoginError::NoPages, detail));
        }
        if let Some(expected) = &intent.network_unique_id {
            covered.retain(|identity| identity.network_unique_id == *expected);
            if covered.is_empty() {
                let detail = format!("the login does not cover {expected}, which was to be connected");
                return Err((LoginError::WrongAccount, detail));
            }
        }
        Ok((grant, covered))
    }

    /// What a password is worth: a grant and its account.
    async fn welcome(&self, password: &AppPassword) -> Result<(Grant, Identity), Failure> {
        let grant = self.platform.refresh(&self.session(&password.grant())).await?;
        let only = self.covered(&grant).await?.into_iter().next();
        let only = only.ok_or_else(|| Failure::rejected(404, "the login has no account"))?;
        Ok((grant, only))
    }

    /// What a grant covers, each once. A bad moment here would cost the login.
    async fn covered(&self, grant: &Grant) -> Result<Vec<Identity>, Failure> {
        let (most, pause) = LOOKS;
        for look in 1.. {
            match self.platform.identities(&self.session(grant)).await {
                Ok(mut covered) => {
                    let mut seen = HashSet::new();
                    covered.retain(|identity| seen.insert(identity.network_unique_id.clone()));
                    return Ok(covered);
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

/// The scopes that publishing needs and that are not among those granted.
fn missing(connection: &Connection, granted: &[String]) -> Vec<&'static str> {
    match connection {
        Connection::OAuth2 { scopes, .. } => {
            scopes.iter().copied().filter(|needed| !granted.iter().any(|scope| scope == needed)).collect()
        }
        Connection::AppPassword { .. } => Vec::new(),
    }
}

/// True for platforms that may give a refresh token with the first consent only: a later login keeps the
/// stored one. A login by password makes a session with tokens of its own, at a server that the user names;
/// that server must never receive a token of an earlier one.
fn gives_refresh_token_once(platform: &str) -> bool {
    let connection = platforms::get(platform).map(Platform::connection);
    matches!(connection, Some(Connection::OAuth2 { .. }))
}

/// What accounts of one login have in common.
struct Bond {
    owner: Owner,
    platform: String,
    network: Option<NetworkId>,
    tenant_id: Option<String>,
    /// The login, where it covers several.
    shared: Option<Digest>,
}

/// What a login that waits for a choice was granted.
#[derive(Serialize, Deserialize)]
struct Grants {
    /// To the login itself.
    login: Grant,
    /// To what it covers, by the platform's id, where that has a grant of its own.
    own: BTreeMap<String, Grant>,
}

impl Deps {
    /// What came sealed for a login.
    fn unseal<T: DeserializeOwned>(&self, sealed: &str, owner: Owner, platform: &str) -> anyhow::Result<T> {
        let sealed = BASE64_STANDARD.decode(sealed).context("what is sealed is base64")?;
        let opened = self.opener.open(&sealed, &vault::aad_login(owner, platform))?;
        serde_json::from_slice(&opened).map_err(|_| anyhow::anyhow!("what was sealed does not read back"))
    }

    /// Connects one account; `None` when it belongs to another end tenant than the one that is named. Then
    /// the transaction is not to be committed.
    async fn join(
        &self,
        tx: &mut store::Connection,
        bond: &Bond,
        offer: Offer,
        mut grant: Grant,
    ) -> anyhow::Result<Option<ConnectedAccount>> {
        let Bond { owner, platform, network, tenant_id, shared } = bond;
        if grant.refresh_token.as_deref().is_none_or(str::is_empty) && gives_refresh_token_once(platform) {
            let held = connect::held(tx, *owner, platform, &offer.network_unique_id).await?;
            if let Some(held) = held.filter(|held| held.network == *network)
                // One that no key opens any more is no loss: it could not have been used either.
                && let Ok(opened) = self.opener.open(&held.sealed, &vault::aad_grant(*owner, held.account))
            {
                let before: Grant =
                    serde_json::from_slice(&opened).context("a grant reads back as written")?;
                grant.refresh_token = before.refresh_token;
            }
        }
        let connect = Connect {
            platform: platform.clone(),
            network_unique_id: offer.network_unique_id,
            username: offer.username,
            display_name: offer.display_name,
            account_type: offer.account_type,
            profile_image_url: offer.profile_image_url,
            profile_url: offer.profile_url,
            tenant_id: tenant_id.clone(),
            social_network_id: network.map(|network| network.0),
            scopes: grant.scopes.clone(),
            token_expires_at: grant.expires_at,
        };
        let plain = serde_json::to_vec(&grant).expect("a grant is plain data");
        let seal = |id| self.sealer.seal(&plain, &vault::aad_grant(*owner, id));
        let connected = connect::join(tx, *owner, connect, *shared, seal, (self.now)()).await?;
        if tenant_id.is_some() && connected.account.tenant_id != *tenant_id {
            return Ok(None);
        }
        let id = connected.account.id;
        info!(account.id = %id, platform, org.id = %owner.org, "Connected account {id} of {platform}");
        Ok(Some(ConnectedAccount { account: id, is_new: connected.is_new }))
    }

    /// Keeps what a login covers until somebody chooses.
    async fn keep(
        &self,
        digest: Digest,
        bond: &Bond,
        redirect_uri: Option<String>,
        login: Grant,
        covered: Vec<Identity>,
    ) -> anyhow::Result<()> {
        let own = covered.iter().filter_map(|identity| {
            let grant = identity.grant.clone()?;
            Some((identity.network_unique_id.clone(), grant))
        });
        let grants = Grants { login, own: own.collect() };
        let plain = serde_json::to_vec(&grants).expect("a grant is plain data");
        let sealed = self.sealer.seal(&plain, &vault::aad_pending(bond.owner, digest));
        let now = (self.now)();
        let pending = Pending {
            owner: bond.owner,
            platform: bond.platform.clone(),
            network: bond.network,
            tenant_id: bond.tenant_id.clone(),
            redirect_uri,
            offers: covered.into_iter().map(offer).collect(),
            made: None,
            expires_at: now + CHOOSING,
        };
        Ok(pending::keep(&self.db, digest, &pending, &sealed, now).await?)
    }

    /// Connects what was chosen, all of it or nothing.
    async fn choose(&self, selection: &LoginSelection) -> anyhow::Result<SelectionResult> {
        let digest: Digest = selection.token_digest.parse().context("a digest reads back as written")?;
        let owner = selection.owner;
        let mut tx = self.db.begin().await?;
        let Some(locked) = pending::lock(&mut tx, owner, digest, (self.now)()).await? else {
            return Ok(SelectionResult::Gone);
        };
        let pending = locked.pending;
        if let Some(made) = pending.made {
            return Ok(match made.is_of(&selection.ids) {
                true => SelectionResult::Repeated { accounts: made.accounts },
                false => SelectionResult::Other,
            });
        }
        let sealed = locked.grants_sealed.context("grants are kept until the choice is made")?;
        let opened = self.opener.open(&sealed, &vault::aad_pending(owner, digest))?;
        let grants: Grants = serde_json::from_slice(&opened).context("grants read back as written")?;
        let mut bond = Bond {
            owner,
            platform: pending.platform,
            network: pending.network,
            tenant_id: pending.tenant_id,
            shared: None,
        };
        if let Some(room) = full(&mut tx, &bond, &selection.ids, selection.limit).await? {
            return Ok(SelectionResult::Full(room));
        }
        let mut offers: HashMap<_, _> =
            pending.offers.into_iter().map(|offer| (offer.network_unique_id.clone(), offer)).collect();
        // In an order of its own: two choices of the same accounts must not wait for each other.
        let mut ids = selection.ids.clone();
        ids.sort_unstable();
        let mut joined: HashMap<String, AccountId> = HashMap::new();
        for id in ids {
            let Some(offer) = offers.remove(&id) else { return Ok(SelectionResult::Gone) };
            let own = grants.own.get(&id);
            bond.shared = own.is_none().then_some(digest);
            let grant = own.unwrap_or(&grants.login).clone();
            let Some(connected) = self.join(&mut tx, &bond, offer, grant).await? else {
                return Ok(SelectionResult::OtherTenant { id });
            };
            joined.insert(id, connected.account);
        }
        let accounts: Vec<_> = selection.ids.iter().filter_map(|id| joined.get(id).copied()).collect();
        let made = Made { chosen: selection.ids.clone(), accounts };
        pending::settle(&mut tx, owner, digest, &made).await?;
        tx.commit().await?;
        Ok(SelectionResult::Connected { accounts: made.accounts })
    }
}

/// Whether the owner may not have so many accounts more.
async fn full(
    tx: &mut store::Connection,
    bond: &Bond,
    ids: &[String],
    limit: Option<u64>,
) -> store::Result<Option<AccountQuota>> {
    let Some(limit) = limit else { return Ok(None) };
    let full = connect::full(tx, bond.owner, &bond.platform, ids, limit).await?;
    Ok(full.map(|full| AccountQuota { limit: full.limit, used: full.used }))
}

/// What can be kept of an identity, and shown. Postgres takes no U+0000.
fn offer(identity: Identity) -> Offer {
    let clean = |text: String| text.replace('\0', "");
    // Names are for people, and addresses for their browsers: a server may say anything.
    let name = |text: String| clean(text).chars().take(NAME).collect();
    let link = |text: String| {
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        (is_web && text.len() <= LINK).then(|| clean(text))
    };
    Offer {
        network_unique_id: clean(identity.network_unique_id),
        username: name(identity.username),
        display_name: name(identity.display_name),
        account_type: identity.account_type,
        profile_image_url: identity.profile_image_url.and_then(link),
        profile_url: identity.profile_url.and_then(link),
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
    fn what_publishing_needs_is_missed() {
        let x = platforms::get("x").unwrap().connection();
        let granted = |scopes: &[&str]| -> Vec<String> { scopes.iter().map(ToString::to_string).collect() };
        let all = ["offline.access", "media.write", "users.read", "tweet.write", "tweet.read", "like.read"];
        assert!(missing(x, &granted(&all)).is_empty());
        assert_eq!(missing(x, &granted(&all[2..])), ["media.write", "offline.access"]);
        assert!(missing(platforms::get("bluesky").unwrap().connection(), &[]).is_empty());
    }

    #[test]
    fn no_refresh_token_outlives_a_login_by_password() {
        for platform in platforms::all() {
            let is_oauth = matches!(platform.connection(), Connection::OAuth2 { .. });
            assert_eq!(gives_refresh_token_once(platform.id()), is_oauth, "{}", platform.id());
        }
    }

    #[test]
    fn what_a_server_says_of_an_account_is_bounded() {
        let of = |image: &str, name: &str| {
            offer(Identity {
                network_unique_id: "did:plc:a".into(),
                username: name.into(),
                display_name: name.into(),
                account_type: "profile".into(),
                profile_image_url: Some(image.into()),
                profile_url: Some("javascript:alert(1)".into()),
                grant: None,
            })
        };
        let found = of("https://example.com/a.jpg", &"é\0".repeat(1_000));
        assert_eq!(
            (found.username.as_str(), &found.display_name),
            ("é".repeat(NAME).as_str(), &found.username)
        );
        assert_eq!(
            (found.profile_image_url.as_deref(), found.profile_url),
            (Some("https://example.com/a.jpg"), None)
        );
        for image in [
            "javascript:alert(1)".to_owned(),
            "data:text/html,a".into(),
            format!("https://a/{}", "a".repeat(LINK)),
        ] {
            assert_eq!(of(&image, "a").profile_image_url, None, "{image}");
        }
    }
}
