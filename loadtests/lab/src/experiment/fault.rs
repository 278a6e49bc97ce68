//! The `[[fault]]` tables of an experiment.

use std::time::Duration;

use deploy::Fault;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::Experiment;
use crate::duration;

/// A fault of the measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultSpec {
    /// A kind of `cargo rowlock fault --list`.
    pub(crate) kind: String,
    /// A server, a service, a replica or a link.
    pub(crate) target: String,
    /// When.
    pub(crate) at: Moment,
    /// How long until it heals.
    #[serde(rename = "for", with = "duration")]
    pub(crate) duration: Duration,
    /// What `slow` adds to a round trip.
    #[serde(default, with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) rtt: Option<Duration>,
    /// The arms that suffer it; all of them where nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) arms: Vec<String>,
}

/// When a fault is inflicted: `"3s"`, or `"last-change"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Counted from the start of the load, warm-up included. It waits for the recovery from the fault before it.
    Load(Duration),
    /// When the load is over: at the 201 of a change of the configuration that nothing follows. What is lost then nobody
    /// overwrites before it is missed.
    LastChange,
}

/// As in the file.
const LAST_CHANGE: &str = "last-change";

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Load(at) => duration::serialize(at, serializer),
            Self::LastChange => serializer.serialize_str(LAST_CHANGE),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == LAST_CHANGE {
            return Ok(Self::LastChange);
        }
        let at = duration::parse(&text).map_err(|why| D::Error::custom(format!("{why}, or `{LAST_CHANGE}`")))?;
        Ok(Self::Load(at))
    }
}

impl FaultSpec {
    /// Why it failed, for people.
    pub(crate) fn failed(&self, reason: &str) -> String {
        format!("fault {} {}: {reason}", self.kind, self.target)
    }

    pub(crate) fn fault(&self) -> Fault {
        Fault {
            kind: self.kind.clone(),
            target: self.target.clone(),
            duration: self.duration,
            added: self.rtt,
        }
    }
}

impl Experiment {
    /// The faults that an arm suffers, in the order in which they are inflicted. The double of an arm suffers what that does.
    pub(crate) fn faults_of(&self, arm: &str) -> Vec<FaultSpec> {
        let like = self.noise_arms().filter(|[_, double]| double.name == arm);
        let like = like.map_or(arm, |[first, _]| first.name.as_str());
        let suffered = self
            .faults
            .iter()
            .filter(|spec| spec.arms.is_empty() || spec.arms.iter().any(|each| each == like));
        suffered.cloned().collect()
    }

    /// A fault must be one that could be inflicted, on arms that there are, and heal while somebody can see the recovery.
    pub(super) fn check_faults(&self) -> Result<(), String> {
        let end = self.warm_up + self.duration;
        for (index, spec) in self.faults.iter().enumerate() {
            let wrong = |why: String| format!("fault {} (`{} {}`): {why}", index + 1, spec.kind, spec.target);
            spec.fault().check().map_err(|error| wrong(error.to_string()))?;
            if let Some(name) = spec
                .arms
                .iter()
                .find(|name| self.arms.iter().all(|arm| arm.name != **name))
            {
                return Err(wrong(format!(
                    "arms: there is no arm `{name}`; the arms are: {}",
                    self.arm_names().join(", ")
                )));
            }
            match spec.at {
                Moment::Load(at) if at + spec.duration >= end => {
                    return Err(wrong(format!(
                        "it heals {:?} after the load began, which ends after {end:?}: nobody would see the recovery",
                        at + spec.duration
                    )));
                }
                Moment::LastChange if self.changes == 0.0 => {
                    return Err(wrong(format!(
                        "at = `{LAST_CHANGE}`: with `changes = 0` nothing changes the configuration"
                    )));
                }
                Moment::Load(_) | Moment::LastChange => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Overrides;

    fn disturbed() -> Experiment {
        let mut experiment = Experiment::find("row-lock-demo").unwrap();
        let fault = |kind: &str, arms: &[&str]| FaultSpec {
            kind: kind.to_owned(),
            target: "postgres".to_owned(),
            at: Moment::Load(Duration::from_secs(1)),
            duration: Duration::from_secs(1),
            rtt: None,
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
        };
        experiment.faults = vec![fault("old-snapshot", &["2 replicas"]), fault("kill", &[])];
        experiment
    }

    #[test]
    fn a_fault_at_the_last_change_needs_changes_and_a_moment_is_read_as_it_is_written() {
        let mut experiment = disturbed();
        experiment.faults[1].at = Moment::LastChange;
        assert!(experiment.check_faults().unwrap_err().contains("changes = 0"));
        experiment.changes = 0.1;
        experiment.check_faults().unwrap();
        let copy = toml::to_string_pretty(&experiment).unwrap();
        assert!(
            copy.contains("at = \"last-change\"") && copy.contains("at = \"1s\""),
            "{copy}"
        );
        assert_eq!(Experiment::parse(&copy, "elsewhere").unwrap(), experiment);
        let misspelt = Experiment::parse(&copy.replace("last-change", "last"), "elsewhere").unwrap_err();
        assert!(misspelt.contains("last-change"), "{misspelt}");
    }

    fn suffered(experiment: &Experiment, arm: &str) -> Vec<String> {
        let faults = experiment.faults_of(arm);
        faults.into_iter().map(|fault| fault.kind).collect()
    }

    #[test]
    fn an_arm_suffers_the_faults_that_name_it_and_those_that_name_none() {
        let experiment = disturbed();
        experiment.check_faults().unwrap();
        assert_eq!(suffered(&experiment, "1 replica"), ["kill"]);
        assert_eq!(suffered(&experiment, "2 replicas"), ["old-snapshot", "kill"]);
    }

    #[test]
    fn arms_that_are_left_out_take_their_faults_along_and_a_double_has_those_of_its_arm() {
        let chosen = |arms: &[&str]| {
            let mut experiment = disturbed();
            experiment.noise_floor = true;
            experiment
                .apply(&Overrides {
                    arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
                    ..Overrides::default()
                })
                .unwrap();
            experiment
        };
        let first = chosen(&["1 replica", "1 replica, update-last"]);
        assert_eq!(first.faults.len(), 1);
        let second = chosen(&["2 replicas"]);
        assert_eq!(suffered(&second, "2 replicas (again)"), ["old-snapshot", "kill"]);
    }
}
