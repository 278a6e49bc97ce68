//! For how long the hot row was held, and what that alone lets through.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use crate::events::HoldSample;
use crate::results::Hold;

/// All holds of an arm's rounds; `None` when none was seen.
pub(super) fn summarise<'e>(runs: impl IntoIterator<Item = &'e Evidence>) -> Option<Hold> {
    let runs: Vec<&Evidence> = runs.into_iter().collect();
    let rows = runs.iter().map(|run| run.hot_rows).max().unwrap_or_default().max(1);
    let samples: Vec<&HoldSample> = runs.into_iter().flat_map(|run| &run.holds).collect();
    let count: u64 = samples.iter().map(|sample| sample.count).sum();
    if count == 0 {
        return None;
    }
    let mean_ms = samples.iter().map(|sample| sample.total_ms).sum::<f64>() / count as f64;
    Some(Hold {
        count,
        mean_ms,
        p95_ms: quantile_ms(&samples, 0.95),
        max_ms: samples.iter().map(|sample| sample.max_ms).fold(0.0, f64::max),
        unmeasured: samples.iter().map(|sample| sample.unmeasured).sum(),
        rows,
        ceiling_per_s: rows as f64 * 1000.0 / mean_ms,
    })
}

/// Upper bound of the bucket that holds the quantile, over the merged buckets of all samples.
fn quantile_ms(samples: &[&HoldSample], share: f64) -> f64 {
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for (bound, count) in samples.iter().flat_map(|sample| &sample.buckets) {
        *buckets.entry(*bound).or_default() += count;
    }
    let all: u64 = buckets.values().sum();
    let wanted = share * all as f64;
    let mut below = 0;
    let found = buckets.into_iter().find(|(_, count)| {
        below += count;
        below as f64 >= wanted
    });
    found.map_or(0.0, |(bound_us, _)| bound_us as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_one_over_the_mean_of_all_holds_and_percentiles_come_from_merged_buckets() {
        let sample = |count: u64, each_ms: f64, bound_us: u64| HoldSample {
            count,
            total_ms: count as f64 * each_ms,
            max_ms: each_ms,
            buckets: vec![(bound_us, count)],
            ..HoldSample::default()
        };
        let run = Evidence {
            holds: vec![
                sample(90, 50.0, 50_000),
                HoldSample::default(),
                sample(10, 150.0, 150_000),
            ],
            ..Evidence::default()
        };
        let hold = summarise([&run]).unwrap();
        assert_eq!((hold.count, hold.mean_ms, hold.max_ms), (100, 60.0, 150.0));
        assert_eq!(hold.p95_ms, 150.0);
        assert!((hold.ceiling_per_s - 1000.0 / 60.0).abs() < 1e-9);
        assert_eq!(summarise([&Evidence::default()]), None);
    }

    #[test]
    fn several_hot_rows_let_through_so_many_times_what_one_does() {
        let hold = HoldSample {
            count: 10,
            total_ms: 500.0,
            ..HoldSample::default()
        };
        let run = |hot_rows| Evidence {
            holds: vec![hold.clone()],
            hot_rows,
            ..Evidence::default()
        };
        assert_eq!(summarise([&run(1)]).unwrap().ceiling_per_s, 20.0);
        let four = summarise([&run(4), &run(4)]).unwrap();
        assert_eq!((four.rows, four.mean_ms, four.ceiling_per_s), (4, 50.0, 80.0));
    }
}
