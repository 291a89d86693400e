//! The error responses of each operation in the document.
//!
//! Most errors follow from an operation's shape: a body can be invalid, an id in the path unknown. The others
//! are listed in [`ADDITIONAL`].

use crate::http::problem::{Code, Issue, Problem};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Errors of a post's references and content.
const CONTENT_CODES: [Code; 6] = [
    Code::Unprocessable,
    Code::MediaNotReady,
    Code::AccountNotFound,
    Code::AmbiguousAccount,
    Code::NoOpenSlot,
    Code::ContentRejected,
];

/// Errors beyond those that follow from the shape, by operation id.
const ADDITIONAL: &[(&str, &[Code])] = &[
    ("createPost", &CONTENT_CODES),
    ("createPost", &[Code::Conflict]),
    (
        "validatePost",
        &[Code::Unprocessable, Code::MediaNotReady, Code::AccountNotFound, Code::AmbiguousAccount],
    ),
    ("updatePost", &[Code::PublishingStarted, Code::Conflict]),
    ("updatePost", &CONTENT_CODES),
    ("listPosts", &[Code::InvalidCursor]),
    ("retryTarget", &[Code::Conflict]),
    ("retryPost", &[Code::Conflict, Code::Unprocessable]),
    ("retryFailedTargets", &[Code::Conflict]),
    (
        "editTarget",
        &[
            Code::Conflict,
            Code::Unprocessable,
            Code::ContentRejected,
            Code::EditingUnsupported,
            Code::ReconnectRequired,
        ],
    ),
    (
        "unpublishTarget",
        &[Code::Conflict, Code::Unprocessable, Code::DeletionUnsupported, Code::ReconnectRequired],
    ),
    ("getPostAnalytics", &[Code::Unprocessable]),
    ("setSlots", &[Code::AccountNotFound]),
    ("findSlot", &[Code::AccountNotFound, Code::AmbiguousAccount, Code::NoOpenSlot]),
    ("uploadMedia", &[Code::Unprocessable]),
    ("confirmMedia", &[Code::Conflict, Code::PayloadTooLarge, Code::Unprocessable]),
    ("updateMedia", &[Code::Conflict]),
    ("deleteMedia", &[Code::Conflict]),
    ("listSocialAccounts", &[Code::InvalidCursor]),
    ("updateSocialAccount", &[Code::Unprocessable]),
    ("listSocialAccountOptions", &[Code::Unprocessable]),
    ("getSocialAccountLimits", &[Code::Unprocessable]),
    ("createImport", &[Code::Unprocessable, Code::Conflict]),
    ("listImports", &[Code::InvalidCursor]),
    ("listImportedPosts", &[Code::InvalidCursor]),
    ("createAuthUrl", &[Code::NoAppAvailable, Code::AccountNotFound, Code::Unprocessable]),
    ("createProfile", &[Code::AccountNotFound, Code::ContentRejected]),
    ("updateProfile", &[Code::AccountNotFound, Code::ContentRejected]),
    ("connectBlueskyAccount", &[Code::InvalidCredentials, Code::Unprocessable]),
    ("getPendingLogin", &[Code::RateLimited]),
    (
        "finalizePendingLogin",
        &[
            Code::RateLimited,
            Code::Unprocessable,
            Code::Conflict,
            Code::QuotaExceeded,
            Code::Unauthorized,
            Code::InsufficientScope,
        ],
    ),
    ("inviteTeamMember", &[Code::Conflict]),
    ("removeTeamMember", &[Code::Conflict]),
    ("updateTeamMember", &[Code::Conflict]),
    ("createApiKey", &[Code::Unprocessable, Code::AccountNotFound]),
    ("rotateApiKey", &[Code::Conflict]),
    ("listRequests", &[Code::InvalidCursor]),
    ("listAuditEntries", &[Code::InvalidCursor]),
    ("listEvents", &[Code::InvalidCursor]),
    ("listWebhookDeliveries", &[Code::InvalidCursor]),
    ("redeliverWebhookDelivery", &[Code::Conflict]),
    ("replayWebhook", &[Code::Conflict]),
];

/// Operations that no quota refuses, and no bucket but that of unknown keys.
const ESSENTIAL: [&str; 5] =
    ["getUsage", "deleteApiKey", "rotateApiKey", "deleteClientToken", "removeTeamMember"];

/// Reduces each operation's error responses to those that can occur, with an example of each.
pub(crate) fn narrow(document: &mut Value) {
    let paths = document["paths"].as_object_mut().expect("the document has paths");
    for (path, operations) in paths {
        let has_parameter = path.contains('{');
        for operation in operations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let codes = codes(operation, has_parameter);
            let responses = operation["responses"].as_object_mut().expect("an operation has responses");
            responses.retain(|status, _| status.starts_with('2') || codes.contains_key(status));
            for (status, codes) in &codes {
                describe(&mut responses[status], codes);
            }
        }
    }
}

/// Problem codes of an operation, by status.
fn codes(operation: &Value, has_parameter: bool) -> BTreeMap<String, Vec<Code>> {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let mut codes = vec![Code::InternalError, Code::Unavailable];
    if operation.get("security").is_some() {
        // An unknown key is refused at each operation, and too many of them by `RateLimited`.
        codes.extend([Code::Unauthorized, Code::RateLimited, Code::InsufficientScope, Code::Forbidden]);
        if !ESSENTIAL.contains(&id) {
            codes.push(Code::QuotaExceeded);
        }
    }
    let has_body = operation.get("requestBody").is_some();
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    if has_body || parameters.into_iter().any(|parameter| parameter["in"] != "path") {
        codes.push(Code::InvalidRequest);
    }
    if has_body {
        codes.extend([Code::PayloadTooLarge, Code::RequestTimeout]);
    }
    codes.extend(has_parameter.then_some(Code::NotFound));
    let further = ADDITIONAL.iter().filter(|(known, _)| *known == id).flat_map(|(_, codes)| *codes);
    codes.extend(further);
    let mut by_status = BTreeMap::<_, Vec<_>>::new();
    for code in codes {
        by_status.entry(code.status().as_str().to_owned()).or_default().push(code);
    }
    by_status
}

fn describe(response: &mut Value, codes: &[Code]) {
    let names: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
    let generic = response["description"].as_str().unwrap_or_default();
    response["description"] = json!(format!("{generic}: {}", names.join(", ")));
    let content = response["content"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for content in content {
        for code in codes {
            content["examples"][code.as_str()] = json!({ "value": sample(*code).document() });
        }
    }
}

/// An example of a problem.
fn sample(code: Code) -> Problem {
    let of = |detail: &str| Problem::new(code, detail);
    match code {
        Code::InvalidRequest => {
            Problem::invalid_body(vec![Issue::wrong_type(&["accounts".into()], "array", "undefined")])
        }
        Code::InvalidCursor => of("invalid cursor"),
        Code::NoAppAvailable => {
            of("neither the organization nor the installation has an app for this platform")
        }
        Code::Unauthorized => Problem::invalid_key(),
        Code::QuotaExceeded => of("the monthly quota of API requests is used up").with_quota(
            10_000,
            10_000,
            Some("https://fanfare.example.com/plans".to_owned()),
        ),
        Code::InsufficientScope => of("the API key lacks the scope posts:write"),
        Code::Forbidden => of("a test key can't create a live key"),
        Code::NotFound => of("not found"),
        Code::MethodNotAllowed => Problem::method_not_allowed("GET, HEAD"),
        Code::RequestTimeout => Problem::timed_out(),
        Code::Conflict => of("the current state does not allow this"),
        Code::PublishingStarted => of("publishing has begun; the post can't be changed any more"),
        Code::PayloadTooLarge => Problem::too_large(),
        Code::Unprocessable => of("the request refers to something invalid"),
        Code::MediaNotReady => of("one or more media items are missing or not ready"),
        Code::AccountNotFound => of("one or more target accounts were not found"),
        Code::InvalidCredentials => of("bluesky refused: Invalid identifier or password"),
        Code::AmbiguousAccount => of("one or more account handles match several accounts"),
        Code::NoOpenSlot => of("the account has no open posting slot within 365 days"),
        Code::ContentRejected => of("one or more platforms would reject the content").with_issues(vec![
            Issue::new(["content"], "text_too_long", "x takes 280 weighted characters, and the text has 290")
                .with("platform", "x"),
        ]),
        Code::DeletionUnsupported => of("Instagram lets no app delete posts; delete it there"),
        Code::EditingUnsupported => of("Instagram lets no app change a caption"),
        Code::ReconnectRequired => {
            of("the account was connected without threads_delete, needed for deletion: connect it again")
        }
        Code::RateLimited => of("the rate limit was exceeded"),
        Code::InternalError => Problem::internal(),
        Code::Unavailable => Problem::unavailable(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_of_an_operation_and_no_code_is_named_twice() {
        let document: Value = serde_json::from_str(&crate::document()).unwrap();
        let operations = document["paths"].as_object().unwrap().values().filter_map(Value::as_object);
        let ids: Vec<_> =
            operations.flat_map(Map::values).map(|operation| &operation["operationId"]).collect();
        for (id, codes) in ADDITIONAL {
            assert!(ids.contains(&&json!(id)), "there is no operation {id}");
            let lines = ADDITIONAL.iter().filter(|(known, _)| known == id).flat_map(|(_, codes)| *codes);
            for code in codes.iter() {
                assert_eq!(lines.clone().filter(|known| *known == code).count(), 1, "{id}: {code}");
            }
        }
    }

    #[test]
    fn a_sample_is_of_its_kind() {
        for code in Code::ALL {
            assert_eq!(sample(*code).code, *code);
        }
    }
}
