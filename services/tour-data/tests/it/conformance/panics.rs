//! Fixes that panic: each fails its own request, is told to nobody but the log, and leaves neither lock nor transaction.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::service::{App, Chassis, Service, StartError};
use futures::future::join_all;
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tour_data::announce::{Announce, AnnounceError};
use tour_data::inserts::{Inserts, Program, Written};
use tour_data::placement::Home;
use tour_data::plan::{
    Alternatives, Clock, Committed, Ctx, Incompatible, Isolation, Needs, Shape, Spec, Steps, Transaction, TxError,
};
use tour_data::store::{StoreError, TenantConfig, tenant_config};
use tour_data::touch::{Touch, TouchError};
use tour_data::tour::NewTour;

use super::wrong::{ANNOUNCE, INSERTS, TOUCH, right};
use crate::support::{Database, TourService, eventually, make, payload, tours_of};

/// Where a fix panics.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Panics {
    Deciding,
    UnderTheLock,
    Settling,
    Announcing,
    Reading,
}

/// By the number of a [`Broken`] service.
const ALL: [Panics; 5] = [
    Panics::Deciding,
    Panics::UnderTheLock,
    Panics::Settling,
    Panics::Announcing,
    Panics::Reading,
];

struct Panicking(Panics);

#[async_trait]
impl Touch for Panicking {
    fn spec(&self) -> &'static Spec {
        &TOUCH
    }

    async fn decide(&self, _: &Ctx, _: &Home, _: &NewTour) -> Result<Steps, TouchError> {
        assert!(self.0 != Panics::Deciding, "on purpose, while it decides");
        Ok(Steps::default())
    }

    async fn settle(&self, _: &Ctx, _: &Home, _: &NewTour, _: &Committed) -> Result<(), TouchError> {
        assert!(self.0 != Panics::Settling, "on purpose, after COMMIT");
        Ok(())
    }

    async fn read(&self, _: &Ctx, home: &Home) -> Result<TenantConfig, StoreError> {
        assert!(self.0 != Panics::Reading, "on purpose, while it reads");
        tenant_config(&home.shard, home.tenant).await
    }
}

#[async_trait]
impl Announce for Panicking {
    fn spec(&self) -> &'static Spec {
        &ANNOUNCE
    }

    async fn settle(&self, _: &Ctx, _: &Committed) -> Result<(), AnnounceError> {
        assert!(self.0 != Panics::Announcing, "on purpose, while it announces");
        Ok(())
    }
}

impl Inserts for Panicking {
    fn spec(&self) -> &'static Spec {
        &INSERTS
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        if self.0 == Panics::UnderTheLock {
            return Ok(Arc::new(Panicking(self.0)));
        }
        make::<dyn Inserts>("multi-row")().compile(extra, needs, clock)
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
struct Broken<const WHERE: usize>;

impl<const WHERE: usize> Service for Broken<WHERE> {
    const NAME: &'static str = "tour-data";
    type Config = tour_data::Config;

    async fn build(config: tour_data::Config, cx: Chassis) -> Result<App, StartError> {
        let panics = ALL[WHERE];
        let mut chosen = Alternatives {
            inserts: Arc::new(Panicking(panics)),
            touch: Arc::new(Panicking(panics)),
            ..right()
        };
        if panics == Panics::Announcing {
            chosen.announce = Arc::new(Panicking(panics));
        }
        tour_data::serve(&config, &cx, chosen)
    }
}

async fn start<const WHERE: usize>(database: &Database) -> TourService {
    TourService::start_as::<Broken<WHERE>>(database, &[("TOUR_DATA_DB_POOL_MAX", "2")]).await
}

async fn assert_internal(answer: Response) {
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let problem: Value = answer.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:internal", "{problem}");
    assert!(
        !problem.to_string().contains("on purpose"),
        "the client is not told why: {problem}"
    );
}

async fn fails_alone<const WHERE: usize>(database: &Database) {
    let before = tours_of(database).await;
    let service = start::<WHERE>(database).await;
    let tour = payload();
    let answers = join_all((0..5).map(async |_| service.post(&tour, None).send().await.expect("an answer"))).await;
    for answer in answers {
        assert_internal(answer).await;
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
    let kept = if matches!(ALL[WHERE], Panics::Settling | Panics::Announcing) {
        5
    } else {
        0
    };
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
    fails_alone::<3>(&database).await;
}

#[tokio::test]
async fn a_fix_that_panics_while_it_reads_fails_the_read_alone() {
    let database = Database::create().await;
    let service = start::<4>(&database).await;
    for _ in 0..3 {
        let read = service.client.get(service.url("/api/v1/tenants/BEHNGT"));
        let answer = read.bearer_auth(service.token()).send().await.expect("an answer");
        assert_internal(answer).await;
    }
    service.create(&payload(), None).await;
    service.running.shutdown().await.expect("it drains");
}
