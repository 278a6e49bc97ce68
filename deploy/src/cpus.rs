//! A limit on the CPU of a replica: a control group of its own, of version 1 or 2, whichever the machine has.
//!
//! A limit that was written is not yet one that holds: a kernel may know the file and not the scheduler's part, a container
//! may show a group that is not the process's. So it is measured as well, by a program in the same group that takes all it
//! can get.

mod burn;
mod group;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::DeployError;
use burn::burn;
use group::Group;
pub(crate) use group::join;

/// The limits of a stack's replicas.
#[derive(Debug, Default)]
pub(crate) struct Limits(BTreeMap<String, Limit>);

#[derive(Debug)]
struct Limit {
    cores: f64,
    /// Why there is none, where the machine does not permit it.
    group: Result<Group, String>,
}

/// What a replica's group was found to give.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuUse {
    /// Cores that the replica may use.
    pub asked: f64,
    /// Cores that a program in its group got that wanted all of them.
    pub got: f64,
    /// The kernel counted that it held the group back meanwhile.
    pub throttled: bool,
    /// The replica itself is in that group.
    pub inside: bool,
}

impl Limits {
    /// Limits one replica. Where the machine does not permit it the replica runs without; [`Limits::refused`] says so.
    pub(crate) fn add(&mut self, replica: &str, cores: f64, stack: &Path) {
        let group = Group::make(&group::name(stack, replica), cores);
        self.0.insert(replica.to_owned(), Limit { cores, group });
    }

    /// The folder of the group of every replica that has one.
    pub(crate) fn groups(&self) -> BTreeMap<String, PathBuf> {
        let groups = self.0.iter().filter_map(|(replica, limit)| {
            let group = limit.group.as_ref().ok()?;
            Some((replica.clone(), group.folder().to_owned()))
        });
        groups.collect()
    }

    /// The replicas that should have a limit and run without, with the reason.
    pub(crate) fn refused(&self) -> BTreeMap<String, String> {
        let refused = self.0.iter().filter_map(|(replica, limit)| {
            let why = limit.group.as_ref().err()?;
            Some((replica.clone(), why.clone()))
        });
        refused.collect()
    }

    /// Measures what a replica's limit comes to.
    pub(crate) async fn measure(&self, replica: &str, pid: u32, run: &str) -> Result<CpuUse, DeployError> {
        let limit = self
            .0
            .get(replica)
            .ok_or_else(|| DeployError::Usage(format!("{replica} has no limit on its CPU")))?;
        let group = limit
            .group
            .as_ref()
            .map_err(|why| DeployError::start(replica, why, None))?;
        let measured = async {
            let before = group.throttled()?;
            let got = burn(group, limit.cores, run).await?;
            Ok(CpuUse {
                asked: limit.cores,
                got,
                throttled: group.throttled()? > before,
                inside: group.members()?.contains(&pid),
            })
        };
        let measured: std::io::Result<CpuUse> = measured.await;
        measured.map_err(|error| DeployError::io(format!("measure the CPU limit of {replica}"), error))
    }
}

/// Refuses what is no limit: nothing at all, or everything there is.
pub(crate) fn check(service: &str, cores: f64) -> Result<(), DeployError> {
    let machine = std::thread::available_parallelism().map_or(1, usize::from);
    if cores.is_finite() && cores >= LEAST && cores < machine as f64 {
        return Ok(());
    }
    Err(DeployError::Usage(format!(
        "a limit of {cores} cores for {service} is none: between {LEAST} and less than the {machine} of this machine"
    )))
}

/// A service does not come up in its time with less.
const LEAST: f64 = 0.05;
