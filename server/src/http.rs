//! The API's HTTP server: hyper, with limits on what clients may keep open or unfinished.
//!
//! poem's own server has no time-out for a request's head, no ceilings, and accepts in a busy loop when
//! no file descriptor is left. How long a body may take is the API's business (`api::Config`), because
//! the answer to a slow one is a problem document.

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

/// How long to leave the listener alone after it failed, as when no file descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);
/// The largest head of a request in HTTP/1.1, and the most that is read ahead of a body, in bytes.
const BUFFER: usize = 64 << 10;
/// Requests that a connection of HTTP/2 may have under way.
const STREAMS: u32 = 128;
/// How often a connection of HTTP/2 is asked whether its client is still there, and how long that may take.
const PING: Duration = Duration::from_secs(30);

/// Ceilings of connections, and time-outs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at a time. More wait in the listener's backlog; the one that has been idle for longest
    /// is closed to make room for them.
    pub(crate) connections: usize,
    /// How long a request's head may take from its first byte; the first one of a connection, from the
    /// moment that it was accepted.
    pub(crate) head: Duration,
    /// How long a connection may be idle between two requests.
    pub(crate) idle: Duration,
    /// How long a client may take for the next piece of an answer, of a MiB at most.
    pub(crate) unread: Duration,
    /// How long requests under way may take once the server was told to stop.
    pub(crate) grace: Duration,
}

/// Serves until `stop`; then closes idle connections and lets the others finish their requests within
/// the grace period.
///
/// # Errors
///
/// When the listener can't be used.
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
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
        // Those that ended leave the set.
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
    /// Told when another connection waits for this one's place.
    crowded: Arc<Notify>,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl<E: Endpoint<Output = Response> + 'static> Connection<E> {
    async fn serve(self, stream: TcpStream) {
        // Answers are written whole: there is nothing to wait for before sending.
        let _ = stream.set_nodelay(true);
        let (activity, mut changes) = watch::channel(Activity::accepted());
        let io = TokioIo::new(Observed { stream, activity: activity.clone() });
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let under_way = UnderWay::begin(activity.clone(), request.version());
            let endpoint = self.endpoint.clone();
            let (local, peer) = (LocalAddr(self.local.into()), RemoteAddr(self.peer.into()));
            async move {
                let request = Request::from((request, local, peer, Scheme::HTTP));
                let response = endpoint.get_response(request).await;
                let response = hyper::Response::from(response);
                Ok::<_, io::Error>(response.map(|body| Answer::begin(body, under_way)))
            }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // The time-out of a head is ours: hyper's own counts idle time as well.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING);
        let mut connection = pin!(builder.serve_connection(io, service));
        let (mut leaving, mut told) = (false, false);
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
                // Received bytes are handled before anything else is decided.
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        debug!(%error, peer = %self.peer, "A connection to the API ended early");
                    }
                    return;
                }
                _ = changes.changed() => {}
                () = expiry => {
                    // Pieces of an answer move the deadline without a word.
                    let now = *changes.borrow();
                    if now.deadline(&self.limits).is_some_and(|deadline| deadline > Instant::now()) {
                        continue;
                    }
                    if leaving || !now.is_idle() {
                        debug!(peer = %self.peer, "A client of the API was too slow");
                        return;
                    }
                    leaving = true;
                }
                () = self.crowded.notified(), if now.is_idle() && !leaving => leaving = true,
                () = self.stop.cancelled(), if !leaving => leaving = true,
            }
            if leaving && !std::mem::replace(&mut told, true) {
                connection.as_mut().graceful_shutdown();
                activity.send_modify(Activity::told_to_leave);
            }
        }
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Requests whose answer is not handed over yet.
    requests: usize,
    /// Of these, how many have an answer.
    answers: usize,
    /// When a piece of an answer was last taken.
    taken: Instant,
    /// True when a request head is due, rather than allowed to come at any time. Counts where there are no requests.
    head_due: bool,
    /// Since when that is so.
    since: Instant,
    /// True when several requests share it (HTTP/2); bytes may then belong to none of them.
    is_shared: bool,
}

impl Activity {
    fn accepted() -> Self {
        let now = Instant::now();
        Self { requests: 0, answers: 0, taken: now, head_due: true, since: now, is_shared: false }
    }

    /// True when it is kept open for further requests.
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.head_due
    }

    /// When to end it, unless something happens before. While an answer is being made there is no limit
    /// here.
    fn deadline(&self, limits: &Limits) -> Option<Instant> {
        match (self.requests, self.answers) {
            (0, _) if self.head_due => Some(self.since + limits.head),
            (0, _) => Some(self.since + limits.idle),
            (_, 0) => None,
            _ => Some(self.taken + limits.unread),
        }
    }

    /// A client may go on sending for as long as a head may take.
    fn told_to_leave(&mut self) {
        (self.head_due, self.since) = (true, Instant::now());
    }

    /// Bytes came. Whether that changes anything.
    fn heard(&mut self) -> bool {
        let begins = self.is_idle() && !self.is_shared;
        if begins {
            (self.head_due, self.since) = (true, Instant::now());
        }
        begins
    }
}

/// A request under way, until its answer was handed over.
struct UnderWay(watch::Sender<Activity>);

impl UnderWay {
    fn begin(activity: watch::Sender<Activity>, version: Version) -> Self {
        activity.send_modify(|now| {
            now.requests += 1;
            now.head_due = false;
            now.is_shared = version == Version::HTTP_2;
        });
        Self(activity)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|now| {
            now.requests -= 1;
            now.since = Instant::now();
        });
    }
}

/// The body of an answer, which keeps its request under way.
struct Answer<B> {
    body: B,
    under_way: UnderWay,
}

impl<B> Answer<B> {
    fn begin(body: B, under_way: UnderWay) -> Self {
        under_way.0.send_modify(|now| (now.answers, now.taken) = (now.answers + 1, Instant::now()));
        Self { body, under_way }
    }
}

impl<B> Drop for Answer<B> {
    fn drop(&mut self) {
        self.under_way.0.send_modify(|now| now.answers -= 1);
    }
}

impl<B: Body + Unpin> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        // The deadline is only put off: nobody has to be woken for that.
        self.under_way.0.send_if_modified(|now| {
            now.taken = Instant::now();
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

/// A connection that tells when bytes come.
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
            self.activity.send_if_modified(Activity::heard);
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
