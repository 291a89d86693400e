//! Content and times of a post for one platform or one account, as its settings have them.
//!
//! A platform's block in `config` can hold content and a time besides the platform's settings, and the same again
//! for single accounts under `accounts`. The variants of the post come of them.

use crate::{
    accounts::resolve::is_named,
    http::problem::{Code, Issue, Problem, Segment},
    posts::{
        body::{NewMedia, Overrides},
        imports::Imports,
    },
};
use domain::{AccountId, overrides::ACCOUNTS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::accounts::Account;
use uuid::Uuid;

/// The overrides of a post.
#[derive(Debug, Default)]
pub(crate) struct PostOverrides {
    /// Those of platforms, by the platforms' ids.
    pub platforms: BTreeMap<String, Overrides>,
    /// Those of single accounts, each with the key that names the account in the request.
    pub accounts: BTreeMap<AccountId, (Overrides, String)>,
}

impl PostOverrides {
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
        let (mut all, mut issues) = (Self::default(), Vec::new());
        for (platform, block) in config.as_object_mut().into_iter().flatten() {
            import_all(block, imports);
            let at = |rest: &[Segment]| [&["config".into(), platform.as_str().into()], rest].concat();
            match Overrides::read(block) {
                Ok(overrides) => drop(all.platforms.insert(platform.clone(), overrides)),
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
                        if all.accounts.insert(account.id, (overrides, key)).is_some() {
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
        if issues.is_empty() { Ok(all) } else { Err(unusable(issues)) }
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

/// Returns the problem that the overrides of a post can't be applied.
pub(crate) fn unusable(issues: Vec<Issue>) -> Problem {
    Problem::new(Code::Unprocessable, "the overrides in config can't be applied").with_issues(issues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::samples::{account, path};

    #[test]
    fn accounts_are_named_by_their_ids_afterwards() {
        let (ada, bob) = (account(1, "x"), account(2, "x"));
        let twin = Account { username: ada.username.clone(), ..account(3, "x") };
        let id = ada.id.to_string();
        let by = |key: &str| json!({ "x": { "accounts": { key: { "title": "t" } } } });
        let none = "Is none of the post's accounts on this platform";
        let twice = json!({ "x": { "accounts": { id.as_str(): {}, "name-1": {} } } });
        for (config, is_sent, expected) in [
            (by("name-1"), true, Ok(by(&id))),
            (by("network-1"), true, Ok(by(&id))),
            (by(&id.to_uppercase()), true, Ok(by(&id))),
            (by("eve"), true, Err(("config.x.accounts.eve", none))),
            (json!({ "bluesky": by("name-1")["x"] }), true, Err(("config.bluesky.accounts.name-1", none))),
            // The stored block of an account that the post has no more.
            (by("eve"), false, Ok(json!({ "x": {} }))),
            (by("name-3"), false, Ok(json!({ "x": {} }))),
            (
                twice,
                true,
                Err(("config.x.accounts.name-1", "Names an account that another key names as well")),
            ),
        ] {
            let mut read = config.clone();
            let accounts = [ada.clone(), bob.clone()];
            let overrides = PostOverrides::read(&mut read, &accounts, &mut Imports::default(), |_| is_sent);
            match (overrides, expected) {
                (Ok(_), expected) => assert_eq!(Ok(read), expected, "{config}"),
                (Err(problem), expected) => {
                    let expected = expected.unwrap_err();
                    assert_eq!(problem.issues, [Issue::custom(path(expected.0), expected.1)], "{config}");
                }
            }
        }
        let both = PostOverrides::read(&mut by("name-1"), &[ada, twin], &mut Imports::default(), |_| true);
        let message = "Matches several accounts; use the id of one of them";
        assert_eq!(both.unwrap_err().issues, [Issue::custom(path("config.x.accounts.name-1"), message)]);
    }

    #[test]
    fn an_address_is_replaced_by_one_asset_wherever_it_stands() {
        let named = json!([{ "url": "https://a.example/b.jpg", "alt_text": "Alt" }]);
        let mut config = json!({ "x": {
            "media": named, "accounts": { "name-1": { "containers": [{ "content": "a", "media": named }] } },
        } });
        let (accounts, mut imports) = ([account(1, "x")], Imports::default());
        let overrides = PostOverrides::read(&mut config, &accounts, &mut imports, |_| true).unwrap();
        let id = imports.add("https://a.example/b.jpg");
        let expected = json!([{ "id": id, "alt_text": "Alt" }]);
        let own = &config["x"]["accounts"][accounts[0].id.to_string()];
        assert_eq!((&config["x"]["media"], &own["containers"][0]["media"]), (&expected, &expected));
        assert_eq!(media_of(&config), [id.0, id.0]);
        let ids: Vec<_> = overrides.media().map(|media| media.id.clone()).collect();
        assert_eq!(ids, [Some(id.to_string()), Some(id.to_string())]);
    }

    #[test]
    fn an_account_is_timed_by_its_own_block_or_its_platforms() {
        let accounts = [account(1, "x"), account(2, "bluesky")];
        let timed = json!({ "scheduled_at": "2026-01-02T00:00:00Z" });
        for (mut config, expected) in [
            (json!({}), false),
            (json!({ "x": timed }), false),
            (json!({ "x": timed, "bluesky": timed }), true),
            (json!({ "x": timed, "bluesky": { "accounts": { "name-2": timed } } }), true),
        ] {
            let overrides = PostOverrides::read(&mut config, &accounts, &mut Imports::default(), |_| true);
            assert_eq!(overrides.unwrap().times_all(&accounts), expected, "{config}");
        }
    }
}
