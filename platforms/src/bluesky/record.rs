//! The record of a post, and the records that limit its replies and quotes.
//! <https://docs.bsky.app/docs/advanced-guides/posts>
//!
//! A record is made from the post and the checkpoint alone, so that a repeated call sends the same bytes, and a look-up
//! can compare what it finds under the key.

use super::{Card, POST, ReplyRule, Settings, Step, captions, language_tag};
use crate::{Media, MediaKind, PublishRequest, Result, Session, facets::Meaning, required};
use chrono::SecondsFormat;
use domain::{Failure, TargetId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Record that limits the replies to a post.
const THREADGATE: &str = "app.bsky.feed.threadgate";
/// Record that limits the quotes of a post.
const POSTGATE: &str = "app.bsky.feed.postgate";

/// Returns the record of a post. Deterministic for a post and a step.
pub(super) fn record(post: &PublishRequest, settings: &Settings, step: &Step) -> Value {
    let created_at = step.created_at.unwrap_or(post.created_at);
    let (text, spans) = settings.shown(&post.text);
    let mut record = json!({
        "$type": POST,
        "text": text,
        "createdAt": created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
    });
    let facets: Vec<_> = spans
        .into_iter()
        .filter_map(|span| {
            let feature = match span.meaning {
                Meaning::Link(uri) => json!({ "$type": "app.bsky.richtext.facet#link", "uri": uri }),
                Meaning::Tag(tag) => json!({ "$type": "app.bsky.richtext.facet#tag", "tag": tag }),
                // An unknown handle stays plain text.
                Meaning::Mention(handle) => {
                    let did = step.mentions.get(&handle)?.as_ref()?;
                    json!({ "$type": "app.bsky.richtext.facet#mention", "did": did })
                }
            };
            Some(json!({
                "index": { "byteStart": span.range.start, "byteEnd": span.range.end },
                "features": [feature],
            }))
        })
        .collect();
    if !facets.is_empty() {
        record["facets"] = json!(facets);
    }
    if let Some(languages) = settings.languages.as_ref().filter(|all| !all.is_empty()) {
        record["langs"] = languages.iter().map(|language| language_tag(language)).collect();
    }
    if let Some(labels) = settings.labels.as_ref().filter(|all| !all.is_empty()) {
        let values: Vec<_> = labels.iter().map(|label| json!({ "val": label })).collect();
        record["labels"] = json!({ "$type": "com.atproto.label.defs#selfLabels", "values": values });
    }
    if let Some(reply) = &step.reply {
        record["reply"] = json!(reply);
    } else if let Some(tags) = settings.tags.as_ref().filter(|all| !all.is_empty()) {
        record["tags"] = json!(tags);
    }
    if let Some(embed) = embed(post, settings, step) {
        record["embed"] = embed;
    }
    record
}

/// Returns the records that limit replies and quotes, by their collections. Deterministic for a post and a step.
pub(super) fn gate_records(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
) -> Vec<(&'static str, Value)> {
    let uri = format!("at://{}/{POST}/{}", cx.account.network_unique_id, record_key(post));
    let at = step.created_at.unwrap_or(post.created_at).to_rfc3339_opts(SecondsFormat::Millis, true);
    let gate = |collection: &'static str, name: &str, rules: Value| {
        let mut record = json!({ "$type": collection, "post": uri, "createdAt": at });
        record[name] = rules;
        (collection, record)
    };
    let replies = settings.allow_replies_from.as_ref().map(|rules| {
        let rule = |rule: &ReplyRule| {
            let name = match rule {
                ReplyRule::Mentioned => "mentionRule",
                ReplyRule::Followers => "followerRule",
                ReplyRule::Following => "followingRule",
            };
            json!({ "$type": format!("{THREADGATE}#{name}") })
        };
        gate(THREADGATE, "allow", rules.iter().map(rule).collect())
    });
    let quotes = settings
        .disable_quotes
        .filter(|is_disabled| *is_disabled)
        .map(|_| gate(POSTGATE, "embeddingRules", json!([{ "$type": format!("{POSTGATE}#disableRule") }])));
    replies.into_iter().chain(quotes).collect()
}

/// Returns the embed below the text: media, or a link's card, or a quoted post, alone or with one of these.
fn embed(post: &PublishRequest, settings: &Settings, step: &Step) -> Option<Value> {
    let link = settings.link.as_ref().filter(|_| post.reply_to.is_none());
    let media = match (post.media.first(), link) {
        (Some(first), _) if first.kind != MediaKind::Image => Some(video_embed(first, step)),
        (_, Some(link)) => Some(link_card(link, step)),
        (Some(_), None) => Some(images_embed(&post.media, step)),
        (None, None) => None,
    };
    match (&step.quote, media) {
        (None, media) => media,
        (Some(quote), None) => Some(json!({ "$type": "app.bsky.embed.record", "record": quote })),
        (Some(quote), Some(media)) => Some(json!({
            "$type": "app.bsky.embed.recordWithMedia",
            "record": { "$type": "app.bsky.embed.record", "record": quote },
            "media": media,
        })),
    }
}

/// Returns the embed of a link, with the post's image as its picture.
fn link_card(link: &Card, step: &Step) -> Value {
    let mut external = json!({
        "uri": link.url,
        "title": link.title.as_deref().unwrap_or_default(),
        "description": link.description.as_deref().unwrap_or_default(),
    });
    if let Some(thumb) = step.blobs.first() {
        external["thumb"] = thumb.ticket.value().clone();
    }
    json!({ "$type": "app.bsky.embed.external", "external": external })
}

/// Returns the embed of the images: up to four side by side, more as a gallery.
fn images_embed(media: &[Media], step: &Step) -> Value {
    let is_gallery = media.len() > 4;
    let items = media.iter().zip(&step.blobs).map(|(media, blob)| {
        let mut item =
            json!({ "image": blob.ticket.value(), "alt": media.alt_text.as_deref().unwrap_or_default() });
        if is_gallery {
            item["$type"] = json!("app.bsky.embed.gallery#image");
        }
        // A gallery requires an aspect ratio.
        let ratio = aspect_ratio(media).or_else(|| is_gallery.then(|| json!({ "width": 1, "height": 1 })));
        if let Some(ratio) = ratio {
            item["aspectRatio"] = ratio;
        }
        item
    });
    let items: Vec<_> = items.collect();
    if is_gallery {
        json!({ "$type": "app.bsky.embed.gallery", "items": items })
    } else {
        json!({ "$type": "app.bsky.embed.images", "images": items })
    }
}

fn video_embed(media: &Media, step: &Step) -> Value {
    let blob = step.blobs.first().map_or(&Value::Null, |blob| blob.ticket.value());
    let mut embed = json!({ "$type": "app.bsky.embed.video", "video": blob });
    if media.kind == MediaKind::Gif {
        embed["presentation"] = json!("gif");
    }
    if !step.captions.is_empty() {
        embed["captions"] = step.captions.iter().map(captions::Track::value).collect();
    }
    if let Some(alt) = media.alt_text.as_deref().filter(|alt| !alt.is_empty()) {
        embed["alt"] = json!(alt);
    }
    if let Some(ratio) = aspect_ratio(media) {
        embed["aspectRatio"] = ratio;
    }
    embed
}

fn aspect_ratio(media: &Media) -> Option<Value> {
    let (width, height) = (media.width.filter(|w| *w > 0)?, media.height.filter(|h| *h > 0)?);
    Some(json!({ "width": width, "height": height }))
}

/// Returns true if the record under our key is ours. The server may have added members to it.
pub(super) fn is_same(found: &Value, ours: &Value) -> bool {
    ["text", "reply"].iter().all(|key| found[*key] == ours[*key])
}

/// Returns the record key: a timestamp identifier, as the lexicon of posts demands, made from the target
/// alone. Its microseconds are the target's millisecond and, below it, the position; its clock
/// identifier is from the target's random bits. <https://atproto.com/specs/tid>
pub(super) fn record_key(post: &PublishRequest) -> String {
    const ALPHABET: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
    let TargetId(target) = post.target;
    let random = target.as_u128() as u64;
    // 11 positions at most, so the keys of 90 targets of one millisecond do not overlap.
    let below = (random >> 10) % 90 * 11 + u64::from(post.position) % 11;
    let tid = ((unix_millis(target) * 1000 + below) << 10 | (random & 0x3ff)) & (u64::MAX >> 1);
    (0..13).rev().map(|digit| ALPHABET[(tid >> (digit * 5)) as usize & 31] as char).collect()
}

/// Returns the timestamp of a UUID of version 7.
fn unix_millis(id: Uuid) -> u64 {
    (id.as_u128() >> 80) as u64
}

/// Returns the repository and the record key of an `at://` address.
pub(super) fn split_uri(uri: &str) -> Result<(&str, &str)> {
    let mut parts = uri.strip_prefix("at://").unwrap_or_default().split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(repo), Some(_), Some(rkey), None) if !repo.is_empty() && !rkey.is_empty() => Ok((repo, rkey)),
        _ => Err(Failure::rejected(400, format!("{uri} is no address of a post"))),
    }
}

/// Returns one of the account's own posts, read from the account's server.
pub(super) async fn find_record(cx: &Session<'_>, home: &str, rkey: &str) -> Result<Option<Found>> {
    let reply = cx
        .get(format!("{home}/xrpc/com.atproto.repo.getRecord"))
        .query(&[("repo", cx.account.network_unique_id.as_str()), ("collection", POST), ("rkey", rkey)])
        .send_raw()
        .await?;
    if reply.body["error"] == "RecordNotFound" {
        return Ok(None);
    }
    reply.into_result(cx.platform)?.read().map(Some)
}

/// Returns a reply's reference to its parent: address and hash of the content.
pub(super) async fn strong_ref(cx: &Session<'_>, home: &str, uri: &str) -> Result<StrongRef> {
    match find_record(cx, home, split_uri(uri)?.1).await? {
        Some(Found { uri, cid: Some(cid), .. }) => Ok(StrongRef { uri, cid }),
        _ => Err(Failure::rejected(404, format!("{uri}, which this replies to, is not there any more"))),
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Reference {
    pub(super) root: StrongRef,
    pub(super) parent: StrongRef,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StrongRef {
    #[serde(deserialize_with = "required::id")]
    pub(super) uri: String,
    #[serde(deserialize_with = "required::id")]
    pub(super) cid: String,
}

#[derive(Deserialize)]
pub(super) struct Found {
    #[serde(deserialize_with = "required::id")]
    pub(super) uri: String,
    pub(super) cid: Option<String>,
    pub(super) value: Value,
}

#[cfg(test)]
mod tests {
    use super::super::video::Blob;
    use super::*;
    use crate::{ReplyTo, upload::Uploaded};
    use chrono::DateTime;

    fn post(text: &str) -> PublishRequest {
        PublishRequest {
            target: TargetId("01936b3e-5c00-7abc-8def-0123456789ab".parse().unwrap()),
            text: text.to_owned(),
            created_at: DateTime::from_timestamp(1_700_000_000, 5_000_000).unwrap(),
            ..PublishRequest::of_test()
        }
    }

    fn image() -> Media {
        Media {
            id: Uuid::nil(),
            kind: MediaKind::Image,
            mime: "image/png".into(),
            filename: "a.png".into(),
            size_bytes: 1,
            width: Some(2),
            height: Some(1),
            frames: None,
            duration: None,
            alt_text: Some("a dog".into()),
            facts: None,
            rendition: None,
        }
    }

    #[test]
    fn keys_are_timestamp_identifiers_in_the_order_of_the_thread() {
        let key = |position| record_key(&PublishRequest { position, ..post("") });
        let keys: Vec<_> = (0..10).map(key).collect();
        assert!(keys.is_sorted() && keys.iter().all(|key| key.len() == 13));
        let first = |key: &String| "234567abcdefghij".contains(&key[..1]);
        assert!(keys.iter().all(first));
        assert!(keys.iter().all(|key| key.chars().all(|c| "234567abcdefghijklmnopqrstuvwxyz".contains(c))));
        let mut all = keys.clone();
        all.dedup();
        assert_eq!((all.len(), &keys[0]), (10, &record_key(&post("other text"))));
    }

    fn record_of(post: &PublishRequest, step: &Step) -> Value {
        record(post, &post.settings().expect("the settings of a test"), step)
    }

    #[test]
    fn facets_mark_links_tags_and_known_handles_by_byte_offset() {
        let mentions = [("a.test".into(), Some("did:plc:a".into())), ("b.test".into(), None)];
        let step = Step { mentions: mentions.into(), ..Step::default() };
        let record = record_of(&post("ä @a.test @b.test #t https://e.org."), &step);
        assert_eq!(
            record,
            json!({
                "$type": "app.bsky.feed.post",
                "text": "ä @a.test @b.test #t https://e.org.",
                "createdAt": "2023-11-14T22:13:20.005Z",
                "facets": [
                    {
                        "index": { "byteStart": 3, "byteEnd": 10 },
                        "features": [{ "$type": "app.bsky.richtext.facet#mention", "did": "did:plc:a" }],
                    },
                    {
                        "index": { "byteStart": 19, "byteEnd": 21 },
                        "features": [{ "$type": "app.bsky.richtext.facet#tag", "tag": "t" }],
                    },
                    {
                        "index": { "byteStart": 22, "byteEnd": 35 },
                        "features": [{ "$type": "app.bsky.richtext.facet#link", "uri": "https://e.org" }],
                    },
                ],
            })
        );
    }

    #[test]
    fn settings_apply_to_the_first_post_of_a_thread() {
        let settings = json!({
            "languages": ["en"], "labels": ["nudity"], "tags": ["t"],
            "link": { "url": "https://e.org", "title": "E" }, "unknown": true,
        });
        let quote = StrongRef { uri: "at://did:plc:a/app.bsky.feed.post/1".into(), cid: "bafy".into() };
        let main = PublishRequest { settings, ..post("") };
        let made = record_of(&main, &Step { quote: Some(quote.clone()), ..Step::default() });
        assert_eq!(made["langs"], json!(["en"]));
        assert_eq!(made["labels"]["values"], json!([{ "val": "nudity" }]));
        assert_eq!(made["tags"], json!(["t"]));
        assert_eq!(made["embed"]["$type"], "app.bsky.embed.recordWithMedia");
        assert_eq!(
            made["embed"]["media"]["external"],
            json!({ "uri": "https://e.org", "title": "E", "description": "" })
        );
        let reply = PublishRequest {
            reply_to: Some(ReplyTo { root: quote.uri.clone(), parent: quote.uri.clone() }),
            ..main
        };
        let step = Step { reply: Some(Reference { root: quote.clone(), parent: quote }), ..Step::default() };
        let made = record_of(&reply, &step);
        assert_eq!((&made["tags"], &made["embed"]), (&Value::Null, &Value::Null));
        assert_eq!(made["reply"]["root"]["cid"], "bafy");
    }

    #[test]
    fn more_than_four_images_are_a_gallery() {
        let of = |count: usize| {
            let blob = Uploaded::of_test(Uuid::nil(), Blob::Ready(json!({ "$type": "blob" })));
            let step = Step { blobs: vec![blob; count], ..Step::default() };
            record_of(&PublishRequest { media: vec![image(); count], ..post("") }, &step)["embed"].clone()
        };
        assert_eq!(of(4)["$type"], "app.bsky.embed.images");
        assert_eq!(of(1)["images"][0]["alt"], "a dog");
        let gallery = of(5);
        assert_eq!(gallery["$type"], "app.bsky.embed.gallery");
        assert_eq!(gallery["items"][4]["aspectRatio"], json!({ "width": 2, "height": 1 }));
    }
}
