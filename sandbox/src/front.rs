//! What happens to every request before and after its platform sees it: the body is read, holds and
//! faults do their work, and the journal is kept.

use super::{
    Sandbox, account,
    call::{Answer, Call, Intake, Message},
    fault::{self, Kind},
    fetch,
    hold::{Passing, When},
    host::Host,
    journal::{self, Entry},
    server::Dropped,
};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use poem::{
    FromRequest, OnUpgrade, Request, RequestBody, Response,
    http::{HeaderMap, StatusCode, header},
    web::Multipart,
};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};
use url::form_urlencoded;

/// Answers a request to a platform.
pub(crate) async fn answer(
    sandbox: &Sandbox,
    host: &'static dyn Host,
    name: &str,
    path: &str,
    request: Request,
) -> Response {
    let line = request.take_upgrade();
    let mut response = match take(sandbox, host, name, path, request).await {
        Ok(mut call) => {
            fetch::all(sandbox, host, &mut call).await;
            process(sandbox, host, call).await
        }
        // Half a body, or a form that is none.
        Err(error) => Response::builder().status(StatusCode::BAD_REQUEST).body(error.to_string()),
    };
    if let (Ok(line), Some(message)) = (line, response.extensions_mut().remove()) {
        tokio::spawn(say(line, message));
    }
    response
}

/// Says what there is to say over a connection that has become a WebSocket.
async fn say(line: OnUpgrade, message: Message) {
    let Ok(upgraded) = line.await else { return };
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
    match message.body {
        Some(body) => {
            tokio::time::sleep(message.after).await;
            // Both fail when the client has hung up.
            let _ = socket.send(body.to_string().into()).await;
            let _ = socket.close(None).await;
        }
        // Until the client closes.
        None => drop(socket.next().await),
    }
}

async fn process(sandbox: &Sandbox, host: &'static dyn Host, call: Call) -> Response {
    let known = sandbox.turn(|turn| {
        let host = host.meant(turn, &call).unwrap_or(host);
        let owner = host.account(turn, &call).and_then(|username| {
            let id = account::named(turn.shelf, host.id(), &username)?.id;
            Some((username, id))
        });
        (host, owner)
    });
    let (host, owner) = match known {
        Ok(known) => known,
        Err(error) => return broken(&error),
    };
    let passing = Passing {
        platform: host.id(),
        account: owner.as_ref().map(|(name, id)| (name.as_str(), id.as_str())),
        method: call.method.as_str(),
        host: &call.host,
        path: &call.path,
    };
    let mut debt = Debt::new(
        sandbox,
        Entry {
            seq: 0,
            at: (sandbox.0.clock)(),
            platform: host.id().to_owned(),
            account: owner.as_ref().map(|(name, _)| name.clone()),
            method: call.method.to_string(),
            host: call.host.clone(),
            path: call.path.clone(),
            status: None,
            accepted: false,
            post_id: None,
            post_ids: Vec::new(),
            fault: None,
        },
    );

    if let Some(hold) = sandbox.0.holds.meet(When::Before, passing) {
        debt.entry.fault = Some("hold-before".into());
        hold.keep().await;
    }
    // The hold for later is met now, so that the entry says so; it keeps the reply, not the work.
    let after = sandbox.0.holds.meet(When::After, passing);
    if after.is_some() {
        debt.entry.fault = Some("hold-after".into());
    }

    let answered = sandbox.turn(|turn| {
        let mut answer = match turn.settings.refusal(&call.host, &call.path) {
            Some(status) => host.refuse(turn, &call, status),
            None => host.answer(turn, &call),
        };
        // A fault that strikes after acceptance has nothing to strike where nothing was accepted.
        if answer.published.is_empty()
            && answer.fault.as_ref().is_some_and(|fault| {
                matches!(fault.kind, Kind::Slow | Kind::LostReply | Kind::BrokenAfter | Kind::Garbage)
            })
        {
            answer.fault = None;
        }
        if let Some(fault) = answer.fault.clone().filter(|_| !answer.published.is_empty()) {
            fault::spend(turn, &fault);
            match fault.kind {
                Kind::BrokenAfter => {
                    let published = std::mem::take(&mut answer.published);
                    answer = Answer { published, ..host.refuse(turn, &call, 500) }.because(*fault);
                }
                Kind::Garbage => answer.body = Bytes::from_static(b"{\"data\":{\"id\":"),
                _ => {}
            }
        }
        debt.settle(turn.shelf, turn.now, &answer);
        answer
    });
    let answer = match answered {
        Ok(answer) => answer,
        Err(error) => {
            debt.is_paid = true;
            return broken(&error);
        }
    };
    sandbox.0.journal.send_if_modified(|last| {
        let has_grown = *last < debt.entry.seq;
        *last = (*last).max(debt.entry.seq);
        has_grown
    });

    if let Some(hold) = after {
        hold.keep().await;
    }
    let kind = answer.fault.as_ref().map(|fault| fault.kind);
    match kind {
        Some(Kind::Slow) => {
            let pause = sandbox.turn(|turn| turn.settings.slow_ms).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Some(Kind::Stuck) => std::future::pending().await,
        _ => {}
    }
    debt.is_paid = true;
    match kind {
        Some(Kind::Drop | Kind::LostReply) => dropped(),
        _ => reply(answer),
    }
}

/// A reply that is still owed. Dropped unpaid, as when the client hangs up, it tells the journal.
struct Debt<'a> {
    sandbox: &'a Sandbox,
    entry: Entry,
    is_paid: bool,
}

impl<'a> Debt<'a> {
    fn new(sandbox: &'a Sandbox, entry: Entry) -> Self {
        Self { sandbox, entry, is_paid: false }
    }

    fn settle(&mut self, shelf: &mut super::Shelf, now: chrono::DateTime<chrono::Utc>, answer: &Answer) {
        if answer.is_page {
            self.is_paid = true;
            return;
        }
        let silent = answer
            .fault
            .as_ref()
            .is_some_and(|fault| matches!(fault.kind, Kind::Stuck | Kind::Drop | Kind::LostReply));
        let entry = &mut self.entry;
        entry.at = now;
        entry.status = (!silent).then_some(answer.status.as_u16());
        entry.accepted = !answer.published.is_empty();
        entry.post_id = answer.published.first().cloned();
        entry.post_ids.clone_from(&answer.published);
        if let Some(fault) = &answer.fault {
            entry.fault = Some(fault.word.to_owned());
        }
        journal::add(shelf, entry);
    }
}

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        if self.is_paid {
            return;
        }
        let entry = &mut self.entry;
        let kept = self.sandbox.turn(|turn| {
            if entry.seq == 0 {
                entry.at = turn.now;
                journal::add(turn.shelf, entry);
            } else {
                journal::lose(turn.shelf, entry.seq);
            }
        });
        if let Err(error) = kept {
            tracing::error!(%error, "Could not note that a reply was lost");
        }
        let seq = self.entry.seq;
        // Waiters look again even where an entry only changed.
        self.sandbox.0.journal.send_modify(|last| *last = (*last).max(seq));
    }
}

async fn take(
    sandbox: &Sandbox,
    host: &'static dyn Host,
    name: &str,
    path: &str,
    mut request: Request,
) -> poem::Result<Call> {
    let query = request.uri().query().unwrap_or_default();
    let mut call = Call {
        method: request.method().clone(),
        host: name.to_owned(),
        path: path.to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: request.headers().clone(),
        body: Bytes::new(),
        fields: Vec::new(),
        upload: None,
        fetched: Vec::new(),
        is_too_large: false,
        peer: request
            .remote_addr()
            .as_socket_addr()
            .map(|address| address.ip().to_string())
            .unwrap_or_default(),
    };
    let body = request.take_body();
    let files = &sandbox.0.files;
    match host.intake(&call) {
        intake @ (Intake::Whole(most) | Intake::Members(most)) => {
            let mut reader = body.into_async_read();
            let mut bytes = Vec::new();
            (&mut reader)
                .take(most as u64 + 1)
                .read_to_end(&mut bytes)
                .await
                .map_err(poem::error::BadRequest)?;
            call.is_too_large = bytes.len() > most;
            if call.is_too_large {
                bytes.clear();
                tokio::io::copy(&mut reader, &mut tokio::io::sink())
                    .await
                    .map_err(poem::error::BadRequest)?;
            }
            if call.mime() == Some("application/x-www-form-urlencoded") {
                call.fields = form_urlencoded::parse(&bytes).into_owned().collect();
            }
            if matches!(intake, Intake::Members(_)) {
                let members: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
                call.fields = members
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())))
                    .collect();
            }
            call.body = bytes.into();
        }
        Intake::Bytes => {
            let mut upload = files.take(body.into_async_read()).await.map_err(poem::error::BadRequest)?;
            upload.declared = call.mime().map(str::to_owned);
            call.upload = Some(upload);
        }
        Intake::Form(part) => {
            let mut form = Multipart::from_request(&request, &mut RequestBody::new(body)).await?;
            while let Some(field) = form.next_field().await? {
                let name = field.name().unwrap_or_default().to_owned();
                // Some forms may carry their file under one of several names.
                if part.split('|').any(|one| one == name) {
                    let (file, declared) =
                        (field.file_name().map(str::to_owned), field.content_type().map(str::to_owned));
                    let mut upload = files
                        .take(Box::pin(field.into_async_read()))
                        .await
                        .map_err(poem::error::BadRequest)?;
                    (upload.name, upload.declared) = (file, declared);
                    call.upload = Some(upload);
                } else {
                    call.fields.push((name, field.text().await?));
                }
            }
        }
    }
    Ok(call)
}

fn reply(answer: Answer) -> Response {
    let mut headers = HeaderMap::new();
    if !answer.mime.is_empty() {
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(answer.mime));
    }
    for (name, value) in answer.headers {
        if let Ok(value) = header::HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    let mut response = Response::builder().status(answer.status).body(answer.body);
    *response.headers_mut() = headers;
    if let Some(message) = answer.socket {
        response.extensions_mut().insert(*message);
    }
    response
}

/// A reply that never leaves: the server closes the connection without a byte.
fn dropped() -> Response {
    Response::builder().status(StatusCode::BAD_GATEWAY).extension(Dropped).body("dropped on purpose")
}

fn broken(error: &anyhow::Error) -> Response {
    tracing::error!(
        error = format!("{error:#}"),
        "The sandbox could not keep what it was about to answer for"
    );
    Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR).body("the sandbox can't write its log")
}
