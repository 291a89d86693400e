//! Features of an account: those that the scopes of its grant open, and why the others are closed.

use crate::{
    adapter::Adapter,
    limits,
    scopes::{Feature, least_lacking},
};
use serde_json::Value;

/// A feature that an account lacks, and scopes that would open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The feature.
    pub feature: Feature,
    /// Scopes that were not granted; all of them are needed.
    pub scopes: Vec<&'static str>,
}

impl Adapter {
    /// Returns the scopes that a feature lacks; none if it is open, or the grant names no scopes.
    pub fn missing(&self, feature: Feature, granted: &[String]) -> Vec<&'static str> {
        match self.auth.oauth() {
            Some(oauth) if !granted.is_empty() => oauth.missing(feature, granted),
            _ => Vec::new(),
        }
    }

    /// Explains why a feature is off with a grant with these scopes; `None` if it is open.
    pub fn explain(&self, feature: Feature, granted: &[String]) -> Option<String> {
        let missing = self.missing(feature, granted);
        let scopes = missing.join(", ");
        (!missing.is_empty()).then(|| {
            format!("the account was connected without {scopes}, needed for {feature}: connect it again")
        })
    }

    /// Returns the setting with which a post is not published with a grant with these scopes, and explains why; the
    /// subject is the platform. `None` if it is published, or the grant names no scopes.
    pub fn uncovered(&self, settings: &Value, granted: &[String]) -> Option<(&'static str, String)> {
        let (setting, needed) = self.publisher.scopes(settings)?;
        let missing = least_lacking(needed, granted);
        let scopes = missing.join(", ");
        (!granted.is_empty() && !missing.is_empty()).then(|| {
            let message = format!(
                "needs {scopes} for this {setting}, and the account was connected without it: connect it again, or \
                 change or omit {setting}"
            );
            (setting, message)
        })
    }

    /// Returns the features that a grant with these scopes does not open.
    pub fn closed(&self, granted: &[String]) -> Vec<Missing> {
        let features = Feature::ALL.iter().filter(|feature| self.has(**feature));
        let missing =
            features.map(|feature| Missing { feature: *feature, scopes: self.missing(*feature, granted) });
        missing.filter(|missing| !missing.scopes.is_empty()).collect()
    }

    /// Returns the number of containers of a post with these settings that are published with a grant with these scopes.
    pub fn containers(&self, granted: &[String], settings: &Value) -> usize {
        if self.publisher.is_series(settings) {
            return usize::MAX;
        }
        if self.missing(Feature::Replies, granted).is_empty() { self.limits.replies.containers() } else { 1 }
    }

    /// Explains why the last `count` containers of a post are not published with a grant with these scopes; the
    /// subject is the platform.
    pub fn left_out(&self, granted: &[String], count: usize) -> String {
        let missing = self.missing(Feature::Replies, granted);
        if missing.is_empty() || self.limits.replies.containers() == 1 {
            return self.limits.replies.left_out(count);
        }
        let missing = missing.join(", ");
        let left_out = limits::left_out(count);
        format!(
            "takes replies of an account that was connected with {missing}; {left_out}, and connecting the account \
             again may help"
        )
    }

    /// Explains why a grant with these scopes can't reply to a live post; the subject is the platform. `None` if it can.
    pub fn takes_no_reply(&self, granted: &[String]) -> Option<String> {
        if self.limits.replies.containers() == 1 {
            return Some("takes no replies".to_owned());
        }
        let missing = self.missing(Feature::Replies, granted);
        (!missing.is_empty()).then(|| {
            let missing = missing.join(", ");
            format!(
                "takes replies of an account that was connected with {missing}: connect the account again"
            )
        })
    }

    /// Returns true if the platform has the feature at all.
    fn has(&self, feature: Feature) -> bool {
        match feature {
            Feature::Publishing => true,
            Feature::Replies => self.limits.replies.containers() > 1,
            Feature::Analytics => self.analytics.is_some(),
            Feature::Import => self.history.is_some(),
            Feature::Deletion => self.deletion.is_some(),
            Feature::Editing => self.editing.is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scopes: &[&str]) -> Vec<String> {
        scopes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn any_one_set_of_scopes_opens_a_feature() {
        let linkedin = crate::get("linkedin").unwrap();
        for (granted, missing) in [
            (&["openid", "profile", "w_member_social"][..], &[][..]),
            (&["r_basicprofile", "w_member_social"], &[]),
            (&["openid", "profile"], &["w_member_social"]),
            (&[], &[]),
        ] {
            assert_eq!(linkedin.missing(Feature::Publishing, &words(granted)), missing, "{granted:?}");
        }
        for granted in ["w_member_social", "w_organization_social", "w_member_social_feed"] {
            assert_eq!(linkedin.missing(Feature::Replies, &words(&[granted])), [""; 0], "{granted}");
        }
    }

    #[test]
    fn a_feature_without_its_scopes_is_closed() {
        let closed = |platform: &str, granted: &[&str]| -> Vec<_> {
            let closed = crate::get(platform).unwrap().closed(&words(granted));
            closed.into_iter().map(|missing| (missing.feature, missing.scopes)).collect()
        };
        let publishing = ["threads_basic", "threads_content_publish"];
        let expected = [
            (Feature::Replies, vec!["threads_manage_replies", "threads_read_replies"]),
            (Feature::Analytics, vec!["threads_manage_insights"]),
            (Feature::Deletion, vec!["threads_delete"]),
        ];
        assert_eq!(closed("threads", &publishing), expected);
        let missing = closed("x", &["users.read", "tweet.write", "tweet.read"]);
        assert_eq!(missing, [(Feature::Publishing, vec!["media.write", "offline.access"])]);
        assert_eq!(closed("bluesky", &[]), []);
        for platform in crate::all() {
            let Some(oauth) = platform.auth.oauth().filter(|oauth| oauth.presets.is_empty()) else {
                continue;
            };
            assert_eq!(closed(platform.id, oauth.scopes), [], "{}", platform.id);
        }
    }

    #[test]
    fn replies_are_left_out_where_their_scopes_are_missing() {
        let publishing = ["pages_show_list", "pages_manage_posts", "pages_read_engagement"];
        let facebook = crate::get("facebook").unwrap();
        assert_eq!(facebook.containers(&words(&publishing), &Value::Null), 1);
        assert_eq!(
            facebook.left_out(&words(&publishing), 1),
            "takes replies of an account that was connected with pages_manage_engagement, pages_read_user_content; \
             1 container is left out, and connecting the account again may help"
        );
        let none =
            |platform: &str, granted: &[&str]| crate::get(platform).unwrap().takes_no_reply(&words(granted));
        assert_eq!(
            none("facebook", &publishing).unwrap(),
            "takes replies of an account that was connected with pages_manage_engagement, pages_read_user_content: \
             connect the account again"
        );
        assert_eq!(none("facebook", &[]), None);
        assert_eq!(none("tiktok", &[]).unwrap(), "takes no replies");
        // A limit of the platform itself is no matter of scopes.
        for (platform, granted, containers) in [
            ("facebook", &[][..], 2),
            ("google_business", &["https://www.googleapis.com/auth/business.manage"], 1),
            ("bluesky", &[], usize::MAX),
        ] {
            let adapter = crate::get(platform).unwrap();
            assert_eq!(adapter.containers(&words(granted), &Value::Null), containers, "{platform}");
            let told = adapter.left_out(&words(granted), 2);
            assert_eq!(told, adapter.limits.replies.left_out(2), "{platform}");
        }
        // Stories are no replies.
        let instagram = crate::get("instagram").unwrap();
        let publishing = words(&["instagram_business_basic", "instagram_business_content_publish"]);
        let containers =
            |place: &str| instagram.containers(&publishing, &serde_json::json!({ "media_type": place }));
        assert_eq!((containers("FEED"), containers("STORIES")), (1, usize::MAX));
    }

    #[test]
    fn every_default_and_preset_opens_publishing() {
        for platform in crate::all() {
            let Some(oauth) = platform.auth.oauth() else { continue };
            let presets = oauth.presets.iter().map(|preset| (preset.name, preset.scopes));
            for (name, scopes) in presets.chain([("default", oauth.scopes)]) {
                let missing = oauth.missing(Feature::Publishing, &words(scopes));
                assert!(missing.is_empty(), "{} {name}: {missing:?}", platform.id);
            }
            assert!(
                oauth.features.iter().any(|(feature, _)| *feature == Feature::Publishing),
                "{}",
                platform.id
            );
        }
    }
}
