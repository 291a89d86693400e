//! Facebook: the Pages of a login, videos in parts, and posts as Facebook shows them.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World};
use crate::trials::{self, singles};
use chrono::TimeDelta;
use domain::{ErrorCode, Severity};
use libtest_mimic::Trial;
use platforms::{
    Committed, Identity, Located, MediaKind, PublishRequest, Result,
    check::{ContainerContent, check},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "facebook",
        &singles![
            pages_of_a_portfolio_are_found_if_they_were_chosen,
            pages_of_a_portfolio_are_read_once_with_its_permission,
            a_page_without_a_publishing_task_is_reported,
            a_declined_permission_is_asked_for_again,
            a_video_is_sent_in_the_parts_that_facebook_asks_for,
            a_video_is_covered_by_a_picture_of_the_post,
            a_failed_cover_does_not_undo_the_video,
            pages_are_invited_to_a_reel_once,
            media_and_settings_that_do_not_fit_are_rejected,
            a_post_is_shown_in_chosen_countries_only,
            a_lost_post_is_found_as_facebook_shows_it,
            a_list_with_too_much_data_is_read_in_shorter_pages,
            a_story_is_measured_without_its_removed_metrics,
            a_removed_metric_is_found_once_a_day,
            a_short_text_is_shown_on_a_background,
            links_are_shown_as_cards,
            a_draft_is_kept_where_nobody_sees_it,
            a_lost_draft_is_not_made_twice,
            polls_of_a_video_are_rare_when_a_limit_is_nearly_used_up,
            a_replaced_secret_is_for_the_operator_to_correct,
        ],
    )
}

const SCOPES: [&str; 3] = ["pages_show_list", "pages_manage_posts", "pages_read_engagement"];

/// Logs in as a person who chooses these Pages, and returns what the login covers.
async fn login(world: &World, pages: &str, scopes: &[&str]) -> (Actor, Result<Vec<Identity>>) {
    for page in pages.split(',') {
        world.named(platforms::get("facebook").expect("it has an adapter"), page);
    }
    let mut person = actor(world, "facebook");
    person.account.username = pages.to_owned();
    let brought = person.consent_to(scopes, "allow").await.expect("it has codes");
    person.grant = person.exchange(&brought["code"]).await.on("exchange");
    let identities = person.identities().await;
    (person, identities)
}

fn names(identities: &[Identity]) -> Vec<&str> {
    identities.iter().map(|identity| identity.profile.username.as_str()).collect()
}

async fn pages_of_a_portfolio_are_found_if_they_were_chosen() {
    let world = World::start().await;
    // Another Page of the portfolio, which is not chosen.
    world.named(platforms::get("facebook").expect("it has an adapter"), "portfolio.other");
    let chosen = "own,portfolio.ada,client.bob,plus.eve,analyst.joe";
    let (mut person, identities) = login(&world, chosen, &SCOPES).await;
    let identities = identities.on("identities");
    assert_eq!(names(&identities), ["own", "plus.eve", "portfolio.ada", "client.bob"]);
    for identity in identities {
        person.account.network_unique_id = identity.profile.network_unique_id;
        person.grant = identity.grant.expect("a Page has its own grant");
        let page = identity.profile.username;
        let id = person.publish(&person.post(&format!("from {page}"))).await.on(&page);
        let shown = person.shown(&id).await;
        assert!(shown.contains(&format!("from {page}")), "{shown}");
        assert!(shown.contains("Visible to people with a role on the app"), "{shown}");
    }
}

async fn pages_of_a_portfolio_are_read_once_with_its_permission() {
    let world = World::tapped().await;
    world.named(platforms::get("facebook").expect("it has an adapter"), "portfolio.other");
    let scopes = [&SCOPES[..], &["business_management"]].concat();
    let (person, identities) = login(&world, "portfolio.ada,client.bob", &scopes).await;
    let identities = identities.on("identities");
    assert_eq!(names(&identities), ["portfolio.ada", "client.bob"]);
    let client = &identities[1].profile.network_unique_id;
    let heard = world.heard();
    let reads = heard.iter().filter(|call| call.path.ends_with(&format!("/{client}")));
    assert_eq!(reads.count(), 1, "its token is not in the portfolio's list");
    assert!(person.grant.scopes.contains(&"business_management".to_owned()));

    // A portfolio that can't be read hides no other Page.
    let portfolios = "/graph.facebook.com/v26.0/me/businesses";
    let refusal = json!({ "error": { "message": "no", "code": 200 } });
    world.lie(&[(portfolios, 403, refusal)]);
    assert_eq!(names(&person.identities().await.on("identities")), ["portfolio.ada", "client.bob"]);
    let broken = json!({ "error": { "message": "later", "code": 2 } });
    world.lie(&[(portfolios, 503, broken)]);
    assert!(person.identities().await.is_err(), "the login is repeated");
}

async fn a_page_without_a_publishing_task_is_reported() {
    let world = World::start().await;
    let (_, identities) = login(&world, "analyst.joe", &SCOPES).await;
    let failure = identities.expect_err("nothing can be posted to");
    assert_eq!(failure.code, rejected(404));
    assert!(
        failure.message.contains("analyst joe Åkesson") && failure.message.contains("no task"),
        "{failure}"
    );
}

async fn a_declined_permission_is_asked_for_again() {
    let world = World::start().await;
    let person = actor(&world, "facebook");
    let declined = [("declined", "pages_manage_posts")];
    let brought = person.consent_with(&SCOPES, "allow", &declined).await.expect("it has codes");
    let grant = person.exchange(&brought["code"]).await.on("exchange");
    assert_eq!(grant.scopes, ["pages_show_list", "pages_read_engagement"]);
    let brought = person.consent_to(&SCOPES, "allow").await.expect("it has codes");
    let grant = person.exchange(&brought["code"]).await.on("exchange");
    assert_eq!(grant.scopes, SCOPES);
}

async fn a_video_is_sent_in_the_parts_that_facebook_asks_for() {
    let world = World::tapped().await;
    let actor = actor(&world, "facebook");
    let post = actor.post_with("a film", MediaKind::Video, 1);
    let size = post.media[0].size_bytes;
    let id = actor.publish(&post).await.on("publish");
    assert!(actor.shown(&id).await.contains("a film"));
    let heard = world.heard();
    let ends: Vec<_> = heard
        .iter()
        .filter(|call| call.method == "POST" && call.path.ends_with("/videos"))
        .inspect(|call| assert!(call.path.starts_with("/graph-video.facebook.com/"), "{}", call.path))
        .filter_map(|call| call.answer["end_offset"].as_str()?.parse::<u64>().ok())
        .collect();
    let part = 5 << 20;
    assert!(size > part && size < 2 * part);
    // The answer to the last part asks for nothing more.
    assert_eq!(ends, [part, size, size]);
}

/// Returns a video with an image for its cover.
fn covered(actor: &Actor, place: &str) -> PublishRequest {
    let mut post = actor.post_with(&format!("covered, {place}"), MediaKind::Image, 1);
    post.media.extend(actor.post_with("", MediaKind::Video, 1).media);
    post.settings = json!({ "media_type": place, "cover": post.media[0].id });
    post
}

async fn a_video_is_covered_by_a_picture_of_the_post() {
    let world = World::tapped().await;
    let actor = actor(&world, "facebook");
    for place in ["FEED", "REELS"] {
        let post = covered(&actor, place);
        let at = actor.prepare(&post).await.on("prepare");
        let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
            panic!("a video is processed")
        };
        let Located::Live(found) = actor.settle(&post, &at).await.on("settle") else { panic!("it is live") };
        let id = found.into_id();
        let page = actor.shown(&id).await;
        assert!(page.contains(&post.text) && page.contains("alt=\"Cover\""), "{place}: {page}");
        // A look-up may be repeated.
        assert_eq!(actor.settle(&post, &at).await.on("settle").id(), Some(&*id));
        let listed =
            actor.ask("GET", &actor.sandbox(&format!("graph.facebook.com/v26.0/{id}/thumbnails"))).await;
        let preferred: Vec<_> = listed["data"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["is_preferred"] == true)
            .collect();
        assert_eq!(preferred, [false, true]);
        assert_eq!(actor.notes(&covered(&actor, place)).await.on("publish"), Vec::<String>::new());
    }
    assert_eq!(actor.accepted().await, 4);
    assert!(!world.heard().iter().any(|call| call.path.ends_with("/photos")), "the cover is no photo");
}

async fn a_failed_cover_does_not_undo_the_video() {
    let world = World::tapped().await;
    // The permissions that publishing needs do not include those for covers.
    let (mut person, identities) = login(&world, "own", &SCOPES).await;
    let page = identities.on("identities").remove(0);
    person.account.network_unique_id = page.profile.network_unique_id;
    person.grant = page.grant.expect("a Page has its own grant");
    let notes = person.notes(&covered(&person, "REELS")).await.on("publish");
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.contains("without its own cover") && note.contains("pages_manage_engagement"), "{note}");

    // An outage is waited for, but not for long.
    let actor = actor(&world, "facebook");
    let post = covered(&actor, "FEED");
    let at = actor.prepare(&post).await.on("prepare");
    let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
        panic!("a video is processed")
    };
    let id = at.0["uploads"][0]["ticket"]["id"].as_str().expect("an id").to_owned();
    let broken = json!({ "error": { "message": "later", "code": 2 } });
    world.lie(&[(&format!("/graph.facebook.com/v26.0/{id}/thumbnails"), 503, broken)]);
    let failure = actor.settle(&post, &at).await.expect_err("an outage");
    assert!(!failure.code.is_permanent(), "{failure}");
    let begun = crate::fixtures::clock() - TimeDelta::minutes(16);
    assert_eq!(actor.look(&post, &at, begun).await.on("look").id(), Some(&*id));
}

async fn pages_are_invited_to_a_reel_once() {
    let world = World::tapped().await;
    let platform = platforms::get("facebook").expect("it has an adapter");
    let actor = actor(&world, "facebook");
    let (bob, eve) = (world.named(platform, "bob").account, world.named(platform, "eve").account);
    let mut post = actor.post_with("together", MediaKind::Video, 1);
    let pages = [&bob.network_unique_id, "1", &eve.network_unique_id];
    post.settings = json!({ "media_type": "REELS", "collaborators": pages });
    let notes = actor.notes(&post).await.on("publish");
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.contains("without the collaborator 1"), "{note}");
    let id = actor.publish(&post).await.on("publish");
    let page = actor.shown(&id).await;
    for page_id in [&bob.network_unique_id, &eve.network_unique_id] {
        assert!(page.contains(&format!("Invited: {page_id}")), "{page}");
    }
    let invited = |post: &str| {
        let path = format!("/{post}/collaborators");
        world.heard().iter().filter(|call| call.method == "POST" && call.path.ends_with(&path)).count()
    };
    assert_eq!(invited(&id), 3);
    // Those that an earlier look-up invited are not invited again.
    let at = actor.prepare(&post).await.on("prepare");
    let Committed::Accepted { mut at, .. } = actor.commit(&post, &at).await.on("commit") else {
        panic!("a reel is processed")
    };
    at.0["invited"] = json!([bob.network_unique_id, "1"]);
    let Located::Live(found) = actor.settle(&post, &at).await.on("settle") else { panic!("it is live") };
    let id = found.into_id();
    assert_eq!(invited(&id), 1);

    actor.set(&json!({ "limits": { "facebook.invitations": 0 } })).await;
    post.settings["collaborators"] = json!([bob.network_unique_id]);
    let notes = actor.notes(&post).await.on("publish");
    assert!(notes.len() == 1 && notes[0].contains("without the collaborator"), "{notes:?}");
}

async fn media_and_settings_that_do_not_fit_are_rejected() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    let pictures = actor.post_with("", MediaKind::Image, 2).media;
    let film = actor.post_with("", MediaKind::Video, 1).media.remove(0);
    let picture = &pictures[0];
    let conflict = "settings_conflict config.facebook";
    for (media, settings, issue) in [
        (vec![&film, picture], json!({}), "media_mixed containers.0.media".to_owned()),
        (vec![picture, &film], json!({}), "media_mixed containers.0.media".to_owned()),
        (vec![&film, picture], json!({ "cover": film.id }), format!("{conflict}.cover")),
        (vec![picture], json!({ "cover": picture.id }), format!("{conflict}.cover")),
        (vec![&film, picture, &pictures[1]], json!({ "cover": picture.id }), format!("{conflict}.cover")),
        (
            vec![&film, picture],
            json!({ "cover": picture.id, "media_type": "STORIES" }),
            format!("{conflict}.cover"),
        ),
        (vec![&film], json!({ "collaborators": ["1"] }), format!("{conflict}.collaborators")),
    ] {
        let mut post = actor.post_with("a film", MediaKind::Image, 0);
        post.media = media.into_iter().cloned().collect();
        post.settings = settings;
        let found =
            check(actor.platform, &[ContainerContent { text: "a film", media: &post.media }], &post.settings);
        let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
        let name = |path: &[Value]| path.iter().map(step).collect::<Vec<_>>().join(".");
        let found: Vec<_> =
            found.iter().map(|issue| format!("{} {}", issue.code, name(&issue.path))).collect();
        assert_eq!(found, [issue], "{}", post.settings);
        let failure = actor.prepare(&post).await.expect_err("it does not fit");
        assert_eq!(failure.code, rejected(400), "{failure}");
    }
    // A comment may show the image that covers the video.
    let mut post = covered(&actor, "FEED");
    let id = actor.publish(&post).await.on("publish");
    let mut comment = actor.reply("and here", &[id]);
    comment.media = vec![post.media.remove(0)];
    comment.settings = post.settings;
    let page = actor.shown(&actor.publish(&comment).await.on("comment")).await;
    assert!(page.contains("and here") && page.contains("<img"), "{page}");
}

async fn a_post_is_shown_in_chosen_countries_only() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    for (kind, count, place) in [
        (MediaKind::Image, 0, "FEED"),
        (MediaKind::Image, 2, "FEED"),
        (MediaKind::Video, 1, "FEED"),
        (MediaKind::Video, 1, "REELS"),
    ] {
        let mut post = actor.post_with(&format!("for some, {count} of {kind}"), kind, count);
        post.settings = json!({ "media_type": place, "countries": ["AT", "DE"] });
        let page = actor.shown(&actor.publish(&post).await.on(place)).await;
        assert!(page.contains("Countries: AT, DE"), "{kind} {place}: {page}");
    }
}

async fn a_lost_post_is_found_as_facebook_shows_it() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    let mentioned = world.named(platforms::get("facebook").expect("it has an adapter"), "bob").account;
    let mention = format!("with @[{}] #sandbox-lost-reply", mentioned.network_unique_id);
    for (text, settings) in [
        ("a clip #sandbox-lost-reply", json!({ "link": "https://www.youtube.com/watch?v=abc" })),
        ("a film #sandbox-lost-reply", json!({ "link": "https://vimeo.com/1" })),
        ("it moves #sandbox-lost-reply", json!({ "link": "https://example.com/a.gif" })),
        ("look https://youtu.be/abc #sandbox-lost-reply", json!({})),
        (mention.as_str(), json!({})),
    ] {
        let post = PublishRequest { settings, ..actor.post(text) };
        let at = actor.prepare(&post).await.on("prepare");
        actor.commit(&post, &at).await.expect_err("the answer is lost");
        let located = actor.settle(&post, &at).await.on("settle");
        assert!(matches!(located, Located::Live(_)), "{text}: {located:?}");
    }
}

async fn a_list_with_too_much_data_is_read_in_shorter_pages() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    for number in 0..3 {
        actor.publish(&actor.post_with(&format!("album {number}"), MediaKind::Image, 10)).await.on("publish");
    }
    let history = actor.platform.history.expect("it has a history");
    let keep = Kept::default();
    let (mut texts, mut cursor) = (Vec::new(), None);
    loop {
        let page = history.page(&actor.session(&keep), cursor.as_deref()).await.on("page");
        texts.extend(page.items.into_iter().map(|post| post.text));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(texts, ["album 2", "album 1", "album 0"]);
}

async fn a_story_is_measured_without_its_removed_metrics() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    let mut post = actor.post_with("", MediaKind::Image, 1);
    post.settings = json!({ "media_type": "STORIES" });
    let id = actor.publish(&post).await.on("publish");
    let analytics = actor.platform.analytics.expect("it has figures");
    let keep = Kept::default();
    analytics.metrics(&actor.session(&keep), &id).await.on("metrics");
    let failure = analytics
        .metrics(&actor.session(&keep), &actor.unknown(std::slice::from_ref(&id)))
        .await
        .expect_err("unknown");
    assert_eq!(failure.code, rejected(404));
}

async fn a_removed_metric_is_found_once_a_day() {
    let world = World::tapped().await;
    let mut actor = actor(&world, "facebook");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut post = actor.post_with("", MediaKind::Image, 1);
        post.settings = json!({ "media_type": "STORIES" });
        ids.push(actor.publish(&post).await.on("publish"));
    }
    let analytics = actor.platform.analytics.expect("it has figures");
    let calls = || world.heard().into_iter().filter(|call| call.path.ends_with("/insights"));
    let asked = || calls().count();
    // One call with four names, and one for each.
    for (id, count) in [(&ids[0], 5), (&ids[0], 1), (&ids[1], 1)] {
        let before = asked();
        analytics.metrics(&actor.session(&Kept::default()), id).await.on("metrics");
        assert_eq!(asked() - before, count);
    }
    let last = calls().next_back().expect("it was asked");
    let names = ("metric".to_owned(), "story_media_view,story_total_media_view_unique".to_owned());
    assert!(last.status == 200 && last.query.contains(&names), "{:?}", last.query);
    actor.now = || crate::fixtures::clock() + TimeDelta::days(1);
    let before = asked();
    analytics.metrics(&actor.session(&Kept::default()), &ids[0]).await.on("metrics");
    assert_eq!(asked() - before, 5);
}

async fn polls_of_a_video_are_rare_when_a_limit_is_nearly_used_up() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    actor.set(&json!({ "processing_ms": 60_000 })).await;
    let post = actor.post_with("a film", MediaKind::Video, 1);
    let at = actor.prepare(&post).await.on("prepare");
    let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
        panic!("a video is processed");
    };
    let begun = crate::fixtures::clock() - TimeDelta::seconds(5);
    let pause = async || match actor.look(&post, &at, begun).await.on("look") {
        Located::Processing { poll_after } => poll_after,
        other => panic!("{other:?}"),
    };
    assert!(pause().await < Duration::from_secs(60));
    // Beginning, two parts, the end and the polls.
    actor.set(&json!({ "limits": { "facebook.calls": 7 } })).await;
    assert!(pause().await >= Duration::from_secs(300));
}

/// Returns the codes of the issues of a post with further containers.
fn codes(actor: &Actor, post: &PublishRequest, further: &[&str]) -> Vec<String> {
    let main = ContainerContent { text: &post.text, media: &post.media };
    let further = further.iter().map(|&text| ContainerContent { text, media: &[] });
    let contents: Vec<_> = std::iter::once(main).chain(further).collect();
    check(actor.platform, &contents, &post.settings).into_iter().map(|issue| issue.code).collect()
}

/// Publishes a post whose answer is lost, and returns the result of the look-up.
async fn lost(actor: &Actor, post: &PublishRequest) -> Located {
    let at = actor.prepare(post).await.on("prepare");
    let failure = actor.commit(post, &at).await.expect_err("the answer is lost");
    assert!(failure.is_ambiguous(), "{failure}");
    actor.settle(post, &at).await.on("settle")
}

async fn a_short_text_is_shown_on_a_background() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    let on_purple = |text: &str| PublishRequest {
        settings: json!({ "text_format_preset_id": "106018623298955" }),
        ..actor.post_with(text, MediaKind::Image, 0)
    };
    let post = on_purple(&"é".repeat(130));
    assert_eq!(codes(&actor, &post, &["a comment"]), [""; 0]);
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains("Background: 106018623298955"), "{page}");
    let located = lost(&actor, &on_purple("a purple loss #sandbox-lost-reply")).await;
    assert!(matches!(located, Located::Live(_)), "{located:?}");
    let accepted = actor.accepted().await;

    let long = on_purple(&"é".repeat(131));
    assert_eq!(codes(&actor, &long, &[]), ["text_too_long"]);
    let with_photo =
        PublishRequest { media: actor.post_with("", MediaKind::Image, 1).media, ..on_purple("a photo") };
    assert_eq!(codes(&actor, &with_photo, &[]), ["settings_conflict", "setting_not_used"]);
    let mut with_link = on_purple("a link");
    with_link.settings["link"] = json!("https://example.com");
    assert_eq!(codes(&actor, &with_link, &[]), ["settings_conflict"]);
    // Facebook itself would take none of them.
    for post in [&long, &with_photo, &with_link] {
        let failure = actor.publish(post).await.expect_err("no background");
        assert_eq!(failure.code, rejected(400), "{}: {failure}", post.text);
    }
    assert_eq!(codes(&actor, &on_purple(" "), &[]), ["content_required"]);
    let mut words = on_purple("a word");
    words.settings["text_format_preset_id"] = json!("purple");
    assert_eq!(codes(&actor, &words, &[]), ["setting_invalid"]);
    assert_eq!(actor.accepted().await, accepted);
}

async fn links_are_shown_as_cards() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    let card = |number: usize| {
        let picture = format!("https://example.com/{number}.jpg");
        json!({ "link": format!("https://example.com/{number}"), "picture": picture, "name": format!("No. {number}") })
    };
    let with = |text: &str, count: usize| PublishRequest {
        settings: json!({ "child_attachments": (1..=count).map(card).collect::<Vec<_>>() }),
        ..actor.post_with(text, MediaKind::Image, 0)
    };
    let post = with("three cards", 3);
    assert_eq!(codes(&actor, &post, &["a comment"]), [""; 0]);
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains("Card: https://example.com/3 · No. 3"), "{page}");
    assert!(page.contains("Link: https://example.com/1"), "behind the cards: {page}");
    let mut other = with("cards with another end", 2);
    other.settings["link"] = json!("https://example.org/end");
    let page = actor.shown(&actor.publish(&other).await.on("publish")).await;
    assert!(page.contains("Link: https://example.org/end"), "{page}");
    let located = lost(&actor, &with("lost cards #sandbox-lost-reply", 2)).await;
    assert!(matches!(located, Located::Live(_)), "{located:?}");
    for (count, expected) in [(6, "cards_not_shown"), (10, "cards_not_shown")] {
        let post = with(&format!("{count} cards"), count);
        assert_eq!(codes(&actor, &post, &[]), [expected]);
        actor.publish(&post).await.on("publish");
    }
    let accepted = actor.accepted().await;
    for count in [1, 11] {
        let post = with("too few or too many", count);
        assert_eq!(codes(&actor, &post, &[]), ["setting_invalid"], "{count}");
        assert_eq!(actor.publish(&post).await.expect_err("refused").code, rejected(400), "{count}");
    }
    for (member, value) in [
        ("link", json!("https://www.facebook.com/zuck")),
        ("link", json!("example.com")),
        ("picture", json!(null)),
        ("picture", json!("a.jpg")),
    ] {
        let mut post = with("an odd card", 2);
        post.settings["child_attachments"][1][member] = value.clone();
        assert_eq!(codes(&actor, &post, &[]), ["setting_invalid"], "{member} {value}");
    }
    let with_photo = PublishRequest { media: actor.post_with("", MediaKind::Image, 1).media, ..with("a", 2) };
    assert_eq!(codes(&actor, &with_photo, &[]), ["settings_conflict", "setting_not_used"]);
    assert_eq!(actor.publish(&with_photo).await.expect_err("refused").code, rejected(400));
    assert_eq!(actor.accepted().await, accepted);
}

async fn a_draft_is_kept_where_nobody_sees_it() {
    let world = World::start().await;
    let actor = actor(&world, "facebook");
    let drafted = |text: &str, kind, count| PublishRequest {
        settings: json!({ "draft": true }),
        ..actor.post_with(text, kind, count)
    };
    let mut linked = drafted("a linked draft", MediaKind::Image, 0);
    linked.settings["link"] = json!("https://example.com");
    for post in
        [drafted("a draft", MediaKind::Image, 0), drafted("a draft with photos", MediaKind::Image, 2), linked]
    {
        assert_eq!(codes(&actor, &post, &[]), ["post_waits_in_drafts"]);
        let at = actor.prepare(&post).await.on("prepare");
        let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
            panic!("its owner is still to be told")
        };
        let keep = Kept::default();
        let located = actor.platform.publisher.locate(&actor.session(&keep), &post, &at).await.on("look");
        assert!(keep.notes()[0].contains("Meta Business Suite"), "{:?}", keep.notes());
        let id = located.id().expect("its id").to_owned();
        let node = actor.sandbox(&format!("graph.facebook.com/v26.0/{id}?fields=message,is_published"));
        assert_eq!(
            actor.ask("GET", &node).await,
            json!({ "id": id, "message": post.text, "is_published": false })
        );
        let listed = actor.platform.history.expect("a history").page(&actor.session(&keep), None).await;
        assert!(listed.on("list").items.is_empty());
        let failure = actor.platform.publisher.permalink(&actor.session(&keep), &id).await;
        let failure = failure.expect_err("no address");
        assert!(failure.code == rejected(404) && failure.message.contains("draft"), "{failure}");
        actor.platform.deletion.expect("it has one").delete(&actor.session(&keep), &id).await.on("delete");
        assert_eq!(actor.ask("GET", &node).await["error"]["code"], 100, "it is gone");
    }
    assert_eq!(actor.accepted().await, 0, "nothing is public");

    let draft = drafted("a draft", MediaKind::Image, 0);
    assert_eq!(codes(&actor, &draft, &["a comment"]), ["settings_conflict", "post_waits_in_drafts"]);
    for (setting, value, expected) in [
        ("countries", json!(["AT"]), "setting_not_used"),
        ("place", json!("123"), "setting_not_used"),
        ("text_format_preset_id", json!("1"), "setting_not_used"),
        ("draft", json!(false), ""),
    ] {
        let mut post = draft.clone();
        post.settings[setting] = value;
        let issues =
            check(actor.platform, &[ContainerContent { text: &post.text, media: &[] }], &post.settings);
        let issue = issues.first();
        assert_eq!(issue.map_or("", |issue| &*issue.code), expected, "{setting}");
        // A post is never shown in more countries than its author chose.
        let is_error = issue.is_some_and(|issue| issue.severity == Severity::Error);
        assert_eq!(is_error, setting == "countries", "{issue:?}");
    }
    for (kind, place) in
        [(MediaKind::Video, "FEED"), (MediaKind::Video, "REELS"), (MediaKind::Image, "STORIES")]
    {
        let mut post = drafted("", kind, 1);
        post.settings["media_type"] = json!(place);
        assert_eq!(codes(&actor, &post, &[]), ["settings_conflict"], "{place}");
        assert_eq!(actor.publish(&post).await.expect_err("no draft").code, rejected(400), "{place}");
    }
    assert_eq!(actor.accepted().await, 0, "no draft is published instead");
}

/// No list has drafts, so that a lost one stays undecided.
async fn a_lost_draft_is_not_made_twice() {
    let world = World::tapped().await;
    let actor = actor(&world, "facebook");
    let mut post = actor.post_with("a lost draft", MediaKind::Image, 0);
    post.settings = json!({ "draft": true });
    let feed = format!("/graph.facebook.com/v26.0/{}/feed", actor.account.network_unique_id);
    world.lie(&[(&feed, 503, json!("<html>"))]);
    assert_eq!(lost(&actor, &post).await, Located::Unknown);
    let heard = world.heard();
    assert_eq!(heard.iter().filter(|call| call.method == "POST" && call.path == feed).count(), 1);
}

/// Each call proves the app's secret. After it was replaced, neither posts nor Pages are at fault.
async fn a_replaced_secret_is_for_the_operator_to_correct() {
    let world = World::start().await;
    let mut page = actor(&world, "facebook");
    let app = page.app.as_mut().expect("an app");
    let right = app.client_secret.replace("another".to_owned());
    let published = page.publish(&page.post("with the old secret")).await.map(drop);
    let refreshed = page.refresh().await.map(drop);
    let checked = page.healthy().await;
    let brought = page.consent_to(&SCOPES, "allow").await.expect("it has codes");
    let exchanged = page.exchange(&brought["code"]).await.map(drop);
    for (what, answer) in
        [("publish", published), ("refresh", refreshed), ("health", checked), ("login", exchanged)]
    {
        let failure = answer.expect_err(what);
        assert_eq!(
            (failure.code, failure.is_ambiguous()),
            (ErrorCode::AppRefused, false),
            "{what}: {failure}"
        );
    }
    page.app.as_mut().expect("an app").client_secret = right;
    page.publish(&page.post("with the new secret")).await.on("publish");
    assert_eq!(page.accepted().await, 1);
}
