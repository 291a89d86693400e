//! Traces, as an OpenTelemetry collector receives them.

use crate::world;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as Text,
    trace::v1::{Span, status::StatusCode},
};
use poem::{Endpoint, Request, Response};
use prost::Message;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use tests::{Receiver, wait_until};

/// A collector: takes spans by OTLP over HTTP.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Vec<u8>>>>);

impl Endpoint for Collector {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        assert_eq!(request.uri().path(), "/v1/traces");
        let body = request.take_body().into_vec().await?;
        self.0.lock().unwrap().push(body);
        Ok(Response::builder().content_type("application/x-protobuf").body(()))
    }
}

impl Collector {
    /// Returns the spans received so far, and all that came with them as text.
    fn spans(&self) -> (Vec<Span>, String) {
        let bodies = self.0.lock().unwrap();
        let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(&**body).unwrap());
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
        let text = bodies.iter().map(|body| String::from_utf8_lossy(body)).collect();
        (scopes.flat_map(|scope| scope.spans).collect(), text)
    }
}

/// Returns the value of an attribute of the processes that sent spans.
fn of_processes(collector: &Collector, key: &str) -> BTreeSet<String> {
    let bodies = collector.0.lock().unwrap();
    let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(&**body).unwrap());
    let resources = requests.flat_map(|request| request.resource_spans).filter_map(|spans| spans.resource);
    let values = resources.filter_map(|resource| {
        let found = resource.attributes.into_iter().find(|attribute| attribute.key == key)?;
        match found.value?.value? {
            Text::StringValue(value) => Some(value),
            other => panic!("{key} is {other:?}"),
        }
    });
    values.collect()
}

fn attribute<'a>(span: &'a Span, key: &str) -> Option<&'a Text> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn trace_id(post: &Value) -> Vec<u8> {
    hex::decode(post["id"].as_str().unwrap().replace('-', "")).unwrap()
}

#[tokio::test]
async fn a_post_has_one_trace_from_the_request_to_the_platform_and_the_webhook() {
    let collector = Collector::default();
    let address = tests::serve(collector.clone()).await;
    let mut world = world().running(&[]).start().await;
    let log = tests::directory().join(format!("traces-{}.log", world.owner.org));
    world.log_to(&log);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{address}"));
    world.set("OTEL_BSP_SCHEDULE_DELAY", "100");
    let granted = world.account("x", "ada").await;
    world.keep("x", granted.identity.profile.clone(), &granted.grant).await;
    world.run("api").await;
    world.run("worker").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&format!("{}?token=in-the-url", receiver.url)).await;
    let caller = "0af7651916cd43dd8448eb211c80319c";
    let request = world.http.post(format!("{}/posts", world.base)).bearer_auth(&world.key);
    let request = request.header("traceparent", format!("00-{caller}-b7ad6b7169203331-01"));
    let body = json!({ "content": "What is written here", "accounts": ["ada"] });
    let answer = request.json(&body).send().await.unwrap();
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let post: Value = answer.json().await.unwrap();
    let other = world.post(json!({ "content": "Another one", "accounts": ["ada"] })).await;
    let retried = world.post(json!({ "content": "Retried #sandbox-503x1", "accounts": ["ada"] })).await;
    for post in [&post, &other, &retried] {
        assert_eq!(world.ended(post).await["status"], "published");
    }
    receiver.events(&["post.target.published", "post.published"]).await;

    let trace = trace_id(&post);
    let (spans, text) = wait_until("the spans of the post", async || {
        let (all, text) = collector.spans();
        let spans: Vec<_> = all.into_iter().filter(|span| span.trace_id == trace).collect();
        let names: Vec<_> = spans.iter().map(|span| span.name.clone()).collect();
        let expected = ["create post", "start workflow", "publish", "POST", "deliver webhook"];
        if expected.iter().all(|name| names.iter().any(|found| found == name)) {
            Ok((spans, text))
        } else {
            Err(format!("{names:?}"))
        }
    })
    .await;
    let one = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (created, published) = (one("create post"), one("publish"));
    assert!(created.parent_span_id.is_empty(), "it is the first span");
    assert_eq!(hex::encode(&created.links[0].trace_id), caller, "the client's trace is linked");
    assert_eq!(attribute(created, "fanfare.request_id"), Some(&Text::StringValue(request_id)));
    for name in ["start workflow", "publish", "deliver webhook"] {
        assert_eq!(one(name).parent_span_id, created.span_id, "{name}");
    }
    assert_eq!(
        one("POST").parent_span_id,
        published.span_id,
        "a call to the platform belongs to its attempt"
    );
    assert_eq!(attribute(published, "fanfare.result"), Some(&Text::StringValue("published".to_owned())));
    let target = post["targets"][0]["id"].as_str().unwrap();
    assert_eq!(attribute(published, "fanfare.target_id"), Some(&Text::StringValue(target.to_owned())));

    let secret = webhook["signing_secret"].as_str().expect("the signing secret");
    let tokens = [granted.grant.access_token.as_str(), &world.key, secret];
    for hidden in tokens.into_iter().chain(["What is written here", "in-the-url", "/2/tweets"]) {
        assert!(!hidden.is_empty() && !text.contains(hidden), "a span has {hidden}");
    }
    for delivery in receiver.all() {
        assert_eq!(delivery.header("traceparent"), "", "endpoints have no part in the trace");
    }
    // A span that failed is an error, and one that went well is not.
    let failed = trace_id(&retried);
    let attempts = wait_until("the spans of both attempts", async || {
        let spans: Vec<_> = collector.spans().0.into_iter().filter(|span| span.trace_id == failed).collect();
        let of = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
        // A look that was too early is no attempt.
        let waiting = Text::StringValue("waiting".to_owned());
        let mut attempts = of("publish");
        attempts.retain(|span| attribute(span, "fanfare.result") != Some(&waiting));
        let calls = of("POST");
        if attempts.len() == 2 && calls.len() == 2 {
            Ok([attempts, calls])
        } else {
            Err(format!("{} attempts and {} calls", attempts.len(), calls.len()))
        }
    })
    .await;
    for (spans, code) in attempts.into_iter().zip(["upstream_503", "503"]) {
        let is_error =
            |span: &Span| span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        let errors: Vec<_> = spans.iter().filter(|span| is_error(span)).collect();
        let [error] = &errors[..] else { panic!("{spans:#?}") };
        assert_eq!(attribute(error, "error.type"), Some(&Text::StringValue(code.to_owned())));
    }
    assert!(
        spans.iter().all(|span| span.status.as_ref().is_none_or(|status| status.code() != StatusCode::Error))
    );
    assert_eq!(of_processes(&collector, "service.name"), BTreeSet::from(["fanfare".to_owned()]));
    assert_eq!(of_processes(&collector, "service.version").len(), 1);
    assert_eq!(of_processes(&collector, "service.instance.id").len(), 2, "API and worker");

    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}
