//! Running the plan for one tour: the orchestrator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use chassis::db::Statements;
use chassis::deadline;
use chassis::service::Background;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::error::MOVED;
use super::{Alternatives, Committed, Ctx, Incompatible, Isolation, TxError};
use crate::announce::{Announce, AnnounceError};
use crate::inserts::Program;
use crate::metrics;
use crate::placement::{Home, PlacementError, Shard};
use crate::store::{self, StoreError, TenantConfig, TourDocument};
use crate::touch::{Touch, TouchError};
use crate::tour::{NewTour, TenantKey};

/// Name of the index that makes a repeated key find its tour.
const IDEMPOTENCY_INDEX: &str = "tour_idempotency_key";

/// One alternative of each axis, compiled.
pub struct Plan {
    touch: Arc<dyn Touch>,
    announce: Arc<dyn Announce>,
    program: Arc<dyn Program>,
    isolation: Isolation,
    cx: Ctx,
    running: TaskTracker,
}

/// Why a tour was not created, or not known to be.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is no such tenant.
    #[error("no tenant has the key {0}")]
    UnknownTenant(TenantKey),
    /// The idempotency key made another tour before.
    #[error("the idempotency key was used for another tour")]
    KeyReused,
    /// The tour is committed and the tenant row may not be written.
    #[error(transparent)]
    NotTouched(TouchError),
    /// The tour is committed and its message may not be out.
    #[error(transparent)]
    NotAnnounced(AnnounceError),
    /// The answer to COMMIT was lost.
    #[error("it is not known whether the tour was committed: {0}")]
    CommitUnknown(sqlx::Error),
    /// Nothing was written, because the database could not be reached.
    #[error("the database is not available: {0}")]
    Unavailable(sqlx::Error),
    /// Nothing was written, because other transactions came first every time.
    #[error("rolled back in favour of other transactions every time, at last with SQLSTATE {0}")]
    Contended(String),
    /// A failure of the service.
    #[error("{0}")]
    Internal(String),
}

impl Plan {
    /// Composes the alternatives.
    ///
    /// # Errors
    /// [`Incompatible`] when the inserter cannot carry the others.
    pub fn compile(alternatives: Alternatives, isolation: Isolation, cx: Ctx) -> Result<Self, Incompatible> {
        let Alternatives {
            inserts,
            touch,
            announce,
        } = alternatives;
        let specs = [cx.placement.spec(), touch.spec(), announce.spec()];
        let shapes = [cx.placement.shapes(), touch.shapes(), announce.shapes()].concat();
        let needs = specs
            .iter()
            .fold(inserts.spec().needs, |needs, spec| needs.and(spec.needs));
        let names = || specs.map(|spec| spec.name).join(", ");
        let lent = |shard: &Arc<Shard>| shard.db.statements() == Statements::Unnamed;
        if let Some(why) = needs.session.filter(|_| cx.placement.shards().iter().any(lent)) {
            return Err(Incompatible(format!(
                "TOUR_DATA_DB_PREPARED=false means that a session may be somebody else's with the next transaction, and one of \
                 inserts {:?}, {} needs sessions of its own: {why}",
                inserts.spec().name,
                names(),
            )));
        }
        if needs.read_committed && isolation != Isolation::ReadCommitted {
            return Err(Incompatible(format!(
                "isolation {isolation:?} does not go with inserts {:?}, {}: one of them waits and has to see what was \
                 committed meanwhile, which only read-committed shows",
                inserts.spec().name,
                names(),
            )));
        }
        let program = inserts
            .compile(&shapes, needs, cx.clock)
            .map_err(|Incompatible(reason)| {
                Incompatible(format!(
                    "inserts {:?} cannot carry {}: {reason}",
                    inserts.spec().name,
                    names()
                ))
            })?;
        Ok(Self {
            touch,
            announce,
            program,
            isolation,
            cx,
            running: TaskTracker::new(),
        })
    }

    /// What the alternatives do beside the requests.
    pub fn background(&self) -> Vec<Background> {
        let touch = Arc::clone(&self.touch).background(&self.cx);
        let announce = Arc::clone(&self.announce).background(&self.cx);
        touch.into_iter().chain(announce).collect()
    }

    /// Writes the tour, and tells about it.
    ///
    /// The work runs in a task of its own: dropping the returned future (a client that disconnects) stops waiting and
    /// nothing else, so no transaction is left half way. A panic in the task is an error here, and the connection it
    /// used is closed.
    ///
    /// # Errors
    /// [`CreateError`]; what it says about COMMIT holds.
    pub async fn create(self: &Arc<Self>, tour: NewTour) -> Result<Committed, CreateError> {
        let plan = Arc::clone(self);
        let request = Span::current();
        let task = async move {
            let started = Instant::now();
            let outcome = plan.run(&tour, &request).await;
            metrics::created(started.elapsed(), &outcome);
            outcome
        };
        // The deadline goes along: a tour that was not begun when it passes is not begun at all. One that was is finished.
        match self.running.spawn(deadline::carried(task)).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(CreateError::Internal(panic.to_string())),
        }
    }

    /// The tenant's place.
    ///
    /// # Errors
    /// [`PlacementError`]
    pub async fn home(&self, key: &TenantKey) -> Result<Home, PlacementError> {
        self.cx.placement.home(key).await
    }

    /// The tenant's configuration as readers see it.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn tenant_config(&self, key: &TenantKey) -> Result<TenantConfig, ReadError> {
        let home = self.home(key).await?;
        match self.touch.read(&self.cx, &home).await {
            Err(StoreError::NotFound) => {}
            found => return Ok(found?),
        }
        match self.moved_from(&home, key).await? {
            Some(home) => Ok(self.touch.read(&self.cx, &home).await?),
            None => Err(PlacementError::Unknown(key.clone()).into()),
        }
    }

    /// A tour of the tenant.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn tour(&self, key: &TenantKey, id: Uuid) -> Result<Option<TourDocument>, ReadError> {
        let home = self.home(key).await?;
        if let Some(tour) = store::tour(&home.shard, id).await? {
            return Ok(Some(tour));
        }
        match self.moved_from(&home, key).await? {
            Some(home) => Ok(store::tour(&home.shard, id).await?),
            None => Ok(None),
        }
    }

    /// Where the tenant lives, if that is no longer `home`.
    async fn moved_from(&self, home: &Home, key: &TenantKey) -> Result<Option<Home>, PlacementError> {
        self.cx.placement.moved(key).await;
        let now = self.home(key).await?;
        Ok((!Arc::ptr_eq(&home.shard, &now.shard)).then_some(now))
    }

    /// Waits for the tours whose clients did not, and tells the background work that there will be no other.
    pub async fn drained(&self) {
        self.running.close();
        self.running.wait().await;
        self.cx.quiet.cancel();
    }

    /// The request's span is entered around what may log or travel on, and not around the transaction: sqlx enters
    /// and leaves the current span many times a statement. Tracing had 13 % of the service's CPU samples that way
    /// and has 7 % this way (`perf`, one run each).
    async fn run(&self, tour: &NewTour, request: &Span) -> Result<Committed, CreateError> {
        let (home, done) = self.commit(tour, request).await?;
        async {
            let touched = self.touch.settle(&self.cx, &home, tour, &done).await;
            touched.map_err(CreateError::NotTouched)?;
            let announced = self.announce.settle(&self.cx, &done).await;
            announced.map_err(CreateError::NotAnnounced)
        }
        .instrument(request.clone())
        .await?;
        Ok(done)
    }

    /// One committed transaction and where it was, after as many attempts as it takes and is allowed.
    async fn commit(&self, tour: &NewTour, request: &Span) -> Result<(Home, Committed), CreateError> {
        let mut delays = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(2))
            .with_max_delay(Duration::from_millis(100))
            .with_max_times(self.touch.retries())
            .with_jitter()
            .build();
        loop {
            let home = self.home(&tour.tenant.key).await?;
            let error = match self.attempt(&home, tour, request).await? {
                Ok(done) => return Ok((home, done)),
                Err(error) => error,
            };
            let state = match error {
                TxError::Retry(state) => state,
                TxError::Moved => {
                    self.cx.placement.moved(&tour.tenant.key).await;
                    MOVED.to_owned()
                }
                TxError::Conflict(constraint) if constraint == IDEMPOTENCY_INDEX => {
                    let stored = self.replay(&home, tour).await?;
                    return Ok((home, stored));
                }
                TxError::CommitUnknown(error) => return Err(CreateError::CommitUnknown(error)),
                TxError::Unavailable(error) => return Err(CreateError::Unavailable(error)),
                error @ (TxError::Conflict(_) | TxError::Unexpected { .. } | TxError::Other(_)) => {
                    return Err(CreateError::Internal(error.to_string()));
                }
            };
            metrics::retried(&state);
            let delay = delays.next().ok_or(CreateError::Contended(state))?;
            tokio::time::sleep(delay).await;
        }
    }

    /// One transaction. The touch decides anew each time; the outer error is its.
    async fn attempt(
        &self,
        home: &Home,
        tour: &NewTour,
        request: &Span,
    ) -> Result<Result<Committed, TxError>, CreateError> {
        let decided = self.touch.decide(&self.cx, home, tour).instrument(request.clone());
        let touched = decided.await?;
        let has_touched = !touched.0.is_empty();
        let placement = &self.cx.placement;
        let mut steps = placement.steps(home, &tour.tenant.key);
        // The message first: with the row locked, it would be a round trip more for all who wait.
        let of_placement = placement.shapes().len();
        let of_touch = self.touch.shapes().len();
        steps.append(self.announce.steps(home.tenant, tour), of_placement + of_touch);
        steps.append(touched, of_placement);
        // Its length is that of the transaction, though nobody enters it.
        let span = tracing::info_span!(
            parent: request,
            "transaction",
            otel.kind = "client",
            db.system.name = "postgresql",
            db.query.summary = "CREATE TOUR",
        );
        let started = Instant::now();
        let written = self.program.commit(home, self.isolation, tour, &steps).await;
        metrics::transaction(started.elapsed(), &written);
        drop(span);
        Ok(written.map(|written| Committed {
            tour_id: tour.id,
            tour_number: tour.tour_number.clone(),
            tenant_key: tour.tenant.key.as_str().to_owned(),
            created_at: tour.created_at,
            rows: written.rows,
            replayed: false,
            touched: has_touched,
        }))
    }

    /// The tour that the request's key made before, if it was this one.
    async fn replay(&self, home: &Home, tour: &NewTour) -> Result<Committed, CreateError> {
        let key = tour.idempotency_key.as_deref().unwrap_or_default();
        let stored = store::stored_under_key(&home.shard, home.tenant, key).await?;
        let Some(stored) = stored else {
            return Err(CreateError::Internal(format!(
                "the key {key:?} is taken and no tour has it"
            )));
        };
        if stored.request_digest != tour.request_digest {
            return Err(CreateError::KeyReused);
        }
        Ok(Committed {
            tour_id: stored.id,
            tour_number: stored.tour_number,
            tenant_key: tour.tenant.key.as_str().to_owned(),
            created_at: stored.created_at,
            rows: stored.rows.unsigned_abs(),
            replayed: true,
            touched: true,
        })
    }
}

/// Why something of a tenant cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not known where the tenant lives.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The database did not give it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PlacementError> for CreateError {
    fn from(error: PlacementError) -> Self {
        match error {
            PlacementError::Unknown(key) => Self::UnknownTenant(key),
            PlacementError::NotConfigured { .. } => Self::Internal(error.to_string()),
            PlacementError::Unavailable(error) => error.into(),
        }
    }
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(error) => Self::Unavailable(error),
            error @ (StoreError::NotFound | StoreError::Other(_)) => Self::Internal(error.to_string()),
        }
    }
}

impl From<TouchError> for CreateError {
    fn from(error: TouchError) -> Self {
        Self::Internal(error.to_string())
    }
}
