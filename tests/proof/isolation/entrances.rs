//! The entrances: operations, MCP tools, resources and prompts, pages and actions of the dashboard.

use super::{
    Tally,
    scene::{Caller, Kind, SECRET, Scene},
    verdicts::{Expected, expected},
};
use crate::surface::{
    Visitor, ask, example, filled,
    tables::{
        About::{Login, Named, One, OneOfOrganization, Organization, Reached},
        PROMPTS, TEMPLATES, TOOLS, about, kind_of,
    },
};
use futures::{StreamExt, stream};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Calls that are under way at once.
pub(super) const PARALLEL: usize = 8;

/// Returns the code of a problem, or of the first failure of a batch.
fn code(answer: &Value) -> Option<&str> {
    answer["code"].as_str().or(answer["errors"][0]["code"].as_str())
}

/// Calls every operation.
pub(super) async fn over_rest(scene: &Scene, caller: &Caller) -> Tally {
    let (world, mut tally) = (&scene.world, Tally::default());
    let mut calls = Vec::new();
    for (method, path, described) in &scene.operations {
        let operation = format!("{method} {path}");
        let about = about(&operation);
        let expected = expected(&operation, about, caller.kind);
        if expected == Expected::Untried {
            tally.untried += 1;
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
            let mut request = world.http.request(method.clone(), &url);
            if !caller.key.is_empty() {
                request = request.bearer_auth(&caller.key);
            }
            match about {
                Named(make, _, _) if *method == Method::GET => {
                    request = request.query(&make(scene.id("social-accounts")))
                }
                Named(make, _, _) => request = request.json(&make(scene.id("social-accounts"))),
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
                let code = code(&answer).filter(|code| codes.contains(code));
                let code = code.unwrap_or_else(|| panic!("{what} instead of {codes:?}"));
                tally.refuse(code, text.contains(SECRET).then(|| what.clone()));
            }
            Expected::Nothing => {
                assert_eq!(status, 200, "{what}");
                tally.answer(caller, &text, scene.leak(&operation, caller, &text));
            }
            Expected::Untried => unreachable!("it was not called"),
        }
    }
    tally
}

/// Calls every tool.
pub(super) async fn over_tools(scene: &Scene, caller: &Caller) -> Tally {
    let (world, mut tally) = (&scene.world, Tally::default());
    // The list is the same for all who have a key.
    let (_, listed) = ask(world, &world.key, "tools/list", json!({})).await;
    let names = named(&listed["result"]["tools"], "name");
    assert_eq!(names, TOOLS.map(|(name, _)| name), "a tool has no line in the table, or a line no tool");
    for (tool, operation) in TOOLS {
        let about = about(operation);
        let mut operations = scene.operations.iter();
        let described = operations.find(|(method, path, _)| format!("{method} {path}") == operation).unwrap();
        let expected = expected(operation, about, caller.kind);
        if expected == Expected::Untried {
            tally.untried += 1;
            continue;
        }
        let mut arguments = match about {
            Named(make, _, _) => make(scene.id("social-accounts")).as_object().unwrap().clone(),
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
        let params = json!({ "name": tool, "arguments": arguments });
        let (status, answer) = ask(world, &caller.key, "tools/call", params).await;
        let (result, text) = (&answer["result"], answer.to_string());
        let what = format!("{tool} by {}: {status} {answer}", caller.name);
        match expected {
            Expected::Refused(_) if caller.kind == Kind::Ended => {
                assert_eq!(status, 401, "{what}");
                tally.refuse("unauthorized", None);
            }
            Expected::Refused(codes) => {
                let problem = result["content"][0]["text"].as_str().unwrap_or_default();
                let problem: Value = serde_json::from_str(problem).unwrap_or_default();
                let code = code(&problem).filter(|code| codes.contains(code));
                let code = code.unwrap_or_else(|| panic!("{what} instead of {codes:?}"));
                tally.refuse(code, text.contains(SECRET).then(|| what.clone()));
            }
            _ => {
                assert_eq!(result["isError"], false, "{what}");
                tally.answer(caller, &text, scene.leak(tool, caller, &text));
            }
        }
    }
    tally
}

/// Reads every resource, and one of each template; and gets every prompt.
pub(super) async fn over_resources(scene: &Scene, caller: &Caller) -> Tally {
    let (world, mut tally) = (&scene.world, Tally::default());
    let (_, listed) = ask(world, &world.key, "resources/templates/list", json!({})).await;
    let templates = named(&listed["result"]["resourceTemplates"], "uriTemplate");
    assert_eq!(
        templates,
        TEMPLATES.map(|(uri, _)| uri),
        "a template has no line in the table, or a line none"
    );
    let tools: HashMap<_, _> = TOOLS.into_iter().collect();
    for (uri, tool) in TEMPLATES {
        let expected = expected(tools[tool], about(tools[tool]), caller.kind);
        let Expected::Refused(codes) = expected else { panic!("{tool} is about a resource") };
        let kind = if uri.contains("/posts/") { "posts" } else { "social-accounts" };
        let params = json!({ "uri": uri.replace("{id}", scene.id(kind)) });
        let (status, answer) = ask(world, &caller.key, "resources/read", params).await;
        let what = format!("{uri} by {}: {status} {answer}", caller.name);
        if caller.kind == Kind::Ended {
            assert_eq!(status, 401, "{what}");
            tally.refuse("unauthorized", None);
            continue;
        }
        let code = code(&answer["error"]["data"]).filter(|code| codes.contains(code));
        let code = code.unwrap_or_else(|| panic!("{what} instead of {codes:?}"));
        tally.refuse(code, scene.leak(uri, caller, &answer["result"].to_string()));
    }
    // Reads that are the same for everybody: resources about platforms, and prompts.
    let (_, listed) = ask(world, &world.key, "resources/list", json!({})).await;
    let uris = named(&listed["result"]["resources"], "uri").into_iter().map(|uri| json!({ "uri": uri }));
    let mut reads: Vec<_> = uris.map(|params| ("resources/read", params)).collect();
    assert!(!reads.is_empty(), "{listed}");
    let (_, listed) = ask(world, &world.key, "prompts/list", json!({})).await;
    assert_eq!(named(&listed["result"]["prompts"], "name"), PROMPTS, "a prompt has no line in the table");
    for prompt in listed["result"]["prompts"].as_array().unwrap() {
        let names = prompt["arguments"].as_array().unwrap().iter();
        let arguments: Map<_, _> =
            names.map(|one| (one["name"].as_str().unwrap().to_owned(), json!("x"))).collect();
        reads.push(("prompts/get", json!({ "name": prompt["name"], "arguments": arguments })));
    }
    for (method, params) in reads {
        let (status, answer) = ask(world, &caller.key, method, params.clone()).await;
        let what = format!("{method} {params} by {}: {status} {answer}", caller.name);
        if caller.kind == Kind::Ended {
            assert_eq!(status, 401, "{what}");
            tally.refuse("unauthorized", None);
        } else {
            assert!(answer["result"].is_object(), "{what}");
            let text = answer.to_string();
            tally.answer(caller, &text, scene.leak(method, caller, &text));
        }
    }
    tally
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
    let kind = kind_of(path);
    let id = if kind.is_empty() { "7" } else { scene.id(kind) };
    filled(&path.replace("{target}", &scene.target), id)
}

/// Opens every page and does everything, in the session of a caller, or in none. Keys that are limited or have ended start
/// none.
pub(super) async fn over_dashboard(scene: &Scene, caller: &Caller) -> [Tally; 2] {
    let mut visitor = Visitor::new(&scene.world, caller.cookie.as_deref().unwrap_or_default());
    let has_session = caller.cookie.is_some() || matches!(caller.kind, Kind::Organization | Kind::Mode);
    if !caller.key.is_empty() {
        let status = visitor.sign_in(&caller.key).await;
        let expected = if has_session { StatusCode::SEE_OTHER } else { StatusCode::UNAUTHORIZED };
        assert_eq!(status, expected, "{}", caller.name);
    }
    let (post, account, profile) = (scene.id("posts"), scene.id("social-accounts"), scene.id("profiles"));
    let (target, organization) = (format!("{post}/{}", scene.target), scene.world.owner.org.to_string());
    // Fields that forms read, of all actions.
    let form = [
        ("id", post),
        ("post", post),
        ("target", target.as_str()),
        ("account", account),
        ("media", scene.id("media")),
        ("name", "Taken"),
        ("scope", "posts:read"),
        ("profile", profile),
        ("text", "Taken"),
        ("action", "publish"),
        ("zone", "UTC"),
        ("organization", organization.as_str()),
        ("mode", "test"),
    ];
    let mut tallies = [Tally::default(), Tally::default()];
    for (method, path, _) in dashboard::routes() {
        let tally = &mut tallies[usize::from(method != Method::GET)];
        // Both modes share the team, and a member of both may go from one to the other.
        let is_of_both = path.starts_with("/team/") || path == "/me/switch";
        if is_of_both && caller.kind == Kind::Mode {
            tally.untried += 1;
            continue;
        }
        let target = page(scene, path);
        let (status, text) = visitor.visit(&method, &target, &form).await;
        let what = format!("{method} {target} by {}: {status} {text}", caller.name);
        assert!(!status.is_server_error(), "{what}");
        // Sessions are one's own: ending another's ends nothing, and says so as if it had.
        let is_about = path.contains('{') && !path.starts_with("/me/");
        assert!(!is_about || status.is_client_error(), "{what}");
        assert!(has_session || status == StatusCode::UNAUTHORIZED, "{what}");
        // A form that failed shows what was entered.
        let leak = (method == Method::GET && !is_about).then(|| scene.leak(path, caller, &text)).flatten();
        if status.is_client_error() {
            tally.refuse(status.as_str(), leak);
        } else {
            tally.answer(caller, &text, leak);
        }
    }
    tallies
}
