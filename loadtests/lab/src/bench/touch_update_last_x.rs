//! `touch.update_last_x`: how many times faster tours are created when the tenant's row is updated last.

use std::time::Duration;

use deploy::Stack;

use super::{Figure, Measurement, Reading, Target, stack};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "touch.update_last_x",
        unit: "x",
        target: Target::AtLeast(6.0),
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
    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        let mut order = ["update-first", "update-last"];
        if pair % 2 == 1 {
            order.reverse();
        }
        let mut rates = [0.0; 2];
        for touch in order {
            stack::switch(running, stack::distant(touch)).await?;
            stack::check_distance(running).await?;
            rates[usize::from(touch == "update-last")] = stack::tours_per_s(running, SIDE).await?;
        }
        ratios.push(rates[1] / rates[0]);
    }
    Ok(ratios)
}
