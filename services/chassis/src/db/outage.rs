//! A database that was away and is back.
//!
//! sqlx tries to connect at growing intervals, up to a fifth of the acquire timeout. Whoever began to wait when an outage
//! began therefore finds out seconds after its end, up to 6 s with the default. So whoever meets a session that the server
//! has ended starts one task that tries four times a second; when it succeeds, all who wait start over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{Connection, PgConnection, PgPool};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A server on its way up may take a connection and not answer yet.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// One for each database: the pools of its schemas share it, and what happens to one database is no news of another.
static KNOWN: LazyLock<Mutex<HashMap<Database, Arc<Outages>>>> = LazyLock::new(Mutex::default);

/// Where a pool connects to: host and port, and the name of the database.
type Database = (String, u16, Option<String>);

/// The outages of one database.
pub(super) struct Outages {
    /// Counts those that have ended.
    ended: watch::Sender<u64>,
    looking: AtomicBool,
}

impl Outages {
    /// Those of the database that `pool` connects to.
    pub(super) fn of(pool: &PgPool) -> Arc<Self> {
        let options = pool.connect_options();
        let host = match options.get_socket() {
            Some(path) => path.to_string_lossy().into_owned(),
            None => options.get_host().to_owned(),
        };
        let database = (host, options.get_port(), options.get_database().map(str::to_owned));
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(database).or_insert_with(|| {
            Arc::new(Self {
                ended: watch::Sender::new(0),
                looking: AtomicBool::new(false),
            })
        }))
    }

    /// Changes when an outage has ended.
    pub(super) fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Whether an outage was noticed and has not ended.
    pub(super) fn is_on(&self) -> bool {
        self.looking.load(Ordering::Acquire)
    }

    /// Tells that the server has ended sessions, or cannot be reached. `pool` is one of the database's.
    pub(super) fn noticed(self: &Arc<Self>, pool: &PgPool) {
        if self.looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (pool, looking) = (pool.clone(), Looking(Arc::clone(self)));
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
                    looking.0.ended.send_modify(|count| *count += 1);
                    drop(connection.close().await);
                    break;
                }
            }
            drop(looking);
        });
    }
}

/// Held by the task that looks; also a task that is cut off by the end of its runtime stops looking.
struct Looking(Arc<Outages>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.looking.store(false, Ordering::Release);
    }
}
