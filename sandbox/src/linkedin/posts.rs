//! Posts, comments and what is known of them.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api>

use super::{
    Answer, CREATES, Call, Caller, ID, LinkedIn, Record, Turn, admit, body, error, forbidden, invalid, media,
    missing, next, page_of, paged, text, throttled,
};
use crate::{fault, figures::figure, host::Host};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A post.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    /// Its URN.
    pub(super) urn: String,
    /// The member whose token made it.
    pub(super) owner: String,
    /// Who it is by: the member, or the member's page.
    pub(super) author: String,
    /// Its text, as it was sent.
    pub(super) commentary: String,
    /// What it holds.
    pub(super) content: Value,
    /// Who can see it.
    pub(super) visibility: String,
    /// The post that it shares.
    pub(super) reshares: Option<String>,
    digest: String,
    /// When it was made.
    pub(super) created_at: DateTime<Utc>,
}

impl Record for Post {
    const SHELF: &'static str = "linkedin.post";

    fn key(&self) -> String {
        self.urn.rsplit(':').next().unwrap_or_default().to_owned()
    }
}

/// A comment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Comment {
    /// Its URN.
    pub(super) urn: String,
    id: String,
    /// The member whose token made it.
    pub(super) owner: String,
    actor: String,
    /// The post that it stands below.
    pub(super) post: String,
    /// Its text.
    pub(super) text: String,
    /// Its picture.
    pub(super) image: Option<String>,
    /// When it was made.
    pub(super) created_at: DateTime<Utc>,
}

impl Record for Comment {
    const SHELF: &'static str = "linkedin.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The post with this URN, or the one that an activity's URN stands for.
pub(super) fn at(turn: &Turn<'_>, urn: &str) -> Option<Post> {
    let post: Post = turn.shelf.get(urn.rsplit(':').next()?)?;
    (post.urn == urn || urn.starts_with("urn:li:activity:")).then_some(post)
}

/// The comment with this URN.
pub(super) fn comment_at(turn: &Turn<'_>, urn: &str) -> Option<Comment> {
    turn.shelf.under("").find(|comment: &Comment| comment.urn == urn)
}

/// What a member posted, for the page as well, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, user: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    let user = user.to_owned();
    turn.shelf.under("").filter(move |post: &Post| post.owner == user)
}

/// A member's comments, oldest first.
pub(super) fn comments_by<'a>(
    turn: &'a Turn<'_>,
    user: &str,
) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    let user = user.to_owned();
    turn.shelf.under("").filter(move |comment: &Comment| comment.owner == user)
}

impl Post {
    /// The media it holds, each with what it shows.
    pub(super) fn pictures(&self) -> Vec<(String, String)> {
        let content = &self.content;
        let one = |value: &Value, alt: &str| {
            let urn = value.as_str()?.to_owned();
            Some((urn, alt.to_owned()))
        };
        let alt = |value: &Value| value["altText"].as_str().unwrap_or_default().to_owned();
        let thumbnail = content["article"]["thumbnailAltText"].as_str().unwrap_or_default();
        let single = one(&content["media"]["id"], &alt(&content["media"]));
        let card = one(&content["article"]["thumbnail"], thumbnail);
        let many = content["multiImage"]["images"].as_array().into_iter().flatten();
        let many = many.filter_map(|image| one(&image["id"], &alt(image)));
        single.into_iter().chain(card).chain(many).collect()
    }

    fn view(&self) -> Value {
        let at = self.created_at.timestamp_millis();
        let mut view = json!({
            "id": self.urn,
            "author": self.author,
            "commentary": self.commentary,
            "visibility": self.visibility,
            "distribution": {
                "feedDistribution": "MAIN_FEED", "targetEntities": [], "thirdPartyDistributionChannels": [],
            },
            "lifecycleState": "PUBLISHED",
            "lifecycleStateInfo": { "isEditedByAuthor": false },
            "isReshareDisabledByAuthor": false,
            "createdAt": at,
            "publishedAt": at,
            "lastModifiedAt": at,
        });
        if self.content.is_object() {
            view["content"] = self.content.clone();
        }
        if let Some(parent) = &self.reshares {
            view["reshareContext"] = json!({ "parent": parent, "root": parent });
        }
        view
    }
}

impl Comment {
    fn view(&self) -> Value {
        let time = self.created_at.timestamp_millis();
        let mut view = json!({
            "id": self.id,
            "commentUrn": self.urn,
            "$URN": self.urn,
            "actor": self.actor,
            "object": self.post,
            "created": { "actor": self.actor, "time": time },
            "lastModified": { "actor": self.actor, "time": time },
            "message": { "attributes": [], "text": self.text },
        });
        if let Some(image) = &self.image {
            view["content"] = json!([{ "entity": { "image": image }, "type": "IMAGE" }]);
        }
        view
    }
}

/// `POST /rest/posts`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let body = body(call)?;
    let field = |name: &str| body[name].as_str().unwrap_or_default();
    let author = field("author");
    caller.writes_as(author)?;
    let is_by_page = author.starts_with("urn:li:organization:");
    let visibility = field("visibility");
    let is_visible = match is_by_page {
        true => visibility == "PUBLIC",
        false => ["PUBLIC", "CONNECTIONS", "LOGGED_IN"].contains(&visibility),
    };
    if !is_visible {
        return Err(invalid(&format!("visibility can't be \"{visibility}\"")));
    }
    if field("lifecycleState") != "PUBLISHED" {
        return Err(invalid("lifecycleState has to be PUBLISHED"));
    }
    if body["distribution"]["feedDistribution"].as_str().is_none() {
        return Err(invalid("distribution is required"));
    }
    let commentary = field("commentary").to_owned();
    let words = text::plain(&commentary);
    if words.chars().count() > 3000 {
        return Err(error(422, "FIELD_LENGTH_TOO_LONG", 0, "commentary is longer than 3000 characters"));
    }
    let content = body.get("content").cloned().unwrap_or(Value::Null);
    let is_many = holds(turn, author, &content)?;
    let reshares = body["reshareContext"]["parent"].as_str().map(str::to_owned);
    if reshares.as_deref().is_some_and(|parent| at(turn, parent).is_none()) {
        return Err(missing("The post that is to be shared does not exist."));
    }
    if commentary.is_empty() && content.is_null() && reshares.is_none() {
        return Err(invalid("a post needs a commentary or a content"));
    }
    let fault = match fault::draw(turn, ID, &caller.account.username, &words) {
        Ok(fault) => fault,
        Err(fault) => return Err(LinkedIn.fail(turn, call, fault)),
    };
    let digest = hex::encode(Sha256::digest(json!([author, commentary, content, reshares]).to_string()));
    let window = TimeDelta::milliseconds(i64::try_from(turn.settings.duplicate_ms).unwrap_or(i64::MAX));
    let original = by(turn, &caller.account.id)
        .rev()
        .find(|post| post.digest == digest && post.created_at + window > turn.now);
    if let Some(original) = original {
        return Err(duplicate(&original.urn));
    }
    turn.spend(CREATES, &caller.account.id, 1).map_err(|_| throttled())?;
    let kind = if is_many { "ugcPost" } else { "share" };
    let post = Post {
        urn: format!("urn:li:{kind}:{}", next(turn)),
        owner: caller.account.id.clone(),
        author: author.to_owned(),
        commentary,
        content,
        visibility: visibility.to_owned(),
        reshares,
        digest,
        created_at: turn.now,
    };
    turn.shelf.put(&post);
    Ok(Answer::empty(201)
        .with("x-restli-id", &post.urn)
        .with("x-linkedin-id", &post.urn)
        .publishing(post.urn)
        .because(fault))
}

/// Checks what a post holds, and tells whether it is one that gets a `ugcPost`'s URN.
fn holds(turn: &Turn<'_>, author: &str, content: &Value) -> Result<bool, Answer> {
    let text = |value: &Value, name: &str, most: usize| match value[name].as_str() {
        Some(text) if text.chars().count() > most => {
            Err(error(422, "FIELD_LENGTH_TOO_LONG", 0, &format!("{name} is longer than {most} characters")))
        }
        text => Ok(text.filter(|text| !text.is_empty()).map(str::to_owned)),
    };
    let Some(content) = content.as_object() else { return Ok(false) };
    if content.len() != 1 {
        return Err(invalid("content has to hold exactly one kind"));
    }
    let (kind, value) = content.iter().next().expect("it has one member");
    match kind.as_str() {
        "media" => {
            let urn = value["id"].as_str().ok_or_else(|| invalid("media.id is required"))?;
            let media = media::usable(turn, author, urn, &["image", "video", "document"])?;
            text(value, "altText", 4086)?;
            let title = text(value, "title", 400)?;
            if media.kind == "document" && title.is_none() {
                return Err(invalid("a document needs a title"));
            }
            Ok(media.kind == "video")
        }
        "multiImage" => {
            let images = value["images"].as_array().map(Vec::as_slice).unwrap_or_default();
            if !(2..=20).contains(&images.len()) {
                return Err(invalid(&format!("multiImage takes 2 to 20 images, and there are {}", images.len())));
            }
            for image in images {
                let urn = image["id"].as_str().ok_or_else(|| invalid("images.id is required"))?;
                media::usable(turn, author, urn, &["image"])?;
                text(image, "altText", 4086)?;
            }
            Ok(true)
        }
        "article" => {
            let source = text(value, "source", 8192)?.ok_or_else(|| invalid("article.source is required"))?;
            if !url::Url::parse(&source).is_ok_and(|url| url.has_host()) {
                return Err(invalid("article.source is no address"));
            }
            text(value, "title", 400)?.ok_or_else(|| invalid("article.title is required"))?;
            text(value, "description", 4086)?;
            if let Some(urn) = value["thumbnail"].as_str() {
                media::usable(turn, author, urn, &["image"])?;
            }
            Ok(false)
        }
        "poll" => {
            text(value, "question", 140)?.ok_or_else(|| invalid("poll.question is required"))?;
            let options = value["options"].as_array().map(Vec::as_slice).unwrap_or_default();
            if !(2..=4).contains(&options.len()) {
                return Err(invalid("a poll takes 2 to 4 options"));
            }
            for option in options {
                text(option, "text", 30)?.ok_or_else(|| invalid("an option needs a text"))?;
            }
            let duration = value["settings"]["duration"].as_str().unwrap_or_default();
            if !["ONE_DAY", "THREE_DAYS", "SEVEN_DAYS", "FOURTEEN_DAYS"].contains(&duration) {
                return Err(invalid(&format!("a poll can't last \"{duration}\"")));
            }
            Ok(true)
        }
        other => Err(invalid(&format!("\"{other}\" is no content of a post"))),
    }
}

fn duplicate(urn: &str) -> Answer {
    Answer::json(
        422,
        &json!({
            "errorDetailType": "com.linkedin.common.error.BadRequest",
            "message": format!(
                "com.linkedin.content.common.exception.BadRequestResponseException: Content is a duplicate of {urn}"
            ),
            "errorDetails": { "inputErrors": [{
                "description": "Duplicate post is detected", "input": {}, "code": "DUPLICATE_POST",
            }] },
            "status": 422,
        }),
    )
}

/// `GET /rest/posts?q=author`.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    if call.query("q") != Some("author") || call.header("x-restli-method") != Some("FINDER") {
        return Err(invalid("q has to be author, and X-RestLi-Method FINDER"));
    }
    let author = call.query("author").unwrap_or_default();
    caller.reads(author)?;
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let posts = by(turn, &caller.account.id)
        .rev()
        .filter(|post| post.author == author && post.created_at + lag <= turn.now)
        .map(|post| post.view());
    paged(call, posts.collect())
}

fn own(turn: &Turn<'_>, caller: &Caller, urn: &str) -> Result<Post, Answer> {
    let post = at(turn, urn).filter(|post| post.owner == caller.account.id);
    post.ok_or_else(|| missing(&format!("Entity {urn} does not exist")))
}

/// `GET /rest/posts/{urn}`.
pub(super) fn show(turn: &mut Turn<'_>, call: &Call, urn: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let post = own(turn, &caller, urn)?;
    caller.reads(&post.author)?;
    Ok(Answer::json(200, &post.view()))
}

/// `POST /rest/posts/{urn}` with `X-RestLi-Method: PARTIAL_UPDATE`.
pub(super) fn change(turn: &mut Turn<'_>, call: &Call, urn: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    if call.header("x-restli-method") != Some("PARTIAL_UPDATE") {
        return Err(invalid("X-RestLi-Method has to be PARTIAL_UPDATE"));
    }
    let mut post = own(turn, &caller, urn)?;
    caller.writes_as(&post.author)?;
    let body = body(call)?;
    let Some(commentary) = body.pointer("/patch/$set/commentary").and_then(Value::as_str) else {
        return Err(invalid("only the commentary can be set"));
    };
    post.commentary = commentary.to_owned();
    turn.shelf.put(&post);
    Ok(Answer::empty(204))
}

/// `DELETE /rest/posts/{urn}`; one that is gone already is as good.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, urn: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    if let Some(post) = at(turn, urn) {
        caller.writes_as(&post.author)?;
        turn.shelf.remove::<Post>(&post.key());
        let below: Vec<Comment> =
            turn.shelf.under("").filter(|comment: &Comment| comment.post == post.urn).collect();
        for comment in below {
            turn.shelf.remove::<Comment>(&comment.id);
        }
    }
    Ok(Answer::empty(204))
}

/// `GET /rest/socialActions/{urn}`.
pub(super) fn actions(turn: &mut Turn<'_>, call: &Call, urn: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let post = own(turn, &caller, urn)?;
    caller.reads(&post.author)?;
    let own = comments_by(turn, &caller.account.id).filter(|comment| comment.post == post.urn).count();
    let comments = figure(&post.urn, "comments", turn.now - post.created_at, 12) + own as u64;
    Ok(Answer::json(
        200,
        &json!({
            "$URN": post.urn,
            "target": post.urn,
            "likesSummary": {
                "totalLikes": likes(turn, &post), "aggregatedTotalLikes": likes(turn, &post), "likedByCurrentUser": false,
            },
            "commentsSummary": { "totalFirstLevelComments": comments, "aggregatedTotalComments": comments },
        }),
    ))
}

fn likes(turn: &Turn<'_>, post: &Post) -> u64 {
    figure(&post.urn, "likes", turn.now - post.created_at, 90)
}

/// `POST /rest/socialActions/{urn}/comments`.
pub(super) fn comment(turn: &mut Turn<'_>, call: &Call, urn: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let body = body(call)?;
    let actor = body["actor"].as_str().unwrap_or_default();
    caller.writes_as(actor)?;
    // Below a comment stands what answers it.
    let post = match comment_at(turn, urn) {
        Some(above) => above.post,
        None => at(turn, urn).ok_or_else(|| missing(&format!("Entity {urn} does not exist")))?.urn,
    };
    let text = body["message"]["text"].as_str().unwrap_or_default();
    let image = body.pointer("/content/0/entity/image").and_then(Value::as_str);
    if text.is_empty() && image.is_none() {
        return Err(invalid("message.text is required"));
    }
    if text.chars().count() > 1250 {
        return Err(error(422, "FIELD_LENGTH_TOO_LONG", 0, "message.text is longer than 1250 characters"));
    }
    if let Some(image) = image {
        media::usable(turn, actor, image, &["image"])?;
    }
    let fault = match fault::draw(turn, ID, &caller.account.username, text) {
        Ok(fault) => fault,
        Err(fault) => return Err(LinkedIn.fail(turn, call, fault)),
    };
    let id = next(turn).to_string();
    let number = post.rsplit(':').next().unwrap_or_default();
    let comment = Comment {
        urn: format!("urn:li:comment:(urn:li:activity:{number},{id})"),
        id,
        owner: caller.account.id.clone(),
        actor: actor.to_owned(),
        post,
        text: text.to_owned(),
        image: image.map(str::to_owned),
        created_at: turn.now,
    };
    turn.shelf.put(&comment);
    Ok(Answer::json(201, &comment.view())
        .with("x-restli-id", &comment.id)
        .publishing(comment.urn)
        .because(fault))
}

/// `GET /rest/socialActions/{urn}/comments`.
pub(super) fn comments(turn: &mut Turn<'_>, call: &Call, urn: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let post = own(turn, &caller, urn)?;
    caller.reads(&post.author)?;
    let below = comments_by(turn, &caller.account.id).rev().filter(|comment| comment.post == post.urn);
    paged(call, below.map(|comment| comment.view()).collect())
}

fn remarked(turn: &Turn<'_>, id: &str) -> Result<Comment, Answer> {
    turn.shelf.get(id).ok_or_else(|| missing("There is no such comment."))
}

/// `GET /rest/socialActions/{urn}/comments/{id}`.
pub(super) fn remark(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let comment = remarked(turn, id)?;
    // Who may read what stands below a post is who may read the post.
    caller.reads(&own(turn, &caller, &comment.post)?.author)?;
    Ok(Answer::json(200, &comment.view()))
}

/// `DELETE /rest/socialActions/{urn}/comments/{id}?actor=`.
pub(super) fn uncomment(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &[])?;
    let actor = call.query("actor").ok_or_else(|| invalid("actor is required"))?;
    caller.writes_as(actor)?;
    let comment = remarked(turn, id)?;
    if comment.actor != actor {
        return Err(forbidden("socialActions/comments.DELETE"));
    }
    turn.shelf.remove::<Comment>(&comment.id);
    Ok(Answer::empty(204))
}

/// `GET /rest/organizationalEntityShareStatistics`.
pub(super) fn page_statistics(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["rw_organization_admin"])?;
    let entity = call.query("organizationalEntity").unwrap_or_default();
    if call.query("q") != Some("organizationalEntity") {
        return Err(invalid("q has to be organizationalEntity"));
    }
    if entity != format!("urn:li:organization:{}", page_of(&caller.account)) {
        return Err(forbidden("organizationalEntityShareStatistics"));
    }
    let asked = [("shares", "share"), ("ugcPosts", "ugcPost")].into_iter().flat_map(|(list, name)| {
        let text = call.query(list).and_then(|text| text.strip_prefix("List(")?.strip_suffix(')'));
        text.unwrap_or_default().split(',').filter(|urn| !urn.is_empty()).map(move |urn| (name, urn.to_owned()))
    });
    let elements: Vec<_> = asked
        .filter_map(|(name, urn)| {
            let post = at(turn, &urn).filter(|post| post.author == entity)?;
            let count = |what: &str, most| figure(&post.urn, what, turn.now - post.created_at, most);
            let shown = count("impressions", 9_000);
            // Nobody saw it yet.
            (shown > 0).then(|| {
                json!({
                    name: post.urn,
                    "organizationalEntity": entity,
                    "totalShareStatistics": {
                        "impressionCount": shown,
                        "uniqueImpressionsCount": shown * 7 / 10,
                        "clickCount": count("clicks", 300),
                        "likeCount": likes(turn, &post),
                        "commentCount": count("comments", 12),
                        "shareCount": count("shares", 20),
                        "engagement": 0.05,
                    },
                })
            })
        })
        .collect();
    paged(call, elements)
}

/// `GET /rest/memberCreatorPostAnalytics?q=entity`.
pub(super) fn member_statistics(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    const TYPES: [(&str, u64); 7] = [
        ("IMPRESSION", 9_000),
        ("MEMBERS_REACHED", 6_000),
        ("RESHARE", 20),
        ("REACTION", 90),
        ("COMMENT", 12),
        ("POST_SAVE", 15),
        ("LINK_CLICKS", 200),
    ];
    let caller = admit(turn, call, &["r_member_postAnalytics"])?;
    let entity = call.query("entity").unwrap_or_default();
    let urn = entity.strip_prefix("(share:").or_else(|| entity.strip_prefix("(ugc:"));
    let urn = urn.and_then(|urn| urn.strip_suffix(')')).ok_or_else(|| invalid("entity has to be (share:…) or (ugc:…)"))?;
    let post = own(turn, &caller, urn)?;
    let asked = call.query("queryType").unwrap_or_default();
    let Some((name, most)) = TYPES.iter().find(|(name, _)| *name == asked) else {
        return Err(invalid(&format!("there is no queryType {asked}")));
    };
    let count = match *name {
        "REACTION" => likes(turn, &post),
        name => figure(&post.urn, name, turn.now - post.created_at, *most),
    };
    let kind = "com.linkedin.adsexternalapi.memberanalytics.v1.CreatorPostAnalyticsMetricTypeV1";
    paged(call, vec![json!({ "count": count, "dateRange": {}, "metricType": { kind: name } })])
}

/// `GET /rest/videoAnalytics?q=entity`.
pub(super) fn views(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["r_organization_social"])?;
    let post = own(turn, &caller, call.query("entity").unwrap_or_default())?;
    let is_video = post.pictures().iter().any(|(urn, _)| urn.starts_with("urn:li:video:"));
    let value = if is_video { figure(&post.urn, "views", turn.now - post.created_at, 4_000) } else { 0 };
    paged(call, vec![json!({ "value": value, "entity": post.urn, "type": call.query("type") })])
}
