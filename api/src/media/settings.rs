//! Settings of an organization for its media.
//!
//! They apply to both modes. A test key does not change what is published in live mode.

use super::{Call, Caller, Json, MediaRead, MediaWrite, Null, Problem, Rules, Tag};
use crate::http::problem::Code;
use domain::Mode;
use poem_openapi::{Object, OpenApi};
use store::people::organizations;

/// The operations on the settings.
pub struct Settings;

#[OpenApi(tag = "Tag::Media")]
impl Settings {
    /// Get the media settings
    ///
    /// Live and test keys see the same settings. Scope `media:read`.
    #[oai(path = "/media/settings", method = "get", operation_id = "getMediaSettings")]
    async fn get(&self, caller: Caller<MediaRead>) -> Result<Json<MediaSettings>, Problem> {
        Ok(Json(get(&caller.call()).await?))
    }

    /// Update the media settings
    ///
    /// Applies to what is published from now on, in both modes; only live keys can change it. Scope `media:write`.
    #[oai(path = "/media/settings", method = "patch", operation_id = "updateMediaSettings")]
    async fn update(
        &self,
        caller: Caller<MediaWrite>,
        body: Json<MediaSettingsPatch>,
    ) -> Result<Json<MediaSettings>, Problem> {
        Ok(Json(update(&caller.call(), body.0).await?))
    }
}

/// Returns the settings.
pub async fn get(call: &Call<'_>) -> Result<MediaSettings, Problem> {
    Ok(MediaSettings { strip_metadata: organizations::strips_metadata(call.db(), call.owner.org).await? })
}

/// Changes the settings.
pub async fn update(call: &Call<'_>, body: MediaSettingsPatch) -> Result<MediaSettings, Problem> {
    if call.owner.mode != Mode::Live {
        return Err(Problem::new(Code::Forbidden, "the settings apply to live mode too: use a live key"));
    }
    if let Some(strip) = body.strip_metadata {
        organizations::set_strip_metadata(call.db(), call.owner.org, strip, call.by, call.now()).await?;
    }
    get(call).await
}

/// Settings for media.
#[derive(Debug, Object)]
pub struct MediaSettings {
    /// True if the position, the device and other metadata are removed from pictures and videos before they are
    /// published, without encoding them again; the color profile and the orientation are kept. True by default.
    pub strip_metadata: bool,
}

/// Changes of the settings for media.
#[derive(Debug, Object)]
pub struct MediaSettingsPatch {
    /// False publishes pictures that need no fitting, and videos, with their metadata: for who needs credits in IPTC
    /// fields.
    pub strip_metadata: Option<bool>,
}

impl Rules for MediaSettingsPatch {
    const NULL: Null = Null::Clears;
}
