//! How much time a request has left, carried from service to service.
//!
//! The header holds what is left and not a point in time: the clocks of two machines differ, and what the hop between
//! them costs is small against any budget. It has a name of its own because HTTP has no standard one, and
//! `grpc-timeout` belongs to gRPC, whose proxies read and rewrite it.
//!
//! When the budget is used up the caller is answered with 504 and the handler is dropped. Work that runs in a task of
//! its own goes on; what it must not do is begin: [`crate::db::acquire`] gives no connection past the deadline.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use crate::problem::Problem;

/// Request header: the milliseconds that the sender will still wait for the answer, as a whole number.
pub const HEADER: HeaderName = HeaderName::from_static("rowlock-deadline-ms");

/// More than anybody waits; keeps the sum with the clock far from overflow.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

tokio::task_local! {
    static CURRENT: Deadline;
}

/// When nobody waits for the answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    at: Instant,
    budget: Duration,
}

impl Deadline {
    /// From now on.
    pub fn within(budget: Duration) -> Self {
        let budget = budget.min(LONGEST);
        Self {
            at: Instant::now() + budget,
            budget,
        }
    }

    /// That of the request which the caller works for, if it has one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|deadline| *deadline).ok()
    }

    /// The moment itself.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// What was given in the beginning.
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// Whether the time is used up.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }

    /// What the next service is told: the time that is left, in [`HEADER`].
    pub fn to_header(&self) -> HeaderValue {
        let left = self.at.saturating_duration_since(Instant::now());
        HeaderValue::from(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }

    /// What the sender of these headers allows; `None` if it does not say.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut values = headers.get_all(HEADER).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let milliseconds = value
            .to_str()
            .ok()
            // `parse` alone would take a sign as well.
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok());
        match (milliseconds, values.next()) {
            (Some(milliseconds), None) => Ok(Some(Self::within(Duration::from_millis(milliseconds)))),
            _ => Err(
                Problem::new(StatusCode::BAD_REQUEST, "malformed-deadline", "Malformed deadline").detail(format!(
                    "The header {HEADER} must occur once and hold a whole number of milliseconds."
                )),
            ),
        }
    }

    /// Runs `work` with this deadline as the current one.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    pub(crate) fn exceeded(&self) -> Problem {
        Problem::new(StatusCode::GATEWAY_TIMEOUT, "deadline-exceeded", "Deadline exceeded").detail(format!(
            "The {:?} that the request was given are used up; it may or may not be carried out.",
            self.budget
        ))
    }
}

/// Takes the caller's deadline along into a task of its own, where it would otherwise be forgotten.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let deadline = Deadline::current();
    async move {
        match deadline {
            Some(deadline) => deadline.scope(work).await,
            None => work.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Option<Duration>, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, value.parse().expect("a header"));
        }
        Ok(Deadline::of(&headers)?.map(|deadline| deadline.budget()))
    }

    #[test]
    fn a_budget_is_a_whole_number_of_milliseconds() {
        assert_eq!(of(&[]).expect("none"), None);
        assert_eq!(of(&["1500"]).expect("good"), Some(Duration::from_millis(1500)));
        assert_eq!(of(&["99999999999999"]).expect("good"), Some(LONGEST));
        for wrong in ["", "-1", "+1", "1.5", "1s", "ten", "99999999999999999999999"] {
            assert!(of(&[wrong]).is_err(), "{wrong:?} was taken");
        }
        assert!(of(&["1", "2"]).is_err(), "two budgets are none");
    }

    #[tokio::test]
    async fn the_next_service_is_told_what_is_left() {
        let deadline = Deadline::within(Duration::from_secs(500));
        tokio::time::sleep(Duration::from_millis(2)).await;
        let told: u128 = deadline.to_header().to_str().expect("ASCII").parse().expect("a number");
        assert!((1..500_000).contains(&told), "{told}");
        assert!(!deadline.is_over());
        let over = Deadline::within(Duration::ZERO);
        assert!(over.is_over());
        assert_eq!(over.to_header(), "0");
    }

    #[tokio::test]
    async fn a_spawned_task_keeps_the_deadline_it_was_carried_into() {
        let deadline = Deadline::within(Duration::from_secs(5));
        let seen = deadline
            .scope(async { tokio::spawn(carried(async { Deadline::current() })).await })
            .await;
        assert_eq!(seen.expect("it does not panic"), Some(deadline));
        assert_eq!(carried(async { Deadline::current() }).await, None);
    }
}
