//! For how long a hot row was locked, as a link to PostgreSQL has seen it.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::Link;
use crate::error::DeployError;

/// Holds of a hot row that have ended in some time: each from the reply to the statement that locked it to the reply to
/// COMMIT or ROLLBACK, at the server's end of the link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holds {
    /// How many were measured.
    pub count: u64,
    /// Sum of all.
    pub total: Duration,
    /// Median; zero without any, as the next two.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// The longest.
    pub max: Duration,
    /// Holds that began and ended in one packet of the server, which are too short to be seen.
    pub unmeasured: u64,
    /// Upper bound in µs and count of every non-empty bucket, so that several can be merged.
    pub buckets: Vec<(u64, u64)>,
}

/// The same as `rowlock-link` writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Taken {
    count: u64,
    total_us: u64,
    p50_us: u64,
    p95_us: u64,
    max_us: u64,
    unmeasured: u64,
    buckets: Vec<(u64, u64)>,
}

impl From<Taken> for Holds {
    fn from(taken: Taken) -> Self {
        let us = Duration::from_micros;
        Self {
            count: taken.count,
            total: us(taken.total_us),
            p50: us(taken.p50_us),
            p95: us(taken.p95_us),
            max: us(taken.max_us),
            unmeasured: taken.unmeasured,
            buckets: taken.buckets,
        }
    }
}

/// Asks the link to PostgreSQL for the holds it has seen.
#[derive(Debug, Clone)]
pub struct HoldMeter(Arc<Link>);

impl HoldMeter {
    pub(crate) fn of(link: Arc<Link>) -> Self {
        Self(link)
    }

    /// The holds that have ended since the last call, of all connections together.
    ///
    /// # Errors
    /// The link does not answer.
    pub async fn take(&self) -> Result<Holds, DeployError> {
        self.0.holds().await
    }
}
