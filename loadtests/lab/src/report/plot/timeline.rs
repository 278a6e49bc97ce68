//! Time line of the run: tours completed each second, and how many sessions waited for a lock.

use super::svg::Svg;
use super::{Plot, WIDTH, colour, nice_ceiling, short};
use crate::events::{Event, RunKey, Sample, Stamped};
use crate::results::Results;

/// Seconds of load above which neighbours are merged: more points than pixels only make the file larger.
const POINTS: usize = 600;
const PANEL: f64 = 150.0;
const GAP: f64 = 46.0;
const LEFT: f64 = 50.0;

/// One measurement's seconds, laid end to end with the others'.
struct Stretch<'e> {
    key: &'e RunKey,
    /// Seconds of load before this measurement.
    from: f64,
    rates: Vec<(f64, f64)>,
    waiters: Vec<(f64, f64)>,
}

/// Which values of a stretch a panel shows.
type Values = for<'a> fn(&'a Stretch<'_>) -> &'a Vec<(f64, f64)>;

/// `None` when no second of load was recorded.
pub(in crate::report) fn draw(results: &Results, events: &[Stamped]) -> Option<Plot> {
    let stretches = stretches(events);
    let whole = stretches
        .iter()
        .flat_map(|s| s.rates.iter().map(move |(t, _)| s.from + t))
        .fold(0.0, f64::max)
        + 1.0;
    if stretches.iter().all(|stretch| stretch.rates.is_empty()) {
        return None;
    }
    let mut svg = Svg::new(WIDTH, 2.0 * (PANEL + GAP));
    let panels: [(&str, Values); 2] = [
        ("Tours completed per second", |s| &s.rates),
        ("Sessions waiting for a lock", |s| &s.waiters),
    ];
    for (panel, (title, values)) in panels.into_iter().enumerate() {
        let top = panel as f64 * (PANEL + GAP) + 24.0;
        let most = stretches
            .iter()
            .flat_map(values)
            .map(|(_, value)| *value)
            .fold(0.0, f64::max);
        let end = nice_ceiling(most);
        let x = |t: f64| LEFT + (WIDTH - LEFT - 10.0) * t / whole;
        let y = |value: f64| top + PANEL * (1.0 - value / end);
        svg.text(0.0, top - 10.0, title, "title");
        for tick in 0..=4 {
            let value = end * f64::from(tick) / 4.0;
            svg.line((LEFT, y(value)), (WIDTH - 10.0, y(value)), "grid");
            svg.text(LEFT - 6.0, y(value) + 4.0, &short(value), "y");
        }
        for stretch in &stretches {
            let arm = results
                .arms
                .iter()
                .position(|arm| arm.name == stretch.key.arm)
                .unwrap_or(0);
            let width = (values(stretch).len().div_ceil(POINTS / stretches.len().max(1))).max(1);
            let points: Vec<(f64, f64)> = values(stretch)
                .chunks(width)
                .map(|chunk| {
                    let mean = chunk.iter().map(|(_, value)| value).sum::<f64>() / chunk.len() as f64;
                    (x(stretch.from + chunk[0].0), y(mean))
                })
                .collect();
            svg.path(&points, colour(arm));
        }
        svg.line((LEFT, top + PANEL), (WIDTH - 10.0, top + PANEL), "axis");
        svg.text(
            WIDTH / 2.0,
            top + PANEL + 16.0,
            "seconds of load, measurements end to end",
            "tick",
        );
    }
    let arms: Vec<&str> = results.arms.iter().map(|arm| arm.name.as_str()).collect();
    let caption = format!(
        "In the order of the run; warm-ups included. Colours as above: {}.",
        arms.join("; ")
    );
    Some(Plot {
        svg: svg.finish(),
        caption,
    })
}

fn stretches(events: &[Stamped]) -> Vec<Stretch<'_>> {
    let mut stretches: Vec<Stretch<'_>> = Vec::new();
    for stamped in events {
        match &stamped.event {
            Event::ArmStarted { key, .. } => {
                let from = stretches
                    .iter()
                    .map(|s| s.rates.last().map_or(0.0, |(t, _)| t + 1.0))
                    .sum();
                stretches.push(Stretch {
                    key,
                    from,
                    rates: Vec::new(),
                    waiters: Vec::new(),
                });
            }
            Event::Second { second, .. } => {
                if let Some(stretch) = stretches.last_mut() {
                    stretch
                        .rates
                        .push((second.start_s, second.ok as f64 / second.length_s.max(0.001)));
                }
            }
            Event::Sample {
                t_s,
                sample: Sample::Locks(sample),
                ..
            } => {
                if let Some(stretch) = stretches.last_mut() {
                    stretch.waiters.push((*t_s, sample.waiters.len() as f64));
                }
            }
            _ => {}
        }
    }
    stretches
}
