//! For how long the hot row is locked, from the link to PostgreSQL.
//!
//! Each hold is measured by itself, from the reply to the statement that takes the lock to the reply to COMMIT. Nothing of it
//! is derived from the throughput, so that the two can be held against each other.

use std::time::Duration;

use async_trait::async_trait;
use deploy::HoldMeter;

use super::Probe;
use crate::events::{HoldSample, Sample};

pub(super) struct Hold {
    meter: HoldMeter,
}

impl Hold {
    /// What ended before, in another load, is forgotten.
    pub(super) async fn new(meter: HoldMeter) -> anyhow::Result<Self> {
        meter.take().await?;
        Ok(Self { meter })
    }
}

#[async_trait]
impl Probe for Hold {
    fn name(&self) -> &'static str {
        "hold"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let holds = self.meter.take().await?;
        Ok(Sample::Hold(HoldSample {
            count: holds.count,
            total_ms: ms(holds.total),
            p50_ms: ms(holds.p50),
            p95_ms: ms(holds.p95),
            max_ms: ms(holds.max),
            unmeasured: holds.unmeasured,
            buckets: holds.buckets,
        }))
    }
}
