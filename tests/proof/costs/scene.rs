//! An organization with as much as one may have, and another one beside it.
//!
//! The rows are written as the service would have written them, by statements: to create them by calls would take hours.
//! Accounts other than one have no grant, and nothing is due, so that nothing is published.

use crate::{
    PROGRAM,
    hostile::{document, tenants::Tenant},
};
use reqwest::{Client, Method, RequestBuilder, redirect::Policy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::{
    PATIENCE, Receiver, World, if_right,
    meter::{Cost, Meter},
    samples::png,
    wait_until,
};
use uuid::Uuid;

/// Accounts, and as many of everything else of which a list has so many entries.
pub(super) const MANY: u128 = 1000;
/// Profiles and members: a plan has room for some more.
pub(super) const LISTED: u128 = 990;
/// Posts of each of the accounts with many: open ones of one, dead ones of another.
const CROWD: u128 = 2000;
/// Posts of all accounts together, with texts.
const POSTS: u128 = 20_000;
/// Posting slots of an account.
const SLOTS: u128 = 168;

/// Kinds of rows, for their ids.
#[derive(Clone, Copy)]
pub(super) enum Row {
    Account = 1,
    Profile,
    /// A published post to all accounts.
    Published,
    /// A scheduled post to all accounts.
    Scheduled,
    /// A failed post to all accounts.
    Failed,
    /// Posts that the first account has still to publish.
    Open,
    /// Failed posts of the second account.
    Dead,
    /// Published posts of all accounts.
    Post,
    Webhook,
    Event,
    Delivery,
    Member,
    Key,
    Network,
}

impl Row {
    /// Returns the id of a row, from 1.
    pub(super) fn id(self, number: u128) -> Uuid {
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + ((self as u128) << 40) + number)
    }
}

/// A request that can be repeated.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Call {
    pub(super) fn build(&self, http: &Client) -> RequestBuilder {
        let request = http.request(self.method.clone(), &self.url).body(self.body.clone());
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }
}

/// An answer to a request that was measured.
pub(super) struct Measured {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) cost: Cost,
}

/// The organization, on a service of its own.
pub(super) struct Scene {
    pub(super) world: World,
    /// A client that does not follow redirects.
    pub(super) http: Client,
    /// Another organization of the service, which has little.
    pub(super) neighbor: Tenant,
    pub(super) document: Value,
    pub(super) operations: Vec<document::Operation>,
    /// Ids by the segment of the path that they follow, or the member of a body that has them, the largest first.
    pub(super) ids: BTreeMap<&'static str, Vec<String>>,
    /// URL of a receiver of webhooks.
    pub(super) hook: String,
    /// Number of requests sent.
    pub(super) sent: usize,
    pub(super) meter: Meter,
}

impl Scene {
    /// Makes the organization, with a worker and little else.
    pub(super) async fn start() -> Self {
        let world = World::of(&PROGRAM).running(&["api", "worker"]).start().await;
        let receiver = Receiver::start().await;
        let neighbor = Tenant::new(&world).await;
        let ada = world.connect("x", "ada").await;
        let medium = world.medium("now.png", Some("A picture"), png(640, 640)).await;
        let webhook = world.subscribe(&receiver.url).await;
        let post = world.ended(&world.post(json!({ "content": "One", "accounts": [ada] })).await).await;
        let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
        let ids = BTreeMap::from([
            ("social-accounts", vec![ada]),
            ("posts", vec![id(&post)]),
            ("targets", vec![id(&post["targets"][0])]),
            ("webhooks", vec![id(&webhook)]),
            ("media", vec![id(&medium)]),
            ("kind", vec!["privacy_levels".to_owned(), "boards".to_owned()]),
            ("platform", vec!["x".to_owned(), "facebook".to_owned()]),
        ]);
        let url = format!("{}/openapi.json", world.base);
        let document: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
        let operations = document::operations(&document);
        let meter = Meter::of(&world).await;
        let http = Client::builder().redirect(Policy::none()).timeout(PATIENCE).build().unwrap();
        Self { world, http, neighbor, document, operations, ids, hook: receiver.url.clone(), sent: 0, meter }
    }

    /// Gives the organization as much as it may have. The worker stops: it would attempt what is retried, while requests
    /// are measured.
    pub(super) async fn fill(&mut self) {
        let webhook = format!("/webhooks/{}", self.ids["webhooks"][0]);
        assert_eq!(self.world.call(Method::DELETE, &webhook, None).await.0, 200);
        assert!(self.world.stop("worker").await);
        tests::sql(&self.world.db, &rows(&self.world.owner.org.to_string())).await;
        self.meter.look_again(&self.world).await;
        self.ids = ids(&self.ids["social-accounts"][0], &self.ids["media"][0]);
    }

    /// Returns the first id of a collection.
    pub(super) fn id(&self, collection: &str) -> String {
        self.ids[collection][0].clone()
    }

    /// Ends the service. Its workflows have no worker, and are left to the run.
    pub(super) async fn end(&mut self) {
        self.world.kill("api").await;
    }

    /// Returns a request of the API with the organization's key.
    pub(super) fn call(&self, method: &Method, path: &str, body: Option<&Value>) -> Call {
        let mut headers = vec![("authorization", format!("Bearer {}", self.world.key))];
        headers.extend(body.map(|_| ("content-type", "application/json".to_owned())));
        Call {
            method: method.clone(),
            url: format!("{}{path}", self.world.base),
            headers,
            body: body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
        }
    }

    /// Sends a request, and returns its answer and what it cost.
    pub(super) async fn send(&mut self, call: &Call) -> Measured {
        // Work that an earlier request made necessary is not of this one.
        let outbox = async || {
            let waiting = sqlx::query_scalar::<_, i64>("select count(*) from outbox");
            if_right(waiting.fetch_one(&self.world.db).await.unwrap(), |waiting| *waiting == 0)
        };
        wait_until("the outbox to be empty", outbox).await;
        // New connections to the database would not be measured.
        if self.sent.is_multiple_of(20) {
            self.meter.look_again(&self.world).await;
        }
        self.sent += 1;
        let sending = async {
            let answer = call.build(&self.http).send().await.unwrap();
            (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
        };
        let ((status, body), cost) = self.meter.measure(sending).await;
        Measured { status, body, cost }
    }
}

fn ids(ada: &str, medium: &str) -> BTreeMap<&'static str, Vec<String>> {
    let some = |row: Row, count| (1..=count).map(|number| row.id(number).to_string()).collect::<Vec<_>>();
    let posts = [Row::Published, Row::Scheduled, Row::Failed, Row::Open, Row::Dead, Row::Post];
    // Targets have the ids of their accounts, with the post's kind.
    let target = |post: Row, number| target_id(post, number).to_string();
    let mut accounts = some(Row::Account, MANY);
    accounts.push(ada.to_owned());
    BTreeMap::from([
        ("social-accounts", accounts),
        ("profiles", some(Row::Profile, LISTED)),
        ("posts", posts.map(|post| post.id(1).to_string()).to_vec()),
        ("targets", (1..=MANY).map(|number| target(Row::Failed, number)).collect()),
        ("webhooks", some(Row::Webhook, 15)),
        ("deliveries", some(Row::Delivery, MANY)),
        ("events", some(Row::Event, MANY)),
        ("team", some(Row::Member, LISTED)),
        ("api-keys", some(Row::Key, MANY)),
        ("social-networks", some(Row::Network, 1)),
        ("media", vec![medium.to_owned()]),
        ("kind", vec!["privacy_levels".to_owned(), "boards".to_owned()]),
        ("platform", vec!["x".to_owned(), "facebook".to_owned()]),
    ])
}

/// Returns the id of the target of a post to all accounts.
fn target_id(post: Row, account: u128) -> Uuid {
    Uuid::from_u128(post.id(account).as_u128() | 1 << 39)
}

/// Returns the statements that write the rows of an organization in test mode.
fn rows(org: &str) -> String {
    let kind = |row: Row| row as u128;
    let [account, profile, published, scheduled, failed, open, dead, post] = [
        Row::Account,
        Row::Profile,
        Row::Published,
        Row::Scheduled,
        Row::Failed,
        Row::Open,
        Row::Dead,
        Row::Post,
    ]
    .map(kind);
    let [webhook, event, delivery, member] = [Row::Webhook, Row::Event, Row::Delivery, Row::Member].map(kind);
    let [key, network] = [Row::Key, Row::Network].map(kind);
    format!(
        "create function id(kind bigint, number bigint) returns uuid language sql immutable as
           $$ select ('01900000-0000-7000-8000-' || lpad(to_hex((kind << 40) + number), 12, '0'))::uuid $$;
         insert into profiles (id, org_id, mode, name, tenant_id, timezone, description)
         select id({profile}, n), '{org}', 'test', repeat('p', 90) || n, 'tenant', 'UTC', repeat('d', 200)
         from generate_series(1, {LISTED}) n;
         insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name, profile_id, tenant_id)
         select id({account}, n), '{org}', 'test', 'x', 'u' || n, 'user' || n, repeat('n', 40) || n, id({profile}, 1), 'tenant'
         from generate_series(1, {MANY}) n;
         insert into slots (id, org_id, mode, account_id, slots)
         select gen_random_uuid(), '{org}', 'test', id({account}, n), (
           select jsonb_agg(jsonb_build_object('weekday', (array['monday', 'tuesday', 'wednesday', 'thursday', 'friday',
             'saturday', 'sunday'])[k % 7 + 1], 'time', lpad((k / 7)::text, 2, '0') || ':30'))
           from generate_series(0, {SLOTS} - 1) k)
         from generate_series(1, {MANY}) n;
         insert into api_keys (id, org_id, mode, name, digest, last_four, scopes, expires_at, bound)
         select id({key}, n), '{org}', 'test', repeat('k', 100), sha256(n::text::bytea), 'abcd',
           array['posts:read', 'posts:write', 'accounts:read', 'media:read'], now() - interval '1 hour',
           jsonb_build_object('accounts', (select jsonb_agg(id({account}, k)) from generate_series(1, {MANY}) k))
         from generate_series(1, {MANY}) n;
         insert into networks (id, org_id, mode, platform, display_name, client_id)
         values (id({network}, 1), '{org}', 'test', 'youtube', 'Ours', 'client');
         insert into members (id, org_id, email, role, status, invited_at)
         select id({member}, n), '{org}', repeat('m', 50) || n || '@example.com', 'viewer', 'invited', now()
         from generate_series(1, {LISTED}) n;
         insert into webhooks (id, org_id, mode, url, events, secret_sealed, is_active)
         select id({webhook}, n), '{org}', 'test', 'https://example.com/' || repeat('u', 1000), array['*'], '', false
         from generate_series(1, 15) n;
         insert into posts (id, org_id, mode, status, is_draft, scheduled_at, starts_at, published_at, created_at)
         select id(kind, n), '{org}', 'test', status, false, at, at - interval '1 day', went_out, now() - n * interval '1 s'
         from (values ({published}, 'published', 1, null, now()), ({scheduled}, 'scheduled', 1, now() + interval '300 d', null),
           ({failed}, 'failed', 1, null, null), ({open}, 'scheduled', {CROWD}, now() + interval '300 d', null),
           ({dead}, 'failed', {CROWD}, null, null), ({post}, 'published', {POSTS}, null, now())
         ) kinds (kind, status, count, at, went_out), lateral generate_series(1, count) n;
         insert into containers (id, post_id, org_id, mode, position, content)
         select gen_random_uuid(), id, '{org}', 'test', 0, repeat('lorem ipsum ', 100) || created_at
         from posts where id between id({published}, 1) and id({webhook}, 0);
         -- Of the posts to all accounts, and of those to one.
         insert into targets (id, post_id, org_id, mode, account_id, platform, status, error_code, error_message,
           platform_post_id, published_at)
         select id(kind, (1::bigint << 39) + n), id(kind, 1), '{org}', 'test', id({account}, n), 'x', status, code, message,
           case when status = 'published' then n::text end, case when status = 'published' then now() end
         from (values ({published}, 'published', null, null), ({scheduled}, 'pending', null, null),
           ({failed}, 'dead', 'content_rejected', repeat('r', 500))) kinds (kind, status, code, message),
           generate_series(1, {MANY}) n;
         insert into targets (id, post_id, org_id, mode, account_id, platform, status, error_code, error_message,
           platform_post_id, published_at, created_at)
         select gen_random_uuid(), id(kind, n), '{org}', 'test',
           id({account}, case when kind = {open} then 1 when kind = {dead} then 2 else n % {MANY} + 1 end), 'x', status,
           code, message, case when status = 'published' then 'p' || n end,
           case when status = 'published' then now() end, now() - n * interval '1 s'
         from (values ({open}, 'pending', null, null, {CROWD}), ({dead}, 'dead', 'content_rejected', 'refused', {CROWD}),
           ({post}, 'published', null, null, {POSTS})) kinds (kind, status, code, message, count),
           lateral generate_series(1, count) n;
         insert into timeline (org_id, mode, post_id, at, kind, message)
         select '{org}', 'test', id(kind, 1), now(), 'retry', repeat('m', 300)
         from unnest(array[{published}, {scheduled}, {failed}]) kind, generate_series(1, {CROWD});
         -- A page of them is of posts to all accounts.
         with bodies as (
           select jsonb_build_object('event', 'post.published', 'timestamp', '2026-01-01T00:00:00.000Z', 'data',
             jsonb_build_object('socialAccounts', (select jsonb_agg(jsonb_build_object('accountId', id({account}, k),
               'network', 'x', 'username', 'user' || k, 'error', repeat('e', 200))) from generate_series(1, {MANY}) k)))::text
             as large,
             '{{\"event\": \"post.published\", \"timestamp\": \"2026-01-01T00:00:00.000Z\", \"data\": {{}}}}' as small)
         insert into events (id, org_id, mode, event, post_id, body, streamed_at)
         select id({event}, n), '{org}', 'test', 'post.published', id({published}, 1),
           case when n <= 110 then large else small end, now() - interval '1 hour'
         from bodies, generate_series(1, {CROWD}) n;
         insert into deliveries (id, event_id, webhook_id, org_id, mode, event, status, error, response_excerpt)
         select id({delivery}, n), id({event}, n), id({webhook}, 1), '{org}', 'test', 'post.published', 'failed',
           'refused', repeat('x', 500) from generate_series(1, {CROWD}) n;
         insert into audit_entries (id, org_id, mode, at, actor, action, object_id, details)
         select gen_random_uuid(), '{org}', 'test', now() - n * interval '1 s', 'key', 'account.connected',
           id({account}, 1), json_build_object('text', repeat('a', 500)) from generate_series(1, {CROWD}) n;
         insert into request_log (id, org_id, mode, method, path, status, duration_ms, last_four, at)
         select gen_random_uuid(), '{org}', 'test', 'GET', '/posts', 200, 1, 'abcd', now() - n * interval '1 s'
         from generate_series(1, {CROWD}) n;
         analyze;"
    )
}

/// Returns the body of a post to all accounts.
pub(super) fn to_all(scene: &Scene, text: &str) -> Value {
    let accounts = &scene.ids["social-accounts"][..MANY as usize];
    json!({ "content": text, "accounts": accounts, "is_draft": true })
}
