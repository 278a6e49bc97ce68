//! Two runs that share no rounds: Welch's t, which lets each have a spread of its own.

use super::{FEWEST_ROUNDS, Ratio, mean, student, variance};

/// First ÷ second where the values of the two are not paired, by the logarithms; values that are not positive are left
/// out. `None` when one side has none.
pub(crate) fn unpaired_ratio(first: &[f64], second: &[f64]) -> Option<Ratio> {
    let [first, second] = [first, second].map(|values| {
        let positive = values.iter().filter(|value| **value > 0.0);
        positive.map(|value| value.ln()).collect::<Vec<f64>>()
    });
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let distance = mean(first.iter().copied()) - mean(second.iter().copied());
    let enough = first.len().min(second.len()) >= FEWEST_ROUNDS;
    let ci95 = enough.then(|| {
        let half = half_width(&first, &second);
        [(distance - half).exp(), (distance + half).exp()]
    });
    Some(Ratio {
        mean: distance.exp(),
        ci95,
    })
}

fn half_width(first: &[f64], second: &[f64]) -> f64 {
    let parts = [first, second].map(|values| (variance(values) / values.len() as f64, values.len() as f64 - 1.0));
    let whole: f64 = parts.iter().map(|(part, _)| part).sum();
    if whole <= 0.0 {
        return 0.0;
    }
    // Welch and Satterthwaite: between the smaller of the two degrees of freedom and their sum.
    let degrees = whole * whole / parts.iter().map(|(part, degrees)| part * part / degrees).sum::<f64>();
    student::two_sided(0.95, degrees) * whole.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_spreads_get_the_degrees_of_welch_and_satterthwaite() {
        // Logarithms 1, 2, 3, 4 and 0, 0.1, 0, 0.1, 0.05: variances 1.6667 and 0.0025.
        let first = [1.0_f64, 2.0, 3.0, 4.0].map(f64::exp);
        let second = [0.0_f64, 0.1, 0.0, 0.1, 0.05].map(f64::exp);
        let ratio = unpaired_ratio(&first, &second).unwrap();
        assert!((ratio.mean.ln() - 2.45).abs() < 1e-9);
        // Standard error 0.645885, 3.0072 degrees of freedom, t about 3.179.
        let [low, high] = ratio.ci95.unwrap().map(f64::ln);
        assert!((low - (2.45 - 2.0537)).abs() < 0.002, "{low}");
        assert!((high - (2.45 + 2.0537)).abs() < 0.002, "{high}");
    }

    #[test]
    fn swapping_the_runs_inverts_the_ratio_and_three_rounds_have_no_interval() {
        let (first, second) = ([10.0, 11.0, 9.0, 10.0], [20.0, 21.0, 19.0, 22.0, 20.0]);
        let forth = unpaired_ratio(&first, &second).unwrap();
        let back = unpaired_ratio(&second, &first).unwrap();
        let ([low, high], [back_low, back_high]) = (forth.ci95.unwrap(), back.ci95.unwrap());
        assert!((low * back_high - 1.0).abs() < 1e-9 && (high * back_low - 1.0).abs() < 1e-9);
        assert_eq!(unpaired_ratio(&first[..3], &second).unwrap().ci95, None);
        assert_eq!(unpaired_ratio(&[0.0], &second), None);
        assert_eq!(unpaired_ratio(&[5.0; 4], &[5.0; 4]).unwrap().ci95, Some([1.0, 1.0]));
    }
}
