//! Latency of each arm: from the median to the maximum on one line.

use super::{Plot, Rows, colour};
use crate::report::table::ms;
use crate::results::Results;

/// `None` without arms.
pub(in crate::report) fn draw(results: &Results) -> Option<Plot> {
    let labels: Vec<String> = results.arms.iter().map(|arm| arm.name.clone()).collect();
    let most = results.arms.iter().map(|arm| arm.latency_ms.max).fold(0.0, f64::max);
    if labels.is_empty() {
        return None;
    }
    let mut rows = Rows::new("Latency of POST /tours, milliseconds", &labels, most);
    for (index, arm) in results.arms.iter().enumerate() {
        let middle = Rows::middle(index);
        let latency = &arm.latency_ms;
        let (from, to) = (rows.x(latency.p50), rows.x(latency.max));
        rows.svg
            .bar((from, middle - 2.0), (to - from, 4.0), colour(index), 0.35);
        for (value, radius) in [(latency.p50, 6.0), (latency.p95, 4.5), (latency.p99, 3.0)] {
            let at = (rows.x(value), middle);
            rows.svg.dot(at, radius, colour(index));
        }
        rows.svg.line((to, middle - 6.0), (to, middle + 6.0), "whisker");
        rows.svg.text(to + 8.0, middle + 4.0, &ms(latency.max), "end");
    }
    let caption = "Dots from large to small: p50, p95, p99; the line ends at the maximum. Histograms of all rounds are \
                   merged; percentiles are never averaged.";
    Some(Plot {
        svg: rows.svg.finish(),
        caption: caption.to_owned(),
    })
}
