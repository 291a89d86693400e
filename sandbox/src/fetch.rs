//! Fetching of media that a platform gets by address.
//!
//! They are fetched before the simulator is called, so that responding stays one step. Only public addresses
//! and configured ones, where the API keeps its media, are fetched: a post's settings contain addresses too,
//! which a worker passes on unchecked.

use super::{
    Sandbox,
    access::FetchPolicy,
    exchange::{Fetched, Request},
    files::Upload,
    simulator::Simulator,
};
use futures::TryStreamExt;
use poem::Body;
use std::{net::IpAddr, time::Duration};
use tokio::io::AsyncReadExt;
use url::Url;

/// Maximum number of bytes read of one medium.
const MAX_BYTES: u64 = 8 << 30;

/// Time limit for fetching one medium.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Fetches the media that the platform would fetch for a request.
pub(crate) async fn fetch_all(sandbox: &Sandbox, simulator: &dyn Simulator, request: &mut Request) {
    for address in simulator.media_urls(request) {
        let upload = fetch(sandbox, &address).await;
        if let Err(error) = &upload {
            tracing::info!(address, error, "The sandbox could not fetch {address}: {error}");
        }
        request.fetched.push(Fetched { address, upload });
    }
}

async fn fetch(sandbox: &Sandbox, address: &str) -> Result<Upload, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{} is no scheme to fetch by", url.scheme()));
    }
    let literal: Option<IpAddr> = match url.host() {
        Some(url::Host::Ipv4(address)) => Some(address.into()),
        Some(url::Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    let client = match sandbox.0.access.media(&url) {
        FetchPolicy::Unrestricted => egress::unfiltered(),
        FetchPolicy::Restricted(opened) if literal.is_some_and(|address| !opened.allows(address)) => {
            return Err(format!("{address} is no public address"));
        }
        FetchPolicy::Restricted(opened) => egress::filtered(opened),
    };
    let client = client.timeout(TIMEOUT).build().map_err(|error| error.to_string())?;
    let response = client.get(url.clone()).send().await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("it answered {}", response.status()));
    }
    let declared = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let declared = declared.and_then(|value| value.split(';').next()).map(|value| value.trim().to_owned());
    let body = Body::from_bytes_stream(response.bytes_stream().map_err(std::io::Error::other));
    let reader = body.into_async_read().take(MAX_BYTES);
    let mut upload = sandbox.0.files.store(Box::pin(reader)).await.map_err(|error| error.to_string())?;
    upload.declared = declared;
    upload.name = url.path_segments().and_then(|mut segments| segments.next_back()).map(str::to_owned);
    Ok(upload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, AppStatus, Options};
    use chrono::DateTime;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    use tokio::{io::AsyncWriteExt, net::TcpListener};

    /// Serves one word and counts requests.
    async fn serve() -> (Url, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/media/", listener.local_addr().unwrap()).parse().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((mut line, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = line.read(&mut [0; 1024]).await;
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nword";
                line.write_all(response).await.unwrap();
            }
        });
        (url, count)
    }

    #[tokio::test]
    async fn only_public_and_configured_addresses_are_fetched() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ((api, asked), (inner, spared)) = (serve().await, serve().await);
        let at = |url: &Url, path: &str| url.join(path).unwrap().to_string();
        let open = |media: Option<Vec<Url>>| {
            let options = Options { data: None, clock: || DateTime::UNIX_EPOCH, app: AppStatus::New };
            Sandbox::open_with(options, Access { media, ..Access::default() }).unwrap()
        };
        let opened = open(Some(vec![api.clone()]));
        let found = fetch(&opened, &at(&api, "a.jpg")).await.unwrap();
        assert_eq!((found.size_bytes, found.name.as_deref()), (4, Some("a.jpg")));
        let localhost = at(&inner, "a.jpg").replace("127.0.0.1", "localhost");
        for address in [
            at(&inner, "a.jpg"),
            localhost.clone(),
            at(&api, "../admin"),
            at(&api, "%2e%2e/admin"),
            "http://10.0.0.1/a.jpg".into(),
            "http://169.254.169.254/latest/meta-data/".into(),
            "http://[::1]/a.jpg".into(),
            "ftp://127.0.0.1/a.jpg".into(),
        ] {
            assert!(fetch(&opened, &address).await.is_err(), "{address}");
        }
        assert_eq!((asked.load(Ordering::SeqCst), spared.load(Ordering::SeqCst)), (1, 0));

        // Without configuration, addresses of this machine are fetched.
        let untold = open(None);
        for address in [at(&inner, "a.jpg"), localhost] {
            assert_eq!(fetch(&untold, &address).await.unwrap().size_bytes, 4, "{address}");
        }
        assert!(fetch(&untold, "http://10.0.0.1/a.jpg").await.is_err());
    }
}
