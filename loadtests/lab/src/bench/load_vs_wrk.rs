//! `load.vs_wrk_throughput` and `load.vs_wrk_p95`: how far the engine is from wrk under the same closed load.

use anyhow::Context;
use deploy::setup;
use tokio::process::Command;

use super::comparison::{self, CONNECTIONS, Said, WINDOW};
use super::{Figure, Measurement, Target};
use crate::commands::setup::ensure_originals;
use crate::failure::Failure;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "load.vs_wrk_throughput",
            unit: "share",
            target: Target::AtMost(0.03),
        },
        Figure {
            name: "load.vs_wrk_p95",
            unit: "share",
            target: Target::AtMost(0.05),
        },
    ],
    run: || {
        Box::pin(async {
            ensure_originals().await?;
            comparison::with(wrk).await
        })
    },
};

/// Prints requests, µs, p95 in µs and errors.
const SCRIPT: &str = "loadtests/lab/src/bench/wrk.lua";

async fn wrk(url: &str) -> anyhow::Result<Said> {
    let tools = setup::check_originals();
    let program = tools
        .iter()
        .find(|tool| tool.name == "wrk")
        .and_then(|tool| tool.found.clone());
    let missing = || Failure::Missing("wrk is not installed; `cargo rowlock setup` installs it".to_owned());
    let output = Command::new(program.ok_or_else(missing)?)
        .args(["--threads", "1", "--connections", &CONNECTIONS.to_string()])
        .args(["--duration", &format!("{}s", WINDOW.as_secs())])
        .arg("--script")
        .arg(deploy::root().join(SCRIPT))
        .arg(url)
        .output()
        .await
        .context("wrk did not start")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = printed
        .lines()
        .find_map(|line| line.strip_prefix("rowlock "))
        .map(|line| {
            line.split_whitespace()
                .map_while(|number| number.parse().ok())
                .collect()
        })
        .unwrap_or_default();
    let [requests, micros, p95_us, errors] = numbers.as_slice() else {
        anyhow::bail!(
            "wrk printed no result: {printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    anyhow::ensure!(*errors == 0.0 && *requests > 0.0, "requests of wrk failed: {printed}");
    Ok(Said {
        throughput: requests / micros * 1e6,
        p95_ms: p95_us / 1000.0,
    })
}
