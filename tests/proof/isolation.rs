//! Every entrance, tried by everybody who must not get in.
//!
//! Operations are read from the OpenAPI document, tools, resources and prompts from the lists of the MCP server, and pages
//! and actions from the dashboard's table of routes. What each is about is in a table ([`crate::surface::tables`]); one without a line
//! fails.

mod entrances;
mod scene;
mod verdicts;

use crate::{
    PROGRAM,
    surface::{Visitor, ask, document_of, example, filled, needed, operations, tables},
};
use domain::{
    member::Role,
    scope::{self, Scope},
};
use entrances::{PARALLEL, over_dashboard, over_resources, over_rest, over_tools};
use futures::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use scene::{Caller, Scene, key};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::{
    World,
    login::{join, sign_in},
    proof::Section,
};

/// Answers to callers, counted.
#[derive(Default)]
struct Tally {
    /// Number of what was not asked, because it creates something of the caller's own, or is shared with them.
    untried: usize,
    /// Numbers of refusals, by their code.
    refused: BTreeMap<String, usize>,
    /// Number of answers with rows of the caller's own.
    own: usize,
    /// Number of answers without rows.
    without: usize,
    /// Answers with rows of others.
    leaks: Vec<String>,
}

impl Tally {
    /// Counts a refusal.
    fn refuse(&mut self, code: &str, leak: Option<String>) {
        *self.refused.entry(code.to_owned()).or_default() += 1;
        self.leaks.extend(leak);
    }

    /// Counts an answer.
    fn answer(&mut self, caller: &Caller, text: &str, leak: Option<String>) {
        let is_own = caller.own.iter().any(|id| text.contains(id.as_str()));
        *(if is_own { &mut self.own } else { &mut self.without }) += 1;
        self.leaks.extend(leak);
    }

    /// Adds another one.
    fn add(&mut self, other: Self) {
        self.untried += other.untried;
        self.own += other.own;
        self.without += other.without;
        self.leaks.extend(other.leaks);
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
    }

    fn refusals(&self) -> usize {
        self.refused.values().sum()
    }

    fn asked(&self) -> usize {
        self.refusals() + self.own + self.without
    }
}

/// Kinds of entrances.
const ENTRANCES: [&str; 5] = ["Operations", "MCP tools", "MCP resources and prompts", "Pages", "Actions"];

#[tokio::test]
async fn nobody_reaches_what_is_not_theirs() {
    let mut section = Section::new("7d-isolation", "Isolation");
    let scene = Scene::start().await;
    tables::cover(&scene.operations);
    let before = scene.state().await;
    let mut sums: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut table =
        format!("| Caller | {} |\n|---|{}", ENTRANCES.join(" | "), "---|".repeat(ENTRANCES.len()));
    for caller in &scene.callers {
        // A member has no key.
        let by_key = match &caller.cookie {
            None => {
                let rest = over_rest(&scene, caller).await;
                [rest, over_tools(&scene, caller).await, over_resources(&scene, caller).await].map(Some)
            }
            Some(_) => [None, None, None],
        };
        let [pages, actions] = over_dashboard(&scene, caller).await;
        table += &format!("\n| {} |", caller.name);
        for (name, tally) in ENTRANCES.into_iter().zip(by_key.into_iter().chain([Some(pages), Some(actions)]))
        {
            let Some(tally) = tally else {
                table += " – |";
                continue;
            };
            table += &format!(" {} / {} / {} |", tally.refusals(), tally.own, tally.without);
            sums.entry(name).or_default().add(tally);
        }
    }
    let leaks: Vec<_> = sums.values().flat_map(|tally| &tally.leaks).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    assert_eq!(scene.state().await, before);
    let victim = Visitor::new(&scene.world, &scene.session);
    assert_eq!(victim.visit(&Method::GET, "/posts", &[]).await.0, StatusCode::OK, "their session has ended");
    // Otherwise what is refused would be nobody's.
    let total = |of: fn(&Tally) -> usize| sums.values().map(of).sum::<usize>();
    assert!(total(|tally| tally.own) > 50, "only {} answers had rows", total(|tally| tally.own));

    section.text(
        "Every operation of the OpenAPI document, every tool, resource, resource template and prompt that the MCP server \
         lists, and every page and action of the dashboard's table of routes, with the ids of an organization that has \
         something of everything, asked by those who must not see it: by keys that are limited to another tenant, a \
         profile or an account of it, a client token, ended keys and none, and by another organization and the other \
         mode, which have something of everything too, with keys and as members. Each refusal has the code that the \
         table of the test says, no answer shows an id or a text of the organization, and its rows are the same \
         afterwards. One that the tables don't name fails.",
    );
    section.text(format!(
        "Refused / answered with rows of the caller's own / answered without rows. Limited and ended keys open no \
         session, so that their pages are those of the page for signing in.\n\n{table}"
    ));
    section.figure("Callers", scene.callers.len());
    section.figure("Operations", tables::OPERATIONS.len());
    section.figure("MCP tools", tables::TOOLS.len());
    section.figure("Pages and actions", dashboard::routes().count());
    for (name, tally) in &sums {
        section.figure(format!("{name}: combinations asked"), tally.asked());
        let refused: Vec<_> = tally.refused.iter().map(|(code, count)| format!("{count} {code}")).collect();
        section.figure(format!("{name}: refused"), refused.join(", "));
        section.figure(format!("{name}: answered with rows of the caller's own"), tally.own);
        section.figure(format!("{name}: answered without rows"), tally.without);
        section.figure(format!("{name}: not asked, being the caller's own or shared"), tally.untried);
    }
    section.figure("Answers with rows of others", leaks.len());
    section.write();
}

/// Each scope alone opens the operations, tools, pages and actions that ask for it, and nothing else.
#[tokio::test]
async fn a_scope_opens_what_asks_for_it_and_nothing_else() {
    let mut section = Section::new("7e-scopes", "Scopes and roles");
    let world = World::of(&PROGRAM).pace(1.0).start().await;
    let operations = operations(&document_of(&world).await);
    let (_, listed) = ask(&world, &world.key, "tools/list", json!({})).await;
    let needed = |described: &Value| needed(described).unwrap_or_else(|| panic!("no scope: {described}"));
    let mut refused = [0; 4];
    for own in Scope::ALL.iter().copied().filter(|scope| *scope != Scope::All) {
        let key = key(&world, &[own], None).await;
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
            let (_, answer) = ask(world, key, "tools/call", json!({ "name": name, "arguments": {} })).await;
            let problem = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            let problem: Value = serde_json::from_str(problem).unwrap_or_default();
            assert_eq!(problem["code"], "insufficient_scope", "{name} with {own}: {answer}");
            refused[1] += 1;
        }
        let mut visitor = Visitor::new(world, "");
        assert_eq!(visitor.sign_in(key).await, StatusCode::SEE_OTHER);
        refused[2] += closed(&visitor, &own.to_string(), &[own]).await;
    }
    // Members have the scopes of their roles.
    let like = sign_in(&world).await;
    for role in Role::ALL {
        let wish = json!({ "email": format!("{role}@example.com"), "role": role.as_str() });
        let (_, member) = world.call(Method::POST, "/team", Some(&wish)).await;
        let url = member["invite_url"].as_str().unwrap_or_else(|| panic!("{member}"));
        let visitor = Visitor::new(&world, &join(&world, url, &like).await);
        refused[3] += closed(&visitor, role.as_str(), role.scopes()).await;
    }
    assert!(refused[..3].iter().all(|count| *count > 300) && refused[3] > 50, "{refused:?}");
    section.text(
        "A key with one scope alone, for each scope, was refused by every operation, tool, page and action that asks for \
         another one; and members of each role by every page and action that asks for more than their role has, and by \
         no other.",
    );
    let names = ["operations", "tools", "pages and actions"];
    for (name, count) in names.into_iter().zip(refused) {
        section.figure(format!("Refused with one scope: {name}"), count);
    }
    section.figure("Refused by role: pages and actions", refused[3]);
    section.write();
}

/// Opens every page and does everything, and fails unless what asks for other scopes is refused, and nothing else. Returns
/// the number of refusals.
async fn closed(visitor: &Visitor, name: &str, scopes: &[Scope]) -> usize {
    let answers = stream::iter(dashboard::routes()).map(|(method, path, needed)| async move {
        let target = filled(path, "7");
        let (status, text) = visitor.visit(&method, &target, &[]).await;
        (method, path, needed, status, text)
    });
    let mut refused = 0;
    for (method, path, needed, status, text) in answers.buffer_unordered(PARALLEL).collect::<Vec<_>>().await {
        let is_open = needed.iter().all(|needed| scope::allows(scopes, *needed));
        // A key has neither passkeys nor identities.
        if is_open && path.starts_with("/me/") {
            continue;
        }
        assert_eq!(status == StatusCode::FORBIDDEN, !is_open, "{method} {path} with {name}: {status} {text}");
        refused += usize::from(!is_open);
    }
    refused
}
