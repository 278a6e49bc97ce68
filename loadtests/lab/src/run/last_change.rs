//! Faults when the load is over: each at the 201 of a change of the configuration that nothing follows.
//!
//! Under load a write that is lost is overwritten by the next one before somebody misses it. Here nobody comes after it, so
//! what a touch had not written down when it answered is missed for good.

use std::time::{Duration, Instant};

use deploy::Stack;
use load::HttpTarget;

use crate::audit::{self, Auditor, Outage};
use crate::events::{FaultState, ms_of, now_ms};
use crate::experiment::FaultSpec;
use crate::facts::Promise;

/// Far beyond what any part takes to be found again.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// What the faults are inflicted on, and watched by.
pub(super) struct Scene<'a> {
    pub(super) stack: &'a Stack,
    pub(super) auditor: &'a Auditor,
    /// Of the touch.
    pub(super) promise: &'a Promise,
}

impl Scene<'_> {
    /// Makes the change, inflicts the fault, and waits until a reader has seen the change or should have. Each turn is told as
    /// it comes.
    ///
    /// # Errors
    /// The change was not acknowledged, the fault not inflicted or not healed, or no reader was answered again.
    pub(super) async fn play(
        &self,
        spec: &FaultSpec,
        change: &HttpTarget,
        mut tell: impl FnMut(FaultState) -> anyhow::Result<()>,
    ) -> anyhow::Result<Outage> {
        let written = self.auditor.change(change).await?;
        let inflicted = self.stack.fault(&spec.fault()).await?;
        let felt_ms = now_ms();
        let hit = inflicted.hit.iter().map(|process| (process.name.clone(), process.pid));
        tell(FaultState::Inflicted { hit: hit.collect() })?;
        let healed = inflicted.healed().await?;
        let (back, back_ms) = (Instant::now(), now_ms());
        let crashed_ms = healed.crashed.map(|period| period.map(ms_of));
        tell(FaultState::Healed { crashed_ms })?;

        let answered = self.auditor.sees(ANSWERS_WITHIN, |read| read.at_ms >= back_ms).await;
        anyhow::ensure!(
            answered,
            "no reader was answered within {} s after it healed",
            ANSWERS_WITHIN.as_secs()
        );
        let answered_s = back.elapsed().as_secs_f64();
        let shown = |read: &audit::Sighting| read.at_ms >= back_ms && read.info == written.info;
        let seen = self.auditor.sees(audit::owed_after(self.promise), shown).await;
        let seen_s = seen.then(|| back.elapsed().as_secs_f64());
        tell(FaultState::Outlived { answered_s, seen_s })?;
        Ok(Outage::new(&spec.target, felt_ms, back_ms, crashed_ms))
    }
}
