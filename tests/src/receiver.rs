//! A webhook receiver: a real listener that records deliveries and responds with configured statuses.

use crate::{PATIENCE, runtime::serve};
use poem::{Endpoint, Request, Response, http::StatusCode};
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

/// A received delivery.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The path of the request.
    pub path: String,
    /// The headers, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// The raw body.
    pub body: Vec<u8>,
}

impl Delivery {
    /// Returns a header's value, or an empty string if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns the time of the signature in Unix seconds; `None` if it was not made with this secret.
    pub fn signed(&self, secret: &str) -> Option<i64> {
        let signature = self.header("x-fanfare-signature");
        let at = signature.split(',').next()?.strip_prefix("t=")?.parse().ok()?;
        (signature == domain::signature::sign(secret, at, &self.body)).then_some(at)
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a delivery is JSON")
    }

    /// Returns the name of the event.
    pub fn event(&self) -> String {
        self.json()["event"].as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Default)]
struct Inbox {
    deliveries: Vec<Delivery>,
    answers: VecDeque<u16>,
}

/// A listener for webhooks.
pub struct Receiver {
    /// The URL of the endpoint.
    pub url: String,
    inbox: Arc<Mutex<Inbox>>,
    arrived: watch::Receiver<usize>,
    gate: watch::Sender<Gate>,
}

/// A gate that delays responses, and the requests that wait at it.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    is_shut: bool,
    waiting: usize,
    most: usize,
}

impl Receiver {
    /// Starts a listener on a free port.
    pub async fn start() -> Self {
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let (notify, arrived) = watch::channel(0);
        let gate = watch::Sender::new(Gate::default());
        let endpoint = Hook { inbox: inbox.clone(), notify, gate: gate.clone() };
        let address = serve(endpoint).await;
        Self { url: format!("http://{address}/hook"), inbox, arrived, gate }
    }

    /// Delays all responses until [`Receiver::release`].
    pub fn hold(&self) {
        self.gate.send_modify(|gate| gate.is_shut = true);
    }

    /// Sends the delayed responses, and stops delaying.
    pub fn release(&self) {
        self.gate.send_modify(|gate| gate.is_shut = false);
    }

    /// Returns the highest number of requests that waited for a response at the same time.
    pub fn most(&self) -> usize {
        self.gate.borrow().most
    }

    /// Responds to the next deliveries with these statuses, then with 200 again.
    pub fn answer(&self, statuses: impl IntoIterator<Item = u16>) {
        self.inbox.lock().expect("not poisoned").answers.extend(statuses);
    }

    /// Responds with 200 from now on.
    pub fn accept(&self) {
        self.inbox.lock().expect("not poisoned").answers.clear();
    }

    /// Returns all deliveries so far.
    pub fn all(&self) -> Vec<Delivery> {
        self.inbox.lock().expect("not poisoned").deliveries.clone()
    }

    /// Waits until `enough` is true of the deliveries so far, and returns them.
    pub async fn until(&self, what: &str, enough: impl Fn(&[Delivery]) -> bool) -> Vec<Delivery> {
        let mut arrived = self.arrived.clone();
        let waiting = async {
            loop {
                let all = self.all();
                if enough(&all) {
                    return all;
                }
                arrived.changed().await.expect("the receiver runs");
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, waiting).await;
        outcome.unwrap_or_else(|_| {
            let seen: Vec<_> = self.all().iter().map(Delivery::event).collect();
            panic!("timed out waiting for {what}; arrived: {seen:?}")
        })
    }

    /// Waits for these events. A name that is listed twice must arrive twice.
    pub async fn events(&self, names: &[&str]) -> Vec<Delivery> {
        let mut wanted: Vec<_> = names.to_vec();
        wanted.sort_unstable();
        self.until(&format!("{names:?}"), |all| {
            let mut seen: Vec<_> = all.iter().map(Delivery::event).collect();
            seen.sort_unstable();
            let mut seen = seen.into_iter().peekable();
            wanted.iter().all(|name| seen.by_ref().any(|event| event == *name))
        })
        .await
    }
}

impl Drop for Receiver {
    /// Only opens the gate. The listener runs until the run ends: without it, late deliveries would be retried.
    fn drop(&mut self) {
        self.release();
    }
}

struct Hook {
    inbox: Arc<Mutex<Inbox>>,
    notify: watch::Sender<usize>,
    gate: watch::Sender<Gate>,
}

/// Counts a request as waiting until it is dropped.
struct Waiting<'a>(&'a watch::Sender<Gate>);

impl<'a> Waiting<'a> {
    fn at(gate: &'a watch::Sender<Gate>) -> Self {
        gate.send_modify(|gate| {
            gate.waiting += 1;
            gate.most = gate.most.max(gate.waiting);
        });
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|gate| gate.waiting -= 1);
    }
}

impl Endpoint for Hook {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let path = request.uri().path().to_owned();
        let headers = request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
            .collect();
        let body = request.take_body().into_vec().await?;
        let status = {
            let mut inbox = self.inbox.lock().expect("not poisoned");
            inbox.deliveries.push(Delivery { path, headers, body });
            inbox.answers.pop_front().unwrap_or(200)
        };
        self.notify.send_modify(|count| *count += 1);
        let _waiting = Waiting::at(&self.gate);
        self.gate.subscribe().wait_for(|gate| !gate.is_shut).await.expect("the gate is held here");
        let status = StatusCode::from_u16(status).expect("a status");
        let response = Response::builder().status(status);
        let response =
            if status.is_redirection() { response.header("location", "/elsewhere") } else { response };
        Ok(response.body("received"))
    }
}
