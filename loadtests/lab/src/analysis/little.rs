//! Little's law, measurement by measurement: in a closed loop, throughput × mean cycle is the number of users. Where it is
//! not, either the generator or the window has changed what was measured, and the likely cause is named.

use super::bottleneck::GENERATOR_BUSY;
use super::evidence::Evidence;
use crate::results::Little;

/// Beyond this share a measurement is flagged.
const TOLERANCE: f64 = 0.02;
/// Rates of the window's halves that differ by more are no plateau.
const STEADY: f64 = 0.2;

/// What is measured at one number of users: a plateau, or the whole of a measurement that says nothing of plateaus.
struct Window<'l> {
    load: &'l load::Summary,
    users: f64,
    iterations: f64,
    seconds: f64,
    generator_cpu_s: f64,
    /// Throughput × mean cycle.
    product: f64,
}

/// `None` when nothing was measured in a closed loop; an open one has no number of users to compare with.
pub(super) fn check(runs: &[&Evidence]) -> Option<Little> {
    let windows: Vec<Window<'_>> = runs
        .iter()
        .filter_map(|run| run.load.as_ref())
        .filter(|load| load.open.is_none())
        .flat_map(windows)
        .filter(|window| window.users > 0.0 && window.seconds > 0.0)
        .collect();
    let off = |window: &Window<'_>| window.product / window.users - 1.0;
    let worst = windows.iter().max_by(|a, b| off(a).abs().total_cmp(&off(b).abs()))?;
    let flagged = windows.iter().filter(|window| off(window).abs() > TOLERANCE).count();
    Some(Little {
        worst: off(worst),
        flagged: u32::try_from(flagged).unwrap_or(u32::MAX),
        measurements: u32::try_from(windows.len()).unwrap_or(u32::MAX),
        cause: (flagged > 0).then(|| cause(worst, off(worst))),
    })
}

fn windows(load: &load::Summary) -> Vec<Window<'_>> {
    if load.plateaus.is_empty() {
        return vec![Window {
            load,
            users: load.users as f64,
            iterations: (load.ok + load.failed()) as f64,
            seconds: load.seconds,
            generator_cpu_s: load.generator_cpu_s,
            product: load.little_n(),
        }];
    }
    let plateaus = load.plateaus.iter().map(|plateau| Window {
        load,
        users: plateau.level,
        iterations: (plateau.ok + plateau.failed()) as f64,
        seconds: plateau.seconds,
        generator_cpu_s: plateau.generator_cpu_s,
        product: plateau.little_n(),
    });
    plateaus.collect()
}

/// The first explanation that the figures of the measurement bear out.
fn cause(window: &Window<'_>, off: f64) -> String {
    let cpu = window.generator_cpu_s / window.seconds;
    let each = window.iterations / window.users;
    if cpu >= GENERATOR_BUSY {
        return format!("the generator used {:.0} % of its core and fell behind", cpu * 100.0);
    }
    if window.load.abandoned > 0 {
        return format!(
            "{} iterations were cut off after the window; their time is in no cycle",
            window.load.abandoned
        );
    }
    if let Some([first, second]) = halves(window).filter(|[first, second]| (second / first - 1.0).abs() > STEADY) {
        return format!(
            "no plateau: {first:.1} iterations a second in the first half of the window, {second:.1} in the second"
        );
    }
    // What the ends of the window cut is at most one cycle a user.
    if off.abs() <= 1.0 / each.max(f64::EPSILON) {
        return format!(
            "the window is short: {each:.1} iterations a user, and what its ends cut can be up to {:.0} %",
            100.0 / each.max(1.0)
        );
    }
    // Where a few take far longer than the others, it is one of those.
    let longest_s = window.load.latency.max() as f64 / 1_000_000.0;
    if off.abs() <= longest_s / window.seconds {
        return format!(
            "the window of {:.0} s is short beside the longest request, {longest_s:.1} s: what its ends cut can be up to {:.0} %",
            window.seconds,
            100.0 * longest_s / window.seconds
        );
    }
    if off < 0.0 {
        "users lost time between two iterations, which no cycle contains: the generator was late".to_owned()
    } else {
        "iterations that began long before the window ended in it: something stood still before".to_owned()
    }
}

/// Iterations a second in the two halves of the window.
fn halves(window: &Window<'_>) -> Option<[f64; 2]> {
    // A series from before it told the level has one plateau.
    let of_it = |second: &&load::Second| !second.warm_up && (second.level == window.users || second.level == 0.0);
    let seconds: Vec<&load::Second> = window.load.series.iter().filter(of_it).collect();
    if seconds.len() < 4 {
        return None;
    }
    let rate = |seconds: &[&load::Second]| {
        let ended = |second: &load::Second| second.ok + second.errors.values().sum::<u64>();
        let length: f64 = seconds.iter().map(|second| second.length_s).sum();
        seconds.iter().map(|second| ended(second)).sum::<u64>() as f64 / length.max(f64::EPSILON)
    };
    let (first, second) = seconds.split_at(seconds.len() / 2);
    Some([rate(first), rate(second)]).filter(|[first, _]| *first > 0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::tests::summary;

    /// 10 users, 100 iterations each, in a cycle that makes the product `off` by that share.
    fn load(off: f64) -> load::Summary {
        load::Summary {
            cycle_mean_s: 0.1 * (1.0 + off),
            ..summary(100.0)
        }
    }

    fn judged(load: load::Summary) -> Little {
        let run = Evidence {
            load: Some(load),
            ..Evidence::default()
        };
        check(&[&run]).unwrap()
    }

    fn told(load: load::Summary) -> String {
        judged(load).cause.unwrap()
    }

    #[test]
    fn two_percent_are_let_pass_and_three_are_not() {
        assert_eq!(judged(load(0.019)).cause, None);
        let flagged = judged(load(-0.03));
        assert_eq!((flagged.flagged, flagged.measurements), (1, 1));
        assert!((flagged.worst + 0.03).abs() < 1e-9, "{flagged:?}");
    }

    #[test]
    fn every_plateau_is_held_against_its_own_number_of_users() {
        let plateau = |level: f64, product: f64| load::Plateau {
            level,
            warm_up_s: 1.0,
            seconds: 10.0,
            ok: 1000,
            errors: BTreeMap::new(),
            throughput: 100.0,
            latency: summary(100.0).latency,
            raw_latency: None,
            cycle_mean_s: product / 100.0,
            generator_cpu_s: 0.1,
            late: 0,
            dropped: 0,
            skipped: 0,
        };
        let steps = load::Summary {
            users: 20,
            plateaus: vec![plateau(5.0, 5.01), plateau(10.0, 9.0), plateau(20.0, 20.1)],
            ..summary(100.0)
        };
        let judged = judged(steps);
        assert_eq!((judged.flagged, judged.measurements), (1, 3));
        assert!((judged.worst + 0.1).abs() < 1e-9, "{judged:?}");
    }

    #[test]
    fn the_cause_is_read_off_the_measurement() {
        let busy = load::Summary {
            generator_cpu_s: 9.0,
            ..load(-0.1)
        };
        assert!(told(busy).contains("90 % of its core"));
        let cut = load::Summary {
            abandoned: 3,
            ..load(-0.1)
        };
        assert!(told(cut).contains("3 iterations were cut off"));
        let second = |index: u64, ok: u64| load::Second {
            index,
            start_s: index as f64,
            length_s: 1.0,
            warm_up: index < 2,
            level: 10.0,
            ok,
            errors: BTreeMap::new(),
            p50_ms: 1.0,
            p95_ms: 1.0,
            max_ms: 1.0,
        };
        let ramp = load::Summary {
            series: (0..12).map(|index| second(index, 50 + 10 * index)).collect(),
            ..load(0.1)
        };
        assert!(told(ramp).contains("no plateau"));
        let short = load::Summary {
            ok: 50,
            throughput: 5.0,
            cycle_mean_s: 1.8,
            ..summary(5.0)
        };
        assert!(told(short).contains("5.0 iterations a user"));
        let mut tailed = load(-0.4);
        tailed.latency.record(7_000_000).unwrap();
        assert!(told(tailed).contains("10 s is short beside the longest request, 7.0 s"));
        assert!(told(load(-0.1)).contains("lost time between two iterations"));
        assert!(told(load(0.1)).contains("stood still"));
    }
}
