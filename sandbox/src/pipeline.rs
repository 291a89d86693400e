//! The pipeline of every request to a platform: reading the body, holds, faults and the journal.

use super::{
    Sandbox, account,
    exchange::{BodyMode, Cause, Message, Request, Response},
    fault::{self, Kind},
    fetch,
    hold::{PendingRequest, When},
    journal::{self, Entry},
    server::Dropped,
    simulator::Simulator,
};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use poem::{
    FromRequest, OnUpgrade, RequestBody,
    http::{HeaderMap, StatusCode, header},
    web::Multipart,
};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};
use url::form_urlencoded;

/// Handles a request to a platform.
pub(crate) async fn handle(
    sandbox: &Sandbox,
    simulator: &'static dyn Simulator,
    host: &str,
    path: &str,
    request: poem::Request,
) -> poem::Response {
    let upgrade = request.take_upgrade();
    let mut response = match read(sandbox, simulator, host, path, request).await {
        Ok(mut request) => {
            fetch::fetch_all(sandbox, simulator, &mut request).await;
            process(sandbox, simulator, request).await
        }
        // The body was cut short, or is not the form that it claims to be.
        Err(error) => poem::Response::builder().status(StatusCode::BAD_REQUEST).body(error.to_string()),
    };
    if let (Ok(upgrade), Some(message)) = (upgrade, response.extensions_mut().remove()) {
        tokio::spawn(send_message(upgrade, message));
    }
    response
}

/// Sends the message over a connection that was upgraded to a WebSocket.
async fn send_message(upgrade: OnUpgrade, message: Message) {
    let Ok(upgraded) = upgrade.await else { return };
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
    match message.body {
        Some(body) => {
            tokio::time::sleep(message.after).await;
            // Both fail when the client has hung up.
            let _ = socket.send(body.to_string().into()).await;
            let _ = socket.close(None).await;
        }
        // Stays open until the client closes.
        None => drop(socket.next().await),
    }
}

async fn process(sandbox: &Sandbox, simulator: &'static dyn Simulator, request: Request) -> poem::Response {
    let known = sandbox.transaction(|tx| {
        let simulator = simulator.resolve_platform(tx, &request).unwrap_or(simulator);
        let owner = simulator.account(tx, &request).and_then(|username| {
            let id = account::by_username(tx.store, simulator.id(), &username)?.id;
            Some((username, id))
        });
        (simulator, owner)
    });
    let (simulator, owner) = match known {
        Ok(known) => known,
        Err(error) => return broken(&error),
    };
    let pending = PendingRequest {
        platform: simulator.id(),
        account: owner.as_ref().map(|(name, id)| (name.as_str(), id.as_str())),
        method: request.method.as_str(),
        host: &request.host,
        path: &request.path,
    };
    let mut guard = JournalEntryGuard::new(
        sandbox,
        Entry {
            seq: 0,
            at: (sandbox.0.clock)(),
            platform: simulator.id().to_owned(),
            account: owner.as_ref().map(|(name, _)| name.clone()),
            method: request.method.to_string(),
            host: request.host.clone(),
            path: request.path.clone(),
            status: None,
            accepted: false,
            post_id: None,
            post_ids: Vec::new(),
            fault: None,
            rule: None,
        },
    );

    if let Some(hold) = sandbox.0.holds.find(When::Before, pending) {
        guard.entry.fault = Some("hold-before".into());
        hold.block().await;
    }
    // The hold after processing is looked up now, so that the entry records it; it blocks the response only.
    let after = sandbox.0.holds.find(When::After, pending);
    if after.is_some() {
        guard.entry.fault = Some("hold-after".into());
    }

    let answered = sandbox.transaction(|tx| {
        let (host, path) = (&request.host, &request.path);
        let mut response = match (tx.settings.refusal(host, path), tx.settings.recorded(host, path)) {
            (Some(status), _) => simulator.refuse(tx, &request, status),
            (None, Some(recorded)) => recorded.response(),
            (None, None) if request.has_control_characters() => {
                simulator.refuse(tx, &request, 400).because(Cause::Content("control_characters"))
            }
            (None, None) => simulator.respond(tx, &request),
        };
        // A fault after acceptance does not apply when nothing was accepted.
        if response.published.is_empty()
            && response.fault.as_ref().is_some_and(|fault| {
                matches!(fault.kind, Kind::Slow | Kind::LostReply | Kind::BrokenAfter | Kind::Garbage)
            })
        {
            response.fault = None;
        }
        if let Some(fault) = response.fault.clone().filter(|_| !response.published.is_empty()) {
            fault::count(tx, &fault);
            match fault.kind {
                Kind::BrokenAfter => {
                    let published = std::mem::take(&mut response.published);
                    response =
                        Response { published, ..simulator.refuse(tx, &request, 500) }.with_fault(*fault);
                }
                Kind::Garbage => response.body = Bytes::from_static(b"{\"data\":{\"id\":"),
                _ => {}
            }
        }
        guard.settle(tx.store, tx.now, &response);
        response
    });
    let response = match answered {
        Ok(response) => response,
        Err(error) => {
            guard.is_settled = true;
            return broken(&error);
        }
    };
    sandbox.0.journal.send_if_modified(|last| {
        let has_grown = *last < guard.entry.seq;
        *last = (*last).max(guard.entry.seq);
        has_grown
    });

    if let Some(hold) = after {
        hold.block().await;
    }
    let kind = response.fault.as_ref().map(|fault| fault.kind);
    match kind {
        Some(Kind::Slow) => {
            let pause = sandbox.transaction(|tx| tx.settings.slow_ms).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Some(Kind::Stuck) => std::future::pending().await,
        _ => {}
    }
    guard.is_settled = true;
    match kind {
        Some(Kind::Drop | Kind::LostReply) => dropped(),
        _ => reply(response),
    }
}

/// A journal entry whose response has not been sent yet. Dropping it before that, as when the client hangs
/// up, records that there was no response.
struct JournalEntryGuard<'a> {
    sandbox: &'a Sandbox,
    entry: Entry,
    is_settled: bool,
}

impl<'a> JournalEntryGuard<'a> {
    fn new(sandbox: &'a Sandbox, entry: Entry) -> Self {
        Self { sandbox, entry, is_settled: false }
    }

    fn settle(&mut self, store: &mut super::Store, now: chrono::DateTime<chrono::Utc>, response: &Response) {
        if response.is_page {
            self.is_settled = true;
            return;
        }
        let silent = response
            .fault
            .as_ref()
            .is_some_and(|fault| matches!(fault.kind, Kind::Stuck | Kind::Drop | Kind::LostReply));
        let entry = &mut self.entry;
        entry.at = now;
        entry.status = (!silent).then_some(response.status.as_u16());
        entry.accepted = !response.published.is_empty();
        entry.post_id = response.published.first().cloned();
        entry.post_ids = response.published.to_vec();
        entry.rule = response.rule().map(str::to_owned);
        if let Some(fault) = &response.fault {
            entry.fault = Some(fault.word.to_owned());
        }
        journal::add(store, entry);
    }
}

impl Drop for JournalEntryGuard<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let entry = &mut self.entry;
        let kept = self.sandbox.transaction(|tx| {
            if entry.seq == 0 {
                entry.at = tx.now;
                journal::add(tx.store, entry);
            } else {
                journal::mark_unanswered(tx.store, entry.seq);
            }
        });
        if let Err(error) = kept {
            tracing::error!(%error, "Could not note that a reply was lost");
        }
        let seq = self.entry.seq;
        // Waiters look again even when an entry only changed.
        self.sandbox.0.journal.send_modify(|last| *last = (*last).max(seq));
    }
}

async fn read(
    sandbox: &Sandbox,
    simulator: &'static dyn Simulator,
    host: &str,
    path: &str,
    mut http: poem::Request,
) -> poem::Result<Request> {
    let query = http.uri().query().unwrap_or_default();
    let mut request = Request {
        method: http.method().clone(),
        host: host.to_owned(),
        path: path.to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: http.headers().clone(),
        body: Bytes::new(),
        fields: Vec::new(),
        upload: None,
        fetched: Vec::new(),
        is_too_large: false,
        peer: http.remote_addr().as_socket_addr().map(|address| address.ip().to_string()).unwrap_or_default(),
    };
    let body = http.take_body();
    let files = &sandbox.0.files;
    match simulator.body_mode(&request) {
        body_mode @ (BodyMode::Buffered(max) | BodyMode::JsonFields(max)) => {
            let mut reader = body.into_async_read();
            let mut bytes = Vec::new();
            (&mut reader)
                .take(max as u64 + 1)
                .read_to_end(&mut bytes)
                .await
                .map_err(poem::error::BadRequest)?;
            request.is_too_large = bytes.len() > max;
            if request.is_too_large {
                bytes.clear();
                tokio::io::copy(&mut reader, &mut tokio::io::sink())
                    .await
                    .map_err(poem::error::BadRequest)?;
            }
            if request.mime() == Some("application/x-www-form-urlencoded") {
                request.fields = form_urlencoded::parse(&bytes).into_owned().collect();
            }
            if matches!(body_mode, BodyMode::JsonFields(_)) {
                let members: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
                request.fields = members
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())))
                    .collect();
            }
            request.body = bytes.into();
        }
        BodyMode::Upload => {
            let mut upload = files.store(body.into_async_read()).await.map_err(poem::error::BadRequest)?;
            upload.declared = request.mime().map(str::to_owned);
            request.upload = Some(upload);
        }
        BodyMode::Multipart(part) => {
            let mut form = Multipart::from_request(&http, &mut RequestBody::new(body)).await?;
            while let Some(field) = form.next_field().await? {
                let name = field.name().unwrap_or_default().to_owned();
                // Some forms have their file under one of several names.
                if part.split('|').any(|one| one == name) {
                    let (file, declared) =
                        (field.file_name().map(str::to_owned), field.content_type().map(str::to_owned));
                    let mut upload = files
                        .store(Box::pin(field.into_async_read()))
                        .await
                        .map_err(poem::error::BadRequest)?;
                    (upload.name, upload.declared) = (file, declared);
                    request.upload = Some(upload);
                } else {
                    request.fields.push((name, field.text().await?));
                }
            }
        }
    }
    Ok(request)
}

fn reply(response: Response) -> poem::Response {
    let mut headers = HeaderMap::new();
    if !response.mime.is_empty() {
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(response.mime));
    }
    for (name, value) in response.headers {
        if let Ok(value) = header::HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    let mut http = poem::Response::builder().status(response.status).body(response.body);
    *http.headers_mut() = headers;
    if let Some(message) = response.socket {
        http.extensions_mut().insert(*message);
    }
    http
}

/// Creates a response that is never sent: the server closes the connection without a byte.
fn dropped() -> poem::Response {
    poem::Response::builder().status(StatusCode::BAD_GATEWAY).extension(Dropped).body("dropped on purpose")
}

fn broken(error: &anyhow::Error) -> poem::Response {
    tracing::error!(
        error = format!("{error:#}"),
        "The sandbox could not keep what it was about to answer for"
    );
    poem::Response::builder()
        .status(StatusCode::INTERNAL_SERVER_ERROR)
        .body("the sandbox can't write its log")
}
