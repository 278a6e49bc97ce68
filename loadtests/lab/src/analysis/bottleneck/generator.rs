//! The load generator is the limit, so the arm says nothing about the system.

use super::Scene;
use crate::results::{Bottleneck, Cause};

/// The generator has one thread; above this share of a core its own scheduling shows in the latencies.
pub(in crate::analysis) const BUSY: f64 = 0.7;
/// By Little's law throughput × cycle is the number of users; less means that users were kept waiting by the generator.
const USERS: f64 = 0.9;
/// Iterations a user below which the ends of the window alone can move Little's product this far.
const ITERATIONS: f64 = 20.0;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let users = scene.users as f64;
    let loads = || scene.runs.iter().filter_map(|run| run.load.as_ref());
    let iterations: u64 = loads().map(|load| load.ok + load.failed()).sum();
    let enough = iterations as f64 >= ITERATIONS * users * scene.runs.len() as f64;
    let open: Vec<&load::OpenLoop> = loads().filter_map(|load| load.open.as_ref()).collect();
    let text = if open.iter().any(|open| open.generator_limited) {
        let late = open.iter().map(|open| open.send_lag_p99_ms).fold(0.0, f64::max);
        format!("One send in a hundred was at least {late:.1} ms late: the generator could not keep the rate.")
    } else if scene.generator_cpu >= BUSY {
        format!(
            "The load generator used {:.0} % of its core.",
            scene.generator_cpu * 100.0
        )
    } else if enough && open.is_empty() && scene.little_n < USERS * users {
        format!(
            "By Little's law only {:.1} of {users} users were at work: the generator fell behind.",
            scene.little_n
        )
    } else {
        return None;
    };
    Some(Bottleneck {
        cause: Cause::GeneratorLimited,
        text,
    })
}
