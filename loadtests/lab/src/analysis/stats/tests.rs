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
    for rounds in [4, 10] {
        let pairs: Vec<(f64, f64)> = [2.0, 8.0, 4.0, 4.0, 3.0, 6.0, 5.0, 2.5, 4.5, 7.0]
            .into_iter()
            .take(rounds)
            .map(|value| (value, 1.0))
            .collect();
        let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        let (forth, back) = (ratio(&pairs).unwrap(), ratio(&swapped).unwrap());
        assert!((forth.mean * back.mean - 1.0).abs() < 1e-9);
        let ([low, high], [back_low, back_high]) = (forth.ci95.unwrap(), back.ci95.unwrap());
        assert!((low * back_high - 1.0).abs() < 1e-9 && (high * back_low - 1.0).abs() < 1e-9);
        assert!(low < forth.mean && high > forth.mean);
    }
    let four = ratio(&[(2.0, 1.0), (8.0, 1.0), (4.0, 1.0), (4.0, 1.0)]).unwrap();
    assert!((four.mean - 4.0).abs() < 1e-9);
}

#[test]
fn rounds_without_throughput_are_no_pairs() {
    assert_eq!(ratio(&[(0.0, 1.0)]), None);
    let one = ratio(&[(0.0, 1.0), (3.0, 1.0)]).unwrap();
    assert!((one.mean - 3.0).abs() < 1e-9 && one.ci95.is_none());
}

#[test]
fn medians_and_quantiles_of_even_and_odd_counts() {
    assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    assert_eq!(median([]), 0.0);
    assert_eq!(quantile([1.0, 2.0, 3.0, 4.0, 5.0], 0.25), 2.0);
    assert_eq!(quantile([1.0, f64::INFINITY, f64::INFINITY], 1.0), f64::INFINITY);
}

#[test]
fn from_eight_rounds_on_the_interval_is_a_bootstrap_and_the_same_every_time() {
    let rounds = [9.8, 10.4, 10.1, 9.6, 10.0, 10.3, 9.9, 10.2];
    let [low, high] = mean_ci95(&rounds).unwrap();
    assert_eq!(mean_ci95(&rounds), Some([low, high]));
    let student = student::two_sided(0.95, 7.0) * (variance(&rounds) / 8.0).sqrt();
    let half = (high - low) / 2.0;
    assert!(half != student, "that is Student's interval");
    // Well-behaved rounds come out near it.
    assert!((0.8..1.5).contains(&(half / student)), "{half} against {student}");
}

#[test]
fn rounds_that_are_alike_make_no_interval_infinite() {
    let alike = mean_ci95(&[5.0; 10]).unwrap();
    assert_eq!(alike, [5.0, 5.0]);
    let mut one_differs = [5.0; 10];
    one_differs[3] = 6.0;
    let [low, high] = mean_ci95(&one_differs).unwrap();
    assert!(
        low.is_finite() && low < 5.1 && high > 5.1 && high < 10.0,
        "{low} {high}"
    );
    let [low, high] = mean_ci95(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]).unwrap();
    assert!(low > 0.5 && low < 1.5 && high > 1.5 && high < 2.5, "{low} {high}");
}
