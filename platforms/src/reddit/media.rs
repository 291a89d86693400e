//! Uploads to Reddit's storage service, each with a lease of its own.
//!
//! A post names its file by the address in that storage:
//! <https://praw.readthedocs.io/en/stable/code_overview/models/subreddit.html#praw.models.Subreddit.submit_image>.

use super::{API, Reddit, named};
use crate::{
    Media, Result, Session, storage,
    upload::{Begun, Processing, Sent, Upload},
};
use async_trait::async_trait;
use reqwest::Body;
use serde::{Deserialize, Serialize};

#[async_trait]
impl Upload for Reddit {
    type Ticket = Asset;

    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Asset>> {
        let body = Body::wrap_stream(cx.stream(media));
        let file = storage::File { name: &media.filename, mime: &media.mime, length: media.size_bytes, body };
        let ticket = send(cx, file).await?;
        Ok(Begun { ticket, expires_at: None, sent: Sent::Whole(Processing::Done) })
    }
}

/// Sends a file to Reddit's storage. An asset that no post uses expires.
pub(super) async fn send(cx: &Session<'_>, file: storage::File<'_>) -> Result<Asset> {
    let lease: Lease = named(cx, cx.post(format!("{API}/api/media/asset.json")))
        .form(&[("filepath", file.name), ("mimetype", file.mime)])
        .send()
        .await?;
    let action = lease.args.action;
    let action = if action.starts_with("//") { format!("https:{action}") } else { action };
    let key = lease.args.fields.iter().find(|field| field.name == "key");
    let key = key.map(|field| field.value.clone()).unwrap_or_default();
    let fields = lease.args.fields.into_iter().map(|field| (field.name, field.value));
    storage::send(cx, &action, fields, file).await?;
    Ok(Asset { id: lease.asset.asset_id, url: format!("{}/{key}", action.trim_end_matches('/')) })
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asset {
    pub(super) id: String,
    pub(super) url: String,
}

#[derive(Deserialize)]
struct Lease {
    args: Args,
    asset: Leased,
}

#[derive(Deserialize)]
struct Args {
    action: String,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Leased {
    asset_id: String,
}
