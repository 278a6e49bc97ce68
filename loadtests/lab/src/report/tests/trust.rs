//! What the report says of how far its figures can be trusted.

use super::*;

#[test]
fn the_curve_shows_what_was_measured_the_law_and_the_predicted_ceiling() {
    let (html, markdown) = pages(10);
    assert!(markdown.contains("## Throughput over users"), "{markdown}");
    assert!(
        markdown.contains("| 8 | 8 users | 11.60 | 11.10 … 12.10 | 11.11 | 12.50 | 100 |"),
        "{markdown}"
    );
    for drawn in [
        "ceiling, 1 / hold time",
        "Universal Scalability",
        "Knee at 2.",
        "Contention σ = 0.6.",
    ] {
        assert!(html.contains(drawn), "{drawn}");
    }
    assert!(
        markdown.contains("| hold of the hot row ms | 80 (p95 95, 100 holds) |"),
        "{markdown}"
    );
    assert!(markdown.contains("12.5 (measured: 88 % of it)"), "{markdown}");
}

#[test]
fn what_was_looked_at_before_a_measurement_and_how_it_began_is_told() {
    let (html, markdown) = pages(10);
    assert!(
        html.contains("<td>queue-empty</td><td>yes</td><td>0 messages in &lt;2&gt; queues"),
        "{html}"
    );
    assert!(
        markdown.contains("| queue-empty | yes | 0 messages in <2> queues |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| warm-up s | 2.0, 3.5; not steady: still rising |"),
        "{markdown}"
    );
}

#[test]
fn an_open_loop_shows_both_latencies_and_every_send_that_was_not_made_as_asked() {
    let mut results = results();
    results.arms[0].open = Some(Open {
        asked_rate: 12.0,
        sent: 240,
        late: 7,
        dropped: 2,
        skipped: 1,
        send_lag_p99_ms: 1.5,
        generator_limited: true,
        raw_latency_ms: Latency {
            p95: 300.0,
            ..results.arms[0].latency_ms
        },
    });
    let table = terminal_table(&results);
    assert!(table.contains("300") && table.contains("dropped"), "{table}");
    let experiment = Experiment::find("replica-scaling").unwrap();
    let text = markdown::render(&experiment, &results, None);
    for told in [
        "| 800, 300, 1500, 1700 | – |",
        "| 240 at 12.0/s; 7 late, 2 dropped, 1 skipped | – |",
        "| 1.50 (GENERATOR-LIMITED) | – |",
        "| 9.9 under way | 9.9 of 10; 1 of 4",
    ] {
        assert!(text.contains(told), "{told} in {text}");
    }
}

#[test]
fn the_noise_floor_and_a_departure_from_littles_law_stand_beside_the_figures() {
    let (html, markdown) = pages(10);
    for text in [&html, &markdown] {
        assert!(text.contains("throughput differs by 1.01x (0.97 … 1.05)"), "{text}");
        assert!(text.contains("throughput yes, p95 no"), "{text}");
        assert!(
            text.contains("1 of 4 measurements off by more than 2 %, most by -3.1 %"),
            "{text}"
        );
    }
    assert!(markdown.contains("0.92x (0.85 … 0.99)"), "{markdown}");
    let table = terminal_table(&results());
    assert!(
        table.contains("Little's law is off by -3.1 %: the window is short"),
        "{table}"
    );
}

#[test]
fn results_from_before_the_newer_fields_are_still_read_and_shown() {
    let mut old = serde_json::to_value(results()).unwrap();
    for field in ["published", "noise_floor", "curves", "refused"] {
        old.as_object_mut().unwrap().remove(field);
    }
    for arm in old["arms"].as_array_mut().unwrap() {
        for field in [
            "p95_rounds_ms",
            "little",
            "hold",
            "open",
            "preflight",
            "warm_up",
            "deadlocks",
            "versions",
        ] {
            arm.as_object_mut().unwrap().remove(field);
        }
    }
    for field in [
        "p95_paired_ratio",
        "p95_ci95",
        "throughput_beyond_noise",
        "p95_beyond_noise",
    ] {
        old["comparisons"][0].as_object_mut().unwrap().remove(field);
    }
    old["claims"][0].as_object_mut().unwrap().remove("figure");
    let old: Results = serde_json::from_value(old).unwrap();
    let experiment = Experiment::find("replica-scaling").unwrap();
    let text = markdown::render(&experiment, &old, None);
    assert!(text.contains("9.9 of 10") && !text.contains("Noise floor"), "{text}");
}
