//! Media assets: a library with thumbnails, uploads, and fetching a file from a URL.
//!
//! Without a script, files come in a multipart form and are streamed to the file store. The script announces each
//! file, sends it to its upload URL as clients of the API do, and confirms it; the response to that is the markup
//! of the file, for the list that the page shows. A bucket takes files from a page only if its CORS rules say so, and
//! only if the browser reaches it: otherwise the script sends the file here.

use crate::{
    PATH,
    choice::{self, Choice},
    context::{PageContext, done},
    fields::{self, Fields},
    labels::{self, AbsoluteTime, Done, Label},
    layout::{Layout, PageError, put, render, render_uploading, sentence},
    posts::excerpt,
};
use api::{
    accounts,
    http::{
        body,
        problem::{Code, Problem},
    },
    media::{self, Asset, Filter, Wait, content},
    types::enum_string::EnumString,
};
use askama::Template;
use domain::{Fit, MediaKind, MediaStatus, Shaping, scope::Scope};
use futures::{StreamExt, TryStreamExt, stream};
use poem::{
    Body, Response,
    http::{StatusCode, header},
};
use serde_json::json;
use std::collections::HashMap;
use tokio::io::{AsyncRead, AsyncReadExt};
use uuid::Uuid;

/// Number of files per page.
const PAGE_SIZE: u64 = 48;
/// Maximum number of files of one form.
const MAX_FILES: usize = 20;
/// Maximum number of posts that are counted for a file.
const MAX_USES: i64 = 20;
/// Number of posts that are shown with a file.
const SHOWN_USES: usize = 3;
/// Bytes that are read at once of a file in a form.
const PIECE: usize = 64 << 10;

#[derive(Template)]
#[template(path = "media.html")]
struct Media<'a> {
    layout: Layout,
    files: Vec<File>,
    kinds: Vec<Choice>,
    is_filtered: bool,
    total: u64,
    newer: Option<String>,
    older: Option<String>,
    form: &'a Fields,
}

#[derive(Template)]
#[template(path = "media_tile.html")]
struct Tile {
    layout: Layout,
    file: File,
}

#[derive(Template)]
#[template(path = "media_choice.html")]
struct ChoiceTile {
    layout: Layout,
    file: ChosenFile,
}

/// A file that a post in the composer uses.
pub(crate) struct ChosenFile {
    /// Id of the asset.
    pub(crate) id: String,
    /// The picture.
    pub(crate) thumb: Thumb,
    /// Alt text of this post; empty for the file's own.
    pub(crate) alt: String,
    /// Alt text of the file.
    pub(crate) own_alt: Option<String>,
    /// Platforms of the accounts; those that don't get it are chosen.
    pub(crate) platforms: Vec<Choice>,
}

impl ChosenFile {
    /// True if some platforms don't get it.
    pub(crate) fn is_left_out(&self) -> bool {
        self.platforms.iter().any(|platform| platform.is_chosen)
    }

    /// The file, with an alt text of this post and the platforms that don't get it.
    pub(crate) fn of(asset: &Asset, alt: &str, without: &[String], accounts: &[accounts::Account]) -> Self {
        let has_account = |id: &&&str| accounts.iter().any(|account| account.platform.as_str() == **id);
        let choice = |id: &&str| {
            Choice::new(*id, platforms::display_name(id), without.iter().any(|other| other == id))
        };
        Self {
            platforms: platforms::IDS.iter().filter(has_account).map(choice).collect(),
            id: asset.id.to_string(),
            thumb: Thumb::of_asset(asset),
            alt: alt.to_owned(),
            own_alt: asset.alt_text.clone().filter(|alt| !alt.is_empty()),
        }
    }
}

/// The picture that stands for a file, or its icon.
#[derive(Clone)]
pub(crate) struct Thumb {
    /// Name and kind of the file.
    pub(crate) name: String,
    /// Path of the picture; `None` if there can be none.
    pub(crate) image: Option<String>,
    /// Path of the video, which is shown by its first frame.
    pub(crate) video: Option<String>,
    /// Symbol of `icons.svg`.
    pub(crate) icon: &'static str,
    /// Alt text; the name if there is none.
    pub(crate) alt: String,
    /// Playing time, or the type of a file that no picture tells of.
    pub(crate) badge: Option<String>,
    /// Sides in pixels, which reserve the picture's place.
    pub(crate) sides: Option<(u32, u32)>,
    /// The shape that a platform gets it in, if that is another one than its own.
    pub(crate) shaped: Option<Shaped>,
}

/// A picture of another shape, for `viewBox` and `preserveAspectRatio` of SVG.
#[derive(Clone)]
pub(crate) struct Shaped {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) is_cropped: bool,
}

impl Thumb {
    /// The path of the picture, and the shape that it gets.
    pub(crate) fn in_shape(&self) -> Option<(&str, &Shaped)> {
        self.image.as_deref().zip(self.shaped.as_ref())
    }

    /// The picture as it is published with this fitting.
    pub(crate) fn fitted(self, fit: Option<&Fit>) -> Self {
        let shaped = fit.and_then(|fit| {
            let is_cropped = fit.shaping? == Shaping::Crop;
            Some(Shaped { width: fit.width, height: fit.height, is_cropped })
        });
        Self { shaped, ..self }
    }

    /// The picture of a stored file.
    pub(crate) fn of(file: &store::media::Media, alt: Option<&str>) -> Self {
        let alt = alt.or(file.alt_text.as_deref()).filter(|alt| !alt.is_empty());
        Self {
            name: labels::file(file),
            alt: alt.unwrap_or(&file.filename).to_owned(),
            ..Self::showing(&Shown {
                id: file.id.0,
                kind: file.kind,
                is_ready: file.status == MediaStatus::Ready,
                filename: &file.filename,
                content_type: file.content_type.as_deref().unwrap_or_default(),
                sides: file.width.zip(file.height),
                duration_ms: file.duration_ms,
            })
        }
    }

    /// The picture of a file as the API shows it.
    pub(crate) fn of_asset(file: &Asset) -> Self {
        let alt = file.alt_text.as_deref().filter(|alt| !alt.is_empty());
        Self {
            name: format!("{} ({})", file.filename, file.kind.as_str()),
            alt: alt.unwrap_or(&file.filename).to_owned(),
            ..Self::showing(&Shown {
                id: file.id,
                kind: file.kind.value(),
                is_ready: file.status.value() == MediaStatus::Ready,
                filename: &file.filename,
                content_type: file.content_type.as_deref().unwrap_or_default(),
                sides: file.width.zip(file.height),
                duration_ms: file.duration_ms,
            })
        }
    }

    /// The picture of a file, without its name.
    fn showing(file: &Shown<'_>) -> Self {
        let fit = file.sides.and_then(|(width, height)| Fit::thumbnail(file.content_type, width, height));
        let length = file.duration_ms.map(labels::length);
        Self {
            image: fit.filter(|_| file.is_ready).map(|_| file.path("thumbnail")),
            video: (file.kind == MediaKind::Video && file.is_ready).then(|| file.path("file")),
            icon: icon(file.kind),
            badge: match file.kind {
                MediaKind::Image => None,
                MediaKind::Video => length,
                MediaKind::Gif if file.content_type == "image/gif" => Some("GIF".to_owned()),
                MediaKind::Gif => Some("Animation".to_owned()),
                MediaKind::Audio | MediaKind::Document => length.or_else(|| file.extension()),
            },
            sides: file.sides,
            ..Self::named("")
        }
    }

    /// A file of which only a name is known.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            image: None,
            video: None,
            icon: "file",
            alt: name.to_owned(),
            badge: None,
            sides: None,
            shaped: None,
        }
    }
}

/// The facts of a file that decide how it is shown.
struct Shown<'a> {
    id: Uuid,
    kind: MediaKind,
    is_ready: bool,
    filename: &'a str,
    content_type: &'a str,
    sides: Option<(u32, u32)>,
    duration_ms: Option<u64>,
}

impl Shown<'_> {
    /// The path at which the file or its thumbnail is served.
    fn path(&self, what: &str) -> String {
        format!("{PATH}/media/{}/{what}", self.id)
    }

    /// The extension of its name, in capital letters; `None` if it has none that people would know.
    fn extension(&self) -> Option<String> {
        let extension = self.filename.rsplit_once('.')?.1;
        let is_short = (1..=5).contains(&extension.len());
        (is_short && extension.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .then(|| extension.to_ascii_uppercase())
    }
}

fn icon(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image | MediaKind::Gif => "media",
        MediaKind::Video => "video",
        MediaKind::Audio | MediaKind::Document => "file",
    }
}

struct File {
    id: String,
    name: String,
    thumb: Thumb,
    /// Its status, if it can't be posted yet or never.
    label: Option<Label>,
    facts: String,
    alt: Option<String>,
    /// The alt text of a form that was refused.
    written: Option<String>,
    error: Option<String>,
    url: Option<String>,
    /// True while it is inspected, after which it may have a picture.
    is_uploaded: bool,
    created: AbsoluteTime,
    expires: Option<AbsoluteTime>,
    /// Posts that use it.
    posts: Vec<PostLink>,
    /// The number of these posts.
    uses: String,
}

struct PostLink {
    id: String,
    text: String,
}

impl File {
    fn of(media: media::Media, posts: Vec<PostLink>) -> Self {
        let media::Media { asset: media, expires_at } = media;
        let pixels =
            media.width.zip(media.height).map(|(width, height)| format!("{width}\u{a0}×\u{a0}{height}"));
        let thumb = Thumb::of_asset(&media);
        let encoding = media.facts.into_iter().flat_map(|facts| {
            let rate = facts.frame_rate.map(|rate| format!("{}\u{a0}fps", (rate * 100.0).round() / 100.0));
            // Of eight bits are almost all.
            let depth = facts.bit_depth.filter(|depth| *depth != 8).map(|depth| format!("{depth}\u{a0}bits"));
            // Most videos have this one, and no edits.
            let chroma = facts.chroma.filter(|chroma| chroma != "4:2:0");
            let edits = facts.has_edits.filter(|has_edits| *has_edits).map(|_| "edit list".to_owned());
            let lock = facts.is_locked.filter(|is_locked| *is_locked).map(|_| "encrypted".to_owned());
            let cut = facts.is_truncated.filter(|is_truncated| *is_truncated).map(|_| "cut off".to_owned());
            let undecodable = facts.undecodable.map(|why| format!("can\u{2019}t be decoded: {why}"));
            let uncleanable = facts.uncleanable.map(|why| format!("metadata can\u{2019}t be removed: {why}"));
            [
                facts.video_codec,
                facts.audio_codec,
                rate,
                depth,
                chroma,
                edits,
                lock,
                cut,
                undecodable,
                uncleanable,
            ]
        });
        let length = media.duration_ms.map(labels::length);
        let facts =
            [media.content_type, media.size.map(labels::size), pixels, length].into_iter().chain(encoding);
        let uses = match i64::try_from(posts.len()).unwrap_or(MAX_USES) {
            0 => "No post".to_owned(),
            1 => "One post".to_owned(),
            count if count < MAX_USES => format!("{count} posts"),
            count => format!("{count} or more posts"),
        };
        let status = media.status.value();
        Self {
            id: media.id.to_string(),
            name: media.filename,
            thumb,
            label: (status != MediaStatus::Ready).then(|| labels::medium(status)),
            facts: facts.flatten().collect::<Vec<_>>().join(", "),
            alt: media.alt_text.filter(|alt| !alt.is_empty()),
            written: None,
            error: media.error.map(|error| sentence(&error)),
            url: media.url,
            is_uploaded: status == MediaStatus::Uploaded,
            created: AbsoluteTime(media.created_at.0),
            expires: expires_at.map(|at| AbsoluteTime(at.0)),
            posts: posts.into_iter().take(SHOWN_USES).collect(),
            uses,
        }
    }
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    // An invalid page number shows the first page, an unknown kind all kinds.
    let offset: u64 = context.query.get("offset").parse().unwrap_or_default();
    let kind = context.query.get("kind").parse::<MediaKind>().ok();
    let filter = Filter {
        limit: Some(PAGE_SIZE.cast_signed()),
        offset: Some(i64::try_from(offset).unwrap_or(i64::MAX)),
        kind: kind.map(|kind| EnumString::of(kind.as_str())),
        ..Filter::default()
    };
    let call = context.call();
    let found = media::list(&call, filter).await?;
    let total = found.pagination.total;
    let ids: Vec<_> = found.data.iter().map(|file| file.asset.id).collect();
    let mut uses: HashMap<_, Vec<_>> = HashMap::new();
    for used in store::media::uses(context.db(), context.whole()?, &ids, MAX_USES).await? {
        let link = PostLink { id: used.post.to_string(), text: excerpt(&used.text) };
        uses.entry(used.media.0).or_default().push(link);
    }
    let page = |offset: u64| {
        let offset = offset.to_string();
        let kind = kind.map(|kind| ("kind", kind.as_str()));
        fields::write(kind.into_iter().chain([("offset", offset.as_str())]))
    };
    let refused_at = error.as_ref().map(|error| error.at.clone());
    let written = |file: &File| {
        let alt = context.form.all("alt_text").next().filter(|_| refused_at.as_ref() == Some(&file.id));
        alt.map(str::to_owned)
    };
    let layout = Layout { takes_files: true, ..context.layout_with_error("Media", "/media", error) };
    let page = Media {
        layout,
        files: found
            .data
            .into_iter()
            .map(|file| {
                let posts = uses.remove(&file.asset.id).unwrap_or_default();
                let file = File::of(file, posts);
                File { written: written(&file), ..file }
            })
            .collect(),
        kinds: [
            (MediaKind::Image, "Images"),
            (MediaKind::Gif, "Animations"),
            (MediaKind::Video, "Videos"),
            (MediaKind::Audio, "Audio"),
            (MediaKind::Document, "Documents"),
        ]
        .into_iter()
        .map(|(choice, name)| Choice::new(choice.as_str(), name, kind == Some(choice)))
        .collect(),
        is_filtered: kind.is_some(),
        total,
        newer: (offset > 0).then(|| page(offset.saturating_sub(PAGE_SIZE))),
        older: (offset.saturating_add(PAGE_SIZE) < total).then(|| page(offset + PAGE_SIZE)),
        form: &context.form,
    };
    let bucket = media::upload_origin(&call).await?;
    Ok(render_uploading(page.layout.status(), &page, bucket.as_deref()))
}

/// Serves the picture that stands for a file.
pub(crate) async fn thumbnail(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    content::give_thumbnail(context.request, context.app, context.call().owner, id).await
}

/// Serves a file, or a range of it, to the player of a page: from this origin, because the browser may know the service
/// by another name than the download URL has, and may not reach a bucket.
pub(crate) async fn file(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    content::give_file(context.request, context.app, context.call().owner, id).await
}

/// Receives the files of a form, one after the other.
pub(crate) async fn receive(context: &PageContext<'_>, body: Body) -> Result<Response, Problem> {
    let mut form = fields::of_files(context.request, body).await?;
    let unreadable = || Problem::new(Code::InvalidRequest, "the files can't be read: the form ended early");
    let mut count = 0;
    for _ in 0..=MAX_FILES {
        let next = tokio::time::timeout(context.app.config.body_timeout, form.next_field()).await;
        let next = next.map_err(|_| Problem::timed_out())?.map_err(|_| unreadable())?;
        let Some(field) = next else {
            let refused = Problem::new(Code::InvalidRequest, "choose a file first");
            return match count {
                0 => show(context, Some(PageError::of("upload", refused))).await,
                _ => Ok(done("/media", Done::Uploaded)),
            };
        };
        // A form without a chosen file sends one without a name.
        let Some(name) = field.file_name().filter(|name| !name.is_empty()).map(str::to_owned) else {
            continue;
        };
        // A browser guesses the type of a file by its name, so it is not taken for a declaration.
        let wish = json!({ "filename": name });
        let mut file = Box::pin(field.into_async_read());
        let taken = match body::read(wish) {
            Ok(wish) => media::receive(&context.call(), wish, pieces(&mut file)).await,
            Err(problem) => Err(problem),
        };
        if let Err(problem) = taken {
            // Browsers show no response while they are still sending.
            body::drain(file, body::DRAIN_LIMIT).await;
            let mut error = PageError::of("upload", problem);
            error.message = format!("{name}: {}", error.message);
            return show(context, Some(error)).await;
        }
        count += 1;
    }
    let detail = format!("at most {MAX_FILES} files can be uploaded at once; the first {count} were");
    show(context, Some(PageError::of("upload", Problem::new(Code::InvalidRequest, detail)))).await
}

/// Returns the bytes of a file as they arrive.
fn pieces(file: &mut (impl AsyncRead + Unpin + Send)) -> impl futures::Stream<Item = ::media::Piece> + Send {
    let read = stream::try_unfold(file, async |file| {
        let mut piece = Vec::with_capacity(PIECE);
        let size = file.read_buf(&mut piece).await?;
        Ok((size > 0).then(|| (piece.into(), file)))
    });
    read.into_stream().boxed()
}

/// Announces a file that the script is about to upload: its id, and where it goes.
pub(crate) async fn announce(context: &PageContext<'_>) -> Response {
    let form = &context.form;
    let size = form.get("size").parse::<u64>().ok();
    let wish = json!({ "filename": form.get("filename"), "size": size });
    let announced = match body::read(wish) {
        Ok(wish) => media::upload(&context.call(), wish).await,
        Err(problem) => Err(problem),
    };
    let upload = match announced {
        Ok(upload) => upload,
        Err(problem) => return refuse(&problem),
    };
    let text = json!({
        "id": upload.asset.id,
        // The browser may know this service by another name than it knows itself.
        "url": match upload.upload_url.parse::<url::Url>() {
            Ok(url) if !context.app.config.media.is_in_bucket() => url[url::Position::BeforePath..].to_owned(),
            _ => upload.upload_url,
        },
        "method": upload.upload_method,
        "headers": upload.upload_headers,
        "fallback": format!("{PATH}/media/{}/content", upload.asset.id),
    });
    answer(StatusCode::OK, "application/json", text.to_string())
}

/// Receives a file that the script announced, if the browser can't send it to the bucket.
pub(crate) async fn store(context: &PageContext<'_>, body: Body, id: &str) -> Response {
    let received = match media::read(id) {
        Ok(id) => content::receive_body(context.request, body, context.app, context.call().owner, id).await,
        Err(problem) => Err(problem),
    };
    received.unwrap_or_else(|problem| refuse(&problem))
}

/// Deletes a file that the script announced, and that will not be uploaded.
pub(crate) async fn abandon(context: &PageContext<'_>, id: &str) -> Response {
    let call = context.call();
    let deleted = match media::get(&call, id, Wait::default()).await {
        Ok(file) if file.asset.status.value() == MediaStatus::PendingUpload => media::delete(&call, id).await,
        Ok(_) => Err(Problem::new(Code::Conflict, "the file was uploaded")),
        Err(problem) => Err(problem),
    };
    match deleted {
        Ok(_) => answer(StatusCode::NO_CONTENT, "text/plain; charset=utf-8", String::new()),
        Err(problem) => refuse(&problem),
    }
}

/// Confirms a file that the script has uploaded, and answers with its markup.
pub(crate) async fn confirm(context: &PageContext<'_>, id: &str) -> Response {
    match try_confirm(context, id).await {
        Ok(response) => response,
        Err(problem) => refuse(&problem),
    }
}

async fn try_confirm(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let call = context.call();
    let file = media::confirm(&call, id).await?;
    let layout = context.layout("Media", "/media");
    let accounts = match context.form.get("as") {
        "choice" if context.may(Scope::AccountsRead).is_ok() => choice::accounts(&call).await?,
        // In a form for one account.
        "choice" | "alone" => Vec::new(),
        _ => return Ok(render(StatusCode::OK, &Tile { layout, file: File::of(file, Vec::new()) })),
    };
    let file = ChosenFile::of(&file.asset, "", &[], &accounts);
    Ok(render(StatusCode::OK, &ChoiceTile { layout, file }))
}

/// Tells the script why a file is not taken.
pub(crate) fn refuse(problem: &Problem) -> Response {
    let mut text = sentence(&problem.detail);
    for issue in &problem.issues {
        text = format!("{text} {}", sentence(&issue.message));
    }
    let mut response = answer(problem.code.status(), "text/plain; charset=utf-8", text);
    response.headers_mut().extend(problem.headers().cloned());
    response
}

fn answer(status: StatusCode, content_type: &str, text: String) -> Response {
    let mut response = Response::builder().status(status).content_type(content_type).body(text);
    put(&mut response, header::CACHE_CONTROL, "no-store");
    put(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

/// Fetches a file from a URL.
pub(crate) async fn import(context: &PageContext<'_>) -> Result<Response, Problem> {
    let form = &context.form;
    let wish = json!({ "url": form.get("url").trim(), "alt_text": form.given("alt_text") });
    let imported = match body::read(wish) {
        Ok(new) => media::import(&context.call(), new).await,
        Err(problem) => Err(problem),
    };
    match imported {
        Ok(_) => Ok(done("/media", Done::Fetching)),
        Err(problem) => show(context, Some(PageError::of("new", problem))).await,
    }
}

/// Changes the alt text of a file. An empty one is none.
pub(crate) async fn describe(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let wish = json!({ "alt_text": context.form.given("alt_text") });
    let changed = match body::read(wish) {
        Ok(patch) => media::update(&context.call(), id, patch).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(done("/media", Done::Described)),
        Err(problem) => show(context, Some(PageError::of(id, problem))).await,
    }
}

/// Deletes a file.
pub(crate) async fn delete(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match media::delete(&context.call(), id).await {
        Ok(_) => Ok(done("/media", Done::Discarded)),
        Err(problem) => show(context, Some(PageError::of(id, problem))).await,
    }
}
