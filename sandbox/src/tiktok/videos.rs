//! The public posts of a creator: <https://developers.tiktok.com/doc/tiktok-api-v2-video-list>.

use super::{Answer, Call, DISPLAY, Turn, admit, body, publish, refusal, success};
use crate::figures::figure;
use serde_json::{Map, Value, json};

const SCOPE: &[&str] = &["video.list"];

/// The most videos of a page, or of a query.
const MOST: u64 = 20;

/// `POST /v2/video/list/`: newest first, before a time that may be chosen freely.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, DISPLAY)?;
    let fields = fields(call)?;
    let body = body(call, "invalid_params")?;
    let most = match &body["max_count"] {
        Value::Null => 10,
        count => count
            .as_u64()
            .filter(|count| (1..=MOST).contains(count))
            .ok_or_else(|| refusal(400, "invalid_params", "max_count has to be 1 to 20."))?,
    };
    let before = match &body["cursor"] {
        Value::Null => i64::MAX,
        cursor => match cursor.as_i64() {
            Some(0) => i64::MAX,
            Some(cursor) => cursor,
            None => return Err(refusal(400, "invalid_params", "cursor has to be a number.")),
        },
    };
    let mut posts = publish::public(turn, &caller.id, true);
    posts.retain(|post| post.came_into_being().is_some_and(|at| at.timestamp_millis() < before));
    let has_more = posts.len() as u64 > most;
    posts.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let last = posts.last().and_then(publish::Publish::came_into_being);
    let videos: Vec<_> = posts.iter().map(|post| view(turn, post, &fields)).collect();
    Ok(success(&json!({
        "videos": videos,
        "cursor": last.map_or_else(|| turn.now.timestamp_millis(), |at| at.timestamp_millis()),
        "has_more": has_more,
    })))
}

/// `POST /v2/video/query/`: by id, the caller's own.
pub(super) fn query(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, DISPLAY)?;
    let fields = fields(call)?;
    let body = body(call, "invalid_params")?;
    let ids: Vec<String> = body["filters"]["video_ids"]
        .as_array()
        .map(|ids| ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if ids.is_empty() || ids.len() as u64 > MOST {
        return Err(refusal(400, "invalid_params", "filters.video_ids has to hold 1 to 20 ids."));
    }
    let posts = publish::public(turn, &caller.id, false);
    let videos: Vec<_> =
        posts.iter().filter(|post| ids.contains(&post.post)).map(|post| view(turn, post, &fields)).collect();
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

fn fields(call: &Call) -> Result<Vec<String>, Answer> {
    let fields: Vec<String> =
        call.query("fields").unwrap_or_default().split(',').map(|field| field.trim().to_owned()).collect();
    match fields.iter().find(|field| !FIELDS.contains(&field.as_str())) {
        Some(field) => Err(refusal(400, "invalid_params", &format!("Field {field:?} is not supported."))),
        None => Ok(fields),
    }
}

fn view(turn: &Turn<'_>, post: &publish::Publish, fields: &[String]) -> Value {
    let at = post.came_into_being().unwrap_or(turn.now);
    let count = |name: &str, ceiling: u64| json!(figure(&post.post, name, turn.now - at, ceiling));
    let link = format!("https://www.tiktok.com/@_/video/{}", post.post);
    let value = |field: &str| match field {
        "id" => json!(post.post),
        "create_time" => json!(at.timestamp()),
        "title" | "video_description" => json!(post.words()),
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
