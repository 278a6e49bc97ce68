//! The values of a tenant's configuration that a reader saw, against those that were written.
//!
//! Which of two writes that overlap is the later one nobody outside can say. But a write that was acknowledged before
//! another was sent is overwritten once that other one is there: a reader to whom the other is promised must not see it
//! again. What a reader may see is therefore computed without knowing any order, as [`super::configuration`] does for times.

use super::configuration::summed;
use super::history::History;
use super::ledger::Write;
use super::reader::Sighting;
use super::writes::{OF_VALUES, Owed, Writes};
use crate::facts::{Cause, Promise};
use crate::results::AuditCheck;

/// What became of the values.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// None where nothing is promised of the values.
    pub(super) checks: Vec<AuditCheck>,
    /// Reads of values older than promised that the touch declares.
    pub(super) declared: u64,
    /// Reads under load that had to show something that was written when the last fault was over, or anything at all where
    /// there was none. Where it is nought, nothing that was seen says that the promise is kept.
    pub(super) owing: u64,
}

/// Holds what was seen against the promise. The load ended with what was acknowledged at `loaded_until`, milliseconds since the
/// Unix epoch.
pub(super) fn judge(sightings: &[Sighting], promise: &Promise, writes: &Writes, loaded_until: u64) -> Judged {
    let Some(owed) = Owed::by(promise, OF_VALUES, writes, sightings) else {
        return Judged::default();
    };
    let shown = |seen: &Sighting, due: u64| {
        format!(
            "read at {}: values that were overwritten by what was sent at {due}",
            seen.at_ms
        )
    };
    let older = |seen: &Sighting, due: Option<u64>| {
        let due = due?;
        (!may_show(&seen.info, seen, due, &owed, writes)).then(|| shown(seen, due))
    };
    let unexcused = |seen: &Sighting| older(seen, owed.due_unexcused(seen.at_ms));
    let promised = sightings.iter().filter_map(unexcused).count() as u64;
    let mut of_values = promise.loses.iter().filter(|loss| OF_VALUES.contains(&loss.of));
    let at_any_time = of_values.any(|loss| loss.causes.contains(&Cause::NoFault));
    let before = untouched(sightings, &owed);
    let beyond = |seen: &Sighting| {
        let due = owed.due(seen.at_ms)?;
        if !at_any_time {
            return older(seen, Some(due));
        }
        // What was sent when everybody had heard of the value that is shown is lost to nobody.
        let since = owed.heard(due, &writes.outages);
        let still_untouched = before.is_some_and(|first| first.info == seen.info && first.ended() >= since);
        (!still_untouched && !may_show(&seen.info, seen, since, &owed, writes)).then(|| shown(seen, due))
    };
    let check = summed(
        "reader-sees-no-overwritten-value",
        "A reader sees no value of the configuration that is promised to have been overwritten.",
        sightings.iter().filter_map(beyond),
    );
    let declared = promised.saturating_sub(check.violations);
    let mut checks = vec![check];
    if at_any_time {
        // Where any change may be lost, not all of them may.
        let first = sightings.first().map(|seen| seen.info.clone()).unwrap_or_default();
        let telling = |seen: &&Sighting| {
            let due = owed.due_unexcused(seen.at_ms);
            due.is_some_and(|due| !may_show(&first, seen, due, &owed, writes))
        };
        let telling: Vec<Option<String>> = sightings.iter().filter(telling).map(unexcused).collect();
        let none = telling.iter().all(Option::is_some);
        checks.push(summed(
            "reader-sees-some-change",
            "A reader sees changes of the configuration, of which some may be lost at any time.",
            telling.into_iter().flatten().filter(|_| none),
        ));
    }
    // Those of the load; a fault after it has its own change, which nothing follows.
    let under_load = writes.outages.iter().filter(|outage| outage.period[0] <= loaded_until);
    let over = under_load.map(|outage| outage.period[1]).max();
    let reads = sightings.iter().filter(|seen| seen.at_ms <= loaded_until);
    let owing = reads.filter(|seen| owed.due(seen.at_ms).is_some_and(|due| due >= over.unwrap_or(0)));
    Judged {
        checks,
        declared,
        owing: owing.count() as u64,
    }
}

/// The first read, if it shows what was there before anything was written.
fn untouched<'s>(sightings: &'s [Sighting], owed: &Owed) -> Option<&'s Sighting> {
    let first = sightings.first()?;
    let written = owed.all.earliest_sent(0).is_some_and(|sent| sent <= first.ended());
    (!written).then_some(first)
}

/// For each write of a value of its own that was acknowledged by `until`: how long after its acknowledgement the last
/// read still showed something older, milliseconds; 0 where none did. A change lasts at least so long to be seen; reads
/// come a few times a second.
pub(super) fn staleness(sightings: &[Sighting], writes: &[Write], until: u64) -> Vec<u64> {
    let history = History::of(writes);
    let changes = writes
        .iter()
        .filter(|write| write.info.is_some() && write.acked_ms <= until);
    let stale = changes.map(|change| {
        let after = sightings.partition_point(|seen| seen.at_ms <= change.acked_ms);
        let after = sightings[after..].iter();
        let older = after.take_while(|seen| !history.wrote(&seen.info, change.sent_ms, seen.ended()));
        older.last().map_or(0, |seen| seen.at_ms - change.acked_ms)
    });
    stale.collect()
}

/// Whether a read may show this value, once what was sent at `due` is there.
fn may_show(info: &Option<String>, read: &Sighting, due: u64, owed: &Owed, writes: &Writes) -> bool {
    // A request without an answer may have written it.
    owed.all.wrote(info, due, read.ended()) || (!writes.unanswered.is_zero() && !owed.all.knows(info))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Outage;
    use super::*;
    use crate::facts::{Loss, Lost};

    fn promise(config: &str, loses: &[Loss]) -> Promise {
        Promise {
            config: config.into(),
            loses: loses.to_vec(),
            ..Promise::default()
        }
    }

    fn write(sent_ms: u64, acked_ms: u64, info: Option<&str>) -> Write {
        Write {
            sent_ms,
            acked_ms,
            info: info.map(str::to_owned),
        }
    }

    fn writes() -> Writes {
        Writes {
            acknowledged: vec![
                write(10, 20, None),
                write(30, 50, Some("a")),
                write(45, 60, None),
                write(70, 80, Some("b")),
            ],
            ..Writes::default()
        }
    }

    fn violations(config: &str, reads: &[(u64, Option<&str>)], writes: &Writes) -> u64 {
        let seen: Vec<Sighting> = reads.iter().map(|(at, info)| Sighting::new(*at, *info)).collect();
        only(&judge(&seen, &promise(config, &[]), writes, u64::MAX)).violations
    }

    #[test]
    fn only_reads_under_load_that_owe_what_was_written_after_the_faults_count_as_judged() {
        let mut writes = Writes {
            acknowledged: vec![
                write(1_000, 1_010, None),
                write(9_000, 9_010, None),
                write(20_000, 20_010, None),
            ],
            ..Writes::default()
        };
        let seen: Vec<Sighting> = [500, 1_500, 9_500, 20_500, 25_000]
            .iter()
            .map(|at| Sighting::new(*at, None))
            .collect();
        let of = |config: &str, writes: &Writes| judge(&seen, &promise(config, &[]), writes, 22_000).owing;
        assert_eq!(of("exact", &writes), 3, "without faults all that are owed something");
        writes.outages = vec![Outage {
            part: "postgres".into(),
            period: [8_000, 10_000],
            crash: None,
        }];
        assert_eq!(of("exact", &writes), 1);
        assert_eq!(
            of("eventual(5000ms)", &writes),
            0,
            "the load ended before anything was owed"
        );
        assert_eq!(of("unwritten", &writes), 0);
    }

    fn only(judged: &Judged) -> &AuditCheck {
        assert_eq!(judged.checks.len(), 1, "{judged:?}");
        &judged.checks[0]
    }

    /// Of all invariants, in the order of their names here.
    fn both(judged: &Judged) -> [u64; 2] {
        ["reader-sees-no-overwritten-value", "reader-sees-some-change"].map(|name| {
            let check = judged.checks.iter().find(|check| check.name == name);
            check.expect("both are promised").violations
        })
    }

    #[test]
    fn of_two_writes_that_overlap_either_may_be_seen_and_what_both_overwrote_may_not() {
        assert_eq!(violations("exact", &[(65, Some("a")), (65, None)], &writes()), 0);
        assert_eq!(
            violations("exact", &[(90, Some("a"))], &writes()),
            1,
            "b was sent after a was answered"
        );
        assert_eq!(violations("exact", &[(90, None)], &writes()), 1);
        assert_eq!(
            violations("coarse(1000ms)", &[(90, Some("a"))], &writes()),
            1,
            "coarse in time, not in values"
        );
    }

    #[test]
    fn a_lost_change_is_seen_by_the_value_that_never_appears() {
        assert_eq!(
            violations("on-change", &[(90, Some("b")), (200, Some("b"))], &writes()),
            0
        );
        assert_eq!(
            violations("on-change", &[(90, Some("a")), (200, Some("a"))], &writes()),
            2
        );
    }

    #[test]
    fn what_is_promised_later_is_not_due_before() {
        assert_eq!(violations("eventual(100ms)", &[(170, Some("a"))], &writes()), 0);
        assert_eq!(violations("eventual(100ms)", &[(190, Some("a"))], &writes()), 1);
    }

    #[test]
    fn a_value_that_nobody_was_acknowledged_for_is_a_violation_unless_a_request_had_no_answer() {
        let mut writes = writes();
        assert_eq!(violations("exact", &[(90, Some("z"))], &writes), 1);
        writes.unanswered = Duration::from_millis(1);
        assert_eq!(violations("exact", &[(90, Some("z"))], &writes), 0);
    }

    #[test]
    fn a_declared_loss_is_counted_and_forgiven_only_where_it_may_have_happened() {
        let seen = [Sighting::new(90_000, Some("a"))];
        let loses = promise("on-change", &[Loss::of(Lost::Acknowledged, &[Cause::Replica])]);
        let mut writes = Writes {
            writer: "tour-data".into(),
            ..writes()
        };
        let judged = judge(&seen, &loses, &writes, u64::MAX);
        assert!(!only(&judged).passed, "no crash, no excuse");
        let crash = |began| Outage {
            part: "tour-data".into(),
            period: [began, began + 20],
            crash: Some([began, began + 1]),
        };
        writes.outages = vec![crash(75)];
        let judged = judge(&seen, &loses, &writes, u64::MAX);
        assert!(only(&judged).passed && judged.declared == 1);
        // What was acknowledged before the crash was promised to be there before it.
        writes.outages = vec![crash(60_000)];
        let judged = judge(&seen, &loses, &writes, u64::MAX);
        assert!(!only(&judged).passed && judged.declared == 0);
        writes.outages = Vec::new();
        let seen = [(25, None), (90, Some("b")), (90_000, Some("a"))].map(|(at, info)| Sighting::new(at, info));
        let at_any_time = promise("on-change", &[Loss::of(Lost::Acknowledged, &[Cause::NoFault])]);
        let judged = judge(&seen, &at_any_time, &writes, u64::MAX);
        assert_eq!((both(&judged), judged.declared), ([0, 0], 1), "some are seen");
    }

    #[test]
    fn who_may_lose_a_change_at_any_time_shows_nothing_that_nobody_wrote_and_nothing_old_once_all_have_heard() {
        let mut writes = Writes {
            acknowledged: vec![
                write(10_010, 10_020, Some("a")),
                write(10_030, 10_040, Some("b")),
                write(30_000, 30_010, Some("c")),
            ],
            ..Writes::default()
        };
        let some = promise(
            "eventual-on-change(1000ms)",
            &[Loss::of(Lost::Acknowledged, &[Cause::NoFault])],
        );
        let overwritten = |at: u64, info: Option<&str>, writes: &Writes| {
            let seen = [(9_000, None), (20_000, Some("b")), (at, info)].map(|(at, info)| Sighting::new(at, info));
            let judged = judge(&seen, &some, writes, u64::MAX);
            (both(&judged)[0], judged.declared)
        };
        assert_eq!(
            overwritten(20_000, Some("a"), &writes),
            (0, 1),
            "the change to b was lost"
        );
        assert_eq!(overwritten(20_000, None, &writes), (0, 1), "both changes were lost");
        assert_eq!(overwritten(20_000, Some("z"), &writes), (1, 0), "nobody wrote it");
        assert_eq!(overwritten(20_000, Some("c"), &writes), (1, 0), "nobody had sent it");
        assert_eq!(overwritten(30_500, Some("b"), &writes), (0, 0), "c is not due yet");
        assert_eq!(overwritten(40_000, Some("b"), &writes), (1, 0), "all had heard of b");
        assert_eq!(overwritten(40_000, None, &writes), (1, 0));
        assert_eq!(overwritten(40_000, Some("c"), &writes), (0, 0));
        writes.outages = vec![Outage {
            part: "tour-data-2".into(),
            period: [10_100, 29_990],
            crash: None,
        }];
        assert_eq!(overwritten(40_000, Some("b"), &writes), (0, 1), "a replica was away");
        writes.outages.clear();
        writes.unanswered = Duration::from_millis(1);
        assert_eq!(
            overwritten(20_000, Some("z"), &writes),
            (0, 0),
            "a request had no answer"
        );
    }

    #[test]
    fn who_may_lose_a_change_at_any_time_has_to_show_some() {
        let writes = Writes {
            acknowledged: vec![
                write(10, 20, None),
                write(30, 40, Some("a")),
                write(50, 60, Some("b")),
                write(70, 80, None),
            ],
            ..Writes::default()
        };
        let some = promise("on-change", &[Loss::of(Lost::Acknowledged, &[Cause::NoFault])]);
        let judged = |reads: &[(u64, Option<&str>)]| {
            let seen: Vec<Sighting> = reads.iter().map(|(at, info)| Sighting::new(*at, *info)).collect();
            judge(&seen, &some, &writes, u64::MAX)
        };
        let one = judged(&[(25, None), (45, None), (65, Some("b")), (85, Some("b"))]);
        assert_eq!((both(&one), one.declared), ([0, 0], 2));
        let none = judged(&[(25, None), (45, None), (65, None), (85, None)]);
        assert_eq!(both(&none), [0, 2]);
        assert_eq!(both(&judged(&[(25, None), (85, None)])), [0, 0], "nothing tells");
    }

    #[test]
    fn staleness_lasts_to_the_last_read_of_something_older() {
        let seen = [
            (55, None),
            (75, None),
            (85, Some("a")),
            (95, Some("a")),
            (105, Some("b")),
            (115, Some("a")),
        ];
        let seen = seen.map(|(at, info)| Sighting::new(at, info));
        // `a` might have been overwritten at once by the one that overlaps it.
        assert_eq!(staleness(&seen, &writes().acknowledged, u64::MAX), [0, 15]);
    }
}
