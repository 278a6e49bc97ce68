//! `tour.vs_pgbench`: the baseline plan through HAProxy, gateway and service against `pgbench` with the same statements.
//!
//! What the service sends for one tour is read from PostgreSQL's log and becomes the script of `pgbench`: the same
//! statements in the same order and transaction, prepared, by as many clients over the same link.

mod capture;
mod script;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use deploy::Stack;
use tokio::process::Command;

use super::{Figure, Measurement, Reading, Target, stack};
use crate::facts::Facts;

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
/// Each client prepares its statements in its first transaction, and so has twice the round trips.
const NOT_COUNTED_S: usize = 2;

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let mut running = stack::up(stack::distant("update-first")).await?;
    let ratios = ratios(&mut running).await;
    running.down().await?;
    Ok(vec![Reading::of(ratios?)])
}

async fn ratios(running: &mut Stack) -> anyhow::Result<Vec<f64>> {
    let facts = Facts::of(running);
    let databases = facts.databases();
    let database = databases
        .first()
        .copied()
        .context("no service tells a database to compare in")?;
    let [first, second] = capture::two_tours(running, database).await?;
    let path = std::env::temp_dir().join(format!("rowlock-pgbench-{}.sql", std::process::id()));
    std::fs::write(&path, script::of(&first, &second)?).with_context(|| format!("cannot write {}", path.display()))?;

    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        stack::check_distance(running).await?;
        let (service, bare) = if pair % 2 == 0 {
            let service = stack::tours_per_s(running, SIDE).await?;
            (service, pgbench(running, database, &path).await?)
        } else {
            let bare = pgbench(running, database, &path).await?;
            (stack::tours_per_s(running, SIDE).await?, bare)
        };
        stack::check_distance(running).await?;
        ratios.push(service / bare);
    }
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(ratios)
}

/// Transactions a second.
async fn pgbench(running: &Stack, database: &str, script: &Path) -> anyhow::Result<f64> {
    let clients = stack::USERS.to_string();
    let seconds = (usize::try_from(SIDE.as_secs())? + NOT_COUNTED_S).to_string();
    let output = Command::new(program()?)
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--progress=1"])
        .args(["--client", &clients, "--time", &seconds, "--file"])
        .arg(script)
        .arg(running.postgres_via_link(database))
        .output()
        .await
        .context("pgbench did not start")?;
    let says = String::from_utf8_lossy(&output.stderr);
    let problem = says
        .lines()
        .find(|line| line.contains("error") || line.contains("aborted"));
    if let Some(line) = problem {
        anyhow::bail!("pgbench: {line}");
    }
    anyhow::ensure!(output.status.success(), "pgbench failed ({}): {says}", output.status);
    let rates: Vec<f64> = says.lines().filter_map(rate).skip(NOT_COUNTED_S).collect();
    anyhow::ensure!(!rates.is_empty(), "pgbench told no rate: {says}");
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    eprintln!("  {mean:.1} transactions/s by pgbench");
    Ok(mean)
}

/// `progress: 3.0 s, 21.0 tps, lat …`.
fn rate(line: &str) -> Option<f64> {
    line.strip_prefix("progress:")?
        .split(',')
        .nth(1)?
        .trim()
        .strip_suffix(" tps")?
        .parse()
        .ok()
}

fn program() -> anyhow::Result<PathBuf> {
    let tools = deploy::setup::check();
    let found = tools
        .into_iter()
        .find(|tool| tool.name == "pgbench")
        .and_then(|tool| tool.found);
    found.context("pgbench is not installed; `cargo rowlock setup` installs it with PostgreSQL")
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_progress_line_tells_its_rate() {
        assert_eq!(
            rate("progress: 3.0 s, 21.5 tps, lat 470.1 ms stddev 3.2, 0 failed"),
            Some(21.5)
        );
        assert_eq!(rate("pgbench (15.18)"), None);
    }
}
