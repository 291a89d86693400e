//! Variants of a post: what some of its accounts get.
//!
//! Accounts of one platform get the same, apart from those with overrides or settings of their own. Issues about a
//! variant lead to where the request has what they are about.

use crate::{
    accounts::resolve::QUEUED_FROM_ACCOUNT,
    http::problem::{Issue, Problem, Segment},
    posts::{
        body::Overrides,
        content::{Assets, Content, Faults},
        overrides::{PostOverrides, unusable},
    },
    types::timestamp::Timestamp,
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId,
    overrides::{self, ACCOUNTS},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use store::{
    accounts::Account,
    posts::{Container, Deviation, Deviations},
};

/// Maximum length of the text of all variants of a post, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// What some of a post's accounts get.
pub(crate) struct Variant {
    /// The accounts, all of one platform.
    pub accounts: Vec<Account>,
    /// Their number for the store; 0 stands for the post's own content.
    pub number: u16,
    /// Content.
    pub content: Arc<Content>,
    /// The platform's settings.
    pub settings: Value,
    /// Time to publish; `None` for the post's.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// True if the post replies to a live one.
    pub is_reply: bool,
    origin: Origin,
}

/// Where the parts of a variant were in the request, each if it was overridden.
#[derive(Clone, Debug, Default)]
struct Origin {
    containers: Option<Vec<Segment>>,
    content: Option<Vec<Segment>>,
    media: Option<Vec<Segment>>,
    /// Settings of the account: their names, and the path that leads to them.
    settings: Option<(BTreeSet<String>, Vec<Segment>)>,
}

impl Variant {
    /// Content and settings of `accounts` that no request overrides.
    pub(crate) fn new(accounts: Vec<Account>, content: Content, settings: Value, is_reply: bool) -> Self {
        let (content, origin) = (Arc::new(content), Origin::default());
        Self { accounts, number: 0, content, settings, scheduled_at: None, is_reply, origin }
    }

    /// Leads a path of a check to the override that it concerns; other paths stay.
    pub(crate) fn path(&self, path: Vec<Segment>) -> Vec<Segment> {
        let origin = &self.origin;
        let key = |at: usize| match path.get(at) {
            Some(Segment::Key(key)) => key.as_str(),
            _ => "",
        };
        let from = match (key(0), path.get(1), key(2)) {
            ("containers", Some(Segment::Index(0)), "content") => origin.content.as_ref().map(|to| (to, 3)),
            ("containers", Some(Segment::Index(0)), "media") => origin.media.as_ref().map(|to| (to, 3)),
            ("config", Some(_), setting) => {
                origin.settings.as_ref().filter(|(own, _)| own.contains(setting)).map(|(_, to)| (to, 2))
            }
            _ => None,
        };
        let whole = || origin.containers.as_ref().filter(|_| key(0) == "containers").map(|to| (to, 1));
        match from.or_else(whole) {
            Some((to, skipped)) => [to, &path[skipped..]].concat(),
            None => path,
        }
    }
}

/// Content, settings and time of a post where nothing is overridden.
pub(crate) struct Base<'a> {
    /// Content.
    pub content: Content,
    /// Settings by platform, those of single accounts by id.
    pub config: &'a Value,
    /// Time to publish; `None` for immediately.
    pub due: Option<DateTime<Utc>>,
    /// True if the post replies to a live one.
    pub is_reply: bool,
}

/// Applies overrides to what all accounts would get. `faults` are those of the media of `base`.
///
/// # Errors
///
/// When media can't be published; or when a container would be empty, a time is before the post's, or there is too much
/// text.
pub(crate) fn variants(
    base: Base<'_>,
    accounts: &[Account],
    overrides: &PostOverrides,
    assets: &Assets,
    faults: Faults,
) -> Result<Vec<Variant>, Problem> {
    let mut groups = BTreeMap::<_, Vec<Account>>::new();
    for account in accounts {
        // Also what its profile has for it alone.
        let own = base.config[&account.platform][ACCOUNTS].get(account.id.to_string()).map(|_| account.id);
        groups.entry((account.platform.as_str(), own)).or_default().push(account.clone());
    }
    let all = Derived { number: 0, content: Arc::new(base.content), origin: Origin::default() };
    let none = Overrides::default();
    let mut derivation = Derivation { assets, faults, issues: Vec::new(), size: 0, number: 0 };
    let mut of_platforms = BTreeMap::<&str, Derived>::new();
    let mut variants = Vec::new();
    for ((platform, own), accounts) in groups {
        let path = vec![Segment::from("config"), platform.into()];
        let of_platform = overrides.platforms.get(platform).unwrap_or(&none);
        let block = base.config.get(platform).unwrap_or(&Value::Null);
        let settings = overrides::settings(block, accounts[0].id);
        if own.is_some() {
            // It has the platform's settings once more.
            derivation.size += settings.to_string().len();
        }
        let shared = || derivation.derive(all.clone(), of_platform, &path);
        let mut derived = of_platforms.entry(platform).or_insert_with(shared).clone();
        let mut time = of_platform.scheduled_at.map(|Timestamp(at)| (at, path.clone()));
        if let Some((own, key)) = own.and_then(|own| overrides.accounts.get(&own)) {
            let path = [&path[..], &[ACCOUNTS.into(), key.as_str().into()]].concat();
            derived = derivation.derive(derived, own, &path);
            if let Some(Timestamp(at)) = own.scheduled_at {
                time = Some((at, path.clone()));
            }
            let account = &block[ACCOUNTS][accounts[0].id.to_string()];
            let names = account.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            derived.origin.settings = Some((names, path));
        }
        if let Some((at, path)) = &time
            && base.due.is_some_and(|due| *at < due)
        {
            let path = [&path[..], &["scheduled_at".into()]].concat();
            derivation.issues.push(Issue::custom(path, "Must not be before the post's scheduled_at"));
        }
        if derivation.is_full() {
            break;
        }
        let Derived { number, content, origin } = derived;
        let scheduled_at = time.map(|(at, _)| at);
        let is_reply = base.is_reply;
        variants.push(Variant { accounts, number, content, settings, scheduled_at, is_reply, origin });
    }
    derivation.end()?;
    Ok(variants)
}

/// Content of a variant, and where its parts are from.
#[derive(Clone)]
struct Derived {
    number: u16,
    content: Arc<Content>,
    origin: Origin,
}

/// The contents of a post's variants in the making.
struct Derivation<'a> {
    assets: &'a Assets,
    /// Faults of the media.
    faults: Faults,
    /// Faults of the overrides.
    issues: Vec<Issue>,
    /// Size of the texts and settings so far, in bytes.
    size: usize,
    /// Number of the last variant.
    number: u16,
}

impl Derivation<'_> {
    /// Returns true if the variants have too much text already.
    fn is_full(&self) -> bool {
        self.size > MAX_TEXT_BYTES
    }

    /// Returns the content with overrides that are at `path`: another variant, if they have content.
    fn derive(&mut self, from: Derived, overrides: &Overrides, path: &[Segment]) -> Derived {
        if !overrides.has_content() {
            return from;
        }
        self.size += match &overrides.containers {
            Some(texts) => texts.iter().map(|text| text.content.len()).sum::<usize>(),
            None => from.content.containers.iter().map(|container| container.content.len()).sum(),
        };
        self.size += overrides.content.as_ref().map_or(0, String::len);
        if self.is_full() {
            return Derived { number: 0, ..from };
        }
        self.number += 1;
        let mut origin = from.origin;
        let content = self.apply(&from.content, overrides, path, &mut origin);
        Derived { number: self.number, content: Arc::new(content), origin }
    }

    /// Returns the content with the overrides, and records in `origin` where its parts are from.
    fn apply(
        &mut self,
        content: &Content,
        overrides: &Overrides,
        path: &[Segment],
        origin: &mut Origin,
    ) -> Content {
        let at = |member: &str| [path, &[member.into()]].concat();
        let mut content = match &overrides.containers {
            Some(texts) => {
                *origin = Origin { containers: Some(at("containers")), ..Origin::default() };
                self.assets.content(texts.clone(), &at("containers"), &mut self.faults)
            }
            // Each variant has containers of its own.
            None => Content {
                containers: (content.containers.iter())
                    .map(|c| Container::new(c.position, c.content.clone(), c.media.clone()))
                    .collect(),
                media: content.media.clone(),
                is_partial: content.is_partial,
            },
        };
        if let Some(text) = &overrides.content {
            content.containers[0].content.clone_from(text);
            origin.content = Some(at("content"));
        }
        if let Some(media) = &overrides.media {
            let (attached, known, is_partial) =
                self.assets.attach(media.clone(), &at("media"), &mut self.faults);
            content.containers[0].media = attached;
            content.media[0] = known;
            content.is_partial |= is_partial;
            origin.media = Some(at("media"));
        }
        let is_empty = |container: &Container| container.content.is_empty() && container.media.is_empty();
        for container in content.containers.iter().filter(|container| is_empty(container)) {
            let index = usize::from(container.position);
            let path = match (&origin.containers, &origin.content) {
                (_, Some(path)) if index == 0 => path.clone(),
                (Some(path), _) => [&path[..], &[index.into(), "content".into()]].concat(),
                (None, _) => at("media"),
            };
            self.issues.push(Issue::custom(path, "A container needs text or media"));
        }
        content
    }

    /// Fails if something is wrong with the media, or else with the overrides.
    fn end(mut self) -> Result<(), Problem> {
        if self.is_full() {
            let message = format!(
                "The variants of the post would have more than {MAX_TEXT_BYTES} bytes of text and settings"
            );
            self.issues.push(Issue::new(["config"], "too_big", message).with("maximum", MAX_TEXT_BYTES));
        }
        self.faults.reject()?;
        if self.issues.is_empty() { Ok(()) } else { Err(unusable(self.issues)) }
    }
}

/// Returns the time of a post: `due`, or the earliest of its targets' if each has one of its own.
pub(crate) fn due(due: Option<DateTime<Utc>>, variants: &[Variant]) -> Option<DateTime<Utc>> {
    let own: Option<Vec<_>> = variants.iter().map(|variant| variant.scheduled_at).collect();
    due.or_else(|| own?.into_iter().min())
}

/// Refuses times of targets in a post that takes an open slot, whose time is not known before.
///
/// # Errors
///
/// If a variant has a time.
pub(crate) fn refuse_times(variants: &[Variant]) -> Result<(), Problem> {
    if variants.iter().all(|variant| variant.scheduled_at.is_none()) {
        return Ok(());
    }
    Err(unusable(vec![Issue::custom([QUEUED_FROM_ACCOUNT], "Can't be combined with scheduled_at in config")]))
}

/// Returns what the store keeps of the variants.
pub(crate) fn deviations(variants: &[Variant]) -> Deviations {
    let numbered: BTreeMap<_, _> = variants
        .iter()
        .filter(|variant| variant.number > 0)
        .map(|variant| (variant.number, &variant.content))
        .collect();
    // A platform whose accounts all have content of their own leaves a gap.
    let numbers: BTreeMap<_, _> = numbered.keys().copied().zip(1..).collect();
    let targets = variants.iter().flat_map(|variant| {
        let deviation = Deviation {
            variant: numbers.get(&variant.number).copied().unwrap_or(0),
            scheduled_at: variant.scheduled_at,
        };
        variant.accounts.iter().map(move |account| (account.id, deviation))
    });
    let deviates = |(_, target): &(AccountId, Deviation)| target.variant > 0 || target.scheduled_at.is_some();
    Deviations {
        variants: numbered.values().map(|content| content.containers.clone()).collect(),
        targets: targets.filter(deviates).collect(),
    }
}
