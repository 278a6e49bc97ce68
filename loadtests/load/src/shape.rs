//! The shape of a load: how many users, how long.

use std::time::Duration;

use crate::error::LoadError;

/// A bound on what can be asked for, so that a slip of the keyboard does not start a million tasks.
const MAX_USERS: usize = 100_000;
/// The longest warm-up and the longest window.
const MAX_LENGTH: Duration = Duration::from_secs(24 * 3600);

/// A closed loop: every user starts its next iteration when the last one has ended.
#[derive(Debug, Clone)]
pub struct Closed {
    /// How many virtual users there are.
    pub users: usize,
    /// How long the load runs before anything is counted.
    pub warm_up: Duration,
    /// The window in which ends are counted.
    pub duration: Duration,
    /// The pause of a user between two iterations.
    pub think: Duration,
    /// The load ends early when this many iterations were started, those of the warm-up included.
    pub max_iterations: Option<u64>,
}

impl Closed {
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let wrong = |text: String| Err(LoadError::Shape(text));
        if self.users == 0 || self.users > MAX_USERS {
            return wrong(format!("a closed loop has 1 to {MAX_USERS} users, not {}", self.users));
        }
        if self.duration.is_zero() || self.duration > MAX_LENGTH {
            let asked = self.duration.as_secs_f64();
            return wrong(format!(
                "the load must last more than 0 and at most {} s, not {asked} s",
                MAX_LENGTH.as_secs()
            ));
        }
        if self.warm_up > MAX_LENGTH {
            let asked = self.warm_up.as_secs_f64();
            return wrong(format!(
                "the warm-up may last at most {} s, not {asked} s",
                MAX_LENGTH.as_secs()
            ));
        }
        if self.max_iterations == Some(0) {
            return wrong("a load of 0 iterations measures nothing; leave the limit out or raise it".into());
        }
        Ok(())
    }
}
