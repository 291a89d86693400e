//! Posts: <https://docs.x.com/x-api/posts/create-post> and the reads beside it.
//!
//! What a description can refuse, the schema refuses with 400; what depends on who asks and on what
//! is there already is a 403 whose detail is all that tells why.

use super::{
    Account, Answer, Call, Caller, ID, QUARTER, Record, Rule, Turn, X, account, admit, avatar, body, invalid,
    media, not_permitted, problem, snowflake, text, time,
};
use crate::{fault, figures::figure, host::Host, shelf::Shelf};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

/// How many posts a user may create.
pub(super) const CREATE: Rule = Rule { name: "x.posts", limit: 100, seconds: QUARTER };
const DELETE: Rule = Rule { name: "x.deletes", limit: 50, seconds: QUARTER };
const ME: Rule = Rule { name: "x.me", limit: 75, seconds: QUARTER };
const LOOKUP: Rule = Rule { name: "x.lookup", limit: 5_000, seconds: QUARTER };
const TIMELINE: Rule = Rule { name: "x.timeline", limit: 900, seconds: QUARTER };
const ANALYTICS: Rule = Rule { name: "x.analytics", limit: 300, seconds: QUARTER };

const READ: &[&str] = &["tweet.read", "users.read"];
const WRITE: &[&str] = &["tweet.read", "tweet.write", "users.read"];

/// How long a post's author may see figures that others never see.
const PRIVATE_DAYS: i64 = 30;

/// A post.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    /// Its id.
    pub(super) id: String,
    /// The author's id.
    pub(super) author: String,
    /// Its text as it came.
    pub(super) text: String,
    /// When it was created.
    pub(super) created_at: DateTime<Utc>,
    /// What it replies to.
    pub(super) reply_to: Option<String>,
    /// The post at the root of its conversation.
    conversation: String,
    /// What it quotes.
    pub(super) quote: Option<String>,
    /// Its media.
    pub(super) media: Vec<String>,
    /// Its poll.
    pub(super) poll: Option<Poll>,
    /// Who may reply.
    reply_settings: String,
    /// Itself, and the posts that it is an edit of, oldest first.
    edits: Vec<String>,
}

/// A poll.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Poll {
    /// What can be chosen.
    pub(super) options: Vec<String>,
    duration_minutes: u64,
}

impl Record for Post {
    const SHELF: &'static str = "x.post";

    fn key(&self) -> String {
        padded(&self.id)
    }
}

/// That a post belongs to an author, a parent or a quoted post, for lists and counts.
#[derive(Serialize, Deserialize)]
struct Tie {
    kind: String,
    of: String,
    id: String,
}

impl Record for Tie {
    const SHELF: &'static str = "x.tie";

    fn key(&self) -> String {
        format!("{}/{}/{}", self.kind, self.of, padded(&self.id))
    }
}

/// That an account said something, which deleting the post does not undo at once.
#[derive(Serialize, Deserialize)]
struct Said {
    id: String,
    at: DateTime<Utc>,
}

impl Record for Said {
    const SHELF: &'static str = "x.said";

    fn key(&self) -> String {
        self.id.clone()
    }
}

fn padded(id: &str) -> String {
    format!("{id:0>20}")
}

/// The post with this id.
pub(super) fn get(turn: &Turn<'_>, id: &str) -> Option<Post> {
    turn.shelf.get(&padded(id))
}

/// The posts of an author, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, author: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    let shelf: &'a Shelf = turn.shelf;
    shelf.under::<Tie>(&format!("author/{author}/")).filter_map(|tie| shelf.get(&padded(&tie.id)))
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

/// `POST /2/tweets`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, WRITE, CREATE)?;
    let refused = |answer: Answer| caller.window(answer);
    let body = body(call, &SCHEMA).map_err(refused)?;
    let words = body["text"].as_str().unwrap_or_default().to_owned();
    let fault = match fault::draw(turn, ID, &caller.account.username, &words) {
        Ok(fault) => fault,
        Err(fault) => return Err(X.fail(turn, call, fault)),
    };
    let post = compose(turn, &caller, &body, words).map_err(refused)?;

    turn.shelf.put(&Said { id: said(&post), at: turn.now });
    let ties =
        [("author", Some(&post.author)), ("reply", post.reply_to.as_ref()), ("quote", post.quote.as_ref())];
    for (kind, of) in ties {
        if let Some(of) = of {
            turn.shelf.put(&Tie { kind: kind.into(), of: of.clone(), id: post.id.clone() });
        }
    }
    turn.shelf.put(&post);
    let delivered = deliver(turn, &post, &caller.account);
    let reply =
        json!({ "data": { "id": post.id, "text": delivered.text, "edit_history_tweet_ids": post.edits } });
    Ok(caller
        .reply(201, &reply)
        .with("location", format!("https://api.twitter.com/2/tweets/{}", post.id))
        .publishing(post.id)
        .because(fault))
}

/// The post that a body asks for, if its author may have it.
fn compose(turn: &mut Turn<'_>, caller: &Caller, body: &Value, words: String) -> Result<Post, Answer> {
    let author = &caller.account;
    let id_at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let ids: Vec<String> = body["media"]["media_ids"]
        .as_array()
        .map(|ids| ids.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let (poll, quote) = (body.get("poll"), id_at("/quote_tweet_id"));
    if words.trim().is_empty() && ids.is_empty() && poll.is_none() && quote.is_none() {
        return Err(invalid("text", &words, "$.text: must be at least 1 characters long"));
    }
    if [!ids.is_empty(), poll.is_some(), quote.is_some()].into_iter().filter(|part| *part).count() > 1 {
        return Err(invalid("media", "", "You can only provide one of media, poll and quote_tweet_id."));
    }
    let is_known = |ids: &[String]| media::are_usable(turn, &author.id, ids);
    if !ids.is_empty() && !is_known(&ids) {
        return Err(invalid("media.media_ids", &ids.join(","), "Your media IDs are invalid."));
    }
    if text::weigh(&words) > text::LIMIT || cashtags(&words) > 1 {
        return Err(not_permitted());
    }

    let parent = match id_at("/reply/in_reply_to_tweet_id") {
        None => None,
        Some(id) => Some(
            get(turn, &id)
                .filter(|parent| parent.author == author.id || summons(turn, parent, author))
                .ok_or_else(not_permitted)?,
        ),
    };
    if quote.as_ref().is_some_and(|id| get(turn, id).is_none()) {
        return Err(not_permitted());
    }
    let earlier = match id_at("/edit_options/previous_post_id") {
        None => None,
        Some(id) => Some(get(turn, &id).filter(|post| post.author == author.id).ok_or_else(not_permitted)?),
    };

    let id = snowflake(turn);
    let mut edits = earlier.map(|earlier| earlier.edits).unwrap_or_default();
    edits.push(id.clone());
    let post = Post {
        author: author.id.clone(),
        text: words,
        created_at: turn.now,
        conversation: parent.as_ref().map_or_else(|| id.clone(), |parent| parent.conversation.clone()),
        reply_to: parent.map(|parent| parent.id),
        quote,
        media: ids,
        poll: poll.map(|poll| Poll {
            options: serde_json::from_value(poll["options"].clone()).unwrap_or_default(),
            duration_minutes: poll["duration_minutes"].as_u64().unwrap_or_default(),
        }),
        reply_settings: body["reply_settings"].as_str().unwrap_or("everyone").to_owned(),
        edits,
        id,
    };
    // Media make a text another post; so does a poll.
    let is_bare = post.media.is_empty() && post.poll.is_none();
    let window = TimeDelta::milliseconds(i64::try_from(turn.settings.duplicate_ms).unwrap_or(i64::MAX));
    let is_recent = turn.shelf.get::<Said>(&said(&post)).is_some_and(|said| turn.now - said.at < window);
    if is_bare && is_recent {
        return Err(problem(
            403,
            "Forbidden",
            "You are not allowed to create a Tweet with duplicate content.",
        ));
    }
    Ok(post)
}

/// What counts as saying the same.
fn said(post: &Post) -> String {
    let text: String = post.text.trim().nfc().collect();
    let extra = if post.media.is_empty() && post.poll.is_none() { "" } else { post.id.as_str() };
    format!("{}/{}", post.author, hex::encode(Sha256::digest(format!("{text}\n{extra}"))))
}

/// Whether a post's author asked this account for an answer, by a mention or a quote.
fn summons(turn: &Turn<'_>, parent: &Post, account: &Account) -> bool {
    let mention = format!("@{}", account.username).to_lowercase();
    let text = parent.text.to_lowercase();
    let is_mentioned = text.match_indices(&mention).any(|(start, _)| {
        let next = text[start + mention.len()..].chars().next();
        next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    });
    let quoted = parent.quote.as_ref().and_then(|id| get(turn, id));
    is_mentioned || quoted.is_some_and(|post| post.author == account.id)
}

/// How many `$TICKER` a text has.
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
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, WRITE, DELETE)?;
    let post = get(turn, id).ok_or_else(|| caller.window(Answer::json(404, &missing("tweet", "id", id))))?;
    if post.author != caller.account.id {
        return Err(caller.window(problem(403, "Forbidden", "You are not authorized to delete this Tweet.")));
    }
    let ties =
        [("author", Some(&post.author)), ("reply", post.reply_to.as_ref()), ("quote", post.quote.as_ref())];
    for (kind, of) in ties {
        if let Some(of) = of {
            let tie = Tie { kind: kind.into(), of: of.clone(), id: post.id.clone() };
            turn.shelf.remove::<Tie>(&tie.key());
        }
    }
    turn.shelf.remove::<Post>(&post.key());
    Ok(caller.reply(200, &json!({ "data": { "deleted": true } })))
}

/// `GET /2/users/me`.
pub(super) fn me(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, ME)?;
    let user = user(turn, &caller.account, &list(call, "user.fields"));
    Ok(caller.reply(200, &json!({ "data": user })))
}

/// `GET /2/tweets` and `GET /2/tweets/{id}`.
pub(super) fn lookup(turn: &mut Turn<'_>, call: &Call, id: Option<&str>) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, LOOKUP)?;
    let fields = Fields::read(call).map_err(|refusal| caller.window(refusal))?;
    let ids = match id {
        Some(id) => vec![id.to_owned()],
        None => list(call, "ids"),
    };
    if ids.is_empty() || ids.len() > 100 || !ids.iter().all(|id| is_id(id)) {
        let given = call.query("ids").unwrap_or_default();
        return Err(caller.window(invalid(
            "ids",
            given,
            "The `ids` query parameter has to hold 1 to 100 ids.",
        )));
    }
    let mut out = Listing::new(&fields);
    for wanted in &ids {
        match get(turn, wanted) {
            Some(post) => out.add(turn, &caller, &post),
            None => out.errors.push(missing("tweet", if id.is_some() { "id" } else { "ids" }, wanted)),
        }
    }
    let mut body = out.body(turn);
    if let (Some(_), Some(data)) = (id, body.get_mut("data")) {
        *data = data[0].take();
    }
    Ok(caller.reply(200, &body))
}

/// `GET /2/users/{id}/tweets`.
pub(super) fn timeline(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, TIMELINE)?;
    let refused = |answer: Answer| caller.window(answer);
    let fields = Fields::read(call).map_err(refused)?;
    let Some(author) = account::numbered(turn.shelf, ID, id) else {
        return Ok(caller.reply(200, &json!({ "errors": [missing("user", "id", id)] })));
    };
    let bad = |name: &str, text: &str| refused(invalid(name, call.query(name).unwrap_or_default(), text));
    let most: usize = match call.query("max_results").map(str::parse) {
        None => 10,
        Some(Ok(most @ 5..=100)) => most,
        Some(_) => {
            return Err(bad(
                "max_results",
                "The `max_results` query parameter value is not between 5 and 100",
            ));
        }
    };
    let moment = |name: &str| match call.query(name).map(DateTime::parse_from_rfc3339) {
        None => Ok(None),
        Some(Ok(at)) => Ok(Some(at.to_utc())),
        Some(Err(_)) => Err(bad(name, "has to be a date-time as in RFC 3339")),
    };
    let (from, to) = (moment("start_time")?, moment("end_time")?);
    let number = |name: &str| match call.query(name).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(id)) => Ok(Some(id)),
        Some(Err(_)) => Err(bad(name, "has to be an id")),
    };
    let (since, until) = (number("since_id")?, number("until_id")?);
    let token = match call.query("pagination_token").map(Token::read) {
        None => None,
        Some(Some(token)) => Some(token),
        Some(None) => {
            return Err(bad("pagination_token", "The `pagination_token` query parameter is invalid"));
        }
    };
    let exclude = list(call, "exclude");
    if exclude.iter().any(|word| word != "replies" && word != "retweets") {
        return Err(bad("exclude", "has to be among replies, retweets"));
    }
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let seen = turn.now.checked_sub_signed(lag).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let matches: Vec<Post> = by(turn, &author.id)
        .rev()
        // No more than the latest 3,200 can be reached.
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
    let page = &matches[start..matches.len().min(start + most)];
    let mut out = Listing::new(&fields);
    for post in page {
        out.add(turn, &caller, post);
    }
    let mut meta = json!({ "result_count": page.len() });
    if let (Some(newest), Some(oldest)) = (page.first(), page.last()) {
        meta["newest_id"] = json!(newest.id);
        meta["oldest_id"] = json!(oldest.id);
        if start + page.len() < matches.len() {
            meta["next_token"] = json!(Token::after(&oldest.id));
        }
        if start > 0 {
            // From the post that the page before began with.
            meta["previous_token"] = json!(Token::from(&matches[start.saturating_sub(most)].id));
        }
    }
    let mut body = out.body(turn);
    body["meta"] = meta;
    Ok(caller.reply(200, &body))
}

/// Where a page begins, in base32hex as the documentation says, and no promise beyond that.
enum Token {
    After(u64),
    From(u64),
}

impl Token {
    fn after(id: &str) -> String {
        radix(&format!("a{id}"))
    }

    fn from(id: &str) -> String {
        radix(&format!("f{id}"))
    }

    fn read(text: &str) -> Option<Self> {
        let text = unradix(text)?;
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

fn radix(text: &str) -> String {
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    bits.as_bytes()
        .chunks(5)
        .map(|chunk| {
            let value = (0..5).fold(0, |value, at| value * 2 + usize::from(chunk.get(at) == Some(&b'1')));
            char::from(BASE32HEX[value])
        })
        .collect()
}

fn unradix(text: &str) -> Option<String> {
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
pub(super) fn analytics(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, ANALYTICS)?;
    let ids = list(call, "ids");
    for name in ["start_time", "end_time"] {
        let given = call.query(name).unwrap_or_default();
        if DateTime::parse_from_rfc3339(given).is_err() {
            return Err(caller.window(invalid(name, given, "is required, a date-time as in RFC 3339")));
        }
    }
    if ids.is_empty() || ids.len() > 100 {
        return Err(caller.window(invalid("ids", "", "has to hold 1 to 100 ids")));
    }
    let own = ids.iter().filter_map(|id| get(turn, id)).filter(|post| post.author == caller.account.id);
    let data: Vec<Value> = own
        .map(|post| {
            let all = metrics(turn, &post);
            json!({
                "id": post.id,
                "timestamped_metrics": [{
                    "timestamp": time(turn.now),
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
    Ok(caller.reply(200, &json!({ "data": data })))
}

/// The figures of a post.
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

fn metrics(turn: &Turn<'_>, post: &Post) -> Metrics {
    let age = turn.now - post.created_at;
    let draw = |name: &str, ceiling: u64| figure(&post.id, name, age, ceiling);
    let tied = |kind: &str| turn.shelf.under::<Tie>(&format!("{kind}/{}/", post.id)).count() as u64;
    let impressions = draw("impressions", 20_000);
    Metrics {
        impressions,
        likes: draw("likes", 800).min(impressions),
        replies: tied("reply"),
        reposts: draw("reposts", 120).min(impressions),
        quotes: tied("quote"),
        bookmarks: draw("bookmarks", 60).min(impressions),
        link_clicks: draw("clicks", 300).min(impressions),
        profile_clicks: draw("profiles", 90).min(impressions),
        video_views: draw("views", 9_000).min(impressions),
    }
}

/// Which fields are asked for. The selector has two names in the documentation, and so have two fields.
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
    fn read(call: &Call) -> Result<Self, Answer> {
        let mut post = list(call, "tweet.fields");
        post.extend(list(call, "post.fields"));
        if let Some(unknown) = post.iter().find(|field| !POST_FIELDS.contains(&field.as_str())) {
            let message = format!(
                "The `tweet.fields` query parameter value [{unknown}] is not one of [{}]",
                POST_FIELDS.join(",")
            );
            return Err(invalid("tweet.fields", unknown, &message));
        }
        Ok(Self {
            post,
            user: list(call, "user.fields"),
            media: list(call, "media.fields"),
            expansions: list(call, "expansions"),
            word: if call.query("post.fields").is_some() { "post" } else { "tweet" },
        })
    }

    fn has(&self, field: &str) -> bool {
        self.post.iter().any(|asked| asked == field)
    }

    fn expands(&self, what: &str) -> bool {
        self.expansions.iter().any(|asked| asked == what)
    }
}

/// Posts on their way out.
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

    fn add(&mut self, turn: &Turn<'_>, caller: &Caller, post: &Post) {
        let view = self.view(turn, caller, post);
        self.data.push(view);
        self.users.push(post.author.clone());
        self.media.extend(post.media.iter().cloned());
        self.posts.extend(post.reply_to.iter().chain(&post.quote).cloned());
    }

    fn view(&mut self, turn: &Turn<'_>, caller: &Caller, post: &Post) -> Value {
        let fields = self.fields;
        let author = account::numbered(turn.shelf, ID, &post.author).expect("posts have authors");
        let delivered = deliver(turn, post, &author);
        let mut view = Map::new();
        let mut put = |name: &str, value: Value| {
            view.insert(name.to_owned(), value);
        };
        put("id", json!(post.id));
        put("text", json!(delivered.text));
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
        let parent = post.reply_to.as_ref().and_then(|id| get(turn, id));
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
        if fields.has("entities") && !delivered.urls.is_empty() {
            put("entities", json!({ "urls": delivered.urls }));
        }
        let keys: Vec<String> =
            post.media.iter().filter_map(|id| media::get(turn, id)).map(|media| media.media_key()).collect();
        if (fields.has("attachments") || fields.expands("attachments.media_keys")) && !keys.is_empty() {
            put("attachments", json!({ "media_keys": keys }));
        }
        let all = metrics(turn, post);
        if fields.has("public_metrics") {
            put(
                "public_metrics",
                json!({
                    "retweet_count": all.reposts,
                    "reply_count": all.replies,
                    "like_count": all.likes,
                    "quote_count": all.quotes,
                    "bookmark_count": all.bookmarks,
                    "impression_count": all.impressions,
                }),
            );
        }
        let is_private =
            post.author == caller.account.id && turn.now - post.created_at <= TimeDelta::days(PRIVATE_DAYS);
        for name in ["non_public_metrics", "organic_metrics", "promoted_metrics"] {
            if !fields.has(name) {
                continue;
            }
            // Nothing here was ever promoted.
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
                figures["retweet_count"] = json!(all.reposts);
            }
            view.insert(name.to_owned(), figures);
        }
        Value::Object(view)
    }

    fn body(self, turn: &Turn<'_>) -> Value {
        let fields = self.fields;
        let mut includes = Map::new();
        if fields.expands("author_id") {
            let mut ids = self.users;
            ids.sort();
            ids.dedup();
            let users: Vec<Value> = ids
                .iter()
                .filter_map(|id| account::numbered(turn.shelf, ID, id))
                .map(|account| user(turn, &account, &fields.user))
                .collect();
            includes.insert("users".into(), json!(users));
        }
        if fields.expands("attachments.media_keys") {
            let media: Vec<Value> = self
                .media
                .iter()
                .filter_map(|id| media::get(turn, id))
                .map(|media| media.view(turn, &fields.media))
                .collect();
            if !media.is_empty() {
                includes.insert("media".into(), json!(media));
            }
        }
        for word in ["tweets", "posts"] {
            if fields.expands(&format!("referenced_{word}.id"))
                || fields.expands(&format!("referenced_{word}"))
            {
                let posts = self.posts.iter().filter_map(|id| get(turn, id)).filter_map(|post| {
                    let author = account::numbered(turn.shelf, ID, &post.author)?;
                    let text = deliver(turn, &post, &author).text;
                    Some(json!({ "id": post.id, "text": text, "edit_history_tweet_ids": post.edits }))
                });
                let posts: Vec<Value> = posts.collect();
                if !posts.is_empty() {
                    includes.insert(word.into(), json!(posts));
                }
            }
        }
        let mut body = Map::new();
        // No member at all stands for nothing.
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

fn deliver(turn: &Turn<'_>, post: &Post, author: &Account) -> text::Delivered {
    let keys: Vec<String> =
        post.media.iter().filter_map(|id| media::get(turn, id)).map(|media| media.media_key()).collect();
    let kind = if keys.iter().any(|key| key.starts_with("3_")) { "photo" } else { "video" };
    let address = format!("https://x.com/{}/status/{}/{kind}/1", author.username, post.id);
    text::deliver(&post.id, &post.text, (!keys.is_empty()).then_some((address, keys)))
}

fn user(turn: &Turn<'_>, account: &Account, fields: &[String]) -> Value {
    let mut user = json!({ "id": account.id, "name": account.username, "username": account.username });
    for field in fields {
        let value = match field.as_str() {
            "created_at" => json!(time(account.created_at)),
            "description" => json!("An account of the sandbox."),
            "profile_image_url" => json!(avatar(account)),
            "protected" | "verified" => json!(false),
            "verified_type" => json!("none"),
            "subscription_type" => json!("None"),
            "url" => json!(""),
            "public_metrics" => json!({
                "followers_count": figure(&account.id, "followers", turn.now - account.created_at, 5_000),
                "following_count": 0,
                "tweet_count": by(turn, &account.id).count(),
                "listed_count": 0,
                "like_count": 0,
            }),
            _ => continue,
        };
        user[field] = value;
    }
    user
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

/// A parameter that holds several values, with commas between them.
fn list(call: &Call, name: &str) -> Vec<String> {
    call.query(name)
        .map(|text| {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
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
