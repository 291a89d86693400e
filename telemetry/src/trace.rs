//! Traces in the sense of OpenTelemetry: one for each post.
//!
//! The id of a post's trace is the post's own, a UUID of version 7 whose random part is what W3C asks of a trace id. So
//! every process knows the trace of each post, at any time, without a context that would have to be stored and
//! carried through outbox, workflows and restored databases; and who has a post's id finds its trace. A trace that the
//! client's request belongs to is linked. Without an exporter all of this does nothing.
//!
//! <https://www.w3.org/TR/trace-context-2/#trace-id>

use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId,
    context::FutureExt,
    global,
    trace::{Link, Span, SpanBuilder, SpanContext, Status, TraceContextExt, TraceState, Tracer},
};
use std::{
    borrow::Cow,
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

static IS_ENABLED: AtomicBool = AtomicBool::new(false);

tokio::task_local! {
    static CALLER: Option<SpanContext>;
}

thread_local! {
    /// The post whose first span begins.
    static FIRST: Cell<Option<[u8; 16]>> = const { Cell::new(None) };
}

pub use opentelemetry::trace::SpanKind;

/// Attributes of a span.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

/// Begins to record, since a tracer provider is set.
pub fn enable() {
    IS_ENABLED.store(true, Ordering::Relaxed);
}

fn is_enabled() -> bool {
    IS_ENABLED.load(Ordering::Relaxed)
}

/// Returns the ids of a span that begins, if they are not random: those of a post's first span.
pub fn next_ids() -> Option<(TraceId, SpanId)> {
    FIRST.get().map(|post| (TraceId::from_bytes(post), first_span(post)))
}

/// Returns the id of the first span of a post's trace, which the others are below.
fn first_span(post: [u8; 16]) -> SpanId {
    let [.., a, b, c, d, e, f, g, h] = post;
    SpanId::from_bytes([a, b, c, d, e, f, g, h])
}

/// Runs the work of a request, whose client may have sent a `traceparent`.
pub async fn with_caller<F: Future>(traceparent: Option<&str>, work: F) -> F::Output {
    if !is_enabled() {
        return work.await;
    }
    CALLER.scope(traceparent.and_then(parse), work).await
}

/// Parses <https://www.w3.org/TR/trace-context/#traceparent-header>.
fn parse(text: &str) -> Option<SpanContext> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_known =
        version == "00" && parts.next().is_none() && (trace.len(), span.len(), flags.len()) == (32, 16, 2);
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        flags,
        true,
        TraceState::default(),
    );
    (is_known && context.is_valid()).then_some(context)
}

/// Records the request that created a post: the first span of the post's trace.
pub fn created(post: [u8; 16], began: SystemTime, ended: SystemTime, attributes: Attributes<'_>) {
    if !is_enabled() {
        return;
    }
    let links = CALLER.try_with(Clone::clone).ok().flatten();
    let links = links.into_iter().map(|caller| Link::new(caller, Vec::new(), 0)).collect();
    let builder = SpanBuilder::from_name("create post")
        .with_kind(SpanKind::Server)
        .with_start_time(began)
        .with_links(links)
        .with_attributes(key_values(attributes));
    FIRST.set(Some(post));
    let mut span = tracer().build_with_context(builder, &Context::new());
    FIRST.set(None);
    span.end_with_timestamp(ended);
}

/// Does work for a post in a span of its trace.
pub async fn of_post<F: Future>(
    post: [u8; 16],
    name: &'static str,
    kind: SpanKind,
    attributes: Attributes<'_>,
    work: F,
) -> F::Output {
    if !is_enabled() {
        return work.await;
    }
    let first = SpanContext::new(
        TraceId::from_bytes(post),
        first_span(post),
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    within(Context::new().with_remote_span_context(first), name.into(), kind, attributes, work).await
}

/// Makes a call to another service in a span below the current one; without one the call has none either.
pub async fn call<F: Future>(method: &str, attributes: Attributes<'_>, work: F) -> F::Output {
    let current = Context::current();
    if !is_enabled() || !current.span().span_context().is_valid() {
        return work.await;
    }
    within(current, method.to_owned().into(), SpanKind::Client, attributes, work).await
}

async fn within<F: Future>(
    parent: Context,
    name: Cow<'static, str>,
    kind: SpanKind,
    attributes: Attributes<'_>,
    work: F,
) -> F::Output {
    let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(key_values(attributes));
    let span = tracer().build_with_context(builder, &parent);
    let context = parent.with_span(span);
    let done = work.with_context(context.clone()).await;
    context.span().end();
    done
}

/// Adds an attribute to the current span.
pub fn note(key: &'static str, value: impl Into<Cow<'static, str>>) {
    if is_enabled() {
        Context::current().span().set_attribute(KeyValue::new(key, value.into()));
    }
}

/// Adds a number to the current span.
pub fn note_number(key: &'static str, value: i64) {
    if is_enabled() {
        Context::current().span().set_attribute(KeyValue::new(key, value));
    }
}

/// Marks the current span as failed, with a code and without the text of the error, which may hold content.
pub fn fail(code: impl Into<Cow<'static, str>>) {
    if is_enabled() {
        let code = code.into();
        let context = Context::current();
        context.span().set_attribute(KeyValue::new("error.type", code.clone()));
        context.span().set_status(Status::error(code));
    }
}

fn tracer() -> global::BoxedTracer {
    global::tracer("fanfare")
}

fn key_values(attributes: Attributes<'_>) -> Vec<KeyValue> {
    attributes.iter().map(|(key, value)| KeyValue::new(*key, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_parsed_or_ignored() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let parsed = parse(&format!("00-{trace}-b7ad6b7169203331-01")).unwrap();
        assert_eq!((parsed.trace_id().to_string(), parsed.is_sampled()), (trace.to_owned(), true));
        for text in [
            String::new(),
            "00".to_owned(),
            format!("01-{trace}-b7ad6b7169203331-01"),
            format!("00-{trace}-b7ad6b7169203331-01-more"),
            format!("00-{trace}-b7ad6b7169203331-zz"),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-é-01"),
        ] {
            assert!(parse(&text).is_none(), "{text}");
        }
    }
}
