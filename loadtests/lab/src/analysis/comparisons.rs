//! Arms against the first one, from rounds that hold both, and against what two arms that are the same differ by.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::metric;
use super::stats::{self, Ratio};
use crate::events::RunKey;
use crate::experiment::{Experiment, Metric};
use crate::results::{Arm, Comparison, NoiseFloor};

/// Every measurement of a run.
pub(super) type Measurements = BTreeMap<RunKey, Evidence>;

/// First ÷ second in every metric that an experiment can claim something of.
pub(super) fn ratio(evidence: &Measurements, arm: &str, against: &str, metric: Metric) -> Option<Ratio> {
    stats::ratio(&pairs(evidence, arm, against, metric))
}

/// Values of two arms from the rounds that hold both.
pub(super) fn pairs(evidence: &Measurements, arm: &str, against: &str, metric: Metric) -> Vec<(f64, f64)> {
    let of = |key: &RunKey| evidence.get(key).and_then(|run| metric::of_run(metric, run));
    let mine = evidence.keys().filter(|key| key.arm == arm);
    mine.filter_map(|key| {
        Some((
            of(key)?,
            of(&RunKey {
                round: key.round,
                arm: against.to_owned(),
            })?,
        ))
    })
    .collect()
}

/// What two arms that are the same came to; `None` without a noise floor, or before both were measured in one round.
pub(super) fn noise_floor(experiment: &Experiment, evidence: &Measurements) -> Option<NoiseFloor> {
    let [first, double] = experiment.noise_arms()?;
    let of = |metric| ratio(evidence, &double.name, &first.name, metric);
    let (throughput, p95) = (of(Metric::Throughput)?, of(Metric::P95)?);
    Some(NoiseFloor {
        arm: double.name.clone(),
        against: first.name.clone(),
        throughput_ratio: throughput.mean,
        throughput_ci95: throughput.ci95,
        p95_ratio: p95.mean,
        p95_ci95: p95.ci95,
    })
}

/// How far noise alone takes a ratio of this metric from 1, as a logarithm: the further end of the interval of two arms that
/// are the same. `None` where that is not known.
pub(super) fn noise(experiment: &Experiment, evidence: &Measurements, metric: Metric) -> Option<f64> {
    let [first, double] = experiment.noise_arms()?;
    reach(ratio(evidence, &double.name, &first.name, metric)?.ci95)
}

/// Every arm but the first against it.
pub(super) fn against_first(experiment: &Experiment, arms: &[Arm], evidence: &Measurements) -> Vec<Comparison> {
    let Some((first, others)) = arms.split_first() else {
        return Vec::new();
    };
    let [noise_throughput, noise_p95] =
        [Metric::Throughput, Metric::P95].map(|metric| noise(experiment, evidence, metric));
    let beyond = |ratio: f64, noise: Option<f64>| noise.map(|noise| ratio.ln().abs() > noise);
    others
        .iter()
        .filter_map(|arm| {
            let throughput = ratio(evidence, &arm.name, &first.name, Metric::Throughput)?;
            let p95 = ratio(evidence, &arm.name, &first.name, Metric::P95);
            Some(Comparison {
                arm: arm.name.clone(),
                against: first.name.clone(),
                throughput_ratio: throughput.mean,
                ci95: throughput.ci95,
                p95_ratio: arm.latency_ms.p95 / first.latency_ms.p95,
                p95_paired_ratio: p95.map(|p95| p95.mean),
                p95_ci95: p95.and_then(|p95| p95.ci95),
                throughput_beyond_noise: beyond(throughput.mean, noise_throughput),
                p95_beyond_noise: p95.and_then(|p95| beyond(p95.mean, noise_p95)),
            })
        })
        .collect()
}

fn reach(ci95: Option<[f64; 2]>) -> Option<f64> {
    ci95.map(|[low, high]| low.ln().abs().max(high.ln().abs()))
}
