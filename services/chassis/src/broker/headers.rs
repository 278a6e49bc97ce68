//! Trace context in AMQP headers: `traceparent` goes out with a message and comes back in with a delivery.

use lapin::types::{AMQPValue, FieldTable};
use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The headers that carry the context of the current span.
pub(super) fn inject() -> FieldTable {
    let mut headers = FieldTable::default();
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut Outgoing(&mut headers)));
    headers
}

/// The context that `headers` carry.
pub(super) fn extract(headers: Option<&FieldTable>) -> Context {
    match headers {
        Some(headers) => global::get_text_map_propagator(|propagator| propagator.extract(&Incoming(headers))),
        None => Context::new(),
    }
}

struct Outgoing<'a>(&'a mut FieldTable);

impl Injector for Outgoing<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key.into(), AMQPValue::LongString(value.into()));
    }
}

struct Incoming<'a>(&'a FieldTable);

impl Extractor for Incoming<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match self.0.inner().get(key)? {
            AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok(),
            AMQPValue::ShortString(text) => Some(text.as_str()),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        self.0.inner().keys().map(|key| key.as_str()).collect()
    }
}
