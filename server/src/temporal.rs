//! The connection to Temporal: address, TLS, API key, and the namespace with its search attributes.
//!
//! Settings have the names of Temporal's own tools (<https://docs.temporal.io/references/client-environment-configuration>).
//! Certificates and keys are read when a process connects, so a renewed one takes effect with a restart.
//!
//! A process tells a server that is away, which it waits for, from one that refuses it: a certificate that is not
//! trusted or an API key that is not accepted stays so until somebody changes the configuration.

use crate::secrets::Token;
use anyhow::{Context, anyhow};
use clap::Args;
use starter::status::shown;
use std::{error::Error, fmt, fs, io, str::FromStr, time::Duration};
use temporalio_client::{
    Client, ClientOptions, ClientTlsOptions, Connection, ConnectionOptions, GrpcCompression, TlsOptions,
    errors::ClientConnectError,
    grpc::WorkflowService,
    tonic::{Code, IntoRequest, Status},
};
use temporalio_common::protos::temporal::api::workflowservice::v1::CountWorkflowExecutionsRequest;
use tracing::warn;
use url::Url;
use workflows::attributes;

/// Address that is used if none is configured.
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7233";
/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Address of Temporal and proofs of identity.
#[derive(Args, Clone, Debug)]
pub(crate) struct Server {
    /// Address of Temporal, as host:port or URL; http://127.0.0.1:7233 by default. https:// uses TLS
    #[arg(long = "temporal-address", env = "TEMPORAL_ADDRESS", hide_env_values = true)]
    pub(crate) address: Option<ServerAddress>,
    /// Temporal namespace; in Temporal Cloud with the account's id, such as fanfare.a1b2c
    #[arg(long = "temporal-namespace", env = "TEMPORAL_NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) tls: Tls,
    /// API key, as Temporal Cloud issues them
    #[arg(long = "temporal-api-key", env = "TEMPORAL_API_KEY", hide_env_values = true, value_parser = api_key)]
    pub(crate) api_key: Option<Token>,
}

/// TLS to Temporal.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Tls {
    /// True to use TLS, false not to; by default if the address begins with https://, or if an API key or another
    /// setting of TLS is set
    #[arg(long = "temporal-tls", env = "TEMPORAL_TLS")]
    enabled: Option<Switch>,
    /// File with the CA certificates that the server's certificate is checked against, in PEM; those of the
    /// operating system by default
    #[arg(long = "temporal-tls-server-ca-cert-path", env = "TEMPORAL_TLS_SERVER_CA_CERT_PATH")]
    server_ca_cert: Option<String>,
    /// File with this client's certificate and its chain, in PEM
    #[arg(long = "temporal-tls-client-cert-path", env = "TEMPORAL_TLS_CLIENT_CERT_PATH")]
    client_cert: Option<String>,
    /// File with the private key of the client's certificate, in PEM
    #[arg(long = "temporal-tls-client-key-path", env = "TEMPORAL_TLS_CLIENT_KEY_PATH")]
    client_key: Option<String>,
    /// Name in the server's certificate, if it is not the host of the address
    #[arg(long = "temporal-tls-server-name", env = "TEMPORAL_TLS_SERVER_NAME")]
    server_name: Option<String>,
}

/// A setting that may be on, off, or left to the other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    Auto,
    On,
    Off,
}

impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "" => Ok(Self::Auto),
            "true" | "1" => Ok(Self::On),
            "false" | "0" => Ok(Self::Off),
            _ => Err("use `true` or `false`"),
        }
    }
}

/// Address of Temporal. Prints without path.
#[derive(Clone)]
pub(crate) struct ServerAddress {
    url: Url,
    has_scheme: bool,
}

impl FromStr for ServerAddress {
    type Err = &'static str;

    // Errors do not quote the text, which may hold a password.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected host:port, http://host:port or https://host:port";
        let given = Url::parse(text).ok().filter(Url::has_host);
        let has_scheme = given.is_some();
        let url = match given {
            Some(url) => url,
            None => {
                let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                let url = has_port.then(|| Url::parse(&format!("http://{text}")).ok()).flatten();
                url.ok_or(EXPECTED)?
            }
        };
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let names_nobody = url.username().is_empty() && url.password().is_none();
        let is_known = matches!(url.scheme(), "http" | "https");
        (is_bare && names_nobody && is_known).then_some(Self { url, has_scheme }).ok_or(EXPECTED)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.host_str().unwrap_or_default())?;
        self.url.port_or_known_default().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Accepts a key that can be sent in a header.
fn api_key(text: &str) -> Result<Token, &'static str> {
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_visible.then(|| Token(text.to_owned())).ok_or("an API key has no white space or control characters")
}

/// Reason why Temporal can't be used.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It may be over in a moment: the server starts, or the network is interrupted.
    Away(anyhow::Error),
    /// It stays until the configuration is changed.
    Refused(anyhow::Error),
}

impl Fault {
    /// Returns the error.
    pub(crate) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Away(error) | Self::Refused(error) => error,
        }
    }
}

/// State of the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// It exists and has every search attribute.
    Ready,
    /// It does not exist.
    Missing,
    /// It lacks search attributes.
    Incomplete,
    /// Temporal does not tell: this client may not search. Publishing needs no search.
    Unknown,
}

impl Server {
    /// A server on this machine.
    pub(crate) fn local(address: &str) -> anyhow::Result<Self> {
        let address = address.parse().map_err(anyhow::Error::msg)?;
        let namespace = "default".to_owned();
        Ok(Self { address: Some(address), namespace, tls: Tls::default(), api_key: None })
    }

    /// Returns the address.
    pub(crate) fn address(&self) -> ServerAddress {
        self.address.clone().unwrap_or_else(|| DEFAULT_ADDRESS.parse().expect("an address"))
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Client, Fault> {
        let options = self.options().map_err(Fault::Refused)?;
        let connection = Connection::connect(options).await.map_err(|error| self.explain(error))?;
        let client = Client::new(connection, ClientOptions::new(&self.namespace).build());
        client.map_err(|error| Fault::Refused(anyhow!("{error}")))
    }

    /// Finds out whether the namespace is prepared. Asks with a search for all attributes, which needs no more than
    /// the right to read, and which fails until the server that answers knows the namespace and all of them.
    pub(crate) async fn check(&self, client: &Client) -> Result<Namespace, Fault> {
        let attributes = attributes::ALL.map(|(name, _)| format!("{name} = 'none'"));
        let request = CountWorkflowExecutionsRequest {
            namespace: self.namespace.clone(),
            query: attributes.join(" and "),
        };
        let counted =
            WorkflowService::count_workflow_executions(&mut client.clone(), request.into_request()).await;
        match counted.map_err(|status| (status.code(), status)) {
            Ok(_) => Ok(Namespace::Ready),
            Err((Code::NotFound, _)) => Ok(Namespace::Missing),
            Err((Code::InvalidArgument, _)) => Ok(Namespace::Incomplete),
            Err((Code::Unauthenticated, status)) => Err(self.judge(&status)),
            // As while the server starts. Without search attributes it would refuse every workflow.
            Err((code, status)) if is_away(code) => {
                let reason = shown(&status);
                Err(Fault::Away(anyhow!("Temporal can't say whether its namespace is prepared: {reason}")))
            }
            Err((_, status)) => {
                warn!("The search attributes of Temporal's namespace can't be checked: {}", shown(&status));
                Ok(Namespace::Unknown)
            }
        }
    }

    /// Describes a namespace that is not prepared.
    pub(crate) fn unprepared(&self, state: Namespace) -> Option<String> {
        let what = match state {
            Namespace::Ready | Namespace::Unknown => return None,
            Namespace::Missing => "does not exist",
            Namespace::Incomplete => "lacks search attributes",
        };
        Some(format!("Temporal's namespace {} {what}: run `fanfare migrate`", self.namespace))
    }

    fn options(&self) -> anyhow::Result<ConnectionOptions> {
        let address = self.address();
        let tls = self.tls_options(&address)?;
        let mut target = address.url;
        if tls.is_some() {
            target.set_scheme("https").map_err(|()| anyhow!("TEMPORAL_ADDRESS is no web address"))?;
        }
        Ok(ConnectionOptions::new(target)
            .identity(identity())
            .connect_timeout(CONNECT_TIMEOUT)
            .metrics_meter(activities::meter::for_client())
            // Compression costs more time than a local network saves.
            .grpc_compression(GrpcCompression::None)
            .maybe_tls_options(tls)
            .maybe_api_key(self.api_key().map(str::to_owned))
            .build())
    }

    /// Returns the options of TLS; `None` for a connection in clear text.
    fn tls_options(&self, address: &ServerAddress) -> anyhow::Result<Option<TlsOptions>> {
        let Tls { enabled, server_ca_cert, client_cert, client_key, server_name } = &self.tls;
        let settings = [server_ca_cert, client_cert, client_key, server_name].map(|setting| set(setting));
        let is_meant = settings.iter().any(Option::is_some) || self.api_key().is_some();
        let is_https = address.url.scheme() == "https";
        let is_enabled = match enabled.unwrap_or(Switch::Auto) {
            Switch::Auto => is_https || is_meant,
            Switch::On => true,
            Switch::Off => false,
        };
        // The client would silently speak clear text to such an address, with the API key in it.
        anyhow::ensure!(
            !(is_enabled && address.has_scheme && !is_https),
            "TEMPORAL_ADDRESS begins with http://, but other settings ask for TLS: write https:// or set TEMPORAL_TLS to false"
        );
        anyhow::ensure!(
            is_enabled || !is_https,
            "TEMPORAL_ADDRESS begins with https://, but TEMPORAL_TLS is false"
        );
        if !is_enabled {
            return Ok(None);
        }
        let [ca, cert, key, name] = settings;
        let client = match (cert, key) {
            (Some(cert), Some(key)) => Some(
                ClientTlsOptions::builder()
                    .client_cert(read("TEMPORAL_TLS_CLIENT_CERT_PATH", cert)?)
                    .client_private_key(read("TEMPORAL_TLS_CLIENT_KEY_PATH", key)?)
                    .build(),
            ),
            (None, None) => None,
            _ => anyhow::bail!(
                "a client certificate needs both TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"
            ),
        };
        let ca = ca.map(|path| read("TEMPORAL_TLS_SERVER_CA_CERT_PATH", path)).transpose()?;
        let options = TlsOptions::builder()
            .maybe_server_root_ca_cert(ca)
            .maybe_domain(name.map(str::to_owned))
            .maybe_client_tls_options(client)
            .build();
        Ok(Some(options))
    }

    fn api_key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|Token(key)| key.as_str()).filter(|key| !key.is_empty())
    }

    /// Explains why no connection was made.
    fn explain(&self, error: ClientConnectError) -> Fault {
        match error {
            ClientConnectError::SystemInfoCallError(status) => self.judge(&status),
            ClientConnectError::TonicTransportError(error) => self.judge_transport(&error, &error),
            error @ ClientConnectError::DnsResolutionError { .. } => self.away(&error),
            error => Fault::Refused(anyhow!(error).context("Temporal's client refuses its configuration")),
        }
    }

    /// Explains why a call failed.
    pub(crate) fn judge(&self, status: &Status) -> Fault {
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => {
                let proof = match (self.api_key(), set(&self.tls.client_cert)) {
                    (Some(_), _) => "refuses the API key in TEMPORAL_API_KEY",
                    (None, Some(_)) => "refuses the client certificate in TEMPORAL_TLS_CLIENT_CERT_PATH",
                    (None, None) => "requires an API key or a client certificate",
                };
                // The server's message is left out: it may repeat the key.
                Fault::Refused(anyhow!("Temporal at {} {proof} ({:?})", self.address(), status.code()))
            }
            _ => match status.source() {
                Some(source) => self.judge_transport(source, status),
                None => self.judge_transport(status, status),
            },
        }
    }

    /// Explains a failed connection.
    fn judge_transport(&self, cause: &(dyn Error + 'static), shown: &dyn Error) -> Fault {
        // A fault of a connection that was already established is kept as text only.
        let text = format!("{cause:?}");
        let has_certificate = set(&self.tls.client_cert).is_some();
        let reason = match tls_error(cause) {
            Some(error) => self.describe(error),
            None if text.contains("CertificateRequired") => REQUIRED.to_owned(),
            None if text.contains("fatal alert") && has_certificate => REFUSED.to_owned(),
            None => return self.away(shown),
        };
        Fault::Refused(anyhow!("no TLS connection to Temporal at {}: {reason}", self.address()))
    }

    fn away(&self, error: &dyn Error) -> Fault {
        let is_anonymous =
            matches!(self.tls_options(&self.address()), Ok(Some(tls)) if tls.client_tls_options.is_none());
        // A server may end such a connection without a reason that arrives.
        let hint = if is_anonymous { format!(" (if {REQUIRED})") } else { String::new() };
        let mut reasons = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !reasons.contains(&text) {
                reasons = format!("{reasons}: {text}");
            }
            next = cause.source();
        }
        Fault::Away(anyhow!("Temporal at {} does not answer: {reasons}{hint}", self.address()))
    }

    fn describe(&self, error: &rustls::Error) -> String {
        use rustls::{CertificateError as Certificate, Error as Tls};
        let has_certificate = set(&self.tls.client_cert).is_some();
        match error {
            Tls::InvalidCertificate(
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
            ) => "the server's certificate is for another name: set TEMPORAL_TLS_SERVER_NAME".to_owned(),
            Tls::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
                let authorities = match set(&self.tls.server_ca_cert) {
                    Some(_) => "no CA in TEMPORAL_TLS_SERVER_CA_CERT_PATH",
                    None => "no CA that this machine trusts; set TEMPORAL_TLS_SERVER_CA_CERT_PATH",
                };
                format!("the server's certificate is issued by {authorities}")
            }
            Tls::InvalidCertificate(invalid) => format!("the server's certificate is invalid: {invalid}"),
            Tls::InvalidMessage(_) => "the server does not speak TLS at this port".to_owned(),
            Tls::AlertReceived(_) if !has_certificate => REQUIRED.to_owned(),
            Tls::AlertReceived(_) => REFUSED.to_owned(),
            error => error.to_string(),
        }
    }
}

/// Returns whether a call may succeed in a moment.
pub(crate) fn is_away(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Aborted)
}

/// Said of a server that ends connections without a client certificate.
const REQUIRED: &str = "the server requires a client certificate, set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH";
/// Said of a server that ends a connection with a client certificate.
const REFUSED: &str = "the server refuses the client certificate in TEMPORAL_TLS_CLIENT_CERT_PATH";

/// Finds an error of TLS among the causes of an error.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // Its source is that of the error within.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = inner.and_then(|inner| tls_error(inner)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the value of a setting, unless it is empty.
fn set(setting: &Option<String>) -> Option<&str> {
    setting.as_deref().map(str::trim).filter(|value| !value.is_empty())
}

/// Reads a file of the configuration.
fn read(variable: &str, path: &str) -> anyhow::Result<Vec<u8>> {
    let content = fs::read(path).with_context(|| format!("{variable} names {path}, which can't be read"))?;
    let is_pem = content.windows(11).any(|part| part == b"-----BEGIN ");
    anyhow::ensure!(is_pem, "{variable} names {path}, which is no PEM file");
    Ok(content)
}

/// Returns a name of this process for Temporal's UI. The host is part of it, because in a container every process
/// has the same id.
fn identity() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => format!("fanfare-{}", std::process::id()),
        host => format!("fanfare-{}@{host}", std::process::id()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: &str) -> Server {
        Server::local(address).unwrap()
    }

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_url() {
        for (text, shown) in [
            ("localhost:7233", "localhost:7233"),
            ("127.0.0.1:7233", "127.0.0.1:7233"),
            ("http://temporal:7233", "temporal:7233"),
            ("https://ns.a1b2c.tmprl.cloud:7233", "ns.a1b2c.tmprl.cloud:7233"),
            ("https://temporal", "temporal:443"),
            ("[::1]:7233", "[::1]:7233"),
        ] {
            assert_eq!(text.parse::<ServerAddress>().unwrap().to_string(), shown, "{text}");
        }
        for text in
            ["", "temporal", "localhost:port", "ftp://temporal:7233", "http://user:secret@temporal:7233"]
        {
            assert!(text.parse::<ServerAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn tls_follows_from_the_address_a_setting_or_an_api_key() {
        let tls = |server: &Server| server.tls_options(&server.address()).map(|tls| tls.is_some());
        assert!(!tls(&server("localhost:7233")).unwrap());
        assert!(!tls(&server("http://localhost:7233")).unwrap());
        assert!(tls(&server("https://localhost:7233")).unwrap());
        let mut with_key = server("localhost:7233");
        with_key.api_key = Some(Token("key".to_owned()));
        assert!(tls(&with_key).unwrap());
        assert_eq!(with_key.options().unwrap().target.scheme(), "https");
        with_key.tls.enabled = Some(Switch::Off);
        assert!(!tls(&with_key).unwrap());
        // The key would be sent in clear text.
        with_key.tls.enabled = Some(Switch::Auto);
        with_key.address = Some("http://localhost:7233".parse().unwrap());
        assert!(tls(&with_key).unwrap_err().to_string().contains("write https://"));
        let mut named = server("localhost:7233");
        named.tls.server_name = Some("temporal.example".to_owned());
        assert!(tls(&named).unwrap());
        named.tls.client_cert = Some("/certificate".to_owned());
        assert!(tls(&named).unwrap_err().to_string().contains("needs both"));
        let mut off = server("https://localhost:7233");
        off.tls.enabled = Some(Switch::Off);
        assert!(tls(&off).is_err());
    }
}
