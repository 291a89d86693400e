//! The API's HTTP server: hyper, with limits on what clients may keep open or unfinished.
//!
//! poem's own server has no timeout for a request's head and no limits, and accepts in a busy loop when no
//! file descriptor is left. The timeout of a body belongs to the API (`api::Config`), because it answers a
//! slow one with a problem document.

use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use poem::{
    Endpoint, Request, Response,
    http::{Version, uri::Scheme},
    web::{LocalAddr, RemoteAddr},
};
use std::{
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// Pause after a failed accept, for example when no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum size of an HTTP/1.1 request head, and read buffer of a body, in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Maximum concurrent requests of an HTTP/2 connection.
const MAX_STREAMS: u32 = 128;
/// Interval and timeout of HTTP/2 keep-alive pings.
const PING: Duration = Duration::from_secs(30);

/// Limits and timeouts of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum connections. Further ones wait in the listener's backlog; the longest idle one is closed to make
    /// room for them.
    pub(crate) connections: usize,
    /// Timeout of a request's head, from its first byte; of a connection's first request, from the accept.
    pub(crate) head: Duration,
    /// Timeout of an idle connection between two requests.
    pub(crate) idle: Duration,
    /// Timeout for a client to read the next chunk of a response, of at most 1 MiB.
    pub(crate) unread: Duration,
    /// Time for open requests to finish after a stop.
    pub(crate) grace: Duration,
}

/// Serves until `stop`; then closes idle connections and waits for open requests within the grace period.
///
/// # Errors
///
/// If the listener can't be used.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    endpoint: impl Endpoint<Output = Response> + 'static,
    limits: Limits,
    stop: CancellationToken,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let local = listener.local_addr()?;
    let endpoint = Arc::new(endpoint);
    let room = Arc::new(Semaphore::new(limits.connections));
    let crowded = Arc::new(Notify::new());
    let mut connections = JoinSet::new();
    let mut failing = false;
    loop {
        let accepting = async {
            let accepted = listener.accept().await?;
            if room.available_permits() == 0 {
                crowded.notify_one();
            }
            let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((accepted, permit))
        };
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = accepting => match accepted {
                Ok(((stream, peer), permit)) => {
                    failing = false;
                    let connection = Connection {
                        endpoint: endpoint.clone(),
                        local,
                        peer,
                        limits,
                        crowded: crowded.clone(),
                        stop: stop.clone(),
                        _permit: permit,
                    };
                    connections.spawn(connection.serve(stream));
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        warn!(%error, "The API can't accept connections");
                    }
                    // An idle connection holds a file descriptor that others wait for.
                    crowded.notify_one();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
        // Removes finished connections from the set.
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.grace, all).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

/// One connection and its service.
struct Connection<E> {
    endpoint: Arc<E>,
    local: SocketAddr,
    peer: SocketAddr,
    limits: Limits,
    /// Notified when another connection waits for a free slot.
    crowded: Arc<Notify>,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl<E: Endpoint<Output = Response> + 'static> Connection<E> {
    async fn serve(self, stream: TcpStream) {
        // Responses are written as a whole, so Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let (activity, mut changes) = watch::channel(Activity::accepted());
        let io = TokioIo::new(Observed { stream, activity: activity.clone() });
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let open_request = OpenRequest::begin(activity.clone(), request.version());
            let endpoint = self.endpoint.clone();
            let (local, peer) = (LocalAddr(self.local.into()), RemoteAddr(self.peer.into()));
            async move {
                let request = Request::from((request, local, peer, Scheme::HTTP));
                let response = endpoint.get_response(request).await;
                let response = hyper::Response::from(response);
                Ok::<_, io::Error>(response.map(|body| ResponseBody::begin(body, open_request)))
            }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // The timeout of heads is implemented here, because hyper's includes idle time.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING);
        let mut connection = pin!(builder.serve_connection(io, service));
        let (mut is_closing, mut is_shut_down) = (false, false);
        loop {
            let now = *changes.borrow_and_update();
            let deadline = now.deadline(&self.limits);
            let expiry = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Received bytes take precedence over timeouts.
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        debug!(%error, peer = %self.peer, "A connection to the API ended early");
                    }
                    return;
                }
                _ = changes.changed() => {}
                () = expiry => {
                    // Sent chunks move the deadline without a notification.
                    let now = *changes.borrow();
                    if now.deadline(&self.limits).is_some_and(|deadline| deadline > Instant::now()) {
                        continue;
                    }
                    if is_closing || !now.is_idle() {
                        debug!(peer = %self.peer, "A client of the API was too slow");
                        return;
                    }
                    is_closing = true;
                }
                () = self.crowded.notified(), if now.is_idle() && !is_closing => is_closing = true,
                () = self.stop.cancelled(), if !is_closing => is_closing = true,
            }
            if is_closing && !std::mem::replace(&mut is_shut_down, true) {
                connection.as_mut().graceful_shutdown();
                activity.send_modify(Activity::begin_close);
            }
        }
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Requests whose response is not fully sent.
    requests: usize,
    /// Number of these that have begun their response.
    responses: usize,
    /// Time at which the last chunk of a response was sent.
    sent_at: Instant,
    /// True if the head timeout applies, false if the idle timeout does. Relevant without open requests only.
    head_due: bool,
    /// Start of that timeout.
    since: Instant,
    /// True for HTTP/2, where received bytes need not belong to a request.
    is_shared: bool,
}

impl Activity {
    fn accepted() -> Self {
        let now = Instant::now();
        Self { requests: 0, responses: 0, sent_at: now, head_due: true, since: now, is_shared: false }
    }

    /// Returns true if the connection only waits for further requests.
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.head_due
    }

    /// Returns the time at which the connection is closed without further activity; `None` while a response is
    /// being computed.
    fn deadline(&self, limits: &Limits) -> Option<Instant> {
        match (self.requests, self.responses) {
            (0, _) if self.head_due => Some(self.since + limits.head),
            (0, _) => Some(self.since + limits.idle),
            (_, 0) => None,
            _ => Some(self.sent_at + limits.unread),
        }
    }

    /// Starts closing: the client may finish sending a request within the head timeout.
    fn begin_close(&mut self) {
        (self.head_due, self.since) = (true, Instant::now());
    }

    /// Records received bytes; returns true if a request begins.
    fn received(&mut self) -> bool {
        let begins = self.is_idle() && !self.is_shared;
        if begins {
            (self.head_due, self.since) = (true, Instant::now());
        }
        begins
    }
}

/// An open request, until its response is fully sent.
struct OpenRequest(watch::Sender<Activity>);

impl OpenRequest {
    fn begin(activity: watch::Sender<Activity>, version: Version) -> Self {
        activity.send_modify(|now| {
            now.requests += 1;
            now.head_due = false;
            now.is_shared = version == Version::HTTP_2;
        });
        Self(activity)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|now| {
            now.requests -= 1;
            now.since = Instant::now();
        });
    }
}

/// Body of a response, which keeps its request open.
struct ResponseBody<B> {
    body: B,
    open_request: OpenRequest,
}

impl<B> ResponseBody<B> {
    fn begin(body: B, open_request: OpenRequest) -> Self {
        open_request.0.send_modify(|now| (now.responses, now.sent_at) = (now.responses + 1, Instant::now()));
        Self { body, open_request }
    }
}

impl<B> Drop for ResponseBody<B> {
    fn drop(&mut self) {
        self.open_request.0.send_modify(|now| now.responses -= 1);
    }
}

impl<B: Body + Unpin> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        // The deadline only moves later, which needs no wake-up.
        self.open_request.0.send_if_modified(|now| {
            now.sent_at = Instant::now();
            false
        });
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that records received bytes.
struct Observed {
    stream: TcpStream,
    activity: watch::Sender<Activity>,
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.send_if_modified(Activity::received);
        }
        read
    }
}

impl AsyncWrite for Observed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
