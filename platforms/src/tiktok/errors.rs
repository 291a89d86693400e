//! Refusals, and what to do about them:
//! <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>.

use crate::Reply;
use domain::{ErrorCode, Failure};
use serde_json::Value;

/// Error code of a post that is not for its creator alone, or for a public account, by an app that TikTok has not
/// audited.
pub(super) const UNAUDITED: &str = "unaudited_client_can_only_post_to_private_accounts";

/// Returns the failure of a post that TikTok gave up. TikTok's table says which reasons permit another try.
pub(super) fn failed(reason: &str) -> Failure {
    let advice = match reason {
        "internal" => ", an error of its own",
        "photo_pull_failed" | "video_pull_failed" => ": it could not fetch the file",
        "picture_size_check_failed" => ": a picture has too many pixels or bytes",
        _ => "",
    };
    let message = format!("TikTok could not post it: {reason}{advice}");
    match reason {
        "internal" | "photo_pull_failed" | "video_pull_failed" => Failure::upstream(503, message).certain(),
        "auth_removed" => Failure::revoked(message),
        spam if spam.starts_with("spam_risk") => Failure::rejected(403, message),
        _ => Failure::rejected(422, message),
    }
}

/// Returns the failure of a call that publishes. Without its scope, which the creator took back since the login or never
/// gave, every later post would die of the same: the account has to be connected again.
pub(super) fn unauthorized(failure: Failure) -> Failure {
    match failure.code == ErrorCode::Rejected(401) && failure.message.contains("(scope_not_authorized)") {
        true => Failure::revoked(failure.message),
        false => failure,
    }
}

/// Returns the code of a refusal; `ok` in a success.
pub(super) fn code(reply: &Reply) -> &str {
    reply.body.pointer("/error/code").and_then(Value::as_str).unwrap_or("ok")
}

/// Returns the remedy of a refusal whose message does not name it.
pub(super) fn advice(code: &str) -> Option<&'static str> {
    match code {
        UNAUDITED => Some(
            "TikTok has not audited the app, which posts to private accounts only, with the privacy_level SELF_ONLY",
        ),
        "url_ownership_unverified" => {
            Some("the domain that serves the media has to be verified in TikTok's developer portal")
        }
        "reached_active_user_cap" => {
            Some("TikTok has not audited the app, which posts for five accounts a day")
        }
        "spam_risk_too_many_pending_share" => Some(
            "five posts of a day wait in the inbox of TikTok's app, where the creator finishes or discards them",
        ),
        _ => None,
    }
}
