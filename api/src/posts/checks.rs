//! Checks content against the platforms' limits before anything is stored.

use crate::{
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
    posts::settings::{Config, TopLevel},
};
use domain::{AccountId, Media};
use platforms::{
    Adapter,
    check::{self, AccountKind, Draft, Severity},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::{
    accounts::Account,
    media::{self as assets, Media as Asset},
    posts::{Attachment, Container},
};
use uuid::Uuid;

/// Where the checked values were in the request, for the paths of issues.
pub struct SourcePaths {
    /// True if the text was in `content`, not in `containers`.
    is_single: bool,
    /// Platforms whose settings were at the top level, not under `config`.
    top_level: BTreeSet<String>,
}

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
    fn of(platform: &Adapter, issue: check::Issue, at: impl Fn(&[Value]) -> Vec<Segment>) -> Self {
        Self {
            platform: platform.id,
            accounts: Vec::new(),
            severity: issue.severity,
            issue: Issue::new(at(&issue.path), &issue.code, issue.message),
        }
    }
}

/// Finds the owner's media assets with these ids, in any status.
///
/// # Errors
///
/// If the database is unavailable.
pub async fn find_media(call: &Call<'_>, ids: &[Uuid]) -> Result<HashMap<Uuid, Asset>, Problem> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = assets::find(call.db(), call.owner, ids).await?;
    Ok(found.into_iter().map(|asset| (asset.id.0, asset)).collect())
}

/// Loads the media of stored containers.
///
/// # Errors
///
/// If the database is unavailable.
pub async fn stored_media(call: &Call<'_>, containers: &[Container]) -> Result<Vec<Vec<Media>>, Problem> {
    let references = containers.iter().flat_map(|container| &container.media);
    let known = find_media(call, &references.map(|reference| reference.id).collect::<Vec<_>>()).await?;
    let medium = |reference: &Attachment| Some(known.get(&reference.id)?.medium(reference.alt_text.clone()));
    Ok(containers.iter().map(|container| container.media.iter().filter_map(medium).collect()).collect())
}

/// 422: a referenced media asset is missing or not ready.
pub fn media_not_ready() -> Problem {
    Problem::new(Code::MediaNotReady, "one or more media items are missing or not ready")
}

/// Checks the content once per platform and kind of account. `media` belongs to the containers, in order.
pub fn check(
    accounts: &[Account],
    containers: &[Container],
    media: &[Vec<Media>],
    config: &Value,
    source: &SourcePaths,
) -> Vec<Finding> {
    let mut kinds = BTreeMap::<_, Vec<_>>::new();
    for account in accounts {
        let kind = AccountKind { account_type: &account.account_type, scopes: &account.scopes };
        kinds.entry((account.platform.as_str(), kind)).or_default().push(account.id);
    }
    let both = containers.iter().zip(media);
    let drafts: Vec<_> = both.map(|(container, media)| Draft { text: &container.content, media }).collect();
    let empty = Value::Object(serde_json::Map::new());
    let mut findings = Vec::new();
    for ((id, kind), accounts) in kinds {
        let Some(platform) = platforms::get(id) else { continue };
        let settings = config.get(platform.id).unwrap_or(&empty);
        let issues = check::check_for(platform, kind, &drafts, settings).into_iter();
        findings.extend(issues.map(|issue| Finding {
            accounts: accounts.clone(),
            ..Finding::of(platform, issue, |path| source.path(path))
        }));
    }
    findings
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

impl SourcePaths {
    /// Records where a request had its values; a block under `config` replaces one at the top level.
    pub fn of(is_single: bool, top_level: &TopLevel, config: &Config) -> Self {
        let wins = |platform: &&str| config.platforms().all(|other| other != *platform);
        Self { is_single, top_level: top_level.platforms().filter(wins).map(str::to_owned).collect() }
    }

    fn path(&self, path: &[Value]) -> Vec<Segment> {
        let path = match path {
            [containers, _, rest @ ..] if self.is_single && containers == "containers" => rest,
            [config, platform, ..] if config == "config" && self.is_top_level(platform) => &path[1..],
            path => path,
        };
        path.iter().map(segment).collect()
    }

    fn is_top_level(&self, platform: &Value) -> bool {
        platform.as_str().is_some_and(|platform| self.top_level.contains(platform))
    }
}

fn segment(part: &Value) -> Segment {
    match part {
        Value::Number(index) => Segment::Index(index.as_u64().unwrap_or_default()),
        part => Segment::from(part.as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_leads_to_where_the_caller_wrote_it() {
        let path = |is_single, path: Value| {
            let source = SourcePaths { is_single, top_level: ["tiktok".to_owned()].into() };
            let path: Vec<Value> = serde_json::from_value(path).unwrap();
            source.path(&path)
        };
        assert_eq!(path(true, json!(["containers", 0, "content"])), ["content".into()]);
        assert_eq!(
            path(false, json!(["containers", 0, "content"])),
            ["containers".into(), 0.into(), "content".into()]
        );
        assert_eq!(path(true, json!(["config", "tiktok", "a"])), ["tiktok".into(), "a".into()]);
        assert_eq!(path(true, json!(["config", "x", "a"])), ["config".into(), "x".into(), "a".into()]);
    }
}
