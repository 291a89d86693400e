//! LinkedIn: pages, cards, and lost responses of apps that can't list posts.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World, clock};
use crate::trials::{self, singles};
use chrono::TimeDelta;
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Checkpoint, Committed, Feature, Located, MediaKind, Prepared, PublishRequest, SelectOption,
    check::{AccountKind, ContainerContent, Severity, check_for, check_reply},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "linkedin",
        &singles![
            a_page_is_a_separate_account,
            an_audience_that_a_page_does_not_have_is_refused,
            without_list_access_a_duplicate_rejection_resolves_a_lost_response,
            the_checkpoint_keeps_the_time_of_an_uncertain_call,
            an_app_with_few_scopes_publishes_and_other_calls_are_rejected,
            metrics_are_read_without_access_to_the_post,
            an_app_of_self_service_reads_likes_and_comments,
            a_post_contains_a_card_a_poll_a_document_or_a_reshare,
            a_comment_has_its_own_limits,
            the_reasons_of_a_refusal_are_told,
            each_part_of_a_video_is_sent_once,
            a_refresh_keeps_the_refresh_token,
            a_login_with_a_scope_that_the_app_lacks_is_refused,
            an_app_with_the_community_management_api_only_is_connected_and_publishes,
            a_comment_waits_until_the_post_can_be_commented_on,
            a_picture_of_unknown_state_gets_time_to_be_processed,
            a_duplicate_of_an_unnamed_post_is_final_unless_a_call_is_in_doubt,
            a_lost_post_of_a_page_is_told_apart_by_its_picture,
            comments_of_an_app_of_a_newer_product_need_their_own_scopes,
            a_comment_mentions_people_and_organizations,
            a_lost_comment_with_a_mention_is_found,
            mentions_are_looked_up_and_published,
            mentions_that_the_scopes_do_not_open_are_left_out,
            a_version_that_has_ended_is_followed_by_one_that_is_served,
            pictures_become_the_pages_of_a_document,
            a_document_is_made_of_pictures_only,
            a_file_whose_processing_failed_is_sent_once_more,
            a_lost_post_with_a_document_of_pictures_is_found,
        ],
    )
}

/// Scopes of an app without LinkedIn's approval for more.
const FEW: [&str; 3] = ["openid", "profile", "w_member_social"];

/// Returns an account that granted only these scopes.
async fn limited(world: &World, scopes: &[&str]) -> Actor {
    let mut actor = actor(world, "linkedin");
    let brought = actor.consent_to(scopes, "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    actor
}

/// Returns the scopes of a preset.
fn preset(name: &str) -> &'static [&'static str] {
    let platform = platforms::get("linkedin").expect("it has an adapter");
    platform.auth.oauth().and_then(|oauth| oauth.preset(name)).expect("a preset").scopes
}

/// Returns an account that was connected through the app with the Community Management API only.
async fn of_community_app(world: &World, scopes: &[&str]) -> Actor {
    let mut actor = actor(world, "linkedin");
    actor.app.as_mut().expect("it has apps").client_id = "fanfaresandbox-community".into();
    let brought = actor.consent_to(scopes, "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    actor
}

/// Returns the page of a member, as an account.
async fn page_of(member: &Actor) -> Actor {
    let identities = member.identities().await.on("identities");
    let page = identities.into_iter().find(|one| one.profile.account_type == "organization").expect("a page");
    let mut actor = member.clone();
    actor.account.network_unique_id = page.profile.network_unique_id;
    actor.account.account_type = page.profile.account_type;
    actor
}

/// LinkedIn's answer to a version that it does not serve, as recorded.
fn ended(version: &str) -> Value {
    let message = format!("Requested version {version} is not active");
    json!({ "status": 426, "code": "NONEXISTENT_VERSION", "message": message })
}

async fn a_version_that_has_ended_is_followed_by_one_that_is_served() {
    let world = World::tapped().await;
    let mut actor = actor(&world, "linkedin");
    let calls = || {
        let heard = world.heard().into_iter();
        heard.filter(|call| call.method == "POST" && call.path.ends_with("/rest/posts")).count()
    };
    let old = "202501".parse().expect("a version");
    actor.transport = actor.transport.with_linkedin_version(Some(old));
    actor.publish(&actor.post("before")).await.on("publish");
    assert_eq!(calls(), 2, "the version that ended, and the tested one");
    // Also by another session of the process.
    actor.publish(&actor.post("after")).await.on("publish");
    assert_eq!(calls(), 3, "the tested one is named first");

    world.lie(&[("/api.linkedin.com/rest/posts", 426, ended("202606"))]);
    let post = actor.post("refused");
    let at = actor.prepare(&post).await.on("prepare");
    let failure = actor.commit(&post, &at).await.expect_err("no version is served");
    // It concerns the app's operator, and is held with the app.
    assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::AppRefused, false));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3600)));
    assert!(failure.message.contains("FANFARE_LINKEDIN_VERSION"), "{failure}");
    assert_eq!(calls(), 9, "six versions are tried");

    // LinkedIn has no version of December, and the simulator neither.
    world.lie(&[]);
    let asked = world.http().get(world.url("api.linkedin.com/rest/posts"));
    let asked = asked.header("linkedin-version", "202512").bearer_auth(&actor.grant.access_token);
    let answer = asked.send().await.expect("an answer");
    assert_eq!(answer.status(), 426);
    assert_eq!(answer.json::<Value>().await.expect("JSON"), ended("202512"));
}

async fn a_page_is_a_separate_account() {
    trials::approve();
    let world = World::tapped().await;
    let mut actor = actor(&world, "linkedin");
    let identities = actor.identities().await.on("identities");
    let page = identities.iter().find(|one| one.profile.account_type == "organization").expect("a page");
    assert_eq!(
        (page.profile.username.as_str(), page.profile.display_name.as_str()),
        ("ada-works", "ada Works")
    );

    // With a setting, the member's account posts for the page.
    let mut post = actor.post("for the page");
    post.settings = json!({ "organization_id": page.profile.network_unique_id });
    let keep = Kept::default();
    let deletion = actor.platform.deletion.expect("it deletes");
    let id = actor.publish(&post).await.on("for");
    let shown = actor.shown(&id).await;
    let urn = format!("urn:li:organization:{}", page.profile.network_unique_id);
    assert!(shown.contains(&format!("By {urn}, visible: PUBLIC")), "{shown}");
    // A comment is also made for the page, and deleted as the page.
    let mut comment = actor.reply("a comment for the page", &[id]);
    comment.settings = post.settings.clone();
    let id = actor.publish(&comment).await.on("comment for");
    let address = actor.permalink(&id).await;
    deletion.delete(&actor.session(&keep), &id).await.on("delete");
    assert_eq!(actor.status(&address).await, 404);
    deletion.delete(&actor.session(&keep), &id).await.on("again");

    actor.account.network_unique_id = page.profile.network_unique_id.clone();
    actor.account.account_type = page.profile.account_type.clone();
    actor.healthy().await.on("health");
    let mut ids =
        vec![actor.publish(&actor.post_with("by the page", MediaKind::Video, 1)).await.on("publish")];
    assert!(actor.shown(&ids[0]).await.contains(&format!("By {urn}")));
    ids.push(actor.publish(&actor.reply("a comment", &ids)).await.on("comment"));
    let history = actor.platform.history.expect("it has one");
    let listed = history.page(&actor.session(&keep), None).await.on("history");
    assert_eq!(listed.items.len(), 2);
    let analytics = actor.platform.analytics.expect("it has figures");
    analytics.metrics(&actor.session(&keep), &ids[0]).await.on("metrics");
    for path in ["/rest/organizationalEntityShareStatistics", "/rest/videoAnalytics"] {
        assert!(world.heard().iter().any(|call| call.path.ends_with(path)), "{path} was never called");
    }
    let comment = actor.permalink(&ids[1]).await;
    deletion.delete(&actor.session(&keep), &ids[1]).await.on("delete");
    assert_eq!(actor.status(&comment).await, 404);
    // Revoking the page's grant keeps the member's, which is the same.
    actor.platform.publisher.revoke(&actor.session(&keep)).await.on("revoke");
    actor.healthy().await.on("health");
}

/// A page's posts are public, so that none is published with a narrower audience.
async fn an_audience_that_a_page_does_not_have_is_refused() {
    trials::approve();
    let world = World::start().await;
    let member = actor(&world, "linkedin");
    let page = page_of(&member).await;
    let told = |actor: &Actor, settings: &Value| -> Vec<_> {
        let account = AccountKind { account_type: &actor.account.account_type, scopes: &[] };
        let content = ContainerContent { text: "a post", media: &[] };
        let issues = check_for(actor.platform, account, &[content], settings).into_iter();
        issues.map(|issue| (issue.severity, issue.code, Value::from(issue.path))).collect()
    };
    let id = &page.account.network_unique_id;
    let unused =
        (Severity::Error, "setting_not_used".to_owned(), json!(["config", "linkedin", "visibility"]));
    for (visibility, is_public) in [("PUBLIC", true), ("CONNECTIONS", false), ("LOGGED_IN", false)] {
        let expected = if is_public { &[][..] } else { std::slice::from_ref(&unused) };
        let mut settings = json!({ "visibility": visibility });
        assert_eq!(told(&member, &settings), [], "{visibility}");
        assert_eq!(told(&page, &settings), expected, "{visibility}");
        let mut post = page.post(&format!("for {visibility}"));
        post.settings = settings.clone();
        assert_eq!(
            page.publish(&post).await.is_ok(),
            is_public,
            "{visibility}: LinkedIn judges as the check does"
        );
        settings["organization_id"] = json!(id);
        assert_eq!(told(&member, &settings), expected, "{visibility} for the page");
        // Of a comment it is no setting at all.
        let account = AccountKind { account_type: &member.account.account_type, scopes: &[] };
        let content = [ContainerContent { text: "a comment", media: &[] }];
        let issues = check_reply(member.platform, account, &content, &settings);
        let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
        assert_eq!(codes, ["setting_not_for_replies"], "{visibility}");
    }
}

async fn without_list_access_a_duplicate_rejection_resolves_a_lost_response() {
    let world = World::start().await;
    let actor = limited(&world, &FEW).await;
    let post = actor.post("only once (really) #sandbox-lost-reply");
    let at = actor.prepare(&post).await.on("prepare");
    let begun = clock();
    let failure = actor.commit(&post, &at).await.expect_err("it is lost");
    assert!(failure.is_ambiguous(), "{failure:?}");
    assert_eq!(actor.settle(&post, &at).await.on("settle"), Located::Absent);
    // The engine repeats the call with the time of the first call whose result is unknown.
    let again = PublishRequest { commit_begun_at: Some(begun), ..post.clone() };
    let Committed::Live(id) = actor.commit(&again, &at).await.on("commit") else { panic!("not live") };
    assert!(actor.shown(&id).await.contains("only once (really)"));
    assert_eq!(actor.accepted().await, 1);

    // Without an earlier call, the original is another post.
    let failure = actor.commit(&post, &at).await.expect_err("a duplicate");
    assert_eq!(failure.code, rejected(422));
    // An original from before that call is another post too.
    let later = PublishRequest { commit_begun_at: Some(clock() + TimeDelta::minutes(10)), ..post };
    assert_eq!(actor.commit(&later, &at).await.expect_err("a duplicate").code, rejected(422));
}

async fn the_checkpoint_keeps_the_time_of_an_uncertain_call() {
    let world = World::start().await;
    let actor = limited(&world, &FEW).await;
    let post = actor.post("in doubt #sandbox-lost-reply");
    let at = actor.prepare(&post).await.on("prepare");
    actor.commit(&post, &at).await.expect_err("it is lost");
    let keep = Kept::default();
    let asked = PublishRequest { commit_begun_at: Some(clock() - TimeDelta::seconds(5)), ..post.clone() };
    actor.platform.publisher.locate(&actor.session(&keep), &asked, &at).await.on("locate");
    let kept = actor.prepare_from(&post, keep.last().expect("a checkpoint was saved")).await.on("prepare");
    assert!(matches!(actor.commit(&post, &kept).await, Ok(Committed::Live(_))));

    // The response of a second call is lost minutes later: the post is still that of the first call.
    let kept = actor.prepare_from(&asked, at).await.on("prepare");
    let later = PublishRequest { commit_begun_at: Some(clock() + TimeDelta::minutes(10)), ..post };
    let kept = actor.prepare_from(&later, kept).await.on("prepare");
    assert!(matches!(actor.commit(&later, &kept).await, Ok(Committed::Live(_))));
    assert_eq!(actor.accepted().await, 1);
}

async fn an_app_with_few_scopes_publishes_and_other_calls_are_rejected() {
    let world = World::start().await;
    let actor = limited(&world, &FEW).await;
    let identities = actor.identities().await.on("identities");
    assert_eq!(identities.len(), 1);
    let mut post = actor.post_with("a picture", MediaKind::Image, 1);
    post.media[0].alt_text = Some("gray".into());
    let id = actor.publish(&post).await.on("publish");
    assert!(actor.shown(&id).await.contains("alt=\"gray\""));
    let keep = Kept::default();
    let history = actor.platform.history.expect("it has one");
    let failure = history.page(&actor.session(&keep), None).await.expect_err("closed");
    assert_eq!((failure.code, failure.is_revoked()), (rejected(403), false));
    let reply = actor.reply("a comment #sandbox-lost-reply", std::slice::from_ref(&id));
    let failure = actor.publish(&reply).await.expect_err("it is lost");
    assert!(failure.is_ambiguous());
    assert_eq!(actor.settle(&reply, &Checkpoint::default()).await.on("settle"), Located::Unknown);
    // A member can delete their own comment even if the app can't read it.
    let comment = actor.publish(&actor.reply("another", &[id])).await.on("comment");
    let address = actor.permalink(&comment).await;
    actor.platform.deletion.expect("it deletes").delete(&actor.session(&keep), &comment).await.on("delete");
    assert_eq!(actor.status(&address).await, 404);
}

async fn metrics_are_read_without_access_to_the_post() {
    trials::approve();
    let world = World::tapped().await;
    let actor = limited(&world, &[&FEW[..], &["r_member_postAnalytics"]].concat()).await;
    let id = actor.publish(&actor.post("measured")).await.on("publish");
    let keep = Kept::default();
    let analytics = actor.platform.analytics.expect("it has figures");
    analytics.metrics(&actor.session(&keep), &id).await.on("metrics");
    let heard = world.heard();
    let asked = heard.iter().filter(|call| call.path.ends_with("/rest/memberCreatorPostAnalytics"));
    assert_eq!(asked.count(), 7, "one call per metric");
}

async fn an_app_of_self_service_reads_likes_and_comments() {
    let world = World::tapped().await;
    let actor = limited(&world, &FEW).await;
    let granted: Vec<_> = FEW.iter().map(ToString::to_string).collect();
    assert_eq!(actor.platform.explain(Feature::Analytics, &granted), None);
    let ids = vec![actor.publish(&actor.post("measured")).await.on("publish")];
    actor.publish(&actor.reply("a comment", &ids)).await.on("comment");
    let keep = Kept::default();
    let analytics = actor.platform.analytics.expect("it has figures");
    let figures = analytics.metrics(&actor.session(&keep), &ids[0]).await.on("metrics");
    assert_eq!((figures.comments, figures.impressions), (1, 0), "{figures:?}");
    let asked = || -> Vec<_> {
        let heard = world.heard().into_iter();
        let asked = heard.filter(|call| call.method == "GET" && call.path.contains("/socialActions/"));
        asked.map(|call| (call.path.contains("/rest/"), call.status)).collect()
    };
    assert_eq!(asked(), [(true, 403), (false, 200)], "the versioned API is closed to it");
    let gone = actor.unknown(&ids);
    let failure = analytics.metrics(&actor.session(&keep), &gone).await.expect_err("there is no such post");
    assert!(failure.code.is_permanent(), "{failure}");

    // Of a page no more is known to be open than the versioned API, which is asked alone.
    let before = asked().len();
    let mut page = actor.clone();
    page.account.account_type = "organization".into();
    let failure = analytics.metrics(&page.session(&keep), &ids[0]).await.expect_err("closed");
    assert_eq!(failure.code, rejected(403));
    assert_eq!(asked()[before..], [(true, 403)]);
}

async fn a_post_contains_a_card_a_poll_a_document_or_a_reshare() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let mut card = actor.post_with("read (this) #rust", MediaKind::Image, 1);
    card.settings = json!({ "link": { "url": "https://example.com/a?b=c", "title": "A title" } });
    let id = actor.publish(&card).await.on("card");
    let page = actor.shown(&id).await;
    for words in ["read (this) #rust", "Card: A title", "Leads to: https://example.com/a?b=c", "<img"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    card.media = actor.post_with("", MediaKind::Image, 2).media;
    let codes = |text: &str, media: &[platforms::Media], settings: &Value| -> Vec<String> {
        let issues = platforms::check::check(actor.platform, &[ContainerContent { text, media }], settings);
        issues.into_iter().map(|issue| issue.code).collect()
    };
    assert!(!codes(&card.text, &card.media, &card.settings).is_empty(), "two pictures");
    assert_eq!(codes("", &card.media, &card.settings), ["settings_conflict"]);
    assert_eq!(codes("", &card.media[..1], &card.settings), [""; 0]);
    card.media[0].width = Some(7_000);
    card.media[0].height = Some(6_000);
    assert_eq!(codes("", &card.media, &json!({})), ["media_fitted"]);

    let mut poll = actor.post("which?");
    poll.settings =
        json!({ "poll": { "question": "Which one?", "options": ["a", "b"], "duration": "ONE_DAY" } });
    assert!(actor.shown(&actor.publish(&poll).await.on("poll")).await.contains("Poll: Which one?"));

    let mut paper = actor.post_with("a paper", MediaKind::Document, 1);
    assert!(actor.shown(&actor.publish(&paper).await.on("paper")).await.contains("Title: paper.pdf"));
    paper = actor.post_with("another", MediaKind::Document, 1);
    paper.settings = json!({ "title": "Its own title" });
    assert!(actor.shown(&actor.publish(&paper).await.on("paper")).await.contains("Title: Its own title"));

    let mut share = actor.post("look");
    share.settings = json!({ "reshare": id });
    assert!(actor.shown(&actor.publish(&share).await.on("share")).await.contains(&format!("Shares {id}")));
    share.settings =
        json!({ "reshare": "urn:li:share:1", "poll": { "question": "?", "options": ["a", "b"] } });
    let contents = [ContainerContent { text: "a", media: &[] }];
    let issues = platforms::check::check(actor.platform, &contents, &share.settings);
    assert!(issues.iter().all(|issue| issue.code == "settings_conflict") && !issues.is_empty(), "{issues:?}");
}

async fn a_comment_has_its_own_limits() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let long = "a".repeat(1251);
    let contents =
        [ContainerContent { text: &long, media: &[] }, ContainerContent { text: &long, media: &[] }];
    let issues = platforms::check::check(actor.platform, &contents, &json!({}));
    assert_eq!(issues.len(), 1, "{issues:?}");
    assert_eq!(issues[0].path[1], 1);
    let ids = vec![actor.publish(&actor.post("a post")).await.on("publish")];
    let mut comment = actor.reply("with a picture", &ids);
    comment.media = actor.post_with("", MediaKind::Image, 1).media;
    assert!(actor.shown(&actor.publish(&comment).await.on("comment")).await.contains("<img"));
}

async fn the_reasons_of_a_refusal_are_told() {
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let failure = actor.publish(&actor.post(&"a".repeat(3_001))).await.expect_err("too long");
    assert_eq!(failure.code, rejected(400), "{failure}");
    for words in ["text length (3001 characters)", "Size of array cannot be higher than the maxLength"] {
        assert!(failure.message.contains(words), "{words}: {failure}");
    }
}

async fn each_part_of_a_video_is_sent_once() {
    trials::approve();
    let world = World::tapped().await;
    let actor = actor(&world, "linkedin");
    let post = actor.post_with("a film", MediaKind::Video, 1);
    let (_, was_interrupted) = actor.prepare_interrupted(&post, 2).await.on("prepare");
    assert!(was_interrupted);
    let heard = world.heard();
    let pieces: Vec<_> = heard.iter().filter(|call| call.path.contains("dms-uploads")).collect();
    // Nine MiB in parts of four; the part whose save failed is sent twice.
    assert_eq!(pieces.len(), 4, "{:?}", pieces.iter().map(|call| &call.path).collect::<Vec<_>>());
    let begun = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/rest/videos"));
    assert_eq!(begun.count(), 2, "one initialize and one finalize call");
    assert!(matches!(
        actor.prepare_once(&post, Checkpoint::default()).await.on("again"),
        Prepared::Processing { .. }
    ));
}

async fn a_refresh_keeps_the_refresh_token() {
    trials::approve();
    let world = World::start().await;
    let mut actor = actor(&world, "linkedin");
    let fresh = actor.refresh().await.on("refresh");
    assert_eq!(fresh.refresh_token, actor.grant.refresh_token);
    actor.grant.refresh_token = None;
    let failure = actor.refresh().await.expect_err("none was given");
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::TokenExpired, false));
}

async fn a_login_with_a_scope_that_the_app_lacks_is_refused() {
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let brought =
        actor.refused_consent(&["openid", "profile", "w_member_social", "w_organization_social"]).await;
    assert_eq!(brought["error"], "unauthorized_scope_error");
    assert!(brought["error_description"].contains("w_organization_social"), "{brought:?}");
    let mut community = actor.clone();
    community.app.as_mut().expect("it has apps").client_id = "fanfaresandbox-community".into();
    let brought = community.refused_consent(&["openid", "w_member_social"]).await;
    assert!(brought["error_description"].contains("openid"), "{brought:?}");
    // A self-service app gets no refresh token.
    let brought = actor.consent_to(&FEW, "allow").await.expect("it has codes");
    assert_eq!(actor.exchange(&brought["code"]).await.on("exchange").refresh_token, None);
}

async fn an_app_with_the_community_management_api_only_is_connected_and_publishes() {
    let world = World::tapped().await;
    let actor = of_community_app(&world, preset("community_management_feed")).await;
    let identities = actor.identities().await.on("identities");
    let [member, page] = identities.as_slice() else { panic!("{identities:?}") };
    assert_eq!(member.profile.network_unique_id, actor.account.network_unique_id);
    assert_eq!(
        (member.profile.username.as_str(), member.profile.display_name.as_str()),
        ("ada", "ada Åkesson")
    );
    assert!(member.profile.profile_image_url.is_some());
    assert_eq!(page.profile.account_type, "organization");
    actor.healthy().await.on("health");
    let ids = vec![actor.publish(&actor.post("by the member")).await.on("publish")];
    actor.publish(&actor.reply("a comment", &ids)).await.on("comment");
    assert!(!world.heard().iter().any(|call| call.path.contains("/v2/userinfo")));
    let fresh = actor.refresh().await.on("refresh");
    assert_eq!(fresh.refresh_token, actor.grant.refresh_token);
}

async fn a_comment_waits_until_the_post_can_be_commented_on() {
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    actor.set(&json!({ "lag_ms": 60_000 })).await;
    let ids = vec![actor.publish(&actor.post("a post")).await.on("publish")];
    let comment = actor.reply("a comment", &ids);
    let failure = actor.publish(&comment).await.expect_err("it is too early");
    assert!(!failure.code.is_permanent() && !failure.is_ambiguous(), "{failure:?}");
    assert!(failure.retry_after.is_some_and(|wait| wait >= Duration::from_secs(5)), "{failure:?}");
    actor.set(&json!({ "lag_ms": 0 })).await;
    actor.publish(&comment).await.on("comment");
    assert_eq!(actor.accepted().await, 2);
}

async fn a_picture_of_unknown_state_gets_time_to_be_processed() {
    let world = World::tapped().await;
    let actor = limited(&world, &FEW).await;
    actor.set(&json!({ "processing_ms": 600_000 })).await;
    let post = actor.post_with("a picture", MediaKind::Image, 2);
    let Prepared::Processing { at, poll_after } =
        actor.prepare_once(&post, Checkpoint::default()).await.on("prepare")
    else {
        panic!("it does not wait")
    };
    assert!(poll_after >= Duration::from_secs(5), "{poll_after:?}");
    // A post that is too early all the same can be repeated.
    let failure = actor.commit(&post, &at).await.expect_err("it is too early");
    assert!(!failure.code.is_permanent() && !failure.is_ambiguous(), "{failure:?}");
    let at = actor.prepare_from(&post, at).await.on("prepare");
    actor.set(&json!({ "processing_ms": 0 })).await;
    actor.commit(&post, &at).await.on("commit");
    assert_eq!(actor.accepted().await, 1);
}

async fn a_duplicate_of_an_unnamed_post_is_final_unless_a_call_is_in_doubt() {
    let world = World::tapped().await;
    let actor = actor(&world, "linkedin");
    let refusal = json!({
        "message": "Content is a duplicate of urn:li:person:abc", "status": 422,
        "errorDetails": { "inputErrors": [{ "code": "DUPLICATE_POST", "description": "Duplicate post is detected" }] },
    });
    world.lie(&[("/api.linkedin.com/rest/posts", 422, refusal)]);
    let post = actor.post("again");
    let at = actor.prepare(&post).await.on("prepare");
    let failure = actor.commit(&post, &at).await.expect_err("a duplicate");
    assert_eq!((failure.code, failure.is_ambiguous()), (rejected(422), false));
    let again = PublishRequest { commit_begun_at: Some(clock()), ..post };
    assert!(actor.commit(&again, &at).await.expect_err("a duplicate").is_ambiguous());
}

async fn a_lost_post_of_a_page_is_told_apart_by_its_picture() {
    trials::approve();
    let world = World::start().await;
    let mut actor = actor(&world, "linkedin");
    let identities = actor.identities().await.on("identities");
    let page = identities.into_iter().find(|one| one.profile.account_type == "organization").expect("a page");
    actor.account.network_unique_id = page.profile.network_unique_id;
    actor.account.account_type = page.profile.account_type;
    for (kind, count) in [(MediaKind::Image, 1), (MediaKind::Image, 2)] {
        let [lost, sibling] = [(); 2].map(|()| actor.post_with("the same words", kind, count));
        let at = actor.prepare(&lost).await.on("prepare");
        actor.publish(&sibling).await.on("publish");
        assert_eq!(actor.settle(&lost, &at).await.on("settle"), Located::Absent);
        actor.commit(&lost, &at).await.on("commit");
        assert!(matches!(actor.settle(&lost, &at).await.on("settle"), Located::Live(_)));
    }
}

/// Returns the options of kind `mentions` for a text.
async fn mentions(actor: &Actor, text: &str) -> platforms::Result<Vec<SelectOption>> {
    let options = actor.platform.options.expect("it has lists");
    options.options(&actor.session(&Kept::default()), "mentions", Some(text)).await
}

async fn mentions_are_looked_up_and_published() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let bob = world.named(actor.platform, "bob");
    let bobs = bob.identities().await.on("identities");
    let page = bobs.into_iter().find(|one| one.profile.account_type == "organization").expect("a page");
    let number = page.profile.network_unique_id;
    let mention = format!("@[bob Works](urn:li:organization:{number})");
    for text in [
        "bob-works",
        "Bob Works",
        "bob-works.example",
        &number,
        "https://www.linkedin.com/company/bob-works",
        &format!("https://www.linkedin.com/company/{number}/"),
    ] {
        let found = mentions(&actor, text).await.on(text);
        assert_eq!(found, [SelectOption { id: mention.clone(), name: "bob Works".into() }], "{text}");
    }
    let member = format!("@[bob Åkesson](urn:li:person:{})", bob.account.network_unique_id);
    let found = mentions(&actor, "bo").await.on("a member");
    assert_eq!(
        found,
        [SelectOption { id: member.clone(), name: "bob Åkesson, Member of the sandbox".into() }]
    );
    // A text that is no name is not searched for among the members.
    assert_eq!(mentions(&actor, "nobody 123").await.on("nobody"), []);
    assert_eq!(mentions(&actor, "1").await.on("no organization"), []);
    for text in [" ", "https://www.linkedin.com/in/bob"] {
        assert_eq!(mentions(&actor, text).await.expect_err(text).code, rejected(422));
    }
    let options = actor.platform.options.expect("it has lists");
    let failure = options.options(&actor.session(&Kept::default()), "mentions", None).await;
    assert_eq!(failure.expect_err("no text").code, rejected(422));

    let id = actor.publish(&actor.post(&format!("with {mention} and {member}"))).await.on("publish");
    let shown = actor.shown(&id).await;
    assert!(shown.contains("with @bob Works and @bob Åkesson"), "{shown}");
}

async fn mentions_that_the_scopes_do_not_open_are_left_out() {
    trials::approve();
    let world = World::tapped().await;
    world.named(platforms::get("linkedin").expect("it has an adapter"), "bob");
    let few = limited(&world, &FEW).await;
    let failure = mentions(&few, "bob").await.expect_err("no scope");
    assert_eq!((failure.code, failure.is_revoked()), (rejected(403), false));
    assert!(failure.message.contains("rw_organization_admin"), "{failure:?}");
    let organizations = limited(&world, &[&FEW[..], &["rw_organization_admin"]].concat()).await;
    assert_eq!(mentions(&organizations, "bob").await.on("members"), []);
    assert_eq!(mentions(&organizations, "bob-works").await.on("organizations").len(), 1);
    assert!(!world.heard().iter().any(|call| call.path.ends_with("/peopleTypeahead")));
    // The followers are those of a page, which the member's account alone does not name.
    let mut members = limited(&world, &[&FEW[..], &["r_organization_followers"]].concat()).await;
    assert_eq!(mentions(&members, "bob").await.on("without a page"), []);
    members.account = page_of(&organizations).await.account;
    assert_eq!(mentions(&members, "bob").await.on("as the page").len(), 1);
}

async fn a_comment_mentions_people_and_organizations() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let ids = vec![actor.publish(&actor.post("a post")).await.on("publish")];
    let text = "\u{1f680} thanks @[bob](urn:li:person:b1) of @[bob Works](urn:li:organization:7) (#team)";
    let shown = actor.shown(&actor.publish(&actor.reply(text, &ids)).await.on("comment")).await;
    for words in [
        "\u{1f680} thanks bob of bob Works (#team)",
        "Mentions urn:li:person:b1: bob",
        "Mentions urn:li:organization:7: bob Works",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

async fn a_lost_comment_with_a_mention_is_found() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let ids = vec![actor.publish(&actor.post("a post")).await.on("publish")];
    let comment = actor.reply("with @[bob Works](urn:li:organization:7) #sandbox-lost-reply", &ids);
    assert!(actor.publish(&comment).await.expect_err("it is lost").is_ambiguous());
    let located = actor.settle(&comment, &Checkpoint::default()).await.on("settle");
    assert!(matches!(located, Located::Live(_)), "{located:?}");
    // A comment with another name in the same place is another.
    let other = actor.reply("with @[ada Works](urn:li:organization:7) #sandbox-lost-reply", &ids);
    assert_eq!(actor.settle(&other, &Checkpoint::default()).await.on("settle"), Located::Absent);
}

async fn comments_of_an_app_of_a_newer_product_need_their_own_scopes() {
    trials::approve();
    let world = World::start().await;
    let (old, new) = (preset("community_management"), preset("community_management_feed"));
    // An app of an older product comments with the scopes for posts.
    let member = limited(&world, old).await;
    for actor in [page_of(&member).await, member] {
        let ids = vec![actor.publish(&actor.post("by an older app")).await.on("publish")];
        actor.publish(&actor.reply("a comment", &ids)).await.on("comment");
    }
    let member = of_community_app(&world, old).await;
    for (actor, scope) in
        [(page_of(&member).await, "w_organization_social_feed"), (member, "w_member_social_feed")]
    {
        let ids = vec![actor.publish(&actor.post("without comments")).await.on("publish")];
        let failure = actor.publish(&actor.reply("a comment", &ids)).await.expect_err("no scope");
        assert_eq!((failure.code, failure.is_ambiguous()), (rejected(403), false), "{failure:?}");
        assert!(failure.message.contains(scope), "{failure:?}");
    }
    let member = of_community_app(&world, new).await;
    let page = page_of(&member).await;
    for actor in [&page, &member] {
        let ids = vec![actor.publish(&actor.post("with comments")).await.on("publish")];
        let id = actor.publish(&actor.reply("a comment", &ids)).await.on("comment");
        let deletion = actor.platform.deletion.expect("it deletes");
        deletion.delete(&actor.session(&Kept::default()), &id).await.on("delete");
    }
    // Comments on a page's posts can be read, so a lost one is found.
    let ids = vec![page.publish(&page.post("a post")).await.on("publish")];
    let comment = page.reply("a comment #sandbox-lost-reply", &ids);
    assert!(page.publish(&comment).await.expect_err("it is lost").is_ambiguous());
    let located = page.settle(&comment, &Checkpoint::default()).await.on("settle");
    assert!(matches!(located, Located::Live(_)), "{located:?}");
}

/// Returns the codes of the issues with a post.
fn codes(actor: &Actor, post: &PublishRequest) -> Vec<String> {
    let contents = [ContainerContent { text: &post.text, media: &post.media }];
    let issues = platforms::check::check(actor.platform, &contents, &post.settings);
    issues.into_iter().map(|issue| issue.code).collect()
}

/// Returns the document of a post's page, as LinkedIn got it.
async fn document(actor: &Actor, page: &str) -> Vec<u8> {
    let (_, rest) = page.split_once("/_media/").expect("a file");
    let id = rest.split(['"', '?']).next().expect("an id");
    let answer = actor.http.get(actor.url.join(&format!("/_media/{id}")).expect("a URL")).send().await;
    answer.expect("an answer").bytes().await.expect("bytes").to_vec()
}

/// Returns the objects of a PDF, each with its dictionary and its stream, by the table at the end of it.
fn objects(pdf: &[u8]) -> Vec<(String, Vec<u8>)> {
    let find = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).position(|window| window == word);
    assert!(pdf.starts_with(b"%PDF-1.4\n") && pdf.ends_with(b"\n%%EOF\n"), "it is no PDF");
    let tail = String::from_utf8_lossy(&pdf[pdf.len() - 40..]).into_owned();
    let at = tail.rsplit("startxref\n").next().and_then(|rest| rest.lines().next()).expect("a place");
    let table = String::from_utf8(pdf[at.parse().expect("a number")..].to_vec()).expect("a table");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("xref"));
    let size: usize = lines.next().and_then(|line| line.strip_prefix("0 ")?.parse().ok()).expect("a size");
    assert_eq!(lines.next(), Some("0000000000 65535 f "));
    let offsets = lines.take(size - 1).map(|line| line[..10].parse::<usize>().expect("an offset"));
    let object = |(index, offset): (usize, usize)| {
        let rest = &pdf[offset..];
        let rest = rest.strip_prefix(format!("{} 0 obj\n", index + 1).as_bytes()).expect("an object");
        let end = find(rest, b"\n").expect("an end");
        let dictionary = String::from_utf8(rest[..end].to_vec()).expect("a dictionary");
        let Some(stream) = rest[end..].strip_prefix(b"\nstream\n") else { return (dictionary, Vec::new()) };
        let length = dictionary.rsplit("/Length ").next().expect("a length").trim_end_matches('>');
        let length = length.parse::<usize>().expect("a number");
        assert!(stream[length..].starts_with(b"\nendstream\nendobj\n"), "{dictionary}");
        (dictionary, stream[..length].to_vec())
    };
    offsets.enumerate().map(object).collect()
}

async fn pictures_become_the_pages_of_a_document() {
    let world = World::tapped().await;
    // Any app may upload documents; this one can't read their state.
    let actor = limited(&world, &FEW).await;
    let settings = json!({ "document": { "title": "Three pages" } });
    let mut post = actor.post("swipe");
    post.media =
        [(400, 300), (300, 400), (64, 64)].map(|(width, height)| actor.picture(width, height)).into();
    post.settings = settings.clone();
    assert_eq!(codes(&actor, &post), [""; 0]);
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains("Title: Three pages"), "{page}");
    let found = objects(&document(&actor, &page).await);
    assert!(found[1].0.contains("/Count 3/Kids[3 0 R 6 0 R 9 0 R ]"), "{}", found[1].0);
    for (index, size) in [(2, "[0 0 400 300]"), (5, "[0 0 300 400]"), (8, "[0 0 64 64]")] {
        assert!(found[index].0.contains(&format!("/MediaBox{size}")), "{}", found[index].0);
        let (image, bytes) = &found[index + 2];
        assert!(image.contains("/ColorSpace /DeviceGray") && image.contains("/DCTDecode"), "{image}");
        // The pixels are those of the file, of which nothing is decoded.
        assert!(bytes.starts_with(b"\xff\xd8") && bytes.len() == 12 << 10, "{}", bytes.len());
    }
    let heard = world.heard();
    let begun = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/rest/documents"));
    assert_eq!(begun.count(), 1, "one document");
    assert!(!heard.iter().any(|call| call.path.ends_with("/rest/images")));
    let sent = heard.iter().find(|call| call.path.ends_with("/rest/posts")).expect("a post");
    assert_eq!(sent.body["content"]["media"]["title"], "Three pages");

    // A worker that dies after the upload does not repeat it, and other pictures are another document.
    let at = actor.prepare(&post).await.on("prepare");
    let at = actor.prepare_from(&post, at).await.on("again");
    let uploads = || world.heard().iter().filter(|call| call.path.contains("dms-uploads")).count();
    assert_eq!(uploads(), 2);
    post.media.swap(0, 1);
    actor.prepare_from(&post, at).await.on("swapped");
    assert_eq!(uploads(), 3);

    // One picture is a document of one page.
    let one = PublishRequest { media: vec![post.media[2].clone()], ..post.clone() };
    assert_eq!(codes(&actor, &one), [""; 0]);
    let page = actor.shown(&actor.publish(&one).await.on("one")).await;
    assert!(page.contains("Title: Three pages"), "{page}");
    assert_eq!(objects(&document(&actor, &page).await).len(), 5);

    // A comment of the thread keeps its picture.
    let mut comment = actor.reply("with a picture", &[actor.publish(&actor.post("a post")).await.on("post")]);
    comment.media = actor.post_with("", MediaKind::Image, 1).media;
    comment.settings = settings;
    actor.publish(&comment).await.on("comment");
    assert!(world.heard().iter().any(|call| call.path.ends_with("/rest/images")));
}

async fn a_document_is_made_of_pictures_only() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "linkedin");
    let settings = json!({ "document": { "title": "Pages" } });
    let of = |kinds: &[(MediaKind, usize)]| {
        let media = kinds.iter().flat_map(|(kind, count)| actor.post_with("", *kind, *count).media);
        PublishRequest { media: media.collect(), settings: settings.clone(), ..actor.post("a post") }
    };
    let pictures = of(&[(MediaKind::Image, 3)]);
    // PNGs and animations become JPEGs.
    assert_eq!(codes(&actor, &pictures), ["media_fitted"; 3]);
    assert_eq!(codes(&actor, &of(&[(MediaKind::Gif, 1)])), ["media_fitted"]);
    for (kinds, expected) in [
        (&[][..], &["setting_not_used"][..]),
        (&[(MediaKind::Video, 1)], &["setting_not_used"]),
        (&[(MediaKind::Document, 1)], &["setting_not_used"]),
        (
            &[(MediaKind::Image, 1), (MediaKind::Video, 1)],
            &["media_fitted", "media_mixed", "setting_not_used"],
        ),
    ] {
        assert_eq!(codes(&actor, &of(kinds)), expected, "{kinds:?}");
    }
    // A file that is no picture is published as it is.
    for kinds in [&[][..], &[(MediaKind::Video, 1)], &[(MediaKind::Document, 1)]] {
        let page = actor.shown(&actor.publish(&of(kinds)).await.on("publish")).await;
        assert!(!page.contains("Title: Pages"), "{page}");
    }
    let mut several = of(&[(MediaKind::Image, 1), (MediaKind::Gif, 1)]);
    assert_eq!(codes(&actor, &several), ["media_fitted"; 2]);
    several.media = actor.fitted(&several.media, &several.settings);
    let page = actor.shown(&actor.publish(&several).await.on("a still image")).await;
    assert!(objects(&document(&actor, &page).await)[1].0.contains("/Count 2"), "{page}");

    let mut described = PublishRequest { media: vec![actor.picture(64, 64)], ..pictures.clone() };
    described.media[0].alt_text = Some("gray".into());
    assert_eq!(codes(&actor, &described), ["alt_text_not_supported"]);
    for (other, value) in [
        ("link", json!({ "url": "https://example.com", "title": "a" })),
        ("title", json!("Its own title")),
        ("visibility", json!("PUBLIC")),
    ] {
        let mut post = PublishRequest { media: vec![actor.picture(64, 64)], ..pictures.clone() };
        post.settings[other] = value;
        let expected: &[&str] = match other {
            "link" => &["settings_conflict"],
            "title" => &["setting_not_used"],
            _ => &[],
        };
        assert_eq!(codes(&actor, &post), expected, "{other}");
    }
    for wrong in [json!(true), json!({}), json!({ "title": " " })] {
        let post = PublishRequest { settings: json!({ "document": wrong }), ..pictures.clone() };
        assert!(codes(&actor, &post).contains(&"setting_invalid".to_owned()), "{wrong}");
    }

    // A file that is no JPEG in spite of its type is refused before anything is sent.
    let mut broken = PublishRequest { media: actor.post_with("", MediaKind::Image, 1).media, ..pictures };
    broken.media[0].mime = "image/jpeg".into();
    let before = actor.heard().await;
    let failure = actor.publish(&broken).await.expect_err("a PNG");
    assert_eq!((failure.code, failure.is_ambiguous()), (rejected(415), false), "{failure}");
    assert!(failure.message.contains("it is no JPEG"), "{failure}");
    assert_eq!(actor.heard().await, before);
}

async fn a_lost_post_with_a_document_of_pictures_is_found() {
    trials::approve();
    let world = World::start().await;
    let actor = page_of(&actor(&world, "linkedin")).await;
    let mut lost = actor.post("pages #sandbox-lost-reply");
    lost.media = vec![actor.picture(64, 64), actor.picture(64, 80)];
    lost.settings = json!({ "document": { "title": "Pages" } });
    let at = actor.prepare(&lost).await.on("prepare");
    actor.commit(&lost, &at).await.expect_err("the answer is lost");
    assert!(matches!(actor.settle(&lost, &at).await.on("settle"), Located::Live(_)));
    // The same words with another document are another post.
    let other = PublishRequest { media: vec![actor.picture(80, 64), actor.picture(64, 80)], ..lost };
    let at = actor.prepare(&other).await.on("prepare");
    assert_eq!(actor.settle(&other, &at).await.on("another"), Located::Absent);
}

async fn a_file_whose_processing_failed_is_sent_once_more() {
    let world = World::tapped().await;
    let ada = actor(&world, "linkedin");
    let sent = || world.heard().iter().filter(|call| call.path.ends_with("/rest/images")).count();
    let failed = json!({
        "status": 400, "code": "MEDIA_ASSET_PROCESSING_FAILED", "message": "Media asset failed processing",
    });
    let lies = [("/api.linkedin.com/rest/posts", 400, failed)];
    for is_mended in [true, false] {
        let (before, keep) = (sent(), Kept::default());
        let post = ada.post_with("with a picture", MediaKind::Image, 1);
        let at = ada.prepare(&post).await.on("prepare");
        world.lie(&lies);
        let publisher = ada.platform.publisher;
        let failure = publisher.commit(&ada.session(&keep), &post, &at).await.map(drop).expect_err("failed");
        assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::Upstream(503), false), "{failure}");
        assert!(failure.message.contains("failed processing"), "{failure}");
        world.lie(if is_mended { &[] } else { &lies });
        let at = ada.prepare_from(&post, keep.last().expect("the upload was dropped")).await.on("again");
        assert_eq!(sent(), before + 2, "sent once more");
        let committed = publisher.commit(&ada.session(&keep), &post, &at).await;
        match is_mended {
            true => drop(ada.landed(&post, committed.on("commit")).await.on("landed")),
            false => assert_eq!(committed.map(drop).expect_err("failed again").code, rejected(400)),
        }
        world.lie(&[]);
    }
    assert_eq!(ada.accepted().await, 1);
}
