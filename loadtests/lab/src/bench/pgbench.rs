//! `pgbench` with the statements of a tour: what the plan gives without the services around it.
//!
//! What the service sends for one tour is read from PostgreSQL's log and becomes the script of `pgbench`: the same
//! statements in the same order and transaction, prepared, by as many clients over the same link.

mod capture;
mod script;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use deploy::{Stack, Topology};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Reading, stack};
use crate::facts::Facts;
use crate::failure::Failure;

/// Comparisons, every second of them in reverse order.
const PAIRS: usize = 3;
/// How long either side of one is measured.
const SIDE: Duration = Duration::from_secs(8);
/// Each client prepares its statements in its first transaction, and so has twice the round trips.
const NOT_COUNTED_S: u64 = 2;
/// For pgbench to start and to end.
const GRACE: Duration = Duration::from_secs(30);

/// Tours a second through the stack as a share of what `pgbench` makes of the same statements, side by side.
pub(super) async fn compare(topology: Topology) -> anyhow::Result<Reading> {
    let mut running = stack::up(topology).await?;
    let ratios = ratios(&mut running).await;
    running.down().await?;
    Ok(Reading::of(ratios?))
}

async fn ratios(running: &mut Stack) -> anyhow::Result<Vec<f64>> {
    let script = Script::capture(running).await?;
    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        stack::tune_distance(running).await?;
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

/// A tour as a script, in a file that is removed when this is dropped.
pub(super) struct Script {
    database: String,
    path: PathBuf,
}

impl Script {
    /// Captures what the service of the stack sends for a tour with its present settings. The database is restored
    /// afterwards.
    pub(super) async fn capture(running: &mut Stack) -> anyhow::Result<Self> {
        let facts = Facts::of(running);
        let databases = facts.databases();
        let database = databases
            .first()
            .copied()
            .context("no service tells a database to compare in")?
            .to_owned();
        let [first, second] = capture::two_tours(running, &database).await?;
        let path = std::env::temp_dir().join(format!("rowlock-pgbench-{}.sql", std::process::id()));
        std::fs::write(&path, script::of(&first, &second)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { database, path })
    }

    /// Transactions a second over `duration`.
    pub(super) async fn run(&self, running: &Stack, duration: Duration) -> anyhow::Result<f64> {
        let clients = stack::USERS.to_string();
        let seconds = (duration.as_secs() + NOT_COUNTED_S).to_string();
        let begin = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
        let output = Command::new(program()?)
            .arg(format!("--define={}={begin}", script::COUNTER))
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--progress=1"])
            .args(["--client", &clients, "--time", &seconds, "--file"])
            .arg(&self.path)
            .arg(running.postgres_via_link(&self.database))
            .kill_on_drop(true)
            .output();
        let bound = duration + Duration::from_secs(NOT_COUNTED_S) + GRACE;
        let output = timeout(bound, output)
            .await
            .with_context(|| format!("pgbench did not end within {} s", bound.as_secs()))?
            .context("pgbench did not start")?;
        let says = String::from_utf8_lossy(&output.stderr);
        let problem = says
            .lines()
            .find(|line| line.contains("error") || line.contains("aborted"));
        if let Some(line) = problem {
            anyhow::bail!("pgbench: {line}");
        }
        anyhow::ensure!(output.status.success(), "pgbench failed ({}): {says}", output.status);
        let rates: Vec<f64> = says
            .lines()
            .filter_map(rate)
            .skip(usize::try_from(NOT_COUNTED_S)?)
            .collect();
        anyhow::ensure!(!rates.is_empty(), "pgbench told no rate: {says}");
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        eprintln!("  {mean:.1} transactions/s by pgbench");
        Ok(mean)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Left behind in the temporary folder at worst.
        let _ = std::fs::remove_file(&self.path);
    }
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
    let missing = "pgbench is not installed; `cargo rowlock setup` installs it with PostgreSQL";
    Ok(found.ok_or_else(|| Failure::Missing(missing.to_owned()))?)
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
