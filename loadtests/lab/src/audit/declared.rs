//! What a crash may cost: missing acknowledged tours against the loss that the server's preset declares.

use std::time::Duration;

use uuid::Uuid;

use super::Outage;

/// An acknowledged request whose result is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) tour_id: Uuid,
    /// Milliseconds since the Unix epoch.
    pub(super) sent_at_ms: u64,
    pub(super) acked_at_ms: u64,
    /// For people.
    pub(super) detail: String,
}

/// The loss a server declares, and the crashes it suffered.
#[derive(Debug, Clone, Default)]
pub(super) struct Declaration {
    /// Commits acknowledged in so long a time before a crash may be gone; zero for a server that loses nothing.
    pub(super) may_lose: Duration,
    /// When they were, milliseconds since the Unix epoch.
    pub(super) crashes: Vec<[u64; 2]>,
}

impl Declaration {
    /// Of `outages`, the crashes of the server that keeps the services' databases.
    pub(super) fn of_database(may_lose: Duration, outages: &[Outage]) -> Self {
        let of_database = outages.iter().filter(|outage| outage.part == "postgres");
        Self {
            may_lose,
            crashes: if may_lose.is_zero() {
                Vec::new()
            } else {
                of_database.filter_map(|outage| outage.crash).collect()
            },
        }
    }

    /// Whether a crash may have cost it. It was committed before it was acknowledged, and after it was sent: so what was
    /// sent before the crash ended, and acknowledged no earlier than the declared time before it began, may have been
    /// committed within that time.
    fn covers(&self, missing: &Missing) -> bool {
        let window = u64::try_from(self.may_lose.as_millis()).unwrap_or(u64::MAX);
        self.crashes
            .iter()
            .any(|[began, ended]| missing.acked_at_ms >= began.saturating_sub(window) && missing.sent_at_ms <= *ended)
    }

    /// Sorts what is missing into what was declared and what was not.
    pub(super) fn split(&self, missing: Vec<Missing>) -> (Vec<Missing>, Vec<Missing>) {
        missing.into_iter().partition(|each| self.covers(each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(sent_at_ms: u64, acked_at_ms: u64) -> Missing {
        Missing {
            tour_id: Uuid::from_u128(u128::from(acked_at_ms)),
            sent_at_ms,
            acked_at_ms,
            detail: String::new(),
        }
    }

    fn crash(part: &str) -> Outage {
        Outage {
            part: part.to_owned(),
            period: [10_000, 12_000],
            crash: Some([10_000, 10_050]),
        }
    }

    #[test]
    fn what_was_acknowledged_within_the_declared_time_before_a_crash_is_declared_and_nothing_else_is() {
        let declaration = Declaration::of_database(Duration::from_millis(600), &[crash("postgres")]);
        for (sent, acked, declared) in [
            (9_000, 9_399, false),
            (9_000, 9_400, true),
            (9_900, 10_020, true),
            // Its message was confirmed late: the commit was before.
            (9_900, 11_500, true),
            (10_051, 10_900, false),
            (2_000, 2_100, false),
        ] {
            let (covered, rest) = declaration.split(vec![missing(sent, acked)]);
            assert_eq!(
                (covered.len(), rest.len()),
                if declared { (1, 0) } else { (0, 1) },
                "{sent} {acked}"
            );
        }
    }

    #[test]
    fn a_server_that_declares_no_loss_is_excused_by_no_crash_and_neither_is_one_by_that_of_another() {
        let durable = Declaration::of_database(Duration::ZERO, &[crash("postgres")]);
        assert_eq!(durable.split(vec![missing(9_900, 10_000)]).1.len(), 1);
        let other = Declaration::of_database(Duration::from_millis(600), &[crash("redis")]);
        assert_eq!(other.split(vec![missing(9_900, 10_000)]).1.len(), 1);
        assert!(durable.crashes.is_empty() && other.crashes.is_empty());
    }
}
