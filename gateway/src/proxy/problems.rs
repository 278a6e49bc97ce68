//! What a client is told when the edge answers instead of a service.

use std::time::Duration;

use chassis::problem::Problem;
use http::StatusCode;

/// Replicas start within seconds and a refused one is tried again after one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) fn body_too_large(limit: u64) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Body too large")
        .detail(format!("The request body may have at most {limit} bytes."))
}

pub(super) fn body_broken() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "body-incomplete", "Body incomplete")
        .detail("The request body ended before it was complete.")
}

pub(super) fn client_too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request-timeout", "Request timeout")
        .detail("The request body did not arrive in time.")
}

pub(super) fn upstream_timeout(service: &str, timeout: Duration) -> Problem {
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "upstream-timeout", "Upstream timeout").detail(format!(
        "The service {service} did not answer within {timeout:?}; the request may or may not have been carried out."
    ))
}

pub(super) fn upstream_broken(service: &str) -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "upstream-broken", "Upstream broken").detail(format!(
        "The service {service} broke off the connection; the request may or may not have been carried out."
    ))
}

pub(super) fn no_replica(service: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-replica", "Service unavailable")
        .detail(format!(
            "No replica of the service {service} is ready and takes connections; the request was not sent."
        ))
        .retry_after(RETRY_AFTER)
}
