//! Receives one message over a WebSocket, with which Reddit reports the result of an upload.

use crate::Session;
use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{StreamExt, TryStreamExt};
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;
use std::{future, time::Duration};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

/// Size limit of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Returns the first message within the time limit; `None` on any error, because lists contain the
/// same result later.
pub(crate) async fn message(cx: &Session<'_>, address: &str, patience: Duration) -> Option<Value> {
    tokio::time::timeout(patience, listen(cx, address)).await.ok().flatten()
}

async fn listen(cx: &Session<'_>, address: &str) -> Option<Value> {
    let address = format!("http{}", address.strip_prefix("ws")?);
    let key = BASE64_STANDARD.encode(rand::random::<[u8; 16]>());
    let call = cx.transport.upgradable().ok()?.get(cx.transport.rewrite_url(&address));
    let answer = call
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", &key)
        .send()
        .await
        .ok()?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS || !is_agreed(answer.headers(), &key) {
        return None;
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let upgraded = answer.upgrade().await.ok()?;
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    let texts = socket.try_filter_map(|message| {
        future::ready(Ok(match message {
            Message::Text(text) => Some(text),
            _ => None,
        }))
    });
    let text = std::pin::pin!(texts).next().await?.ok()?;
    serde_json::from_str(&text).ok()
}

fn is_agreed(headers: &HeaderMap, key: &str) -> bool {
    headers
        .get("sec-websocket-accept")
        .is_some_and(|value| value == derive_accept_key(key.as_bytes()).as_str())
}
