//! `noise_floor = true`: the first arm once more, under another name. What differs between the two is noise.

use super::{Arm, Experiment};

/// Ending of the second one's name.
const AGAIN: &str = " (again)";

impl Experiment {
    /// The first arm and its double, where the experiment asks for a noise floor.
    pub(crate) fn noise_arms(&self) -> Option<[&Arm; 2]> {
        let first = self.arms.first().filter(|_| self.noise_floor)?;
        let double = self.arms.iter().find(|arm| arm.name == double_name(first))?;
        Some([first, double])
    }

    /// Adds the double as the last arm, as far from the first as any arm it is compared with; a copy in a result folder
    /// has it already.
    pub(super) fn add_noise_arm(&mut self) {
        let Some(first) = self.arms.first().filter(|_| self.noise_floor) else {
            return;
        };
        let double = Arm {
            name: double_name(first),
            ..first.clone()
        };
        if self.arms.iter().all(|arm| arm.name != double.name) {
            self.arms.push(double);
        }
    }

    /// Takes the double away, before other arms are chosen.
    pub(super) fn remove_noise_arm(&mut self) {
        if let Some([_, double]) = self.noise_arms() {
            let name = double.name.clone();
            self.arms.retain(|arm| arm.name != name);
        }
    }

    pub(super) fn check_noise_arm(&self) -> Result<(), String> {
        let Some([first, double]) = self.noise_arms() else {
            return Ok(());
        };
        let same = Arm {
            name: double.name.clone(),
            ..first.clone()
        };
        if *double == same {
            return Ok(());
        }
        Err(format!(
            "noise_floor: arm `{}` differs from `{}`, whose double it has to be; leave it out, it is added by itself",
            double.name, first.name
        ))
    }
}

fn double_name(first: &Arm) -> String {
    format!("{}{AGAIN}", first.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Overrides;

    fn with_floor() -> Experiment {
        let mut experiment = Experiment::find("row-lock-demo").unwrap();
        experiment.noise_floor = true;
        experiment.add_noise_arm();
        experiment
    }

    #[test]
    fn one_line_adds_the_first_arm_once_more_and_a_copy_does_not_add_it_again() {
        let experiment = with_floor();
        assert_eq!(experiment.arms.len(), 4);
        let [first, double] = experiment.noise_arms().unwrap();
        assert_eq!(
            (first.name.as_str(), double.name.as_str()),
            ("1 replica", "1 replica (again)")
        );
        let copy = toml::to_string_pretty(&experiment).unwrap();
        assert_eq!(Experiment::parse(&copy, "elsewhere").unwrap(), experiment);
        let other = copy.replacen(
            "name = \"1 replica (again)\"",
            "name = \"1 replica (again)\"\nusers = 7",
            1,
        );
        let error = Experiment::parse(&other, "elsewhere").unwrap_err();
        assert!(error.contains("differs from `1 replica`"), "{error}");
    }

    #[test]
    fn chosen_arms_have_the_double_of_the_first_of_them() {
        let mut experiment = with_floor();
        let chosen = ["2 replicas", "1 replica, update-last"].map(str::to_owned);
        experiment
            .apply(&Overrides {
                arms: chosen.to_vec(),
                ..Overrides::default()
            })
            .unwrap();
        let names: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["2 replicas", "1 replica, update-last", "2 replicas (again)"]);
    }
}
