//! Published beside measured, for the arms that a published story has too.

use crate::published::Published;
use crate::results::Results;

/// One figure beside its measured counterpart.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(super) struct Beside {
    pub(super) arm: String,
    pub(super) metric: String,
    pub(super) published: f64,
    pub(super) measured: f64,
    /// Why the published figure contradicts itself, if it does.
    pub(super) cannot_hold: Option<String>,
}

/// Every published figure of an arm that was measured here. The machines differ: ratios compare, absolutes do not.
pub(super) fn beside(results: &Results, published: Option<&Published>) -> Vec<Beside> {
    let Some(published) = published else { return Vec::new() };
    let mut rows = Vec::new();
    for arm in &results.arms {
        let figures = published.figures.iter();
        for figure in figures.filter(|figure| figure.arm.as_ref() == Some(&arm.name)) {
            let Some(measured) = arm.measure(figure.metric) else {
                continue;
            };
            rows.push(Beside {
                arm: arm.name.clone(),
                metric: figure.metric.to_string(),
                published: figure.value,
                measured,
                cannot_hold: published.cannot_hold(&figure.id).map(str::to_owned),
            });
        }
    }
    rows
}
