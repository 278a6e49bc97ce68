//! `tour.vs_pgbench`: the baseline plan through HAProxy, gateway and service against `pgbench` with the same statements.

use std::time::Duration;

use deploy::Stack;

use super::pgbench::Script;
use super::{Figure, Measurement, Reading, Target, stack};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "tour.vs_pgbench",
        unit: "x",
        target: Target::AtLeast(0.9),
    }],
    run: || Box::pin(measure()),
};

const PAIRS: usize = 3;
const SIDE: Duration = Duration::from_secs(8);

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let mut running = stack::up(stack::distant("update-first")).await?;
    let ratios = ratios(&mut running).await;
    running.down().await?;
    Ok(vec![Reading::of(ratios?)])
}

async fn ratios(running: &mut Stack) -> anyhow::Result<Vec<f64>> {
    let script = Script::capture(running).await?;
    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        stack::check_distance(running).await?;
        let (service, bare) = if pair % 2 == 0 {
            let service = stack::tours_per_s(running, SIDE).await?;
            (service, script.run(running, SIDE).await?)
        } else {
            let bare = script.run(running, SIDE).await?;
            (stack::tours_per_s(running, SIDE).await?, bare)
        };
        stack::check_distance(running).await?;
        ratios.push(service / bare);
    }
    Ok(ratios)
}
