//! Pins: <https://developers.pinterest.com/docs/api/v5/pins-create> and the reads beside it.

use super::{
    ANALYTICS, Answer, Call, Caller, ID, READ, Record, Turn, WRITE, admit, body, boards, error, invalid,
    is_number, media, next, number, paged, text, time,
};
use crate::{
    fault,
    figures::figure,
    files::Upload,
    host::Host,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const SCOPES: &[&str] = &["boards:read", "pins:read"];
const WRITES: &[&str] = &["boards:read", "boards:write", "pins:read", "pins:write"];

/// The most bytes of a picture.
const MOST_BYTES: u64 = 20 << 20;

/// A pin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pin {
    /// Its id.
    pub(super) id: String,
    /// Whose it is.
    pub(super) owner: String,
    /// The board that it hangs on.
    pub(super) board: String,
    section: Option<String>,
    /// Its title.
    pub(super) title: Option<String>,
    /// Its text.
    pub(super) description: Option<String>,
    /// Where it leads.
    pub(super) link: Option<String>,
    /// What it shows.
    pub(super) alt: Option<String>,
    color: Option<String>,
    kind: String,
    /// Its pictures, or its video.
    pub(super) files: Vec<Upload>,
    /// When it was made.
    pub(super) created_at: DateTime<Utc>,
}

impl Record for Pin {
    const SHELF: &'static str = "pinterest.pin";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The pin with this id.
pub(super) fn get(turn: &Turn<'_>, id: &str) -> Option<Pin> {
    turn.shelf.get(id)
}

/// A user's pins, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, user: &str) -> impl DoubleEndedIterator<Item = Pin> + use<'a> {
    let user = user.to_owned();
    turn.shelf.under("").filter(move |pin: &Pin| pin.owner == user)
}

/// The addresses from which a new pin's media are fetched.
pub(super) fn addresses(call: &Call) -> Vec<String> {
    let Ok(body) = call.json() else { return Vec::new() };
    let source = &body["media_source"];
    let items = source["items"].as_array().into_iter().flatten().map(|item| &item["url"]);
    let all = [&source["url"], &source["cover_image_url"]].into_iter().chain(items);
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A picture's bytes, as `i.pinimg.com` gives them.
pub(super) fn picture(turn: &Turn<'_>, name: &str) -> Answer {
    let id = name.split('.').next().unwrap_or_default();
    let known: Option<Upload> =
        turn.shelf.under("").flat_map(|pin: Pin| pin.files).find(|file| file.id == id);
    let mime = match known.and_then(|file| file.mime).as_deref() {
        Some("image/png") => "image/png",
        Some("image/jpeg") => "image/jpeg",
        Some("video/mp4") => "video/mp4",
        _ => "application/octet-stream",
    };
    turn.files.read(id).map_or_else(|| Answer::empty(404), |bytes| Answer::bytes(200, mime, bytes))
}

/// `POST /v5/pins`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, WRITES, WRITE)?;
    let body = body(call)?;
    let board = number(&body, "board_id")?.ok_or_else(|| invalid("'board_id' is a required property"))?;
    let section = number(&body, "board_section_id")?;
    let title = text(&body, "title", 100)?;
    let description = text(&body, "description", 800)?;
    let alt = text(&body, "alt_text", 500)?;
    let link = text(&body, "link", 2048)?;
    let color = text(&body, "dominant_color", 7)?;
    number(&body, "parent_pin_id")?;
    let is_address = |link: &str| link.starts_with("http://") || link.starts_with("https://");
    if link.as_deref().is_some_and(|link| !is_address(link)) {
        return Err(error(400, 1, "Sorry! It looks like you entered an invalid URL."));
    }
    let board = boards::own(turn, &caller.account, &board)?;
    if section.as_deref().is_some_and(|section| !board.has(section)) {
        return Err(error(404, 2031, "Board section not found."));
    }
    let (kind, files) = source(turn, call, &caller, &body["media_source"])?;
    let words = [description.as_deref(), title.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let fault = match fault::draw(turn, ID, &caller.account.username, &words) {
        Ok(fault) => fault,
        Err(fault) => return Err(super::Pinterest.fail(turn, call, fault)),
    };
    let pin = Pin {
        id: next(turn),
        owner: caller.account.id.clone(),
        board: board.id,
        section,
        title,
        description,
        link,
        alt,
        color,
        kind,
        files,
        created_at: turn.now,
    };
    turn.shelf.put(&pin);
    let view = pin.view(turn, &caller, false);
    Ok(caller.reply(turn, 201, &view).publishing(pin.id).because(fault))
}

/// What a pin is made of, and which kind that makes it.
fn source(
    turn: &Turn<'_>,
    call: &Call,
    caller: &Caller,
    source: &Value,
) -> Result<(String, Vec<Upload>), Answer> {
    let items = || {
        let items = source["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        match items.len() {
            2..=5 => Ok(items),
            0 | 1 => Err(invalid("'items' is too short, constraint: minItems=2")),
            _ => Err(invalid("'items' is too long, constraint: maxItems=5")),
        }
    };
    match source["source_type"].as_str() {
        Some("image_base64") => Ok(("image".into(), vec![encoded(turn, source)?])),
        Some("image_url") => Ok(("image".into(), vec![fetched(call, &source["url"])?])),
        Some("multiple_image_base64") => {
            let files: Result<_, Answer> = items()?.iter().map(|item| encoded(turn, item)).collect();
            Ok(("multiple_images".into(), files?))
        }
        Some("multiple_image_urls") => {
            let files: Result<_, Answer> = items()?.iter().map(|item| fetched(call, &item["url"])).collect();
            Ok(("multiple_images".into(), files?))
        }
        Some("video_id") => {
            let id = number(source, "media_id")?.ok_or_else(|| invalid("'media_id' is a required property"))?;
            let media = media::get(turn, &id).filter(|media| media.owner == caller.account.id);
            let media = media.ok_or_else(|| error(404, 404, "Media not found."))?;
            if media.status(turn) != "succeeded" {
                return Err(invalid(&format!("the video is not ready, its status is {}", media.status(turn))));
            }
            let has_cover = ["cover_image_url", "cover_image_data", "cover_image_key_frame_time"]
                .iter()
                .any(|name| !source[*name].is_null());
            if !has_cover {
                return Err(invalid("a video needs a cover image"));
            }
            if source["cover_image_url"].is_string() {
                fetched(call, &source["cover_image_url"])?;
            }
            Ok(("video".into(), media.upload.into_iter().collect()))
        }
        Some(other) => Err(invalid(&format!("'{other}' is no source_type that is served here"))),
        None => Err(invalid("'media_source' has to have a 'source_type'")),
    }
}

fn encoded(turn: &Turn<'_>, item: &Value) -> Result<Upload, Answer> {
    let declared = item["content_type"].as_str().unwrap_or_default();
    if !["image/jpeg", "image/png"].contains(&declared) {
        return Err(invalid(&format!("'{declared}' is not one of ['image/jpeg', 'image/png']")));
    }
    let bytes = item["data"].as_str().and_then(|data| BASE64_STANDARD.decode(data).ok());
    let bytes = bytes.ok_or_else(|| invalid("'data' does not match '^[a-zA-Z0-9+\\/=]+$'"))?;
    let upload = turn.files.keep(bytes.into()).map_err(|_| error(500, 0, "Something went wrong."))?;
    if upload.mime.as_deref() != Some(declared) {
        turn.files.discard(&upload.id);
        return Err(error(400, 1, "Sorry, this is no image of the type that it is said to be."));
    }
    sized(upload)
}

fn fetched(call: &Call, address: &Value) -> Result<Upload, Answer> {
    let address = address.as_str().ok_or_else(|| invalid("'url' is a required property"))?;
    let unreachable = || error(400, 1, "Unable to reach the URL. Please check the URL is correct and try again.");
    let upload = call.at(address).ok_or_else(unreachable)?.clone();
    let is_image = upload.mime.as_deref().is_some_and(|mime| mime.starts_with("image/"));
    if is_image { sized(upload) } else { Err(error(400, 1, "The URL does not lead to an image.")) }
}

fn sized(upload: Upload) -> Result<Upload, Answer> {
    if upload.size_bytes <= MOST_BYTES {
        return Ok(upload);
    }
    Err(error(400, 1, &format!("The image has {} bytes, and may have {MOST_BYTES}.", upload.size_bytes)))
}

impl Pin {
    fn view(&self, turn: &Turn<'_>, caller: &Caller, with_metrics: bool) -> Value {
        let images = |file: &Upload| {
            let (width, height) = file.pixels.unwrap_or((0, 0));
            let of = |name: &str| {
                let url = format!("https://i.pinimg.com/{name}/{}.jpg", file.id);
                json!({ "url": url, "width": width, "height": height })
            };
            json!({ "150x150": of("150x150"), "400x300": of("400x300"), "600x": of("600x"), "1200x": of("1200x") })
        };
        let first = self.files.first();
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
                "items": self.files.iter().map(|file| json!({
                    "item_type": "image", "images": images(file), "title": null, "description": null, "link": null,
                })).collect::<Vec<_>>(),
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
            "board_owner": { "username": caller.account.username },
            "media": shown,
            "creative_type": match self.kind.as_str() { "video" => "VIDEO", "image" => "REGULAR", _ => "CAROUSEL" },
            "is_owner": true,
            "is_standard": true,
            "has_been_promoted": false,
            "parent_pin_id": null,
            "product_tags": [],
            "pin_metrics": null,
        });
        if with_metrics {
            let age = turn.now - self.created_at;
            let names = [
                ("impression", 9_000), ("pin_click", 400), ("clickthrough", 120), ("save", 90), ("reaction", 60),
                ("comment", 12),
            ];
            let figures: Map<_, _> =
                names.into_iter().map(|(name, most)| (name.into(), json!(figure(&self.id, name, age, most)))).collect();
            view["pin_metrics"] = json!({ "90d": figures, "lifetime_metrics": figures });
        }
        view
    }
}

/// `GET /v5/pins` and `GET /v5/boards/{board_id}/pins`.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call, board: Option<&str>) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPES, READ)?;
    if let Some(board) = board {
        boards::own(turn, &caller.account, board)?;
    }
    let filter = call.query("pin_filter").unwrap_or("exclude_repins");
    if !["exclude_native", "exclude_repins", "has_been_promoted"].contains(&filter) {
        return Err(invalid(&format!("'{filter}' is no pin_filter")));
    }
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let own = by(turn, &caller.account.id)
        .rev()
        .filter(|pin| filter == "exclude_repins" && board.is_none_or(|board| pin.board == board))
        .filter(|pin| pin.created_at + lag <= turn.now);
    let (pins, bookmark) = paged(call, own.collect(), |pin: &Pin| &pin.id)?;
    let with_metrics = call.query("pin_metrics") == Some("true");
    let items: Vec<_> = pins.iter().map(|pin| pin.view(turn, &caller, with_metrics)).collect();
    Ok(caller.reply(turn, 200, &json!({ "items": items, "bookmark": bookmark })))
}

fn own(turn: &Turn<'_>, caller: &Caller, id: &str) -> Result<Pin, Answer> {
    if !is_number(id) {
        return Err(invalid(&format!("'{id}' does not match '^\\d+$'")));
    }
    let pin = get(turn, id).ok_or_else(|| error(404, 50, "Pin not found."))?;
    if pin.owner == caller.account.id { Ok(pin) } else { Err(super::forbidden()) }
}

/// `GET /v5/pins/{pin_id}`.
pub(super) fn show(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPES, READ)?;
    let view = own(turn, &caller, id)?.view(turn, &caller, call.query("pin_metrics") == Some("true"));
    Ok(caller.reply(turn, 200, &view))
}

/// `PATCH /v5/pins/{pin_id}`.
pub(super) fn change(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, WRITES, WRITE)?;
    let mut pin = own(turn, &caller, id)?;
    let body = body(call)?;
    if let Some(board) = number(&body, "board_id")? {
        pin.board = boards::own(turn, &caller.account, &board)?.id;
    }
    for (name, most, slot) in [
        ("title", 100, &mut pin.title),
        ("description", 800, &mut pin.description),
        ("alt_text", 500, &mut pin.alt),
        ("link", 2048, &mut pin.link),
    ] {
        if body.get(name).is_some() {
            *slot = text(&body, name, most)?;
        }
    }
    turn.shelf.put(&pin);
    let view = pin.view(turn, &caller, false);
    Ok(caller.reply(turn, 200, &view))
}

/// `DELETE /v5/pins/{pin_id}`.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, WRITES, WRITE)?;
    let pin = own(turn, &caller, id)?;
    turn.shelf.remove::<Pin>(&pin.id);
    Ok(caller.reply(turn, 204, &Value::Null))
}

/// `GET /v5/pins/{pin_id}/analytics`.
pub(super) fn analytics(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
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
    let caller = admit(turn, call, SCOPES, ANALYTICS)?;
    let pin = own(turn, &caller, id)?;
    let day = |name: &str| {
        let text = call.query(name).ok_or_else(|| invalid(&format!("'{name}' is a required property")))?;
        text.parse::<NaiveDate>().map_err(|_| invalid(&format!("'{text}' is not a 'date'")))
    };
    let (start, end) = (day("start_date")?, day("end_date")?);
    let today = turn.now.date_naive();
    if start > end || today - start > TimeDelta::days(90) || end > today {
        return Err(invalid("start_date has to be within 90 days, and before end_date"));
    }
    let asked: Vec<&str> = call.all("metric_types").flat_map(|names| names.split(',')).collect();
    if asked.is_empty() {
        return Err(invalid("'metric_types' is a required property"));
    }
    let age = turn.now - pin.created_at;
    let (mut summary, mut lifetime) = (Map::new(), Map::new());
    for name in asked {
        let Some((_, most)) = METRICS.iter().find(|(known, _)| *known == name) else {
            return Err(invalid(&format!("'{name}' is no metric of a pin")));
        };
        let target = if name.starts_with("TOTAL_") { &mut lifetime } else { &mut summary };
        target.insert(name.into(), json!(figure(&pin.id, name, age, *most)));
    }
    let daily = json!([{ "date": today.to_string(), "data_status": "READY", "metrics": summary }]);
    let all = json!({ "daily_metrics": daily, "summary_metrics": summary, "lifetime_metrics": lifetime });
    Ok(caller.reply(turn, 200, &json!({ "all": all })))
}
