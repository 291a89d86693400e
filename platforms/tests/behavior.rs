//! Behavior suite: the requirements of every adapter, tested over real HTTP.
//!
//! The adapter's limits and abilities determine which assertions apply, so a registered adapter is covered
//! without code of its own. Each case is one test per platform, named `{platform}::{case}`. The server is the
//! sandbox, written from the same documentation. The protocol around these calls (record an intent first,
//! look up an unknown result) belongs to the engine and is tested there; here it is a plain loop.

extern crate fanfare_platforms as platforms;

mod agreement;
mod fixtures;
mod mutations;
#[expect(unreachable_pub, reason = "shared with the tests of the service")]
#[path = "../../tests/src/pointers.rs"]
mod pointers;
#[expect(unreachable_pub, reason = "shared with the proof suite")]
#[path = "../../tests/src/proof.rs"]
mod proof;
mod specific;
mod specs;
mod trials;
#[expect(unreachable_pub, reason = "shared with the tests of the service")]
#[path = "../../tests/src/yaml.rs"]
mod yaml;

use chrono::TimeDelta;
use domain::{ErrorCode, Failure};
use fixtures::{Actor, Named, World, clock, pause};
use platforms::{
    Adapter, Checkpoint, Committed, Content, Edit, Found, Idempotency, Limits, Located, MediaKind, Prepared,
    PublishRequest, Publishing, Refresh, Replies,
    check::{AccountKind, ContainerContent, Severity, check, check_for, check_reply},
};
use sandbox::AppStatus;
use serde_json::{Value, json};
use std::{collections::HashSet, process::ExitCode, time::Duration};
use trials::cases;

/// Time within which a list shows a post.
const PATIENCE: TimeDelta = TimeDelta::seconds(30);
/// Time between two looks at a list.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Number of cases that run at the same time, for each core.
const THREADS: usize = 16;

fn main() -> ExitCode {
    let cases = cases![
        a_text_is_published_and_served_at_its_permalink,
        the_longest_text_is_accepted_and_a_longer_one_fails_the_check,
        invalid_content_fails_the_check_before_any_request,
        each_kind_of_media_is_published_with_its_alt_text,
        an_organizations_sandbox_path_serves_the_platform,
        the_maximum_number_of_media_is_accepted,
        media_are_published_without_text_if_text_is_optional,
        replies_and_first_comments_are_published_under_their_parents,
        a_rate_limit_returns_a_wait_and_publishes_nothing,
        an_expired_token_fails_and_publishing_succeeds_after_a_refresh,
        a_token_refused_at_the_publishing_call_publishes_nothing,
        a_revoked_grant_is_distinguished_from_a_transient_failure,
        a_refused_app_is_no_revoked_grant,
        the_page_of_an_edge_says_nothing_of_post_or_grant,
        an_endless_response_is_cut_off,
        a_refreshed_grant_can_be_refreshed_again,
        an_app_password_creates_a_session_and_replaces_an_expired_one,
        a_rejection_is_permanent_and_publishes_nothing,
        a_failure_before_acceptance_is_resolved_by_a_lookup,
        an_accepted_post_with_a_lost_response_is_found_and_not_duplicated,
        a_lost_response_is_found_whatever_the_text_and_the_lag,
        a_lost_response_is_found_although_our_clock_is_ahead,
        a_post_beyond_the_pages_read_is_not_reported_absent,
        a_lookup_ignores_posts_captured_by_other_targets,
        the_post_of_another_commit_is_never_certain,
        a_repeated_commit_has_the_effect_in_the_table,
        posts_with_the_same_text_are_distinguished_by_their_parent,
        an_interrupted_preparation_resumes,
        a_restored_publication_without_its_checkpoint_is_not_absent,
        a_worker_crash_after_any_call_leaves_one_post,
        an_asynchronous_platform_is_polled_until_processing_ends,
        media_that_fail_processing_fail_permanently,
        an_authorization_code_is_exchanged_once,
        a_grant_lists_its_identities,
        a_login_grants_what_was_asked_for_and_no_more,
        metrics_are_read_and_a_missing_post_fails_permanently,
        history_lists_every_post_newest_first,
        limits_are_documented_and_their_usage_grows_with_a_post,
        a_deleted_post_is_gone_and_can_be_deleted_again,
        an_edited_post_shows_its_new_text_however_often_it_is_edited,
        a_platform_that_edits_nothing_says_why,
        a_grant_can_be_revoked_twice,
        settings_are_described_and_unknown_ones_ignored,
    ];
    let mut trials = trials::for_each_platform(&cases, &[AppStatus::New, AppStatus::Approved]);
    // An approved app makes the most calls.
    trials.extend(trials::for_each_platform(&mutations::CASES, &[AppStatus::Approved]));
    trials.extend(trials::for_each_platform(&agreement::CASES, &[AppStatus::Approved]));
    trials.extend(specific::trials());
    trials.extend(specs::trials());
    let section = proof::Section::new("7a-answers", "Hostile answers");
    let mut arguments = libtest_mimic::Arguments::from_args();
    // The cases wait for what platforms take their time for; they hardly compute.
    let threads = std::thread::available_parallelism().map_or(THREADS, |cores| cores.get() * THREADS);
    arguments.test_threads = arguments.test_threads.or(Some(threads));
    let conclusion = libtest_mimic::run(&arguments, trials);
    mutations::report(section);
    conclusion.exit_code()
}

async fn a_text_is_published_and_served_at_its_permalink(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let post = actor.post("a plain text");
    let id = actor.publish(&post).await.on(name);
    assert_eq!(actor.accepted().await, 1, "{name}");
    assert!(actor.shown(&id).await.contains("a plain text"), "{name}");
}

async fn the_longest_text_is_accepted_and_a_longer_one_fails_the_check(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let (name, limit) = (actor.name(), &actor.limits().text);
    if limit.max == 0 {
        return;
    }
    let mut text = "a".repeat(limit.max);
    assert_eq!((limit.count)(&text), limit.max, "{name}");
    actor.publish(&actor.post(&text)).await.on(name);
    let heard = actor.heard().await;
    text.push('a');
    let mut post = actor.post(&text);
    assert_eq!(errors(&actor, &post.text, &post.media, &json!({})), ["text_too_long"], "{name}");
    post.text = text.replace('a', "é");
    assert_eq!(errors(&actor, &post.text, &post.media, &json!({})), ["text_too_long"], "{name}");
    assert_eq!(actor.heard().await, heard, "{name} received a request before the check");
}

async fn invalid_content_fails_the_check_before_any_request(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let (name, can) = (actor.name(), actor.limits());
    for limit in can.media {
        let (fits, _) = actor.medium(limit.kind);
        let of = |change: &dyn Fn(&mut platforms::Media), count: usize| {
            let mut medium = fits.clone();
            change(&mut medium);
            let needed = actor.platform.limits.required_media.filter(|needed| *needed != limit.kind);
            let mut media = vec![medium; count];
            media.extend(needed.map(|needed| actor.medium(needed).0));
            errors(&actor, &text_for(can), &media, &json!({}))
        };
        let least = (*limit.count.start()).max(1);
        let kind = limit.kind;
        assert_eq!(of(&|_| {}, least), Vec::<String>::new(), "{name}: {kind}");
        assert_eq!(of(&|_| {}, limit.count.end() + 1), ["media_too_many"], "{name}: {kind}");
        // A picture that is too large is fitted, unless it can't be read.
        let is_fitted = |change: &dyn Fn(&mut platforms::Media)| {
            let mut medium = fits.clone();
            change(&mut medium);
            actor.platform.fits(0, &json!({}), std::slice::from_ref(&medium))[0].is_some()
        };
        let enlarge = |medium: &mut platforms::Media| medium.size_bytes = limit.max_bytes + 1;
        let too_large = of(&enlarge, least);
        let refused = if is_fitted(&enlarge) { 0 } else { least };
        assert!(too_large.iter().all(|code| code == "media_too_large"), "{name}: {kind} {too_large:?}");
        assert_eq!(too_large.len(), refused, "{name}: {kind}");
        if let Some(short) = limit.min_bytes.checked_sub(1) {
            let small = of(&|medium| medium.size_bytes = short, least);
            assert!(small.contains(&"media_too_small".to_owned()), "{name}: {kind}");
        }
        let strange = of(&|medium| medium.mime = "application/x-strange".into(), least);
        assert!(strange.contains(&"media_type_not_supported".to_owned()), "{name}: {kind}");
        if let Some(range) = &limit.duration {
            let long = of(&|medium| medium.duration = Some(*range.end() + Duration::from_secs(1)), least);
            assert!(long.contains(&"media_duration".to_owned()), "{name}: {kind}");
        }
        let widest = limit.pixels.as_ref().map(|(long, _)| *long.end()).or(limit.max_width);
        if let Some(widest) = widest {
            let widen = |medium: &mut platforms::Media| {
                medium.width = Some(widest.saturating_add(1));
                medium.height = Some(widest.saturating_add(1));
            };
            let is_refused = of(&widen, least).contains(&"media_dimensions".to_owned());
            assert_eq!(is_refused, !is_fitted(&widen), "{name}: {kind}");
        }
        if let Some((long, short)) = &limit.pixels {
            let turned = |width: u32, height: u32| {
                let found = of(&|medium| (medium.width, medium.height) = (Some(width), Some(height)), least);
                found.contains(&"media_dimensions".to_owned())
            };
            assert!(!turned(*long.end(), *short.end()), "{name}: {kind} across");
            assert!(!turned(*short.end(), *long.end()), "{name}: {kind} upright");
        }
        if let Some(max) = can.alt_text.as_ref().map(|alt_text| alt_text.max) {
            let wordy = of(&|medium| medium.alt_text = Some("a".repeat(max + 1)), least);
            assert!(wordy.contains(&"alt_text_too_long".to_owned()), "{name}: {kind}");
        }
    }
    for kind in MediaKind::ALL.iter().filter(|kind| !can.media.iter().any(|limit| limit.kind == **kind)) {
        let (medium, _) = fixtures::medium(*kind, None);
        let is_fitted = actor.platform.fits(0, &json!({}), std::slice::from_ref(&medium))[0].is_some();
        let found = errors(&actor, &text_for(can), &[medium], &json!({}));
        assert_eq!(found.contains(&"media_kind_not_supported".to_owned()), !is_fitted, "{name}: {kind}");
    }
    let nothing = errors(&actor, "", &[], &json!({}));
    let expected = match can.content {
        Content::TextOrMedia => "content_required",
        Content::Text => "text_required",
        Content::Media => "media_required",
    };
    assert!(nothing.contains(&expected.to_owned()), "{name}: {nothing:?}");
    if let Some(forbidden) = actor.platform.limits.forbidden.first() {
        let text = format!("a {forbidden} b");
        let found = errors(&actor, &text, &actor.post("a").media, &json!({}));
        assert_eq!(found, ["text_character_not_supported"], "{name}");
    }
    let main = actor.post(&text_for(can));
    if can.replies != Replies::None {
        let contents = [
            ContainerContent { text: &main.text, media: &main.media },
            ContainerContent {
                text: &actor.reply("a comment", &["of something".to_owned()]).text,
                media: &[],
            },
        ];
        let issues = check(actor.platform, &contents, &json!({}));
        let codes: Vec<_> = issues.iter().map(|issue| &*issue.code).collect();
        // YouTube's owner has a choice to make.
        assert!(codes.iter().all(|code| *code == "setting_not_chosen"), "{name}: {issues:?}");
    }
    replies_to_a_live_post_are_checked_as_replies(&actor);
    let contents = [ContainerContent { text: "a", media: &[] }; 3];
    let too_many = check(actor.platform, &contents, &json!({}))
        .iter()
        .any(|issue| issue.code == "replies_not_supported");
    assert_eq!(too_many, can.replies != Replies::Thread, "{name}");
    let loud = [
        ContainerContent { text: &main.text, media: &main.media },
        ContainerContent { text: &"a".repeat(100_000), media: &[] },
    ];
    if can.replies == Replies::None {
        let found = check(actor.platform, &loud, &json!({}));
        assert!(found.iter().all(|issue| issue.severity == Severity::Warning), "{name}: {found:?}");
    }
    assert_eq!(actor.heard().await, 0, "{name} received a request before the check");
}

/// Compares the check of a post that replies to a live one with that of a post's own replies.
fn replies_to_a_live_post_are_checked_as_replies(actor: &Actor) {
    let (name, can, platform) = (actor.name(), &actor.platform.limits, actor.platform);
    let any = AccountKind::default();
    let told = |contents: &[ContainerContent<'_>]| -> Vec<_> {
        let issues = check_reply(platform, any, contents, &json!({})).into_iter();
        issues.map(|issue| (issue.severity, issue.code, Value::from(issue.path))).collect()
    };
    let one = |text| ContainerContent { text, media: &[] };
    let refused = |path: Value| (Severity::Error, "replies_not_supported".to_owned(), path);
    if can.replies == Replies::None {
        assert_eq!(told(&[one("a")]), [refused(json!(["reply_to"]))], "{name}");
        return;
    }
    let comment = actor.reply("a comment", &["of something".to_owned()]).text;
    assert_eq!(told(&[one(&comment)]), [], "{name}");
    let second = told(&[one(&comment), one(&comment)]);
    let expected = match can.replies {
        Replies::Thread => Vec::new(),
        _ => vec![refused(json!(["containers", 1]))],
    };
    assert_eq!(second, expected, "{name}");
    // Text and media have the limits that they have in a post's own reply.
    let main = actor.post(&text_for(can));
    let main = ContainerContent { text: &main.text, media: &main.media };
    let long = "a".repeat(100_000);
    let kinds = [MediaKind::Image, MediaKind::Gif, MediaKind::Video, MediaKind::Document, MediaKind::Audio];
    let media = kinds.map(|kind| vec![actor.medium(kind).0; 25]);
    let contents = [one(""), one(&long)];
    for content in contents.into_iter().chain(media.iter().map(|media| ContainerContent { text: "a", media }))
    {
        let own = check(platform, &[main, content], &json!({})).into_iter();
        let own: Vec<_> = own
            .filter(|issue| issue.path.get(1) == Some(&json!(1)))
            .map(|issue| {
                let path = issue.path.into_iter().enumerate();
                let path = path.map(|(at, part)| if at == 1 { json!(0) } else { part });
                (issue.severity, issue.code, path.collect::<Value>())
            })
            .collect();
        assert_eq!(told(&[content]), own, "{name}: {content:?}");
    }
    let schema = (platform.settings)();
    for setting in can.reply_settings {
        assert!(schema["properties"][*setting].is_object(), "{name}: {setting}");
    }
}

async fn each_kind_of_media_is_published_with_its_alt_text(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let open = actor.publishable().await;
    for limit in &open {
        let name = format!("{} with {}", actor.name(), limit.kind);
        let alt = format!("what this {} shows", limit.kind);
        let mut post = actor.post_with(
            &format!("look at this {}", limit.kind),
            limit.kind,
            (*limit.count.start()).max(1),
        );
        for medium in &mut post.media {
            medium.alt_text = actor.limits().alt_text.as_ref().map(|_| alt.clone());
        }
        let id = actor.publish(&post).await.on(&name);
        let page = actor.shown(&id).await;
        assert!(page.contains(&post.text), "{name}");
        if actor.platform.limits.supports_alt_text(limit.kind) {
            assert!(page.contains(&alt), "{name}: {page}");
        }
    }
    assert_eq!(actor.accepted().await, open.len(), "{}", actor.name());
}

async fn an_organizations_sandbox_path_serves_the_platform(platform: &'static Adapter) {
    let (_world, actor) = World::of_an_organization(platform).await;
    let open = actor.publishable().await;
    for limit in &open {
        let name = format!("{} with {}", actor.name(), limit.kind);
        let post = actor.post_with(&name, limit.kind, (*limit.count.start()).max(1));
        let id = actor.publish(&post).await.on(&name);
        assert!(actor.shown(&id).await.contains(&name), "{name}");
    }
    let name = actor.name();
    let fresh = actor.refresh().await;
    let must_be = actor.platform.auth.refresh() == Refresh::Anytime && actor.can_refresh();
    assert!(fresh.is_ok() || !must_be, "{name}: {fresh:?}");
    assert_eq!(actor.accepted().await, open.len(), "{name}");
}

async fn the_maximum_number_of_media_is_accepted(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    for limit in actor.publishable().await {
        let name = format!("{} with {} of {}", actor.name(), limit.count.end(), limit.kind);
        let post = actor.post_with("many", limit.kind, *limit.count.end());
        actor.publish(&post).await.on(&name);
    }
}

async fn media_are_published_without_text_if_text_is_optional(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    if actor.limits().content == Content::Text {
        return;
    }
    let Some(limit) = actor.limits().media.first() else { return };
    let post = actor.post_with("", limit.kind, (*limit.count.start()).max(1));
    actor.publish(&post).await.on(actor.name());
}

async fn replies_and_first_comments_are_published_under_their_parents(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let length = match actor.limits().replies {
        Replies::None => return,
        Replies::FirstComment => 2,
        Replies::Thread => 4,
    };
    let mut ids: Vec<String> = Vec::new();
    for position in 0..length {
        let id = actor.publish(&actor.reply(&format!("part {position}"), &ids)).await.on(name);
        assert!(actor.shown(&id).await.contains(&format!("part {position}")), "{name}");
        ids.push(id);
    }
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), length, "{name}");
    assert_eq!(actor.accepted().await, length, "{name}");
    let mut missing = actor.reply("to nothing", &ids);
    let gone = actor.unknown(&ids);
    missing.reply_to = Some(platforms::ReplyTo { root: gone.clone(), parent: gone });
    let failure = actor.publish(&missing).await.expect_err(name);
    assert!(failure.code.is_permanent(), "{name}: {failure}");
    assert_eq!(actor.accepted().await, length, "{name}");
}

async fn a_rate_limit_returns_a_wait_and_publishes_nothing(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let failure = actor.publish(&actor.post("#sandbox-429")).await.expect_err(name);
    assert_eq!(failure.code, ErrorCode::RateLimited, "{name}: {failure}");
    assert!(failure.retry_after.is_some_and(|wait| wait < Duration::from_secs(3600)), "{name}: {failure:?}");
    assert!(!failure.is_ambiguous(), "{name}");
    assert_eq!(actor.accepted().await, 0, "{name}");
}

async fn an_expired_token_fails_and_publishing_succeeds_after_a_refresh(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    actor.control("tokens/expire").await;
    let post = actor.post("after a refresh");
    let failure = actor.publish(&post).await.expect_err(name);
    assert_eq!(
        (failure.code, failure.is_revoked(), failure.is_ambiguous()),
        (ErrorCode::TokenExpired, false, false),
        "{name}"
    );
    if actor.platform.auth.refresh() != Refresh::Anytime || !actor.can_refresh() {
        let failure = actor.refresh().await.expect_err(name);
        assert_eq!(
            (failure.code, failure.is_revoked()),
            (ErrorCode::TokenExpired, false),
            "{name}: {failure}"
        );
        actor.grant = world.connect(actor.platform).grant;
        actor.publish(&post).await.on(name);
        return;
    }
    let old = actor.grant.clone();
    actor.grant = actor.refresh().await.on(name);
    assert_ne!(actor.grant.access_token, old.access_token, "{name}");
    assert!(actor.grant.expires_at.is_none_or(|at| at > clock()), "{name}");
    actor.publish(&post).await.on(name);
    assert_eq!(actor.accepted().await, 1, "{name}");
}

async fn a_token_refused_at_the_publishing_call_publishes_nothing(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    let post = actor.post("#sandbox-401x1");
    let failure = actor.publish(&post).await.expect_err(name);
    assert_eq!(
        (failure.code, failure.is_revoked(), failure.is_ambiguous()),
        (ErrorCode::TokenExpired, false, false),
        "{name}"
    );
    actor.grant = match actor.can_refresh() {
        true => actor.refresh().await.on(name),
        false => world.connect(platform).grant,
    };
    actor.publish(&post).await.on(name);
    assert_eq!(actor.accepted().await, 1, "{name}");
}

async fn a_revoked_grant_is_distinguished_from_a_transient_failure(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    // An app without refresh tokens fails before the call.
    actor.grant.refresh_token.get_or_insert_with(|| "made-up".into());
    let name = actor.name();
    for (status, code) in
        [(500, ErrorCode::Upstream(500)), (503, ErrorCode::Upstream(503)), (429, ErrorCode::RateLimited)]
    {
        let transport = fixtures::always(status).await;
        let failure = actor.refresh_over(&transport).await.expect_err(name);
        assert_eq!((failure.code, failure.is_revoked()), (code, false), "{name}: {failure}");
    }
    let failure = actor.refresh_over(&fixtures::nowhere()).await.expect_err(name);
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::NetworkError, false), "{name}: {failure}");
    actor.control("tokens/revoke").await;
    let failure = actor.refresh().await.expect_err(name);
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::TokenExpired, true), "{name}: {failure}");
    // A further refresh of the revoked grant fails in the same way.
    actor.grant.refresh_token = Some("made-up".into());
    let failure = actor.refresh().await.expect_err(name);
    assert!(failure.is_revoked(), "{name}: {failure}");
}

/// An operator replaced the app's secret, and the platform refuses the old one.
async fn a_refused_app_is_no_revoked_grant(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    // Some refresh without the app, and LinkedIn gives a new app no refresh token.
    let is_refreshed = platform.auth.refresh() == Refresh::Anytime && actor.grant.refresh_token().is_some();
    let secret = actor.app.as_mut().and_then(|app| app.client_secret.as_mut());
    let Some(secret) = secret.filter(|_| is_refreshed) else { return };
    let right = std::mem::replace(secret, "replaced".to_owned());
    actor.control("tokens/expire").await;
    let failure = actor.refresh().await.expect_err(name);
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::AppRefused, false), "{name}: {failure}");
    assert!(!failure.message.contains("replaced"), "{name}: {failure}");
    actor.app.as_mut().expect("an app").client_secret = Some(right);
    actor.grant = actor.refresh().await.on(name);
    actor.publish(&actor.post("with the new secret")).await.on(name);
}

/// Nothing reaches the platform: an edge before it answers each call with a page, as it would a browser.
async fn the_page_of_an_edge_says_nothing_of_post_or_grant(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    let keep = fixtures::Kept::default();
    let publisher = actor.platform.publisher;
    let id = actor.publish(&actor.post("before")).await.on(name);
    let post = actor.post("behind the edge");
    let at = actor.prepare(&post).await.on(name);
    for page in ["edge.challenge", "edge.bad-request", "edge.not-found"] {
        actor.set(&json!({ "recorded": { "/": page } })).await;
        let check = |what: &str, failure: Failure| {
            // An upload that its host does not know begins again.
            let is_again = failure.code == ErrorCode::Upstream(503) && what == "commit";
            assert!(
                (failure.code == ErrorCode::NetworkError || is_again)
                    && !failure.is_ambiguous()
                    && !failure.is_revoked(),
                "{name} {page}, {what}: {failure:?}"
            );
        };
        check("commit", actor.commit(&post, &at).await.map(drop).expect_err(name));
        check("health", actor.healthy().await.expect_err(name));
        if actor.can_refresh() {
            check("refresh", actor.refresh().await.map(drop).expect_err(name));
        }
        let before = actor.heard().await;
        match publisher.revoke(&actor.session(&keep)).await {
            Ok(()) => assert_eq!(actor.heard().await, before, "{name} {page}: the grant counts as revoked"),
            Err(failure) => check("revoke", failure),
        }
        if let Some(deletion) = actor.platform.deletion {
            check("delete", deletion.delete(&actor.session(&keep), &id).await.expect_err(name));
        }
    }
    actor.set(&json!({ "recorded": {} })).await;
    if actor.can_refresh() {
        actor.grant = actor.refresh().await.on(name);
    }
    let committed = actor.commit(&post, &at).await.on(name);
    actor.landed(&post, committed).await.on(name);
    assert_eq!(actor.accepted().await, 2, "{name}");
}

async fn an_endless_response_is_cut_off(platform: &'static Adapter) {
    let world = World::start().await;
    let transport = fixtures::wordy(24 << 20).await;
    let mut actor = world.actor(platform);
    // An app without refresh tokens fails before the call.
    actor.grant.refresh_token.get_or_insert_with(|| "made-up".into());
    let name = actor.name();
    let failure = actor.refresh_over(&transport).await.expect_err(name);
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::Upstream(502), false), "{name}: {failure}");
    assert!(failure.message.contains("more than 8 MiB"), "{name}: {failure}");
}

async fn a_refreshed_grant_can_be_refreshed_again(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    if !actor.can_refresh() {
        let failure = actor.refresh().await.expect_err(name);
        assert_eq!(
            (failure.code, failure.is_revoked()),
            (ErrorCode::TokenExpired, false),
            "{name}: {failure}"
        );
        return;
    }
    let first = actor.grant.clone();
    for round in 0..3 {
        actor.grant = actor.refresh().await.on(name);
        actor.publish(&actor.post(&format!("round {round}"))).await.on(name);
    }
    // A refresh token that was already used either still works or is reported as revoked.
    actor.grant = first;
    match actor.refresh().await {
        Ok(_) => {}
        Err(failure) => assert!(failure.is_revoked(), "{name}: {failure:?}"),
    }
}

async fn an_app_password_creates_a_session_and_replaces_an_expired_one(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    if actor.platform.auth.oauth().is_some() {
        return;
    }
    actor.grant.access_token = String::new();
    for dead in [None, Some("made-up".to_owned())] {
        actor.grant.refresh_token = dead;
        let fresh = actor.refresh().await.on(name);
        assert_eq!(fresh.extra["app_password"], actor.grant.extra["app_password"], "{name}");
        let mut mended = actor.clone();
        mended.grant = fresh;
        assert_eq!(
            mended.identities().await.on(name)[0].profile.network_unique_id,
            actor.account.network_unique_id
        );
    }
}

async fn a_rejection_is_permanent_and_publishes_nothing(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    for status in [400, 403] {
        let name = format!("{} at {status}", actor.name());
        let failure = actor.publish(&actor.post(&format!("#sandbox-{status}"))).await.expect_err(&name);
        assert!(matches!(failure.code, ErrorCode::Rejected(_)), "{name}: {failure}");
        assert!(!failure.message.is_empty() && !failure.is_revoked(), "{name}");
        if failure.is_ambiguous() {
            // A rejection as a duplicate leads to a look-up, which finds nothing.
            assert!(matches!(
                actor.settle(&actor.post("x"), &Checkpoint::default()).await.on(&name),
                Located::Absent | Located::Unknown
            ));
        }
        assert_eq!(actor.accepted().await, 0, "{name}");
    }
}

async fn a_failure_before_acceptance_is_resolved_by_a_lookup(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    for word in ["500", "503", "drop"] {
        let name = format!("{} at {word}", actor.name());
        let before = actor.accepted().await;
        let post = actor.post(&format!("#sandbox-{word}x1"));
        let at = actor.prepare(&post).await.on(&name);
        let failure = actor.commit(&post, &at).await.expect_err(&name);
        assert!(failure.is_ambiguous() && !failure.code.is_permanent(), "{name}: {failure:?}");
        let expected = if word == "drop" {
            ErrorCode::NetworkError
        } else {
            ErrorCode::Upstream(word.parse().expect("a valid answer"))
        };
        assert_eq!(failure.code, expected, "{name}: {failure}");
        let located = actor.settle(&post, &at).await.on(&name);
        assert!(matches!(located, Located::Absent | Located::Unknown), "{name}: {located:?}");
        let again = actor.commit(&post, &at).await.on(&name);
        actor.landed(&post, again).await.on(&name);
        assert_eq!(actor.accepted().await, before + 1, "{name}");
    }
}

async fn an_accepted_post_with_a_lost_response_is_found_and_not_duplicated(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    for word in ["lost-reply", "500-after", "garbage"] {
        let name = format!("{} at {word}", actor.name());
        let before = actor.accepted().await;
        let mut ids = Vec::new();
        // Also for a reply to another post.
        let depth = if actor.limits().replies == Replies::None { 1 } else { 2 };
        for position in 0..depth {
            let text = format!("{position}: https://Example.com/{word} <b> & \"c\" #sandbox-{word}");
            let post = actor.reply(&actor.fit(&text), &ids);
            let at = actor.prepare(&post).await.on(&name);
            let settled = match actor.commit(&post, &at).await {
                Err(failure) => {
                    assert!(failure.is_ambiguous() && !failure.code.is_permanent(), "{name}: {failure:?}");
                    actor.find(&post, &at).await.on(&name)
                }
                // Some platforms confirm with the status alone, so an invalid body does no harm.
                Ok(committed) if word == "garbage" => {
                    Located::certain(actor.landed(&post, committed).await.on(&name))
                }
                Ok(committed) => panic!("{name}: {committed:?}"),
            };
            match settled {
                Located::Live(found) => {
                    assert!(actor.shown(found.id()).await.contains(word), "{name}");
                    ids.push(found.into_id());
                }
                // Neither a list nor a refusal names a lost comment, which is therefore not repeated.
                Located::Unknown if actor.has_closed_reads() && position > 0 => {}
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(actor.accepted().await, before + depth, "{name}");
    }
}

/// The response is withheld, then lost, and lists lag. A look-up finds the post as soon as they show it.
async fn a_lost_response_is_found_whatever_the_text_and_the_lag(platform: &'static Adapter) {
    const TEXTS: [&str; 4] = [
        "#sandbox-lost-reply",
        "#sandbox-lost-reply #two\n\n  and  lines ",
        "Caf\u{e9} \u{1f469}\u{200d}\u{1f680} \u{201c}&amp;\u{201d} #sandbox-lost-reply",
        "cafe\u{301} a-b.example.com/?q=1&r=#sandbox-lost-reply",
    ];
    let world = World::start().await;
    let actor = world.actor(platform);
    // Some platforms refuse the same text again.
    let texts = TEXTS.into_iter().flat_map(|text| [(text.to_owned(), 0), (format!("{text} again"), 300)]);
    for (text, lag_ms) in texts {
        let name = format!("{} with a lag of {lag_ms} ms: {text:?}", actor.name());
        actor.set(&json!({ "lag_ms": lag_ms })).await;
        let before = actor.accepted().await;
        let post = actor.post(&actor.fit(&text));
        let at = actor.prepare(&post).await.on(&name);
        let begun = clock();
        let committed = actor.commit_held(&post, &at).await;
        let failure = committed.expect_err(&name);
        assert!(failure.is_ambiguous() && !failure.code.is_permanent(), "{name}: {failure:?}");
        let found = loop {
            let located = match actor.has_closed_reads() {
                true => actor.find(&post, &at).await.on(&name),
                false => actor.look(&post, &at, begun).await.on(&name),
            };
            match located {
                Located::Absent if lag_ms > 0 && clock() < begun + PATIENCE => {}
                Located::Processing { .. } if clock() < begun + PATIENCE => {}
                located => break located,
            }
            pause(LOOK_INTERVAL).await;
        };
        assert!(matches!(found, Located::Live(_)), "{name}: {found:?}");
        assert_eq!(actor.accepted().await, before + 1, "{name}");
    }
}

/// A machine whose clock is an hour ahead dates the commit an hour after the platform dates the post.
async fn a_lost_response_is_found_although_our_clock_is_ahead(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    actor.now = || clock() + TimeDelta::hours(1);
    let name = actor.name();
    let post = actor.post(&actor.fit("an hour ahead #sandbox-lost-reply"));
    let at = actor.prepare(&post).await.on(name);
    actor.commit(&post, &at).await.expect_err("the reply is lost");
    let settled = actor.find(&post, &at).await.on(name);
    assert!(matches!(settled, Located::Live(_)), "{name}: {settled:?}");
}

/// A late look-up for a busy account reads a limited number of pages. A post that is not on them may still
/// exist and must not be published again.
async fn a_post_beyond_the_pages_read_is_not_reported_absent(platform: &'static Adapter) {
    const OTHERS: usize = 26;
    let world = World::tapped().await;
    let hurry = world.http().post(world.url("_settings")).json(&json!({ "processing_ms": 0 }));
    assert!(hurry.send().await.expect("a valid answer").status().is_success());
    world.shorten_pages();
    let actor = world.actor(platform);
    if actor.limits().idempotency == Idempotency::Idempotent {
        return;
    }
    let name = actor.name();
    let mut ids = Vec::new();
    let depth = if actor.limits().replies == Replies::None { 1 } else { 2 };
    for _ in 0..depth {
        let post = actor.reply(&format!("lost words {}", ids.len()), &ids);
        let at = actor.prepare(&post).await.on(name);
        let begun = clock();
        let committed = actor.commit(&post, &at).await.on(name);
        let id = actor.landed(&post, committed).await.on(name);
        // A video is found by its upload, regardless of its position in lists.
        let is_video = post.media.iter().any(|medium| medium.kind == MediaKind::Video);
        let others = if is_video { 1 } else { OTHERS };
        for number in 0..others {
            actor.publish(&actor.reply(&format!("other words {} {number}", ids.len()), &ids)).await.on(name);
        }
        if actor.has_closed_reads() {
            // Absent means only that the call may be repeated: it is refused with the id of the first.
            let found = actor.find(&post, &at).await.on(name);
            match ids.is_empty() {
                true => assert_eq!(found.id(), Some(&*id), "{name}"),
                false => assert_eq!(found, Located::Unknown, "{name}: {} posts", ids.len()),
            }
            ids.push(id);
            continue;
        }
        let located = actor.look(&post, &at, begun).await.on(name);
        assert_ne!(located, Located::Absent, "{name}: {} posts", ids.len());
        ids.push(id);
    }
}

/// Two posts with the same text: one has a response, the other has none.
async fn a_lookup_ignores_posts_captured_by_other_targets(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    if actor.limits().idempotency == Idempotency::Idempotent {
        return;
    }
    let name = actor.name();
    let mut ids = Vec::new();
    let depth = if actor.limits().replies == Replies::None { 1 } else { 2 };
    for position in 0..depth {
        let post = actor.reply(&format!("the same words {position}"), &ids);
        let at = actor.prepare(&post).await.on(name);
        let begun = clock();
        let committed = actor.commit(&post, &at).await.on(name);
        let id = actor.landed(&post, committed).await.on(name);
        let other = PublishRequest {
            taken: vec![id.clone()],
            ..actor.reply(&format!("the same words {position}"), &ids)
        };
        let at = actor.prepare(&other).await.on(name);
        let located = actor.look(&other, &at, begun).await.on(name);
        assert!(!matches!(located, Located::Live(_)), "{name} at {position}: {located:?}");
        ids.push(id);
    }
}

/// Two posts with the same content: one is live, and the call of the other one was accepted and published nothing, or
/// never arrived.
async fn the_post_of_another_commit_is_never_certain(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    actor.set(&json!({ "duplicate_ms": 0 })).await;
    let mut posts = vec![actor.post("the same words")];
    for limit in actor.publishable().await {
        posts.push(actor.post_with("the same words", limit.kind, (*limit.count.start()).max(1)));
    }
    for mut post in posts {
        let name = format!("{} with {} media", actor.name(), post.media.len());
        for is_accepted in [false, true] {
            let mut other = PublishRequest { target: domain::TargetId(uuid::Uuid::now_v7()), ..post.clone() };
            let begun = clock();
            let at = if is_accepted {
                other.media = other.media.iter().map(|medium| actor.stuck(medium)).collect();
                let Prepared::Ready(at) = actor.prepare_once(&other, Checkpoint::default()).await.on(&name)
                else {
                    continue;
                };
                match actor.commit(&other, &at).await.on(&name) {
                    Committed::Accepted { at, .. } => at,
                    Committed::Live(_) => continue,
                }
            } else {
                actor.prepare(&other).await.on(&name)
            };
            post.target = domain::TargetId(uuid::Uuid::now_v7());
            let id = actor.publish(&post).await.on(&name);
            let located = actor.look(&other, &at, begun).await;
            assert!(
                !matches!(&located, Ok(Located::Live(Found::Certain(found))) if *found == id),
                "{name}, accepted {is_accepted}: {located:?}"
            );
        }
    }
}

async fn a_repeated_commit_has_the_effect_in_the_table(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let post = actor.post("once");
    let at = actor.prepare(&post).await.on(name);
    let first = actor.commit(&post, &at).await.on(name);
    let id = actor.landed(&post, first).await.on(name);
    match (actor.commit(&post, &at).await, actor.limits().idempotency) {
        (Ok(second), Idempotency::Idempotent) => {
            assert_eq!(actor.landed(&post, second).await.on(name), id, "{name}");
            assert_eq!(actor.accepted().await, 1, "{name}");
        }
        (Ok(_), Idempotency::MayDuplicate { .. }) => {}
        // Rejected as a duplicate: the engine looks the first post up and finds it.
        (Err(failure), _) => {
            assert!(failure.is_ambiguous(), "{name}: {failure:?}");
            assert_eq!(actor.find(&post, &at).await.on(name).id(), Some(&*id), "{name}");
            assert_eq!(actor.accepted().await, 1, "{name}");
        }
    }
}

async fn posts_with_the_same_text_are_distinguished_by_their_parent(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    if actor.limits().replies != Replies::Thread {
        return;
    }
    let name = actor.name();
    let mut ids = Vec::new();
    for text in ["root", "same words #sandbox-lost-reply"] {
        let post = actor.reply(text, &ids);
        let at = actor.prepare(&post).await.on(name);
        let id = match actor.commit(&post, &at).await {
            Ok(committed) => actor.landed(&post, committed).await.on(name),
            Err(_) => match actor.settle(&post, &at).await.on(name) {
                Located::Live(found) => found.into_id(),
                Located::Unknown if actor.has_closed_reads() => break,
                other => panic!("{name}: {other:?}"),
            },
        };
        ids.push(id);
    }
    // Never committed, with the text of a reply: a look-up must not return the reply.
    let main = actor.post("same words #sandbox-lost-reply");
    let located = actor.settle(&main, &Checkpoint::default()).await.on(name);
    assert!(matches!(located, Located::Absent | Located::Unknown), "{name}: {located:?}");
}

/// A database that was restored from a backup has lost the checkpoint of a post that is live.
async fn a_restored_publication_without_its_checkpoint_is_not_absent(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let restored = async |post: PublishRequest| {
        let id = actor.publish(&post).await.on(name);
        let post = PublishRequest { is_restored: true, ..post };
        let located = actor.settle(&post, &Checkpoint::default()).await.on(name);
        assert!(
            located.id() == Some(&*id) || located == Located::Unknown,
            "{name}: {located:?} instead of {id}"
        );
        id
    };
    let main = restored(actor.post("restored")).await;
    if actor.limits().replies != Replies::None {
        restored(actor.reply("a restored reply", &[main])).await;
    }
    for limit in actor.publishable().await {
        let count = (*limit.count.start()).max(1);
        restored(actor.post_with(&format!("restored {}", limit.kind), limit.kind, count)).await;
    }
}

async fn an_interrupted_preparation_resumes(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    for limit in actor.publishable().await {
        let name = format!("{} with {}", actor.name(), limit.kind);
        let mut published = 0;
        // Fails the save after each call in turn, like a worker that dies at that moment.
        for broken in 0.. {
            let mut post = actor.post_with(
                &format!("{} {broken}", limit.kind),
                limit.kind,
                (*limit.count.start()).max(1),
            );
            post.media.iter_mut().for_each(|medium| medium.alt_text = Some("described".into()));
            let (at, was_interrupted) = actor.prepare_interrupted(&post, broken).await.on(&name);
            let committed = actor.commit(&post, &at).await.on(&name);
            let id = actor.landed(&post, committed).await.on(&name);
            assert!(actor.shown(&id).await.contains(&post.text), "{name}");
            published += 1;
            if !was_interrupted {
                break;
            }
        }
        assert!(published > 1, "{name}: no checkpoint was saved");
    }
}

async fn a_worker_crash_after_any_call_leaves_one_post(platform: &'static Adapter) {
    let world = World::tapped().await;
    let actor = world.actor(platform);
    let mut before = actor.accepted().await;
    for call in 1.. {
        let name = format!("{}, dead after call {call}", actor.name());
        let post = actor.post(&format!("the {call}. life"));
        let (located, has_died) = world.publish_mortally(&actor, &post, call).await.on(&name);
        let accepted = actor.accepted().await - before;
        match located {
            Located::Live(found) => {
                assert!(actor.shown(found.id()).await.contains(&post.text), "{name}");
                assert_eq!(accepted, 1, "{name}");
            }
            // The platform offers no look-up, so the call is not repeated.
            Located::Unknown => assert!(has_died && accepted <= 1, "{name}: {accepted} posts"),
            other => panic!("{name}: {other:?}"),
        }
        before += accepted;
        if !has_died {
            assert!(call > 1, "{name}: it made no call");
            break;
        }
    }
}

async fn an_asynchronous_platform_is_polled_until_processing_ends(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let is_busy = matches!(actor.limits().publishing, Publishing::Asynchronous { .. });
    let open = actor.publishable().await;
    for limit in open.iter().filter(|limit| is_busy && limit.kind == MediaKind::Video) {
        let name = actor.name();
        let post = actor.post_with("a video", limit.kind, (*limit.count.start()).max(1));
        let prepared = actor.prepare_once(&post, Checkpoint::default()).await.on(name);
        let (at, committed) = match prepared {
            Prepared::Processing { at, poll_after } => {
                assert!(poll_after > Duration::ZERO, "{name}");
                (actor.prepare_from(&post, at).await.on(name), None)
            }
            Prepared::Ready(at) => {
                let committed = actor.commit(&post, &at).await.on(name);
                assert!(matches!(committed, Committed::Accepted { .. }), "{name}: not asynchronous");
                (at, Some(committed))
            }
        };
        let committed = match committed {
            Some(committed) => committed,
            None => actor.commit(&post, &at).await.on(name),
        };
        actor.landed(&post, committed).await.on(name);
        assert_eq!(actor.accepted().await, 1, "{name}");
    }
}

async fn media_that_fail_processing_fail_permanently(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let is_busy = matches!(actor.limits().publishing, Publishing::Asynchronous { .. });
    let open = actor.publishable().await;
    for limit in open.iter().filter(|limit| is_busy && limit.kind == MediaKind::Video) {
        let name = actor.name();
        let mut post = actor.post_with("a broken video", limit.kind, (*limit.count.start()).max(1));
        for medium in &mut post.media {
            *medium = actor.broken(medium);
        }
        let failure = actor.publish(&post).await.expect_err(name);
        assert!(failure.code.is_permanent() && !failure.is_ambiguous(), "{name}: {failure:?}");
        assert_eq!(actor.accepted().await, 0, "{name}");
    }
}

async fn an_authorization_code_is_exchanged_once(platform: &'static Adapter) {
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let name = actor.name();
    let Some(denied) = actor.consent("deny").await else { return };
    // LinkedIn has its own error code.
    let words = ["access_denied", "user_cancelled_authorize"];
    assert!(denied.get("error").is_some_and(|word| words.contains(&word.as_str())), "{name}: {denied:?}");
    let brought = actor.consent("allow").await.expect("it has codes");
    let grant = actor.exchange(&brought["code"]).await.on(name);
    // A code can be exchanged once; a second exchange fails permanently.
    let failure = actor.exchange(&brought["code"]).await.expect_err(name);
    assert!(
        (failure.code == ErrorCode::TokenExpired || failure.code.is_permanent()) && !failure.is_ambiguous(),
        "{name}: {failure:?}"
    );
    assert!(grant.expires_at.is_none_or(|at| at > clock()), "{name}");
    actor.grant = grant;
    let identities = actor.identities().await.on(name);
    let own =
        identities.into_iter().find(|one| one.profile.network_unique_id == actor.account.network_unique_id);
    if let Some(grant) = own.unwrap_or_else(|| panic!("{name}: the account is not listed")).grant {
        actor.grant = grant;
    }
    actor.healthy().await.on(name);
    actor.publish(&actor.post("after a login")).await.on(name);
    assert_eq!(actor.accepted().await, 1, "{name}");
}

/// Scopes of a login that does not allow to publish, and the status that the platform refuses publishing with; Google
/// Business Profile has one scope, and Bluesky none.
const TOO_FEW: [(&str, &[&str], ErrorCode); 9] = [
    ("x", &["tweet.read", "users.read", "offline.access"], ErrorCode::Rejected(403)),
    ("linkedin", &["openid", "profile"], ErrorCode::Rejected(403)),
    ("instagram", &["instagram_business_basic"], ErrorCode::Rejected(403)),
    ("tiktok", &["user.info.basic", "video.upload"], ErrorCode::Rejected(403)),
    ("youtube", &["https://www.googleapis.com/auth/youtube.readonly"], ErrorCode::Rejected(403)),
    ("facebook", &["pages_show_list", "pages_read_engagement"], ErrorCode::Rejected(403)),
    ("threads", &["threads_basic"], ErrorCode::Rejected(403)),
    ("pinterest", &["user_accounts:read", "boards:read", "pins:read"], ErrorCode::Rejected(401)),
    ("reddit", &["identity", "read", "history"], ErrorCode::Rejected(403)),
];

async fn a_login_grants_what_was_asked_for_and_no_more(platform: &'static Adapter) {
    let Some((name, asked, code)) = TOO_FEW.into_iter().find(|(name, ..)| *name == platform.id) else {
        let scopes = platform.auth.oauth().map_or(0, |oauth| oauth.scopes.len());
        return assert!(scopes <= 1, "{}", platform.id);
    };
    let world = World::start().await;
    let mut actor = world.actor(platform);
    let brought = actor.consent_to(asked, "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on(name);
    let mut granted = actor.grant.scopes.clone();
    granted.sort_unstable();
    let mut asked = asked.to_vec();
    asked.sort_unstable();
    // Threads does not tell what it granted.
    assert!(granted == asked || granted.is_empty() && name == "threads", "{name}: {granted:?}");
    let identities = actor.identities().await.on(name);
    if let Some(own) = identities.into_iter().find_map(|identity| identity.grant) {
        actor.grant = own;
    }
    let failure = actor.publish(&actor.post("not allowed")).await.expect_err(name);
    assert_eq!(
        (failure.code, failure.is_revoked(), failure.is_ambiguous()),
        (code, code == ErrorCode::TokenExpired, false),
        "{name}: {failure}"
    );
    assert_eq!(actor.accepted().await, 0, "{name}");
}

async fn a_grant_lists_its_identities(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let identities = actor.identities().await.on(name);
    let own = identities.iter().find(|one| one.profile.network_unique_id == actor.account.network_unique_id);
    let own = own.unwrap_or_else(|| panic!("{name}: {identities:?}"));
    // LinkedIn tells a member's own name for their profile to approved apps only.
    let username =
        if actor.has_closed_reads() { &own.profile.network_unique_id } else { &actor.account.username };
    assert_eq!(own.profile.username, *username, "{name}");
    let shown = &own.profile.display_name;
    // A location has a title and no handle.
    let names = [shown, &actor.account.username, &own.profile.network_unique_id];
    let has_handle = name != "google_business";
    let are_distinct = names[0] != names[2] && names[1] != names[2] && (names[0] != names[1]) == has_handle;
    assert!(are_distinct && !shown.is_empty(), "{name}: {names:?}");
}

async fn limits_are_documented_and_their_usage_grows_with_a_post(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let (name, caps) = (actor.name(), actor.platform.caps);
    let names: HashSet<_> = caps.iter().map(|cap| cap.name).collect();
    assert_eq!(names.len(), caps.len(), "{name}: {caps:?}");
    assert!(caps.iter().all(|cap| cap.limit > 0), "{name}: {caps:?}");
    let Some(usage) = actor.platform.usage else { return };
    let keep = fixtures::Kept::default();
    let before = usage.usage(&actor.session(&keep)).await.on(name);
    actor.publish(&actor.post("one of a few")).await.on(name);
    let after = usage.usage(&actor.session(&keep)).await.on(name);
    assert!(!before.is_empty() && before.len() == after.len(), "{name}: {before:?}, {after:?}");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before.name, before.limit), (&after.name, after.limit), "{name}");
        assert!(after.used <= after.limit && after.window_seconds > 0, "{name}: {after:?}");
        let grown = after.used - before.used;
        match after.name.as_str() {
            "posts" => assert_eq!(grown, 1, "{name}: {after:?}"),
            "requests" => assert!(grown > 0, "{name}: {after:?}"),
            _ => assert_eq!(grown, 0, "{name}: {after:?}"),
        }
        // The platform's number replaces the count of the documented one.
        if let Some(cap) = caps.iter().find(|cap| cap.name == after.name) {
            assert_eq!(u64::from(cap.limit), after.limit, "{name}");
        }
    }
    actor.control("tokens/expire").await;
    let failure = usage.usage(&actor.session(&keep)).await.expect_err(name);
    assert_eq!(failure.code, ErrorCode::TokenExpired, "{name}");
}

async fn metrics_are_read_and_a_missing_post_fails_permanently(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let Some(analytics) = actor.platform.analytics else { return };
    let id = actor.publish(&actor.post("measured")).await.on(name);
    let keep = fixtures::Kept::default();
    if actor.has_private_posts() {
        let failure = analytics.metrics(&actor.session(&keep), &id).await.expect_err(name);
        assert_eq!(failure.code, ErrorCode::Rejected(404), "{name}: {failure}");
        return;
    }
    analytics.metrics(&actor.session(&keep), &id).await.on(name);
    let failure = analytics
        .metrics(&actor.session(&keep), &actor.unknown(std::slice::from_ref(&id)))
        .await
        .expect_err(name);
    assert!(failure.code.is_permanent(), "{name}: {failure}");
}

async fn history_lists_every_post_newest_first(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let Some(history) = actor.platform.history else { return };
    let began = clock() - TimeDelta::minutes(5);
    let mut ids = Vec::new();
    for n in 0..3 {
        let text = actor.fit(&format!("number {n} <&> https://example.com/{n}"));
        ids.push(actor.publish(&actor.post(&text)).await.on(name));
        // Posts of one millisecond have no order.
        let published = clock();
        while clock() <= published + TimeDelta::milliseconds(1) {
            tokio::task::yield_now().await;
        }
    }
    let keep = fixtures::Kept::default();
    if actor.has_closed_reads() {
        let failure = history.page(&actor.session(&keep), None).await.expect_err(name);
        assert_eq!(
            (failure.code, failure.is_revoked()),
            (ErrorCode::Rejected(403), false),
            "{name}: {failure}"
        );
        return;
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = history.page(&actor.session(&keep), cursor.as_deref()).await.on(name);
        found.extend(page.items);
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    if actor.has_private_posts() {
        return assert_eq!(found, [], "{name}");
    }
    ids.reverse();
    assert_eq!(
        found.iter().map(|post| &post.id).collect::<Vec<_>>(),
        ids.iter().collect::<Vec<_>>(),
        "{name}"
    );
    for (n, post) in (0..3).rev().zip(&found) {
        let text = actor.fit(&format!("number {n} <&> https://example.com/{n}"));
        assert_eq!(post.text, text, "{name}");
        assert!(post.published_at > began, "{name}: {}", post.published_at);
        assert_eq!(post.url, actor.permalink(&post.id).await, "{name}");
    }
}

async fn a_deleted_post_is_gone_and_can_be_deleted_again(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let Some(deletion) = actor.platform.deletion else { return };
    let id = actor.publish(&actor.post("not for long")).await.on(name);
    let keep = fixtures::Kept::default();
    // Some platforms return a URL only while the post exists.
    let address = actor.permalink(&id).await;
    assert_eq!(actor.status(&address).await, 200, "{name}");
    deletion.delete(&actor.session(&keep), &id).await.on(name);
    assert_eq!(actor.status(&address).await, 404, "{name}");
    deletion.delete(&actor.session(&keep), &id).await.on(name);
}

/// Returns an edit that sets the text of a post without settings.
fn edit_of(post: &PublishRequest, text: &str) -> Edit {
    Edit {
        position: post.position,
        of_reply: post.reply_to.is_some(),
        has_media: !post.media.is_empty(),
        kinds: post.media.iter().map(|medium| medium.kind).collect(),
        before: post.text.clone(),
        text: Some(text.to_owned()),
        settings: post.settings.clone(),
        names: Vec::new(),
    }
}

async fn an_edited_post_shows_its_new_text_however_often_it_is_edited(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let Ok(editing) = actor.platform.editing else { return };
    let keep = fixtures::Kept::default();
    let mut posts = vec![actor.post("Opening hours\nopen until five")];
    let main = actor.publish(&posts[0]).await.on(name);
    let mut ids = vec![main.clone()];
    if actor.limits().replies != Replies::None {
        posts.push(actor.reply("until five, really", &ids[..1]));
        ids.push(actor.publish(&posts[1]).await.on(name));
    }
    for (post, id) in posts.iter().zip(&ids) {
        let text = format!("Opening hours\nopen until #six ({})", post.position);
        let edit = edit_of(post, &actor.fit(&text));
        assert_eq!(editing.objection(&edit), None, "{name}");
        let accepted = actor.accepted().await;
        for _ in 0..2 {
            editing.edit(&actor.session(&keep), id, &edit).await.on(name);
            let shown = actor.shown(id).await;
            let of_this = format!("six ({})", post.position);
            assert!(shown.contains(&of_this), "{name}: {of_this:?} in {shown}");
        }
        assert_eq!(actor.accepted().await, accepted, "{name}: an edit publishes nothing");
        let missing =
            editing.edit(&actor.session(&keep), &actor.unknown(std::slice::from_ref(id)), &edit).await;
        let failure = missing.expect_err("there is no such post");
        assert!(failure.code.is_permanent(), "{name}: {failure}");
    }
    assert!(!actor.shown(&main).await.contains("until five"), "{name}: the old text is gone");
    // Every setting that can be changed is one of the platform's.
    let schema = (actor.platform.settings)();
    for setting in editing.settings() {
        assert!(schema["properties"][*setting].is_object(), "{name}: {setting}");
    }
}

async fn a_platform_that_edits_nothing_says_why(platform: &'static Adapter) {
    let Err(reason) = platform.editing else { return };
    assert!(reason.starts_with(platform.name), "{}: {reason:?} is a sentence about it", platform.id);
    assert!(!reason.ends_with('.'), "{}: {reason:?}", platform.id);
}

async fn a_grant_can_be_revoked_twice(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let keep = fixtures::Kept::default();
    actor.platform.publisher.revoke(&actor.session(&keep)).await.on(actor.name());
    // Revoking a grant that is already gone succeeds.
    actor.platform.publisher.revoke(&actor.session(&keep)).await.on(actor.name());
}

async fn settings_are_described_and_unknown_ones_ignored(platform: &'static Adapter) {
    let world = World::start().await;
    let actor = world.actor(platform);
    let name = actor.name();
    let schema = (actor.platform.settings)();
    assert_eq!(schema["type"], "object", "{name}");
    assert_ne!(schema["additionalProperties"], false, "{name}");
    let mut post = actor.post("with a setting");
    post.settings["something_of_tomorrow"] = json!({ "a": [1] });
    assert_eq!(errors(&actor, &post.text, &post.media, &post.settings), Vec::<String>::new(), "{name}");
    actor.publish(&post).await.on(name);
    assert_eq!(errors(&actor, &post.text, &post.media, &json!("no object")), ["setting_invalid"], "{name}");
}

/// Returns the codes of the errors that the check reports.
fn errors(actor: &Actor, text: &str, media: &[platforms::Media], settings: &Value) -> Vec<String> {
    let account = AccountKind { account_type: &actor.account.account_type, scopes: &[] };
    let issues = check_for(actor.platform, account, &[ContainerContent { text, media }], settings);
    issues.into_iter().filter(|issue| issue.severity == Severity::Error).map(|issue| issue.code).collect()
}

/// Returns a text that causes no issues when media are checked.
fn text_for(can: &Limits) -> String {
    if can.text.max == 0 { String::new() } else { "a".to_owned() }
}
