//! Wakes the engine at a moment, to some ten microseconds.
//!
//! Tokio's timers count in milliseconds, which at 1,000 sends a second is the distance between two of them. A timer of the
//! kernel is one more source of events for the runtime, and as precise as the machine allows.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(super) struct Pacer {
    timer: AsyncFd<Timer>,
}

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Pacer {
    /// Must be called inside the runtime that it is to wake.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        // SAFETY: the timer owns its descriptor, never gives another, and is closed only when the `AsyncFd` is dropped.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE)? };
        Ok(Self { timer })
    }

    /// Sets the timer; one that was set before is forgotten.
    pub(super) fn set(&self, after: Duration) -> io::Result<()> {
        // A length of 0 would switch it off.
        let after = TimeSpec::from_duration(after.max(Duration::from_nanos(1)));
        let timer = &self.timer.get_ref().0;
        Ok(timer.set(Expiration::OneShot(after), TimerSetTimeFlags::empty())?)
    }

    /// Ready when the time that was set last has come.
    pub(super) async fn fired(&self) -> io::Result<()> {
        loop {
            let mut guard = self.timer.readable().await?;
            // What would block was set anew since it became readable.
            if let Ok(read) = guard.try_io(|timer| Ok(timer.get_ref().0.wait()?)) {
                return read;
            }
        }
    }
}
