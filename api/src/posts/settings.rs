//! Platform-specific settings of a post, one block per platform: the request's, completed with those of the accounts'
//! profiles.
//!
//! Their schemas in the document are those that validation uses and `capabilities` returns.

use crate::{
    http::{
        self,
        caller::Call,
        problem::{Code, Issue, Problem},
    },
    openapi::validate::{json_size, limit_size, too_big},
    posts::{
        body::{Config, Defaults, MAX_ACCOUNTS, MAX_BLOCK_BYTES, MAX_BLOCK_KEYS, Overrides, TopLevel},
        overrides,
    },
};
use domain::{
    AccountId,
    overrides::{ACCOUNTS, MEMBERS},
};
use poem_openapi::{registry::Registry, types::Type};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ptr,
};
use store::accounts::{Account, profiles};

/// Maximum size of a block with the settings of profiles, in bytes of JSON.
const MAX_COMPLETED_BYTES: usize = 4 * MAX_BLOCK_BYTES;
/// Maximum size of the settings that the profiles of a post's accounts have for their platforms, in bytes of JSON: more than
/// twice what one profile can have.
const MAX_DEFAULTS_BYTES: usize = 2 << 20;

/// Completes the settings of a request, which has overrides by the accounts' ids, with those of the profiles of a post's
/// accounts; a post that `is_reply`, with those that concern replies.
///
/// # Errors
///
/// `unprocessable` if the profiles have too many settings for one post.
pub(crate) async fn complete(
    call: &Call<'_>,
    accounts: &[Account],
    requested: Value,
    is_reply: bool,
) -> Result<Value, Problem> {
    let wanted: BTreeSet<_> = accounts
        .iter()
        .filter_map(|account| Some((account.profile_id?, account.platform.as_str())))
        .collect();
    if wanted.is_empty() {
        return Ok(requested);
    }
    let texts = profiles::blocks(call.db(), call.owner, &wanted, MAX_DEFAULTS_BYTES).await?;
    let read: HashMap<_, _> = texts.and_then(http::body::parse_stored).ok_or_else(excessive)?;
    let block = |account: &Account| read.get(&(account.profile_id?, account.platform.clone()));
    let defaults = accounts.iter().map(|account| (account.platform.as_str(), account.id, block(account)));
    let completed = with_defaults(requested, defaults, is_reply).map_err(overrides::unusable)?;
    let mut issues = Vec::new();
    for (id, block) in completed.as_object().into_iter().flatten() {
        limit_size(block, MAX_COMPLETED_BYTES, ["config", id.as_str()], &mut issues);
    }
    if issues.is_empty() { Ok(completed) } else { Err(overrides::unusable(issues)) }
}

/// 422: the profiles of the accounts have more settings than are read for one post.
fn excessive() -> Problem {
    let message = format!(
        "The profiles of these accounts have more than {MAX_DEFAULTS_BYTES} bytes of default settings together, or \
         too many objects and lists in them; name fewer accounts, or shorten the settings of their profiles"
    );
    let detail = "the profiles of the accounts have too many settings for one post";
    Problem::new(Code::Unprocessable, detail).with_issues(vec![Issue::custom(["accounts"], message)])
}

/// The blocks of both places; a block under `config` replaces the one at the top level.
pub(crate) fn merge(top_level: TopLevel, config: Config) -> Value {
    let mut blocks = top_level.0;
    blocks.extend(config.0);
    Value::Object(blocks)
}

/// The settings of a profile.
///
/// # Errors
///
/// If a block holds overrides, which only a post can have.
pub(crate) fn defaults(config: Defaults) -> Result<Value, Problem> {
    let overridden = |(id, block): (&String, &Value)| {
        let path =
            |member| Issue::custom(["default_config", id.as_str(), member], "Can only be set in a post");
        MEMBERS.into_iter().filter(|member| !block[*member].is_null()).map(path).collect::<Vec<_>>()
    };
    let issues: Vec<_> = config.0.iter().flat_map(overridden).collect();
    if issues.is_empty() { Ok(Value::Object(config.0)) } else { Err(Problem::invalid_body(issues)) }
}

/// Updates blocks: `config` replaces all of them, a block at the top level only its own.
pub fn amend(before: &Value, top_level: TopLevel, config: Option<Config>) -> Value {
    if config.is_some() {
        return merge(top_level, config.unwrap_or_default());
    }
    let mut blocks = before.as_object().cloned().unwrap_or_default();
    blocks.extend(top_level.0);
    Value::Object(blocks)
}

/// Completes `own` with the default settings of the accounts, key by key: a platform's block with those that all of its
/// accounts share, and the blocks of single accounts with the others. `own` has these blocks by the accounts' ids.
///
/// `accounts` lists each account's platform and its profile's block for that platform. The accounts of a profile have one
/// block, which is looked at once for all of them.
///
/// # Errors
///
/// If a platform's block would have entries of too many accounts, or too large ones.
fn with_defaults<'a>(
    own: Value,
    accounts: impl IntoIterator<Item = (&'a str, AccountId, Option<&'a Value>)>,
    is_reply: bool,
) -> Result<Value, Vec<Issue>> {
    let Value::Object(mut blocks) = own else { return Ok(own) };
    let mut by_platform = BTreeMap::<&str, BTreeMap<Option<*const Value>, Group<'a>>>::new();
    for (platform, account, block) in accounts {
        let groups = by_platform.entry(platform).or_default();
        let group = groups.entry(block.map(ptr::from_ref));
        group.or_insert_with(|| Group::of(platform, block, is_reply)).accounts.push(account);
    }
    let mut issues = Vec::new();
    for (platform, groups) in by_platform {
        let groups: Vec<_> = groups.into_values().collect();
        if groups.iter().any(|group| !group.block.is_empty()) {
            let block = object(blocks.entry(platform).or_insert(Value::Null));
            issues.extend(add_defaults(block, &groups, platform).err());
        }
    }
    if issues.is_empty() { Ok(Value::Object(blocks)) } else { Err(issues) }
}

/// Accounts of a post on one platform that have the same default settings.
struct Group<'a> {
    /// The settings; empty for accounts without a profile, or whose profile has none for the platform.
    block: BTreeMap<&'a str, &'a Value>,
    accounts: Vec<AccountId>,
}

impl<'a> Group<'a> {
    fn of(platform: &str, block: Option<&'a Value>, is_reply: bool) -> Self {
        // The other defaults are for posts of their own, and the request does not have them.
        let known = platforms::get(platform).map_or(&[][..], |platform| platform.limits.reply_settings);
        let members = block.and_then(Value::as_object).into_iter().flatten();
        let members = members.filter(|(key, _)| !is_reply || known.contains(&key.as_str()));
        let block = members.map(|(key, value)| (key.as_str(), value)).collect();
        Self { block, accounts: Vec::new() }
    }
}

/// Completes a platform's block with the default settings of its accounts.
fn add_defaults(block: &mut Map<String, Value>, groups: &[Group<'_>], platform: &str) -> Result<(), Issue> {
    let Some((first, others)) = groups.split_first() else { return Ok(()) };
    let given: BTreeSet<String> = block.keys().cloned().collect();
    let mut shared = first.block.clone();
    shared.retain(|key, value| others.iter().all(|group| group.block.get(key) == Some(&*value)));
    let is_single = |key: &str| !given.contains(key) && !shared.contains_key(key);
    let own = block.get(ACCOUNTS).and_then(Value::as_object);
    // The additions are measured before anything is copied.
    let (mut entries, mut size) = (own.map_or(0, Map::len), 0);
    let mut singles = Vec::new();
    for group in groups {
        let single: Vec<_> = group
            .block
            .iter()
            .filter(|(key, _)| is_single(key))
            .map(|(key, value)| (*key, *value, key.len() + json_size(value)))
            .collect();
        if single.is_empty() {
            continue;
        }
        for account in &group.accounts {
            let entry = own.and_then(|own| own.get(&account.to_string()));
            entries += usize::from(entry.is_none());
            let is_missing = |key: &str| entry.is_none_or(|entry| entry.get(key).is_none());
            size +=
                single.iter().map(|(key, _, size)| if is_missing(key) { *size } else { 0 }).sum::<usize>();
        }
        singles.push((&group.accounts, single));
    }
    if entries > MAX_ACCOUNTS {
        let message = format!(
            "{entries} of its accounts have settings of their own, most by their profiles, and {MAX_ACCOUNTS} may"
        );
        return Err(Issue::custom(["config", platform], message));
    }
    if size > MAX_COMPLETED_BYTES {
        return Err(too_big(MAX_COMPLETED_BYTES, ["config", platform]));
    }
    fill(block, shared.iter().filter(|(key, _)| !given.contains(**key)).map(|(key, value)| (*key, *value)));
    for (accounts, single) in singles {
        for account in accounts {
            let entries = object(block.entry(ACCOUNTS).or_insert(Value::Null));
            let entry = object(entries.entry(account.to_string()).or_insert(Value::Null));
            fill(entry, single.iter().map(|(key, value, _)| (*key, *value)));
        }
    }
    Ok(())
}

/// Returns the members of a value, which becomes an object if it is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("an object")
}

/// Adds the members that a block does not have.
fn fill<'a>(block: &mut Map<String, Value>, members: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (key, value) in members {
        block.entry(key).or_insert_with(|| value.clone());
    }
}

/// Adds each platform's settings schema to the document: the schema that validation uses and `capabilities`
/// returns.
pub(crate) fn describe(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the document has schemas");
    let mut registry = Registry::new();
    Overrides::register(&mut registry);
    schemas.insert(Overrides::name().into_owned(), json!(registry.schemas[&*Overrides::name()]));
    for platform in platforms::all() {
        let words = platform.id.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        let name = words.collect::<String>() + "Settings";
        let of_post = name.replace("Settings", "Config");
        let of_account = name.replace("Settings", "AccountConfig");
        let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        for (blocks, name) in [(Config::NAME, &of_post), (TopLevel::NAME, &of_post), (Defaults::NAME, &name)]
        {
            if let Some(blocks) = schemas.get_mut(blocks) {
                blocks["properties"][platform.id] = reference(name);
            }
        }
        let mut schema = platforms::check::schema(platform);
        translate(&mut schema);
        schema["description"] = json!("Settings of this platform; other members are stored and ignored");
        schema["maxProperties"] = json!(MAX_BLOCK_KEYS);
        let account = json!({
            "description": "Settings of an account, and what replaces the post's content and time on it",
            "allOf": [reference(&name), reference(&Overrides::name())],
        });
        let accounts = json!({
            "type": "object",
            "description": "The same for single accounts, by id, username or platform-side id; takes precedence",
            "maxProperties": MAX_ACCOUNTS,
            "additionalProperties": reference(&of_account),
        });
        let post = json!({
            "description": "Settings of this platform, and what replaces the post's content and time on it",
            "allOf": [reference(&name), reference(&Overrides::name())],
            "type": "object",
            "properties": { ACCOUNTS: accounts },
        });
        schemas.insert(of_post, post);
        schemas.insert(of_account, account);
        schemas.insert(name, schema);
    }
}

/// Converts a platform's JSON Schema (2020-12) to OpenAPI 3.0. Null means absent; our annotations, which that format
/// doesn't allow, are expressed in descriptions.
fn translate(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("$schema");
    let [excludes, with, kinds, is_promise] =
        ["excludes", "with", "kinds", "isPromise"].map(|one| object.remove(one));
    let names = |list: &Option<Value>| {
        let names: Vec<_> = list.as_ref()?.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(names.join(", "))
    };
    let mut add = |sentence: String| {
        let description = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{description} {sentence}");
        object.insert("description".to_owned(), description.trim_start().into());
    };
    if let Some(others) = names(&excludes) {
        add(format!("Not together with {others}."));
    }
    if let Some(Value::String(other)) = with {
        add(format!("Only together with {other}."));
    }
    if let Some(kinds) = names(&kinds) {
        let otherwise = if is_promise.is_some() { "refused" } else { "not used" };
        add(format!("Only for posts of kind {kinds}; {otherwise} for others."));
    } else if is_promise.is_some() {
        add("Refused for a reply, which does not use it.".to_owned());
    }
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, part) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        translate(part);
        if !required.contains(&json!(name)) {
            part["nullable"] = json!(true);
            // In OpenAPI 3.0 the enumeration must list null as well.
            if let Some(options) = part.get_mut("enum").and_then(Value::as_array_mut) {
                options.push(Value::Null);
            }
        }
    }
    if let Some(items) = object.get_mut("items") {
        translate(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::samples::path;
    use poem_openapi::types::ParseFromJSON;
    use uuid::Uuid;

    #[test]
    fn config_wins_over_the_top_level_block_as_a_whole() {
        let body = json!({"content": "a", "x": {"a": 1, "b": 1}, "tiktok": {"c": 1}, "reddit": null});
        let top_level = TopLevel::parse_from_json(Some(body)).unwrap();
        let config = Config::parse_from_json(Some(json!({"x": {"a": 2}, "youtube": null}))).unwrap();
        assert_eq!(merge(top_level, config), json!({"x": {"a": 2}, "tiktok": {"c": 1}}));
        assert_eq!(merge(TopLevel::default(), Config::default()), json!({}));
    }

    #[test]
    fn a_posts_settings_are_completed_by_those_of_its_accounts_profiles() {
        let (ada, bob) = (AccountId(Uuid::from_u128(1)), AccountId(Uuid::from_u128(2)));
        let (one, other) = (json!({"a": 1, "b": {"c": 1}}), json!({"a": 2, "b": {"c": 1}, "d": 1}));
        let of = |first: Value, second: Value| json!({ ada.to_string(): first, bob.to_string(): second });
        let (single, only) = (of(json!({"a": 1}), json!({"a": 2, "d": 1})), json!({ ada.to_string(): one }));
        for (own, accounts, expected) in [
            (json!({}), vec![("x", ada, Some(&one))], json!({"x": one})),
            (
                json!({"x": {"b": 0, "e": 0}}),
                vec![("x", ada, Some(&one))],
                json!({"x": {"a": 1, "b": 0, "e": 0}}),
            ),
            // Each account keeps its own, and none gets another's.
            (
                json!({}),
                vec![("x", ada, Some(&one)), ("x", bob, Some(&other))],
                json!({"x": {"b": {"c": 1}, "accounts": single}}),
            ),
            (json!({}), vec![("x", ada, Some(&one)), ("x", bob, None)], json!({"x": {"accounts": only}})),
            // A setting of the post is one for all its accounts, and one for an account goes before its profile's.
            (
                json!({"x": {"a": 0, "accounts": of(json!({}), json!({"d": 0}))}}),
                vec![("x", ada, Some(&one)), ("x", bob, Some(&other))],
                json!({"x": {"a": 0, "b": {"c": 1}, "accounts": of(json!({}), json!({"d": 0}))}}),
            ),
            (
                json!({}),
                vec![("x", ada, Some(&one)), ("tiktok", bob, Some(&other))],
                json!({"x": one, "tiktok": other}),
            ),
            (json!({"reddit": {}, "x": {}}), vec![("x", ada, None)], json!({"reddit": {}, "x": {}})),
            (json!({}), vec![("x", ada, Some(&json!({})))], json!({})),
        ] {
            assert_eq!(
                with_defaults(own.clone(), accounts.clone(), false),
                Ok(expected),
                "{own} with {accounts:?}"
            );
        }
    }

    #[test]
    fn a_reply_is_completed_by_settings_for_replies_only() {
        let profile = json!({ "made_with_ai": true, "community_id": "1" });
        for (own, expected) in [
            (json!({}), json!({ "x": { "made_with_ai": true } })),
            (
                json!({ "x": { "community_id": "2" } }),
                json!({ "x": { "made_with_ai": true, "community_id": "2" } }),
            ),
        ] {
            let accounts = [("x", AccountId(Uuid::nil()), Some(&profile))];
            assert_eq!(with_defaults(own, accounts, true), Ok(expected));
        }
    }

    /// Returns a number of accounts on X whose profile has this block.
    fn accounts(
        first: u128,
        count: u128,
        block: &Value,
    ) -> impl Iterator<Item = (&str, AccountId, Option<&Value>)> {
        (first..first + count).map(move |number| ("x", AccountId(Uuid::from_u128(number)), Some(block)))
    }

    /// Compared account by account, or copied for each, these settings would take minutes and gigabytes.
    #[test]
    fn the_settings_of_a_profile_are_looked_at_once_for_all_its_accounts() {
        let block = json!({ "list": vec![1; 30_000] });
        assert_eq!(with_defaults(json!({}), accounts(1, 1000, &block), false), Ok(json!({ "x": block })));
    }

    #[test]
    fn settings_of_too_many_accounts_are_refused_before_they_are_copied() {
        let (one, other) = (json!({ "list": vec![1; 30_000] }), json!({ "list": [2] }));
        let refused = |accounts: Vec<(&str, AccountId, Option<&Value>)>| {
            let issues = with_defaults(json!({}), accounts, false).unwrap_err();
            issues.into_iter().map(|issue| (issue.path, issue.code)).collect::<Vec<_>>()
        };
        let many = accounts(1, 1000, &one).chain(accounts(2000, 1, &other));
        assert_eq!(refused(many.collect()), [(path("config.x"), "custom".to_owned())]);
        // Each has 60,000 bytes.
        let large = accounts(1, 5, &one).chain(accounts(2000, 1, &other));
        assert_eq!(refused(large.collect()), [(path("config.x"), "too_big".to_owned())]);
        let few = accounts(1, 4, &one).chain(accounts(2000, 1, &other));
        assert!(with_defaults(json!({}), few, false).is_ok());
    }

    #[test]
    fn a_block_replaces_its_own_and_config_replaces_all() {
        let before = json!({"x": {"a": 1}, "tiktok": {"b": 1}});
        let top_level = || TopLevel::parse_from_json(Some(json!({"x": {"c": 1}}))).unwrap();
        let config = |value| Some(Config::parse_from_json(Some(value)).unwrap());
        for (top_level, config, expected) in [
            (TopLevel::default(), None, before.clone()),
            (top_level(), None, json!({"x": {"c": 1}, "tiktok": {"b": 1}})),
            (TopLevel::default(), config(json!({})), json!({})),
            (top_level(), config(json!({"tiktok": {}})), json!({"x": {"c": 1}, "tiktok": {}})),
        ] {
            assert_eq!(amend(&before, top_level, config), expected);
        }
    }
}
