//! The plan of a Create Tour: which statements run in which order, composed once at start from one alternative of
//! each axis.
//!
//! A touch and an announcement say *what* they add to the transaction, as data; the inserter owns BEGIN … COMMIT and
//! decides how statements travel. If they executed by themselves, an inserter that pipelines, or fuses everything
//! into one statement, could not carry them.

mod create;
mod error;
mod spec;
mod step;
mod transaction;

use std::sync::Arc;

use chassis::broker::Broker;
use chrono::{DateTime, Utc};
use deadpool_redis::Pool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use create::{CreateError, Plan, ReadError};
pub use error::TxError;
pub use spec::{Cause, Config, Delivery, Isolation, Kept, Loss, Lost, Needs, Order, Promise, Spec};
pub use step::{Bind, Clock, Expect, Part, Shape, Step, Steps, When};
pub(crate) use step::{bind, run};
pub use transaction::Transaction;
pub(crate) use transaction::{Ended, alone};

use crate::announce::Announce;
use crate::inserts::Inserts;
use crate::placement::Placement;
use crate::touch::Touch;

/// What alternatives may use.
#[derive(Clone)]
pub struct Ctx {
    /// Which database a tenant lives in: the fourth axis, which the others look tenants up with.
    pub placement: Arc<dyn Placement>,
    /// The wall clock.
    pub clock: Clock,
    /// The message broker.
    pub broker: Broker,
    /// The exchange that tours are announced on.
    pub exchange: &'static str,
    /// The queue of touches, if the touch uses one.
    pub touches: &'static str,
    /// Redis, which may be away.
    pub redis: Pool,
    /// Cancelled when the service drains and its last tour has ended: background work finishes what is left then.
    pub quiet: CancellationToken,
}

/// One alternative of each of the other axes.
pub struct Alternatives {
    /// How the rows get in.
    pub inserts: Arc<dyn Inserts>,
    /// How the tenant row is written and read.
    pub touch: Arc<dyn Touch>,
    /// How the message gets out.
    pub announce: Arc<dyn Announce>,
}

/// A tour that is in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// UUID version 7.
    pub tour_id: Uuid,
    /// As in the request.
    pub tour_number: String,
    /// Key of the tenant it belongs to.
    pub tenant_key: String,
    /// The service's clock when it had parsed the request, in whole microseconds as PostgreSQL keeps them.
    pub created_at: DateTime<Utc>,
    /// Rows of the five tour tables.
    pub rows: u64,
    /// Found under the request's idempotency key rather than written by this request.
    pub replayed: bool,
    /// Whether the touch had statements in the transaction; taken for granted where that is not known.
    pub touched: bool,
}

/// An inserter and shapes that do not go together, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Incompatible(pub String);
