//! Checks content against the platforms' limits before anything is stored.

use crate::{
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
    posts::{
        body::{NewMedia, NewText, SourcePaths},
        imports::Imports,
        overrides::{Content, Variant},
    },
};
use domain::{AccountId, Media, PostId};
use platforms::{
    Adapter,
    check::{self, AccountKind, ContainerContent, Severity},
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{
    media::{self as assets, Media as Asset},
    posts::{Attachment, Container},
};
use uuid::Uuid;

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

/// The media assets that a request names.
#[derive(Debug, Default)]
pub(crate) struct Assets {
    known: HashMap<Uuid, Asset>,
    imports: Imports,
    /// Assets that the post has already, of which some may still be fetched from addresses that it named.
    own: HashSet<Uuid>,
    has_bad_address: bool,
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
        mut imports: Imports,
    ) -> Result<Self, Problem> {
        let ids: Vec<Uuid> = named.filter_map(|media| media.id.as_ref()?.parse().ok()).collect();
        imports.check(call).await?;
        let known = find_media(call, &ids).await?;
        Ok(Self { known, imports, ..Self::default() })
    }

    /// Accepts these assets also while they are fetched.
    #[must_use]
    pub(crate) fn with_own(self, own: HashSet<Uuid>) -> Self {
        Self { own, ..self }
    }

    /// Returns the containers that `texts`, found at `path`, stand for.
    pub(crate) fn content(&mut self, texts: Vec<NewText>, path: &[Segment]) -> Content {
        let mut content = Content::default();
        for (position, text) in (0..).zip(texts) {
            let path = [path, &[usize::from(position).into(), "media".into()]].concat();
            let (attached, media, is_partial) = self.attach(text.media, &path);
            content.containers.push(Container::new(position, text.content, attached));
            content.media.push(media);
            content.is_partial |= is_partial;
        }
        content
    }

    /// Returns the assets of a container, what is known about them, and whether some are still to be fetched; `path`
    /// leads to the list of them.
    pub(crate) fn attach(
        &mut self,
        named: Vec<NewMedia>,
        path: &[Segment],
    ) -> (Vec<Attachment>, Vec<Media>, bool) {
        let (mut attached, mut media, mut is_partial) = (Vec::new(), Vec::new(), false);
        for (index, named) in named.into_iter().enumerate() {
            let id: Option<Uuid> = named.id.and_then(|id| id.parse().ok());
            if let Some(id) = id.filter(|id| self.imports.contains(*id)) {
                if let Some(fault) = self.imports.fault(id) {
                    self.issues.push(fault.clone().under(&[path, &[index.into()]].concat()));
                    self.has_bad_address = true;
                }
                attached.push(Attachment { id, alt_text: named.alt_text });
                is_partial = true;
                continue;
            }
            let asset = id.and_then(|id| self.known.get(&id));
            let message = match asset {
                Some(asset) if asset.is_being_fetched() && self.own.contains(&asset.id.0) => {
                    attached.push(Attachment { id: asset.id.0, alt_text: named.alt_text });
                    is_partial = true;
                    continue;
                }
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
        (attached, media, is_partial)
    }

    /// Fails if one of the attached assets can't be published.
    ///
    /// # Errors
    ///
    /// `media_not_ready` with all of them; `invalid_request` if an address can't be fetched.
    pub(crate) fn complete(self) -> Result<Imports, Problem> {
        match &self.issues[..] {
            [] => Ok(self.imports),
            _ if self.has_bad_address => Err(Problem::invalid_body(self.issues)),
            _ => Err(media_not_ready().with_issues(self.issues)),
        }
    }
}

/// Finds the media assets with these ids that the caller reaches, in any status.
///
/// # Errors
///
/// If the database is unavailable.
pub async fn find_media(call: &Call<'_>, ids: &[Uuid]) -> Result<HashMap<Uuid, Asset>, Problem> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(by_id(assets::find(call.db(), call.access(), ids).await?))
}

fn by_id(assets: Vec<Asset>) -> HashMap<Uuid, Asset> {
    assets.into_iter().map(|asset| (asset.id.0, asset)).collect()
}

/// Loads the media of containers of a stored post, also of those that another key of the organization attached.
///
/// # Errors
///
/// If the database is unavailable.
pub(crate) async fn stored(
    call: &Call<'_>,
    post: PostId,
    containers: Vec<Container>,
) -> Result<Content, Problem> {
    let references = containers.iter().flat_map(|container| &container.media);
    let ids: Vec<_> = references.map(|reference| reference.id).collect();
    let mut known = by_id(assets::attached(call.db(), call.access(), post, &ids).await?);
    let all = known.len();
    known.retain(|_, asset| !asset.is_being_fetched());
    let medium = |reference: &Attachment| Some(known.get(&reference.id)?.medium(reference.alt_text.clone()));
    let media =
        containers.iter().map(|container| container.media.iter().filter_map(medium).collect()).collect();
    Ok(Content { containers, media, is_partial: known.len() < all })
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
    use serde_json::json;

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
