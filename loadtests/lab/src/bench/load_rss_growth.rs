//! `load.rss_growth`: whether a long load needs more memory than a short one. Resident memory of this process, in which the
//! engine and the server run, after five million requests against that after one.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::Method;
use load::{HttpTarget, Shape};

use super::small_server::SmallServer;
use super::{Figure, Measurement, Reading, Target};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "load.rss_growth",
        unit: "share",
        target: Target::AtMost(0.05),
    }],
    run: || Box::pin(measure()),
};

const CONNECTIONS: usize = 20;
const SHORT: u64 = 1_000_000;
const LONG: u64 = 5_000_000;
/// Far more than the slowest machine needs.
const BOUND: Duration = Duration::from_secs(3600);

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let server = SmallServer::start().await?;
    let url = format!("http://{}/", server.address).parse()?;
    let target = Arc::new(HttpTarget::builder(Method::GET, url).build()?);
    let shape = Shape::closed(CONNECTIONS).duration(BOUND).max_iterations(LONG);
    let (mut made, mut short) = (0, None);
    let summary = load::run(target, &shape, |second| {
        made += second.ok;
        if made >= SHORT && short.is_none() {
            short = Some(resident_kb());
        }
    })
    .await?;
    let long = resident_kb()?;
    anyhow::ensure!(summary.ok == LONG, "requests failed: {:?}", summary.failures);
    let short = short.context("no second of the load was told")??;
    eprintln!(
        "  {short} kB after {SHORT} requests, {long} kB after {LONG}; {:.0} requests/s",
        summary.throughput
    );
    Ok(vec![Reading::of(vec![long as f64 / short as f64 - 1.0])])
}

fn resident_kb() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number
        .context("the kernel does not tell this process's memory")?
        .parse()?)
}
