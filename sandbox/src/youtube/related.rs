//! Uploads in one request, whose body has two parts: a description and a file (`multipart/related`).
//! <https://www.rfc-editor.org/rfc/rfc2387>

use super::{Request, Response, Transaction, error};
use crate::{exchange::Cause::Protocol, files::Upload};
use serde_json::Value;

/// Returns the two parts of a `multipart/related` request: a description, and the bytes.
pub(super) fn related(tx: &Transaction, request: &Request) -> Result<(Value, Option<Upload>), Response> {
    let wrong = || error(Protocol, 400, "global", "badRequest", "Malformed multipart body.");
    let header = request.header("content-type").unwrap_or_default();
    let boundary = header.split("boundary=").nth(1).map(|rest| rest.split(';').next().unwrap_or(rest));
    let boundary = format!("--{}", boundary.ok_or_else(wrong)?.trim().trim_matches('"'));
    let mut parts = Vec::new();
    let mut rest: &[u8] = &request.body;
    while let Some(start) = position(rest, boundary.as_bytes()) {
        rest = &rest[start + boundary.len()..];
        let Some(end) = position(rest, boundary.as_bytes()) else { break };
        let part = &rest[..end];
        let head =
            position(part, b"\r\n\r\n").map(|at| at + 4).or_else(|| position(part, b"\n\n").map(|at| at + 2));
        let content = &part[head.ok_or_else(wrong)?..];
        parts.push(content.strip_suffix(b"\r\n").or_else(|| content.strip_suffix(b"\n")).unwrap_or(content));
    }
    let [description, bytes] = parts.as_slice() else { return Err(wrong()) };
    let description = serde_json::from_slice(description).map_err(|_| wrong())?;
    let kept = tx.files.store_bytes(bytes.to_vec().into());
    Ok((description, kept.ok()))
}

fn position(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
