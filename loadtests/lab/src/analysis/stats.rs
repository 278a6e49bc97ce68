//! The few statistics of the lab: means with Student-t intervals, ratios from paired rounds.

/// Rounds below which an interval says nothing worth printing.
pub(crate) const FEWEST_ROUNDS: usize = 4;

/// 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom.
const T975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A ratio of two arms over paired rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// Geometric mean.
    pub(crate) mean: f64,
    /// 95 % interval, from [`FEWEST_ROUNDS`] pairs on.
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
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// 95 % confidence interval of the mean of `values`; `None` with fewer than [`FEWEST_ROUNDS`].
pub(crate) fn mean_ci95(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < FEWEST_ROUNDS {
        return None;
    }
    let n = values.len() as f64;
    let mean = mean(values.iter().copied());
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t975(values.len() - 1) * (variance / n).sqrt();
    Some([mean - half, mean + half])
}

/// First ÷ second over paired rounds, Student-t on the logarithms; pairs with a value that is not positive are left
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

/// Beyond 30 degrees of freedom the quantile falls towards 1.96 by about 2.4 / df (error below 0.002).
fn t975(degrees: usize) -> f64 {
    T975.get(degrees - 1).copied().unwrap_or(1.96 + 2.4 / degrees as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_have_no_interval_and_four_have_the_one_of_student() {
        assert_eq!(mean_ci95(&[1.0, 2.0, 3.0]), None);
        // Mean 2.5, standard deviation 1.291, t(3) = 3.182: half width 2.054.
        let [low, high] = mean_ci95(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(
            (low - 0.446).abs() < 0.001 && (high - 4.554).abs() < 0.001,
            "{low} {high}"
        );
    }

    #[test]
    fn a_ratio_is_the_geometric_mean_and_swapping_the_arms_inverts_it() {
        let pairs = [(2.0, 1.0), (8.0, 1.0), (4.0, 1.0), (4.0, 1.0)];
        let forth = ratio(&pairs).unwrap();
        let back = ratio(&pairs.map(|(a, b)| (b, a))).unwrap();
        assert!((forth.mean - 4.0).abs() < 1e-9);
        assert!((forth.mean * back.mean - 1.0).abs() < 1e-9);
        let ([low, high], [back_low, back_high]) = (forth.ci95.unwrap(), back.ci95.unwrap());
        assert!((low * back_high - 1.0).abs() < 1e-9 && (high * back_low - 1.0).abs() < 1e-9);
        assert!(low < 4.0 && high > 4.0);
    }

    #[test]
    fn rounds_without_throughput_are_no_pairs() {
        assert_eq!(ratio(&[(0.0, 1.0)]), None);
        let one = ratio(&[(0.0, 1.0), (3.0, 1.0)]).unwrap();
        assert!((one.mean - 3.0).abs() < 1e-9 && one.ci95.is_none());
    }

    #[test]
    fn medians_of_even_and_odd_counts() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn the_quantile_goes_on_smoothly_beyond_the_table() {
        assert!((t975(30) - t975(31)).abs() < 0.01);
        assert!((t975(60) - 2.000).abs() < 0.002, "{}", t975(60));
        assert!((t975(120) - 1.980).abs() < 0.002);
    }
}
