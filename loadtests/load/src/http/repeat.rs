//! Repeating a request, as a client does that wants its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, header};

use crate::target::{Failure, Kind};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A server that asks for more patience than this is asked again all the same: the bound of the request is what counts.
const LONGEST_ASKED: Duration = Duration::from_secs(5);

/// How long requests are repeated, and how many were.
#[derive(Debug)]
pub(super) struct Repeat {
    bound: Duration,
    count: AtomicU64,
}

/// The attempts at one request.
pub(super) struct Attempts<'a> {
    repeat: &'a Repeat,
    until: Instant,
    pause: Duration,
}

impl Repeat {
    pub(super) fn within(bound: Duration) -> Self {
        Self {
            bound,
            count: AtomicU64::new(0),
        }
    }

    pub(super) fn begin(&self) -> Attempts<'_> {
        Attempts {
            repeat: self,
            until: Instant::now() + self.bound,
            pause: FIRST_PAUSE,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Attempts<'_> {
    /// How long to wait before the next attempt; `None` when there must be none. `headers` are those of the answer, if
    /// there was one.
    pub(super) fn next(&mut self, failure: &Failure, headers: &HeaderMap) -> Option<Duration> {
        let answered = match failure.kind {
            Kind::Connect | Kind::Timeout | Kind::Closed | Kind::Token => false,
            Kind::Status(429 | 502 | 503 | 504) => true,
            Kind::Protocol | Kind::Status(_) | Kind::Body | Kind::Other(_) => return None,
        };
        let asked = headers.get(header::RETRY_AFTER).filter(|_| answered);
        let asked = asked.and_then(|seconds| Some(Duration::from_secs(seconds.to_str().ok()?.parse().ok()?)));
        let pause = asked.map_or(self.pause, |asked| asked.min(LONGEST_ASKED));
        if Instant::now() + pause > self.until {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.repeat.count.fetch_add(1, Ordering::Relaxed);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: Kind) -> Failure {
        Failure::new(kind, "")
    }

    #[test]
    fn what_got_no_answer_is_repeated_with_growing_pauses_and_a_refusal_is_not() {
        let repeat = Repeat::within(Duration::from_secs(60));
        let mut attempts = repeat.begin();
        let none = HeaderMap::new();
        let pauses: Vec<_> = (0..7)
            .filter_map(|_| attempts.next(&failed(Kind::Closed), &none))
            .map(|pause| pause.as_millis())
            .collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        for refused in [Kind::Status(400), Kind::Status(500), Kind::Body] {
            assert_eq!(attempts.next(&failed(refused), &none), None, "{refused}");
        }
        assert_eq!(repeat.count(), 7);
    }

    #[test]
    fn a_server_says_how_long_to_wait_and_the_bound_ends_it() {
        let repeat = Repeat::within(Duration::from_secs(3));
        let asked = |seconds: &str| HeaderMap::from_iter([(header::RETRY_AFTER, seconds.parse().unwrap())]);
        let mut attempts = repeat.begin();
        let pause = attempts.next(&failed(Kind::Status(503)), &asked("2"));
        assert_eq!(pause, Some(Duration::from_secs(2)));
        assert_eq!(attempts.next(&failed(Kind::Status(503)), &asked("60")), None);
        // What an earlier answer asked for does not hold for a connection that broke.
        let pause = attempts.next(&failed(Kind::Closed), &asked("2"));
        assert_eq!(pause, Some(Duration::from_millis(100)));
    }
}
