//! What every request to a service passes: the span, the duration metric, the bounds (requests at once, time, patience
//! with a slow body), and answers for what no handler answered (no such route, wrong method, a panic).

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, EXPECT};
use http::{HeaderValue, Method, StatusCode, Version};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, UpDownCounter};
use tracing::{Instrument, Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::admission::Admission;
use crate::body::{self, Holding, Rest, Timed};
use crate::config::Common;
use crate::deadline::Deadline;
use crate::problem::Problem;
use crate::readiness::Readiness;
use crate::telemetry;

static DURATION: LazyLock<Histogram<f64>> =
    LazyLock::new(|| telemetry::duration_histogram("http.server.request.duration", "Duration of HTTP server requests"));

static ACTIVE: LazyLock<UpDownCounter<i64>> = LazyLock::new(|| {
    telemetry::meter()
        .i64_up_down_counter("http.server.active_requests")
        .with_description("HTTP server requests in flight")
        .with_unit("{request}")
        .build()
});

/// What the layer knows of its service.
struct Layer {
    readiness: Arc<Readiness>,
    admission: Admission,
    /// For requests that others wait for.
    admission_of_waited_for: Admission,
    waited_for: fn(&str) -> bool,
    body_timeout: Duration,
}

pub(crate) fn layer(
    router: Router,
    readiness: Arc<Readiness>,
    common: &Common,
    waited_for: fn(&str) -> bool,
) -> Router {
    let layer = Layer {
        readiness,
        admission: Admission::new(common),
        admission_of_waited_for: Admission::new(common),
        waited_for,
        body_timeout: *common.body_timeout,
    };
    router.layer(from_fn_with_state(Arc::new(layer), observe))
}

async fn observe(State(layer): State<Arc<Layer>>, request: Request, next: Next) -> Response {
    let method = known(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let path = request.uri().path().to_owned();
    let version = request.version();
    let span = span(&request, method, route.as_ref());
    let mut measured = Measured::start(method, route);

    // The panic itself is logged by the hook, inside the span.
    let answered = AssertUnwindSafe(layer.bounded(request, next).instrument(span.clone()))
        .catch_unwind()
        .await;
    let (mut response, panicked) = match answered {
        Ok(response) => (explained(response, &path), false),
        Err(_) => (Problem::unexplained().into_response(), true),
    };
    let status = response.status();
    measured.outcome = if panicked {
        Outcome::Panicked
    } else {
        Outcome::Answered(status)
    };
    span.record("http.response.status_code", status.as_u16());
    if let Some(error) = measured.outcome.error() {
        span.record("error.type", error);
        span.record("otel.status_code", "error");
    }
    // HTTP/2 has its own way of closing (GOAWAY) and forbids the header.
    if layer.readiness.draining() && version <= Version::HTTP_11 {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

impl Layer {
    /// The answer within the request's deadline, once it is its turn.
    async fn bounded(&self, request: Request, next: Next) -> Response {
        let deadline = match Deadline::of(request.headers()) {
            Ok(deadline) => deadline,
            Err(problem) => return problem.into_response(),
        };
        let work = self.admitted(request, next);
        match deadline {
            None => work.await,
            Some(deadline) if deadline.is_over() => deadline.exceeded().into_response(),
            Some(deadline) => tokio::time::timeout_at(deadline.at(), deadline.scope(work))
                .await
                .unwrap_or_else(|_| deadline.exceeded().into_response()),
        }
    }

    async fn admitted(&self, request: Request, next: Next) -> Response {
        let admission = if (self.waited_for)(request.uri().path()) {
            &self.admission_of_waited_for
        } else {
            &self.admission
        };
        let admitted = match admission.enter().await {
            Ok(admitted) => admitted,
            Err(problem) => {
                // Who waits to be asked for the body has nothing on its way that would have to be read.
                if !request.headers().contains_key(EXPECT) {
                    body::discard(request.into_body());
                }
                return problem.into_response();
            }
        };
        let rest = if request.headers().contains_key(EXPECT) {
            Rest::Leave
        } else {
            Rest::Discard
        };
        let timed = |body: Body| match body.is_end_stream() {
            true => body,
            false => Body::new(Timed::new(body, self.body_timeout, rest)),
        };
        let response = next.run(request.map(timed)).await;
        match admitted {
            // An answer that is still being sent is in flight.
            Some(slot) => response.map(|body| Body::new(Holding::new(body, slot))),
            None => response,
        }
    }
}

fn span(request: &Request, method: &'static str, route: Option<&MatchedPath>) -> Span {
    let name = match route {
        Some(route) => format!("{method} {}", route.as_str()),
        None => method.to_owned(),
    };
    let span = tracing::info_span!(
        "http.request",
        "otel.name" = name,
        "otel.kind" = "server",
        "otel.status_code" = Empty,
        "http.request.method" = method,
        "http.route" = route.map(MatchedPath::as_str),
        "http.response.status_code" = Empty,
        "url.path" = request.uri().path(),
        "url.scheme" = "http",
        "error.type" = Empty,
    );
    if let Some(parent) = telemetry::extract_http(request.headers())
        && let Err(error) = span.set_parent(parent)
    {
        tracing::trace!(error = %error, "the request's trace context is not used");
    }
    span
}

/// The answer, unless it is the router's own bare "no such route" or "wrong method".
fn explained(response: Response, path: &str) -> Response {
    let bare = response.body().size_hint().exact() == Some(0) && !response.headers().contains_key(CONTENT_TYPE);
    match response.status() {
        StatusCode::NOT_FOUND if bare => Problem::new(StatusCode::NOT_FOUND, "not-found", "Not found")
            .detail(format!("There is nothing at {path}."))
            .into_response(),
        StatusCode::METHOD_NOT_ALLOWED if bare => {
            let problem = Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "Method not allowed",
            );
            match response.headers().get(ALLOW) {
                Some(allow) => problem
                    .detail(format!("{path} takes {}.", String::from_utf8_lossy(allow.as_bytes())))
                    .header(ALLOW, allow.clone()),
                None => problem.detail(format!("{path} does not take this method.")),
            }
            .into_response()
        }
        _ => response,
    }
}

/// Clients invent methods; the metric's labels must not.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => "_OTHER",
    }
}

enum Outcome {
    Answered(StatusCode),
    Panicked,
    /// The client went away, and with it the handler's future.
    Abandoned,
}

impl Outcome {
    fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Answered(status) => Some(*status),
            Self::Panicked => Some(StatusCode::INTERNAL_SERVER_ERROR),
            Self::Abandoned => None,
        }
    }

    /// `error.type`: only what the server did wrong, or never got to do.
    fn error(&self) -> Option<String> {
        match self {
            Self::Answered(status) if status.is_server_error() => Some(status.as_str().to_owned()),
            Self::Answered(_) => None,
            Self::Panicked => Some("panic".to_owned()),
            Self::Abandoned => Some("cancelled".to_owned()),
        }
    }
}

/// Records the duration when dropped, so that requests whose client went away are counted as well.
struct Measured {
    started: Instant,
    method: &'static str,
    route: Option<MatchedPath>,
    outcome: Outcome,
}

impl Measured {
    fn start(method: &'static str, route: Option<MatchedPath>) -> Self {
        let measured = Self {
            started: Instant::now(),
            method,
            route,
            outcome: Outcome::Abandoned,
        };
        ACTIVE.add(1, &measured.request());
        measured
    }

    /// What is known from the start.
    fn request(&self) -> [KeyValue; 2] {
        [
            KeyValue::new("http.request.method", self.method),
            KeyValue::new("url.scheme", "http"),
        ]
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        ACTIVE.add(-1, &self.request());
        let mut attributes = Vec::with_capacity(5);
        attributes.extend(self.request());
        if let Some(route) = &self.route {
            attributes.push(KeyValue::new("http.route", route.as_str().to_owned()));
        }
        if let Some(status) = self.outcome.status() {
            attributes.push(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        }
        if let Some(error) = self.outcome.error() {
            attributes.push(KeyValue::new("error.type", error));
        }
        DURATION.record(self.started.elapsed().as_secs_f64(), &attributes);
    }
}
