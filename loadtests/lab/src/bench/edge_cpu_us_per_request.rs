//! `edge.cpu_us_per_request`: what the gateway spends on a small GET that it lets through: token check, rate limit in
//! Redis, a hop to a replica and back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::Method;
use load::{HttpTarget, Shape, Token, TokenSource};

use super::{Figure, Measurement, Reading, Target, stack};
use crate::probes::processes::cpu_by_process;
use crate::run::CLIENT;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "edge.cpu_us_per_request",
        unit: "us",
        target: Target::None,
    }],
    run: || Box::pin(measure()),
};

const TIMES: usize = 5;
const USERS: usize = 10;
/// Long against the hundredths of a second in which the kernel counts.
const LOAD: Duration = Duration::from_secs(4);
/// On, and out of reach.
const LIMIT: &str = "60000000";

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let mut topology = stack::topology();
    topology
        .settings
        .insert("GATEWAY_RATE_LIMIT".to_owned(), LIMIT.to_owned());
    let running = stack::up(topology).await?;
    let measured = loaded(&running).await;
    running.down().await?;
    measured
}

async fn loaded(running: &deploy::Stack) -> anyhow::Result<Vec<Reading>> {
    let gateway = running
        .processes()
        .into_iter()
        .find(|process| process.component == "gateway")
        .context("the stack has no gateway")?;
    let target = Arc::new(target(running)?);
    let shape = |duration| Shape::closed(USERS).duration(duration);
    load::run(Arc::clone(&target), &shape(Duration::from_secs(1)), |_| {}).await?;
    let mut singles = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let before = cpu_by_process(gateway.pid)?;
        let summary = load::run(Arc::clone(&target), &shape(LOAD), |_| {}).await?;
        let spent = cpu_by_process(gateway.pid)?.saturating_sub(before);
        if let Some((kind, detail)) = summary.failures.first_key_value() {
            anyhow::bail!("requests failed under load: {kind}: {detail}");
        }
        anyhow::ensure!(summary.ok > 0, "no request was answered");
        let each = spent.as_secs_f64() * 1e6 / summary.ok as f64;
        eprintln!("  {:.0} requests/s, {each:.1} us each", summary.throughput);
        singles.push(each);
    }
    Ok(vec![Reading::of(singles)])
}

/// The tenant's configuration: one small row.
fn target(running: &deploy::Stack) -> anyhow::Result<HttpTarget> {
    let client = running
        .client(CLIENT)
        .with_context(|| format!("the stack has no client `{CLIENT}`"))?;
    let front = format!("http://{}", running.front());
    let url = format!("{front}/api/v1/tenants/{}", client.tenant).parse()?;
    let source = TokenSource {
        url: format!("{front}/oauth2/token").parse()?,
        client_id: client.id,
        client_secret: client.secret,
    };
    Ok(HttpTarget::builder(Method::GET, url)
        .token(Token::Once(source))
        .build()?)
}
