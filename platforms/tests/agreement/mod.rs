//! Agreement of the check with the platforms: what the check allows, the simulator takes.
//!
//! The simulators are written from the platforms' documentation and share no rule with the adapters. Posts are made at
//! random, from the schema of the settings and the limits of media: each that the check has no error for is published.
//! A refusal is a rule that an author would have learnt too late. What only the platform knows is in [`LOOKED_UP`].
//!
//! `FANFARE_SEED` selects other posts, `FANFARE_AGREEMENT` their number for each platform.

use crate::{
    errors,
    fixtures::{Actor, Named, World},
    trials::{Case, cases},
};
use domain::ErrorCode;
use platforms::{Adapter, MediaKind, Publication};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Posts that are made for each platform.
const POSTS: usize = 60;

/// Refusals that no check can foresee: the platform, a part of its message, and what it knows alone.
const LOOKED_UP: &[(&str, &str, &str)] = &[
    ("bluesky", "the quoted post", "whether a post exists"),
    ("linkedin", "Content is a duplicate", "what the account has published"),
    (
        "linkedin",
        "Not enough permissions to access: posts.CREATE",
        "the organizations that the person may post for",
    ),
    ("linkedin", "The post that is to be shared does not exist", "whether a post exists"),
    ("pinterest", "Board not found", "the account's boards"),
    ("pinterest", "Board section not found", "the account's boards"),
    ("reddit", "has no flair", "a subreddit's flairs"),
    ("reddit", "no subreddit of this name", "whether a subreddit exists"),
    ("reddit", "SUBREDDIT_NOEXIST", "whether a subreddit exists"),
    ("threads", "does not exist, cannot be loaded", "whether the quoted post exists"),
    ("threads", "needs the permission threads_", "the scopes of the account, which the test does not pass"),
    ("tiktok", "the creator may choose a privacy_level of", "the creator's options"),
    ("x", "duplicate content", "what the account has published"),
    ("x", "You are not permitted to perform this action", "whether the quoted post exists"),
    ("youtube", "invalidCategoryId", "the categories"),
    ("youtube", "the channel has no playlist", "the channel's playlists"),
];

/// Texts of settings without a form, and of posts.
const WORDS: &[&str] =
    &["", " ", "a", "Dawn", "the 5 o'clock #dawn", "été 漢字 🎉", "<b>&amp;</b>", "@ada", "a\tb\nc", "\\"];

/// Values of settings that are URLs.
const ADDRESSES: &[&str] = &[
    "https://example.com",
    "http://example.com:8080/a?b=c&d=%20#e",
    "https://",
    "https://example.com/a b",
    "https://www.facebook.com/zuck",
    "https://example.com/été",
    "ftp://example.com",
    "example.com",
];

/// Values of settings that are languages.
const LANGUAGES: &[&str] = &["en", "de-DE", "zh-Hant-TW", "en_US", "english", "e", "xx-", "x-klingon"];

/// Values of settings with another form: of those, the ones that have it are chosen.
const FORMS: &[&str] = &[
    "1",
    "17841400000000001",
    "US",
    "DE",
    "t3_abc123",
    "2030-01-31",
    "2030-01-31T09:00",
    "2030-01-30T09:00:30",
    "#ff00aa",
    "at://did:plc:abc/app.bsky.feed.post/3k",
    "https://bsky.app/profile/ada.test/post/3k",
    "urn:li:person:abc",
    "urn:li:organization:17",
    "urn:li:share:7",
    "ada",
    "name-1",
    "00:00:01,000",
    "public_domain",
    "12:30",
];

pub(crate) static CASES: [Case; 1] = cases![what_the_check_allows_is_taken];

struct Maker<'a> {
    actor: &'a Actor,
    random: StdRng,
}

impl Maker<'_> {
    fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        all.choose(&mut self.random).expect("a list with items")
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    /// Returns a text of up to `max` characters.
    fn text(&mut self, max: usize) -> String {
        let mut text = match self.random.random_range(0..8) {
            0 => (*self.choose(WORDS)).repeat(self.random.random_range(1..4)),
            1 => "#a ".repeat(self.random.random_range(1..40)),
            2 => "@ada.example ".repeat(self.random.random_range(1..30)),
            3 => (0..self.random.random_range(1..9)).map(|n| format!("https://example.com/{n} ")).collect(),
            // With a number, since platforms refuse a text that was just published.
            4 => self.random.random::<u32>().to_string() + &"a".repeat(max.min(12_000)),
            5 => "’é漢🎉".chars().cycle().take(self.random.random_range(1..=max.clamp(1, 3_000))).collect(),
            _ => (*self.choose(WORDS)).to_owned(),
        };
        if let Some((at, _)) = text.char_indices().nth(max) {
            text.truncate(at);
        }
        text
    }

    /// Returns a post with random text, media and settings.
    fn post(&mut self) -> Publication {
        let can = self.actor.limits();
        let text = self.text(can.text.max);
        let mut post = match can.media.choose(&mut self.random) {
            Some(limit) if self.chance(60) => {
                let (least, most) = ((*limit.count.start()).max(1), (*limit.count.end()).max(1));
                let count = if self.chance(50) { least } else { self.random.random_range(least..=most) };
                self.actor.post_with(&text, limit.kind, count)
            }
            _ => self.actor.post_with(&text, MediaKind::Image, 0),
        };
        let schema = (self.actor.platform.settings)();
        let mut settings = Map::new();
        if self.chance(40) {
            for medium in post.media.iter_mut().filter(|medium| medium.kind == MediaKind::Image) {
                let any = [self.random.random_range(1..5_000), self.random.random_range(1..5_000)];
                let [width, height] = *self.choose(&[any, any, [640, 640], [40, 1_000], [9_000, 300]]);
                *medium = self.actor.picture(width, height);
            }
            let fittings = schema["properties"]["fit"]["enum"].as_array();
            if let Some(fittings) = fittings.filter(|_| self.chance(70)) {
                settings.insert("fit".to_owned(), self.choose(fittings).clone());
            }
        }
        for index in 0..post.media.len() {
            if self.chance(30) {
                post.media[index].alt_text = Some(self.text(400));
            }
        }
        let names: Vec<_> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        for _ in 0..self.random.random_range(0..4) {
            let Some(name) = names.choose(&mut self.random) else { break };
            let value = self.value(&schema["properties"][name], name, &post);
            settings.insert(name.clone(), value);
        }
        post.settings = Value::Object(settings);
        post
    }

    /// Returns a value for a setting with this schema.
    fn value(&mut self, schema: &Value, name: &str, post: &Publication) -> Value {
        if let Some(options) = schema["enum"].as_array() {
            return self.choose(options).clone();
        }
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => json!(self.chance(70)),
            "integer" | "number" => {
                let least = schema["minimum"].as_i64().unwrap_or_default();
                let most = schema["maximum"].as_i64().unwrap_or(10_000_000);
                let middle = self.random.random_range(least..=most);
                json!(*self.choose(&[least, least + 1, middle, most, 1_000.clamp(least, most)]))
            }
            "array" => {
                let most = schema["maxItems"].as_u64().unwrap_or(5).min(5);
                let least = schema["minItems"].as_u64().unwrap_or_default().min(most);
                let count = self.random.random_range(least..=most);
                (0..count).map(|_| self.value(&schema["items"], name, post)).collect()
            }
            "object" => {
                let required: Vec<_> = schema["required"].as_array().into_iter().flatten().cloned().collect();
                let mut made = Map::new();
                for (name, part) in schema["properties"].as_object().into_iter().flatten() {
                    if required.contains(&json!(name)) || self.chance(50) {
                        made.insert(name.clone(), self.value(part, name, post));
                    }
                }
                Value::Object(made)
            }
            _ => json!(self.word(schema, name, post)),
        }
    }

    fn word(&mut self, schema: &Value, name: &str, post: &Publication) -> String {
        if ["cover", "media", "media_id"].contains(&name) && !post.media.is_empty() && self.chance(80) {
            return self.choose(&post.media).id.to_string();
        }
        if schema["format"] == "uri" {
            return (*self.choose(ADDRESSES)).to_owned();
        }
        if schema["format"] == "date-time" {
            return (*self.choose(&["2030-01-31T09:00:00Z", "2020-01-31T09:00:00+02:00"])).to_owned();
        }
        if name.to_lowercase().contains("language") {
            return (*self.choose(LANGUAGES)).to_owned();
        }
        if let Some(pattern) = schema["pattern"].as_str() {
            let form = regex::Regex::new(pattern).expect("a pattern");
            let fitting: Vec<_> =
                FORMS.iter().chain(WORDS).filter(|word| form.is_match(word)).copied().collect();
            return fitting.choose(&mut self.random).copied().unwrap_or_default().to_owned();
        }
        let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(200)).unwrap_or(200);
        let text = self.text(most);
        if text.is_empty() && schema["minLength"].as_u64().is_some() { "a".to_owned() } else { text }
    }
}

/// Publishes what the check allows.
pub(crate) async fn what_the_check_allows_is_taken(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let number = |variable: &str| std::env::var(variable).ok().map(|text| text.parse::<usize>().on(variable));
    let seed = number("FANFARE_SEED").unwrap_or(7);
    let mut maker = Maker { actor: &actor, random: StdRng::seed_from_u64(seed as u64) };
    let (mut refused, mut unforeseen) = (0, BTreeMap::<String, String>::new());
    let posts = number("FANFARE_AGREEMENT").unwrap_or(POSTS);
    for _ in 0..posts {
        let mut post = maker.post();
        post.text = actor.fit(&post.text);
        if !errors(&actor, &post.text, &post.media, &post.settings).is_empty() {
            refused += 1;
            continue;
        }
        post.media = actor.fitted(&post.media, &post.settings);
        let Err(failure) = actor.publish(&post).await else { continue };
        // Neither is a refusal for good: too many calls, and files at addresses where none is.
        let is_passing = !matches!(failure.code, ErrorCode::Rejected(_));
        let is_known = LOOKED_UP.iter().any(|(of, part, _)| *of == name && failure.message.contains(part));
        if !is_passing && !is_known {
            let kinds: Vec<_> = post.media.iter().map(|medium| medium.kind.as_str()).collect();
            let text: String = post.text.chars().take(80).collect();
            unforeseen
                .entry(format!("{}: {}", failure.code, failure.message))
                .or_insert(format!("{text:?} {kinds:?} {}", post.settings));
        }
    }
    assert!(refused < posts * 9 / 10, "{name}: the check refused {refused} of {posts}");
    assert!(unforeseen.is_empty(), "{name}, seed {seed}, refuses what the check allows: {unforeseen:#?}");
}
