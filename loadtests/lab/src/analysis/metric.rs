//! What a claim's metric comes to in one measurement.

use super::evidence::Evidence;
use super::{hold, stats};
use crate::experiment::Metric;

/// `None` where the measurement does not tell, or has nothing to divide by.
pub(super) fn of_run(metric: Metric, run: &Evidence) -> Option<f64> {
    told(metric, run).filter(|value| value.is_finite())
}

fn told(metric: Metric, run: &Evidence) -> Option<f64> {
    let load = run.load.as_ref()?;
    let waiters = || run.locks.iter().map(|sample| sample.waiters.len() as f64);
    let sampled = |value: f64| (!run.locks.is_empty()).then_some(value);
    match metric {
        Metric::Throughput => Some(load.throughput),
        Metric::P95 => Some(load.latency_ms(0.95)),
        Metric::P99 => Some(load.latency_ms(0.99)),
        Metric::Max => Some(load.latency_ms(1.0)),
        Metric::Waiters => sampled(stats::mean(waiters())),
        Metric::WaitersMax => sampled(waiters().fold(0.0, f64::max)),
        Metric::SamplesWithWaiters => sampled(stats::mean(waiters().map(|waiting| f64::from(waiting > 0.0)))),
        Metric::TupleShare => {
            let roots = || run.locks.iter().flat_map(|sample| &sample.roots);
            let tuple: u32 = roots().map(|root| root.tuple_waiters).sum();
            let all = tuple + roots().map(|root| root.transactionid_waiters).sum::<u32>();
            (all > 0).then(|| f64::from(tuple) / f64::from(all))
        }
        Metric::HotRatio => super::evidence::hot_ratio(&[run]),
        Metric::GeneratorCpu => Some(load.generator_cpu_s / load.seconds.max(f64::EPSILON)),
        // Little's law gives a cycle where the number of users is given.
        Metric::CycleOverP95 if load.open.is_some() => None,
        Metric::CycleOverP95 => Some(load.users as f64 / load.throughput * 1000.0 / load.latency_ms(0.95)),
        Metric::Hold => hold::summarise([run]).map(|hold| hold.mean_ms),
        Metric::OfCeiling => hold::summarise([run]).map(|hold| load.throughput / hold.ceiling_per_s),
        Metric::Deadlocks => run.deadlocks().map(|count| count as f64),
        Metric::SnapshotAge => run.versions.as_ref().map(|versions| versions.snapshot_age as f64),
        Metric::HotTable => run.versions.as_ref().map(|versions| versions.bytes as f64 / 1000.0),
        Metric::QueueMax => Some(f64::from(run.queue_max())),
        Metric::Messages => run.audit.as_ref().map(|audit| audit.delivered as f64),
        Metric::Drain => run.drain_s,
        Metric::Staleness => {
            let seen_after = run.audit.iter().flat_map(|audit| &audit.seen_after_ms);
            seen_after.max().map(|ms| *ms as f64)
        }
        Metric::LostMessages => run.audit.as_ref().map(|audit| audit.lost_messages as f64),
        Metric::NotInForce => Some(run.not_in_force.len() as f64),
        Metric::BlamedRow => None,
    }
}
