//! `fault.lost_acked` and `fault.recovery_s`: what faults cost, over randomised ones under load.
//!
//! Every part is killed, stopped or restarted six times and every link cut or slowed four times, in random order and for a
//! random time, while clients create tours and repeat what got no answer. Afterwards the audit looks for every tour that
//! was acknowledged. The recovery is the time from the moment a part answers again to the first acknowledged tour.

use std::time::Duration;

use super::{Figure, Measurement, Reading, Target, stack};
use crate::events::now_ms;
use crate::experiment::{Experiment, FaultSpec, Moment};
use crate::random::Random;
use crate::results::Results;
use crate::run;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        figure("fault.lost_acked", "tours", Target::AtMost(0.0)),
        figure("fault.recovery_s", "s", Target::None),
        figure("fault.recovery_worst_s", "s", Target::None),
        figure("fault.recovery_postgres_s", "s", Target::None),
        figure("fault.recovery_postgres_worst_s", "s", Target::None),
        figure("fault.recovery_redis_s", "s", Target::None),
        figure("fault.recovery_redis_worst_s", "s", Target::None),
        figure("fault.recovery_rabbitmq_s", "s", Target::None),
        figure("fault.recovery_rabbitmq_worst_s", "s", Target::None),
        figure("fault.recovery_haproxy_s", "s", Target::None),
        figure("fault.recovery_haproxy_worst_s", "s", Target::None),
        figure("fault.recovery_gateway_s", "s", Target::None),
        figure("fault.recovery_gateway_worst_s", "s", Target::None),
        figure("fault.recovery_tour-data_s", "s", Target::None),
        figure("fault.recovery_tour-data_worst_s", "s", Target::None),
        figure("fault.recovery_user_s", "s", Target::None),
        figure("fault.recovery_user_worst_s", "s", Target::None),
        figure("fault.recovery_links_s", "s", Target::None),
        figure("fault.recovery_links_worst_s", "s", Target::None),
    ],
    run: || Box::pin(measure()),
};

const fn figure(name: &'static str, unit: &'static str, target: Target) -> Figure {
    Figure { name, unit, target }
}

/// In the order of the figures.
const PARTS: [&str; 7] = [
    "postgres",
    "redis",
    "rabbitmq",
    "haproxy",
    "gateway",
    "tour-data",
    "user",
];
const LINKS: [&str; 3] = ["db", "redis", "broker"];
const EACH_PART: usize = 6;
const EACH_LINK: usize = 4;
/// A fault begins no sooner after the one before it, so that the load has come to rest where the recovery was quick.
const APART: Duration = Duration::from_secs(3);
/// The window is far longer than it takes: the load ends when the last fault was recovered from.
const LOAD: &str = r#"
question = "Is an acknowledged tour lost, and how long does it take until the next one?"
users = 8
warm_up = "1s"
duration = "50m"
rounds = 1
token = "per-iteration"
payload = "create-tour.json"
rows_per_tour = 87
retry = "60s"
[common]
rtt = { db = "200us", redis = "200us", broker = "200us" }
settings = { TOUR_DATA_TOUCH = "update-last" }
[[arm]]
name = "faults"
"#;
const SHORTEST_MS: u64 = 200;
const LONGEST_MS: u64 = 1500;

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let seed = now_ms();
    let experiment = experiment(seed).map_err(|why| anyhow::anyhow!(why))?;
    eprintln!("{} faults, seed {seed}", experiment.faults.len());
    let options = run::Options {
        stack: stack::NAME.to_owned(),
        until_recovered: true,
        ..run::Options::default()
    };
    let done = run::run(&experiment, options).await?;
    eprintln!("report: {}", done.folder.join("report.md").display());
    readings(&done.results)
}

fn experiment(seed: u64) -> Result<Experiment, String> {
    let mut experiment = Experiment::parse(LOAD, "fault-bench")?;
    experiment.faults = faults(seed);
    experiment.question = format!("{} (seed {seed})", experiment.question);
    Ok(experiment)
}

fn faults(seed: u64) -> Vec<FaultSpec> {
    let mut random = Random::of(seed, 0);
    let parts = PARTS
        .iter()
        .flat_map(|part| [(*part, &["kill", "stop", "restart"][..]); EACH_PART]);
    let links = LINKS.iter().flat_map(|link| [(*link, &["cut", "slow"][..]); EACH_LINK]);
    let mut targets: Vec<_> = parts.chain(links).collect();
    for last in (1..targets.len()).rev() {
        targets.swap(last, random.below(last + 1));
    }
    let mut at = Duration::from_secs(2);
    let faults = targets.into_iter().map(|(target, kinds)| {
        at += APART;
        FaultSpec {
            kind: random.pick(kinds).to_owned(),
            target: target.to_owned(),
            at: Moment::Load(at),
            duration: Duration::from_millis(SHORTEST_MS + random.next() % (LONGEST_MS - SHORTEST_MS)),
            rtt: None,
            arms: Vec::new(),
        }
    });
    faults.collect()
}

/// One reading a figure.
///
/// # Errors
/// A fault was not recovered from, or another invariant than the loss was violated: the figures would be about less than
/// they say.
fn readings(results: &Results) -> anyhow::Result<Vec<Reading>> {
    let lost = results.arms.first().and_then(|arm| {
        let mut checks = arm.audit.checks.iter();
        Some((arm, checks.find(|check| check.name == LOST)?))
    });
    let Some((arm, lost)) = lost else {
        anyhow::bail!("the faults were not audited: {}", results.failures.join("; "));
    };
    let others = arm
        .audit
        .checks
        .iter()
        .filter(|check| !check.passed && check.name != LOST);
    let others: Vec<&str> = others.map(|check| check.name.as_str()).collect();
    let planned = PARTS.len() * EACH_PART + LINKS.len() * EACH_LINK;
    anyhow::ensure!(
        others.is_empty() && arm.faults.len() == planned,
        "{} of {planned} faults were recovered from, invariants violated: {others:?}; {}",
        arm.faults.len(),
        results.failures.join("; ")
    );
    let of = |wanted: &dyn Fn(&str, &str) -> bool| -> Vec<f64> {
        let faults = arm.faults.iter().filter(|fault| wanted(&fault.kind, &fault.target));
        faults.map(|fault| fault.recovery_s).collect()
    };
    let over_link = |kind: &str| matches!(kind, "cut" | "slow");
    let mut readings = vec![Reading::of(vec![lost.violations as f64])];
    readings.extend(median_and_worst(of(&|_, _| true)));
    for part in PARTS {
        readings.extend(median_and_worst(of(&|kind, target| !over_link(kind) && target == part)));
    }
    readings.extend(median_and_worst(of(&|kind, _| over_link(kind))));
    Ok(readings)
}

/// The invariant that every acknowledged tour exists.
const LOST: &str = "lost-acknowledged";

fn median_and_worst(singles: Vec<f64>) -> [Reading; 2] {
    let worst = singles.iter().copied().fold(0.0, f64::max);
    [Reading::of(singles), Reading::of(vec![worst])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Overrides;

    #[test]
    fn a_seed_gives_the_same_faults_again_and_another_gives_others() {
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
    }

    #[test]
    fn every_part_is_hit_and_there_are_at_least_fifty_faults() {
        let mut experiment = experiment(1).unwrap();
        assert!(experiment.faults.len() >= 50);
        experiment.apply(&Overrides::default()).unwrap();
        for part in PARTS {
            let hits = experiment.faults.iter().filter(|fault| fault.target == part).count();
            assert!(hits >= EACH_PART, "{part}: {hits}");
        }
        assert_eq!(MEASUREMENT.figures.len(), 1 + 2 + 2 * PARTS.len() + 2);
    }
}
