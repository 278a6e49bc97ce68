//! What is measured in which order, and which topology each arm means.

use deploy::Topology;

use crate::duration;
use crate::events::RunKey;
use crate::experiment::{Arm, Arrivals, Experiment, Order};
use crate::random::Random;

/// All measurements. Every round is a complete block, so that the arms of a round can be compared in pairs.
///
/// In the order `abba` every other round goes through the arms backwards: a machine that becomes slower or faster over the
/// run does not favour the arms at one end. In a random order nothing that comes and goes with a period of its own favours
/// one either; the seed determines it.
pub(super) fn measurements(experiment: &Experiment) -> Vec<RunKey> {
    let mut plan = Vec::new();
    for round in 1..=experiment.rounds {
        let mut block: Vec<RunKey> = experiment
            .arms
            .iter()
            .map(|arm| RunKey {
                round,
                arm: arm.name.clone(),
            })
            .collect();
        match experiment.order {
            Order::Abba if round.is_multiple_of(2) => block.reverse(),
            Order::Abba => {}
            Order::Random => shuffle(&mut block, experiment.seed.unwrap_or_default(), round),
        }
        plan.extend(block);
    }
    plan
}

/// Fisher and Yates; every order is as likely as any other.
fn shuffle(block: &mut [RunKey], seed: u64, round: u32) {
    let mut random = Random::of(seed, round.into());
    for last in (1..block.len()).rev() {
        block.swap(last, random.below(last + 1));
    }
}

/// The common topology with the arm's differences, under name and ports of `base`.
pub(super) fn topology(experiment: &Experiment, arm: &Arm, base: &Topology) -> Topology {
    let mut topology = base.clone();
    let common = &experiment.common;
    topology.postgres_reload_only = arm.reload_only;
    topology.front_single = arm.front_single;
    topology.tenants = experiment.load_of(arm).tenants.count;
    topology.act.clone_from(&arm.act);
    topology.replica_settings.clone_from(&arm.replica_settings);
    topology.cpus.extend(
        common
            .cpus
            .iter()
            .chain(&arm.cpus)
            .map(|(service, cores)| (service.clone(), *cores)),
    );
    topology.postgres_preset = arm.postgres.as_ref().unwrap_or(&common.postgres).clone();
    topology.rtt.extend(common.rtt.iter().chain(&arm.rtt));
    topology.replicas.extend(
        common
            .replicas
            .iter()
            .chain(&arm.replicas)
            .map(|(name, n)| (name.clone(), *n)),
    );
    topology.pgbouncer = arm
        .pgbouncer
        .or(common.pgbouncer)
        .filter(|connections| *connections > 0);
    topology.schema.extend(experiment.schema_of(arm));
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
    changes.extend(arm.tenants.iter().map(|tenants| format!("tenants={tenants}")));
    changes.extend(arm.hot_share.iter().map(|share| format!("hot_share={share}")));
    changes.extend(arm.rate.iter().map(|rate| format!("rate={rate}")));
    if arm.arrivals == Some(Arrivals::Poisson) {
        changes.push("arrivals=poisson".to_owned());
    }
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
        arm.cpus
            .iter()
            .map(|(service, cores)| format!("cpus.{service}={cores}")),
    );
    changes.extend(arm.pgbouncer.iter().map(|connections| match connections {
        0 => "no PgBouncer".to_owned(),
        _ => format!("PgBouncer, {connections} connections"),
    }));
    changes.extend(arm.schema.iter().map(|change| format!("schema: {change}")));
    changes.extend(
        arm.settings
            .iter()
            .map(|(variable, value)| format!("{variable}={value}")),
    );
    changes.extend(
        arm.act
            .iter()
            .flat_map(|(service, commands)| commands.iter().map(move |command| format!("{service} {command}"))),
    );
    changes.extend(arm.replica_settings.iter().flat_map(|(replica, own)| {
        own.iter()
            .map(move |(variable, value)| format!("{replica}: {variable}={value}"))
    }));
    if arm.front_single {
        changes.push("HAProxy knows the first gateway alone".to_owned());
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
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
    fn a_random_order_is_that_of_its_seed_and_every_round_has_every_arm_once() {
        let mut experiment = experiment();
        (experiment.order, experiment.rounds, experiment.seed) = (Order::Random, 40, Some(7));
        let plan = measurements(&experiment);
        assert_eq!(plan, measurements(&experiment));
        let mut first = BTreeSet::new();
        for (block, round) in plan.chunks(3).zip(1..) {
            assert!(block.iter().all(|key| key.round == round));
            let arms: BTreeSet<&str> = block.iter().map(|key| key.arm.as_str()).collect();
            assert_eq!(arms.len(), 3, "{block:?}");
            first.insert(block.iter().map(|key| key.arm.as_str()).collect::<Vec<_>>());
        }
        assert_eq!(first.len(), 6, "in forty rounds each of the six orders comes up");
        experiment.seed = Some(8);
        assert_ne!(plan, measurements(&experiment));
    }

    #[test]
    fn a_seed_is_drawn_only_where_something_is_left_to_chance() {
        let mut experiment = experiment();
        experiment.draw_seed(99);
        assert_eq!(experiment.seed, None);
        experiment.order = Order::Random;
        experiment.draw_seed(u64::MAX);
        let copy = toml::to_string_pretty(&experiment).unwrap();
        assert_eq!(Experiment::parse(&copy, "copy").unwrap().seed, experiment.seed);
        let drawn = experiment.seed;
        experiment.draw_seed(1);
        assert_eq!(experiment.seed, drawn);
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

    #[test]
    fn an_arm_for_several_tenants_has_a_client_for_each_and_a_database_of_its_own() {
        let mut experiment = experiment();
        let moved = "move-tenant BEHNGT shard_1".to_owned();
        let arm = &mut experiment.arms[0];
        (arm.tenants, arm.hot_share) = (Some(4), Some(0.5));
        arm.act.insert("tour-data".to_owned(), vec![moved.clone()]);
        let base = Topology::standard("t");
        let spread = topology(&experiment, &experiment.arms[0], &base);
        assert_eq!((spread.tenants, &spread.act["tour-data"]), (4, &vec![moved]));
        let alone = topology(&experiment, &experiment.arms[1], &spread);
        assert_eq!(
            (alone.tenants, alone.act.len()),
            (1, 0),
            "nothing is left of the arm before"
        );
        assert_eq!(
            changes(&experiment.arms[0]),
            ["tenants=4", "hot_share=0.5", "tour-data move-tenant BEHNGT shard_1"]
        );
    }
}
