//! Steps over all pages and actions of the dashboard, each in one of several sessions.
//!
//! A page shows the rows that the model says are there, and nothing that it says is not; an action changes what the
//! operation of the API that it stands for would change.

use super::{
    model::{Answer, Checked, Stage, ensure},
    places::{ROUTES, Visit, named},
    steps::{ACCOUNTS, Call, Draft, Plan},
    system::System,
    tenancy::Place,
    walk::count,
    who::{By, Guest},
    wishes::draft,
};
use crate::surface::tables::kind_of;
use domain::scope;
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Most posts of a page of the list.
const LISTED: usize = 25;
/// Statuses of an action that did nothing.
const UNDONE: &[u16] = &[400, 404, 409, 422];

/// Subject of a page or an action.
enum After {
    /// Nothing that the model knows.
    None,
    /// Shows the rows of a kind.
    Lists(&'static str),
    /// Shows a text.
    Shows(String),
    /// Deletes a row.
    Ends(String),
    /// Creates a row of a kind.
    Adopts(&'static str, Place),
    /// Replaces a key.
    Replaces(String),
    /// Makes a call of the model of states.
    Calls(Call),
    /// Creates a post with this text.
    Creates(Draft, usize),
    /// Disconnects a spare account.
    Disconnects(usize),
}

/// A request for a page, or a form, and what is allowed for an answer.
struct Opening {
    target: String,
    form: Vec<(&'static str, String)>,
    allowed: Vec<u16>,
    after: After,
}

fn open(target: impl Into<String>, allowed: &[u16]) -> Opening {
    Opening { target: target.into(), form: Vec::new(), allowed: allowed.to_vec(), after: After::None }
}

impl Opening {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.form.push((name, value.into()));
        self
    }

    fn then(self, after: After) -> Self {
        Self { after, ..self }
    }
}

impl System {
    /// Takes a step over a page or an action.
    pub(super) async fn visit(&mut self, visit: &Visit) -> Checked {
        let (method, path, needed) = &ROUTES[visit.route % ROUTES.len()];
        // Its result would be the other organization's.
        let creates = ["/compose", "/webhooks", "/media/uploads", "/keys", "/team"].contains(path);
        let is_own = visit.guest == Guest::Stranger && creates && *method == Method::POST;
        let guest = if is_own { Guest::Owner } else { visit.guest };
        let by = if guest == Guest::Stranger { By::Stranger } else { By::Owner };
        self.settle();
        let name = named(method, path);
        count(&name);
        let Visit { subject, detail, .. } = *visit;
        let mut opening = if *method == Method::GET {
            self.page(path, by, subject).await
        } else {
            self.action(path, by, subject, detail).await
        };
        let refusal = match guest {
            Guest::Nobody => Some(401),
            _ if !needed.iter().all(|needed| scope::allows(guest.scopes(), *needed)) => Some(403),
            _ => None,
        };
        if let Some(refusal) = refusal {
            opening = Opening { allowed: vec![refusal], after: After::None, ..opening };
        }
        let Opening { target, form, allowed, after } = opening;
        let fields: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (status, text) = self.callers.visitor(guest).visit(method, &target, &fields).await;
        let status = status.as_u16();
        self.transcript.borrow_mut().push(format!("  {method} dashboard {target} by {guest:?}: {status}"));
        let outcome = ensure(allowed.contains(&status), || {
            format!("status {status} instead of {allowed:?}: {form:?} {text}")
        });
        let sent = format!("{target} {form:?}");
        let seen = || self.tenancy.check_hidden(by, &self.model.posts, &sent, &text);
        let outcome = outcome.and_then(|()| seen());
        let outcome = match outcome {
            Ok(()) if status < 400 && by == By::Owner => self.follow(after, &text).await,
            outcome => outcome,
        };
        outcome.map_err(|error| format!("{name} at {target} by {guest:?}: {error}"))
    }

    /// Checks and notes what a page has shown or an action has done.
    async fn follow(&mut self, after: After, text: &str) -> Checked {
        match after {
            After::None => {}
            After::Lists(kind) => return self.check_page(kind, text),
            After::Shows(part) => {
                ensure(text.contains(&part), || format!("{part} is not shown: {text}"))?;
            }
            After::Ends(id) => self.tenancy.end(&id),
            After::Adopts(kind, place) => self.adopt(kind, place).await?,
            After::Replaces(id) => {
                self.tenancy.end(&id);
                self.adopt("api-keys", Place::Organization).await?;
            }
            After::Calls(call) => return self.called(&call),
            After::Creates(draft, number) => return self.created(&draft, number).await,
            After::Disconnects(index) => {
                self.tenancy.accounts[index].is_connected = false;
                self.model.disconnected += 1;
            }
        }
        Ok(())
    }

    /// Checks which rows of a kind a page shows.
    fn check_page(&self, kind: &'static str, text: &str) -> Checked {
        let expected = self.tenancy.listed(By::Owner, kind, &self.model.posts);
        let posts = self.model.posts.iter();
        let known: Vec<_> = match kind {
            "posts" => posts.map(|post| &post.id).collect(),
            "social-accounts" => self.tenancy.accounts.iter().map(|account| &account.id).collect(),
            // Some can't be changed on the page, and are shown by other texts.
            _ => self
                .tenancy
                .rows
                .iter()
                .filter(|row| row.kind == kind && row.is_spare)
                .map(|row| &row.id)
                .collect(),
        };
        let is_whole = kind != "posts" || expected.len() <= LISTED;
        for id in known {
            let is_right = match (text.contains(id.as_str()), expected.contains(id)) {
                (true, is_expected) => is_expected,
                (false, is_expected) => !is_expected || !is_whole,
            };
            ensure(is_right, || format!("{kind} should be {expected:?}, other than {id}: {text}"))?;
        }
        let shown = |number: usize| text.contains(&format!("Text {number}."));
        let seen = self.model.posts.iter().filter(|post| kind == "posts" && expected.contains(&post.id));
        let missing = seen.map(|post| post.text).find(|number| is_whole && !shown(*number));
        ensure(missing.is_none(), || format!("text {missing:?} is not shown: {text}"))
    }

    /// Adds the one row of a list that the model did not know.
    async fn adopt(&mut self, kind: &'static str, place: Place) -> Checked {
        let listed = self.world.get(&format!("/{kind}?limit=100")).await;
        let found = listed["data"].as_array().into_iter().flatten();
        let found: BTreeSet<_> = found.filter_map(|row| row["id"].as_str()).map(str::to_owned).collect();
        let known = self.tenancy.listed(By::Owner, kind, &self.model.posts);
        let new: Vec<_> = found.difference(&known).collect();
        let [id] = new[..] else { return Err(format!("{new:?} are new of {kind}")) };
        self.add(kind, id.clone(), id.clone(), place);
        Ok(())
    }

    /// Tells the model of states of a call that succeeded.
    fn called(&mut self, call: &Call) -> Checked {
        let body = match call {
            Call::Delete { .. } => json!({ "canceled": true }),
            _ => json!({ "status": "scheduled" }),
        };
        let text = self.next_text();
        self.model.apply(call, text, &Answer { status: 200, is_replay: false, body, queue: None })
    }

    /// Tells the model of states of a post that was created.
    async fn created(&mut self, draft: &Draft, text: usize) -> Checked {
        let listed = self.world.get("/posts?limit=100").await;
        let known = |id: &str| self.model.posts.iter().any(|post| post.id == id);
        let ids = listed["data"].as_array().into_iter().flatten().filter_map(|post| post["id"].as_str());
        let id = ids.into_iter().find(|id| !known(id)).ok_or("no post was created")?;
        let body = self.world.get(&format!("/posts/{id}")).await;
        let answer = Answer { status: 201, is_replay: false, body, queue: None };
        self.model.apply(&Call::Create(draft.clone()), text, &answer)
    }

    /// Returns the row of a kind and a number that a visitor names, and whether they find it. A step changes spare rows
    /// only.
    fn named_row(&self, kind: &str, by: By, number: usize, is_read: bool) -> (String, bool) {
        let rows = self.tenancy.rows.iter().filter(|row| row.kind == kind && (is_read || row.is_spare));
        let rows: Vec<_> = rows.collect();
        match rows.get(number % (rows.len() + usize::from(by == By::Owner))) {
            Some(row) => (row.id.clone(), self.tenancy.sees_row(by, row)),
            None => (self.tenancy.foreign[kind].clone(), false),
        }
    }

    /// Returns the request for a page.
    async fn page(&self, path: &'static str, by: By, subject: usize) -> Opening {
        let kind = kind_of(path);
        if !path.contains('{') {
            let listed = match path {
                "/accounts" | "/keys" | "/media" | "/posts" | "/team" | "/webhooks" => After::Lists(kind),
                _ => After::None,
            };
            let allowed: &[u16] = match path {
                "/sign-in" => &[303],
                // A key has no passkeys.
                "/me/passkeys/options" => &[200, 400, 403, 404, 409],
                _ => &[200],
            };
            return open(path, allowed).then(listed);
        }
        match kind {
            "posts" => self.page_of_post(path, by, subject).await,
            "events" => {
                let one = "select id::text from events where org_id = $1 order by id desc limit 1";
                let org = self.world.owner.org.0;
                let event: Option<String> =
                    sqlx::query_scalar(one).bind(org).fetch_optional(&self.world.db).await.unwrap();
                let is_there = event.is_some() && by == By::Owner;
                let id = event.unwrap_or_else(|| Uuid::now_v7().to_string());
                open(path.replace("{id}", &id), if is_there { &[200] } else { &[404] })
            }
            kind => {
                let (id, is_there) = self.named_row(kind, by, subject, true);
                let delivery = if kind == "webhooks" { self.delivery(&id).await } else { None };
                let is_there = is_there && (delivery.is_some() || !path.contains("{delivery}"));
                let delivery = delivery.unwrap_or_else(|| Uuid::now_v7().to_string());
                let allowed: &[u16] = match path {
                    _ if !is_there => &[404],
                    // A file may not have been uploaded yet.
                    "/media/{id}/thumbnail" | "/media/{id}/file" => &[200, 302, 303, 307, 404, 409],
                    _ => &[200],
                };
                open(path.replace("{id}", &id).replace("{delivery}", &delivery), allowed)
            }
        }
    }

    /// Returns the path of a page or an action with a post of a number, with one of its targets if it waits, and the index
    /// of the post if the visitor finds it. What acts on targets is asked for what waits.
    async fn with_post(&self, path: &str, by: By, subject: usize) -> (String, Option<usize>, String) {
        let (found, id) = self.chosen(by, subject);
        let there = found.filter(|(_, post)| !post.is_deleted && self.tenancy.has_post(by, post));
        let target = match there {
            Some((_, post)) if post.stage == Stage::Waiting => self.target(&id, 0).await.1,
            _ => Uuid::now_v7().to_string(),
        };
        let path = path.replace("{id}", &id).replace("{target}", &target).replace("{position}", "0");
        (path, there.map(|(index, _)| index), format!("{id}/{target}"))
    }

    async fn page_of_post(&self, path: &'static str, by: By, subject: usize) -> Opening {
        let (target, there, _) = self.with_post(path, by, subject).await;
        match (path, there) {
            (_, None) => open(target, &[404]),
            ("/posts/{id}", Some(index)) => {
                let text = format!("Text {}.", self.model.posts[index].text);
                open(target, &[200]).then(After::Shows(text))
            }
            (_, Some(_)) if path.contains("{position}") => open(target, UNDONE),
            _ => open(target, &[200]),
        }
    }

    /// Returns the form of an action.
    async fn action(&mut self, path: &'static str, by: By, subject: usize, detail: usize) -> Opening {
        match kind_of(path) {
            "posts" => self.action_on_post(path, by, subject).await,
            "social-accounts" => self.action_on_account(path, by, subject),
            "media" => self.action_on_media(path, by, subject),
            "api-keys" | "team" => self.action_on_organization(path, by, subject, detail),
            "webhooks" => self.action_on_webhook(path, by, subject).await,
            "sessions" => {
                let (org, path) = (self.world.owner.org.to_string(), path.replace("{id}", "7"));
                let own = open(path, &[200, 303, 400, 403, 404, 409, 422]);
                own.with("organization", org).with("mode", "test").with("zone", "UTC")
            }
            _ => match path {
                "/retry" => {
                    let (_, _, target) = self.with_post("", by, subject).await;
                    open(path, &[303, 400, 404, 409, 422]).with("target", target)
                }
                "/checklist/dismiss" => open(path, &[303]),
                "/compose/preview" => {
                    let (_, account) = self.account(by, subject);
                    open(path, &[200]).with("account", account).with("text", "Some")
                }
                "/compose" => {
                    let (number, new) = (self.next_text(), draft(subject, 0));
                    let is_seen = self.tenancy.sees_accounts(by, new.accounts.indices());
                    let text = format!("Text {number}. ");
                    let mut form = open(path, if is_seen { &[303] } else { &[422] });
                    for index in new.accounts.indices() {
                        form = form.with("account", self.tenancy.accounts[index].id.clone());
                    }
                    form.with("text", text).with("action", "draft").then(After::Creates(new, number))
                }
                _ => panic!("{path} is no step of the walk: add it to lifecycle::visits"),
            },
        }
    }

    async fn action_on_post(&self, path: &'static str, by: By, subject: usize) -> Opening {
        let (target, there, _) = self.with_post(path, by, subject).await;
        let (_, id) = self.chosen(by, subject);
        let post = there.map(|index| (index, &self.model.posts[index]));
        let scheduled = post.filter(|(_, post)| {
            post.stage == Stage::Waiting && (post.plan == Plan::Far || post.plan == Plan::Slot)
        });
        let edit = |post, plan| After::Calls(Call::Edit { post, text: None, plan, accounts: None });
        match (path, post, scheduled) {
            ("/posts/retry", _, _) => match post {
                // A retry of what has ended is a step of its own.
                Some((_, post)) if post.stage != Stage::Waiting => open(path, &[303]),
                _ => open(path, &[303]).with("post", id),
            },
            ("/posts/cancel", _, _) => {
                let after = post.map_or(After::None, |(post, _)| After::Calls(Call::Delete { post }));
                open(path, &[303]).with("post", id).then(after)
            }
            ("/analytics/posts/{id}/refresh", Some(_), _) => open(target, &[200, 303, 404, 409, 422, 503]),
            (_, None, _) => open(target, &[404]).with("at", "2040-01-01T00:00").with("zone", "UTC"),
            ("/posts/{id}/cancel", Some((post, _)), _) => {
                open(target, &[303]).then(After::Calls(Call::Delete { post }))
            }
            ("/posts/{id}/reschedule", _, Some((post, _))) => open(target, &[303, 422])
                .with("at", "2040-01-01T00:00")
                .with("zone", "UTC")
                .then(edit(post, Some(Plan::Far))),
            ("/posts/{id}/release", _, Some((post, found))) if found.plan == Plan::Far => {
                open(target, &[303, 422]).then(edit(post, None))
            }
            ("/posts/{id}/release" | "/posts/{id}/reschedule", _, _) => {
                // Drafts are released by the calls of the model of states.
                open(path.replace("{id}", &self.tenancy.foreign["posts"]), UNDONE)
            }
            _ => open(target, UNDONE).with("text", "Taken"),
        }
    }

    fn action_on_account(&self, path: &'static str, by: By, subject: usize) -> Opening {
        let (mut index, mut id) = self.account(by, subject);
        let is_main = index.is_some_and(|index| index < ACCOUNTS.len());
        if is_main && by == By::Owner && path == "/accounts/{id}/retry" {
            (index, id) = (None, self.tenancy.foreign["social-accounts"].clone());
        }
        let there = index.filter(|index| self.tenancy.sees_account(by, *index));
        let target = path.replace("{id}", &id);
        match (path, there) {
            ("/accounts/connect", _) => open(path, &[303]).with("platform", "x"),
            ("/accounts/bluesky", _) => open(path, &[400]).with("identifier", "a"),
            (_, None) => open(target, &[404]),
            ("/accounts/{id}/check", _) => open(target, &[200, 503]),
            ("/accounts/{id}/retry", _) => open(target, &[200, 409]),
            // One with an app password has no page to go to.
            ("/accounts/{id}/reconnect", _) => open(target, &[200, 303, 400, 422]),
            ("/accounts/{id}/disconnect", Some(account)) if account < ACCOUNTS.len() => {
                open(target, &[303]).then(After::Calls(Call::Disconnect { account }))
            }
            ("/accounts/{id}/disconnect", Some(account)) => {
                open(target, &[303]).then(After::Disconnects(account))
            }
            _ => panic!("{path} is no step of the walk: add it to lifecycle::visits"),
        }
    }

    fn action_on_media(&mut self, path: &'static str, by: By, subject: usize) -> Opening {
        let new = format!("Name {}", self.next_text());
        let (id, is_there) = self.named_row("media", by, subject, false);
        let target = path.replace("{id}", &id);
        match path {
            "/media" => open(path, &[400]).with("url", "https://10.0.0.1/a"),
            // A form without files.
            "/media/files" => open(path, &[400, 415]),
            "/media/uploads" => open(path, &[200, 201])
                .with("filename", format!("{new}.png"))
                .with("size", "100")
                .then(After::Adopts("media", Place::Upload(super::tenancy::Bound::Organization))),
            _ if !is_there => open(target, &[404]),
            "/media/{id}/content" => open(target, &[200, 201, 204, 400, 409, 413, 415, 422]),
            "/media/{id}/abandon" => open(target, &[204, 409]).then(After::Ends(id)),
            "/media/{id}/confirm" => open(target, &[200, 409, 422]),
            "/media/{id}/alt" => open(target, &[303]).with("alt_text", new),
            "/media/{id}/delete" => open(target, &[303]).then(After::Ends(id)),
            _ => panic!("{path} is no step of the walk: add it to lifecycle::visits"),
        }
    }

    /// Keys and members.
    fn action_on_organization(
        &mut self,
        path: &'static str,
        by: By,
        subject: usize,
        detail: usize,
    ) -> Opening {
        let number = self.next_text();
        let kind = kind_of(path);
        let (id, is_there) = self.named_row(kind, by, subject, false);
        let target = path.replace("{id}", &id);
        match path {
            "/keys" => open(path, &[200])
                .with("name", format!("Name {number}"))
                .with("scope", "posts:read")
                .then(After::Adopts(kind, Place::Organization)),
            "/team" => open(path, &[200])
                .with("email", format!("name{number}@example.com"))
                .with("role", "viewer")
                .then(After::Adopts(kind, Place::Organization)),
            _ if !is_there => open(target, &[404]).with("role", "viewer"),
            "/keys/{id}/rotate" => open(target, &[200]).then(After::Replaces(id)),
            "/keys/{id}/revoke" | "/team/{id}/remove" => open(target, &[303]).then(After::Ends(id)),
            "/team/{id}/role" => {
                open(target, &[303]).with("role", ["viewer", "publisher", "admin"][detail % 3])
            }
            _ => panic!("{path} is no step of the walk: add it to lifecycle::visits"),
        }
    }

    async fn action_on_webhook(&self, path: &'static str, by: By, subject: usize) -> Opening {
        let (id, is_there) = self.named_row("webhooks", by, subject, false);
        let delivery = self.delivery(&id).await;
        let was_sent = delivery.is_some();
        let delivery = delivery.unwrap_or_else(|| Uuid::now_v7().to_string());
        let target = path.replace("{id}", &id).replace("{delivery}", &delivery);
        match path {
            "/webhooks" => open(path, &[200])
                .with("url", self.spare.url.clone())
                .with("event", "import.failed")
                .then(After::Adopts("webhooks", Place::Organization)),
            _ if !is_there => open(target, &[404]),
            "/webhooks/{id}/test" | "/webhooks/{id}/reveal" | "/webhooks/{id}/prepare" => {
                open(target, &[200])
            }
            "/webhooks/{id}/pause" | "/webhooks/{id}/resume" | "/webhooks/{id}/replay" => {
                open(target, &[303])
            }
            "/webhooks/{id}/rotate" => open(target, &[200, 303]),
            "/webhooks/{id}/delete" => open(target, &[303]).then(After::Ends(id)),
            "/webhooks/{id}/deliveries/{delivery}/redeliver" => {
                open(target, if was_sent { &[303, 409] } else { &[404] })
            }
            _ => panic!("{path} is no step of the walk: add it to lifecycle::visits"),
        }
    }
}
