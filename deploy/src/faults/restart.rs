//! An orderly restart: the process is asked to end, has its time to drain, and is started again when the fault ends.

use super::{Crashes, Heal, On, Spec, Step};
use crate::process::Process;

pub(super) static SPEC: Spec = Spec {
    name: "restart",
    summary: "ends it in good order and starts it again at the end",
    crashes: Crashes::Not,
    on: On::Processes(inflict),
};

fn inflict(processes: &[Process]) -> Step<'_, Heal> {
    Box::pin(async move {
        for process in processes {
            process.signal_stop();
        }
        for process in processes {
            process.stop().await?;
        }
        Ok(start_again(processes))
    })
}

/// Starts what was ended as it was started before, on the same ports.
pub(super) fn start_again(ended: &[Process]) -> Heal {
    let ended = ended.to_vec();
    Box::new(move |ground| Box::pin(async move { ground.start_again(&ended).await }))
}
