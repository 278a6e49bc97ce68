//! Plots as inline SVG; one file a plot. A megabyte of plotting library would outweigh everything it draws.

pub(super) mod ceiling;
pub(super) mod curve;
pub(super) mod latency;
mod svg;
pub(super) mod throughput;
pub(super) mod timeline;
pub(super) mod waits;

use self::svg::Svg;

/// A picture and what it shows.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Plot {
    pub(super) svg: String,
    pub(super) caption: String,
}

/// One colour an arm, told apart by people who see colours differently; arms beyond these begin again.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#555555",
];

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// The end of an axis: the next of 1, 2, 2.5, 5 times a power of ten.
fn nice_ceiling(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|end| *end >= value)
        .unwrap_or(value)
}

/// Horizontal bars with room for whatever is drawn over them; the axis begins at 0.
struct Rows {
    svg: Svg,
    /// Value at the right end.
    end: f64,
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 80.0;
const ROW: f64 = 34.0;
const TOP: f64 = 34.0;

impl Rows {
    fn new(title: &str, labels: &[String], most: f64) -> Self {
        let mut svg = Svg::new(WIDTH, TOP + ROW * labels.len() as f64 + 30.0);
        let end = nice_ceiling(most);
        svg.text(0.0, 16.0, title, "title");
        let bottom = TOP + ROW * labels.len() as f64;
        for tick in 0..=5 {
            let value = end * f64::from(tick) / 5.0;
            let x = LEFT + (WIDTH - LEFT - RIGHT) * f64::from(tick) / 5.0;
            svg.line((x, TOP), (x, bottom), "grid");
            svg.text(x, bottom + 16.0, &short(value), "tick");
        }
        for (index, label) in labels.iter().enumerate() {
            svg.text(LEFT - 8.0, TOP + ROW * (index as f64 + 0.5) + 4.0, label, "label");
        }
        Self { svg, end }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * value / self.end
    }

    fn middle(index: usize) -> f64 {
        TOP + ROW * (index as f64 + 0.5)
    }
}

/// A number with at most three digits that mean something.
fn short(value: f64) -> String {
    if value == 0.0 || value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number_that_holds_every_value() {
        for (value, end) in [
            (0.0, 1.0),
            (0.9, 1.0),
            (1.1, 2.0),
            (11.3, 20.0),
            (23.0, 25.0),
            (420.0, 500.0),
        ] {
            assert!(
                (nice_ceiling(value) - end).abs() < 1e-9,
                "{value} ends at {}",
                nice_ceiling(value)
            );
        }
    }
}
