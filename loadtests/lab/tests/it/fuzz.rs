//! Mutated payloads, a few seconds of them under a fixed seed. `cargo rowlock fuzz` goes on for as long as one likes.

use serde_json::Value;

use crate::rowlock::{Folder, json, machine, run_expecting, text};

#[test]
fn whatever_a_body_holds_no_answer_is_a_5xx_and_no_tour_is_written_in_part() {
    let _machine = machine();
    let folder = Folder::new("fuzz");
    let output = run_expecting(
        0,
        &[
            "fuzz",
            "--inputs",
            "3000",
            "--seed",
            "20250318",
            "--json",
            "--name",
            "it-fuzz",
            "--out",
            folder.str(),
        ],
    );
    let findings = json(&output);
    assert_eq!(findings["inputs"], 3000, "{}", text(&output));
    let count = |status: &str| findings["statuses"][status].as_u64().unwrap_or_default();
    // Every kind of answer was asked for: otherwise this would be a test of one refusal.
    for status in ["201", "400", "413", "415", "422"] {
        assert!(count(status) > 0, "no {status}: {findings:#}");
    }
    assert_eq!(findings["kept"], Value::from(Vec::<Value>::new()));
    assert!(findings["audit"].as_array().expect("checks").len() >= 4, "{findings:#}");
}
