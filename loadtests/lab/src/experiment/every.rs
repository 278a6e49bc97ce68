//! `[[every]]`: an arm for each alternative that a service knows, so that one that was added is ranked without an edit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Arm, Experiment};
use crate::describe::Descriptions;
use crate::failure::{Failure, Outcome};

/// Stands for the alternative in the name of its arm.
const PLACE: &str = "{}";

/// Arms for all alternatives of an axis; those that the file has already stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Every {
    /// The variable that chooses the alternative, such as `TOUR_DATA_TOUCH`.
    variable: String,
    /// Name of an arm, with `{}` for the alternative.
    #[serde(default = "place", skip_serializing_if = "is_place")]
    name: String,
    /// What these arms have in common.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
}

fn place() -> String {
    PLACE.to_owned()
}

fn is_place(name: &String) -> bool {
    name == PLACE
}

impl Every {
    fn arm(&self, alternative: &str) -> Arm {
        let mut settings = self.settings.clone();
        settings.insert(self.variable.clone(), alternative.to_owned());
        Arm {
            name: self.name.replace(PLACE, alternative),
            settings,
            ..Arm::default()
        }
    }
}

impl Experiment {
    /// Adds an arm for each alternative that has none yet, after those that are there.
    ///
    /// # Errors
    /// No service has an axis that the variable chooses from, or two arms get one name.
    pub(crate) fn add_every(&mut self, descriptions: &Descriptions) -> Outcome {
        self.remove_noise_arm();
        for every in self.every.clone() {
            let choices = descriptions.choices(&every.variable).map_err(|failure| {
                let file = &self.name;
                Failure::Usage(format!("{file}: [[every]]: {failure}"))
            })?;
            for alternative in choices {
                let arm = every.arm(alternative);
                let there = |other: &Arm| {
                    arm.settings
                        .iter()
                        .all(|(name, value)| other.settings.get(name) == Some(value))
                };
                if !self.arms.iter().any(there) {
                    self.arms.push(arm);
                }
            }
        }
        self.add_noise_arm();
        self.check()
            .map_err(|why| Failure::Usage(format!("{}: {why}", self.name)))
    }

    pub(super) fn check_every(&self) -> Result<(), String> {
        let nameless = self.every.iter().find(|every| !every.name.contains(PLACE));
        nameless.map_or(Ok(()), |every| {
            Err(format!(
                "every.name = `{}`: `{PLACE}` is missing, which stands for the alternative",
                every.name
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{describe, scaffold};

    fn descriptions() -> Descriptions {
        let touches = ["update-first", "update-last", "mine"];
        let alternatives = touches.map(|name| serde_json::json!({"axis": "touch", "name": name}));
        let says = serde_json::json!({
            "config": [{"name": "TOUR_DATA_TOUCH"}, {"name": "TOUR_DATA_INSERTS"}],
            "alternatives": alternatives,
        });
        Descriptions::of("tour-data", says)
    }

    #[test]
    fn an_alternative_that_has_no_arm_gets_one_and_the_others_stay_as_they_are() {
        let mut experiment = Experiment::find("hot-row-fixes").unwrap();
        let before = experiment.arms.clone();
        experiment.add_every(&descriptions()).unwrap();
        let (there, added) = experiment.arms.split_at(before.len());
        assert_eq!(there, before);
        let added: Vec<(&str, &str)> = added
            .iter()
            .map(|arm| (arm.name.as_str(), arm.settings["TOUR_DATA_TOUCH"].as_str()))
            .collect();
        assert_eq!(added, [("mine", "mine")]);
        // A copy in a result folder has them already.
        let copy = toml::to_string_pretty(&experiment).unwrap();
        let mut again = Experiment::parse(&copy, "elsewhere").unwrap();
        again.add_every(&descriptions()).unwrap();
        assert_eq!(again, experiment);
    }

    #[test]
    fn the_common_settings_of_the_arms_are_part_of_what_they_are() {
        let mut experiment = Experiment::find("fixes-batched").unwrap();
        experiment.every.retain(|every| every.variable == "TOUR_DATA_TOUCH");
        experiment.add_every(&descriptions()).unwrap();
        let last = experiment.arms.last().unwrap();
        assert_eq!(last.name, "multi-row, mine");
        assert_eq!(last.settings["TOUR_DATA_INSERTS"], "multi-row");
    }

    #[test]
    fn the_experiments_about_an_axis_have_an_arm_for_what_is_added_to_it() {
        let gates = [("touch", "touch-gate"), ("announce", "announce-gate")];
        let ranked = scaffold::AXES
            .iter()
            .filter_map(|axis| Some((axis.name, axis.ranked_by?)));
        for (axis, name) in ranked.chain(gates) {
            let experiment = Experiment::find(name).unwrap();
            let variable = describe::variable("tour-data", axis);
            let has = experiment.every.iter().any(|every| every.variable == variable);
            assert!(has, "{name} has no [[every]] with {variable}");
        }
    }

    #[test]
    fn what_no_alternative_is_chosen_by_is_wrong_usage() {
        for (variable, told) in [
            ("TOUR_DATA_TUOCH", "TOUR_DATA_TOUCH"),
            ("TOUR_DATA_INSERTS", "chooses no alternative"),
        ] {
            let mut experiment = Experiment::find("hot-row-fixes").unwrap();
            variable.clone_into(&mut experiment.every[0].variable);
            let failure = experiment.add_every(&descriptions()).unwrap_err();
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.to_string().contains(told), "{failure}");
        }
        let mut experiment = Experiment::find("hot-row-fixes").unwrap();
        "all".clone_into(&mut experiment.every[0].name);
        assert!(experiment.check().unwrap_err().contains("{}"));
    }
}
