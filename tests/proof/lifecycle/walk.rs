//! Steps over all operations of the API, each by one of several callers.
//!
//! Requests of an operation and their changes are in [`super::wishes`]; who may do it is the model's to say
//! ([`super::tenancy`]).

use super::{
    model::{Answer, Checked, ensure, expect},
    places::Ask,
    steps::{Call, Draft},
    system::System,
    tenancy::{LISTS, Place, Row},
    who::By,
    wishes::{Effect, Send, Wish},
};
use crate::surface::{
    document_of, needed, operations,
    tables::{About, FOR_CLIENTS, OPERATIONS, about},
};
use domain::scope;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};
use tests::World;
use tokio::sync::OnceCell;

/// Number of times that each operation, page and action was a step.
pub(super) static WALKED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Number of operations asked, by caller.
pub(super) static ASKED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// An operation: method, path and description.
pub(super) type Operation = (Method, String, Value);

/// Operations whose effect in another organization is none of this one's.
const OWN: [&str; 9] = [
    "POST /api-keys",
    "POST /client-tokens",
    "PUT /connect/branding",
    "POST /media/upload",
    "PATCH /media/settings",
    "POST /social-networks",
    "POST /team",
    "POST /webhooks",
    "POST /posts/batch",
];

/// Returns the operations of the document.
pub(super) async fn all(world: &World) -> &'static [Operation] {
    static ALL: OnceCell<Vec<Operation>> = OnceCell::const_new();
    ALL.get_or_init(async || {
        let operations = operations(&document_of(world).await);
        crate::surface::tables::cover(&operations);
        operations
    })
    .await
}

/// Counts a step.
pub(super) fn count(name: &str) {
    *WALKED.lock().unwrap().entry(name.to_owned()).or_default() += 1;
}

impl System {
    /// Takes a step over an operation.
    pub(super) async fn ask(&mut self, ask: &Ask) -> Checked {
        let operations = all(&self.world).await;
        let (method, path, described) = &operations[ask.operation % OPERATIONS.len()];
        let name = format!("{method} {path}");
        let is_own = ask.by == By::Stranger && OWN.contains(&name.as_str());
        let by = if is_own { By::Owner } else { ask.by };
        self.transcript.borrow_mut().push(format!("  {name} by {by:?}"));
        self.settle();
        let is_denied = is_denied(by, &name, described);
        let wished = self.wish(&name, by, ask.subject, ask.detail).await;
        count(&name);
        *ASKED.lock().unwrap().entry(format!("{by:?}")).or_default() += 1;
        let outcome = match wished {
            Wish::Call(call) => self.by(by, &call).await,
            Wish::Batch(drafts) => self.batch(by, &drafts, is_denied).await,
            Wish::Send(send) if is_denied => {
                let send = Send { allowed: vec![403], effect: Effect::None, ..*send };
                self.request(by, method, send).await
            }
            Wish::Send(send) => self.request(by, method, *send).await,
        };
        outcome.map_err(|error| format!("{name} by {by:?}: {error}"))
    }

    /// Tells the model of tenants which accounts are connected.
    pub(super) fn settle(&mut self) {
        for (account, known) in self.tenancy.accounts.iter_mut().zip(&self.model.accounts) {
            account.is_connected = known.is_connected;
        }
    }

    /// Makes a call of the model of states as a caller, who may be refused.
    pub(super) async fn by(&mut self, by: By, call: &Call) -> Checked {
        // Others would repeat the owner's calls, which is refused or not by what is in reach.
        let call = match call.clone() {
            Call::Create(draft) if by != By::Owner => Call::Create(Draft { key: None, ..draft }),
            call => call,
        };
        self.settle();
        let text = self.next_text();
        let refused = self.refused(by, &call);
        let answer = self.call(by, &call, text).await;
        let sent = self.named(&call, text);
        self.tenancy.check_hidden(by, &self.model.posts, &sent, &answer.body.to_string())?;
        match refused {
            Some(allowed) => expect(&answer, allowed),
            None => self.model.apply(&call, text, &answer),
        }
    }

    /// Returns the statuses with which a call is refused for who makes it; `None` if that is no reason.
    fn refused(&self, by: By, call: &Call) -> Option<&'static [u16]> {
        if matches!(by, By::Reader | By::Client) {
            return Some(&[403]);
        }
        if by == By::Owner {
            return None;
        }
        let tenancy = &self.tenancy;
        let has = |post: usize| self.model.post(post).is_some_and(|post| tenancy.has_post(by, post));
        match call {
            Call::Create(draft) => {
                let is_right = tenancy.sees_accounts(by, draft.accounts.indices());
                (!is_right || draft.reply_to.is_some_and(|post| !has(post))).then_some(&[422])
            }
            Call::Edit { post, accounts, .. } if has(*post) => {
                let is_deleted = self.model.post(*post).is_some_and(|post| post.is_deleted);
                let named = accounts.iter().flat_map(|accounts| accounts.indices());
                (!is_deleted && !tenancy.sees_accounts(by, named)).then_some(&[409, 422])
            }
            Call::Edit { post, .. } | Call::Delete { post } | Call::Retry { post } => {
                (!has(*post)).then_some(&[404])
            }
            Call::Disconnect { account } => (!tenancy.has_account(by, *account)).then_some(&[404]),
        }
    }

    /// Returns what a call names itself.
    fn named(&self, call: &Call, text: usize) -> String {
        let (posts, accounts) = match call {
            Call::Create(draft) => (draft.reply_to, Some(draft.accounts)),
            Call::Edit { post, accounts, .. } => (Some(*post), *accounts),
            Call::Delete { post } | Call::Retry { post } => (Some(*post), None),
            Call::Disconnect { account } => return self.model.accounts[*account].id.clone(),
        };
        let post = posts.and_then(|post| self.model.post(post)).map(|post| post.id.clone());
        let accounts = accounts.iter().flat_map(|accounts| accounts.indices());
        let accounts = accounts.map(|index| self.model.accounts[index].id.clone());
        format!("{text} {:?}", post.into_iter().chain(accounts).collect::<Vec<_>>())
    }

    /// Creates several posts at once, each as it would be alone.
    async fn batch(&mut self, by: By, drafts: &[Draft], is_denied: bool) -> Checked {
        let texts: Vec<_> = drafts.iter().map(|_| self.next_text()).collect();
        let posts: Vec<_> =
            drafts.iter().zip(&texts).map(|(draft, text)| self.new_post(draft, *text)).collect();
        let body = json!({ "posts": posts });
        let (status, answer) = self.raw(by, &Method::POST, "/posts/batch", Some(&body)).await;
        if is_denied {
            return ensure(status == 403, || format!("status {status} instead of 403: {answer}"));
        }
        ensure(status == 207, || format!("status {status} instead of 207: {answer}"))?;
        for (index, (draft, text)) in drafts.iter().zip(texts).enumerate() {
            let of = |list: &str| {
                let mut found = answer[list].as_array().into_iter().flatten();
                found.find(|found| found["index"] == index).cloned()
            };
            let call = Call::Create(draft.clone());
            match (self.refused(by, &call), of("errors")) {
                (Some(_), Some(_)) => {}
                (Some(_), None) => return Err(format!("{draft:?} was not refused: {answer}")),
                (None, error) => {
                    let (status, body) = match error {
                        Some(error) => (error["status"].as_u64().unwrap_or(422), error),
                        None => {
                            let id = of("data").map(|made| made["post"]["id"].clone()).unwrap_or_default();
                            (
                                201,
                                self.world.get(&format!("/posts/{}", id.as_str().unwrap_or_default())).await,
                            )
                        }
                    };
                    let status = u16::try_from(status).unwrap_or_default();
                    let made = Answer { status, is_replay: false, body, queue: None };
                    self.model.apply(&call, text, &made)?;
                }
            }
        }
        Ok(())
    }

    /// Sends a request, and checks status, content and what is hidden.
    async fn request(&mut self, by: By, method: &Method, send: Send) -> Checked {
        let Send { path, body, allowed, effect } = send;
        let (status, answer) = self.raw(by, method, &path, body.as_ref()).await;
        ensure(allowed.contains(&status), || {
            format!(
                "{path} {}: status {status} instead of {allowed:?}: {answer}",
                body.clone().unwrap_or_default()
            )
        })?;
        let sent = format!("{path} {}", body.unwrap_or_default());
        self.tenancy.check_hidden(by, &self.model.posts, &sent, &answer.to_string())?;
        if (200..300).contains(&status) { self.apply(by, effect, &answer) } else { Ok(()) }
    }

    /// Sends a request as a caller, and returns status and answer.
    pub(super) async fn raw(
        &self,
        by: By,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let url = format!("{}{path}", self.world.base);
        let mut request = self.world.http.request(method.clone(), url).bearer_auth(self.callers.key(by));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        self.transcript.borrow_mut().push(format!("  {method} {path} by {by:?}: {status}"));
        (status, response.json().await.unwrap())
    }

    /// Checks and notes what a request that succeeded has done.
    fn apply(&mut self, by: By, effect: Effect, answer: &Value) -> Checked {
        // It is another organization's.
        if by == By::Stranger && !matches!(effect, Effect::Lists(_)) {
            return Ok(());
        }
        let id = answer["id"].as_str().unwrap_or_default().to_owned();
        match effect {
            Effect::None => {}
            Effect::Lists(kind) => return self.tenancy.check_list(by, kind, &self.model.posts, answer),
            Effect::Shows(expected) => ensure(id == expected, || format!("{answer} is not {expected}"))?,
            Effect::Adds { kind, name, place } => self.add(kind, id, name, place),
            Effect::Ends(id) => self.tenancy.end(&id),
            Effect::Replaces { old, name } => {
                self.tenancy.end(&old);
                self.add("api-keys", id, name, Place::Organization);
            }
            Effect::Edits { account, tenant, profile } => {
                if let Some(tenant) = tenant {
                    self.tenancy.move_to(account, tenant);
                }
                if let Some(profile) = profile {
                    self.tenancy.accounts[account].profile = profile;
                }
            }
            Effect::Groups { profile, name, tenant, members } => {
                match &profile {
                    None => self.add("profiles", id.clone(), name, Place::Tenant(tenant.flatten())),
                    Some(profile) => {
                        for row in self.tenancy.rows.iter_mut().filter(|row| row.id == *profile) {
                            row.name = name.clone();
                            if let Some(tenant) = &tenant {
                                row.place = Place::Tenant(tenant.clone());
                            }
                        }
                    }
                }
                if let Some(members) = members {
                    self.tenancy.group(&profile.unwrap_or(id), &members);
                }
            }
            Effect::Disconnects(index) => {
                self.tenancy.accounts[index].is_connected = false;
                self.model.disconnected += 1;
            }
        }
        Ok(())
    }

    /// Adds a row to the model.
    pub(super) fn add(&mut self, kind: &'static str, id: String, name: String, place: Place) {
        // An app of a platform that had one is changed.
        if !self.tenancy.rows.iter().any(|row| row.id == id) {
            self.tenancy.rows.push(Row { kind, id, name, place, is_gone: false, is_spare: true });
        }
    }

    /// Compares what each caller finds with the model, and what the owner finds in each row.
    pub(super) async fn compare_views(&mut self) -> Checked {
        self.settle();
        for by in By::ALL {
            for kind in LISTS {
                let name = format!("GET /{kind}");
                let operation =
                    all(&self.world).await.iter().find(|one| one.0 == "GET" && one.1 == name[4..]);
                let (method, path, described) = operation.expect("a list");
                let (status, answer) = self.raw(by, method, &format!("{path}?limit=100"), None).await;
                let seen = if is_denied(by, &name, described) {
                    ensure(status == 403, || format!("status {status} instead of 403: {answer}"))
                } else {
                    self.tenancy.check_list(by, kind, &self.model.posts, &answer)
                };
                let seen = seen
                    .and_then(|()| self.tenancy.check_hidden(by, &self.model.posts, "", &answer.to_string()));
                seen.map_err(|error| format!("at the end, {name} by {by:?}: {error}"))?;
                if by == By::Owner {
                    self.check_content(kind, &answer)?;
                }
            }
        }
        self.compare_events().await
    }

    /// Checks that each caller finds the events whose accounts and posts it reaches, and no other.
    async fn compare_events(&self) -> Checked {
        let read = async |by: By| {
            let (status, answer) = self.raw(by, &Method::GET, "/events?limit=100", None).await;
            ensure(status == 200, || format!("status {status} instead of 200: {answer}"))?;
            Ok::<_, String>(answer["data"].as_array().cloned().unwrap_or_default())
        };
        for by in [By::Tenant, By::Profile, By::Accounts] {
            let before = read(By::Owner).await?;
            let found = ids(&read(by).await?);
            // Posts may still be under way.
            let after = read(By::Owner).await?;
            if after.len() >= 100 {
                return Ok(());
            }
            let seen = |events: &[Value]| {
                let seen = events.iter().filter(|event| self.has_event(by, &event.to_string()));
                ids(&seen.cloned().collect::<Vec<_>>())
            };
            let (before, after) = (seen(&before), seen(&after));
            ensure(before.is_subset(&found) && found.is_subset(&after), || {
                format!("{by:?} finds the events {found:?}, between {before:?} and {after:?}")
            })?;
        }
        Ok(())
    }

    /// Returns whether a caller reaches all accounts and posts that an event names.
    fn has_event(&self, by: By, event: &str) -> bool {
        let (accounts, posts) = (&self.tenancy.accounts, &self.model.posts);
        let accounts = (0..accounts.len()).filter(|index| event.contains(&accounts[*index].id));
        let posts = posts.iter().filter(|post| event.contains(&post.id));
        let reached: Vec<_> = accounts
            .map(|index| self.tenancy.has_account(by, index))
            .chain(posts.map(|post| self.tenancy.has_post(by, post)))
            .collect();
        !reached.is_empty() && !reached.contains(&false)
    }

    /// Checks that accounts are where the model has them, and that profiles and others have the names of the last change.
    fn check_content(&self, kind: &str, answer: &Value) -> Checked {
        for shown in answer["data"].as_array().into_iter().flatten() {
            let id = shown["id"].as_str().unwrap_or_default();
            let is_right = match kind {
                "social-accounts" => {
                    let account = self.tenancy.accounts.iter().find(|account| account.id == id);
                    let account = account.expect("compared before");
                    shown["tenant_id"] == json!(account.tenant)
                        && shown["profile_id"] == json!(account.profile)
                }
                "profiles" => {
                    let row = self.tenancy.rows.iter().find(|row| row.id == id).expect("compared before");
                    let members = self.tenancy.members(id).into_iter();
                    let members = members.map(|index| self.tenancy.accounts[index].id.as_str());
                    let mut members: Vec<_> = members.collect();
                    let mut found: Vec<_> =
                        shown["social_account_ids"].as_array().into_iter().flatten().collect();
                    members.sort_unstable();
                    found.sort_unstable_by_key(|id| id.as_str());
                    shown["name"] == row.name.as_str()
                        && Place::Tenant(shown["tenant_id"].as_str().map(str::to_owned)) == row.place
                        && json!(found) == json!(members)
                }
                _ => true,
            };
            ensure(is_right, || format!("{shown} is not as the model has it: {:#?}", self.tenancy))?;
        }
        Ok(())
    }
}

/// Returns the ids of rows.
fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect()
}

/// Returns whether a caller may not call an operation, whatever it is about.
fn is_denied(by: By, name: &str, described: &Value) -> bool {
    let is_of_organization = matches!(about(name), About::Organization | About::OneOfOrganization(_));
    // A login's own token authorizes what is about it.
    let is_open = matches!(about(name), About::Login);
    let lacks = needed(described).is_some_and(|needed| !scope::allows(by.scopes(), needed));
    !is_open
        && (lacks
            || by == By::Client && !FOR_CLIENTS.contains(&name)
            || by.is_limited() && is_of_organization)
}
