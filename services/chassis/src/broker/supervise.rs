//! Keeps one connection open: opens it, waits for its end, opens the next.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use super::{Link, Shared, session::Session};

const FIRST_DELAY: Duration = Duration::from_millis(100);
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// A connection that lived shorter than this counts as a failed attempt, so that a broker which accepts and drops at
/// once is not hammered.
const SETTLED_AFTER: Duration = Duration::from_secs(5);

/// Delays between attempts: jittered so that replicas do not come back in step, bounded, without a last try.
pub(super) fn backoff() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_DELAY)
        .with_max_delay(LONGEST_DELAY)
        .with_jitter()
        .without_max_times()
        .build()
}

/// Runs until the service drains.
pub(super) async fn run(shared: Arc<Shared>) -> anyhow::Result<()> {
    let mut delays = backoff();
    loop {
        let opening = Session::open(&shared.uri, &shared.connection_name, &shared.topology);
        let opened = tokio::select! {
            opened = opening => opened,
            () = shared.drain.cancelled() => return Ok(()),
        };
        let reason = match opened {
            Ok(session) => {
                let session = Arc::new(session);
                tracing::info!("connected to the broker");
                shared.link.send_replace(Link::Up(Arc::clone(&session)));
                let since = Instant::now();
                let reason = tokio::select! {
                    reason = session.ended(&shared.lost) => reason,
                    () = shared.drain.cancelled() => {
                        shared.consumers.close();
                        shared.consumers.wait().await;
                        session.close().await;
                        return Ok(());
                    }
                };
                if since.elapsed() >= SETTLED_AFTER {
                    delays = backoff();
                }
                reason
            }
            Err(reason) => reason,
        };
        tracing::warn!(reason, "no connection to the broker");
        shared.link.send_replace(Link::Down { reason: reason.into() });
        let delay = delays.next().unwrap_or(LONGEST_DELAY);
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = shared.drain.cancelled() => return Ok(()),
        }
    }
}
