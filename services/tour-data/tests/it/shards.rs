//! Tenants in schemas of their own, and moving one while it works.

use chassis::service::Service as _;
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::json;
use tour_data::TourData;

use crate::support::{Database, Link, MessageTap, Names, TourService, config, eventually, payload, variables};

const SETTINGS: [(&str, &str); 2] = [
    ("TOUR_DATA_PLACEMENT", "tenant-shards"),
    ("TOUR_DATA_SHARDS", "shard_1,shard_2"),
];

async fn sharded() -> (Database, tour_data::Config) {
    let database = Database::create().await;
    let config = config(&variables(
        &database.url(),
        "redis://127.0.0.1:1",
        "amqp://127.0.0.1:1/%2f",
        &SETTINGS,
    ));
    TourData::migrate(config.clone()).await.expect("the migrations apply");
    (database, config)
}

async fn move_tenant(config: &tour_data::Config, key: &str, shard: &str) -> Result<(), String> {
    let words = [key.to_owned(), shard.to_owned()];
    let moved = TourData::act("move-tenant", &words, config.clone()).await;
    moved.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_tenant_has_one_row_in_the_schema_it_lives_in_and_all_of_them_are_described() {
    let (database, config) = sharded().await;
    let rows = async |schema: &str| {
        database
            .number(&format!("SELECT count(*) FROM {schema}.tenant_config"))
            .await
    };
    assert_eq!(
        [rows("public").await, rows("shard_1").await, rows("shard_2").await],
        [40, 0, 0]
    );
    let keys: Vec<String> = sqlx::query_scalar("SELECT tenant_key FROM tenant_config ORDER BY id")
        .fetch_all(&database.pool)
        .await
        .expect("the query runs");
    assert_eq!(TourData::describe()["tenants"], serde_json::json!(keys));

    move_tenant(&config, "BEHNGT", "shard_1").await.expect("it moves");
    // A migration that comes later leaves the tenants where they are.
    TourData::migrate(config.clone())
        .await
        .expect("there is nothing left to apply");
    assert_eq!(
        [rows("public").await, rows("shard_1").await, rows("shard_2").await],
        [39, 1, 0]
    );
    for schema in ["shard_1", "shard_2"] {
        let slots = database
            .number(&format!("SELECT count(*) FROM {schema}.tenant_config_slot"))
            .await;
        assert_eq!(slots, 16 * rows(schema).await, "{schema}");
    }
}

#[tokio::test]
async fn a_tenant_moves_while_it_works_and_nothing_is_lost() {
    let (database, config) = sharded().await;
    let service = TourService::start(&database, &SETTINGS).await;
    let tour = payload();
    let first = service.create(&tour, Some("first")).await;
    let clients = join_all((0..4).map(async |_| {
        for _ in 0..15 {
            service.create(&tour, None).await;
        }
    }));
    let moves = async {
        for shard in ["shard_1", "shard_2", "public", "shard_1"] {
            // A deadlock with somebody who writes outside of a tour ends the move; it can be made again.
            move_tenant(&config, "BEHNGT", shard).await.expect("it moves");
        }
    };
    futures::join!(clients, moves);
    for (schema, tours) in [("public", 0), ("shard_1", 61), ("shard_2", 0)] {
        let count = format!("SELECT count(*) FROM {schema}.tour");
        assert_eq!(database.number(&count).await, tours, "{schema}");
        let of = ["address", "stop", "tour_order", "order_position"];
        let rows = of
            .map(|table| format!("(SELECT count(*) FROM {schema}.{table})"))
            .join(" + ");
        assert_eq!(database.number(&format!("SELECT {rows}")).await, tours * 86, "{schema}");
    }
    // Readers find the tenant, its tours and its keys where it is.
    assert_eq!(
        service.get(&format!("/api/v1/tours/{}", first.id)).await.0,
        StatusCode::OK
    );
    assert_eq!(service.get("/api/v1/tenants/BEHNGT").await.0, StatusCode::OK);
    assert!(service.create(&tour, Some("first")).await.replayed);
    service.running.shutdown().await.expect("it drains");
}

/// What waits for the row of a tenant that moves is not told that it is written: it is written where the tenant lives then.
#[tokio::test]
async fn a_touch_that_waited_for_a_move_is_written_where_the_tenant_lives_then() {
    let (database, _) = sharded().await;
    let settings = [&SETTINGS[..], &[("TOUR_DATA_TOUCH", "after-commit")]].concat();
    let service = TourService::start(&database, &settings).await;
    let mut tour = payload();
    tour["tenantConfig"]["tenantInfo"] = json!("on the move");
    let mut mover = database.pool.begin().await.expect("a transaction");
    let lock =
        "INSERT INTO shard_1.tenant_config SELECT * FROM public.tenant_config WHERE tenant_key = 'BEHNGT' FOR UPDATE";
    for statement in ["SET LOCAL search_path TO shard_1", lock] {
        sqlx::query(statement).execute(&mut *mover).await.expect("it runs");
    }
    let moving = async {
        const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE tenant_config%'";
        eventually("the touch waits for the row", async || {
            (database.number(WAITING).await > 0).then_some(())
        })
        .await;
        for statement in [
            "INSERT INTO public.tenant_shard (tenant_key, tenant_config_id, shard) \
             SELECT tenant_key, id, 'shard_1' FROM shard_1.tenant_config",
            "DELETE FROM public.tenant_config WHERE tenant_key = 'BEHNGT'",
        ] {
            sqlx::query(statement).execute(&mut *mover).await.expect("it runs");
        }
        mover.commit().await.expect("it commits");
    };
    futures::join!(service.create(&tour, None), moving);
    let (status, config) = service.get("/api/v1/tenants/BEHNGT").await;
    assert_eq!(
        (status, &config["tenantInfo"]),
        (StatusCode::OK, &tour["tenantConfig"]["tenantInfo"])
    );
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn messages_that_wait_move_with_their_tenant_before_those_of_later_tours() {
    let (database, config) = sharded().await;
    let link = Link::to(Names::server_addr()).await;
    let url = Names::amqp().replace(&Names::server_addr(), &link.addr.to_string());
    let broker = [
        ("TOUR_DATA_ANNOUNCE", "outbox"),
        ("TOUR_DATA_AMQP_URL", url.as_str()),
        ("TOUR_DATA_PUBLISH_TIMEOUT", "300ms"),
    ];
    let service = TourService::start(&database, &[&SETTINGS[..], &broker].concat()).await;
    let mut tap = MessageTap::on(&service.names).await;
    link.cut();
    let mut sent = Vec::new();
    for shard in ["shard_1", "public", "shard_2"] {
        for _ in 0..2 {
            sent.push(service.create(&payload(), None).await.id.to_string());
        }
        move_tenant(&config, "BEHNGT", shard).await.expect("it moves");
    }
    sent.push(service.create(&payload(), None).await.id.to_string());
    let waiting: Vec<String> = sqlx::query_scalar("SELECT message_id FROM shard_2.outbox ORDER BY id")
        .fetch_all(&database.pool)
        .await
        .expect("the query runs");
    assert_eq!(waiting, sent);
    let elsewhere = "SELECT (SELECT count(*) FROM public.outbox) + (SELECT count(*) FROM shard_1.outbox)";
    assert_eq!(database.number(elsewhere).await, 0);

    link.restore();
    tap.messages_of(sent.iter().cloned()).await;
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn a_move_that_cannot_be_made_says_why_and_changes_nothing() {
    let (database, config) = sharded().await;
    for (key, shard, says) in [
        ("NOBODY", "shard_1", "no tenant has the key NOBODY"),
        ("BEHNGT", "shard_9", "shard_1, shard_2"),
        ("BEHNGT", "public", "lives in public already"),
        ("no key", "shard_1", "is no tenant key"),
    ] {
        let error = move_tenant(&config, key, shard).await.expect_err("it is refused");
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(database.number("SELECT count(*) FROM tenant_shard").await, 0);
}
