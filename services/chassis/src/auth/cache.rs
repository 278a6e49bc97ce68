//! Tokens that were found good a moment ago.
//!
//! Bounded by two generations: when the young one is full it becomes the old one, and what was the old one is forgotten.
//! That costs nothing per lookup, where an exact order of use would be a list to keep under the lock.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::digest::{SHA256, digest};

use super::Claims;

/// Tokens in one generation; two of them take some 10 MB at most.
const GENERATION: usize = 8192;

/// SHA-256 of a token: the tokens themselves are not kept.
pub(super) type Key = [u8; 32];

pub(super) fn key(bearer: &str) -> Key {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, bearer.as_bytes()).as_ref());
    key
}

pub(super) struct Cache {
    lifetime: Duration,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Key, Entry>,
    old: HashMap<Key, Entry>,
}

struct Entry {
    claims: Claims,
    until: Instant,
}

impl Cache {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            generations: Mutex::default(),
        }
    }

    /// The claims of a token that still counts as good. Never beyond its expiry, without the leeway of a check: whoever
    /// may still pass then is checked anew.
    pub(super) fn get(&self, key: &Key) -> Option<Claims> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = generations.young.get(key).or_else(|| generations.old.get(key))?;
        (Instant::now() < entry.until && unix_seconds() < entry.claims.exp).then(|| entry.claims.clone())
    }

    pub(super) fn put(&self, key: Key, claims: &Claims) {
        let Some(until) = Instant::now().checked_add(self.lifetime) else {
            return;
        };
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= GENERATION {
            generations.old = std::mem::take(&mut generations.young);
        }
        let claims = claims.clone();
        generations.young.insert(key, Entry { claims, until });
    }
}

fn unix_seconds() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(exp: i64) -> Claims {
        Claims {
            sub: "s".to_owned(),
            client_id: "c".to_owned(),
            tenant: None,
            scopes: Vec::new(),
            exp,
        }
    }

    #[test]
    fn a_token_counts_until_its_time_is_up_and_never_beyond_its_expiry() {
        let now = unix_seconds();
        let long = Cache::new(Duration::from_secs(3600));
        long.put(key("good"), &claims(now + 3600));
        long.put(key("expired"), &claims(now));
        assert!(long.get(&key("good")).is_some());
        assert!(long.get(&key("expired")).is_none());
        assert!(long.get(&key("other")).is_none());

        let short = Cache::new(Duration::ZERO);
        short.put(key("good"), &claims(now + 3600));
        assert!(short.get(&key("good")).is_none());
    }

    #[test]
    fn any_number_of_tokens_takes_two_generations_and_the_latest_are_kept() {
        let cache = Cache::new(Duration::from_secs(3600));
        let exp = unix_seconds() + 3600;
        for n in 0..3 * GENERATION {
            cache.put(key(&n.to_string()), &claims(exp));
        }
        let generations = cache.generations.lock().expect("not poisoned");
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
        drop(generations);
        assert!(cache.get(&key("0")).is_none());
        assert!(cache.get(&key(&(3 * GENERATION - 1).to_string())).is_some());
    }
}
