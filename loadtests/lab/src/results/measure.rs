//! A metric of a whole arm, as it stands in the results.

use super::Arm;
use crate::experiment::Metric;

/// Holds and requests are counted over windows whose ends differ by a second.
const NEARLY_ALL: f64 = 0.6;

impl Arm {
    /// The share of the requests that lock the hot row, where it is clearly not all of them: the row's ceiling is none for the
    /// others.
    pub(crate) fn few_that_lock(&self) -> Option<f64> {
        let hold = self.hold?;
        let share = (hold.count + hold.unmeasured) as f64 / self.requests.max(1) as f64;
        (share < NEARLY_ALL).then_some(share)
    }

    /// What the metric came to over all rounds; `None` where the results do not tell. Messages, deadlocks and drains are of
    /// single measurements and stand here as the mean, the mean and the longest.
    pub(crate) fn measure(&self, metric: Metric) -> Option<f64> {
        let sampled = |value: f64| (self.locks.samples > 0).then_some(value);
        match metric {
            Metric::Throughput => Some(self.throughput.mean),
            Metric::P95 => Some(self.latency_ms.p95),
            Metric::P99 => Some(self.latency_ms.p99),
            Metric::Max => Some(self.latency_ms.max),
            Metric::Waiters => sampled(self.locks.waiters_mean),
            Metric::WaitersMax => sampled(f64::from(self.locks.waiters_max)),
            Metric::SamplesWithWaiters => {
                sampled(f64::from(self.locks.samples_with_waiters) / f64::from(self.locks.samples))
            }
            Metric::TupleShare => {
                let all = self.locks.tuple_waiters + self.locks.transactionid_waiters;
                (all > 0).then(|| f64::from(self.locks.tuple_waiters) / f64::from(all))
            }
            Metric::HotRatio => self.hot_ratio,
            Metric::GeneratorCpu => Some(self.generator_cpu),
            Metric::CycleOverP95 if self.open.is_some() => None,
            Metric::CycleOverP95 => Some(self.users as f64 / self.throughput.mean * 1000.0 / self.latency_ms.p95)
                .filter(|it| it.is_finite()),
            Metric::Hold => self.hold.map(|hold| hold.mean_ms),
            Metric::OfCeiling => self.hold.map(|hold| self.throughput.mean / hold.ceiling_per_s),
            Metric::Deadlocks => {
                let rounds = self.throughput.rounds.len();
                let count = self.deadlocks.as_ref().map(|deadlocks| deadlocks.count as f64);
                count.filter(|_| rounds > 0).map(|count| count / rounds as f64)
            }
            Metric::SnapshotAge => self.versions.as_ref().map(|versions| versions.snapshot_age as f64),
            Metric::HotTable => self.versions.as_ref().map(|versions| versions.bytes as f64 / 1000.0),
            Metric::QueueMax => Some(f64::from(self.queue_max)),
            Metric::Messages => self.a_round(self.audit.delivered),
            Metric::Drain => Some(self.drain_s),
            Metric::Staleness => {
                let staleness = self.staleness.as_ref().filter(|staleness| staleness.changes > 0);
                staleness.map(|staleness| staleness.max_ms)
            }
            Metric::LostMessages => self.a_round(self.audit.lost_messages),
            Metric::NotInForce => Some(self.not_in_force.len() as f64),
            Metric::BlamedRow => None,
        }
    }

    /// Mean of what is counted over all rounds.
    fn a_round(&self, count: u64) -> Option<f64> {
        let rounds = self.throughput.rounds.len();
        (rounds > 0).then(|| count as f64 / rounds as f64)
    }
}
