//! Faults when the load is over: each at the 201 of a change of the configuration that nothing follows.
//!
//! Under load a write that is lost is overwritten by the next one before somebody misses it. Here nobody comes after it, so
//! what a touch had not written down when it answered is missed for good.

use std::time::Duration;

use deploy::Stack;
use load::HttpTarget;
use tokio::time::Instant;

use super::faults::RECOVERS_WITHIN;
use super::measure::Bench;
use super::stream::Stream;
use crate::audit::{self, Auditor, Outage, Sighting};
use crate::events::{FaultState, ms_of, now_ms};
use crate::experiment::{FaultSpec, Moment};
use crate::facts::Facts;

/// What became of them.
#[derive(Default)]
pub(super) struct Outlived {
    pub(super) outages: Vec<Outage>,
    pub(super) failed: Vec<String>,
}

impl Bench<'_> {
    /// The faults that wait for the end of the load, each with its place among all of them, counted from 1.
    pub(super) fn at_last_change(&self) -> impl Iterator<Item = (usize, &FaultSpec)> {
        let numbered = (1..).zip(&self.faults);
        numbered.filter(|(_, spec)| spec.at == Moment::LastChange)
    }

    /// Inflicts them one after the other, each at the 201 of one of `changes`. One that fails is told and does not keep the
    /// others from being inflicted.
    ///
    /// # Errors
    /// The stream cannot be written.
    pub(super) async fn last_changes(
        &self,
        stack: &Stack,
        auditor: &Auditor,
        changes: &[HttpTarget],
        began: Instant,
        stream: &mut Stream,
    ) -> anyhow::Result<Outlived> {
        let owed = audit::owed_after(&Facts::of(stack).promise("touch").unwrap_or_default());
        let mut all = Outlived::default();
        for ((number, spec), change) in self.at_last_change().zip(changes) {
            let mut tell = |state| self.tell(number, began.elapsed(), state, stream);
            match outlive(stack, auditor, spec, change, owed, &mut tell).await {
                Ok(outage) => all.outages.push(outage),
                Err(error) => {
                    let reason = format!("{error:#}");
                    all.failed.push(spec.failed(&reason));
                    tell(FaultState::Failed { reason })?;
                }
            }
        }
        Ok(all)
    }
}

/// Makes the change, inflicts the fault, and waits until a reader has seen the change or is `owed` it. Each turn is told as it
/// comes.
///
/// # Errors
/// The change was not acknowledged, the fault not inflicted or not healed, or no reader was answered again.
async fn outlive(
    stack: &Stack,
    auditor: &Auditor,
    spec: &FaultSpec,
    change: &HttpTarget,
    owed: Duration,
    tell: &mut impl FnMut(FaultState) -> anyhow::Result<()>,
) -> anyhow::Result<Outage> {
    let written = auditor.change(change).await?;
    let inflicted = stack.fault(&spec.fault()).await?;
    let felt_ms = now_ms();
    let hit = inflicted.hit.iter().map(|process| (process.name.clone(), process.pid));
    tell(FaultState::Inflicted { hit: hit.collect() })?;
    let healed = inflicted.healed().await?;
    let (back, back_ms) = (Instant::now(), now_ms());
    let crashed_ms = healed.crashed.map(|period| period.map(ms_of));
    tell(FaultState::Healed { crashed_ms })?;

    let answered = auditor.sees(RECOVERS_WITHIN, |read| read.at_ms >= back_ms).await;
    anyhow::ensure!(
        answered,
        "no reader was answered within {} s after it healed",
        RECOVERS_WITHIN.as_secs()
    );
    let answered_s = back.elapsed().as_secs_f64();
    let shown = |read: &Sighting| read.at_ms >= back_ms && read.info == written.info;
    let seen = auditor.sees(owed, shown).await;
    let seen_s = seen.then(|| back.elapsed().as_secs_f64());
    tell(FaultState::Outlived { answered_s, seen_s })?;
    Ok(Outage::new(&spec.target, felt_ms, back_ms, crashed_ms))
}
