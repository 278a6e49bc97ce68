//! The meter and its two readers: `/metrics`, and OTLP when there is somebody to send to.

use std::sync::OnceLock;

use opentelemetry::global;
use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prometheus::{Registry, TextEncoder};

/// Bucket bounds of the OpenTelemetry conventions for durations in seconds.
const DURATION_BOUNDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// One a process: instruments live in statics, and bind to the provider that is there when they are first used.
static METRICS: OnceLock<Metrics> = OnceLock::new();

struct Metrics {
    registry: Registry,
    provider: SdkMeterProvider,
}

/// The meter of this process. Names follow the OpenTelemetry conventions; `/metrics` derives its own from them.
pub fn meter() -> Meter {
    global::meter("rowlock")
}

/// A histogram of durations in seconds. The bounds are given here because the SDK's defaults are meant for
/// milliseconds and would put every request into the first bucket.
pub fn duration_histogram(name: &'static str, description: &'static str) -> Histogram<f64> {
    meter()
        .f64_histogram(name)
        .with_description(description)
        .with_unit("s")
        .with_boundaries(DURATION_BOUNDS.to_vec())
        .build()
}

pub(crate) fn install(resource: Resource, exporter: Option<MetricExporter>) {
    METRICS.get_or_init(|| {
        let registry = Registry::new();
        let exposition = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()
            .expect("a new registry has no other collector");
        let mut provider = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_reader(exposition);
        if let Some(exporter) = exporter {
            provider = provider.with_reader(PeriodicReader::builder(exporter).build());
        }
        let provider = provider.build();
        global::set_meter_provider(provider.clone());
        Metrics { registry, provider }
    });
}

/// For services started inside a test: `/metrics` works without the rest of telemetry.
pub(crate) fn ensure_meter(service: &'static str, instance_id: &str) {
    install(super::resource(service, instance_id), None);
}

/// The metrics as Prometheus reads them.
pub(crate) fn exposition() -> Result<String, prometheus::Error> {
    let families = METRICS
        .get()
        .map(|metrics| metrics.registry.gather())
        .unwrap_or_default();
    TextEncoder::new().encode_to_string(&families)
}

pub(super) fn shutdown() {
    if let Some(metrics) = METRICS.get() {
        drop(metrics.provider.shutdown());
    }
}
