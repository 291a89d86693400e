//! Edits of a published post on its platform.
//!
//! A worker makes the calls while the client waits, and reads from the target's row what they set. The post's containers
//! keep what was published to all accounts; a target has what was changed on its platform since. A part that is missing is
//! changed in the row only, and published by a retry.

use crate::{
    accounts,
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
        workers,
    },
    openapi::validate::Rules,
    posts::{
        self,
        body::{NewMedia, SourcePaths},
        checks::{self, Finding},
        content::{self, Assets, Content, Faults},
        imports::Imports,
        unpublish::refused,
        variant::Variant,
    },
    types::json_object::JsonObject,
};
use domain::{Edit, Media, Missing, PostId, TargetStatus, overrides};
use platforms::Feature;
use poem_openapi::Object;
use serde_json::{Map, Value, json};
use starter::requests::Unanswered;
use std::collections::{BTreeMap, BTreeSet};
use store::{
    accounts::Account,
    posts::{Attachment, Container, Post, Target},
    publishing::{self, BeginEdit, EDIT_LEASE, Rewrite, Rewritten},
};
use workflows::activities::{EditOutcome, EditRequest};

/// New text and settings of a published post.
#[derive(Debug, Object)]
#[oai(rename = "EditTarget")]
pub struct EditTarget {
    /// New text of the main post.
    #[oai(validator(max_length = 100000))]
    pub content: Option<String>,
    /// New texts of replies that are live, or of replies that are missing.
    #[oai(validator(min_items = 1, max_items = 9))]
    pub replies: Option<Vec<EditReply>>,
    /// New values of settings of the target's platform, which the account's capabilities list under `editing`.
    #[oai(validator(max_properties = 100))]
    pub config: Option<JsonObject>,
}

/// New text of a reply, and new media of one that is missing.
#[derive(Debug, Object)]
#[oai(rename = "EditReply")]
pub struct EditReply {
    /// Position of the reply's container in the post, from 1.
    #[oai(validator(minimum(value = "1"), maximum(value = "9")))]
    pub position: u16,
    /// The new text.
    #[oai(validator(max_length = 100000))]
    pub content: String,
    /// New media of a reply that is missing, in order; without, it keeps those it has. The target then names a variant of
    /// the post that is its own.
    #[oai(validator(max_items = 100))]
    pub media: Option<Vec<EditReplyMedia>>,
}

/// A media asset of a reply.
#[derive(Clone, Debug, Object)]
#[oai(rename = "EditReplyMedia")]
pub struct EditReplyMedia {
    /// Id of the media asset.
    #[oai(validator(max_length = 255))]
    pub id: String,
    /// Alt text.
    #[oai(validator(max_length = 5000))]
    pub alt_text: Option<String>,
}

impl EditReplyMedia {
    /// Returns the asset as a post's container names it.
    fn named(self) -> NewMedia {
        NewMedia { id: Some(self.id), url: None, alt_text: self.alt_text }
    }
}

impl Rules for EditTarget {
    const REFUSES_SLIPS: bool = true;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let is_given = |name: &str| body.get(name).is_some_and(|value| *value != json!({}));
        if !["content", "replies", "config"].into_iter().any(is_given) {
            issues.push(Issue::custom(Vec::<Segment>::new(), "Give content, replies or config"));
        }
    }
}

/// Text and settings of a target as they are live.
#[derive(Clone)]
struct Live {
    /// Containers, with the texts that the platform shows.
    containers: Vec<Container>,
    /// The platform's settings.
    settings: Map<String, Value>,
    /// True if the post is a reply to a live one.
    is_reply: bool,
}

impl Live {
    fn of(post: &Post, target: &Target) -> Self {
        let mut containers = post.containers_of(target).to_vec();
        let edits = target.edits.clone().unwrap_or_default();
        for container in &mut containers {
            if let Some(text) = edits.containers.get(&container.position) {
                container.content.clone_from(text);
            }
        }
        let settings = overrides::settings(&post.default_config[&target.platform], target.account_id);
        let Value::Object(mut settings) = settings else { unreachable!("settings are an object") };
        settings.extend(edits.config);
        Self { containers, settings, is_reply: post.reply_to.is_some() }
    }

    fn text(&self, position: u16) -> Option<&str> {
        let found = self.containers.iter().find(|container| container.position == position);
        found.map(|container| container.content.as_str())
    }

    fn variant(&self, account: &Account, media: &[Vec<Media>]) -> Variant {
        let containers = self.containers.clone();
        let content = Content { containers, media: media.to_vec(), is_partial: false };
        let settings = Value::Object(self.settings.clone());
        Variant::new(vec![account.clone()], content, settings, self.is_reply)
    }
}

/// Returns the text of each container of a target as its platform shows it.
pub fn live_texts(post: &Post, target: &Target) -> Vec<(u16, String)> {
    let live = Live::of(post, target);
    live.containers.into_iter().map(|container| (container.position, container.content)).collect()
}

/// Changes a live target's posts on their platform.
pub async fn edit(
    call: &Call<'_>,
    id: &str,
    target_id: &str,
    body: EditTarget,
) -> Result<posts::Target, Problem> {
    let post = posts::find(call, id).await?;
    let target = posts::target_of(&post, target_id)?;
    check_live(target)?;
    let account = accounts::find(call, &target.account_id.to_string()).await?;
    let named = body.replies.iter().flatten().map(|reply| reply.position);
    if named.into_iter().any(|position| missing(target, position).is_some()) {
        return rewrite(call, &post, target, &account, body).await;
    }
    refuse_media(body.replies.as_deref().unwrap_or_default())?;
    let platform = accounts::platform(&account)?;
    let editing = platform.editing.map_err(|why| Problem::new(Code::EditingUnsupported, why))?;
    if let Some(detail) = platform.explain(Feature::Editing, &account.scopes) {
        return Err(Problem::new(Code::ReconnectRequired, detail));
    }
    let before = Live::of(&post, target);
    let texts = texts(&body, &before)?;
    let settings: Map<String, Value> = body.config.unwrap_or_default().into_iter().collect();
    refuse_settings(platform.name, editing.settings(), &settings)?;
    let after = changed(&before, &texts, &settings);
    let media = content::stored(call, post.id, before.containers.clone()).await?.media;
    let variants = [&before, &after].map(|live| live.variant(&account, &media));
    check(variants, &body.replies.unwrap_or_default())?;
    let edits = edits(&before, &after, &media, &texts, &settings);
    if let Some(detail) = edits.iter().find_map(|edit| editing.objection(edit)) {
        return Err(Problem::new(Code::EditingUnsupported, detail));
    }
    let is_change = texts.iter().any(|(position, text)| before.text(*position) != Some(text))
        || settings.iter().any(|(name, value)| before.settings.get(name) != Some(value));
    make(call, &account, target, (post.id, edits.as_slice()), is_change).await?;
    Ok(posts::target(call, id, target_id).await?.1.into())
}

/// Has a worker make an edit of a live target's posts. Also one that changes nothing here: after a call without a result
/// the platform may show something else.
async fn make(
    call: &Call<'_>,
    account: &Account,
    target: &Target,
    (post, edits): (PostId, &[Edit]),
    is_change: bool,
) -> Result<(), Problem> {
    let (of, seen) = ((post, target.id), target.edited_at);
    let (edit, is_first) = match publishing::begin_edit(call.db(), call.access(), of, edits, seen).await? {
        BeginEdit::Begun { edit, is_first } => (edit, is_first),
        BeginEdit::NotLive(status) => return Err(not_live(status)),
        BeginEdit::Unpublished => return Err(gone()),
        BeginEdit::NoReply(position) => {
            let detail = format!("the reply at position {position} is not live");
            return Err(Problem::new(Code::Conflict, detail));
        }
        BeginEdit::Busy => return Err(busy()),
        BeginEdit::Changed => {
            let detail = "the target was edited in the meantime; read it again and repeat the edit";
            return Err(Problem::new(Code::Conflict, detail));
        }
        BeginEdit::Missing => return Err(Problem::not_found("target")),
    };
    let account_ref = accounts::account_ref(call, account);
    let request = EditRequest { account_ref, post, target: target.id, edit, is_change };
    let answer = call.app.workers.call(request).await;
    if is_first && matches!(answer, Err(Unanswered::Disconnected)) {
        publishing::give_up_edit(call.db(), call.owner, target.id, edit).await?;
    }
    match answer.map_err(workers::unanswered)? {
        EditOutcome::Edited => Ok(()),
        EditOutcome::Superseded => {
            let (_, target) = posts::target(call, &post.to_string(), &target.id.to_string()).await?;
            check_live(&target)?;
            Err(busy())
        }
        EditOutcome::Failed { failure } => Err(refused(target, failure)),
    }
}

/// Fails unless a target's posts are live.
fn check_live(target: &Target) -> Result<(), Problem> {
    if target.status != TargetStatus::Published {
        return Err(not_live(target.status));
    }
    if target.unpublished_at.is_some() {
        return Err(gone());
    }
    Ok(())
}

/// Refuses media of live replies.
fn refuse_media(replies: &[EditReply]) -> Result<(), Problem> {
    let with_media = replies.iter().enumerate().filter(|(_, reply)| reply.media.is_some());
    let issues: Vec<_> = with_media
        .map(|(index, _)| {
            let at = [Segment::from("replies"), Segment::from(index), Segment::from("media")];
            Issue::custom(at, "Only the media of a reply that is missing can be changed")
        })
        .collect();
    if issues.is_empty() {
        return Ok(());
    }
    let detail = "the media of a live post can't be changed";
    Err(Problem::new(Code::Unprocessable, detail).with_issues(issues))
}

/// Refuses settings that are not among those that a platform lets apps change.
fn refuse_settings(platform: &str, known: &[&str], settings: &Map<String, Value>) -> Result<(), Problem> {
    let fixed = settings.keys().filter(|name| !known.contains(&name.as_str()));
    let issues: Vec<_> = fixed
        .map(|name| {
            let message = match known {
                [] => format!("{platform} lets apps change the text only"),
                known => format!("{platform} lets apps change the text, and {}", known.join(", ")),
            };
            let at = [Segment::from("config"), Segment::from(name.as_str())];
            Issue::new(at, "setting_not_editable", message)
        })
        .collect();
    if issues.is_empty() {
        return Ok(());
    }
    let detail = "one or more settings can't be changed once a post is published";
    Err(Problem::new(Code::ContentRejected, detail).with_issues(issues))
}

/// Returns a part that is missing of a target.
fn missing(target: &Target, position: u16) -> Option<&Missing> {
    target.missing.iter().find(|part| part.position == position)
}

/// Changes parts that are missing. No platform is called, so that any platform's can be changed.
async fn rewrite(
    call: &Call<'_>,
    post: &Post,
    target: &Target,
    account: &Account,
    body: EditTarget,
) -> Result<posts::Target, Problem> {
    let before = Live::of(post, target);
    let texts = texts(&body, &before)?;
    let replies = body.replies.unwrap_or_default();
    let mut issues: Vec<_> = [("content", body.content.is_some()), ("config", body.config.is_some())]
        .into_iter()
        .filter(|(_, is_given)| *is_given)
        .map(|(name, _)| Issue::custom([name], "Is live; change it in a call of its own"))
        .collect();
    for (index, reply) in replies.iter().enumerate() {
        let message = match missing(target, reply.position) {
            None => "The reply is not missing; change it in a call of its own",
            Some(part) if part.is_left_out => "The platform has no place for the reply",
            Some(_) => continue,
        };
        issues.push(Issue::custom(
            [Segment::from("replies"), Segment::from(index), Segment::from("position")],
            message,
        ));
    }
    if !issues.is_empty() {
        let detail = "only replies that are missing can be changed with one that is missing";
        return Err(Problem::new(Code::Unprocessable, detail).with_issues(issues));
    }
    let mut after = changed(&before, &texts, &Map::new());
    let mut media = content::stored(call, post.id, before.containers.clone()).await?.media;
    let files = new_media(call, &replies).await?;
    for (container, known) in after.containers.iter_mut().zip(&mut media) {
        if let Some((attached, found)) = files.get(&container.position) {
            container.media.clone_from(attached);
            known.clone_from(found);
        }
    }
    let findings = checks::check(&[after.variant(account, &media)], &SourcePaths::default());
    let about = |finding: &Finding| match finding.issue.path.as_slice() {
        [containers, Segment::Index(position), ..] if *containers == "containers".into() => {
            texts.keys().any(|changed| u64::from(*changed) == *position)
        }
        _ => false,
    };
    // The live parts stay as they are, so that only the parts that are changed have to be accepted.
    let findings = findings.into_iter().filter(about).map(|mut finding| {
        finding.issue.path = path_in_body(finding.issue.path, &replies);
        finding
    });
    checks::reject_errors(findings.collect())?;
    let of = (post.id, target.id);
    let conflict = |detail: String| Err(Problem::new(Code::Conflict, detail));
    let media = files.into_iter().map(|(position, (attached, _))| (position, attached)).collect();
    let new = Rewrite { texts, media };
    match publishing::rewrite(call.db(), call.access(), of, &new, target.edited_at, call.now()).await? {
        Rewritten::Done => {
            let (_, target) = posts::target(call, &post.id.to_string(), &target.id.to_string()).await?;
            Ok(target.into())
        }
        Rewritten::NotMissing(position) => {
            conflict(format!("the reply at position {position} is not missing any more; read the post again"))
        }
        Rewritten::MayBeLive(position) => conflict(format!(
            "the reply at position {position} may be live, and a retry looks for it by its text; retry it as it is"
        )),
        Rewritten::Changed => {
            conflict("the target was edited in the meantime; read it again and repeat the edit".to_owned())
        }
        Rewritten::Busy => Err(busy()),
        Rewritten::NoMedia => Err(content::media_not_ready()),
        Rewritten::Missing => Err(Problem::not_found("target")),
    }
}

/// Finds the media that replies are to have, by position: as they are stored, and as they are checked.
async fn new_media(
    call: &Call<'_>,
    replies: &[EditReply],
) -> Result<BTreeMap<u16, (Vec<Attachment>, Vec<Media>)>, Problem> {
    let named = |reply: &EditReply| {
        let media = reply.media.clone()?;
        Some(media.into_iter().map(EditReplyMedia::named).collect::<Vec<_>>())
    };
    let all: Vec<_> = replies.iter().map(named).collect();
    let assets = Assets::find(call, all.iter().flatten().flatten(), Imports::default()).await?;
    let (mut found, mut faults) = (BTreeMap::new(), Faults::default());
    for (index, (reply, media)) in replies.iter().zip(all).enumerate() {
        if let Some(media) = media {
            let path = [Segment::from("replies"), Segment::from(index), Segment::from("media")];
            let (attached, known, _) = assets.attach(media, &path, &mut faults);
            found.insert(reply.position, (attached, known));
        }
    }
    faults.reject()?;
    Ok(found)
}

/// Returns the new texts by position; fails for a position that the post does not have, or one given twice.
fn texts(body: &EditTarget, before: &Live) -> Result<BTreeMap<u16, String>, Problem> {
    let mut texts: BTreeMap<u16, String> = body.content.iter().map(|text| (0, text.clone())).collect();
    let mut issues = Vec::new();
    for (index, reply) in body.replies.iter().flatten().enumerate() {
        let at = || [Segment::from("replies"), Segment::from(index), Segment::from("position")];
        if before.text(reply.position).is_none() {
            issues.push(Issue::custom(at(), "The post has no reply at this position"));
        } else if texts.insert(reply.position, reply.content.clone()).is_some() {
            issues.push(Issue::custom(at(), "The position is given twice"));
        }
    }
    match issues.is_empty() {
        true => Ok(texts),
        false => {
            let detail = "one or more replies were not found";
            Err(Problem::new(Code::Unprocessable, detail).with_issues(issues))
        }
    }
}

fn changed(before: &Live, texts: &BTreeMap<u16, String>, settings: &Map<String, Value>) -> Live {
    let mut after = before.clone();
    for container in &mut after.containers {
        if let Some(text) = texts.get(&container.position) {
            container.content.clone_from(text);
        }
    }
    after.settings.extend(settings.clone());
    after
}

/// Checks the content after the edit as on creation. What was wrong before is not the edit's, such as a medium that was
/// deleted since.
fn check([before, after]: [Variant; 2], replies: &[EditReply]) -> Result<(), Problem> {
    let find = |variant: Variant| checks::check(&[variant], &SourcePaths::default());
    let known: BTreeSet<_> = find(before).into_iter().map(|finding| format!("{:?}", finding.issue)).collect();
    let mut findings = find(after);
    findings.retain(|finding| !known.contains(&format!("{:?}", finding.issue)));
    for finding in &mut findings {
        let path = std::mem::take(&mut finding.issue.path);
        finding.issue.path = path_in_body(path, replies);
    }
    checks::reject_errors(findings)
}

/// Returns where a value of a post is in the body of an edit.
fn path_in_body(path: Vec<Segment>, replies: &[EditReply]) -> Vec<Segment> {
    match path.as_slice() {
        [containers, Segment::Index(0), rest @ ..] if *containers == "containers".into() => rest.to_vec(),
        [containers, Segment::Index(position), rest @ ..] if *containers == "containers".into() => {
            let index = replies.iter().position(|reply| u64::from(reply.position) == *position);
            let at = [Segment::from("replies"), Segment::from(index.unwrap_or_default())];
            at.into_iter().chain(rest.iter().cloned()).collect()
        }
        [config, _, rest @ ..] if *config == "config".into() => {
            std::iter::once(config.clone()).chain(rest.iter().cloned()).collect()
        }
        _ => path,
    }
}

/// Returns the changes for the adapter: of the main post, which has the settings, and of each reply.
fn edits(
    before: &Live,
    after: &Live,
    media: &[Vec<Media>],
    texts: &BTreeMap<u16, String>,
    settings: &Map<String, Value>,
) -> Vec<Edit> {
    let both = before.containers.iter().zip(media);
    let edits = both.filter_map(|(container, media)| {
        let names: Vec<String> =
            if container.position == 0 { settings.keys().cloned().collect() } else { Vec::new() };
        let text = texts.get(&container.position).cloned();
        (text.is_some() || !names.is_empty()).then(|| Edit {
            position: container.position,
            of_reply: after.is_reply,
            has_media: !container.media.is_empty(),
            kinds: media.iter().map(|medium| medium.kind).collect(),
            before: container.content.clone(),
            text,
            settings: Value::Object(after.settings.clone()),
            names,
        })
    });
    edits.collect()
}

fn not_live(status: TargetStatus) -> Problem {
    Problem::new(
        Code::Conflict,
        format!(
            "the target is {status}; only a published one can be edited here, and PATCH /posts/{{id}} edits others"
        ),
    )
}

fn gone() -> Problem {
    Problem::new(Code::Conflict, "the target's post was deleted from its platform")
}

fn busy() -> Problem {
    let detail = "another edit of the target is being made, or its result is not known yet; try again later";
    let wait = u32::try_from(EDIT_LEASE.as_secs()).unwrap_or(u32::MAX);
    Problem::new(Code::Conflict, detail).retry_after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::body::read,
        posts::samples::{account, path, post},
    };

    /// Returns a live thread of three texts, whose second was edited since.
    fn live() -> Live {
        let mut post = post(&["Main", "One", "Two"], &[account(1, "x")]);
        post.default_config = json!({ "x": { "title": "t", "content": "is no setting" } });
        let config = json!({ "tags": ["a"] });
        post.targets[0].edits = Some(store::posts::Edits {
            containers: [(1, "One, edited".to_owned())].into(),
            config: config.as_object().cloned().unwrap_or_default(),
        });
        Live::of(&post, &post.targets[0])
    }

    #[test]
    fn what_is_live_has_the_edits_since_it_was_published() {
        let live = live();
        assert_eq!(
            [0, 1, 2, 3].map(|at| live.text(at)),
            [Some("Main"), Some("One, edited"), Some("Two"), None]
        );
        assert_eq!(Value::Object(live.settings), json!({ "title": "t", "tags": ["a"] }));
    }

    #[test]
    fn texts_are_for_replies_that_the_post_has_once_each() {
        let reply = |position| json!({ "position": position, "content": "New" });
        for (body, expected) in [
            (json!({ "content": "New" }), Ok(vec![0])),
            (json!({ "content": "New", "replies": [reply(2), reply(1)] }), Ok(vec![0, 1, 2])),
            (
                json!({ "replies": [reply(1), reply(4)] }),
                Err(("replies.1.position", "The post has no reply at this position")),
            ),
            (
                json!({ "replies": [reply(1), reply(1)] }),
                Err(("replies.1.position", "The position is given twice")),
            ),
        ] {
            let found = texts(&read(body.clone()).unwrap(), &live());
            let found =
                found.map(|texts| texts.into_keys().collect::<Vec<_>>()).map_err(|problem| problem.issues);
            let expected = expected.map_err(|(at, message)| vec![Issue::custom(path(at), message)]);
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn the_adapter_gets_what_changes_and_settings_with_the_main_post() {
        let before = live();
        let media = vec![Vec::new(); 3];
        let settings = json!({ "title": "u" }).as_object().cloned().unwrap_or_default();
        for (texts, settings, expected) in [
            ([(0, "New")].as_slice(), Map::new(), vec![(0, "Main", Some("New"), 0)]),
            (
                &[(1, "New"), (2, "New")],
                Map::new(),
                vec![(1, "One, edited", Some("New"), 0), (2, "Two", Some("New"), 0)],
            ),
            (&[], settings.clone(), vec![(0, "Main", None, 1)]),
            (&[(2, "New")], settings, vec![(0, "Main", None, 1), (2, "Two", Some("New"), 0)]),
        ] {
            let texts = texts.iter().map(|(at, text): &(u16, &str)| (*at, (*text).to_owned())).collect();
            let after = changed(&before, &texts, &settings);
            let edits = edits(&before, &after, &media, &texts, &settings);
            let found: Vec<_> = edits
                .iter()
                .map(|edit| (edit.position, edit.before.as_str(), edit.text.as_deref(), edit.names.len()))
                .collect();
            assert_eq!(found, expected);
            let title = if settings.is_empty() { "t" } else { "u" };
            assert!(
                edits
                    .iter()
                    .all(|edit| edit.settings["title"] == title && edit.settings["tags"] == json!(["a"]))
            );
        }
    }

    #[test]
    fn a_path_leads_into_the_body_of_the_edit() {
        let replies =
            json!({ "replies": [{ "position": 2, "content": "b" }, { "position": 1, "content": "a" }] });
        let body: EditTarget = read(replies).unwrap();
        for (from, to) in [
            ("containers.0.content", "content"),
            ("containers.1.content", "replies.1.content"),
            ("containers.2.content", "replies.0.content"),
            ("config.x.title", "config.title"),
            ("accounts.0", "accounts.0"),
        ] {
            let replies = body.replies.as_deref().unwrap_or_default();
            assert_eq!(path_in_body(path(from), replies), path(to), "{from}");
        }
    }

    #[test]
    fn settings_that_stay_and_media_of_live_replies_are_refused() {
        let settings = json!({ "title": "u", "tags": [] }).as_object().cloned().unwrap_or_default();
        for (known, at, message) in [
            (&["title"][..], "config.tags", "X lets apps change the text, and title"),
            (&["tags", "description"], "config.title", "X lets apps change the text, and tags, description"),
        ] {
            let issues = refuse_settings("X", known, &settings).unwrap_err().issues;
            assert_eq!(issues, [Issue::new(path(at), "setting_not_editable", message)]);
        }
        assert_eq!(refuse_settings("X", &[], &settings).unwrap_err().issues.len(), 2);
        assert!(refuse_settings("X", &["title", "tags"], &settings).is_ok());
        let body: EditTarget = read(json!({ "replies": [
            { "position": 1, "content": "a" },
            { "position": 2, "content": "b", "media": [] },
        ] }))
        .unwrap();
        let replies = body.replies.unwrap_or_default();
        assert!(refuse_media(&replies[..1]).is_ok());
        assert_eq!(refuse_media(&replies).unwrap_err().issues[0].path, path("replies.1.media"));
    }
}
