//! Export of traces by OTLP, configured by the standard variables
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>). Off without
//! OTEL_EXPORTER_OTLP_ENDPOINT.

use anyhow::Context;
use async_trait::async_trait;
use opentelemetry::{KeyValue, SpanId, TraceId, global};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider},
};
use std::env;
use tokio::runtime::Handle;
use uuid::Uuid;

/// Sends the spans of the process; dropping it sends the last ones.
pub(crate) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Starts to record, if there is somebody to send to.
    pub(crate) fn start() -> anyhow::Result<Option<Self>> {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let endpoints = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
        if !endpoints.into_iter().any(is_set) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(Client { http: egress::unfiltered().build()?, runtime: Handle::current() })
            .build()
            .context("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_id_generator(PostIds(RandomIdGenerator::default()))
            .with_sampler(sampler()?)
            .with_resource(resource())
            .build();
        global::set_tracer_provider(provider.clone());
        telemetry::trace::enable();
        Ok(Some(Self(provider)))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Fails if nobody answers; the spans are lost then.
        let _ = self.0.shutdown();
    }
}

/// Returns what the process is: what the operator's variables don't say of it.
fn resource() -> Resource {
    let given = env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_given =
        |name: &str| given.split(',').any(|pair| pair.split('=').next().map(str::trim) == Some(name));
    let mut resource = Resource::builder();
    let is_named = env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
    if !is_named && !is_given("service.name") {
        resource = resource.with_service_name("fanfare");
    }
    // Processes of one service are told apart by it: a new one after each start, as OpenTelemetry recommends.
    let instance = Uuid::now_v7().to_string();
    for (name, value) in [("service.version", env!("CARGO_PKG_VERSION")), ("service.instance.id", &instance)]
    {
        if !is_given(name) {
            resource = resource.with_attribute(KeyValue::new(name, value.to_owned()));
        }
    }
    resource.build()
}

/// Returns the sampler. Each process decides by the trace's id alone, so that all decide alike: the variants that follow
/// a parent are the same, since a post's trace has none.
fn sampler() -> anyhow::Result<Sampler> {
    let name = env::var("OTEL_TRACES_SAMPLER").unwrap_or_default();
    Ok(match name.strip_prefix("parentbased_").unwrap_or(&name) {
        "" | "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => {
            let share = env::var("OTEL_TRACES_SAMPLER_ARG").unwrap_or_else(|_| "1".to_owned());
            Sampler::TraceIdRatioBased(
                share.parse().context("OTEL_TRACES_SAMPLER_ARG is a number from 0 to 1")?,
            )
        }
        _ => anyhow::bail!(
            "OTEL_TRACES_SAMPLER is always_on, always_off or traceidratio, or parentbased_ before these"
        ),
    })
}

/// Random ids, except for the first span of a post's trace.
#[derive(Debug)]
struct PostIds(RandomIdGenerator);

impl IdGenerator for PostIds {
    fn new_trace_id(&self) -> TraceId {
        telemetry::trace::next_ids().map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        telemetry::trace::next_ids().map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

/// The process's own HTTP client, on its runtime: the exporter's thread has none.
#[derive(Debug)]
struct Client<C> {
    http: C,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Client<egress::Client> {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let sent = self
            .http
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .timeout(std::time::Duration::from_secs(10))
            .body(body);
        self.runtime
            .spawn(async move {
                let answer = sent.send().await?;
                let status = answer.status();
                let mut response = Response::new(answer.bytes().await?);
                *response.status_mut() = status;
                Ok::<_, HttpError>(response)
            })
            .await?
    }
}
