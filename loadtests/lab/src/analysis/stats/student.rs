//! Quantiles of Student's t for any number of degrees of freedom, from the incomplete beta function.
//!
//! Written out because it is a few lines: what a crate of distributions brings beyond them would have to be checked as well.

/// How far from zero a Student-t variable with so many degrees of freedom goes in a `share` (0 … 1) of all cases.
pub(super) fn two_sided(share: f64, degrees: f64) -> f64 {
    let tail = 1.0 - share;
    let mut high = 1.0;
    while beyond(high, degrees) > tail {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Sixty halvings leave nothing that an f64 could tell apart.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beyond(middle, degrees) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Probability of a value further from zero than `t`.
fn beyond(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction where that converges fast and by its symmetry
/// elsewhere.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    front.exp() * continued_fraction(x, a, b) / a
}

/// Lentz's method; some twenty terms give all digits for the values that occur here.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERMS: u32 = 300;
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..=TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for step in [even, odd] {
            d = 1.0 / not_zero(1.0 + step * d);
            c = not_zero(1.0 + step / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// Logarithm of the gamma function for a positive argument: Stirling's series, after the argument was raised to where seven
/// of its terms give all digits.
fn ln_gamma(mut x: f64) -> f64 {
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let mut raised = 0.0;
    while x < 10.0 {
        raised += x.ln();
        x += 1.0;
    }
    let mut power = 1.0 / x;
    let mut sum = 0.0;
    for coefficient in SERIES {
        sum += coefficient * power;
        power /= x * x;
    }
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + sum - raised
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same probability by brute force: with t = tan(φ)·√ν, Student's density becomes cos(φ)^(ν−1).
    fn beyond_by_sums(t: f64, degrees: f64) -> f64 {
        const STEPS: u32 = 400_000;
        let angle = (t / degrees.sqrt()).atan();
        let step = std::f64::consts::FRAC_PI_2 / f64::from(STEPS);
        let (mut inside, mut all) = (0.0, 0.0);
        for index in 0..STEPS {
            let at = step * (f64::from(index) + 0.5);
            let height = at.cos().powf(degrees - 1.0);
            all += height;
            if at < angle {
                inside += height;
            }
        }
        1.0 - inside / all
    }

    #[test]
    fn the_quantiles_are_those_of_the_printed_tables() {
        for (share, degrees, table) in [
            (0.95, 1.0, 12.7062),
            (0.95, 2.0, 4.3027),
            (0.95, 3.0, 3.1824),
            (0.95, 5.0, 2.5706),
            (0.95, 9.0, 2.2622),
            (0.95, 30.0, 2.0423),
            (0.95, 120.0, 1.9799),
            (0.90, 7.0, 1.8946),
            (0.99, 4.0, 4.6041),
            (0.999, 10.0, 4.5869),
        ] {
            let ours = two_sided(share, degrees);
            assert!(
                (ours - table).abs() < 6e-5,
                "{share} with {degrees}: {ours}, not {table}"
            );
        }
        // One degree is Cauchy, two have a closed form, infinitely many are the normal distribution.
        assert!((two_sided(0.5, 1.0) - 1.0).abs() < 1e-12);
        let p = 0.9_f64;
        assert!((two_sided(p, 2.0) - p * (2.0 / (1.0 - p * p)).sqrt()).abs() < 1e-12);
        assert!((two_sided(0.95, 1e7) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn fractions_of_a_degree_agree_with_brute_force() {
        for degrees in [1.0, 2.5, 3.7, 6.0, 11.3, 47.9] {
            for t in [0.1, 0.8, 2.0, 4.5] {
                let (ours, sums) = (beyond(t, degrees), beyond_by_sums(t, degrees));
                assert!((ours - sums).abs() < 2e-5, "{t} with {degrees}: {ours}, not {sums}");
            }
        }
    }

    #[test]
    fn factorials_are_the_gamma_function_of_whole_numbers() {
        let mut factorial = 1.0_f64;
        for n in 1..30 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12, "{n}");
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-13);
    }
}
