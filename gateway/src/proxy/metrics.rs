//! `http.client.request.duration`: one observation an attempt, until the head of the answer; `gateway.repeated_requests`:
//! attempts after one that may have been carried out.

use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};

use crate::endpoints::Replica;

pub(super) struct Metrics {
    duration: Histogram<f64>,
    repeated: Counter<u64>,
}

/// How an attempt ended.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Status(StatusCode),
    Error(&'static str),
}

impl Metrics {
    pub(super) fn new() -> Self {
        let duration = chassis::telemetry::duration_histogram(
            "http.client.request.duration",
            "Duration of HTTP client requests, until the head of the answer",
        );
        let repeated = chassis::telemetry::meter()
            .u64_counter("gateway.repeated_requests")
            .with_description("Requests sent to another replica after one had broken off")
            .with_unit("{request}")
            .build();
        Self { duration, repeated }
    }

    pub(super) fn repeated(&self, service: &'static str) {
        self.repeated.add(1, &[KeyValue::new("service", service)]);
    }

    /// `route` is the template of the path: raw paths are without bound.
    pub(super) fn start<'a>(&'a self, replica: &'a Replica, method: &Method, route: &'static str) -> Started<'a> {
        Started {
            metrics: self,
            replica,
            method: known(method),
            route,
            at: Instant::now(),
        }
    }
}

/// An attempt under way.
pub(super) struct Started<'a> {
    metrics: &'a Metrics,
    replica: &'a Replica,
    method: &'static str,
    route: &'static str,
    at: Instant,
}

impl Started<'_> {
    pub(super) fn record(self, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Status(status) => KeyValue::new("http.response.status_code", i64::from(status.as_u16())),
            Outcome::Error(kind) => KeyValue::new("error.type", kind),
        };
        self.metrics.duration.record(
            self.at.elapsed().as_secs_f64(),
            &[
                KeyValue::new("http.request.method", self.method),
                KeyValue::new("server.address", Arc::clone(self.replica.host())),
                KeyValue::new("server.port", i64::from(self.replica.address().port())),
                KeyValue::new("url.template", self.route),
                outcome,
            ],
        );
    }
}

/// Methods are the client's to invent; unknown ones share one value, as OpenTelemetry asks.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        Method::TRACE => "TRACE",
        Method::CONNECT => "CONNECT",
        _ => "_OTHER",
    }
}
