//! A video as it is stored. Captions, comments and playlists belong to videos; [`super::videos`] has the calls.

use super::{Record, Transaction};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Video {
    pub(super) id: String,
    /// Id of the owner.
    pub(super) channel: String,
    pub(super) snippet: Value,
    pub(super) status: Value,
    /// True if its owner declared a paid promotion in it.
    #[serde(default)]
    pub(super) has_paid_promotion: bool,
    /// Title and description by language.
    #[serde(default)]
    pub(super) localizations: Value,
    /// Details of the recording.
    #[serde(default)]
    pub(super) recording: Value,
    /// Ids of its files: one, unless it is too large to be stored.
    pub(super) files: Vec<String>,
    /// Content type.
    pub(super) mime: String,
    /// Thumbnail, if one was set.
    pub(super) thumbnail: Option<String>,
    pub(super) size_bytes: u64,
    pub(super) name: Option<String>,
    /// Time when its last byte arrived.
    pub(super) uploaded_at: DateTime<Utc>,
    pub(super) is_stuck: bool,
    pub(super) is_failing: bool,
    /// True if it plays longer than the channel's videos may.
    #[serde(default)]
    pub(super) is_too_long: bool,
}

impl Record for Video {
    const TABLE: &'static str = "youtube.video";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the video with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Video> {
    tx.store.get(id)
}

/// Returns a channel's videos, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, channel: &str) -> impl DoubleEndedIterator<Item = Video> + use<'a> {
    tx.store.linked("youtube.upload", channel)
}

impl Video {
    pub(super) fn title(&self) -> &str {
        self.snippet["title"].as_str().unwrap_or_default()
    }

    pub(super) fn description(&self) -> &str {
        self.snippet["description"].as_str().unwrap_or_default()
    }

    /// Returns its privacy level.
    pub(super) fn privacy(&self) -> &str {
        self.status["privacyStatus"].as_str().unwrap_or("public")
    }

    /// Returns whether its owner declared it as made for children.
    pub(super) fn is_for_kids(&self) -> bool {
        self.status["madeForKids"] == json!(true)
    }

    /// Returns the further lines on its page.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(at) = self.status["publishAt"].as_str() {
            notes.push(format!("Goes public at {at}"));
        }
        if let Some(tags) = self.snippet["tags"].as_array() {
            let tags: Vec<_> = tags.iter().filter_map(Value::as_str).collect();
            notes.push(format!("Tags: {}", tags.join(", ")));
        }
        notes.extend(self.snippet["categoryId"].as_str().map(|id| format!("Category {id}")));
        if self.has_paid_promotion {
            notes.push("Includes paid promotion".to_owned());
        }
        for (language, localized) in self.localizations.as_object().into_iter().flatten() {
            notes.extend(localized["title"].as_str().map(|title| format!("Title in {language}: {title}")));
            let description = localized["description"].as_str();
            notes.extend(description.map(|text| format!("Description in {language}: {text}")));
        }
        notes.extend(self.recording["recordingDate"].as_str().map(|at| format!("Recorded at {at}")));
        notes
    }

    /// Returns the parts that its owner can set.
    pub(super) fn described(&self) -> Map<String, Value> {
        Map::from_iter([
            ("snippet".to_owned(), self.snippet.clone()),
            ("status".to_owned(), self.status.clone()),
            (
                "paidProductPlacementDetails".to_owned(),
                json!({ "hasPaidProductPlacement": self.has_paid_promotion }),
            ),
            ("localizations".to_owned(), self.localizations.clone()),
            ("recordingDetails".to_owned(), self.recording.clone()),
        ])
    }

    /// Returns `uploadStatus`, and the reason if the upload failed or was rejected.
    pub(super) fn state(&self, tx: &Transaction) -> (&'static str, Option<&'static str>) {
        let spent = u64::try_from((tx.now - self.uploaded_at).num_milliseconds()).unwrap_or(0);
        match () {
            () if self.is_stuck || spent < tx.settings.processing_ms => ("uploaded", None),
            () if self.is_failing => ("failed", Some("codec")),
            () if !self.mime.starts_with("video/") => ("failed", Some("invalidFile")),
            () if self.is_too_long => ("rejected", Some("length")),
            () => ("processed", None),
        }
    }
}
