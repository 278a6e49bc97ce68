//! Changes of the configuration when the load is over: nobody overwrites them, so that it can be seen how late each is.
//!
//! Under load nearly every change is overwritten by the next tour before somebody reads it, and a touch that never wrote any
//! would show as little as one that writes them all.

use std::time::Duration;

use anyhow::Context;
use load::{HttpTarget, Target};
use tokio::time::{Instant, sleep};

use super::ledger::{Ledger, Write};
use super::promised::Promised;
use super::reader::Reader;
use crate::facts::Promise;

/// No further change is begun after this: a touch that writes once a second would take as many seconds as there are changes.
const ENOUGH: Duration = Duration::from_secs(2);
/// A change that is not seen so long after it was promised is not waited for any longer.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(3);
/// Between two reads.
const EVERY: Duration = Duration::from_millis(10);

/// Sends the requests one after the other, each when the one before has been seen or given up, and reads until then.
/// How long each was not seen after its 201, milliseconds: until the last read that showed something else was sent.
///
/// # Errors
/// A request is not answered with success, or a read is not answered.
pub(super) async fn observe(
    reader: &mut Reader,
    requests: &[HttpTarget],
    ledger: &Ledger,
    promise: &Promise,
) -> anyhow::Result<Vec<u64>> {
    let mut stale = Vec::new();
    let Some(late) = Promised::of(&promise.config).late else {
        return Ok(stale);
    };
    let began = Instant::now();
    for request in requests {
        if began.elapsed() > ENOUGH {
            break;
        }
        let written = change(request, ledger).await?;
        let acked = Instant::now();
        let mut unseen = 0;
        loop {
            reader.look().await?;
            match reader.sightings.last() {
                Some(seen) if seen.info != written.info => unseen = seen.at_ms.saturating_sub(written.acked_ms),
                _ => break,
            }
            if acked.elapsed() > late + GIVEN_UP_AFTER {
                break;
            }
            sleep(EVERY).await;
        }
        stale.push(unseen);
    }
    Ok(stale)
}

/// Sends one request. What it wrote, as recorded.
///
/// # Errors
/// It is not answered with success.
pub(super) async fn change(request: &HttpTarget, ledger: &Ledger) -> anyhow::Result<Write> {
    sent(request).await.context("a change after the load failed")?;
    let written = ledger.last();
    written.context("a change after the load was not acknowledged")
}

async fn sent(request: &HttpTarget) -> anyhow::Result<()> {
    let unanswered = |failure: load::Failure| anyhow::anyhow!("{}: {}", failure.kind, failure.detail);
    let mut user = request.user(0).await.map_err(unanswered)?;
    request.iterate(&mut user).await.outcome.map_err(unanswered)
}
