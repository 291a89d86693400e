//! A browser with the virtual authenticator of Chromium.

use super::{Proven, rounds};
use crate::PROGRAM;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    World,
    packages::{Packages, Program},
    program, skip,
};

/// The button that asks the authenticator.
const ASK: &str = "form[data-passkey] button";
/// Message of the page when the authenticator gave nothing.
const UNUSED: &str = "No passkey was used";

async fn see(browser: &mut Program, step: Value) -> String {
    let page = browser.ask(&step).await;
    let text = page["text"].as_str().unwrap_or_else(|| panic!("{step}: {page}"));
    text.to_owned()
}

/// Kills the browser and the service in the middle of joining and of signing in.
pub(super) async fn prove(packages: &Packages) -> Option<Proven> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let Some(chromium) = names.into_iter().find_map(program) else {
        skip("the proof with a real passkey needs Chromium");
        return None;
    };
    let chromium = chromium.to_str().unwrap();
    let mut world = World::of(&PROGRAM).own().start().await;
    // The only name that browsers give passkeys to without TLS.
    let origin = world.base.trim_end_matches("/api/v1").replace("127.0.0.1", "localhost");
    let mut joined = 0;
    for round in 0..rounds() {
        let invitation = json!({ "email": format!("ada{round}@example.com"), "role": "viewer" });
        let (status, member) = world.call(Method::POST, "/team", Some(&invitation)).await;
        assert_eq!(status, StatusCode::CREATED, "{member}");
        let (_, path) = member["invite_url"].as_str().unwrap().split_once("/dashboard").unwrap();
        let url = format!("{origin}/dashboard{path}");

        // A person who is not verified, and then a browser that is killed with the challenge that it has.
        let mut browser = packages.start("passkey.mjs", &[chromium]).await;
        see(&mut browser, json!({ "open": url })).await;
        see(&mut browser, json!({ "fill": "#name", "with": "Ada" })).await;
        let refused = see(&mut browser, json!({ "verify": false, "press": ASK, "until": UNUSED })).await;
        assert!(!refused.contains("Ada, viewer"), "{refused}");
        browser.kill().await;
        let team = world.get("/team").await;
        let status =
            &team["data"].as_array().unwrap().iter().find(|one| one["id"] == member["id"]).unwrap()["status"];
        assert_eq!(status, "invited", "nothing is half done: {team}");

        // The same invitation still joins, also after the service was killed.
        let mut browser = packages.start("passkey.mjs", &[chromium]).await;
        see(&mut browser, json!({ "open": url })).await;
        see(&mut browser, json!({ "fill": "#name", "with": "Ada" })).await;
        world.kill("all").await;
        let without = see(&mut browser, json!({ "press": ASK, "until": "Fanfare did not answer" })).await;
        assert!(!without.contains("Ada, viewer"), "{without}");
        world.run("all").await;
        see(&mut browser, json!({ "open": url })).await;
        see(&mut browser, json!({ "fill": "#name", "with": "Ada" })).await;
        let page = see(&mut browser, json!({ "press": ASK, "until": "Ada, viewer" })).await;
        assert!(page.contains("Ada, viewer"), "{page}");
        joined += 1;

        // The browser's passkey survives the service as well.
        world.kill("all").await;
        world.run("all").await;
        let page = see(&mut browser, json!({ "open": format!("{origin}/dashboard") })).await;
        assert!(page.contains("Ada, viewer"), "the session survives: {page}");
        see(
            &mut browser,
            json!({ "press": "form[action$='/sign-out'] button", "until": "Sign in with a passkey" }),
        )
        .await;
        let page = see(&mut browser, json!({ "press": ASK, "until": "Ada, viewer" })).await;
        assert!(page.contains("Ada, viewer"), "{page}");
        browser.kill().await;
    }
    let team = world.get("/team").await;
    let active = team["data"].as_array().unwrap().iter().filter(|one| one["status"] == "active").count();
    assert_eq!(active, joined, "{team}");
    Some(Proven {
        program: "Passkeys (Chromium's virtual authenticator)",
        kills: 4 * rounds(),
        stops: 0,
        things: format!("{joined} people joined once, and signed in again"),
    })
}
