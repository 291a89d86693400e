//! An organization with something of everything that nobody else may see, and those who try.

use crate::{
    PROGRAM,
    hostile::{client::Client, document, tenants::Tenant},
    surface::{self, document_of, operations},
};
use chrono::TimeDelta;
use domain::{Mode, Owner, scope::Scope};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use store::people::{
    audit::Actor,
    keys::{self, NewKey},
};
use tests::{
    Receiver, World,
    login::{join, joined, sign_in_at},
    now,
};

/// In the texts and names of everything that the callers must not see.
pub(super) const SECRET: &str = "Sesame";

/// Somebody who must not get in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Another organization's.
    Organization,
    /// The same organization's in the other mode.
    Mode,
    /// One whose key is limited to a part of the organization's data.
    Bound,
    /// One with a client token.
    Client,
    /// One whose key has expired or was revoked, or who has none.
    Ended,
}

/// One who tries.
pub(super) struct Caller {
    /// Name of the caller.
    pub(super) name: &'static str,
    /// Reason why they are kept out.
    pub(super) kind: Kind,
    /// Key; empty for one without, and for a member.
    pub(super) key: String,
    /// Cookie of a member's session.
    pub(super) cookie: Option<String>,
    /// Ids of what is their own.
    pub(super) own: Vec<String>,
}

/// An organization with what nobody else may see, and with a tenant whose keys reach something else.
pub(super) struct Scene {
    /// The organization, in test mode.
    pub(super) world: World,
    /// Ids that nobody else may see, by kind of resource.
    pub(super) theirs: HashMap<&'static str, String>,
    /// A post to accounts of both tenants.
    pub(super) mixed: String,
    /// A target of their post.
    pub(super) target: String,
    /// Cookie of a session of the organization.
    pub(super) session: String,
    /// Those who try.
    pub(super) callers: Vec<Caller>,
    /// Method, path and description of each operation.
    pub(super) operations: Vec<(Method, String, Value)>,
}

/// Creates a key of the whole organization, and returns its text.
pub(super) async fn key(world: &World, scopes: &[Scope], expires_in: Option<TimeDelta>) -> String {
    let expires_at = expires_in.map(|left| now() + left);
    let new = NewKey { owner: world.owner, name: "another".to_owned(), scopes: scopes.to_vec(), expires_at };
    keys::create(&world.db, new, now()).await.unwrap().1
}

/// Invites an owner with a key, who accepts, and returns the cookie of their session.
async fn member(world: &World, key: &str, email: &str) -> String {
    let call = world.http.post(format!("{}/team", world.base)).bearer_auth(key);
    let wish = json!({ "email": email, "role": "owner" });
    let invited: Value = call.json(&wish).send().await.unwrap().json().await.unwrap();
    let url = invited["invite_url"].as_str().unwrap_or_else(|| panic!("{invited}"));
    join(world, url, &sign_in_at(&world.base, key).await).await
}

impl Scene {
    /// Makes the organization, and those who try.
    pub(super) async fn start() -> Self {
        // In real time, because renewals of grants would change the organization's rows.
        let mut world = World::of(&PROGRAM).pace(1.0).start().await;
        let document = document_of(&world).await;
        let (mut theirs, mixed, target, mine) = furnish(&world).await;
        let session = sign_in_at(&world.base, &world.key).await;
        let token = session.split('=').nth(1).unwrap();
        theirs.insert("sessions", hex::encode(Sha256::digest(token)));
        let mut callers = limited(&world, &mine).await;
        callers.extend(ended(&world).await);
        callers.extend(strangers(&mut world, &document).await);

        let operations = operations(&document);
        Self { world, theirs, mixed, target, session, callers, operations }
    }

    /// Returns the id of a kind of resource.
    pub(super) fn id(&self, kind: &str) -> &str {
        &self.theirs[kind]
    }

    /// Returns what an answer shows that a caller must not see; `None` if it shows nothing.
    pub(super) fn leak(&self, what: &str, caller: &Caller, text: &str) -> Option<String> {
        // Both modes share the team.
        let is_shared = |kind: &str| kind == "team" && caller.kind == Kind::Mode;
        let shown = self.theirs.iter().find(|(kind, id)| !is_shared(kind) && text.contains(id.as_str()));
        if let Some((kind, _)) = shown {
            return Some(format!("{what} shows {kind} to {}: {text}", caller.name));
        }
        let is_shared = caller.kind == Kind::Mode && (what.contains("team") || what.contains("audit"));
        let is_shown = text.contains(&self.mixed) || !is_shared && text.contains(SECRET);
        is_shown.then(|| format!("{what} shows a post or a text to {}: {text}", caller.name))
    }

    /// Returns what the owner sees of everything.
    pub(super) async fn state(&self) -> BTreeMap<String, Value> {
        let mut state = BTreeMap::new();
        for (kind, id) in &self.theirs {
            let path = match *kind {
                "posts" | "profiles" | "media" | "webhooks" | "social-networks" | "social-accounts" => {
                    format!("/{kind}/{id}")
                }
                "api-keys" | "team" => format!("/{kind}"),
                "client-tokens" | "events" | "sessions" => continue,
                kind => panic!("{kind} can't be read"),
            };
            let mut seen = self.world.get(&path).await;
            // A download address has the time of the request.
            seen.as_object_mut().unwrap().remove("url");
            if kind == &"api-keys" {
                for key in seen["data"].as_array_mut().unwrap() {
                    key["last_used_at"] = Value::Null;
                }
            }
            state.insert(path, seen);
        }
        let mixed = format!("/posts/{}", self.mixed);
        state.insert(mixed.clone(), self.world.get(&mixed).await);
        state
    }
}

/// Makes something of everything of a tenant. Returns its ids, a post to accounts of both tenants, a target, and ids of the
/// other tenant: account, post and profile.
async fn furnish(world: &World) -> (HashMap<&'static str, String>, String, String, [String; 3]) {
    let create = async |path: &str, body: Value| {
        let (status, made) = world.call(Method::POST, path, Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{path}: {made}");
        made
    };
    let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
    let mine = joined(world, "x", "ada", json!({ "tenant_id": "mine" })).await;
    let profile = create("/profiles", json!({ "name": "Mine", "social_account_ids": [mine] })).await;
    let account = joined(world, "x", "bob", json!({ "tenant_id": "theirs" })).await;
    let url = format!("http://127.0.0.1:9/{SECRET}");
    let mut theirs = surface::furnish(world, SECRET, "theirs", &account, &url).await;
    let draft = |accounts: &[&String]| json!({ "content": SECRET, "accounts": accounts, "is_draft": true });
    let post = create("/posts", draft(&[&account])).await;
    let target = id(&post["targets"][0]);
    let mixed = id(&create("/posts", draft(&[&account, &mine])).await);
    theirs.insert("posts", id(&post));
    let events = world.get("/events").await;
    theirs.insert("events", id(events["data"].as_array().unwrap().last().unwrap()));
    let own = create("/posts", json!({ "content": "Mine", "accounts": [mine], "is_draft": true })).await;
    (theirs, mixed, target, [mine, id(&own), id(&profile)])
}

/// Returns callers of the organization whose keys are limited to the other tenant, its profile and its account, and one
/// with a client token.
async fn limited(world: &World, mine: &[String; 3]) -> Vec<Caller> {
    let [account, _, profile] = mine;
    let mut callers = Vec::new();
    for (name, bound) in [
        ("a tenant's key", json!({ "tenant_id": "mine" })),
        ("a profile's key", json!({ "profile_id": profile })),
        ("an account's key", json!({ "account_ids": [account] })),
    ] {
        let mut body = json!({ "name": name, "scopes": ["*"] });
        body.as_object_mut().unwrap().extend(bound.as_object().unwrap().clone());
        let (status, made) = world.call(Method::POST, "/api-keys", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let key = made["key"].as_str().unwrap().to_owned();
        callers.push(Caller { name, kind: Kind::Bound, key, cookie: None, own: mine.to_vec() });
    }
    let (status, token) =
        world.call(Method::POST, "/client-tokens", Some(&json!({ "tenant_id": "mine" }))).await;
    assert_eq!(status, StatusCode::CREATED, "{token}");
    let (name, key) = ("a client token", token["token"].as_str().unwrap().to_owned());
    callers.push(Caller { name, kind: Kind::Client, key, cookie: None, own: mine.to_vec() });
    callers
}

/// Returns callers of the organization whose keys have ended, and one without any.
async fn ended(world: &World) -> Vec<Caller> {
    let expired = key(world, &[Scope::All], Some(TimeDelta::hours(-1))).await;
    let new = NewKey { owner: world.owner, name: "gone".into(), scopes: vec![Scope::All], expires_at: None };
    let (revoked, text) = keys::create(&world.db, new, now()).await.unwrap();
    keys::revoke(&world.db, world.owner, revoked.id, &Actor::OPERATOR, now()).await.unwrap();
    let of = |name, key| Caller { name, kind: Kind::Ended, key, cookie: None, own: Vec::new() };
    vec![of("an expired key", expired), of("a revoked key", text), of("nobody", String::new())]
}

/// Returns callers of another organization and of the other mode, with keys and as members, who have something of
/// everything themselves.
async fn strangers(world: &mut World, document: &Value) -> Vec<Caller> {
    let receiver = Receiver::start().await;
    let mut client = Client::of(world);
    let operations = document::operations(document);
    let other = Tenant::new(world).await;
    let live = Tenant::of(world, Owner { mode: Mode::Live, ..world.owner }).await;
    let mut callers = Vec::new();
    for (kind, mut tenant, by_key, by_session) in [
        (Kind::Organization, other, "another organization", "an owner of another organization"),
        (Kind::Mode, live, "the other mode", "an owner in the other mode"),
    ] {
        tenant.populate(world, &receiver).await;
        tenant.view(&mut client, &operations).await;
        let own: Vec<_> = tenant.ids.values().flatten().cloned().collect();
        let cookie = member(world, &tenant.key, &format!("{kind:?}@example.com")).await;
        callers.push(Caller { name: by_key, kind, key: tenant.key, cookie: None, own: own.clone() });
        callers.push(Caller { name: by_session, kind, key: String::new(), cookie: Some(cookie), own });
    }
    callers
}
