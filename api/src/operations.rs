//! All operations of the API, and the OpenAPI document of them.
//!
//! `openapi.json` beside the sources is this document, so that a review shows every change of the
//! interface.

use crate::{
    accounts::{Accounts, app_password::Passwords, imports::Imports, limits::Limits, pending::Pending},
    app::PREFIX,
    audit::Audit,
    branding::ConnectPages,
    client_tokens::ClientTokens,
    events::Events,
    keys::Keys,
    media::{MediaAssets, settings::Settings},
    networks::Networks,
    openapi::document::complete,
    posts::{Posts, analytics::Analytics, batch::Batches, settings, validate::Previews},
    profiles::Profiles,
    requests::Requests,
    slots::Slots,
    team::Team,
    usage::Account,
    webhooks::Webhooks,
};
use poem_openapi::{LicenseObject, OpenApiService};

/// All operations.
pub(crate) type Operations = (
    Posts,
    Batches,
    Previews,
    Analytics,
    Slots,
    (MediaAssets, Settings),
    (Accounts, Limits),
    Imports,
    (Networks, ConnectPages),
    Passwords,
    (Pending, ClientTokens),
    // Nested, because a tuple of operations has at most 16 members.
    (Webhooks, Events),
    Profiles,
    Team,
    Keys,
    (Account, Requests, Audit),
);

const DESCRIPTION: &str = "Publishes one piece of content to many social accounts with one call, and reports \
    the results by signed webhooks.\n\nKeys that begin with `sk_test_` act on test data and publish to a \
    built-in sandbox; `sk_live_` keys act on live data and on the real platforms.\n\nCalls are limited per \
    organization and mode in fixed windows; `X-RateLimit-Limit` and `X-RateLimit-Remaining` describe the tightest \
    bucket that a call counts in.\n\nEvery response, also of an error, has the id of its request in \
    `X-Request-Id`. The service always generates it; one that a client sends is only logged.\n\nA path \
    that is called with a method that it lacks answers 405, a problem document with the code \
    `method_not_allowed`; `Allow` lists the path's methods.";

/// The service that routes the operations.
pub(crate) fn service() -> OpenApiService<Operations, ()> {
    let operations = (
        Posts,
        Batches,
        Previews,
        Analytics,
        Slots,
        (MediaAssets, Settings),
        (Accounts, Limits),
        Imports,
        (Networks, ConnectPages),
        Passwords,
        (Pending, ClientTokens),
        (Webhooks, Events),
        Profiles,
        Team,
        Keys,
        (Account, Requests, Audit),
    );
    OpenApiService::new(operations, "Fanfare API", env!("CARGO_PKG_VERSION"))
        .description(DESCRIPTION)
        .license(LicenseObject::new("Apache-2.0").url("https://www.apache.org/licenses/LICENSE-2.0"))
}

/// The document for clients that reach the API at `base_url`.
pub(crate) fn document_at(base_url: &str) -> String {
    complete(&service().spec(), base_url, settings::describe)
}

/// The document without a host, as it is committed.
pub fn document() -> String {
    document_at(PREFIX) + "\n"
}

/// A self-contained HTML page that renders the document.
pub(crate) fn page(document: &str) -> String {
    let service = service();
    service
        .scalar_html()
        .replacen("<title>Scalar</title>", "<title>Fanfare API</title>", 1)
        // Without this the page would fetch fonts from elsewhere.
        .replacen(
            r#"id="api-reference""#,
            r#"id="api-reference" data-configuration='{"withDefaultFonts":false,"authentication":{"preferredSecurityScheme":"ApiKey"}}'"#,
            1,
        )
        .replacen(
            "<body>",
            r#"<body><noscript><p>This page needs scripts. The document itself: <a href="/api/v1/openapi.json">openapi.json</a></p></noscript>"#,
            1,
        )
        .replacen(&service.spec(), &document.replace("</", "<\\/"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::reach::{self, Reach},
        openapi::document::operations,
    };
    use serde_json::Value;

    #[test]
    fn the_committed_document_is_current() {
        let committed = include_str!("../openapi.json");
        assert!(document() == committed, "renew it: cargo run -q -- openapi > api/openapi.json");
    }

    /// Every part of a body is read and checked, so that each needs a ceiling. Where a format
    /// or an enumeration says what fits, the check looks at a bounded part of the text, and an issue repeats
    /// no more of it.
    #[test]
    fn every_text_list_and_map_of_a_body_has_a_ceiling() {
        fn walk(document: &Value, schema: &Value, path: &str, open: &mut Vec<String>) {
            if let Some(name) = schema["$ref"].as_str() {
                return walk(document, document.pointer(&name[1..]).unwrap(), path, open);
            }
            for choice in ["allOf", "anyOf", "oneOf"].iter().flat_map(|key| schema[key].as_array()).flatten()
            {
                walk(document, choice, path, open);
            }
            let formats = [
                "uuid",
                "date-time",
                "email",
                crate::types::time_of_day::FORMAT,
                crate::types::color::FORMAT,
                crate::types::timestamp::BOUND_FORMAT,
            ];
            let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
            let is_bounded = match kind.as_str() {
                Some("string") => {
                    schema["maxLength"].is_u64()
                        || schema["enum"].is_array()
                        || schema["format"].as_str().is_some_and(|format| formats.contains(&format))
                }
                Some("array") => schema["maxItems"].is_u64(),
                Some("object") => {
                    // A map has no limit; inside a platform's block its size is limited.
                    schema["maxProperties"].is_u64()
                        || matches!(&schema["additionalProperties"], Value::Null | Value::Bool(false))
                }
                _ => true,
            };
            if !is_bounded {
                open.push(path.to_owned());
            }
            if let Some(items) = schema.get("items") {
                walk(document, items, &format!("{path}[]"), open);
            }
            for (name, part) in schema["properties"].as_object().into_iter().flatten() {
                walk(document, part, &format!("{path}.{name}"), open);
            }
        }
        let document: Value = serde_json::from_str(&document()).unwrap();
        let (mut open, mut bodies) = (Vec::new(), 0);
        for (_, operation) in operations(&document) {
            let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
            for body in content.values() {
                let name = operation["operationId"].as_str().unwrap_or_default();
                walk(&document, &body["schema"], name, &mut open);
                bodies += 1;
            }
        }
        assert!(bodies > 15, "only {bodies} bodies were found");
        assert!(open.is_empty(), "without a ceiling: {open:#?}");
    }

    #[test]
    fn every_operation_says_what_a_key_with_a_bound_may_do() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let methods = ["get", "post", "put", "patch", "delete"];
        let mut described: Vec<_> = paths
            .iter()
            .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (method, path)))
            .filter(|(method, _)| methods.contains(&method.as_str()))
            .map(|(method, path)| (method.to_uppercase(), path.clone()))
            .collect();
        let mut listed: Vec<_> =
            reach::TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
        described.sort();
        listed.sort();
        assert_eq!(listed, described, "http::reach needs one line for each operation");
        for (method, path, reach) in reach::TABLE {
            let operation = &document["paths"][path][method.to_lowercase()];
            // With `{}` among the alternatives, it takes no key.
            let security = operation["security"].as_array();
            let is_keyless = security.is_none_or(|schemes| schemes.contains(&serde_json::json!({})));
            assert_eq!(*reach == Reach::Token, is_keyless, "{method} {path}");
            assert!(!matches!(reach, Reach::Of(_)) || path.contains("{id}"), "{method} {path}");
        }
    }

    #[test]
    fn the_page_shows_the_amended_document_and_fetches_nothing() {
        let page = page(&document_at("https://example.test/api/v1"));
        assert!(page.contains(r#""openapi": "3.1.0""#) && page.contains("https://example.test/api/v1"));
        assert!(
            !page.contains(r#""openapi":"3.0.0""#)
                && !page.contains("<script src")
                && !page.contains("<link")
        );
        assert!(page.contains("<noscript>") && page.contains(r#""preferredSecurityScheme":"ApiKey""#));
        assert!(document().contains(r#""ApiKey": {"#), "the scheme has this name");
    }
}
