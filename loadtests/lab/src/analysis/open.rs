//! An arm in an open loop: whether the sends were made as asked, and what the latency would have looked like without the
//! time that they waited.

use super::latency;
use crate::results::Open;

/// All rounds together; `None` for a closed loop.
pub(super) fn summarise(loads: &[&load::Summary]) -> Option<Open> {
    let rounds: Vec<&load::OpenLoop> = loads.iter().filter_map(|load| load.open.as_ref()).collect();
    let first = rounds.first()?;
    let sum = |count: fn(&load::OpenLoop) -> u64| rounds.iter().map(|round| count(round)).sum();
    let raw: Vec<_> = rounds.iter().map(|round| &round.raw_latency).collect();
    Some(Open {
        asked_rate: first.asked_rate,
        sent: sum(|round| round.sent),
        late: sum(|round| round.late_sends),
        dropped: sum(|round| round.dropped),
        skipped: sum(|round| round.skipped),
        send_lag_p99_ms: rounds.iter().map(|round| round.send_lag_p99_ms).fold(0.0, f64::max),
        generator_limited: rounds.iter().any(|round| round.generator_limited),
        raw_latency_ms: latency(&raw),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::summary;

    #[test]
    fn what_was_not_sent_as_asked_is_summed_over_the_rounds_and_both_latencies_are_kept() {
        let load = |lag: f64, raw_us: u64| {
            let mut load = summary(10.0);
            let mut raw_latency = load.latency.clone();
            raw_latency.reset();
            raw_latency.record_n(raw_us, 100).unwrap();
            load.open = Some(load::OpenLoop {
                asked_rate: 12.0,
                seed: None,
                sent: 100,
                late_sends: 7,
                dropped: 2,
                skipped: 1,
                send_lag_p99_ms: lag,
                generator_limited: lag > 1.0,
                raw_latency,
            });
            load
        };
        let (calm, limited) = (load(0.4, 20_000), load(1.5, 40_000));
        let open = summarise(&[&calm, &limited]).unwrap();
        assert_eq!(
            (open.asked_rate, open.sent, open.late, open.dropped, open.skipped),
            (12.0, 200, 14, 4, 2)
        );
        assert_eq!((open.send_lag_p99_ms, open.generator_limited), (1.5, true));
        assert!((open.raw_latency_ms.p50 - 20.0).abs() < 0.1 && (open.raw_latency_ms.p95 - 40.0).abs() < 0.1);
        assert_eq!(summarise(&[&summary(10.0)]), None);
    }
}
