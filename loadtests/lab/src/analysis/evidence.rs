//! What one measurement left in the event stream, gathered; only what was sampled inside the measured window.

use std::collections::BTreeMap;

use super::stats;
use crate::events::{
    ActivitySample, Deadlock, Event, FaultState, HoldSample, HotTable, LockSample, Phase, PoolUse, ProcessSample,
    QueueSample, RunKey, Sample, Stamped,
};
use crate::results::{Audit, CheckId, FaultResult, LastChange, PreflightCheck, ProcessMean, Versions};

/// Everything known of one measurement.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) changes: Vec<String>,
    pub(super) rtt_asked_ms: f64,
    pub(super) rtt_ms: Option<f64>,
    pub(super) load: Option<load::Summary>,
    pub(super) audit: Option<Audit>,
    pub(super) faults: Vec<FaultResult>,
    pub(super) last_changes: Vec<LastChange>,
    pub(super) not_in_force: Vec<String>,
    pub(super) gives_up: Vec<String>,
    pub(super) preflight: Vec<PreflightCheck>,
    /// The check that stopped it as it has to.
    pub(super) refused: Option<CheckId>,
    pub(super) warm_up: Option<WarmUp>,
    /// From the end of the load until the queues were empty.
    pub(super) drain_s: Option<f64>,
    pub(super) drain_began_ms: u64,
    pub(super) locks: Vec<LockSample>,
    pub(super) activity: Vec<ActivitySample>,
    pub(super) processes: Vec<ProcessSample>,
    pub(super) holds: Vec<HoldSample>,
    /// Hot rows that the load wrote to: one a tenant at work.
    pub(super) hot_rows: usize,
    pub(super) queues: Vec<QueueSample>,
    pub(super) pools: Vec<Vec<PoolUse>>,
    /// As PostgreSQL counts them, which it may do seconds late; `None` where nobody asked it.
    pub(super) counted_deadlocks: Option<u64>,
    pub(super) logged_deadlocks: Vec<Deadlock>,
    /// Transactions, over the load and what was told late of it.
    pub(super) rolled_back: u64,
    pub(super) versions: Option<Versions>,
    /// What was seen together: each size of the table with the age of the snapshot that was sampled last before it.
    pub(super) moments: Vec<Versions>,
    /// Age of the oldest snapshot in the last sample of the sessions.
    pub(super) snapshot_age: u64,
    /// The last one: its counters run since the arm began.
    pub(super) hot: BTreeMap<String, HotTable>,
}

/// How the load began.
#[derive(Debug, Clone)]
pub(super) struct WarmUp {
    pub(super) seconds: f64,
    pub(super) steady: bool,
    pub(super) says: String,
}

impl PoolUse {
    /// Connections in use as a share of those allowed, 0 … 1.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.used) / f64::from(self.max.max(1))
    }
}

impl Evidence {
    /// Sorts a stream by measurement. `warm_up_s` is the warm-up of a measurement that does not say how long its own was.
    pub(super) fn gather(events: &[Stamped], warm_up_s: f64) -> BTreeMap<RunKey, Self> {
        let mut all: BTreeMap<RunKey, Self> = BTreeMap::new();
        let warm_ups = warm_ups(events);
        let begins = |key: &RunKey| warm_ups.get(key).copied().unwrap_or(warm_up_s);
        for stamped in events {
            match &stamped.event {
                Event::ArmStarted { key, changes } => {
                    // A measurement that was begun again counts from its new beginning.
                    all.insert(
                        key.clone(),
                        Self {
                            changes: changes.clone(),
                            ..Self::default()
                        },
                    );
                }
                Event::RoundTrip {
                    key,
                    asked_ms,
                    measured_ms,
                } => {
                    let run = all.entry(key.clone()).or_default();
                    run.rtt_asked_ms = *asked_ms;
                    run.rtt_ms = Some(*measured_ms);
                }
                Event::Load { key, load } => all.entry(key.clone()).or_default().load = Some((**load).clone()),
                Event::Preset { key, not_in_force } => {
                    all.entry(key.clone())
                        .or_default()
                        .not_in_force
                        .clone_from(not_in_force);
                }
                Event::GivesUp { key, says } => all.entry(key.clone()).or_default().gives_up.clone_from(says),
                Event::Preflight { key, checks } => {
                    all.entry(key.clone()).or_default().preflight.clone_from(checks);
                }
                Event::Refused { key, id } => all.entry(key.clone()).or_default().refused = Some(*id),
                Event::WarmUp {
                    key,
                    detected_s,
                    steady,
                    says,
                } => {
                    all.entry(key.clone()).or_default().warm_up = Some(WarmUp {
                        seconds: *detected_s,
                        steady: *steady,
                        says: says.clone(),
                    });
                }
                Event::Phase {
                    key,
                    phase: Phase::Drain,
                } => {
                    all.entry(key.clone()).or_default().drain_began_ms = stamped.at_ms;
                }
                Event::Phase {
                    key,
                    phase: Phase::Audit,
                } => {
                    let run = all.entry(key.clone()).or_default();
                    run.drain_s = Some(stamped.at_ms.saturating_sub(run.drain_began_ms) as f64 / 1000.0);
                }
                Event::Audit { key, audit } => all.entry(key.clone()).or_default().audit = Some(audit.clone()),
                Event::Sample { key, t_s, sample } if *t_s >= begins(key) => {
                    all.entry(key.clone()).or_default().add(sample);
                }
                Event::Fault {
                    key,
                    kind,
                    target,
                    state:
                        FaultState::Recovered {
                            after_s,
                            acknowledged,
                            repeated,
                            longest_gap_s,
                        },
                    ..
                } => all.entry(key.clone()).or_default().faults.push(FaultResult {
                    kind: kind.clone(),
                    target: target.clone(),
                    recovery_s: *after_s,
                    longest_gap_s: *longest_gap_s,
                    acknowledged: *acknowledged,
                    repeated: *repeated,
                }),
                Event::Fault {
                    key,
                    kind,
                    target,
                    state: FaultState::Outlived { answered_s, seen_s },
                    ..
                } => all.entry(key.clone()).or_default().last_changes.push(LastChange {
                    kind: kind.clone(),
                    target: target.clone(),
                    answered_s: *answered_s,
                    seen_s: *seen_s,
                }),
                _ => {}
            }
        }
        all
    }

    /// Uses of all replicas' pools, over all samples.
    pub(super) fn pools(&self) -> impl Iterator<Item = &PoolUse> {
        self.pools.iter().flatten()
    }

    /// Samples in which some replica had requests waiting for a connection, as a share of all, 0 … 1.
    pub(super) fn pool_waited(&self) -> f64 {
        share(&self.pools, |replicas| replicas.iter().any(|pool| pool.pending > 0))
    }

    /// Sessions inside a transaction or a statement, mean over the samples.
    pub(super) fn busy_sessions(&self) -> f64 {
        let busy = |sample: &ActivitySample| sample.waits.values().sum::<u32>();
        stats::mean(self.activity.iter().map(|sample| f64::from(busy(sample))))
    }

    /// How many deadlocks there were, by the counter or the log, whichever knows of more; `None` where nobody asked.
    pub(super) fn deadlocks(&self) -> Option<u64> {
        let logged = self.logged_deadlocks.len() as u64;
        self.counted_deadlocks.map(|counted| counted.max(logged))
    }

    /// Most messages seen ready in one queue.
    pub(super) fn queue_max(&self) -> u32 {
        self.queues
            .iter()
            .flat_map(|sample| sample.ready.values().copied())
            .max()
            .unwrap_or(0)
    }

    /// Messages in all queues at the first and at the last sample.
    pub(super) fn queue_ends(&self) -> Option<(u32, u32)> {
        let depth = |sample: &QueueSample| sample.ready.values().sum();
        Some((depth(self.queues.first()?), depth(self.queues.last()?)))
    }

    fn add(&mut self, sample: &Sample) {
        match sample {
            Sample::Locks(sample) => self.locks.push(sample.clone()),
            Sample::Activity(sample) => {
                self.snapshot_age = sample.snapshot_age.unwrap_or(0);
                if let Some(age) = sample.snapshot_age {
                    let versions = self.versions.get_or_insert_default();
                    versions.snapshot_age = versions.snapshot_age.max(age);
                }
                self.activity.push(sample.clone());
            }
            Sample::Hot(sample) => {
                let updated = sample.tables.iter().filter(|(_, table)| table.updates > 0);
                if let Some((relation, table)) = updated.max_by_key(|(_, table)| table.updates) {
                    let versions = self.versions.get_or_insert_default();
                    if table.bytes >= versions.bytes {
                        versions.relation.clone_from(relation);
                        versions.bytes = table.bytes;
                    }
                    self.moments.push(Versions {
                        snapshot_age: self.snapshot_age,
                        relation: relation.clone(),
                        bytes: table.bytes,
                    });
                }
                self.hot = sample.tables.clone();
            }
            Sample::Deadlocks(sample) => {
                *self.counted_deadlocks.get_or_insert_default() += sample.count;
                self.logged_deadlocks.extend(sample.logged.iter().cloned());
            }
            Sample::Rollbacks(sample) => self.rolled_back += sample.count,
            Sample::Queue(sample) => self.queues.push(sample.clone()),
            Sample::Pool(sample) => self.pools.push(sample.replicas.values().copied().collect()),
            Sample::Processes(sample) => self.processes.push(sample.clone()),
            Sample::Hold(sample) => self.holds.push(sample.clone()),
        }
    }
}

/// How long the warm-ups were that say so; of a measurement that was begun again, the last one. Samples come before that is
/// known, so it is looked for first.
fn warm_ups(events: &[Stamped]) -> BTreeMap<RunKey, f64> {
    let told = events.iter().filter_map(|stamped| match &stamped.event {
        Event::WarmUp { key, detected_s, .. } => Some((key.clone(), *detected_s)),
        _ => None,
    });
    told.collect()
}

/// Share of `items` that satisfy `holds`, 0 … 1; 0 without items.
pub(super) fn share<T>(items: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    items.iter().filter(|item| holds(item)).count() as f64 / items.len().max(1) as f64
}

/// Mean CPU and highest memory of each process over all rounds of an arm.
pub(super) fn processes(runs: &[&Evidence]) -> BTreeMap<String, ProcessMean> {
    let mut used: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (name, process) in runs
        .iter()
        .flat_map(|run| &run.processes)
        .flat_map(|sample| &sample.processes)
    {
        used.entry(name.clone())
            .or_default()
            .push((process.cpu, process.pss_mb));
    }
    let summed = |uses: Vec<(f64, f64)>| ProcessMean {
        cpu_mean: stats::mean(uses.iter().map(|(cpu, _)| *cpu)),
        pss_mb_max: uses.iter().map(|(_, pss)| *pss).fold(0.0, f64::max),
    };
    used.into_iter().map(|(name, uses)| (name, summed(uses))).collect()
}

/// The oldest snapshot and the largest table of all rounds of an arm.
pub(super) fn versions(runs: &[&Evidence]) -> Option<Versions> {
    let all = || runs.iter().filter_map(|run| run.versions.as_ref());
    let worst = all().max_by_key(|versions| versions.bytes)?;
    Some(Versions {
        snapshot_age: all().map(|versions| versions.snapshot_age).max().unwrap_or(0),
        ..worst.clone()
    })
}

/// Share of heap-only updates of the table that was updated most; `None` when nothing was updated.
pub(super) fn hot_ratio(runs: &[&Evidence]) -> Option<f64> {
    let mut tables: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, table) in runs.iter().flat_map(|run| &run.hot) {
        let (updates, hot) = tables.entry(name).or_default();
        *updates += table.updates;
        *hot += table.hot_updates;
    }
    let (updates, hot) = tables.into_values().max_by_key(|(updates, _)| *updates)?;
    (updates > 0).then(|| hot as f64 / updates as f64)
}
