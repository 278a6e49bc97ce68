//! Throughput of each arm: the mean as a bar, every round as a dot, the 95 % interval as a whisker.

use super::{Plot, ROW, Rows, colour, short};
use crate::results::Results;

/// `None` without arms.
pub(in crate::report) fn draw(results: &Results) -> Option<Plot> {
    let labels: Vec<String> = results.arms.iter().map(|arm| arm.name.clone()).collect();
    let ends = results.arms.iter().flat_map(|arm| {
        let high = arm.throughput.ci95.map(|[_, high]| high);
        arm.throughput.rounds.iter().copied().chain(high)
    });
    let most = ends.fold(0.0, f64::max);
    if labels.is_empty() {
        return None;
    }
    let mut rows = Rows::new("Throughput, tours per second", &labels, most);
    for (index, arm) in results.arms.iter().enumerate() {
        let middle = Rows::middle(index);
        let (from, to) = (rows.x(0.0), rows.x(arm.throughput.mean));
        rows.svg
            .bar((from, middle - ROW * 0.3), (to - from, ROW * 0.6), colour(index), 0.35);
        if let Some([low, high]) = arm.throughput.ci95 {
            let (low, high) = (rows.x(low.max(0.0)), rows.x(high));
            rows.svg.line((low, middle), (high, middle), "whisker");
            for end in [low, high] {
                rows.svg.line((end, middle - 5.0), (end, middle + 5.0), "whisker");
            }
        }
        for round in &arm.throughput.rounds {
            let at = (rows.x(*round), middle);
            rows.svg.dot(at, 4.0, colour(index));
        }
        let furthest = arm
            .throughput
            .ci95
            .map_or(0.0, |[_, high]| high)
            .max(arm.throughput.mean);
        let after = rows.x(arm.throughput.rounds.iter().copied().fold(furthest, f64::max)) + 10.0;
        rows.svg.text(after, middle + 4.0, &short(arm.throughput.mean), "end");
    }
    let caption = if results.arms.iter().any(|arm| arm.throughput.ci95.is_some()) {
        "Bars: mean over the rounds. Dots: single rounds. Whiskers: 95 % confidence interval of the mean."
    } else {
        "Bars: mean over the rounds. Dots: single rounds. With fewer than 4 rounds there is no interval."
    };
    Some(Plot {
        svg: rows.svg.finish(),
        caption: caption.to_owned(),
    })
}
