//! Media: what is there, what became of it, and a file that is fetched from an address.

use super::{
    fields::{self, Fields},
    frame::{Fault, Frame, render},
    visit::{Visit, done},
    words::{self, Clock, Done, Label},
};
use crate::{
    http::{body, problem::Problem},
    media::{self, Filter},
};
use askama::Template;
use poem::Response;
use serde_json::json;

/// Files on a page.
const PAGE: u64 = 25;

#[derive(Template)]
#[template(path = "dashboard/media.html")]
struct Media<'a> {
    frame: Frame,
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
    created: Clock,
}

impl From<media::Media> for File {
    fn from(media: media::Media) -> Self {
        let pixels = media.width.zip(media.height).map(|(width, height)| format!("{width} × {height}"));
        let facts =
            [media.content_type, media.size.map(words::size), pixels, media.duration_ms.map(words::length)];
        Self {
            id: media.id.to_string(),
            name: media.filename,
            label: words::medium(media.status.value()),
            facts: facts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            alt: media.alt_text.filter(|alt| !alt.is_empty()),
            error: media.error,
            url: media.url,
            created: Clock(media.created_at.0),
        }
    }
}

/// Shows the page.
pub(crate) async fn show(visit: &Visit<'_>, fault: Option<Fault>) -> Result<Response, Problem> {
    // An address that somebody made up shows the first page.
    let offset: u64 = visit.query.get("offset").parse().unwrap_or_default();
    let filter = Filter {
        limit: Some(PAGE.cast_signed()),
        offset: Some(i64::try_from(offset).unwrap_or(i64::MAX)),
        ..Filter::default()
    };
    let found = media::list(&visit.call(), filter).await?;
    let total = found.pagination.total;
    let page = |offset: u64| fields::write([("offset", offset.to_string().as_str())]);
    let page = Media {
        frame: visit.faulty("Media", "/media", fault),
        files: found.data.into_iter().map(File::from).collect(),
        total,
        newer: (offset > 0).then(|| page(offset.saturating_sub(PAGE))),
        older: (offset.saturating_add(PAGE) < total).then(|| page(offset + PAGE)),
        form: &visit.form,
    };
    Ok(render(page.frame.status(), &page))
}

/// Lets a file be fetched.
pub(crate) async fn import(visit: &Visit<'_>) -> Result<Response, Problem> {
    let form = &visit.form;
    let wish = json!({ "url": form.get("url").trim(), "alt_text": form.given("alt_text") });
    let imported = match body::read(wish) {
        Ok(new) => media::import(&visit.call(), new).await,
        Err(problem) => Err(problem),
    };
    match imported {
        Ok(_) => Ok(done("/media", Done::Fetching)),
        Err(problem) => show(visit, Some(Fault::of("new", problem))).await,
    }
}

/// Deletes a file.
pub(crate) async fn delete(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match media::delete(&visit.call(), id).await {
        Ok(_) => Ok(done("/media", Done::Discarded)),
        Err(problem) => show(visit, Some(Fault::of(id, problem))).await,
    }
}
