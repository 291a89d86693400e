//! The creator's options and handle:
//! <https://developers.tiktok.com/doc/content-posting-api-reference-query-creator-info>.
//!
//! TikTok requires them to be read before each post, and to be shown to the creator.

use super::{PrivacyLevel, TikTok, ask};
use crate::{Media, Options, Result, SelectOption, Session, required};
use async_trait::async_trait;
use domain::Failure;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

#[async_trait]
impl Options for TikTok {
    fn kinds(&self) -> &'static [&'static str] {
        &["privacy_levels", "creator"]
    }

    async fn options(
        &self,
        cx: &Session<'_>,
        kind: &str,
        _parent: Option<&str>,
    ) -> Result<Vec<SelectOption>> {
        if !self.kinds().contains(&kind) {
            return Err(Failure::rejected(404, format!("TikTok has no list of {kind}")));
        }
        let creator = creator(cx).await?;
        if kind == "creator" {
            return Ok(creator.properties());
        }
        let levels = creator.privacy_level_options;
        let name = |level: &str| {
            level.parse().map_or(level.to_owned(), |known: PrivacyLevel| known.name().to_owned())
        };
        let levels = levels.into_iter().filter(|level| required::is_id(level));
        Ok(levels.map(|level| SelectOption { name: name(&level), id: level }).collect())
    }
}

/// Reads the creator's options and limits.
pub(super) async fn creator(cx: &Session<'_>) -> Result<Creator> {
    ask(cx, "post/publish/creator_info/query/", &json!({})).await
}

/// Returns true if the account granted the scope for its handle. Sessions without known scopes may have it.
pub(super) fn is_profiled(cx: &Session<'_>) -> bool {
    let scopes = &cx.grant.scopes;
    scopes.is_empty() || scopes.iter().any(|scope| scope == "user.info.profile")
}

/// Returns the creator's handle of today, which may differ from the one at the login; `None` if TikTok does not tell it.
pub(super) async fn handle(cx: &Session<'_>) -> Result<Option<String>> {
    // Only with this scope TikTok told the handle at the login: the account's name may be another without it.
    let at_login = || is_profiled(cx).then(|| cx.account.username.clone());
    Ok(current_handle(cx).await?.or_else(at_login))
}

/// Returns the handle among the creator's options, which `video.publish` opens; `None` if TikTok refuses them.
pub(super) async fn current_handle(cx: &Session<'_>) -> Result<Option<String>> {
    match creator(cx).await {
        Ok(creator) => Ok(creator.creator_username.filter(|name| !name.is_empty())),
        Err(failure) if failure.code.is_permanent() => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[derive(Deserialize)]
pub(super) struct Creator {
    creator_username: Option<String>,
    creator_nickname: Option<String>,
    #[serde(default)]
    privacy_level_options: Vec<String>,
    #[serde(default)]
    pub(super) comment_disabled: bool,
    #[serde(default)]
    pub(super) duet_disabled: bool,
    #[serde(default)]
    pub(super) stitch_disabled: bool,
    max_video_post_duration_sec: Option<u64>,
}

impl Creator {
    pub(super) fn takes(&self, level: PrivacyLevel) -> bool {
        self.privacy_level_options.iter().any(|other| other == level.as_str())
    }

    /// Returns why the creator can't choose this level; `None` if they can.
    pub(super) fn refuses_level(&self, wanted: PrivacyLevel) -> Option<String> {
        let levels = self.privacy_level_options.join(", ");
        let message = format!("the creator may choose a privacy_level of {levels}, and it is {wanted}");
        (!self.takes(wanted)).then_some(message)
    }

    /// Returns why the creator can't post this video for its length; `None` if they can, and for photos.
    pub(super) fn refuses_length(&self, first: &Media) -> Option<String> {
        let longest = self.max_video_post_duration_sec.map(Duration::from_secs);
        let (length, most) = first.duration.zip(longest).filter(|(length, most)| length > most)?;
        let (length, most) = (length.as_secs_f64(), most.as_secs());
        Some(format!("the creator may post videos of {most} seconds, and this has {length}"))
    }

    /// Returns the properties that TikTok requires to be shown before a post, by TikTok's names.
    fn properties(self) -> Vec<SelectOption> {
        let longest = self.max_video_post_duration_sec.map(|seconds| seconds.to_string());
        let all = [
            ("creator_nickname", self.creator_nickname),
            ("creator_username", self.creator_username),
            ("comment_disabled", Some(self.comment_disabled.to_string())),
            ("duet_disabled", Some(self.duet_disabled.to_string())),
            ("stitch_disabled", Some(self.stitch_disabled.to_string())),
            ("max_video_post_duration_sec", longest),
        ];
        let known =
            all.into_iter().filter_map(|(id, value)| Some((id, value.filter(|value| !value.is_empty())?)));
        known.map(|(id, name)| SelectOption { id: id.to_owned(), name }).collect()
    }
}
