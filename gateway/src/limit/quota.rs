//! What clients are told of their quota: `RateLimit-Policy` and `RateLimit` as structured fields
//! (draft-ietf-httpapi-ratelimit-headers), with every answer that was counted.

use std::time::Duration;

use axum::response::Response;
use chassis::problem::Problem;
use http::{HeaderName, HeaderValue, StatusCode};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Quota of a subject after its request was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(super) policy: &'static str,
    /// Requests a minute.
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// Until it is whole again.
    pub(super) reset: Duration,
}

impl Quota {
    /// Tells the client with an answer that a service gave.
    pub(crate) fn mark(&self, response: &mut Response) {
        let [policy, state] = self.headers();
        response.headers_mut().insert(POLICY, policy);
        response.headers_mut().insert(STATE, state);
    }

    pub(super) fn exceeded(&self, retry_after: Duration) -> Problem {
        let [policy, state] = self.headers();
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", "Too many requests")
            .detail(format!("At most {} requests a minute are let through.", self.limit))
            .header(POLICY, policy)
            .header(STATE, state)
            // At least one, or a client would try again within the same moment.
            .retry_after(retry_after.max(Duration::from_millis(1)))
    }

    fn headers(&self) -> [HeaderValue; 2] {
        let Self {
            policy,
            limit,
            remaining,
            reset,
        } = self;
        let reset_s = reset.as_millis().div_ceil(1000);
        [
            format!("\"{policy}\";q={limit};w=60"),
            format!("\"{policy}\";r={remaining};t={reset_s}"),
        ]
        .map(|text| HeaderValue::try_from(text).expect("names of this crate and numbers are visible ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_headers_are_structured_fields_and_seconds_are_rounded_up() {
        let quota = Quota {
            policy: "gcra",
            limit: 600,
            remaining: 12,
            reset: Duration::from_millis(58_001),
        };
        let [policy, state] = quota.headers();
        assert_eq!(policy, "\"gcra\";q=600;w=60");
        assert_eq!(state, "\"gcra\";r=12;t=59");
    }
}
