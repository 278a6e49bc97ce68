//! A database that was away and is back.
//!
//! sqlx tries to connect at growing intervals, up to a fifth of the acquire timeout. Whoever began to wait when an outage
//! began therefore finds out seconds after its end, up to 6 s with the default. So whoever meets a session that the server
//! has ended starts one task that tries four times a second; when it succeeds, all who wait start over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection, PgPool};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A server on its way up may take a connection and not answer yet.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// One for each database: the pools of its schemas share it, and what happens to one database is no news of another. Few enough
/// to be searched one after the other, which takes no copy of a name for each connection that is asked for.
static KNOWN: RwLock<Vec<Arc<Outages>>> = RwLock::new(Vec::new());

/// The outages of one database.
pub(super) struct Outages {
    /// How its first pool connects.
    options: Arc<PgConnectOptions>,
    /// Counts those that have ended.
    ended: watch::Sender<u64>,
    looking: AtomicBool,
}

impl Outages {
    /// Those of the database that `pool` connects to.
    pub(super) fn of(pool: &PgPool) -> Arc<Self> {
        let options = pool.connect_options();
        let find = |known: &[Arc<Self>]| known.iter().find(|one| one.is_of(&options)).cloned();
        if let Some(found) = find(&KNOWN.read().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        // Another pool of the database may have come first.
        find(&known).unwrap_or_else(|| {
            let new = Arc::new(Self {
                options,
                ended: watch::Sender::new(0),
                looking: AtomicBool::new(false),
            });
            known.push(Arc::clone(&new));
            new
        })
    }

    /// Whether these options lead to the same database, by whatever role and to whatever schema.
    fn is_of(&self, options: &PgConnectOptions) -> bool {
        let ours = &self.options;
        ours.get_host() == options.get_host()
            && ours.get_port() == options.get_port()
            && ours.get_socket() == options.get_socket()
            && ours.get_database() == options.get_database()
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
