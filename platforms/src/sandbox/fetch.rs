//! Media that a platform is given by address and fetches itself.
//!
//! They are fetched before the platform is asked, so that answering stays one step; how long it takes
//! to process them is the platform's own affair. Whoever asks from this machine or its network may
//! name any address there, as in development; a stranger may only name public ones.

use super::{
    Sandbox,
    call::{Call, Fetched},
    files::{Files, Upload},
    host::Host,
};
use crate::session;
use domain::address::is_public;
use futures::TryStreamExt;
use poem::Body;
use std::{net::IpAddr, time::Duration};
use tokio::io::AsyncReadExt;
use url::Url;

/// The most bytes that are read of one medium.
const MOST_BYTES: u64 = 8 << 30;

/// How long fetching one medium may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Fetches what the platform would fetch for this request.
pub(crate) async fn all(sandbox: &Sandbox, host: &dyn Host, call: &mut Call) {
    // Whom a proxy lets in may be anybody.
    let is_proxied = call.header("x-forwarded-for").is_some() || call.header("forwarded").is_some();
    let is_stranger = is_proxied || call.peer.parse().is_ok_and(is_public);
    for address in host.fetches(call) {
        let upload = one(&sandbox.0.files, &address, is_stranger).await;
        if let Err(error) = &upload {
            tracing::info!(address, error, "The sandbox could not fetch {address}: {error}");
        }
        call.fetched.push(Fetched { address, upload });
    }
}

async fn one(files: &Files, address: &str, is_stranger: bool) -> Result<Upload, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{} is no scheme to fetch by", url.scheme()));
    }
    let literal: Option<IpAddr> = match url.host() {
        Some(url::Host::Ipv4(address)) => Some(address.into()),
        Some(url::Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    if is_stranger && literal.is_some_and(|address| !is_public(address)) {
        return Err(format!("{address} is no public address"));
    }
    let client = if is_stranger { session::public_client() } else { session::client() };
    let client = client.timeout(PATIENCE).build().map_err(|error| error.to_string())?;
    let answer = client.get(url.clone()).send().await.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        return Err(format!("it answered {}", answer.status()));
    }
    let declared = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
    let declared = declared.and_then(|value| value.split(';').next()).map(|value| value.trim().to_owned());
    let body = Body::from_bytes_stream(answer.bytes_stream().map_err(std::io::Error::other));
    let reader = body.into_async_read().take(MOST_BYTES);
    let mut upload = files.take(Box::pin(reader)).await.map_err(|error| error.to_string())?;
    upload.declared = declared;
    upload.name = url.path_segments().and_then(|mut segments| segments.next_back()).map(str::to_owned);
    Ok(upload)
}
