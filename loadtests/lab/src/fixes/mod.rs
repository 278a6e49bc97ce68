//! The fixes: every alternative of every axis, what it promises and gives up, and what was last measured of it.

mod measured;
pub(crate) mod render;

use std::cmp::Ordering;

use serde::Serialize;

use crate::describe::{Alternative, Descriptions, variable};
use crate::experiment::Experiment;
use crate::facts::Promise;

pub(crate) use measured::{Measured, Run};

/// One alternative.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Fix {
    pub(crate) service: String,
    pub(crate) axis: String,
    pub(crate) name: String,
    /// The idea in one sentence.
    pub(crate) summary: String,
    /// Whether the published system works this way.
    pub(crate) baseline: bool,
    /// Absent where neither readers nor subscribers notice the difference.
    pub(crate) promise: Option<Promise>,
    pub(crate) gives_up: String,
    /// Where it is not to be used.
    pub(crate) not_for: String,
    /// Absent where nothing was measured.
    pub(crate) measured: Option<Measured>,
    /// Name of the experiment that would measure it again, or for the first time; absent where none does.
    pub(crate) measured_by: Option<String>,
}

/// The axis about where rows are.
const PLACEMENT: &str = "placement";

/// Every alternative, axis by axis as the services list them; the baseline first, then those that were measured, the fastest
/// first, then the others by name. `shipped` are the experiments there are, `runs` those that were run, latest first.
pub(crate) fn list(descriptions: &Descriptions, shipped: &[Experiment], runs: &[Run]) -> Vec<Fix> {
    let all: Vec<(&str, &Alternative)> = descriptions.alternatives().collect();
    let mut axes: Vec<(&str, &str)> = Vec::new();
    for (service, alternative) in &all {
        if !axes.contains(&(*service, alternative.axis.as_str())) {
            axes.push((service, &alternative.axis));
        }
    }
    axes.into_iter()
        .flat_map(|(service, axis)| {
            let of_axis = all.iter().filter(|(of, it)| *of == service && it.axis == axis);
            // Places are made with the database, so an arm that has other places has another database.
            let along = match axis {
                PLACEMENT => descriptions.schema_settings(service),
                _ => &[],
            };
            let of_axis: Vec<&Alternative> = of_axis.map(|(_, it)| *it).collect();
            let mut fixes: Vec<Fix> = on(service, &of_axis, along, shipped, runs);
            fixes.sort_by(order);
            fixes
        })
        .collect()
}

/// The alternatives of one axis, of which some come `along` with settings of their own.
fn on(
    service: &str,
    alternatives: &[&Alternative],
    along: &[String],
    shipped: &[Experiment],
    runs: &[Run],
) -> Vec<Fix> {
    let baseline = alternatives.iter().find(|it| it.baseline).map_or("", |it| &it.name);
    let measure = alternatives.first().map(|first| measured::Axis {
        variable: variable(service, &first.axis),
        baseline,
        along,
    });
    let Some(axis) = measure else { return Vec::new() };
    let ranking = axis.ranking(shipped);
    let fixes = alternatives.iter().map(|it| Fix {
        service: service.to_owned(),
        axis: it.axis.clone(),
        name: it.name.clone(),
        summary: it.summary.clone(),
        baseline: it.baseline,
        promise: it.promise.clone(),
        gives_up: it.gives_up.clone(),
        not_for: it.not_for.clone(),
        measured: axis.measured(&it.name, ranking, runs),
        measured_by: axis.measured_by(&it.name, ranking, shipped).map(str::to_owned),
    });
    fixes.collect()
}

fn order(a: &Fix, b: &Fix) -> Ordering {
    let ratio = |fix: &Fix| fix.measured.as_ref().map_or(0.0, |measured| measured.throughput_ratio);
    let baseline_first = b.baseline.cmp(&a.baseline);
    let fastest_first = ratio(b).total_cmp(&ratio(a));
    baseline_first.then(fastest_first).then_with(|| a.name.cmp(&b.name))
}

#[cfg(test)]
mod tests;
