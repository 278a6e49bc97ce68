//! Who decides when a request is sent: the users of a closed loop, or a rate.

use std::time::Duration;

use load::{Shape, Spacing};
use serde::{Deserialize, Serialize};

use super::{Arm, Experiment, Tenants, TokenUse};
use crate::random::Random;

/// More than one generator sends.
const RATE_MAX: f64 = 20_000.0;

/// Distances between the sends of an open loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Arrivals {
    /// All alike.
    #[default]
    Constant,
    /// As of many users who know nothing of each other.
    Poisson,
}

/// How one arm is loaded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ArmLoad {
    /// Users of a closed loop; of an open one the most requests that are under way at once.
    pub(crate) users: usize,
    pub(crate) tenants: Tenants,
    pub(crate) token: TokenUse,
    pub(crate) think: Duration,
    /// Requests a second of an open loop, and how they are spaced; `None` for a closed loop.
    pub(crate) open: Option<(f64, Arrivals)>,
}

impl ArmLoad {
    /// The loop, without its lengths. Every arm of a round has the same arrivals: what they differ in is not the load.
    pub(crate) fn shape(&self, seed: u64, round: u32) -> Shape {
        let Some((rate, arrivals)) = self.open else {
            return Shape::closed(self.users).think(self.think);
        };
        let spacing = match arrivals {
            Arrivals::Constant => Spacing::Constant,
            Arrivals::Poisson => Spacing::Poisson {
                seed: Random::of(seed, round.into()).next(),
            },
        };
        Shape::open(rate).spacing(spacing).in_flight_max(self.users)
    }
}

impl Experiment {
    /// The load of one arm.
    pub(crate) fn load_of(&self, arm: &Arm) -> ArmLoad {
        let arrivals = arm.arrivals.or(self.arrivals).unwrap_or_default();
        ArmLoad {
            users: arm.users.unwrap_or(self.users),
            tenants: Tenants {
                count: arm.tenants.unwrap_or(self.tenants),
                hot_share: arm.hot_share.or(self.hot_share),
            },
            token: arm.token.unwrap_or(self.token),
            think: arm.think.unwrap_or(self.think),
            open: arm.rate.or(self.rate).map(|rate| (rate, arrivals)),
        }
    }

    pub(super) fn check_arrivals(&self) -> Result<(), String> {
        if self.arrivals.is_some() && self.rate.is_none() && self.arms.iter().all(|arm| arm.rate.is_none()) {
            return Err("arrivals goes with rate, the requests a second of an open loop".to_owned());
        }
        for arm in &self.arms {
            let wrong = |why: String| Err(format!("arm `{}`: {why}", arm.name));
            let load = self.load_of(arm);
            match load.open {
                Some((rate, _)) if !(rate > 0.0 && rate <= RATE_MAX) => {
                    return wrong(format!(
                        "rate = {rate}: more than 0 and at most {RATE_MAX} a second are possible"
                    ));
                }
                Some((rate, _)) if !load.think.is_zero() => {
                    return wrong(format!(
                        "rate = {rate} and think: an open loop sends when the time has come, whatever users think"
                    ));
                }
                None if arm.arrivals.is_some() => {
                    return wrong("arrivals goes with rate, the requests a second of an open loop".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
