//! Writes in an order in which every question about a read takes a few steps, however many writes there are.

use std::collections::HashMap;

use super::ledger::Write;

/// Writes by their acknowledgements.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Times of the acknowledgements, sorted, milliseconds since the Unix epoch; the next two run beside it.
    acked: Vec<u64>,
    /// Latest sending up to each.
    latest_sent: Vec<u64>,
    /// Earliest sending from each on.
    earliest_sent: Vec<u64>,
    /// Digest of a value → when a write of it was acknowledged last.
    last_acked: HashMap<Option<String>, u64>,
}

impl History {
    pub(super) fn of<'w>(writes: impl IntoIterator<Item = &'w Write>) -> Self {
        let mut writes: Vec<&Write> = writes.into_iter().collect();
        writes.sort_by_key(|write| write.acked_ms);
        let mut history = Self::default();
        let mut latest = 0;
        for write in &writes {
            latest = latest.max(write.sent_ms);
            history.acked.push(write.acked_ms);
            history.latest_sent.push(latest);
            history.last_acked.insert(write.info.clone(), write.acked_ms);
        }
        let mut earliest = u64::MAX;
        for write in writes.iter().rev() {
            earliest = earliest.min(write.sent_ms);
            history.earliest_sent.push(earliest);
        }
        history.earliest_sent.reverse();
        history
    }

    /// The latest sending among the writes that were acknowledged before `at`: whoever was acknowledged earlier than that was
    /// overwritten.
    pub(super) fn latest_sent(&self, at: u64) -> Option<u64> {
        let before = self.acked.partition_point(|acked| *acked < at);
        before.checked_sub(1).map(|last| self.latest_sent[last])
    }

    /// The earliest sending among the writes that were not over before `at`.
    pub(super) fn earliest_sent(&self, at: u64) -> Option<u64> {
        let before = self.acked.partition_point(|acked| *acked < at);
        self.earliest_sent.get(before).copied()
    }

    /// Whether a write of this value was not over before `at`.
    pub(super) fn wrote(&self, info: &Option<String>, at: u64) -> bool {
        self.last_acked.get(info).is_some_and(|acked| *acked >= at)
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
        let wrote = |info: Option<&str>, at| history.wrote(&info.map(str::to_owned), at);
        assert!(wrote(Some("a"), 300) && !wrote(Some("a"), 301), "a was over by then");
        assert!(wrote(None, 305) && !wrote(None, 306) && !wrote(Some("z"), 0));
    }
}
