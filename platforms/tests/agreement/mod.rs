//! Agreement of the check with the platforms: what the check allows, the simulator takes.
//!
//! The simulators are written from the platforms' documentation and share no rule with the adapters. Posts are made at
//! random, from the schema of the settings and the limits of media: each that the check has no error for is published.
//! A refusal is a rule that an author would have learnt too late. A look-up asks
//! for what only the platform knows; what it can't foresee either is in [`UNFORESEEN`].
//!
//! `FANFARE_SEED` selects other posts, `FANFARE_AGREEMENT` their number for each seed.

mod rules;
mod samples;
mod settings;

use self::{rules::each_rule_about_content_is_checked, settings::no_setting_is_dropped_in_silence};
use crate::{
    errors,
    fixtures::{Actor, Kept, Named, World},
    trials::{Case, cases},
};
use domain::{ErrorCode, Severity};
use platforms::{
    Adapter, MediaKind, PublishRequest,
    look_up::{NOT_ALLOWED, NOT_FOUND, REQUIRED},
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Seeds of the posts, unless another is given.
const SEEDS: [u64; 4] = [7, 8, 9, 10];
/// Posts that are made of each seed for each platform.
const POSTS: usize = 15;

/// Refusals that neither the check nor a look-up foresees for certain: the platform, a part of its message, and why.
const UNFORESEEN: &[(&str, &str, &str)] = &[
    ("linkedin", "Content is a duplicate", "what the account has published"),
    ("linkedin", "The post that is to be shared does not exist", "a look-up may not see posts: it warns"),
    (
        "threads",
        "does not exist, cannot be loaded",
        "the same for a post that may not be seen: a look-up warns",
    ),
    ("threads", "needs the permission threads_", "the scopes of the account, which the test does not pass"),
    ("x", "duplicate content", "what the account has published"),
];

/// Settings that only the platform can judge: the platform, its settings, and what a look-up finds. `BOARD` stands for
/// one of the account's boards.
type Sample = (&'static str, fn() -> Value, Severity, &'static str);
const SAMPLES: &[Sample] = &[
    ("bluesky", || json!({ "quote": "at://did:plc:abc/app.bsky.feed.post/3k" }), Severity::Error, NOT_FOUND),
    ("linkedin", || json!({ "organization_id": "1" }), Severity::Error, NOT_ALLOWED),
    ("linkedin", || json!({ "reshare": "urn:li:share:7" }), Severity::Warning, NOT_FOUND),
    ("pinterest", || json!({ "board_id": "1" }), Severity::Error, NOT_FOUND),
    ("pinterest", || json!({ "board_id": "BOARD", "board_section_id": "1" }), Severity::Error, NOT_FOUND),
    ("reddit", || json!({ "subreddit": "missing" }), Severity::Error, NOT_FOUND),
    ("reddit", || json!({ "subreddit": "private" }), Severity::Error, NOT_ALLOWED),
    ("reddit", || json!({ "subreddit": "linksonly" }), Severity::Error, NOT_ALLOWED),
    ("reddit", || json!({ "subreddit": "test", "flair": "nothing" }), Severity::Error, NOT_FOUND),
    ("reddit", || json!({ "flair": "News" }), Severity::Error, NOT_FOUND),
    ("reddit", || json!({ "subreddit": "r/flaired" }), Severity::Error, REQUIRED),
    ("threads", || json!({ "quote_post_id": "1" }), Severity::Warning, NOT_FOUND),
    ("tiktok", || json!({ "privacy_level": "FOLLOWER_OF_CREATOR" }), Severity::Error, NOT_ALLOWED),
    ("x", || json!({ "quote_tweet_id": "1" }), Severity::Error, NOT_FOUND),
    ("youtube", || json!({ "category": "21" }), Severity::Error, NOT_FOUND),
    ("youtube", || json!({ "category": "100000" }), Severity::Error, NOT_FOUND),
    ("youtube", || json!({ "playlist": "PLnothing" }), Severity::Error, NOT_FOUND),
    ("youtube", || json!({ "playlists": ["PLnothing"] }), Severity::Error, NOT_FOUND),
];

/// Makes settings.
type MakeSettings = fn() -> Value;

/// Settings that a look-up has nothing against.
const FINE: &[(&str, MakeSettings)] = &[
    ("pinterest", || json!({ "board_id": "BOARD" })),
    ("reddit", || json!({ "subreddit": "r/flaired", "flair": "news" })),
    ("reddit", || json!({ "subreddit": "test" })),
    ("tiktok", || json!({ "privacy_level": "SELF_ONLY" })),
    ("youtube", || json!({ "category": "22" })),
];

/// Texts of settings without a form, and of posts.
const WORDS: &[&str] =
    &["", " ", "a", "Dawn", "the 5 o'clock #dawn", "été 漢字 🎉", "<b>&amp;</b>", "@ada", "a\tb\nc", "\\"];

/// Values of settings that are URLs.
const ADDRESSES: &[&str] = &[
    "https://example.com",
    "http://example.com:8080/a?b=c&d=%20#e",
    "https://example.com:99999/a",
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

pub(crate) static CASES: [Case; 5] = cases![
    what_the_check_allows_is_taken,
    control_characters_are_refused_before_and_by_the_platform,
    a_look_up_tells_what_the_platform_refuses,
    no_setting_is_dropped_in_silence,
    each_rule_about_content_is_checked,
];

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
    fn post(&mut self) -> PublishRequest {
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
    fn value(&mut self, schema: &Value, name: &str, post: &PublishRequest) -> Value {
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

    fn word(&mut self, schema: &Value, name: &str, post: &PublishRequest) -> String {
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
    let seeds = number("FANFARE_SEED").map_or(SEEDS.to_vec(), |seed| vec![seed as u64]);
    let (mut refused, mut unforeseen) = (0, BTreeMap::<String, String>::new());
    let posts = number("FANFARE_AGREEMENT").unwrap_or(POSTS);
    for seed in &seeds {
        let mut maker = Maker { actor: &actor, random: StdRng::seed_from_u64(*seed) };
        for _ in 0..posts {
            let mut post = maker.post();
            post.text = actor.fit(&post.text);
            if !errors(&actor, &post.text, &post.media, &post.settings).is_empty() {
                refused += 1;
                continue;
            }
            post.media = actor.fitted(&post.media, &post.settings);
            let (issues, _) = actor.look_up(&post).await;
            let refusal = issues.iter().find(|issue| issue.severity == Severity::Error);
            let failure = match (actor.publish(&post).await, refusal) {
                (Ok(_), None) => continue,
                (Ok(_), Some(issue)) => {
                    panic!("{name} takes what a look-up refuses: {issue:?} {}", post.settings)
                }
                (Err(failure), Some(_)) if matches!(failure.code, ErrorCode::Rejected(_)) => continue,
                (Err(failure), _) => failure,
            };
            // Neither is a refusal for good: too many calls, and files at addresses where none is.
            let is_passing = !matches!(failure.code, ErrorCode::Rejected(_));
            let is_known =
                UNFORESEEN.iter().any(|(of, part, _)| *of == name && failure.message.contains(part));
            if !is_passing && !is_known {
                let kinds: Vec<_> = post.media.iter().map(|medium| medium.kind.as_str()).collect();
                let text: String = post.text.chars().take(80).collect();
                unforeseen
                    .entry(format!("{}: {}", failure.code, failure.message))
                    .or_insert(format!("seed {seed}: {text:?} {kinds:?} {}", post.settings));
            }
        }
    }
    let all = posts * seeds.len();
    assert!(refused < all * 9 / 10, "{name}: the check refused {refused} of {all}");
    assert!(unforeseen.is_empty(), "{name} refuses what the check allows: {unforeseen:#?}");
}

/// Publishes texts, alt texts and settings with a control character, each of which the check refuses as well.
pub(crate) async fn control_characters_are_refused_before_and_by_the_platform(platform: &'static Adapter) {
    const WRONG: &str = "a\u{b}b";
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let plain = actor.post("a b");
    let mut wrong = Vec::new();
    if actor.limits().text.max > 0 {
        wrong.push(PublishRequest { text: WRONG.to_owned(), ..plain.clone() });
    }
    let schema = (platform.settings)();
    for (setting, part) in schema["properties"].as_object().into_iter().flatten() {
        let has_form = ["enum", "pattern", "format"].iter().any(|one| part.get(one).is_some());
        if part["type"] == "string" && !has_form {
            let mut post = plain.clone();
            post.settings[setting] = json!(WRONG);
            assert!(!errors(&actor, "a b", &post.media, &post.settings).is_empty(), "{name}: {setting}");
        }
    }
    let described =
        actor.publishable().await.into_iter().find(|limit| actor.limits().supports_alt_text(limit.kind));
    if let Some(limit) = described {
        let mut post = actor.post_with("a b", limit.kind, (*limit.count.start()).max(1));
        post.media[0].alt_text = Some(WRONG.to_owned());
        let found = errors(&actor, &post.text, &post.media, &post.settings);
        assert_eq!(found, ["text_character_not_supported"], "{name}: {post:?}");
        // The adapter of X publishes a post without a description that X refuses.
        if name != "x" {
            wrong.push(post);
        }
    }
    let before = actor.accepted().await;
    for post in wrong {
        let found = errors(&actor, &post.text, &post.media, &post.settings);
        assert_eq!(found, ["text_character_not_supported"], "{name}: {post:?}");
        let failure = actor.publish(&post).await.expect_err(&format!("{name}: {post:?}"));
        assert_eq!(failure.code, ErrorCode::Rejected(400), "{name}: {failure}");
    }
    assert_eq!(actor.accepted().await, before, "{name}");
    actor.publish(&plain).await.on(name);
}

/// Looks up what only the platform can judge, and publishes it.
pub(crate) async fn a_look_up_tells_what_the_platform_refuses(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    for (_, settings, severity, code) in SAMPLES.iter().filter(|(of, ..)| *of == name) {
        let mut post = actor.post("a post");
        post.settings = with_board(&actor, settings()).await;
        assert!(
            errors(&actor, &post.text, &post.media, &post.settings).is_empty(),
            "{name}: {}",
            post.settings
        );
        let (issues, failure) = actor.look_up(&post).await;
        let found: Vec<_> = issues.iter().map(|issue| (issue.severity, &*issue.code)).collect();
        assert_eq!(found, [(*severity, *code)], "{name}: {} {issues:?} {failure:?}", post.settings);
        assert_eq!(failure, None, "{name}: {}", post.settings);
        assert_eq!(actor.accepted().await, 0, "{name}: a look-up only reads");
        let refused = actor.publish(&post).await.expect_err(&format!("{name}: {}", post.settings));
        assert!(matches!(refused.code, ErrorCode::Rejected(_)), "{name}: {} {refused}", post.settings);
    }
    for (_, settings) in FINE.iter().filter(|(of, _)| *of == name) {
        let mut post = actor.post("a post");
        post.settings = with_board(&actor, settings()).await;
        assert_eq!(actor.look_up(&post).await, (Vec::new(), None), "{name}: {}", post.settings);
        actor.publish(&post).await.on(name);
    }
}

/// Replaces the name `BOARD` by the id of the account's first board.
async fn with_board(actor: &Actor, mut settings: Value) -> Value {
    if settings["board_id"] == "BOARD" {
        let (keep, options) = (Kept::default(), actor.platform.options.expect("boards"));
        let boards = options.options(&actor.session(&keep), "boards", None).await.on(actor.name());
        settings["board_id"] = json!(boards[0].id);
    }
    settings
}
