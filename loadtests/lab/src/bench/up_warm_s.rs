//! `up.warm_s`: from nothing running to everything ready, the broker included, when all was initialised before.

use std::time::Instant;

use super::{Figure, Measurement, Reading, Target, stack};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "up.warm_s",
        unit: "s",
        target: Target::AtMost(8.0),
    }],
    run: || Box::pin(measure()),
};

const TIMES: usize = 3;

async fn measure() -> anyhow::Result<Vec<Reading>> {
    // Initialises clusters and folders where that has not been done yet.
    stack::up(stack::topology()).await?.down().await?;
    let mut singles = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let begun = Instant::now();
        let stack = stack::up(stack::topology()).await?;
        singles.push(begun.elapsed().as_secs_f64());
        stack.down().await?;
    }
    Ok(vec![Reading::of(singles)])
}
