//! What was written while the reader read, and what of it a reader is owed when.

use std::time::Duration;

use super::Outage;
use super::history::History;
use super::ledger::Write;
use super::promised::Promised;
use super::reader::Sighting;
use crate::facts::Promise;

/// What a part left behind when it ended is gone after so long, and what came back has its connections again.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What was written.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    /// Every acknowledged one that was not undone.
    pub(super) acknowledged: Vec<Write>,
    /// Longest time for which a request that was not acknowledged may have been under way.
    pub(super) unanswered: Duration,
    /// When the last writes were undone, as the server declares that they may be: by a crash.
    pub(super) undone: Vec<u64>,
    /// Faults meanwhile, in which a touch may lose what it declares.
    pub(super) outages: Vec<Outage>,
}

/// Writes as one promise is held against them.
#[derive(Debug)]
pub(super) struct Owed {
    /// Any of these may be what a reader sees.
    pub(super) all: History,
    /// Those that have to be seen, or something later: all but what a fault may have cost or held up as declared.
    due: History,
    late: Duration,
}

impl Owed {
    /// `None` where nothing is promised to be seen.
    pub(super) fn by(promise: &Promise, writes: &Writes, sightings: &[Sighting]) -> Option<Self> {
        let late = Promised::of(&promise.config).late?;
        let acknowledged = &writes.acknowledged;
        let due = acknowledged.iter().filter(|write| {
            !writes
                .outages
                .iter()
                .any(|outage| excuses(outage, write, promise, late))
        });
        // What is promised at once is done before the 201, however slow the machine is.
        let stall = if late.is_zero() {
            Duration::ZERO
        } else {
            stall(sightings, &writes.outages)
        };
        Some(Self {
            all: History::of(acknowledged),
            due: History::of(due),
            late: late + stall + writes.unanswered,
        })
    }

    /// When the latest write was sent that a read sent at `at` has to show, or something later; `None` if there is none yet.
    pub(super) fn due(&self, at: u64) -> Option<u64> {
        self.due.latest_sent(self.reached(at))
    }

    /// The same if no fault excused anything.
    pub(super) fn due_unexcused(&self, at: u64) -> Option<u64> {
        self.all.latest_sent(self.reached(at))
    }

    fn reached(&self, at: u64) -> u64 {
        at.saturating_sub(ms(self.late))
    }
}

/// Whether a fault may have cost a write. That takes a touch that declares a loss and a part that ended; a touch that writes
/// later than the 201 is also held up by one that is away. What is promised to be written by then is not excused: a loss
/// reaches no further back than the promise does.
fn excuses(outage: &Outage, write: &Write, promise: &Promise, late: Duration) -> bool {
    let lost = outage.crash.is_some() && !promise.loses.is_empty();
    if !lost && late.is_zero() {
        return false;
    }
    let [began, ended] = outage.period;
    write.acked_ms >= began.saturating_sub(ms(late)) && write.sent_ms <= ended.saturating_add(ms(late.max(AFTERMATH)))
}

/// The longest that a read took while no part was away: a machine that holds up a read for so long holds up whatever is
/// written in the background as well.
fn stall(sightings: &[Sighting], outages: &[Outage]) -> Duration {
    let healthy = sightings.iter().filter(|seen| {
        let apart = |outage: &Outage| seen.ended() < outage.period[0] || seen.at_ms > outage.period[1];
        outages.iter().all(apart)
    });
    Duration::from_millis(healthy.map(|seen| seen.took_ms).max().unwrap_or(0))
}

pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn promise(config: &str, loses: &[&str]) -> Promise {
        Promise {
            config: config.into(),
            loses: loses.iter().map(|loss| (*loss).to_owned()).collect(),
            ..Promise::default()
        }
    }

    fn due(promise: &Promise, crash: bool, written: Write) -> bool {
        let writes = Writes {
            acknowledged: vec![written],
            outages: vec![outage(crash)],
            ..Writes::default()
        };
        let owed = Owed::by(promise, &writes, &[]).expect("it is promised");
        owed.due(60_000).is_some()
    }

    #[test]
    fn a_crash_excuses_what_was_not_promised_to_be_written_yet_and_nothing_older() {
        let behind = promise("eventual(1000ms)", &["the last second"]);
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
            due(&promise("on-change", &["a change"]), false, during()),
            "nothing ended"
        );
        assert!(!due(&promise("on-change", &["a change"]), true, during()));
        assert!(
            !due(&promise("eventual(1000ms)", &[]), false, during()),
            "what it is written with was away"
        );
    }

    #[test]
    fn what_is_written_later_is_given_the_time_for_which_the_machine_stood_still() {
        let seen = |at_ms, took_ms| Sighting {
            took_ms,
            ..Sighting::new(at_ms, None)
        };
        let slow = [seen(1_000, 300), seen(10_400, 5_000)];
        let writes = Writes {
            acknowledged: vec![write(20_000, 20_010)],
            outages: vec![outage(true)],
            ..Writes::default()
        };
        let owed = Owed::by(&promise("eventual(1000ms)", &[]), &writes, &slow).expect("it is promised");
        assert_eq!((owed.due(21_310), owed.due(21_311)), (None, Some(20_000)));
        let at_once = Owed::by(&promise("exact", &[]), &writes, &slow).expect("it is promised");
        assert_eq!(at_once.due(20_011), Some(20_000));
        assert!(Owed::by(&promise("unwritten", &[]), &writes, &slow).is_none());
    }
}
