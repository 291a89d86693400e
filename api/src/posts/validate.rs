//! What would become of a post, without making it.
//!
//! The body is read and drawn up as on creation, and the platforms are asked the same questions, so
//! that what is said here and what creating says can't differ.

use crate::{
    accounts::resolve::QUEUED_FROM_ACCOUNT,
    http::{
        body::Json,
        caller::{Call, Caller, PostsWrite},
        problem::{Problem, Segment},
    },
    openapi::tag::Tag,
    posts::create::{Draft, NewPost},
    slots,
    types::enum_string::{EnumString, Platform},
};
use platforms::check::Severity;
use poem_openapi::{Object, OpenApi};
use store::accounts::AccountStatus;
use uuid::Uuid;

/// The most issues of a verdict.
const MAX_ISSUES: usize = 1000;

crate::types::enum_string::string_enum!(Severity, "Severity");

/// The operation on posts that are not there yet.
pub struct Previews;

#[OpenApi(tag = "Tag::Posts")]
impl Previews {
    /// Validate a post
    ///
    /// Takes the body of a creation and tells what each platform would say about it; nothing is stored.
    /// An issue of severity `error` would be refused on creation. Scope `posts:write`.
    #[oai(path = "/posts/validate", method = "post", operation_id = "validatePost")]
    async fn validate(
        &self,
        caller: Caller<PostsWrite>,
        body: Json<NewPost>,
    ) -> Result<Json<Verdict>, Problem> {
        Ok(Json(validate(&caller.call(), body.0).await?))
    }
}

/// Looks at a post that is not there yet.
///
/// # Errors
///
/// With what the body refers to and what is not there.
pub async fn validate(call: &Call<'_>, body: NewPost) -> Result<Verdict, Problem> {
    let draft = Draft::resolve(call, body).await?;
    let findings = draft.findings();
    let crowded = match &draft.queue {
        Some(queue) => slots::crowded(call, queue).await?.map(|problem| (queue.account, problem)),
        None => None,
    };
    let (mut issues, mut valid) = (Vec::new(), true);
    for (index, account) in draft.accounts.iter().enumerate() {
        let own = findings.iter().filter(|finding| finding.platform == account.platform);
        let mut note = |severity: Severity, code: &str, message: &str, path: Vec<Segment>| {
            valid &= severity != Severity::Error;
            if issues.len() == MAX_ISSUES {
                return;
            }
            issues.push(VerdictIssue {
                account: account.id.0,
                platform: EnumString::of(&account.platform),
                severity: EnumString::of(severity.as_str()),
                code: code.to_owned(),
                message: message.to_owned(),
                path,
            });
        };
        for finding in own {
            let issue = &finding.issue;
            note(finding.severity, &issue.code, &issue.message, issue.path.clone());
        }
        for (_, problem) in crowded.iter().filter(|(id, _)| *id == account.id) {
            let path = vec![QUEUED_FROM_ACCOUNT.into()];
            note(Severity::Error, problem.code.as_str(), &problem.detail, path);
        }
        if account.status != AccountStatus::Active {
            let message = format!("The account is {}: it has to be reconnected first", account.status);
            note(Severity::Warning, "account_not_active", &message, vec!["accounts".into(), index.into()]);
        }
    }
    Ok(Verdict { valid, issues })
}

/// What the platforms would say.
#[derive(Debug, Object)]
#[oai(rename = "Verdict")]
pub struct Verdict {
    /// Whether the post would be taken: there may be warnings.
    pub valid: bool,
    /// Issues, account by account; at most 1000.
    pub issues: Vec<VerdictIssue>,
}

/// Something about a post on one of its accounts.
#[derive(Debug, Object)]
#[oai(rename = "VerdictIssue")]
pub struct VerdictIssue {
    /// The account.
    pub account: Uuid,
    /// Its platform.
    pub platform: EnumString<Platform>,
    /// `error`: the post would be refused. `warning`: it would go out, but not as meant.
    pub severity: EnumString<Severity>,
    /// What it is, for machines, for example `text_too_long`.
    pub code: String,
    /// What it is, for people.
    pub message: String,
    /// Keys and 0-based indices that lead to the field.
    pub path: Vec<Segment>,
}
