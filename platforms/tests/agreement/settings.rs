//! Settings that a post of some kind drops: each setting that is given changes what the platform hears, or the check tells.
//!
//! A setting's kinds are an annotation of its schema, which a new setting can do without. So each setting is given to a post
//! of each kind, and its requests are compared with those of the same post without it.

use super::{MakeSettings, Maker};
use crate::{
    fixtures::{Actor, Named, World},
    specs::Heard,
};
use domain::{ErrorCode, Severity};
use percent_encoding::percent_decode_str;
use platforms::{
    Account, Adapter, MediaKind, PublishRequest,
    check::{AccountKind, ContainerContent, Issue, check_for},
};
use rand::{SeedableRng, rngs::StdRng};
use regex::{Captures, Regex};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

/// Values that are tried for a setting of a post.
const VALUES: u64 = 24;

/// Settings that no request has: the platform, the setting, and why.
const UNHEARD: &[(&str, &str, &str)] = &[
    ("facebook", "media_type", "what is given is what the media imply"),
    ("google_business", "fit", "the picture is changed, if it has to be"),
    ("instagram", "fit", "the picture is changed, if it has to be"),
    ("instagram", "media_type", "what is given is what the media imply"),
    ("pinterest", "fit", "the pictures are changed, if they have to be"),
    ("reddit", "kind", "what is given is what the media imply"),
    ("threads", "fit", "the picture is changed, if it has to be"),
];

/// Settings that make a kind of post which no single one makes: the platform, and the settings.
const MADE: &[(&str, MakeSettings)] = &[
    (
        "google_business",
        || json!({ "topicType": "EVENT", "event": { "title": "Dawn", "start": "2030-01-01", "end": "2030-01-02" } }),
    ),
    ("google_business", || {
        let event = json!({ "title": "Dawn", "start": "2030-01-01", "end": "2030-01-02" });
        json!({ "topicType": "OFFER", "event": event, "offer": { "couponCode": "DAWN" } })
    }),
    ("google_business", || json!({ "topicType": "ALERT", "alertType": "COVID_19" })),
    ("reddit", || json!({ "poll": { "options": ["early", "late"] } })),
    ("reddit", || json!({ "subreddit": "test", "crosspost": "t3_abc123" })),
];

/// Kinds of post that can't be published here: the platform, the kind, and why.
const UNSTAGED: &[(&str, &str, &str)] = &[
    ("pinterest", "text", "a pin is a picture or a video"),
    ("pinterest", "video", "an app in trial publishes none"),
    ("reddit", "crosspost", "it needs a post of somebody else: see the platform's own tests"),
    ("youtube", "text", "a post is a video"),
];

/// Text with which the kind of a post is chosen: some kinds need a link.
const TEXT: &str = "Dawn https://example.com/a";

/// Words that may be ids, times, digests, boundaries and the like: those of them with a digit are.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9_.~%:-]{8,}").expect("a pattern"));
/// The random id of a file on Reddit, which may have letters only.
static FILE: LazyLock<Regex> = LazyLock::new(|| Regex::new("rte_images/[a-z0-9]+").expect("a pattern"));

/// A kind of post.
struct Kind {
    /// Its name, as the adapter calls it.
    name: &'static str,
    /// The kind of its media and their number; `None` for a text.
    media: Option<(MediaKind, usize)>,
    /// The setting that makes it one.
    settings: Value,
    /// The account that publishes it.
    account: Account,
}

pub(super) async fn no_setting_is_dropped_in_silence(platform: &'static Adapter) {
    let schema = (platform.settings)();
    let mut dropped = Vec::new();
    for kind in kinds(platform).await {
        let mut stage = Stage::of(platform, &kind).await;
        let Some(plain) = stage.plain().await else {
            let is_known = UNSTAGED.iter().any(|(of, name, _)| (*of, *name) == (platform.id, kind.name));
            assert!(is_known, "{}: no {} is published, with {}", platform.id, kind.name, kind.settings);
            continue;
        };
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            let is_unheard = UNHEARD.iter().any(|(of, setting, _)| (*of, *setting) == (platform.id, name));
            if is_unheard || kind.settings.get(name).is_some() {
                continue;
            }
            let value = stage.dropped(&plain, name, part).await;
            let author = &kind.account.account_type;
            dropped.extend(value.map(|value| format!("{name} of a {} by a {author}: {value}", kind.name)));
        }
    }
    let name = platform.id;
    assert!(dropped.is_empty(), "{name} never hears of these settings, and nothing tells: {dropped:#?}");
}

/// Returns the kinds of post of a platform, with one medium and with two, of each type of account.
async fn kinds(platform: &'static Adapter) -> Vec<Kind> {
    let world = World::start().await;
    let actor = world.actor(platform);
    let accounts = accounts(&actor).await;
    let mut sets = vec![None];
    for limit in actor.limits().media {
        let least = (*limit.count.start()).max(1);
        let is_alone = *limit.count.end() < 2 || least > 1;
        sets.extend((least..=if is_alone { least } else { 2 }).map(|count| Some((limit.kind, count))));
    }
    let schema = (platform.settings)();
    let options = schema["properties"].as_object().into_iter().flatten().flat_map(|(name, part)| {
        let flag = (part["type"] == "boolean").then_some(json!(true));
        let options = part["enum"].as_array().cloned().unwrap_or_default().into_iter().chain(flag);
        options.map(move |option| json!({ name.as_str(): option }))
    });
    let made = MADE.iter().filter(|(of, _)| *of == platform.id).map(|(_, make)| make());
    let options: Vec<_> = std::iter::once(json!({})).chain(made).chain(options).collect();
    let (mut kinds, mut seen) = (Vec::new(), BTreeSet::new());
    for media in sets {
        for settings in &options {
            let post = post(&actor, media, settings);
            let content = ContainerContent { text: TEXT, media: &post.media };
            let Some(name) = platform.publisher.post_kind(&content, settings) else { continue };
            if seen.insert((media.map(|(_, count)| count), name)) {
                let of = |account: &Account| Kind {
                    name,
                    media,
                    settings: settings.clone(),
                    account: account.clone(),
                };
                kinds.extend(accounts.iter().map(of));
            }
        }
    }
    kinds
}

/// Returns an account of each type that the login covers.
async fn accounts(actor: &Actor) -> Vec<Account> {
    let mut accounts = vec![actor.account.clone()];
    for profile in actor.identities().await.on(actor.name()).into_iter().map(|one| one.profile) {
        if accounts.iter().all(|known| known.account_type != profile.account_type) {
            accounts.push(Account {
                network_unique_id: profile.network_unique_id,
                username: profile.username,
                account_type: profile.account_type,
            });
        }
    }
    accounts
}

fn post(actor: &Actor, media: Option<(MediaKind, usize)>, settings: &Value) -> PublishRequest {
    let (kind, count) = media.unwrap_or((MediaKind::Image, 0));
    PublishRequest { settings: settings.clone(), ..actor.post_with("", kind, count) }
}

/// A place where posts of one kind are published one after the other.
struct Stage {
    world: World,
    actor: Actor,
    post: PublishRequest,
    published: usize,
}

impl Stage {
    async fn of(platform: &'static Adapter, kind: &Kind) -> Self {
        let world = World::tapped().await;
        let mut actor = world.actor(platform);
        if actor.account.account_type != kind.account.account_type {
            actor.account = kind.account.clone();
        }
        let post = post(&actor, kind.media, &kind.settings);
        Self { world, actor, post, published: 0 }
    }

    /// Returns what the platform hears of the post alone; `None` if it refuses that.
    async fn plain(&mut self) -> Option<BTreeSet<String>> {
        let plain = self.post.settings.clone();
        let mut before = self.publish(&plain).await?;
        // Ids may happen to have no digit.
        for _ in 0..20 {
            let again = self.publish(&plain).await?;
            if again == before {
                return Some(again);
            }
            before = again;
        }
        panic!("{}: {:?} is never published alike twice: {before:#?}", self.actor.name(), self.post);
    }

    /// Returns a value of a setting of which the platform heard nothing, and nothing was told; `None` if it heard of one, or
    /// the post can't have any.
    async fn dropped(&mut self, plain: &BTreeSet<String>, name: &str, part: &Value) -> Option<Value> {
        let (mut tried, mut unheard) = (Vec::new(), None);
        let actor = self.actor.clone();
        for seed in 0..VALUES {
            let mut maker = Maker { actor: &actor, random: StdRng::seed_from_u64(seed) };
            let value = maker.value(part, name, &self.post);
            let mut settings = self.post.settings.clone();
            settings[name] = value.clone();
            if is_void(&value, &part["default"]) || tried.contains(&value) || self.is_told(&settings, name) {
                continue;
            }
            tried.push(value.clone());
            match self.publish(&settings).await {
                None => {}
                // Most are off without a word.
                Some(heard) if heard == *plain && value == false => {}
                Some(heard) if heard == *plain => unheard = Some(value),
                Some(_) => return None,
            }
        }
        unheard
    }

    /// Returns true if the check refuses the settings, or tells something of one.
    fn is_told(&self, settings: &Value, name: &str) -> bool {
        let content = ContainerContent { text: TEXT, media: &self.post.media };
        let tells =
            |issue: &Issue| issue.severity == Severity::Error || issue.path.iter().any(|step| step == name);
        let account = AccountKind { account_type: &self.actor.account.account_type, scopes: &[] };
        check_for(self.actor.platform, account, &[content], settings).iter().any(tells)
    }

    /// Publishes the post with these settings. Returns what the platform heard; `None` if it refuses them.
    async fn publish(&mut self, settings: &Value) -> Option<BTreeSet<String>> {
        self.published += 1;
        let before = self.world.heard().len();
        let mut post =
            PublishRequest { settings: settings.clone(), ..self.actor.post_with("", MediaKind::Image, 0) };
        post.media = self.actor.fitted(&self.post.media, settings);
        if self.actor.limits().text.max > 0 {
            // Platforms refuse a text that was just published, and take one line of some for a title.
            let text =
                format!("Dawn {:08}\n\nThe *sun*: https://example.com/a/page/of/dawns", self.published);
            post.text = self.actor.fit(&text);
        }
        match self.actor.publish(&post).await {
            Ok(_) => Some(self.world.heard()[before..].iter().map(shape).collect()),
            // Also a file at an address where there is none.
            Err(failure) => {
                assert_ne!(failure.code, ErrorCode::RateLimited, "{}: {failure}", self.actor.name());
                None
            }
        }
    }
}

/// Returns true for a value that means the same as none.
fn is_void(value: &Value, default: &Value) -> bool {
    let is_empty = match value {
        Value::Null => true,
        Value::Bool(_) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    };
    is_empty || value == default
}

/// Returns a request without what differs each time, and without the bytes of files.
fn shape(call: &Heard) -> String {
    let query: BTreeMap<_, _> = call.query.iter().cloned().collect();
    let is_readable = |line: &&str| {
        !line.contains(|c: char| c == char::REPLACEMENT_CHARACTER || c.is_control() && c != '\r')
    };
    let body: Vec<_> = call.text.split('\n').filter(is_readable).collect();
    let text = format!("{} {} {query:?} {}", call.method, call.path, body.join("\n"));
    // The digits of an escape are no sign of an id.
    let text = percent_decode_str(&text).decode_utf8_lossy();
    let passes = |found: &Captures<'_>| {
        if found[0].contains(|c: char| c.is_ascii_digit()) { "#".to_owned() } else { found[0].to_owned() }
    };
    WORD.replace_all(&FILE.replace_all(&text, "rte_images/#"), passes).into_owned()
}
