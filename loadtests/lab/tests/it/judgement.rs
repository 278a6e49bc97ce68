//! The commands that judge what earlier runs left behind; none of them needs a server.

use crate::rowlock::{Folder, json, run_expecting, text};

#[test]
fn the_ledger_lists_every_published_figure_with_its_verdict() {
    let empty = Folder::new("ledger");
    let list = json(&run_expecting(0, &["ledger", "--json", "--results", empty.str()]));
    let list = list.as_array().unwrap();
    assert!(list.len() > 25, "{} figures", list.len());
    for element in list {
        for key in ["figure", "published", "measured", "verdict", "unit", "says"] {
            assert!(element.get(key).is_some(), "{key} is missing in {element:#}");
        }
        assert!(element["published"].is_number(), "{element:#}");
    }
    let contradiction = list.iter().find(|element| element["figure"] == "1-tuned.p95").unwrap();
    assert_eq!(contradiction["verdict"], "cannot-hold");
    let table = text(&run_expecting(0, &["ledger"]));
    assert!(table.contains("pgbouncer.throughput-ratio"), "{table}");
    assert!(
        table.contains("PUBLISHED") && table.contains("closed loop cannot show"),
        "{table}"
    );
    run_expecting(2, &["ledger", "--results", "/nowhere"]);
}

#[test]
fn what_is_no_result_folder_cannot_be_compared() {
    let empty = Folder::new("compare");
    let output = run_expecting(2, &["compare", empty.str(), empty.str()]);
    assert!(text(&output).contains("results.json"), "{}", text(&output));
}
