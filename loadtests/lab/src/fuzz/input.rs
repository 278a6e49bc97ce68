//! One input: a request that was a good one before it was mutated.

use serde_json::Value;

use super::{bytes, structure};
use crate::random::Random;

/// A body and the headers that go with it.
pub(super) struct Input {
    pub(super) body: Vec<u8>,
    pub(super) content_type: &'static str,
    pub(super) idempotency_key: Option<String>,
}

const CONTENT_TYPES: [&str; 6] = [
    "application/json; charset=utf-16",
    "application/problem+json",
    "APPLICATION/JSON",
    "text/plain",
    "application/",
    "",
];

impl Input {
    /// The input `number` under `seed`.
    pub(super) fn new(payload: &Value, seed: u64, number: u64) -> Self {
        let mut random = Random::of(seed, number);
        let mut tour = payload.clone();
        let kind = random.below(4);
        if kind != 0 {
            structure::mutate(&mut random, &mut tour);
        }
        let mut body = tour.to_string().into_bytes();
        if kind < 2 {
            bytes::mutate(&mut random, &mut body);
        }
        let content_type = match random.one_in(32) {
            true => random.pick(&CONTENT_TYPES),
            false => "application/json",
        };
        let idempotency_key = random.one_in(4).then(|| format!("fuzz-{seed}-{number}"));
        Self {
            body,
            content_type,
            idempotency_key,
        }
    }

    /// The `tenantInfo` of the tour, if the body is one.
    pub(super) fn tenant_info(&self) -> Option<String> {
        let tour: Value = serde_json::from_slice(&self.body).ok()?;
        tour["tenantConfig"]["tenantInfo"].as_str().map(str::to_owned)
    }

    /// Rows that the tour must have in the database, if the body is one.
    pub(super) fn rows(&self) -> Option<usize> {
        let tour: Value = serde_json::from_slice(&self.body).ok()?;
        let stops = tour["stops"].as_array()?;
        let mut rows = 1 + 2 * stops.len();
        for order in stops.iter().filter_map(|stop| stop["orders"].as_array()).flatten() {
            rows += 2 + order["positions"].as_array()?.len();
        }
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload() -> Value {
        let path = deploy::root().join("loadtests/payloads/create-tour.json");
        serde_json::from_slice(&std::fs::read(path).expect("it is shipped")).expect("it is JSON")
    }

    #[test]
    fn an_input_is_the_same_at_every_run_and_differs_from_the_next() {
        let payload = payload();
        let body = |number| Input::new(&payload, 7, number).body;
        for number in 0..200 {
            assert_eq!(body(number), body(number));
        }
        let different: std::collections::BTreeSet<_> = (0..200).map(body).collect();
        assert!(different.len() > 150, "{}", different.len());
    }

    #[test]
    fn there_are_good_ones_and_broken_ones_of_both_kinds() {
        let payload = payload();
        let bodies: Vec<_> = (0..1000).map(|number| Input::new(&payload, 7, number).body).collect();
        let parsed: Vec<_> = bodies
            .iter()
            .map(|body| serde_json::from_slice::<Value>(body))
            .collect();
        let json = parsed.iter().filter(|parsed| parsed.is_ok()).count();
        assert!((300..950).contains(&json), "{json} of 1000 are JSON");
        assert!(bodies.iter().any(|body| body.len() > 262_144), "none is over the limit");
        assert!(
            bodies.iter().any(|body| std::str::from_utf8(body).is_err()),
            "all are UTF-8"
        );
    }

    #[test]
    fn the_rows_of_the_payload_are_counted() {
        let input = Input {
            body: payload().to_string().into_bytes(),
            content_type: "application/json",
            idempotency_key: None,
        };
        assert_eq!(input.rows(), Some(87));
    }
}
