//! The same load by our engine and by another tool in turn, against one server in one run.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use load::{HttpTarget, Shape};

use super::Reading;
use super::slow_server::SlowServer;

/// Connections of either tool, each with one request under way.
pub(super) const CONNECTIONS: usize = 20;
/// How long either tool measures.
pub(super) const WINDOW: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_millis(20);
/// Pairs, every second of them in reverse order.
const PAIRS: usize = 4;

/// What a tool says of its load.
pub(super) struct Said {
    /// Requests a second.
    pub(super) throughput: f64,
    pub(super) p95_ms: f64,
}

/// How far ours is from `theirs`, which is told the URL: throughput and p95, each as a share.
pub(super) async fn with(theirs: impl AsyncFn(&str) -> anyhow::Result<Said>) -> anyhow::Result<Vec<Reading>> {
    let server = SlowServer::start(|_| ANSWER)?;
    let url = server.url();
    let (mut throughput, mut p95) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
    for pair in 0..PAIRS {
        let (our, their) = if pair.is_multiple_of(2) {
            let our = ours(&url).await?;
            (our, theirs(&url).await?)
        } else {
            let their = theirs(&url).await?;
            (ours(&url).await?, their)
        };
        eprintln!(
            "  {:.1}/s and p95 {:.2} ms; the other {:.1}/s and {:.2} ms",
            our.throughput, our.p95_ms, their.throughput, their.p95_ms
        );
        throughput.push(our.throughput / their.throughput - 1.0);
        p95.push(our.p95_ms / their.p95_ms - 1.0);
    }
    Ok(vec![distance(throughput), distance(p95)])
}

/// The median's distance from 0: that of each alone would count noise as a difference.
fn distance(singles: Vec<f64>) -> Reading {
    let reading = Reading::of(singles);
    Reading {
        value: reading.value.abs(),
        ..reading
    }
}

async fn ours(url: &str) -> anyhow::Result<Said> {
    let target = Arc::new(HttpTarget::builder(Method::GET, url.parse()?).build()?);
    let shape = Shape::closed(CONNECTIONS)
        .warm_up(Duration::from_millis(500))
        .duration(WINDOW);
    let summary = load::run(target, &shape, |_| {}).await?;
    anyhow::ensure!(
        summary.ok > 0 && summary.failed() == 0,
        "requests failed: {:?}",
        summary.failures
    );
    Ok(Said {
        throughput: summary.throughput,
        p95_ms: summary.latency_ms(0.95),
    })
}
