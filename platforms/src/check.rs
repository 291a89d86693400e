//! Validation of a post against a platform's limits, before it is sent there.
//!
//! Only a definite violation of the capabilities table is an error; an unknown property of a medium is not.
//! Creating a post and validating one both use this module, so they can't disagree.

pub use crate::content::ContainerContent;
use crate::{
    Adapter, AltTextLimit, Content, Media, MediaKind, MediaLimit, TextLimit, fit, schema::Mismatch,
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
    excludes(&mut found, platform.schema().document(), settings, &containers, &at);
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
        let part = &platform.schema().document()["properties"][setting];
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
    if platform.has_fit() && settings[fit::SETTING].is_string() && !media().any(is_picture) {
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

/// Types of pictures that platforms show as they are.
const COMMON: [&str; 4] = ["image/jpeg", "image/png", "image/webp", "image/gif"];

/// Says what a picture becomes; the subject is the platform.
fn told(medium: &Media, fit: &Fit) -> String {
    let (kind, Fit { width, height, max_bytes, .. }) = (medium.kind, *fit);
    let own = (medium.width.unwrap_or(0), medium.height.unwrap_or(0));
    let limits = format!("{width}x{height} pixels and {max_bytes} bytes at most");
    let shaping = fit.shaping.filter(|_| !fit::have_one_shape(own, (width, height)));
    match (shaping, fit.kind == kind) {
        (Some(Shaping::Crop), _) => format!("gets the middle of this {kind}: {limits}"),
        (Some(Shaping::Pad), _) => format!("gets this {kind} on a white ground: {limits}"),
        (None, true) if !COMMON.contains(&medium.mime.as_str()) => {
            format!("gets this {kind} converted from {}: {limits}", medium.mime)
        }
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
        for Mismatch { path, message } in platform.schema().validate(settings, &at, MAX_ISSUES) {
            found.error("setting_invalid", path, message);
        }
    }
    let properties = &platform.schema().document()["properties"];
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
    let properties = &platform.schema().document()["properties"];
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
    platform.schema().document().clone()
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
    let properties = &platform.schema().document()["properties"];
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
mod tests;
