//! Fixes that are wrong on purpose: each is as fast as it looks, and each is caught.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chassis::service::{App, Chassis, Service, StartError};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::sync::Notify;
use tour_data::announce::{Announce, AnnounceError};
use tour_data::inserts::{Inserts, Program, Written};
use tour_data::placement::Home;
use tour_data::plan::{
    Alternatives, Bind, Clock, Committed, Config, Ctx, Delivery, Expect, Incompatible, Isolation, Kept, Needs, Order,
    Part, Promise, Shape, Spec, Step, Steps, Transaction, TxError, When,
};
use tour_data::store::{StoreError, TenantConfig, tenant_config};
use tour_data::touch::{Touch, TouchError};
use tour_data::tour::NewTour;

use super::behaviour::Subject;
use super::{judge, published};
use crate::support::{Database, Rig, TourService, eventually, make, payload, tours_of};

static INSERTS: Spec = Spec {
    name: "wrong-inserts",
    summary: "wrong on purpose",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

static TOUCH: Spec = Spec {
    name: "wrong-touch",
    summary: "wrong on purpose",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Coarse(Duration::from_secs(1)),
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

static ANNOUNCE: Spec = Spec {
    name: "wrong-announce",
    summary: "wrong on purpose",
    baseline: false,
    promise: Some(Promise::Message {
        delivery: Delivery::AtLeastOnce,
        loses: &[],
    }),
    needs: Needs::NONE,
};

/// Leaves the last position out and tells of all rows.
struct DropsARow;

struct Short(Arc<dyn Program>);

impl Inserts for DropsARow {
    fn spec(&self) -> &'static Spec {
        &INSERTS
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        let program = make::<dyn Inserts>("multi-row")().compile(extra, needs, clock)?;
        Ok(Arc::new(Short(program)))
    }
}

#[async_trait]
impl Program for Short {
    async fn commit(&self, home: &Home, level: Isolation, tour: &NewTour, steps: &Steps) -> Result<Written, TxError> {
        let mut short = tour.clone();
        let last = short.stops.iter_mut().flat_map(|stop| &mut stop.orders).next_back();
        last.expect("there are orders").positions.pop();
        let written = self.0.commit(home, level, &short, steps).await?;
        Ok(Written {
            rows: written.rows + 1,
            ..written
        })
    }
}

/// Throttles everything, what changes as well.
struct LosesAChange;

const THROTTLED: [Shape; 1] = [Shape {
    summary: "UPDATE tenant_config if due",
    sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 \
        WHERE id = $4 AND modified_at < $1 - interval '1 s'",
    when: When::AfterInserts,
    expect: Expect::AtMost(1),
    part: Part::Ordered,
}];

#[async_trait]
impl Touch for LosesAChange {
    fn spec(&self) -> &'static Spec {
        &TOUCH
    }

    fn shapes(&self) -> &'static [Shape] {
        &THROTTLED
    }

    async fn decide(&self, _: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        let (tenant, info) = (tour.tenant.tenant.clone(), tour.tenant.info.clone());
        let binds = vec![
            Bind::Now,
            Bind::Text(tenant),
            Bind::OptionalText(info),
            Bind::Id(home.tenant.0),
        ];
        Ok(Steps(vec![Step { shape: 0, binds }]))
    }
}

static MONOTONE: Spec = Spec {
    name: "wrong-order",
    summary: "wrong on purpose",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

/// Reads the clock long before it writes. Of the tours that [`Subject`] sends at once one reads it before another and writes
/// behind all of them; a reader sees both.
#[derive(Default)]
struct GoesBackwards {
    /// The first of the two has read the clock.
    early: Notify,
    settled: Mutex<BTreeSet<String>>,
    reads: AtomicU64,
}

/// By what they bring: which of the tours is overtaken, and by whom.
const OVERTAKEN: &str = "client 0";
const OVERTAKES: &str = "client 5";

/// What the tours bring that are sent beside the first one.
const OTHERS: [&str; 6] = ["client 1", "client 2", "client 3", "client 4", OVERTAKES, "shared"];

/// No machine is so busy that it takes this long.
const AT_LAST: Duration = Duration::from_secs(20);

impl GoesBackwards {
    fn settled(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.settled.lock().expect("nothing panics under this lock")
    }

    /// No other tour writes over what is written then, and what they wrote has been read.
    async fn overtaken_and_read(&self) {
        while !OTHERS.iter().all(|other| self.settled().contains(*other)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The read that is under way may have begun before.
        let read = self.reads.load(Ordering::Relaxed) + 2;
        while self.reads.load(Ordering::Relaxed) < read {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

const UNGUARDED: [Shape; 1] = [Shape {
    summary: "UPDATE tenant_config",
    sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 WHERE id = $4",
    when: When::AfterInserts,
    expect: Expect::Exactly(1),
    part: Part::Ordered,
}];

#[async_trait]
impl Touch for GoesBackwards {
    fn spec(&self) -> &'static Spec {
        &MONOTONE
    }

    fn shapes(&self) -> &'static [Shape] {
        &UNGUARDED
    }

    async fn decide(&self, cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        let brought = tour.tenant.info.as_deref();
        if brought == Some(OVERTAKES) {
            let early = tokio::time::timeout(AT_LAST, self.early.notified());
            early.await.expect("the one to overtake comes");
        }
        let at = (cx.clock)();
        if brought == Some(OVERTAKEN) {
            self.early.notify_one();
            let overtaken = tokio::time::timeout(AT_LAST, self.overtaken_and_read());
            overtaken.await.expect("the other tours come, and a reader");
        }
        let (tenant, info) = (tour.tenant.tenant.clone(), tour.tenant.info.clone());
        let binds = vec![
            Bind::Time(at),
            Bind::Text(tenant),
            Bind::OptionalText(info),
            Bind::Id(home.tenant.0),
        ];
        Ok(Steps(vec![Step { shape: 0, binds }]))
    }

    async fn settle(&self, _: &Ctx, _: &Home, tour: &NewTour, _: &Committed) -> Result<(), TouchError> {
        self.settled().extend(tour.tenant.info.clone());
        Ok(())
    }

    async fn read(&self, _: &Ctx, home: &Home) -> Result<TenantConfig, StoreError> {
        let read = tenant_config(&home.shard, home.tenant).await;
        self.reads.fetch_add(1, Ordering::Relaxed);
        read
    }
}

/// Publishes, and then publishes.
struct PublishesTwice(Arc<dyn Announce>);

#[async_trait]
impl Announce for PublishesTwice {
    fn spec(&self) -> &'static Spec {
        &ANNOUNCE
    }

    async fn settle(&self, cx: &Ctx, done: &Committed) -> Result<(), AnnounceError> {
        self.0.settle(cx, done).await?;
        self.0.settle(cx, done).await
    }
}

fn right() -> Alternatives {
    super::Names {
        inserts: "multi-row",
        touch: "update-last",
        ..published()
    }
    .alternatives()
}

async fn violations_of(chosen: impl Fn() -> Alternatives) -> Vec<String> {
    let mut rig = Rig::start().await;
    let tenant = rig.tenants(1).await.remove(0);
    let running = rig
        .run(chosen(), published().placement, Isolation::ReadCommitted)
        .expect("it compiles");
    let witness = Subject::new(&running, &chosen(), &tenant).in_full().await;
    judge(&mut rig, vec![("it".to_owned(), witness)]).await
}

fn assert_found(violations: &[String], what: &str) {
    let found = violations.iter().any(|violation| violation.contains(what));
    assert!(found, "{what:?} is not among {violations:#?}");
}

#[tokio::test]
async fn a_fix_that_drops_a_row_is_caught() {
    let violations = violations_of(|| Alternatives {
        inserts: Arc::new(DropsARow),
        ..right()
    });
    let violations = violations.await;
    assert_found(&violations, "has 86 rows, expected 87");
    assert_found(&violations, "stops is read as");
}

#[tokio::test]
async fn a_fix_that_loses_a_change_is_caught() {
    let violations = violations_of(|| Alternatives {
        touch: Arc::new(LosesAChange),
        ..right()
    });
    assert_found(&violations.await, "is seen after \"late shift\"");
}

#[tokio::test]
async fn a_fix_whose_time_goes_backwards_only_beside_other_tours_is_caught() {
    let violations = violations_of(|| Alternatives {
        touch: Arc::new(GoesBackwards::default()),
        ..right()
    });
    assert_found(&violations.await, "modified_at went backwards");
}

#[tokio::test]
async fn a_fix_that_publishes_twice_is_caught() {
    let violations = violations_of(|| Alternatives {
        announce: Arc::new(PublishesTwice(make::<dyn Announce>("after-commit")())),
        ..right()
    });
    assert_found(&violations.await, "was announced 2 times, asked for 1");
}

/// Where a fix panics.
#[derive(Clone, Copy)]
enum Panics {
    Deciding,
    UnderTheLock,
    Settling,
}

struct Panicking(Panics);

#[async_trait]
impl Touch for Panicking {
    fn spec(&self) -> &'static Spec {
        &TOUCH
    }

    fn shapes(&self) -> &'static [Shape] {
        &THROTTLED
    }

    async fn decide(&self, cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        assert!(!matches!(self.0, Panics::Deciding), "on purpose, while it decides");
        LosesAChange.decide(cx, home, tour).await
    }

    async fn settle(&self, _: &Ctx, _: &Home, _: &NewTour, _: &Committed) -> Result<(), TouchError> {
        assert!(!matches!(self.0, Panics::Settling), "on purpose, after COMMIT");
        Ok(())
    }
}

impl Inserts for Panicking {
    fn spec(&self) -> &'static Spec {
        &INSERTS
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        match self.0 {
            Panics::UnderTheLock => Ok(Arc::new(Panicking(self.0))),
            Panics::Deciding | Panics::Settling => make::<dyn Inserts>("multi-row")().compile(extra, needs, clock),
        }
    }
}

#[async_trait]
impl Program for Panicking {
    async fn commit(&self, home: &Home, level: Isolation, _: &NewTour, _: &Steps) -> Result<Written, TxError> {
        let mut transaction = Transaction::begin(&home.shard.db, level).await?;
        let lock = sqlx::query("UPDATE tenant_config SET tenant = 'lost' WHERE id = $1").bind(home.tenant.0);
        lock.execute(transaction.connection()).await?;
        panic!("on purpose, under the lock");
    }
}

/// The service with such a fix.
struct Broken<const WHERE: u8>;

impl<const WHERE: u8> Service for Broken<WHERE> {
    const NAME: &'static str = "tour-data";
    type Config = tour_data::Config;

    async fn build(config: tour_data::Config, cx: Chassis) -> Result<App, StartError> {
        let panics = [Panics::Deciding, Panics::UnderTheLock, Panics::Settling][usize::from(WHERE)];
        let chosen = Alternatives {
            inserts: Arc::new(Panicking(panics)),
            touch: Arc::new(Panicking(panics)),
            ..right()
        };
        tour_data::serve(&config, &cx, chosen)
    }
}

async fn fails_alone<const WHERE: u8>(database: &Database) {
    let before = tours_of(database).await;
    let service = TourService::start_as::<Broken<WHERE>>(database, &[("TOUR_DATA_DB_POOL_MAX", "2")]).await;
    let tour = payload();
    let answers = join_all((0..5).map(async |_| service.post(&tour, None).send().await.expect("an answer"))).await;
    for answer in answers {
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!(problem["type"], "urn:rowlock:problem:internal", "{problem}");
        assert!(
            !problem.to_string().contains("on purpose"),
            "the client is not told why: {problem}"
        );
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_database() \
        AND (xact_start IS NOT NULL OR state LIKE 'idle in transaction%')";
    eventually("no transaction of the service is open", async || {
        (database.number(open).await == 0).then_some(())
    })
    .await;
    let free = "UPDATE tenant_config SET tenant_info = 'free'";
    sqlx::query(free)
        .execute(&database.pool)
        .await
        .expect("the rows are free");
    // The service goes on: it answers, from a pool that has lost nothing.
    assert_eq!(service.get("/api/v1/tenants/BEHNGT").await.0, StatusCode::OK);
    let kept = if matches!(WHERE, 2) { 5 } else { 0 };
    assert_eq!(tours_of(database).await, before + kept);
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn a_fix_that_panics_fails_its_requests_and_leaves_neither_lock_nor_transaction() {
    // One after the other: at its end a database is dropped, for which the whole of a test's runtime stands still.
    let database = Database::create().await;
    fails_alone::<0>(&database).await;
    fails_alone::<1>(&database).await;
    fails_alone::<2>(&database).await;
}
