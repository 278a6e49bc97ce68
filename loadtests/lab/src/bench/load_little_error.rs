//! `load.little_error`: whether the closed loop loses time between two iterations of a user. By Little's law throughput ×
//! latency is the number of users; the worst distance from that over several numbers of them.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use load::{HttpTarget, Shape};

use super::slow_server::SlowServer;
use super::{Figure, Measurement, Reading, Target};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "load.little_error",
        unit: "share",
        target: Target::AtMost(0.02),
    }],
    run: || Box::pin(measure()),
};

const USERS: [usize; 6] = [1, 2, 5, 10, 20, 40];
const ANSWER: Duration = Duration::from_millis(20);
/// Long enough that an iteration cut by its ends does not count.
const WINDOW: Duration = Duration::from_secs(4);

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let server = SlowServer::start(|_| ANSWER)?;
    let target = Arc::new(HttpTarget::builder(Method::GET, server.url().parse()?).build()?);
    let mut worst = 0.0_f64;
    for users in USERS {
        let shape = Shape::closed(users)
            .warm_up(Duration::from_millis(500))
            .duration(WINDOW);
        let summary = load::run(Arc::clone(&target), &shape, |_| {}).await?;
        anyhow::ensure!(
            summary.ok > 0 && summary.failed() == 0,
            "requests failed: {:?}",
            summary.failures
        );
        let latency_s = summary.latency.mean() / 1e6;
        let error = (summary.throughput * latency_s / users as f64 - 1.0).abs();
        eprintln!(
            "  {users} users: {:.1}/s × {:.2} ms, {:.2} % off",
            summary.throughput,
            latency_s * 1000.0,
            error * 100.0
        );
        worst = worst.max(error);
    }
    Ok(vec![Reading::of(vec![worst])])
}
