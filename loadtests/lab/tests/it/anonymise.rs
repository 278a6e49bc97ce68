//! Captured payloads: what is written, and what keeps anything from being written.

use serde_json::Value;

use crate::rowlock::{Folder, json, run_expecting, text};

#[test]
fn a_payload_is_written_without_its_names_and_what_was_done_is_said() {
    let folder = Folder::new("anonymise");
    let captured = folder.path().join("captured.json");
    std::fs::write(
        &captured,
        r#"{"tour":"T-1","driver":{"lastName":"Jansen","phone":"+49 441 1234567"}}"#,
    )
    .unwrap();
    let captured = captured.to_str().unwrap();

    let dry = json(&run_expecting(0, &["anonymise", captured, "--dry-run", "--json"]));
    let written = folder.path().join("captured.anonymous.json");
    assert!(!written.exists());
    let places = |list: &Value| -> Vec<String> {
        let lines = list.as_array().unwrap().iter();
        lines.map(|line| line["place"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(places(&dry["replaced"]), ["/driver/lastName", "/driver/phone"]);
    assert_eq!(places(&dry["left"]), ["/tour"]);

    let output = run_expecting(0, &["anonymise", captured]);
    assert!(text(&output).contains("captured.anonymous.json"), "{}", text(&output));
    let anonymous: Value = serde_json::from_slice(&std::fs::read(&written).unwrap()).unwrap();
    assert_eq!(anonymous["tour"], "T-1");
    let name = anonymous["driver"]["lastName"].as_str().unwrap();
    assert!(name.len() == 6 && name != "Jansen", "{name}");
    let phone = anonymous["driver"]["phone"].as_str().unwrap();
    assert!(phone.starts_with('+') && phone.len() == 15, "{phone}");

    // Never over what is there.
    run_expecting(2, &["anonymise", captured]);
}

#[test]
fn nothing_is_written_when_one_of_the_files_would_still_tell() {
    let folder = Folder::new("anonymise-leak");
    let good = folder.path().join("good.json");
    let leak = folder.path().join("leak.json");
    std::fs::write(&good, r#"{"lastName":"Jansen"}"#).unwrap();
    std::fs::write(&leak, r#"{"label":"for Jansen"}"#).unwrap();
    let (good, leak) = (good.to_str().unwrap(), leak.to_str().unwrap());
    let out = folder.path().join("out");
    let output = run_expecting(1, &["anonymise", good, leak, "--out", out.to_str().unwrap()]);
    assert!(text(&output).contains("/label"), "{}", text(&output));
    assert!(!text(&output).contains("Jansen"), "{}", text(&output));
    assert!(!out.exists());
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = Folder::new("anonymise-bad");
    let bad = folder.path().join("bad.json");
    std::fs::write(&bad, r#"{"a":"#).unwrap();
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, "[[rule]]\nname = \"x\"\nkeys = [\"a\"]\nreplace = \"blank\"\n").unwrap();
    let (bad, rules) = (bad.to_str().unwrap(), rules.to_str().unwrap());
    let shipped = deploy::root().join("loadtests/payloads/create-tour.json");
    for (arguments, told) in [
        (&["anonymise"][..], "FILES"),
        (&["anonymise", "no-such.json"], "no-such.json"),
        (&["anonymise", bad], "bad.json is not JSON"),
        (
            &["anonymise", shipped.to_str().unwrap(), "--dry-run", "--rules", rules],
            "blank",
        ),
    ] {
        let output = run_expecting(2, arguments);
        assert!(text(&output).contains(told), "{arguments:?}: {}", text(&output));
    }
}
