//! The values of a tenant's configuration that a reader saw, against those that were written.
//!
//! Which of two writes that overlap is the later one nobody outside can say. But a write that was acknowledged before
//! another was sent is overwritten once that other one is there: a reader to whom the other is promised must not see it
//! again. What a reader may see is therefore computed without knowing any order, as [`super::reader`] does for times.

use std::time::Duration;

use super::ledger::Write;
use super::reader::{Sighting, Writes, latest_sent, summed};
use crate::duration;
use crate::facts::Promise;
use crate::results::AuditCheck;

/// How a loss begins that needs no crash.
const WITHOUT_CRASH: &str = "without any crash";

/// What became of the values.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// `None` where nothing is promised of the values.
    pub(super) check: Option<AuditCheck>,
    /// Reads of values older than promised that the touch declares.
    pub(super) declared: u64,
}

/// Holds what was seen against the promise.
pub(super) fn judge(sightings: &[Sighting], promise: &Promise, writes: &Writes) -> Judged {
    let Some(window) = window(&promise.config) else {
        return Judged::default();
    };
    let slack = ms(window).saturating_add(ms(writes.unanswered));
    let older = sightings.iter().filter_map(|seen| {
        let due = latest_sent(seen.at_ms.saturating_sub(slack), &writes.acknowledged)?;
        let shown = || {
            format!(
                "read at {}: values that were overwritten by what was sent at {due}",
                seen.at_ms
            )
        };
        (!may_show(seen, due, writes)).then(shown)
    });
    let declared = !promise.loses.is_empty()
        && (writes.crashed || promise.loses.iter().any(|loss| loss.starts_with(WITHOUT_CRASH)));
    if declared {
        return Judged {
            check: None,
            declared: older.count() as u64,
        };
    }
    let check = summed(
        "reader-sees-no-overwritten-value",
        "A reader sees no value of the configuration that is promised to have been overwritten.",
        older,
    );
    Judged {
        check: Some(check),
        declared: 0,
    }
}

/// For each write of a value of its own: how long after its acknowledgement the last read still showed something older,
/// milliseconds; 0 where none did. A change lasts at least so long to be seen; reads come a few times a second.
pub(super) fn staleness(sightings: &[Sighting], writes: &[Write]) -> Vec<u64> {
    let changes = writes.iter().filter(|write| write.info.is_some());
    let stale = changes.map(|change| {
        let after = sightings.iter().filter(|seen| seen.at_ms > change.acked_ms);
        let older = after.take_while(|seen| !shows(seen, change.sent_ms, writes));
        older.last().map_or(0, |seen| seen.at_ms - change.acked_ms)
    });
    stale.collect()
}

/// How much later than the acknowledgement the promise allows; `None` where it says nothing of the values.
fn window(config: &str) -> Option<Duration> {
    let late = |kind: &str| {
        let inside = config.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?;
        duration::parse(inside).ok()
    };
    match config {
        "exact" | "on-change" => Some(Duration::ZERO),
        _ if config.starts_with("coarse(") => Some(Duration::ZERO),
        _ => late("eventual").or_else(|| late("eventual-on-change")),
    }
}

/// Whether a read may show what it shows, once what was sent at `due` is there.
fn may_show(seen: &Sighting, due: u64, writes: &Writes) -> bool {
    // A request without an answer may have written it.
    let unknown = || !writes.acknowledged.iter().any(|write| write.info == seen.info);
    shows(seen, due, &writes.acknowledged) || (!writes.unanswered.is_zero() && unknown())
}

/// Whether some write that was not over before `due` wrote what is shown.
fn shows(seen: &Sighting, due: u64, writes: &[Write]) -> bool {
    let current = writes.iter().filter(|write| write.acked_ms >= due);
    current.into_iter().any(|write| write.info == seen.info)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(config: &str, loses: &[&str]) -> Promise {
        Promise {
            config: config.into(),
            loses: loses.iter().map(|loss| (*loss).to_owned()).collect(),
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
        judge(&seen, &promise(config, &[]), writes)
            .check
            .expect("it is promised")
            .violations
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
    fn a_declared_loss_is_counted_and_forgiven_only_when_it_may_have_happened() {
        let seen = [Sighting::new(200, Some("a"))];
        let crash = promise("on-change", &["the last changes"]);
        let mut writes = writes();
        let judged = judge(&seen, &crash, &writes);
        assert!(!judged.check.expect("no crash, no excuse").passed);
        writes.crashed = true;
        let judged = judge(&seen, &crash, &writes);
        assert!(judged.check.is_none() && judged.declared == 1);
        writes.crashed = false;
        let judged = judge(&seen, &promise("on-change", &["without any crash: a change"]), &writes);
        assert_eq!(judged.declared, 1);
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
        assert_eq!(staleness(&seen, &writes().acknowledged), [0, 15]);
    }
}
