//! Configuration: what is refused, what is shown, what counts as the same.

use chassis::config::{Address, Common, ConfigError, HumanDuration, Secret, parse_from};
use chassis::service::{App, Chassis, Service, StartError, start};
use serde::Serialize;
use serde_json::Value;

use crate::process;

struct Shop;

#[derive(Clone, Debug, clap::Args, Serialize)]
struct ShopConfig {
    /// How many are sold at once
    #[arg(long, default_value_t = 10)]
    batch: u32,
    /// How long to wait
    #[arg(long, default_value = "2s")]
    patience: HumanDuration,
    /// Where the stock is
    #[arg(long)]
    stock_url: Address,
    /// Opens the till
    #[arg(long)]
    till_key: Option<Secret>,
}

impl Service for Shop {
    const NAME: &'static str = "corner-shop";
    type Config = ShopConfig;

    async fn build(_: ShopConfig, _: Chassis) -> Result<App, StartError> {
        Ok(App {
            router: axum::Router::new(),
            dependencies: Vec::new(),
            background: Vec::new(),
        })
    }
}

fn parse(pairs: &[(&str, &str)]) -> Result<ShopConfig, ConfigError> {
    parse_from(Shop::NAME, pairs)
}

/// The body of `/config`.
async fn shown(common: Common, pairs: &[(&str, &str)]) -> Value {
    let running = start::<Shop>(common, parse(pairs).unwrap()).await.unwrap();
    let body = reqwest::get(format!("http://{}/config", running.admin_addr))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    running.shutdown().await.unwrap();
    serde_json::from_str(&body).unwrap()
}

#[test]
fn variables_set_fields_and_defaults_fill_the_rest() {
    let config = parse(&[
        ("CORNER_SHOP_STOCK_URL", "postgres://a:b@c/d"),
        ("CORNER_SHOP_BATCH", "3"),
        ("BATCH", "4"),
    ])
    .unwrap();
    assert_eq!(config.batch, 3);
    assert_eq!(config.patience.as_secs(), 2);
    assert_eq!(config.stock_url.as_str(), "postgres://a:b@c/d");
    assert!(config.till_key.is_none());
}

#[test]
fn an_unknown_variable_is_named_with_the_nearest_known_one_and_all_others() {
    let error = parse(&[("CORNER_SHOP_STOCK_URL", "x"), ("CORNER_SHOP_PATIENSE", "1s")]).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("CORNER_SHOP_PATIENSE") && message.contains("the nearest is CORNER_SHOP_PATIENCE;"),
        "{message}"
    );
    assert!(message.contains("CORNER_SHOP_BATCH, "), "{message}");

    let error = parse(&[("CORNER_SHOP_STOCK_URL", "x"), ("CORNER_SHOP_ZZZZZZZZZZZZZ", "1s")]).unwrap_err();
    assert!(matches!(error, ConfigError::Unknown { nearest: None, .. }), "{error}");
}

#[test]
fn a_malformed_value_names_its_variable() {
    for (variable, value) in [
        ("CORNER_SHOP_BATCH", "many"),
        ("CORNER_SHOP_PATIENCE", "5"),
        ("CORNER_SHOP_DRAIN_TIMEOUT", "soon"),
    ] {
        let message = parse(&[("CORNER_SHOP_STOCK_URL", "x"), (variable, value)])
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(variable) && message.contains(value), "{message}");
    }
}

#[test]
fn a_missing_value_names_its_variable() {
    let error = parse(&[]).unwrap_err();
    assert_eq!(
        error,
        ConfigError::Missing {
            variables: vec!["CORNER_SHOP_STOCK_URL".to_owned()]
        }
    );
}

#[test]
fn an_error_about_an_address_does_not_show_its_credentials() {
    let message = parse(&[("CORNER_SHOP_STOCK_URL", "postgres://me:hunter2@h\n/d")])
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("CORNER_SHOP_STOCK_URL") && !message.contains("hunter2"),
        "{message}"
    );
}

#[tokio::test]
async fn the_digest_changes_with_settings_and_not_with_addresses_or_instances() {
    let base = shown(Common::default(), &[("CORNER_SHOP_STOCK_URL", "postgres://h:1/d")]).await;
    let elsewhere = shown(
        Common {
            instance_id: Some("other".to_owned()),
            ..Common::default()
        },
        &[("CORNER_SHOP_STOCK_URL", "postgres://other:2/d")],
    )
    .await;
    assert_eq!(base["digest"], elsewhere["digest"]);
    assert_ne!(base["instance_id"], elsewhere["instance_id"]);
    assert_eq!(base["digest"].as_str().map(str::len), Some(64));

    let batch = shown(
        Common::default(),
        &[
            ("CORNER_SHOP_STOCK_URL", "postgres://h:1/d"),
            ("CORNER_SHOP_BATCH", "11"),
        ],
    )
    .await;
    assert_ne!(base["digest"], batch["digest"]);
    let common = Common {
        log: "warn".to_owned(),
        ..Common::default()
    };
    let log = shown(common, &[("CORNER_SHOP_STOCK_URL", "postgres://h:1/d")]).await;
    assert_ne!(base["digest"], log["digest"]);
}

#[tokio::test]
async fn the_config_endpoint_shows_every_setting_and_no_secret() {
    let shown = shown(
        Common::default(),
        &[
            ("CORNER_SHOP_STOCK_URL", "postgres://me:hunter2@h:1/d"),
            ("CORNER_SHOP_TILL_KEY", "hunter3"),
        ],
    )
    .await;
    assert_eq!(shown["service"], "corner-shop");
    assert_eq!(shown["config"]["batch"], 10);
    assert_eq!(shown["config"]["patience"], "2s");
    assert_eq!(shown["config"]["drain_timeout"], "10s");
    assert_eq!(shown["config"]["till_key"], "[redacted]");
    assert_eq!(shown["config"]["stock_url"], "postgres://[redacted]@h:1/d");
    assert!(!shown.to_string().contains("hunter"), "{shown}");
}

#[test]
fn a_process_with_an_unknown_variable_exits_with_2_and_names_it() {
    let finished = process::run(&[("HELLO_API_KEY", "k"), ("HELLO_TONNE", "short")], &[]);
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.contains("HELLO_TONNE") && finished.stderr.contains("HELLO_TONE"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_process_with_a_malformed_value_exits_with_2_and_names_its_variable() {
    for variables in [
        [("HELLO_API_KEY", "k"), ("HELLO_TONE", "rude")],
        [("HELLO_API_KEY", ""), ("HELLO_TONE", "short")],
    ] {
        let finished = process::run(&variables, &[]);
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    }
    let tone = process::run(&[("HELLO_API_KEY", "k"), ("HELLO_TONE", "rude")], &[]);
    for part in ["HELLO_TONE", "rude", "polite", "short"] {
        assert!(tone.stderr.contains(part), "{part} is not in {}", tone.stderr);
    }
    let missing = process::run(&[], &[]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("HELLO_API_KEY"), "{}", missing.stderr);
    let log = process::run(&[("HELLO_API_KEY", "k"), ("HELLO_LOG", "hello=loud")], &[]);
    assert_eq!(log.code, Some(2));
    assert!(log.stderr.contains("HELLO_LOG"), "{}", log.stderr);
}

#[test]
fn a_value_that_the_service_refuses_exits_with_2() {
    let finished = process::run(&[("HELLO_API_KEY", "k"), ("HELLO_NAME", "")], &[]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stdout.contains("HELLO_NAME"), "{}", finished.stdout);
}

#[test]
fn a_taken_port_exits_with_3_and_names_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = process::run(&[("HELLO_API_KEY", "k"), ("HELLO_HTTP_ADDR", &address)], &[]);
    assert_eq!(finished.code, Some(3));
    assert!(finished.stdout.contains(&address), "{}", finished.stdout);
}

#[test]
fn a_flag_wins_over_its_variable() {
    let finished = process::run(&[("HELLO_API_KEY", "k"), ("HELLO_NAME", "me")], &["--name="]);
    assert_eq!(finished.code, Some(2), "the empty name came by the flag");
}

#[test]
fn describe_lists_what_can_be_set_without_needing_any_of_it() {
    let finished = process::run(&[("HELLO_TONNE", "ignored")], &["--describe"]);
    assert_eq!(finished.code, Some(0));
    let description: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(description["service"], "hello");
    assert_eq!(description["migrates"], false);
    let config = description["config"].as_array().unwrap();
    let tone = config.iter().find(|option| option["name"] == "HELLO_TONE").unwrap();
    assert_eq!(tone["flag"], "--tone");
    assert_eq!(tone["default"], "polite");
    assert_eq!(tone["values"], serde_json::json!(["polite", "short"]));
    assert!(
        config
            .iter()
            .any(|option| option["name"] == "HELLO_DRAIN_TIMEOUT" && option["default"] == "10s")
    );
    assert!(
        config
            .iter()
            .any(|option| option["name"] == "HELLO_API_KEY" && option["required"] == true)
    );
}

#[test]
fn migrating_a_service_without_database_exits_with_2() {
    let finished = process::run(&[("HELLO_API_KEY", "k")], &["migrate"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stdout.contains("no database"), "{}", finished.stdout);
}
