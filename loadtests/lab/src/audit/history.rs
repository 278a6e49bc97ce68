//! Writes in an order in which every question about a read takes a few steps, however many writes there are.

use std::collections::HashMap;

use super::ledger::Write;

/// Writes by their acknowledgements. Times are milliseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct History {
    all: Sends,
    /// Latest sending up to each of all.
    latest_sent: Vec<u64>,
    /// Digest of a value → the writes of it.
    of_value: HashMap<Option<String>, Sends>,
}

/// When writes were sent, by when they were acknowledged.
#[derive(Debug, Default)]
struct Sends {
    /// Sorted.
    acked: Vec<u64>,
    /// Earliest sending from each on.
    earliest_sent: Vec<u64>,
}

impl Sends {
    /// The earliest sending among those that were not over before `at`.
    fn earliest(&self, at: u64) -> Option<u64> {
        let before = self.acked.partition_point(|acked| *acked < at);
        self.earliest_sent.get(before).copied()
    }

    /// Adds one that was acknowledged no earlier than the others; [`Self::close`] has to follow.
    fn push(&mut self, write: &Write) {
        self.acked.push(write.acked_ms);
        self.earliest_sent.push(write.sent_ms);
    }

    fn close(&mut self) {
        let mut earliest = u64::MAX;
        for sent in self.earliest_sent.iter_mut().rev() {
            earliest = earliest.min(*sent);
            *sent = earliest;
        }
    }
}

impl History {
    pub(super) fn of<'w>(writes: impl IntoIterator<Item = &'w Write>) -> Self {
        let mut writes: Vec<&Write> = writes.into_iter().collect();
        writes.sort_by_key(|write| write.acked_ms);
        let mut history = Self::default();
        let mut latest = 0;
        for write in writes {
            latest = latest.max(write.sent_ms);
            history.latest_sent.push(latest);
            history.all.push(write);
            history.of_value.entry(write.info.clone()).or_default().push(write);
        }
        history.all.close();
        history.of_value.values_mut().for_each(Sends::close);
        history
    }

    /// The latest sending among the writes that were acknowledged before `at`: whoever was acknowledged earlier than that was
    /// overwritten.
    pub(super) fn latest_sent(&self, at: u64) -> Option<u64> {
        let before = self.all.acked.partition_point(|acked| *acked < at);
        before.checked_sub(1).map(|last| self.latest_sent[last])
    }

    /// The earliest sending among the writes that were not over before `at`.
    pub(super) fn earliest_sent(&self, at: u64) -> Option<u64> {
        self.all.earliest(at)
    }

    /// Whether a write of this value had begun by `until` and was not over before `since`.
    pub(super) fn wrote(&self, info: &Option<String>, since: u64, until: u64) -> bool {
        let sent = self.of_value.get(info).and_then(|sends| sends.earliest(since));
        sent.is_some_and(|sent| sent <= until)
    }

    /// Whether this value was written at all.
    pub(super) fn knows(&self, info: &Option<String>) -> bool {
        self.of_value.contains_key(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sent_ms: u64, acked_ms: u64, info: Option<&str>) -> Write {
        Write {
            sent_ms,
            acked_ms,
            info: info.map(str::to_owned),
        }
    }

    #[test]
    fn writes_are_found_by_when_they_were_acknowledged_in_whatever_order_they_are_told() {
        let writes = [
            write(120, 310, Some("b")),
            write(10, 50, None),
            write(100, 300, Some("a")),
            write(290, 305, None),
        ];
        let history = History::of(&writes);
        assert_eq!(
            [50, 51, 301, 400].map(|at| history.latest_sent(at)),
            [None, Some(10), Some(100), Some(290)]
        );
        assert_eq!(
            [0, 51, 305, 310, 311].map(|at| history.earliest_sent(at)),
            [Some(10), Some(100), Some(120), Some(120), None]
        );
    }

    #[test]
    fn a_value_is_there_from_when_a_write_of_it_began_until_the_last_one_is_over() {
        let writes = [write(10, 50, None), write(100, 300, Some("a")), write(290, 305, None)];
        let history = History::of(&writes);
        let wrote = |info: Option<&str>, since, until| history.wrote(&info.map(str::to_owned), since, until);
        assert!(
            wrote(Some("a"), 300, 300) && !wrote(Some("a"), 301, 400),
            "it was over by then"
        );
        assert!(
            wrote(Some("a"), 60, 100) && !wrote(Some("a"), 60, 99),
            "it had not begun"
        );
        assert!(
            wrote(None, 60, 290) && !wrote(None, 60, 289),
            "the second had not begun"
        );
        assert!(!wrote(Some("z"), 0, u64::MAX));
        assert!(history.knows(&None) && !history.knows(&Some("z".to_owned())));
    }
}
