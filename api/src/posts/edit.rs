//! Editing a post.
//!
//! Fields sent replace stored ones, others are kept, and the result must be valid as a new post would be. The
//! post's row decides whether an edit is too late: the first to lock it wins, the edit or the first publish
//! attempt.

use crate::{
    accounts::resolve::{self, QUEUED_FROM_ACCOUNT},
    http::{
        caller::Call,
        problem::{Code, Issue, Problem},
    },
    media,
    openapi::validate::{Null, Rules, Schema},
    posts::{
        self,
        body::{self, Config, NewText, SourcePaths, TopLevel},
        checks,
        content::{self, Assets, Faults},
        create,
        imports::Imports,
        missing,
        overrides::{self, PostOverrides},
        replying::{Parent, REPLY_TO},
        settings,
        variant::{self, Base},
    },
    slots,
    types::{
        bounded_string::Text,
        metadata::{self, MAX_KEYS},
        timestamp::Timestamp,
    },
};
use domain::{PostId, PostStatus};
use poem_openapi::{Object, types::MaybeUndefined};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use store::{
    posts::{Edit, EditResult, Post},
    slots::Queue,
};
use uuid::Uuid;

/// Maximum number of attempts when concurrent edits come first.
const MAX_ATTEMPTS: usize = 5;

/// Changes to a post; missing fields keep their value. Publishing must not have begun.
#[derive(Clone, Debug, Object)]
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
    pub metadata: MaybeUndefined<metadata::Changes>,
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
        let (edit, queue) = resolve_edit(call, &post, body.clone()).await?;
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

/// The edit of the stored post, and the queue that the post moves to.
async fn resolve_edit(
    call: &Call<'_>,
    post: &Post,
    body: EditPost,
) -> Result<(Edit, Option<Queue>), Problem> {
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
    if !issues.is_empty() {
        return Err(Problem::invalid_body(issues));
    }
    let named = |entries: &Vec<Text<255, 0>>| entries.iter().map(|entry| entry.0.clone()).collect();
    let entries: Option<Vec<String>> = body.accounts.as_ref().map(named);
    let (accounts, queued) = match (&entries, &body.queued_from_account) {
        (None, None) => (None, None),
        (entries, queued) => {
            let kept = || post.targets.iter().map(|target| target.account_id.to_string()).collect();
            let entries = entries.clone().unwrap_or_else(kept);
            let (accounts, queued) = resolve::accounts(call, &entries, queued.as_deref()).await?;
            (Some(accounts), queued)
        }
    };
    let is_single = body.content.is_some();
    let sent: BTreeSet<String> =
        (body.blocks.platforms().chain(body.config.iter().flat_map(Config::platforms)))
            .map(str::to_owned)
            .collect();
    let source = SourcePaths::of(is_single, &body.blocks, body.config.as_ref().unwrap_or(&Config::default()));
    let is_reset = body.config.is_some() || accounts.is_some();
    let mut default_config = settings::amend(&post.default_config, body.blocks, body.config);
    let is_draft = body.is_draft.unwrap_or(post.is_draft);
    let kept;
    let effective = match &accounts {
        Some(accounts) => accounts,
        None => {
            let ids: Vec<_> = post.targets.iter().map(|target| target.account_id).collect();
            kept = store::accounts::get_many(call.db(), call.access(), &ids).await?;
            &kept
        }
    };
    if let Some(id) = post.reply_to {
        match Parent::find(call, id).await {
            Ok(parent) => parent.check(effective, entries.as_deref(), is_draft)?,
            // A draft may be unfinished.
            Err(_) if is_draft => {}
            Err(problem) => return Err(problem),
        }
    }
    let mut imports = Imports::default();
    let overrides =
        PostOverrides::read(&mut default_config, effective, &mut imports, |platform| sent.contains(platform))
            .map_err(|problem| source.lead(problem))?;
    // As on creation. Otherwise a setting that was removed would come back.
    if is_reset {
        default_config = settings::complete(call, effective, default_config, post.reply_to.is_some()).await?;
    }
    let is_replaced = is_single || body.containers.is_some();
    // A post with one container keeps its media when only the text is sent.
    let kept_media = match &post.containers[..] {
        [only] if is_single => Some(only.media.clone()),
        _ => None,
    };
    let texts = create::texts(body.content, body.containers, &mut imports);
    let named = texts.iter().flat_map(|text| &text.media).chain(overrides.media());
    let assets = Assets::find(call, named, imports).await?.with_own(named_by(post));
    let mut faults = Faults::default();
    let content = if is_replaced {
        let mut content = assets.content(texts, &["containers".into()], &mut faults);
        if let Some(media) = kept_media {
            content.containers[0].media = media;
            content = content::stored(call, post.id, content.containers).await?;
        }
        content
    } else {
        content::stored(call, post.id, post.containers.clone()).await?
    };
    let containers = is_replaced.then(|| content.containers.clone());
    let due = match body.scheduled_at {
        // The time of such a post is the earliest of its targets'.
        MaybeUndefined::Undefined if overrides.times_all(effective) => None,
        MaybeUndefined::Undefined => post.scheduled_at,
        MaybeUndefined::Null => None,
        MaybeUndefined::Value(Timestamp(at)) => Some(at),
    };
    let base = Base { content, config: &default_config, due, is_reply: post.reply_to.is_some() };
    let variants = variant::variants(base, effective, &overrides, &assets, faults)
        .map_err(|problem| source.lead(problem))?;
    // A draft may be unfinished: it is checked when it is released.
    if !is_draft {
        checks::reject_errors(checks::check(&variants, &source))?;
    }
    let queue = match queued {
        None => None,
        Some(_) if is_draft => {
            let issue = Issue::custom(
                [QUEUED_FROM_ACCOUNT],
                "A draft takes no slot; set is_draft to false to release it",
            );
            let problem = Problem::new(Code::Unprocessable, "the post is a draft, which takes no slot");
            return Err(problem.with_issues(vec![issue]));
        }
        Some(account) => {
            variant::refuse_times(&variants)?;
            Some(slots::queue(call, account, body.queue_timezone.as_deref()).await?)
        }
    };
    let metadata = match body.metadata {
        MaybeUndefined::Undefined => post.metadata.clone(),
        MaybeUndefined::Null => store::posts::Metadata::default(),
        MaybeUndefined::Value(changes) => changes.apply(post.metadata.clone()),
    };
    if metadata.len() > MAX_KEYS {
        let message = format!("The post would have {} keys; at most {MAX_KEYS} are allowed", metadata.len());
        let issue = Issue::new(["metadata"], "too_big", message).with("maximum", MAX_KEYS);
        let issue = issue.with("type", "object").with("inclusive", true);
        let problem = Problem::new(Code::Unprocessable, "the post would have too much metadata");
        return Err(problem.with_issues(vec![issue]));
    }
    let deviations = variant::deviations(&variants);
    let scheduled_at = variant::due(due, &variants);
    let accounts =
        accounts.map(|accounts| accounts.into_iter().map(|account| (account.id, account.platform)).collect());
    let edit = Edit {
        version: post.version,
        is_draft,
        scheduled_at,
        default_config,
        metadata,
        containers,
        accounts,
        deviations,
        imports: assets.imports.rows(call).await?,
        request_id: call.request_id(),
        horizon: call.app.config.horizon,
    };
    Ok((edit, queue))
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
