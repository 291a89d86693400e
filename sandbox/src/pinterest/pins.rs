//! Pins: <https://developers.pinterest.com/docs/api/v5/pins-create> and the reads beside it.

use super::{
    Account, Outcome, Pinterest, Realm, Record, Request, Response, Transaction, board, body, error, invalid,
    is_number, media, next, number, paged, text, time,
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{fake_metrics::figure, files::Upload, simulator::Simulator};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Maximum size of an image.
const MAX_BYTES: u64 = 20 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pin {
    pub(super) id: String,
    /// Id of the owner.
    pub(super) owner: String,
    /// Board that it is on.
    pub(super) board: String,
    section: Option<String>,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    /// Link.
    pub(super) link: Option<String>,
    /// Alternative text.
    pub(super) alt: Option<String>,
    color: Option<String>,
    /// Declarations of its creator about AI in it.
    #[serde(default)]
    pub(super) disclosures: Vec<String>,
    kind: String,
    /// Titles, descriptions and links of several images.
    #[serde(default)]
    pub(super) slots: Vec<Slot>,
    /// Its images, or its video.
    pub(super) files: Vec<Upload>,
    /// The cover of a video, if it is no moment of it.
    #[serde(default)]
    pub(super) cover: Option<Upload>,
    #[serde(default)]
    pub(super) realm: Realm,
    pub(super) created_at: DateTime<Utc>,
}

/// Properties of one of several images.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) title: Option<String>,
    description: Option<String>,
    pub(super) link: Option<String>,
}

/// A pin's media.
struct Source {
    kind: &'static str,
    files: Vec<Upload>,
    slots: Vec<Slot>,
    /// The cover of a video.
    cover: Option<Upload>,
}

impl Record for Pin {
    const TABLE: &'static str = "pinterest.pin";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the pin with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Pin> {
    tx.store.get(id)
}

/// Returns a user's pins, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, user: &str) -> impl DoubleEndedIterator<Item = Pin> + use<'a> {
    let user = user.to_owned();
    tx.store.with_prefix("").filter(move |pin: &Pin| pin.owner == user)
}

/// Returns the addresses of a new pin's media.
pub(super) fn media_urls(request: &Request) -> Vec<String> {
    let Ok(body) = request.json() else { return Vec::new() };
    let source = &body["media_source"];
    let items = source["items"].as_array().into_iter().flatten().map(|item| &item["url"]);
    let all = [&source["url"], &source["cover_image_url"]].into_iter().chain(items);
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Responds with the bytes of an image, as `i.pinimg.com` does.
pub(super) fn picture(tx: &Transaction, name: &str) -> Response {
    let id = name.split('.').next().unwrap_or_default();
    let known: Option<Upload> = tx
        .store
        .with_prefix("")
        .flat_map(|pin: Pin| pin.files.into_iter().chain(pin.cover))
        .find(|file| file.id == id);
    let mime = match known.and_then(|file| file.mime).as_deref() {
        Some("image/png") => "image/png",
        Some("image/jpeg") => "image/jpeg",
        Some("video/mp4") => "video/mp4",
        _ => "application/octet-stream",
    };
    tx.files
        .read(id)
        .map_or_else(|| Response::empty(404).because(State), |bytes| Response::bytes(200, mime, bytes))
}

/// `POST /v5/pins`.
pub(super) fn create(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let realm = Realm::of(request);
    realm.check_pins(tx)?;
    let body = body(request)?;
    let board = number(&body, "board_id", Content("board"))?
        .ok_or_else(|| invalid(Protocol, "'board_id' is a required property"))?;
    let section = number(&body, "board_section_id", Content("section"))?;
    let title = text(&body, "title", 100, Content("title_too_long"))?;
    let description = text(&body, "description", 800, Content("text_too_long"))?;
    let alt = text(&body, "alt_text", 500, Content("alt_text_too_long"))?;
    let link = address(&body, 2048)?;
    let color = text(&body, "dominant_color", 7, Content("color"))?;
    let disclosures = disclosures(&body["ai_disclosures"])?;
    number(&body, "parent_pin_id", Protocol)?;
    let board = board::own(tx, request, caller, &board)?;
    if section.as_deref().is_some_and(|section| !board.has(section)) {
        return Err(error(State, 404, 2031, "Board section not found."));
    }
    let Source { kind, files, slots, cover } = source(tx, request, caller, &body["media_source"])?;
    let words =
        [description.as_deref(), title.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let fault = Pinterest.trigger_fault(tx, request, &caller.username, &words)?;
    let pin = Pin {
        id: next(tx),
        owner: caller.id.clone(),
        board: board.id,
        section,
        title,
        description,
        link,
        alt,
        color,
        disclosures,
        kind: kind.to_owned(),
        slots,
        files,
        cover,
        realm,
        created_at: tx.now,
    };
    tx.store.put(&pin);
    let view = pin.view(tx, caller, false);
    Ok(Response::json(201, &view).with_post(pin.id).with_fault(fault))
}

/// Returns the link of a pin or of an item.
fn address(body: &Value, max: usize) -> Result<Option<String>, Response> {
    let link = text(body, "link", max, Content("link_too_long"))?;
    let is_address = |link: &str| link.starts_with("http://") || link.starts_with("https://");
    if link.as_deref().is_some_and(|link| !is_address(link)) {
        return Err(error(Content("link"), 400, 1, "Sorry! It looks like you entered an invalid URL."));
    }
    Ok(link)
}

/// Returns what a pin declares about AI, by API 5.28.
fn disclosures(declared: &Value) -> Result<Vec<String>, Response> {
    const VALUES: [&str; 2] = ["AI_MODIFIED", "SYNTHETIC_PERFORMER"];
    if declared.is_null() {
        return Ok(Vec::new());
    }
    let values =
        declared["values"].as_array().ok_or_else(|| invalid(Protocol, "'values' is a required property"))?;
    if values.is_empty() {
        return Err(invalid(Protocol, "'values' is too short, constraint: minItems=1"));
    }
    let known = |value: &Value| match value.as_str().filter(|value| VALUES.contains(value)) {
        Some(value) => Ok(value.to_owned()),
        None => Err(invalid(Protocol, &format!("{value} is not one of {VALUES:?}"))),
    };
    values.iter().map(known).collect()
}

/// Returns what belongs to one of several images. Its members have no maximum in the description of the API.
fn slot(item: &Value) -> Result<Slot, Response> {
    Ok(Slot {
        title: text(item, "title", usize::MAX, Protocol)?,
        description: text(item, "description", usize::MAX, Protocol)?,
        link: address(item, usize::MAX)?,
    })
}

/// Returns a pin's media.
fn source(tx: &Transaction, request: &Request, caller: &Account, source: &Value) -> Result<Source, Response> {
    let one = |file: Upload| Source { kind: "image", files: vec![file], slots: Vec::new(), cover: None };
    let decoded = |item: &Value| decode_image(tx, &item["content_type"], &item["data"]);
    let one_size = |files: Vec<Upload>| {
        let sizes: HashSet<_> = files.iter().filter_map(|file| file.pixels).collect();
        if sizes.len() < 2 {
            Ok(files)
        } else {
            Err(invalid(Content("sizes_of_a_carousel"), "the images of a carousel must have one size"))
        }
    };
    let items = || {
        let items = source["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        match items.len() {
            2..=5 => Ok(items),
            0 | 1 => Err(invalid(Protocol, "'items' is too short, constraint: minItems=2")),
            _ => Err(invalid(Content("images_of_a_carousel"), "'items' is too long, constraint: maxItems=5")),
        }
    };
    match source["source_type"].as_str() {
        Some("image_base64") => Ok(one(decoded(source)?)),
        Some("image_url") => Ok(one(fetched(request, &source["url"])?)),
        Some(kind @ ("multiple_image_base64" | "multiple_image_urls")) => {
            let items = items()?;
            let slots = items.iter().map(slot).collect::<Result<_, _>>()?;
            let file = |item: &Value| match kind {
                "multiple_image_base64" => decoded(item),
                _ => fetched(request, &item["url"]),
            };
            let files = one_size(items.iter().map(file).collect::<Result<_, _>>()?)?;
            Ok(Source { kind: "multiple_images", files, slots, cover: None })
        }
        Some("video_id") if Realm::of(request) == Realm::Sandbox => {
            Err(invalid(State, "video Pins can't be created in the API Sandbox"))
        }
        Some("video_id") => {
            let id = number(source, "media_id", Protocol)?
                .ok_or_else(|| invalid(Protocol, "'media_id' is a required property"))?;
            let media = media::get(tx, &id).filter(|media| media.owner == caller.id);
            let media = media.ok_or_else(|| error(State, 404, 404, "Media not found."))?;
            if media.status(tx) != "succeeded" {
                return Err(invalid(
                    media.failure(),
                    &format!("the video is not ready, its status is {}", media.status(tx)),
                ));
            }
            let has_cover = ["cover_image_url", "cover_image_data", "cover_image_key_frame_time"]
                .iter()
                .any(|name| !source[*name].is_null());
            if !has_cover {
                return Err(invalid(Protocol, "a video needs a cover image"));
            }
            let (mime, data) = (&source["cover_image_content_type"], &source["cover_image_data"]);
            let cover = match () {
                () if !data.is_null() => Some(decode_image(tx, mime, data)?),
                () if source["cover_image_url"].is_string() => {
                    Some(fetched(request, &source["cover_image_url"])?)
                }
                () => None,
            };
            let files = media.upload.into_iter().collect();
            Ok(Source { kind: "video", files, slots: Vec::new(), cover })
        }
        Some(other) => Err(invalid(Protocol, &format!("'{other}' is no source_type that is served here"))),
        None => Err(invalid(Protocol, "'media_source' has to have a 'source_type'")),
    }
}

fn decode_image(tx: &Transaction, mime: &Value, data: &Value) -> Result<Upload, Response> {
    let declared = mime.as_str().unwrap_or_default();
    if !["image/jpeg", "image/png"].contains(&declared) {
        return Err(invalid(
            Content("image_type"),
            &format!("'{declared}' is not one of ['image/jpeg', 'image/png']"),
        ));
    }
    let bytes = data.as_str().and_then(|data| BASE64_STANDARD.decode(data).ok());
    let bytes = bytes.ok_or_else(|| invalid(Protocol, "'data' does not match '^[a-zA-Z0-9+\\/=]+$'"))?;
    let upload =
        tx.files.store_bytes(bytes.into()).map_err(|_| error(State, 500, 0, "Something went wrong."))?;
    if upload.mime.as_deref() != Some(declared) {
        tx.files.discard(&upload.id);
        return Err(error(Protocol, 400, 1, "Sorry, this is no image of the type that it is said to be."));
    }
    check_size(upload)
}

fn fetched(request: &Request, address: &Value) -> Result<Upload, Response> {
    let address = address.as_str().ok_or_else(|| invalid(Protocol, "'url' is a required property"))?;
    let unreachable =
        || error(State, 400, 1, "Unable to reach the URL. Please check the URL is correct and try again.");
    let upload = request.fetched(address).ok_or_else(unreachable)?.clone();
    let is_image = upload.mime.as_deref().is_some_and(|mime| mime.starts_with("image/"));
    if is_image {
        check_size(upload)
    } else {
        Err(error(State, 400, 1, "The URL does not lead to an image."))
    }
}

fn check_size(upload: Upload) -> Result<Upload, Response> {
    if upload.size_bytes <= MAX_BYTES {
        return Ok(upload);
    }
    Err(error(
        Content("image_too_large"),
        400,
        1,
        &format!("The image has {} bytes, and may have {MAX_BYTES}.", upload.size_bytes),
    ))
}

impl Pin {
    fn view(&self, tx: &Transaction, caller: &Account, with_metrics: bool) -> Value {
        let images = |file: &Upload| {
            let (width, height) = file.pixels.unwrap_or((0, 0));
            let of = |name: &str| {
                let url = format!("https://i.pinimg.com/{name}/{}.jpg", file.id);
                json!({ "url": url, "width": width, "height": height })
            };
            json!({ "150x150": of("150x150"), "400x300": of("400x300"), "600x": of("600x"), "1200x": of("1200x") })
        };
        let first = self.cover.as_ref().or(self.files.first());
        let shown = match self.kind.as_str() {
            "image" => json!({ "media_type": "image", "images": first.map(images) }),
            "video" => json!({
                "media_type": "video",
                "images": first.map(images),
                "cover_image_url": first.map(|file| format!("https://i.pinimg.com/600x/{}.jpg", file.id)),
                "video_url": null, "duration": null, "width": null, "height": null,
            }),
            _ => json!({
                "media_type": "multiple_images",
                "items": self.files.iter().enumerate().map(|(index, file)| {
                    let Slot { title, description, link } = self.slots.get(index).cloned().unwrap_or_default();
                    json!({
                        "item_type": "image", "images": images(file), "title": title, "description": description,
                        "link": link,
                    })
                }).collect::<Vec<_>>(),
            }),
        };
        let mut view = json!({
            "id": self.id,
            "created_at": time(self.created_at),
            "link": self.link,
            "title": self.title,
            "description": self.description,
            "dominant_color": self.color.as_deref().unwrap_or("#6E7874"),
            "alt_text": self.alt,
            "board_id": self.board,
            "board_section_id": self.section,
            "board_owner": { "username": caller.username },
            "media": shown,
            "creative_type": match self.kind.as_str() { "video" => "VIDEO", "image" => "REGULAR", _ => "CAROUSEL" },
            "is_owner": true,
            "is_standard": true,
            "has_been_promoted": false,
            "parent_pin_id": null,
            "product_tags": [],
            "pin_metrics": null,
        });
        if !self.disclosures.is_empty() {
            view["ai_disclosures"] = json!({ "values": self.disclosures });
        }
        if with_metrics {
            let age = tx.now - self.created_at;
            let names = [
                ("impression", 9_000),
                ("pin_click", 400),
                ("clickthrough", 120),
                ("save", 90),
                ("reaction", 60),
                ("comment", 12),
            ];
            let figures: Map<_, _> = names
                .into_iter()
                .map(|(name, max)| (name.into(), json!(figure(&self.id, name, age, max))))
                .collect();
            // The description of the API says only that it is an object.
            view["pin_metrics"] = match self.kind.as_str() {
                "video" => {
                    let mut lifetime = figures;
                    lifetime.insert("video_avg_watch_time".into(), json!(2507.75));
                    json!({ "90d": null, "lifetime_metrics": lifetime, "is_realtime": true })
                }
                _ => json!({ "90d": figures, "lifetime_metrics": figures }),
            };
        }
        view
    }
}

/// `GET /v5/pins` and `GET /v5/boards/{board_id}/pins`.
pub(super) fn list(
    tx: &mut Transaction,
    request: &Request,
    caller: &Account,
    board: Option<&str>,
) -> Outcome {
    if let Some(board) = board {
        board::own(tx, request, caller, board)?;
    }
    let filter = request.query("pin_filter").unwrap_or("exclude_repins");
    if !["exclude_native", "exclude_repins", "has_been_promoted"].contains(&filter) {
        return Err(invalid(Protocol, &format!("'{filter}' is no pin_filter")));
    }
    let lag = tx.settings.lag();
    let own = by(tx, &caller.id)
        .rev()
        .filter(|pin| filter == "exclude_repins" && board.is_none_or(|board| pin.board == board))
        .filter(|pin| pin.created_at + lag <= tx.now && pin.realm == Realm::of(request));
    let (pins, bookmark) = paged(request, own.collect(), |pin: &Pin| &pin.id)?;
    let with_metrics = request.query("pin_metrics") == Some("true");
    let items: Vec<_> = pins.iter().map(|pin| pin.view(tx, caller, with_metrics)).collect();
    Ok(Response::json(200, &json!({ "items": items, "bookmark": bookmark })))
}

fn own(tx: &Transaction, request: &Request, caller: &Account, id: &str) -> Result<Pin, Response> {
    if !is_number(id) {
        return Err(invalid(Protocol, &format!("'{id}' does not match '^\\d+$'")));
    }
    let pin = get(tx, id).filter(|pin| pin.realm == Realm::of(request));
    let pin = pin.ok_or_else(|| error(State, 404, 50, "Pin not found."))?;
    if pin.owner == caller.id { Ok(pin) } else { Err(super::forbidden()) }
}

/// `GET /v5/pins/{pin_id}`.
pub(super) fn show(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let view = own(tx, request, caller, id)?.view(tx, caller, request.query("pin_metrics") == Some("true"));
    Ok(Response::json(200, &view))
}

/// `PATCH /v5/pins/{pin_id}`.
pub(super) fn change(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let mut pin = own(tx, request, caller, id)?;
    let body = body(request)?;
    if let Some(board) = number(&body, "board_id", Content("board"))? {
        pin.board = board::own(tx, request, caller, &board)?.id;
        pin.section = None;
    }
    if let Some(section) = number(&body, "board_section_id", Content("section"))? {
        if !board::own(tx, request, caller, &pin.board)?.has(&section) {
            return Err(error(State, 404, 2031, "Board section not found."));
        }
        pin.section = Some(section);
    }
    for (name, max, slot) in [
        ("title", 100, &mut pin.title),
        ("description", 800, &mut pin.description),
        ("alt_text", 500, &mut pin.alt),
        ("link", 2048, &mut pin.link),
    ] {
        if body.get(name).is_some() {
            *slot = text(&body, name, max, Protocol)?;
        }
    }
    tx.store.put(&pin);
    let view = pin.view(tx, caller, false);
    Ok(Response::json(200, &view))
}

/// `DELETE /v5/pins/{pin_id}`.
pub(super) fn delete(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let pin = own(tx, request, caller, id)?;
    tx.store.remove::<Pin>(&pin.id);
    Ok(Response::empty(204))
}

/// `GET /v5/pins/{pin_id}/analytics`.
pub(super) fn analytics(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    const METRICS: [(&str, u64); 15] = [
        ("IMPRESSION", 9_000),
        ("PIN_CLICK", 400),
        ("OUTBOUND_CLICK", 120),
        ("SAVE", 90),
        ("SAVE_RATE", 1),
        ("TOTAL_COMMENTS", 12),
        ("TOTAL_REACTIONS", 60),
        ("USER_FOLLOW", 3),
        ("PROFILE_VISIT", 9),
        ("VIDEO_MRC_VIEW", 4_000),
        ("VIDEO_10S_VIEW", 900),
        ("QUARTILE_95_PERCENT_VIEW", 300),
        ("VIDEO_V50_WATCH_TIME", 90_000),
        ("VIDEO_START", 5_000),
        ("VIDEO_AVG_WATCH_TIME", 2_000),
    ];
    let pin = own(tx, request, caller, id)?;
    let day = |name: &str| {
        let text = request
            .query(name)
            .ok_or_else(|| invalid(Protocol, &format!("'{name}' is a required property")))?;
        text.parse::<NaiveDate>().map_err(|_| invalid(Protocol, &format!("'{text}' is not a 'date'")))
    };
    let (start, end) = (day("start_date")?, day("end_date")?);
    let today = tx.now.date_naive();
    if start > end || today - start > TimeDelta::days(90) || end > today {
        return Err(invalid(Protocol, "start_date has to be within 90 days, and before end_date"));
    }
    let asked: Vec<&str> = request.query_all("metric_types").flat_map(|names| names.split(',')).collect();
    if asked.is_empty() {
        return Err(invalid(Protocol, "'metric_types' is a required property"));
    }
    let age = tx.now - pin.created_at;
    let (mut summary, mut lifetime) = (Map::new(), Map::new());
    for name in asked {
        let Some((_, max)) = METRICS.iter().find(|(known, _)| *known == name) else {
            return Err(invalid(Protocol, &format!("'{name}' is no metric of a pin")));
        };
        let target = if name.starts_with("TOTAL_") { &mut lifetime } else { &mut summary };
        target.insert(name.into(), json!(figure(&pin.id, name, age, *max)));
    }
    let daily = json!([{ "date": today.to_string(), "data_status": "READY", "metrics": summary }]);
    let all = json!({ "daily_metrics": daily, "summary_metrics": summary, "lifetime_metrics": lifetime });
    Ok(Response::json(200, &json!({ "all": all })))
}
