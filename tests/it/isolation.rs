//! Every entrance, tried by everybody who must not get in.
//!
//! Operations are read from the OpenAPI document, tools, resource templates and prompts from the lists of the MCP server,
//! and pages from the dashboard's table of routes. What each is about is in a table here; one without a line fails.

use crate::{
    api,
    attacks::{filled, operations},
    browser::Browser,
    mcp, world,
};
use ::store::people::organizations;
use domain::{
    Mode, Owner,
    scope::{self, Scope},
};
use futures::{StreamExt, stream};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use tests::{World, login::joined, samples::png};

/// In the texts and names of everything that the callers must not see.
const SECRET: &str = "Sesame";
/// Calls that are under way at once.
const PARALLEL: usize = 8;

/// What an operation is about.
#[derive(Clone, Copy)]
enum About {
    /// The resource that its path names, of this kind.
    One(&'static str),
    /// Access of the caller.
    Reached,
    /// What its body or query names, and the codes with which limited callers and strangers are refused; none if they
    /// are not, since the names mean nothing to them.
    Named(fn(&Scene) -> Value, &'static [&'static str], &'static [&'static str]),
    /// The organization: no limited caller may call it.
    Organization,
    /// A resource of the organization, which its path names.
    OneOfOrganization(&'static str),
    /// A login, by the token in its path.
    Login,
}

use About::{Login, Named, One, OneOfOrganization, Organization, Reached};

/// The code of an account, or another thing in a body, that is not there.
const UNKNOWN: &[&str] = &["account_not_found"];
const FORBIDDEN: &[&str] = &["forbidden"];

/// The operations.
const OPERATIONS: &[(&str, About)] = &[
    ("GET /account/audit", Organization),
    ("GET /account/requests", Organization),
    ("GET /account/usage", Organization),
    ("GET /api-keys", Organization),
    ("POST /api-keys", Organization),
    ("DELETE /api-keys/{id}", OneOfOrganization("api-keys")),
    ("POST /api-keys/{id}/rotate", OneOfOrganization("api-keys")),
    ("POST /client-tokens", Named(|_| json!({ "tenant_id": "theirs" }), FORBIDDEN, &[])),
    ("DELETE /client-tokens/{id}", One("client-tokens")),
    ("GET /connect/branding", Organization),
    ("PUT /connect/branding", Organization),
    ("GET /connect/platforms", Reached),
    ("GET /events", Reached),
    ("GET /media", Reached),
    (
        "POST /media/import",
        Named(|_| json!({ "url": "https://10.0.0.1/a" }), &["invalid_request"], &["invalid_request"]),
    ),
    ("GET /media/settings", Organization),
    ("PATCH /media/settings", Organization),
    ("POST /media/upload", Named(|_| json!({}), &["invalid_request"], &["invalid_request"])),
    ("DELETE /media/{id}", One("media")),
    ("GET /media/{id}", One("media")),
    ("PATCH /media/{id}", One("media")),
    ("POST /media/{id}/confirm", One("media")),
    ("GET /posts", Reached),
    ("POST /posts", Named(Scene::post, UNKNOWN, UNKNOWN)),
    ("POST /posts/batch", Named(|scene| json!({ "posts": [scene.post()] }), UNKNOWN, UNKNOWN)),
    ("POST /posts/validate", Named(Scene::post, UNKNOWN, UNKNOWN)),
    ("DELETE /posts/{id}", One("posts")),
    ("GET /posts/{id}", One("posts")),
    ("PATCH /posts/{id}", One("posts")),
    ("GET /posts/{id}/analytics", One("posts")),
    ("POST /posts/{id}/retry", One("posts")),
    ("PATCH /posts/{id}/targets/{target_id}", One("posts")),
    ("POST /posts/{id}/targets/{target_id}/retry", One("posts")),
    ("POST /posts/{id}/targets/{target_id}/unpublish", One("posts")),
    ("GET /posts/{id}/timeline", One("posts")),
    ("GET /profiles", Reached),
    ("POST /profiles", Named(Scene::profile, &["forbidden", "account_not_found"], UNKNOWN)),
    ("DELETE /profiles/{id}", One("profiles")),
    ("GET /profiles/{id}", One("profiles")),
    ("PATCH /profiles/{id}", One("profiles")),
    (
        "GET /scheduling/find-slot",
        Named(|scene| json!({ "account": scene.id("social-accounts") }), UNKNOWN, UNKNOWN),
    ),
    ("GET /scheduling/slots", Reached),
    (
        "PUT /scheduling/slots",
        Named(
            |scene| json!({ "social_account_id": scene.id("social-accounts"), "slots": [] }),
            UNKNOWN,
            UNKNOWN,
        ),
    ),
    ("GET /social-accounts", Reached),
    (
        "POST /social-accounts/bluesky/connect",
        Named(
            |_| json!({ "identifier": "a", "tenant_id": "theirs" }),
            &["invalid_request"],
            &["invalid_request"],
        ),
    ),
    ("GET /social-accounts/pending/{token}", Login),
    ("POST /social-accounts/pending/{token}/finalize", Login),
    ("DELETE /social-accounts/{id}", One("social-accounts")),
    ("GET /social-accounts/{id}", One("social-accounts")),
    ("PATCH /social-accounts/{id}", One("social-accounts")),
    ("GET /social-accounts/{id}/capabilities", One("social-accounts")),
    ("GET /social-accounts/{id}/health", One("social-accounts")),
    ("GET /social-accounts/{id}/imported-posts", One("social-accounts")),
    ("GET /social-accounts/{id}/imports", One("social-accounts")),
    ("POST /social-accounts/{id}/imports", One("social-accounts")),
    ("GET /social-accounts/{id}/imports/{import_id}", One("social-accounts")),
    ("GET /social-accounts/{id}/limits", One("social-accounts")),
    ("GET /social-accounts/{id}/options/{kind}", One("social-accounts")),
    ("POST /social-accounts/{id}/retry-failed", One("social-accounts")),
    ("GET /social-networks", Organization),
    ("POST /social-networks", Organization),
    ("DELETE /social-networks/{id}", OneOfOrganization("social-networks")),
    ("GET /social-networks/{id}", OneOfOrganization("social-networks")),
    ("PATCH /social-networks/{id}", OneOfOrganization("social-networks")),
    (
        "POST /social-networks/{platform}/auth-url",
        Named(|scene| json!({ "reconnect_account_id": scene.id("social-accounts") }), UNKNOWN, UNKNOWN),
    ),
    ("GET /team", Organization),
    ("POST /team", Organization),
    ("DELETE /team/{id}", OneOfOrganization("team")),
    ("PATCH /team/{id}", OneOfOrganization("team")),
    ("GET /webhooks", Organization),
    ("POST /webhooks", Organization),
    ("DELETE /webhooks/{id}", OneOfOrganization("webhooks")),
    ("GET /webhooks/{id}", OneOfOrganization("webhooks")),
    ("PATCH /webhooks/{id}", OneOfOrganization("webhooks")),
    ("GET /webhooks/{id}/deliveries", OneOfOrganization("webhooks")),
    ("GET /webhooks/{id}/deliveries/{delivery_id}", OneOfOrganization("webhooks")),
    ("POST /webhooks/{id}/deliveries/{delivery_id}/redeliver", OneOfOrganization("webhooks")),
    ("POST /webhooks/{id}/replay", OneOfOrganization("webhooks")),
    ("POST /webhooks/{id}/test", OneOfOrganization("webhooks")),
];

/// The operations of the MCP tools.
const TOOLS: [(&str, &str); 25] = [
    ("create_auth_url", "POST /social-networks/{platform}/auth-url"),
    ("create_post", "POST /posts"),
    ("create_webhook", "POST /webhooks"),
    ("delete_post", "DELETE /posts/{id}"),
    ("edit_published_post", "PATCH /posts/{id}/targets/{target_id}"),
    ("find_slot", "GET /scheduling/find-slot"),
    ("get_account_capabilities", "GET /social-accounts/{id}/capabilities"),
    ("get_account_limits", "GET /social-accounts/{id}/limits"),
    ("get_media", "GET /media/{id}"),
    ("get_post", "GET /posts/{id}"),
    ("get_post_analytics", "GET /posts/{id}/analytics"),
    ("get_post_timeline", "GET /posts/{id}/timeline"),
    ("get_usage", "GET /account/usage"),
    ("import_media", "POST /media/import"),
    ("list_account_options", "GET /social-accounts/{id}/options/{kind}"),
    ("list_accounts", "GET /social-accounts"),
    ("list_events", "GET /events"),
    ("list_posts", "GET /posts"),
    ("list_requests", "GET /account/requests"),
    ("list_webhooks", "GET /webhooks"),
    ("retry_post", "POST /posts/{id}/retry"),
    ("unpublish_post", "POST /posts/{id}/targets/{target_id}/unpublish"),
    ("update_media", "PATCH /media/{id}"),
    ("update_post", "PATCH /posts/{id}"),
    ("validate_post", "POST /posts/validate"),
];

/// The tools whose answers the resource templates give.
const TEMPLATES: [(&str, &str); 4] = [
    ("fanfare://accounts/{id}/capabilities", "get_account_capabilities"),
    ("fanfare://accounts/{id}/limits", "get_account_limits"),
    ("fanfare://posts/{id}", "get_post"),
    ("fanfare://posts/{id}/timeline", "get_post_timeline"),
];

/// The prompts, which are texts without data.
const PROMPTS: [&str; 2] = ["explain_stuck_post", "publish_picture"];

/// The operations that a client token can call.
const FOR_CLIENTS: [&str; 6] = [
    "GET /connect/platforms",
    "GET /social-accounts",
    "POST /social-accounts/bluesky/connect",
    "GET /social-accounts/pending/{token}",
    "POST /social-accounts/pending/{token}/finalize",
    "POST /social-networks/{platform}/auth-url",
];

/// The kinds of the resources that the pages of the dashboard name, by the first part of their paths.
const SECTIONS: [(&str, &str); 13] = [
    ("accounts", "social-accounts"),
    ("analytics", "posts"),
    ("audit", ""),
    ("calendar", ""),
    ("checklist", ""),
    ("compose", ""),
    ("events", "events"),
    ("keys", "api-keys"),
    ("me", ""),
    ("media", "media"),
    ("posts", "posts"),
    ("team", "team"),
    ("webhooks", "webhooks"),
];
/// The other parts of the dashboard, whose pages name nothing.
const PLAIN_SECTIONS: [&str; 6] = ["", "requests", "retry", "search", "sign-in", "usage"];

/// Somebody who must not get in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Organization,
    Mode,
    Bound,
    Client,
}

struct Caller {
    name: &'static str,
    kind: Kind,
    key: String,
}

/// An organization with what nobody else may see, and with a tenant whose keys reach something else.
struct Scene {
    world: World,
    /// Ids that nobody else may see, by kind of resource.
    theirs: HashMap<&'static str, String>,
    /// A post to accounts of both tenants.
    mixed: String,
    target: String,
    callers: Vec<Caller>,
    /// Method, path and description of each operation.
    operations: Vec<(Method, String, Value)>,
}

impl Scene {
    async fn start() -> Self {
        let world = world().start().await;
        let create = async |path: &str, body: Value| {
            let (status, made) = world.call(Method::POST, path, Some(&body)).await;
            assert_eq!(status, StatusCode::CREATED, "{path}: {made}");
            made
        };
        let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
        let mine = joined(&world, "x", "ada", json!({ "tenant_id": "mine" })).await;
        let profile = create("/profiles", json!({ "name": "Mine", "social_account_ids": [mine] })).await;
        let account = joined(&world, "x", "bob", json!({ "tenant_id": "theirs" })).await;
        let mut theirs = HashMap::new();
        let grouped = json!({ "name": SECRET, "tenant_id": "theirs", "social_account_ids": [account] });
        let draft =
            |accounts: &[&String]| json!({ "content": SECRET, "accounts": accounts, "is_draft": true });
        let post = create("/posts", draft(&[&account])).await;
        let target = id(&post["targets"][0]);
        let mixed = id(&create("/posts", draft(&[&account, &mine])).await);
        theirs.insert("posts", id(&post));
        for (kind, body) in [
            ("profiles", grouped),
            ("social-networks", json!({ "platform": "x", "client_id": SECRET })),
            ("webhooks", json!({ "url": format!("http://127.0.0.1:9/{SECRET}"), "events": ["post.error"] })),
            ("api-keys", json!({ "name": SECRET, "scopes": ["posts:read"] })),
            ("team", json!({ "email": format!("{SECRET}@example.com"), "role": "viewer" })),
            ("client-tokens", json!({ "tenant_id": "theirs" })),
        ] {
            theirs.insert(kind, id(&create(&format!("/{kind}"), body).await));
        }
        let medium = world.medium(&format!("{SECRET}.png"), None, png(64, 64)).await;
        theirs.insert("media", id(&medium));
        theirs.insert("social-accounts", account);
        let events = world.get("/events").await;
        theirs.insert("events", id(events["data"].as_array().unwrap().last().unwrap()));

        let mut callers = Vec::new();
        for (name, bound) in [
            ("a tenant's key", json!({ "tenant_id": "mine" })),
            ("a profile's key", json!({ "profile_id": id(&profile) })),
            ("an account's key", json!({ "account_ids": [mine] })),
        ] {
            let mut body = json!({ "name": name, "scopes": ["*"] });
            body.as_object_mut().unwrap().extend(bound.as_object().unwrap().clone());
            let key = create("/api-keys", body).await["key"].as_str().unwrap().to_owned();
            callers.push(Caller { name, kind: Kind::Bound, key });
        }
        let token = create("/client-tokens", json!({ "tenant_id": "mine" })).await;
        let key = token["token"].as_str().unwrap().to_owned();
        callers.push(Caller { name: "a client token", kind: Kind::Client, key });
        let org = organizations::create(&world.db, "Other").await.unwrap();
        for (name, kind, owner) in [
            ("another organization", Kind::Organization, Owner { org, mode: Mode::Test }),
            ("the other mode", Kind::Mode, Owner { mode: Mode::Live, ..world.owner }),
        ] {
            callers.push(Caller { name, kind, key: api::key(&world, owner, &[Scope::All]).await });
        }
        let (_, operations) = operations(&world).await;
        let known: HashSet<_> = OPERATIONS.iter().map(|(operation, _)| *operation).collect();
        let named: Vec<_> = operations.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
        let unknown: Vec<_> = named.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "these operations have no line in the table: {unknown:?}");
        assert_eq!(named.len(), OPERATIONS.len(), "a line of the table is of no operation");
        Self { world, theirs, mixed, target, callers, operations }
    }

    fn id(&self, kind: &str) -> &str {
        &self.theirs[kind]
    }

    fn post(&self) -> Value {
        json!({ "content": "Hello", "accounts": [self.id("social-accounts")] })
    }

    fn profile(&self) -> Value {
        let accounts = [self.id("social-accounts")];
        json!({ "name": "Taken", "social_account_ids": accounts })
    }

    /// Fails if an answer shows what a caller must not see.
    fn check_hidden(&self, what: &str, caller: &Caller, text: &str) {
        // Both modes share the team.
        let is_shared = |kind: &str| kind == "team" && caller.kind == Kind::Mode;
        for (kind, id) in self.theirs.iter().filter(|(kind, _)| !is_shared(kind)) {
            assert!(!text.contains(id.as_str()), "{what} shows {kind} to {}: {text}", caller.name);
        }
        assert!(!text.contains(&self.mixed), "{what} shows a post to {}: {text}", caller.name);
        let is_shared = caller.kind == Kind::Mode && (what.contains("team") || what.contains("audit"));
        assert!(is_shared || !text.contains(SECRET), "{what} shows a text to {}: {text}", caller.name);
    }

    /// Returns what the owner sees of everything.
    async fn state(&self) -> BTreeMap<String, Value> {
        let mut state = BTreeMap::new();
        for (kind, id) in &self.theirs {
            let path = match *kind {
                "posts" | "profiles" | "media" | "webhooks" | "social-networks" | "social-accounts" => {
                    format!("/{kind}/{id}")
                }
                "api-keys" | "team" => format!("/{kind}"),
                "client-tokens" | "events" => continue,
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

/// What a caller is to get.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Expected {
    /// One of these codes.
    Refused(&'static [&'static str]),
    /// An answer without what they must not see.
    Nothing,
    /// Not tried: it creates something of the caller's own.
    Untried,
}

fn expected(operation: &str, about: About, kind: Kind) -> Expected {
    use Expected::{Nothing, Refused, Untried};
    let is_read = operation.starts_with("GET ");
    match (about, kind) {
        (_, Kind::Client) if !FOR_CLIENTS.contains(&operation) => {
            Refused(&["forbidden", "insufficient_scope"])
        }
        (Login, _) => Refused(&["not_found"]),
        (One(_), _) => Refused(&["not_found"]),
        (Reached, _) => Nothing,
        (Named(..), Kind::Client) if operation.ends_with("/auth-url") => {
            Refused(&["forbidden", "account_not_found"])
        }
        // Live mode has no app of the platform.
        (Named(..), Kind::Mode) if operation.ends_with("/auth-url") => {
            Refused(&["account_not_found", "no_app_available"])
        }
        (Named(_, limited, _), Kind::Bound | Kind::Client) if !limited.is_empty() => Refused(limited),
        (Named(_, _, strangers), Kind::Organization | Kind::Mode) if !strangers.is_empty() => {
            Refused(strangers)
        }
        (Named(..), _) => Untried,
        (Organization | OneOfOrganization(_), Kind::Bound | Kind::Client) => Refused(FORBIDDEN),
        (Organization, _) if is_read => Nothing,
        (Organization, _) => Untried,
        // Both modes share the team.
        (OneOfOrganization("team"), Kind::Mode) => Untried,
        (OneOfOrganization(_), _) => Refused(&["not_found"]),
    }
}

/// Returns the example of an operation's body.
fn example(operation: &Value) -> Option<Value> {
    let body = operation.get("requestBody")?;
    Some(body["content"]["application/json"]["example"].clone())
}

/// Returns the code of a problem, or of the first failure of a batch.
fn code(answer: &Value) -> Option<&str> {
    answer["code"].as_str().or(answer["errors"][0]["code"].as_str())
}

#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn add(&mut self, outcome: impl ToString) {
        *self.0.entry(outcome.to_string()).or_default() += 1;
    }
}

#[tokio::test]
async fn nobody_reaches_what_is_not_theirs() {
    let scene = Scene::start().await;
    let before = scene.state().await;
    for caller in &scene.callers {
        let (mut rest, mut tools) = (Tally::default(), Tally::default());
        over_rest(&scene, caller, &mut rest).await;
        over_mcp(&scene, caller, &mut tools).await;
        println!("{}: operations {:?}, MCP {:?}", caller.name, rest.0, tools.0);
    }
    over_dashboard(&scene).await;
    assert_eq!(scene.state().await, before);
}

/// Calls every operation.
async fn over_rest(scene: &Scene, caller: &Caller, tally: &mut Tally) {
    let world = &scene.world;
    let mut calls = Vec::new();
    for (method, path, described) in &scene.operations {
        let operation = format!("{method} {path}");
        let about = OPERATIONS.iter().find(|(known, _)| *known == operation).unwrap().1;
        let expected = expected(&operation, about, caller.kind);
        if expected == Expected::Untried {
            tally.add("untried");
            continue;
        }
        let strangers = match about {
            One("posts") if caller.kind == Kind::Bound => vec![scene.id("posts"), scene.mixed.as_str()],
            One(kind) | OneOfOrganization(kind) => vec![scene.id(kind)],
            Login => vec!["none"],
            Named(..) => vec!["x"],
            Reached | Organization => vec![""],
        };
        for id in strangers {
            let path = filled(&path.replace("{target_id}", &scene.target), id);
            let url = format!("{}{path}", world.base);
            let mut request = world.http.request(method.clone(), &url).bearer_auth(&caller.key);
            match about {
                Named(make, _, _) if *method == Method::GET => request = request.query(&make(scene)),
                Named(make, _, _) => request = request.json(&make(scene)),
                _ => {
                    if let Some(body) = example(described) {
                        request =
                            request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
                    }
                }
            }
            calls.push((operation.clone(), expected, request));
        }
    }
    let answers = stream::iter(calls).map(|(operation, expected, request)| async move {
        let response = RequestBuilder::send(request).await.unwrap();
        (operation, expected, response.status().as_u16(), response.text().await.unwrap())
    });
    let answers: Vec<_> = answers.buffer_unordered(PARALLEL).collect().await;
    for (operation, expected, status, text) in answers {
        let answer: Value = serde_json::from_str(&text).unwrap();
        let what = format!("{operation} by {}: {status} {answer}", caller.name);
        match expected {
            Expected::Refused(codes) => {
                assert!(
                    code(&answer).is_some_and(|code| codes.contains(&code)),
                    "{what} instead of {codes:?}"
                );
                assert!(!text.contains(SECRET), "{what}");
            }
            Expected::Nothing => {
                assert_eq!(status, 200, "{what}");
                scene.check_hidden(&operation, caller, &text);
            }
            Expected::Untried => unreachable!("it was not called"),
        }
        tally.add(status);
    }
}

/// Calls every tool, reads a resource of every template, and gets every prompt.
async fn over_mcp(scene: &Scene, caller: &Caller, tally: &mut Tally) {
    let world = &scene.world;
    let ask = async |method: &str, params: Value| mcp::ask(world, &caller.key, method, params).await;
    let mut expectations = HashMap::new();
    let listed = ask("tools/list", json!({})).await;
    let names = named(&listed["result"]["tools"], "name");
    assert_eq!(names, TOOLS.map(|(name, _)| name), "a tool has no line in the table, or a line no tool");
    for (tool, operation) in TOOLS {
        let about = OPERATIONS.iter().find(|(known, _)| *known == operation).unwrap().1;
        let described = scene
            .operations
            .iter()
            .find(|(method, path, _)| format!("{method} {path}") == operation)
            .unwrap();
        let expected = expected(operation, about, caller.kind);
        expectations.insert(tool, expected);
        if expected == Expected::Untried {
            tally.add("untried");
            continue;
        }
        let mut arguments = match about {
            Named(make, _, _) => make(scene).as_object().unwrap().clone(),
            _ => example(&described.2).and_then(|body| body.as_object().cloned()).unwrap_or_default(),
        };
        for parameter in described.1.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            let value = match (parameter, about) {
                ("target_id", _) => scene.target.as_str(),
                ("id", One(kind) | OneOfOrganization(kind)) => scene.id(kind),
                ("platform", _) => "x",
                _ => "boards",
            };
            arguments.insert(parameter.to_owned(), json!(value));
        }
        let answer = ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let (result, text) = (&answer["result"], answer.to_string());
        match expected {
            Expected::Refused(codes) => {
                let problem = result["content"][0]["text"].as_str().unwrap_or_default();
                let problem: Value = serde_json::from_str(problem).unwrap_or_default();
                let is_refused = code(&problem).is_some_and(|code| codes.contains(&code));
                assert!(is_refused, "{tool} by {}: {answer} instead of {codes:?}", caller.name);
                assert!(!text.contains(SECRET), "{tool} by {}: {answer}", caller.name);
                tally.add(code(&problem).unwrap());
            }
            _ => {
                assert_eq!(result["isError"], false, "{tool} by {}: {answer}", caller.name);
                scene.check_hidden(tool, caller, &text);
                tally.add("answered");
            }
        }
    }
    let listed = ask("resources/templates/list", json!({})).await;
    let templates = named(&listed["result"]["resourceTemplates"], "uriTemplate");
    assert_eq!(
        templates,
        TEMPLATES.map(|(uri, _)| uri),
        "a template has no line in the table, or a line none"
    );
    for (uri, tool) in TEMPLATES {
        let Expected::Refused(codes) = expectations[tool] else { panic!("{tool} is about a resource") };
        let kind = if uri.contains("/posts/") { "posts" } else { "social-accounts" };
        let answer = ask("resources/read", json!({ "uri": uri.replace("{id}", scene.id(kind)) })).await;
        let is_refused = code(&answer["error"]["data"]).is_some_and(|code| codes.contains(&code));
        assert!(is_refused, "{uri} by {}: {answer} instead of {codes:?}", caller.name);
        tally.add("resource refused");
    }
    let listed = ask("prompts/list", json!({})).await;
    assert_eq!(named(&listed["result"]["prompts"], "name"), PROMPTS, "a prompt has no line in the table");
    for prompt in listed["result"]["prompts"].as_array().unwrap() {
        let names = prompt["arguments"].as_array().unwrap().iter();
        let arguments: Map<_, _> =
            names.map(|one| (one["name"].as_str().unwrap().to_owned(), json!("x"))).collect();
        let answer = ask("prompts/get", json!({ "name": prompt["name"], "arguments": arguments })).await;
        scene.check_hidden("a prompt", caller, &answer.to_string());
        tally.add("prompt");
    }
}

/// Returns a member of each entry of a list, in order.
fn named<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    let mut names: Vec<_> =
        list.as_array().unwrap().iter().map(|one| one[member].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Returns the path of a page or an action with the ids of a scene.
fn page(scene: &Scene, path: &str) -> String {
    let section = path.split('/').nth(1).unwrap_or_default();
    let kind = SECTIONS.iter().find(|(known, _)| *known == section).map(|(_, kind)| *kind);
    let kind = kind.or(PLAIN_SECTIONS.contains(&section).then_some(""));
    let kind = kind.unwrap_or_else(|| panic!("the dashboard's {path} is in no section of the table"));
    let id = if kind.is_empty() { "7" } else { scene.id(kind) };
    filled(&path.replace("{target}", &scene.target), id)
}

/// Opens every page and does everything, in sessions of strangers; limited callers have none.
async fn over_dashboard(scene: &Scene) {
    for caller in &scene.callers {
        let mut browser = Browser::new(&scene.world);
        let entered = browser.sign_in(&caller.key).await;
        if matches!(caller.kind, Kind::Bound | Kind::Client) {
            assert_eq!(entered.status, StatusCode::UNAUTHORIZED, "{}", caller.name);
            continue;
        }
        assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}: {}", caller.name, entered.text);
        let mut tally = Tally::default();
        for (method, path, _) in ::dashboard::routes() {
            // Both modes share the team.
            if path.starts_with("/team/") && caller.kind == Kind::Mode {
                continue;
            }
            let target = page(scene, path);
            let found = if method == Method::GET {
                browser.get(&target).await
            } else {
                let ids = [("id", scene.id("posts")), ("account", scene.id("social-accounts"))];
                browser.post(&target, &ids).await
            };
            assert!(!found.status.is_server_error(), "{method} {target}: {}", found.text);
            let is_about = path.contains('{') && !path.starts_with("/me/");
            if is_about {
                // A page of a list shows the failure of an action beside it.
                let is_refused = found.status.is_client_error() || method != Method::GET;
                assert!(is_refused, "{method} {target} by {}: {} {}", caller.name, found.status, found.text);
            }
            // A failed form shows what was entered.
            if method == Method::GET && !is_about {
                scene.check_hidden(path, caller, &found.text);
            }
            tally.add(found.status.as_u16());
        }
        println!("{}: pages and actions {:?}", caller.name, tally.0);
    }
}

/// Each scope alone opens the operations, tools, pages and actions that ask for it, and nothing else.
#[tokio::test]
async fn a_scope_opens_what_asks_for_it_and_nothing_else() {
    let world = world().start().await;
    let (_, operations) = operations(&world).await;
    let listed = mcp::ask(&world, &world.key, "tools/list", json!({})).await;
    let needed = |described: &Value| -> Scope {
        let text = described["description"].as_str().unwrap();
        let (_, rest) = text.split_once("Scope").unwrap_or_else(|| panic!("no scope: {text}"));
        rest.trim_start().trim_start_matches('`').split_once('`').unwrap().0.parse().unwrap()
    };
    let mut refused = [0; 3];
    for own in Scope::ALL.iter().copied().filter(|scope| *scope != Scope::All) {
        let key = api::key(&world, world.owner, &[own]).await;
        let (world, key) = (&world, key.as_str());
        // A login's own token authorizes the others.
        let with_key = |path: &str, described: &Value| {
            described.get("security").is_some() && !path.contains("/pending/")
        };
        let of_others = operations.iter().filter(|(_, path, described)| with_key(path, described));
        let of_others = of_others.filter(|(_, _, described)| !scope::allows(&[own], needed(described)));
        let answers = stream::iter(of_others).map(|(method, path, described)| async move {
            let mut request =
                world.http.request(method.clone(), format!("{}{}", world.base, filled(path, "7")));
            if let Some(body) = example(described) {
                request = request.json(&body);
            }
            let answer = request.bearer_auth(key).send().await.unwrap();
            (method, path, answer.status(), answer.json::<Value>().await.unwrap())
        });
        for (method, path, status, answer) in answers.buffer_unordered(PARALLEL).collect::<Vec<_>>().await {
            let found = (status.as_u16(), answer["code"].as_str().unwrap());
            assert_eq!(found, (403, "insufficient_scope"), "{method} {path} with {own}: {answer}");
            refused[0] += 1;
        }
        for tool in listed["result"]["tools"].as_array().unwrap() {
            if scope::allows(&[own], needed(tool)) {
                continue;
            }
            let name = tool["name"].as_str().unwrap();
            let problem = mcp::refused(world, key, name, json!({})).await;
            assert_eq!(problem["code"], "insufficient_scope", "{name} with {own}: {problem}");
            refused[1] += 1;
        }
        let mut browser = Browser::new(world);
        assert_eq!(browser.sign_in(key).await.status, StatusCode::SEE_OTHER);
        let closed = ::dashboard::routes().filter(|(_, _, scopes)| !scopes.iter().all(|one| *one == own));
        let browser = &browser;
        let answers = stream::iter(closed).map(|(method, path, _)| async move {
            let target = filled(path, "7");
            let page = if method == Method::GET {
                browser.get(&target).await
            } else {
                browser.post(&target, &[]).await
            };
            (method, path, page)
        });
        for (method, path, page) in answers.buffer_unordered(PARALLEL).collect::<Vec<_>>().await {
            assert_eq!(page.status, StatusCode::FORBIDDEN, "{method} {path} with {own}: {}", page.text);
            refused[2] += 1;
        }
    }
    println!("refused: {} operations, {} tools, {} pages and actions", refused[0], refused[1], refused[2]);
    assert!(refused.iter().all(|count| *count > 300), "{refused:?}");
}
