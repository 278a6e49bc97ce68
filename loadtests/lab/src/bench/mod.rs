//! The project's own figures, one file a figure (two where one run gives both).

mod bare_client;
mod comparison;
mod edge_cpu_us_per_request;
mod fault;
mod fix;
mod fuzz_bad_5xx;
mod inserts_vs_pgbench;
mod load_co_p95_error;
mod load_cpu_us_per_request;
mod load_little_error;
mod load_rss_growth;
mod load_vs_k6;
mod load_vs_wrk;
mod pgbench;
mod pss_mb;
mod slow_server;
mod small_server;
mod stack;
mod stats_aa_coverage;
mod touch_update_last_x;
mod tour_vs_pgbench;
mod up_arm_switch_s;
mod up_warm_s;

use futures::future::LocalBoxFuture;

use crate::failure::{Failure, Outcome};

/// A figure, before it is measured.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// It is there to judge another figure by.
    None,
    AtMost(f64),
    AtLeast(f64),
    /// Both bounds included.
    Between(f64, f64),
}

/// A measured figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Median of the single measurements.
    pub(crate) value: f64,
    /// Highest less lowest of the single measurements; absent where there is one.
    pub(crate) spread: Option<f64>,
}

/// What is run once to get one or more figures.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) figures: &'static [Figure],
    run: fn() -> LocalBoxFuture<'static, anyhow::Result<Vec<Reading>>>,
}

const ALL: &[&Measurement] = &[
    &up_warm_s::MEASUREMENT,
    &up_arm_switch_s::MEASUREMENT,
    &pss_mb::MEASUREMENT,
    &tour_vs_pgbench::MEASUREMENT,
    &touch_update_last_x::MEASUREMENT,
    &inserts_vs_pgbench::MEASUREMENT,
    &fix::MEASUREMENT,
    &load_cpu_us_per_request::MEASUREMENT,
    &load_co_p95_error::MEASUREMENT,
    &load_little_error::MEASUREMENT,
    &load_vs_wrk::MEASUREMENT,
    &load_vs_k6::MEASUREMENT,
    &load_rss_growth::MEASUREMENT,
    &edge_cpu_us_per_request::MEASUREMENT,
    &fuzz_bad_5xx::MEASUREMENT,
    &fault::MEASUREMENT,
    &stats_aa_coverage::MEASUREMENT,
];

/// The measurements for the figures named; for all figures when none is.
pub(crate) fn choose(names: &[String]) -> Outcome<Vec<&'static Measurement>> {
    let known = || {
        ALL.iter()
            .flat_map(|measurement| measurement.figures)
            .map(|figure| figure.name)
    };
    if let Some(unknown) = names.iter().find(|name| !known().any(|each| each == name.as_str())) {
        let known: Vec<&str> = known().collect();
        return Err(Failure::Usage(format!(
            "there is no figure `{unknown}`; known are: {}",
            known.join(", ")
        )));
    }
    let wanted = |measurement: &Measurement| measurement.figures.iter().any(|figure| is_wanted(figure, names));
    Ok(ALL.iter().copied().filter(|measurement| wanted(measurement)).collect())
}

impl Measurement {
    /// Measures all its figures.
    pub(crate) async fn run(&self) -> anyhow::Result<Vec<(&'static Figure, Reading)>> {
        Ok(self.figures.iter().zip((self.run)().await?).collect())
    }
}

/// Whether the figure was asked for: by its name, or by naming none.
pub(crate) fn is_wanted(figure: &Figure, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| name == figure.name)
}

/// `name: value unit (spread …, target …)`.
pub(crate) fn line(figure: &Figure, reading: &Reading) -> String {
    // A share of a few percent has nothing to say in two of them.
    let decimals = if figure.unit == "share" { 4 } else { 2 };
    let spread = reading
        .spread
        .map(|spread| format!("spread {spread:.decimals$}, "))
        .unwrap_or_default();
    let against = |sign, bound, held| format!("target {sign} {bound}{}", if held { "" } else { ", MISSED" });
    let target = match figure.target {
        Target::None => "no target".to_owned(),
        Target::AtMost(bound) => against("≤", bound, reading.value <= bound),
        Target::AtLeast(bound) => against("≥", bound, reading.value >= bound),
        Target::Between(low, high) => {
            let missed = if (low..=high).contains(&reading.value) {
                ""
            } else {
                ", MISSED"
            };
            format!("target {low} … {high}{missed}")
        }
    };
    format!(
        "{}: {:.decimals$} {} ({spread}{target})",
        figure.name, reading.value, figure.unit
    )
}

impl Reading {
    /// Median and spread of single measurements, of which there is at least one.
    fn of(mut singles: Vec<f64>) -> Self {
        singles.sort_by(f64::total_cmp);
        let (low, high) = (singles[0], singles[singles.len() - 1]);
        let middle = singles.len() / 2;
        let value = if singles.len().is_multiple_of(2) {
            f64::midpoint(singles[middle - 1], singles[middle])
        } else {
            singles[middle]
        };
        Self {
            value,
            spread: (singles.len() > 1).then_some(high - low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_figure_is_wrong_usage_and_the_known_ones_are_named() {
        let failure = choose(&["tour.vs_oracle".to_owned()]).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("tour.vs_pgbench"), "{failure}");
    }

    #[test]
    fn two_figures_of_one_run_are_measured_once() {
        let names = ["stack.pss_mb".to_owned(), "services.pss_mb".to_owned()];
        assert_eq!(choose(&names).unwrap().len(), 1);
        assert_eq!(choose(&[]).unwrap().len(), ALL.len());
    }

    #[test]
    fn a_reading_is_the_median_and_a_missed_target_is_said() {
        let reading = Reading::of(vec![9.0, 7.0, 8.5]);
        assert_eq!((reading.value, reading.spread), (8.5, Some(2.0)));
        assert_eq!(Reading::of(vec![1.0, 2.0]).value, 1.5);
        let figure = Figure {
            name: "up.warm_s",
            unit: "s",
            target: Target::AtMost(8.0),
        };
        assert_eq!(
            line(&figure, &reading),
            "up.warm_s: 8.50 s (spread 2.00, target ≤ 8, MISSED)"
        );
        let between = Figure {
            name: "stats.aa_coverage",
            unit: "share",
            target: Target::Between(0.93, 0.97),
        };
        for (value, told) in [
            (0.9657, "0.9657 share (target 0.93 … 0.97)"),
            (0.9712, "0.9712 share (target 0.93 … 0.97, MISSED)"),
        ] {
            let reading = Reading { value, spread: None };
            assert_eq!(line(&between, &reading), format!("stats.aa_coverage: {told}"));
        }
    }
}
