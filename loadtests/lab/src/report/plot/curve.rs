//! Throughput over a quantity of the arms: what was measured, the law fitted to it, and what the hold time predicts.

use super::svg::Svg;
use super::{Plot, WIDTH, colour, nice_ceiling, short};
use crate::results::Curve;

const HEIGHT: f64 = 330.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Straight pieces that a fitted law is drawn of.
const PIECES: u32 = 100;
/// A ceiling this far above everything measured would press the curve to the floor; it ends the axis then.
const HEADROOM: f64 = 2.0;

/// `None` without two points.
pub(in crate::report) fn draw(curve: &Curve) -> Option<Plot> {
    let (first, last) = (curve.points.first()?, curve.points.last()?);
    if first.x >= last.x {
        return None;
    }
    let measured = curve
        .points
        .iter()
        .map(|point| point.ci95.map_or(point.throughput, |[_, high]| high));
    let measured = measured.fold(0.0, f64::max);
    let ceilings = curve.points.iter().filter_map(|point| point.ceiling_per_s);
    let end = nice_ceiling(ceilings.fold(measured, f64::max).min(measured * HEADROOM));

    let start = first.x.min(0.0);
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * (value - start) / (last.x - start);
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value / end).clamp(0.0, 1.0));
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.text(0.0, 16.0, &curve.title, "title");
    for tick in 0..=5 {
        let value = end * f64::from(tick) / 5.0;
        svg.line((LEFT, y(value)), (x(last.x), y(value)), "grid");
        svg.text(LEFT - 6.0, y(value) + 4.0, &short(value), "y");
    }
    for point in &curve.points {
        svg.text(x(point.x), HEIGHT - BOTTOM + 16.0, &point.x.to_string(), "tick");
    }
    svg.text(f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 8.0, &curve.x_label, "tick");
    svg.line((LEFT, y(0.0)), (x(last.x), y(0.0)), "axis");

    let mut legend = Legend(TOP + 10.0);
    let points: Vec<(f64, f64)> = curve
        .points
        .iter()
        .map(|point| (x(point.x), y(point.throughput)))
        .collect();
    svg.path(&points, colour(0));
    for (point, at) in curve.points.iter().zip(&points) {
        if let Some([low, high]) = point.ci95 {
            svg.line((at.0, y(low)), (at.0, y(high)), "whisker");
            for bar in [low, high] {
                svg.line((at.0 - 4.0, y(bar)), (at.0 + 4.0, y(bar)), "whisker");
            }
        }
        svg.dot(*at, 4.5, colour(0));
    }
    legend.entry(&mut svg, colour(0), "", "measured, tours /s");
    if let Some(fit) = &curve.scalability.fit {
        let steps = (0..=PIECES).map(|piece| first.x + (last.x - first.x) * f64::from(piece) / f64::from(PIECES));
        let law: Vec<(f64, f64)> = steps.map(|at| (x(at), y(fit.at(at)))).collect();
        svg.dashed(&law, colour(1), "2 4");
        legend.entry(&mut svg, colour(1), "2 4", "Universal Scalability");
    }
    let predicted: Vec<(f64, f64)> = curve
        .points
        .iter()
        .filter_map(|point| Some((x(point.x), y(point.ceiling_per_s?))))
        .collect();
    if !predicted.is_empty() {
        svg.dashed(&predicted, colour(2), "8 5");
        for at in &predicted {
            svg.dot(*at, 3.0, colour(2));
        }
        legend.entry(&mut svg, colour(2), "8 5", "ceiling, 1 / hold time");
    }
    if let Some(knee) = curve.knee.x {
        svg.line((x(knee), TOP), (x(knee), y(0.0)), "axis");
        svg.text(x(knee) + 4.0, TOP + 10.0, "knee", "end");
    }
    let ceiling = if predicted.is_empty() {
        ""
    } else {
        " The ceiling is measured on the link to PostgreSQL and not derived from the throughput."
    };
    Some(Plot {
        svg: svg.finish(),
        caption: format!(
            "Whiskers: 95 % confidence intervals of the means. {} {}{ceiling}",
            curve.knee.says, curve.scalability.says
        ),
    })
}

/// The names of the lines, one below the other at the right; holds the height of the next.
struct Legend(f64);

impl Legend {
    fn entry(&mut self, svg: &mut Svg, colour: &str, dash: &str, name: &str) {
        let from = WIDTH - RIGHT + 20.0;
        let line = [(from, self.0), (from + 24.0, self.0)];
        if dash.is_empty() {
            svg.path(&line, colour);
        } else {
            svg.dashed(&line, colour, dash);
        }
        svg.text(from + 30.0, self.0 + 4.0, name, "end");
        self.0 += 20.0;
    }
}
