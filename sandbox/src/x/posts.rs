//! Posts: <https://docs.x.com/x-api/posts/create-post> and the reads beside it.
//!
//! The schema refuses malformed requests with 400; refusals that depend on the caller or on other posts are
//! 403, with the reason in the detail only.

use super::{
    Account, ID, Outcome, Record, Request, Response, Transaction, X, account, avatar, body, invalid, media,
    not_permitted, problem, snowflake, text, time, uninvited,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{fake_metrics::figure, simulator::Simulator};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Period in which a post's author may read private metrics.
const PRIVATE_DAYS: i64 = 30;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) id: String,
    /// The author's id.
    pub(super) author: String,
    /// Text as it was sent.
    pub(super) text: String,
    pub(super) created_at: DateTime<Utc>,
    /// Id of the post that it replies to.
    pub(super) reply_to: Option<String>,
    /// The post at the root of its conversation.
    conversation: String,
    /// Id of the post that it quotes.
    pub(super) quote: Option<String>,
    pub(super) media: Vec<String>,
    /// Ids of the people that are tagged in the media.
    #[serde(default)]
    pub(super) tagged: Vec<String>,
    pub(super) poll: Option<Poll>,
    /// Who may reply.
    reply_settings: String,
    /// The versions of the post, oldest first, itself included.
    edits: Vec<String>,
}

/// Indexes of posts: by author, by the post that they reply to, by the post that they quote.
const AUTHOR: &str = "x.author";
const REPLY: &str = "x.reply";
const QUOTE: &str = "x.quote";

impl Post {
    fn links(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let (reply, quote) = (self.reply_to.iter(), self.quote.iter());
        let author = std::iter::once((AUTHOR, &self.author));
        author.chain(reply.map(|of| (REPLY, of))).chain(quote.map(|of| (QUOTE, of)))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Poll {
    /// Options.
    pub(super) options: Vec<String>,
    duration_minutes: u64,
}

impl Record for Post {
    const TABLE: &'static str = "x.post";

    fn key(&self) -> String {
        padded(&self.id)
    }
}

/// A text that an account posted, which outlives the post for the check for duplicates.
#[derive(Serialize, Deserialize)]
struct PostedText {
    id: String,
    at: DateTime<Utc>,
}

impl Record for PostedText {
    const TABLE: &'static str = "x.said";

    fn key(&self) -> String {
        self.id.clone()
    }
}

fn padded(id: &str) -> String {
    format!("{id:0>20}")
}

/// Returns the post with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Post> {
    tx.store.get(&padded(id))
}

/// Returns the posts of an author, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, author: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    tx.store.linked(AUTHOR, author)
}

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let id = json!({ "type": "string", "digits": true });
    let flag = json!({ "type": "boolean" });
    let text = json!({ "type": "string" });
    let settings =
        json!({ "type": "string", "enum": ["following", "mentionedUsers", "subscribers", "verified"] });
    json!({
        "type": "object",
        "properties": {
            "text": text,
            "card_uri": text,
            "community_id": id,
            "direct_message_deep_link": text,
            "edit_options": { "type": "object", "required": ["previous_post_id"], "properties": { "previous_post_id": id } },
            "for_super_followers_only": flag,
            "geo": { "type": "object", "required": ["place_id"], "properties": { "place_id": text } },
            "made_with_ai": flag,
            "media": {
                "type": "object",
                "required": ["media_ids"],
                "properties": {
                    "media_ids": { "type": "array", "minItems": 1, "maxItems": 4, "items": id },
                    "tagged_user_ids": { "type": "array", "minItems": 1, "maxItems": 10, "items": id },
                    "description": text,
                    "embeddable": flag,
                    "preview_media_id": id,
                    "title": text,
                },
            },
            "nullcast": flag,
            "paid_partnership": flag,
            "poll": {
                "type": "object",
                "required": ["options", "duration_minutes"],
                "properties": {
                    "options": { "type": "array", "minItems": 2, "maxItems": 4, "items": { "type": "string", "minLength": 1, "maxLength": 25 } },
                    "duration_minutes": { "type": "integer", "minimum": 5, "maximum": 10_080 },
                    "reply_settings": settings,
                },
            },
            "quote_tweet_id": id,
            "reply": {
                "type": "object",
                "required": ["in_reply_to_tweet_id"],
                "properties": {
                    "in_reply_to_tweet_id": id,
                    "exclude_reply_user_ids": { "type": "array", "minItems": 1, "items": text },
                    "auto_populate_reply_metadata": flag,
                },
            },
            "reply_settings": settings,
            "share_with_followers": flag,
        },
    })
});

/// Adds the keys of the rules about content of the request's schema.
pub(super) fn rules(rules: &mut std::collections::BTreeSet<String>) {
    crate::schema::rules(&SCHEMA, "", rules);
}

/// `POST /2/tweets`.
pub(super) fn create(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let body = body(request, &SCHEMA)?;
    let words = body["text"].as_str().unwrap_or_default().to_owned();
    let fault = X.trigger_fault(tx, request, &caller.username, &words)?;
    let post = build(tx, caller, &body, words)?;

    tx.store.put(&PostedText { id: text_key(&post), at: tx.now });
    for (index, of) in post.links() {
        tx.store.link(index, of, &post.key());
    }
    tx.store.put(&post);
    let rendered = render(tx, &post, caller);
    let reply =
        json!({ "data": { "id": post.id, "text": rendered.text, "edit_history_tweet_ids": post.edits } });
    Ok(Response::json(201, &reply)
        .with("location", format!("https://api.twitter.com/2/tweets/{}", post.id))
        .with_post(post.id)
        .with_fault(fault))
}

/// Builds the post of a request, if its author may publish it.
fn build(tx: &mut Transaction, caller: &Account, body: &Value, words: String) -> Result<Post, Response> {
    let author = caller;
    let id_at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let ids_at = |name: &str| -> Vec<String> {
        let ids = body["media"][name].as_array().into_iter().flatten();
        ids.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let ids = ids_at("media_ids");
    let (poll, quote) = (body.get("poll"), id_at("/quote_tweet_id"));
    if words.trim().is_empty() && ids.is_empty() && poll.is_none() && quote.is_none() {
        return Err(invalid(Content("empty"), "text", &words, "$.text: must be at least 1 characters long"));
    }
    if [!ids.is_empty(), poll.is_some(), quote.is_some()].into_iter().filter(|part| *part).count() > 1 {
        return Err(invalid(
            Content("media_poll_or_quote"),
            "media",
            "",
            "You can only provide one of media, poll and quote_tweet_id.",
        ));
    }
    let wrong =
        |cause: Cause| invalid(cause, "media.media_ids", &ids.join(","), "Your media IDs are invalid.");
    if !media::are_usable(tx, &author.id, &ids) {
        return Err(wrong(State));
    }
    if media::are_mixed(tx, &ids) {
        return Err(wrong(Content("mixed_media")));
    }
    if media::are_long(tx, &ids) && !is_premium(author) {
        // As recorded; the documented limit is 140 seconds. X decides by account about longer ones, and takes some of
        // accounts without Premium.
        let message = "This user is not allowed to post a video longer than 2 minutes.";
        return Err(problem(State, 403, "Forbidden", message));
    }
    let is_self_serve = !tx.settings.is_approved();
    let limit = if is_premium(author) { text::PREMIUM_LIMIT } else { text::LIMIT };
    if text::weighted_length(&words) > limit {
        return Err(not_permitted(Content("text_too_long")));
    }
    // Of these two only a part of the text is known, from what other clients look for. How many cashtags a post may have
    // depends on the app's contract.
    if is_self_serve && cashtags(&words) > 1 {
        return Err(problem(State, 403, "Forbidden", "A post may have a maximum of one cashtag."));
    }
    if words.split_whitespace().any(|word| word.contains("://sandbox-invalid")) {
        return Err(invalid(State, "text", &words, "The text contains an invalid URL."));
    }
    let may_answer = |tx: &Transaction, post: &Post| {
        !is_self_serve || post.author == author.id || invites_reply_from(tx, post, author)
    };

    let answered = |id: &str| match get(tx, id) {
        None => Err(not_permitted(State)),
        Some(post) if !may_answer(tx, &post) => Err(uninvited()),
        Some(post) => Ok(post),
    };
    let parent = id_at("/reply/in_reply_to_tweet_id").map(|id| answered(&id)).transpose()?;
    if let Some(id) = &quote {
        answered(id)?;
    }
    let earlier = match id_at("/edit_options/previous_post_id") {
        None => None,
        Some(id) => {
            Some(get(tx, &id).filter(|post| post.author == author.id).ok_or_else(|| not_permitted(State))?)
        }
    };

    let id = snowflake(tx);
    let mut edits = earlier.map(|earlier| earlier.edits).unwrap_or_default();
    edits.push(id.clone());
    let post = Post {
        author: author.id.clone(),
        text: words,
        created_at: tx.now,
        conversation: parent.as_ref().map_or_else(|| id.clone(), |parent| parent.conversation.clone()),
        reply_to: parent.map(|parent| parent.id),
        quote,
        media: ids,
        tagged: ids_at("tagged_user_ids"),
        poll: poll.map(|poll| Poll {
            options: serde_json::from_value(poll["options"].clone()).unwrap_or_default(),
            duration_minutes: poll["duration_minutes"].as_u64().unwrap_or_default(),
        }),
        reply_settings: body["reply_settings"].as_str().unwrap_or("everyone").to_owned(),
        edits,
        id,
    };
    if is_duplicate(tx, &post) {
        return Err(problem(
            State,
            403,
            "Forbidden",
            "You are not allowed to create a Tweet with duplicate content.",
        ));
    }
    Ok(post)
}

/// Returns whether the author posted the same text shortly before. A post with media or a poll is never a duplicate.
fn is_duplicate(tx: &Transaction, post: &Post) -> bool {
    let window = tx.settings.duplicate_window();
    let said = tx.store.get::<PostedText>(&text_key(post));
    post.media.is_empty() && post.poll.is_none() && said.is_some_and(|said| tx.now - said.at < window)
}

/// Returns the key of a text in the check for duplicates.
fn text_key(post: &Post) -> String {
    let text = crate::unicode::nfc(post.text.trim());
    let extra = if post.media.is_empty() && post.poll.is_none() { "" } else { post.id.as_str() };
    format!("{}/{}", post.author, hex::encode(Sha256::digest(format!("{text}\n{extra}"))))
}

/// Returns whether a post's author mentioned or quoted this account.
fn invites_reply_from(tx: &Transaction, parent: &Post, account: &Account) -> bool {
    let mention = format!("@{}", account.username).to_lowercase();
    let text = parent.text.to_lowercase();
    let is_mentioned = text.match_indices(&mention).any(|(start, _)| {
        let next = text[start + mention.len()..].chars().next();
        next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    });
    let quoted = parent.quote.as_ref().and_then(|id| get(tx, id));
    is_mentioned || quoted.is_some_and(|post| post.author == account.id)
}

/// Counts the cashtags of a text.
fn cashtags(text: &str) -> usize {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "$._".contains(c)))
        .filter_map(|word| word.strip_prefix('$'))
        .filter(|tag| {
            let letters = tag.trim_end_matches('.');
            (1..=6).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        })
        .count()
}

/// `DELETE /2/tweets/{id}`.
pub(super) fn delete(tx: &mut Transaction, _: &Request, caller: &Account, id: &str) -> Outcome {
    let post = get(tx, id).ok_or_else(|| Response::json(404, &missing("tweet", "id", id)).because(State))?;
    if post.author != caller.id {
        return Err(problem(State, 403, "Forbidden", "You are not authorized to delete this Tweet."));
    }
    for (index, of) in post.links() {
        tx.store.unlink(index, of, &post.key());
    }
    tx.store.remove::<Post>(&post.key());
    Ok(Response::json(200, &json!({ "data": { "deleted": true } })))
}

/// `GET /2/users/me`.
pub(super) fn me(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let user = user(tx, caller, &list(request, "user.fields"));
    Ok(Response::json(200, &json!({ "data": user })))
}

/// `GET /2/users/by`: <https://docs.x.com/x-api/users/get-users-by-usernames>.
pub(super) fn users_by(tx: &mut Transaction, request: &Request, _caller: &Account) -> Outcome {
    let names = list(request, "usernames");
    let given = request.query("usernames").unwrap_or_default();
    if !(1..=100).contains(&names.len()) {
        let message = "The number of values in the `usernames` query parameter list is not between 1 and 100";
        return Err(invalid(Protocol, "usernames", given, message));
    }
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if let Some(name) = names.iter().find(|name| name.len() > 15 || !name.bytes().all(is_word)) {
        let message =
            format!("The `usernames` query parameter value [{name}] does not match ^[A-Za-z0-9_]{{1,15}}$");
        return Err(invalid(Protocol, "usernames", given, &message));
    }
    let fields = list(request, "user.fields");
    let (mut data, mut errors) = (Vec::new(), Vec::new());
    for name in &names {
        match account::by_username(tx.store, ID, name) {
            Some(found) => data.push(user(tx, &found, &fields)),
            None => errors.push(missing("user", "usernames", name)),
        }
    }
    let mut body = Map::new();
    for (name, all) in [("data", data), ("errors", errors)] {
        if !all.is_empty() {
            body.insert(name.to_owned(), json!(all));
        }
    }
    Ok(Response::json(200, &Value::Object(body)))
}

/// `GET /2/tweets` and `GET /2/tweets/{id}`.
pub(super) fn lookup(tx: &mut Transaction, request: &Request, caller: &Account, id: Option<&str>) -> Outcome {
    let fields = Fields::read(tx, request)?;
    let ids = match id {
        Some(id) => vec![id.to_owned()],
        None => list(request, "ids"),
    };
    if ids.is_empty() || ids.len() > 100 || !ids.iter().all(|id| is_id(id)) {
        let given = request.query("ids").unwrap_or_default();
        return Err(invalid(Protocol, "ids", given, "The `ids` query parameter has to hold 1 to 100 ids."));
    }
    let mut out = Listing::new(&fields);
    for wanted in &ids {
        match get(tx, wanted) {
            Some(post) => out.add(tx, caller, &post),
            None => out.errors.push(missing("tweet", if id.is_some() { "id" } else { "ids" }, wanted)),
        }
    }
    let mut body = out.body(tx);
    if let (Some(_), Some(data)) = (id, body.get_mut("data")) {
        *data = data[0].take();
    }
    Ok(Response::json(200, &body))
}

/// `GET /2/users/{id}/tweets`.
pub(super) fn timeline(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let fields = Fields::read(tx, request)?;
    let Some(author) = account::by_id(tx.store, ID, id) else {
        return Ok(Response::json(200, &json!({ "errors": [missing("user", "id", id)] })));
    };
    let bad = |name: &str, text: &str| invalid(Protocol, name, request.query(name).unwrap_or_default(), text);
    let max: usize = match request.query("max_results").map(str::parse) {
        None => 10,
        Some(Ok(max @ 5..=100)) => max,
        Some(_) => {
            return Err(bad(
                "max_results",
                "The `max_results` query parameter value is not between 5 and 100",
            ));
        }
    };
    let moment = |name: &str| match request.query(name).map(DateTime::parse_from_rfc3339) {
        None => Ok(None),
        Some(Ok(at)) => Ok(Some(at.to_utc())),
        Some(Err(_)) => Err(bad(name, "has to be a date-time as in RFC 3339")),
    };
    let (from, to) = (moment("start_time")?, moment("end_time")?);
    let number = |name: &str| match request.query(name).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(id)) => Ok(Some(id)),
        Some(Err(_)) => Err(bad(name, "has to be an id")),
    };
    let (since, until) = (number("since_id")?, number("until_id")?);
    let token = match request.query("pagination_token").map(Token::read) {
        None => None,
        Some(Some(token)) => Some(token),
        Some(None) => {
            return Err(bad("pagination_token", "The `pagination_token` query parameter is invalid"));
        }
    };
    let exclude = list(request, "exclude");
    if exclude.iter().any(|word| word != "replies" && word != "retweets") {
        return Err(bad("exclude", "has to be among replies, retweets"));
    }
    let lag = tx.settings.lag();
    let seen = tx.now.checked_sub_signed(lag).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let matches: Vec<Post> = by(tx, &author.id)
        .rev()
        // Only the latest 3,200 can be read.
        .take(3_200)
        .filter(|post| post.created_at <= seen)
        .filter(|post| {
            from.is_none_or(|from| post.created_at >= from) && to.is_none_or(|to| post.created_at < to)
        })
        .filter(|post| !(exclude.iter().any(|word| word == "replies") && post.reply_to.is_some()))
        .filter(|post| {
            let id = post.id.parse().unwrap_or(0);
            since.is_none_or(|since| id > since) && until.is_none_or(|until| id < until)
        })
        .collect();

    let start = match &token {
        None => 0,
        Some(token) => matches.iter().position(|post| token.is_past(&post.id)).unwrap_or(matches.len()),
    };
    let page = &matches[start..matches.len().min(start + max)];
    let mut out = Listing::new(&fields);
    for post in page {
        out.add(tx, caller, post);
    }
    let mut meta = json!({ "result_count": page.len() });
    if let (Some(newest), Some(oldest)) = (page.first(), page.last()) {
        meta["newest_id"] = json!(newest.id);
        meta["oldest_id"] = json!(oldest.id);
        if start + page.len() < matches.len() {
            meta["next_token"] = json!(Token::after(&oldest.id));
        }
        if start > 0 {
            // Begins with the first post of the previous page.
            meta["previous_token"] = json!(Token::from(&matches[start.saturating_sub(max)].id));
        }
    }
    let mut body = out.body(tx);
    body["meta"] = meta;
    Ok(Response::json(200, &body))
}

/// Pagination token, in base32hex as documented.
enum Token {
    After(u64),
    From(u64),
}

impl Token {
    fn after(id: &str) -> String {
        to_base32(&format!("a{id}"))
    }

    fn from(id: &str) -> String {
        to_base32(&format!("f{id}"))
    }

    fn read(text: &str) -> Option<Self> {
        let text = from_base32(text)?;
        let id = text.get(1..)?.parse().ok()?;
        match text.get(..1)? {
            "a" => Some(Self::After(id)),
            "f" => Some(Self::From(id)),
            _ => None,
        }
    }

    fn is_past(&self, id: &str) -> bool {
        let id: u64 = id.parse().unwrap_or(0);
        match self {
            Self::After(last) => id < *last,
            Self::From(first) => id <= *first,
        }
    }
}

const BASE32HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

fn to_base32(text: &str) -> String {
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    bits.as_bytes()
        .chunks(5)
        .map(|chunk| {
            let value = (0..5).fold(0, |value, at| value * 2 + usize::from(chunk.get(at) == Some(&b'1')));
            char::from(BASE32HEX[value])
        })
        .collect()
}

fn from_base32(text: &str) -> Option<String> {
    let mut bits = String::new();
    for byte in text.bytes() {
        let value = BASE32HEX.iter().position(|letter| *letter == byte)?;
        bits.push_str(&format!("{value:05b}"));
    }
    let bytes = bits
        .as_bytes()
        .chunks_exact(8)
        .map(|chunk| chunk.iter().fold(0_u8, |value, bit| value.wrapping_mul(2) + u8::from(*bit == b'1')));
    String::from_utf8(bytes.collect()).ok()
}

/// `GET /2/tweets/analytics`.
pub(super) fn analytics(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let ids = list(request, "ids");
    for name in ["start_time", "end_time"] {
        let given = request.query(name).unwrap_or_default();
        if DateTime::parse_from_rfc3339(given).is_err() {
            return Err(invalid(Protocol, name, given, "is required, a date-time as in RFC 3339"));
        }
    }
    if ids.is_empty() || ids.len() > 100 {
        return Err(invalid(Protocol, "ids", "", "has to hold 1 to 100 ids"));
    }
    let own = ids.iter().filter_map(|id| get(tx, id)).filter(|post| post.author == caller.id);
    let data: Vec<Value> = own
        .map(|post| {
            let all = metrics(tx, &post);
            json!({
                "id": post.id,
                "timestamped_metrics": [{
                    "timestamp": time(tx.now),
                    "metrics": {
                        "impressions": all.impressions,
                        "likes": all.likes,
                        "replies": all.replies,
                        "retweets": all.reposts,
                        "quote_tweets": all.quotes,
                        "bookmarks": all.bookmarks,
                        "url_clicks": all.link_clicks,
                        "user_profile_clicks": all.profile_clicks,
                        "media_views": all.video_views,
                    },
                }],
            })
        })
        .collect();
    Ok(Response::json(200, &json!({ "data": data })))
}

/// Metrics of a post.
struct Metrics {
    impressions: u64,
    likes: u64,
    replies: u64,
    reposts: u64,
    quotes: u64,
    bookmarks: u64,
    link_clicks: u64,
    profile_clicks: u64,
    video_views: u64,
}

fn metrics(tx: &Transaction, post: &Post) -> Metrics {
    let age = tx.now - post.created_at;
    let draw = |name: &str, ceiling: u64| figure(&post.id, name, age, ceiling);
    let linked = |index: &str| tx.store.linked_keys(index, &post.id).count() as u64;
    let impressions = draw("impressions", 20_000);
    Metrics {
        impressions,
        likes: draw("likes", 800).min(impressions),
        replies: linked(REPLY),
        reposts: draw("reposts", 120).min(impressions),
        quotes: linked(QUOTE),
        bookmarks: draw("bookmarks", 60).min(impressions),
        link_clicks: draw("clicks", 300).min(impressions),
        profile_clicks: draw("profiles", 90).min(impressions),
        video_views: draw("views", 9_000).min(impressions),
    }
}

/// Requested fields. The selector has two names in the documentation, and so have two fields.
struct Fields {
    post: Vec<String>,
    user: Vec<String>,
    media: Vec<String>,
    expansions: Vec<String>,
    word: &'static str,
}

const POST_FIELDS: &[&str] = &[
    "article",
    "attachments",
    "author_id",
    "card_uri",
    "community_id",
    "context_annotations",
    "conversation_id",
    "created_at",
    "display_text_range",
    "edit_controls",
    "edit_history_tweet_ids",
    "edit_history_post_ids",
    "entities",
    "geo",
    "id",
    "in_reply_to_user_id",
    "lang",
    "media_metadata",
    "non_public_metrics",
    "note_tweet",
    "note_post",
    "organic_metrics",
    "paid_partnership",
    "possibly_sensitive",
    "promoted_metrics",
    "public_metrics",
    "referenced_tweets",
    "referenced_posts",
    "reply_settings",
    "scopes",
    "source",
    "text",
    "withheld",
];

impl Fields {
    fn read(tx: &Transaction, request: &Request) -> Result<Self, Response> {
        if let Some(fields) = request.query("tweet.fields").filter(|_| tx.settings.has_renamed_fields) {
            let known = "ids,expansions,max_results,pagination_token,post.fields,media.fields,user.fields";
            let message = format!("The query parameter [tweet.fields] is not one of [{known}]");
            return Err(invalid(Protocol, "tweet.fields", fields, &message));
        }
        let mut post = list(request, "tweet.fields");
        post.extend(list(request, "post.fields"));
        if let Some(unknown) = post.iter().find(|field| !POST_FIELDS.contains(&field.as_str())) {
            let message = format!(
                "The `tweet.fields` query parameter value [{unknown}] is not one of [{}]",
                POST_FIELDS.join(",")
            );
            return Err(invalid(Protocol, "tweet.fields", unknown, &message));
        }
        Ok(Self {
            post,
            user: list(request, "user.fields"),
            media: list(request, "media.fields"),
            expansions: list(request, "expansions"),
            word: if request.query("post.fields").is_some() { "post" } else { "tweet" },
        })
    }

    fn has(&self, field: &str) -> bool {
        self.post.iter().any(|asked| asked == field)
    }

    fn expands(&self, what: &str) -> bool {
        self.expansions.iter().any(|asked| asked == what)
    }
}

/// A response that lists posts.
struct Listing<'a> {
    fields: &'a Fields,
    data: Vec<Value>,
    errors: Vec<Value>,
    users: Vec<String>,
    media: Vec<String>,
    posts: Vec<String>,
}

impl<'a> Listing<'a> {
    fn new(fields: &'a Fields) -> Self {
        Self { fields, data: vec![], errors: vec![], users: vec![], media: vec![], posts: vec![] }
    }

    fn add(&mut self, tx: &Transaction, caller: &Account, post: &Post) {
        let view = self.view(tx, caller, post);
        self.data.push(view);
        self.users.push(post.author.clone());
        self.media.extend(post.media.iter().cloned());
        self.posts.extend(post.reply_to.iter().chain(&post.quote).cloned());
    }

    fn view(&mut self, tx: &Transaction, caller: &Account, post: &Post) -> Value {
        let fields = self.fields;
        let author = account::by_id(tx.store, ID, &post.author).expect("posts have authors");
        let rendered = render(tx, post, &author);
        let mut view = Map::new();
        let mut put = |name: &str, value: Value| {
            view.insert(name.to_owned(), value);
        };
        put("id", json!(post.id));
        let is_long = text::weighted_length(&post.text) > text::LIMIT;
        put("text", json!(if is_long { rendered.shortened() } else { rendered.text.clone() }));
        for name in ["note_tweet", "note_post"] {
            if is_long && fields.has(name) {
                let note = json!({ "text": rendered.text, "entities": { "urls": rendered.urls } });
                put(name, note);
            }
        }
        put(&format!("edit_history_{}_ids", fields.word), json!(post.edits));
        if fields.has("author_id") || fields.expands("author_id") {
            put("author_id", json!(post.author));
        }
        if fields.has("created_at") {
            put("created_at", json!(time(post.created_at)));
        }
        if fields.has("conversation_id") {
            put("conversation_id", json!(post.conversation));
        }
        if fields.has("reply_settings") {
            put("reply_settings", json!(post.reply_settings));
        }
        if fields.has("lang") {
            put("lang", json!("und"));
        }
        if fields.has("possibly_sensitive") {
            put("possibly_sensitive", json!(false));
        }
        let parent = post.reply_to.as_ref().and_then(|id| get(tx, id));
        if let Some(parent) = parent.filter(|_| fields.has("in_reply_to_user_id")) {
            put("in_reply_to_user_id", json!(parent.author));
        }
        let references: Vec<Value> = post
            .reply_to
            .iter()
            .map(|id| json!({ "type": "replied_to", "id": id }))
            .chain(post.quote.iter().map(|id| json!({ "type": "quoted", "id": id })))
            .collect();
        for name in ["referenced_tweets", "referenced_posts"] {
            if fields.has(name) && !references.is_empty() {
                put(name, json!(references));
            }
        }
        if fields.has("entities") && !rendered.urls.is_empty() {
            put("entities", json!({ "urls": rendered.urls }));
        }
        let keys: Vec<String> =
            post.media.iter().filter_map(|id| media::get(tx, id)).map(|media| media.media_key()).collect();
        if (fields.has("attachments") || fields.expands("attachments.media_keys")) && !keys.is_empty() {
            put("attachments", json!({ "media_keys": keys }));
        }
        let all = metrics(tx, post);
        let reposts = if fields.word == "post" { "repost_count" } else { "retweet_count" };
        if fields.has("public_metrics") {
            put(
                "public_metrics",
                json!({
                    reposts: all.reposts,
                    "reply_count": all.replies,
                    "like_count": all.likes,
                    "quote_count": all.quotes,
                    "bookmark_count": all.bookmarks,
                    "impression_count": all.impressions,
                }),
            );
        }
        let is_private =
            post.author == caller.id && tx.now - post.created_at <= TimeDelta::days(PRIVATE_DAYS);
        for name in ["non_public_metrics", "organic_metrics", "promoted_metrics"] {
            if !fields.has(name) {
                continue;
            }
            // The sandbox has no promoted posts.
            if !is_private || name == "promoted_metrics" {
                self.errors.push(json!({
                    "resource_id": post.id,
                    "resource_type": "tweet",
                    "field": name,
                    "parameter": format!("{}.fields", fields.word),
                    "title": "Field Authorization Error",
                    "detail": format!("Sorry, you are not authorized to access '{name}' on the tweet with ids: [{}].", post.id),
                    "section": "data",
                    "type": "https://api.x.com/2/problems/not-authorized-for-field",
                }));
                continue;
            }
            let mut figures = json!({
                "impression_count": all.impressions,
                "url_link_clicks": all.link_clicks,
                "user_profile_clicks": all.profile_clicks,
            });
            if name == "organic_metrics" {
                figures["like_count"] = json!(all.likes);
                figures["reply_count"] = json!(all.replies);
                figures[reposts] = json!(all.reposts);
            }
            view.insert(name.to_owned(), figures);
        }
        Value::Object(view)
    }

    fn body(self, tx: &Transaction) -> Value {
        let fields = self.fields;
        let mut includes = Map::new();
        if fields.expands("author_id") {
            let mut ids = self.users;
            ids.sort();
            ids.dedup();
            let users: Vec<Value> = ids
                .iter()
                .filter_map(|id| account::by_id(tx.store, ID, id))
                .map(|account| user(tx, &account, &fields.user))
                .collect();
            includes.insert("users".into(), json!(users));
        }
        if fields.expands("attachments.media_keys") {
            let media: Vec<Value> = self
                .media
                .iter()
                .filter_map(|id| media::get(tx, id))
                .map(|media| media.view(tx, &fields.media))
                .collect();
            if !media.is_empty() {
                includes.insert("media".into(), json!(media));
            }
        }
        for word in ["tweets", "posts"] {
            if fields.expands(&format!("referenced_{word}.id"))
                || fields.expands(&format!("referenced_{word}"))
            {
                let posts = self.posts.iter().filter_map(|id| get(tx, id)).filter_map(|post| {
                    let author = account::by_id(tx.store, ID, &post.author)?;
                    let text = render(tx, &post, &author).text;
                    Some(json!({ "id": post.id, "text": text, "edit_history_tweet_ids": post.edits }))
                });
                let posts: Vec<Value> = posts.collect();
                if !posts.is_empty() {
                    includes.insert(word.into(), json!(posts));
                }
            }
        }
        let mut body = Map::new();
        // Empty members are left out.
        if !self.data.is_empty() {
            body.insert("data".into(), json!(self.data));
        }
        if !includes.is_empty() {
            body.insert("includes".into(), Value::Object(includes));
        }
        if !self.errors.is_empty() {
            body.insert("errors".into(), json!(self.errors));
        }
        Value::Object(body)
    }
}

fn render(tx: &Transaction, post: &Post, author: &Account) -> text::Rendered {
    let keys: Vec<String> =
        post.media.iter().filter_map(|id| media::get(tx, id)).map(|media| media.media_key()).collect();
    let kind = if keys.iter().any(|key| key.starts_with("3_")) { "photo" } else { "video" };
    let address = format!("https://x.com/{}/status/{}/{kind}/1", author.username, post.id);
    text::render(&post.id, &post.text, (!keys.is_empty()).then_some((address, keys)))
}

fn user(tx: &Transaction, account: &Account, fields: &[String]) -> Value {
    let mut user = json!({ "id": account.id, "name": account.display_name(), "username": account.username });
    for field in fields {
        let value = match field.as_str() {
            "created_at" => json!(time(account.created_at)),
            "description" => json!("An account of the sandbox."),
            "profile_image_url" => json!(avatar(account)),
            "protected" | "verified" => json!(false),
            "verified_type" => json!("none"),
            "subscription_type" => json!(if is_premium(account) { "Premium" } else { "None" }),
            "url" => json!(""),
            "public_metrics" => json!({
                "followers_count": figure(&account.id, "followers", tx.now - account.created_at, 5_000),
                "following_count": 0,
                "tweet_count": by(tx, &account.id).count(),
                "listed_count": 0,
                "like_count": 0,
            }),
            _ => continue,
        };
        user[field] = value;
    }
    user
}

fn is_premium(account: &Account) -> bool {
    account.username.to_lowercase().starts_with("premium")
}

fn missing(kind: &str, parameter: &str, id: &str) -> Value {
    json!({
        "value": id,
        "detail": format!("Could not find {kind} with {parameter}: [{id}]."),
        "title": "Not Found Error",
        "resource_type": kind,
        "parameter": parameter,
        "resource_id": id,
        "type": "https://api.x.com/2/problems/resource-not-found",
    })
}

fn is_id(text: &str) -> bool {
    (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a parameter of several values, separated by commas.
fn list(request: &Request, name: &str) -> Vec<String> {
    request
        .query(name)
        .map(|text| {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pagination_tokens_are_parsed_back() {
        let token = Token::after("1234567890123456789");
        assert!(token.bytes().all(|byte| BASE32HEX.contains(&byte)));
        assert!(matches!(Token::read(&token), Some(Token::After(1_234_567_890_123_456_789))));
        assert!(Token::read("nonsense!").is_none());
    }

    #[test]
    fn cashtags_are_counted() {
        assert_eq!(cashtags("$TSLA up, $AAPL down, $5 and US$ and $toolongone"), 2);
    }
}
