//! Posts that break the simulators' rules about content, one for each.

use crate::fixtures::Actor;
use platforms::{Media, MediaKind, PublishRequest};
use serde_json::{Value, json};

/// A post that breaks a rule.
pub(super) struct Sample {
    pub(super) platform: &'static str,
    /// Key of the rule.
    pub(super) rule: &'static str,
    pub(super) proof: Proof,
}

type Make = fn(&Actor) -> PublishRequest;

/// The reason to believe that the check knows a rule.
#[derive(Clone, Copy)]
pub(super) enum Proof {
    /// A post that breaks it.
    Post(Make),
    /// A reply, or a first comment, that breaks it.
    Reply(Make),
    /// A post that breaks it by the size of a file which no test makes: only the check is asked.
    TooLarge(Make),
    /// A post with pictures that are fitted before they are published: the check tells so instead.
    Fitted(Make),
    /// A post of which the adapter sends nothing that breaks the rule: it refuses it, or leaves a part out. The check finds
    /// an error in it, or warns.
    Kept(Make),
    /// No content reaches it, for this reason.
    Unreachable(&'static str),
}
use Proof::{Fitted, Kept, Post, Reply, TooLarge, Unreachable};

const fn sample(platform: &'static str, rule: &'static str, proof: Proof) -> Sample {
    Sample { platform, rule, proof }
}

const BY_FORM: &str = "the settings' schema has these words only, and the adapter can't read another";
const OWN_ID: &str = "an id that the platform gave the adapter";
const PROBED: &str = "a file's kind is what its bytes are";
const UNUSED: &str = "the adapter never sends this member";
const WRITTEN: &str = "the adapter writes it, whatever the content is";

/// A grapheme of 25 bytes.
const FAMILY: &str = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}";

fn with(post: PublishRequest, settings: Value) -> PublishRequest {
    PublishRequest { settings, ..post }
}

fn poll(actor: &Actor, options: Value, minutes: u32) -> PublishRequest {
    with(actor.post("a"), json!({ "poll": { "options": options, "duration_minutes": minutes } }))
}

/// Returns a text of this length.
fn long(actor: &Actor, length: usize) -> PublishRequest {
    PublishRequest { text: "a".repeat(length), ..actor.post("") }
}

fn described(mut post: PublishRequest, alt: &str) -> PublishRequest {
    post.media[0].alt_text = Some(alt.to_owned());
    post
}

/// Returns a post whose first medium is changed.
fn changed(mut post: PublishRequest, change: impl FnOnce(&Media) -> Media) -> PublishRequest {
    post.media[0] = change(&post.media[0]);
    post
}

/// Returns a post whose first medium is of a type that nobody knows.
fn unknown(actor: &Actor, kind: MediaKind) -> PublishRequest {
    let post = actor.post_with("of an unknown type", kind, 1);
    changed(post, |medium| {
        actor.rewrite(medium, |bytes| vec![7; bytes.len()]);
        Media { mime: "application/x-unknown".to_owned(), ..medium.clone() }
    })
}

/// Returns a post whose first medium is said to have this size.
fn said(actor: &Actor, kind: MediaKind, size_bytes: u64) -> PublishRequest {
    changed(actor.post_with("of a large file", kind, 1), |medium| Media { size_bytes, ..medium.clone() })
}

/// Returns a post whose first medium has this size.
fn sized(actor: &Actor, kind: MediaKind, size: usize) -> PublishRequest {
    changed(actor.post_with("of a large file", kind, 1), |medium| actor.sized(medium, size))
}

fn film(actor: &Actor) -> PublishRequest {
    actor.post_with("a film", MediaKind::Video, 1)
}

/// Returns a film with a cover, which is changed.
fn covered(actor: &Actor, change: impl FnOnce(&Media) -> Media) -> PublishRequest {
    let mut post = actor.post_with("covered", MediaKind::Image, 1);
    post.media[1] = change(&post.media[1]);
    post
}

/// Returns the boxes of an MP4 whose only track has 640 by 360 pixels.
fn small_film() -> Vec<u8> {
    let boxed = |kind: &[u8], data: &[u8]| {
        let length = u32::try_from(data.len() + 8).expect("a small box").to_be_bytes();
        [&length[..], kind, data].concat()
    };
    let mut track = [0_u8; 84];
    // In units of 1/65536.
    track[76..80].copy_from_slice(&(640_u32 << 16).to_be_bytes());
    track[80..84].copy_from_slice(&(360_u32 << 16).to_be_bytes());
    let track = boxed(b"trak", &boxed(b"tkhd", &track));
    [boxed(b"ftyp", b"isom\0\0\x02\0isomiso2mp41"), boxed(b"moov", &track)].concat()
}

fn captioned(actor: &Actor, language: &str, content: &str) -> PublishRequest {
    with(film(actor), json!({ "captions": [{ "language": language, "content": content }] }))
}

fn card() -> Value {
    json!({ "link": "https://example.com/a", "picture": "https://example.com/a.jpg" })
}

const SUBRIP: &str = "1\n00:00:01,000 --> 00:00:02,500\nDawn\n";

pub(super) static SAMPLES: &[Sample] = &[
    // X
    sample("x", "empty", Post(|a| a.post(""))),
    sample(
        "x",
        "media_poll_or_quote",
        Post(|a| {
            with(
                a.post_with("a", MediaKind::Image, 1),
                json!({ "poll": { "options": ["a", "b"], "duration_minutes": 60 } }),
            )
        }),
    ),
    sample(
        "x",
        "mixed_media",
        Post(|a| {
            let mut post = a.post_with("a", MediaKind::Image, 1);
            post.media.extend(a.post_with("", MediaKind::Gif, 1).media);
            post
        }),
    ),
    sample("x", "text_too_long", Post(|a| long(a, 281))),
    sample("x", "media_too_large", Fitted(|a| sized(a, MediaKind::Image, (5 << 20) + 1))),
    sample("x", "alt_text_of_a_video", Kept(|a| described(film(a), "a film"))),
    sample("x", "captions_language", Post(|a| captioned(a, "gsw", SUBRIP))),
    sample("x", "captions_unreadable", Post(|a| captioned(a, "en", "no times"))),
    sample("x", "image_type", Post(|a| unknown(a, MediaKind::Image))),
    sample("x", "video_type", Unreachable(PROBED)),
    sample("x", "digits community_id", Post(|a| with(a.post("a"), json!({ "community_id": "a" })))),
    sample("x", "digits quote_tweet_id", Post(|a| with(a.post("a"), json!({ "quote_tweet_id": "a" })))),
    sample("x", "digits edit_options.previous_post_id", Unreachable(UNUSED)),
    sample("x", "digits media.media_ids", Unreachable(OWN_ID)),
    sample("x", "digits media.preview_media_id", Unreachable(UNUSED)),
    sample(
        "x",
        "digits media.tagged_user_ids",
        Unreachable("the adapter looks each name up, and sends ids of X"),
    ),
    sample("x", "digits reply.in_reply_to_tweet_id", Unreachable(OWN_ID)),
    sample("x", "digits additional_owners", Unreachable(UNUSED)),
    sample("x", "digits id", Unreachable(OWN_ID)),
    sample("x", "digits subtitles.id", Unreachable(OWN_ID)),
    sample("x", "enum reply_settings", Unreachable(BY_FORM)),
    sample("x", "enum poll.reply_settings", Unreachable(UNUSED)),
    sample("x", "enum media_category", Unreachable("the adapter derives it from the kind of media")),
    sample(
        "x",
        "enum media_type",
        Post(|a| changed(film(a), |film| Media { mime: "video/x-unknown".to_owned(), ..film.clone() })),
    ),
    sample("x", "minItems media.media_ids", Unreachable("without media the adapter leaves the member out")),
    sample("x", "maxItems media.media_ids", Post(|a| a.post_with("five", MediaKind::Image, 5))),
    sample(
        "x",
        "minItems media.tagged_user_ids",
        Unreachable("without people the adapter leaves the member out"),
    ),
    sample(
        "x",
        "maxItems media.tagged_user_ids",
        Post(|a| {
            let people: Vec<_> = (0..11).map(|n| (1_000_000_000_000_000_000_u64 + n).to_string()).collect();
            with(a.post_with("many", MediaKind::Image, 1), json!({ "tagged_users": people }))
        }),
    ),
    sample("x", "minItems poll.options", Post(|a| poll(a, json!(["a"]), 60))),
    sample("x", "maxItems poll.options", Post(|a| poll(a, json!(["a", "b", "c", "d", "e"]), 60))),
    sample("x", "minLength poll.options", Post(|a| poll(a, json!(["a", ""]), 60))),
    sample("x", "maxLength poll.options", Post(|a| poll(a, json!(["a", "b".repeat(26)]), 60))),
    sample("x", "minimum poll.duration_minutes", Post(|a| poll(a, json!(["a", "b"]), 4))),
    sample("x", "maximum poll.duration_minutes", Post(|a| poll(a, json!(["a", "b"]), 10_081))),
    sample("x", "minItems reply.exclude_reply_user_ids", Unreachable(UNUSED)),
    sample("x", "minItems additional_owners", Unreachable(UNUSED)),
    sample("x", "minimum total_bytes", Unreachable("Fanfare takes no empty file")),
    sample("x", "maximum total_bytes", Post(|a| said(a, MediaKind::Video, 17_179_869_185))),
    sample("x", "minLength metadata.alt_text.text", Unreachable("the adapter leaves an empty text out")),
    sample(
        "x",
        "maxLength metadata.alt_text.text",
        Post(|a| described(a.post_with("a", MediaKind::Image, 1), &"a".repeat(1001))),
    ),
    // Bluesky
    sample(
        "bluesky",
        "accept app.bsky.embed.external#external.thumb",
        Post(|a| with(unknown(a, MediaKind::Image), json!({ "link": { "url": "https://example.com" } }))),
    ),
    sample(
        "bluesky",
        "accept app.bsky.embed.gallery#image.image",
        Post(|a| {
            let mut post = a.post_with("many", MediaKind::Image, 5);
            post.media[0] = unknown(a, MediaKind::Image).media.remove(0);
            post
        }),
    ),
    sample("bluesky", "accept app.bsky.embed.images#image.image", Post(|a| unknown(a, MediaKind::Image))),
    sample(
        "bluesky",
        "accept app.bsky.embed.video#caption.file",
        Unreachable("the adapter writes each file as WebVTT"),
    ),
    sample(
        "bluesky",
        "accept app.bsky.embed.video#main.video",
        Unreachable("the video service makes an MP4 of each video"),
    ),
    sample("bluesky", "file_too_large", Fitted(|a| sized(a, MediaKind::Image, 52_428_801))),
    sample(
        "bluesky",
        "format app.bsky.embed.external#external.uri",
        Post(|a| with(a.post("a"), json!({ "link": { "url": "nowhere" } }))),
    ),
    sample(
        "bluesky",
        "format app.bsky.embed.video#caption.lang",
        Post(|a| captioned(a, "english language", SUBRIP)),
    ),
    sample("bluesky", "format app.bsky.feed.like#main.createdAt", Unreachable(UNUSED)),
    sample("bluesky", "format app.bsky.feed.post#main.createdAt", Unreachable(WRITTEN)),
    sample(
        "bluesky",
        "format app.bsky.feed.post#main.langs[]",
        Post(|a| with(a.post("a"), json!({ "languages": ["english language"] }))),
    ),
    sample("bluesky", "format app.bsky.feed.postgate#main.createdAt", Unreachable(WRITTEN)),
    sample("bluesky", "format app.bsky.feed.postgate#main.detachedEmbeddingUris[]", Unreachable(UNUSED)),
    sample("bluesky", "format app.bsky.feed.postgate#main.post", Unreachable(OWN_ID)),
    sample("bluesky", "format app.bsky.feed.repost#main.createdAt", Unreachable(UNUSED)),
    sample("bluesky", "format app.bsky.feed.threadgate#listRule.list", Unreachable(UNUSED)),
    sample("bluesky", "format app.bsky.feed.threadgate#main.createdAt", Unreachable(WRITTEN)),
    sample("bluesky", "format app.bsky.feed.threadgate#main.hiddenReplies[]", Unreachable(UNUSED)),
    sample("bluesky", "format app.bsky.feed.threadgate#main.post", Unreachable(OWN_ID)),
    sample(
        "bluesky",
        "format app.bsky.richtext.facet#link.uri",
        Unreachable("the adapter marks addresses only"),
    ),
    sample("bluesky", "format app.bsky.richtext.facet#mention.did", Unreachable(OWN_ID)),
    sample("bluesky", "format com.atproto.repo.strongRef#main.cid", Unreachable(OWN_ID)),
    sample("bluesky", "format com.atproto.repo.strongRef#main.uri", Unreachable(OWN_ID)),
    sample(
        "bluesky",
        "maxGraphemes app.bsky.feed.post#main.tags[]",
        Post(|a| with(a.post("a"), json!({ "tags": ["a".repeat(65)] }))),
    ),
    sample("bluesky", "maxGraphemes app.bsky.feed.post#main.text", Post(|a| long(a, 301))),
    sample(
        "bluesky",
        "maxGraphemes app.bsky.richtext.facet#tag.tag",
        Unreachable("the adapter marks no longer word as a tag"),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.embed.gallery#main.items",
        Post(|a| a.post_with("many", MediaKind::Image, 21)),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.embed.images#main.images",
        Unreachable("the adapter publishes more than four as a gallery"),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.embed.video#main.captions",
        Post(|a| {
            let tracks: Vec<_> =
                ('a'..='u').map(|c| json!({ "language": format!("a{c}"), "content": SUBRIP })).collect();
            with(film(a), json!({ "captions": tracks }))
        }),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.feed.post#main.langs",
        Post(|a| with(a.post("a"), json!({ "languages": ["en", "de", "fr", "it"] }))),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.feed.post#main.tags",
        Post(|a| with(a.post("a"), json!({ "tags": ["a", "b", "c", "d", "e", "f", "g", "h", "i"] }))),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.feed.post#main.tags[]",
        Post(|a| with(a.post("a"), json!({ "tags": [FAMILY.repeat(26)] }))),
    ),
    sample("bluesky", "maxLength app.bsky.feed.post#main.text", Post(|a| a.post(&FAMILY.repeat(121)))),
    sample("bluesky", "maxLength app.bsky.feed.postgate#main.detachedEmbeddingUris", Unreachable(UNUSED)),
    sample(
        "bluesky",
        "maxLength app.bsky.feed.postgate#main.embeddingRules",
        Unreachable("the adapter writes one rule"),
    ),
    sample(
        "bluesky",
        "maxLength app.bsky.feed.threadgate#main.allow",
        Post(|a| {
            with(
                a.post("a"),
                json!({ "allow_replies_from": ["mentioned", "mentioned", "mentioned", "mentioned", "mentioned", "mentioned"] }),
            )
        }),
    ),
    sample("bluesky", "maxLength app.bsky.feed.threadgate#main.hiddenReplies", Unreachable(UNUSED)),
    sample(
        "bluesky",
        "maxLength app.bsky.richtext.facet#tag.tag",
        Unreachable("the adapter marks no longer word as a tag"),
    ),
    sample("bluesky", "maxLength com.atproto.label.defs#selfLabel.val", Unreachable(BY_FORM)),
    sample(
        "bluesky",
        "maxLength com.atproto.label.defs#selfLabels.values",
        Post(|a| with(a.post("a"), json!({ "labels": vec!["nudity"; 11] }))),
    ),
    sample(
        "bluesky",
        "maxSize app.bsky.embed.external#external.thumb",
        Fitted(|a| {
            with(sized(a, MediaKind::Image, 1_000_001), json!({ "link": { "url": "https://example.com" } }))
        }),
    ),
    sample(
        "bluesky",
        "maxSize app.bsky.embed.gallery#image.image",
        Fitted(|a| {
            let mut post = a.post_with("many", MediaKind::Image, 5);
            post.media[0] = a.sized(&post.media[0], 2_000_001);
            post
        }),
    ),
    sample(
        "bluesky",
        "maxSize app.bsky.embed.images#image.image",
        Fitted(|a| sized(a, MediaKind::Image, 2_000_001)),
    ),
    sample(
        "bluesky",
        "maxSize app.bsky.embed.video#caption.file",
        Post(|a| captioned(a, "en", &format!("{SUBRIP}{}", "a".repeat(20_000)))),
    ),
    sample(
        "bluesky",
        "maxSize app.bsky.embed.video#main.video",
        Unreachable("the video service takes no larger one"),
    ),
    sample(
        "bluesky",
        "minimum app.bsky.embed.defs#aspectRatio.height",
        Unreachable("the adapter leaves out what is not known"),
    ),
    sample(
        "bluesky",
        "minimum app.bsky.embed.defs#aspectRatio.width",
        Unreachable("the adapter leaves out what is not known"),
    ),
    sample("bluesky", "minimum app.bsky.feed.post#textSlice.end", Unreachable(UNUSED)),
    sample("bluesky", "minimum app.bsky.feed.post#textSlice.start", Unreachable(UNUSED)),
    sample("bluesky", "minimum app.bsky.richtext.facet#byteSlice.byteEnd", Unreachable(WRITTEN)),
    sample("bluesky", "minimum app.bsky.richtext.facet#byteSlice.byteStart", Unreachable(WRITTEN)),
    sample("bluesky", "video_too_large", TooLarge(|a| said(a, MediaKind::Video, 300_000_001))),
    sample(
        "bluesky",
        "video_too_long",
        Unreachable("the adapter leaves the length for the service to judge, and the check warns"),
    ),
    sample(
        "bluesky",
        "video_type",
        Unreachable("the adapter sends a video that can't be sent in parts in one request"),
    ),
    sample("bluesky", "video_unreadable", Post(|a| unknown(a, MediaKind::Video))),
    // Reddit
    sample("reddit", "title_empty", Kept(|a| a.post(" "))),
    sample("reddit", "title_too_long", Post(|a| with(a.post("a"), json!({ "title": "a".repeat(301) })))),
    sample("reddit", "text_too_long", Post(|a| with(long(a, 40_001), json!({ "title": "long" })))),
    sample(
        "reddit",
        "flair_too_long",
        Post(|a| {
            with(
                a.post("a"),
                json!({ "subreddit": "flaired", "flair": "News", "flair_text": "a".repeat(65) }),
            )
        }),
    ),
    sample("reddit", "link_empty", Post(|a| with(a.post("a"), json!({ "kind": "link", "url": "" })))),
    sample(
        "reddit",
        "link",
        Post(|a| with(a.post("a"), json!({ "kind": "link", "url": "ftp://example.com" }))),
    ),
    sample(
        "reddit",
        "options_of_a_poll",
        Post(|a| with(a.post("a"), json!({ "poll": { "options": ["a"] } }))),
    ),
    sample(
        "reddit",
        "days_of_a_poll",
        Post(|a| with(a.post("a"), json!({ "poll": { "options": ["a", "b"], "duration_days": 8 } }))),
    ),
    sample("reddit", "images_of_a_gallery", Kept(|a| a.post_with("many", MediaKind::Image, 21))),
    sample(
        "reddit",
        "caption_too_long",
        Post(|a| with(a.post_with("a", MediaKind::Image, 2), json!({ "captions": ["a".repeat(181)] }))),
    ),
    sample("reddit", "empty_comment", Reply(|a| a.reply(" ", &["above".to_owned()]))),
    sample("reddit", "comment_too_long", Reply(|a| a.reply(&"a".repeat(10_001), &["above".to_owned()]))),
    sample("reddit", "file_type", Post(|a| unknown(a, MediaKind::Image))),
    sample("reddit", "media_type", Unreachable(PROBED)),
    sample("reddit", "image_too_large", Fitted(|a| sized(a, MediaKind::Image, (20 << 20) + 1))),
    sample("reddit", "video_too_large", TooLarge(|a| said(a, MediaKind::Video, (1 << 30) + 1))),
    // TikTok
    sample("tiktok", "text_too_long", Post(|a| PublishRequest { text: "a".repeat(2201), ..film(a) })),
    sample(
        "tiktok",
        "title_too_long",
        Post(|a| with(a.post_with("a", MediaKind::Image, 1), json!({ "title": "a".repeat(91) }))),
    ),
    sample(
        "tiktok",
        "time_of_the_cover",
        Post(|a| with(film(a), json!({ "video_cover_timestamp_ms": 2_147_483_648_u32 }))),
    ),
    sample(
        "tiktok",
        "branded_content_for_nobody",
        Post(|a| with(film(a), json!({ "brand_content_toggle": true, "privacy_level": "SELF_ONLY" }))),
    ),
    sample("tiktok", "photos", Post(|a| a.post_with("many", MediaKind::Image, 36))),
    sample("tiktok", "video_too_large", Post(|a| said(a, MediaKind::Video, (4 << 30) + 1))),
    sample("tiktok", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample("tiktok", "file_type", Post(|a| unknown(a, MediaKind::Image))),
    sample(
        "tiktok",
        "photo_too_large",
        Fitted(|a| changed(a.post_with("large", MediaKind::Image, 1), |_| a.picture(1081, 1921))),
    ),
    sample(
        "tiktok",
        "cover",
        Kept(|a| with(a.post_with("a", MediaKind::Image, 1), json!({ "photo_cover_index": 5 }))),
    ),
    // YouTube
    sample(
        "youtube",
        "title_empty",
        Kept(|a| with(PublishRequest { text: String::new(), ..film(a) }, json!({ "title": " " }))),
    ),
    sample("youtube", "title_too_long", Kept(|a| with(film(a), json!({ "title": "a".repeat(101) })))),
    sample("youtube", "title_brackets", Post(|a| with(film(a), json!({ "title": "a < b" })))),
    sample(
        "youtube",
        "text_too_long",
        Post(|a| with(PublishRequest { text: "é".repeat(2501), ..film(a) }, json!({ "title": "long" }))),
    ),
    sample(
        "youtube",
        "text_brackets",
        Post(|a| {
            with(PublishRequest { text: "a < b".to_owned(), ..film(a) }, json!({ "title": "brackets" }))
        }),
    ),
    sample("youtube", "tags_too_long", Post(|a| with(film(a), json!({ "tags": ["a".repeat(501)] })))),
    sample("youtube", "tags_brackets", Post(|a| with(film(a), json!({ "tags": ["a<b"] })))),
    sample("youtube", "tag_empty", Post(|a| with(film(a), json!({ "tags": ["a", ""] })))),
    sample("youtube", "time_of_publication", Post(|a| with(film(a), json!({ "publishAt": "tomorrow" })))),
    sample("youtube", "language", Post(|a| with(film(a), json!({ "defaultLanguage": "english language" })))),
    sample(
        "youtube",
        "language_missing",
        Post(|a| with(film(a), json!({ "localizations": [{ "language": "de", "title": "Film" }] }))),
    ),
    sample(
        "youtube",
        "language_of_a_localization",
        Post(|a| {
            with(
                film(a),
                json!({ "defaultLanguage": "en", "localizations": [{ "language": "german language", "title": "Film" }] }),
            )
        }),
    ),
    sample(
        "youtube",
        "title_of_a_localization",
        Post(|a| {
            with(
                film(a),
                json!({ "defaultLanguage": "en", "localizations": [{ "language": "de", "title": "a".repeat(101) }] }),
            )
        }),
    ),
    sample(
        "youtube",
        "text_of_a_localization",
        Post(|a| {
            with(
                film(a),
                json!({ "defaultLanguage": "en", "localizations": [{ "language": "de", "title": "Film", "description": "a < b" }] }),
            )
        }),
    ),
    sample("youtube", "recording_date", Kept(|a| with(film(a), json!({ "recordingDate": "yesterday" })))),
    sample("youtube", "video_too_large", Post(|a| said(a, MediaKind::Video, (256 << 30) + 1))),
    sample("youtube", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample("youtube", "file_type", Unreachable(PROBED)),
    sample(
        "youtube",
        "cover_type",
        Post(|a| {
            covered(a, |cover| {
                a.rewrite(cover, |bytes| vec![7; bytes.len()]);
                Media { mime: "application/x-unknown".to_owned(), ..cover.clone() }
            })
        }),
    ),
    sample("youtube", "cover_too_large", Fitted(|a| covered(a, |cover| a.sized(cover, (50 << 20) + 1)))),
    sample("youtube", "captions_empty", Post(|a| captioned(a, "en", ""))),
    sample("youtube", "captions_too_large", Unreachable("a setting has 100,000 characters at most")),
    sample(
        "youtube",
        "captions_twice",
        Post(|a| {
            let track = json!({ "language": "en", "content": SUBRIP });
            with(film(a), json!({ "captions": [track, track] }))
        }),
    ),
    sample("youtube", "captions_unreadable", Post(|a| captioned(a, "en", "no times"))),
    sample("youtube", "language_of_captions", Post(|a| captioned(a, "an unknown language", SUBRIP))),
    sample(
        "youtube",
        "name_of_captions",
        Post(|a| {
            with(
                film(a),
                json!({ "captions": [{ "language": "en", "name": "a".repeat(151), "content": SUBRIP }] }),
            )
        }),
    ),
    sample("youtube", "empty_comment", Reply(|a| a.reply(" ", &["above".to_owned()]))),
    sample("youtube", "comment_too_long", Reply(|a| a.reply(&"a".repeat(10_001), &["above".to_owned()]))),
    // LinkedIn
    sample("linkedin", "empty", Post(|a| a.post(""))),
    sample("linkedin", "text_too_long", Post(|a| long(a, 3001))),
    sample(
        "linkedin",
        "visibility_of_a_page",
        Unreachable("the adapter publishes a page's post for everybody, and the check warns"),
    ),
    sample("linkedin", "images_of_a_post", Post(|a| a.post_with("many", MediaKind::Image, 21))),
    sample(
        "linkedin",
        "alt_text_too_long",
        Post(|a| described(a.post_with("a", MediaKind::Image, 1), &"a".repeat(4087))),
    ),
    sample("linkedin", "document_title", Unreachable("the adapter takes the file's name without a title")),
    sample(
        "linkedin",
        "title_of_a_document_too_long",
        Post(|a| with(a.post_with("a", MediaKind::Document, 1), json!({ "title": "a".repeat(401) }))),
    ),
    sample(
        "linkedin",
        "document_type",
        Post(|a| {
            changed(unknown(a, MediaKind::Document), |paper| {
                a.rewrite(paper, |_| b"GIF89a\x40\0\x40\0\x80\0\0\0\0\0\xff\xff\xff;".to_vec());
                paper.clone()
            })
        }),
    ),
    sample("linkedin", "image_type", Post(|a| unknown(a, MediaKind::Image))),
    sample("linkedin", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample(
        "linkedin",
        "pixels_of_an_image",
        Fitted(|a| changed(a.post_with("large", MediaKind::Image, 1), |_| a.picture(6_100, 6_100))),
    ),
    sample("linkedin", "video_too_large", Post(|a| said(a, MediaKind::Video, (5 << 30) + 1))),
    sample(
        "linkedin",
        "address_of_an_article",
        Post(|a| with(a.post("a"), json!({ "link": { "url": "nowhere", "title": "a" } }))),
    ),
    sample(
        "linkedin",
        "address_of_an_article_too_long",
        Post(|a| {
            with(
                a.post("a"),
                json!({ "link": { "url": format!("https://example.com/{}", "a".repeat(8192)), "title": "a" } }),
            )
        }),
    ),
    sample(
        "linkedin",
        "title_of_an_article",
        Post(|a| with(a.post("a"), json!({ "link": { "url": "https://example.com", "title": "" } }))),
    ),
    sample(
        "linkedin",
        "title_of_an_article_too_long",
        Post(|a| {
            with(a.post("a"), json!({ "link": { "url": "https://example.com", "title": "a".repeat(401) } }))
        }),
    ),
    sample(
        "linkedin",
        "description_of_an_article_too_long",
        Post(|a| {
            with(
                a.post("a"),
                json!({ "link": { "url": "https://example.com", "title": "a", "description": "a".repeat(4087) } }),
            )
        }),
    ),
    sample(
        "linkedin",
        "question_of_a_poll",
        Post(|a| with(a.post("a"), json!({ "poll": { "question": "", "options": ["a", "b"] } }))),
    ),
    sample(
        "linkedin",
        "question_of_a_poll_too_long",
        Post(|a| {
            with(a.post("a"), json!({ "poll": { "question": "a".repeat(141), "options": ["a", "b"] } }))
        }),
    ),
    sample(
        "linkedin",
        "options_of_a_poll",
        Post(|a| with(a.post("a"), json!({ "poll": { "question": "a", "options": ["a"] } }))),
    ),
    sample(
        "linkedin",
        "empty_option_of_a_poll",
        Post(|a| with(a.post("a"), json!({ "poll": { "question": "a", "options": ["a", ""] } }))),
    ),
    sample(
        "linkedin",
        "option_of_a_poll_too_long",
        Post(|a| with(a.post("a"), json!({ "poll": { "question": "a", "options": ["a", "b".repeat(31)] } }))),
    ),
    sample("linkedin", "empty_comment", Reply(|a| a.reply("", &["above".to_owned()]))),
    sample("linkedin", "comment_too_long", Reply(|a| a.reply(&"a".repeat(1_251), &["above".to_owned()]))),
    // Pinterest
    sample("pinterest", "title_too_long", Post(|a| with(a.post("a"), json!({ "title": "a".repeat(101) })))),
    sample("pinterest", "text_too_long", Post(|a| long(a, 801))),
    sample("pinterest", "alt_text_too_long", Kept(|a| described(a.post("a"), &"a".repeat(501)))),
    sample("pinterest", "link", Post(|a| with(a.post("a"), json!({ "link": "ftp://example.com" })))),
    sample(
        "pinterest",
        "link_too_long",
        Post(|a| with(a.post("a"), json!({ "link": format!("https://example.com/{}", "a".repeat(2048)) }))),
    ),
    sample(
        "pinterest",
        "sizes_of_a_carousel",
        Post(|a| {
            let mut post = a.post_with("uneven", MediaKind::Image, 2);
            post.media = vec![a.picture(640, 640), a.picture(640, 320)];
            post
        }),
    ),
    sample("pinterest", "images_of_a_carousel", Post(|a| a.post_with("many", MediaKind::Image, 6))),
    sample("pinterest", "image_type", Post(|a| unknown(a, MediaKind::Image))),
    sample("pinterest", "image_too_large", Fitted(|a| sized(a, MediaKind::Image, (20 << 20) + 1))),
    sample("pinterest", "video_too_large", TooLarge(|a| said(a, MediaKind::Video, (2 << 30) + 1))),
    sample("pinterest", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample("pinterest", "board", Post(|a| with(a.post("a"), json!({ "board_id": "a" })))),
    sample("pinterest", "section", Post(|a| with(a.post("a"), json!({ "board_section_id": "a" })))),
    sample("pinterest", "color", Post(|a| with(a.post("a"), json!({ "dominant_color": "#12345678" })))),
    // Google Business Profile
    sample("google_business", "empty", Post(|a| a.post(" "))),
    sample("google_business", "text_too_long", Post(|a| long(a, 1501))),
    sample(
        "google_business",
        "title_of_an_event",
        Kept(|a| {
            with(
                a.post("a"),
                json!({ "topicType": "EVENT", "event": { "title": " ", "start": "2030-01-01", "end": "2030-01-02" } }),
            )
        }),
    ),
    sample(
        "google_business",
        "times_of_an_event",
        Kept(|a| with(a.post("a"), json!({ "topicType": "EVENT", "event": { "title": "a" } }))),
    ),
    sample("google_business", "type_of_an_alert", Unreachable("the adapter names the only type")),
    sample(
        "google_business",
        "offer_of_another_post",
        Kept(|a| with(a.post("a"), json!({ "topicType": "STANDARD", "offer": { "couponCode": "A" } }))),
    ),
    sample(
        "google_business",
        "address_of_a_call",
        Kept(|a| {
            with(
                a.post("a"),
                json!({ "callToAction": { "actionType": "CALL", "url": "https://example.com" } }),
            )
        }),
    ),
    sample(
        "google_business",
        "address_of_a_button",
        Kept(|a| with(a.post("a"), json!({ "callToAction": { "actionType": "BOOK" } }))),
    ),
    sample(
        "google_business",
        "image_animated",
        Fitted(|a| {
            changed(a.post_with("a", MediaKind::Image, 1), |image| {
                a.rewrite(image, |_| {
                    [&b"GIF89a\x40\0\x40\0\x80\0\0\0\0\0\xff\xff\xff"[..], &[0; 12 << 10]].concat()
                });
                Media { kind: MediaKind::Gif, mime: "image/gif".to_owned(), ..image.clone() }
            })
        }),
    ),
    sample("google_business", "image_bytes", Fitted(|a| sized(a, MediaKind::Image, (5 << 20) + 1))),
    sample(
        "google_business",
        "image_too_small",
        Post(|a| changed(a.post_with("a", MediaKind::Image, 1), |_| a.picture(249, 300))),
    ),
    sample("google_business", "image_type", Post(|a| unknown(a, MediaKind::Image))),
    sample(
        "google_business",
        "video_of_a_post",
        Unreachable("the adapter adds a video to those of the location"),
    ),
    sample("google_business", "description_of_a_cover", Unreachable("the adapter adds no cover")),
    sample(
        "google_business",
        "video_type",
        Post(|a| with(unknown(a, MediaKind::Video), json!({ "video": { "category": "INTERIOR" } }))),
    ),
    sample(
        "google_business",
        "video_too_large",
        Post(|a| {
            with(sized(a, MediaKind::Video, (75 << 20) + 1), json!({ "video": { "category": "INTERIOR" } }))
        }),
    ),
    sample(
        "google_business",
        "video_too_long",
        Post(|a| {
            with(changed(film(a), |film| a.lasting(film, 31)), json!({ "video": { "category": "INTERIOR" } }))
        }),
    ),
    sample(
        "google_business",
        "video_too_small",
        Post(|a| {
            let small = changed(film(a), |film| {
                a.rewrite(film, |_| small_film());
                film.clone()
            });
            with(small, json!({ "video": { "category": "INTERIOR" } }))
        }),
    ),
    // Facebook
    sample("facebook", "empty", Post(|a| a.post(" "))),
    sample("facebook", "text_too_long", Post(|a| long(a, 63_207))),
    sample(
        "facebook",
        "cards_with_photos",
        Post(|a| {
            with(a.post_with("a", MediaKind::Image, 2), json!({ "child_attachments": [card(), card()] }))
        }),
    ),
    sample("facebook", "countries", Post(|a| with(a.post("a"), json!({ "countries": ["Germany"] })))),
    sample("facebook", "link", Post(|a| with(a.post("a"), json!({ "link": "nowhere" })))),
    sample(
        "facebook",
        "link_to_facebook",
        Post(|a| with(a.post("a"), json!({ "link": "https://www.facebook.com/zuck" }))),
    ),
    sample("facebook", "cards", Post(|a| with(a.post("a"), json!({ "child_attachments": [card()] })))),
    sample(
        "facebook",
        "picture_of_a_card",
        Post(|a| {
            with(
                a.post("a"),
                json!({ "child_attachments": [card(), { "link": "https://example.com", "picture": "nowhere" }] }),
            )
        }),
    ),
    sample("facebook", "background_id", Post(|a| with(a.post("a"), json!({ "text_format_preset_id": "a" })))),
    sample("facebook", "background", Post(|a| with(long(a, 131), json!({ "text_format_preset_id": "1" })))),
    sample("facebook", "time_of_publication", Unreachable(UNUSED)),
    sample("facebook", "photo_too_large", Fitted(|a| sized(a, MediaKind::Image, (10 << 20) + 1))),
    sample("facebook", "photo_type", Post(|a| unknown(a, MediaKind::Image))),
    sample("facebook", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample(
        "facebook",
        "cover",
        Fitted(|a| {
            let mut post = film(a);
            let cover = sized(a, MediaKind::Image, (10 << 20) + 1).media.remove(0);
            post.settings = json!({ "cover": cover.id });
            post.media.push(cover);
            post
        }),
    ),
    sample(
        "facebook",
        "collaborators_of_a_video",
        Kept(|a| with(film(a), json!({ "collaborators": ["1"] }))),
    ),
    sample("facebook", "empty_comment", Reply(|a| a.reply(" ", &["above".to_owned()]))),
    sample("facebook", "comment_too_long", Reply(|a| a.reply(&"a".repeat(8_001), &["above".to_owned()]))),
    // Instagram
    sample("instagram", "text_too_long", Post(|a| long(a, 2_201))),
    sample("instagram", "hashtags", Post(|a| a.post(&"#a ".repeat(31)))),
    sample("instagram", "mentions", Post(|a| a.post(&"@ada ".repeat(21)))),
    sample("instagram", "alt_text_too_long", Post(|a| described(a.post("a"), &"a".repeat(1001)))),
    sample("instagram", "alt_text_of_a_video", Kept(|a| described(film(a), "a film"))),
    sample(
        "instagram",
        "collaborators",
        Post(|a| with(a.post("a"), json!({ "collaborators": ["a", "b", "c", "d"] }))),
    ),
    sample(
        "instagram",
        "collaborators_of_a_story",
        Kept(|a| with(a.post(""), json!({ "media_type": "STORIES", "collaborators": ["a"] }))),
    ),
    sample("instagram", "username", Post(|a| with(a.post("a"), json!({ "collaborators": ["a b"] })))),
    sample("instagram", "setting_of_a_reel", Kept(|a| with(a.post("a"), json!({ "audio_name": "a" })))),
    sample("instagram", "time_of_the_cover", Post(|a| with(film(a), json!({ "thumb_offset": 6_000 })))),
    sample("instagram", "location", Post(|a| with(a.post("a"), json!({ "location_id": "Berlin" })))),
    sample(
        "instagram",
        "people_in_a_carousel",
        Unreachable("the adapter tags people in the carousel's items"),
    ),
    sample(
        "instagram",
        "place_of_a_person",
        Post(|a| with(a.post("a"), json!({ "user_tags": [{ "username": "a", "x": 1.5, "y": 0.5 }] }))),
    ),
    sample("instagram", "items_of_a_carousel", Kept(|a| a.post_with("many", MediaKind::Image, 11))),
    sample(
        "instagram",
        "video_too_large",
        Kept(|a| {
            with(
                PublishRequest { text: String::new(), ..sized(a, MediaKind::Video, (100 << 20) + 1) },
                json!({ "media_type": "STORIES" }),
            )
        }),
    ),
    sample("instagram", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample("instagram", "image_too_large", Fitted(|a| sized(a, MediaKind::Image, (8 << 20) + 1))),
    sample("instagram", "image_type", Post(|a| unknown(a, MediaKind::Image))),
    sample("instagram", "image_shape", Kept(|a| changed(a.post("wide"), |_| a.picture(1000, 400)))),
    sample("instagram", "empty_comment", Reply(|a| a.reply(" ", &["above".to_owned()]))),
    sample("instagram", "comment_too_long", Reply(|a| a.reply(&"a".repeat(2_201), &["above".to_owned()]))),
    // Threads
    sample("threads", "empty", Post(|a| a.post(""))),
    sample("threads", "text_too_long", Post(|a| long(a, 501))),
    sample(
        "threads",
        "links",
        Post(|a| {
            a.post("https://example.com/1 https://example.com/2 https://example.com/3 https://example.com/4 https://example.com/5 https://example.com/6")
        }),
    ),
    sample(
        "threads",
        "alt_text_too_long",
        Post(|a| described(a.post_with("a", MediaKind::Image, 1), &"a".repeat(1001))),
    ),
    sample(
        "threads",
        "attachment_beside_media",
        Post(|a| {
            with(a.post_with("a", MediaKind::Image, 1), json!({ "link_attachment": "https://example.com" }))
        }),
    ),
    sample(
        "threads",
        "two_links",
        Post(|a| {
            with(
                a.post("a"),
                json!({ "link_attachment": "https://example.com", "text_attachment": { "plaintext": "a", "link_attachment_url": "https://example.com/b" } }),
            )
        }),
    ),
    sample(
        "threads",
        "ghost_post_with_more",
        Post(|a| with(a.post("a"), json!({ "is_ghost_post": true, "topic_tag": "a" }))),
    ),
    sample("threads", "topic_tag", Post(|a| with(a.post("a"), json!({ "topic_tag": "a.b" })))),
    sample(
        "threads",
        "options_of_a_poll",
        Post(|a| {
            with(a.post("a"), json!({ "poll_attachment": { "option_a": "a", "option_b": "b".repeat(26) } }))
        }),
    ),
    sample("threads", "items_of_a_carousel", Post(|a| a.post_with("many", MediaKind::Image, 21))),
    sample("threads", "video_too_large", TooLarge(|a| said(a, MediaKind::Video, (1 << 30) + 1))),
    sample("threads", "video_type", Post(|a| unknown(a, MediaKind::Video))),
    sample("threads", "image_too_large", Fitted(|a| sized(a, MediaKind::Image, (8 << 20) + 1))),
    sample("threads", "image_type", Post(|a| unknown(a, MediaKind::Image))),
    sample(
        "threads",
        "image_shape",
        Post(|a| changed(a.post_with("wide", MediaKind::Image, 1), |_| a.picture(2200, 200))),
    ),
];
