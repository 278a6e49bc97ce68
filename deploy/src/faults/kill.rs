//! A crash: the process is gone without a goodbye and comes back when the fault ends.
//!
//! PostgreSQL, which is many processes, gets the immediate shutdown: every session ends at once, nothing is written, and
//! the next start recovers from the log. Everything else gets SIGKILL.

use super::{Crashes, Heal, On, Spec, Step, restart};
use crate::process::Process;

pub(super) static SPEC: Spec = Spec {
    name: "kill",
    summary: "crashes it (SIGKILL; PostgreSQL: immediate shutdown) and starts it again at the end",
    crashes: Crashes::AtOnce,
    on: On::Processes(inflict),
};

fn inflict(processes: &[Process]) -> Step<'_, Heal> {
    Box::pin(async move {
        for process in processes {
            process.crash().await?;
        }
        Ok(restart::start_again(processes))
    })
}
