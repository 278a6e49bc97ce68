//! Faults as data: what is done to which part of a running stack, for how long.
//!
//! A kind of fault is one file in `faults/` and its line in [`ALL`]. It says what it can be aimed at, inflicts itself, and
//! gives back how it heals; [`crate::Stack::fault`] does the rest: it refuses what cannot be aimed at, waits, and heals.
//! Every fault is bounded in time and heals by itself, also when nobody waits for it.

mod cut;
mod fill_disk;
mod kill;
mod old_snapshot;
mod restart;
mod slow;
mod stop;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::DeployError;
use crate::links::Link;
use crate::process::Process;
use crate::stack::Ground;
use crate::topology::LinkName;

/// The kinds of faults, by name.
const ALL: [&Spec; 7] = [
    &cut::SPEC,
    &fill_disk::SPEC,
    &kill::SPEC,
    &old_snapshot::SPEC,
    &restart::SPEC,
    &slow::SPEC,
    &stop::SPEC,
];

/// A fault may last this long; a longer one is a typing error, or a stack that should be taken down.
const LONGEST: Duration = Duration::from_secs(300);
/// What `slow` adds when nothing is said.
const ADDED: Duration = Duration::from_millis(50);
/// The longest that can be added to a round trip; beyond it every timeout of the services runs out, which is `cut`.
const ADDED_MAX: Duration = Duration::from_secs(10);

/// A fault to inflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Name of its kind: `kill`, `cut` …; see [`kinds`].
    pub kind: String,
    /// What it is aimed at: a server (`postgres`), a service (`tour-data`, all its replicas), one replica
    /// (`tour-data-2`), or a link (`db`).
    pub target: String,
    /// Time until it heals.
    pub duration: Duration,
    /// What `slow` adds to a round trip; nothing for the other kinds.
    pub added: Option<Duration>,
}

/// A kind of fault, for people.
#[derive(Debug, Clone, Serialize)]
pub struct FaultKind {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// What it can be aimed at.
    pub targets: Vec<&'static str>,
}

/// Every kind there is.
pub fn kinds() -> Vec<FaultKind> {
    let kinds = ALL.iter().map(|spec| FaultKind {
        name: spec.name,
        summary: spec.summary,
        targets: match spec.on {
            On::Processes(_) => vec!["postgres", "redis", "rabbitmq", "haproxy", "SERVICE", "SERVICE-N"],
            On::Servers(servers, _) => servers.to_vec(),
            On::Link(_) => LinkName::ALL.map(LinkName::as_str).to_vec(),
        },
    });
    kinds.collect()
}

/// A kind of fault.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) crashes: Crashes,
    pub(crate) on: On,
}

/// Whether what a fault hits is kept from writing down what it holds in memory: a server may then lose what it declares to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crashes {
    Not,
    /// While it is inflicted.
    AtOnce,
    /// Perhaps, at some time until it has healed.
    Meanwhile,
}

/// What a kind can be aimed at, with how it is inflicted there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum On {
    /// Servers, services (all replicas) and single replicas.
    Processes(for<'a> fn(&'a [Process]) -> Step<'a, Heal>),
    /// These servers.
    Servers(
        &'static [&'static str],
        for<'a> fn(&'a Ground, &'a Process) -> Step<'a, Heal>,
    ),
    Link(for<'a> fn(&'a Arc<Link>, &'a Fault) -> Step<'a, Heal>),
}

/// A step of a fault, which borrows from the stack.
pub(crate) type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, DeployError>> + Send + 'a>>;

/// How a fault heals; called once.
pub(crate) type Heal = Box<dyn for<'a> FnOnce(&'a Ground) -> Step<'a, ()> + Send>;

impl Fault {
    /// Its kind.
    ///
    /// # Errors
    /// There is no such kind, or a value is out of range; the error names the known kinds.
    pub(crate) fn spec(&self) -> Result<&'static Spec, DeployError> {
        let Some(spec) = ALL.into_iter().find(|spec| spec.name == self.kind) else {
            let known: Vec<&str> = ALL.iter().map(|spec| spec.name).collect();
            return Err(DeployError::Usage(format!(
                "there is no fault `{}`; there are {}",
                self.kind,
                known.join(", ")
            )));
        };
        if self.duration.is_zero() || self.duration > LONGEST {
            return Err(DeployError::Usage(format!(
                "a fault lasts more than 0 s and at most {} s, not {:?}",
                LONGEST.as_secs(),
                self.duration
            )));
        }
        if let Some(added) = self.added {
            if spec.name != slow::SPEC.name {
                return Err(DeployError::Usage(format!(
                    "only `{}` takes a round trip to add, `{}` does not",
                    slow::SPEC.name,
                    spec.name
                )));
            }
            if added.is_zero() || added > ADDED_MAX {
                return Err(DeployError::Usage(format!(
                    "`{}` adds more than 0 and at most {} s to a round trip, not {added:?}",
                    spec.name,
                    ADDED_MAX.as_secs()
                )));
            }
        }
        Ok(spec)
    }

    /// Refuses what needs no running stack to be seen to be wrong.
    ///
    /// # Errors
    /// [`DeployError::Usage`]: an unknown kind, or a value out of range.
    pub fn check(&self) -> Result<(), DeployError> {
        self.spec().map(|_| ())
    }

    /// For messages: `kill postgres`.
    pub fn says(&self) -> String {
        format!("{} {}", self.kind, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: &str) -> Fault {
        Fault {
            kind: kind.to_owned(),
            target: "postgres".to_owned(),
            duration: Duration::from_secs(1),
            added: None,
        }
    }

    #[test]
    fn kinds_are_listed_in_the_order_of_their_names_and_each_is_found() {
        let names: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for name in names {
            assert_eq!(fault(name).spec().unwrap().name, name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_fault_is_wrong_usage_and_says_what_would_be_right() {
        let long = Fault {
            duration: LONGEST + Duration::from_secs(1),
            ..fault("kill")
        };
        let added = Fault {
            added: Some(ADDED),
            ..fault("kill")
        };
        let too_slow = Fault {
            added: Some(ADDED_MAX * 2),
            ..fault("slow")
        };
        for (fault, told) in [
            (fault("kil"), "cut, fill-disk, kill, old-snapshot, restart, slow, stop"),
            (long, "at most 300 s"),
            (added, "only `slow`"),
            (too_slow, "at most 10 s"),
        ] {
            let error = fault.check().unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
