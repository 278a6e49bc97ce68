//! `modifiedAt` as a reader saw it, against the promise.
//!
//! A change is due when its request has been acknowledged. What a read must show at least is computed without knowing
//! the service's clock: the last commit before the read was that of some request whose acknowledgement came no earlier
//! than the latest sending among those acknowledged before the read; so `modifiedAt` is at least the earliest sending
//! among these. This holds for last-writer-wins too, where the clock is read before the lock is waited for.

use super::history::History;
use super::promised::Promised;
use super::reader::Sighting;
use super::writes::{OF_MODIFIED_AT, Owed, Writes, ms};
use super::{EXAMPLES, verdict};
use crate::facts::Promise;
use crate::results::AuditCheck;

/// Allowed between the lab's clock and PostgreSQL's microseconds truncated to milliseconds.
const ROUNDING_MS: u64 = 2;

/// Judges what was seen.
pub(super) fn judge(sightings: &[Sighting], promise: &Promise, writes: &Writes) -> Vec<AuditCheck> {
    let mut checks = Vec::from_iter(fresh(sightings, promise, writes));
    if promise.config == "unwritten" {
        let first = sightings.first().map(|seen| seen.modified_ms);
        let changed = sightings.iter().filter(|seen| Some(seen.modified_ms) != first);
        let changed = changed.map(|seen| format!("read at {}: modifiedAt moved to {}", seen.at_ms, seen.modified_ms));
        checks.push(summed(
            "reader-sees-no-change",
            "The configuration is never written.",
            changed,
        ));
    }
    if promise.modified_at == "monotone" {
        let backwards = sightings
            .windows(2)
            .filter(|pair| pair[1].modified_ms < pair[0].modified_ms)
            .filter(|pair| {
                let between = |[began, ended]: &[u64; 2]| pair[0].at_ms <= *ended && pair[1].ended() >= *began;
                !writes.undone.iter().any(between)
            })
            .map(|pair| {
                format!(
                    "read at {}: modifiedAt went back by {} ms",
                    pair[1].at_ms,
                    pair[0].modified_ms - pair[1].modified_ms
                )
            });
        checks.push(summed(
            "modified-at-is-monotone",
            "modifiedAt never goes backwards for a reader.",
            backwards,
        ));
    }
    checks
}

/// Whether it is as new as promised; `None` where it does not follow the tours.
fn fresh(sightings: &[Sighting], promise: &Promise, writes: &Writes) -> Option<AuditCheck> {
    let old = ms(Promised::of(&promise.config).old?);
    let owed = Owed::by(promise, OF_MODIFIED_AT, writes, sightings)?;
    // A request without an answer may have written last, as early as it was sent.
    let slack = old.saturating_add(ms(writes.unanswered)).saturating_add(ROUNDING_MS);
    let stale = sightings.iter().filter_map(|seen| {
        let least = owed.all.earliest_sent(owed.due(seen.at_ms)?)?.saturating_sub(slack);
        let behind = least.checked_sub(seen.modified_ms).filter(|behind| *behind > 0)?;
        Some(format!("read at {}: {behind} ms too old", seen.at_ms))
    });
    Some(if promise.config == "exact" {
        summed(
            "reader-sees-every-change",
            "A read after a 201 shows its change of the configuration.",
            stale,
        )
    } else {
        summed(
            "modified-at-is-no-staler-than-promised",
            "modifiedAt is no older for a reader than the promise allows.",
            stale,
        )
    })
}

/// For each read: how much older `modifiedAt` was than a tour that had been acknowledged before, milliseconds; what was there
/// before all of them counts as of the first. Nothing where it is not promised to follow the tours.
pub(super) fn behind(sightings: &[Sighting], promise: &Promise, writes: &Writes) -> Vec<u64> {
    if Promised::of(&promise.config).old.is_none() {
        return Vec::new();
    }
    let history = History::of(&writes.acknowledged);
    let reads = sightings.iter().filter_map(|seen| {
        let first = history.earliest_sent(0)?;
        let least = history.earliest_sent(history.latest_sent(seen.at_ms)?)?;
        Some(least.saturating_sub(seen.modified_ms.max(first)))
    });
    reads.collect()
}

pub(super) fn summed(name: &str, says: &str, violations: impl Iterator<Item = String>) -> AuditCheck {
    let violations: Vec<String> = violations.collect();
    let count = violations.len() as u64;
    verdict(name, says, count, violations.into_iter().take(EXAMPLES).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ledger::Write;
    use super::*;

    fn promise(config: &str, modified_at: &str) -> Promise {
        Promise {
            config: config.into(),
            modified_at: modified_at.into(),
            kept: "row".into(),
            ..Promise::default()
        }
    }

    fn seen(at_ms: u64, modified_ms: u64) -> Sighting {
        Sighting {
            modified_ms,
            ..Sighting::new(at_ms, None)
        }
    }

    fn writes<const N: usize>(times: [(u64, u64); N]) -> Writes {
        let write = |(sent_ms, acked_ms)| Write {
            sent_ms,
            acked_ms,
            info: None,
        };
        Writes {
            acknowledged: times.map(write).to_vec(),
            ..Writes::default()
        }
    }

    #[test]
    fn an_exact_configuration_may_show_any_overlapping_writer_but_nothing_older() {
        // Two overlapping requests and one long done: whichever of the two committed last, its clock is at least 100.
        let mut writes = writes([(10, 50), (100, 300), (120, 310)]);
        let exact = promise("exact", "last-writer-wins");
        let fresh = judge(&[seen(400, 100)], &exact, &writes);
        assert!(fresh[0].passed, "{fresh:?}");
        let stale = judge(&[seen(400, 50)], &exact, &writes);
        assert!(!stale[0].passed && stale[0].violations == 1, "{stale:?}");
        assert_eq!(stale[0].name, "reader-sees-every-change");
        assert_eq!(
            behind(&[seen(400, 50), seen(401, 120), seen(402, 0)], &exact, &writes),
            [50, 0, 90]
        );
        writes.unanswered = Duration::from_secs(1);
        assert!(
            judge(&[seen(400, 50)], &exact, &writes).is_empty(),
            "who may have written until now leaves this read nothing to be held against"
        );
        let allowed = judge(&[seen(1_400, 50)], &exact, &writes);
        assert!(
            allowed[0].passed,
            "an unanswered request may have written last: {allowed:?}"
        );
    }

    #[test]
    fn nothing_is_due_before_the_first_acknowledgement() {
        let exact = promise("exact", "last-writer-wins");
        assert!(judge(&[seen(40, 0)], &exact, &writes([(10, 50)]))[0].passed);
        assert!(behind(&[seen(40, 0)], &exact, &writes([(10, 50)])).is_empty());
    }

    #[test]
    fn a_coarse_time_may_be_old_and_one_that_comes_later_may_be_late_by_no_more_than_declared() {
        let writes = writes([(1_000, 1_010), (5_000, 5_010)]);
        for (config, read_at, modified, holds) in [
            ("coarse(1000ms)", 5_020, 4_000, true),
            ("coarse(1000ms)", 5_020, 3_900, false),
            ("eventual(1000ms)", 6_010, 1_000, true),
            ("eventual(1000ms)", 6_011, 1_000, false),
            ("eventual(1000ms)", 6_011, 5_000, true),
        ] {
            let checks = judge(&[seen(read_at, modified)], &promise(config, "none"), &writes);
            assert_eq!(checks[0].name, "modified-at-is-no-staler-than-promised");
            assert_eq!(checks[0].passed, holds, "{config}, {modified} at {read_at}: {checks:?}");
        }
        let on_change = promise("on-change", "none");
        assert!(
            judge(&[seen(5_020, 0)], &on_change, &writes).is_empty(),
            "it does not follow tours"
        );
        assert!(behind(&[seen(5_020, 0)], &on_change, &writes).is_empty());
    }

    #[test]
    fn going_backwards_breaks_only_a_monotone_promise() {
        let sightings = [seen(1, 10), seen(2, 8), seen(3, 12)];
        let last = |promise: &Promise, writes: &Writes| judge(&sightings, promise, writes).pop().expect("a check");
        let mut writes = Writes::default();
        let monotone = last(&promise("eventual(1s)", "monotone"), &writes);
        assert_eq!(monotone.name, "modified-at-is-monotone");
        assert!(
            !monotone.passed && monotone.examples[0].contains("went back by 2 ms"),
            "{monotone:?}"
        );
        assert_ne!(
            last(&promise("eventual(1s)", "last-writer-wins"), &writes).name,
            "modified-at-is-monotone"
        );
        for (crash, passed) in [
            ([2, 2], true),
            ([0, 1], true),
            ([0, 9], true),
            ([3, 9], false),
            ([0, 0], false),
        ] {
            writes.undone = vec![crash];
            let undone = last(&promise("eventual(1s)", "monotone"), &writes);
            assert_eq!(
                undone.passed, passed,
                "a crash that may undo writes, {crash:?}: {undone:?}"
            );
        }
    }

    #[test]
    fn a_write_breaks_the_promise_of_an_unchanged_configuration() {
        let unwritten = promise("unwritten", "none");
        let checks = judge(&[seen(1, 10), seen(2, 11)], &unwritten, &Writes::default());
        assert!(!checks[0].passed);
        assert!(judge(&[seen(1, 10), seen(2, 10)], &unwritten, &Writes::default())[0].passed);
    }
}
