//! What was written while the reader read, and what of it a reader is owed when.

use std::time::Duration;

use super::Outage;
use super::history::History;
use super::ledger::Write;
use super::promised::Promised;
use super::reader::Sighting;
use crate::facts::{Lost, Promise};

/// What a part left behind when it ended is gone after so long, and what came back has its connections again.
const AFTERMATH: Duration = Duration::from_secs(1);

/// A machine that stands still for longer than this excuses no more.
const STALLED: Duration = Duration::from_secs(2);

/// The losses that the values of a write may be gone by.
pub(super) const OF_VALUES: &[Lost] = &[Lost::Acknowledged];

/// The losses that its `modified_at` may be gone by.
pub(super) const OF_MODIFIED_AT: &[Lost] = &[Lost::Acknowledged, Lost::ModifiedAt];

/// What was written.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    /// Every acknowledged one that was not undone.
    pub(super) acknowledged: Vec<Write>,
    /// Longest time for which a request that was not acknowledged may have been under way.
    pub(super) unanswered: Duration,
    /// Crashes that may have undone the last writes, as the server declares: from when to when each struck.
    pub(super) undone: Vec<[u64; 2]>,
    /// Faults meanwhile, in which a touch may lose what it declares.
    pub(super) outages: Vec<Outage>,
    /// The service that writes.
    pub(super) writer: String,
}

/// Writes as one promise is held against them.
#[derive(Debug)]
pub(super) struct Owed {
    /// Any of these may be what a reader sees.
    pub(super) all: History,
    /// Those that have to be seen, or something later: without what a fault may have cost as declared, and what was held up
    /// counts as acknowledged later.
    due: History,
    /// The same if no fault had cost or held up anything.
    unexcused: History,
    late: Duration,
}

impl Owed {
    /// What is judged of the writes may be gone by `losses` as far as they are declared. `None` where nothing is promised to be
    /// seen, and where requests without an answer leave no read that is owed anything.
    pub(super) fn by(promise: &Promise, losses: &[Lost], writes: &Writes, sightings: &[Sighting]) -> Option<Self> {
        let late = Promised::of(&promise.config).late?;
        let healthy = healthy(sightings, &writes.outages);
        let acknowledged = |write: &Write, acked_ms: u64| Write {
            sent_ms: write.sent_ms,
            acked_ms: acked_ms.saturating_add(stall(&healthy, write, late)),
            info: None,
        };
        let mut due = Vec::new();
        let mut unexcused = Vec::new();
        for write in &writes.acknowledged {
            unexcused.push(acknowledged(write, write.acked_ms));
            let mut outages = writes.outages.iter();
            let lost = |outage: &Outage| meets(outage, write, late) && costs(outage, promise, losses, &writes.writer);
            if !outages.any(lost) {
                let outages = writes.outages.iter();
                let held_up = outages.map(|outage| held_up(outage, write, late)).max();
                due.push(acknowledged(write, held_up.unwrap_or(write.acked_ms)));
            }
        }
        let owed = Self {
            all: History::of(&writes.acknowledged),
            due: History::of(&due),
            unexcused: History::of(&unexcused),
            late: late + writes.unanswered,
        };
        let judged = || sightings.iter().any(|seen| owed.due(seen.at_ms).is_some());
        (writes.unanswered.is_zero() || judged()).then_some(owed)
    }

    /// When the latest write was sent that a read sent at `at` has to show, or something later; `None` if there is none yet.
    pub(super) fn due(&self, at: u64) -> Option<u64> {
        self.due.latest_sent(self.reached(at))
    }

    /// The same if no fault excused anything.
    pub(super) fn due_unexcused(&self, at: u64) -> Option<u64> {
        self.unexcused.latest_sent(self.reached(at))
    }

    /// What was acknowledged earlier than this had been heard of everywhere when something was sent at `sent`: a replica hears
    /// within the time that is promised to readers, unless the machine stood still or a part was away.
    pub(super) fn heard(&self, sent: u64, outages: &[Outage]) -> u64 {
        let takes = ms(self.late.max(AFTERMATH) + STALLED);
        let since = sent.saturating_sub(takes);
        let meanwhile = outages.iter().filter(|outage| {
            let [began, ended] = outage.period;
            began <= sent && ended.saturating_add(ms(AFTERMATH)) >= since
        });
        let began = meanwhile.map(|outage| outage.period[0].saturating_sub(takes)).min();
        began.map_or(since, |began| began.min(since))
    }

    fn reached(&self, at: u64) -> u64 {
        at.saturating_sub(ms(self.late))
    }
}

/// Whether a fault may have cost a write that it met, as the touch declares: one of `losses`, by this part. What was promised to
/// be written before is not met: a loss reaches no further back than the promise does.
fn costs(outage: &Outage, promise: &Promise, losses: &[Lost], writer: &str) -> bool {
    let mut declared = promise.loses.iter().filter(|loss| losses.contains(&loss.of));
    declared.any(|loss| loss.causes.iter().any(|cause| outage.is(*cause, writer)))
}

/// When a write counts as acknowledged that a fault held up: what is written later than the 201 waits for a part that is away,
/// and is due as long after its return as it was after the 201.
fn held_up(outage: &Outage, write: &Write, late: Duration) -> u64 {
    if late.is_zero() || !meets(outage, write, late) {
        return write.acked_ms;
    }
    write.acked_ms.max(outage.period[1].saturating_add(aftermath(late)))
}

/// Whether a write was under way, or not promised to be there yet, while a fault or its aftermath lasted.
fn meets(outage: &Outage, write: &Write, late: Duration) -> bool {
    let [began, ended] = outage.period;
    write.acked_ms >= began.saturating_sub(ms(late)) && write.sent_ms <= ended.saturating_add(aftermath(late))
}

fn aftermath(late: Duration) -> u64 {
    ms(late.max(AFTERMATH))
}

/// How long after a fault what was written then is excused and held up at most.
pub(super) fn owed_after(promise: &Promise) -> Duration {
    let late = Promised::of(&promise.config).late.unwrap_or_default();
    late.max(AFTERMATH) + late
}

/// The reads that were made while no part was away, in their order.
fn healthy<'s>(sightings: &'s [Sighting], outages: &[Outage]) -> Vec<&'s Sighting> {
    let apart = |seen: &Sighting, outage: &Outage| seen.ended() < outage.period[0] || seen.at_ms > outage.period[1];
    let reads = sightings.iter();
    reads
        .filter(|seen| outages.iter().all(|outage| apart(seen, outage)))
        .collect()
}

/// For how long the machine stood still while a write was carried out behind its 201, milliseconds: the longest that a read took
/// around then. What holds up a read holds up whatever is written in the background as well. What is promised at once is done
/// before the 201, however slow the machine is.
fn stall(healthy: &[&Sighting], write: &Write, late: Duration) -> u64 {
    if late.is_zero() {
        return 0;
    }
    let from = healthy.partition_point(|seen| seen.ended() < write.acked_ms);
    let until = write.acked_ms.saturating_add(ms(late + STALLED));
    let around = healthy[from..].iter().take_while(|seen| seen.at_ms <= until);
    around.map(|seen| seen.took_ms).max().unwrap_or(0).min(ms(STALLED))
}

pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Cause, Loss};

    fn write(sent_ms: u64, acked_ms: u64) -> Write {
        Write {
            sent_ms,
            acked_ms,
            info: None,
        }
    }

    fn outage(crash: bool) -> Outage {
        Outage {
            part: "tour-data".into(),
            period: [10_000, 10_500],
            crash: crash.then_some([10_000, 10_010]),
        }
    }

    fn promise(config: &str, loses: &[Loss]) -> Promise {
        Promise {
            config: config.into(),
            loses: loses.to_vec(),
            ..Promise::default()
        }
    }

    fn by_crash_of_replica() -> Loss {
        Loss::of(Lost::Acknowledged, &[Cause::Replica])
    }

    fn due(promise: &Promise, crash: bool, written: Write) -> bool {
        let writes = Writes {
            acknowledged: vec![written],
            outages: vec![outage(crash)],
            writer: "tour-data".into(),
            ..Writes::default()
        };
        let owed = Owed::by(promise, OF_VALUES, &writes, &[]).expect("it is promised");
        owed.due(60_000).is_some()
    }

    #[test]
    fn a_crash_excuses_what_was_not_promised_to_be_written_yet_and_nothing_older() {
        let behind = promise("eventual(1000ms)", &[by_crash_of_replica()]);
        for (sent, acked, is_due) in [
            (8_900, 8_999, true),
            (8_900, 9_000, false),
            (10_100, 10_400, false),
            (11_500, 11_600, false),
            (11_501, 11_600, true),
        ] {
            assert_eq!(due(&behind, true, write(sent, acked)), is_due, "{sent} … {acked}");
        }
    }

    #[test]
    fn who_declares_no_loss_is_excused_by_no_crash_and_what_is_done_at_once_by_no_absence() {
        let during = || write(9_990, 10_020);
        assert!(due(&promise("exact", &[]), true, during()));
        assert!(
            due(&promise("on-change", &[by_crash_of_replica()]), false, during()),
            "nothing ended"
        );
        assert!(!due(&promise("on-change", &[by_crash_of_replica()]), true, during()));
    }

    #[test]
    fn a_fault_excuses_what_is_declared_to_be_lost_by_it_and_nothing_more() {
        let every = [Cause::Replica, Cause::Database, Cause::Redis, Cause::Broker];
        let excused = |loss: &Loss, losses: &[Lost], part: &str| {
            let writes = Writes {
                acknowledged: vec![write(9_990, 10_020)],
                outages: vec![Outage {
                    part: part.into(),
                    ..outage(true)
                }],
                writer: "tour-data".into(),
                ..Writes::default()
            };
            let promise = promise("exact", std::slice::from_ref(loss));
            let owed = Owed::by(&promise, losses, &writes, &[]).expect("it is promised");
            owed.due(60_000).is_none()
        };
        for part in [
            "tour-data",
            "tour-data-2",
            "postgres",
            "db",
            "redis",
            "rabbitmq",
            "broker",
        ] {
            let unacknowledged = Loss::of(Lost::Unacknowledged, &every);
            assert!(
                !excused(&unacknowledged, OF_VALUES, part),
                "it was acknowledged: {part}"
            );
            assert!(!excused(&unacknowledged, OF_MODIFIED_AT, part), "{part}");
            let time = Loss::of(Lost::ModifiedAt, &every);
            assert!(!excused(&time, OF_VALUES, part), "a value was lost: {part}");
            assert!(excused(&time, OF_MODIFIED_AT, part), "{part}");
            let all = Loss::of(Lost::Acknowledged, &every);
            assert!(
                excused(&all, OF_VALUES, part) && excused(&all, OF_MODIFIED_AT, part),
                "{part}"
            );
            for (cause, parts) in [
                (Cause::Replica, ["tour-data", "tour-data-2"]),
                (Cause::Database, ["postgres", "db"]),
                (Cause::Redis, ["redis", "redis"]),
                (Cause::Broker, ["rabbitmq", "broker"]),
                (Cause::NoFault, ["", ""]),
            ] {
                let one = Loss::of(Lost::Acknowledged, &[cause]);
                assert_eq!(
                    excused(&one, OF_VALUES, part),
                    parts.contains(&part),
                    "{cause:?}: {part}"
                );
            }
        }
        assert!(!excused(&Loss::of(Lost::Acknowledged, &every), OF_VALUES, "gateway"));
    }

    #[test]
    fn what_is_written_later_is_held_up_by_a_part_that_is_away_and_due_after_its_return() {
        let owed = |part: &str, promise: &Promise, crash: bool, written: Write| {
            let writes = Writes {
                acknowledged: vec![written],
                outages: vec![Outage {
                    part: part.into(),
                    ..outage(crash)
                }],
                writer: "tour-data".into(),
                ..Writes::default()
            };
            Owed::by(promise, OF_VALUES, &writes, &[]).expect("it is promised")
        };
        let during = || write(9_990, 10_020);
        let behind = promise("eventual(1000ms)", &[by_crash_of_replica()]);
        // Back at 10 500, a second until all is connected again, and the second of the promise.
        for (part, crash) in [
            ("tour-data-2", false),
            ("gateway", true),
            ("postgres", true),
            ("rabbitmq", true),
            ("redis", true),
        ] {
            let owed = owed(part, &behind, crash, during());
            assert_eq!((owed.due(12_500), owed.due(12_501)), (None, Some(9_990)), "{part}");
            assert_eq!(owed.due_unexcused(11_021), Some(9_990));
        }
        let nothing = owed("tour-data", &promise("eventual(1000ms)", &[]), true, during());
        assert_eq!((nothing.due(12_500), nothing.due(12_501)), (None, Some(9_990)));
        let before = owed("gateway", &behind, true, write(8_900, 8_999));
        assert_eq!(before.due(10_000), Some(8_900), "it was promised before the fault");
        assert_eq!(owed("tour-data-2", &behind, true, during()).due(60_000), None);
    }

    #[test]
    fn requests_without_an_answer_that_leave_no_read_to_judge_leave_nothing_owed() {
        let writes = Writes {
            acknowledged: vec![write(1_000, 1_010)],
            unanswered: Duration::from_secs(60),
            ..Writes::default()
        };
        let owed = |at| Owed::by(&promise("exact", &[]), OF_VALUES, &writes, &[Sighting::new(at, None)]);
        assert!(owed(30_000).is_none());
        assert!(owed(61_011).is_some_and(|owed| owed.due(61_011) == Some(1_000)));
    }

    #[test]
    fn what_was_acknowledged_is_heard_of_in_time_unless_a_part_was_away() {
        let writes = Writes {
            acknowledged: vec![write(1_000, 1_010)],
            ..Writes::default()
        };
        let later = promise("eventual-on-change(1000ms)", &[]);
        let owed = Owed::by(&later, OF_VALUES, &writes, &[]).expect("it is promised");
        assert_eq!(owed.heard(50_000, &[]), 47_000);
        assert_eq!(owed.heard(50_000, &[outage(false)]), 47_000, "long over");
        assert_eq!(owed.heard(12_000, &[outage(false)]), 7_000);
        assert_eq!(owed.heard(9_999, &[outage(false)]), 6_999, "not begun");
    }

    #[test]
    fn what_is_written_later_is_given_the_time_for_which_the_machine_stood_still() {
        let seen = |at_ms, took_ms| Sighting {
            took_ms,
            ..Sighting::new(at_ms, None)
        };
        let writes = Writes {
            acknowledged: vec![write(20_000, 20_010)],
            outages: vec![outage(true)],
            ..Writes::default()
        };
        let later = promise("eventual(1000ms)", &[]);
        for (slow, due) in [
            // Long before, and while a part was away.
            ([seen(1_000, 300), seen(10_400, 5_000)], 21_010),
            ([seen(1_000, 500), seen(20_500, 300)], 21_310),
            ([seen(19_900, 300), seen(30_000, 500)], 21_310),
            ([seen(1_000, 300), seen(20_500, 9_000)], 23_010),
        ] {
            let owed = Owed::by(&later, OF_VALUES, &writes, &slow).expect("it is promised");
            assert_eq!((owed.due(due), owed.due(due + 1)), (None, Some(20_000)), "{slow:?}");
        }
        let slow = [seen(20_000, 300)];
        let at_once = Owed::by(&promise("exact", &[]), OF_VALUES, &writes, &slow).expect("it is promised");
        assert_eq!(at_once.due(20_011), Some(20_000));
        assert!(Owed::by(&promise("unwritten", &[]), OF_VALUES, &writes, &slow).is_none());
    }
}
