//! Those who call a case's organization: with keys, with a client token, and in sessions of the dashboard.

use super::{
    steps::{ACCOUNTS, SPARES},
    who::{By, Guest},
};
use crate::{
    PROGRAM,
    surface::{Visitor, furnish},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::{
    World,
    login::{join, sign_in},
};

/// Text in the names of everything of the other organization.
pub(super) const ELSEWHERE: &str = "Sesame";

/// The keys, tokens and sessions of a case.
pub(super) struct Callers {
    keys: HashMap<By, String>,
    visitors: HashMap<Guest, Visitor>,
    /// The other organization.
    _stranger: World,
}

/// Rows that are there before the first step, as the model has to know them.
pub(super) struct Furniture {
    /// Ids of the accounts: those that posts go to, and the spare ones.
    pub(super) accounts: Vec<String>,
    /// The profile of [`By::Profile`].
    pub(super) profile: String,
    /// The client token of [`By::Client`].
    pub(super) token: String,
    /// One of everything that steps may change, by kind.
    pub(super) spare: HashMap<&'static str, String>,
    /// Ids of the other organization, by kind.
    pub(super) foreign: HashMap<&'static str, String>,
}

async fn create(world: &World, path: &str, body: Value) -> Value {
    let (status, made) = world.call(Method::POST, path, Some(&body)).await;
    assert_eq!(status, 201, "{path}: {made}");
    made
}

/// Returns the text of a member.
fn text(made: &Value, member: &str) -> String {
    made[member].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// Connects an account for its end tenant.
pub(super) async fn connect(world: &World, platform: &str, name: &str, tenant: Option<&str>) -> String {
    match tenant {
        Some(tenant) => world.connect_for(platform, name, tenant).await,
        None => world.connect(platform, name).await,
    }
}

impl Callers {
    /// Makes those who call, and what they call about. `url` is that of a webhook endpoint that takes everything.
    pub(super) async fn start(world: &World, url: &str) -> (Self, Furniture) {
        let mut accounts = Vec::new();
        for (platform, name, _, tenant) in ACCOUNTS {
            accounts.push(connect(world, platform, name, tenant).await);
        }
        for (platform, name, tenant) in SPARES {
            accounts.push(connect(world, platform, name, tenant).await);
        }
        let body = json!({ "name": "Profile", "tenant_id": "mine", "social_account_ids": [accounts[0]] });
        let profile = text(&create(world, "/profiles", body).await, "id");
        let mut keys = HashMap::from([(By::Owner, world.key.clone())]);
        for (by, bound) in [
            (By::Reader, json!({})),
            (By::Tenant, json!({ "tenant_id": "mine" })),
            (By::Profile, json!({ "profile_id": profile })),
            (By::Accounts, json!({ "account_ids": named(&accounts) })),
        ] {
            let scopes: Vec<_> = by.scopes().iter().map(|scope| scope.as_str()).collect();
            let mut body = json!({ "name": format!("{by:?}"), "scopes": scopes });
            body.as_object_mut().unwrap().extend(bound.as_object().unwrap().clone());
            keys.insert(by, text(&create(world, "/api-keys", body).await, "key"));
        }
        let token = create(world, "/client-tokens", json!({ "tenant_id": "mine" })).await;
        keys.insert(By::Client, text(&token, "token"));
        let like = sign_in(world).await;
        let mut visitors = HashMap::from([(Guest::Nobody, Visitor::new(world, ""))]);
        for (guest, role) in [(Guest::Owner, "owner"), (Guest::Viewer, "viewer")] {
            let wish = json!({ "email": format!("{role}@example.com"), "role": role });
            let url = text(&create(world, "/team", wish).await, "invite_url");
            visitors.insert(guest, Visitor::new(world, &join(world, &url, &like).await));
        }
        let spare = furnish(world, "Spare", "mine", &accounts[ACCOUNTS.len()], url).await;

        let stranger = World::of(&PROGRAM).start().await;
        let account = stranger.connect("x", "eve").await;
        let mut foreign = furnish(&stranger, ELSEWHERE, "mine", &account, url).await;
        let post = json!({ "content": ELSEWHERE, "accounts": [account], "is_draft": true });
        foreign.insert("posts", text(&stranger.post(post).await, "id"));
        keys.insert(By::Stranger, stranger.key.clone());
        visitors.insert(Guest::Stranger, Visitor::new(&stranger, &sign_in(&stranger).await));
        let token = text(&token, "id");
        let callers = Self { keys, visitors, _stranger: stranger };
        (callers, Furniture { accounts, profile, token, spare, foreign })
    }

    /// Returns the key of a caller.
    pub(super) fn key(&self, by: By) -> &str {
        &self.keys[&by]
    }

    /// Returns the browser of a visitor.
    pub(super) fn visitor(&self, guest: Guest) -> &Visitor {
        &self.visitors[&guest]
    }
}

/// Returns the accounts that [`By::Accounts`] is given: two that posts go to, and a spare one.
pub(super) fn named(accounts: &[String]) -> Vec<String> {
    vec![accounts[0].clone(), accounts[2].clone(), accounts[ACCOUNTS.len()].clone()]
}
