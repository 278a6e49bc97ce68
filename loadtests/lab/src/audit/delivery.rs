//! Messages against what the announcement declares: how often one may come, and which may be missing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::configuration::summed;
use super::declared::Missing;
use super::writes::ms;
use super::{Expected, Outage};
use crate::facts::{Cause, Lost, Promise};
use crate::results::AuditCheck;

/// What a service allows itself for one message: so long before a part went a tour may have been acknowledged whose message
/// was not out, and so long after its return a replica may not have found its broker again.
const UNDER_WAY: Duration = Duration::from_secs(5);

/// What is promised of messages.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    at_most_once: bool,
    /// Why a message of an acknowledged tour may be missing.
    causes: Vec<Cause>,
    /// The service that announces.
    announcer: &'a str,
    outages: &'a [Outage],
    /// Nothing happened that a message is sent again for.
    quiet: bool,
}

impl<'a> Delivery<'a> {
    /// By the service `announcer`.
    pub(super) fn by(announcer: &'a str, promise: &Promise, expected: &'a Expected) -> Self {
        let losses = promise.loses.iter().filter(|loss| loss.of == Lost::Acknowledged);
        Self {
            causes: losses.flat_map(|loss| loss.causes.clone()).collect(),
            at_most_once: promise.delivery == "at-most-once",
            announcer,
            outages: &expected.outages,
            quiet: expected.outages.is_empty() && expected.repeated == 0 && expected.unanswered.is_zero(),
        }
    }

    /// Whether every acknowledged tour has its message in the end, so that it is worth waiting for.
    pub(super) fn all_come(&self) -> bool {
        !self.at_most_once
    }

    /// Sorts what is missing into what was declared and what was not: a message that may be lost is by the faults that are
    /// declared, and at no other time.
    pub(super) fn split(&self, missing: Vec<Missing>) -> (Vec<Missing>, Vec<Missing>) {
        missing
            .into_iter()
            .partition(|each| self.at_most_once && self.excused(each))
    }

    fn excused(&self, missing: &Missing) -> bool {
        self.outages.iter().any(|outage| {
            let mut causes = self.causes.iter();
            causes.any(|cause| outage.is(*cause, self.announcer) && meets(*cause, outage, missing))
        })
    }

    /// Holds the number of copies against the promise; `None` where they may be many.
    pub(super) fn judge(&self, delivered: &BTreeMap<String, u32>) -> Option<AuditCheck> {
        if !self.at_most_once && !self.quiet {
            return None;
        }
        let repeated = delivered.iter().filter(|(_, copies)| **copies > 1);
        Some(summed(
            "no-message-twice",
            if self.at_most_once {
                "No tour is announced twice."
            } else {
                "No tour is announced twice where neither a fault nor a repeated request is the reason."
            },
            repeated.map(|(id, copies)| format!("tour {id}: {copies} messages")),
        ))
    }
}

/// Whether a fault may be why a message is missing, by when its tour was under way.
fn meets(cause: Cause, outage: &Outage, missing: &Missing) -> bool {
    let ([began, ended], under_way) = match cause {
        // The database has no part in sending it: what is lost is the answer to a COMMIT that was sent before it went.
        Cause::Database => (outage.crash.unwrap_or(outage.period), 0),
        _ => (outage.period, ms(UNDER_WAY)),
    };
    missing.acked_at_ms >= began.saturating_sub(under_way) && missing.sent_at_ms <= ended.saturating_add(under_way)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::facts::Loss;

    fn promise(delivery: &str, loses: &[Loss]) -> Promise {
        Promise {
            delivery: delivery.into(),
            loses: loses.to_vec(),
            ..Promise::default()
        }
    }

    fn any_message() -> Loss {
        Loss::of(Lost::Acknowledged, &[Cause::Broker, Cause::Replica])
    }

    fn expected(outages: &[(&str, bool)]) -> Expected {
        let outage = |(part, crash): &(&str, bool)| Outage {
            part: (*part).to_owned(),
            period: [10_000, 12_000],
            crash: crash.then_some([10_000, 10_010]),
        };
        Expected {
            outages: outages.iter().map(outage).collect(),
            ..Expected::default()
        }
    }

    fn missing(sent_at_ms: u64, acked_at_ms: u64) -> Missing {
        Missing {
            tour_id: Uuid::nil(),
            sent_at_ms,
            acked_at_ms,
            detail: String::new(),
        }
    }

    fn excused(delivery: &str, outages: &[(&str, bool)], missing: Missing) -> bool {
        excused_by(&promise(delivery, &[any_message()]), outages, missing)
    }

    fn excused_by(promise: &Promise, outages: &[(&str, bool)], missing: Missing) -> bool {
        let expected = expected(outages);
        Delivery::by("tour-data", promise, &expected)
            .split(vec![missing])
            .1
            .is_empty()
    }

    #[test]
    fn a_message_may_be_missing_only_where_that_is_declared_and_while_the_broker_is_away_or_a_service_ends() {
        let during = || missing(10_900, 11_000);
        assert!(excused("at-most-once", &[("rabbitmq", true)], during()));
        assert!(
            excused("at-most-once", &[("broker", false)], during()),
            "a link that was cut"
        );
        assert!(excused("at-most-once", &[("tour-data-1", true)], during()));
        assert!(
            !excused("at-most-once", &[("tour-data-1", false)], during()),
            "it was only stopped"
        );
        assert!(excused("at-most-once", &[("tour-data", true)], during()));
        assert!(!excused("at-most-once", &[("postgres", true)], during()));
        assert!(!excused("at-most-once", &[], during()));
        assert!(!excused("at-least-once", &[("rabbitmq", true)], during()));
        let by = |loss: Loss, part: &str| excused_by(&promise("at-most-once", &[loss]), &[(part, true)], during());
        assert!(!by(Loss::of(Lost::Acknowledged, &[Cause::Replica]), "rabbitmq"));
        assert!(!by(Loss::of(Lost::Acknowledged, &[Cause::Broker]), "tour-data"));
        assert!(!by(Loss::of(Lost::Unacknowledged, &[Cause::Broker]), "rabbitmq"));
    }

    #[test]
    fn of_a_database_that_ends_only_a_tour_that_was_under_way_may_have_lost_its_message() {
        let unanswered = promise("at-most-once", &[Loss::of(Lost::Acknowledged, &[Cause::Database])]);
        let by = |outage, sent, acked| excused_by(&unanswered, &[outage], missing(sent, acked));
        for (sent, acked, holds) in [
            (9_900, 9_999, false),
            (9_900, 10_000, true),
            // The request was repeated when the database was back.
            (9_900, 12_600, true),
            (10_010, 12_600, true),
            (10_011, 12_600, false),
        ] {
            assert_eq!(by(("postgres", true), sent, acked), holds, "{sent} … {acked}");
        }
        assert!(by(("db", false), 11_900, 12_600), "a link that was cut");
        assert!(!by(("rabbitmq", true), 9_900, 12_600));
    }

    #[test]
    fn no_message_is_excused_long_before_or_after() {
        for (sent, acked, holds) in [
            (4_900, 4_999, false),
            (4_900, 5_000, true),
            (17_000, 17_100, true),
            (17_001, 17_100, false),
        ] {
            let found = excused("at-most-once", &[("rabbitmq", true)], missing(sent, acked));
            assert_eq!(found, holds, "{sent} … {acked}");
        }
    }

    #[test]
    fn a_second_copy_needs_a_reason_or_is_never_allowed() {
        let twice = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]);
        let judge = |delivery: &str, expected: &Expected| {
            Delivery::by("tour-data", &promise(delivery, &[]), expected).judge(&twice)
        };
        let quiet = judge("at-least-once", &expected(&[])).expect("nothing happened");
        assert_eq!((quiet.violations, quiet.examples.len()), (1, 1), "{quiet:?}");
        assert!(judge("at-least-once", &expected(&[("rabbitmq", true)])).is_none());
        let repeated = Expected {
            repeated: 1,
            ..Expected::default()
        };
        assert!(judge("at-least-once", &repeated).is_none());
        assert!(!judge("at-most-once", &repeated).expect("it is promised").passed);
    }
}
