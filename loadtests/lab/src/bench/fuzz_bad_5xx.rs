//! `fuzz.bad_5xx`: of 100,000 mutated payloads, how many were answered with a 5xx, or not, or with another number of rows
//! than they have.

use std::sync::atomic::AtomicBool;

use super::{Figure, Measurement, Reading, Target, stack};
use crate::fuzz::{self, Options};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "fuzz.bad_5xx",
        unit: "answers",
        target: Target::AtMost(0.0),
    }],
    run: || Box::pin(measure()),
};

const OPTIONS: Options = Options {
    seed: 1,
    inputs: Some(100_000),
    duration: None,
};

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let running = stack::up(stack::topology()).await?;
    let folder = deploy::root().join(".rowlock/fuzz");
    let findings = fuzz::run(&running, OPTIONS, &folder, &AtomicBool::new(false)).await;
    running.down().await?;
    let findings = findings?;
    if let Some(check) = findings.audit.iter().find(|check| !check.passed) {
        anyhow::bail!(
            "the inputs left something behind: {}: {}",
            check.name,
            check.examples.join("; ")
        );
    }
    eprintln!("  answers by status: {:?}", findings.statuses);
    Ok(vec![Reading::of(vec![findings.bad() as f64])])
}
