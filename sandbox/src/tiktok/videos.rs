//! The public posts of a creator: <https://developers.tiktok.com/doc/tiktok-api-v2-video-list>.

use super::{Account, Outcome, Request, Response, Transaction, body, publish, refusal, success};
use crate::exchange::Cause::Protocol;
use crate::fake_metrics::figure;
use serde_json::{Map, Value, json};

/// Maximum number of videos of a page or a query.
const MAX_VIDEOS: u64 = 20;

/// `POST /v2/video/list/`: newest first, before an arbitrary time.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let fields = fields(request)?;
    let body = body(request, "invalid_params")?;
    let max = match &body["max_count"] {
        Value::Null => 10,
        count => count
            .as_u64()
            .filter(|count| (1..=MAX_VIDEOS).contains(count))
            .ok_or_else(|| refusal(Protocol, 400, "invalid_params", "max_count has to be 1 to 20."))?,
    };
    let before = match &body["cursor"] {
        Value::Null => i64::MAX,
        cursor => match cursor.as_i64() {
            Some(0) => i64::MAX,
            Some(cursor) => cursor,
            None => return Err(refusal(Protocol, 400, "invalid_params", "cursor has to be a number.")),
        },
    };
    let mut posts = publish::public(tx, &caller.id, true);
    posts.retain(|post| post.published_at().is_some_and(|at| at.timestamp_millis() < before));
    let has_more = posts.len() as u64 > max;
    posts.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    let last = posts.last().and_then(publish::Publish::published_at);
    let videos: Vec<_> = posts.iter().map(|post| view(tx, post, &fields)).collect();
    Ok(success(&json!({
        "videos": videos,
        "cursor": last.map_or_else(|| tx.now.timestamp_millis(), |at| at.timestamp_millis()),
        "has_more": has_more,
    })))
}

/// `POST /v2/video/query/`: by id, the caller's own.
pub(super) fn query(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let fields = fields(request)?;
    let body = body(request, "invalid_params")?;
    let ids: Vec<String> = body["filters"]["video_ids"]
        .as_array()
        .map(|ids| ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if ids.is_empty() || ids.len() as u64 > MAX_VIDEOS {
        return Err(refusal(Protocol, 400, "invalid_params", "filters.video_ids has to hold 1 to 20 ids."));
    }
    let posts = publish::public(tx, &caller.id, false);
    let videos: Vec<_> =
        posts.iter().filter(|post| ids.contains(&post.post)).map(|post| view(tx, post, &fields)).collect();
    Ok(success(&json!({ "videos": videos })))
}

const FIELDS: [&str; 17] = [
    "id",
    "create_time",
    "cover_image_url",
    "share_url",
    "video_description",
    "duration",
    "height",
    "width",
    "title",
    "embed_html",
    "embed_link",
    "like_count",
    "comment_count",
    "share_count",
    "view_count",
    "is_ads",
    "anchors",
];

fn fields(request: &Request) -> Result<Vec<String>, Response> {
    let fields: Vec<String> =
        request.query("fields").unwrap_or_default().split(',').map(|field| field.trim().to_owned()).collect();
    match fields.iter().find(|field| !FIELDS.contains(&field.as_str())) {
        Some(field) => {
            Err(refusal(Protocol, 400, "invalid_params", &format!("Field {field:?} is not supported.")))
        }
        None => Ok(fields),
    }
}

fn view(tx: &Transaction, post: &publish::Publish, fields: &[String]) -> Value {
    let at = post.published_at().unwrap_or(tx.now);
    let count = |name: &str, ceiling: u64| json!(figure(&post.post, name, tx.now - at, ceiling));
    let link = format!("https://www.tiktok.com/@_/video/{}", post.post);
    let value = |field: &str| match field {
        "id" => json!(post.post),
        "create_time" => json!(at.timestamp()),
        "title" | "video_description" => json!(post.text()),
        "cover_image_url" => json!(format!("https://p16-sign.tiktokcdn.com/{}~cover.jpeg", post.post)),
        "share_url" | "embed_link" => json!(link),
        "embed_html" => json!(format!("<blockquote cite=\"{link}\"></blockquote>")),
        "duration" => json!(5),
        "width" => json!(576),
        "height" => json!(1024),
        "like_count" => count("likes", 8_000),
        "comment_count" => count("comments", 500),
        "share_count" => count("shares", 900),
        "view_count" => count("views", 120_000),
        _ => Value::Null,
    };
    Value::Object(fields.iter().map(|field| (field.clone(), value(field))).collect::<Map<_, _>>())
}
