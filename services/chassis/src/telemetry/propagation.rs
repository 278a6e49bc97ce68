//! Trace context in HTTP headers (W3C `traceparent` and `tracestate`).

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::{Context, global};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Puts the current span's context into the headers of a request that is about to be sent.
pub fn inject_http(headers: &mut HeaderMap) {
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut Into(headers)));
}

/// The caller's context, if it sent one.
pub(crate) fn extract_http(headers: &HeaderMap) -> Option<Context> {
    headers.contains_key("traceparent").then(|| {
        global::get_text_map_propagator(|propagator| propagator.extract_with_context(&Context::new(), &From(headers)))
    })
}

struct Into<'a>(&'a mut HeaderMap);

impl Injector for Into<'_> {
    fn set(&mut self, key: &str, value: String) {
        // The propagator's own names and values are valid headers; another's `tracestate` may not be.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

struct From<'a>(&'a HeaderMap);

impl Extractor for From<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
