//! Photos and videos of a location:
//! <https://developers.google.com/my-business/reference/rest/v4/accounts.locations.media>. A video has 75 MB, 30 seconds
//! and 720p: <https://support.google.com/business/answer/6103862>.
//!
//! They are public at once. The profile photo has a fixed name and no time, and replaces the one before, as does the
//! cover. Bytes are given by address only; their upload is not simulated.

use super::{
    Account, GoogleBusiness, MediaView, Outcome, PostView, Request, Simulator, Transaction, invalid,
    is_verified, managed, maps_url, missing, page_of,
    posts::{body, image_issue, time},
    refusal,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{exchange::Response, files::Upload, movie::Movie, store::Record};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum size of a video, its maximum length in seconds, and its minimum height or width.
const VIDEO_BYTES: u64 = 75 << 20;
const VIDEO_SECONDS: f64 = 30.0;
const VIDEO_SIDE: u32 = 720;

const CATEGORIES: [&str; 13] = [
    "COVER",
    "PROFILE",
    "LOGO",
    "EXTERIOR",
    "INTERIOR",
    "PRODUCT",
    "AT_WORK",
    "FOOD_AND_DRINK",
    "MENU",
    "COMMON_AREA",
    "ROOMS",
    "TEAMS",
    "ADDITIONAL",
];

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Photo {
    name: String,
    number: u64,
    /// `PHOTO` or `VIDEO`.
    format: String,
    category: String,
    description: Option<String>,
    source: String,
    file: Upload,
    created_at: DateTime<Utc>,
}

impl Record for Photo {
    const TABLE: &'static str = "google_business.photo";

    fn key(&self) -> String {
        format!("{}/{:020}", self.parent(), self.number)
    }
}

impl Photo {
    /// Returns the location's path.
    fn parent(&self) -> &str {
        self.name.split_once("/media/").map_or(self.name.as_str(), |(parent, _)| parent)
    }

    /// Returns the last part of its name.
    fn id(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Returns it as the location's page shows it.
    pub(super) fn post_view(&self, location: &Account) -> PostView {
        PostView {
            id: self.id().to_owned(),
            address: maps_url(location).trim_start_matches("https://").to_owned(),
            text: self.description.clone().unwrap_or_default(),
            at: self.created_at,
            media: vec![MediaView {
                files: vec![self.file.id.clone()],
                mime: self.file.mime.clone().unwrap_or_default(),
                alt: String::new(),
            }],
            notes: vec![format!("{} of the location: {}", self.format, self.category)],
            reply_to: None,
        }
    }

    fn view(&self) -> Value {
        let (width, height) = self.file.pixels.unwrap_or_default();
        let address = format!("https://lh3.googleusercontent.com/p/{}", self.file.id);
        let created_at = if self.category == "PROFILE" { DateTime::UNIX_EPOCH } else { self.created_at };
        let mut view = json!({
            "name": self.name,
            "mediaFormat": self.format,
            "locationAssociation": { "category": self.category },
            "googleUrl": address,
            "thumbnailUrl": address,
            "createTime": time(created_at),
            "dimensions": { "widthPixels": width, "heightPixels": height },
            "sourceUrl": self.source,
        });
        if let Some(description) = &self.description {
            view["description"] = json!(description);
        }
        view
    }
}

/// Returns a location's photos, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, parent: &str) -> impl DoubleEndedIterator<Item = Photo> + use<'a> {
    tx.store.with_prefix(&format!("{parent}/"))
}

/// Returns the address of a new photo, which Google fetches.
pub(super) fn media_urls(body: &Value) -> Vec<String> {
    body["sourceUrl"].as_str().map(str::to_owned).into_iter().collect()
}

/// `POST …/media`.
pub(super) fn create(tx: &mut Transaction, request: &Request, caller: &Account, parent: &str) -> Outcome {
    let location = managed(tx, caller, parent)?;
    let body = body(request)?;
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let description = text(&body["description"]);
    let words = description.as_deref().unwrap_or_default();
    let fault = GoogleBusiness.trigger_fault(tx, request, &location.username, words)?;
    if !is_verified(&location) {
        return Err(refusal(State, 400, "FAILED_PRECONDITION", "The location is not verified."));
    }
    let category = text(&body["locationAssociation"]["category"]);
    let category = category.filter(|category| CATEGORIES.contains(&category.as_str()));
    let category = category.ok_or_else(|| {
        invalid(&[(Protocol, 2, "location_association.category", "location_association is required")])
    })?;
    // The logo has been an alias since it became the profile photo.
    let category = if category == "LOGO" { "PROFILE".to_owned() } else { category };
    if category == "COVER" && description.is_some() {
        return Err(invalid(&[(
            Content("description_of_a_cover"),
            3,
            "description",
            "A cover photo can't have a description",
        )]));
    }
    let source = text(&body["sourceUrl"]);
    let source = source
        .ok_or_else(|| invalid(&[(Protocol, 2, "source_url", "source_url or data_ref is required")]))?;
    let format = text(&body["mediaFormat"]).unwrap_or_default();
    let file = fetched(tx, request, &format, &source)?;
    let replaced = by(tx, parent)
        .filter(|photo| photo.category == category && ["COVER", "PROFILE"].contains(&category.as_str()));
    for photo in replaced.collect::<Vec<_>>() {
        remove(tx, &photo);
    }
    let id = match category.as_str() {
        "PROFILE" => "profile".to_owned(),
        _ => format!("AF1Qip{:016x}", rand::random::<u64>()),
    };
    let photo = Photo {
        name: format!("{parent}/media/{id}"),
        number: by(tx, parent).next_back().map_or(0, |last| last.number + 1),
        format,
        category,
        description,
        source,
        file,
        created_at: tx.now,
    };
    tx.store.put(&photo);
    Ok(Response::json(200, &photo.view()).with_post(photo.name).with_fault(fault))
}

/// Returns the fetched photo or video.
fn fetched(tx: &Transaction, request: &Request, format: &str, source: &str) -> Result<Upload, Response> {
    let upload = request.fetched(source).filter(|upload| !upload.is_failing);
    let upload = upload.ok_or_else(|| invalid(&[(State, 1000, "", "Fetching image failed.")]))?;
    let issue = match format {
        "PHOTO" => image_issue(upload).map(|(cause, message)| (cause, 5, "media", message)),
        "VIDEO" => video_issue(tx, upload).map(|(cause, message)| (cause, 5, "media", message)),
        _ => Some((Protocol, 2, "media_format", "media_format is required")),
    };
    issue.map_or_else(|| Ok(upload.clone()), |issue| Err(invalid(&[issue])))
}

/// Returns the reason for which a video is refused. Of one whose bytes are not kept only the size is known.
fn video_issue(tx: &Transaction, upload: &Upload) -> Option<(Cause, &'static str)> {
    if upload.mime.as_deref().is_none_or(|mime| !mime.starts_with("video/")) {
        return Some((Content("video_type"), "The video format is not supported."));
    }
    if upload.size_bytes > VIDEO_BYTES {
        return Some((Content("video_too_large"), "The video has to have 75 MB at most."));
    }
    let movie = Movie::read(&tx.files.read(&upload.id)?);
    if movie.seconds.is_some_and(|seconds| seconds > VIDEO_SECONDS) {
        return Some((Content("video_too_long"), "The video has to be 30 seconds long at most."));
    }
    let is_small = movie.pixels.is_some_and(|(width, height)| width.min(height) < VIDEO_SIDE);
    is_small.then_some((Content("video_too_small"), "The video has to have a resolution of 720p at least."))
}

/// `GET …/media`: newest first; the list lags behind.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account, parent: &str) -> Outcome {
    managed(tx, caller, parent)?;
    let lag = tx.settings.lag();
    let shown = by(tx, parent).rev().filter(|photo| tx.now - photo.created_at >= lag);
    let all: Vec<_> = shown.map(|photo| photo.view()).collect();
    page_of(request, "mediaItems", 100, 2_500, &all)
}

/// `GET …/media/{id}`.
pub(super) fn get(tx: &mut Transaction, _: &Request, caller: &Account, parent: &str, id: &str) -> Outcome {
    Ok(Response::json(200, &own(tx, caller, parent, id)?.view()))
}

/// `DELETE …/media/{id}`.
pub(super) fn delete(tx: &mut Transaction, _: &Request, caller: &Account, parent: &str, id: &str) -> Outcome {
    let photo = own(tx, caller, parent, id)?;
    remove(tx, &photo);
    Ok(Response::json(200, &json!({})))
}

fn own(tx: &Transaction, caller: &Account, parent: &str, id: &str) -> Result<Photo, Response> {
    managed(tx, caller, parent)?;
    by(tx, parent).find(|photo| photo.id() == id).ok_or_else(missing)
}

fn remove(tx: &mut Transaction, photo: &Photo) {
    tx.files.discard(&photo.file.id);
    tx.store.remove::<Photo>(&photo.key());
}
