//! The open loop: sends that come when their time has come, and slots that take them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::arrivals::Arrivals;
use crate::recorder::Recorder;
use crate::sends::Send;
use crate::shape::Shape;

/// The sends of an open loop, and the slots, each a task with a connection of its own, that make them.
pub(super) struct Open {
    arrivals: Arrivals,
    /// The intended time of the next send; `None` when there is none any more.
    next: Option<Duration>,
    /// Sends whose time has come and that no slot has taken up yet.
    queue: VecDeque<Send>,
    queue_max: usize,
    slots: usize,
    slots_max: usize,
    under_way: usize,
    most: usize,
}

impl Open {
    pub(super) fn new(shape: &Shape, recorder: &Recorder) -> Self {
        let mut arrivals = Arrivals::new(shape.sends_spaced());
        Self {
            next: arrivals.next(recorder.schedule()),
            arrivals,
            queue: VecDeque::new(),
            queue_max: shape.queue_length(),
            slots: 0,
            slots_max: shape.slots(),
            under_way: 0,
            most: 0,
        }
    }

    /// Puts every send whose time has come by `now` into the queue, but at most `limit`, and gives how many there were.
    pub(super) fn come(&mut self, now: Duration, limit: u64, recorder: &mut Recorder) -> u64 {
        let mut come = 0;
        while let Some(intended) = self.next.filter(|next| *next <= now && come < limit) {
            come += 1;
            let send = self.begin(intended, recorder);
            let waiting = (self.under_way + self.queue.len()).saturating_sub(self.slots_max);
            let Some(sends) = recorder.sends() else { return come };
            sends.asked(&send, now);
            if send.late && waiting >= self.queue_max {
                sends.dropped(&send);
            } else {
                self.queue.push_back(send);
            }
        }
        if come == limit {
            self.next = None;
        }
        come
    }

    /// Counts what has not been sent, and what should have been sent by `end`, as skipped.
    pub(super) fn close(&mut self, end: Duration, recorder: &mut Recorder) {
        while let Some(intended) = self.next.filter(|next| *next < end) {
            let send = self.begin(intended, recorder);
            self.queue.push_back(send);
        }
        self.next = None;
        if let Some(sends) = recorder.sends() {
            self.queue.drain(..).for_each(|send| sends.skipped(&send));
        }
    }

    /// The slots to be made so that nothing waits that need not.
    pub(super) fn missing(&mut self) -> Vec<usize> {
        let wanted = (self.under_way + self.queue.len()).min(self.slots_max).max(self.slots);
        let missing = (self.slots..wanted).collect();
        self.slots = wanted;
        missing
    }

    /// A free slot takes the next send up.
    pub(super) fn take(&mut self) -> Option<Send> {
        let send = self.queue.pop_front()?;
        self.under_way += 1;
        self.most = self.most.max(self.under_way);
        Some(send)
    }

    pub(super) fn ended(&mut self) {
        self.under_way -= 1;
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.next
    }

    /// How many slots are free that have something to take up.
    pub(super) fn takers(&self) -> usize {
        self.queue.len().min(self.slots - self.under_way)
    }

    /// Nothing is to be sent any more.
    pub(super) fn exhausted(&self) -> bool {
        self.next.is_none() && self.queue.is_empty()
    }

    /// The most sends that were under way at once.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn begin(&mut self, intended: Duration, recorder: &Recorder) -> Send {
        self.next = self.arrivals.next(recorder.schedule());
        Send {
            intended,
            plateau: recorder.schedule().at(intended).and_then(|segment| segment.window()),
            late: self.under_way + self.queue.len() >= self.slots_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn every_send_of_a_window_is_sent_late_dropped_or_skipped_and_each_is_counted() {
        // Ten a second for ten seconds; two slots, and room for three that wait.
        let shape = Shape::open(10.0).duration(10 * S).in_flight_max(2).queue_max(3);
        let mut recorder = Recorder::new(&shape, Vec::new());
        let mut open = Open::new(&shape, &recorder);
        assert_eq!(open.come(S * 9 / 10, u64::MAX, &mut recorder), 10);
        assert_eq!(open.takers(), 0, "no slot has been made yet");
        assert_eq!((open.missing(), open.takers()), (vec![0, 1], 2));
        let sends: Vec<Send> = (0..2).filter_map(|_| open.take()).collect();
        assert!(sends.iter().all(|send| !send.late), "there were two free slots");
        for send in &sends {
            recorder.sends().unwrap().sent(send, S);
        }
        open.ended();
        let late = open.take().unwrap();
        assert!(late.late);
        recorder.sends().unwrap().sent(&late, S);
        assert!(open.missing().is_empty(), "two slots are all there may be");
        open.close(2 * S, &mut recorder);
        assert!(open.exhausted() && open.most() == 2);
        let counts = recorder.sends().unwrap().of(0);
        assert_eq!((counts.sent, counts.late, counts.dropped), (3, 1, 5));
        // Two still waited, and ten more should have been sent in the second that nobody looked at.
        assert_eq!(counts.skipped, 2 + 10);
    }

    #[test]
    fn a_limit_ends_the_sends() {
        let shape = Shape::open(10.0).duration(10 * S);
        let mut recorder = Recorder::new(&shape, Vec::new());
        let mut open = Open::new(&shape, &recorder);
        assert_eq!(open.come(S, 4, &mut recorder), 4);
        assert_eq!((open.next(), open.exhausted()), (None, false));
        while open.take().is_some() {}
        assert!(open.exhausted());
    }
}
