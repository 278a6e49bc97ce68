//! Updates per table, how many were heap-only (HOT), so that no index entry was written for them, and how large that makes it.
//! Tables of one name in several schemas count as one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sqlx::PgPool;

use super::Probe;
use crate::events::{HotSample, HotTable, Sample};

const SQL: &str = "\
SELECT relname::text, sum(n_tup_upd)::bigint, sum(n_tup_hot_upd)::bigint, sum(n_tup_ins)::bigint, sum(n_dead_tup)::bigint,
       sum(pg_relation_size(relid))::bigint
FROM pg_stat_user_tables
GROUP BY relname";

pub(super) struct Hot {
    pool: PgPool,
    /// Counters when the probe began: the statistics outlive a restore's template.
    before: BTreeMap<String, HotTable>,
}

impl Hot {
    pub(super) async fn new(pool: PgPool) -> anyhow::Result<Self> {
        let before = read(&pool).await?;
        Ok(Self { pool, before })
    }
}

#[async_trait]
impl Probe for Hot {
    fn name(&self) -> &'static str {
        "hot"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut tables = read(&self.pool).await?;
        for (name, table) in &mut tables {
            let before = self.before.get(name).copied().unwrap_or_default();
            table.updates = table.updates.saturating_sub(before.updates);
            table.hot_updates = table.hot_updates.saturating_sub(before.hot_updates);
            table.inserts = table.inserts.saturating_sub(before.inserts);
        }
        tables.retain(|_, table| table.updates > 0 || table.inserts > 0 || table.dead_rows > 0);
        Ok(Sample::Hot(HotSample { tables }))
    }
}

async fn read(pool: &PgPool) -> anyhow::Result<BTreeMap<String, HotTable>> {
    let rows: Vec<(String, i64, i64, i64, i64, i64)> = sqlx::query_as(SQL).fetch_all(pool).await?;
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(rows
        .into_iter()
        .map(|(name, updates, hot, inserts, dead, bytes)| {
            let table = HotTable {
                updates: count(updates),
                hot_updates: count(hot),
                inserts: count(inserts),
                dead_rows: count(dead),
                bytes: count(bytes),
            };
            (name, table)
        })
        .collect())
}
