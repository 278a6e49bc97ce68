//! Which request may go to another replica after one has failed it.
//!
//! | request | no connection | broken before an answer began | answer begun |
//! |---|---|---|---|
//! | GET, HEAD, OPTIONS, TRACE | another replica | another replica, within the budget | cut off |
//! | with an `Idempotency-Key`, to a service that honours it | another replica | another replica, within the budget | cut off |
//! | any other | another replica | 502 | cut off |
//!
//! Without a connection nothing was sent, so nothing can have been carried out. A replica that broke off may have carried
//! out what it has read. Each replica is tried at most once, and all attempts share the request's deadline.

use std::sync::atomic::{AtomicU32, Ordering};

use http::{HeaderMap, HeaderName, Method};

use crate::endpoints::Keys;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whether the request can be sent a second time without being carried out twice.
pub(super) fn is_repeatable(method: &Method, headers: &HeaderMap, keys: Keys) -> bool {
    method.is_safe() || (keys == Keys::Honoured && headers.contains_key(IDEMPOTENCY_KEY))
}

/// What may be sent twice: a tenth of the requests, and a hundred at once for the moment when a replica dies with all that
/// it was working on. Without a bound, a service that fails everything would get twice the load that made it fail.
pub(super) struct Budget {
    /// In tenths of a request.
    tenths: AtomicU32,
}

const FULL: u32 = 1000;
const ONE: u32 = 10;

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            tenths: AtomicU32::new(FULL),
        }
    }

    /// Called for every request.
    pub(super) fn deposit(&self) {
        // Read first: usually it is full, and a write would make the cores fight for the line.
        if self.tenths.load(Ordering::Relaxed) < FULL {
            let more = |tenths: u32| Some((tenths + 1).min(FULL));
            let _ = self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Whether one more request may be repeated.
    pub(super) fn withdraw(&self) -> bool {
        let less = |tenths: u32| tenths.checked_sub(ONE);
        self.tenths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_methods_and_honoured_keys_can_be_repeated_and_nothing_else() {
        let none = HeaderMap::new();
        let key = HeaderMap::from_iter([(IDEMPOTENCY_KEY, "a".parse().expect("a header"))]);
        for (method, headers, keys, expected) in [
            (Method::GET, &none, Keys::Ignored, true),
            (Method::HEAD, &none, Keys::Ignored, true),
            (Method::POST, &none, Keys::Honoured, false),
            (Method::POST, &key, Keys::Honoured, true),
            (Method::POST, &key, Keys::Ignored, false),
            (Method::PUT, &none, Keys::Honoured, false),
            (Method::DELETE, &none, Keys::Honoured, false),
        ] {
            assert_eq!(
                is_repeatable(&method, headers, keys),
                expected,
                "{method} {headers:?} {keys:?}"
            );
        }
    }

    #[test]
    fn a_tenth_of_the_requests_may_be_repeated_once_the_reserve_is_used_up() {
        let budget = Budget::new();
        assert_eq!((0..1000).filter(|_| budget.withdraw()).count(), 100);
        for _ in 0..ONE {
            assert!(!budget.withdraw());
            budget.deposit();
        }
        assert!(budget.withdraw() && !budget.withdraw());
        for _ in 0..10_000 {
            budget.deposit();
        }
        assert_eq!((0..1000).filter(|_| budget.withdraw()).count(), 100);
    }
}
