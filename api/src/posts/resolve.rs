//! From a request to what is stored: the steps that creating, validating and editing a post have in common.
//!
//! | Step | Result | |
//! |---|---|---|
//! | the body is read, and what stays of a stored post | [`Request`] | pure |
//! | who gets the post, and the one that it replies to | [`Recipients`] | looked up |
//! | overrides, by the ids of the accounts | [`PostOverrides`] | pure |
//! | settings of profiles, media assets, the queue | [`Assets`], [`Queue`] | looked up |
//! | content, settings and time of each account | [`Variant`] | pure |
//! | errors and warnings of the platforms | [`Finding`] | pure |
//!
//! A step fails before the next one begins. A new post and an edit differ in the first two; [`resolve`] does what follows
//! from them, up to the variants. What is found in these is refused when a post is created or edited, and told when it is
//! validated.

use crate::{
    http::{
        caller::Call,
        problem::{Issue, Problem, Segment},
    },
    posts::{
        body::{NewMedia, NewText, SourcePaths},
        checks::{self, Finding},
        content::{self, Assets, Faults},
        imports::Imports,
        overrides::PostOverrides,
        replying::Parent,
        settings,
        variant::{self, Base, Variant},
    },
    slots,
};
use chrono::{DateTime, Utc};
use domain::{AccountId, PostId};
use serde_json::Value;
use std::collections::HashSet;
use store::{
    accounts::Account,
    posts::{Container, slots::Queue},
};
use uuid::Uuid;

/// The field of a post with its containers.
const CONTAINERS: &str = "containers";

/// A post as a request describes it, before anything that it names is looked up.
pub(crate) struct Request {
    /// Texts of all accounts.
    pub texts: Texts,
    /// Settings by platform, with overrides; an object.
    pub config: Value,
    /// True if the settings of the accounts' profiles complete it.
    pub takes_defaults: bool,
    /// Time to publish.
    pub time: Time,
    /// True if the post replies to a live one.
    pub is_reply: bool,
    /// Time zone of the slots of a queue.
    pub queue_timezone: Option<String>,
    /// Media assets that the stored post has.
    pub own: HashSet<Uuid>,
    /// Files to fetch.
    pub imports: Imports,
    /// Places of the values in the body.
    pub source: SourcePaths,
}

/// Texts of a post before overrides.
pub(crate) enum Texts {
    /// Those of the request.
    Sent(Vec<NewText>),
    /// Containers with media of a stored post.
    Stored(PostId, Vec<Container>),
}

/// Time to publish a post; `None` for immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// That of the request.
    Sent(Option<DateTime<Utc>>),
    /// That of the stored post, which a request does not change.
    Stored(Option<DateTime<Utc>>),
}

/// Accounts that get a post, and the post that it replies to.
pub(crate) struct Recipients {
    /// The accounts, without duplicates.
    pub accounts: Vec<Account>,
    /// The one whose next open slot the post takes.
    pub queued: Option<AccountId>,
    /// The post to reply to.
    pub parent: Option<Parent>,
}

/// A request whose references to accounts, media and slots are resolved.
pub(crate) struct ResolvedPost {
    /// The target accounts, without duplicates.
    pub accounts: Vec<Account>,
    /// The main text, then the replies.
    pub containers: Vec<Container>,
    /// Content, settings and times of the accounts.
    pub variants: Vec<Variant>,
    /// Settings by platform; an object.
    pub default_config: Value,
    /// When to publish; `None` for immediately.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// The post to reply to.
    pub parent: Option<Parent>,
    /// Files to fetch.
    pub imports: Imports,
    /// The account's queue, for a post that takes the next open slot.
    pub queue: Option<Queue>,
    source: SourcePaths,
}

/// Resolves a request.
///
/// # Errors
///
/// If a media asset is missing or not ready, or an override can't be applied.
pub(crate) async fn resolve(
    call: &Call<'_>,
    request: Request,
    recipients: Recipients,
) -> Result<ResolvedPost, Problem> {
    let Request { mut config, mut imports, source, time, is_reply, .. } = request;
    let Recipients { accounts, queued, parent } = recipients;
    let is_sent = |platform: &str| source.has_block(platform);
    let overrides = PostOverrides::read(&mut config, &accounts, &mut imports, is_sent)
        .map_err(|problem| source.lead(problem))?;
    if request.takes_defaults {
        config = settings::complete(call, &accounts, config, is_reply).await?;
    }
    let named = request.texts.media().chain(overrides.media());
    let assets = Assets::find(call, named, imports).await?.with_own(request.own);
    let mut faults = Faults::default();
    let content = match request.texts {
        Texts::Sent(texts) => assets.content(texts, &[CONTAINERS.into()], &mut faults),
        Texts::Stored(post, containers) => content::stored(call, post, containers).await?,
    };
    let queue = match queued {
        Some(account) => Some(slots::queue(call, account, request.queue_timezone.as_deref()).await?),
        None => None,
    };
    let due = time.due(&accounts, &overrides);
    let containers = content.containers.clone();
    let base = Base { content, config: &config, due, is_reply };
    let variants = variant::variants(base, &accounts, &overrides, &assets, faults)
        .map_err(|problem| source.lead(problem))?;
    Ok(ResolvedPost {
        accounts,
        containers,
        scheduled_at: variant::due(due, &variants),
        variants,
        default_config: config,
        parent,
        imports: assets.imports,
        queue,
        source,
    })
}

impl Request {
    /// Returns the issues of the media that its texts name, without those of overrides.
    ///
    /// # Errors
    ///
    /// If there are too many files to fetch, or the database is unavailable.
    pub(crate) async fn media_issues(&self, call: &Call<'_>) -> Result<Vec<Issue>, Problem> {
        let assets = Assets::find(call, self.texts.media(), self.imports.clone()).await?;
        let mut faults = Faults::default();
        if let Texts::Sent(texts) = &self.texts {
            assets.content(texts.clone(), &[CONTAINERS.into()], &mut faults);
        }
        Ok(faults.issues)
    }
}

impl Texts {
    /// Returns the texts of either `content` or `containers`. Addresses of media are replaced by the ids of the assets
    /// that they become.
    pub(crate) fn sent(
        content: Option<String>,
        containers: Option<Vec<NewText>>,
        imports: &mut Imports,
    ) -> Self {
        let single = content.map(|content| NewText { content, media: Vec::new() });
        let mut texts: Vec<_> = single.into_iter().chain(containers.unwrap_or_default()).collect();
        for media in texts.iter_mut().flat_map(|text| &mut text.media) {
            if let Some(url) = media.url.take() {
                media.id = Some(imports.add(&url.text).to_string());
            }
        }
        Self::Sent(texts)
    }

    /// Returns the media that the request names.
    fn media(&self) -> impl Iterator<Item = &NewMedia> {
        let texts = match self {
            Self::Sent(texts) => &texts[..],
            Self::Stored(..) => &[],
        };
        texts.iter().flat_map(|text| &text.media)
    }
}

impl Time {
    /// Returns the post's own time, which those of its accounts must not precede.
    fn due(self, accounts: &[Account], overrides: &PostOverrides) -> Option<DateTime<Utc>> {
        match self {
            // The time of such a post is the earliest of its targets'.
            Self::Stored(_) if overrides.times_all(accounts) => None,
            Self::Sent(at) | Self::Stored(at) => at,
        }
    }
}

impl ResolvedPost {
    /// Refuses what a platform would certainly reject.
    ///
    /// # Errors
    ///
    /// `content_rejected` with all errors found.
    pub(crate) fn reject_errors(&self) -> Result<(), Problem> {
        checks::reject_errors(self.findings())
    }

    /// Refuses times of accounts if the post takes an open slot, whose time is not known before.
    ///
    /// # Errors
    ///
    /// If an account has a time of its own.
    pub(crate) fn refuse_times(&self) -> Result<(), Problem> {
        if self.queue.is_some() { variant::refuse_times(&self.variants) } else { Ok(()) }
    }

    /// Path of the main text in the request.
    pub(crate) fn text_path(&self, variant: &Variant) -> Vec<Segment> {
        self.source.path(variant.path(vec![CONTAINERS.into(), 0.into(), "content".into()]))
    }

    /// Path in the request of what an issue of a variant's platform is about.
    pub(crate) fn path(&self, variant: &Variant, path: &[Value]) -> Vec<Segment> {
        self.source.path(variant.path(path.iter().map(checks::segment).collect()))
    }

    /// Errors and warnings of the accounts' platforms.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        checks::check(&self.variants, &self.source)
    }
}

#[cfg(test)]
impl ResolvedPost {
    /// Returns a post of these variants.
    pub(super) fn of(variants: Vec<Variant>) -> Self {
        Self {
            accounts: variants.iter().flat_map(|variant| variant.accounts.clone()).collect(),
            containers: Vec::new(),
            variants,
            default_config: Value::Null,
            scheduled_at: None,
            parent: None,
            imports: Imports::default(),
            queue: None,
            source: SourcePaths::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::samples::account;
    use chrono::TimeDelta;
    use poem_openapi::types::ParseFromJSON;
    use serde_json::json;

    #[test]
    fn a_stored_time_ends_when_each_account_has_one_of_its_own() {
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(5);
        let accounts = [account(1, "x")];
        let (timed, none) = (json!({ "x": { "scheduled_at": at } }), json!({}));
        for (time, config, expected) in [
            (Time::Sent(Some(at)), &timed, Some(at)),
            (Time::Sent(Some(at)), &none, Some(at)),
            (Time::Stored(Some(at)), &timed, None),
            (Time::Stored(Some(at)), &none, Some(at)),
            (Time::Sent(None), &none, None),
            (Time::Stored(None), &none, None),
        ] {
            let mut config = config.clone();
            let overrides = PostOverrides::read(&mut config, &accounts, &mut Imports::default(), |_| true);
            assert_eq!(time.due(&accounts, &overrides.unwrap()), expected, "{time:?} {config}");
        }
    }

    #[test]
    fn an_address_in_a_text_becomes_an_asset() {
        let mut imports = Imports::default();
        let url = "https://a.example/b.jpg";
        let text = json!({ "content": "a", "media": [{ "id": "b" }, { "url": url, "alt_text": "Alt" }] });
        let texts =
            Texts::sent(None, Some(vec![NewText::parse_from_json(Some(text)).unwrap()]), &mut imports);
        let named: Vec<_> = texts.media().map(|media| (media.id.clone(), media.url.is_some())).collect();
        let id = imports.add(url).to_string();
        assert_eq!(named, [(Some("b".to_owned()), false), (Some(id), false)]);
        let Texts::Sent(single) = Texts::sent(Some("a".to_owned()), None, &mut imports) else { panic!() };
        assert_eq!((single.len(), single[0].content.as_str()), (1, "a"));
    }
}
