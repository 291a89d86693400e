//! What the platforms would refuse, told before anything is stored.

use crate::problem::{Code, Issue, Problem, Segment};
use platforms::check::{self, Draft, Severity};
use serde_json::Value;
use std::collections::BTreeSet;
use store::posts::NewContainer;

/// Where the caller wrote what is checked, so that an issue's path leads there.
pub struct Origin {
    /// The text stood under `content`, not in `containers`.
    pub is_single: bool,
    /// The platforms whose settings stood at the top level, not under `config`.
    pub top_level: BTreeSet<String>,
}

/// Asks each platform, once, about the content.
///
/// # Errors
///
/// `content_rejected` with everything that a platform would refuse for certain.
pub fn check<'a>(
    targeted: impl IntoIterator<Item = &'a str>,
    containers: &[NewContainer],
    config: &Value,
    origin: &Origin,
) -> Result<(), Problem> {
    let targeted: BTreeSet<_> = targeted.into_iter().collect();
    let drafts: Vec<_> =
        containers.iter().map(|container| Draft { text: &container.content, media: &[] }).collect();
    let empty = Value::Object(serde_json::Map::new());
    let mut issues = Vec::new();
    for platform in targeted.into_iter().filter_map(platforms::get) {
        let settings = config.get(platform.id()).unwrap_or(&empty);
        let found = check::check(platform, &drafts, settings);
        let refusals = found.into_iter().filter(|issue| issue.severity == Severity::Error);
        issues.extend(refusals.map(|issue| {
            let path = origin.path(&issue.path);
            Issue::new(path, &issue.code, issue.message).with("platform", platform.id())
        }));
    }
    if issues.is_empty() {
        return Ok(());
    }
    let detail = "one or more platforms would refuse the content";
    Err(Problem::new(Code::ContentRejected, detail).with_issues(issues))
}

impl Origin {
    fn path(&self, path: &[Value]) -> Vec<Segment> {
        let path = match path {
            [containers, _, rest @ ..] if self.is_single && containers == "containers" => rest,
            [config, platform, ..] if config == "config" && self.is_top_level(platform) => &path[1..],
            path => path,
        };
        let segment = |part: &Value| match part {
            Value::Number(index) => Segment::Index(index.as_u64().unwrap_or_default()),
            part => Segment::from(part.as_str().unwrap_or_default()),
        };
        path.iter().map(segment).collect()
    }

    fn is_top_level(&self, platform: &Value) -> bool {
        platform.as_str().is_some_and(|platform| self.top_level.contains(platform))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_leads_to_where_the_caller_wrote_it() {
        let path = |is_single, path: Value| {
            let origin = Origin { is_single, top_level: ["tiktok".to_owned()].into() };
            let path: Vec<Value> = serde_json::from_value(path).unwrap();
            origin.path(&path)
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
