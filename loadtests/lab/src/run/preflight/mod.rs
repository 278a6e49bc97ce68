//! Before an arm is measured: is it what it says it is? One check a file.
//!
//! All checks are made, also after one has failed: an experiment about a mistake has to be stopped by exactly the check that
//! is about it. What a check itself does to the stack (requests, keys in Redis) is undone by the ones after it.

mod cache_empty;
mod config_digest;
mod cpu_limit;
mod database_restored;
mod front_spread;
mod gateway_spread;
mod generator_cpu;
mod postgres_parameters;
mod queue_empty;
mod replica_count;
mod round_trip;
mod spread;

use std::cell::Cell;
use std::time::Duration;

use deploy::Stack;
use futures::future::LocalBoxFuture;

use crate::http;
use crate::results::{CheckId, PreflightCheck};

/// One answer of the stack.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What the checks look at.
pub(super) struct Scene<'a> {
    stack: &'a Stack,
    http: reqwest::Client,
    /// Round trip to PostgreSQL, once it has been measured.
    database_round_trip: Cell<Option<Duration>>,
}

/// What a check has found, with the figures.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    ok: bool,
    says: String,
}

/// What the checks mean for the measurement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It can be made.
    Go,
    /// It is not made, as it has to be.
    Refused(CheckId),
    /// It is not made; why.
    Stop(String),
}

type Check = for<'a> fn(&'a Scene<'a>) -> LocalBoxFuture<'a, anyhow::Result<Found>>;

/// In the order of [`CheckId`]: what sends requests before what looks whether anything is left of them, what takes CPU
/// before what measures time.
const ALL: [(CheckId, Check); 11] = [
    (CheckId::ReplicaCount, |scene| Box::pin(replica_count::check(scene))),
    (CheckId::ConfigDigest, |scene| Box::pin(config_digest::check(scene))),
    (CheckId::FrontSpread, |scene| Box::pin(front_spread::check(scene))),
    (CheckId::GatewaySpread, |scene| Box::pin(gateway_spread::check(scene))),
    (CheckId::QueueEmpty, |scene| Box::pin(queue_empty::check(scene))),
    (CheckId::DatabaseRestored, |scene| {
        Box::pin(database_restored::check(scene))
    }),
    (CheckId::CacheEmpty, |scene| Box::pin(cache_empty::check(scene))),
    (CheckId::PostgresParameters, |scene| {
        Box::pin(postgres_parameters::check(scene))
    }),
    (CheckId::CpuLimit, |scene| Box::pin(cpu_limit::check(scene))),
    (CheckId::RoundTrip, |scene| Box::pin(round_trip::check(scene))),
    (CheckId::GeneratorCpu, |scene| Box::pin(generator_cpu::check(scene))),
];

impl<'a> Scene<'a> {
    pub(super) fn of(stack: &'a Stack) -> anyhow::Result<Self> {
        Ok(Self {
            stack,
            http: http::client(ANSWER_WITHIN)?,
            database_round_trip: Cell::default(),
        })
    }

    /// Makes every check. One that cannot be made has failed.
    pub(super) async fn check(&self) -> Vec<PreflightCheck> {
        let mut checks = Vec::with_capacity(ALL.len());
        for (id, check) in ALL {
            let Found { ok, says } = check(self)
                .await
                .unwrap_or_else(|error| Found::wrong(format!("{error:#}")));
            checks.push(PreflightCheck { id, ok, says });
        }
        checks
    }

    /// Round trip of a `SELECT 1` the way services make it, where it could be measured.
    pub(super) fn database_round_trip(&self) -> Option<Duration> {
        self.database_round_trip.get()
    }
}

impl Found {
    fn good(says: impl Into<String>) -> Self {
        Self {
            ok: true,
            says: says.into(),
        }
    }

    fn wrong(says: impl Into<String>) -> Self {
        Self {
            ok: false,
            says: says.into(),
        }
    }
}

/// What the checks mean where `expected` has to fail, if anything has to.
pub(super) fn judge(checks: &[PreflightCheck], expected: Option<CheckId>) -> Verdict {
    let failed: Vec<&PreflightCheck> = checks.iter().filter(|check| !check.ok).collect();
    let told = || {
        let failed = failed.iter().map(|check| format!("{}: {}", check.id, check.says));
        failed.collect::<Vec<_>>().join("; ")
    };
    match (expected, failed.as_slice()) {
        (None, []) => Verdict::Go,
        (None, _) => Verdict::Stop(format!("preflight, {}", told())),
        (Some(expected), [only]) if only.id == expected => Verdict::Refused(expected),
        (Some(expected), []) => Verdict::Stop(format!(
            "preflight should have stopped this arm by `{expected}`, and every check passed"
        )),
        (Some(expected), _) => Verdict::Stop(format!(
            "preflight should have stopped this arm by `{expected}` alone, and did by {}",
            told()
        )),
    }
}

#[cfg(test)]
mod tests {
    use deploy::{PortBase, Topology};

    use super::*;
    use crate::experiment::Experiment;

    fn checks(failed: &[CheckId]) -> Vec<PreflightCheck> {
        let check = |(id, _)| PreflightCheck {
            id,
            ok: !failed.contains(&id),
            says: "so".into(),
        };
        ALL.into_iter().map(check).collect()
    }

    #[test]
    fn the_checks_are_made_in_the_order_they_are_documented_in() {
        assert!(ALL.is_sorted_by_key(|(id, _)| *id));
    }

    #[test]
    fn an_expected_check_must_fail_and_be_the_only_one_that_does() {
        let id = CheckId::FrontSpread;
        assert_eq!(judge(&checks(&[]), None), Verdict::Go);
        assert_eq!(judge(&checks(&[id]), Some(id)), Verdict::Refused(id));
        for (failed, expected, told) in [
            (&[id][..], None, "front-spread: so"),
            (&[], Some(id), "every check passed"),
            (&[CheckId::QueueEmpty], Some(id), "queue-empty: so"),
            (&[id, CheckId::QueueEmpty], Some(id), "queue-empty: so"),
        ] {
            let Verdict::Stop(why) = judge(&checks(failed), expected) else {
                panic!("{failed:?} with {expected:?} must stop the arm");
            };
            assert!(why.contains(told), "{why}");
        }
    }

    /// Where a load was and nothing was restored, the checks that are about it fail, and no other.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_an_earlier_load_left_behind_is_noticed() {
        let mut topology = Topology {
            port_base: PortBase::Free,
            ..Topology::standard("it-run")
        };
        let slow = ("TOUR_DATA_CONSUMER_DELAY".to_owned(), "2s".to_owned());
        topology.settings.extend([slow]);
        let stack = Stack::up(topology, &mut |line| println!("{line}")).await.unwrap();
        let scene = Scene::of(&stack).unwrap();
        let failed = async || -> Vec<PreflightCheck> {
            let checks = scene.check().await;
            // How busy the machine is with other tests is not the subject.
            let about = |check: &PreflightCheck| check.id != CheckId::GeneratorCpu;
            checks.into_iter().filter(|check| !check.ok && about(check)).collect()
        };
        assert_eq!(failed().await, []);

        let front = format!("http://{}", stack.front());
        let client = stack.client(crate::run::CLIENT).unwrap();
        let token = crate::token::fetch(&scene.http, &front, &client).await.unwrap();
        let payload = std::fs::read(Experiment::find("row-lock-demo").unwrap().payload_path()).unwrap();
        for _ in 0..TOURS {
            let request = scene.http.post(format!("{front}/api/v1/tours")).bearer_auth(&token);
            let request = request.header("content-type", "application/json").body(payload.clone());
            assert_eq!(request.send().await.unwrap().status().as_u16(), 201);
        }
        let failed = failed().await;
        let ids: Vec<CheckId> = failed.iter().map(|check| check.id).collect();
        stack.down().await.unwrap();
        assert_eq!(ids, [CheckId::QueueEmpty, CheckId::DatabaseRestored], "{failed:?}");
        let tours = format!("public.tour: {TOURS} rows instead of 0");
        assert!(failed[1].says.contains(&tours), "{failed:?}");
    }

    /// More than the consumer takes in advance.
    const TOURS: usize = 60;
}
