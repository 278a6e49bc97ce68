//! Wrong usage is exit status 2 and says what would be right; a stack that is not there is 3.

use crate::rowlock::{run_expecting, text};

#[test]
fn what_is_unknown_ends_with_2_and_the_known_ones_are_named() {
    for (arguments, told) in [
        (&["run", "no-such-experiment"][..], "row-lock-demo"),
        (&["run", "row-lock-demo", "--arm", "7 replicas"], "2 replicas"),
        (&["run", "row-lock-demo", "--duration", "5"], "20s"),
        (&["bench", "tour.vs_oracle"], "tour.vs_pgbench"),
        (&["up", "--replicas", "tour-data"], "KEY=VALUE"),
        (&["up", "--rtt", "cable=1ms"], "db"),
        (&["load", "http://example.org/"], "loopback"),
        (&["fault", "kil", "postgres"], "cut, fill-disk, kill"),
        (&["fault", "kill", "postgres", "--for", "5"], "20s"),
        (&["fault", "kill", "postgres", "--rtt", "5ms"], "only `slow`"),
        (&["fault", "kill"], "<TARGET>"),
        (&["up", "--volume", "postgres=256"], "256MB"),
        (&["up", "--cpus", "tour-data=half"], "0.5"),
        (&["run"], "<EXPERIMENT>"),
        (&["run", "--resume", "x", "--rounds", "2"], "--rounds"),
        (&["run", "row-lock-demo", "--order", "baab"], "random"),
        (&["run", "row-lock-demo", "--order", "abba", "--seed", "7"], "random"),
        (&["new", "tuch", "mine"], "inserts, touch, announce, placement"),
        (&["new", "touch", "My_Own"], "small letters"),
        (&["new", "touch", "update-last"], "deferred-trigger"),
        (&["fixes", "--results", "/nowhere"], "/nowhere"),
        (&["fixes", "--json", "--markdown"], "--markdown"),
        (&["fly"], "fly"),
    ] {
        let output = run_expecting(2, arguments);
        assert!(
            text(&output).contains(told),
            "{arguments:?} should tell `{told}`:\n{}",
            text(&output)
        );
    }
}

#[test]
fn an_unknown_alternative_or_variable_is_refused_before_anything_is_started() {
    let _machine = crate::rowlock::machine();
    for (arguments, told) in [
        (
            &["up", "--name", "it-usage", "--touch", "update-frist"][..],
            "update-last",
        ),
        (
            &["up", "--name", "it-usage", "--set", "TOUR_DATA_TUCH=none"],
            "TOUR_DATA_TOUCH",
        ),
    ] {
        let output = run_expecting(2, arguments);
        assert!(
            text(&output).contains(told),
            "{arguments:?} should tell `{told}`:\n{}",
            text(&output)
        );
    }
    run_expecting(3, &["ps", "--name", "it-usage"]);
}

#[test]
fn a_stack_that_does_not_run_is_said_with_the_command_that_starts_it() {
    for command in [&["ps"][..], &["down"], &["locks"], &["fault", "kill", "postgres"]] {
        let output = run_expecting(3, &[command, &["--name", "it-nobody"]].concat());
        assert!(text(&output).contains("up --name it-nobody"), "{}", text(&output));
    }
}

#[test]
fn the_faults_are_listed_with_what_they_can_be_aimed_at() {
    let list = crate::rowlock::json(&run_expecting(0, &["fault", "--list", "--json"]));
    let kinds: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|kind| kind["name"].as_str())
        .collect();
    let expected = ["cut", "fill-disk", "kill", "old-snapshot", "restart", "slow", "stop"];
    assert_eq!(kinds, expected);
    assert_eq!(list[0]["targets"], serde_json::json!(["db", "redis", "broker"]));
    let table = run_expecting(0, &["fault", "--list"]);
    assert!(text(&table).contains("SIGSTOP"), "{}", text(&table));
}

#[test]
fn the_experiments_are_listed_with_their_question_and_every_arm() {
    let _machine = crate::rowlock::machine();
    let list = crate::rowlock::json(&run_expecting(0, &["experiments", "--json"]));
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|each| each["name"].as_str())
        .collect();
    assert!(
        names.contains(&"row-lock-demo") && names.contains(&"replica-scaling"),
        "{names:?}"
    );
    assert!(
        list[0]["question"]
            .as_str()
            .is_some_and(|question| question.ends_with('?'))
    );
    let all = list.as_array().unwrap().iter();
    let ranking = all.clone().find(|each| each["name"] == "hot-row-fixes").unwrap();
    let touches = crate::rowlock::json(&run_expecting(0, &["fixes", "--axis", "touch", "--json"]));
    let mut touches: Vec<&str> = touches
        .as_array()
        .unwrap()
        .iter()
        .map(|fix| fix["name"].as_str().unwrap())
        .collect();
    let mut arms: Vec<&str> = ranking["arms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arm| arm.as_str().unwrap())
        .collect();
    touches.sort_unstable();
    arms.sort_unstable();
    assert_eq!(
        arms, touches,
        "an arm for each touch, also where the file does not name it"
    );
}

#[test]
fn every_alternative_is_listed_with_its_promise_and_what_it_gives_up() {
    let _machine = crate::rowlock::machine();
    let list = crate::rowlock::json(&run_expecting(0, &["fixes", "--json"]));
    let list = list.as_array().unwrap();
    for axis in ["inserts", "touch", "announce", "placement"] {
        let of_axis: Vec<_> = list.iter().filter(|fix| fix["axis"] == axis).collect();
        assert_eq!(of_axis[0]["baseline"], true, "{axis}");
        for fix in of_axis {
            for key in ["name", "summary", "gives_up", "not_for"] {
                assert_ne!(fix[key].as_str().unwrap_or_default(), "", "{key} of {fix:#}");
            }
            let promises = ["touch", "announce"].contains(&axis);
            assert_eq!(fix["promise"].is_object(), promises, "{fix:#}");
        }
    }
    let last = list.iter().find(|fix| fix["name"] == "update-last").unwrap();
    assert_eq!(last["measured_by"], "hot-row-fixes");
    let table = run_expecting(0, &["fixes", "--axis", "touch", "--markdown"]);
    let rows = String::from_utf8_lossy(&table.stdout).matches("| touch |").count();
    assert_eq!(rows, list.iter().filter(|fix| fix["axis"] == "touch").count());
    let unknown = run_expecting(2, &["fixes", "--axis", "tuch"]);
    assert!(
        text(&unknown).contains("inserts, touch, announce, placement"),
        "{}",
        text(&unknown)
    );
}
