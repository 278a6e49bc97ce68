//! Logs, metrics and traces of a service process.
//!
//! Logs go to standard output as JSON, metrics to `/metrics`. With `OTEL_EXPORTER_OTLP_ENDPOINT` set, traces, metrics
//! and logs also go there over gRPC, configured by the standard `OTEL_*` variables (sampler, intervals, headers,
//! resource attributes). Without it spans are still made, since logs and outgoing requests carry their ids.

mod json;
mod meter;
mod propagation;

use std::panic::PanicHookInfo;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue, global};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

pub use meter::{duration_histogram, meter};
pub(crate) use meter::{ensure_meter, exposition};
pub(crate) use propagation::extract_http;
pub use propagation::inject_http;

use crate::config::Common;
use crate::service::StartError;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// What the exporters themselves write to: exporting it would beget more of it.
const EXPORTERS: [&str; 6] = ["hyper", "h2", "tonic", "tower", "reqwest", "opentelemetry"];

/// Telemetry of this process; dropping it sends what is still buffered, and therefore happens on every way out.
pub(crate) struct Telemetry {
    traces: SdkTracerProvider,
    logs: Option<SdkLoggerProvider>,
}

impl Telemetry {
    /// Must be called within the runtime that will outlive it: the exporters' channels live there.
    pub(crate) fn install(service: &'static str, common: &Common) -> Result<Self, StartError> {
        let resource = resource(service, &common.instance_id(service));
        let exporters = std::env::var_os(ENDPOINT)
            .filter(|endpoint| !endpoint.is_empty())
            .map(|_| exporters())
            .transpose()?;
        let (span_exporter, metric_exporter, log_exporter) = match exporters {
            Some((spans, metrics, logs)) => (Some(spans), Some(metrics), Some(logs)),
            None => (None, None, None),
        };

        meter::install(resource.clone(), metric_exporter);
        let traces = SdkTracerProvider::builder().with_resource(resource.clone());
        let traces = match span_exporter {
            // The sampler is the SDK's, which reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG.
            Some(exporter) => traces.with_batch_exporter(exporter).build(),
            // Nobody to send spans to: they are not recorded, and the caller's decision travels on as it came.
            None => traces
                .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)))
                .build(),
        };
        let logs = log_exporter.map(|exporter| {
            SdkLoggerProvider::builder()
                .with_resource(resource)
                .with_batch_exporter(exporter)
                .build()
        });
        global::set_text_map_propagator(TraceContextPropagator::new());

        let filter = |text: &str| EnvFilter::try_new(text).map_err(|error| StartError::Config(error.to_string()));
        let exported = EXPORTERS
            .iter()
            .fold(common.log.clone(), |filter, target| format!("{filter},{target}=off"));
        let bridge = match &logs {
            Some(logs) => Some(OpenTelemetryTracingBridge::new(logs).with_filter(filter(&exported)?)),
            None => None,
        };
        tracing_subscriber::registry()
            .with(
                tracing_opentelemetry::layer()
                    .with_tracer(traces.tracer("rowlock"))
                    .with_filter(filter_fn(is_span)),
            )
            .with(bridge)
            .with(
                tracing_subscriber::fmt::layer()
                    .event_format(json::Json { service })
                    // A line carries its span's ids and not its fields, which would be formatted for every request.
                    .fmt_fields(tracing_subscriber::fmt::format::debug_fn(|_, _, _| Ok(())))
                    .with_filter(filter(&common.log)?),
            )
            .try_init()
            .map_err(|error| StartError::Config(format!("telemetry is already installed in this process: {error}")))?;
        std::panic::set_hook(Box::new(log_panic));
        Ok(Self { traces, logs })
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        // At once, so that a collector that is away costs one timeout and not three.
        std::thread::scope(|scope| {
            scope.spawn(|| drop(self.traces.shutdown()));
            scope.spawn(meter::shutdown);
            if let Some(logs) = &self.logs {
                scope.spawn(|| drop(logs.shutdown()));
            }
        });
    }
}

type Exporters = (SpanExporter, MetricExporter, LogExporter);

fn exporters() -> Result<Exporters, StartError> {
    let wrong = |error| StartError::Config(format!("{ENDPOINT} (or another OTEL_EXPORTER_OTLP variable): {error}"));
    Ok((
        SpanExporter::builder().with_tonic().build().map_err(wrong)?,
        MetricExporter::builder().with_tonic().build().map_err(wrong)?,
        LogExporter::builder().with_tonic().build().map_err(wrong)?,
    ))
}

fn resource(service: &'static str, instance_id: &str) -> Resource {
    const ENVIRONMENT: Key = Key::from_static_str("deployment.environment.name");
    let from_variables = Resource::builder().build();
    let mut builder = Resource::builder().with_service_name(service).with_attributes([
        KeyValue::new("service.namespace", "rowlock"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance_id.to_owned()),
    ]);
    // The only one that whoever runs us knows better.
    if from_variables.get(&ENVIRONMENT).is_none() {
        builder = builder.with_attribute(KeyValue::new(ENVIRONMENT, "local"));
    }
    builder.build()
}

/// Spans only: as events they would reach the collector a second time, beside the log bridge.
fn is_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span()
        && *metadata.level() <= Level::INFO
        && !EXPORTERS.iter().any(|target| metadata.target().starts_with(target))
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    tracing::error!(panic = panic.payload_as_str(), location, "panicked");
}
