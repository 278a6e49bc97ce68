//! Several kinds of request as one target: each iteration draws one, by weight.

use std::sync::{Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{HttpTarget, User};
use crate::error::LoadError;
use crate::target::{Failure, Iteration, Target};

/// Requests drawn by weight. The seed determines the order in which they are drawn.
///
/// A user has one connection for all requests of the mix that go to one address, have the same timeout and no token; every
/// other has a connection of its own.
#[derive(Debug)]
pub struct Mix {
    parts: Vec<Part>,
    total: u64,
    /// How many sessions a user has, and which part makes each.
    sessions: Vec<usize>,
    random: Mutex<SmallRng>,
}

#[derive(Debug)]
struct Part {
    weight: u32,
    target: HttpTarget,
    session: usize,
}

impl Mix {
    /// Checks that there is something to draw.
    pub fn new(parts: Vec<(u32, HttpTarget)>, seed: u64) -> Result<Self, LoadError> {
        if parts.is_empty() || parts.iter().any(|(weight, _)| *weight == 0) {
            return Err(LoadError::Request(
                "a mix needs at least one request, and each a weight of at least 1".into(),
            ));
        }
        let mut mix = Self {
            total: parts.iter().map(|(weight, _)| u64::from(*weight)).sum(),
            parts: Vec::with_capacity(parts.len()),
            sessions: Vec::new(),
            random: Mutex::new(SmallRng::seed_from_u64(seed)),
        };
        for (weight, target) in parts {
            let shared = mix
                .sessions
                .iter()
                .position(|made| mix.parts[*made].target.shares(&target));
            let session = shared.unwrap_or(mix.sessions.len());
            if shared.is_none() {
                mix.sessions.push(mix.parts.len());
            }
            mix.parts.push(Part {
                weight,
                target,
                session,
            });
        }
        Ok(mix)
    }

    /// How many requests were repeated.
    pub fn repeated(&self) -> u64 {
        self.parts.iter().map(|part| part.target.repeated()).sum()
    }

    /// The number of a part.
    fn draw(&self) -> usize {
        let mut rest = match self.parts.as_slice() {
            [_] => return 0,
            _ => self
                .random
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .random_range(0..self.total),
        };
        let drawn = self.parts.iter().position(|part| {
            let weight = u64::from(part.weight);
            let hit = rest < weight;
            rest = rest.saturating_sub(weight);
            hit
        });
        drawn.expect("what was drawn lies below the sum of the weights")
    }
}

/// What a virtual user of a [`Mix`] keeps.
#[derive(Debug)]
pub struct MixUser {
    sessions: Vec<User>,
    /// What it did last.
    part: usize,
}

impl Target for Mix {
    type User = MixUser;

    async fn user(&self, index: usize) -> Result<MixUser, Failure> {
        let mut sessions = Vec::with_capacity(self.sessions.len());
        for part in &self.sessions {
            sessions.push(self.parts[*part].target.user(index).await?);
        }
        Ok(MixUser { sessions, part: 0 })
    }

    async fn iterate(&self, user: &mut MixUser) -> Iteration {
        user.part = self.draw();
        let part = &self.parts[user.part];
        part.target.iterate(&mut user.sessions[part.session]).await
    }

    /// Method and URL of each request, of several.
    fn parts(&self) -> Vec<String> {
        if self.parts.len() == 1 {
            return Vec::new();
        }
        let names = self
            .parts
            .iter()
            .map(|Part { target, .. }| format!("{} http://{}{}", target.method, target.address, target.uri));
        names.collect()
    }

    fn part(&self, user: &MixUser) -> usize {
        user.part
    }
}

impl HttpTarget {
    /// Whether one user's connection can serve both.
    fn shares(&self, other: &Self) -> bool {
        self.address == other.address
            && self.timeout == other.timeout
            && self.tokens.is_none()
            && other.tokens.is_none()
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn get(url: &str) -> HttpTarget {
        HttpTarget::builder(Method::GET, url.parse().unwrap()).build().unwrap()
    }

    #[test]
    fn requests_are_drawn_by_weight_and_in_the_same_order_under_the_same_seed() {
        let draw = |seed| {
            let parts = [1, 3, 6].map(|weight| (weight, get("http://127.0.0.1:9/")));
            let mix = Mix::new(parts.into(), seed).unwrap();
            let order: Vec<u32> = (0..10_000).map(|_| mix.parts[mix.draw()].weight).collect();
            order
        };
        let order = draw(7);
        assert_eq!(order, draw(7));
        assert_ne!(order, draw(8));
        for (weight, share) in [(1, 1000), (3, 3000), (6, 6000)] {
            let drawn = order.iter().filter(|each| **each == weight).count();
            assert!(drawn.abs_diff(share) < 250, "{weight}: {drawn}");
        }
    }

    #[test]
    fn requests_to_one_address_share_a_connection_and_others_do_not() {
        let urls = ["http://127.0.0.1:9/a", "http://127.0.0.1:10/", "http://127.0.0.1:9/b"];
        let mix = Mix::new(urls.map(|url| (1, get(url))).into(), 1).unwrap();
        assert_eq!(mix.parts.iter().map(|part| part.session).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(mix.sessions, [0, 1]);
    }

    #[test]
    fn a_mix_of_nothing_is_refused() {
        assert!(Mix::new(Vec::new(), 1).is_err());
        assert!(Mix::new(vec![(0, get("http://127.0.0.1:9/"))], 1).is_err());
    }
}
