//! The admin port, apart from the service's own: a service that is drowning can still be asked how it is.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::config::View;
use crate::problem::{Json, Problem};
use crate::readiness::Readiness;
use crate::telemetry;

pub(crate) fn router(readiness: Arc<Readiness>, view: View) -> Router {
    let view = Arc::new(view);
    let scraped = Arc::clone(&readiness);
    Router::new()
        // Looks at nothing: a supervisor must not restart us because a dependency is away.
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(async move || ready(&readiness).await))
        .route("/metrics", get(async move || metrics(&scraped).await))
        .route("/config", get(async move || Json(view)))
}

async fn ready(readiness: &Readiness) -> Response {
    let report = readiness.report().await;
    let status = if report.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(report)).into_response()
}

/// Asks the dependencies first: a scraper that never asks `/readyz` must see what is missing as well.
async fn metrics(readiness: &Readiness) -> Response {
    readiness.report().await;
    match telemetry::exposition() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => Problem::internal(error).into_response(),
    }
}
