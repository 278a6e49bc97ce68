//! Little's law, measurement by measurement: in a closed loop, throughput × mean cycle is the number of users. Where it is
//! not, either the generator or the window has changed what was measured, and the likely cause is named.

use super::bottleneck::GENERATOR_BUSY;
use super::evidence::Evidence;
use crate::results::Little;

/// Beyond this share a measurement is flagged.
const TOLERANCE: f64 = 0.02;
/// Rates of the window's halves that differ by more are no plateau.
const STEADY: f64 = 0.2;

/// `None` when nothing was measured.
pub(super) fn check(runs: &[&Evidence]) -> Option<Little> {
    let offs: Vec<(f64, &load::Summary)> = runs
        .iter()
        .filter_map(|run| run.load.as_ref())
        .filter(|load| load.users > 0 && load.seconds > 0.0)
        .map(|load| (load.little_n() / load.users as f64 - 1.0, load))
        .collect();
    let (worst, load) = *offs.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let flagged = offs.iter().filter(|(off, _)| off.abs() > TOLERANCE).count();
    Some(Little {
        worst,
        flagged: u32::try_from(flagged).unwrap_or(u32::MAX),
        measurements: u32::try_from(offs.len()).unwrap_or(u32::MAX),
        cause: (flagged > 0).then(|| cause(load, worst)),
    })
}

/// The first explanation that the figures of the measurement bear out.
fn cause(load: &load::Summary, off: f64) -> String {
    let cpu = load.generator_cpu_s / load.seconds;
    let each = (load.ok + load.failed()) as f64 / load.users as f64;
    if cpu >= GENERATOR_BUSY {
        return format!("the generator used {:.0} % of its core and fell behind", cpu * 100.0);
    }
    if load.abandoned > 0 {
        return format!(
            "{} iterations were cut off after the window; their time is in no cycle",
            load.abandoned
        );
    }
    if let Some([first, second]) = halves(load).filter(|[first, second]| (second / first - 1.0).abs() > STEADY) {
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
    if off < 0.0 {
        "users lost time between two iterations, which no cycle contains: the generator was late".to_owned()
    } else {
        "iterations that began long before the window ended in it: something stood still before".to_owned()
    }
}

/// Iterations a second in the two halves of the window.
fn halves(load: &load::Summary) -> Option<[f64; 2]> {
    let window: Vec<&load::Second> = load.series.iter().filter(|second| !second.warm_up).collect();
    if window.len() < 4 {
        return None;
    }
    let rate = |seconds: &[&load::Second]| {
        let ended = |second: &load::Second| second.ok + second.errors.values().sum::<u64>();
        let length: f64 = seconds.iter().map(|second| second.length_s).sum();
        seconds.iter().map(|second| ended(second)).sum::<u64>() as f64 / length.max(f64::EPSILON)
    };
    let (first, second) = window.split_at(window.len() / 2);
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
        assert!(told(load(-0.1)).contains("lost time between two iterations"));
        assert!(told(load(0.1)).contains("stood still"));
    }
}
