//! Moving a tenant, with all that is its own, from one schema to another.

use anyhow::{Context as _, bail, ensure};
use chassis::db::Session;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::shards::{MAIN, ShardNames};
use crate::tour::TenantKey;

/// Moves the tenant to `target`, in one transaction: nobody sees it in two places or in none. Tours of the tenant wait
/// meanwhile; those that have begun are waited for.
///
/// # Errors
/// There is no such tenant, or PostgreSQL does not do it; nothing has changed then, once the session is closed.
pub(crate) async fn move_tenant(conn: &mut Session, key: &TenantKey, target: &str) -> anyhow::Result<()> {
    conn.begin("BEGIN").await.context("cannot begin")?;
    // Exclusive, where tours take it shared. See `enter_shard`.
    sqlx::query("SELECT pg_advisory_xact_lock(1414482516, hashtext($1))")
        .bind(key.as_str())
        .execute(&mut *conn)
        .await
        .context("cannot lock the tenant")?;
    const PLACE: &str = "SELECT tenant_config_id, shard FROM public.tenant_shard WHERE tenant_key = $1 UNION ALL \
        SELECT id, 'public' FROM public.tenant_config WHERE tenant_key = $1 \
        AND NOT EXISTS (SELECT FROM public.tenant_shard WHERE tenant_key = $1)";
    let found: Option<(i64, String)> = sqlx::query_as(PLACE)
        .bind(key.as_str())
        .fetch_optional(&mut *conn)
        .await
        .context("cannot read the directory")?;
    let Some((id, source)) = found else {
        bail!("no tenant has the key {key}");
    };
    ensure!(source != target, "the tenant {key} lives in {target} already");
    let plain = source == MAIN || source.parse::<ShardNames>().is_ok();
    ensure!(
        plain,
        "the directory says that {key} lives in {source:?}, which is no name of a shard"
    );
    // Both names are plain. Triggers of the target find their tables by the path.
    let path = AssertSqlSafe(format!("SET LOCAL search_path TO {target}"));
    conn.execute(path).await.context("cannot look at the target")?;
    for statement in statements(&source, target) {
        let step = sqlx::query(AssertSqlSafe(statement.clone())).bind(id);
        step.execute(&mut *conn)
            .await
            .with_context(|| format!("cannot run {statement}"))?;
    }
    let entry = if target == MAIN {
        sqlx::query("DELETE FROM public.tenant_shard WHERE tenant_key = $1").bind(key.as_str())
    } else {
        const ENTRY: &str = "INSERT INTO public.tenant_shard (tenant_key, tenant_config_id, shard) VALUES ($1, $2, $3) \
            ON CONFLICT (tenant_key) DO UPDATE SET shard = excluded.shard";
        sqlx::query(ENTRY).bind(key.as_str()).bind(id).bind(target)
    };
    entry.execute(&mut *conn).await.context("cannot write the directory")?;
    conn.execute("COMMIT").await.context("cannot commit")?;
    Ok(())
}

/// Each with the tenant's id as `$1`: copy what the tenant has, parents first, then delete it, children first.
fn statements(source: &str, target: &str) -> Vec<String> {
    let (s, t) = (source, target);
    let stops =
        format!("SELECT s.id FROM {s}.stop s JOIN {s}.tour t ON t.id = s.tour_id WHERE t.tenant_config_id = $1");
    let orders = format!("SELECT o.id FROM {s}.tour_order o WHERE o.stop_id IN ({stops})");
    let addresses = format!(
        "SELECT address_id FROM {s}.stop WHERE id IN ({stops}) UNION ALL \
         SELECT address_id FROM {s}.tour_order WHERE id IN ({orders})"
    );
    // The tenant's row first: it keeps away who would write it outside of a tour.
    let row = format!("INSERT INTO {t}.tenant_config SELECT * FROM {s}.tenant_config WHERE id = $1 FOR UPDATE");
    // Messages that wait to be published go along, or those of later tours would overtake them; who publishes them now is
    // waited for.
    let waiting = format!("message_id IN (SELECT id::text FROM {s}.tour WHERE tenant_config_id = $1)");
    let lane =
        format!("SELECT FROM {s}.outbox_lane WHERE lane IN (SELECT lane FROM {s}.outbox WHERE {waiting}) FOR UPDATE");
    let messages = format!(
        "WITH taken AS (DELETE FROM {s}.outbox WHERE {waiting} RETURNING id, lane, message_id, body) \
         INSERT INTO {t}.outbox (lane, message_id, body) SELECT lane, message_id, body FROM taken ORDER BY id"
    );
    // The target has slots of its own, made with its row.
    let slots = format!("DELETE FROM {t}.tenant_config_slot WHERE tenant_config_id = $1");
    let events = "(tenant_config_id, tenant, tenant_info, modified_at)";
    let copy = |table: &str, rows: String| format!("INSERT INTO {t}.{table} SELECT * FROM {s}.{table} WHERE {rows}");
    let delete = |table: &str, rows: String| format!("DELETE FROM {s}.{table} WHERE {rows}");
    let of_tenant = || "tenant_config_id = $1".to_owned();
    vec![
        row,
        lane,
        messages,
        slots,
        copy("tenant_config_slot", of_tenant()),
        format!(
            "INSERT INTO {t}.tenant_config_event {events} \
             SELECT tenant_config_id, tenant, tenant_info, modified_at FROM {s}.tenant_config_event WHERE tenant_config_id = $1"
        ),
        copy("tour", of_tenant()),
        copy("address", format!("id IN ({addresses})")),
        copy("stop", format!("id IN ({stops})")),
        copy("tour_order", format!("id IN ({orders})")),
        copy("order_position", format!("order_id IN ({orders})")),
        delete("order_position", format!("order_id IN ({orders})")),
        delete("address", format!("id IN ({addresses})")),
        delete("tour_order", format!("id IN ({orders})")),
        delete("stop", format!("id IN ({stops})")),
        delete("tour", of_tenant()),
        delete("tenant_config_event", of_tenant()),
        delete("tenant_config_slot", of_tenant()),
        delete("tenant_config", "id = $1".to_owned()),
    ]
}
