//! Keep the newest touch of each tenant in memory, and write it twice a second.
//!
//! A tour adds nothing to its transaction and nothing to its answer. However many tours there are, a replica writes each
//! tenant's row twice a second; the newest one stays, whichever replica wrote it. When the service stops, what is left is
//! written after the last tour.
//!
//! Gives up: a second, and the database's word on which tour was last: the clocks of the replicas decide. A reader sees a change up to that much later, and a replica that crashes takes its last half second
//! of changes with it, acknowledged as they are. Not to be used for anything that somebody was told is saved.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chassis::service::Background;
use chrono::{DateTime, Utc};

use super::{Touch, TouchError, write_newest};
use crate::placement::{Home, PlacementError};
use crate::plan::{Cause, Committed, Config, Ctx, Kept, Loss, Lost, Needs, Order, Promise, Spec};
use crate::tour::{NewTour, Tenant, TenantKey};

/// Between two flushes.
const EVERY: Duration = Duration::from_millis(500);
/// Between attempts to write what is left when the service stops.
const AGAIN: Duration = Duration::from_millis(250);

pub(super) static SPEC: Spec = Spec {
    name: "write-behind",
    summary: "kept in memory and written twice a second, one UPDATE a tenant and replica",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Eventual(Duration::from_secs(1)),
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[Loss {
            text: "acknowledged changes of the last second before a replica crashed",
            of: Lost::Acknowledged,
            causes: &[Cause::Replica],
        }],
    }),
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(WriteBehind::default())
}

#[derive(Default)]
struct WriteBehind {
    dirty: Mutex<HashMap<TenantKey, Newest>>,
}

/// What a tenant's row has to become.
struct Newest {
    config: Tenant,
    at: DateTime<Utc>,
}

#[async_trait]
impl Touch for WriteBehind {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn settle(&self, _cx: &Ctx, _home: &Home, tour: &NewTour, done: &Committed) -> Result<(), TouchError> {
        self.note(Newest {
            config: tour.tenant.clone(),
            at: done.created_at,
        });
        Ok(())
    }

    fn background(self: Arc<Self>, cx: &Ctx) -> Option<Background> {
        Some(Background::new(
            "flush of tenant touches",
            self.flush_until_quiet(cx.clone()),
        ))
    }
}

impl WriteBehind {
    fn dirty(&self) -> MutexGuard<'_, HashMap<TenantKey, Newest>> {
        self.dirty.lock().expect("nothing panics under this lock")
    }

    fn note(&self, newest: Newest) {
        match self.dirty().entry(newest.config.key.clone()) {
            Entry::Occupied(mut held) if held.get().at <= newest.at => {
                held.insert(newest);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert(newest);
            }
        }
    }

    async fn flush_until_quiet(self: Arc<Self>, cx: Ctx) -> anyhow::Result<()> {
        while tokio::time::timeout(EVERY, cx.quiet.cancelled()).await.is_err() {
            self.flush(&cx).await;
        }
        // Whoever stops the service bounds this.
        while !self.flush(&cx).await {
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }

    /// Writes what is dirty, and says whether nothing is left. What cannot be written stays for the next time.
    async fn flush(&self, cx: &Ctx) -> bool {
        let dirty = std::mem::take(&mut *self.dirty());
        let mut clean = true;
        for newest in dirty.into_values() {
            match write_newest(cx, &newest.config, newest.at).await {
                Ok(()) => {}
                // A tenant that was removed has no row, now or later.
                Err(unknown @ PlacementError::Unknown(_)) => tracing::warn!(%unknown, "a touch is dropped"),
                Err(error) => {
                    tracing::warn!(%error, tenant = %newest.config.key, "a touch is not written yet");
                    self.note(newest);
                    clean = false;
                }
            }
        }
        clean
    }
}
