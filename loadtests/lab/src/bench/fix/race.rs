//! The finalists against the published way, round by round.

use std::time::Duration;

use deploy::Stack;

use super::combination::Combination;
use crate::bench::stack;

/// Every second of them in reverse order.
const ROUNDS: usize = 3;
const LAP: Duration = Duration::from_secs(4);

/// By finalist, and of each by round: how many times the tours of the published way.
pub(super) async fn run(
    running: &mut Stack,
    published: &Combination<'_>,
    finalists: &[Combination<'_>],
) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut ratios = vec![Vec::with_capacity(ROUNDS); finalists.len()];
    for round in 0..ROUNDS {
        let mut order: Vec<usize> = (0..=finalists.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        // The published way comes behind the finalists.
        let mut rates = vec![0.0; order.len()];
        for place in order {
            let combination = finalists.get(place).unwrap_or(published);
            running
                .switch(stack::distant_with(combination.settings()), &mut |_| {})
                .await?;
            stack::tune_distance(running).await?;
            eprint!("  {combination}:");
            rates[place] = stack::tours_per_s(running, LAP).await?;
        }
        let behind = rates[finalists.len()];
        for (ratios, rate) in ratios.iter_mut().zip(rates) {
            ratios.push(rate / behind);
        }
    }
    Ok(ratios)
}
