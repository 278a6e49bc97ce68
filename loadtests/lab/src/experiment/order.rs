//! In which order the arms are measured, and which preflight check has to stop them.

use serde::{Deserialize, Serialize};

use super::{Arm, Experiment};
use crate::results::CheckId;

/// The order of the arms over the rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Every other round goes through the arms backwards.
    #[default]
    Abba,
    /// Randomised complete blocks: every round goes through all arms in an order of its own.
    Random,
}

impl Order {
    /// For serde: an order that need not be written.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Experiment {
    /// The check that has to stop an arm before it is measured, if one has to.
    pub(crate) fn expected_preflight(&self, arm: &Arm) -> Option<CheckId> {
        arm.expect_preflight.or(self.expect_preflight)
    }

    /// Settles what the experiment leaves to chance, so that its copy says what was drawn.
    pub(crate) fn draw_seed(&mut self, drawn: u64) {
        if self.order == Order::Random {
            // A TOML file has signed integers.
            self.seed.get_or_insert(drawn >> 1);
        }
    }

    pub(super) fn check_order(&self) -> Result<(), String> {
        match (self.order, self.seed) {
            (Order::Abba, Some(seed)) => Err(format!(
                "seed = {seed} goes with order = \"random\"; the order \"abba\" leaves nothing to chance"
            )),
            (Order::Random, Some(seed)) if i64::try_from(seed).is_err() => {
                Err(format!("seed = {seed}: at most {} is possible", i64::MAX))
            }
            _ => Ok(()),
        }
    }
}
