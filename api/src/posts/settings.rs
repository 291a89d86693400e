//! Platform-specific settings of a post, one block per platform: the request's, completed with those of the accounts'
//! profiles.
//!
//! Their schemas in the document are those that validation uses and `capabilities` returns.

use crate::{
    http::{
        caller::Call,
        problem::{Issue, Problem},
    },
    openapi::validate::limit_size,
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
use std::collections::BTreeMap;
use store::accounts::{Account, profiles};

/// Maximum size of a block with the settings of profiles, in bytes of JSON.
const MAX_COMPLETED_BYTES: usize = 4 * MAX_BLOCK_BYTES;

/// Completes the settings of a request, which has overrides by the accounts' ids, with those of the profiles of a post's
/// accounts; a post that `is_reply`, with those that concern replies.
///
/// # Errors
///
/// `unprocessable` if the profiles have too many different settings for one post.
pub(crate) async fn complete(
    call: &Call<'_>,
    accounts: &[Account],
    requested: Value,
    is_reply: bool,
) -> Result<Value, Problem> {
    let ids: Vec<_> = accounts.iter().filter_map(|account| account.profile_id).collect();
    if ids.is_empty() {
        return Ok(requested);
    }
    let configs = profiles::configs(call.db(), call.owner, &ids).await?;
    let block = |account: &Account| configs.get(&account.profile_id?)?.get(&account.platform);
    let defaults = accounts.iter().map(|account| (account.platform.as_str(), account.id, block(account)));
    let completed = with_defaults(requested, defaults, is_reply);
    let mut issues = Vec::new();
    for (id, block) in completed.as_object().into_iter().flatten() {
        let entries = block[ACCOUNTS].as_object().map_or(0, Map::len);
        if entries > MAX_ACCOUNTS {
            let message = format!(
                "{entries} of its accounts have settings of their own, most by their profiles, and {MAX_ACCOUNTS} may"
            );
            issues.push(Issue::custom(["config", id.as_str()], message));
        }
        limit_size(block, MAX_COMPLETED_BYTES, ["config", id.as_str()], &mut issues);
    }
    if issues.is_empty() { Ok(completed) } else { Err(overrides::unusable(issues)) }
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
/// `accounts` lists each account's platform and its profile's block for that platform.
fn with_defaults<'a>(
    own: Value,
    accounts: impl IntoIterator<Item = (&'a str, AccountId, Option<&'a Value>)>,
    is_reply: bool,
) -> Value {
    let mut by_platform = BTreeMap::<&str, Vec<(AccountId, Map<String, Value>)>>::new();
    for (platform, account, block) in accounts {
        let mut block = block.and_then(Value::as_object).cloned().unwrap_or_default();
        if is_reply {
            // The other defaults are for posts of their own, and the request does not have them.
            let known = platforms::get(platform).map_or(&[][..], |platform| platform.limits.reply_settings);
            block.retain(|key, _| known.contains(&key.as_str()));
        }
        by_platform.entry(platform).or_default().push((account, block));
    }
    let Value::Object(mut blocks) = own else { return own };
    by_platform.retain(|_, defaults| defaults.iter().any(|(_, block)| !block.is_empty()));
    for (platform, defaults) in by_platform {
        let block = object(blocks.entry(platform).or_insert(Value::Null));
        let given: Vec<_> = block.keys().cloned().collect();
        let is_shared = |key: &String| defaults.iter().all(|(_, one)| one.get(key) == defaults[0].1.get(key));
        for (account, one) in &defaults {
            let missing = one.iter().filter(|(key, _)| !given.contains(key));
            let (shared, single): (Vec<_>, Vec<_>) = missing.partition(|(key, _)| is_shared(key));
            fill(block, shared);
            if !single.is_empty() {
                let entries = object(block.entry(ACCOUNTS).or_insert(Value::Null));
                fill(object(entries.entry(account.to_string()).or_insert(Value::Null)), single);
            }
        }
    }
    Value::Object(blocks)
}

/// Returns the members of a value, which becomes an object if it is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("an object")
}

/// Adds the members that a block does not have.
fn fill(block: &mut Map<String, Value>, members: Vec<(&String, &Value)>) {
    for (key, value) in members {
        block.entry(key.clone()).or_insert_with(|| value.clone());
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
                expected,
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
            assert_eq!(with_defaults(own, [("x", AccountId(Uuid::nil()), Some(&profile))], true), expected);
        }
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
