//! One message over a WebSocket, which is how Reddit tells what became of an upload.
//!
//! Both ends of it, ours and the sandbox's: <https://www.rfc-editor.org/rfc/rfc6455>. Nothing is ever
//! sent but a server's one text, so this is the handshake and a frame, not a protocol stack.

use crate::Session;
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;
use sha1::{Digest, Sha1};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What every server adds to a key (RFC 6455, section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest message that is read.
const MOST_BYTES: u64 = 64 << 10;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// The first message that comes in time; `None` for whatever stands in the way, since what a socket
/// tells is told elsewhere too, only later.
pub(crate) async fn message(cx: &Session<'_>, address: &str, patience: Duration) -> Option<Value> {
    tokio::time::timeout(patience, listen(cx, address)).await.ok().flatten()
}

async fn listen(cx: &Session<'_>, address: &str) -> Option<Value> {
    let address = format!("http{}", address.strip_prefix("ws")?);
    let key = BASE64_STANDARD.encode(rand::random::<[u8; 16]>());
    let call = cx.wire.upgradable().ok()?.get(cx.wire.route(&address));
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
    read(answer.upgrade().await.ok()?).await
}

fn is_agreed(headers: &HeaderMap, key: &str) -> bool {
    headers.get("sec-websocket-accept").is_some_and(|value| value == accept(key).as_str())
}

/// What a server answers to a key, so that a client knows that it was understood.
pub(crate) fn accept(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::digest(format!("{key}{GUID}")))
}

/// The first text that a server sends.
async fn read(mut line: impl AsyncRead + Unpin) -> Option<Value> {
    loop {
        let kind = line.read_u8().await.ok()? & 0x0f;
        // A server masks nothing.
        let length = match line.read_u8().await.ok()? {
            126 => u64::from(line.read_u16().await.ok()?),
            127 => line.read_u64().await.ok()?,
            length => u64::from(length),
        };
        if length > MOST_BYTES || kind == CLOSE {
            return None;
        }
        let mut payload = vec![0; usize::try_from(length).ok()?];
        line.read_exact(&mut payload).await.ok()?;
        if kind == TEXT {
            return serde_json::from_slice(&payload).ok();
        }
    }
}

/// A text as a server sends it, and the end.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a short message");
    let mut bytes = vec![0x80 | TEXT];
    match u8::try_from(length) {
        Ok(length @ 0..126) => bytes.push(length),
        _ => {
            bytes.push(126);
            bytes.extend(length.to_be_bytes());
        }
    }
    bytes.extend(text.as_bytes());
    bytes.extend([0x80 | CLOSE, 0]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_is_answered_as_the_standard_says() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn a_message_of_any_length_is_read_behind_what_is_none() {
        for length in [0, 113, 114, 3_000] {
            let message = json!({ "payload": "a".repeat(length) });
            let ping = [0x89, 2, b'h', b'i'];
            let line = [ping.as_slice(), &frame(&message.to_string())].concat();
            assert_eq!(read(line.as_slice()).await, Some(message), "{length}");
        }
        assert_eq!(read([0x88, 0].as_slice()).await, None);
        assert_eq!(read([0x81, 127, 1, 0, 0, 0, 0, 0, 0, 0].as_slice()).await, None);
        assert_eq!(read([0x81, 5, b'1'].as_slice()).await, None);
    }
}
