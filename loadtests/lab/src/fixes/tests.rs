//! The list over descriptions, experiments and results made by hand.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::archive::Archived;
use crate::report::tests::results;

fn descriptions() -> Descriptions {
    let exact = json!({"config": "exact", "modified_at": "last-writer-wins", "kept": "row", "loses": []});
    let behind = json!({"config": "eventual(1000ms)", "modified_at": "monotone", "kept": "computed",
    "loses": [
        {"text": "the last second", "of": "acknowledged", "causes": ["replica"]},
        {"text": "without any crash: a | b", "of": "acknowledged", "causes": ["no-fault"]},
    ]});
    Descriptions::of(
        "tour-data",
        json!({
            "config": [],
            "alternatives": [
                {"axis": "inserts", "name": "one", "summary": "one by one", "baseline": true, "gives_up": "time."},
                {"axis": "touch", "name": "behind", "summary": "later", "promise": behind,
                    "gives_up": "a second. And more.", "not_for": "Not to be used twice."},
                {"axis": "touch", "name": "first", "summary": "at once", "baseline": true, "promise": exact},
                {"axis": "touch", "name": "last", "summary": "at last", "promise": exact},
                {"axis": "touch", "name": "new", "summary": "new here", "promise": exact},
            ],
        }),
    )
}

/// An experiment with an arm for each list of settings, called as the values of its settings.
fn experiment(name: &str, common: &str, arms: &[&str], more: &str) -> Experiment {
    let arms: String = arms
        .iter()
        .map(|arm| format!("[[arm]]\nname = \"{arm}\"\nsettings = {{ {arm} }}\n"))
        .collect();
    let text = format!(
        "question = 'Which?'\nusers = 10\nwarm_up = '1s'\nduration = '2s'\nrounds = 4\ntoken = 'once'\n\
         payload = 'create-tour.json'\nrows_per_tour = 87\n[common.settings]\n{common}\n{arms}\n{more}"
    );
    Experiment::parse(&text, name).unwrap()
}

const FIRST: &str = "TOUR_DATA_TOUCH = 'first'";
const LAST: &str = "TOUR_DATA_TOUCH = 'last'";
const BEHIND: &str = "TOUR_DATA_TOUCH = 'behind'";

/// A run of the experiment, with the throughput of each arm in four rounds.
fn run(experiment: &Experiment, date: &str, throughput: &[f64]) -> Run {
    let mut results = results();
    let arm = results.arms[0].clone();
    results.completed = true;
    results.experiment.clone_from(&experiment.name);
    results.environment.started_at = format!("{date}T10:00:00Z");
    results.arms = (experiment.arms.iter().zip(throughput))
        .enumerate()
        .map(|(at, (of, mean))| {
            let mut noise = [0.99, 1.01, 1.0, 1.0];
            noise.rotate_right(at);
            let mut arm = arm.clone();
            arm.name.clone_from(&of.name);
            arm.audit.passed = true;
            arm.throughput.mean = *mean;
            arm.throughput.rounds = noise.map(|noise| mean * noise).to_vec();
            arm
        })
        .collect();
    let folder = PathBuf::from(date);
    Run {
        archived: Archived { folder, results },
        experiment: experiment.clone(),
    }
}

fn find<'f>(fixes: &'f [Fix], name: &str) -> &'f Fix {
    fixes.iter().find(|fix| fix.name == name).unwrap()
}

#[test]
fn an_alternative_is_measured_by_the_latest_run_of_the_experiment_that_ranks_its_axis() {
    let ranking = experiment("ranking", "", &[FIRST, LAST, BEHIND], "");
    let other = experiment("other", "", &[FIRST, LAST], "");
    let runs = [
        run(&other, "2026-03-01", &[10.0, 90.0]),
        run(&ranking, "2026-02-01", &[10.0, 50.0, 70.0]),
        run(&ranking, "2026-01-01", &[10.0, 20.0, 30.0]),
    ];
    let fixes = list(&descriptions(), &[other, ranking], &runs);

    let last = find(&fixes, "last").measured.as_ref().unwrap();
    assert_eq!((last.experiment.as_str(), &last.date[..10]), ("ranking", "2026-02-01"));
    assert!((last.throughput_ratio - 5.0).abs() < 1e-9, "{last:?}");
    assert!(last.ci95.is_some_and(|[low, high]| low < 5.0 && high > 5.0), "{last:?}");
    let first = find(&fixes, "first").measured.as_ref().unwrap();
    assert_eq!(
        (first.throughput, first.throughput_ratio, first.ci95),
        (10.0, 1.0, None)
    );

    // The baseline first, then by what was measured, then by name; axes as they are described.
    let names: Vec<&str> = fixes.iter().map(|fix| fix.name.as_str()).collect();
    assert_eq!(names, ["one", "first", "behind", "last", "new"]);
    assert_eq!(find(&fixes, "new").measured, None);
    assert_eq!(find(&fixes, "new").measured_by, None);
    assert_eq!(find(&fixes, "last").measured_by.as_deref(), Some("ranking"));
}

#[test]
fn only_arms_that_differ_in_the_axis_alone_are_held_against_each_other() {
    let mixed = experiment(
        "mixed",
        FIRST,
        &[
            "TOUR_DATA_DB_POOL_MAX = '10'",
            "TOUR_DATA_DB_POOL_MAX = '5'",
            "TOUR_DATA_TOUCH = 'last', TOUR_DATA_DB_POOL_MAX = '5'",
            "TOUR_DATA_TOUCH = 'behind', TOUR_DATA_DB_POOL_MAX = '7'",
        ],
        "",
    );
    let runs = [run(&mixed, "2026-01-01", &[10.0, 20.0, 60.0, 90.0])];
    let fixes = list(&descriptions(), std::slice::from_ref(&mixed), &runs);
    let last = find(&fixes, "last").measured.as_ref().unwrap();
    assert_eq!(last.against, "TOUR_DATA_DB_POOL_MAX = '5'");
    assert!((last.throughput_ratio - 3.0).abs() < 1e-9, "{last:?}");
    assert_eq!(find(&fixes, "behind").measured, None);
}

#[test]
fn what_a_fault_disturbed_ranks_nothing_and_a_failed_audit_is_told() {
    let fault = "[[fault]]\nkind = 'kill'\ntarget = 'postgres'\nat = '1s'\nfor = '500ms'\n";
    let disturbed = experiment("disturbed", "", &[FIRST, LAST, BEHIND], fault);
    let calm = experiment("calm", "", &[FIRST, LAST], "");
    let mut wrong = run(&calm, "2026-01-01", &[10.0, 50.0]);
    wrong.archived.results.arms[1].audit.passed = false;
    let fixes = list(&descriptions(), &[disturbed, calm], &[wrong]);
    assert_eq!(find(&fixes, "behind").measured_by, None);
    assert!(!find(&fixes, "last").measured.as_ref().unwrap().audit_passed);
    for rendered in [render::text(&fixes), render::markdown(&fixes)] {
        assert!(rendered.contains("audit FAILED"), "{rendered}");
    }
}

#[test]
fn the_list_says_what_each_promises_gives_up_and_came_to() {
    let ranking = experiment("ranking", "", &[FIRST, LAST, BEHIND], "");
    let runs = [run(&ranking, "2026-02-01", &[10.0, 50.0, 70.0])];
    let text = render::text(&list(&descriptions(), std::slice::from_ref(&ranking), &runs));
    for told in [
        "touch\n",
        "first (as published): at once",
        "config exact, modified_at last-writer-wins, loses nothing",
        "computed on read, may lose the last second; without any crash: a | b",
        "gives up  a second. And more.",
        "Not to be used twice.",
        "10.00 tours/s, which the others are held against; a change was not seen for 4 ms, at most 31 (ranking, 2026-02-01, \
         4 rounds)",
        "7.00x (",
        "leaves the promises of the others as they are",
        "not measured; an experiment would, with two arms that differ in TOUR_DATA_TOUCH=new alone",
    ] {
        assert!(text.contains(told), "`{told}` is missing:\n{text}");
    }
    let unmeasured = render::text(&list(&descriptions(), &[ranking], &[]));
    assert!(
        unmeasured.contains("not measured; `cargo rowlock run ranking` does"),
        "{unmeasured}"
    );
}

#[test]
fn the_table_of_the_readme_is_one_row_an_alternative_and_says_where_its_figures_are_from() {
    let ranking = experiment("ranking", "", &[FIRST, LAST, BEHIND], "");
    let runs = [run(&ranking, "2026-02-01", &[10.0, 50.0, 70.0])];
    let fixes = list(&descriptions(), &[ranking], &runs);
    let table = render::markdown(&fixes);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + fixes.len(), "{table}");
    for row in &rows {
        assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
    }
    assert!(
        rows[2].starts_with("| inserts | `one` (as published) | one by one |"),
        "{table}"
    );
    assert!(rows[3].ends_with("| 10.00 tours/s |"), "{table}");
    assert!(rows[4].contains("a \\| b | a second | 7.00x ("), "{table}");
    assert!(table.ends_with("From `ranking` of 2026-02-01, 4 rounds.\n"), "{table}");
}

#[test]
fn a_placement_is_measured_with_the_places_that_it_takes_and_a_touch_is_not() {
    let descriptions = Descriptions::of(
        "tour-data",
        json!({
            "config": [],
            "schema_settings": ["TOUR_DATA_SHARDS"],
            "alternatives": [
                {"axis": "placement", "name": "single", "summary": "one", "baseline": true},
                {"axis": "placement", "name": "shards", "summary": "many"},
                {"axis": "touch", "name": "first", "summary": "at once", "baseline": true},
                {"axis": "touch", "name": "last", "summary": "at last"},
            ],
        }),
    );
    let arms = [FIRST, "TOUR_DATA_PLACEMENT = 'shards', TOUR_DATA_SHARDS = 'a,b'"];
    let act = "[arm.act]\ntour-data = ['move-tenant BEHNGT a']";
    let experiment = experiment("places", "", &arms, act);
    let runs = [run(&experiment, "2026-01-01", &[10.0, 20.0])];
    let fixes = list(&descriptions, std::slice::from_ref(&experiment), &runs);
    // The first arm says which touch it has, the second does not: they are not alike.
    assert_eq!(find(&fixes, "shards").measured, None);
    let alike = [
        "TOUR_DATA_DB_POOL_MAX = '10'",
        "TOUR_DATA_DB_POOL_MAX = '10', TOUR_DATA_PLACEMENT = 'shards', TOUR_DATA_SHARDS = 'a'",
    ];
    let experiment = self::experiment("places", "", &alike, act);
    let runs = [run(&experiment, "2026-01-01", &[10.0, 20.0])];
    let fixes = list(&descriptions, std::slice::from_ref(&experiment), &runs);
    let shards = find(&fixes, "shards").measured.as_ref().unwrap();
    assert!((shards.throughput_ratio - 2.0).abs() < 0.05, "{shards:?}");
    assert_eq!(find(&fixes, "last").measured, None);
}
