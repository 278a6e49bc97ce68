//! `load.vs_k6_throughput` and `load.vs_k6_p95`: how far the engine is from k6 under the same closed load.

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use super::comparison::{self, CONNECTIONS, Said, WINDOW};
use super::{Figure, Measurement, Target};
use crate::k6;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "load.vs_k6_throughput",
            unit: "share",
            target: Target::AtMost(0.03),
        },
        Figure {
            name: "load.vs_k6_p95",
            unit: "share",
            target: Target::AtMost(0.05),
        },
    ],
    run: || Box::pin(comparison::with(run_k6)),
};

const SCRIPT: &str = "loadtests/lab/src/bench/k6.js";

async fn run_k6(url: &str) -> anyhow::Result<Said> {
    let program = k6::ensure().await?;
    let summary = std::env::temp_dir().join(format!("rowlock-k6-{}.json", std::process::id()));
    let output = Command::new(program)
        .args(["run", "--no-usage-report", "--quiet", "--no-color"])
        .args(["--vus", &CONNECTIONS.to_string()])
        .args(["--duration", &format!("{}s", WINDOW.as_secs())])
        .arg("--summary-export")
        .arg(&summary)
        .arg(deploy::root().join(SCRIPT))
        .env("URL", url)
        .output()
        .await
        .context("k6 did not start")?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    anyhow::ensure!(output.status.success(), "k6 ended with {}: {}", output.status, said());
    let text = std::fs::read(&summary).with_context(|| format!("k6 wrote no {}: {}", summary.display(), said()))?;
    std::fs::remove_file(&summary)?;
    let text: Value = serde_json::from_slice(&text)?;
    let number = |metric: &str, field: &str| {
        text["metrics"][metric][field]
            .as_f64()
            .with_context(|| format!("k6 told no {field} of {metric}"))
    };
    anyhow::ensure!(
        number("http_req_failed", "value")? == 0.0,
        "requests of k6 failed: {}",
        said()
    );
    Ok(Said {
        throughput: number("http_reqs", "rate")?,
        p95_ms: number("http_req_duration", "p(95)")?,
    })
}
