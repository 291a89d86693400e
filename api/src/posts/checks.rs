//! Checks content against the platforms' limits before anything is stored.

use crate::{
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
    posts::{
        create::{NewMedia, NewText},
        overrides::{Content, Variant},
        settings::{Config, TopLevel},
    },
};
use domain::{AccountId, Media};
use platforms::{
    Adapter,
    check::{self, AccountKind, Draft, Severity},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::{
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

/// The media assets that a request names.
#[derive(Debug, Default)]
pub(crate) struct Assets {
    known: HashMap<Uuid, Asset>,
    /// What is wrong with the ones that were attached.
    pub issues: Vec<Issue>,
}

impl Assets {
    /// Finds the assets.
    ///
    /// # Errors
    ///
    /// If the database is unavailable.
    pub(crate) async fn find<'a>(
        call: &Call<'_>,
        named: impl Iterator<Item = &'a NewMedia>,
    ) -> Result<Self, Problem> {
        let ids: Vec<Uuid> = named.filter_map(|media| media.id.parse().ok()).collect();
        Ok(Self { known: find_media(call, &ids).await?, issues: Vec::new() })
    }

    /// Returns the containers that `texts`, found at `path`, stand for.
    pub(crate) fn content(&mut self, texts: Vec<NewText>, path: &[Segment]) -> Content {
        let mut content = Content::default();
        for (position, text) in (0..).zip(texts) {
            let path = [path, &[usize::from(position).into(), "media".into()]].concat();
            let (attached, media) = self.attach(text.media, &path);
            content.containers.push(Container::new(position, text.content, attached));
            content.media.push(media);
        }
        content
    }

    /// Returns the assets of a container; `path` leads to the list of them.
    pub(crate) fn attach(&mut self, named: Vec<NewMedia>, path: &[Segment]) -> (Vec<Attachment>, Vec<Media>) {
        let (mut attached, mut media) = (Vec::new(), Vec::new());
        for (index, named) in named.into_iter().enumerate() {
            let asset = named.id.parse().ok().and_then(|id: Uuid| self.known.get(&id));
            let message = match asset {
                Some(asset) if asset.status.is_usable() => {
                    media.push(asset.medium(named.alt_text.clone()));
                    attached.push(Attachment { id: asset.id.0, alt_text: named.alt_text });
                    continue;
                }
                Some(asset) => format!("The media asset is {}", asset.status),
                None => "The media asset does not exist".to_owned(),
            };
            self.issues.push(Issue::custom([path, &[index.into(), "id".into()]].concat(), message));
        }
        (attached, media)
    }

    /// Fails if one of the attached assets can't be published.
    ///
    /// # Errors
    ///
    /// `media_not_ready` with all of them.
    pub(crate) fn complete(self) -> Result<(), Problem> {
        if self.issues.is_empty() { Ok(()) } else { Err(media_not_ready().with_issues(self.issues)) }
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
    let drafts: Vec<_> = both.map(|(container, media)| Draft { text: &container.content, media }).collect();
    let mut findings = Vec::new();
    for ((id, kind), accounts) in kinds {
        let Some(platform) = platforms::get(id) else { continue };
        let issues = check::check_for(platform, kind, &drafts, &variant.settings).into_iter();
        findings.extend(issues.map(|issue| Finding {
            accounts: accounts.clone(),
            ..Finding::of(platform, issue, |path| {
                source.path(variant.path(path.iter().map(segment).collect()))
            })
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

    /// Leads the paths of a problem's issues to where the caller wrote the values.
    pub(crate) fn lead(&self, mut problem: Problem) -> Problem {
        for issue in &mut problem.issues {
            issue.path = self.path(std::mem::take(&mut issue.path));
        }
        problem
    }

    /// Leads a path to where the caller wrote the value.
    pub(crate) fn path(&self, path: Vec<Segment>) -> Vec<Segment> {
        match &path[..] {
            [Segment::Key(key), _, rest @ ..] if self.is_single && key == "containers" => rest.to_vec(),
            [Segment::Key(key), Segment::Key(platform), ..]
                if key == "config" && self.top_level.contains(platform) =>
            {
                path[1..].to_vec()
            }
            _ => path,
        }
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
            source.path(path.iter().map(segment).collect())
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
