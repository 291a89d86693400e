//! The events in the document: one entry under `webhooks` for each, with payload, headers and signature.
//!
//! Receivers generate their types from it. <https://spec.openapis.org/oas/v3.1.0#fixed-fields>

use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, MediaKind, PostStatus,
    event::{self, EventAccount, EventName, Outcome, TEST_EVENT},
    missing::given_up,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// How deliveries are made and verified.
const DELIVERY: &str = "\
Sent to each endpoint that is subscribed to the event, with the same body and `X-Fanfare-Event-Id` in every attempt. \
Any 2xx within 30 seconds acknowledges it; redirects are not followed. Anything else is repeated, up to 8 attempts in \
all, a minute after the first and twice as long after each further one, an hour at most. First attempts begin in the \
order in which the events were created, up to twenty at a time, so that one may arrive before an earlier one; \
`GET /events` has the exact order.

To verify a delivery, take `t` and `v1` of `X-Fanfare-Signature: t=<Unix seconds>,v1=<hex>`, compute the HMAC-SHA256 \
of `<t>.<raw body>` with the endpoint's whole signing secret (with its prefix) as the key, compare it with `v1` in \
constant time, and refuse a `t` that is more than five minutes off. Use the `id` of the body to handle each event once: \
it is signed, unlike the header with the same value.";

/// Adds the events and their payloads to the document.
pub(super) fn describe(document: &mut Value) {
    let mut webhooks = Map::new();
    for (name, summary) in
        EventName::ALL.iter().map(|name| (name.as_str(), summary(*name))).chain([(TEST_EVENT, TEST_SUMMARY)])
    {
        let words: String = name.split(['.', '_']).map(capitalized).collect();
        let (schema, data) = (format!("{words}Event"), data_schema(name));
        let schemas = document["components"]["schemas"].as_object_mut().expect("the document has schemas");
        schemas.insert(schema.clone(), envelope(name, summary, data));
        let reference = json!({ "$ref": format!("#/components/schemas/{schema}") });
        webhooks.insert(
            name.to_owned(),
            json!({ "post": {
                "operationId": format!("on{words}"),
                "tags": ["Webhooks"],
                "summary": summary,
                "description": DELIVERY,
                "security": [],
                "parameters": headers(),
                "requestBody": {
                    "required": true,
                    "content": { "application/json": { "schema": reference, "example": example(name) } },
                },
                "responses": { "2XX": { "description": "The event is acknowledged." } },
            } }),
        );
    }
    document["webhooks"] = Value::Object(webhooks);
}

const TEST_SUMMARY: &str = "A test that was requested with `POST /webhooks/{id}/test`";

fn summary(name: EventName) -> &'static str {
    match name {
        EventName::PostPublished => "A post reached its first account",
        EventName::PostError => "A post failed on every account",
        EventName::PostRetried => {
            "A post of which targets were retried has ended again; its `post.published` or `post.error` is not repeated"
        }
        EventName::TargetPublished => "A post is live on one account",
        EventName::TargetFailed => "A post failed for good on one account",
        EventName::TargetIncomplete => "Parts of a post that is live on one account will not follow",
        EventName::AccountTokenExpired => "An account's token could not be refreshed",
        EventName::AccountTokenExpiring => {
            "An account's grant ends within a week, and no refresh extends it: connect it again; sent once for each grant"
        }
        EventName::AccountReauthRequired => "An account's grant was revoked; connect it again",
        EventName::AccountConnected => "An account was connected, or connected again",
        EventName::AccountDisconnected => "An account was removed",
        EventName::ImportCompleted => "An import of earlier posts finished",
        EventName::ImportFailed => "An import of earlier posts failed",
        EventName::MediaReady => "A media asset was inspected and can be published",
        EventName::MediaFailed => "A media asset was rejected, or could not be fetched",
        EventName::WebhookFailing => {
            "An endpoint accepts nothing; sent to the organization's other endpoints"
        }
    }
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1.min(word.len()));
    first.to_uppercase() + rest
}

fn headers() -> Value {
    let header = |name: &str, schema: Value, description: &str| json!({ "name": name, "in": "header", "required": true, "schema": schema, "description": description });
    json!([
        header(
            "X-Fanfare-Signature",
            json!({ "type": "string", "pattern": "^t=[0-9]+,v1=[0-9a-f]{64}$" }),
            "Time and signature of this attempt"
        ),
        header(
            "X-Fanfare-Event-Id",
            json!({ "type": "string", "format": "uuid" }),
            "Id of the event, the same in every attempt; a receiver that keeps it handles each event once"
        ),
    ])
}

fn envelope(name: &str, summary: &str, data: Value) -> Value {
    json!({
        "type": "object",
        "description": summary,
        "required": ["event", "timestamp", "data"],
        "properties": {
            "id": {
                "type": "string", "format": "uuid",
                "description": "Id of the event, as in the header `X-Fanfare-Event-Id`",
            },
            "event": { "type": "string", "enum": [name], "description": "Name of the event" },
            "timestamp": { "type": "string", "format": "date-time", "description": "Time of the event" },
            "data": data,
        },
    })
}

/// Returns an object schema with these members; a name that ends with `?` may be absent.
fn object(members: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in members {
        let plain = name.trim_end_matches('?');
        if plain == *name {
            required.push(plain);
        }
        properties.insert(plain.to_owned(), schema.clone());
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Returns the schema of an event's `data`, as [`domain::event`] makes it.
fn data_schema(name: &str) -> Value {
    let id = |what: &str| json!({ "type": "string", "format": "uuid", "description": format!("Id of the {what}") });
    let text = |what: &str| json!({ "type": "string", "description": what });
    let nullable = |what: &str| json!({ "type": ["string", "null"], "description": what });
    let account = [
        ("accountId", id("account")),
        ("network", text("Platform id")),
        ("username", text("Handle on the platform, without `@`")),
    ];
    let error = ("error?", text("Reason"));
    let target = [
        vec![("postId", id("post")), ("targetId", id("target")), ("orgId", id("organization"))],
        account.to_vec(),
    ];
    let count = |what: &str| json!({ "type": "integer", "description": what });
    let round = (
        "round?",
        count("Number of the retry that the target was published in; absent from the first publication"),
    );
    match name {
        TEST_EVENT => object(&[("orgId", id("organization")), ("webhookId", id("endpoint"))]),
        "post.published" | "post.error" | "post.retried" => {
            let platform_id = ("platformPostId?", text("The platform's id of the post, if it is live"));
            let reason =
                ("error?", text("Reason, if it failed; neither this nor an id while it is under way"));
            let entry = object(&[account.to_vec(), vec![platform_id, reason]].concat());
            let accounts =
                json!({ "type": "array", "items": entry, "description": "Every target of the post" });
            let mut members =
                vec![("postId", id("post")), ("orgId", id("organization")), ("socialAccounts", accounts)];
            if name == "post.retried" {
                let outcome = json!({
                    "type": "string", "enum": ["published", "partial", "failed"], "description": "Status of the post",
                });
                members.extend([("round", count("Number of the retry, from 1")), ("outcome", outcome)]);
            }
            object(&members)
        }
        "post.target.published" | "post.target.incomplete" => {
            let url = nullable("Public address of the post; null if the platform did not return one");
            let live =
                vec![("platformPostId", text("The platform's id of the post")), ("platformPostUrl", url)];
            let part = object(&[
                ("position", count("Position of its container in the post, from 0")),
                ("error_code", nullable("Error code of its failure; null if it was not tried")),
                ("error_message", text("Reason")),
            ]);
            let parts = json!({
                "type": "array", "items": part,
                "description": "Parts of the post that are not published and not tried any more",
            });
            let missing = match name {
                "post.target.incomplete" => "missing",
                // Parts that are still awaited are not missing yet.
                _ => "missing?",
            };
            object(&[target.concat(), live, vec![(missing, parts), round]].concat())
        }
        "post.target.failed" => {
            let failure = vec![("errorCode", text("Error code of the target")), ("error", text("Reason"))];
            object(&[target.concat(), failure, vec![round]].concat())
        }
        "media.ready" | "media.failed" => object(&[
            ("orgId", id("organization")),
            ("mediaId", id("media asset")),
            ("kind", text("Kind of the file: image, gif, video, audio or document")),
            ("filename", text("Name of the file")),
            error,
        ]),
        "webhook.failing" => object(&[
            ("orgId", id("organization")),
            ("webhookId", id("endpoint that accepts nothing")),
            (
                "failingSince",
                json!({ "type": "string", "format": "date-time", "description": "Time of the first failed attempt" }),
            ),
            ("error", text("Reason of the last failed attempt")),
        ]),
        "import.completed" | "import.failed" => {
            let status = json!({ "type": "string", "enum": ["completed", "failed"], "description": "Status of the import" });
            let count = json!({ "type": "integer", "description": "Number of imported posts" });
            object(&[
                ("orgId", id("organization")),
                ("import_id", id("import")),
                ("social_account_id", id("account")),
                ("status", status),
                ("imported", count),
                error,
            ])
        }
        _ => {
            let tenant = nullable("The caller's id for the owner of the account");
            let org = vec![("orgId", id("organization"))];
            let ends = (
                "grantExpiresAt",
                json!({
                    "type": "string", "format": "date-time", "description": "Time until which the account has to be connected again",
                }),
            );
            let more = if name == "account.token_expiring" { ends } else { error };
            object(&[org, account.to_vec(), vec![("tenantId", tenant), more]].concat())
        }
    }
}

/// Returns a body as it is delivered.
fn example(name: &str) -> Value {
    let id = |number: u128| Uuid::from_u128(0x01a2_0000_0000_7000_8000_0000_0000_0000 + number);
    let (post, org, target, import) = (id(1).into(), id(2).into(), id(3).into(), id(5).into());
    let account = |number, network: &str| EventAccount {
        account: id(number).into(),
        network: network.to_owned(),
        username: "ada".to_owned(),
    };
    let ada = account(4, "bluesky");
    let uri = "at://did:plc:example/app.bsky.feed.post/3l";
    let reason = "rejected_403: the account may not post";
    let data = match name {
        TEST_EVENT => event::test_event(org, id(6).into()),
        "post.published" => {
            let live = (ada, Outcome::Live(uri.to_owned()));
            event::post(post, org, &[live, (account(7, "x"), Outcome::Open)])
        }
        "post.error" => event::post(post, org, &[(ada, Outcome::Failed(reason.to_owned()))]),
        "post.retried" => {
            let accounts = [(ada, Outcome::Live(uri.to_owned()))];
            event::retried(post, org, 1, PostStatus::Published, &accounts)
        }
        "post.target.published" => event::target_published(post, target, org, &ada, (uri, None), &[]),
        "post.target.incomplete" => {
            let parts = given_up(&[2, 3], 4, Some(ErrorCode::Rejected(400)), "the text is too long");
            event::target_published(post, target, org, &ada, (uri, None), &parts)
        }
        "post.target.failed" => event::target_failed(post, target, org, &ada, "rejected_403", reason),
        "media.ready" => event::media(org, id(8).into(), MediaKind::Image, "a.jpg", None),
        "media.failed" => {
            event::media(org, id(8).into(), MediaKind::Image, "a.jpg", Some("the file is no image"))
        }
        "webhook.failing" => {
            let since = DateTime::<Utc>::from_timestamp(1_767_322_000, 0).expect("a valid time");
            event::webhook_failing(org, id(6).into(), since, "the endpoint answered 503 Service Unavailable")
        }
        "import.completed" => event::import(org, import, ada.account, 12, None),
        "import.failed" => event::import(org, import, ada.account, 3, Some("the platform refused the token")),
        "account.token_expiring" => {
            let ends_at = DateTime::<Utc>::from_timestamp(1_767_927_845, 0).expect("a valid time");
            event::token_expiring(org, &ada, Some("tenant-1"), ends_at)
        }
        "account.token_expired" | "account.reauth_required" => {
            event::account(org, &ada, Some("tenant-1"), Some("the platform refused the refresh token"))
        }
        _ => event::account(org, &ada, None, None),
    };
    let at = DateTime::<Utc>::from_timestamp(1_767_323_045, 0).expect("a valid time");
    let body = event::body(id(9).into(), name, at, &data);
    serde_json::from_str(&body).expect("a body is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks types, required and unknown members.
    fn check(schema: &Value, value: &Value, path: &str) {
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let found = match value {
            Value::Null => "null",
            Value::String(_) => "string",
            Value::Number(_) => "integer",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Bool(_) => "boolean",
        };
        assert!(types.contains(&found), "{path} is {found}, not {types:?}");
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            check(&schema["items"], item, &format!("{path}/{index}"));
        }
        let Some(object) = value.as_object() else { return };
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(object.contains_key(name.as_str().unwrap()), "{path} lacks {name}");
        }
        for (name, member) in object {
            let known = &schema["properties"][name];
            assert!(!known.is_null(), "{path}/{name} is not described");
            check(known, member, &format!("{path}/{name}"));
        }
    }

    #[test]
    fn every_event_is_described_as_it_is_delivered() {
        let mut document = json!({ "components": { "schemas": {} } });
        describe(&mut document);
        let webhooks = document["webhooks"].as_object().unwrap();
        let expected: Vec<_> = EventName::ALL.iter().map(|name| name.as_str()).chain([TEST_EVENT]).collect();
        assert_eq!(webhooks.len(), expected.len());
        for name in expected {
            let content = &webhooks[name]["post"]["requestBody"]["content"]["application/json"];
            let schema = document.pointer(&content["schema"]["$ref"].as_str().unwrap()[1..]).unwrap();
            assert_eq!(content["example"]["event"], name);
            check(schema, &content["example"], name);
        }
    }
}
