//! The ledger over results made by hand.

use std::path::PathBuf;

use super::*;
use crate::report::tests::results;
use crate::results::{Claim, Results};

fn run(started_at: &str, rounds: u32, claims: Vec<Claim>) -> Archived {
    let mut results: Results = results();
    results.completed = true;
    results.rounds = rounds;
    results.environment.started_at = started_at.to_owned();
    results.claims = claims;
    Archived {
        folder: PathBuf::from(started_at),
        results,
    }
}

fn claim(figure: &str, measured: f64, verdict: Verdict) -> Claim {
    Claim {
        figure: Some(figure.to_owned()),
        measured: Some(measured),
        verdict,
        ..results().claims[0].clone()
    }
}

fn find<'e>(entries: &'e [Entry], figure: &str) -> &'e Entry {
    entries.iter().find(|entry| entry.figure == figure).unwrap()
}

const RATIO: &str = "tuning.throughput-ratio";

#[test]
fn every_figure_is_listed_and_one_never_measured_says_what_would() {
    let published = Published::find("create-tour").unwrap();
    let list = entries("create-tour", &published, &[]);
    assert_eq!(list.len(), published.figures.len());
    assert!(
        list.iter()
            .all(|entry| entry.measured.is_none() && entry.counterpart.is_none())
    );
    let ratio = find(&list, RATIO);
    assert_eq!(ratio.verdict, Standing::NotMeasured);
    assert!(
        ratio.note.contains("cargo rowlock run replica-scaling"),
        "{}",
        ratio.note
    );
    for figure in &published.figures {
        let Some(would) = &figure.would else { continue };
        let note = &find(&list, &figure.id).note;
        assert!(note.contains(would), "{note}");
    }
    // What contradicts itself does so without a measurement.
    assert_eq!(find(&list, "1-tuned.p95").verdict, Standing::CannotHold);
}

#[test]
fn the_latest_whole_run_counts_and_an_interrupted_one_does_not() {
    let published = Published::find("create-tour").unwrap();
    let judged = |measured, verdict| vec![claim(RATIO, measured, verdict)];
    let old = run("2026-01-01T00:00:00Z", 4, judged(1.30, Verdict::Reproduced));
    let new = run("2026-02-01T00:00:00Z", 4, judged(1.05, Verdict::NotReproduced));
    let mut cut = run("2026-03-01T00:00:00Z", 4, judged(9.0, Verdict::Reproduced));
    cut.results.completed = false;
    let short = run("2026-04-01T00:00:00Z", 1, judged(2.0, Verdict::Inconclusive));
    let mut archive = vec![old, short.clone(), cut, new];
    archive.sort_by_key(|run| std::cmp::Reverse(run.started_at()));

    let list = entries("create-tour", &published, &archive);
    let ratio = find(&list, RATIO);
    assert_eq!((ratio.measured, ratio.verdict), (Some(1.05), Standing::NotReproduced));
    let counterpart = ratio.counterpart.as_ref().unwrap();
    assert_eq!(counterpart.date, "2026-02-01T00:00:00Z");
    assert_eq!(
        (counterpart.rounds, counterpart.experiment.as_str()),
        (4, "replica-scaling")
    );

    // A single round is better than nothing.
    let list = entries("create-tour", &published, &[short]);
    assert_eq!(find(&list, RATIO).verdict, Standing::Inconclusive);
}

#[test]
fn an_arm_stands_beside_its_absolute_figure_without_a_verdict() {
    let published = Published::find("create-tour").unwrap();
    let archive = [run("2026-01-01T00:00:00Z", 4, Vec::new())];
    let list = entries("create-tour", &published, &archive);
    let tuned = find(&list, "1-tuned.throughput");
    assert_eq!((tuned.published, tuned.measured), (2.27, Some(12.0)));
    assert_eq!(
        (tuned.verdict, tuned.ci95),
        (Standing::NotComparable, Some([11.0, 13.0]))
    );
    let p95 = find(&list, "1-tuned.p95");
    assert_eq!((p95.measured, p95.verdict), (Some(1200.0), Standing::CannotHold));
}

#[test]
fn an_element_of_the_list_has_published_measured_and_verdict() {
    let published = Published::find("create-tour").unwrap();
    let archive = [run(
        "2026-01-01T00:00:00Z",
        4,
        vec![claim(RATIO, 1.3, Verdict::Reproduced)],
    )];
    let json = serde_json::to_value(entries("create-tour", &published, &archive)).unwrap();
    let element = json
        .as_array()
        .unwrap()
        .iter()
        .find(|each| each["figure"] == RATIO)
        .unwrap();
    assert_eq!(
        (&element["published"], &element["measured"], &element["verdict"]),
        (&1.32.into(), &1.3.into(), &"reproduced".into())
    );
    assert_eq!(element["counterpart"]["environment"]["cpus"], 0);
}
