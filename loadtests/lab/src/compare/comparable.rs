//! Whether two runs can be compared at all. What is asked of both is everything that the experiment's copy holds, so that a
//! key which is added to experiments is asked as well; left out is what does not change a measurement.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Run;
use crate::results::{Arm, Environment, RTT_TOLERANCE};

/// Keys of an experiment that say nothing of how an arm is measured. Rounds may differ: they only narrow the interval.
const NO_MATTER: [&str; 10] = [
    "name",
    "question",
    "hypothesis",
    "published",
    "rounds",
    "order",
    "seed",
    "noise_floor",
    "curve",
    "claim",
];
/// Memory is reported a little differently from one boot to the next.
const MEMORY_TOLERANCE: f64 = 0.05;

/// Why the runs cannot be compared; empty when they can.
pub(super) fn reasons_against(a: &Run, b: &Run) -> Vec<String> {
    let (before, after) = (&a.archived.results, &b.archived.results);
    if before.experiment != after.experiment {
        return vec![format!(
            "A is a run of the experiment {}, B of {}",
            before.experiment, after.experiment
        )];
    }
    let mut reasons = Vec::new();
    for (name, run) in [("A", before), ("B", after)] {
        if !run.completed {
            let why = run.failures.first().map_or("it was cut off", String::as_str);
            reasons.push(format!("{name} is no whole run: {why}"));
        }
        reasons.extend(
            run.arms
                .iter()
                .filter_map(|arm| of_one(arm).map(|why| format!("{name}: {why}"))),
        );
    }
    machine(&before.environment, &after.environment, &mut reasons);
    experiments(a, b, &mut reasons);
    for arm in &before.arms {
        let same = after.arms.iter().find(|other| other.name == arm.name);
        if same.is_some_and(|same| same.not_in_force != arm.not_in_force) {
            reasons.push(format!(
                "arm `{}`: other parameters of the PostgreSQL preset are in force",
                arm.name
            ));
        }
    }
    reasons
}

/// What makes an arm's figures incomparable with any other's.
fn of_one(arm: &Arm) -> Option<String> {
    if !arm.audit.passed {
        return Some(format!("the audit of arm `{}` failed or is missing", arm.name));
    }
    let off = arm.rtt_asked_ms > 0.0 && (arm.rtt_ms / arm.rtt_asked_ms - 1.0).abs() > RTT_TOLERANCE;
    off.then(|| {
        format!(
            "arm `{}` was measured at a round trip of {:.2} ms instead of {:.2} ms",
            arm.name, arm.rtt_ms, arm.rtt_asked_ms
        )
    })
}

fn machine(a: &Environment, b: &Environment, reasons: &mut Vec<String>) {
    if a.cpus != b.cpus || a.cpu_model != b.cpu_model {
        reasons.push(format!(
            "other machines: {} × {} in A, {} × {} in B",
            a.cpus, a.cpu_model, b.cpus, b.cpu_model
        ));
    }
    let off = a.memory_mb.abs_diff(b.memory_mb) as f64;
    if off > MEMORY_TOLERANCE * a.memory_mb.max(b.memory_mb) as f64 {
        reasons.push(format!(
            "other machines: {} MB of memory in A, {} MB in B",
            a.memory_mb, b.memory_mb
        ));
    }
}

/// Load, topology and arms as they were run, command line included.
fn experiments(a: &Run, b: &Run, reasons: &mut Vec<String>) {
    let [arms_a, arms_b] = [a, b].map(|run| {
        let arms = run.experiment.arms.iter();
        arms.map(|arm| arm.name.clone()).collect::<BTreeSet<_>>()
    });
    for (here, only) in [("A", arms_a.difference(&arms_b)), ("B", arms_b.difference(&arms_a))] {
        reasons.extend(only.map(|arm| format!("arm `{arm}` is in {here} only")));
    }
    let [mut keys_a, mut keys_b] = [a, b].map(|run| keys(run, |arm| arms_a.contains(arm) && arms_b.contains(arm)));
    let all: BTreeSet<String> = keys_a.keys().chain(keys_b.keys()).cloned().collect();
    for key in all {
        let of = |keys: &mut BTreeMap<String, String>| keys.remove(&key).unwrap_or_else(|| "nothing".to_owned());
        let (value_a, value_b) = (of(&mut keys_a), of(&mut keys_b));
        if value_a != value_b {
            reasons.push(format!("{key}: {value_a} in A, {value_b} in B"));
        }
    }
}

/// Every key of the experiment that matters, as a path, with its value.
fn keys(run: &Run, in_both: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    // An experiment is plain data, which JSON can always hold.
    let Ok(Value::Object(whole)) = serde_json::to_value(&run.experiment) else {
        return keys;
    };
    for (key, value) in whole.into_iter().filter(|(key, _)| !NO_MATTER.contains(&key.as_str())) {
        let Value::Array(arms) = &value else {
            flatten(&key, &value, &mut keys);
            continue;
        };
        for (index, item) in arms.iter().enumerate() {
            match item["name"].as_str() {
                Some(name) if !in_both(name) => {}
                Some(name) => flatten(&format!("{key} `{name}`"), item, &mut keys),
                None => flatten(&format!("{key} {}", index + 1), item, &mut keys),
            }
        }
    }
    keys
}

fn flatten(path: &str, value: &Value, keys: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                flatten(&format!("{path}.{key}"), value, keys);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            keys.insert(path.to_owned(), text.clone());
        }
        other => {
            keys.insert(path.to_owned(), other.to_string());
        }
    }
}

/// What may explain a change and does not forbid to look at it.
pub(super) fn differences(a: &Run, b: &Run) -> Vec<String> {
    let (a, b) = (&a.archived.results, &b.archived.results);
    let (here, there) = (&a.environment, &b.environment);
    let mut pairs = vec![
        ("Rowlock".to_owned(), here.rowlock.clone(), there.rowlock.clone()),
        ("Linux".to_owned(), here.kernel.clone(), there.kernel.clone()),
        ("rounds".to_owned(), a.rounds.to_string(), b.rounds.to_string()),
        ("started".to_owned(), here.started_at.clone(), there.started_at.clone()),
    ];
    let servers: BTreeSet<&String> = here.servers.keys().chain(there.servers.keys()).collect();
    let version = |of: &Environment, server: &String| of.servers.get(server).cloned().unwrap_or_default();
    pairs.extend(
        servers
            .into_iter()
            .map(|server| (server.clone(), version(here, server), version(there, server))),
    );
    pairs
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what}: {a} in A, {b} in B"))
        .collect()
}
