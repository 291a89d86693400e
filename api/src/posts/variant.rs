//! Variants of a post: what some of its accounts get.
//!
//! Accounts of one platform get the same, apart from those with overrides or settings of their own. Issues about a
//! variant lead to where the request has what they are about.

use crate::{
    accounts::resolve::QUEUED_FROM_ACCOUNT,
    http::problem::{Issue, Problem, Segment},
    openapi::validate::json_size,
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

/// Maximum size of the texts and settings of all variants of a post, in bytes. Those that a variant has in common with
/// others count as well: each is checked by itself.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Bytes that a medium of a variant, and a value of its settings, count as: what is known of either is copied.
const MEDIUM_BYTES: usize = 512;
const VALUE_BYTES: usize = 64;

/// Content, settings and time for some of a post's accounts.
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

/// Places of a variant's parts in the request, each if it was overridden.
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
            derivation.size += json_size(&settings) + VALUE_BYTES * values(&settings);
        }
        let shared = || derivation.derive(all.clone(), of_platform, &path);
        let mut derived = of_platforms.entry(platform).or_insert_with(shared).clone();
        let number = derived.number;
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
        if own.is_some() && derived.number == number {
            derivation.size += content_size(&derived.content);
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

/// Returns the size of a content, for the maximum of all.
fn content_size(content: &Content) -> usize {
    let texts: usize = content.containers.iter().map(|container| container.content.len()).sum();
    texts + MEDIUM_BYTES * content.media.iter().map(Vec::len).sum::<usize>()
}

/// Returns the number of values that a value consists of.
fn values(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    };
    1 + inner
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
            Some(texts) => {
                texts.iter().map(|text| text.content.len() + MEDIUM_BYTES * text.media.len()).sum::<usize>()
            }
            None => content_size(&from.content),
        };
        self.size += overrides.content.as_ref().map_or(0, String::len);
        self.size += overrides.media.as_ref().map_or(0, |media| MEDIUM_BYTES * media.len());
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
                "The variants of the post would have more than {MAX_TEXT_BYTES} bytes of text, media and settings"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::problem::Code,
        posts::{
            body::NewText,
            imports::Imports,
            samples::{account, asset, path},
        },
    };
    use chrono::TimeDelta;
    use domain::MediaStatus;
    use serde_json::json;
    use uuid::Uuid;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    /// Derives the variants of a post with a reply, which is due in an hour.
    fn derive(mut config: Value, accounts: &[Account]) -> Result<Vec<Variant>, Problem> {
        let mut imports = Imports::default();
        let overrides = PostOverrides::read(&mut config, accounts, &mut imports, |_| true)?;
        let assets = Assets::of(vec![asset(1, MediaStatus::Ready)], Vec::new(), imports);
        let texts =
            ["For all", "A reply"].map(|text| NewText { content: text.to_owned(), media: Vec::new() });
        let mut faults = Faults::default();
        let content = assets.content(texts.to_vec(), &path("containers"), &mut faults);
        let base = Base { content, config: &config, due: Some(at(3600)), is_reply: false };
        variants(base, accounts, &overrides, &assets, faults)
    }

    #[test]
    fn each_account_gets_what_replaces_the_posts() {
        let accounts = [account(1, "x"), account(2, "x"), account(3, "bluesky")];
        let picture = Uuid::from_u128(1);
        let sky = json!([[3], 0, ["For all", "A reply"], 0, {}]);
        for (config, expected) in [
            (json!({}), json!([sky, [[1, 2], 0, ["For all", "A reply"], 0, {}]])),
            (
                json!({ "x": { "content": "For X", "title": "t" } }),
                json!([sky, [[1, 2], 1, ["For X", "A reply"], 0, { "title": "t" }]]),
            ),
            (
                json!({ "x": { "containers": [{ "content": "Alone" }], "media": [{ "id": picture }] } }),
                json!([sky, [[1, 2], 1, ["Alone"], 1, {}]]),
            ),
            // Settings alone need no content of their own.
            (
                json!({ "x": { "title": "t", "accounts": { "name-2": { "title": "b" } } } }),
                json!([
                    sky,
                    [[1], 0, ["For all", "A reply"], 0, { "title": "t" }],
                    [[2], 0, ["For all", "A reply"], 0, { "title": "b" }]
                ]),
            ),
            // An account has its platform's, unless it replaces that as well.
            (
                json!({ "x": { "content": "For X", "accounts": { "name-2": { "media": [{ "id": picture }] } } } }),
                json!([sky, [[1], 1, ["For X", "A reply"], 0, {}], [[2], 2, ["For X", "A reply"], 1, {}]]),
            ),
        ] {
            let variants = derive(config.clone(), &accounts).unwrap();
            let shown = variants.iter().map(|variant| {
                let numbers: Vec<_> = variant.accounts.iter().map(|account| account.id.0.as_u128()).collect();
                let texts: Vec<_> = variant.content.containers.iter().map(|one| &one.content).collect();
                json!([numbers, variant.number, texts, variant.content.media[0].len(), variant.settings])
            });
            assert_eq!(shown.collect::<Value>(), expected, "{config}");
        }
    }

    #[test]
    fn what_cannot_be_applied_is_refused_with_its_path() {
        let accounts: Vec<_> = (1..=5).map(|number| account(number, "x")).collect();
        let unknown = json!([{ "id": Uuid::from_u128(9) }]);
        let text = json!({ "content": "a".repeat(100_000) });
        let long: serde_json::Map<_, _> = (1..=5)
            .map(|number| (format!("name-{number}"), json!({ "containers": vec![&text; 10] })))
            .collect();
        for (block, code, at) in [
            (json!({ "content": "" }), Code::Unprocessable, "config.x.content"),
            (
                json!({ "containers": [{ "content": "a" }, { "content": "" }] }),
                Code::Unprocessable,
                "config.x.containers.1.content",
            ),
            (json!({ "scheduled_at": at(3599) }), Code::Unprocessable, "config.x.scheduled_at"),
            (
                json!({ "accounts": { "name-1": { "scheduled_at": at(0) } } }),
                Code::Unprocessable,
                "config.x.accounts.name-1.scheduled_at",
            ),
            (json!({ "media": unknown }), Code::MediaNotReady, "config.x.media.0.id"),
            // The media are told first.
            (json!({ "content": "", "media": unknown }), Code::MediaNotReady, "config.x.media.0.id"),
            (json!({ "accounts": long }), Code::Unprocessable, "config"),
        ] {
            let problem = derive(json!({ "x": block }), &accounts).err().unwrap();
            assert_eq!((problem.code, &problem.issues[0].path), (code, &path(at)), "{problem:?}");
        }
        assert!(derive(json!({ "x": { "scheduled_at": at(3600) } }), &accounts).is_ok());
    }

    #[test]
    fn a_path_leads_to_the_override_that_it_concerns() {
        let config = json!({ "x": {
            "content": "For X", "title": "t",
            "accounts": { "name-2": { "containers": [{ "content": "Alone" }], "title": "b" } },
        } });
        let variants = derive(config, &[account(1, "x"), account(2, "x")]).unwrap();
        for (variant, from, to) in [
            (0, "containers.0.content", "config.x.content"),
            (0, "containers.0.media.0", "containers.0.media.0"),
            (0, "containers.1.content", "containers.1.content"),
            (0, "config.x.title", "config.x.title"),
            (1, "containers.0.content", "config.x.accounts.name-2.containers.0.content"),
            (1, "config.x.title", "config.x.accounts.name-2.title"),
            (1, "config.x.other", "config.x.other"),
        ] {
            assert_eq!(variants[variant].path(path(from)), path(to), "{variant}: {from}");
        }
    }

    /// Returns a variant of one account.
    fn variant(account: Account, number: u16, scheduled_at: Option<DateTime<Utc>>) -> Variant {
        let content = Content {
            containers: vec![Container::new(0, number.to_string(), Vec::new())],
            ..Content::default()
        };
        Variant { number, scheduled_at, ..Variant::new(vec![account], content, json!({}), false) }
    }

    #[test]
    fn a_post_without_a_time_has_the_earliest_of_its_accounts() {
        for (of_post, of_accounts, expected) in [
            (Some(at(5)), [Some(at(6)), None], Some(at(5))),
            (None, [Some(at(7)), Some(at(6))], Some(at(6))),
            (None, [Some(at(7)), None], None),
            (None, [None, None], None),
        ] {
            let variants = of_accounts.map(|time| variant(account(1, "x"), 0, time));
            assert_eq!(due(of_post, &variants), expected);
            assert_eq!(refuse_times(&variants).is_err(), of_accounts.iter().any(Option::is_some));
        }
    }

    #[test]
    fn the_store_gets_variants_without_gaps() {
        let numbers = [(1, 3, None), (2, 0, Some(at(1))), (3, 2, None), (4, 0, None)];
        let variants = numbers.map(|(of, number, time)| variant(account(of, "x"), number, time));
        let kept = deviations(&variants);
        let texts: Vec<_> = kept.variants.iter().map(|containers| containers[0].content.as_str()).collect();
        assert_eq!(texts, ["2", "3"]);
        let targets: Vec<_> =
            kept.targets.iter().map(|(id, own)| (id.0.as_u128(), own.variant, own.scheduled_at)).collect();
        assert_eq!(targets, [(1, 2, None), (2, 0, Some(at(1))), (3, 1, None)]);
    }
}
