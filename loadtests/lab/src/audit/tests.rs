//! The audit of a database whose tenants live in two schemas, made by the service's own migrations and without a stack.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Expected;
use super::database::{self, Witnesses};
use super::declared::Declaration;
use super::delivery::Delivery;
use super::ledger::{Acknowledged, Ledger};
use crate::facts::Promise;
use crate::testing::{Scratch, invariants, migrations};

/// 2025-06-01T10:00:00Z, milliseconds since the Unix epoch.
const BEGAN_MS: u64 = 1_748_772_000_000;

/// What one schema holds after the migrations, in a session that looks at it.
fn tables(schema: &str) -> String {
    format!("SET search_path TO {schema};\n{}", migrations())
}

/// The tenant BEHNGT lives in a schema of its own, all others in `public`.
const MOVED: &str = "\
INSERT INTO public.tenant_shard VALUES ('BEHNGT', 7, 'shard_1');
INSERT INTO tenant_config SELECT * FROM public.tenant_config WHERE id = 7;
DELETE FROM public.tenant_config_slot WHERE tenant_config_id = 7;
DELETE FROM public.tenant_config WHERE id = 7;";

/// A tour by hand, as small as it can be: a head, one stop and its address.
fn tour(schema: &str, tenant: u32, number: u64, id: Uuid) -> String {
    let at = format!("2025-06-01T10:00:0{number}Z");
    let (stop, address) = (Uuid::now_v7(), Uuid::now_v7());
    format!(
        "SET search_path TO {schema}; BEGIN;
         INSERT INTO tour VALUES ('{id}', {tenant}, 'n', 't', 's', '2025-06-01', 'v', NULL, 'v', 'd', NULL, NULL, NULL, \
            'key-{number}', decode(repeat('00', 32), 'hex'), '{at}');
         INSERT INTO address VALUES ('{address}', 'n', NULL, NULL, 's', 'p', 'c', 'DE', 0, 0);
         INSERT INTO stop VALUES ('{stop}', '{id}', '{address}', 1, 's', '{at}', '{at}');
         UPDATE tenant_config SET modified_at = '{at}' WHERE id = {tenant};
         COMMIT;"
    )
}

/// Names of the invariants that do not hold when `spoil` was done to a history that was right.
async fn broken_after(spoil: &str) -> Vec<String> {
    let (moved, stayed) = (Uuid::now_v7(), Uuid::now_v7());
    let scratch = Scratch::create(&tables("public")).await;
    let shard = format!("CREATE SCHEMA shard_1; {} {MOVED}", tables("shard_1"));
    scratch.run(&shard).await;
    scratch.run(&tour("shard_1", 7, 1, moved)).await;
    scratch.run(&tour("public", 23, 2, stayed)).await;
    scratch.run(spoil).await;

    let path = std::env::temp_dir().join(format!("rowlock-audit-{}.csv", scratch.name));
    let ledger = Ledger::create(&path).unwrap();
    for (tour_id, tenant, number) in [(moved, "BEHNGT", 1), (stayed, "NORDEX", 2)] {
        let sent_at_ms = BEGAN_MS + number * 1000;
        ledger.record(&Acknowledged {
            tour_id,
            rows: 3,
            idempotency_key: Some(format!("key-{number}")),
            tenant: tenant.to_owned(),
            info: None,
            sent_at_ms,
            acked_at_ms: sent_at_ms + 500,
        });
    }
    let acknowledged = ledger.close().unwrap();
    let delivered: BTreeMap<String, u32> = [moved, stayed].map(|id| (id.to_string(), 1)).into();
    let expected = Expected::default();
    let at_least_once = Promise {
        delivery: "at-least-once".into(),
        ..Promise::default()
    };
    let witnesses = Witnesses {
        acknowledged: &acknowledged,
        delivered: &delivered,
        rows_per_tour: Some(3),
        declaration: &Declaration::default(),
        delivery: &Delivery::by("tour-data", &at_least_once, &expected),
    };
    let promise = Promise {
        config: "exact".into(),
        kept: "row".into(),
        ..Promise::default()
    };
    let found = database::check(&scratch.url, &invariants(), &promise, &witnesses)
        .await
        .unwrap();
    acknowledged.remove().unwrap();
    scratch.drop_database().await;
    assert_eq!(found.checks.len(), invariants().len());
    let broken = found.checks.into_iter().filter(|check| !check.passed);
    broken.map(|check| check.name).collect()
}

#[tokio::test]
async fn tenants_in_several_schemas_are_seen_whole() {
    assert_eq!(broken_after("SELECT 1").await, [""; 0]);
    assert_eq!(broken_after("DELETE FROM shard_1.address").await, ["rows-per-tour"]);
    let forgotten = "UPDATE shard_1.tenant_config SET modified_at = '2025-01-01T00:00:00Z'";
    assert_eq!(broken_after(forgotten).await, ["exact-tenant-config"]);
}

#[tokio::test]
async fn a_tour_under_the_wrong_tenant_is_found_in_every_schema() {
    assert_eq!(
        broken_after("UPDATE public.tour SET tenant_config_id = 8").await,
        ["exact-tenant-config", "tour-of-its-tenant"],
        "in the same schema"
    );
    assert_eq!(
        broken_after("UPDATE shard_1.tour SET tenant_config_id = 23").await,
        ["tenant-in-one-place", "tour-of-its-tenant"],
        "of a tenant who lives elsewhere"
    );
}

#[tokio::test]
async fn what_a_move_left_behind_or_took_twice_is_found() {
    let left = "INSERT INTO public.stop SELECT * FROM shard_1.stop; DELETE FROM shard_1.stop";
    assert_eq!(broken_after(left).await, ["tenant-in-one-place"], "a stop");
    let twice = "INSERT INTO public.tour SELECT * FROM shard_1.tour";
    assert_eq!(
        broken_after(twice).await,
        ["one-tour-per-key", "tenant-in-one-place"],
        "a tour"
    );
    let row = "INSERT INTO public.tenant_config SELECT * FROM shard_1.tenant_config";
    assert_eq!(broken_after(row).await, ["tenant-in-one-place"], "the tenant's row");
}
