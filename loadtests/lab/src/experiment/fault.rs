//! The `[[fault]]` tables of an experiment.

use std::time::Duration;

use deploy::Fault;
use serde::{Deserialize, Serialize};

use super::Experiment;
use crate::duration;

/// A fault of every measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultSpec {
    /// A kind of `cargo rowlock fault --list`.
    pub(crate) kind: String,
    /// A server, a service, a replica or a link.
    pub(crate) target: String,
    /// When, counted from the start of the load, warm-up included. It waits for the recovery from the fault before it.
    #[serde(with = "duration")]
    pub(crate) at: Duration,
    /// How long until it heals.
    #[serde(rename = "for", with = "duration")]
    pub(crate) duration: Duration,
    /// What `slow` adds to a round trip.
    #[serde(default, with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) rtt: Option<Duration>,
}

impl FaultSpec {
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
    /// A fault must be one that could be inflicted, and heal while somebody can see the recovery.
    pub(super) fn check_faults(&self) -> Result<(), String> {
        let end = self.warm_up + self.duration;
        for (index, spec) in self.faults.iter().enumerate() {
            let wrong = |why: String| format!("fault {} (`{} {}`): {why}", index + 1, spec.kind, spec.target);
            spec.fault().check().map_err(|error| wrong(error.to_string()))?;
            if spec.at + spec.duration >= end {
                return Err(wrong(format!(
                    "it heals {:?} after the load began, which ends after {end:?}: nobody would see the recovery",
                    spec.at + spec.duration
                )));
            }
        }
        Ok(())
    }
}
