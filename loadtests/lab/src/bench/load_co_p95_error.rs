//! `load.co_p95_error`: whether the open loop charges a stall for everybody who would have come meanwhile.
//!
//! The server answers at once, but in the first second of every three not at all. At 200 a second evenly spaced, a third of
//! the sends meet a stall and wait for what is left of it, evenly between 0 and 1 s: of all sends 95 % wait 0.85 s or less. A
//! generator that only times those it sends sees 20 connections wait, and calls that a rare outlier.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use load::{HttpTarget, Shape};

use super::slow_server::SlowServer;
use super::{Figure, Measurement, Reading, Target};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "load.co_p95_error",
        unit: "share",
        target: Target::AtMost(0.05),
    }],
    run: || Box::pin(measure()),
};

const PERIOD: Duration = Duration::from_secs(3);
const STALL: Duration = Duration::from_secs(1);
const RATE: f64 = 200.0;
const CONNECTIONS: usize = 20;
/// The 15th of the last 100 parts of a stall.
const P95_MS: f64 = 850.0;
const TIMES: usize = 3;

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let server = SlowServer::start(stalled)?;
    let target = Arc::new(HttpTarget::builder(Method::GET, server.url().parse()?).build()?);
    let shape = Shape::open(RATE)
        .warm_up(STALL * 2)
        .duration(2 * PERIOD)
        .in_flight_max(CONNECTIONS);
    let mut singles = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let summary = load::run(Arc::clone(&target), &shape, |_| {}).await?;
        let open = summary
            .open
            .as_ref()
            .filter(|open| open.sent > 0 && summary.failed() == 0);
        let open = open.ok_or_else(|| anyhow::anyhow!("requests failed: {:?}", summary.failures))?;
        let corrected = summary.latency_ms(0.95);
        eprintln!(
            "  p95 corrected {corrected:.1} ms of {P95_MS} ms, raw {:.1} ms; {} of {} sends late, send lag p99 {:.3} ms",
            open.raw_latency_ms(0.95),
            open.late_sends,
            open.sent,
            open.send_lag_p99_ms
        );
        singles.push((corrected / P95_MS - 1.0).abs());
    }
    Ok(vec![Reading::of(singles)])
}

/// What is left of a stall.
fn stalled(since_start: Duration) -> Duration {
    let passed = Duration::from_secs_f64(since_start.as_secs_f64() % PERIOD.as_secs_f64());
    STALL.saturating_sub(passed)
}
