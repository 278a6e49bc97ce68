//! The faults of a measurement: inflicted one after the other while the load runs, each until tours are acknowledged again.

use std::sync::Arc;
use std::time::Duration;

use deploy::Stack;
use load::Spread;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::audit::Ledger;
use crate::events::{FaultState, ms_of};
use crate::experiment::{FaultSpec, Moment};

/// Far beyond what any part takes to be found again, so that what does not end is told from what is slow.
pub(super) const RECOVERS_WITHIN: Duration = Duration::from_secs(60);

/// A fault that has reached another state.
#[derive(Debug)]
pub(super) struct Turn {
    /// Place among the faults, counted from 1.
    pub(super) number: usize,
    pub(super) at: Instant,
    pub(super) state: FaultState,
}

/// What the faults are inflicted on, and watched by.
pub(super) struct Scene<'a> {
    pub(super) stack: &'a Stack,
    pub(super) target: Arc<Spread>,
    pub(super) ledger: Arc<Ledger>,
    /// When the load began.
    pub(super) began: Instant,
    pub(super) turns: mpsc::UnboundedSender<Turn>,
}

impl Scene<'_> {
    /// Inflicts those that have their moment in the load; each turn is told as it comes. A fault that fails is told and does not
    /// keep the others from being inflicted.
    pub(super) async fn play(&self, faults: &[FaultSpec]) {
        for (index, spec) in faults.iter().enumerate() {
            let Moment::Load(at) = spec.at else {
                continue;
            };
            sleep_until(self.began + at).await;
            if let Err(error) = self.fault(index + 1, spec).await {
                let reason = format!("{error:#}");
                self.tell(index + 1, FaultState::Failed { reason });
            }
        }
    }

    async fn fault(&self, number: usize, spec: &FaultSpec) -> anyhow::Result<()> {
        let mut growth = self.ledger.growth();
        let (acknowledged, repeated) = (*growth.borrow_and_update(), self.target.repeated());
        let mut gap = Gap::since(Instant::now());
        let inflicted = self.stack.fault(&spec.fault()).await?;
        let hit = inflicted.hit.iter().map(|process| (process.name.clone(), process.pid));
        self.tell(number, FaultState::Inflicted { hit: hit.collect() });

        let healed = inflicted.healed();
        tokio::pin!(healed);
        let healed = loop {
            tokio::select! {
                healed = &mut healed => break healed?,
                () = grown(&mut growth) => gap.seen(),
            }
        };
        let back = Instant::now();
        let crashed_ms = healed.crashed.map(|period| period.map(ms_of));
        self.tell(number, FaultState::Healed { crashed_ms });

        // What was acknowledged before is no recovery.
        growth.mark_unchanged();
        if tokio::time::timeout(RECOVERS_WITHIN, grown(&mut growth)).await.is_err() {
            anyhow::bail!(
                "no tour was acknowledged within {} s after it healed",
                RECOVERS_WITHIN.as_secs()
            );
        }
        gap.seen();
        let state = FaultState::Recovered {
            after_s: back.elapsed().as_secs_f64(),
            acknowledged: *growth.borrow() - acknowledged,
            repeated: self.target.repeated() - repeated,
            longest_gap_s: gap.longest.as_secs_f64(),
        };
        self.tell(number, state);
        Ok(())
    }

    fn tell(&self, number: usize, state: FaultState) {
        let at = Instant::now();
        // The receiver lives as long as the load.
        let _ = self.turns.send(Turn { number, at, state });
    }
}

/// Waits for the next acknowledgement; for ever once there can be none.
async fn grown(growth: &mut watch::Receiver<u64>) {
    if growth.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The longest time between two sights.
struct Gap {
    last: Instant,
    longest: Duration,
}

impl Gap {
    fn since(last: Instant) -> Self {
        Self {
            last,
            longest: Duration::ZERO,
        }
    }

    fn seen(&mut self) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.last);
        self.last = now;
    }
}
