//! `load.cpu_us_per_request`: what the load engine itself costs, against a small keep-alive answer.
//!
//! The server is as small as one can be and lives on a thread of its own; the engine counts the CPU of its thread only.
//! `load.cpu_us_bare` is what the same exchange costs the barest client: the kernel's share, which differs from machine to
//! machine and which no engine can save. It has no target; the distance between the two is what the engine costs.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use load::{HttpTarget, Shape};

use super::small_server::SmallServer;
use super::{Figure, Measurement, Reading, Target, bare_client};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "load.cpu_us_per_request",
            unit: "us",
            target: Target::AtMost(12.0),
        },
        Figure {
            name: "load.cpu_us_bare",
            unit: "us",
            target: Target::None,
        },
    ],
    run: || Box::pin(measure()),
};

const CONNECTIONS: usize = 20;
const TIMES: usize = 5;
const WINDOW: Duration = Duration::from_secs(3);

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let server = SmallServer::start().await?;
    let url = format!("http://{}/", server.address).parse()?;
    let target = Arc::new(HttpTarget::builder(Method::GET, url).build()?);
    let shape = Shape::closed(CONNECTIONS)
        .warm_up(Duration::from_secs(1))
        .duration(WINDOW);
    let mut singles = Vec::with_capacity(TIMES);
    let mut bare = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let summary = load::run(Arc::clone(&target), &shape, |_| {}).await?;
        anyhow::ensure!(
            summary.ok > 0 && summary.failed() == 0,
            "requests failed: {:?}",
            summary.failures
        );
        let address = server.address;
        let client = move || bare_client::cpu_us_per_request(address, CONNECTIONS, WINDOW);
        let least = tokio::task::spawn_blocking(client).await??;
        eprintln!(
            "  {:.0} requests/s, {:.2} us each, {least:.2} us by the barest client",
            summary.throughput,
            summary.cpu_us_per_iteration()
        );
        singles.push(summary.cpu_us_per_iteration());
        bare.push(least);
    }
    Ok(vec![Reading::of(singles), Reading::of(bare)])
}
