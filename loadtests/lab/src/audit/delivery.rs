//! Messages against what the announcement declares: how often one may come, and which may be missing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::configuration::summed;
use super::declared::Missing;
use super::writes::ms;
use super::{Expected, Outage};
use crate::facts::Promise;
use crate::results::AuditCheck;

/// What a service allows itself for one message: so long before a part went a tour may have been acknowledged whose message
/// was not out, and so long after its return a replica may not have found its broker again.
const UNDER_WAY: Duration = Duration::from_secs(5);

/// The broker, by its names as a target of faults: the server and the link to it.
const BROKER: [&str; 2] = ["rabbitmq", "broker"];

/// What is promised of messages.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    at_most_once: bool,
    /// The service that announces.
    announcer: &'a str,
    outages: &'a [Outage],
    /// Nothing happened that a message is sent again for.
    quiet: bool,
}

impl<'a> Delivery<'a> {
    /// By the service `announcer`.
    pub(super) fn by(announcer: &'a str, promise: &Promise, expected: &'a Expected) -> Self {
        Self {
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

    /// Sorts what is missing into what was declared and what was not: a message that may be lost is when the broker is away
    /// or a service ends, and not at any other time.
    pub(super) fn split(&self, missing: Vec<Missing>) -> (Vec<Missing>, Vec<Missing>) {
        missing
            .into_iter()
            .partition(|each| self.at_most_once && self.excused(each))
    }

    fn excused(&self, missing: &Missing) -> bool {
        self.outages.iter().any(|outage| {
            let [began, ended] = outage.period;
            let ended_replica = outage.crash.is_some() && outage.is_on(self.announcer);
            let concerned = ended_replica || BROKER.contains(&outage.part.as_str());
            concerned
                && missing.acked_at_ms >= began.saturating_sub(ms(UNDER_WAY))
                && missing.sent_at_ms <= ended.saturating_add(ms(UNDER_WAY))
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn promise(delivery: &str) -> Promise {
        Promise {
            delivery: delivery.into(),
            ..Promise::default()
        }
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
        let expected = expected(outages);
        Delivery::by("tour-data", &promise(delivery), &expected)
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
        let judge =
            |delivery: &str, expected: &Expected| Delivery::by("tour-data", &promise(delivery), expected).judge(&twice);
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
