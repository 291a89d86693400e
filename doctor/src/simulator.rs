//! The simulator that a walk is compared with.

use crate::walk::{Login, LoginKind};
use anyhow::{Context, bail};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use platforms::{Adapter, AppPassword, Code, Grant, Transport, authorization};
use sandbox::{AppStatus, Connected, Options, Sandbox};
use std::{collections::BTreeMap, net::TcpListener};
use tokio::sync::oneshot;
use url::Url;

/// Address that a login at the simulator leads back to; nothing is called there.
const REDIRECT: &str = "https://doctor.invalid/callback";

/// A simulator on a port of this machine, with one account. Stopped on drop.
pub struct Simulator {
    /// The account with its grant and app.
    pub connected: Connected,
    platform: &'static Adapter,
    sandbox: Sandbox,
    url: Url,
    _stop: oneshot::Sender<()>,
}

impl Simulator {
    /// Starts the simulator of a platform for apps with this standing.
    ///
    /// # Errors
    ///
    /// When no port is free.
    pub fn start(
        platform: &'static Adapter,
        app: AppStatus,
        now: fn() -> DateTime<Utc>,
    ) -> anyhow::Result<Self> {
        let sandbox = Sandbox::open(Options { data: None, clock: now, app })?;
        sandbox.configure(|settings| {
            (settings.processing_ms, settings.lag_ms, settings.renew_after_ms) = (0, 0, 0);
        })?;
        // TikTok publishes for an app without an audit on private accounts only.
        let is_private = platform.id == "tiktok" && app == AppStatus::New;
        let username = if is_private { "private.doctor" } else { "doctor" };
        let connected = sandbox.connect(platform.id, username)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("no port is free for the simulator")?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(sandbox::serve(sandbox.clone(), listener, async {
            // It ends as well when the sender is dropped.
            let _ = stopped.await;
        }));
        Ok(Self { connected, platform, sandbox, url, _stop: stop })
    }

    /// Returns a transport to it.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn transport(&self) -> anyhow::Result<Transport> {
        Ok(Transport::sandbox(self.url.clone())?)
    }

    /// Returns an address from which the simulator can fetch a file.
    ///
    /// # Errors
    ///
    /// When the file can't be kept.
    pub fn address(&self, bytes: Bytes) -> anyhow::Result<Url> {
        Ok(self.url.join(&self.sandbox.keep(bytes)?)?)
    }

    /// Returns a login of the same kind as one at the platform. An account of an app that gets no refresh token
    /// logs in with its grant.
    ///
    /// # Errors
    ///
    /// When the simulator refuses the login.
    pub async fn login(&self, kind: LoginKind) -> anyhow::Result<Login> {
        let grant = self.connected.grant.clone();
        Ok(match kind {
            LoginKind::Code => Login::Code(self.consent().await?),
            LoginKind::Password => Login::Password(AppPassword { service: None, ..password(&grant)? }),
            LoginKind::PasswordAtService => Login::Password(password(&grant)?),
            LoginKind::Refresh if grant.refresh_token().is_some() || self.platform.auth.oauth().is_none() => {
                Login::Refresh(grant)
            }
            LoginKind::Refresh | LoginKind::Grant => Login::Grant(grant),
        })
    }

    /// Consents to a login as the account's owner would in a browser.
    async fn consent(&self) -> anyhow::Result<Code> {
        let app = self.connected.app.as_ref().context("the platform has no apps")?;
        let verifier = "a verifier of the simulator, of at least forty-three characters";
        // As a login of Fanfare asks: an app has not every scope that a simulated grant has.
        let usual = self.platform.auth.oauth().context("the platform has no OAuth")?.scopes;
        let scopes: Vec<String> = usual.iter().map(|scope| (*scope).to_owned()).collect();
        let asked = authorization::Authorization {
            client_id: &app.client_id,
            redirect_uri: REDIRECT,
            scopes: &scopes,
            parameters: &BTreeMap::new(),
            state: "state",
            verifier,
            is_forced: false,
        };
        let address = authorization::address(self.platform, &asked).context("the platform has no OAuth")?;
        let address = Url::parse(&self.transport()?.rewrite_url(&address))?;
        let mut form: Vec<(String, String)> = address.query_pairs().into_owned().collect();
        let username = self.connected.identity.profile.username.clone();
        form.extend([("username".to_owned(), username), ("decision".to_owned(), "allow".to_owned())]);
        let answer = egress::unfiltered().build()?.post(address).form(&form).send().await?;
        let back = answer.headers().get("location").and_then(|location| location.to_str().ok());
        let Some(back) = back else { bail!("the simulator answered a login with {}", answer.status()) };
        let brought: BTreeMap<_, _> = Url::parse(back)?.query_pairs().into_owned().collect();
        let code =
            brought.get("code").with_context(|| format!("the simulator refused a login: {brought:?}"))?;
        Ok(Code {
            code: code.clone(),
            redirect_uri: REDIRECT.to_owned(),
            verifier: Some(verifier.to_owned()),
        })
    }
}

/// Returns the app password that a grant was made with.
fn password(grant: &Grant) -> anyhow::Result<AppPassword> {
    serde_json::from_value(grant.extra.clone()).context("the grant was made with no app password")
}
