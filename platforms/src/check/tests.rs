use super::*;
use crate::MediaKind;
use domain::media::Facts;
use std::time::Duration;

fn image() -> Media {
    Media {
        id: uuid::Uuid::nil(),
        kind: MediaKind::Image,
        mime: "image/png".into(),
        filename: "a.png".into(),
        size_bytes: 10,
        width: Some(10),
        height: Some(10),
        frames: None,
        duration: None,
        alt_text: None,
        facts: None,
        rendition: None,
    }
}

fn video() -> Media {
    Media {
        kind: MediaKind::Video,
        mime: "video/mp4".into(),
        width: Some(640),
        height: Some(360),
        duration: Some(Duration::from_secs(10)),
        ..image()
    }
}

fn x(text: &str, media: &[Media], settings: Value) -> Vec<(String, String)> {
    let x = crate::get("x").unwrap();
    let path = |issue: &Issue| {
        issue
            .path
            .iter()
            .map(|step| step.as_str().map_or(step.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(".")
    };
    let issues = check(x, &[ContainerContent { text, media }], &settings);
    issues.iter().map(|issue| (issue.code.clone(), path(issue))).collect()
}

fn codes(issues: &[(String, String)]) -> Vec<&str> {
    issues.iter().map(|(code, _)| code.as_str()).collect()
}

#[test]
fn a_post_within_the_limits_has_no_issues() {
    assert_eq!(x("hello", &[image(), image()], json!({ "unknown": 1, "reply_settings": "following" })), []);
    assert_eq!(x("", &[video()], json!({})), []);
    assert_eq!(x(&"a".repeat(280), &[], json!(null)), []);
}

#[test]
fn each_exceeded_limit_is_reported() {
    let long = x(&"a".repeat(25_001), &[], json!({}));
    assert_eq!(long, [("text_too_long".into(), "containers.0.content".into())]);
    // It is not known whether the account has Premium.
    assert_eq!(codes(&x(&"a".repeat(281), &[], json!({}))), ["text_may_be_too_long"]);
    assert_eq!(codes(&x(" ", &[], json!({}))), ["content_required"]);
    assert_eq!(codes(&x("", &vec![image(); 5], json!({}))), ["media_too_many"]);
    assert_eq!(codes(&x("", &[image(), video()], json!({}))), ["media_mixed"]);
    let document = Media { kind: MediaKind::Document, ..image() };
    assert_eq!(codes(&x("", &[document], json!({}))), ["media_kind_not_supported"]);
    let odd = Media { mime: "image/x-icon".into(), size_bytes: 6 << 20, ..image() };
    assert_eq!(codes(&x("", &[odd], json!({}))), ["media_type_not_supported", "media_too_large"]);
    let long = Media { duration: Some(Duration::from_secs(141)), ..video() };
    assert_eq!(codes(&x("", &[long], json!({}))), ["media_duration"]);
    let wide = Media { width: Some(1280), height: Some(100), ..video() };
    assert_eq!(codes(&x("", &[wide], json!({}))), ["media_aspect_ratio"]);
    let tiny = Media { width: Some(16), height: Some(16), ..video() };
    assert_eq!(codes(&x("", &[tiny], json!({}))), ["media_dimensions"]);
    let described = Media { alt_text: Some("a".repeat(1001)), ..image() };
    assert_eq!(
        x("", &[described], json!({})),
        [("alt_text_too_long".into(), "containers.0.media.0.alt_text".into())]
    );
    let unknown = Media { width: None, height: None, duration: None, ..video() };
    assert_eq!(x("", &[unknown], json!({})), []);
}

/// Posts that platforms were seen to refuse, or are documented to, for their texts and settings.
#[test]
fn what_a_platform_refuses_of_texts_and_settings_is_told() {
    let photo = &[Media { mime: "image/jpeg".into(), width: Some(640), height: Some(640), ..image() }];
    let words = |word: &str, count: usize| vec![word; count].join(" ");
    let cases: [(&str, String, &[Media], Value, &str); 21] = [
        ("instagram", words("#a", 31), photo, json!({}), "hashtags_too_many"),
        ("instagram", words("@a", 21), photo, json!({}), "mentions_too_many"),
        ("instagram", "a".into(), &[video()], json!({ "thumb_offset": 10_000 }), "setting_invalid"),
        ("instagram", "a".into(), &[video()], json!({ "cover_url": "https://a b" }), "setting_invalid"),
        (
            "tiktok",
            "a".into(),
            &[video()],
            json!({ "brand_content_toggle": true, "privacy_level": "SELF_ONLY" }),
            "settings_conflict",
        ),
        ("facebook", "a".into(), &[], json!({ "link": "https://" }), "setting_invalid"),
        ("facebook", "a".into(), &[], json!({ "link": "https://m.facebook.com/a" }), "setting_invalid"),
        ("bluesky", "a".into(), &[], json!({ "languages": ["en_US"] }), "setting_invalid"),
        ("bluesky", "a".into(), &[], json!({ "languages": ["english"] }), "setting_invalid"),
        (
            "bluesky",
            "a".into(),
            &[],
            json!({ "link": { "url": "https://a.example/b c", "title": "a" } }),
            "setting_invalid",
        ),
        (
            "threads",
            (0..6).map(|n| format!("https://a.example/{n} ")).collect(),
            &[],
            json!({}),
            "links_too_many",
        ),
        (
            "google_business",
            "a".into(),
            &[],
            json!({ "callToAction": { "actionType": "BOOK" } }),
            "setting_invalid",
        ),
        ("google_business", "a".into(), &[], json!({ "topicType": "EVENT" }), "setting_invalid"),
        ("reddit", "a".into(), &[], json!({ "poll": { "options": ["a", " "] } }), "setting_invalid"),
        ("reddit", "a https://a.example:99999".into(), &[], json!({ "kind": "link" }), "settings_conflict"),
        ("instagram", "a".into(), photo, json!({ "collaborators": ["  "] }), "setting_invalid"),
        (
            "instagram",
            "a".into(),
            photo,
            json!({ "collaborators": ["https://instagram.com/bob"] }),
            "setting_invalid",
        ),
        (
            "instagram",
            "a".into(),
            photo,
            json!({ "user_tags": [{ "username": "two words" }] }),
            "setting_invalid",
        ),
        ("x", "a\u{1}b".into(), &[], json!({}), "text_character_not_supported"),
        ("youtube", "a\u{b}b".into(), &[video()], json!({}), "text_character_not_supported"),
        ("youtube", "a".into(), &[video()], json!({ "defaultLanguage": "de_DE" }), "setting_invalid"),
    ];
    for (platform, text, media, settings, expected) in cases {
        let content = ContainerContent { text: &text, media };
        let issues = check(crate::get(platform).unwrap(), &[content], &settings);
        let errors: Vec<_> = issues
            .iter()
            .filter(|issue| issue.severity == Severity::Error)
            .map(|issue| &issue.code)
            .collect();
        assert_eq!(errors, [expected], "{platform}: {text} {settings} {issues:?}");
    }
    // Within the limits, or seen by some only.
    for (text, expected) in
        [(words("#a", 5), None), (words("#a", 6), Some(Severity::Warning)), (words("@a", 20), None)]
    {
        let issues = check(
            crate::get("instagram").unwrap(),
            &[ContainerContent { text: &text, media: photo }],
            &json!({}),
        );
        assert_eq!(issues.first().map(|issue| issue.severity), expected, "{text}");
    }
    let text = "a@b.example a&#39; https://a.example/#a /@a ".repeat(31);
    let issues = check(
        crate::get("instagram").unwrap(),
        &[ContainerContent { text: &text, media: photo }],
        &json!({}),
    );
    assert_eq!(issues, [], "neither a hashtag nor a mention");
}

#[test]
fn a_ghost_post_has_no_poll() {
    let poll = json!({ "option_a": "early", "option_b": "late" });
    let settings = json!({ "is_ghost_post": true, "poll_attachment": poll });
    let issues =
        check(crate::get("threads").unwrap(), &[ContainerContent { text: "a", media: &[] }], &settings);
    let found: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
    assert_eq!(found, [(Severity::Error, "settings_conflict")], "{issues:?}");
}

/// A number of a platform's app, or of its documentation, that published posts have exceeded is a warning.
#[test]
fn what_was_seen_to_be_published_is_a_warning_only() {
    let photo = Media { mime: "image/jpeg".into(), width: Some(640), height: Some(640), ..image() };
    for (count, settings, expected) in [
        (5, json!({ "privacy_level": "SELF_ONLY" }), &[][..]),
        (6, json!({ "privacy_level": "SELF_ONLY" }), &["hashtags_too_many"]),
        (6, json!({ "post_mode": "MEDIA_UPLOAD" }), &["post_waits_in_inbox", "text_ignored"]),
    ] {
        let (text, media) = ("#a ".repeat(count), [video()]);
        let content = ContainerContent { text: &text, media: &media };
        let issues = check(crate::get("tiktok").unwrap(), &[content], &settings);
        assert!(issues.iter().all(|issue| issue.severity == Severity::Warning), "{issues:?}");
        assert_eq!(issues.iter().map(|issue| &*issue.code).collect::<Vec<_>>(), expected, "{count}");
    }
    // Some apps publish pictures that are taller than 3:4.
    for (width, expected) in [
        (550, Some(Severity::Error)),
        (560, Some(Severity::Warning)),
        (730, Some(Severity::Warning)),
        (750, None),
    ] {
        let tall = Media { width: Some(width), height: Some(1_000), ..photo.clone() };
        let issues = check(
            crate::get("instagram").unwrap(),
            &[ContainerContent { text: "a", media: &[tall] }],
            &json!({}),
        );
        let expected: Vec<_> =
            expected.map(|severity| (severity, "media_aspect_ratio")).into_iter().collect();
        let found: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
        assert_eq!(found, expected, "{width}");
    }
}

/// A setting that a kind of post does not use is told, and refused where the public would be told otherwise.
#[test]
fn a_setting_belongs_to_kinds_of_post() {
    type Unused<'a> = &'a [(&'a str, Severity)];
    let photo = &[Media { mime: "image/jpeg".into(), width: Some(640), height: Some(640), ..image() }];
    let photos = &[photo[0].clone(), photo[0].clone()];
    let clip = &[video()];
    let (warning, error) = (Severity::Warning, Severity::Error);
    let event = json!({ "title": "a", "start": "2030-01-01", "end": "2030-01-02" });
    let offer = json!({ "offer": {}, "event": event, "callToAction": { "actionType": "CALL" } });
    let trial = json!({ "trial_params": { "graduation_strategy": "MANUAL" } });
    let cases: [(&str, &[Media], Value, Unused<'_>); 21] = [
        ("instagram", photo, trial.clone(), &[("trial_params", error)]),
        ("instagram", photos, trial.clone(), &[("trial_params", error)]),
        ("instagram", clip, trial, &[]),
        (
            "instagram",
            photo,
            json!({ "share_to_feed": false, "audio_name": "a" }),
            &[("audio_name", warning), ("share_to_feed", warning)],
        ),
        (
            "instagram",
            photo,
            json!({ "media_type": "STORIES", "collaborators": ["ada"], "location_id": "1" }),
            &[("collaborators", warning), ("location_id", warning)],
        ),
        ("instagram", photo, json!({ "cover_url": null }), &[]),
        ("facebook", photo, json!({ "title": "a" }), &[("title", warning)]),
        ("facebook", photo, json!({ "is_ai_generated": true }), &[("is_ai_generated", error)]),
        ("facebook", photo, json!({ "is_ai_generated": false }), &[("is_ai_generated", warning)]),
        ("facebook", photo, json!({ "media_type": "STORIES", "countries": ["DE"] }), &[("countries", error)]),
        ("facebook", photo, json!({ "countries": ["DE"], "place": "1" }), &[]),
        (
            "facebook",
            clip,
            json!({ "title": "a", "is_ai_generated": true, "place": "1" }),
            &[("place", warning)],
        ),
        (
            "tiktok",
            photo,
            json!({ "privacy_level": "SELF_ONLY", "disable_duet": true }),
            &[("disable_duet", warning)],
        ),
        ("tiktok", clip, json!({ "privacy_level": "SELF_ONLY", "title": "a" }), &[("title", warning)]),
        (
            "pinterest",
            photo,
            json!({ "cover_image_key_frame_time": 1 }),
            &[("cover_image_key_frame_time", warning)],
        ),
        ("google_business", &[], offer, &[("callToAction", warning)]),
        (
            "google_business",
            &[],
            json!({ "topicType": "STANDARD", "offer": { "couponCode": "a" } }),
            &[("offer", warning)],
        ),
        ("reddit", photo, json!({ "captions": ["a"] }), &[("captions", warning)]),
        ("reddit", photos, json!({ "captions": ["a", "b"] }), &[]),
        ("linkedin", photo, json!({ "title": "a" }), &[("title", warning)]),
        ("threads", &[], json!({ "is_spoiler_media": true }), &[("is_spoiler_media", warning)]),
    ];
    for (platform, media, settings, expected) in cases {
        let content = ContainerContent { text: "a", media };
        let issues = check(crate::get(platform).unwrap(), &[content], &settings);
        let found: Vec<_> = issues
            .iter()
            .filter(|issue| issue.code == "setting_not_used")
            .map(|issue| (issue.path[2].as_str().unwrap(), issue.severity))
            .collect();
        assert_eq!(found, expected, "{platform}: {settings} {issues:?}");
        assert!(
            issues.iter().all(|issue| issue.severity == warning || issue.code == "setting_not_used"),
            "{issues:?}"
        );
    }
}

#[test]
fn a_title_made_of_the_text_ends_at_a_word() {
    let line = "Sunrise over the harbour ".repeat(20);
    for (platform, media) in [("youtube", &[video()][..]), ("reddit", &[])] {
        let platform = crate::get(platform).unwrap();
        let of = |text: &str| {
            let issues = check(platform, &[ContainerContent { text, media }], &json!({})).into_iter();
            let issues = issues.filter(|issue| issue.code != "setting_not_chosen");
            issues.map(|issue| (issue.severity, issue.code)).collect::<Vec<_>>()
        };
        assert_eq!(of("Sunrise"), []);
        assert_eq!(of(&line), [(Severity::Warning, "title_cut".to_owned())], "{}", platform.id);
    }
}

#[test]
fn a_title_made_of_a_file_name_is_told_where_it_is_cut() {
    let youtube = crate::get("youtube").unwrap();
    let told = |text: &str, stem: &str| -> Vec<_> {
        let video = Media { filename: format!("{stem}.mp4"), ..video() };
        let issues =
            check(youtube, &[ContainerContent { text, media: &[video] }], &json!({ "madeForKids": false }));
        issues.into_iter().map(|issue| (issue.severity, issue.code, issue.path[2].clone())).collect()
    };
    let cut = |member: &str| (Severity::Warning, "title_cut".to_owned(), json!(member));
    let (fine, long) = ("a".repeat(100), "a".repeat(101));
    assert_eq!(told("", &fine), []);
    assert_eq!(told("", &long), [cut("media")]);
    assert_eq!(told("Dawn", &long), []);
    assert_eq!(told(&long, &fine), [cut("content")]);
}

/// A comment on LinkedIn shows its picture without alt text, and one on Facebook with it.
#[test]
fn an_alt_text_that_a_comment_does_not_show_is_told() {
    let described = Media {
        mime: "image/jpeg".into(),
        width: Some(640),
        height: Some(640),
        alt_text: Some("a".into()),
        ..image()
    };
    let comment = ContainerContent { text: "a", media: &[described] };
    for (platform, expected) in [("linkedin", &["alt_text_not_supported"][..]), ("facebook", &[])] {
        let platform = crate::get(platform).unwrap();
        let codes = |issues: Vec<Issue>| issues.into_iter().map(|issue| issue.code).collect::<Vec<_>>();
        let main = ContainerContent { text: "a", media: comment.media };
        assert_eq!(codes(check(platform, &[main], &json!({}))), [""; 0], "{}", platform.id);
        let thread = [ContainerContent { text: "a", media: &[] }, comment];
        assert_eq!(codes(check(platform, &thread, &json!({}))), expected, "{}", platform.id);
        let reply = check_reply(platform, AccountKind::default(), &[comment], &json!({}));
        assert_eq!(codes(reply), expected, "{}", platform.id);
    }
}

#[test]
fn a_medium_may_be_upright_or_across() {
    let of = |platform: &str, medium: Media| {
        let issues = check(
            crate::get(platform).unwrap(),
            &[ContainerContent { text: "a", media: &[medium] }],
            &json!({}),
        );
        issues.into_iter().map(|issue| issue.code).collect::<Vec<_>>()
    };
    let video = |width, height| Media { width: Some(width), height: Some(height), ..video() };
    for (width, height, is_fine) in [
        (720, 1280, true),
        (1080, 1920, true),
        (1920, 1080, true),
        (1920, 1200, true),
        (1920, 1201, false),
        (1201, 1920, false),
        (1921, 1080, false),
        (1080, 1921, false),
        (31, 60, false),
    ] {
        let expected: &[&str] = if is_fine { &[] } else { &["media_dimensions"] };
        assert_eq!(of("x", video(width, height)), expected, "{width}x{height}");
    }
    let gif = Media { kind: MediaKind::Gif, mime: "image/gif".into(), ..video(1080, 1280) };
    assert_eq!(of("x", gif), Vec::<String>::new());
    // Instagram limits the width, whichever side it is.
    assert_eq!(of("instagram", video(1440, 2560)), Vec::<String>::new());
    assert_eq!(of("instagram", video(2560, 1440)), ["media_dimensions"]);
    assert_eq!(of("instagram", video(2160, 3840)), ["media_dimensions"]);
}

#[test]
fn the_encoding_of_a_video_is_compared_with_what_the_platform_names() {
    let text = |text: &str| Some(text.to_owned());
    let phone = Facts {
        video_codec: text("h264"),
        audio_codec: text("aac"),
        frame_rate: Some(29_970),
        bit_depth: Some(8),
        chroma: text("4:2:0"),
        index_first: Some(true),
        has_edits: Some(false),
        ..Facts::default()
    };
    let of = |platform: &str, medium: Media| {
        let config = if platform == "tiktok" { json!({ "privacy_level": "SELF_ONLY" }) } else { json!({}) };
        let issues = check(
            crate::get(platform).unwrap(),
            &[ContainerContent { text: "a", media: &[medium] }],
            &config,
        );
        assert!(issues.iter().all(|issue| issue.severity == Severity::Warning), "{issues:?}");
        issues.into_iter().map(|issue| (issue.code, issue.message)).collect::<Vec<_>>()
    };
    let video = |facts: &Facts| Media {
        width: Some(1080),
        height: Some(1080),
        duration: Some(Duration::from_secs(10)),
        facts: Some(facts.clone()),
        ..video()
    };
    for platform in ["instagram", "threads", "x", "tiktok"] {
        assert_eq!(of(platform, video(&phone)), [], "{platform}");
        assert_eq!(of(platform, video(&Facts::default())), [], "{platform}: nothing is known");
        assert_eq!(of(platform, Media { facts: None, ..video(&phone) }), [], "{platform}: an old asset");
        let endless = Media { duration: None, ..video(&phone) };
        assert_eq!(of(platform, endless)[0].0, "media_duration_unknown", "{platform}");
    }
    for (platform, facts, part) in [
        ("x", Facts { video_codec: text("vp9"), ..phone.clone() }, "h264 and not vp9"),
        ("x", Facts { video_codec: text("hevc"), ..phone.clone() }, "h264 and not hevc"),
        ("x", Facts { bit_depth: Some(10), ..phone.clone() }, "8 bits per color and not 10"),
        ("instagram", Facts { audio_codec: text("opus"), ..phone.clone() }, "aac and not opus"),
        (
            "instagram",
            Facts { frame_rate: Some(120_000), ..phone.clone() },
            "23 to 60 frames per second and not 120",
        ),
        ("threads", Facts { index_first: Some(false), ..phone.clone() }, "faststart"),
        ("threads", Facts { has_edits: Some(true), ..phone.clone() }, "no edit list"),
        (
            "instagram",
            Facts { chroma: text("4:2:2"), ..phone.clone() },
            "4:2:0 chroma subsampling and not 4:2:2",
        ),
        ("x", Facts { chroma: text("4:4:4"), ..phone.clone() }, "4:2:0 chroma subsampling and not 4:4:4"),
        ("tiktok", Facts { video_codec: text("prores"), ..phone.clone() }, "vp9 and not prores"),
    ] {
        let issues = of(platform, video(&facts));
        assert_eq!(issues.len(), 1, "{issues:?}");
        assert!(issues[0].0 == "media_encoding" && issues[0].1.contains(part), "{issues:?}");
    }
    // The rate is an average, which is not exact; a platform that names no encoding gets any.
    assert_eq!(of("tiktok", video(&Facts { frame_rate: Some(60_003), ..phone.clone() })), []);
    assert_eq!(of("x", video(&Facts { has_edits: Some(true), ..phone.clone() })), []);
    assert_eq!(of("tiktok", video(&Facts { chroma: text("4:2:2"), ..phone.clone() })), []);
    assert_eq!(of("bluesky", video(&Facts { video_codec: text("vp9"), ..phone })), []);
    let pdf = Media {
        kind: MediaKind::Document,
        mime: "application/pdf".into(),
        facts: Some(Facts { is_locked: Some(true), ..Facts::default() }),
        ..image()
    };
    assert_eq!(of("linkedin", pdf)[0].0, "media_locked");
}

#[test]
fn a_picture_that_can_t_be_decoded_is_told_for_each_platform() {
    let facts = Facts { undecodable: Some("it can't be read".into()), ..Facts::default() };
    let broken = Media {
        mime: "image/jpeg".into(),
        width: Some(1080),
        height: Some(1080),
        size_bytes: 100_000,
        facts: Some(facts),
        ..image()
    };
    let large = Media { size_bytes: 200 << 20, ..broken.clone() };
    let mut fitted = 0;
    for platform in crate::all() {
        if !platform.limits.media.iter().any(|limit| limit.kind == MediaKind::Image) {
            continue;
        }
        for medium in [&broken, &large] {
            let media = std::slice::from_ref(medium);
            let needs = platform.fits(0, &json!({}), media)[0].is_some();
            fitted += usize::from(needs);
            let issues = check(platform, &[ContainerContent { text: "a", media }], &json!({}));
            let told: Vec<_> = issues.iter().filter(|issue| issue.code == "media_undecodable").collect();
            let severity = if needs { Severity::Error } else { Severity::Warning };
            assert_eq!(told.len(), 1, "{}: {issues:?}", platform.id);
            assert_eq!(told[0].severity, severity, "{}: {issues:?}", platform.id);
            assert!(told[0].message.contains("it can't be read"), "{issues:?}");
            assert!(issues.iter().all(|issue| issue.code != "media_fitted"), "{issues:?}");
        }
    }
    assert!(fitted >= 8, "{fitted}");
    // Another shape is no remedy either.
    let instagram = crate::get("instagram").unwrap();
    let narrow = Media { height: Some(4000), ..broken };
    let told = check(instagram, &[ContainerContent { text: "a", media: &[narrow] }], &json!({}));
    assert!(told.iter().all(|issue| !issue.message.contains(fit::REMEDY)), "{told:?}");
}

#[test]
fn an_invalid_setting_does_not_hide_conflicts_of_other_settings() {
    let reels = json!({ "media_type": "REELS", "thumb_offset": -1 });
    let instagram = crate::get("instagram").unwrap();
    let photo = Media { mime: "image/jpeg".into(), width: Some(640), height: Some(640), ..image() };
    let issues = check(instagram, &[ContainerContent { text: "a", media: &[photo] }], &reels);
    let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
    assert_eq!(codes, ["setting_invalid", "media_kind_not_supported"]);
}

#[test]
fn settings_of_a_main_post_have_no_effect_on_a_reply() {
    let told = |settings: Value| -> Vec<_> {
        let reply = [ContainerContent { text: "a", media: &[image()] }];
        let issues =
            check_reply(crate::get("x").unwrap(), AccountKind::default(), &reply, &settings).into_iter();
        issues.map(|issue| (issue.severity, issue.code, issue.path[2].clone())).collect()
    };
    assert_eq!(told(json!({ "made_with_ai": true, "quote_tweet_id": null, "of_tomorrow": 1 })), []);
    let unused = |setting| (Severity::Warning, "setting_not_for_replies".to_owned(), json!(setting));
    // Together with the image they would be a conflict in a main post.
    let poll = json!({ "options": ["a", "b"], "duration_minutes": 5 });
    assert_eq!(
        told(json!({ "poll": poll, "reply_settings": "following" })),
        [unused("poll"), unused("reply_settings")]
    );
    // A value that can't be stored is an error all the same.
    let invalid = (Severity::Error, "setting_invalid".to_owned(), json!("reply_settings"));
    assert_eq!(told(json!({ "reply_settings": "nobody" })), [invalid]);
}

/// A setting that another one, or a picture, gives its meaning is told without it.
#[test]
fn a_setting_without_its_other_half_is_told() {
    let pictures = [image(), image()];
    let unused = (Severity::Warning, "setting_not_used");
    for (platform, media, settings, expected) in [
        ("x", &[][..], json!({ "share_with_followers": true }), Some(unused)),
        ("x", &[], json!({ "share_with_followers": false }), None),
        ("x", &[], json!({ "share_with_followers": true, "community_id": "1" }), None),
        ("reddit", &[], json!({ "flair_text": "a" }), Some(unused)),
        ("reddit", &[], json!({ "flair": "a", "flair_text": "b" }), None),
        ("threads", &[], json!({ "fit": "crop" }), Some(unused)),
        ("google_business", &[], json!({ "fit": "crop" }), Some(unused)),
        // It knows no such setting, which is told of a member that is not known.
        ("x", &[], json!({ "fit": "crop" }), None),
        ("reddit", &pictures, json!({ "captions": ["a", "b"] }), None),
        (
            "reddit",
            &pictures,
            json!({ "captions": ["a", "b", "c"] }),
            Some((Severity::Error, "setting_invalid")),
        ),
    ] {
        let issues =
            check(crate::get(platform).unwrap(), &[ContainerContent { text: "a", media }], &settings);
        let found: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{platform}: {settings} {issues:?}");
    }
}

/// A setting that informs the public, or limits the audience, is refused for a reply, which would not use it.
#[test]
fn a_promise_is_not_dropped_from_a_reply() {
    let (warning, error) = (Severity::Warning, Severity::Error);
    for (platform, setting, value, expected) in [
        ("facebook", "is_ai_generated", json!(true), error),
        ("facebook", "is_ai_generated", json!(false), warning),
        ("facebook", "countries", json!(["DE"]), error),
        ("facebook", "draft", json!(true), error),
        ("facebook", "title", json!("a"), warning),
        ("instagram", "trial_params", json!({ "graduation_strategy": "MANUAL" }), error),
        ("instagram", "is_ai_generated", json!(true), error),
        ("instagram", "location_id", json!("1"), warning),
        ("threads", "is_ghost_post", json!(true), error),
        ("threads", "is_ghost_post", json!(false), warning),
        ("x", "community_id", json!("1"), error),
        ("linkedin", "visibility", json!("CONNECTIONS"), error),
        ("linkedin", "visibility", json!("PUBLIC"), warning),
        ("youtube", "containsSyntheticMedia", json!(true), error),
        ("youtube", "paidPromotion", json!(true), error),
        ("youtube", "privacyStatus", json!("private"), error),
        ("youtube", "privacyStatus", json!("public"), warning),
    ] {
        let settings = json!({ setting: value });
        let reply = [ContainerContent { text: "a", media: &[] }];
        let issues = check_reply(crate::get(platform).unwrap(), AccountKind::default(), &reply, &settings);
        let found: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
        assert_eq!(found, [(expected, "setting_not_for_replies")], "{platform}: {settings} {issues:?}");
    }
}

#[test]
fn a_control_character_in_a_setting_is_told_where_it_is() {
    let told = |platform: &str, block: Value| -> Vec<_> {
        let issues = settings(crate::get(platform).unwrap(), &block).into_iter();
        issues.map(|issue| (issue.code, Value::from(issue.path), issue.message)).collect()
    };
    let wrong = |path: Value, message: &str| ("setting_invalid".to_owned(), path, message.to_owned());
    assert_eq!(
        told("youtube", json!({ "title": "a\u{b}b" })),
        [wrong(json!(["config", "youtube", "title"]), "youtube takes no `U+000B` in title")]
    );
    assert_eq!(
        told("x", json!({ "poll": { "options": ["a", "b\u{7f}"], "duration_minutes": 5 } })),
        [wrong(json!(["config", "x", "poll", "options", 1]), "x takes no `U+007F` in poll")]
    );
    let bad = json!({ "options": ["a\u{1}", "b\u{2}"], "duration_minutes": 5 });
    assert_eq!(
        told("x", json!({ "poll": bad })),
        [
            wrong(json!(["config", "x", "poll", "options", 0]), "x takes no `U+0001` in poll"),
            wrong(json!(["config", "x", "poll", "options", 1]), "x takes no `U+0002` in poll"),
        ]
    );
    // Also in what is passed on as it is.
    let spoiler = json!({ "entity_type": "SPOILER\u{1}", "offset": 0, "length": 1 });
    assert_eq!(
        told("threads", json!({ "text_entities": [spoiler] })),
        [wrong(
            json!(["config", "threads", "text_entities", 0, "entity_type"]),
            "threads takes no `U+0001` in text_entities"
        )]
    );
    assert_eq!(told("facebook", json!({ "title": "a\tb\r\nc", "of_tomorrow": "\u{1}" })), []);
    let described = Media { alt_text: Some("a\u{b}b".into()), ..image() };
    assert_eq!(
        x("", &[described], json!({})),
        [("text_character_not_supported".into(), "containers.0.media.0.alt_text".into())]
    );
}

#[test]
fn settings_are_validated_against_their_schema() {
    assert_eq!(
        x(
            "a",
            &[],
            json!({ "reply_settings": "nobody", "made_with_ai": "yes", "poll": { "options": [null] } })
        ),
        [
            ("setting_invalid".into(), "config.x.made_with_ai".into()),
            ("setting_invalid".into(), "config.x.poll".into()),
            ("setting_invalid".into(), "config.x.poll.options".into()),
            ("setting_invalid".into(), "config.x.poll.options.0".into()),
            ("setting_invalid".into(), "config.x.reply_settings".into()),
        ]
    );
    assert_eq!(codes(&x("a", &[], json!([]))), ["setting_invalid"]);
    let poll = json!({ "poll": { "options": ["a", "b"], "duration_minutes": 5 } });
    assert_eq!(codes(&x("a", &[image()], poll)), ["settings_conflict"]);
    assert_eq!(codes(&x("a", &[], json!({ "quote_tweet_id": "12a" }))), ["setting_invalid"]);
}

#[test]
fn the_number_and_length_of_issues_are_bounded() {
    let long = "-".repeat(1_000_000);
    let many = vec![json!(7); 300_000];
    for platform in crate::all() {
        let schema = schema(platform);
        let mut sent = json!({});
        for (name, part) in schema["properties"].as_object().unwrap() {
            sent[name] = match part["type"].as_str().unwrap() {
                "array" => json!(many),
                "object" => part["properties"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, part)| {
                        let is_list = part["type"] == "array";
                        (name.clone(), if is_list { json!(many) } else { json!(long) })
                    })
                    .collect(),
                _ => json!(long),
            };
        }
        let content = ContainerContent { text: &long, media: &[] };
        let issues = check(platform, &[content], &sent);
        assert!(!issues.is_empty() && issues.len() <= MAX_ISSUES, "{}: {}", platform.id, issues.len());
        for issue in issues {
            assert!(
                issue.message.chars().count() <= MAX_MESSAGE_CHARACTERS + 1,
                "{}: {issue:?}",
                platform.id
            );
            assert!(issue.path.len() < 6, "{}: {issue:?}", platform.id);
        }
    }
    let tags = json!({ "tags": vec!["<"; 500] });
    let issues = settings(crate::get("youtube").unwrap(), &tags);
    assert_eq!(issues.len(), MAX_ISSUES);
    let tags = json!({ "tags": vec!["<"; 501] });
    let issues = settings(crate::get("youtube").unwrap(), &tags);
    assert_eq!(issues.len(), 1, "the items of an over-long list were validated: {issues:?}");
}

#[test]
fn every_text_and_list_in_settings_has_a_maximum_length() {
    fn walk(schema: &Value, path: &str) {
        match schema["type"].as_str() {
            Some("string") => {
                assert!(schema.get("enum").is_some() || schema["maxLength"].is_u64(), "{path}")
            }
            Some("array") => assert!(schema["maxItems"].is_u64(), "{path}"),
            _ => {}
        }
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            walk(part, &format!("{path}.{name}"));
        }
        if let Some(items) = schema.get("items") {
            walk(items, &format!("{path}[]"));
        }
    }
    for platform in crate::all() {
        walk(&schema(platform), platform.id);
    }
}

#[test]
fn a_text_with_too_many_bytes_is_not_counted() {
    fn count(_: &str) -> usize {
        panic!("the text was counted")
    }
    let can = TextLimit { max: 10, usual: None, unit: "characters", count, max_bytes: None };
    let mut found = IssueList { platform: "x", issues: Vec::new() };
    let part = ContainerRules {
        text: &can,
        forbidden: &[],
        content: Content::Text,
        needs: None,
        media: &[],
        fittable: Vec::new(),
        mixed_media: false,
        alt_text: None,
    };
    let long = "a".repeat(11 * 128);
    text(&mut found, &part, &ContainerContent { text: &long, media: &[] }, &long, vec![json!("content")]);
    let issue = &found.issues[0];
    assert_eq!(issue.code, "text_too_long");
    assert_eq!(issue.message, "x takes 10 characters, and the text has 1408 bytes");
}
