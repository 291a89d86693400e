//! Validating a post without creating it.
//!
//! The body is resolved and checked by the same code as on creation, so the results can't differ.

use crate::{
    accounts::{limits, resolve::QUEUED_FROM_ACCOUNT},
    http::{
        body::Json,
        caller::{Call, Caller, PostsWrite},
        problem::{Issue, Problem, Segment},
    },
    openapi::{
        tag::Tag,
        unknown::{self, Unknown},
        validate::{Rules, Schema},
    },
    posts::{
        body::{NewMedia, NewText, unknown_members},
        checks::Finding,
        create::{self, NewPost},
        imports::Imports,
        look_up,
        replying::REPLY_TO,
        resolve::ResolvedPost,
        variant::Variant,
    },
    slots,
    types::{
        enum_string::{EnumString, Platform},
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
        url::Link,
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, event::timestamp};
use platforms::check::{self, Severity};
use poem_openapi::{
    Object, OpenApi,
    registry::{MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseResult, Type},
};
use serde_json::{Map, Value, json};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    iter,
    sync::Arc,
};
use store::{
    accounts::{Account, AccountStatus},
    posts::{
        Attachment, Container,
        duplicates::{self, Duplicate},
    },
    publishing::{self, Held},
};
use uuid::Uuid;

/// How far a time has passed that is told: a moment that passes while somebody writes is no mistake.
const PAST_TOLERANCE: TimeDelta = TimeDelta::minutes(5);
/// Time before and after a post within which the same text is a duplicate.
const DUPLICATE_WINDOW: TimeDelta = TimeDelta::hours(24);
/// Maximum number of issues returned.
const MAX_ISSUES: usize = 1000;

crate::types::enum_string::openapi_enum!(Severity, "Severity");

/// The validation operation.
pub struct Previews;

#[OpenApi(tag = "Tag::Posts")]
impl Previews {
    /// Validate a post
    ///
    /// Takes the body of a creation and returns what each platform would report; nothing is stored. An issue
    /// of severity `error` would fail the creation. The warning `duplicate_text` tells that the account
    /// published the same text within 24 hours of the post's time, or is to publish it then; `account_exhausted`
    /// that the platform throttles it then, or takes no more posts; `app_refused` that the platform refuses the app of the
    /// account at present, so that the post waits; `reply_to_incomplete` that the post to reply to is live there without
    /// some of its parts; `unknown_member` that a member of the body has no
    /// meaning.
    ///
    /// With `look_up`, platforms are asked for what only they know, within ten seconds, with the grants of the accounts
    /// that have no error of their own: `reference_not_found` tells that a board, section, flair, subreddit, category,
    /// playlist or quoted post does not exist, `reference_not_allowed` that the account or this post can't use it, and
    /// `setting_required` that the platform requires a setting. A platform that is not asked or does not answer is
    /// the warning `look_up_failed`. Scope `posts:write`.
    #[oai(path = "/posts/validate", method = "post", operation_id = "validatePost")]
    async fn validate(
        &self,
        caller: Caller<PostsWrite>,
        body: Json<Proposal>,
    ) -> Result<Json<Verdict>, Problem> {
        Ok(Json(validate(&caller.call(), body.0).await?))
    }
}

/// Validates a post without storing it.
///
/// # Errors
///
/// If the body refers to something that does not exist.
pub async fn validate(call: &Call<'_>, body: Proposal) -> Result<Verdict, Problem> {
    let Proposal { post: ProposedPost { post: body, look_up }, unknown } = body;
    let post = create::resolve(call, &body).await?;
    let mut findings = post.findings();
    if look_up {
        findings.extend(look_up::look_up(call, &post, &findings).await?);
    }
    let scheduled_at = body.scheduled_at.map(|Timestamp(at)| at);
    let outlook = Outlook::find(call, &post, scheduled_at).await?;
    let mut past = HashMap::new();
    if !body.is_draft {
        findings.extend(post.variants.iter().flat_map(|own| late(&post, own, outlook.due_of(own))));
        past = passed(&post, scheduled_at, outlook.now - PAST_TOLERANCE);
    }
    let (mut issues, mut valid) = (Vec::new(), true);
    for index in 0..post.accounts.len() {
        for issue in issues_of(&post, index, &findings, &unknown, &outlook, &past) {
            valid &= issue.severity.value() != Severity::Error;
            if issues.len() < MAX_ISSUES {
                issues.push(issue);
            }
        }
    }
    let mut variants = BTreeMap::new();
    for variant in post.variants.iter().filter(|variant| variant.number > 0) {
        variants.entry(variant.number).or_insert_with(|| VerdictVariant::of(variant, &post.imports));
    }
    let targets =
        post.variants.into_iter().map(|variant| VerdictTarget::of(variant, post.scheduled_at)).collect();
    Ok(Verdict { valid, issues, variants: variants.into_values().collect(), targets })
}

/// Facts in the database about a post's accounts at the time when they would get it.
struct Outlook {
    now: DateTime<Utc>,
    /// When accounts without a time of their own would get it.
    due: DateTime<Utc>,
    /// The account whose queue has no open slot, with the problem of a creation.
    crowded: Option<(AccountId, Problem)>,
    /// Posts with the same text, each with the path of the text.
    duplicates: HashMap<AccountId, (Duplicate, Vec<Segment>)>,
    /// Reasons why accounts take no post then.
    exhausted: HashMap<AccountId, String>,
    /// Accounts whose app its platform refuses.
    held: HashMap<AccountId, Held>,
}

impl Outlook {
    async fn find(
        call: &Call<'_>,
        post: &ResolvedPost,
        scheduled_at: Option<DateTime<Utc>>,
    ) -> Result<Self, Problem> {
        let now = call.now();
        let ids = |accounts: &[Account]| accounts.iter().map(|account| account.id).collect::<Vec<_>>();
        let mut outlook = Self {
            now,
            due: scheduled_at.unwrap_or_default().max(now),
            crowded: None,
            duplicates: HashMap::new(),
            exhausted: HashMap::new(),
            held: publishing::held(call.db(), call.access(), &ids(&post.accounts)).await?,
        };
        if let Some(queue) = &post.queue {
            match slots::next(call, queue).await? {
                Ok(slot) => outlook.due = slot,
                Err(problem) => outlook.crowded = Some((queue.account, problem)),
            }
        }
        for variant in &post.variants {
            let due = outlook.due_of(variant);
            let Variant { accounts, content, settings, is_reply, .. } = variant;
            // Only main texts are compared.
            if !is_reply {
                let (ids, text) = (ids(accounts), &content.containers[0].content);
                let found =
                    duplicates::find(call.db(), call.access(), &ids, text, due, DUPLICATE_WINDOW).await?;
                let found = found.into_iter().map(|(id, found)| (id, (found, post.text_path(variant))));
                outlook.duplicates.extend(found);
            }
            outlook.exhausted.extend(limits::exhausted(call, accounts, settings, *is_reply, due).await?);
        }
        Ok(outlook)
    }

    /// Returns when the accounts of a variant would get it.
    fn due_of(&self, variant: &Variant) -> DateTime<Utc> {
        variant.scheduled_at.unwrap_or(self.due).max(self.now)
    }
}

/// Returns the times before `long_ago` at which accounts should have got a post, each with its path.
fn passed(
    post: &ResolvedPost,
    scheduled_at: Option<DateTime<Utc>>,
    long_ago: DateTime<Utc>,
) -> HashMap<AccountId, (DateTime<Utc>, Vec<Segment>)> {
    let mut passed = HashMap::new();
    for variant in &post.variants {
        let platform = variant.accounts.first().map_or("", |account| &account.platform);
        let at_own = [json!("config"), json!(platform), json!("scheduled_at")];
        let own = variant.scheduled_at.map(|at| (at, post.path(variant, &at_own)));
        let time = own.or(scheduled_at.map(|at| (at, vec!["scheduled_at".into()])));
        if let Some(time) = time.filter(|(at, _)| *at < long_ago) {
            passed.extend(variant.accounts.iter().map(|account| (account.id, time.clone())));
        }
    }
    passed
}

/// Returns the issues of the account at an index, in the order of the verdict.
fn issues_of(
    post: &ResolvedPost,
    index: usize,
    findings: &[Finding],
    unknown: &[Vec<Segment>],
    outlook: &Outlook,
    past: &HashMap<AccountId, (DateTime<Utc>, Vec<Segment>)>,
) -> Vec<VerdictIssue> {
    let account = &post.accounts[index];
    let itself = || -> Vec<Segment> { vec!["accounts".into(), index.into()] };
    let issue = |severity: Severity, code: &str, message: String, path: Vec<Segment>| VerdictIssue {
        account: account.id.0,
        platform: EnumString::of(&account.platform),
        severity: EnumString::of(severity.as_str()),
        code: code.to_owned(),
        message,
        path,
    };
    let warning = |code: &str, message, path| issue(Severity::Warning, code, message, path);
    let own = findings.iter().filter(|finding| finding.accounts.contains(&account.id));
    let own = own.map(|own| {
        let Issue { code, message, path, .. } = &own.issue;
        issue(own.severity, code, message.clone(), path.clone())
    });
    let mut issues: Vec<_> = own.collect();
    for path in unknown.iter().filter(|path| concerns(path, &account.platform)) {
        issues.push(warning("unknown_member", "Is not known, and is ignored".to_owned(), path.clone()));
    }
    if let Some((_, problem)) = outlook.crowded.as_ref().filter(|(id, _)| *id == account.id) {
        let (code, path) = (problem.code.as_str(), vec![QUEUED_FROM_ACCOUNT.into()]);
        issues.push(issue(Severity::Error, code, problem.detail.clone(), path));
    }
    if let Some((duplicate, path)) = outlook.duplicates.get(&account.id) {
        let at = timestamp(duplicate.at);
        let did = if duplicate.is_published { "published" } else { "is to publish" };
        let place = duplicate.post.map(|post| format!(", in post {post}")).unwrap_or_default();
        let message = format!("The account {did} the same text at {at}{place}");
        issues.push(warning("duplicate_text", message, path.clone()));
    }
    if let Some(message) = outlook.exhausted.get(&account.id) {
        issues.push(warning("account_exhausted", message.clone(), itself()));
    }
    let missing = post.parent.as_ref().map(|parent| parent.missing(account.id)).unwrap_or_default();
    if !missing.is_empty() {
        let parts: Vec<_> = missing.iter().map(|position| (position + 1).to_string()).collect();
        let message = format!(
            "The post in reply_to is live on the account without part {}; the reply follows the last part that is live",
            parts.join(", ")
        );
        issues.push(warning("reply_to_incomplete", message, vec![REPLY_TO.into()]));
    }
    if let Some(held) = outlook.held.get(&account.id) {
        let message = format!(
            "The platform refuses the app since {}: {}. The post waits until it takes the app again",
            timestamp(held.since),
            held.message.trim_end_matches('.')
        );
        issues.push(warning("app_refused", message, itself()));
    }
    if let Some((at, path)) = past.get(&account.id) {
        let message = format!("{} has passed: the post is published at once", timestamp(*at));
        issues.push(warning("time_in_past", message, path.clone()));
    }
    if account.status != AccountStatus::Active {
        let message = format!("The account is {}: it must be reconnected first", account.status);
        issues.push(warning("account_not_active", message, itself()));
    }
    issues
}

/// Returns a warning for each setting with the time at which a platform shows the post, if it comes before the post does.
fn late(post: &ResolvedPost, variant: &Variant, due: DateTime<Utc>) -> Vec<Finding> {
    let platform = variant.accounts.first().and_then(|account| platforms::get(&account.platform));
    let Some(platform) = platform else { return Vec::new() };
    let accounts: Vec<_> = variant.accounts.iter().map(|account| account.id).collect();
    let late = check::times(platform, &variant.settings).into_iter().filter(|(_, at)| *at <= due);
    late.map(|(setting, at)| {
        let message = format!("{} comes before the post, which is not hidden until then", timestamp(at));
        let issue =
            check::Issue::of_setting(Severity::Warning, "time_in_past", platform.id, setting, message);
        let finding = Finding::of(platform, issue, |path| post.path(variant, path));
        Finding { accounts: accounts.clone(), ..finding }
    })
    .collect()
}

/// Returns whether a member concerns a platform: one outside of the other platforms' settings.
fn concerns(path: &[Segment], platform: &str) -> bool {
    let block = match path {
        [Segment::Key(config), Segment::Key(id), ..] if config == "config" => id,
        [Segment::Key(id), _, ..] => id,
        _ => return true,
    };
    block == platform || !platforms::IDS.contains(&block.as_str())
}

/// A post to validate: the body of a creation, and whether platforms are asked.
#[derive(Debug, Object)]
#[oai(rename = "PostProposal")]
pub struct ProposedPost {
    /// Ask the platforms for what only they know, such as whether a board, a flair or a quoted post exists.
    #[oai(default)]
    look_up: bool,
    /// The post.
    #[oai(flatten)]
    post: NewPost,
}

/// A post to validate, with the paths of the members that creating it would ignore.
#[derive(Debug)]
pub struct Proposal {
    post: ProposedPost,
    unknown: Vec<Vec<Segment>>,
}

impl Proposal {
    /// Asks the platforms, or does not, whatever the body says.
    #[must_use]
    pub fn looking_up(mut self, look_up: bool) -> Self {
        self.post.look_up = look_up;
        self
    }
}

impl Rules for ProposedPost {
    const REFUSES_SLIPS: bool = NewPost::REFUSES_SLIPS;

    fn homes() -> Vec<(&'static str, Arc<Schema>)> {
        NewPost::homes()
    }

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        NewPost::check(body, issues);
    }
}

impl Rules for Proposal {
    const REFUSES_SLIPS: bool = ProposedPost::REFUSES_SLIPS;

    fn homes() -> Vec<(&'static str, Arc<Schema>)> {
        ProposedPost::homes()
    }

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        ProposedPost::check(body, issues);
    }
}

impl Type for Proposal {
    const IS_REQUIRED: bool = ProposedPost::IS_REQUIRED;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        ProposedPost::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        ProposedPost::schema_ref()
    }

    fn register(registry: &mut Registry) {
        ProposedPost::register(registry);
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(iter::once(self))
    }
}

impl ParseFromJSON for Proposal {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        let value = value.unwrap_or_default();
        let mut unknown = unknown::of::<ProposedPost>(&value);
        unknown.extend(value.as_object().into_iter().flat_map(|body| unknown_members(body, "config")));
        let post = ProposedPost::parse_from_json(Some(value)).map_err(ParseError::propagate)?;
        Ok(Self { post, unknown: unknown.iter().map(Unknown::path).collect() })
    }
}

/// Result of validating a post.
#[derive(Debug, Object)]
#[oai(rename = "Verdict")]
pub struct Verdict {
    /// True if there are no errors; there may be warnings.
    pub valid: bool,
    /// Issues, grouped by account; at most 1000.
    pub issues: Vec<VerdictIssue>,
    /// Content that replaces the post's own for some of the targets, by overrides in `config`.
    pub variants: Vec<VerdictVariant>,
    /// Posts that the accounts would get.
    pub targets: Vec<VerdictTarget>,
}

/// The content of the targets that name this variant.
#[derive(Debug, Object)]
#[oai(rename = "VerdictVariant")]
pub struct VerdictVariant {
    /// Number of the variant in the post, from 1.
    pub variant: u16,
    /// Main post and replies, in order.
    pub containers: Vec<NewText>,
}

impl VerdictVariant {
    fn of(variant: &Variant, imports: &Imports) -> Self {
        let media = |attached: &Attachment| {
            let url = imports.url(attached.id).and_then(|url| Link::parse_from_json(Some(url.into())).ok());
            let id = url.is_none().then(|| attached.id.to_string());
            NewMedia { id, url, alt_text: attached.alt_text.clone() }
        };
        let text = |container: &Container| NewText {
            content: container.content.clone(),
            media: container.media.iter().map(media).collect(),
        };
        Self { variant: variant.number, containers: variant.content.containers.iter().map(text).collect() }
    }
}

/// Post that some of the accounts would get: all those of a platform, but for the ones with overrides of their own.
#[derive(Debug, Object)]
#[oai(rename = "VerdictTarget")]
pub struct VerdictTarget {
    /// Ids of the accounts.
    pub accounts: Vec<Uuid>,
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// Number of the variant that they get, from 1; 0 for the post's own content.
    pub variant: u16,
    /// The platform's settings.
    pub settings: JsonObject,
    /// Time to publish; null for immediately, or for the next open slot.
    #[oai(nullable)]
    pub scheduled_at: Option<Timestamp>,
}

impl VerdictTarget {
    fn of(variant: Variant, due: Option<DateTime<Utc>>) -> Self {
        Self {
            platform: EnumString::of(&variant.accounts[0].platform),
            accounts: variant.accounts.iter().map(|account| account.id.0).collect(),
            variant: variant.number,
            settings: json_object(variant.settings),
            scheduled_at: variant.scheduled_at.or(due).map(Timestamp),
        }
    }
}

/// An error or warning for one account.
#[derive(Debug, Object)]
#[oai(rename = "VerdictIssue")]
pub struct VerdictIssue {
    /// Id of the account.
    pub account: Uuid,
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// `error`: the post would be refused. `warning`: it would go out, but not as meant.
    pub severity: EnumString<Severity>,
    /// Machine-readable code, for example `text_too_long`.
    pub code: String,
    /// Human-readable message.
    pub message: String,
    /// Keys and 0-based indices that lead to the field.
    pub path: Vec<Segment>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::problem::Code,
        posts::{
            content::Content,
            samples::{account, path},
        },
    };

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    /// Returns a variant of one account.
    fn variant(account: Account, settings: Value, scheduled_at: Option<DateTime<Utc>>) -> Variant {
        let mut variant = Variant::new(vec![account], Content::default(), settings, false);
        variant.scheduled_at = scheduled_at;
        variant
    }

    fn outlook() -> Outlook {
        Outlook {
            now: at(0),
            due: at(0),
            crowded: None,
            duplicates: HashMap::new(),
            exhausted: HashMap::new(),
            held: HashMap::new(),
        }
    }

    /// Returns severity, code, path and message of an issue.
    type Shown = (&'static str, String, Vec<Segment>, String);

    fn shown(issues: Vec<VerdictIssue>) -> Vec<Shown> {
        let shown =
            |issue: VerdictIssue| (issue.severity.value().as_str(), issue.code, issue.path, issue.message);
        issues.into_iter().map(shown).collect()
    }

    #[test]
    fn each_account_is_told_what_concerns_it() {
        let (ada, bob) = (account(1, "x"), account(2, "bluesky"));
        let id = ada.id;
        let post = ResolvedPost::of([ada, bob].map(|account| variant(account, json!({}), None)).into());
        let duplicate = |post, is_published| {
            let found = Duplicate { post, at: at(0), is_published };
            Outlook { duplicates: [(id, (found, path("content")))].into(), ..outlook() }
        };
        let other = domain::PostId(Uuid::nil());
        let held = Held { since: at(0), message: "Not approved.".to_owned() };
        for (outlook, severity, code, at, message) in [
            (
                Outlook { crowded: Some((id, Problem::new(Code::NoOpenSlot, "full"))), ..outlook() },
                "error",
                "no_open_slot",
                "queued_from_account",
                "full",
            ),
            (
                duplicate(None, true),
                "warning",
                "duplicate_text",
                "content",
                "The account published the same text at 1970-01-01T00:00:00.000Z",
            ),
            (
                duplicate(Some(other), false),
                "warning",
                "duplicate_text",
                "content",
                "The account is to publish the same text at 1970-01-01T00:00:00.000Z, in post 00000000-0000-0000-0000-000000000000",
            ),
            (
                Outlook { exhausted: [(id, "It rests".to_owned())].into(), ..outlook() },
                "warning",
                "account_exhausted",
                "accounts.0",
                "It rests",
            ),
            (
                Outlook { held: [(id, held)].into(), ..outlook() },
                "warning",
                "app_refused",
                "accounts.0",
                "The platform refuses the app since 1970-01-01T00:00:00.000Z: Not approved. The post waits until it takes the app again",
            ),
        ] {
            let of = |index| shown(issues_of(&post, index, &[], &[], &outlook, &HashMap::new()));
            assert_eq!(of(0), [(severity, code.to_owned(), path(at), message.to_owned())]);
            assert!(of(1).is_empty(), "{code}");
        }
    }

    #[test]
    fn findings_come_first_and_the_state_of_the_account_last() {
        let ada = Account { status: AccountStatus::TokenExpired, ..account(1, "x") };
        let (id, post) = (ada.id, ResolvedPost::of(vec![variant(ada, json!({}), None)]));
        let finding = Finding {
            platform: "x",
            accounts: vec![id],
            severity: Severity::Error,
            issue: Issue::new(["content"], "text_too_long", "Too long"),
        };
        let unknown = ["config.x.a", "config.bluesky.b", "bluesky.c", "d"].map(path);
        let past = [(id, (at(0), path("scheduled_at")))].into();
        let issues = shown(issues_of(&post, 0, &[finding], &unknown, &outlook(), &past));
        let found: Vec<_> = issues.into_iter().map(|(_, code, at, _)| (code, at)).collect();
        let expected = [
            ("text_too_long", "content"),
            ("unknown_member", "config.x.a"),
            ("unknown_member", "d"),
            ("time_in_past", "scheduled_at"),
            ("account_not_active", "accounts.0"),
        ];
        assert_eq!(found, expected.map(|(code, at)| (code.to_owned(), path(at))));
    }

    #[test]
    fn a_time_has_passed_when_it_is_before_the_tolerance() {
        let own = "config.x.scheduled_at";
        for (of_post, of_account, expected) in [
            (None, None, None),
            (Some(at(9)), None, Some((at(9), "scheduled_at"))),
            (Some(at(10)), None, None),
            (Some(at(1)), Some(at(11)), None),
            (None, Some(at(9)), Some((at(9), own))),
            (Some(at(1)), Some(at(2)), Some((at(2), own))),
        ] {
            let post = ResolvedPost::of(vec![variant(account(1, "x"), json!({}), of_account)]);
            let found = passed(&post, of_post, at(10)).into_values().next();
            assert_eq!(found, expected.map(|(at, text)| (at, path(text))));
        }
    }

    #[test]
    fn a_platforms_own_time_is_told_when_it_comes_before_the_post() {
        let settings = json!({ "publishAt": at(5), "privacyStatus": "private" });
        let post = ResolvedPost::of(vec![variant(account(1, "youtube"), settings, None)]);
        for (due, is_late) in [(at(4), false), (at(5), true), (at(6), true)] {
            let found = late(&post, &post.variants[0], due);
            let paths: Vec<_> = found.iter().map(|finding| finding.issue.path.clone()).collect();
            let expected = is_late.then(|| path("config.youtube.publishAt"));
            assert_eq!(paths, expected.into_iter().collect::<Vec<_>>(), "{due}");
            assert!(found.iter().all(|finding| finding.accounts == [account(1, "youtube").id]));
        }
    }
}
