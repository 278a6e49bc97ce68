//! What is measured in which order, and which topology each arm means.

use deploy::Topology;

use crate::duration;
use crate::events::RunKey;
use crate::experiment::{Arm, Experiment};

/// All measurements. Every other round goes through the arms backwards, so that a machine that becomes slower or faster
/// over the run does not favour the arms at one end.
pub(super) fn measurements(experiment: &Experiment) -> Vec<RunKey> {
    let mut plan = Vec::new();
    for round in 1..=experiment.rounds {
        let keys = experiment.arms.iter().map(|arm| RunKey {
            round,
            arm: arm.name.clone(),
        });
        if round.is_multiple_of(2) {
            plan.extend(keys.rev());
        } else {
            plan.extend(keys);
        }
    }
    plan
}

/// The common topology with the arm's differences, under name and ports of `base`.
pub(super) fn topology(experiment: &Experiment, arm: &Arm, base: &Topology) -> Topology {
    let mut topology = base.clone();
    let common = &experiment.common;
    topology.postgres_reload_only = arm.reload_only;
    topology.postgres_preset = arm.postgres.as_ref().unwrap_or(&common.postgres).clone();
    topology.rtt.extend(common.rtt.iter().chain(&arm.rtt));
    topology.replicas.extend(
        common
            .replicas
            .iter()
            .chain(&arm.replicas)
            .map(|(name, n)| (name.clone(), *n)),
    );
    let volumes = common.volumes_mb.iter();
    topology
        .volumes
        .extend(volumes.map(|(server, mb)| (server.clone(), mb * 1_000_000)));
    let settings = common.settings.iter().chain(&arm.settings);
    topology
        .settings
        .extend(settings.map(|(variable, value)| (variable.clone(), value.clone())));
    topology
}

/// What the arm sets differently from the common topology, for people.
pub(super) fn changes(arm: &Arm) -> Vec<String> {
    let mut changes: Vec<String> = arm.users.iter().map(|users| format!("users={users}")).collect();
    changes.extend(arm.token.iter().map(|token| format!("token={token}")));
    changes.extend(
        arm.think
            .iter()
            .map(|think| format!("think={}", duration::format(*think))),
    );
    let reloaded = if arm.reload_only { ", reloaded only" } else { "" };
    changes.extend(arm.postgres.iter().map(|preset| format!("postgres={preset}{reloaded}")));
    changes.extend(
        arm.rtt
            .iter()
            .map(|(link, rtt)| format!("rtt.{link}={}", duration::format(*rtt))),
    );
    changes.extend(
        arm.replicas
            .iter()
            .map(|(service, replicas)| format!("{service}={replicas}")),
    );
    changes.extend(
        arm.settings
            .iter()
            .map(|(variable, value)| format!("{variable}={value}")),
    );
    changes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn experiment() -> Experiment {
        Experiment::find("row-lock-demo").unwrap()
    }

    #[test]
    fn every_other_round_runs_backwards() {
        let mut experiment = experiment();
        experiment.rounds = 2;
        let order: Vec<(u32, String)> = measurements(&experiment)
            .into_iter()
            .map(|key| (key.round, key.arm))
            .collect();
        let names: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
        let forth = names.iter().map(|name| (1, (*name).to_owned()));
        let back = names.iter().rev().map(|name| (2, (*name).to_owned()));
        assert_eq!(order, forth.chain(back).collect::<Vec<_>>());
    }

    #[test]
    fn an_arm_is_the_common_topology_with_its_differences() {
        let experiment = experiment();
        let base = Topology::standard("t");
        let first = topology(&experiment, &experiment.arms[0], &base);
        let last = topology(&experiment, &experiment.arms[2], &base);
        assert_eq!(first.rtt[&deploy::LinkName::Db], Duration::from_millis(1));
        assert_eq!(first.settings["TOUR_DATA_TOUCH"], "update-first");
        assert_eq!(last.settings["TOUR_DATA_TOUCH"], "update-last");
        assert_eq!(last.settings["TOUR_DATA_DB_POOL_MAX"], "10");
        assert_eq!(
            topology(&experiment, &experiment.arms[1], &base).replicas["tour-data"],
            2
        );
        assert_eq!(changes(&experiment.arms[1]), ["tour-data=2"]);
        assert_eq!(changes(&experiment.arms[2]), ["TOUR_DATA_TOUCH=update-last"]);
        assert!(changes(&experiment.arms[0]).is_empty());
    }
}
