//! Remember in the process what the row holds, and write only what differs.
//!
//! A tour that repeats the configuration sends nothing to the tenant row at all. A change is written behind the inserts
//! together with `pg_notify`, so that COMMIT tells every replica to forget what it knew; the next tour there reads the row.
//! While a replica is not connected to hear that, it remembers nothing and reads the row for each tour. A connection may also
//! have gone dead without a word, so nothing is remembered for longer than a second.
//!
//! Gives up: `modified_at` as a sign of life, and certainty between replicas. One that has not heard of another's change
//! yet takes a tour that changes it back for one that changes nothing, and the row keeps the other's values until the next
//! tour brings the right ones: a matter of milliseconds, and of ever if no tour comes. NOTIFY takes a lock of the whole
//! server at COMMIT, so many changes a second wait for each other. It cannot work through a pooler in transaction mode. Not
//! to be used with several replicas where every change counts; `cached-redis` and `skip-unchanged` are exact.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chassis::db::Sessions;
use chassis::service::Background;
use sqlx::postgres::{PgListener, PgPoolOptions};

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{
    Bind, Cause, Committed, Config, Ctx, Expect, Kept, Loss, Lost, Needs, Order, Part, Promise, Shape, Spec, Steps,
    When,
};
use crate::store::{self, TenantConfig};
use crate::tour::{NewTour, Tenant, TenantKey};

/// As in the statement. Channels belong to the database, so that all of its schemas share this one.
const CHANNEL: &str = "tenant_config_changed";
/// How long what was read is trusted without being told otherwise.
const TRUSTED: Duration = Duration::from_secs(1);
/// Between attempts to listen.
const AGAIN: Duration = Duration::from_millis(250);

pub(super) static SPEC: Spec = Spec {
    name: "cached",
    summary: "remembered in the process, forgotten on NOTIFY, written only where it differs",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::EventualOnChange(Duration::from_secs(1)),
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[Loss {
            text: "without any crash: a change back to earlier values, sent to a replica that has not heard yet of another \
             replica's change, if no tour follows",
            of: Lost::Acknowledged,
            causes: &[Cause::NoFault],
        }],
    }),
    needs: Needs {
        session: Some("LISTEN is asked for once a session"),
        ..Needs::NONE
    },
};

const SHAPES: [Shape; 2] = [
    Shape {
        summary: "UPDATE tenant_config",
        sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 WHERE id = $4",
        when: When::AfterInserts,
        expect: Expect::Exactly(1),
        part: Part::Ordered,
    },
    Shape {
        summary: "SELECT pg_notify",
        sql: "SELECT pg_notify('tenant_config_changed', $1)",
        when: When::AfterInserts,
        expect: Expect::Exactly(1),
        part: Part::Anywhere,
    },
];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(Cached::default())
}

#[derive(Default)]
struct Cached(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    /// Whether changes of others are heard of.
    listening: bool,
    /// Counts what was forgotten: what was read before may be older than what it was forgotten for.
    forgotten: u64,
    known: HashMap<TenantKey, Known>,
}

struct Known {
    values: Values,
    /// When it was asked for.
    since: Instant,
}

#[derive(Clone, PartialEq, Eq)]
struct Values {
    tenant: String,
    info: Option<String>,
}

impl From<&Tenant> for Values {
    fn from(config: &Tenant) -> Self {
        Self {
            tenant: config.tenant.clone(),
            info: config.info.clone(),
        }
    }
}

impl From<TenantConfig> for Values {
    fn from(row: TenantConfig) -> Self {
        Self {
            tenant: row.tenant,
            info: row.tenant_info,
        }
    }
}

#[async_trait]
impl Touch for Cached {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        if self.row(home, &tour.tenant.key).await == Some(Values::from(&tour.tenant)) {
            return Ok(Steps::default());
        }
        let notify = vec![Bind::Text(tour.tenant.key.as_str().to_owned())];
        Ok(Steps(vec![step(0, changed_binds(home.tenant, tour)), step(1, notify)]))
    }

    /// The tours that follow this 201 on this replica must not wait for the notification.
    async fn settle(&self, _cx: &Ctx, _home: &Home, tour: &NewTour, done: &Committed) -> Result<(), TouchError> {
        if done.touched {
            self.memory().forget(&tour.tenant.key);
        }
        Ok(())
    }

    fn background(self: Arc<Self>, cx: &Ctx) -> Option<Background> {
        Some(Background::new(
            "changes of tenants",
            self.listen_until_quiet(cx.clone()),
        ))
    }
}

impl Memory {
    fn forget(&mut self, key: &TenantKey) {
        self.forgotten += 1;
        self.known.remove(key);
    }

    fn forget_all(&mut self) {
        self.forgotten += 1;
        self.known.clear();
    }
}

impl Cached {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().expect("nothing panics under this lock")
    }

    /// What the row holds. Unknown if it cannot be read, which the transaction will find out for itself.
    async fn row(&self, home: &Home, key: &TenantKey) -> Option<Values> {
        let forgotten = {
            let memory = self.memory();
            let known = memory.known.get(key);
            if let Some(known) = known.filter(|known| known.since.elapsed() < TRUSTED) {
                return Some(known.values.clone());
            }
            memory.forgotten
        };
        let since = Instant::now();
        let row = store::tenant_config(&home.shard, home.tenant).await.ok()?;
        let values = Values::from(row);
        let mut memory = self.memory();
        if memory.listening && memory.forgotten == forgotten {
            let known = Known {
                values: values.clone(),
                since,
            };
            memory.known.insert(key.clone(), known);
        }
        Some(values)
    }

    async fn listen_until_quiet(self: Arc<Self>, cx: Ctx) -> anyhow::Result<()> {
        let shards = cx.placement.shards();
        let main = shards.first().expect("there is a main shard");
        loop {
            let error = tokio::select! {
                error = self.listen(&main.db) => error,
                () = cx.quiet.cancelled() => return Ok(()),
            };
            {
                let mut memory = self.memory();
                memory.listening = false;
                memory.forget_all();
            }
            tracing::warn!(%error, "changes of tenants are not heard of; reading the row for each tour");
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                () = cx.quiet.cancelled() => return Ok(()),
            }
        }
    }

    /// On a connection of its own: one of the pool would be missing there for good.
    async fn listen(&self, db: &Sessions) -> sqlx::Error {
        let own = PgPoolOptions::new().max_connections(1);
        let own = own.connect_lazy_with(db.connect_options().as_ref().clone());
        let heard = async {
            let mut listener = PgListener::connect_with(&own).await?;
            listener.listen(CHANNEL).await?;
            self.memory().listening = true;
            while let Some(notification) = listener.try_recv().await? {
                match TenantKey::parse(notification.payload()) {
                    Some(key) => self.memory().forget(&key),
                    None => self.memory().forget_all(),
                }
            }
            Err(sqlx::Error::Protocol("the connection was lost".to_owned()))
        };
        let ended: Result<(), sqlx::Error> = heard.await;
        ended.expect_err("it listens until it fails")
    }
}
