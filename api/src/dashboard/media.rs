//! Media assets, and fetching a file from a URL.

use super::{
    context::{PageContext, done},
    fields::{self, Fields},
    labels::{self, AbsoluteTime, Done, Label},
    layout::{Layout, PageError, render},
};
use crate::{
    http::{body, problem::Problem},
    media::{self, Filter},
};
use askama::Template;
use poem::Response;
use serde_json::json;

/// Number of files per page.
const PAGE_SIZE: u64 = 25;

#[derive(Template)]
#[template(path = "dashboard/media.html")]
struct Media<'a> {
    layout: Layout,
    files: Vec<File>,
    total: u64,
    newer: Option<String>,
    older: Option<String>,
    form: &'a Fields,
}

struct File {
    id: String,
    name: String,
    label: Label,
    facts: String,
    alt: Option<String>,
    error: Option<String>,
    url: Option<String>,
    created: AbsoluteTime,
}

impl From<media::Media> for File {
    fn from(media::Media { asset: media, .. }: media::Media) -> Self {
        let pixels = media.width.zip(media.height).map(|(width, height)| format!("{width} × {height}"));
        let facts =
            [media.content_type, media.size.map(labels::size), pixels, media.duration_ms.map(labels::length)];
        Self {
            id: media.id.to_string(),
            name: media.filename,
            label: labels::medium(media.status.value()),
            facts: facts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            alt: media.alt_text.filter(|alt| !alt.is_empty()),
            error: media.error,
            url: media.url,
            created: AbsoluteTime(media.created_at.0),
        }
    }
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    // An invalid page number shows the first page.
    let offset: u64 = context.query.get("offset").parse().unwrap_or_default();
    let filter = Filter {
        limit: Some(PAGE_SIZE.cast_signed()),
        offset: Some(i64::try_from(offset).unwrap_or(i64::MAX)),
        ..Filter::default()
    };
    let found = media::list(&context.call(), filter).await?;
    let total = found.pagination.total;
    let page = |offset: u64| fields::write([("offset", offset.to_string().as_str())]);
    let page = Media {
        layout: context.layout_with_error("Media", "/media", error),
        files: found.data.into_iter().map(File::from).collect(),
        total,
        newer: (offset > 0).then(|| page(offset.saturating_sub(PAGE_SIZE))),
        older: (offset.saturating_add(PAGE_SIZE) < total).then(|| page(offset + PAGE_SIZE)),
        form: &context.form,
    };
    Ok(render(page.layout.status(), &page))
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

/// Deletes a file.
pub(crate) async fn delete(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match media::delete(&context.call(), id).await {
        Ok(_) => Ok(done("/media", Done::Discarded)),
        Err(problem) => show(context, Some(PageError::of(id, problem))).await,
    }
}
