//! Lock waits of an arm: how many waited, for which rows, and what the holder was doing meanwhile.

use std::collections::BTreeMap;

use super::evidence::{Evidence, share};
use super::stats;
use crate::events::LockSample;
use crate::results::{LockedRow, Locks};

/// Rows that are listed; the rest would be noise.
const ROWS: usize = 10;

/// Sums up all lock samples of an arm's rounds.
pub(super) fn summarise(runs: &[&Evidence]) -> Locks {
    let samples: Vec<&LockSample> = runs.iter().flat_map(|run| &run.locks).collect();
    let waiters = |sample: &LockSample| u32::try_from(sample.waiters.len()).unwrap_or(u32::MAX);
    let roots = || samples.iter().flat_map(|sample| &sample.roots);

    let mut holder_waits: BTreeMap<String, f64> = BTreeMap::new();
    let holders = roots().count().max(1) as f64;
    for root in roots() {
        *holder_waits.entry(root.wait.clone()).or_default() += 1.0 / holders;
    }
    Locks {
        samples: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        samples_with_waiters: (share(&samples, |sample| !sample.waiters.is_empty()) * samples.len() as f64) as u32,
        waiters_mean: stats::mean(samples.iter().map(|sample| f64::from(waiters(sample)))),
        waiters_max: samples.iter().map(|sample| waiters(sample)).max().unwrap_or(0),
        tuple_waiters: roots().map(|root| root.tuple_waiters).sum(),
        transactionid_waiters: roots().map(|root| root.transactionid_waiters).sum(),
        rows: rows(&samples),
        holder_waits,
    }
}

/// The rows waited for. A moment in which a row could not be named counts for the named row of the same relation, if
/// there is just one: the lock is handed over many times a second and some samples fall between two holders.
fn rows(samples: &[&LockSample]) -> Vec<LockedRow> {
    let mut counts: BTreeMap<(String, Option<String>), (u32, String)> = BTreeMap::new();
    for root in samples.iter().flat_map(|sample| &sample.roots) {
        let relation = root.relation.clone().unwrap_or_else(|| "unknown".to_owned());
        let entry = counts.entry((relation, root.row.clone())).or_default();
        entry.0 += root.waiters;
        entry.1 = root.waiting_statement.clone().unwrap_or_default();
    }
    let unnamed: Vec<_> = counts.keys().filter(|(_, row)| row.is_none()).cloned().collect();
    for key in unnamed {
        let mut named = counts
            .keys()
            .filter(|(relation, row)| *relation == key.0 && row.is_some());
        if let (Some(only), None) = (named.next().cloned(), named.next())
            && let Some((count, _)) = counts.remove(&key)
        {
            counts.entry(only).or_default().0 += count;
        }
    }
    let all: u32 = counts.values().map(|(count, _)| count).sum();
    let mut rows: Vec<LockedRow> = counts
        .into_iter()
        .map(|((relation, row), (count, statement))| LockedRow {
            relation,
            row,
            share: f64::from(count) / f64::from(all.max(1)),
            statement,
        })
        .collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    rows.truncate(ROWS);
    rows
}
