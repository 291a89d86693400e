//! Requests of each operation, the answers that the model allows, and their changes.

use super::{
    model::{Post, Stage},
    steps::{ACCOUNTS, Accounts, Call, Draft, Fault, Plan},
    system::{System, weekly},
    tenancy::{Bound, Place, Row},
    who::By,
};
use crate::surface::tables::{About, about};
use chrono::TimeDelta;
use serde_json::{Value, json};
use tests::login::BACK;
use uuid::Uuid;

/// A request.
pub(super) enum Wish {
    /// A call that the model of states checks.
    Call(Call),
    /// Several posts.
    Batch(Vec<Draft>),
    /// Another request.
    Send(Box<Send>),
}

/// A request, and what is allowed for an answer.
pub(super) struct Send {
    /// Path and query.
    pub(super) path: String,
    /// Body.
    pub(super) body: Option<Value>,
    /// Statuses.
    pub(super) allowed: Vec<u16>,
    /// Change if it succeeds.
    pub(super) effect: Effect,
}

/// Subject of a request.
pub(super) enum Effect {
    /// Nothing that the model knows.
    None,
    /// Shows the rows of a kind.
    Lists(&'static str),
    /// Shows this row.
    Shows(String),
    /// Creates a row.
    Adds { kind: &'static str, name: String, place: Place },
    /// Deletes a row.
    Ends(String),
    /// Replaces a key.
    Replaces { old: String, name: String },
    /// Moves an account to an end tenant or a profile.
    Edits { account: usize, tenant: Option<Option<String>>, profile: Option<Option<String>> },
    /// Creates a profile, or changes it.
    Groups {
        profile: Option<String>,
        name: String,
        tenant: Option<Option<String>>,
        members: Option<Vec<usize>>,
    },
    /// Disconnects a spare account.
    Disconnects(usize),
}

/// A request without a body, with the statuses of its answer.
fn send(path: impl Into<String>, allowed: &[u16]) -> Send {
    Send { path: path.into(), body: None, allowed: allowed.to_vec(), effect: Effect::None }
}

impl Send {
    fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    fn then(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
}

/// Owner of a request's subject: the organization, or the other one.
enum Subject<T> {
    Ours(T),
    Theirs(String),
}

impl System {
    /// Returns what to ask an operation for, and what it may answer to a caller who may call it.
    pub(super) async fn wish(&mut self, name: &str, by: By, subject: usize, detail: usize) -> Wish {
        let (_, path) = name.split_once(' ').expect("a method and a path");
        let wished = match about(name) {
            About::Login => {
                let path = path.replace("{token}", "none");
                let sent = send(path, &[404]);
                if name.starts_with("POST") { sent.with(json!({ "page_ids": ["1"] })) } else { sent }
            }
            About::One("posts") => return self.about_post(name, by, subject).await,
            About::One("social-accounts") => match self.about_account(name, by, subject, detail) {
                Ok(sent) => sent,
                Err(call) => return Wish::Call(call),
            },
            About::One("profiles") => self.about_profile(name, by, subject, detail),
            About::One(kind) | About::OneOfOrganization(kind) => {
                self.about_row(name, kind, by, subject, detail).await
            }
            About::Reached | About::Organization if name.starts_with("GET") => {
                let kind = super::tenancy::LISTS.into_iter().find(|kind| path[1..] == **kind);
                let effect = kind.map_or(Effect::None, Effect::Lists);
                let path = if kind.is_some() { format!("{path}?limit=100") } else { path.to_owned() };
                send(path, &[200]).then(effect)
            }
            _ => match name {
                "POST /posts" => return Wish::Call(Call::Create(draft(subject, detail))),
                "POST /posts/batch" => {
                    return Wish::Batch(vec![draft(subject, detail), draft(subject / 7, detail / 3)]);
                }
                _ => self.create(name, by, subject, detail),
            },
        };
        Wish::Send(Box::new(wished))
    }

    /// Returns the account of a number: one of the organization's, or the other's, whose own callers name ours only.
    pub(super) fn account(&self, by: By, number: usize) -> (Option<usize>, String) {
        let accounts = &self.tenancy.accounts;
        let index = number % (accounts.len() + usize::from(by != By::Stranger));
        match accounts.get(index) {
            Some(account) => (Some(index), account.id.clone()),
            None => (None, self.tenancy.foreign["social-accounts"].clone()),
        }
    }

    /// Returns whether a caller finds the account of a number.
    fn finds(&self, by: By, account: Option<usize>) -> bool {
        account.is_some_and(|index| self.tenancy.sees_account(by, index))
    }

    /// Returns the row of a kind and a number, or the other organization's. A step changes spare rows only.
    fn row(&self, by: By, kind: &str, number: usize, is_read: bool) -> Subject<Row> {
        let rows = self.tenancy.rows.iter().filter(|row| row.kind == kind && (is_read || row.is_spare));
        let rows: Vec<_> = rows.collect();
        match rows.get(number % (rows.len() + usize::from(by != By::Stranger))) {
            Some(row) => Subject::Ours((*row).clone()),
            None => Subject::Theirs(self.tenancy.foreign[kind].clone()),
        }
    }

    /// Returns the post of a number, or the other organization's.
    pub(super) fn chosen(&self, by: By, number: usize) -> (Option<(usize, &Post)>, String) {
        let posts = &self.model.posts;
        let index = number % (posts.len() + usize::from(by != By::Stranger));
        match posts.get(index) {
            Some(post) => (Some((index, post)), post.id.clone()),
            None => (None, self.tenancy.foreign["posts"].clone()),
        }
    }

    async fn about_post(&self, name: &str, by: By, subject: usize) -> Wish {
        let (found, id) = self.chosen(by, subject);
        let there = found.filter(|(_, post)| !post.is_deleted && self.tenancy.has_post(by, post));
        let waits = there.filter(|(_, post)| post.stage == Stage::Waiting);
        let target = match waits {
            Some(_) => self.target(&id, 0).await.1,
            None => Uuid::now_v7().to_string(),
        };
        let (_, path) = name.split_once(' ').expect("a method and a path");
        let path = path.replace("{id}", &id).replace("{target_id}", &target);
        // Published posts keep their texts, so that steps over other operations only ask for what waits.
        let refused: &[u16] = match (there, waits) {
            (None, _) => &[404],
            (Some(_), None) => &[404, 409, 422],
            (Some(_), Some(_)) => &[409, 422],
        };
        let is_there = |allowed: &'static [u16]| if there.is_some() { allowed } else { &[404] };
        let sent = match (name, found) {
            ("DELETE /posts/{id}", Some((post, _))) => return Wish::Call(Call::Delete { post }),
            ("PATCH /posts/{id}", Some((post, _))) => {
                let text = Some((Fault::None, false));
                return Wish::Call(Call::Edit { post, text, plan: None, accounts: None });
            }
            ("GET /posts/{id}", _) => send(path, is_there(&[200])).then(Effect::Shows(id)),
            ("GET /posts/{id}/timeline", _) => send(path, is_there(&[200])),
            ("GET /posts/{id}/analytics", _) => send(path, is_there(&[200, 409, 422, 503])),
            ("DELETE /posts/{id}", None) => send(path, &[404]),
            ("PATCH /posts/{id}", None) => send(path, &[404]).with(json!({ "content": "Taken" })),
            ("PATCH /posts/{id}/targets/{target_id}", _) => {
                send(path, refused).with(json!({ "content": "Taken" }))
            }
            ("POST /posts/{id}/retry", _) => send(path, refused).with(json!({ "targets": [target] })),
            _ => send(path, refused),
        };
        Wish::Send(Box::new(sent))
    }

    /// Returns the request, or the call of the model of states.
    fn about_account(&mut self, name: &str, by: By, subject: usize, detail: usize) -> Result<Send, Call> {
        let (mut index, mut id) = self.account(by, subject);
        let is_main = index.is_some_and(|index| index < ACCOUNTS.len());
        if is_main && name == "DELETE /social-accounts/{id}" {
            return Err(Call::Disconnect { account: index.expect("it is one") });
        }
        // These do something with the posts of an account.
        let acts = ["POST /social-accounts/{id}/imports", "POST /social-accounts/{id}/retry-failed"];
        if is_main && acts.contains(&name) && self.finds(by, index) {
            (index, id) = (None, self.tenancy.foreign["social-accounts"].clone());
        }
        let is_there = self.finds(by, index);
        let allow = |allowed: &'static [u16]| if is_there { allowed } else { &[404] };
        let (_, path) = name.split_once(' ').expect("a method and a path");
        let path = path.replace("{id}", &id).replace("{kind}", "boards");
        let path = path.replace("{import_id}", &Uuid::now_v7().to_string());
        Ok(match (name, index) {
            ("PATCH /social-accounts/{id}", _) => self.edit_account(path, by, index, detail),
            ("DELETE /social-accounts/{id}", Some(index)) => {
                send(path, allow(&[200])).then(Effect::Disconnects(index))
            }
            ("GET /social-accounts/{id}", _) => send(path, allow(&[200])).then(Effect::Shows(id)),
            ("GET /social-accounts/{id}/health", _) => send(path, allow(&[200, 503])),
            ("POST /social-accounts/{id}/imports", _) => send(path, allow(&[202, 409, 422])).with(json!({})),
            ("POST /social-accounts/{id}/retry-failed", _) => send(path, allow(&[202, 409])),
            (_, _) if name.contains("{kind}") || name.contains("{import_id}") => send(path, &[404]),
            _ => send(path, allow(&[200])),
        })
    }

    /// A change of an account's name, its end tenant or its profile.
    fn edit_account(&mut self, path: String, by: By, index: Option<usize>, detail: usize) -> Send {
        let name = format!("Name {}", self.next_text());
        let is_there = self.finds(by, index);
        // A body that leaves the bound is refused before it is found that a disconnected account is not there.
        let absent: &[u16] = if index.is_some() { &[403, 404] } else { &[404] };
        let account = index.unwrap_or_default();
        let choice = detail / 4;
        match detail % 4 {
            0 | 1 => {
                let tenant = [Some("mine"), Some("theirs"), None][choice % 3];
                let is_kept = match self.tenancy.bound(by) {
                    Bound::Tenant(own) => tenant == Some(&own),
                    bound => bound == Bound::Organization,
                };
                let allowed = if !is_there {
                    absent
                } else if is_kept {
                    &[200]
                } else {
                    &[403]
                };
                let moved = Some(tenant.map(str::to_owned));
                send(path, allowed).with(json!({ "tenant_id": tenant })).then(Effect::Edits {
                    account,
                    tenant: moved,
                    profile: None,
                })
            }
            2 => {
                let (profile, is_seen) = match self.row(by, "profiles", choice, true) {
                    Subject::Ours(row) => (row.id.clone(), self.tenancy.sees_row(by, &row)),
                    Subject::Theirs(id) => (id, false),
                };
                let profile = (!choice.is_multiple_of(5)).then_some(profile);
                let is_kept = match &profile {
                    Some(_) => is_seen,
                    None => matches!(self.tenancy.bound(by), Bound::Organization | Bound::Tenant(_)),
                };
                let refused = if by.is_limited() { 403 } else { 422 };
                let allowed = if !is_there {
                    absent
                } else if is_kept {
                    &[200]
                } else {
                    &[refused]
                };
                send(path, allowed).with(json!({ "profile_id": profile })).then(Effect::Edits {
                    account,
                    tenant: None,
                    profile: Some(profile),
                })
            }
            _ => send(path, if is_there { &[200] } else { &[404] }).with(json!({ "display_name": name })),
        }
    }

    fn about_profile(&mut self, operation: &str, by: By, subject: usize, detail: usize) -> Send {
        let new = format!("Profile {}", self.next_text());
        let (row, id) = match self.row(by, "profiles", subject, true) {
            Subject::Ours(row) => (Some(row.clone()), row.id),
            Subject::Theirs(id) => (None, id),
        };
        let row = row.filter(|row| self.tenancy.sees_row(by, row));
        let path = format!("/profiles/{id}");
        let is_there = row.is_some();
        let name = row.map_or(new.clone(), |row| row.name);
        match (operation, detail % 3) {
            _ if !is_there && operation.starts_with("PATCH") => {
                send(path, &[404]).with(json!({ "name": new }))
            }
            _ if !is_there => send(path, &[404]),
            ("GET /profiles/{id}", _) => send(path, &[200]).then(Effect::Shows(id)),
            ("DELETE /profiles/{id}", _) => {
                let is_free = self.tenancy.may_regroup(by, &id, &[]);
                send(path, if is_free { &[200] } else { &[403] }).then(Effect::Ends(id))
            }
            (_, 0) => send(path, &[200]).with(json!({ "name": new })).then(Effect::Groups {
                profile: Some(id),
                name: new,
                tenant: None,
                members: None,
            }),
            (_, 1) => {
                let tenant = [Some("mine"), Some("theirs"), None][detail / 3 % 3];
                let is_kept = match self.tenancy.bound(by) {
                    Bound::Tenant(own) => tenant == Some(&own),
                    bound => bound == Bound::Organization,
                };
                let moved = Some(tenant.map(str::to_owned));
                send(path, if is_kept { &[200] } else { &[403] })
                    .with(json!({ "tenant_id": tenant }))
                    .then(Effect::Groups { profile: Some(id), name, tenant: moved, members: None })
            }
            _ => {
                let (ids, members, is_seen) = self.members_of(by, detail / 3);
                let allowed: &[u16] = match &members {
                    _ if !is_seen => &[422],
                    Some(members) if self.tenancy.may_regroup(by, &id, members) => &[200],
                    _ => &[403],
                };
                send(path, allowed).with(json!({ "social_account_ids": ids })).then(Effect::Groups {
                    profile: Some(id),
                    name,
                    tenant: None,
                    members,
                })
            }
        }
    }

    /// Returns ids of accounts by a number, their indices if all are the organization's, and whether a caller finds all of
    /// them.
    fn members_of(&self, by: By, number: usize) -> (Vec<String>, Option<Vec<usize>>, bool) {
        let mut chosen: Vec<_> = (0..number % 3).map(|nth| self.account(by, number / 3 + nth)).collect();
        chosen.dedup();
        let is_seen = chosen.iter().all(|(index, _)| self.finds(by, *index));
        let (indices, ids): (Vec<_>, Vec<_>) = chosen.into_iter().unzip();
        (ids, indices.into_iter().collect(), is_seen)
    }

    /// A media asset, a client token, or something of the whole organization.
    async fn about_row(
        &mut self,
        name: &str,
        kind: &'static str,
        by: By,
        subject: usize,
        detail: usize,
    ) -> Send {
        let new = format!("Name {}", self.next_text());
        let (row, id) = match self.row(by, kind, subject, name.starts_with("GET")) {
            Subject::Ours(row) => (Some(row.clone()), row.id),
            Subject::Theirs(id) => (None, id),
        };
        let is_there = row.is_some_and(|row| self.tenancy.sees_row(by, &row));
        let delivery = if name.contains("{delivery_id}") { self.delivery(&id).await } else { None };
        let nowhere = Uuid::now_v7().to_string();
        let (_, path) = name.split_once(' ').expect("a method and a path");
        let path = path.replace("{id}", &id);
        let path = path.replace("{delivery_id}", delivery.as_deref().unwrap_or(&nowhere));
        let allow = |allowed: &'static [u16]| if is_there { allowed } else { &[404] };
        let delivered =
            |allowed: &'static [u16]| if is_there && delivery.is_some() { allowed } else { &[404] };
        match name {
            "PATCH /media/{id}" => send(path, allow(&[200])).with(json!({ "alt_text": new })),
            "POST /media/{id}/confirm" => send(path, allow(&[200, 409, 422])),
            "POST /api-keys/{id}/rotate" => send(path, allow(&[201]))
                .with(json!({ "grace_seconds": 0 }))
                .then(Effect::Replaces { old: id, name: new }),
            "PATCH /social-networks/{id}" => send(path, allow(&[200])).with(json!({ "display_name": new })),
            "PATCH /team/{id}" => {
                let role = ["viewer", "publisher", "admin"][detail % 3];
                send(path, allow(&[200])).with(json!({ "role": role }))
            }
            "PATCH /webhooks/{id}" => send(path, allow(&[200])).with(json!({ "description": new })),
            "GET /webhooks/{id}/deliveries" => send(path, allow(&[200])),
            "GET /webhooks/{id}/deliveries/{delivery_id}" => send(path, delivered(&[200])),
            "POST /webhooks/{id}/deliveries/{delivery_id}/redeliver" => send(path, delivered(&[202, 409])),
            "POST /webhooks/{id}/replay" => {
                let since = tests::now() - TimeDelta::hours(1);
                send(path, allow(&[202])).with(json!({ "since": since }))
            }
            "POST /webhooks/{id}/test" => send(path, allow(&[200])),
            _ if name.starts_with("GET") => send(path, allow(&[200])).then(Effect::Shows(id)),
            _ if name.starts_with("DELETE") => send(path, allow(&[200])).then(Effect::Ends(id)),
            _ => panic!("{name} is no step of the walk: add it to lifecycle::wishes"),
        }
    }

    /// Returns a delivery of a webhook endpoint, if it had one.
    pub(super) async fn delivery(&self, webhook: &str) -> Option<String> {
        let one = "select id::text from deliveries where webhook_id = $1::text::uuid order by id limit 1";
        sqlx::query_scalar(one).bind(webhook).fetch_optional(&self.world.db).await.unwrap()
    }

    /// Requests that create something, or name accounts in their body or query.
    fn create(&mut self, name: &str, by: By, subject: usize, detail: usize) -> Send {
        let new = format!("Name {}", self.next_text());
        let (_, path) = name.split_once(' ').expect("a method and a path");
        let tenant = ["mine", "theirs"][detail % 2];
        let bound = self.tenancy.bound(by);
        let (index, account) = self.account(by, subject);
        let is_seen = self.finds(by, index);
        let add = |kind, place| Effect::Adds { kind, name: new.clone(), place };
        let seen = |allowed: &'static [u16]| if is_seen { allowed } else { &[422] };
        match name {
            "POST /client-tokens" => {
                let is_right = match &bound {
                    Bound::Organization => true,
                    Bound::Tenant(own) => own == tenant,
                    _ => false,
                };
                let place = Place::Tenant(Some(tenant.to_owned()));
                send(path, if is_right { &[201] } else { &[403] })
                    .with(json!({ "tenant_id": tenant }))
                    .then(add("client-tokens", place))
            }
            "POST /media/import" => send(path, &[400]).with(json!({ "url": "https://10.0.0.1/a" })),
            "POST /media/upload" => send(path, &[201])
                .with(json!({ "filename": format!("{new}.png") }))
                .then(add("media", Place::Upload(bound))),
            "POST /posts/validate" => {
                send(path, seen(&[200])).with(json!({ "content": new, "accounts": [account] }))
            }
            "POST /profiles" => self.new_profile(path, by, tenant, detail / 2),
            "GET /scheduling/find-slot" => send(format!("{path}?account={account}"), seen(&[200])),
            // The same slots as the organization's, so that the next ones are the same.
            "PUT /scheduling/slots" => send(path, seen(&[200])).with(weekly(Some(&account))),
            "POST /social-accounts/bluesky/connect" => send(path, &[400]).with(json!({ "identifier": "a" })),
            "POST /social-networks/{platform}/auth-url" => self.auth_url(by, subject, detail),
            "POST /api-keys" => send(path, &[201])
                .with(json!({ "name": new, "scopes": ["posts:read"], "tenant_id": tenant }))
                .then(add("api-keys", Place::Organization)),
            "POST /team" => {
                let name = format!("name{}@example.com", self.texts);
                let effect = Effect::Adds { kind: "team", name: name.clone(), place: Place::Organization };
                send(path, &[201]).with(json!({ "email": name, "role": "viewer" })).then(effect)
            }
            "POST /webhooks" => send(path, &[201])
                .with(json!({ "url": self.spare.url, "events": ["import.failed"] }))
                .then(add("webhooks", Place::Organization)),
            "POST /social-networks" => {
                let platform = ["pinterest", "tiktok", "linkedin"][detail % 3];
                send(path, &[200, 201])
                    .with(json!({ "platform": platform, "client_id": new }))
                    .then(add("social-networks", Place::Organization))
            }
            "PUT /connect/branding" => send(path, &[200]).with(json!({ "name": new })),
            // They are of both modes, and the keys of one.
            "PATCH /media/settings" => send(path, &[403]).with(json!({ "strip_metadata": false })),
            _ => panic!("{name} is no step of the walk: add it to lifecycle::wishes"),
        }
    }

    fn new_profile(&mut self, path: &str, by: By, tenant: &str, detail: usize) -> Send {
        let name = format!("Profile {}", self.texts);
        let (mut ids, mut members, mut is_seen) = self.members_of(by, detail);
        if by == By::Stranger && is_seen {
            // Otherwise it would be a profile of theirs.
            let (index, id) = self.account(by, 0);
            (ids, members, is_seen) = (vec![id], index.map(|index| vec![index]), false);
        }
        let is_right = match self.tenancy.bound(by) {
            Bound::Organization | Bound::Elsewhere => true,
            Bound::Tenant(own) => own == tenant,
            _ => false,
        };
        let allowed = if !is_right {
            &[403]
        } else if is_seen {
            &[201]
        } else {
            &[422]
        };
        let tenant = Some(Some(tenant.to_owned()));
        send(path, allowed)
            .with(json!({ "name": name, "tenant_id": tenant, "social_account_ids": ids }))
            .then(Effect::Groups { profile: None, name, tenant, members })
    }

    /// The beginning of a login, for a new account or one that is there.
    fn auth_url(&self, by: By, subject: usize, detail: usize) -> Send {
        let path = "/social-networks/x/auth-url";
        let of_x =
            |index: Option<usize>| index.is_none_or(|index| self.tenancy.accounts[index].platform == "x");
        let (index, account) = self.account(by, subject);
        // Logins of a client token end on the page that the token was created for.
        let mut body = if by == By::Client { json!({}) } else { json!({ "redirect_uri": BACK }) };
        if detail.is_multiple_of(2) || !of_x(index) {
            let is_right = matches!(by, By::Owner | By::Stranger | By::Tenant | By::Client);
            return send(path, if is_right { &[200] } else { &[403] }).with(body);
        }
        body["reconnect_account_id"] = json!(account);
        send(path, if self.finds(by, index) { &[200] } else { &[422] }).with(body)
    }
}

/// A post that waits, chosen by numbers.
pub(super) fn draft(subject: usize, detail: usize) -> Draft {
    let plan = [Plan::Draft, Plan::Far][detail % 2];
    let accounts = Accounts(u8::try_from(1 + subject % 7).expect("a few"));
    Draft { plan, accounts, fault: Fault::None, has_reply: false, key: None, reply_to: None }
}
