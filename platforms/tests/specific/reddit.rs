//! Reddit: subreddits and flairs, the settings of a post, and processing of media.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Checkpoint, Committed, Edit, Found, Located, MediaKind, Prepared, PublishRequest,
    check::{ContainerContent, Severity, check},
};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use regex::Regex;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "reddit",
        &singles![
            settings_determine_the_subreddit_and_flair_of_a_post,
            a_subreddit_without_media_is_rejected_before_the_upload,
            a_gallery_has_captions_and_a_video_has_a_poster,
            an_image_post_gets_its_id_later_and_is_found_without_it,
            an_uploaded_file_is_not_uploaded_again,
            a_duplicate_link_leads_to_a_lookup,
            a_rate_limit_returns_the_wait,
            a_missing_scope_is_rejected_without_a_token_refresh,
            a_refresh_keeps_its_token_and_an_unknown_app_is_not_a_revocation,
            the_sandbox_validates_forms_and_user_agents,
            a_medium_stuck_in_processing_is_polled,
            a_block_at_the_edge_costs_neither_account_nor_post,
            an_unknown_subreddit_is_rejected_before_the_upload,
            a_post_has_an_address_even_if_it_cannot_be_read,
            a_deleted_post_keeps_its_place_without_its_author,
            a_poll_is_published_and_found_after_a_lost_response,
            the_sandbox_lists_flairs_for_older_clients,
            readers_see_a_plain_text_as_it_is_written,
            a_text_in_markdown_is_sent_as_it_is,
            the_limit_of_a_text_counts_what_is_sent,
            a_post_of_somebody_else_is_crossposted,
            a_lost_crosspost_is_found_by_what_it_crossposts,
            a_published_post_is_crossposted_to_further_subreddits,
            a_refused_crosspost_keeps_out_no_other,
            a_lost_crosspost_is_found_or_told_and_never_repeated,
            a_worker_whose_clock_is_ahead_crossposts_once,
            crossposts_follow_only_the_post_of_this_very_call,
            a_throttled_crosspost_waits,
            a_wrong_crosspost_is_told_before,
            a_link_is_an_address_that_reddit_takes,
            a_crosspost_is_looked_up_before,
        ],
    )
}

/// Sends a form as the account and returns the response.
async fn send(actor: &Actor, path: &str, form: &[(&str, &str)]) -> Value {
    let url = actor.sandbox("oauth.reddit.com") + path;
    let call = actor.http.post(url).bearer_auth(&actor.grant.access_token).form(form);
    call.send().await.expect("an answer").json().await.expect("JSON")
}

async fn settings_determine_the_subreddit_and_flair_of_a_post() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let keep = Kept::default();
    let options = actor.platform.options.expect("it has lists");
    let subreddits = options.options(&actor.session(&keep), "subreddits", None).await.on("subreddits");
    assert_eq!((subreddits[0].id.as_str(), subreddits[0].name.as_str()), ("u_ada", "u/ada"));
    assert!(subreddits.iter().any(|choice| choice.id == "flaired" && choice.name == "r/flaired"));
    let flairs = options.options(&actor.session(&keep), "flairs", Some("r/flaired")).await.on("flairs");
    let editable = flairs.iter().find(|flair| flair.name == "In other words").expect("it is listed");
    let none = options.options(&actor.session(&keep), "flairs", Some("u_ada")).await.on("a profile's");
    assert!(none.is_empty());
    for parent in [None, Some("a/b/../c")] {
        let failure = options.options(&actor.session(&keep), "flairs", parent).await.expect_err("no parent");
        assert_eq!(failure.code, rejected(422));
    }

    for (settings, words) in [
        (json!({}), vec!["In r/u_ada: self", "first line"]),
        (json!({ "subreddit": "r/test" }), vec!["In r/test: self"]),
        (
            json!({ "subreddit": "/u/ada", "nsfw": true, "spoiler": true }),
            vec!["In r/u_ada", "NSFW", "Spoiler"],
        ),
        (json!({ "subreddit": "flaired", "flair": "discussion" }), vec!["Flair: Discussion"]),
        (
            json!({ "subreddit": "flaired", "flair": editable.id, "flair_text": "my words" }),
            vec!["Flair: my words"],
        ),
        (
            json!({ "subreddit": "linksonly", "url": "https://example.com/?a=1", "title": "A link" }),
            vec!["In r/linksonly: link", "Leads to https://example.com/?a=1", "A link"],
        ),
    ] {
        let mut post = actor.post("first line\n\nsecond https://example.com");
        post.settings = settings.clone();
        let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
        for word in words.iter().chain(&["second https://example.com"]) {
            assert!(page.contains(word), "{settings}: {word} {page}");
        }
    }
    let accepted = actor.accepted().await;
    for (settings, status, word) in [
        (json!({ "subreddit": "missing_one" }), 404, "SUBREDDIT_NOEXIST"),
        (json!({ "subreddit": "announcements" }), 403, "SUBREDDIT_NOTALLOWED"),
        (json!({ "subreddit": "linksonly" }), 400, "NO_SELFS"),
        (json!({ "subreddit": "textonly", "kind": "link" }), 400, "NO_LINKS"),
        (json!({ "subreddit": "flaired" }), 400, "SUBMIT_VALIDATION_FLAIR_REQUIRED"),
        (json!({ "subreddit": "flaired", "flair": "nonsense" }), 422, "Discussion, News"),
        (json!({ "kind": "image" }), 422, "image"),
        (json!({ "kind": "self", "url": "https://example.com" }), 422, "url"),
    ] {
        let mut post = actor.post("see https://example.com");
        post.settings = settings.clone();
        let failure = actor.publish(&post).await.expect_err("refused");
        assert!(failure.code == rejected(status) && failure.message.contains(word), "{settings}: {failure}");
    }
    assert_eq!(actor.accepted().await, accepted);
}

async fn a_subreddit_without_media_is_rejected_before_the_upload() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    for (kind, count, word) in
        [(MediaKind::Image, 1, "images"), (MediaKind::Image, 2, "galleries"), (MediaKind::Video, 1, "videos")]
    {
        let mut post = actor.post_with("not here", kind, count);
        post.settings = json!({ "subreddit": "nomedia" });
        let failure = actor.prepare(&post).await.expect_err("not here");
        assert!(failure.code == rejected(403) && failure.message.contains(word), "{failure}");
        post.settings = json!({ "subreddit": "private" });
        let failure = actor.prepare(&post).await.expect_err("private");
        assert!(failure.code == rejected(403) && failure.message.contains("private"), "{failure}");
    }
    assert!(!world.heard().iter().any(|call| call.path.contains("/media/")));
}

async fn a_gallery_has_captions_and_a_video_has_a_poster() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post_with("pictures", MediaKind::Image, 2);
    post.settings = json!({ "subreddit": "pics", "captions": ["the first of them"] });
    let id = actor.publish(&post).await.on("gallery");
    let page = actor.shown(&id).await;
    assert!(page.contains("the first of them") && page.matches("<img src=\"/_media/").count() == 2, "{page}");

    let keep = Kept::default();
    let history = actor.platform.history.expect("it has one");
    let listed = history.page(&actor.session(&keep), None).await.on("history");
    assert_eq!(listed.items[0].media.len(), 2);
    assert!(listed.items[0].media.iter().all(|url| url.starts_with("https://i.redd.it/")));

    for (own, kind) in [(true, "video"), (false, "videogif")] {
        let mut film = actor.post_with("a film", MediaKind::Video, 1);
        if own {
            film.media.extend(actor.post_with("", MediaKind::Image, 1).media);
        }
        film.settings = json!({ "kind": kind });
        let id = actor.publish(&film).await.on(kind);
        assert!(actor.shown(&id).await.contains(&format!("In r/u_ada: {kind}")));
        let listed = history.page(&actor.session(&keep), None).await.on("history");
        assert!(listed.items[0].media[0].starts_with("https://v.redd.it/"), "{:?}", listed.items[0].media);
    }
    let stored = |host: &str| world.heard().iter().filter(|call| call.path.contains(host)).count();
    assert_eq!((stored("uploaded-video"), stored("uploaded-media")), (2, 4));
}

async fn an_image_post_gets_its_id_later_and_is_found_without_it() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let post = actor.post_with("a picture", MediaKind::Image, 1);
    let at = actor.prepare(&post).await.on("prepare");
    assert!(!at.0.to_string().contains("ignature"), "{at:?}");
    let committed = actor.commit(&post, &at).await.on("commit");
    let Committed::Accepted { at: later, .. } = committed.clone() else { panic!("{committed:?}") };
    let id = actor.landed(&post, committed).await.on("landed");
    assert_eq!(actor.settle(&post, &later).await.on("again").id(), Some(&*id));

    // Lost response, which would not contain the id anyway: the post is found in the list.
    let post = actor.post_with("lost #sandbox-lost-reply", MediaKind::Image, 1);
    let at = actor.prepare(&post).await.on("prepare");
    assert!(actor.commit(&post, &at).await.expect_err("lost").is_ambiguous());
    assert!(matches!(actor.settle(&post, &at).await.on("settle"), Located::Live(_)));
    assert_eq!(actor.accepted().await, 2);

    // Never committed: reported as processing until the time limit, then as absent.
    let never = actor.post_with("never", MediaKind::Image, 1);
    let mut begun = never.clone();
    let keep = Kept::default();
    begun.commit_begun_at = Some(crate::fixtures::clock() - chrono::TimeDelta::minutes(1));
    let located = actor.platform.publisher.locate(&actor.session(&keep), &begun, &at).await.on("soon");
    assert!(matches!(located, Located::Processing { .. }), "{located:?}");
    begun.commit_begun_at = Some(crate::fixtures::clock() - chrono::TimeDelta::minutes(11));
    let located = actor.platform.publisher.locate(&actor.session(&keep), &begun, &at).await.on("late");
    assert_eq!(located, Located::Absent);
}

async fn an_uploaded_file_is_not_uploaded_again() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    let post = actor.post_with("pictures", MediaKind::Image, 3);
    let at = actor.prepare(&post).await.on("prepare");
    let again = actor.prepare_once(&post, at.clone()).await.on("again");
    assert_eq!(again, Prepared::Ready(at));
    assert_eq!(world.heard().iter().filter(|call| call.path.contains("s3-accelerate")).count(), 3);
}

async fn a_duplicate_link_leads_to_a_lookup() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post("a link");
    post.settings = json!({ "subreddit": "test", "url": "https://example.com/once", "resubmit": false });
    let id = actor.publish(&post).await.on("first");
    let at = actor.prepare(&post).await.on("prepare");
    let failure = actor.commit(&post, &at).await.expect_err("twice");
    assert!(failure.code == rejected(409) && failure.is_ambiguous(), "{failure:?}");
    assert_eq!(actor.settle(&post, &at).await.on("settle").id(), Some(&*id));
    post.settings["resubmit"] = json!(true);
    actor.publish(&post).await.on("resubmitted");
}

async fn a_rate_limit_returns_the_wait() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    for limit in ["reddit.posts", "reddit.requests"] {
        actor.set(&json!({ "limits": { limit: 0 } })).await;
        let failure = actor.publish(&actor.post("too fast")).await.expect_err(limit);
        assert_eq!(failure.code, ErrorCode::RateLimited, "{failure}");
        let wait = failure.retry_after.expect("a time");
        assert!(wait > Duration::from_secs(500) && wait <= Duration::from_secs(600), "{wait:?}");
    }
    assert_eq!(actor.accepted().await, 0);
}

async fn a_missing_scope_is_rejected_without_a_token_refresh() {
    let world = World::start().await;
    let mut actor = actor(&world, "reddit");
    let brought = actor.consent_to(&["identity", "read"], "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    assert_eq!(actor.grant.scopes, ["identity", "read"]);
    let failure = actor.publish(&actor.post("not permitted")).await.expect_err("a scope is missing");
    assert_eq!((failure.code, failure.is_revoked()), (rejected(403), false));
    assert!(failure.message.contains("connect it again"), "{failure}");
}

async fn a_refresh_keeps_its_token_and_an_unknown_app_is_not_a_revocation() {
    let world = World::start().await;
    let mut actor = actor(&world, "reddit");
    let old = actor.grant.clone();
    actor.grant = actor.refresh().await.on("refresh");
    assert_eq!(actor.grant.refresh_token, old.refresh_token);
    assert_ne!(actor.grant.access_token, old.access_token);
    let mut stranger = actor.clone();
    stranger.app.as_mut().expect("it has an app").client_secret = Some("wrong".into());
    let failure = stranger.refresh().await.expect_err("a stranger");
    // The operator's fault: no account has to be connected again.
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::AppRefused, false), "{failure}");

    let keep = Kept::default();
    actor.platform.publisher.revoke(&actor.session(&keep)).await.on("revoke");
    assert!(actor.refresh().await.expect_err("given back").is_revoked());
    assert_eq!(actor.healthy().await.expect_err("its tokens too").code, ErrorCode::TokenExpired);

    let suspended = world.named(actor.platform, "suspended-one");
    assert_eq!(suspended.healthy().await.expect_err("suspended").code, rejected(403));
}

async fn the_sandbox_validates_forms_and_user_agents() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let form = [("kind", "self"), ("sr", "test"), ("title", "a title")];
    assert_eq!(send(&actor, "/api/submit", &form).await["success"], false);
    let form = [&form[..], &[("api_type", "json")]].concat();
    let made = send(&actor, "/api/submit/", &form).await;
    let id = made["json"]["data"]["name"].as_str().expect("an id").to_owned();
    assert_eq!(made["json"]["errors"], json!([]));
    for (thing, code) in
        [("t3_nothing", "DELETED_LINK"), ("t1_nothing", "DELETED_COMMENT"), ("", "NO_THING_ID")]
    {
        let form = [("api_type", "json"), ("thing_id", thing), ("text", "words")];
        assert_eq!(send(&actor, "/api/comment", &form).await["json"]["errors"][0][0], code);
    }
    let form = [("api_type", "json"), ("thing_id", id.as_str()), ("text", "edited & <so>")];
    send(&actor, "/api/editusertext", &form).await;
    // Without `raw_json`, texts are HTML-escaped.
    for (query, text) in [("", "edited &amp; &lt;so&gt;"), ("&raw_json=1", "edited & <so>")] {
        let url = format!("{}/api/info?id={id}{query}", actor.sandbox("oauth.reddit.com"));
        let found = actor.ask("GET", &url).await;
        assert_eq!(found["data"]["children"][0]["data"]["selftext"], text);
    }
    let url = actor.sandbox("oauth.reddit.com") + "/api/v1/me";
    let call = actor.http.get(url).bearer_auth(&actor.grant.access_token);
    let answer = call.header("user-agent", "python-requests/2.32").send().await.expect("an answer");
    assert_eq!(answer.status(), 429);
    assert_eq!(actor.accepted().await, 1);
}

async fn a_medium_stuck_in_processing_is_polled() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post_with("stuck", MediaKind::Image, 1);
    post.media[0].filename = "sandbox-stuck.png".into();
    let at = actor.prepare(&post).await.on("prepare");
    let committed = actor.commit(&post, &at).await.on("commit");
    let Committed::Accepted { mut at, .. } = committed else { panic!("{committed:?}") };
    // A closed socket makes no difference.
    at.0["socket"] = json!("ws://127.0.0.1:1/gone");
    let keep = Kept::default();
    let located =
        actor.platform.publisher.locate(&actor.session(&keep), &post, &Checkpoint(at.0)).await.on("locate");
    assert!(matches!(located, Located::Processing { .. }), "{located:?}");
    assert_eq!(actor.accepted().await, 0);
}

async fn a_block_at_the_edge_costs_neither_account_nor_post() {
    let world = World::tapped().await;
    let mut actor = actor(&world, "reddit");
    // The rule of Reddit's edge for agents: a product's name alone is blocked.
    let token = actor.sandbox("www.reddit.com") + "/api/v1/access_token";
    for (agent, status) in [("Fanfare/1.0", 403), ("", 403), ("web:fanfare:v1 (by /u/ada)", 401)] {
        let answer = actor.http.post(&token).header("user-agent", agent).send().await.on("an answer");
        assert_eq!(answer.status().as_u16(), status, "{agent}");
    }
    actor.set(&json!({ "refusals": { "/api/v1/access_token": 403 } })).await;
    let failure = actor.refresh().await.map(drop).expect_err("blocked");
    assert_eq!(
        (failure.code, failure.is_revoked(), failure.is_ambiguous()),
        (ErrorCode::NetworkError, false, false),
        "{failure}"
    );
    assert!(failure.message.contains("network security"), "{failure}");
    actor.set(&json!({ "refusals": {} })).await;
    actor.grant = actor.refresh().await.on("let through");

    let page = json!("<!doctype html><h1>whoa there, pardner!</h1>");
    world.lie(&[("/oauth.reddit.com/api/submit", 403, page)]);
    let failure = actor.publish(&actor.post("blocked")).await.expect_err("blocked");
    assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::NetworkError, false), "{failure}");
    world.lie(&[]);
    actor.publish(&actor.post("let through")).await.on("let through");
}

async fn an_unknown_subreddit_is_rejected_before_the_upload() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post_with("a picture", MediaKind::Image, 1);
    for settings in
        [json!({ "subreddit": "missing_one" }), json!({ "subreddit": "missing_one", "flair": "News" })]
    {
        post.settings = settings;
        let failure = actor.prepare(&post).await.map(drop).expect_err("unknown");
        assert_eq!(failure.code, rejected(404), "{failure}");
    }
    assert!(!world.heard().iter().any(|call| call.path.contains("/media/")));
}

async fn a_post_has_an_address_even_if_it_cannot_be_read() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    let id = actor.publish(&actor.post("hard to find")).await.on("publish");
    let long = actor.permalink(&id).await;
    assert!(long.contains("/r/u_ada/comments/"), "{long}");
    let empty = json!({ "kind": "Listing", "data": { "after": null, "children": [] } });
    for (status, body) in [(200, empty), (404, json!({ "message": "Not Found", "error": 404 }))] {
        world.lie(&[("/oauth.reddit.com/api/info", status, body)]);
        let short = actor.permalink(&id).await;
        assert!(short.ends_with(&format!("www.reddit.com/comments/{}/", &id[3..])), "{short}");
        assert_eq!(actor.status(&short).await, 200);
    }
}

async fn a_deleted_post_keeps_its_place_without_its_author() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let id = actor.publish(&actor.post("a title\n\nand words")).await.on("publish");
    let answer = actor.publish(&actor.reply("an answer", std::slice::from_ref(&id))).await.on("answer");
    let deletion = actor.platform.deletion.expect("it deletes");
    for (author, text) in [("ada", "and words"), ("[deleted]", "[deleted]")] {
        let host = actor.sandbox("oauth.reddit.com");
        let info = actor.ask("GET", &format!("{host}/api/info?id={id}")).await;
        let both = actor.ask("GET", &format!("{host}/comments/{}", &id[3..])).await;
        for post in [&info["data"]["children"][0]["data"], &both[0]["data"]["children"][0]["data"]] {
            assert_eq!((&post["author"], &post["selftext"]), (&json!(author), &json!(text)));
        }
        assert_eq!(both[1]["data"]["children"][0]["data"]["name"], json!(answer));
        deletion.delete(&actor.session(&Kept::default()), &id).await.on("delete");
    }
}

async fn a_poll_is_published_and_found_after_a_lost_response() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    for (settings, words) in [
        (json!({ "subreddit": "test", "poll": { "options": ["yes", "no"] } }), "Poll for 3 days: yes / no"),
        (
            json!({ "subreddit": "flaired", "flair": "News", "poll": { "options": ["a", "b", "c"], "duration_days": 7 } }),
            "Poll for 7 days: a / b / c",
        ),
    ] {
        let mut post = actor.post("is it so?\n\nTell us. #sandbox-lost-reply");
        post.settings = settings;
        let at = actor.prepare(&post).await.on("prepare");
        assert!(actor.commit(&post, &at).await.expect_err("lost").is_ambiguous());
        let located = actor.settle(&post, &at).await.on("settle");
        let Located::Live(found) = located else { panic!("{located:?}") };
        let id = found.into_id();
        let page = actor.shown(&id).await;
        assert!(page.contains(words) && page.contains("Tell us."), "{page}");
    }
    let mut post = actor.post("not here");
    post.settings = json!({ "subreddit": "linksonly", "poll": { "options": ["yes", "no"] } });
    assert_eq!(actor.publish(&post).await.expect_err("not here").code, rejected(400));
    assert_eq!(actor.accepted().await, 2);
}

async fn the_sandbox_lists_flairs_for_older_clients() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let listed = send(&actor, "/r/flaired/api/flairselector", &[]).await;
    let texts: Vec<_> =
        listed["choices"].as_array().expect("a list").iter().map(|choice| &choice["flair_text"]).collect();
    assert_eq!(texts, ["Discussion", "News", "In other words"]);
}

/// Returns what readers see of a text that Reddit rendered, by its lines; `None` where a part of it has a meaning of
/// Markdown.
fn seen(html: &str) -> Option<String> {
    let html = html.strip_prefix("<!-- SC_OFF --><div class=\"md\"><p>")?;
    let html = html.strip_suffix("</p>\n</div><!-- SC_ON -->")?;
    let lines = html.replace("</p>\n<p>", "<br /><br />").replace("<br />\n", "<br />");
    // Browsers show white space as one blank, line breaks included.
    let lines = Regex::new("[ \t\n]+").expect("a pattern").replace_all(&lines, " ").replace("<br />", "\n");
    let text = Regex::new("<a href=\"[^\"]*\">|</a>").expect("a pattern").replace_all(&lines, "");
    if text.contains('<') {
        return None;
    }
    let decoded = |text: &str| {
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        text.replace("&amp;", "&").replace('\u{A0}', " ")
    };
    // Blanks at the end of a line are not seen.
    let text: Vec<_> = text.split('\n').map(|line| decoded(line).trim_end().to_owned()).collect();
    Some(text.join("\n"))
}

async fn readers_see_a_plain_text_as_it_is_written() {
    const PIECES: [&str; 45] = [
        "#",
        "# ",
        "*",
        "**",
        "_",
        "__",
        "~~",
        "`",
        "```",
        ">",
        ">!",
        "!<",
        "^",
        "^(",
        "(",
        ")",
        "[a](",
        "![",
        "]:",
        "|",
        ":-",
        "---",
        "===",
        "1.",
        "2)",
        "- ",
        "+ ",
        "\\",
        "&amp;",
        "&",
        "<b>",
        "<",
        " ",
        "    ",
        "\n",
        "\n",
        "\n\n",
        "\n\n\n",
        "word",
        "snake_case",
        "ü",
        "https://example.com/_a_?b=*c*&lt;",
        "https://example.com/a_b",
        "www.example.com/_",
        "<https://example.org/a_>",
    ];
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let editing = actor.platform.editing.expect("it edits");
    let written = |text: &str| {
        let lines = text.trim().split('\n').map(str::trim_end);
        lines.collect::<Vec<_>>().join("\n").replace('\u{A0}', " ")
    };
    let post = actor.post("A title\n\nwords");
    let main = actor.publish(&post).await.on("publish");
    let comment = actor.reply("words", std::slice::from_ref(&main));
    let comment = (actor.publish(&comment).await.on("comment"), comment, "body_html");
    let main = (main, post, "selftext_html");
    let mut texts: Vec<String> = [
        "Monday: soup\nTuesday: salad\n#soup #salad\n1) one",
        "¯\\_(ツ)_/¯ *a* >!b!< a^b ~~c~~ `d` &copy; <b>",
        "a\n===\nb\n---\n- c\n+ d\n> e\n    f\n\n\n\ng  h",
        "a | b\n:-|-:\nc | d",
        "see https://example.com/a_b_(c)?d=*e*, http://localhost/_f_ and www.example.com/_g_!",
        "[a]: https://example.com\n[a] ![b](https://example.com/c.png)",
        "wordhttps://example.com/_a_?b=*c*&lt;<",
        "<https://example.org/a_> (https://example.org/b_) https://example.org/_c_ _https://example.org/d_",
        "ftp://example.com/_a_ «https://example.com/*b*» u/ada_b r/rust_c ada_b@example.com",
    ]
    .map(str::to_owned)
    .into();
    let pieces = proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..16);
    let runner = &mut TestRunner::default();
    texts.extend((0..400).map(|_| pieces.new_tree(runner).expect("pieces").current().concat()));
    for (index, text) in texts.iter().filter(|text| !text.trim().is_empty()).enumerate() {
        let (id, before, member) = if index % 2 == 0 { &main } else { &comment };
        let whole = if before.reply_to.is_none() { format!("A title\n\n{text}") } else { text.clone() };
        let edit = Edit {
            position: before.position,
            of_reply: before.reply_to.is_some(),
            has_media: false,
            kinds: Vec::new(),
            before: before.text.clone(),
            text: Some(whole),
            settings: json!({}),
            names: Vec::new(),
        };
        editing.edit(&actor.session(&Kept::default()), id, &edit).await.on("edit");
        let url = format!("{}/api/info?id={id}&raw_json=1", actor.sandbox("oauth.reddit.com"));
        let found = actor.ask("GET", &url).await;
        let html = found["data"]["children"][0]["data"][*member].as_str().expect("a rendered text");
        assert_eq!(seen(html).as_deref(), Some(&*written(text)), "{text:?} {html}");
        // An address between signs of its own is a link as a whole.
        let [enclosed, link] = ["<https://example.org/a_>", "<a href=\"https://example.org/a_\">"];
        assert_eq!(html.matches(link).count(), text.matches(enclosed).count(), "{text:?} {html}");
    }
}

async fn a_text_in_markdown_is_sent_as_it_is() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let history = actor.platform.history.expect("it has one");
    for (format, kept, html) in [
        ("markdown", "# one\n*two*", "<h1>one</h1>\n<p><em>two</em></p>"),
        ("plain", "\\# one  \n\\*two\\*", "<p># one<br />\n*two*</p>"),
    ] {
        let mut post = actor.post("A title\n# one\n*two*");
        post.settings = json!({ "text_format": format });
        let id = actor.publish(&post).await.on(format);
        let mut comment = actor.reply("# one\n*two*", std::slice::from_ref(&id));
        comment.settings = post.settings.clone();
        let comment = actor.publish(&comment).await.on(format);
        for (id, member) in [(&id, "selftext"), (&comment, "body")] {
            let url = format!("{}/api/info?id={id}&raw_json=1", actor.sandbox("oauth.reddit.com"));
            let data = &actor.ask("GET", &url).await["data"]["children"][0]["data"];
            assert_eq!(data[member], kept, "{format}");
            let rendered = data[format!("{member}_html")].as_str().expect("HTML");
            assert!(rendered.contains(html), "{format}: {rendered}");
            let page = actor.http.get(actor.permalink(id).await).send().await.expect("an answer");
            assert!(page.text().await.expect("a page").contains(html), "{format}");
        }
        let listed = history.page(&actor.session(&Kept::default()), None).await.on("history");
        assert_eq!(listed.items[0].text, "A title\n\n# one\n*two*", "{format}");

        // It is found after a lost response.
        let mut lost = actor.post("Another\n# one\n*two* #sandbox-lost-reply");
        lost.settings = post.settings.clone();
        let at = actor.prepare(&lost).await.on("prepare");
        assert!(actor.commit(&lost, &at).await.expect_err("lost").is_ambiguous());
        assert!(matches!(actor.settle(&lost, &at).await.on("settle"), Located::Live(_)), "{format}");
    }
}

async fn the_limit_of_a_text_counts_what_is_sent() {
    let reddit = platforms::get("reddit").expect("it is registered");
    for (position, max) in [(0, 40_000), (1, 10_000)] {
        for (format, text, is_taken) in [
            ("plain", "*".repeat(max / 2), true),
            ("plain", "*".repeat(max / 2 + 1), false),
            ("markdown", "*".repeat(max), true),
            ("markdown", "*".repeat(max + 1), false),
            ("plain", "a".repeat(max), true),
        ] {
            let contents = ["A title", &text].map(|text| ContainerContent { text, media: &[] });
            let settings = json!({ "title": "A title", "text_format": format });
            let contents = if position == 0 { &contents[1..] } else { &contents[..] };
            let codes: Vec<_> =
                check(reddit, contents, &settings).into_iter().map(|issue| issue.code).collect();
            let expected: &[&str] = if is_taken { &[] } else { &["text_too_long"] };
            assert_eq!(codes, expected, "{position} {format} {}", text.len());
        }
    }
}

/// Publishes a post of another account, and returns its id.
async fn foreign(world: &World, subreddit: &str) -> String {
    let grace = world.named(platforms::get("reddit").expect("it is registered"), "grace");
    let mut post = grace.post("Of another author\n\nwords");
    post.settings = json!({ "subreddit": subreddit });
    grace.publish(&post).await.on("another author's")
}

/// Returns what is listed of the account's posts, newest first.
async fn submitted(actor: &Actor) -> Vec<Value> {
    let url =
        format!("{}/user/{}/submitted?raw_json=1", actor.sandbox("oauth.reddit.com"), actor.account.username);
    let listed = actor.ask("GET", &url).await;
    let children = listed["data"]["children"].as_array().expect("a list").iter();
    children.map(|child| child["data"].clone()).collect()
}

/// Returns the subreddits of the account's crossposts of a post, newest first.
async fn crossposted(actor: &Actor, parent: &str) -> Vec<String> {
    let all = submitted(actor).await.into_iter().filter(|post| post["crosspost_parent"] == parent);
    all.map(|post| post["subreddit"].as_str().expect("a name").to_owned()).collect()
}

/// Prepares and commits, and returns the checkpoint of what is not complete yet.
async fn begun(actor: &Actor, post: &PublishRequest) -> Checkpoint {
    let at = actor.prepare(post).await.on("prepare");
    match actor.commit(post, &at).await.on("commit") {
        Committed::Accepted { at, .. } => at,
        live => panic!("{live:?}"),
    }
}

/// Looks a post up until the result is final, and returns it with what its owner is told and the last checkpoint.
async fn followed(
    actor: &Actor,
    post: &PublishRequest,
    at: Checkpoint,
) -> (Located, Vec<String>, Checkpoint) {
    let keep = Kept::default();
    let located = actor.settle_in(&keep, post, &at).await.on("settle");
    (located, keep.notes(), keep.last().unwrap_or(at))
}

/// Has the account's next publishing call fail.
async fn arm(world: &World, word: &str) {
    let form = [("platform", "reddit"), ("username", "ada"), ("word", word), ("tries", "1")];
    let armed = world.http().post(world.url("_panel/faults")).form(&form).send().await.expect("an answer");
    assert!(armed.status().as_u16() < 400, "{}", armed.status());
}

fn codes(actor: &Actor, post: &PublishRequest) -> Vec<String> {
    let issues =
        check(actor.platform, &[ContainerContent { text: &post.text, media: &post.media }], &post.settings);
    issues.into_iter().map(|issue| issue.code).collect()
}

async fn a_post_of_somebody_else_is_crossposted() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    let source = foreign(&world, "pics").await;
    let address = actor.permalink(&source).await;
    let mut post = actor.post("Look at this");
    for (crosspost, more) in [
        (source.clone(), json!({ "subreddit": "test" })),
        (source[3..].to_owned(), json!({ "subreddit": "flaired", "flair": "News", "nsfw": true })),
        (address, json!({ "kind": "crosspost", "title": "Look at this" })),
    ] {
        post.settings = more.clone();
        post.settings["crosspost"] = json!(crosspost);
        assert_eq!(codes(&actor, &post), [""; 0], "{more}");
        let id = actor.publish(&post).await.on("publish");
        let page = actor.shown(&id).await;
        assert!(page.contains(&format!("Crosspost of {source}")) && page.contains("Look at this"), "{page}");
    }
    let all = submitted(&actor).await;
    assert_eq!(all[0]["subreddit"], "u_ada");
    assert_eq!((&all[1]["link_flair_text"], &all[1]["over_18"]), (&json!("News"), &json!(true)));
    assert_eq!((&all[2]["selftext"], &all[2]["is_self"]), (&json!(""), &json!(false)));
    // As PRAW records it.
    let heard = world.heard();
    let sent = heard.iter().find(|call| call.text.contains("kind=crosspost")).expect("a crosspost");
    let names: Vec<_> =
        url::form_urlencoded::parse(sent.text.as_bytes()).map(|(name, _)| name.into_owned()).collect();
    assert_eq!(
        names,
        ["api_type", "kind", "sr", "title", "crosspost_fullname", "nsfw", "spoiler", "sendreplies"]
    );

    // A crosspost can be crossposted in its turn.
    let first = all[2]["name"].as_str().expect("an id");
    post.settings = json!({ "subreddit": "news", "crosspost": first });
    actor.publish(&post).await.on("a crosspost of a crosspost");
    for (crosspost, subreddit, code) in [
        (source.as_str(), "pics", "INVALID_CROSSPOST_THING"),
        (&source, "nocrossposts", "NO_CROSSPOSTS"),
        (&source, "linksonly", "NO_SELFS"),
        (&source, "flaired", "SUBMIT_VALIDATION_FLAIR_REQUIRED"),
        ("t3_nothing", "test", "t3_nothing"),
    ] {
        post.settings = json!({ "subreddit": subreddit, "crosspost": crosspost });
        let failure = actor.publish(&post).await.expect_err(code);
        assert!(failure.code.is_permanent() && failure.message.contains(code), "{failure}");
    }
    assert_eq!(actor.accepted().await, 4);
}

async fn a_lost_crosspost_is_found_by_what_it_crossposts() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let sources = [foreign(&world, "pics").await, foreign(&world, "pics").await];
    let mut lost = actor.post("Look #sandbox-lost-reply");
    lost.settings = json!({ "subreddit": "test", "crosspost": sources[0] });
    let at = actor.prepare(&lost).await.on("prepare");
    assert!(actor.commit(&lost, &at).await.expect_err("lost").is_ambiguous());
    assert!(matches!(actor.settle(&lost, &at).await.on("settle"), Located::Live(_)));
    // With the same words, one crossposts another post, and one crossposts nothing.
    let mut other = lost.clone();
    other.settings["crosspost"] = json!(sources[1]);
    let link = json!({ "subreddit": "test", "url": "https://example.com" });
    let link = PublishRequest { settings: link, ..lost.clone() };
    for post in [other, link] {
        let at = actor.prepare(&post).await.on("prepare");
        assert_eq!(actor.settle(&post, &at).await.on("settle"), Located::Absent);
    }
    assert_eq!(actor.accepted().await, 1);
}

async fn a_published_post_is_crossposted_to_further_subreddits() {
    let world = World::tapped().await;
    let actor = actor(&world, "reddit");
    let mut text = actor.post("A title\n\nand words");
    text.settings = json!({ "subreddit": "test", "crosspost_to": ["r/pics", "u/ada"], "spoiler": true });
    let mut picture = actor.post_with("A picture", MediaKind::Image, 1);
    picture.settings = json!({ "subreddit": "pics", "crosspost_to": ["test"] });
    let mut gallery = actor.post_with("Pictures", MediaKind::Image, 2);
    gallery.settings = json!({ "crosspost_to": ["test", "news"] });
    for (post, expected) in
        [(text, vec!["u_ada", "pics"]), (picture, vec!["test"]), (gallery, vec!["news", "test"])]
    {
        assert_eq!(codes(&actor, &post), [""; 0]);
        let at = begun(&actor, &post).await;
        let (located, notes, at) = followed(&actor, &post, at).await;
        let Located::Live(Found::Certain(id)) = located else { panic!("{located:?}") };
        assert_eq!(crossposted(&actor, &id).await, expected);
        assert_eq!(notes.len(), expected.len(), "{notes:?}");
        assert!(
            notes.iter().all(|note| note.starts_with("Crossposted to r/") && note.contains("http")),
            "{notes:?}"
        );
        // Crossposts that were made are not made again.
        let (again, notes, _) = followed(&actor, &post, at).await;
        assert_eq!((again, notes.len()), (Located::certain(id.clone()), 0));
        assert_eq!(crossposted(&actor, &id).await, expected);
    }
    assert_eq!(submitted(&actor).await.iter().filter(|post| post["spoiler"] == true).count(), 3);

    // The post of somebody else is crossposted everywhere, and not its crosspost.
    let source = foreign(&world, "pics").await;
    let mut post = actor.post("Look");
    post.settings = json!({ "subreddit": "test", "crosspost": source, "crosspost_to": ["news", "science"] });
    let at = begun(&actor, &post).await;
    let (located, ..) = followed(&actor, &post, at).await;
    assert!(matches!(located, Located::Live(Found::Certain(_))), "{located:?}");
    assert_eq!(crossposted(&actor, &source).await, ["science", "news", "test"]);
}

async fn a_refused_crosspost_keeps_out_no_other() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post("A title\n\nand words");
    // An author may name their own profile, where the post is.
    let names = ["flaired", "nocrossposts", "missing_one", "u_ada", "linksonly", "u_nobody", "news"];
    post.settings = json!({ "crosspost_to": names });
    let at = begun(&actor, &post).await;
    let (located, notes, _) = followed(&actor, &post, at).await;
    let Located::Live(found) = located else { panic!("{located:?}") };
    assert_eq!(crossposted(&actor, found.id()).await, ["news"]);
    let codes =
        ["FLAIR_REQUIRED", "NO_CROSSPOSTS", "NOEXIST", "INVALID_CROSSPOST_THING", "NO_SELFS", "NOEXIST"];
    for ((name, code), note) in names.iter().zip(codes).zip(&notes) {
        let begin = format!("The post is live without its crosspost to r/{name}: ");
        assert!(note.starts_with(&begin) && note.contains(code), "{note}");
    }
    assert!(notes.len() == 7 && notes[6].starts_with("Crossposted to r/news: "), "{notes:?}");
}

async fn a_lost_crosspost_is_found_or_told_and_never_repeated() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post("A title\n\nand words");
    post.settings = json!({ "subreddit": "test", "crosspost_to": ["news", "pics"] });
    for word in ["lost-reply", "500-after", "garbage"] {
        let at = begun(&actor, &post).await;
        arm(&world, word).await;
        let keep = Kept::default();
        let now = crate::fixtures::clock();
        let first = PublishRequest { commit_begun_at: Some(now), ..post.clone() };
        let located = actor.platform.locate(&actor.session(&keep), &first, &at).await.on(word);
        assert!(matches!(located, Located::Processing { .. }), "{word}: {located:?}");
        let (located, notes, _) = followed(&actor, &post, keep.last().expect("a checkpoint")).await;
        let Located::Live(found) = located else { panic!("{located:?}") };
        assert_eq!(crossposted(&actor, found.id()).await, ["pics", "news"], "{word}");
        assert!(notes.len() == 1 && notes[0].starts_with("Crossposted to r/news: http"), "{word}: {notes:?}");
    }
    // The worker died before the call, or the lists show nothing: it is told, and not sent.
    let at = begun(&actor, &post).await;
    arm(&world, "drop").await;
    let keep = Kept::default();
    let first = PublishRequest { commit_begun_at: Some(crate::fixtures::clock()), ..post.clone() };
    actor.platform.locate(&actor.session(&keep), &first, &at).await.on("dropped");
    let mut at = keep.last().expect("a checkpoint");
    at.0["crossposts"][0]["begun_at"] = json!(crate::fixtures::clock() - chrono::TimeDelta::minutes(3));
    let (located, notes, at) = followed(&actor, &post, at).await;
    let Located::Live(found) = located else { panic!("{located:?}") };
    assert!(
        notes.len() == 1 && notes[0].contains("r/news") && notes[0].contains("is not sent again"),
        "{notes:?}"
    );
    let (_, notes, _) = followed(&actor, &post, at).await;
    assert_eq!((notes.len(), crossposted(&actor, found.id()).await), (0, vec!["pics".to_owned()]));
}

async fn a_worker_whose_clock_is_ahead_crossposts_once() {
    let world = World::start().await;
    let mut actor = actor(&world, "reddit");
    actor.now = || crate::fixtures::clock() + chrono::TimeDelta::minutes(10);
    let mut post = actor.post("A title\n\nand words");
    post.settings = json!({ "subreddit": "test", "crosspost_to": ["news", "pics"] });
    let at = begun(&actor, &post).await;
    arm(&world, "lost-reply").await;
    // One look looks twice: by its own time, and by the platform's.
    let begun_at = Some((actor.now)());
    let keep = Kept::default();
    let post = PublishRequest { commit_begun_at: begun_at, ..post };
    let located = actor.platform.locate(&actor.session(&keep), &post, &at).await.on("locate");
    let Located::Live(found) = located else { panic!("{located:?}") };
    assert_eq!(crossposted(&actor, found.id()).await, ["pics", "news"]);
    assert_eq!(keep.notes().len(), 2, "{:?}", keep.notes());
}

async fn crossposts_follow_only_the_post_of_this_very_call() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let mut lost = actor.post("A title #sandbox-lost-reply");
    lost.settings = json!({ "subreddit": "test", "crosspost_to": ["news"] });
    let at = actor.prepare(&lost).await.on("prepare");
    assert!(actor.commit(&lost, &at).await.expect_err("lost").is_ambiguous());
    let (located, notes, _) = followed(&actor, &lost, at).await;
    assert!(matches!(located, Located::Live(Found::ByText(_))), "{located:?}");
    assert!(notes.len() == 1 && notes[0].contains("is not crossposted to r/news"), "{notes:?}");
    // After a restored backup nobody knows which were made.
    let mut post = actor.post("Another title");
    post.settings = lost.settings.clone();
    let at = begun(&actor, &post).await;
    let restored = PublishRequest { is_restored: true, ..post.clone() };
    let (located, notes, _) = followed(&actor, &restored, at.clone()).await;
    assert!(matches!(located, Located::Live(Found::ByText(_))) && notes.len() == 1, "{located:?} {notes:?}");
    // A post that is frozen, stopped or deleted is not crossposted.
    let barred = Kept::barred();
    let located = actor.settle_in(&barred, &post, &at).await.on("settle");
    assert!(matches!(located, Located::Live(Found::Certain(_))), "{located:?}");
    assert!(barred.notes()[0].contains("nothing more may be published"), "{:?}", barred.notes());
    assert_eq!(actor.accepted().await, 2);
}

async fn a_throttled_crosspost_waits() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let mut post = actor.post("A title\n\nand words");
    post.settings = json!({ "subreddit": "test", "crosspost_to": ["news", "pics"] });
    let at = begun(&actor, &post).await;
    let keep = Kept::default();
    actor.set(&json!({ "limits": { "reddit.posts": 0 } })).await;
    let first = PublishRequest { commit_begun_at: Some(crate::fixtures::clock()), ..post.clone() };
    let located = actor.platform.locate(&actor.session(&keep), &first, &at).await.on("throttled");
    let Located::Processing { poll_after } = located else { panic!("{located:?}") };
    assert!(
        poll_after > Duration::from_secs(500) && poll_after <= Duration::from_secs(600),
        "{poll_after:?}"
    );
    assert_eq!(keep.notes(), [""; 0]);
    // Too long: it is told.
    let late = PublishRequest {
        commit_begun_at: Some(crate::fixtures::clock() - chrono::TimeDelta::minutes(15)),
        ..post.clone()
    };
    let told = Kept::default();
    let located = actor.platform.locate(&actor.session(&told), &late, &at).await.on("too late");
    assert!(matches!(located, Located::Live(_)) && told.notes().len() == 2, "{located:?} {:?}", told.notes());
    actor.set(&json!({ "limits": { "reddit.posts": 300 } })).await;
    let (located, ..) = followed(&actor, &post, keep.last().expect("a checkpoint")).await;
    let Located::Live(found) = located else { panic!("{located:?}") };
    assert_eq!(crossposted(&actor, found.id()).await, ["pics", "news"]);
}

async fn a_wrong_crosspost_is_told_before() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let post = actor.post("A title");
    let with = |settings: Value| codes(&actor, &PublishRequest { settings, ..post.clone() });
    let id = "4bbe4b";
    for (settings, expected) in [
        (json!({ "crosspost": id }), vec![]),
        (json!({ "crosspost": "https://www.reddit.com/r/test/s/AbCdEf" }), vec!["setting_invalid"]),
        (json!({ "crosspost": "https://example.com/comments/4bbe4b" }), vec!["setting_invalid"]),
        (json!({ "crosspost": " " }), vec!["setting_invalid"]),
        (
            json!({ "crosspost": id, "url": "https://example.com" }),
            vec!["settings_conflict", "setting_not_used"],
        ),
        (json!({ "crosspost": id, "captions": ["a"] }), vec!["setting_not_used"]),
        (json!({ "kind": "crosspost" }), vec!["settings_conflict"]),
        (json!({ "crosspost_to": ["r/pics", "/r/PICS"] }), vec!["setting_invalid"]),
        (json!({ "subreddit": "pics", "crosspost_to": ["r/Pics"] }), vec!["setting_invalid"]),
        (json!({ "subreddit": "u/ada", "crosspost_to": ["u_ada"] }), vec!["setting_invalid"]),
        (json!({ "crosspost_to": ["not a name"] }), vec!["setting_invalid"]),
        (json!({ "crosspost_to": vec!["pics"; 11] }), vec!["setting_invalid"]),
        (json!({ "crosspost_to": [] }), vec![]),
    ] {
        assert_eq!(with(settings.clone()), expected, "{settings}");
    }
    let mut wordy = actor.post("A title\n\nand words");
    wordy.settings = json!({ "crosspost": id });
    assert_eq!(codes(&actor, &wordy), ["text_not_shown"]);
    let pictured =
        PublishRequest { settings: json!({ "crosspost": id }), ..actor.post_with("A", MediaKind::Image, 1) };
    assert_eq!(codes(&actor, &pictured), ["settings_conflict"]);
    let blank = PublishRequest { text: String::new(), settings: json!({ "crosspost": id }), ..post.clone() };
    assert_eq!(codes(&actor, &blank), ["content_required"]);
}

async fn a_link_is_an_address_that_reddit_takes() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    for (text, is_fine) in [
        ("see https://example.com/a", true),
        ("see https://example.com:99999/a", false),
        ("see https://example.com:99999/a and https://example.com/b", true),
    ] {
        let mut post = actor.post(text);
        post.settings = json!({ "kind": "link", "title": "A title" });
        assert_eq!(codes(&actor, &post).contains(&"settings_conflict".to_owned()), !is_fine, "{text}");
        let published = actor.publish(&post).await;
        assert_eq!(published.is_ok(), is_fine, "{text}: {published:?}");
    }
}

async fn a_crosspost_is_looked_up_before() {
    let world = World::start().await;
    let actor = actor(&world, "reddit");
    let source = foreign(&world, "pics").await;
    let mut post = actor.post("A title");
    for (settings, expected) in [
        (json!({ "crosspost": source, "subreddit": "test", "crosspost_to": ["news", "u_ada"] }), vec![]),
        (json!({ "crosspost": "t3_nothing" }), vec![("crosspost", "reference_not_found")]),
        (json!({ "crosspost": source, "subreddit": "pics" }), vec![("crosspost", "reference_not_allowed")]),
        (
            json!({ "crosspost": source, "subreddit": "nocrossposts" }),
            vec![("subreddit", "reference_not_allowed")],
        ),
        (
            json!({ "crosspost_to": ["nocrossposts", "missing_one", "private", "flaired", "linksonly", "u_ada"] }),
            vec![
                ("crosspost_to", "reference_not_allowed"),
                ("crosspost_to", "reference_not_found"),
                ("crosspost_to", "reference_not_allowed"),
                ("crosspost_to", "reference_not_allowed"),
                ("crosspost_to", "reference_not_allowed"),
                ("crosspost_to", "reference_not_allowed"),
            ],
        ),
    ] {
        post.settings = settings.clone();
        let (issues, failure) = actor.look_up(&post).await;
        assert!(failure.is_none(), "{failure:?}");
        let found: Vec<_> = issues
            .iter()
            .map(|issue| (issue.path[2].as_str().unwrap_or_default(), issue.code.as_str()))
            .collect();
        assert_eq!(found, expected, "{settings} {issues:?}");
        // A refused crosspost does not keep the post from being published.
        let are_right = issues
            .iter()
            .all(|issue| (issue.path[2] == "crosspost_to") == (issue.severity == Severity::Warning));
        assert!(are_right, "{settings} {issues:?}");
    }
    assert_eq!(actor.accepted().await, 0);
}
