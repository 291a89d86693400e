//! A server that records the sandbox's answers, and later gives them again with one of them changed.

use crate::fixtures::Platforms;
use futures::{SinkExt, StreamExt, stream};
use poem::{
    Body, Endpoint, Request, Response,
    http::{HeaderName, HeaderValue, StatusCode, header},
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, handshake::derive_accept_key, protocol::Role},
};

/// Requests after which the server names no further page, so that an endless call ends.
const MAX_REQUESTS: usize = 1_000;

/// An answer of a platform.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// True if the connection breaks before the end of the body.
    pub(crate) is_broken: bool,
}

/// A request, and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) answer: Answer,
}

impl Exchange {
    fn is_of(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }
}

/// Behavior of the server.
#[derive(Debug)]
enum Mode {
    /// Answers as the sandbox does, and keeps the answers.
    Record(Vec<Exchange>),
    /// Gives recorded answers.
    Replay(Replay),
}

#[derive(Debug, Default)]
struct Replay {
    exchanges: Vec<Exchange>,
    requests: usize,
    /// Number of requests by method and path.
    seen: HashMap<(String, String), usize>,
}

impl Replay {
    /// Returns the next answer for a method and path, and the last one again once all were given; 404 for a
    /// request that was not recorded.
    fn answer(&mut self, method: &str, path: &str) -> Option<Answer> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return None;
        }
        let count = self.seen.entry((method.to_owned(), path.to_owned())).or_default();
        let mut all = self.exchanges.iter().filter(|exchange| exchange.is_of(method, path));
        let nth = all.clone().nth(*count).or_else(|| all.next_back());
        *count += 1;
        nth.map(|exchange| exchange.answer.clone())
    }
}

/// The server's state; clones share it.
#[derive(Clone)]
pub(crate) struct Stage(Arc<Mutex<Mode>>);

impl Default for Stage {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Mode::Record(Vec::new()))))
    }
}

impl Stage {
    /// Returns the answers recorded since the last call, and goes on recording.
    pub(crate) fn recorded(&self) -> Vec<Exchange> {
        match std::mem::replace(&mut *self.lock(), Mode::Record(Vec::new())) {
            Mode::Record(exchanges) => exchanges,
            Mode::Replay(_) => Vec::new(),
        }
    }

    /// Gives these answers from now on.
    pub(crate) fn replay(&self, exchanges: Vec<Exchange>) {
        *self.lock() = Mode::Replay(Replay { exchanges, ..Replay::default() });
    }

    /// Returns the number of requests since [`Stage::replay`].
    pub(crate) fn requests(&self) -> usize {
        match &*self.lock() {
            Mode::Record(exchanges) => exchanges.len(),
            Mode::Replay(replay) => replay.requests,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Mode> {
        self.0.lock().expect("nobody panicked with it")
    }

    /// Answers a request.
    pub(crate) async fn serve(self, sandbox: Platforms, mut request: Request) -> poem::Result<Response> {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let replayed = match &mut *self.lock() {
            Mode::Record(_) => None,
            Mode::Replay(replay) => Some(replay.answer(&method, &path)),
        };
        if let Some(answer) = replayed {
            // Read, so that the connection stays.
            let _ = request.take_body().into_bytes().await;
            return Ok(match answer {
                Some(answer) if answer.status == 101 => upgraded(request, answer),
                Some(answer) => response(answer),
                None => Response::builder().status(StatusCode::NOT_FOUND).body("{}"),
            });
        }
        let mut response = sandbox.get_response(request).await;
        let body = response.take_body().into_bytes().await?;
        // Requests to the sandbox's own paths are not calls to a platform.
        if !path.starts_with("/_") {
            let headers = response.headers().iter();
            let answer = Answer {
                status: response.status().as_u16(),
                headers: headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
                body: body.to_vec(),
                is_broken: false,
            };
            if let Mode::Record(exchanges) = &mut *self.lock() {
                exchanges.push(Exchange { method, path, answer });
            }
        }
        response.set_body(body);
        Ok(response)
    }
}

fn response(answer: Answer) -> Response {
    let body = match answer.is_broken {
        false => Body::from(answer.body),
        true => {
            let broken = Err(io::Error::other("the connection breaks on purpose"));
            Body::from_bytes_stream(
                stream::iter([Ok(answer.body), broken]).map(|part| part.map(bytes::Bytes::from)),
            )
        }
    };
    let status = StatusCode::from_u16(answer.status).expect("a status");
    let mut response = Response::builder().status(status).body(body);
    for (name, value) in answer.headers {
        let name: HeaderName = name.parse().expect("a header's name");
        // The server adds both.
        if name != header::CONTENT_LENGTH && name != header::TRANSFER_ENCODING {
            response.headers_mut().append(name, HeaderValue::from_bytes(&value).expect("a header's value"));
        }
    }
    response
}

/// Upgrades the connection to a WebSocket with one message, the answer's body.
fn upgraded(request: Request, answer: Answer) -> Response {
    let key = request.headers().get("sec-websocket-key").map(|key| derive_accept_key(key.as_bytes()));
    let (Some(key), Ok(upgrade)) = (key, request.take_upgrade()) else {
        return Response::builder().status(StatusCode::UPGRADE_REQUIRED).finish();
    };
    tokio::spawn(async move {
        let Ok(connection) = upgrade.await else { return };
        let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, None).await;
        let message = match String::from_utf8(answer.body) {
            Ok(text) => Message::text(text),
            Err(error) => Message::binary(error.into_bytes()),
        };
        // Fails when the client has closed the connection.
        let _ = socket.send(message).await;
        let _ = socket.close(None).await;
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, "websocket")
        .header(header::CONNECTION, "Upgrade")
        .header("sec-websocket-accept", key)
        .finish()
}
