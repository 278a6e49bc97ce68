//! `stack.pss_mb` and `services.pss_mb`: memory after a minute of load, one replica each.
//!
//! Proportional set sizes: PostgreSQL's backends share most of what they map, and summed RSS would count it many times.
//! The process that measures is not counted; it is the load generator as well.

use std::time::Duration;

use deploy::{Kind, ProcessInfo};

use super::{Figure, Measurement, Reading, Target, stack};
use crate::probes::processes::pss_by_process;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "stack.pss_mb",
            unit: "MB",
            target: Target::AtMost(500.0),
        },
        Figure {
            name: "services.pss_mb",
            unit: "MB",
            target: Target::AtMost(100.0),
        },
    ],
    run: || Box::pin(measure()),
};

const LOAD: Duration = Duration::from_secs(58);

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let running = stack::up(stack::topology()).await?;
    let measured = loaded(&running).await;
    running.down().await?;
    measured
}

async fn loaded(running: &deploy::Stack) -> anyhow::Result<Vec<Reading>> {
    stack::tours_per_s(running, LOAD).await?;
    let processes = running.processes();
    let roots: Vec<(String, u32)> = processes
        .iter()
        .map(|process| (process.name.clone(), process.pid))
        .collect();
    let pss = pss_by_process(&roots)?;
    let sum = |counted: fn(&ProcessInfo) -> bool| -> f64 {
        processes
            .iter()
            .filter(|process| counted(process))
            .filter_map(|process| pss.get(&process.name))
            .sum()
    };
    for (name, mb) in &pss {
        eprintln!("  {name}: {mb:.1} MB");
    }
    let (all, ours) = (sum(|_| true), sum(|process| process.kind != Kind::Server));
    anyhow::ensure!(ours > 0.0, "no process of the stack tells its memory");
    Ok(vec![Reading::of(vec![all]), Reading::of(vec![ours])])
}
