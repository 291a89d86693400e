//! Content and times of a post for one platform or one account.
//!
//! A platform's block in `config` can hold content and a time besides the platform's settings, and the same again
//! for single accounts under `accounts`. [`variants`] applies them: a variant is what some of the accounts get.

use crate::{
    accounts::resolve::QUEUED_FROM_ACCOUNT,
    http::problem::{Code, Issue, Problem, Segment},
    posts::{
        body::{NewMedia, Overrides},
        checks::Assets,
        imports::Imports,
    },
    types::timestamp::Timestamp,
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, Media,
    overrides::{self, ACCOUNTS},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use store::{
    accounts::Account,
    posts::{Container, Deviation, Deviations},
};
use uuid::Uuid;

/// Maximum length of the text of all variants of a post, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The overrides of a post.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    platforms: BTreeMap<String, Overrides>,
    accounts: BTreeMap<AccountId, (Overrides, String)>,
}

impl Plan {
    /// Reads the overrides of a post's settings, and replaces the keys under `accounts` by the accounts' ids.
    /// In a block that was not sent now, entries of accounts that the post no longer has are removed.
    ///
    /// # Errors
    ///
    /// When an entry stands for none, or several, of the accounts.
    pub(crate) fn read(
        config: &mut Value,
        accounts: &[Account],
        imports: &mut Imports,
        is_sent: impl Fn(&str) -> bool,
    ) -> Result<Self, Problem> {
        let (mut plan, mut issues) = (Self::default(), Vec::new());
        for (platform, block) in config.as_object_mut().into_iter().flatten() {
            import_all(block, imports);
            let at = |rest: &[Segment]| [&["config".into(), platform.as_str().into()], rest].concat();
            match Overrides::read(block) {
                Ok(overrides) => drop(plan.platforms.insert(platform.clone(), overrides)),
                Err(message) => issues.push(Issue::whole(message).under(&at(&[]))),
            }
            let Some(Value::Object(entries)) = block.get_mut(ACCOUNTS) else { continue };
            for (key, mut own) in std::mem::take(entries) {
                import_all(&mut own, imports);
                let path = at(&[ACCOUNTS.into(), key.as_str().into()]);
                let named: Vec<_> = accounts
                    .iter()
                    .filter(|account| account.platform == *platform && is_named(account, &key))
                    .collect();
                let [account] = named[..] else {
                    let message = match named[..] {
                        [] => "Is none of the post's accounts on this platform",
                        _ => "Matches several accounts; use the id of one of them",
                    };
                    if is_sent(platform) {
                        issues.push(Issue::custom(path, message));
                    }
                    continue;
                };
                match Overrides::read(&own) {
                    Ok(overrides) => {
                        if plan.accounts.insert(account.id, (overrides, key)).is_some() {
                            issues
                                .push(Issue::custom(path, "Names an account that another key names as well"));
                        }
                        entries.insert(account.id.to_string(), own);
                    }
                    Err(message) => issues.push(Issue::whole(message).under(&path)),
                }
            }
            if entries.is_empty() {
                block.as_object_mut().and_then(|block| block.remove(ACCOUNTS));
            }
        }
        if issues.is_empty() { Ok(plan) } else { Err(unusable(issues)) }
    }

    /// Returns whether each of the accounts has a time of its own.
    pub(crate) fn times_all(&self, accounts: &[Account]) -> bool {
        let is_timed =
            |overrides: Option<&Overrides>| overrides.is_some_and(|own| own.scheduled_at.is_some());
        accounts.iter().all(|account| {
            is_timed(self.platforms.get(&account.platform))
                || is_timed(self.accounts.get(&account.id).map(|(overrides, _)| overrides))
        })
    }

    /// Returns all media that the overrides name.
    pub(crate) fn media(&self) -> impl Iterator<Item = &NewMedia> {
        let accounts = self.accounts.values().map(|(overrides, _)| overrides);
        self.platforms.values().chain(accounts).flat_map(Overrides::media)
    }
}

/// Returns the ids of the media that the stored settings of a post name.
pub(crate) fn media_of(config: &Value) -> Vec<Uuid> {
    let blocks = config.as_object().into_iter().flatten().map(|(_, block)| block);
    let all = blocks.flat_map(|block| {
        let accounts = block.get(ACCOUNTS).and_then(Value::as_object).into_iter().flatten();
        std::iter::once(block).chain(accounts.map(|(_, own)| own))
    });
    let named = all.filter_map(|block| Overrides::read(block).ok()).flat_map(|overrides| {
        overrides.media().filter_map(|media| media.id.as_ref()?.parse().ok()).collect::<Vec<_>>()
    });
    named.collect()
}

/// Replaces addresses of media by the ids of the assets that they become.
fn import_all(block: &mut Value, imports: &mut Imports) {
    let Some(block) = block.as_object_mut() else { return };
    let mut lists: Vec<&mut Value> = Vec::new();
    for (name, member) in block {
        match (name.as_str(), member) {
            ("media", media) => lists.push(media),
            ("containers", Value::Array(texts)) => {
                lists.extend(texts.iter_mut().filter_map(|text| text.get_mut("media")));
            }
            _ => {}
        }
    }
    for item in lists.into_iter().filter_map(Value::as_array_mut).flatten().filter_map(Value::as_object_mut) {
        if let Some(Value::String(url)) = item.remove("url") {
            item.insert("id".to_owned(), json!(imports.add(&url)));
        }
    }
}

/// Returns true if a request means the account by this text.
pub(crate) fn is_named(account: &Account, key: &str) -> bool {
    account.id.to_string() == key.to_lowercase()
        || account.username == key
        || account.network_unique_id == key
}

/// Returns the problem that the overrides of a post can't be applied.
pub(crate) fn unusable(issues: Vec<Issue>) -> Problem {
    Problem::new(Code::Unprocessable, "the overrides in config can't be applied").with_issues(issues)
}

/// Containers, each with its media.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The main text, then the replies.
    pub containers: Vec<Container>,
    /// The media of each container.
    pub media: Vec<Vec<Media>>,
    /// True if some of the files are still to be fetched; `media` lacks them.
    pub is_partial: bool,
}

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

/// Applies the overrides of `plan` to the content of a post. `config` holds the settings, those of single accounts by id.
///
/// # Errors
///
/// When a container would be empty, a time is before the post's, or there is too much text.
pub(crate) fn variants(
    accounts: &[Account],
    base: Content,
    config: &Value,
    plan: &Plan,
    assets: &mut Assets,
    due: Option<DateTime<Utc>>,
) -> Result<Vec<Variant>, Problem> {
    let mut groups = BTreeMap::<_, Vec<Account>>::new();
    for account in accounts {
        // Also what its profile has for it alone.
        let own = config[&account.platform][ACCOUNTS].get(account.id.to_string()).map(|_| account.id);
        groups.entry((account.platform.as_str(), own)).or_default().push(account.clone());
    }
    let base = Arc::new(base);
    let none = Overrides::default();
    let (mut issues, mut text, mut number) = (Vec::new(), 0, 0);
    let mut of_platform = BTreeMap::<&str, (u16, Arc<Content>, Origin)>::new();
    let mut variants = Vec::new();
    for ((platform, own), accounts) in groups {
        let path = vec![Segment::from("config"), platform.into()];
        let overrides = plan.platforms.get(platform).unwrap_or(&none);
        let block = config.get(platform).unwrap_or(&Value::Null);
        let settings = overrides::settings(block, accounts[0].id);
        if own.is_some() {
            // It has the platform's settings once more.
            text += settings.to_string().len();
        }
        let mut derive = |from: (u16, Arc<Content>, Origin), overrides: &Overrides, path: &[Segment]| {
            if !overrides.has_content() {
                return from;
            }
            let (_, content, mut origin) = from;
            let size = overrides
                .containers
                .is_none()
                .then(|| content.containers.iter().map(|c| c.content.len()).sum());
            let added = overrides.containers.iter().flatten().map(|text| text.content.len()).sum::<usize>();
            text += size.unwrap_or(0) + added + overrides.content.as_ref().map_or(0, String::len);
            if text > MAX_TEXT_BYTES {
                return (0, content, origin);
            }
            number += 1;
            let content = apply(&content, overrides, path, &mut origin, assets, &mut issues);
            (number, Arc::new(content), origin)
        };
        let mut shared = || {
            let start = (0, Arc::clone(&base), Origin::default());
            of_platform.entry(platform).or_insert_with(|| derive(start, overrides, &path)).clone()
        };
        let (mut number, mut content, mut origin) = shared();
        let mut time = overrides.scheduled_at.map(|Timestamp(at)| (at, path.clone()));
        if let Some((own, key)) = own.and_then(|own| plan.accounts.get(&own)) {
            let path = [&path[..], &[ACCOUNTS.into(), key.as_str().into()]].concat();
            (number, content, origin) = derive((number, content, origin), own, &path);
            if let Some(Timestamp(at)) = own.scheduled_at {
                time = Some((at, path.clone()));
            }
            let account = &block[ACCOUNTS][accounts[0].id.to_string()];
            let names = account.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            origin.settings = Some((names, path));
        }
        if let Some((at, path)) = &time
            && due.is_some_and(|due| *at < due)
        {
            let path = [&path[..], &["scheduled_at".into()]].concat();
            issues.push(Issue::custom(path, "Must not be before the post's scheduled_at"));
        }
        if text > MAX_TEXT_BYTES {
            break;
        }
        variants.push(Variant {
            accounts,
            number,
            content,
            settings,
            scheduled_at: time.map(|(at, _)| at),
            is_reply: false,
            origin,
        });
    }
    if text > MAX_TEXT_BYTES {
        let message = format!(
            "The variants of the post would have more than {MAX_TEXT_BYTES} bytes of text and settings"
        );
        issues.push(Issue::new(["config"], "too_big", message).with("maximum", MAX_TEXT_BYTES));
    }
    if issues.is_empty() { Ok(variants) } else { Err(unusable(issues)) }
}

/// Returns the content with the overrides, and records in `origin` where its parts are from.
fn apply(
    content: &Content,
    overrides: &Overrides,
    path: &[Segment],
    origin: &mut Origin,
    assets: &mut Assets,
    issues: &mut Vec<Issue>,
) -> Content {
    let at = |member: &str| [path, &[member.into()]].concat();
    let mut content = match &overrides.containers {
        Some(texts) => {
            *origin = Origin { containers: Some(at("containers")), ..Origin::default() };
            assets.content(texts.clone(), &at("containers"))
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
        let (attached, known, is_partial) = assets.attach(media.clone(), &at("media"));
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
        issues.push(Issue::custom(path, "A container needs text or media"));
    }
    content
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
