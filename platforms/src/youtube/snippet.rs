//! The snippet, which channels, videos and entries of playlists have: texts, times and pictures.
//! <https://developers.google.com/youtube/v3/docs/videos#snippet>

use chrono::{DateTime, Utc};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Snippet {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) custom_url: Option<String>,
    pub(super) published_at: Option<DateTime<Utc>>,
    pub(super) thumbnails: Thumbnails,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Thumbnails {
    default: Option<Picture>,
    medium: Option<Picture>,
    high: Option<Picture>,
    standard: Option<Picture>,
    maxres: Option<Picture>,
    fhd: Option<Picture>,
    qhd: Option<Picture>,
    uhd: Option<Picture>,
}

#[derive(Clone, Deserialize)]
struct Picture {
    url: String,
}

impl Thumbnails {
    pub(super) fn largest(&self) -> Option<String> {
        let (large, small) = (
            [&self.uhd, &self.qhd, &self.fhd, &self.maxres],
            [&self.standard, &self.high, &self.medium, &self.default],
        );
        large.into_iter().chain(small).find_map(|picture| Some(picture.as_ref()?.url.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    #[test]
    fn the_largest_thumbnail_is_taken() {
        let sizes = ["default", "medium", "high", "standard", "maxres", "fhd", "qhd", "uhd"];
        for (last, size) in sizes.iter().enumerate() {
            let all: Map<String, Value> =
                sizes[..=last].iter().map(|name| ((*name).to_owned(), json!({ "url": name }))).collect();
            let thumbnails: Thumbnails = serde_json::from_value(Value::Object(all)).expect("thumbnails");
            assert_eq!(thumbnails.largest().as_deref(), Some(*size));
        }
    }
}
