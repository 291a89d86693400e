//! Parts of the bodies about a post: texts, media, and a block of settings and overrides for each platform.
//!
//! A new post, a proposal, an edit and a profile share these parts, and the checks that need nothing but the body. A
//! block is under `config` or at the top level; its settings are validated against the platform's schema once the
//! accounts are resolved.

use crate::{
    accounts::resolve::QUEUED_FROM_ACCOUNT,
    http::{
        self,
        problem::{Issue, MAX_ISSUES, Problem, Segment},
    },
    openapi::{
        unknown::{self, Unknown},
        validate::{NEVER, Rules, Schema, limit_size},
    },
    types::{bounded_string::Text, metadata, scalar::scalar, time_zone, timestamp::Timestamp, url::Link},
};
use domain::{
    json::type_name,
    overrides::{ACCOUNTS, MEMBERS, MEMBERS_OF_ACCOUNT},
};
use poem_openapi::{
    Object,
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON},
};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};

/// Maximum size of a platform's block as JSON, in bytes.
pub(crate) const MAX_BLOCK_BYTES: usize = 64 << 10;
/// Maximum number of keys in a platform's block.
pub(crate) const MAX_BLOCK_KEYS: usize = 200;
/// Maximum number of accounts with overrides in a block.
pub(crate) const MAX_ACCOUNTS: usize = 100;

/// A text with media: the main post or a reply.
#[derive(Clone, Debug, Object)]
#[oai(rename = "NewContainer")]
pub struct NewText {
    /// Text; may be empty if there are media.
    #[oai(validator(max_length = 100000))]
    pub content: String,
    /// Media published with the text, in order.
    #[oai(default, validator(max_items = 100))]
    pub media: Vec<NewMedia>,
}

/// A media asset of a container: one that exists, by its id, or a file to fetch, by its address.
#[derive(Clone, Debug, Object)]
#[oai(rename = "NewContainerMedia")]
pub struct NewMedia {
    /// Id of a media asset.
    #[oai(validator(max_length = 255))]
    pub id: Option<String>,
    /// `https` URL on the public internet, of a file that becomes a media asset of its own. Targets wait until it has
    /// been fetched.
    #[oai(validator(max_length = 8192))]
    pub url: Option<Link>,
    /// Alt text.
    #[oai(validator(max_length = 5000))]
    pub alt_text: Option<String>,
}

/// Blocks by platform. A closed set, under `config`, allows no other keys; an open set, at the top level, is
/// mixed with the body's other fields. The blocks of a post hold overrides besides settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks<const CLOSED: bool, const OF_POST: bool = true>(pub(crate) Map<String, Value>);

/// The blocks under `config`.
pub type Config = Blocks<true>;
/// The blocks at the top level.
pub type TopLevel = Blocks<false>;
/// The blocks of a profile, which are settings only.
pub type Defaults = Blocks<true, false>;

impl<const CLOSED: bool, const OF_POST: bool> Blocks<CLOSED, OF_POST> {
    /// Platforms that have a block.
    pub fn platforms(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Overrides of the post's content, media and time, for a platform or for one account.
#[derive(Clone, Debug, Default, Object)]
pub struct Overrides {
    /// Text of the main container; replies stay.
    #[oai(validator(max_length = 100000))]
    pub content: Option<String>,
    /// Media of the main container, in order; an empty list for none.
    #[oai(validator(max_items = 100))]
    pub media: Option<Vec<NewMedia>>,
    /// The main post and its replies, in order; replaces all containers and their media.
    #[oai(validator(min_items = 1, max_items = 10))]
    pub containers: Option<Vec<NewText>>,
    /// Time to publish, in ISO 8601, UTC without an offset; not before the post's.
    pub scheduled_at: Option<Timestamp>,
}

impl Rules for Overrides {
    const REFUSES_SLIPS: bool = true;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let given = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
        for other in ["content", "media"].into_iter().filter(|other| given("containers") && given(other)) {
            issues.push(Issue::custom(["containers"], format!("Can't be combined with {other}")));
        }
        for (name, member) in body {
            match name.as_str() {
                "media" => check_sources(member, &["media".into()], issues),
                "containers" => check_media(member, &["containers".into()], issues),
                _ => {}
            }
        }
    }
}

impl Overrides {
    /// Reads the overrides among the members of a block that was checked before it was stored.
    pub(crate) fn read(block: &Value) -> Result<Self, String> {
        Self::parse_from_json(Some(own_members(block))).map_err(ParseError::into_message)
    }

    /// Returns all media that are named.
    pub(crate) fn media(&self) -> impl Iterator<Item = &NewMedia> {
        let texts = self.containers.iter().flatten().flat_map(|text| &text.media);
        self.media.iter().flatten().chain(texts)
    }

    /// Returns true if something of the content is replaced.
    pub(crate) fn has_content(&self) -> bool {
        self.content.is_some() || self.media.is_some() || self.containers.is_some()
    }
}

/// Returns the members of a post's body in which members that stand beside them may have been meant.
pub(crate) fn homes() -> Vec<(&'static str, Arc<Schema>)> {
    vec![("containers", Schema::of::<NewText>())]
}

/// Returns the accounts that a body names.
pub(crate) fn named(accounts: Option<&[Text<255, 0>]>) -> Option<Vec<String>> {
    Some(accounts?.iter().map(|entry| entry.0.clone()).collect())
}

/// Reports fields that exclude each other, in a new post or an edit.
pub(crate) fn check_combinations(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
    let given = |key: &str| body.get(key).filter(|value| !value.is_null());
    if given("content").is_some() && given("containers").is_some() {
        issues.push(Issue::custom(["containers"], "Only one of content and containers can be given"));
    }
    if let Some(containers) = given("containers") {
        check_media(containers, &["containers".into()], issues);
    }
    let containers = given("containers").and_then(Value::as_array).into_iter().flatten();
    for (index, container) in containers.take(MAX_ISSUES).enumerate() {
        let has_media = container["media"].as_array().is_some_and(|media| !media.is_empty());
        if container["content"] == "" && !has_media {
            let path = [Segment::from("containers"), index.into(), "content".into()];
            let message = "String must contain at least 1 character(s) where there is no media";
            let issue = Issue::new(path, "too_small", message);
            issues.push(issue.with("minimum", 1).with("type", "string").with("inclusive", true));
        }
    }
    if given(QUEUED_FROM_ACCOUNT).is_some() {
        let path = [QUEUED_FROM_ACCOUNT];
        if given("scheduled_at").is_some() {
            issues.push(Issue::custom(path, "Can't be combined with scheduled_at"));
        }
        if given("is_draft") == Some(&Value::Bool(true)) {
            issues.push(Issue::custom(path, "Can't be combined with is_draft"));
        }
    }
    time_zone::check(body, "queue_timezone", issues);
    check_size(body, "config", issues);
    check_overrides(body, "config", issues);
    metadata::check(body, "metadata", issues);
}

/// Reports media of containers that do not have one of `id` and `url`.
pub(crate) fn check_media(containers: &Value, path: &[Segment], issues: &mut Vec<Issue>) {
    for (index, container) in containers.as_array().into_iter().flatten().enumerate() {
        let path = [path, &[index.into(), "media".into()]].concat();
        check_sources(&container["media"], &path, issues);
    }
}

/// Reports items of a list of media that do not have one of `id` and `url`.
pub(crate) fn check_sources(media: &Value, path: &[Segment], issues: &mut Vec<Issue>) {
    let items = media.as_array().into_iter().flatten().take(MAX_ISSUES).enumerate();
    for (index, item) in items.filter(|(_, item)| item.is_object()) {
        let at = |member: &str| [path, &[index.into(), member.into()]].concat();
        match (item["id"].is_null(), item["url"].is_null()) {
            (true, true) => issues.push(Issue::wrong_type(&at("id"), "string", "undefined")),
            (false, false) => issues.push(Issue::custom(at("url"), "Can't be combined with id")),
            _ => {}
        }
    }
}

/// Reports blocks that are too large, both at the top level and under `member`.
pub(crate) fn check_size(body: &Map<String, Value>, member: &str, issues: &mut Vec<Issue>) {
    for id in platforms::IDS {
        if let Some(block) = body.get(id) {
            limit_size(block, MAX_BLOCK_BYTES, [id], issues);
        }
        if let Some(block) = body.get(member).and_then(|blocks| blocks.get(id)) {
            limit_size(block, MAX_BLOCK_BYTES, [member, id], issues);
        }
    }
}

/// Reports overrides that can't be read, and names that resemble those of overrides or settings, in the blocks at the
/// top level and under `member`.
pub(crate) fn check_overrides(body: &Map<String, Value>, member: &str, issues: &mut Vec<Issue>) {
    for (_, path, block) in blocks(body, member) {
        check_block(block, &path, issues);
    }
    issues.extend(unknown::issues(&unknown_members(body, member), false));
}

/// The blocks of the platforms at the top level and under `member`, with the platforms' ids and the blocks' paths.
fn blocks<'a>(
    body: &'a Map<String, Value>,
    member: &'a str,
) -> impl Iterator<Item = (&'static str, Vec<Segment>, &'a Value)> {
    platforms::IDS.into_iter().flat_map(move |id| {
        let top_level = body.get(id).map(|block| (id, vec![Segment::from(id)], block));
        let nested = body.get(member).and_then(|blocks| blocks.get(id));
        let nested = nested.map(|block| (id, vec![Segment::from(member), id.into()], block));
        top_level.into_iter().chain(nested)
    })
}

/// Returns the members of blocks that are neither overrides nor settings of their platform.
pub(crate) fn unknown_members(body: &Map<String, Value>, member: &str) -> Vec<Unknown> {
    let (of_block, of_account): (&[&str], &[&str]) = (&MEMBERS, &MEMBERS_OF_ACCOUNT);
    let mut found = Vec::new();
    for (id, path, block) in blocks(body, member) {
        let (Some(platform), Value::Object(block)) = (platforms::get(id), block) else { continue };
        let schema = platforms::check::schema(platform);
        let settings =
            || schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let accounts = block.get(ACCOUNTS).and_then(Value::as_object).into_iter().flatten();
        let accounts = accounts.filter_map(|(key, own)| {
            let path = [&path[..], &[ACCOUNTS.into(), key.as_str().into()]].concat();
            Some((path, own.as_object()?, of_account))
        });
        for (path, block, members) in std::iter::once((path.clone(), block, of_block)).chain(accounts) {
            if unknown::is_full(&found) {
                return found;
            }
            let known: Vec<_> = settings().chain(members.iter().copied()).collect();
            let all = unknown::beside(block, &known).into_iter().chain(unknown::below(block, &schema));
            found.extend(all.map(|unknown| unknown.under(&path)));
        }
    }
    found
}

fn check_block(block: &Value, path: &[Segment], issues: &mut Vec<Issue>) {
    let report = |value: &Value, path: &[Segment]| {
        let found = http::body::check::<Overrides>(&own_members(value)).into_iter();
        found.map(|issue| issue.under(path)).collect::<Vec<_>>()
    };
    issues.extend(report(block, path));
    match block.get(ACCOUNTS) {
        None | Some(Value::Null) => {}
        Some(Value::Object(accounts)) => {
            for (key, block) in accounts.iter().take(MAX_ACCOUNTS) {
                let path = [path, &[ACCOUNTS.into(), key.as_str().into()]].concat();
                if block.is_object() {
                    issues.extend(report(block, &path));
                } else {
                    issues.push(Issue::wrong_type(&path, "object", type_name(block)));
                }
            }
            if accounts.len() > MAX_ACCOUNTS {
                let message = format!("Object must contain at most {MAX_ACCOUNTS} key(s)");
                let issue = Issue::new([path, &[ACCOUNTS.into()]].concat(), "too_big", message);
                let issue = issue.with("maximum", MAX_ACCOUNTS);
                issues.push(issue.with("type", "object").with("inclusive", true));
            }
        }
        Some(other) => {
            let path = [path, &[ACCOUNTS.into()]].concat();
            issues.push(Issue::wrong_type(&path, "object", type_name(other)));
        }
    }
}

/// The overrides of a block, without its settings and without those of single accounts.
fn own_members(block: &Value) -> Value {
    let is_own = |(name, _): &(&String, &Value)| MEMBERS_OF_ACCOUNT.contains(&name.as_str());
    let own = block.as_object().into_iter().flatten().filter(is_own);
    Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Places of the checked values in the request, for the paths of issues.
#[derive(Default)]
pub struct SourcePaths {
    /// True if the text was in `content`, not in `containers`.
    is_single: bool,
    /// Platforms whose settings were at the top level, not under `config`.
    top_level: BTreeSet<String>,
    /// Platforms whose settings were under `config`.
    config: BTreeSet<String>,
}

impl SourcePaths {
    /// Records where a request had its values; a block under `config` replaces one at the top level.
    pub fn of(is_single: bool, top_level: &TopLevel, config: &Config) -> Self {
        let config: BTreeSet<_> = config.platforms().map(str::to_owned).collect();
        let top_level = top_level.platforms().map(str::to_owned);
        Self {
            is_single,
            top_level: top_level.filter(|platform| !config.contains(platform)).collect(),
            config,
        }
    }

    /// Returns true if the request had settings of a platform.
    pub(crate) fn has_block(&self, platform: &str) -> bool {
        self.top_level.contains(platform) || self.config.contains(platform)
    }

    /// Leads the paths of a problem's issues to where the caller wrote the values.
    pub(crate) fn lead(&self, mut problem: Problem) -> Problem {
        for issue in &mut problem.issues {
            issue.path = self.path(std::mem::take(&mut issue.path));
        }
        problem
    }

    /// Leads a path to where the caller wrote the value.
    pub(crate) fn path(&self, path: Vec<Segment>) -> Vec<Segment> {
        match &path[..] {
            [Segment::Key(key), _, rest @ ..] if self.is_single && key == "containers" => rest.to_vec(),
            [Segment::Key(key), Segment::Key(platform), ..]
                if key == "config" && self.top_level.contains(platform) =>
            {
                path[1..].to_vec()
            }
            _ => path,
        }
    }
}

impl<const CLOSED: bool, const OF_POST: bool> Blocks<CLOSED, OF_POST> {
    /// Name of the schema in the document.
    pub(crate) const NAME: &str = match (CLOSED, OF_POST) {
        (true, true) => "PlatformConfig",
        (false, _) => "PlatformBlocks",
        (true, false) => "PlatformDefaults",
    };
}

scalar! {
    [const CLOSED: bool, const OF_POST: bool] Blocks<CLOSED, OF_POST> {
        name: Self::NAME,
        schema: MetaSchemaRef::Reference(Self::NAME.to_owned()),
        register: |registry| {
            let block = || MetaSchema {
                description: Some(
                    "Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema",
                ),
                additional_properties: Some(Box::new(MetaSchemaRef::Inline(Box::new(MetaSchema::ANY)))),
                max_properties: Some(MAX_BLOCK_KEYS),
                ..MetaSchema::new("object")
            };
            let closed = || Box::new(MetaSchemaRef::Inline(Box::new(MetaSchema::new(NEVER))));
            registry.create_schema::<Self, _>(Self::NAME.to_owned(), |_| MetaSchema {
                description: Some("Settings by platform"),
                properties: platforms::IDS.map(|id| (id, MetaSchemaRef::Inline(Box::new(block())))).to_vec(),
                additional_properties: CLOSED.then(closed),
                ..MetaSchema::new("object")
            });
        },
        parse: |value| match value {
            Value::Object(object) => {
                let is_block = |(id, block): &(String, Value)| {
                    platforms::IDS.contains(&id.as_str()) && block.is_object()
                };
                Ok(Self(object.into_iter().filter(is_block).collect()))
            }
            value => Err(value),
        },
        write: |blocks| Value::Object(blocks.0.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_where_the_caller_wrote_it() {
        let containers: Vec<Segment> = vec!["containers".into(), 0.into(), "content".into()];
        let config = |platform: &str| -> Vec<Segment> { vec!["config".into(), platform.into(), "a".into()] };
        for (is_single, path, expected) in [
            (true, containers.clone(), vec!["content".into()]),
            (false, containers.clone(), containers),
            (true, config("tiktok"), vec!["tiktok".into(), "a".into()]),
            (true, config("x"), config("x")),
        ] {
            let top_level = ["tiktok".to_owned()].into();
            let source = SourcePaths { is_single, top_level, ..SourcePaths::default() };
            assert_eq!(source.path(path), expected);
        }
    }
}
