//! Validation of a post against a platform's limits, before it is sent there.
//!
//! Only a definite violation of the capabilities table is an error; an unknown property of a medium is not.
//! Creating a post and validating one both use this module, so they can't disagree.

use crate::{
    Adapter, AltTextLimit, Content, Media, MediaKind, MediaLimit, TextLimit, fit,
    schema::{Mismatch, Schema},
    text::clip,
};
use chrono::{DateTime, Utc};
use domain::{Fit, Shaping};
pub use domain::{Issue, Severity};
use serde_json::{Value, json};
use std::fmt::Display;

/// Maximum number of issues per platform.
const MAX_ISSUES: usize = 100;
/// Maximum length of a message, in characters.
const MAX_MESSAGE_CHARACTERS: usize = 500;

/// A container as the author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct ContainerContent<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its media.
    pub media: &'a [Media],
}

/// The properties of an account that decide what it can publish. By default they restrict nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountKind<'a> {
    /// Type of account, for example `page`.
    pub account_type: &'a str,
    /// Scopes that were granted; none if the platform names none.
    pub scopes: &'a [String],
}

/// Validates a post for one platform; `settings` is the platform's `config` block.
pub fn check(platform: &Adapter, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
    check_for(platform, AccountKind::default(), containers, settings)
}

/// Validates a post for an account of this kind.
pub fn check_for(
    platform: &Adapter,
    account: AccountKind<'_>,
    containers: &[ContainerContent<'_>],
    settings: &Value,
) -> Vec<Issue> {
    let mut found = IssueList { platform: platform.id, issues: Vec::new() };
    // Containers beyond the account's maximum are not published there, so they are not checked further.
    let mismatches = self::settings(platform, settings);
    let valid = without(settings, &mismatches);
    let (containers, left_out) =
        containers.split_at(containers.len().min(platform.containers(account.scopes, &valid)));
    if !left_out.is_empty() {
        let message = platform.left_out(account.scopes, left_out.len());
        found.warning("replies_not_supported", vec![json!("containers"), json!(containers.len())], message);
    }
    let fitted = check_containers(&mut found, platform, account, containers, 0, &valid);
    let containers: Vec<_> = containers
        .iter()
        .zip(&fitted)
        .map(|(container, media)| ContainerContent { media, ..*container })
        .collect();
    found.issues.extend(mismatches);
    if let Some((setting, message)) = platform.uncovered(&valid, account.scopes) {
        let path = vec![json!("config"), json!(platform.id), json!(setting)];
        found.error("scope_missing", path, message);
    }
    let at = [json!("config"), json!(platform.id)];
    excludes(&mut found, Schema::of(platform).document(), settings, &containers, &at);
    unused(&mut found, platform, account, &containers, &valid);
    found.finish(|| platform.publisher.validate(&containers, &valid))
}

/// Validates a post that replies to a live one, for an account of this kind: all of its containers are replies.
pub fn check_reply(
    platform: &Adapter,
    account: AccountKind<'_>,
    containers: &[ContainerContent<'_>],
    settings: &Value,
) -> Vec<Issue> {
    let mut found = IssueList { platform: platform.id, issues: Vec::new() };
    if let Some(message) = platform.takes_no_reply(account.scopes) {
        found.error("replies_not_supported", vec![json!("reply_to")], message);
        return found.issues;
    }
    let count = containers.len().min(platform.containers(account.scopes, &Value::Null) - 1);
    if count < containers.len() {
        let path = vec![json!("containers"), json!(count)];
        found.error("replies_not_supported", path, "takes one container in a reply to a live post");
    }
    let containers = &containers[..count];
    let mismatches = self::settings(platform, settings);
    let valid = without(settings, &mismatches);
    let fitted = check_containers(&mut found, platform, account, containers, 1, &valid);
    let containers: Vec<_> = containers
        .iter()
        .zip(&fitted)
        .map(|(container, media)| ContainerContent { media, ..*container })
        .collect();
    found.issues.extend(mismatches);
    let given = valid.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    for (setting, value) in given {
        let part = &Schema::of(platform).document()["properties"][setting];
        if part.is_object() && !platform.limits.reply_settings.contains(&setting.as_str()) {
            let path = vec![json!("config"), json!(platform.id), json!(setting)];
            let message = format!("uses {setting} for a post of its own, and not for a reply");
            found.add(loss(part, value), "setting_not_for_replies", path, message);
        }
    }
    unused(&mut found, platform, account, &containers, &of_replies(platform, &valid));
    found.finish(|| platform.publisher.validate_replies(&containers, &valid))
}

/// Returns the settings that apply to replies.
fn of_replies(platform: &Adapter, settings: &Value) -> Value {
    let mut settings = settings.clone();
    if let Some(members) = settings.as_object_mut() {
        members.retain(|setting, _| platform.limits.reply_settings.contains(&setting.as_str()));
    }
    settings
}

/// Compares containers with the limits of a main post or of replies; `first` is the position of the first one in its
/// thread. Returns their media as they are published.
fn check_containers(
    found: &mut IssueList,
    platform: &Adapter,
    account: AccountKind<'_>,
    containers: &[ContainerContent<'_>],
    first: usize,
    settings: &Value,
) -> Vec<Vec<Media>> {
    let can = &platform.limits;
    // Each container of a series is checked as the first one is.
    let is_series = first == 0 && platform.publisher.is_series(settings);
    let place = |index: usize| if is_series { 0 } else { first + index };
    let fitted: Vec<_> = (containers.iter().enumerate())
        .map(|(index, container)| {
            fit_media(found, platform, (index, place(index)), settings, container.media)
        })
        .collect();
    for (index, (container, media)) in containers.iter().zip(&fitted).enumerate() {
        let container = &ContainerContent { media, ..*container };
        let at = |rest: &[Value]| [&[json!("containers"), json!(index)], rest].concat();
        let main = ContainerRules {
            text: platform.text_limit(account.account_type),
            forbidden: can.forbidden,
            content: can.content,
            needs: can.required_media,
            media: platform.media_limits(account.account_type, place(index), settings),
            fittable: platform.is_fittable(place(index), settings, media),
            mixed_media: can.mixed_media,
            alt_text: can.alt_text.as_ref(),
        };
        let part = match (place(index), &can.comment) {
            (0, _) | (_, None) => main,
            (_, Some(comment)) => ContainerRules {
                text: &comment.text,
                forbidden: &[],
                content: if comment.media.is_empty() { Content::Text } else { Content::TextOrMedia },
                needs: None,
                mixed_media: false,
                alt_text: main.alt_text.filter(|_| comment.has_alt_text),
                ..main
            },
        };
        let sent = platform.publisher.sent_text(place(index), container.text, settings);
        text(found, &part, container, &sent, at(&[json!("content")]));
        self::media(found, &part, container, &at);
    }
    let media = || containers.iter().flat_map(|container| container.media);
    let is_picture = |medium: &Media| matches!(medium.kind, MediaKind::Image | MediaKind::Gif);
    if settings[fit::SETTING].is_string() && !media().any(is_picture) {
        let path = [json!("config"), json!(platform.id), json!(fit::SETTING)];
        found.warning("setting_not_used", path.to_vec(), "fits pictures, and there is none");
    }
    fitted
}

/// Returns the media of a container as they are published, and tells which pictures are fitted. `place` is its position
/// in its thread.
fn fit_media(
    found: &mut IssueList,
    platform: &Adapter,
    (container, place): (usize, usize),
    settings: &Value,
    media: &[Media],
) -> Vec<Media> {
    let fits = platform.fits(place, settings, media);
    let mut fit = |(index, (medium, fit)): (usize, (&Media, Option<Fit>))| {
        let path = vec![json!("containers"), json!(container), json!("media"), json!(index)];
        if let Some(why) = medium.undecodable() {
            undecodable(found, medium.kind, fit.is_some(), why, path.clone());
        }
        let facts = medium.facts.as_ref();
        if let Some(why) = facts.and_then(|facts| facts.uncleanable.as_ref()).filter(|_| fit.is_none()) {
            let message = format!(
                "gets this {} only if the media settings keep metadata in files ({why})",
                medium.kind
            );
            found.warning("media_uncleanable", path.clone(), message);
        }
        let Some(fit) = fit else { return medium.clone() };
        if medium.undecodable().is_none() {
            found.warning("media_fitted", path, told(medium, &fit));
        }
        fit::fitted(medium, &fit)
    };
    media.iter().zip(fits).enumerate().map(&mut fit).collect()
}

/// Reports a picture that can't be decoded here: nothing can be made of it, and a platform may fail to show it, too.
fn undecodable(found: &mut IssueList, kind: MediaKind, is_fitted: bool, why: &str, path: Vec<Value>) {
    let remedy = "save it again, as JPEG or PNG";
    match is_fitted {
        true => {
            let message = format!("needs this {kind} fitted, and it can't be decoded ({why}); {remedy}");
            found.error("media_undecodable", path, message);
        }
        false => {
            let message =
                format!("may fail to show this {kind}, which can't be decoded here ({why}); {remedy}");
            found.warning("media_undecodable", path, message);
        }
    }
}

/// Says what a picture becomes; the subject is the platform.
fn told(medium: &Media, fit: &Fit) -> String {
    let (kind, Fit { width, height, max_bytes, .. }) = (medium.kind, *fit);
    let own = (medium.width.unwrap_or(0), medium.height.unwrap_or(0));
    let limits = format!("{width}x{height} pixels and {max_bytes} bytes at most");
    let shaping = fit.shaping.filter(|_| !fit::have_one_shape(own, (width, height)));
    match (shaping, fit.kind == kind) {
        (Some(Shaping::Crop), _) => format!("gets the middle of this {kind}: {limits}"),
        (Some(Shaping::Pad), _) => format!("gets this {kind} on a white ground: {limits}"),
        (None, true) => format!("gets this {kind} fitted: {limits}"),
        (None, false) => {
            let kind = if medium.mime == "image/gif" { kind.as_str() } else { "animation of this type" };
            format!("takes no {kind} and gets a still image: {limits}")
        }
    }
}

/// Validates a platform's `config` block by itself.
pub fn settings(platform: &Adapter, settings: &Value) -> Vec<Issue> {
    let mut found = IssueList { platform: platform.id, issues: Vec::new() };
    let at = [json!("config"), json!(platform.id)];
    if !settings.is_null() {
        for Mismatch { path, message } in Schema::of(platform).validate(settings, &at, MAX_ISSUES) {
            found.error("setting_invalid", path, message);
        }
    }
    let properties = &Schema::of(platform).document()["properties"];
    for (setting, value) in settings.as_object().into_iter().flatten() {
        let is_told = found.issues.iter().any(|issue| issue.path.get(2).is_some_and(|at| at == setting));
        if properties[setting].is_object() && !is_told {
            for (steps, wrong) in control_characters_in(value) {
                let path =
                    at.iter().cloned().chain([json!(setting)]).chain(steps.into_iter().rev()).collect();
                found.error("setting_invalid", path, format!("takes no `{}` in {setting}", shown(wrong)));
            }
        }
    }
    found.issues
}

/// Returns the settings that are times at which the platform shows a post which it has got, each with its time.
pub fn times<'a>(platform: &Adapter, settings: &'a Value) -> Vec<(&'a str, DateTime<Utc>)> {
    let properties = &Schema::of(platform).document()["properties"];
    let time = |(name, value): (&'a String, &'a Value)| {
        let text = value.as_str().filter(|_| properties[name]["format"] == "date-time")?;
        Some((name.as_str(), text.parse().ok()?))
    };
    settings.as_object().into_iter().flatten().filter_map(time).collect()
}

/// Returns the first control character of each text in a value, after the steps that lead to its text, the last one first.
fn control_characters_in(value: &Value) -> Vec<(Vec<Value>, char)> {
    let below = |(step, inner): (Value, &Value)| {
        let mut found = control_characters_in(inner);
        found.iter_mut().for_each(|(steps, _)| steps.push(step.clone()));
        found
    };
    match value {
        Value::String(text) => control_character(text).map(|wrong| (Vec::new(), wrong)).into_iter().collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (json!(at), item)).flat_map(below).collect()
        }
        Value::Object(members) => {
            members.iter().map(|(key, member)| (json!(key), member)).flat_map(below).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the first control character of a text that is none of white space. Platforms refuse them, or drop them without a
/// word.
pub fn control_character(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control() && !"\t\n\r".contains(*c))
}

/// Returns a character as a message shows it.
fn shown(c: char) -> String {
    if c.is_control() { format!("U+{:04X}", u32::from(c)) } else { c.into() }
}

/// Returns the settings without the members that have issues, so that the adapter can read the others.
fn without(settings: &Value, issues: &[Issue]) -> Value {
    let Value::Object(members) = settings else { return json!({}) };
    let is_valid = |key: &str| !issues.iter().any(|issue| issue.path.get(2).is_none_or(|at| at == key));
    let valid = members.iter().filter(|(key, _)| is_valid(key));
    Value::Object(valid.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Returns the JSON Schema of a platform's `config` block: the adapter's own, with a maximum for each text
/// and list that it leaves unbounded.
pub fn schema(platform: &Adapter) -> Value {
    Schema::of(platform).document().clone()
}

/// Creates the warning that the alt text of the main container's medium at `index` is left out.
pub(crate) fn alt_text_left_out(index: usize, message: String) -> Issue {
    let path = vec![json!("containers"), json!(0), json!("media"), json!(index), json!("alt_text")];
    Issue { severity: Severity::Warning, code: "alt_text_not_supported".to_owned(), message, path }
}

struct IssueList {
    platform: &'static str,
    issues: Vec<Issue>,
}

impl IssueList {
    fn error(&mut self, code: &str, path: Vec<Value>, message: impl Display) {
        self.add(Severity::Error, code, path, message);
    }

    fn warning(&mut self, code: &str, path: Vec<Value>, message: impl Display) {
        self.add(Severity::Warning, code, path, message);
    }

    fn add(&mut self, severity: Severity, code: &str, path: Vec<Value>, message: impl Display) {
        if self.issues.len() == MAX_ISSUES {
            return;
        }
        let message = clip(&format!("{} {message}", self.platform), MAX_MESSAGE_CHARACTERS);
        self.issues.push(Issue { severity, code: code.to_owned(), message, path });
    }

    /// Returns the issues with those that the adapter finds.
    fn finish(mut self, validate: impl FnOnce() -> Vec<Issue>) -> Vec<Issue> {
        // The adapter would report the same issue again.
        let is_told = |issue: &Issue| issue.severity == Severity::Error && issue.code.starts_with("media_");
        if !self.issues.iter().any(is_told) {
            let clipped =
                |issue: Issue| Issue { message: clip(&issue.message, MAX_MESSAGE_CHARACTERS), ..issue };
            self.issues.extend(validate().into_iter().map(clipped));
        }
        self.issues.truncate(MAX_ISSUES);
        self.issues
    }
}

/// The limits that apply to one container.
struct ContainerRules<'a> {
    text: &'a TextLimit,
    forbidden: &'a [char],
    content: Content,
    needs: Option<MediaKind>,
    media: &'a [MediaLimit],
    /// For each medium, whether the setting `fit` would give it a shape and a size that are taken.
    fittable: Vec<bool>,
    mixed_media: bool,
    alt_text: Option<&'a AltTextLimit>,
}

/// Compares a text with its limits, of which lengths count it as it is sent.
fn text(
    found: &mut IssueList,
    can: &ContainerRules<'_>,
    container: &ContainerContent<'_>,
    sent: &str,
    path: Vec<Value>,
) {
    let is_blank = container.text.trim().is_empty();
    match can.content {
        Content::Text if is_blank => {
            found.error("text_required", path.clone(), "needs a text, and there is none")
        }
        Content::TextOrMedia if is_blank && container.media.is_empty() => {
            found.error("content_required", path.clone(), "needs a text or media, and there is neither");
        }
        _ => {}
    }
    let forbidden = container.text.chars().find(|c| can.forbidden.contains(c));
    if let Some(wrong) = forbidden.or_else(|| control_character(container.text)) {
        let message = format!("takes no `{}` in a text", shown(wrong));
        found.error("text_character_not_supported", path.clone(), message);
    }
    let limit = can.text;
    let as_sent = if sent.len() > container.text.len() { " as it is sent" } else { "" };
    let Some(length) = limit.measure(sent) else {
        let length = sent.len();
        let message = format!("takes {} {}, and the text has {length} bytes{as_sent}", limit.max, limit.unit);
        return found.error("text_too_long", path, message);
    };
    let kind = container.media.first().map(|medium| medium.kind);
    let beside = can.media.iter().find(|limit| Some(limit.kind) == kind).and_then(|limit| limit.max_text);
    let max = beside.unwrap_or(limit.max);
    if length > max {
        let message = format!("takes {max} {}, and the text has {length}{as_sent}", limit.unit);
        found.error("text_too_long", path.clone(), message);
    } else if let Some(usual) = limit.usual.filter(|usual| length > *usual) {
        let message = format!(
            "takes {usual} {} of every account and more of some, and the text has {length}",
            limit.unit
        );
        found.warning("text_may_be_too_long", path.clone(), message);
    }
    if let Some(max) = limit.max_bytes.filter(|max| sent.len() > *max) {
        let message = format!("takes {max} bytes of text, and the text has {}{as_sent}", sent.len());
        found.error("text_too_long", path, message);
    }
}

fn media(
    found: &mut IssueList,
    can: &ContainerRules<'_>,
    container: &ContainerContent<'_>,
    at: &dyn Fn(&[Value]) -> Vec<Value>,
) {
    let media = container.media;
    if can.content == Content::Media && media.is_empty() {
        found.error("media_required", at(&[json!("media")]), "needs media, and there are none");
    }
    if let Some(needed) =
        can.needs.filter(|needed| !media.is_empty() && !media.iter().any(|medium| medium.kind == *needed))
    {
        let message = format!("needs a medium of kind {needed}, and there is none");
        found.error("media_required", at(&[json!("media")]), message);
    }
    let is_mixed = media.first().is_some_and(|first| media.iter().any(|other| other.kind != first.kind));
    if is_mixed && !can.mixed_media {
        let message = "takes media of one kind at a time, and the container mixes kinds";
        found.error("media_mixed", at(&[json!("media")]), message);
    }
    for limit in can.media {
        let count = media.iter().filter(|medium| medium.kind == limit.kind).count();
        if count > 0 && !limit.count.contains(&count) {
            let (min, max) = (limit.count.start(), limit.count.end());
            let range = if *min > 1 { format!("{min} to {max}") } else { format!("at most {max}") };
            let message = format!("takes {range} of kind {}, and there are {count}", limit.kind);
            let code = if count > *max { "media_too_many" } else { "media_too_few" };
            found.error(code, at(&[json!("media")]), message);
        }
    }
    for (index, medium) in media.iter().enumerate() {
        let path = at(&[json!("media"), json!(index)]);
        match can.media.iter().find(|limit| limit.kind == medium.kind) {
            None => {
                let message = format!("takes no media of kind {}", medium.kind);
                found.error("media_kind_not_supported", path.clone(), message);
            }
            Some(limit) => {
                let is_fittable = can.fittable.get(index) == Some(&true);
                one(found, limit, medium, if is_fittable { fit::REMEDY } else { "" }, &path);
            }
        }
        if let Some(alt) = medium.alt_text.as_deref().filter(|alt| !alt.is_empty()) {
            let path = [path.as_slice(), &[json!("alt_text")]].concat();
            let length = alt.chars().count();
            if let Some(wrong) = control_character(alt).filter(|_| can.alt_text.is_some()) {
                let message = format!("takes no `{}` in an alt text", shown(wrong));
                found.error("text_character_not_supported", path.clone(), message);
            }
            match can.alt_text {
                None => found.warning("alt_text_not_supported", path, "shows this medium without alt text"),
                Some(limit) if length > limit.max => {
                    let max = limit.max;
                    let message = format!("takes {max} characters of alt text, and there are {length}");
                    found.error("alt_text_too_long", path, message);
                }
                Some(limit) if !limit.kinds.contains(&medium.kind) => {
                    let message = format!("shows no alt text of kind {}", medium.kind);
                    found.warning("alt_text_not_supported", path, message);
                }
                Some(_) => {}
            }
        }
    }
}

/// Compares one medium with the limits of its kind; `remedy` ends a message about its shape or its minimum size.
fn one(found: &mut IssueList, limit: &MediaLimit, medium: &Media, remedy: &str, path: &[Value]) {
    let kind = limit.kind;
    if !limit.mimes.contains(&medium.mime.as_str()) {
        let message = format!("takes {kind} as {}, and this is {}", limit.mimes.join(", "), medium.mime);
        found.error("media_type_not_supported", path.to_vec(), message);
    }
    let unscaled = unscaled(medium);
    if medium.size_bytes > limit.max_bytes {
        let message = format!(
            "takes {kind} of {} bytes, and this has {}{unscaled}",
            limit.max_bytes, medium.size_bytes
        );
        found.error("media_too_large", path.to_vec(), message);
    }
    if medium.size_bytes < limit.min_bytes {
        let message = format!(
            "takes {kind} of at least {} bytes, and this has {}{remedy}",
            limit.min_bytes, medium.size_bytes
        );
        found.error("media_too_small", path.to_vec(), message);
    }
    if let (Some(range), Some(duration)) = (&limit.duration, medium.duration)
        && !range.contains(&duration)
    {
        let (min, max) = (range.start().as_secs_f64(), range.end().as_secs_f64());
        let message =
            format!("takes {kind} of {min} to {max} seconds, and this has {}", duration.as_secs_f64());
        found.error("media_duration", path.to_vec(), message);
    } else if let (Some(usual), Some(duration)) = (limit.usual_duration, medium.duration)
        && duration > usual
    {
        let message = format!(
            "takes {kind} of up to {} seconds for certain and maybe longer ones, and this has {}",
            usual.as_secs_f64(),
            duration.as_secs_f64()
        );
        found.warning("media_duration", path.to_vec(), message);
    }
    encoding(found, limit, medium, path);
    let (Some(width), Some(height)) = (medium.width, medium.height) else { return };
    if let Some((long, short)) = &limit.pixels
        && !(long.contains(&width.max(height)) && short.contains(&width.min(height)))
    {
        let least = format!("{}x{}", long.start(), short.start());
        let range = match (long.end(), short.end()) {
            (&u32::MAX, &u32::MAX) => format!("at least {least}"),
            (long, short) => format!("{least} to {long}x{short}"),
        };
        let message = format!(
            "takes {kind} of {range} pixels, upright or across, and this has {width}x{height}{unscaled}{remedy}"
        );
        found.error("media_dimensions", path.to_vec(), message);
    }
    if let (Some(max), Some(frames)) = (limit.max_frames, medium.frames)
        && frames > max
    {
        let message = format!("takes {kind} of {max} frames, and this has {frames}");
        found.error("media_dimensions", path.to_vec(), message);
    }
    if let (Some(max), Some(pixels)) = (limit.max_frame_pixels, medium.frame_pixels())
        && pixels > max
    {
        let message = format!("takes {kind} of {max} pixels in all frames together, and this has {pixels}");
        found.error("media_dimensions", path.to_vec(), message);
    }
    let pixels = u64::from(width) * u64::from(height);
    if let Some(max) = limit.max_pixels.filter(|max| pixels > *max) {
        let message = format!("takes {kind} of {max} pixels, and this has {pixels}{unscaled}");
        found.error("media_dimensions", path.to_vec(), message);
    }
    if let Some(max) = limit.max_width.filter(|max| width > *max) {
        let message = format!("takes {kind} up to {max} pixels wide, and this has {width}x{height}");
        found.error("media_dimensions", path.to_vec(), message);
    }
    if let Some(range) = &limit.aspect_ratio
        && height > 0
        && !range.contains(&(f64::from(width) / f64::from(height)))
    {
        let ratio = f64::from(width) / f64::from(height);
        let message = format!(
            "takes {kind} with a width over height of {:.2} to {:.2}, and this has {ratio:.2}{remedy}",
            range.start(),
            range.end()
        );
        found.error("media_aspect_ratio", path.to_vec(), message);
    }
}

/// Compares the encoding of one medium with what the platform's documentation names. What is not known is no issue.
fn encoding(found: &mut IssueList, limit: &MediaLimit, medium: &Media, path: &[Value]) {
    let Some(facts) = &medium.facts else { return };
    let kind = limit.kind;
    if facts.is_locked == Some(true) {
        let message = format!("may not show this {kind}, which is encrypted; save it without a password");
        found.warning("media_locked", path.to_vec(), message);
    }
    if facts.is_truncated == Some(true) {
        let message =
            format!("gets the beginning of this {kind}, whose file ends before the last frame does");
        found.warning("media_truncated", path.to_vec(), message);
    }
    let is_limited = limit.duration.is_some() || limit.usual_duration.is_some();
    if kind == MediaKind::Video && medium.duration.is_none() && is_limited {
        let message = "limits the length of videos, and this one does not state its own";
        found.warning("media_duration_unknown", path.to_vec(), message);
    }
    let Some(named) = &limit.encoding else { return };
    let mut others = Vec::new();
    for (codecs, codec) in
        [(named.video_codecs, &facts.video_codec), (named.audio_codecs, &facts.audio_codec)]
    {
        if let Some(codec) = codec.as_deref().filter(|codec| !codecs.is_empty() && !codecs.contains(codec)) {
            others.push(format!("{} and not {codec}", codecs.join(" or ")));
        }
    }
    if let (Some(range), Some(rate)) = (&named.frame_rate, facts.frame_rate)
        && !range.contains(&rate.saturating_add(500).div_euclid(1000))
    {
        let (min, max) = (range.start(), range.end());
        others.push(format!("{min} to {max} frames per second and not {}", f64::from(rate) / 1000.0));
    }
    if let (Some(max), Some(depth)) = (named.max_bit_depth, facts.bit_depth)
        && depth > max
    {
        others.push(format!("{max} bits per color and not {depth}"));
    }
    if let Some(chroma) =
        facts.chroma.as_deref().filter(|chroma| !named.chroma.is_empty() && !named.chroma.contains(chroma))
    {
        others.push(format!("{} chroma subsampling and not {chroma}", named.chroma.join(" or ")));
    }
    if named.no_edits && facts.has_edits == Some(true) {
        others.push("no edit list, which leaves out, repeats or delays pictures".to_owned());
    }
    if named.index_first && facts.index_first == Some(false) {
        others.push("an index before the samples (`faststart`) and not behind them".to_owned());
    }
    if !others.is_empty() {
        let message = format!(
            "may fail to process this {kind}: its documentation names {} ({}, {})",
            others.join("; "),
            named.source,
            named.checked
        );
        found.warning("media_encoding", path.to_vec(), message);
    }
}

/// Returns why an animation is not scaled, for a message that says that it does not fit.
fn unscaled(medium: &Media) -> String {
    let max = Fit::MAX_FRAME_PIXELS;
    match (medium.frames, medium.frame_pixels()) {
        (Some(frames), Some(pixels)) if pixels > max => {
            let max = max / 1_000_000;
            format!(
                "; it is not scaled, since its {frames} frames have more than {max} million pixels together"
            )
        }
        _ => String::new(),
    }
}

/// Reports settings that exclude each other or media, by our schema annotation `excludes`.
fn excludes(
    found: &mut IssueList,
    schema: &Value,
    settings: &Value,
    containers: &[ContainerContent<'_>],
    at: &[Value],
) {
    let has_media = containers.first().is_some_and(|main| !main.media.is_empty());
    let is_set = |key: &str| settings.get(key).is_some_and(|value| !value.is_null());
    for (key, part) in schema["properties"].as_object().into_iter().flatten() {
        for other in part["excludes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if is_set(key) && (is_set(other) || (other == "media" && has_media)) {
                let message = format!("does not take {key} together with {other}");
                found.error("settings_conflict", [at, &[json!(key)]].concat(), message);
            }
        }
    }
}

/// Reports settings that this kind of post does not use, by our schema annotation `kinds` and by the type of account. One
/// that applies to replies as well is used if one of the containers is of such a kind.
fn unused(
    found: &mut IssueList,
    platform: &Adapter,
    account: AccountKind<'_>,
    containers: &[ContainerContent<'_>],
    settings: &Value,
) {
    let properties = &Schema::of(platform).document()["properties"];
    // The default is what such a post has.
    let is_given =
        |setting: &str, value: &Value| !value.is_null() && *value != properties[setting]["default"];
    if let Some((setting, why)) = platform.publisher.unused_setting(account.account_type, settings)
        && let Some(value) = settings.get(setting).filter(|value| is_given(setting, value))
    {
        let path = vec![json!("config"), json!(platform.id), json!(setting)];
        found.add(loss(&properties[setting], value), "setting_not_used", path, why);
    }
    for (setting, value) in settings.as_object().into_iter().flatten().filter(|(_, value)| is_on(value)) {
        let part = &properties[setting];
        if let Some(other) = part["with"].as_str().filter(|other| !is_on(&settings[*other])) {
            let path = vec![json!("config"), json!(platform.id), json!(setting)];
            let message = format!("uses {setting} together with {other} only");
            found.add(loss(part, value), "setting_not_used", path, message);
        }
    }
    let kind_of = |container| platform.publisher.post_kind(container, settings);
    let Some(kind) = containers.first().and_then(kind_of) else { return };
    for (setting, value) in settings.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let part = &properties[setting];
        let Some(kinds) = part["kinds"].as_array() else { continue };
        let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
        let is_of_replies = platform.limits.reply_settings.contains(&setting.as_str());
        let count = if is_of_replies { containers.len() } else { 1 };
        if containers[..count].iter().filter_map(kind_of).any(|kind| kinds.contains(&kind)) {
            continue;
        }
        let path = vec![json!("config"), json!(platform.id), json!(setting)];
        let message = format!("uses {setting} for {}, and this is {kind}", kinds.join(", "));
        found.add(loss(part, value), "setting_not_used", path, message);
    }
}

/// Returns true for a value that says something.
fn is_on(value: &Value) -> bool {
    !value.is_null() && *value != false && *value != ""
}

/// Returns how a value that is dropped is reported, by our schema annotation `isPromise`: a promise tells the public
/// something, or limits who sees the post, and is never dropped.
fn loss(setting: &Value, value: &Value) -> Severity {
    let is_promise = match &setting["isPromise"] {
        Value::Array(promises) => promises.contains(value),
        any => *any == true && *value != false && *value != json!([]),
    };
    if is_promise { Severity::Error } else { Severity::Warning }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            x("hello", &[image(), image()], json!({ "unknown": 1, "reply_settings": "following" })),
            []
        );
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
        let odd = Media { mime: "image/tiff".into(), size_bytes: 6 << 20, ..image() };
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
            (
                "reddit",
                "a https://a.example:99999".into(),
                &[],
                json!({ "kind": "link" }),
                "settings_conflict",
            ),
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
            (
                "facebook",
                photo,
                json!({ "media_type": "STORIES", "countries": ["DE"] }),
                &[("countries", error)],
            ),
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
            let issues = check(
                youtube,
                &[ContainerContent { text, media: &[video] }],
                &json!({ "madeForKids": false }),
            );
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
            let config =
                if platform == "tiktok" { json!({ "privacy_level": "SELF_ONLY" }) } else { json!({}) };
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
        // What can't be stored is an error all the same.
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
            let issues =
                check_reply(crate::get(platform).unwrap(), AccountKind::default(), &reply, &settings);
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
}
