//! Configuration of the OpenID provider at which people sign in to the dashboard.

use activities::openid::Provider;
use anyhow::Context;
use clap::Args;
use url::Url;

/// The OpenID provider, for API and workers.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OpenId {
    /// Issuer of the OpenID provider at which people sign in to the dashboard, for API and workers; register
    /// {base URL without /api/v1}/dashboard/sign-in/openid/callback as the redirect URI there
    #[arg(long, env = "FANFARE_OIDC_ISSUER")]
    pub(crate) oidc_issuer: Option<Url>,
    /// Name of the OpenID provider on the sign-in page; its host by default
    #[arg(long, env = "FANFARE_OIDC_NAME")]
    pub(crate) oidc_name: Option<String>,
}

/// The OpenID provider's client, for workers.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OpenIdClient {
    /// Client id at the OpenID provider, for workers
    #[arg(long, env = "FANFARE_OIDC_CLIENT_ID")]
    pub(crate) oidc_client_id: Option<String>,
    /// Client secret at the OpenID provider, for workers
    #[arg(long, env = "FANFARE_OIDC_CLIENT_SECRET", hide_env_values = true)]
    pub(crate) oidc_client_secret: Option<String>,
    /// The issuer, which the settings of both API and workers have.
    #[arg(skip)]
    pub(crate) issuer: Option<Url>,
}

impl OpenId {
    /// Returns the name on the sign-in page; `None` without a provider.
    pub(crate) fn name(&self) -> Option<String> {
        let issuer = self.oidc_issuer.as_ref()?;
        Some(self.oidc_name.clone().unwrap_or_else(|| issuer.host_str().unwrap_or("OpenID").to_owned()))
    }
}

impl OpenIdClient {
    /// Returns the provider; `None` without one.
    ///
    /// # Errors
    ///
    /// If the client is not configured.
    pub(crate) fn provider(&self) -> anyhow::Result<Option<Provider>> {
        let Some(issuer) = self.issuer.clone() else { return Ok(None) };
        let missing =
            "FANFARE_OIDC_ISSUER needs FANFARE_OIDC_CLIENT_ID and FANFARE_OIDC_CLIENT_SECRET at the workers";
        Ok(Some(Provider {
            issuer,
            client_id: self.oidc_client_id.clone().context(missing)?,
            client_secret: self.oidc_client_secret.clone().context(missing)?,
        }))
    }
}
