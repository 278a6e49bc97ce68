//! An OTLP collector in the test: keeps what services send to it over gRPC.

use std::sync::{Arc, Mutex};

use axum::Router;
use chassis::service::Running;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::{Request, Response, Status};

use crate::service::serve;

/// Collects until it is dropped. It is itself a service on the chassis, which thereby shows that it serves gRPC.
pub(crate) struct Collector {
    running: Running,
    received: Received,
}

#[derive(Clone, Default)]
struct Received {
    traces: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
    logs: Arc<Mutex<Vec<ExportLogsServiceRequest>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let received = Received::default();
        let path = |service: &str| format!("/opentelemetry.proto.collector.{service}/Export");
        let router = Router::new()
            .route_service(
                &path("trace.v1.TraceService"),
                TraceServiceServer::new(received.clone()),
            )
            .route_service(
                &path("metrics.v1.MetricsService"),
                MetricsServiceServer::new(received.clone()),
            )
            .route_service(&path("logs.v1.LogsService"), LogsServiceServer::new(received.clone()));
        Self {
            running: serve(router).await,
            received,
        }
    }

    /// What goes into `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.running.http_addr)
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let traces = self.received.traces.lock().expect("traces");
        let scopes = traces
            .iter()
            .flat_map(|request| &request.resource_spans)
            .flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let metrics = self.received.metrics.lock().expect("metrics");
        let resources = metrics.iter().flat_map(|request| &request.resource_metrics);
        resources
            .flat_map(|resource| &resource.scope_metrics)
            .flat_map(|scope| scope.metrics.clone())
            .collect()
    }

    pub(crate) fn logs(&self) -> Vec<LogRecord> {
        let logs = self.received.logs.lock().expect("logs");
        let scopes = logs
            .iter()
            .flat_map(|request| &request.resource_logs)
            .flat_map(|resource| &resource.scope_logs);
        scopes.flat_map(|scope| scope.log_records.clone()).collect()
    }

    /// Names of the instrumentation scopes logs came from, that is, the targets.
    pub(crate) fn log_scopes(&self) -> Vec<String> {
        let logs = self.received.logs.lock().expect("logs");
        let scopes = logs
            .iter()
            .flat_map(|request| &request.resource_logs)
            .flat_map(|resource| &resource.scope_logs);
        scopes
            .filter_map(|scope| scope.scope.as_ref())
            .map(|scope| scope.name.clone())
            .collect()
    }

    /// Attributes of the resource that sent the first span.
    pub(crate) fn resource(&self) -> Vec<KeyValue> {
        let traces = self.received.traces.lock().expect("traces");
        let resource = traces
            .first()
            .and_then(|request| request.resource_spans.first()?.resource.clone());
        resource.expect("a span was received").attributes
    }
}

/// A text attribute.
pub(crate) fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    attributes
        .iter()
        .find(|attribute| attribute.key == key)
        .and_then(|attribute| text(attribute.value.as_ref()))
}

/// A text value.
pub(crate) fn text(value: Option<&AnyValue>) -> Option<&str> {
    match value?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.traces.lock().expect("traces").push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Received {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics.lock().expect("metrics").push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Received {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.logs.lock().expect("logs").push(request.into_inner());
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}
