//! Posts, comments and their statistics.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api>

use super::{
    CREATES, Caller, LinkedIn, Outcome, Record, Request, Response, Transaction, body, error, forbidden,
    invalid, media, missing, next, page_of, paged, text, throttled,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{fake_metrics::figure, simulator::Simulator};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) urn: String,
    /// Member whose token created it.
    pub(super) owner: String,
    /// Author: the member, or the member's page.
    pub(super) author: String,
    /// Text as it was sent.
    pub(super) commentary: String,
    /// Content.
    pub(super) content: Value,
    /// Visibility.
    pub(super) visibility: String,
    /// URN of the reshared post.
    pub(super) reshares: Option<String>,
    digest: String,
    pub(super) created_at: DateTime<Utc>,
}

impl Record for Post {
    const TABLE: &'static str = "linkedin.post";

    fn key(&self) -> String {
        self.urn.rsplit(':').next().unwrap_or_default().to_owned()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Comment {
    pub(super) urn: String,
    id: String,
    /// Member whose token created it.
    pub(super) owner: String,
    actor: String,
    /// URN of the post that it belongs to.
    pub(super) post: String,
    pub(super) text: String,
    /// Mentions, as they were sent.
    #[serde(default)]
    attributes: Value,
    pub(super) image: Option<String>,
    pub(super) created_at: DateTime<Utc>,
}

impl Record for Comment {
    const TABLE: &'static str = "linkedin.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the post with this URN, or with the URN of its activity.
pub(super) fn at(tx: &Transaction, urn: &str) -> Option<Post> {
    let post: Post = tx.store.get(urn.rsplit(':').next()?)?;
    (post.urn == urn || urn.starts_with("urn:li:activity:")).then_some(post)
}

/// Returns the comment with this URN.
pub(super) fn comment_at(tx: &Transaction, urn: &str) -> Option<Comment> {
    tx.store.with_prefix("").find(|comment: &Comment| comment.urn == urn)
}

/// Returns the posts of a member and of their page, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, user: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    let user = user.to_owned();
    tx.store.with_prefix("").filter(move |post: &Post| post.owner == user)
}

/// Returns a member's comments, oldest first.
pub(super) fn comments_by<'a>(
    tx: &'a Transaction,
    user: &str,
) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    let user = user.to_owned();
    tx.store.with_prefix("").filter(move |comment: &Comment| comment.owner == user)
}

impl Post {
    /// Returns the URNs and alternative texts of its media.
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
    /// Returns the mentions in its text.
    pub(super) fn mentions(&self) -> Vec<text::Mention> {
        text::mentions(&self.text, &self.attributes).unwrap_or_default()
    }

    fn view(&self) -> Value {
        let time = self.created_at.timestamp_millis();
        let attributes = self.attributes.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut view = json!({
            "id": self.id,
            "commentUrn": self.urn,
            "$URN": self.urn,
            "actor": self.actor,
            "object": self.post,
            "created": { "actor": self.actor, "time": time },
            "lastModified": { "actor": self.actor, "time": time },
            "message": { "attributes": attributes, "text": self.text },
        });
        if let Some(image) = &self.image {
            view["content"] = json!([{ "entity": { "image": image }, "type": "IMAGE" }]);
        }
        view
    }
}

/// `POST /rest/posts`.
pub(super) fn create(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let body = body(request)?;
    let field = |name: &str| body[name].as_str().unwrap_or_default();
    let author = field("author");
    caller.check_writes_as(author)?;
    let is_by_page = author.starts_with("urn:li:organization:");
    let visibility = field("visibility");
    let is_visible = match is_by_page {
        true => visibility == "PUBLIC",
        false => ["PUBLIC", "CONNECTIONS", "LOGGED_IN"].contains(&visibility),
    };
    if !is_visible {
        return Err(invalid(
            Content("visibility_of_a_page"),
            &format!("visibility can't be \"{visibility}\""),
        ));
    }
    if field("lifecycleState") != "PUBLISHED" {
        return Err(invalid(Protocol, "lifecycleState has to be PUBLISHED"));
    }
    if body["distribution"]["feedDistribution"].as_str().is_none() {
        return Err(invalid(Protocol, "distribution is required"));
    }
    let commentary = field("commentary").to_owned();
    let words = text::plain(&commentary);
    let length = words.chars().count();
    if length > 3000 {
        return Err(too_long(length));
    }
    let content = body.get("content").cloned().unwrap_or(Value::Null);
    let is_many = holds(tx, author, &content)?;
    let reshares = body["reshareContext"]["parent"].as_str().map(str::to_owned);
    if reshares.as_deref().is_some_and(|parent| at(tx, parent).is_none()) {
        return Err(missing("The post that is to be shared does not exist."));
    }
    if commentary.is_empty() && content.is_null() && reshares.is_none() {
        return Err(invalid(Content("empty"), "a post needs a commentary or a content"));
    }
    let fault = LinkedIn.trigger_fault(tx, request, &caller.account.username, &words)?;
    let digest = hex::encode(Sha256::digest(json!([author, commentary, content, reshares]).to_string()));
    let window = tx.settings.duplicate_window();
    let original = by(tx, &caller.account.id)
        .rev()
        .find(|post| post.digest == digest && post.created_at + window > tx.now);
    if let Some(original) = original {
        return Err(duplicate(&original.urn));
    }
    tx.spend(CREATES, &caller.account.id, 1).map_err(|_| throttled())?;
    let kind = if is_many { "ugcPost" } else { "share" };
    let post = Post {
        urn: format!("urn:li:{kind}:{}", next(tx)),
        owner: caller.account.id.clone(),
        author: author.to_owned(),
        commentary,
        content,
        visibility: visibility.to_owned(),
        reshares,
        digest,
        created_at: tx.now,
    };
    tx.store.put(&post);
    Ok(Response::empty(201)
        .with("x-restli-id", &post.urn)
        .with("x-linkedin-id", &post.urn)
        .with_post(post.urn)
        .with_fault(fault))
}

/// Checks a post's content, and returns whether the post gets a `ugcPost` URN.
fn holds(tx: &Transaction, author: &str, content: &Value) -> Result<bool, Response> {
    let text = |cause: Cause, value: &Value, name: &str, max: usize| match value[name].as_str() {
        Some(text) if text.chars().count() > max => Err(error(
            cause,
            422,
            "FIELD_LENGTH_TOO_LONG",
            0,
            &format!("{name} is longer than {max} characters"),
        )),
        text => Ok(text.filter(|text| !text.is_empty()).map(str::to_owned)),
    };
    let Some(content) = content.as_object() else { return Ok(false) };
    if content.len() != 1 {
        return Err(invalid(Protocol, "content has to hold exactly one kind"));
    }
    let (kind, value) = content.iter().next().expect("it has one member");
    match kind.as_str() {
        "media" => {
            let urn = value["id"].as_str().ok_or_else(|| invalid(Protocol, "media.id is required"))?;
            let media = media::usable(tx, author, urn, &["image", "video", "document"])?;
            text(Content("alt_text_too_long"), value, "altText", 4086)?;
            let title = text(Content("title_of_a_document_too_long"), value, "title", 400)?;
            if media.kind == "document" && title.is_none() {
                return Err(invalid(Content("document_title"), "a document needs a title"));
            }
            Ok(media.kind == "video")
        }
        "multiImage" => {
            let images = value["images"].as_array().map(Vec::as_slice).unwrap_or_default();
            if !(2..=20).contains(&images.len()) {
                return Err(invalid(
                    Content("images_of_a_post"),
                    &format!("multiImage takes 2 to 20 images, and there are {}", images.len()),
                ));
            }
            for image in images {
                let urn = image["id"].as_str().ok_or_else(|| invalid(Protocol, "images.id is required"))?;
                media::usable(tx, author, urn, &["image"])?;
                text(Content("alt_text_too_long"), image, "altText", 4086)?;
            }
            Ok(true)
        }
        "article" => {
            let source = text(Content("address_of_an_article_too_long"), value, "source", 8192)?
                .ok_or_else(|| invalid(Protocol, "article.source is required"))?;
            if !url::Url::parse(&source).is_ok_and(|url| url.has_host()) {
                return Err(invalid(Content("address_of_an_article"), "article.source is no address"));
            }
            text(Content("title_of_an_article_too_long"), value, "title", 400)?
                .ok_or_else(|| invalid(Content("title_of_an_article"), "article.title is required"))?;
            text(Content("description_of_an_article_too_long"), value, "description", 4086)?;
            if let Some(urn) = value["thumbnail"].as_str() {
                media::usable(tx, author, urn, &["image"])?;
            }
            Ok(false)
        }
        "poll" => {
            text(Content("question_of_a_poll_too_long"), value, "question", 140)?
                .ok_or_else(|| invalid(Content("question_of_a_poll"), "poll.question is required"))?;
            let options = value["options"].as_array().map(Vec::as_slice).unwrap_or_default();
            if !(2..=4).contains(&options.len()) {
                return Err(invalid(Content("options_of_a_poll"), "a poll takes 2 to 4 options"));
            }
            for option in options {
                text(Content("option_of_a_poll_too_long"), option, "text", 30)?
                    .ok_or_else(|| invalid(Content("empty_option_of_a_poll"), "an option needs a text"))?;
            }
            let duration = value["settings"]["duration"].as_str().unwrap_or_default();
            if !["ONE_DAY", "THREE_DAYS", "SEVEN_DAYS", "FOURTEEN_DAYS"].contains(&duration) {
                return Err(invalid(Protocol, &format!("a poll can't last \"{duration}\"")));
            }
            Ok(true)
        }
        other => Err(invalid(Protocol, &format!("\"{other}\" is no content of a post"))),
    }
}

/// The refusal of a text, as recorded in December 2025: <https://github.com/n8n-io/n8n/issues/22899>.
fn too_long(length: usize) -> Response {
    Response::json(
        400,
        &json!({
            "errorDetailType": "com.linkedin.common.error.BadRequest",
            "message": format!(
                "com.linkedin.content.common.exception.BadRequestResponseException: ShareCommentary text length \
                 ({length} characters) exceeded the maximum allowed (3000 characters)"
            ),
            "errorDetails": { "inputErrors": [{
                "description": "Size of array cannot be higher than the maxLength",
                "input": {},
                "code": "FIELD_ARRAY_SIZE_TOO_HIGH",
                "maxLength": 3000,
            }] },
            "status": 400,
        }),
    )
    .because(Content("text_too_long"))
}

fn duplicate(urn: &str) -> Response {
    Response::json(
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
    .because(State)
}

/// Returns whether a request names this Rest.li method. LinkedIn's own client sends it in lower case, and Rest.li reads
/// it in any: <https://github.com/linkedin/rest.li>, `ResourceMethod.java`.
fn has_method(request: &Request, method: &str) -> bool {
    request.header("x-restli-method").is_some_and(|given| given.eq_ignore_ascii_case(method))
}

/// `GET /rest/posts?q=author`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    if request.query("q") != Some("author") || !has_method(request, "FINDER") {
        return Err(invalid(Protocol, "q has to be author, and X-RestLi-Method FINDER"));
    }
    let author = request.query("author").unwrap_or_default();
    caller.check_reads(author)?;
    let lag = tx.settings.lag();
    let posts = by(tx, &caller.account.id)
        .rev()
        .filter(|post| post.author == author && post.created_at + lag <= tx.now)
        .map(|post| post.view());
    paged(request, posts.collect())
}

fn own(tx: &Transaction, caller: &Caller, urn: &str) -> Result<Post, Response> {
    let post = at(tx, urn).filter(|post| post.owner == caller.account.id);
    post.ok_or_else(|| missing(&format!("Entity {urn} does not exist")))
}

/// `GET /rest/posts/{urn}`.
pub(super) fn show(tx: &mut Transaction, _: &Request, caller: &Caller, urn: &str) -> Outcome {
    let post = own(tx, caller, urn)?;
    caller.check_reads(&post.author)?;
    Ok(Response::json(200, &post.view()))
}

/// `POST /rest/posts/{urn}` with `X-RestLi-Method: PARTIAL_UPDATE`.
pub(super) fn change(tx: &mut Transaction, request: &Request, caller: &Caller, urn: &str) -> Outcome {
    if !has_method(request, "PARTIAL_UPDATE") {
        return Err(invalid(Protocol, "X-RestLi-Method has to be PARTIAL_UPDATE"));
    }
    let mut post = own(tx, caller, urn)?;
    caller.check_writes_as(&post.author)?;
    let body = body(request)?;
    let Some(commentary) = body.pointer("/patch/$set/commentary").and_then(Value::as_str) else {
        return Err(invalid(Protocol, "only the commentary can be set"));
    };
    if text::plain(commentary).chars().count() > 3000 {
        return Err(error(
            Content("text_too_long"),
            422,
            "FIELD_LENGTH_TOO_LONG",
            0,
            "commentary is longer than 3000 characters",
        ));
    }
    post.commentary = commentary.to_owned();
    tx.store.put(&post);
    Ok(Response::empty(204))
}

/// `DELETE /rest/posts/{urn}`; deleting a post that does not exist succeeds.
pub(super) fn delete(tx: &mut Transaction, _: &Request, caller: &Caller, urn: &str) -> Outcome {
    if let Some(post) = at(tx, urn) {
        caller.check_writes_as(&post.author)?;
        tx.store.remove::<Post>(&post.key());
        let below: Vec<Comment> =
            tx.store.with_prefix("").filter(|comment: &Comment| comment.post == post.urn).collect();
        for comment in below {
            tx.store.remove::<Comment>(&comment.id);
        }
    }
    Ok(Response::empty(204))
}

/// `GET /rest/socialActions/{urn}`.
pub(super) fn actions(tx: &mut Transaction, _: &Request, caller: &Caller, urn: &str) -> Outcome {
    let post = own(tx, caller, urn)?;
    caller.check_reads_comments(&post.author)?;
    summary(tx, caller, &post)
}

/// `GET /v2/socialActions/{urn}`, which is open to who may post: integrations read it with `w_member_social` alone.
pub(super) fn actions_for_members(tx: &mut Transaction, _: &Request, caller: &Caller, urn: &str) -> Outcome {
    let post = own(tx, caller, urn)?;
    caller.check_writes_as(&post.author)?;
    summary(tx, caller, &post)
}

fn summary(tx: &Transaction, caller: &Caller, post: &Post) -> Outcome {
    let own = comments_by(tx, &caller.account.id).filter(|comment| comment.post == post.urn).count();
    let comments = figure(&post.urn, "comments", tx.now - post.created_at, 12) + own as u64;
    Ok(Response::json(
        200,
        &json!({
            "$URN": post.urn,
            "target": post.urn,
            "likesSummary": {
                "totalLikes": likes(tx, post), "aggregatedTotalLikes": likes(tx, post), "likedByCurrentUser": false,
            },
            "commentsSummary": { "totalFirstLevelComments": comments, "aggregatedTotalComments": comments },
        }),
    ))
}

fn likes(tx: &Transaction, post: &Post) -> u64 {
    figure(&post.urn, "likes", tx.now - post.created_at, 90)
}

/// `POST /rest/socialActions/{urn}/comments`.
pub(super) fn comment(tx: &mut Transaction, request: &Request, caller: &Caller, urn: &str) -> Outcome {
    let body = body(request)?;
    let actor = body["actor"].as_str().unwrap_or_default();
    caller.check_comments_as(request, actor)?;
    // A comment's URN lists its replies.
    let post = match comment_at(tx, urn) {
        Some(above) => above.post,
        None => {
            let post = at(tx, urn).ok_or_else(|| missing(&format!("Entity {urn} does not exist")))?;
            // The activity of a post, to which comments belong, is made some time after it.
            if post.created_at + tx.settings.lag() > tx.now {
                let message = format!("Unable to obtain activity for urn: '{urn}'");
                return Err(Response::json(404, &json!({ "message": message, "status": 404 })).because(State));
            }
            post.urn
        }
    };
    let text = body["message"]["text"].as_str().unwrap_or_default();
    let image = body.pointer("/content/0/entity/image").and_then(Value::as_str);
    if text.is_empty() && image.is_none() {
        return Err(invalid(Content("empty_comment"), "message.text is required"));
    }
    let attributes = &body["message"]["attributes"];
    check_comment(text, attributes)?;
    if let Some(image) = image {
        media::usable(tx, actor, image, &["image"])?;
    }
    let fault = LinkedIn.trigger_fault(tx, request, &caller.account.username, text)?;
    let id = next(tx).to_string();
    let number = post.rsplit(':').next().unwrap_or_default();
    let comment = Comment {
        urn: format!("urn:li:comment:(urn:li:activity:{number},{id})"),
        id,
        owner: caller.account.id.clone(),
        actor: actor.to_owned(),
        post,
        text: text.to_owned(),
        attributes: attributes.clone(),
        image: image.map(str::to_owned),
        created_at: tx.now,
    };
    tx.store.put(&comment);
    Ok(Response::json(201, &comment.view())
        .with("x-restli-id", &comment.id)
        .with_post(comment.urn)
        .with_fault(fault))
}

/// Checks the text of a comment and its mentions.
fn check_comment(text: &str, attributes: &Value) -> Result<(), Response> {
    if text.chars().count() > 1250 {
        return Err(error(
            Content("comment_too_long"),
            422,
            "FIELD_LENGTH_TOO_LONG",
            0,
            "message.text is longer than 1250 characters",
        ));
    }
    text::mentions(text, attributes).map(drop).map_err(|wrong| invalid(Protocol, &wrong))
}

/// `GET /rest/socialActions/{urn}/comments`.
pub(super) fn comments(tx: &mut Transaction, request: &Request, caller: &Caller, urn: &str) -> Outcome {
    let post = own(tx, caller, urn)?;
    caller.check_reads_comments(&post.author)?;
    let below = comments_by(tx, &caller.account.id).rev().filter(|comment| comment.post == post.urn);
    paged(request, below.map(|comment| comment.view()).collect())
}

fn remarked(tx: &Transaction, id: &str) -> Result<Comment, Response> {
    tx.store.get(id).ok_or_else(|| missing("There is no such comment."))
}

/// `GET /rest/socialActions/{urn}/comments/{id}`.
pub(super) fn show_comment(tx: &mut Transaction, _: &Request, caller: &Caller, id: &str) -> Outcome {
    let comment = remarked(tx, id)?;
    // Comments may be read by those who may read the post.
    caller.check_reads_comments(&own(tx, caller, &comment.post)?.author)?;
    Ok(Response::json(200, &comment.view()))
}

/// `POST /rest/socialActions/{urn}/comments/{id}?actor=` with `X-RestLi-Method: PARTIAL_UPDATE`.
pub(super) fn change_comment(tx: &mut Transaction, request: &Request, caller: &Caller, id: &str) -> Outcome {
    if !has_method(request, "PARTIAL_UPDATE") {
        return Err(invalid(Protocol, "X-RestLi-Method has to be PARTIAL_UPDATE"));
    }
    let actor = request.query("actor").ok_or_else(|| invalid(Protocol, "actor is required"))?;
    caller.check_comments_as(request, actor)?;
    let comment = remarked(tx, id)?;
    if comment.actor != actor {
        return Err(forbidden("socialActions/comments.PARTIAL_UPDATE"));
    }
    let body = body(request)?;
    let message = body.pointer("/patch/message/$set").cloned().unwrap_or_default();
    let text = message["text"]
        .as_str()
        .ok_or_else(|| invalid(Protocol, "only the text of the message can be set"))?;
    check_comment(text, &message["attributes"])?;
    tx.store.put(&Comment { text: text.to_owned(), attributes: message["attributes"].clone(), ..comment });
    Ok(Response::empty(204))
}

/// `DELETE /rest/socialActions/{urn}/comments/{id}?actor=`.
pub(super) fn delete_comment(tx: &mut Transaction, request: &Request, caller: &Caller, id: &str) -> Outcome {
    let actor = request.query("actor").ok_or_else(|| invalid(Protocol, "actor is required"))?;
    caller.check_comments_as(request, actor)?;
    let comment = remarked(tx, id)?;
    if comment.actor != actor {
        return Err(forbidden("socialActions/comments.DELETE"));
    }
    tx.store.remove::<Comment>(&comment.id);
    Ok(Response::empty(204))
}

/// `GET /rest/organizationalEntityShareStatistics`.
pub(super) fn page_statistics(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let entity = request.query("organizationalEntity").unwrap_or_default();
    if request.query("q") != Some("organizationalEntity") {
        return Err(invalid(Protocol, "q has to be organizationalEntity"));
    }
    if entity != format!("urn:li:organization:{}", page_of(&caller.account)) {
        return Err(forbidden("organizationalEntityShareStatistics"));
    }
    let asked = [("shares", "share"), ("ugcPosts", "ugcPost")].into_iter().flat_map(|(list, name)| {
        let text = request.query(list).and_then(|text| text.strip_prefix("List(")?.strip_suffix(')'));
        text.unwrap_or_default()
            .split(',')
            .filter(|urn| !urn.is_empty())
            .map(move |urn| (name, urn.to_owned()))
    });
    let elements: Vec<_> = asked
        .filter_map(|(name, urn)| {
            let post = at(tx, &urn).filter(|post| post.author == entity)?;
            let count = |what: &str, max| figure(&post.urn, what, tx.now - post.created_at, max);
            let shown = count("impressions", 9_000);
            // The list omits posts without views.
            (shown > 0).then(|| {
                json!({
                    name: post.urn,
                    "organizationalEntity": entity,
                    "totalShareStatistics": {
                        "impressionCount": shown,
                        "uniqueImpressionsCount": shown * 7 / 10,
                        "clickCount": count("clicks", 300),
                        "likeCount": likes(tx, &post),
                        "commentCount": count("comments", 12),
                        "shareCount": count("shares", 20),
                        "engagement": 0.05,
                    },
                })
            })
        })
        .collect();
    paged(request, elements)
}

/// `GET /rest/memberCreatorPostAnalytics?q=entity`.
pub(super) fn member_statistics(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    const TYPES: [(&str, u64); 7] = [
        ("IMPRESSION", 9_000),
        ("MEMBERS_REACHED", 6_000),
        ("RESHARE", 20),
        ("REACTION", 90),
        ("COMMENT", 12),
        ("POST_SAVE", 15),
        ("LINK_CLICKS", 200),
    ];
    let entity = request.query("entity").unwrap_or_default();
    let urn = entity.strip_prefix("(share:").or_else(|| entity.strip_prefix("(ugc:"));
    let urn = urn
        .and_then(|urn| urn.strip_suffix(')'))
        .ok_or_else(|| invalid(Protocol, "entity has to be (share:…) or (ugc:…)"))?;
    let post = own(tx, caller, urn)?;
    let asked = request.query("queryType").unwrap_or_default();
    let Some((name, max)) = TYPES.iter().find(|(name, _)| *name == asked) else {
        return Err(invalid(Protocol, &format!("there is no queryType {asked}")));
    };
    let count = match *name {
        "REACTION" => likes(tx, &post),
        name => figure(&post.urn, name, tx.now - post.created_at, *max),
    };
    let kind = "com.linkedin.adsexternalapi.memberanalytics.v1.CreatorPostAnalyticsMetricTypeV1";
    paged(request, vec![json!({ "count": count, "dateRange": {}, "metricType": { kind: name } })])
}

/// `GET /rest/videoAnalytics?q=entity`.
pub(super) fn video_views(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let post = own(tx, caller, request.query("entity").unwrap_or_default())?;
    let is_video = post.pictures().iter().any(|(urn, _)| urn.starts_with("urn:li:video:"));
    let value = if is_video { figure(&post.urn, "views", tx.now - post.created_at, 4_000) } else { 0 };
    paged(request, vec![json!({ "value": value, "entity": post.urn, "type": request.query("type") })])
}
