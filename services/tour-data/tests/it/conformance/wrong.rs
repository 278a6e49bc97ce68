//! Fixes that are wrong on purpose: each is as fast as it looks, and each is caught.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tour_data::announce::{Announce, AnnounceError};
use tour_data::inserts::{Inserts, Program, Written};
use tour_data::placement::Home;
use tour_data::plan::{
    Alternatives, Bind, Clock, Committed, Config, Ctx, Delivery, Expect, Incompatible, Isolation, Kept, Needs, Order,
    Part, Promise, Shape, Spec, Step, Steps, TxError, When,
};
use tour_data::store::{StoreError, TenantConfig, tenant_config};
use tour_data::touch::{Touch, TouchError};
use tour_data::tour::NewTour;

use super::behaviour::Subject;
use super::{judge, published};
use crate::support::{Rig, make};

pub(super) static INSERTS: Spec = Spec {
    name: "wrong-inserts",
    summary: "wrong on purpose",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

pub(super) static TOUCH: Spec = Spec {
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

pub(super) static ANNOUNCE: Spec = Spec {
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

/// Reads the clock long before it writes. Of the tours that [`Subject`] sends at once one reads it before another, which is the
/// last of all others to write, and writes behind it; a reader sees both.
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

/// What the tours bring that are sent beside these two.
const OTHERS: [&str; 5] = ["client 1", "client 2", "client 3", "client 4", "shared"];

/// No machine is so busy that it takes this long.
const AT_LAST: Duration = Duration::from_secs(20);

impl GoesBackwards {
    fn settled(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.settled.lock().expect("nothing panics under this lock")
    }

    /// Until these tours have written what they bring.
    async fn written(&self, tours: &[&str]) {
        while !tours.iter().all(|tour| self.settled().contains(*tour)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The first of the two has read the clock, and nobody else writes over what the second one writes.
    async fn overtakes(&self) {
        self.early.notified().await;
        self.written(&OTHERS).await;
    }

    /// The second one has written, and that has been read.
    async fn overtaken_and_read(&self) {
        self.written(&[OVERTAKES]).await;
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
            let overtakes = tokio::time::timeout(AT_LAST, self.overtakes());
            overtakes.await.expect("the one to overtake comes, and the others");
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

pub(super) fn right() -> Alternatives {
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
