//! Title and description in further languages: <https://developers.google.com/youtube/v3/docs/videos#localizations>.
//!
//! They are a part of the video's resource, so that the upload sets them. YouTube takes none without the language of
//! the title and the description themselves. Its limits of these two are those of each language.

use super::{ADAPTER, MAX_DESCRIPTION, MAX_TITLE, Settings, given};
use crate::{
    check::{Issue, Severity},
    schema,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Localization {
    /// Language of this title and description (BCP 47); not defaultLanguage.
    #[schemars(length(min = 2, max = 35), regex(pattern = schema::LANGUAGE))]
    language: String,
    /// Title in this language.
    #[schemars(length(min = 1, max = MAX_TITLE), regex(pattern = "^[^<>]*$"))]
    title: String,
    /// Description in this language, of at most 5000 bytes.
    #[schemars(length(max = MAX_DESCRIPTION), regex(pattern = "^[^<>]*$"))]
    description: Option<String>,
}

/// Returns the errors of what YouTube would refuse, and of a second title in the default language.
pub(super) fn issues(settings: &Settings) -> Vec<Issue> {
    let localizations = settings.localizations();
    let default = given(settings.default_language.as_deref());
    let mut found = Vec::new();
    if !localizations.is_empty() && default.is_none() {
        let message = "localizations need defaultLanguage, the language of title and text";
        found.push(error("settings_conflict", None, message));
    }
    for (index, Localization { language, description, .. }) in localizations.iter().enumerate() {
        let mut wrong = |message: &str| found.push(error("setting_invalid", Some(index), message));
        if default.is_some_and(|default| default.eq_ignore_ascii_case(language)) {
            wrong(&format!("title and text are in {language} themselves, the defaultLanguage"));
        }
        if localizations[..index].iter().any(|other| other.language.eq_ignore_ascii_case(language)) {
            wrong(&format!("there is another localization in {language}"));
        }
        let length = description.as_deref().map_or(0, str::len);
        if length > MAX_DESCRIPTION {
            wrong(&format!(
                "a description has {MAX_DESCRIPTION} bytes at most, and the one in {language} has {length}"
            ));
        }
    }
    found
}

/// Returns an error of the localization with this index, or of the setting.
fn error(code: &str, index: Option<usize>, message: &str) -> Issue {
    let message = format!("{}: {message}", ADAPTER.id);
    let mut issue = Issue::of_setting(Severity::Error, code, ADAPTER.id, "localizations", message);
    issue.path.extend(index.map(Value::from));
    issue
}

/// Returns the part of the video's resource.
pub(super) fn resource(localizations: &[Localization]) -> Map<String, Value> {
    let localized = |one: &Localization| match &one.description {
        Some(description) => json!({ "title": one.title, "description": description }),
        None => json!({ "title": one.title }),
    };
    localizations.iter().map(|one| (one.language.clone(), localized(one))).collect()
}
