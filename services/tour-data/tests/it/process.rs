//! The binary: what it says about itself, and that it refuses what it cannot do.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

async fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tour-data"));
    command.env_clear().args(arguments).envs(variables.iter().copied());
    command.output().await.expect("it runs")
}

#[tokio::test]
async fn describe_lists_one_baseline_an_axis_and_audit_files_that_exist() {
    let output = run(&["--describe"], &[]).await;
    assert!(output.status.success());
    let described: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let alternatives = described["alternatives"].as_array().expect("a list");
    for (axis, names) in [
        ("inserts", &["per-row"][..]),
        (
            "touch",
            &["none", "select-for-update-first", "update-first", "update-last"],
        ),
        ("announce", &["after-commit"]),
        ("placement", &["single"]),
    ] {
        let known: Vec<&Value> = alternatives.iter().filter(|one| one["axis"] == axis).collect();
        let known_names: Vec<_> = known.iter().map(|one| one["name"].as_str().expect("a name")).collect();
        assert!(
            names.iter().all(|name| known_names.contains(name)),
            "{axis}: {known_names:?}"
        );
        let baselines: Vec<_> = known.iter().filter(|one| one["baseline"] == true).collect();
        let fields = described["config"].as_array().expect("a list");
        let field = fields
            .iter()
            .find(|field| field["flag"] == format!("--{axis}"))
            .expect("it can be configured");
        assert_eq!(
            (baselines.len(), &baselines[0]["name"]),
            (1, &field["default"]),
            "{axis}"
        );
    }
    let named = |name: &str| {
        alternatives
            .iter()
            .find(|one| one["name"] == name)
            .expect("it is listed")
    };
    let update_first = named("update-first");
    let promise = serde_json::json!({"config": "exact", "modified_at": "last-writer-wins", "kept": "row", "loses": []});
    assert_eq!(update_first["promise"], promise);
    let loss = &named("write-behind")["promise"]["loses"][0];
    assert_eq!(loss["of"], "acknowledged");
    assert_eq!(loss["causes"], serde_json::json!(["replica"]));

    let queues = serde_json::json!([
        {"name": "tour.created"},
        {"name": "tour.touched", "for": {"axis": "touch", "name": "queue"}},
    ]);
    assert_eq!(described["queues"], queues);

    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named: Vec<_> = described["audit"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["path"].as_str().expect("a path"))
        .collect();
    assert!(named.iter().all(|path| checkout.join(path).is_file()), "{named:?}");
    let files = std::fs::read_dir(checkout.join("services/tour-data/audit"))
        .expect("the folder exists")
        .count();
    assert_eq!(files, named.len(), "every audit file is named");
}

#[tokio::test]
async fn an_unknown_alternative_ends_with_status_2_and_names_the_known_ones() {
    let output = run(&[], &[("TOUR_DATA_TOUCH", "update-frist")]).await;
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    for part in [
        "TOUR_DATA_TOUCH",
        "update-frist",
        "update-first",
        "select-for-update-first",
        "update-last",
        "none",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
}

#[tokio::test]
async fn a_misspelt_variable_ends_with_status_2() {
    let output = run(&[], &[("TOUR_DATA_TUOCH", "none")]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("TOUR_DATA_TOUCH"));
}

/// What does not go together is refused before anything is connected.
#[tokio::test]
async fn alternatives_that_do_not_go_together_end_with_status_2_and_the_reason() {
    let reachable = [
        ("TOUR_DATA_DB_URL", "postgres://127.0.0.1:1/none"),
        ("TOUR_DATA_REDIS_URL", "redis://127.0.0.1:1"),
        ("TOUR_DATA_AMQP_URL", "amqp://127.0.0.1:1/%2f"),
        ("TOUR_DATA_AUTH_ISSUER", "http://127.0.0.1:1"),
    ];
    for (settings, says) in [
        (
            &[
                ("TOUR_DATA_INSERTS", "single-statement"),
                ("TOUR_DATA_TOUCH", "advisory-lock"),
            ][..],
            &["single-statement", "advisory-lock", "no promised order"][..],
        ),
        (
            &[
                ("TOUR_DATA_INSERTS", "pipelined"),
                ("TOUR_DATA_TOUCH", "select-for-update-first"),
            ],
            &["pipelined", "select-for-update-first", "needs the answer"],
        ),
        (
            &[
                ("TOUR_DATA_PLACEMENT", "tenant-shards"),
                ("TOUR_DATA_SHARDS", "shard_1"),
                ("TOUR_DATA_ISOLATION", "serializable"),
            ],
            &["tenant-shards", "Serializable", "read-committed"],
        ),
        (
            &[
                ("TOUR_DATA_TOUCH", "advisory-lock"),
                ("TOUR_DATA_ISOLATION", "repeatable-read"),
            ],
            &["advisory-lock", "RepeatableRead", "read-committed"],
        ),
        (
            &[("TOUR_DATA_DB_PREPARED", "false"), ("TOUR_DATA_INSERTS", "copy")],
            &["copy", "TOUR_DATA_DB_PREPARED=false", "a statement with a name"],
        ),
        (
            &[("TOUR_DATA_DB_PREPARED", "false"), ("TOUR_DATA_TOUCH", "cached")],
            &["cached", "TOUR_DATA_DB_PREPARED=false", "LISTEN"],
        ),
        (
            &[
                ("TOUR_DATA_DB_PREPARED", "false"),
                ("TOUR_DATA_PLACEMENT", "tenant-shards"),
                ("TOUR_DATA_SHARDS", "shard_1"),
            ],
            &["tenant-shards", "TOUR_DATA_DB_PREPARED=false", "search_path"],
        ),
        (&[("TOUR_DATA_PLACEMENT", "tenant-shards")], &["TOUR_DATA_SHARDS"]),
        (
            &[("TOUR_DATA_SHARDS", "shard_1")],
            &["single", "shard_1", "tenant-shards"],
        ),
    ] {
        let output = run(&[], &[&reachable, settings].concat()).await;
        let message = [output.stderr, output.stdout].concat();
        let message = String::from_utf8_lossy(&message);
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in says {
            assert!(message.contains(part), "{part} is not in {message}");
        }
    }
}
