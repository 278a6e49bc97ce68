//! What the hold time of the hot row predicts as the most, and what was measured, arm by arm.
//!
//! The arms differ by far more than a linear axis shows, so it is a logarithmic one. They are sorted by what is predicted: the
//! predictions then are a curve, and the measured values another that keeps to its left where the prediction holds.

use super::svg::Svg;
use super::{LEFT, Plot, ROW, TOP, WIDTH, colour, short};
use crate::results::{Arm, Results};

/// For what stands behind the marks.
const RIGHT: f64 = 130.0;
const INK: &str = "#1c2430";
const SOFT: &str = "#5a6675";
/// What is so far above its prediction contradicts it, whatever the noise.
const ABOVE: f64 = 1.1;

/// Values from `low` to `high` on a logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// From the power of ten at or below the least value to the one at or above the greatest.
    fn around(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let least = positive.clone().reduce(f64::min)?.log10().floor();
        let most = positive.reduce(f64::max)?.log10().ceil();
        Some(Self {
            low: least,
            high: most.max(least + 1.0),
        })
    }

    /// A value that has no logarithm lies at the left end.
    fn x(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        LEFT + (WIDTH - LEFT - RIGHT) * share.clamp(0.0, 1.0)
    }

    /// 1, 2 and 5 times each power of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (low, high) = (self.low as i32, self.high as i32);
        let powers = (low..high).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power)));
        powers.chain([10_f64.powi(high)])
    }
}

/// `None` where no hold was seen in any arm.
pub(in crate::report) fn draw(results: &Results) -> Option<Plot> {
    let ceiling = |arm: &Arm| arm.hold.map(|hold| hold.ceiling_per_s);
    let mut arms: Vec<(usize, &Arm)> = results.arms.iter().enumerate().collect();
    if arms.iter().all(|(_, arm)| arm.hold.is_none()) {
        return None;
    }
    let key = |arm: &Arm| ceiling(arm).unwrap_or(f64::INFINITY);
    arms.sort_by(|(_, a), (_, b)| key(a).total_cmp(&key(b)));

    let values = arms.iter().flat_map(|(_, arm)| {
        let interval = arm.throughput.ci95.unwrap_or([arm.throughput.mean; 2]);
        interval.into_iter().chain(ceiling(arm))
    });
    let axis = Axis::around(values)?;
    let bottom = TOP + ROW * arms.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 50.0);
    svg.text(
        0.0,
        16.0,
        "Predicted ceiling against measured throughput, tours per second",
        "title",
    );
    for tick in axis.ticks() {
        svg.line((axis.x(tick), TOP), (axis.x(tick), bottom), "grid");
        svg.text(axis.x(tick), bottom + 16.0, &short(tick), "tick");
    }
    let middle = |row: usize| TOP + ROW * (row as f64 + 0.5);
    let rows = || arms.iter().enumerate();
    let predicted: Vec<(f64, f64)> = rows()
        .filter_map(|(row, (_, arm))| Some((axis.x(ceiling(arm)?), middle(row))))
        .collect();
    let measured: Vec<(f64, f64)> = rows()
        .map(|(row, (_, arm))| (axis.x(arm.throughput.mean), middle(row)))
        .collect();
    svg.dashed(&predicted, INK, "8 5");
    svg.path(&measured, SOFT);
    for (row, (index, arm)) in rows() {
        svg.text(LEFT - 8.0, middle(row) + 4.0, &arm.name, "label");
        if let Some([low, high]) = arm.throughput.ci95 {
            svg.line((axis.x(low), middle(row)), (axis.x(high), middle(row)), "whisker");
        }
        svg.dot((axis.x(arm.throughput.mean), middle(row)), 4.5, colour(*index));
        if let Some(ceiling) = ceiling(arm) {
            let at = axis.x(ceiling);
            svg.line(
                (at, middle(row) - ROW * 0.35),
                (at, middle(row) + ROW * 0.35),
                "whisker",
            );
        }
        svg.text(WIDTH - RIGHT + 10.0, middle(row) + 4.0, &says(arm), "end");
    }
    Some(Plot {
        svg: svg.finish(),
        caption: caption(&arms),
    })
}

/// `94 % of 12.5`
fn says(arm: &Arm) -> String {
    if let Some(share) = arm.few_that_lock() {
        return format!("{}, {:.0} % lock it", short(arm.throughput.mean), share * 100.0);
    }
    arm.hold.map_or_else(
        || format!("{}, no hold", short(arm.throughput.mean)),
        |hold| {
            let share = arm.throughput.mean / hold.ceiling_per_s * 100.0;
            format!("{share:.0} % of {}", short(hold.ceiling_per_s))
        },
    )
}

fn caption(arms: &[(usize, &Arm)]) -> String {
    let mut text = "Bars on the dashed line: the ceiling, hot rows / hold time, timed on the link to PostgreSQL and not \
                    derived from the throughput. Dots: measured, with the 95 % interval of the mean. An arm close to its ceiling \
                    is limited by the row, one far below it by something else. The axis is logarithmic, the arms are sorted by \
                    what is predicted."
        .to_owned();
    let above = arms.iter().filter(|(_, arm)| {
        arm.hold
            .is_some_and(|hold| arm.throughput.mean > ABOVE * hold.ceiling_per_s)
    });
    let above: Vec<&str> = above.map(|(_, arm)| arm.name.as_str()).collect();
    if !above.is_empty() {
        text += &format!(
            " Above it: {}; there not every tour holds the row, or holds were too short to be seen.",
            above.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_holds_every_value_between_whole_powers_of_ten() {
        let axis = Axis::around([12.5, 180.0, 640.0].into_iter()).unwrap();
        assert_eq!((axis.low, axis.high), (1.0, 3.0));
        let ticks: Vec<f64> = axis.ticks().collect();
        assert_eq!(ticks, [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert!((axis.x(100.0) - (axis.x(10.0) + axis.x(1000.0)) / 2.0).abs() < 1e-9);
        assert_eq!(axis.x(0.0), LEFT);
        // One value alone, and none.
        let one = Axis::around([100.0].into_iter()).unwrap();
        assert_eq!((one.low, one.high), (2.0, 3.0));
        assert!(Axis::around([0.0].into_iter()).is_none());
    }
}
