//! Curves: throughput over a quantity of the arms, its knee, the law it follows, and the ceiling that was predicted.

mod knee;
mod usl;

use super::stats::FEWEST_ROUNDS;
use crate::experiment::{Axis, CurveSpec, Experiment};
use crate::results::{Arm, Curve, CurvePoint, Scalability};

/// A bend or a law of fewer points would be drawn by the hand that chose them.
const FEWEST_POINTS: usize = 4;

/// A point with what the rounds measured there.
#[derive(Debug, Clone)]
struct Point<'a> {
    x: f64,
    arm: &'a Arm,
}

/// Every curve of the experiment, with the arms that have a result.
pub(super) fn draw(experiment: &Experiment, arms: &[Arm]) -> Vec<Curve> {
    let curves = experiment.curves.iter();
    curves.map(|spec| curve(experiment, spec, arms)).collect()
}

fn curve(experiment: &Experiment, spec: &CurveSpec, arms: &[Arm]) -> Curve {
    let mut points: Vec<Point<'_>> = experiment
        .arms
        .iter()
        .filter(|arm| spec.arms.contains(&arm.name))
        .filter_map(|arm| {
            Some(Point {
                // Checked when the experiment was read.
                x: experiment.x_of(spec, arm).ok()?,
                arm: arms.iter().find(|measured| measured.name == arm.name)?,
            })
        })
        .collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let seen: Vec<knee::Seen> = points
        .iter()
        .map(|point| knee::Seen {
            x: point.x,
            y: point.arm.throughput.mean,
            half_width: point.arm.throughput.ci95.map_or(0.0, |[low, high]| (high - low) / 2.0),
        })
        .collect();
    Curve {
        title: spec
            .title
            .clone()
            .unwrap_or_else(|| format!("Throughput over {}", spec.x_label())),
        x_label: spec.x_label(),
        knee: knee::find(&seen),
        scalability: scalability(spec, &points),
        points: points
            .into_iter()
            .map(|Point { x, arm }| CurvePoint {
                arm: arm.name.clone(),
                x,
                throughput: arm.throughput.mean,
                ci95: arm.throughput.ci95,
                p95_ms: arm.latency_ms.p95,
                ceiling_per_s: arm.hold.map(|hold| hold.ceiling_per_s),
            })
            .collect(),
    }
}

/// The law speaks of how many do the work at a time; of a distance or a rate it says nothing.
fn scalability(spec: &CurveSpec, points: &[Point<'_>]) -> Scalability {
    let refused = |why: &str| Scalability {
        fit: None,
        says: format!("No Universal Scalability fit: {why}."),
    };
    if matches!(spec.x, Axis::Rtt | Axis::Rate) {
        return refused("it is a law of how many work at a time, and neither a distance nor a rate is that");
    }
    if points.first().is_some_and(|point| point.x < 1.0) {
        return refused("it begins at one, and a point lies below");
    }
    if distinct(points.iter().map(|point| point.x)) < FEWEST_POINTS {
        return refused("fewer than 4 distinct points");
    }
    let xs: Vec<f64> = points.iter().map(|point| point.x).collect();
    let rounds = points.iter().map(|point| point.arm.throughput.rounds.len()).min();
    // Rounds of one number belong together, since all arms are measured in each.
    let rounds: Vec<Vec<f64>> = (0..rounds.unwrap_or(0))
        .map(|round| points.iter().map(|point| point.arm.throughput.rounds[round]).collect())
        .collect();
    match usl::fit(&xs, &rounds) {
        Some(fit) => Scalability {
            says: usl::describe(&fit, &xs, rounds.len() >= FEWEST_ROUNDS),
            fit: Some(fit),
        },
        None => refused("a point has no throughput"),
    }
}

/// How many different values there are among sorted ones.
fn distinct(sorted: impl Iterator<Item = f64>) -> usize {
    let mut last = None;
    sorted.filter(|value| last.replace(*value) != Some(*value)).count()
}
