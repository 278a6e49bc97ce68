//! How far a result can be trusted: against noise, against a limited generator, against what the holds predict.

use super::*;
use crate::events::HoldSample;

#[test]
fn a_claim_that_two_equal_arms_would_fail_as_easily_is_inconclusive() {
    let arms = |again: &'static [f64]| {
        [
            Scripted {
                arm: "one",
                throughput: &[10.0, 10.1, 9.9, 10.0],
                waiters: 9,
            },
            Scripted {
                arm: "two",
                throughput: &[10.4, 10.5, 10.3, 10.4],
                waiters: 9,
            },
            Scripted {
                arm: "one (again)",
                throughput: again,
                waiters: 9,
            },
        ]
    };
    let judged = |arms: &[Scripted<'_>]| {
        let claims = vec![
            claim(Metric::Throughput, &["two", "one"], Expect::AtLeast, 1.02),
            claim(Metric::Throughput, &["two", "one"], Expect::AtMost, 1.5),
        ];
        let mut experiment = experiment(arms, claims);
        experiment.noise_floor = true;
        analyse(&experiment, &stream(arms, true)).unwrap()
    };
    let verdicts = |results: &Results| results.claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>();

    let quiet = judged(&arms(&[10.01, 10.09, 9.9, 10.0]));
    assert_eq!(
        verdicts(&quiet),
        [Verdict::Reproduced, Verdict::Reproduced],
        "{:?}",
        quiet.claims
    );
    assert_eq!(quiet.comparisons[0].throughput_beyond_noise, Some(true));

    let noisy = judged(&arms(&[10.3, 9.5, 10.4, 9.6]));
    assert_eq!(
        verdicts(&noisy),
        [Verdict::Inconclusive, Verdict::Reproduced],
        "{:?}",
        noisy.claims
    );
    assert!(
        noisy.claims[0].note.contains("within the noise floor"),
        "{}",
        noisy.claims[0].note
    );
    assert_eq!(noisy.comparisons[0].throughput_beyond_noise, Some(false));
    let floor = noisy.noise_floor.unwrap();
    assert_eq!((floor.arm.as_str(), floor.against.as_str()), ("one (again)", "one"));
    assert!(floor.throughput_ci95.unwrap()[1] > 1.04 && floor.p95_ci95.is_some());
}

#[test]
fn a_curve_has_its_points_by_users_and_stands_beside_the_ceiling_of_the_holds() {
    let names = ["1", "2", "4", "8"];
    let arms: Vec<Scripted<'_>> = names
        .iter()
        .map(|arm| Scripted {
            arm,
            throughput: &[10.0, 10.2, 9.8, 10.0],
            waiters: 9,
        })
        .collect();
    let mut experiment = experiment(&arms, vec![claim(Metric::OfCeiling, &["8"], Expect::Near, 1.0)]);
    for arm in &mut experiment.arms {
        arm.users = arm.name.parse().ok();
    }
    let curve = "x = \"users\"\narms = [\"8\", \"1\", \"2\", \"4\"]";
    experiment.curves = vec![toml::from_str(curve).unwrap()];
    let mut events = stream(&arms, true);
    let holds = events.iter().filter_map(|stamped| match &stamped.event {
        Event::Load { key, .. } => Some(key.clone()),
        _ => None,
    });
    let holds: Vec<RunKey> = holds.collect();
    events.extend(holds.into_iter().map(|key| Stamped {
        at_ms: 0,
        event: Event::Sample {
            key,
            t_s: 3.0,
            sample: Sample::Hold(HoldSample {
                count: 50,
                total_ms: 4_500.0,
                max_ms: 120.0,
                buckets: vec![(95_000, 50)],
                ..HoldSample::default()
            }),
        },
    }));
    let results = analyse(&experiment, &events).unwrap();
    let hold = results.arms[0].hold.unwrap();
    assert_eq!((hold.count, hold.mean_ms, hold.p95_ms), (200, 90.0, 95.0));
    let curve = &results.curves[0];
    let xs: Vec<f64> = curve.points.iter().map(|point| point.x).collect();
    assert_eq!(xs, [1.0, 2.0, 4.0, 8.0]);
    assert!((curve.points[3].ceiling_per_s.unwrap() - 1000.0 / 90.0).abs() < 1e-9);
    assert!(curve.knee.says.contains("flat from 1 on"), "{}", curve.knee.says);
    let fit = curve.scalability.fit.unwrap();
    assert!(fit.sigma > 0.9 && fit.sigma_ci95.is_some(), "{fit:?}");
    // 10 tours a second of the 11.1 that holds of 90 ms let through.
    assert!((results.claims[0].measured.unwrap() - 0.9).abs() < 0.01);
    assert_eq!(results.claims[0].verdict, Verdict::Reproduced);
}

#[test]
fn an_arm_that_the_generator_limits_decides_no_claim_but_one_about_the_generator() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[11.0, 11.2, 10.9, 11.1],
        waiters: 0,
    }];
    let claims = vec![
        claim(Metric::Throughput, &["one"], Expect::AtLeast, 5.0),
        claim(Metric::GeneratorCpu, &["one"], Expect::AtLeast, 0.7),
    ];
    let mut events = stream(&arms, true);
    for stamped in &mut events {
        if let Event::Load { load, .. } = &mut stamped.event {
            load.generator_cpu_s = 9.5;
        }
    }
    let results = analyse(&experiment(&arms, claims), &events).unwrap();
    let verdicts: Vec<Verdict> = results.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Inconclusive, Verdict::Reproduced]);
    let note = &results.claims[0].note;
    assert!(note.contains("load generator was the limit of `one`"), "{note}");
}
