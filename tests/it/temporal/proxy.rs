//! A proxy in front of Temporal that asks for what a server in production asks for: TLS, a client certificate and an
//! API key.

use http_body_util::{Either, Empty};
use hyper::{
    Request, Response, Uri,
    body::{Bytes, Incoming},
    header::HeaderValue,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Name in the proxy's certificate.
pub(super) const NAME: &str = "temporal.example";

/// A certificate authority.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(super) struct Certificate {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn issue(&self, name: &str) -> Certificate {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        Certificate { certificate: params.signed_by(&key, &self.0).unwrap(), key }
    }

    /// Writes the authority's certificate to a file.
    pub(super) fn write(&self, path: PathBuf) -> String {
        write(path, &self.0.pem())
    }
}

impl Certificate {
    /// Writes the certificate and its key to files.
    pub(super) fn write(&self, directory: &Path, name: &str) -> [String; 2] {
        let certificate = write(directory.join(format!("{name}.pem")), &self.certificate.pem());
        [certificate, write(directory.join(format!("{name}.key")), &self.key.serialize_pem())]
    }
}

fn write(path: PathBuf, content: &str) -> String {
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Requirements of a proxy.
#[derive(Default)]
pub(super) struct Demands {
    /// TLS with this certificate, and a client certificate of the authority.
    pub(super) tls: Option<(Certificate, Authority)>,
    /// An API key.
    pub(super) api_key: Option<&'static str>,
    /// Calls that are refused, by the beginning of their paths.
    pub(super) refused: Vec<&'static str>,
    /// Calls that are answered as while the server starts, by the beginning of their paths.
    pub(super) away: Vec<&'static str>,
}

/// A running proxy.
pub(super) struct Proxy {
    /// Its address as `host:port`.
    pub(super) address: String,
    calls: Arc<AtomicUsize>,
}

impl Proxy {
    /// Starts a proxy on a free port.
    pub(super) fn start(temporal: &str, demands: Demands) -> Self {
        Self::on(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), temporal, demands)
    }

    /// Starts a proxy on a listener. It serves until the run ends: what processes send at the end of a test arrives.
    pub(super) fn on(listener: std::net::TcpListener, temporal: &str, demands: Demands) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let calls = Arc::new(AtomicUsize::new(0));
        let acceptor = demands.tls.as_ref().map(|(certificate, clients)| acceptor(certificate, clients));
        let (demands, temporal, counted) = (Arc::new(demands), temporal.to_owned(), calls.clone());
        listener.set_nonblocking(true).unwrap();
        tests::outlive(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, demands, temporal, calls) =
                    (acceptor.clone(), demands.clone(), temporal.clone(), counted.clone());
                tokio::spawn(async move {
                    match acceptor {
                        // A client that is refused has ended the connection.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(TokioIo::new(stream), temporal, demands, calls).await;
                            }
                        }
                        None => serve(TokioIo::new(stream), temporal, demands, calls).await,
                    }
                });
            }
        });
        Self { address, calls }
    }

    /// Returns the number of calls that it has passed on.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

fn acceptor(certificate: &Certificate, clients: &Authority) -> TlsAcceptor {
    let mut roots = RootCertStore::empty();
    roots.add(clients.0.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.key.serialize_der()));
    let chain = vec![certificate.certificate.der().clone()];
    let config = ServerConfig::builder().with_client_cert_verifier(verifier).with_single_cert(chain, key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Serves one connection with one to Temporal.
async fn serve<I>(client: I, temporal: String, demands: Arc<Demands>, calls: Arc<AtomicUsize>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let upstream = TokioIo::new(TcpStream::connect(&temporal).await.unwrap());
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), upstream).await.unwrap();
    tokio::spawn(connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut sender, demands, calls) = (sender.clone(), demands.clone(), calls.clone());
        let address = temporal.clone();
        async move {
            if let Some(code) = refusal(&demands, &request) {
                let mut response = Response::new(Either::Right(Empty::<Bytes>::new()));
                let headers = response.headers_mut();
                headers.insert("content-type", HeaderValue::from_static("application/grpc"));
                headers.insert("grpc-status", HeaderValue::from_static(code));
                headers.insert("grpc-message", HeaderValue::from_static("Request unauthorized."));
                return Ok::<_, hyper::Error>(response);
            }
            calls.fetch_add(1, Ordering::Relaxed);
            let (mut head, body) = request.into_parts();
            let path = head.uri.path_and_query().unwrap().as_str();
            head.uri = format!("http://{address}{path}").parse::<Uri>().unwrap();
            let response = sender.send_request(Request::from_parts(head, body)).await?;
            Ok(response.map(Either::Left))
        }
    });
    // A client may end the connection at any time.
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(client, service)
        .await;
}

/// Returns the gRPC status of a call that is refused: 16 is unauthenticated, 7 permission denied, 14 unavailable.
fn refusal(demands: &Demands, request: &Request<Incoming>) -> Option<&'static str> {
    let authorized = demands.api_key.is_none_or(|key| {
        let given = request.headers().get("authorization");
        given.is_some_and(|given| given.as_bytes() == format!("Bearer {key}").as_bytes())
    });
    if !authorized {
        return Some("16");
    }
    let is_one_of = |paths: &[&str]| paths.iter().any(|path| request.uri().path().starts_with(path));
    if is_one_of(&demands.away) {
        return Some("14");
    }
    is_one_of(&demands.refused).then_some("7")
}
