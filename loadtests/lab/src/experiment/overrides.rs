//! What the command line changes of an experiment.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Experiment, Order};
use crate::failure::{Failure, Outcome};

/// What the command line changes of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) rounds: Option<u32>,
    pub(crate) duration: Option<Duration>,
    pub(crate) warm_up: Option<Duration>,
    pub(crate) users: Option<usize>,
    pub(crate) order: Option<Order>,
    /// Of a random order, which it implies.
    pub(crate) seed: Option<u64>,
    /// Arms to keep; empty keeps all.
    pub(crate) arms: Vec<String>,
}

impl Experiment {
    /// Applies the command line's changes. Claims about arms that are left out go with them, as do their points on curves and
    /// their faults.
    pub(crate) fn apply(&mut self, overrides: &Overrides) -> Outcome {
        for name in &overrides.arms {
            if !self.arms.iter().any(|arm| arm.name == *name) {
                return Err(Failure::Usage(format!(
                    "{} has no arm `{name}`; its arms are: {}",
                    self.name,
                    self.arm_names().join(", ")
                )));
            }
        }
        if !overrides.arms.is_empty() {
            self.remove_noise_arm();
            self.arms.retain(|arm| overrides.arms.contains(&arm.name));
            self.add_noise_arm();
            let kept: BTreeSet<&String> = self.arms.iter().map(|arm| &arm.name).collect();
            self.claims
                .retain(|claim| claim.arms.iter().all(|arm| kept.contains(arm)));
            // One that named arms must not become one that names none, which would be for all.
            self.faults
                .retain(|fault| fault.arms.is_empty() || fault.arms.iter().any(|arm| kept.contains(arm)));
            for fault in &mut self.faults {
                fault.arms.retain(|arm| kept.contains(arm));
            }
            for curve in &mut self.curves {
                curve.arms.retain(|arm| kept.contains(arm));
            }
            self.curves.retain(|curve| !curve.arms.is_empty());
        }
        if overrides.users.is_some()
            && let Some(arm) = self.arms.iter().find(|arm| arm.users.is_some())
        {
            return Err(Failure::Usage(format!(
                "--users: {} compares numbers of users, its arm `{}` has its own; choose arms with --arm instead",
                self.name, arm.name
            )));
        }
        self.rounds = overrides.rounds.unwrap_or(self.rounds);
        let implied = overrides.seed.map(|_| Order::Random);
        self.order = overrides.order.or(implied).unwrap_or(self.order);
        if overrides.order == Some(Order::Abba) {
            self.seed = None;
        }
        self.seed = overrides.seed.or(self.seed);
        self.duration = overrides.duration.unwrap_or(self.duration);
        self.warm_up = overrides.warm_up.unwrap_or(self.warm_up);
        self.users = overrides.users.unwrap_or(self.users);
        self.check().map_err(Failure::Usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_and_lengths_can_be_overridden_and_an_unknown_arm_is_named() {
        let mut experiment = Experiment::find("row-lock-demo").unwrap();
        let failure = experiment
            .apply(&Overrides {
                arms: vec!["3 replicas".into()],
                ..Overrides::default()
            })
            .unwrap_err();
        assert!(failure.to_string().contains("`2 replicas`"), "{failure}");
        experiment
            .apply(&Overrides {
                rounds: Some(1),
                duration: Some(Duration::from_secs(3)),
                arms: vec!["1 replica".into()],
                ..Overrides::default()
            })
            .unwrap();
        assert_eq!((experiment.order, experiment.seed), (Order::Abba, None));
        experiment
            .apply(&Overrides {
                seed: Some(7),
                ..Overrides::default()
            })
            .unwrap();
        assert_eq!((experiment.order, experiment.seed), (Order::Random, Some(7)));
        let contradiction = Overrides {
            order: Some(Order::Abba),
            seed: Some(7),
            ..Overrides::default()
        };
        assert_eq!(experiment.apply(&contradiction).unwrap_err().exit_code(), 2);
        assert_eq!(experiment.load_time(), experiment.warm_up + Duration::from_secs(3));
        assert!(experiment.claims.iter().all(|claim| claim.arms == ["1 replica"]));
    }
}
