//! One direction of one connection: bytes on their way, with the times at which they arrive.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Instant;

/// A sender is not read from while this much of what it sent is still on its way, bytes. Far above what the delay holds
/// at loopback rates, so that it only acts when the receiver does not read.
const MOST_BYTES: usize = 1 << 20;
/// The same for pieces, whose times take memory too.
const MOST_PIECES: usize = 1 << 14;

/// What became of a [`Lane::release`].
#[derive(Debug, PartialEq)]
pub(super) enum Released {
    /// Everything that was due is written.
    All,
    /// The receiver takes no more for now; release again when it is writable.
    Blocked,
    /// The sender's end of stream is due, after all its bytes.
    End,
    /// The receiver is gone.
    Broken,
}

/// Bytes on their way. In order: a piece is never due before the one ahead of it, also when the delay shrinks.
#[derive(Default)]
pub(super) struct Lane {
    bytes: VecDeque<u8>,
    pieces: VecDeque<Piece>,
    /// Bytes at the front that are due already.
    due: usize,
    end: Option<Instant>,
}

struct Piece {
    due: Instant,
    length: usize,
}

impl Lane {
    /// Puts bytes on their way.
    pub(super) fn push(&mut self, bytes: &[u8], due: Instant) {
        let due = self.in_order(due);
        self.bytes.extend(bytes);
        self.pieces.push_back(Piece {
            due,
            length: bytes.len(),
        });
    }

    /// The sender will send no more; its receiver is told when it is due.
    pub(super) fn end(&mut self, due: Instant) {
        self.end = Some(self.in_order(due));
    }

    /// True when the sender must wait.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= MOST_BYTES || self.pieces.len() >= MOST_PIECES
    }

    /// When [`Lane::release`] has something to do that it had not before.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.pieces.front().map(|piece| piece.due).or(self.end)
    }

    /// Writes what is due by `now`.
    pub(super) fn release(&mut self, now: Instant, mut receiver: impl Write) -> Released {
        while let Some(piece) = self.pieces.pop_front_if(|piece| piece.due <= now) {
            self.due += piece.length;
        }
        while self.due > 0 {
            let (front, _) = self.bytes.as_slices();
            match receiver.write(&front[..front.len().min(self.due)]) {
                Ok(0) => return Released::Broken,
                Ok(written) => {
                    self.bytes.drain(..written);
                    self.due -= written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Released::Blocked,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Released::Broken,
            }
        }
        match self.end {
            Some(end) if self.pieces.is_empty() && end <= now => Released::End,
            _ => Released::All,
        }
    }

    fn in_order(&self, due: Instant) -> Instant {
        self.pieces.back().map_or(due, |last| due.max(last.due))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Takes `room` bytes, then none.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for &mut Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.room);
            self.taken.extend(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bytes_are_released_when_due_and_not_before() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let mut receiver = Narrow {
            taken: Vec::new(),
            room: usize::MAX,
        };
        let mut lane = Lane::default();
        lane.push(b"one", at(10));
        lane.push(b"two", at(20));
        lane.end(at(30));
        assert_eq!(lane.release(at(9), &mut receiver), Released::All);
        assert_eq!(receiver.taken, b"");
        assert_eq!(lane.release(at(10), &mut receiver), Released::All);
        assert_eq!(
            (receiver.taken.as_slice(), lane.next_due()),
            (&b"one"[..], Some(at(20)))
        );
        assert_eq!(lane.release(at(29), &mut receiver), Released::All);
        assert_eq!(
            (receiver.taken.as_slice(), lane.next_due()),
            (&b"onetwo"[..], Some(at(30)))
        );
        assert_eq!(lane.release(at(30), &mut receiver), Released::End);
    }

    #[test]
    fn a_shorter_delay_does_not_let_bytes_overtake() {
        let start = Instant::now();
        let later = start + Duration::from_millis(5);
        let mut receiver = Narrow {
            taken: Vec::new(),
            room: usize::MAX,
        };
        let mut lane = Lane::default();
        lane.push(b"slow", later);
        lane.push(b"fast", start);
        lane.end(start);
        assert_eq!(lane.release(start, &mut receiver), Released::All);
        assert_eq!(receiver.taken, b"");
        assert_eq!(lane.release(later, &mut receiver), Released::End);
        assert_eq!(receiver.taken, b"slowfast");
    }

    #[test]
    fn a_receiver_that_does_not_read_stops_the_sender() {
        let now = Instant::now();
        let mut receiver = Narrow {
            taken: Vec::new(),
            room: 3,
        };
        let mut lane = Lane::default();
        lane.push(&vec![7; MOST_BYTES], now);
        lane.end(now);
        assert_eq!(lane.release(now, &mut receiver), Released::Blocked);
        assert!(!lane.is_full());
        lane.push(&[7; 3], now);
        assert!(lane.is_full());
        receiver.room = usize::MAX;
        assert_eq!(lane.release(now, &mut receiver), Released::End);
        assert_eq!(receiver.taken.len(), MOST_BYTES + 3);
        assert!(!lane.is_full());
    }
}
