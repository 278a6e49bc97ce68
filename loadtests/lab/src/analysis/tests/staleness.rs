//! How late readers were, over all rounds.

use super::*;
use crate::results::Staleness;

#[test]
fn what_readers_saw_late_is_put_together_over_the_rounds_and_the_longest_of_each_round_can_be_claimed() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[10.0, 10.0, 10.0, 10.0],
        waiters: 0,
    }];
    let mut events = stream(&arms, true);
    let mut rounds = 0;
    for stamped in &mut events {
        if let Event::Audit { audit, .. } = &mut stamped.event {
            rounds += 1;
            *audit = Audit {
                passed: true,
                promised: "eventual(1000ms)".into(),
                stale_ms: vec![0, 700 + rounds],
                seen_after_ms: vec![100 * rounds, 300],
                behind_ms: vec![rounds, 50],
                lost_messages: 2,
                ..Audit::default()
            };
        }
    }
    let claims = vec![
        claim(Metric::Staleness, &["one"], Expect::AtMost, 500.0),
        claim(Metric::LostMessages, &["one"], Expect::AtLeast, 1.0),
    ];
    let results = analyse(&experiment(&arms, claims), &events).unwrap();
    let expected = Staleness {
        promised: "eventual(1000ms)".into(),
        changes: 8,
        p50_ms: 300.0,
        max_ms: 400.0,
        under_load_max_ms: 704.0,
        modified_at_p50_ms: Some(27.0),
        modified_at_max_ms: Some(50.0),
    };
    assert_eq!(results.arms[0].staleness, Some(expected));
    // The longest of the rounds: 300, 300, 300 and 400.
    assert_eq!(results.claims[0].measured, Some(325.0));
    assert_eq!(results.arms[0].measure(Metric::Staleness), Some(400.0));
    assert_eq!(
        (
            results.claims[1].measured,
            results.arms[0].measure(Metric::LostMessages)
        ),
        (Some(2.0), Some(2.0))
    );
    assert_eq!(results.arms[0].audit.lost_messages, 8);
    assert!(
        results.arms[0].audit.seen_after_ms.is_empty(),
        "single values stay in the stream"
    );
}

#[test]
fn where_no_reader_is_promised_anything_there_is_no_staleness() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[10.0],
        waiters: 0,
    }];
    let results = analyse(&experiment(&arms, Vec::new()), &stream(&arms, true)).unwrap();
    assert_eq!(results.arms[0].staleness, None);
    assert_eq!(results.arms[0].measure(Metric::Staleness), None);
}
