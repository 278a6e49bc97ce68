//! What the report says of deadlocks and old snapshots, and of arms against their predicted ceilings.

use super::*;

/// Where a text stands in the page, for the order of what is drawn.
fn place(html: &str, text: &str) -> usize {
    html.find(text).unwrap_or_else(|| panic!("{text} is not in the page"))
}

#[test]
fn arms_that_are_categories_are_drawn_by_their_predicted_ceilings_with_what_was_measured_beside() {
    let mut results = results();
    results.curves.clear();
    let hold = |ceiling_per_s: f64| {
        Some(Hold {
            ceiling_per_s,
            ..results.arms[0].hold.unwrap()
        })
    };
    let (high, low) = (hold(640.0), hold(12.5));
    results.arms = vec![
        arm("update-last", 180.0),
        arm("update-first", 11.0),
        arm("none", 190.0),
        arm("cached", 200.0),
    ];
    results.arms[0].hold = high;
    results.arms[1].hold = low;
    results.arms[2].hold = None;
    results.arms[3].hold = low;
    let experiment = Experiment::find("replica-scaling").unwrap();
    let html = html::render(&experiment, &results, None, &events(10)).unwrap();
    let (_, chart) = html.split_once("Predicted ceiling against measured").unwrap();
    let (chart, _) = chart.split_once("</figure>").unwrap();
    assert!(place(chart, ">update-first<") < place(chart, ">update-last<"));
    assert!(
        place(chart, ">update-last<") < place(chart, ">none<"),
        "what has no ceiling comes last"
    );
    for told in ["88 % of 12.5", "28 % of 640", "190, no hold", "Above it: cached;"] {
        assert!(chart.contains(told), "{told} in {chart}");
    }
    for arm in &mut results.arms {
        arm.hold = None;
    }
    let html = html::render(&experiment, &results, None, &events(10)).unwrap();
    assert!(!html.contains("Predicted ceiling"), "nothing predicts anything");
}

#[test]
fn a_deadlock_is_shown_as_a_circle_with_why_and_what_to_do() {
    let (html, markdown) = pages(10);
    for told in [
        "| deadlocks | 3 | 3 |",
        "**1 replica, tuned**: 3 deadlocks.",
        "2 were logged like this, noticed after up to 1001 ms",
        "1. `UPDATE t SET a = $1 WHERE a < $2` waits for ShareLock on transaction; rolled back",
        "2. `UPDATE t SET a = $1 WHERE a < $2` waits for ExclusiveLock on tuple of tenant_config\n",
        "What to do: One order.",
    ] {
        assert!(markdown.contains(told), "{told} in {markdown}");
    }
    for told in [
        "<h2>Deadlocks</h2>",
        "WHERE a &lt; $2</code> waits for",
        "; rolled back</li>",
        "One order.",
    ] {
        assert!(html.contains(told), "{told}");
    }
    let mut results = results();
    results.arms[0].deadlocks = Some(Deadlocks::default());
    assert!(terminal_table(&results).contains("deadlocks"));
    results.arms[1].deadlocks = None;
    assert!(
        !terminal_table(&results).contains("deadlocks"),
        "where there is none in any arm nothing is said"
    );
}

#[test]
fn the_oldest_snapshot_and_what_it_keeps_are_told() {
    let (_, markdown) = pages(10);
    assert!(
        markdown.contains("| oldest snapshot, transactions | 4000 | 4000 |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| table updated most, kB | 3900 (tenant_config) | 3900 (tenant_config) |"),
        "{markdown}"
    );
}

#[test]
fn a_ceiling_of_the_few_requests_that_lock_the_row_is_not_held_against_all_of_them() {
    let mut results = results();
    results.arms[0].requests = 1000;
    let table = table::full(&results);
    let (_, cells) = table
        .rows
        .iter()
        .find(|(name, _)| name == "ceiling by the hold time /s")
        .unwrap();
    assert_eq!(
        cells[..],
        [
            "12.5 (of those that lock it, 10 % of all)",
            "12.5 (measured: 96 % of it)"
        ]
    );
    let experiment = Experiment::find("replica-scaling").unwrap();
    results.curves.clear();
    let html = html::render(&experiment, &results, None, &events(10)).unwrap();
    assert!(html.contains("11.0, 10 % lock it"), "the chart says so as well");
}
