//! The orchestrator with alternatives that are wrong on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use chrono::Utc;
use tour_data::announce::{Announce, AnnounceError};
use tour_data::inserts::{Inserts, Program, Written};
use tour_data::placement::Home;
use tour_data::plan::{
    Alternatives, Clock, Committed, CreateError, Ctx, Incompatible, Isolation, Needs, Plan, Shape, Spec, Steps,
    Transaction, TxError,
};
use tour_data::touch::Touch;
use tour_data::tour::NewTour;

use crate::audit::{Acknowledged, audit};
use crate::support::{Database, context, make, new_tour, payload, tours_of};

static SPEC: Spec = Spec {
    name: "for-a-test",
    summary: "wrong on purpose",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

/// Tells nobody.
struct Silent;

#[async_trait]
impl Announce for Silent {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn settle(&self, _: &Ctx, _: &Committed) -> Result<(), AnnounceError> {
        Ok(())
    }
}

/// What a [`Saboteur`] does instead of, or before, running the baseline's program.
#[derive(Clone)]
enum Sabotage {
    DropARow,
    PanicUnderTheLock,
    FailSerialization { times: usize },
    Refuse,
}

struct Saboteur {
    sabotage: Sabotage,
    attempts: Arc<AtomicUsize>,
}

struct Sabotaged {
    program: Arc<dyn Program>,
    sabotage: Sabotage,
    attempts: Arc<AtomicUsize>,
}

impl Inserts for Saboteur {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        if matches!(self.sabotage, Sabotage::Refuse) && needs.answers_between_steps {
            return Err(Incompatible("everything is sent at once".to_owned()));
        }
        Ok(Arc::new(Sabotaged {
            program: make::<dyn Inserts>("per-row")().compile(extra, needs, clock)?,
            sabotage: self.sabotage.clone(),
            attempts: Arc::clone(&self.attempts),
        }))
    }
}

#[async_trait]
impl Program for Sabotaged {
    async fn commit(&self, home: &Home, level: Isolation, tour: &NewTour, steps: &Steps) -> Result<Written, TxError> {
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst) + 1;
        match self.sabotage {
            Sabotage::DropARow => {
                let mut short = tour.clone();
                short.stops[4].orders[0].positions.pop();
                let written = self.program.commit(home, level, &short, steps).await?;
                Ok(Written { rows: 87, ..written })
            }
            Sabotage::PanicUnderTheLock => {
                let mut transaction = Transaction::begin(&home.shard.db, level).await?;
                let lock = sqlx::query("UPDATE tenant_config SET tenant = 'lost' WHERE id = $1").bind(home.tenant.0);
                lock.execute(transaction.connection()).await?;
                panic!("under the lock, on purpose");
            }
            Sabotage::FailSerialization { times } if attempt <= times => Err(TxError::Retry("40001".to_owned())),
            Sabotage::FailSerialization { .. } | Sabotage::Refuse => {
                self.program.commit(home, level, tour, steps).await
            }
        }
    }
}

/// A plan with the saboteur, and the count of its attempts.
fn plan(database: &Database, touch: &str, sabotage: Sabotage) -> Result<(Arc<Plan>, Arc<AtomicUsize>), Incompatible> {
    let attempts = Arc::new(AtomicUsize::new(0));
    let alternatives = Alternatives {
        inserts: Arc::new(Saboteur {
            sabotage,
            attempts: Arc::clone(&attempts),
        }),
        touch: make::<dyn Touch>(touch)(),
        announce: Arc::new(Silent),
    };
    let cx = context(database, "redis://127.0.0.1:1", "amqp://127.0.0.1:1/%2f");
    Ok((
        Arc::new(Plan::compile(alternatives, Isolation::ReadCommitted, cx)?),
        attempts,
    ))
}

fn tour() -> NewTour {
    new_tour(payload(), None)
}

#[tokio::test]
async fn an_inserter_that_drops_a_row_is_caught_by_the_audit() {
    let database = Database::create().await;
    let (plan, _) = plan(&database, "update-last", Sabotage::DropARow).expect("it compiles");
    let sent_at = Utc::now();
    let done = plan.create(tour()).await.expect("it looks like a success");
    assert_eq!(done.rows, 87);
    let acknowledged = [Acknowledged {
        tour: done.tour_id,
        key: None,
        tenant: "BEHNGT".to_owned(),
        rows: 87,
        sent_at,
        acked_at: Utc::now(),
    }];
    let delivered = [(done.tour_id.to_string(), 1)];
    let expected = format!("rows-per-tour: tour {} has 86 rows, expected 87", done.tour_id);
    assert_eq!(audit(&database, &acknowledged, delivered, true).await, [expected]);
}

#[tokio::test]
async fn a_panic_in_the_transaction_is_an_error_and_frees_the_lock() {
    let database = Database::create().await;
    let (plan, _) = plan(&database, "none", Sabotage::PanicUnderTheLock).expect("it compiles");
    let failed = plan.create(tour()).await;
    assert!(matches!(failed, Err(CreateError::Internal(_))), "{failed:?}");
    // Waits for the lock until PostgreSQL has noticed that the connection is gone; a lock that stays is an error.
    let update = "SET lock_timeout = '20s'; UPDATE tenant_config SET tenant_info = 'free'";
    sqlx::raw_sql(update)
        .execute(&database.pool)
        .await
        .expect("the row is free");
    assert_eq!(
        database
            .number("SELECT count(*) FROM tenant_config WHERE tenant = 'lost'")
            .await,
        0
    );
}

#[tokio::test]
async fn a_transaction_that_lost_to_another_one_is_run_again() {
    let database = Database::create().await;
    let (plan, attempts) = plan(&database, "update-first", Sabotage::FailSerialization { times: 3 }).expect("compiles");
    assert_eq!(plan.create(tour()).await.expect("the fourth attempt commits").rows, 87);
    assert_eq!(attempts.load(Ordering::SeqCst), 4);
    assert_eq!(tours_of(&database).await, 1);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let database = Database::create().await;
    let (plan, attempts) = plan(
        &database,
        "update-first",
        Sabotage::FailSerialization { times: usize::MAX },
    )
    .expect("it compiles");
    let failed = plan.create(tour()).await;
    assert!(
        matches!(&failed, Err(CreateError::Contended(state)) if state == "40001"),
        "{failed:?}"
    );
    assert_eq!(attempts.load(Ordering::SeqCst), 6);
    assert_eq!(tours_of(&database).await, 0);
}

#[tokio::test]
async fn a_refused_combination_is_refused_with_both_names_and_the_reason() {
    let database = Database::create().await;
    assert!(plan(&database, "update-first", Sabotage::Refuse).is_ok());
    let refused = plan(&database, "select-for-update-first", Sabotage::Refuse)
        .err()
        .expect("it is refused")
        .to_string();
    for part in ["for-a-test", "select-for-update-first", "everything is sent at once"] {
        assert!(refused.contains(part), "{refused}");
    }
}
