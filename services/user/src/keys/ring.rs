//! The published keys at one moment, and which of them signs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::SigningKey;

/// Keys in the order in which they sign. A value: the keeper replaces the whole ring.
#[derive(Default)]
pub(crate) struct Ring(Vec<Held>);

struct Held {
    key: Arc<SigningKey>,
    signs_from: Instant,
    retires: Option<Instant>,
}

impl Ring {
    /// Adds the key that signs next. The moments are in seconds from `now`; those that lie before it may be negative.
    pub(crate) fn push(&mut self, key: Arc<SigningKey>, now: Instant, signs_in_s: f64, retires_in_s: Option<f64>) {
        self.0.push(Held {
            key,
            signs_from: after(now, signs_in_s),
            retires: retires_in_s.map(|seconds| after(now, seconds)),
        });
    }

    /// The key to sign with at `now`.
    pub(crate) fn signing(&self, now: Instant) -> Option<&Arc<SigningKey>> {
        let due = self.0.iter().rev().find(|held| held.signs_from <= now);
        due.map(|held| &held.key)
    }

    /// The keys that verify at `now`, those that are to sign included.
    pub(crate) fn published(&self, now: Instant) -> impl Iterator<Item = &Arc<SigningKey>> {
        let held = self.0.iter();
        held.filter(move |held| held.retires.is_none_or(|retires| now < retires))
            .map(|held| &held.key)
    }

    /// The key of this id, if it was in the ring.
    pub(crate) fn get(&self, kid: &str) -> Option<&Arc<SigningKey>> {
        self.0.iter().map(|held| &held.key).find(|key| key.kid() == kid)
    }
}

/// What is past needs no more precision than that.
fn after(now: Instant, seconds: f64) -> Instant {
    let wait = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    // A moment that no clock can hold is never reached; a century is as good.
    now.checked_add(wait)
        .unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 24 * 3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Arc<SigningKey> {
        Arc::new(SigningKey::generate().expect("generates"))
    }

    #[test]
    fn a_new_key_is_published_before_it_signs_and_the_old_one_stays_after_it_did() {
        let (old, new) = (key(), key());
        let now = Instant::now();
        let mut ring = Ring::default();
        ring.push(Arc::clone(&old), now, -5.0, Some(400.0));
        ring.push(Arc::clone(&new), now, 100.0, None);
        let at = |seconds| {
            let then = now + Duration::from_secs(seconds);
            let signs = ring.signing(then).expect("one signs").kid().to_owned();
            (signs, ring.published(then).count())
        };
        assert_eq!(at(0), (old.kid().to_owned(), 2));
        assert_eq!(at(99), (old.kid().to_owned(), 2));
        assert_eq!(at(100), (new.kid().to_owned(), 2));
        assert_eq!(at(399), (new.kid().to_owned(), 2));
        assert_eq!(at(400), (new.kid().to_owned(), 1));
        assert_eq!(
            ring.published(now + Duration::from_secs(400))
                .next()
                .expect("one")
                .kid(),
            new.kid()
        );
    }

    #[test]
    fn an_empty_ring_signs_nothing() {
        assert!(Ring::default().signing(Instant::now()).is_none());
    }
}
