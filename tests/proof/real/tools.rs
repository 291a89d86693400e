//! MCP's official clients.

use super::{Proven, rounds};
use crate::PROGRAM;
use serde_json::{Value, json};
use tests::{
    World,
    network::{Proxy, State},
    packages::{Packages, Program},
};

/// Kills and stops the clients, and cuts them off, while they publish.
pub(super) async fn prove(packages: &Packages) -> Vec<Proven> {
    let mut proven = Vec::new();
    for (script, program) in
        [("tools.mjs", "MCP client (`@modelcontextprotocol/sdk`)"), ("tools.py", "MCP client (PyPI's `mcp`)")]
    {
        let published = publish(packages, script).await;
        proven.push(Proven {
            program,
            kills: 2 * rounds(),
            stops: rounds(),
            things: format!("{published} posts are live once"),
        });
    }
    proven
}

fn call(account: &str, text: &str, key: &str) -> Value {
    json!({
        "name": "create_post",
        "arguments": { "content": text, "accounts": [account], "external_ref": key },
    })
}

/// Asks for a post that must be created, or was, and returns it.
async fn create(client: &mut Program, call: &Value) -> Value {
    let answer = client.ask(call).await;
    let post = &answer["structuredContent"];
    assert!(post["id"].is_string(), "{answer}");
    post.clone()
}

async fn publish(packages: &Packages, script: &'static str) -> usize {
    let mut world = World::of(&PROGRAM).own().start().await;
    let account = world.connect("x", "ada").await;
    let address = world.base.trim_start_matches("http://").trim_end_matches("/api/v1").parse().unwrap();
    let proxy = Proxy::to(address);
    let url = format!("http://{}/api/mcp", proxy.address());
    let key = world.key.clone();
    let start = async || packages.start(script, &[&url, &key]).await;
    let mut published = 0;
    for round in 0..rounds() {
        let name = |what: &str| format!("{what} {round}");
        // It is killed while it waits for an answer that does not come, and another one asks for the same.
        let mut client = start().await;
        let lost = call(&account, &name("Killed"), &name("killed"));
        let count = async |world: &World| world.get("/posts").await["data"].as_array().unwrap().len();
        let before = count(&world).await;
        proxy.set(State::Frozen);
        client.tell(&lost).await;
        client.kill().await;
        assert_eq!(count(&world).await, before);
        proxy.forget();
        let mut client = start().await;
        let first = create(&mut client, &lost).await;
        let again = create(&mut client, &lost).await;
        assert_eq!(first["id"], again["id"]);
        assert_eq!(world.ended(&first).await["status"], "published");

        // It is stopped when it has asked, and goes on when the post is live.
        let asked = call(&account, &name("Stopped"), &name("stopped"));
        client.tell(&asked).await;
        client.pause();
        client.resume();
        let post = client.answer().await["structuredContent"].clone();
        assert_eq!(world.ended(&post).await["status"], "published");

        // The service is killed, and the client goes on with the next one.
        world.kill("all").await;
        let refused = client.ask(&call(&account, &name("Away"), &name("away"))).await;
        assert!(refused["error"].as_str().is_some_and(|reason| !reason.is_empty()), "{refused}");
        world.run("all").await;
        let mut client = start().await;
        let post = create(&mut client, &call(&account, &name("Away"), &name("away"))).await;
        assert_eq!(world.ended(&post).await["status"], "published");
        client.kill().await;
        published += 3;
    }
    assert_eq!(world.accepted("x", "ada").await, published, "each post once");
    published
}
