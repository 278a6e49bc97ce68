//! A database that was away and is back.
//!
//! sqlx tries to connect at growing intervals, up to a fifth of the acquire timeout. Whoever began to wait when an outage
//! began therefore finds out seconds after its end, up to 6 s with the default. So whoever meets a session that the server
//! has ended starts one task that tries four times a second; when it succeeds, all who wait start over.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::{Connection, PgConnection, PgPool};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A server on its way up may take a connection and not answer yet.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Counts the outages that have ended. One for the process, which has one database server.
static ENDED: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));
static LOOKING: AtomicBool = AtomicBool::new(false);

/// Changes when an outage has ended.
pub(super) fn ended() -> watch::Receiver<u64> {
    ENDED.subscribe()
}

/// Whether an outage was noticed and has not ended.
pub(super) fn is_on() -> bool {
    LOOKING.load(Ordering::Acquire)
}

/// Tells that the server has ended sessions, or cannot be reached.
pub(super) fn noticed(pool: &PgPool) {
    if LOOKING.swap(true, Ordering::AcqRel) {
        return;
    }
    let (pool, looking) = (pool.clone(), Looking);
    tokio::spawn(async move {
        // At once: the server may have ended sessions and be there.
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !pool.is_closed() {
            looks.tick().await;
            let options = pool.connect_options();
            let attempt = tokio::time::timeout(ANSWER_WITHIN, PgConnection::connect_with(&options)).await;
            if let Ok(Ok(connection)) = attempt {
                // Before the goodbye: whoever waits need not wait for that.
                ENDED.send_modify(|count| *count += 1);
                drop(connection.close().await);
                break;
            }
        }
        drop(looking);
    });
}

/// Held by the task that looks; also a task that is cut off by the end of its runtime stops looking.
struct Looking;

impl Drop for Looking {
    fn drop(&mut self) {
        LOOKING.store(false, Ordering::Release);
    }
}
