//! `touch.update_last_x`: how many times faster tours are created when the tenant's row is updated last.
//!
//! `touch.update_last_bare_x` is the same by `pgbench` with the same statements: what this machine's cores let a client
//! that costs almost nothing gain. It has no target; the distance between the two is what the services cost.

use std::time::Duration;

use deploy::Stack;

use super::pgbench::Script;
use super::{Figure, Measurement, Reading, Target, stack};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "touch.update_last_x",
            unit: "x",
            target: Target::AtLeast(6.0),
        },
        Figure {
            name: "touch.update_last_bare_x",
            unit: "x",
            target: Target::None,
        },
    ],
    run: || Box::pin(measure()),
};

const PAIRS: usize = 3;
const SIDE: Duration = Duration::from_secs(8);

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let mut running = stack::up(stack::distant("update-first")).await?;
    let ratios = ratios(&mut running).await;
    running.down().await?;
    let (services, bare) = ratios?.into_iter().unzip();
    Ok(vec![Reading::of(services), Reading::of(bare)])
}

/// Each pair's ratio through the services and by `pgbench`.
async fn ratios(running: &mut Stack) -> anyhow::Result<Vec<(f64, f64)>> {
    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        let mut order = ["update-first", "update-last"];
        if pair % 2 == 1 {
            order.reverse();
        }
        let mut rates = [(0.0, 0.0); 2];
        for touch in order {
            stack::switch(running, stack::distant(touch)).await?;
            let script = Script::capture(running).await?;
            stack::tune_distance(running).await?;
            let services = stack::tours_per_s(running, SIDE).await?;
            let bare = script.run(running, SIDE).await?;
            rates[usize::from(touch == "update-last")] = (services, bare);
        }
        let [first, last] = rates;
        ratios.push((last.0 / first.0, last.1 / first.1));
    }
    Ok(ratios)
}
