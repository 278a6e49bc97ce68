//! The statistics of the lab: means and ratios with intervals that hold what they promise (`stats.aa_coverage`).
//!
//! Fewer than [`FEWEST_ROUNDS`] rounds have no interval. Up to [`BOOTSTRAP_ROUNDS`] Student's t is used, whose table makes
//! up for the little that so few rounds tell of their own spread; from there on the bootstrap-t, which asks less of the
//! noise's shape.

mod bootstrap;
mod student;
mod welch;

pub(crate) use welch::unpaired_ratio;

/// Rounds below which an interval says nothing worth printing.
pub(crate) const FEWEST_ROUNDS: usize = 4;
/// Rounds from which on an interval is a bootstrap-t.
const BOOTSTRAP_ROUNDS: usize = 8;

/// A ratio of two arms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// Geometric mean.
    pub(crate) mean: f64,
    /// 95 % interval, from [`FEWEST_ROUNDS`] rounds on.
    pub(crate) ci95: Option<[f64; 2]>,
}

/// Arithmetic mean; 0 of nothing.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// Median, the mean of the middle two for an even number; 0 of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// A quantile (0 … 1) of single values, between two of them by their distance; 0 of nothing, infinite next to an infinite
/// one. Percentiles of latencies come from merged histograms instead.
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    let at = share * last as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    let between = at - at.floor();
    if between == 0.0 || low == high {
        low
    } else {
        low + (high - low) * between
    }
}

/// 95 % confidence interval of the mean of `values`; `None` with fewer than [`FEWEST_ROUNDS`].
pub(crate) fn mean_ci95(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < FEWEST_ROUNDS {
        return None;
    }
    let half = if values.len() < BOOTSTRAP_ROUNDS {
        let n = values.len() as f64;
        student::two_sided(0.95, n - 1.0) * (variance(values) / n).sqrt()
    } else {
        bootstrap::half_width(values)
    };
    let mean = mean(values.iter().copied());
    Some([mean - half, mean + half])
}

/// First ÷ second over paired rounds, by the logarithms of the ratios; pairs with a value that is not positive are left
/// out. `None` without pairs.
pub(crate) fn ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let logs: Vec<f64> = pairs
        .iter()
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(a, b)| (a / b).ln())
        .collect();
    if logs.is_empty() {
        return None;
    }
    let ci95 = mean_ci95(&logs).map(|[low, high]| [low.exp(), high.exp()]);
    Some(Ratio {
        mean: mean(logs.iter().copied()).exp(),
        ci95,
    })
}

/// Unbiased variance of at least two values.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values.iter().copied());
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests;
