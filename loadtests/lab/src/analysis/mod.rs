//! From the event stream to `results.json`: what each arm came to, how the arms compare, and what became of the claims.

mod audits;
mod bottleneck;
mod claims;
mod comparisons;
mod curves;
mod deadlocks;
mod evidence;
mod hold;
mod little;
mod locks;
mod metric;
mod open;
mod preflight;
mod staleness;
pub(crate) mod stats;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;

use self::evidence::Evidence;
use crate::events::{Event, RunKey, Stamped};
use crate::experiment::Experiment;
use crate::published::Published;
use crate::results::{Arm, Latency, Results, SCHEMA, Throughput};

/// Analyses a run, also one that was cut off: what is missing then is said in `failures`.
///
/// # Errors
/// The stream does not begin with the start of a run, or the published figures cannot be read.
pub(crate) fn analyse(experiment: &Experiment, events: &[Stamped]) -> anyhow::Result<Results> {
    let (environment, plan, warm_up_s, users, duration_s) = events
        .iter()
        .find_map(|stamped| match &stamped.event {
            Event::RunStarted {
                environment,
                plan,
                warm_up_s,
                users,
                duration_s,
                ..
            } => Some((environment.clone(), plan, *warm_up_s, *users, *duration_s)),
            _ => None,
        })
        .context("the stream does not say that a run was started")?;
    let mut evidence = Evidence::gather(events, warm_up_s);
    for (key, run) in &mut evidence {
        let load = experiment
            .arms
            .iter()
            .find(|arm| arm.name == key.arm)
            .map(|arm| experiment.load_of(arm));
        run.hot_rows = load.map_or(1, |load| load.tenants.at_work(load.users));
    }

    let mut arms = Vec::new();
    for spec in &experiment.arms {
        let runs: Vec<&Evidence> = evidence
            .iter()
            .filter(|(key, _)| key.arm == spec.name)
            .map(|(_, e)| e)
            .collect();
        if runs.iter().any(|run| run.load.is_some()) {
            arms.push(arm(&spec.name, &runs, experiment.load_of(spec).users));
        }
    }
    let published = experiment.published.as_deref().map(Published::find).transpose();
    let published = published?;
    let bench = claims::Bench {
        experiment,
        arms: &arms,
        evidence: &evidence,
        published: published.as_ref(),
    };
    let claims = experiment.claims.iter().map(|claim| bench.judge(claim)).collect();

    let mut failures = failures(events, &arms);
    let unfinished = plan
        .iter()
        .filter(|key| {
            let done = |run: &Evidence| run.load.is_some() || run.refused.is_some();
            !evidence.get(key).is_some_and(done)
        })
        .count();
    let ended = events
        .iter()
        .any(|stamped| matches!(stamped.event, Event::RunFinished { completed: true }));
    if unfinished > 0 {
        failures.push(format!(
            "{unfinished} of {} planned measurements have no result",
            plan.len()
        ));
    } else if !ended {
        failures.push("the run was cut off before it ended".to_owned());
    }
    Ok(Results {
        schema: SCHEMA,
        experiment: experiment.name.clone(),
        question: experiment.question.clone(),
        published: experiment.published.clone(),
        environment,
        rounds: plan.iter().map(|key| key.round).max().unwrap_or(0),
        users,
        duration_s,
        comparisons: comparisons::against_first(experiment, &arms, &evidence),
        noise_floor: comparisons::noise_floor(experiment, &evidence),
        curves: curves::draw(experiment, &arms),
        arms,
        refused: preflight::refused(experiment, &evidence),
        claims,
        completed: failures.is_empty(),
        failures,
    })
}

fn arm(name: &str, runs: &[&Evidence], users: usize) -> Arm {
    let loads: Vec<&load::Summary> = runs.iter().filter_map(|run| run.load.as_ref()).collect();
    let rounds: Vec<f64> = loads.iter().map(|load| load.throughput).collect();
    let mut errors = BTreeMap::new();
    for load in &loads {
        for (kind, count) in &load.errors {
            *errors.entry(kind.clone()).or_default() += count;
        }
    }
    let locks = locks::summarise(runs);
    let generator_cpu = stats::mean(
        loads
            .iter()
            .map(|load| load.generator_cpu_s / load.seconds.max(f64::EPSILON)),
    );
    let little_n = stats::mean(loads.iter().map(|load| load.little_n()));
    let pool_use_max = runs
        .iter()
        .flat_map(|run| run.pools())
        .map(|pool| pool.share())
        .fold(0.0, f64::max);
    let bottleneck = bottleneck::find(&bottleneck::Scene {
        runs,
        locks: &locks,
        generator_cpu,
        little_n,
        users,
    });
    Arm {
        name: name.to_owned(),
        changes: runs.iter().map(|run| run.changes.clone()).next().unwrap_or_default(),
        gives_up: runs.first().map(|run| run.gives_up.clone()).unwrap_or_default(),
        users,
        not_in_force: runs
            .iter()
            .flat_map(|run| run.not_in_force.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        throughput: Throughput {
            mean: stats::mean(rounds.iter().copied()),
            ci95: stats::mean_ci95(&rounds),
            rounds,
        },
        latency_ms: latency(&loads.iter().map(|load| &load.latency).collect::<Vec<_>>()),
        p95_rounds_ms: loads.iter().map(|load| load.latency_ms(0.95)).collect(),
        errors,
        requests: loads.iter().map(|load| load.ok).sum(),
        locks,
        rtt_asked_ms: runs.iter().map(|run| run.rtt_asked_ms).fold(0.0, f64::max),
        rtt_ms: stats::median(runs.iter().filter_map(|run| run.rtt_ms)),
        little_n,
        little: little::check(runs),
        deadlocks: deadlocks::summarise(runs),
        versions: evidence::versions(runs),
        hold: hold::summarise(runs.iter().copied()),
        open: open::summarise(&loads),
        generator_cpu,
        processes: evidence::processes(runs),
        queue_max: runs.iter().map(|run| run.queue_max()).max().unwrap_or(0),
        drain_s: runs.iter().filter_map(|run| run.drain_s).fold(0.0, f64::max),
        hot_ratio: evidence::hot_ratio(runs),
        pool_use_max,
        preflight: preflight::merge(runs),
        warm_up: preflight::warm_ups(runs),
        audit: audits::merge(runs),
        staleness: staleness::summarise(runs),
        faults: runs.iter().flat_map(|run| run.faults.iter().cloned()).collect(),
        last_changes: runs.iter().flat_map(|run| run.last_changes.iter().cloned()).collect(),
        bottleneck,
    }
}

/// Percentiles of all rounds together: histograms are merged, percentiles never averaged.
fn latency(rounds: &[&hdrhistogram::Histogram<u64>]) -> Latency {
    let Some(merged) = merge(rounds) else {
        return Latency::default();
    };
    let ms = |quantile| merged.value_at_quantile(quantile) as f64 / 1000.0;
    Latency {
        p50: ms(0.50),
        p95: ms(0.95),
        p99: ms(0.99),
        max: merged.max() as f64 / 1000.0,
        mean: merged.mean() / 1000.0,
    }
}

fn merge(rounds: &[&hdrhistogram::Histogram<u64>]) -> Option<hdrhistogram::Histogram<u64>> {
    let (first, rest) = rounds.split_first()?;
    let mut merged = (*first).clone();
    for histogram in rest {
        // Every histogram has the bounds of the load engine.
        merged.add(*histogram).ok()?;
    }
    Some(merged)
}

fn failures(events: &[Stamped], arms: &[Arm]) -> Vec<String> {
    let mut failed: BTreeMap<&RunKey, String> = BTreeMap::new();
    for stamped in events {
        match &stamped.event {
            // What is begun again may succeed.
            Event::ArmStarted { key, .. } => {
                failed.remove(key);
            }
            Event::ArmFailed { key, reason } => {
                failed.insert(key, format!("{}, round {}: {reason}", key.arm, key.round));
            }
            _ => {}
        }
    }
    let violated = arms.iter().flat_map(|arm| {
        let broken = arm.audit.checks.iter().filter(|check| !check.passed);
        broken.map(|check| {
            format!(
                "AUDIT of `{}`: {} ({} violations: {})",
                arm.name,
                check.says,
                check.violations,
                check.examples.join("; ")
            )
        })
    });
    let unaudited = arms
        .iter()
        .filter(|arm| !arm.audit.passed && arm.audit.checks.iter().all(|check| check.passed));
    let unaudited = unaudited.map(|arm| format!("{}: a round was not audited", arm.name));
    failed.into_values().chain(violated).chain(unaudited).collect()
}

#[cfg(test)]
pub(crate) mod tests;
