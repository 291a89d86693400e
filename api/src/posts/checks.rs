//! Checks content against the platforms' limits before anything is stored.

use crate::{
    http::problem::{Code, Issue, Problem, Segment},
    posts::{body::SourcePaths, variant::Variant},
};
use domain::AccountId;
use platforms::{
    Adapter,
    check::{self, AccountKind, ContainerContent, Severity},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// An error or warning of a platform.
pub struct Finding {
    /// Id of the platform.
    pub platform: &'static str,
    /// Accounts that it concerns.
    pub accounts: Vec<AccountId>,
    /// Error or warning.
    pub severity: Severity,
    /// The issue with its path.
    pub issue: Issue,
}

impl Finding {
    pub(crate) fn of(platform: &Adapter, issue: check::Issue, at: impl Fn(&[Value]) -> Vec<Segment>) -> Self {
        Self {
            platform: platform.id,
            accounts: Vec::new(),
            severity: issue.severity,
            issue: Issue::new(at(&issue.path), &issue.code, issue.message),
        }
    }
}

/// Checks each variant once per kind of account.
pub(crate) fn check(variants: &[Variant], source: &SourcePaths) -> Vec<Finding> {
    variants.iter().flat_map(|variant| check_variant(variant, source)).collect()
}

fn check_variant(variant: &Variant, source: &SourcePaths) -> Vec<Finding> {
    let mut kinds = BTreeMap::<_, Vec<_>>::new();
    for account in &variant.accounts {
        let kind = AccountKind { account_type: &account.account_type, scopes: &account.scopes };
        kinds.entry((account.platform.as_str(), kind)).or_default().push(account.id);
    }
    let content = &variant.content;
    let both = content.containers.iter().zip(&content.media);
    let contents: Vec<_> =
        both.map(|(container, media)| ContainerContent { text: &container.content, media }).collect();
    let mut findings = Vec::new();
    for ((id, kind), accounts) in kinds {
        let Some(platform) = platforms::get(id) else { continue };
        let check = if variant.is_reply { check::check_reply } else { check::check_for };
        let mut issues = check(platform, kind, &contents, &variant.settings);
        if content.is_partial {
            let of_account = platform.publisher.unused_setting(kind.account_type, &variant.settings);
            issues = without_media(issues, of_account.map(|(setting, _)| setting));
        }
        let issues = issues.into_iter();
        findings.extend(issues.map(|issue| Finding {
            accounts: accounts.clone(),
            ..Finding::of(platform, issue, |path| {
                source.path(variant.path(path.iter().map(segment).collect()))
            })
        }));
    }
    findings
}

/// Leaves the issues of a content that do not depend on files which are still to be fetched; the others are reported
/// when they have been, before anything is published. A warning says so. `of_account` is a setting that the type of account
/// does not use.
fn without_media(mut issues: Vec<check::Issue>, of_account: Option<&str>) -> Vec<check::Issue> {
    issues.retain(|issue| {
        let is_setting = issue.path.first().is_some_and(|first| first == "config");
        let is_of_account =
            of_account.is_some_and(|setting| issue.path.get(2).is_some_and(|at| at == setting));
        let is_of_text = issue.path.get(2).is_some_and(|at| at == "content");
        ["text_too_long", "text_may_be_too_long", "replies_not_supported"].contains(&issue.code.as_str())
            || is_of_text && issue.code == "text_character_not_supported"
            || is_setting
                && (is_of_account
                    || !["settings_conflict", "setting_not_used"].contains(&issue.code.as_str()))
    });
    let message = "Files are checked when they have been fetched".to_owned();
    issues.push(check::Issue::of_main(Severity::Warning, "media_not_checked", "media", message));
    issues
}

/// Checks settings without a post, each by its platform; `member` contained them.
pub fn check_settings(config: &Value, member: &str) -> Vec<Finding> {
    let blocks = config.as_object().into_iter().flatten();
    let blocks = blocks.filter_map(|(id, block)| Some((platforms::get(id)?, block)));
    let at = |path: &[Value]| std::iter::once(member.into()).chain(path[1..].iter().map(segment)).collect();
    let findings = blocks.flat_map(|(platform, block)| {
        check::settings(platform, block).into_iter().map(move |issue| Finding::of(platform, issue, at))
    });
    findings.collect()
}

/// Fails if a platform would certainly reject the content.
///
/// # Errors
///
/// `content_rejected` with all of it.
pub fn reject_errors(findings: Vec<Finding>) -> Result<(), Problem> {
    let refusals = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    let mut issues: Vec<_> =
        refusals.map(|finding| finding.issue.with("platform", finding.platform)).collect();
    // Kinds of accounts of one platform mostly have the same issues.
    issues.dedup();
    if issues.is_empty() {
        return Ok(());
    }
    let detail = "one or more platforms would reject the content";
    Err(Problem::new(Code::ContentRejected, detail).with_issues(issues))
}

/// Converts a part of a path of the platforms' issues.
pub(crate) fn segment(part: &Value) -> Segment {
    match part {
        Value::Number(index) => Segment::Index(index.as_u64().unwrap_or_default()),
        part => Segment::from(part.as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::{
        body::TopLevel,
        content::Content,
        samples::{account, path},
    };
    use domain::Media;
    use poem_openapi::types::ParseFromJSON;
    use serde_json::json;
    use store::posts::Container;

    #[test]
    fn a_finding_is_of_the_accounts_that_it_concerns_and_told_where_they_wrote_it() {
        let content = Content {
            containers: vec![Container::new(0, "a".repeat(100_000), Vec::new())],
            media: vec![Vec::<Media>::new()],
            is_partial: false,
        };
        let settings = json!({ "text_format": 7 });
        let accounts = vec![account(1, "reddit"), account(2, "reddit")];
        let variant = Variant::new(accounts, content, settings.clone(), false);
        let top_level = TopLevel::parse_from_json(Some(json!({ "reddit": settings }))).unwrap();
        let source = SourcePaths::of(true, &top_level, &Default::default());
        let findings = check(&[variant], &source);
        let of_setting = findings.iter().find(|finding| finding.issue.path == path("reddit.text_format"));
        let of_setting = of_setting.expect("a setting of a wrong type is told");
        assert_eq!(of_setting.severity, Severity::Error);
        assert_eq!(of_setting.accounts, [account(1, "reddit").id, account(2, "reddit").id]);
        assert!(findings.iter().any(|finding| finding.issue.path == path("content")));
    }

    #[test]
    fn errors_are_refused_once_for_a_platform_and_warnings_are_not() {
        let finding = |platform, severity, code| Finding {
            platform,
            accounts: Vec::new(),
            severity,
            issue: Issue::new(["content"], code, "a message"),
        };
        let (error, warning) = (Severity::Error, Severity::Warning);
        assert!(reject_errors(vec![finding("x", warning, "a")]).is_ok());
        let problem = reject_errors(vec![
            finding("x", error, "a"),
            finding("x", error, "a"),
            finding("x", warning, "b"),
            finding("bluesky", error, "a"),
        ]);
        let problem = problem.unwrap_err();
        assert_eq!(problem.code, Code::ContentRejected);
        let platforms: Vec<_> = problem.issues.iter().map(|issue| &issue.extras["platform"]).collect();
        assert_eq!(platforms, ["x", "bluesky"]);
    }

    #[test]
    fn what_an_account_does_not_use_is_told_before_the_files_are_there() {
        let unused = |setting: &str| {
            check::Issue::of_setting(
                Severity::Error,
                "setting_not_used",
                "linkedin",
                setting,
                "a message".to_owned(),
            )
        };
        let told = |of_account: Option<&str>| -> Vec<_> {
            let issues = without_media(vec![unused("visibility"), unused("title")], of_account).into_iter();
            issues.map(|issue| (issue.code, issue.path.last().cloned())).collect()
        };
        let unchecked = ("media_not_checked".to_owned(), Some(json!("media")));
        let visibility = ("setting_not_used".to_owned(), Some(json!("visibility")));
        assert_eq!(told(None), std::slice::from_ref(&unchecked));
        assert_eq!(told(Some("visibility")), [visibility, unchecked]);
    }
}
