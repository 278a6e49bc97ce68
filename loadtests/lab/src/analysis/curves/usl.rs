//! The Universal Scalability Law (Gunther 1993), fitted within its bounds: λ > 0, 0 ≤ σ ≤ 1, κ ≥ 0.
//!
//! X(N) = λN / (1 + σ(N−1) + κN(N−1)) is, turned over, linear: N/X = a + b(N−1) + cN(N−1) with a = 1/λ, b = σ/λ, c = κ/λ. What is
//! minimised is the relative error of N/X, which is that of X as far as it is small: noise of throughput is a share of it. The
//! bounds are a > 0, 0 ≤ b ≤ a, c ≥ 0. A least-squares problem that is linear and so bounded has one solution, and it lies
//! where some of the bounds are met exactly: there are six ways to meet them, all are tried, and nothing can be missed or
//! depend on where a search began.

use crate::analysis::stats;
use crate::random::Random;
use crate::results::UslFit;

/// Resamples of the rounds.
const RESAMPLES: u64 = 1000;
/// The same rounds give the same intervals.
const SEED: u64 = 0x0175_1993;

/// λ, σ, κ.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Law {
    lambda: f64,
    sigma: f64,
    kappa: f64,
}

impl Law {
    /// N at which throughput is highest, at least 1; infinite where it only saturates.
    fn peak(&self) -> f64 {
        if self.kappa > 0.0 {
            ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0)
        } else {
            f64::INFINITY
        }
    }
}

/// Fits the means over the rounds, each of which has a throughput for every N of `xs`; intervals come from rounds drawn
/// with replacement, whole ones, since the arms of a round share its noise. `None` when a throughput is not positive.
pub(super) fn fit(xs: &[f64], rounds: &[Vec<f64>]) -> Option<UslFit> {
    let all: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).collect();
    let means = means(&all)?;
    let law = solve(xs, &means)?;
    let last = xs.iter().copied().fold(0.0, f64::max);
    let mut fit = UslFit {
        lambda: law.lambda,
        sigma: law.sigma,
        kappa: law.kappa,
        lambda_ci95: None,
        sigma_ci95: None,
        kappa_ci95: None,
        peak: Some(law.peak()).filter(|peak| *peak <= last),
        peak_ci95: None,
        worst_residual: 0.0,
    };
    let residuals = xs.iter().zip(&means).map(|(x, y)| (fit.at(*x) / y - 1.0).abs());
    fit.worst_residual = residuals.fold(0.0, f64::max);
    if rounds.len() < stats::FEWEST_ROUNDS {
        return Some(fit);
    }
    let laws: Vec<Law> = (0..RESAMPLES)
        .filter_map(|number| {
            let mut random = Random::of(SEED, number);
            let drawn: Vec<&[f64]> = all.iter().map(|_| random.pick(&all)).collect();
            solve(xs, &self::means(&drawn)?)
        })
        .collect();
    let interval = |value: fn(&Law) -> f64| [0.025, 0.975].map(|share| stats::quantile(laws.iter().map(value), share));
    fit.lambda_ci95 = Some(interval(|law| law.lambda));
    fit.sigma_ci95 = Some(interval(|law| law.sigma));
    fit.kappa_ci95 = Some(interval(|law| law.kappa));
    fit.peak_ci95 = Some(interval(Law::peak).map(|end| Some(end).filter(|end| *end <= last)));
    Some(fit)
}

/// The fit in a sentence.
pub(super) fn describe(fit: &UslFit, xs: &[f64], with_interval: bool) -> String {
    let last = xs.iter().copied().fold(0.0, f64::max);
    let between = |ci95: Option<[f64; 2]>| ci95.map_or(String::new(), |[low, high]| format!(" ({low:.3} … {high:.3})"));
    let end = |end: Option<f64>| end.map_or_else(|| format!("beyond {last}"), |end| format!("{end:.1}"));
    let peak = match (fit.peak, fit.peak_ci95) {
        (Some(peak), Some([low, high])) => format!("highest at N = {peak:.1} ({} … {})", end(low), end(high)),
        (Some(peak), None) => format!("highest at N = {peak:.1}"),
        (None, Some([Some(low), _])) => {
            format!("highest beyond the measured range, which ends at {last} (from {low:.1} on)")
        }
        (None, _) => format!("highest beyond the measured range, which ends at {last}"),
    };
    let few = if with_interval {
        ""
    } else {
        "; fewer than 4 rounds, so no intervals"
    };
    format!(
        "Universal Scalability: λ = {:.2}/s{}, contention σ = {:.3}{}, coherence κ = {:.5}{}; {peak}; no point is off by more \
         than {:.0} %{few}.",
        fit.lambda,
        between(fit.lambda_ci95),
        fit.sigma,
        between(fit.sigma_ci95),
        fit.kappa,
        fit.kappa_ci95
            .map_or(String::new(), |[low, high]| format!(" ({low:.5} … {high:.5})")),
        fit.worst_residual * 100.0
    )
}

/// Mean throughput of each point; `None` when one is not positive, or without rounds.
fn means(rounds: &[&[f64]]) -> Option<Vec<f64>> {
    let points = rounds.first()?.len();
    let means = (0..points).map(|point| stats::mean(rounds.iter().map(|round| round[point])));
    means.map(|mean| (mean > 0.0).then_some(mean)).collect()
}

/// The bounded least-squares solution.
fn solve(xs: &[f64], ys: &[f64]) -> Option<Law> {
    // Columns of a, b and c, each divided by what N/X came to, so that the right-hand side is 1.
    let rows: Vec<[f64; 3]> = xs
        .iter()
        .zip(ys)
        .map(|(n, y)| [1.0, n - 1.0, n * (n - 1.0)].map(|column| column * y / n))
        .collect();
    // Which columns are free, and whether b is held at a.
    let ways = [
        (&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]][..]),
        &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        &[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        &[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        &[[1.0, 1.0, 0.0]],
        &[[1.0, 0.0, 0.0]],
    ];
    let error = |solution: &[f64; 3]| -> f64 {
        let of_row = |row: &[f64; 3]| dot(row, solution) - 1.0;
        rows.iter().map(|row| of_row(row).powi(2)).sum()
    };
    let allowed = |[a, b, c]: &[f64; 3]| *a > 0.0 && *b >= 0.0 && *b <= *a * (1.0 + 1e-12) && *c >= 0.0;
    let solutions = ways.into_iter().filter_map(|way| least_squares(&rows, way));
    let [a, b, c] = solutions
        .filter(allowed)
        .min_by(|one, other| error(one).total_cmp(&error(other)))?;
    Some(Law {
        lambda: 1.0 / a,
        sigma: (b / a).min(1.0),
        kappa: c / a,
    })
}

/// Least squares of `rows · solution = 1` for solutions that are combinations of `directions`; `None` when the points do
/// not determine one.
fn least_squares(rows: &[[f64; 3]], directions: &[[f64; 3]]) -> Option<[f64; 3]> {
    let size = directions.len();
    // Normal equations, the right-hand side as the last column.
    let mut system = vec![vec![0.0; size + 1]; size];
    for row in rows {
        let along: Vec<f64> = directions.iter().map(|direction| dot(row, direction)).collect();
        for (i, one) in along.iter().enumerate() {
            for (j, other) in along.iter().enumerate() {
                system[i][j] += one * other;
            }
            system[i][size] += one;
        }
    }
    let weights = eliminate(system)?;
    let mut solution = [0.0; 3];
    for (weight, direction) in weights.iter().zip(directions) {
        for (value, part) in solution.iter_mut().zip(direction) {
            *value += weight * part;
        }
    }
    Some(solution)
}

/// Gauss with pivots; `None` for a singular system.
fn eliminate(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = system.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|a, b| system[*a][column].abs().total_cmp(&system[*b][column].abs()))?;
        if system[pivot][column].abs() < 1e-14 {
            return None;
        }
        system.swap(column, pivot);
        let from = system[column].clone();
        let others = system.iter_mut().enumerate().filter(|(index, _)| *index != column);
        for (_, row) in others {
            let factor = row[column] / from[column];
            for (value, part) in row.iter_mut().zip(&from) {
                *value -= factor * part;
            }
        }
    }
    Some(
        (0..size)
            .map(|index| system[index][size] / system[index][index])
            .collect(),
    )
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const XS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

    fn law(lambda: f64, sigma: f64, kappa: f64) -> impl Fn(f64) -> f64 {
        move |n| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    /// Rounds of a curve with a share of noise that differs by round and point.
    fn rounds(curve: impl Fn(f64) -> f64, noise: f64) -> Vec<Vec<f64>> {
        (0..6)
            .map(|round| {
                let mut random = Random::of(7, round);
                XS.iter()
                    .map(|n| curve(*n) * (1.0 + noise * (2.0 * random.unit() - 1.0)))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_curve_made_by_the_law_gives_its_three_constants_and_its_peak_back() {
        let fit = fit(&XS, &rounds(law(20.0, 0.05, 0.004), 0.0)).unwrap();
        assert!((fit.lambda - 20.0).abs() < 1e-6, "{fit:?}");
        assert!(
            (fit.sigma - 0.05).abs() < 1e-6 && (fit.kappa - 0.004).abs() < 1e-6,
            "{fit:?}"
        );
        // √((1 − σ) / κ)
        assert!((fit.peak.unwrap() - (0.95_f64 / 0.004).sqrt()).abs() < 1e-4, "{fit:?}");
        assert!(fit.worst_residual < 1e-6);
    }

    #[test]
    fn noise_widens_the_intervals_which_hold_the_truth() {
        let fit = fit(&XS, &rounds(law(20.0, 0.05, 0.004), 0.08)).unwrap();
        for (ci95, truth) in [(fit.lambda_ci95, 20.0), (fit.sigma_ci95, 0.05), (fit.kappa_ci95, 0.004)] {
            let [low, high] = ci95.unwrap();
            assert!(low <= truth && truth <= high && low < high, "{truth} in {low} … {high}");
        }
        let [low, high] = fit.peak_ci95.unwrap();
        assert!(low.unwrap() < 15.4 && high.unwrap() > 15.4, "{fit:?}");
    }

    #[test]
    fn a_row_that_lets_one_through_at_a_time_is_all_contention_and_stays_within_the_bounds() {
        for curve in [law(24.0, 1.0, 0.0), law(24.0, 1.0, 0.001)] {
            let fit = fit(&XS, &rounds(curve, 0.02)).unwrap();
            assert!(fit.sigma > 0.95 && fit.sigma <= 1.0 && fit.kappa >= 0.0, "{fit:?}");
        }
        // Falls faster than any contention explains: the bound holds and coherence takes the rest.
        let falling = fit(&XS, &rounds(|n| 30.0 / n, 0.0)).unwrap();
        assert!(falling.sigma <= 1.0 && falling.kappa > 0.0, "{falling:?}");
    }

    #[test]
    fn what_only_rises_has_its_peak_beyond_the_measured_range() {
        for curve in [law(10.0, 0.02, 0.0), law(10.0, 0.02, 0.000_1)] {
            let fit = fit(&XS, &rounds(curve, 0.0)).unwrap();
            assert_eq!((fit.peak, fit.peak_ci95), (None, Some([None, None])), "{fit:?}");
            assert!(describe(&fit, &XS, true).contains("beyond the measured range, which ends at 32"));
        }
        // Better than linear: no negative contention makes up for it.
        let superlinear = fit(&XS, &rounds(|n| n * n, 0.0)).unwrap();
        assert_eq!((superlinear.sigma, superlinear.kappa), (0.0, 0.0));
    }

    #[test]
    fn the_bounded_solution_is_not_beaten_by_any_on_a_fine_grid() {
        let ys: Vec<f64> = rounds(law(24.0, 0.9, 0.002), 0.3).remove(0);
        let found = solve(&XS, &ys).unwrap();
        let error = |candidate: Law| -> f64 {
            let one = |(n, y): (&f64, &f64)| {
                let over = (1.0 + candidate.sigma * (n - 1.0) + candidate.kappa * n * (n - 1.0)) / candidate.lambda;
                (over * y / n - 1.0).powi(2)
            };
            XS.iter().zip(&ys).map(one).sum()
        };
        let least = error(found);
        for lambda in (1..80).map(f64::from) {
            for sigma in (0..=40).map(|step| f64::from(step) / 40.0) {
                for kappa in (0..=40).map(|step| f64::from(step) / 2000.0) {
                    let candidate = Law { lambda, sigma, kappa };
                    assert!(error(candidate) >= least - 1e-9, "{candidate:?} beats {found:?}");
                }
            }
        }
    }

    #[test]
    fn three_rounds_have_a_fit_without_intervals_and_a_dead_arm_none() {
        let curve = rounds(law(20.0, 0.05, 0.004), 0.01);
        let few = fit(&XS, &curve[..3]).unwrap();
        assert_eq!(few.sigma_ci95, None);
        assert!(describe(&few, &XS, false).contains("fewer than 4 rounds"));
        assert_eq!(fit(&XS, &[vec![0.0; 6]]), None);
    }
}
