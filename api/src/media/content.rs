//! Upload and download of media files that are stored in a local directory.
//!
//! These routes are no operations of the API: a signed token in the URL authorizes them, like a bucket's
//! presigned URL, so that browsers can upload and platforms can download without an API key. The dashboard, whose
//! sessions are of the whole organization, calls the same functions. So no bound limits them.

use crate::{
    app::{App, PREFIX},
    http::{
        body::drain,
        headers,
        problem::{Code, Problem},
    },
    media::{STORAGE, missing, read, too_large},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Fit, MediaId, MediaStatus, Owner, media::DeclaredFile};
use futures::{Stream, StreamExt};
use media::{MinRate, Permission, Piece, SignedToken, StoredFile, UploadError};
use poem::{
    Body, IntoEndpoint, Request, Response, Route, get, handler,
    http::{HeaderValue, Method, StatusCode, header},
    put,
    web::{Data, Path},
};
use std::{io, ops::Range, time::Duration};
use store::{
    Pool,
    bounds::unbounded,
    media::{BeginUpload, Fault, Reason, Upload},
    people::organizations,
};
use tracing::{error, warn};
use url::form_urlencoded;

/// Paths for uploads and downloads, below the API's prefix.
pub const PATHS: [&str; 3] = [
    "/media/{id}/content",
    "/media/{id}/content/{pass}/{name}",
    "/media/{id}/renditions/{pass}/{fit}/{name}",
];

/// Path of the dashboard to which its form sends files, and beginning of that to which its script sends one.
const DASHBOARD: &str = "/dashboard/media/";

/// How much of a refused file is received and dropped, in bytes and time, so that a client which sends all of it before
/// it reads sees the refusal: more than twice the limit of a picture.
const DRAIN_LIMIT: (u64, Duration) = (64 << 20, Duration::from_secs(20));

/// Minimum average rate of an upload, in bytes per second.
const MIN_BYTES_PER_SECOND: u64 = 4 << 10;

/// Largest picture that is its own thumbnail, in bytes.
const MAX_OWN_THUMBNAIL: u64 = 1 << 20;

/// A GIF of one transparent pixel.
const CLEAR: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\0\0\0\x21\xf9\x04\x01\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b";

/// True for requests that upload files: their bodies have a time limit of their own.
pub(crate) fn is_upload(request: &Request) -> bool {
    let path = request.uri().path();
    if request.method() == Method::POST {
        let of_dashboard = path.strip_prefix(DASHBOARD);
        return of_dashboard.is_some_and(|rest| rest == "files" || rest.ends_with("/content"));
    }
    let id = || path.strip_prefix(PREFIX)?.strip_prefix("/media/")?.strip_suffix("/content");
    request.method() == Method::PUT && id().is_some()
}

/// Adds the routes below `prefix`.
pub fn routes(route: Route, prefix: &str) -> Route {
    route
        .at(format!("{prefix}/media/:id/content"), put(take).into_endpoint())
        .at(format!("{prefix}/media/:id/content/:pass/:name"), get(give).into_endpoint())
        .at(format!("{prefix}/media/:id/renditions/:pass/:fit/:name"), get(give_rendition).into_endpoint())
}

/// Receives an upload; until it is confirmed it can be repeated, replacing the previous bytes.
#[handler]
async fn take(request: &Request, body: Body, app: Data<&App>, id: Path<String>) -> Result<Response, Problem> {
    let query = request.uri().query().unwrap_or_default();
    let text = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "pass");
    let pass = admit(&app, Permission::Put, &id, &text.map(|(_, text)| text).unwrap_or_default())?;
    receive_body(request, body, &app, pass.owner, pass.media).await
}

/// Receives the file of an announced asset in the body of a request.
pub async fn receive_body(
    request: &Request,
    body: Body,
    app: &App,
    owner: Owner,
    media: MediaId,
) -> Result<Response, Problem> {
    let row = store::media::get(&app.db, unbounded(owner), media).await?.ok_or_else(missing)?;
    if row.status != MediaStatus::PendingUpload || row.source_url.is_some() {
        return Err(closed());
    }
    let length = headers::length(request.headers())?;
    let mut bytes = body.into_bytes_stream();
    match receive(app, owner, &row, length, &mut bytes).await? {
        Ok(_) => Ok(StatusCode::OK.into()),
        Err(error) => {
            let is_slow = matches!(error, UploadError::Slow { .. });
            let (problem, reason) = refusal(&row.declared, error);
            if let Some(reason) = reason {
                let fault = Fault { reason, message: problem.detail.clone() };
                store::media::refuse_upload(&app.db, owner, media, &fault).await?;
            }
            if !is_slow {
                drain(Body::from_bytes_stream(bytes).into_async_read(), DRAIN_LIMIT).await;
            }
            Err(problem)
        }
    }
}

/// Receives the bytes of an asset, `length` of them if that is known, and returns their number. Until the asset is
/// confirmed they replace those that were received before.
pub(crate) async fn receive(
    app: &App,
    owner: Owner,
    row: &store::media::Media,
    length: Option<u64>,
    bytes: impl Stream<Item = Piece>,
) -> Result<Result<u64, UploadError>, Problem> {
    let files = &app.config.media;
    let declared = &row.declared;
    let claimed = media::claimed(declared.content_type.as_deref(), &row.filename);
    let most = declared.size.unwrap_or_else(|| files.size_limits().for_declared(claimed));
    if length.is_some_and(|length| length > most) {
        return Ok(Err(UploadError::TooLarge(most)));
    }
    let min_rate = MinRate { idle_timeout: app.config.body_timeout, bytes_per_second: MIN_BYTES_PER_SECOND };
    let mut turn = Turn::take(app, owner, row.id, length, most).await?;
    let file = asset(owner, row);
    let receiving = files.receive(&file, bytes, turn.upload.max_bytes, declared, min_rate);
    let outcome = tokio::select! {
        outcome = receiving => outcome,
        lost = turn.lost() => return Err(lost),
    };
    turn.end(outcome.as_ref().ok().copied()).await?;
    Ok(outcome)
}

/// The response to an upload that was not taken, and the reason if it is the file's.
pub(crate) fn refusal(declared: &DeclaredFile, error: UploadError) -> (Problem, Option<Reason>) {
    let unfit = |message| (Problem::new(Code::Unprocessable, message), Some(Reason::Unfit));
    match error {
        // More bytes than declared contradict the declaration.
        UploadError::TooLarge(_) if declared.size.is_some() => unfit(error.to_string()),
        UploadError::TooLarge(_) => (too_large(error.to_string()), Some(Reason::TooLarge)),
        UploadError::Other(message) => unfit(message),
        UploadError::Slow { .. } => (Problem::timed_out(), None),
        UploadError::Broken(_) => (Problem::new(Code::InvalidRequest, error.to_string()), None),
        UploadError::Store(error) => (unreadable(&error), None),
    }
}

/// Time for which a running upload keeps others of the same asset away after it was last seen.
const UPLOAD_LEASE: TimeDelta = TimeDelta::seconds(30);
/// Interval at which a running upload is marked as seen.
const UPLOAD_SEEN_INTERVAL: Duration = Duration::from_secs(10);

/// The turn of an upload: there is one of an asset at a time, so that a pass for one file can't fill the disk. When
/// the client hangs up, dropping it ends the turn.
struct Turn {
    db: Pool,
    now: fn() -> DateTime<Utc>,
    upload: Upload,
    is_over: bool,
}

impl Turn {
    async fn take(
        app: &App,
        owner: Owner,
        media: MediaId,
        length: Option<u64>,
        most: u64,
    ) -> Result<Self, Problem> {
        let now = (app.now)();
        let begun = store::media::begin_upload(&app.db, owner, media, length, most, UPLOAD_LEASE, now);
        match begun.await? {
            BeginUpload::Begun(upload) => {
                Ok(Self { db: app.db.clone(), now: app.now, upload, is_over: false })
            }
            BeginUpload::Busy => Err(Problem::new(
                Code::Conflict,
                "another upload of this file is in progress; wait for its end",
            )),
            BeginUpload::Closed => Err(closed()),
            BeginUpload::Exceeded(exceeded) => {
                let plan = organizations::plan(&app.db, owner.org).await?.unwrap_or_default();
                Err(app.config.plans.of(&plan).refuse_more(STORAGE, exceeded))
            }
        }
    }

    /// Keeps the turn. Returns when it is lost, with the reason.
    async fn lost(&self) -> Problem {
        loop {
            tokio::time::sleep(UPLOAD_SEEN_INTERVAL).await;
            match store::media::keep_upload(&self.db, self.upload, (self.now)()).await {
                Ok(true) => {}
                Ok(false) => return closed(),
                // The lease is longer than the interval; the next time may do.
                Err(error) => warn!(%error, "A running upload can't be marked as seen"),
            }
        }
    }

    async fn end(&mut self, size: Option<u64>) -> Result<(), Problem> {
        self.is_over = true;
        Ok(store::media::end_upload(&self.db, self.upload, size).await?)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            let (db, upload) = (self.db.clone(), self.upload);
            tokio::spawn(async move {
                if let Err(error) = store::media::end_upload(&db, upload, None).await {
                    warn!(%error, "The turn of an upload can't be ended; it expires");
                }
            });
        }
    }
}

/// Serves a file or a range of it.
#[handler]
async fn give(
    request: &Request,
    app: Data<&App>,
    path: Path<(String, String, String)>,
) -> Result<Response, Problem> {
    let (id, text, _) = path.0;
    let (file, row) = ready(&app, &id, &text).await?;
    Ok(serve_asset(request, &app, &file, &row))
}

/// Serves the file of an owner, or a range of it.
pub async fn give_file(request: &Request, app: &App, owner: Owner, id: &str) -> Result<Response, Problem> {
    let (file, row) = of_owner(app, owner, read(id)?).await?;
    Ok(serve_asset(request, app, &file, &row))
}

/// Serves the thumbnail of a picture. Until a worker has made it, and for a picture of which none can be made, that is
/// the picture itself if it is small, and else nothing to be seen, below which the page shows an icon.
pub async fn give_thumbnail(
    request: &Request,
    app: &App,
    owner: Owner,
    id: &str,
) -> Result<Response, Problem> {
    let (file, row) = of_owner(app, owner, read(id)?).await?;
    let mime = row.content_type.as_deref().unwrap_or_default();
    let fit = row.width.zip(row.height).and_then(|(width, height)| Fit::thumbnail(mime, width, height));
    let fit = fit.ok_or_else(missing)?;
    let fitted = app.config.media.fitted(&file, &fit).await.map_err(|error| unreadable(&error))?;
    match (fitted, row.size) {
        (Some(fitted), _) => {
            let thumbnail = StoredFile { rendition: Some(fitted.name), ..file };
            Ok(serve(request, app, &thumbnail, fitted.content_type, fitted.size))
        }
        (None, Some(size)) if size <= MAX_OWN_THUMBNAIL => Ok(serve(request, app, &file, mime, size)),
        (None, _) => Ok(Response::builder()
            .content_type("image/gif")
            .header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
            .header(header::CONTENT_SECURITY_POLICY, policy("image/gif"))
            .header(header::CACHE_CONTROL, "no-store")
            .body(CLEAR)),
    }
}

/// Serves a rendition of a file, or a range of it.
#[handler]
async fn give_rendition(
    request: &Request,
    app: Data<&App>,
    path: Path<(String, String, String, String)>,
) -> Result<Response, Problem> {
    let (id, text, fit, name) = path.0;
    let (file, _) = ready(&app, &id, &text).await?;
    let file = StoredFile { rendition: Some(format!("{fit}/{name}")), ..file };
    let fitted =
        app.config.media.rendition(&file).await.map_err(|error| unreadable(&error))?.ok_or_else(missing)?;
    Ok(serve(request, &app, &file, fitted.content_type, fitted.size))
}

/// Returns the file that a token admits to, and its row.
async fn ready(app: &App, id: &str, text: &str) -> Result<(StoredFile, store::media::Media), Problem> {
    let pass = admit(app, Permission::Get, id, text)?;
    of_owner(app, pass.owner, pass.media).await
}

/// Returns the file of an owner, and its row.
async fn of_owner(
    app: &App,
    owner: Owner,
    id: MediaId,
) -> Result<(StoredFile, store::media::Media), Problem> {
    let row = store::media::get(&app.db, unbounded(owner), id).await?;
    let row = row.filter(|row| row.status == MediaStatus::Ready).ok_or_else(missing)?;
    Ok((asset(owner, &row), row))
}

/// Serves the file of an asset, or a range of it.
fn serve_asset(request: &Request, app: &App, file: &StoredFile, row: &store::media::Media) -> Response {
    let mime = row.content_type.as_deref().unwrap_or_default();
    serve(request, app, file, mime, row.size.unwrap_or_default())
}

fn serve(request: &Request, app: &App, file: &StoredFile, mime: &str, size: u64) -> Response {
    let asked = headers::lines(request.headers(), "Range").next();
    let (status, range) = match asked.map(|asked| part(&asked, size)) {
        Some(Part::Range(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(Part::Beyond) => {
            return Response::builder()
                .status(StatusCode::RANGE_NOT_SATISFIABLE)
                .header(header::CONTENT_RANGE, format!("bytes */{size}"))
                .finish();
        }
        Some(Part::Whole) | None => (StatusCode::OK, 0..size),
    };
    let mut response = Response::builder()
        .status(status)
        .content_type(mime)
        .header(header::CONTENT_LENGTH, range.end - range.start)
        .header(header::ACCEPT_RANGES, "bytes")
        // Browsers must not run anything in a user's file.
        .header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .header(header::CONTENT_SECURITY_POLICY, policy(mime))
        .header(header::CACHE_CONTROL, "private, max-age=3600");
    // A document is the only kind that a browser opens as a page.
    if !["image/", "video/", "audio/"].iter().any(|kind| mime.starts_with(kind)) {
        response = response.header(header::CONTENT_DISPOSITION, "attachment");
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let content_range = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        response = response.header(header::CONTENT_RANGE, content_range);
    }
    let bytes = app.config.media.stream(file, range);
    response.body(Body::from_bytes_stream(bytes.map(|piece| piece.map_err(io::Error::other))))
}

/// Content security policy of a file. A browser plays one that is opened by itself in a page of its own, which has this
/// policy and asks for the file again; it runs no scripts either.
fn policy(mime: &str) -> &'static str {
    if mime.starts_with("video/") || mime.starts_with("audio/") {
        "default-src 'none'; media-src 'self'; sandbox allow-same-origin"
    } else {
        "default-src 'none'; sandbox"
    }
}

fn admit(app: &App, right: Permission, id: &str, text: &str) -> Result<SignedToken, Problem> {
    let key = app.config.media.token_key().ok_or_else(missing)?;
    let media = id.parse().map_err(|_| missing())?;
    let pass = key.read(right, media, text, (app.now)());
    pass.ok_or_else(|| Problem::new(Code::Forbidden, "this URL is invalid or has expired"))
}

fn asset(owner: Owner, row: &store::media::Media) -> StoredFile {
    StoredFile { media: row.id, owner, filename: row.filename.clone(), rendition: None }
}

fn unreadable(error: &(dyn std::error::Error + 'static)) -> Problem {
    error!(error = error as &dyn std::error::Error, "The media storage failed");
    if media::needs_operator(error) {
        let message = "the media storage can't be used; the operator of the service has to repair it";
        return Problem::new(Code::InternalError, message);
    }
    Problem::unavailable()
}

fn closed() -> Problem {
    Problem::new(Code::Conflict, "the upload was confirmed; the file can't be replaced")
}

/// A parsed `Range` header. <https://www.rfc-editor.org/rfc/rfc9110#name-range>
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// The whole file; several ranges and other units are ignored.
    Whole,
    /// One range.
    Range(Range<u64>),
    /// Not satisfiable.
    Beyond,
}

fn part(asked: &str, size: u64) -> Part {
    let read = || {
        let (first, last) = asked.strip_prefix("bytes=")?.trim().split_once('-')?;
        match (first, last) {
            ("", last) => {
                let last: u64 = last.parse().ok()?;
                Some((size.saturating_sub(last), size, last > 0))
            }
            (first, "") => Some((first.parse().ok()?, size, true)),
            (first, last) => {
                let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some((first, last.saturating_add(1).min(size), true))
            }
        }
    };
    match read() {
        None => Part::Whole,
        Some((start, end, true)) if start < end => Part::Range(start..end),
        Some(_) => Part::Beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_or_ignored() {
        for (asked, expected) in [
            ("bytes=0-0", Part::Range(0..1)),
            ("bytes=2-", Part::Range(2..10)),
            ("bytes=2-99", Part::Range(2..10)),
            ("bytes=-3", Part::Range(7..10)),
            ("bytes=-99", Part::Range(0..10)),
            ("bytes=10-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes=18446744073709551615-18446744073709551615", Part::Beyond),
            ("lines=1-2", Part::Whole),
        ] {
            assert_eq!(part(asked, 10), expected, "{asked}");
        }
        assert_eq!(part("bytes=0-0", 0), Part::Beyond);
    }
}
