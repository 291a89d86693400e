//! Time limit for receiving a request body.
//!
//! It covers operations, MCP and the dashboard's forms. File uploads have their own limit (`media::content`),
//! since a large one may take hours.

use crate::http::problem::Problem;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use poem::{Body, Endpoint, IntoResponse, Middleware, Request, Response};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// Middleware that responds with 408 if a body does not arrive in time.
pub(crate) struct BodyTimeout {
    /// Time limit, from the end of the request's head.
    pub(crate) limit: Duration,
    /// True for requests whose body has a time limit of its own.
    pub(crate) is_exempt: fn(&Request) -> bool,
}

impl<E: Endpoint<Output = Response>> Middleware<E> for BodyTimeout {
    type Output = Timed<E>;

    fn transform(&self, inner: E) -> Self::Output {
        Timed { inner, limit: self.limit, is_exempt: self.is_exempt }
    }
}

/// An endpoint behind the middleware.
pub(crate) struct Timed<E> {
    inner: E,
    limit: Duration,
    is_exempt: fn(&Request) -> bool,
}

impl<E: Endpoint<Output = Response>> Endpoint for Timed<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        if (self.is_exempt)(&request) {
            return self.inner.call(request).await;
        }
        let late = Arc::new(AtomicBool::new(false));
        let body = request.take_body().into_bytes_stream();
        let body = until(Instant::now() + self.limit, body, late.clone());
        request.set_body(Body::from_bytes_stream(body));
        let outcome = self.inner.call(request).await;
        if late.load(Ordering::Relaxed) {
            // A response to the incomplete body is dropped.
            return Ok(Problem::timed_out().into_response());
        }
        outcome
    }
}

/// The chunks received until `deadline`, then an error.
fn until(
    deadline: Instant,
    body: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    late: Arc<AtomicBool>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::unfold(Some(Box::pin(body)), move |body| {
        let late = late.clone();
        async move {
            let mut body = body?;
            match timeout_at(deadline, body.next()).await {
                Ok(piece) => Some((piece?, Some(body))),
                Err(_) => {
                    late.store(true, Ordering::Relaxed);
                    Some((Err(io::ErrorKind::TimedOut.into()), None))
                }
            }
        }
    })
}
