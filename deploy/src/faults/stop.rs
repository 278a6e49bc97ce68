//! A hang: the process and its children are stopped where they are (SIGSTOP) and go on when the fault ends. Connections
//! stay open and nobody answers, which is what a machine without memory, or a long garbage collection, looks like.

use super::{Crashes, Heal, On, Spec, Step};
use crate::process::Process;

pub(super) static SPEC: Spec = Spec {
    name: "stop",
    summary: "holds it where it is (SIGSTOP) and lets it go on at the end",
    crashes: Crashes::Not,
    on: On::Processes(inflict),
};

fn inflict(processes: &[Process]) -> Step<'_, Heal> {
    Box::pin(async move {
        let held = processes.to_vec();
        held.iter().for_each(Process::pause);
        let heal: Heal = Box::new(move |ground| {
            Box::pin(async move {
                held.iter().for_each(Process::resume);
                ground.answers(&held).await
            })
        });
        Ok(heal)
    })
}
