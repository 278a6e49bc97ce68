//! `fix.best_exact_x` and `fix.best_x`: how many times faster tours are created than the published way, by the best fix that
//! gives nothing up and by the best of all. `fix.best_exact_vs_pgbench`: the former against `pgbench` with the same statements,
//! which tells how much of the way is left to whatever is not PostgreSQL.
//!
//! Which fixes there are, and what gives nothing up, is read from what the service says of itself. The other ways to insert
//! are tried for a moment with the lock taken last; then the other touches, the published one included, with the fastest of
//! those that carry them; then the other ways to announce with the best of these. The fastest then race against the published
//! way, round by round. All of it has the same stack, distance and settings.

mod combination;
mod heats;
mod race;

use anyhow::Context;
use deploy::Stack;

use self::combination::{Axes, Combination};
use self::heats::Tried;
use super::{Figure, Measurement, Reading, Target, pgbench, stack};
use crate::describe::Descriptions;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "fix.best_exact_x",
            unit: "x",
            target: Target::AtLeast(30.0),
        },
        Figure {
            name: "fix.best_x",
            unit: "x",
            target: Target::AtLeast(40.0),
        },
        Figure {
            name: "fix.best_exact_vs_pgbench",
            unit: "x",
            target: Target::None,
        },
    ],
    run: || Box::pin(measure()),
};

/// How many of those that give nothing up are in the race, and how many of all: the heats are too short to tell apart what is
/// close.
const EXACT: usize = 3;
const OF_ALL: usize = 3;

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let services = stack::topology().replicas;
    let descriptions = Descriptions::ask(services.keys()).await?;
    let axes = Axes::of(&descriptions)?;
    let published = axes.published();
    let mut running = stack::up(stack::distant_with(published.settings())).await?;
    let raced = race(&mut running, &axes).await;
    running.down().await?;
    let raced = raced?;
    let (exact, best_exact) = best("that gives nothing up", raced.iter().filter(|(fix, _)| fix.is_exact()))?;
    let (_, best_of_all) = best("of all", raced.iter())?;
    let vs_pgbench = pgbench::compare(stack::distant_with(exact.settings())).await?;
    Ok(vec![best_exact, best_of_all, vs_pgbench])
}

/// The finalists, each with how many times faster than the published way it was.
async fn race<'a>(running: &mut Stack, axes: &'a Axes<'_>) -> anyhow::Result<Vec<(Combination<'a>, Reading)>> {
    let finalists = finalists(heats::run(running, axes).await?);
    let ratios = race::run(running, &axes.published(), &finalists).await?;
    Ok(finalists.into_iter().zip(ratios.into_iter().map(Reading::of)).collect())
}

/// The fastest of them, which is shown.
fn best<'a, 'b: 'a>(
    kind: &str,
    raced: impl Iterator<Item = &'a (Combination<'b>, Reading)>,
) -> anyhow::Result<(&'a Combination<'b>, Reading)> {
    let best = raced.max_by(|one, other| one.1.value.total_cmp(&other.1.value));
    let (fix, reading) = best.with_context(|| format!("no fix {kind} could be measured"))?;
    eprintln!("  the best {kind}: {fix}, {:.1} times the published way", reading.value);
    Ok((fix, *reading))
}

/// The fastest fixes that give nothing up, and the fastest of all.
fn finalists(mut tried: Vec<Tried<'_>>) -> Vec<Combination<'_>> {
    tried.retain(|tried| tried.combination.is_fix());
    tried.sort_by(|one, other| other.tours_per_s.total_cmp(&one.tours_per_s));
    let (mut exact, mut finalists) = (0, Vec::new());
    for (place, Tried { combination, .. }) in tried.into_iter().enumerate() {
        let is_exact = combination.is_exact();
        exact += usize::from(is_exact);
        if place < OF_ALL || is_exact && exact <= EXACT {
            finalists.push(combination);
        }
    }
    finalists
}

#[cfg(test)]
mod tests {
    use super::*;
    use combination::tests::descriptions;

    #[test]
    fn the_fastest_and_the_fastest_that_give_nothing_up_are_in_the_race() {
        let descriptions = descriptions();
        let axes = Axes::of(&descriptions).unwrap();
        let tried = |touch: &str, inserts: &str, tours_per_s| {
            let find = |axis: usize, name: &str| axes.find(axis, name).unwrap();
            let combination = axes
                .published()
                .with(combination::TOUCH, find(combination::TOUCH, touch));
            Tried {
                combination: combination.with(combination::INSERTS, find(combination::INSERTS, inserts)),
                tours_per_s,
            }
        };
        let finalists = |tried| {
            let finalists = finalists(tried).into_iter();
            finalists.map(|each| each.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            finalists(vec![
                tried("last", "row", 80.0),
                tried("late", "batch", 500.0),
                tried("last", "batch", 400.0),
                tried("none", "batch", 600.0),
                tried("first", "batch", 90.0),
                tried("late", "row", 300.0),
                tried("beside", "batch", 350.0),
                tried("queued", "batch", 70.0),
            ]),
            [
                "batch, late, confirmed",
                "batch, last, confirmed",
                "batch, beside, confirmed",
                "batch, first, confirmed",
                "row, last, confirmed",
            ]
        );
        assert_eq!(
            finalists(vec![tried("late", "batch", 300.0), tried("last", "batch", 400.0)]),
            ["batch, last, confirmed", "batch, late, confirmed"]
        );
    }
}
