//! Time limit for receiving a request body.
//!
//! It covers operations, MCP and the dashboard's forms. File uploads have their own limit (`media::content`),
//! since a large one may take hours.
//!
//! A response may precede the body: a request without a key is refused by its head. The rest of the body is
//! then received and dropped, because a client that is still sending when the connection closes does not see
//! the response (RFC 9112, section 9.6).

use crate::http::problem::Problem;
use bytes::Bytes;
use futures::{
    FutureExt, Stream, StreamExt,
    stream::{self, BoxStream},
};
use poem::{Body, Endpoint, IntoResponse, Middleware, Request, Response, http::header::EXPECT};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// Maximum number of bytes that are received and dropped after the response.
const DRAIN_LIMIT: usize = 2 << 20;

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
        // Such a client sends its body only when somebody reads it.
        let waits = request.headers().contains_key(EXPECT);
        let body = request.take_body().into_bytes_stream();
        let body = Shared::new(until(Instant::now() + self.limit, body, late.clone()).fuse());
        request.set_body(Body::from_bytes_stream(body.clone()));
        let outcome = self.inner.call(request).await;
        if late.load(Ordering::Relaxed) {
            // A response to the incomplete body is dropped.
            return Ok(Problem::timed_out().into_response());
        }
        if !waits {
            body.drain();
        }
        outcome
    }
}

/// A body that is still there after the endpoint dropped it.
#[derive(Clone)]
struct Shared(Arc<Mutex<BoxStream<'static, io::Result<Bytes>>>>);

impl Shared {
    fn new(body: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(body.boxed())))
    }

    /// Receives and drops the rest, up to [`DRAIN_LIMIT`] and within the time limit of the body, while the
    /// response is sent.
    fn drain(mut self) {
        // The usual case: the body was read to its end.
        if let Some(None) = self.next().now_or_never() {
            return;
        }
        tokio::spawn(async move {
            let mut left = DRAIN_LIMIT;
            while let Some(Ok(piece)) = self.next().await
                && piece.len() < left
            {
                left -= piece.len();
            }
        });
    }
}

impl Stream for Shared {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().poll_next(cx)
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
