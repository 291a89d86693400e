//! Editing a post.
//!
//! Fields sent replace stored ones, others are kept, and the result must be valid as a new post would be. The
//! post's row decides whether an edit is too late: the first to lock it wins, the edit or the first publish
//! attempt.

use crate::{
    accounts::{self, resolve::QUEUED_FROM_ACCOUNT},
    http::{
        caller::Call,
        problem::{Code, Issue, Problem},
    },
    media,
    openapi::validate::{Null, Rules, Schema},
    posts::{
        self,
        body::{self, Config, NewText, SourcePaths, TopLevel},
        content,
        imports::Imports,
        missing, overrides,
        replying::{Parent, REPLY_TO},
        resolve::{self, Recipients, Request, Texts, Time},
        settings, variant,
    },
    slots,
    types::{
        bounded_string::Text,
        metadata::{Changes, MAX_KEYS},
        timestamp::Timestamp,
    },
};
use domain::{AccountId, PostId, PostStatus};
use poem_openapi::{Object, types::MaybeUndefined};
use serde_json::{Map, Value};
use std::{collections::HashSet, sync::Arc};
use store::posts::{Container, Edit, EditResult, Metadata, Post, slots::Queue};
use uuid::Uuid;

/// Maximum number of attempts when concurrent edits come first.
const MAX_ATTEMPTS: usize = 5;

/// Changes to a post; missing fields keep their value. Publishing must not have begun.
#[derive(Debug, Object)]
pub struct EditPost {
    /// Text of a post with a single container. A post with one container keeps its media; several containers
    /// are replaced.
    #[oai(validator(min_length = 1, max_length = 100000))]
    pub content: Option<String>,
    /// The main post, its first comment and further replies, in order; replaces all containers and their
    /// media.
    #[oai(validator(min_items = 1, max_items = 10))]
    pub containers: Option<Vec<NewText>>,
    /// Accounts to publish to: ids, usernames or platform-side ids; replaces all accounts.
    #[oai(validator(min_items = 1, max_items = 1000))]
    pub accounts: Option<Vec<Text<255, 0>>>,
    /// Time to publish, in ISO 8601, UTC without an offset; null for immediately.
    #[oai(nullable)]
    pub scheduled_at: MaybeUndefined<Timestamp>,
    /// Publish at the next open posting slot of this account, which must be one of `accounts`. The post's own
    /// slot counts as open; it is released when the post moves to another time.
    #[oai(validator(max_length = 255))]
    pub queued_from_account: Option<String>,
    /// The IANA time zone that the slots are read in; `UTC` by default.
    #[oai(validator(max_length = 64))]
    pub queue_timezone: Option<String>,
    /// False releases a draft, true makes the post a draft. Platform limits are checked on release.
    pub is_draft: Option<bool>,
    /// Settings by platform; replaces the settings of all platforms.
    pub config: Option<Config>,
    /// Idempotency key; can't be changed.
    #[oai(nullable, validator(max_length = 255))]
    pub external_ref: MaybeUndefined<String>,
    /// The post to reply to; can't be changed.
    #[oai(nullable)]
    pub reply_to: MaybeUndefined<Uuid>,
    /// Changes of your own data: a text sets its key, null removes it, and other keys stay. Null instead of an
    /// object removes all.
    #[oai(nullable)]
    pub metadata: MaybeUndefined<Changes>,
    /// Platform settings at the top level; each replaces those of its platform.
    #[oai(flatten)]
    pub blocks: TopLevel,
}

impl Rules for EditPost {
    const NULL: Null = Null::Clears;
    const REFUSES_SLIPS: bool = true;

    fn homes() -> Vec<(&'static str, Arc<Schema>)> {
        body::homes()
    }

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        body::check_combinations(body, issues);
    }
}

impl EditPost {
    /// Returns true if the post's texts and media are replaced.
    fn replaces_content(&self) -> bool {
        self.content.is_some() || self.containers.is_some()
    }

    /// Returns true if accounts are named, if only the one whose slot the post takes: all are resolved again then.
    fn names_accounts(&self) -> bool {
        self.accounts.is_some() || self.queued_from_account.is_some()
    }
}

/// Edits a post.
///
/// # Errors
///
/// If the result would be invalid, or with `publishing_started` if publishing has begun or the post has ended. Nothing
/// is changed then.
pub async fn edit(call: &Call<'_>, id: &str, body: EditPost) -> Result<Post, Problem> {
    for _ in 0..MAX_ATTEMPTS {
        let post = posts::find(call, id).await?;
        if !post.status.is_editable() {
            return Err(too_late(post.status, &post));
        }
        let (edit, queue) = resolve(call, &post, &body).await?;
        let edited = match &queue {
            None => store::posts::edit(call.db(), call.access(), post.id, edit, call.now()).await?,
            Some(queue) => {
                store::posts::requeue(call.db(), call.access(), post.id, edit, queue, call.now()).await?
            }
        };
        match edited {
            EditResult::Updated(post) => return Ok(*post),
            EditResult::Begun(status) => return Err(too_late(status, &post)),
            EditResult::NotFound => return Err(missing()),
            EditResult::MediaMissing => return Err(content::media_not_ready()),
            EditResult::Exceeded(exceeded) => return Err(media::no_room(call, exceeded).await),
            EditResult::NothingOpen { has_ended: true } => {
                let detail = "every target of the post has ended or its account is disconnected; specify other accounts";
                let issue = Issue::custom(["accounts"], "Have ended");
                return Err(Problem::new(Code::Unprocessable, detail).with_issues(vec![issue]));
            }
            EditResult::NothingOpen { has_ended: false } => {
                let detail = "none of the post's accounts is connected; specify other accounts";
                let issue = Issue::custom(["accounts"], "Are not connected");
                return Err(Problem::new(Code::AccountNotFound, detail).with_issues(vec![issue]));
            }
            EditResult::NoOpenSlot => {
                let queue = queue.expect("only a queue has no open slot");
                return Err(slots::full(&queue, QUEUED_FROM_ACCOUNT));
            }
            EditResult::Outdated => {}
        }
    }
    Err(Problem::new(Code::Conflict, "the post was edited concurrently; read it and try again"))
}

/// Returns the edit of the stored post, and the queue that the post moves to.
async fn resolve(call: &Call<'_>, post: &Post, body: &EditPost) -> Result<(Edit, Option<Queue>), Problem> {
    refuse_fixed(post, body)?;
    let is_draft = body.is_draft.unwrap_or(post.is_draft);
    let recipients = recipients(call, post, body, is_draft).await?;
    let resolved = resolve::resolve(call, request(post, body), recipients).await?;
    // A draft may be unfinished: it is checked when it is released.
    if !is_draft {
        resolved.reject_errors()?;
    }
    if is_draft && resolved.queue.is_some() {
        let message = "A draft takes no slot; set is_draft to false to release it";
        let problem = Problem::new(Code::Unprocessable, "the post is a draft, which takes no slot");
        return Err(problem.with_issues(vec![Issue::custom([QUEUED_FROM_ACCOUNT], message)]));
    }
    resolved.refuse_times()?;
    let accounts = resolved.accounts.into_iter().map(|account| (account.id, account.platform));
    let edit = Edit {
        version: post.version,
        is_draft,
        scheduled_at: resolved.scheduled_at,
        default_config: resolved.default_config,
        metadata: metadata(post, &body.metadata)?,
        containers: body.replaces_content().then_some(resolved.containers),
        accounts: body.names_accounts().then(|| accounts.collect()),
        deviations: variant::deviations(&resolved.variants),
        imports: resolved.imports.rows(call).await?,
        request_id: call.request_id(),
        horizon: call.app.config.horizon,
    };
    Ok((edit, resolved.queue))
}

/// Refuses changes of what a post keeps.
fn refuse_fixed(post: &Post, body: &EditPost) -> Result<(), Problem> {
    let external_ref = match &body.external_ref {
        MaybeUndefined::Undefined => &post.external_ref,
        MaybeUndefined::Null => &None,
        MaybeUndefined::Value(key) => &Some(key.clone()),
    };
    let mut issues = Vec::new();
    if *external_ref != post.external_ref {
        issues.push(Issue::custom(["external_ref"], "Can't be changed"));
    }
    let reply_to = match &body.reply_to {
        MaybeUndefined::Undefined => post.reply_to,
        MaybeUndefined::Null => None,
        MaybeUndefined::Value(id) => Some(PostId(*id)),
    };
    if reply_to != post.reply_to {
        issues.push(Issue::custom([REPLY_TO], "Can't be changed"));
    }
    if issues.is_empty() { Ok(()) } else { Err(Problem::invalid_body(issues)) }
}

/// Reads an edit: what it has replaces what the post has.
fn request(post: &Post, body: &EditPost) -> Request {
    let mut imports = Imports::default();
    let texts = match (&body.content, &body.containers, &post.containers[..]) {
        (None, None, _) => Texts::Stored(post.id, post.containers.clone()),
        // A post with one container keeps its media when only the text is sent.
        (Some(text), None, [only]) => {
            Texts::Stored(post.id, vec![Container::new(0, text.clone(), only.media.clone())])
        }
        (content, containers, _) => Texts::sent(content.clone(), containers.clone(), &mut imports),
    };
    Request {
        texts,
        source: SourcePaths::of(
            body.content.is_some(),
            &body.blocks,
            body.config.as_ref().unwrap_or(&Config::default()),
        ),
        config: settings::amend(&post.default_config, body.blocks.clone(), body.config.clone()),
        // As on creation. Otherwise a setting that was removed would come back.
        takes_defaults: body.config.is_some() || body.names_accounts(),
        time: match body.scheduled_at {
            MaybeUndefined::Undefined => Time::Stored(post.scheduled_at),
            MaybeUndefined::Null => Time::Sent(None),
            MaybeUndefined::Value(Timestamp(at)) => Time::Sent(Some(at)),
        },
        is_reply: post.reply_to.is_some(),
        queue_timezone: body.queue_timezone.clone(),
        own: named_by(post),
        imports,
    }
}

/// Finds the accounts of a post after an edit: those that it names, or the post's own.
async fn recipients(
    call: &Call<'_>,
    post: &Post,
    body: &EditPost,
    is_draft: bool,
) -> Result<Recipients, Problem> {
    let named = body::named(body.accounts.as_deref());
    let own: Vec<_> = post.targets.iter().map(|target| target.account_id).collect();
    let (accounts, queued) = if body.names_accounts() {
        let entries = named.clone().unwrap_or_else(|| own.iter().map(AccountId::to_string).collect());
        accounts::resolve::accounts(call, &entries, body.queued_from_account.as_deref()).await?
    } else {
        (store::accounts::get_many(call.db(), call.access(), &own).await?, None)
    };
    let parent = match post.reply_to {
        None => None,
        Some(id) => match Parent::find(call, id).await {
            Ok(parent) => Some(parent),
            // A draft may be unfinished.
            Err(_) if is_draft => None,
            Err(problem) => return Err(problem),
        },
    };
    if let Some(parent) = &parent {
        parent.check(&accounts, named.as_deref(), is_draft)?;
    }
    Ok(Recipients { accounts, queued, parent })
}

/// Returns the metadata of a post after an edit.
fn metadata(post: &Post, changes: &MaybeUndefined<Changes>) -> Result<Metadata, Problem> {
    let metadata = match changes {
        MaybeUndefined::Undefined => post.metadata.clone(),
        MaybeUndefined::Null => Metadata::default(),
        MaybeUndefined::Value(changes) => changes.clone().apply(post.metadata.clone()),
    };
    if metadata.len() > MAX_KEYS {
        let message = format!("The post would have {} keys; at most {MAX_KEYS} are allowed", metadata.len());
        let issue = Issue::new(["metadata"], "too_big", message).with("maximum", MAX_KEYS);
        let issue = issue.with("type", "object").with("inclusive", true);
        let problem = Problem::new(Code::Unprocessable, "the post would have too much metadata");
        return Err(problem.with_issues(vec![issue]));
    }
    Ok(metadata)
}

/// Returns the media assets that a post names.
fn named_by(post: &Post) -> HashSet<Uuid> {
    let containers = post.containers.iter().chain(post.variants.iter().flatten());
    let attached = containers.flat_map(|container| &container.media).map(|attachment| attachment.id);
    attached.chain(overrides::media_of(&post.default_config)).collect()
}

/// The problem of an edit of a post that has this status.
fn too_late(status: PostStatus, post: &Post) -> Problem {
    let detail = match status {
        PostStatus::Failed => {
            let reason = post.targets.iter().find_map(|target| target.error_message.as_deref());
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("the post has failed{reason} and can't be changed any more; create another one")
        }
        PostStatus::Published | PostStatus::Partial => {
            "the post was published; what is live is edited by PATCH of its targets".to_owned()
        }
        _ => "publishing has begun; the post can't be changed any more".to_owned(),
    };
    Problem::new(Code::PublishingStarted, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::body::read,
        posts::samples::{account, path, post},
    };
    use chrono::{DateTime, TimeDelta, Utc};
    use serde_json::json;
    use store::posts::Attachment;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    /// Returns a scheduled post, whose first text has a picture.
    fn scheduled(texts: &[&str]) -> Post {
        let mut post = post(texts, &[account(1, "x")]);
        post.containers[0].media = vec![Attachment { id: Uuid::from_u128(1), alt_text: None }];
        post.default_config = json!({ "x": { "title": "t", "media": [{ "id": Uuid::from_u128(2) }] } });
        post.scheduled_at = Some(at(9));
        post
    }

    #[test]
    fn texts_and_media_stay_that_an_edit_does_not_replace() {
        let (single, thread) = (scheduled(&["Old"]), scheduled(&["Old", "Reply"]));
        let two = json!({ "containers": [{ "content": "New" }, { "content": "Two" }] });
        for (post, body, expected) in [
            (&single, json!({}), (true, vec![("Old", 1)])),
            (&thread, json!({ "is_draft": true }), (true, vec![("Old", 1), ("Reply", 0)])),
            (&single, json!({ "content": "New" }), (true, vec![("New", 1)])),
            (&thread, json!({ "content": "New" }), (false, vec![("New", 0)])),
            (&single, two, (false, vec![("New", 0), ("Two", 0)])),
        ] {
            let texts = request(post, &read(body.clone()).unwrap()).texts;
            let found: (bool, Vec<(&str, usize)>) = match &texts {
                Texts::Stored(_, containers) => {
                    (true, containers.iter().map(|one| (&*one.content, one.media.len())).collect())
                }
                Texts::Sent(texts) => {
                    (false, texts.iter().map(|one| (&*one.content, one.media.len())).collect())
                }
            };
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn settings_and_time_stay_that_an_edit_does_not_replace() {
        let post = scheduled(&["Old"]);
        let stored = || post.default_config.clone();
        let kept = Time::Stored(Some(at(9)));
        for (body, config, takes_defaults, time) in [
            (json!({}), stored(), false, kept),
            (json!({ "x": { "title": "u" } }), json!({ "x": { "title": "u" } }), false, kept),
            (json!({ "config": {} }), json!({}), true, kept),
            (json!({ "accounts": ["name-1"] }), stored(), true, kept),
            (json!({ "queued_from_account": "name-1" }), stored(), true, kept),
            (json!({ "scheduled_at": null }), stored(), false, Time::Sent(None)),
            (json!({ "scheduled_at": at(5) }), stored(), false, Time::Sent(Some(at(5)))),
        ] {
            let found = request(&post, &read(body.clone()).unwrap());
            let found = (found.config, found.takes_defaults, found.time, found.own);
            let own: HashSet<_> = [1, 2].map(Uuid::from_u128).into();
            assert_eq!(found, (config, takes_defaults, time, own), "{body}");
        }
    }

    #[test]
    fn the_key_and_the_post_that_is_replied_to_never_change() {
        let post = Post { external_ref: Some("key".to_owned()), ..scheduled(&["Old"]) };
        for (body, paths) in [
            (json!({}), &[][..]),
            (json!({ "external_ref": "key", "reply_to": null }), &[]),
            (json!({ "external_ref": "other" }), &["external_ref"]),
            (json!({ "external_ref": null, "reply_to": post.id }), &["external_ref", "reply_to"]),
        ] {
            let refused = refuse_fixed(&post, &read(body.clone()).unwrap());
            let issues = refused.err().map_or_else(Vec::new, |problem| problem.issues);
            let found: Vec<_> = issues.into_iter().map(|issue| issue.path).collect();
            assert_eq!(found, paths.iter().map(|text| path(text)).collect::<Vec<_>>(), "{body}");
        }
    }

    #[test]
    fn metadata_is_changed_key_by_key() {
        let before: Metadata = [("a".to_owned(), "1".to_owned())].into();
        let post = Post { metadata: before, ..scheduled(&["Old"]) };
        let many: Map<_, _> = (0..MAX_KEYS).map(|key| (format!("key-{key}"), json!("1"))).collect();
        for (body, expected) in [
            (json!({}), Some(json!({ "a": "1" }))),
            (json!({ "metadata": null }), Some(json!({}))),
            (json!({ "metadata": { "b": "2" } }), Some(json!({ "a": "1", "b": "2" }))),
            (json!({ "metadata": { "a": null } }), Some(json!({}))),
            (json!({ "metadata": many }), None),
        ] {
            let body: EditPost = read(body).unwrap();
            let found = metadata(&post, &body.metadata);
            assert_eq!(found.ok().map(|metadata| json!(metadata)), expected);
        }
    }
}
