//! Append an event instead of updating a row, and fold the events into the row later.
//!
//! Each tour inserts a row of its own into `tenant_config_event`: nothing is shared, nobody waits. A task folds what has
//! gathered five times a second, taking events away with `DELETE … RETURNING` (a cursor on the last id would lose those that
//! commit out of order). A reader looks at the row and the events together, so it sees a tour with its 201; a crash loses
//! nothing, since the events are in the tour's transaction.
//!
//! Gives up: the row for whoever reads it by other ways, who is late by a fold; a row that is written and deleted for each
//! tour, which vacuum has to follow; and the database's word on which tour was last: the clocks of the replicas decide.
//! Not to be used where nobody watches that the events do not pile up.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::service::Background;

use super::{Touch, TouchError, newest_binds, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::store::{self, StoreError, TenantConfig};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "append-fold",
    summary: "an event a tour, folded into the row in batches; readers see row and events together",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Computed,
        loses: &[],
    }),
    needs: Needs::NONE,
};

/// Between two folds, while there is little to fold.
const EVERY: Duration = Duration::from_millis(200);
/// Events of one fold: it takes milliseconds, so that the row is not locked for long.
const BATCH: i64 = 1_000;

const SHAPES: [Shape; 1] = [Shape {
    summary: "INSERT tenant_config_event",
    sql: "INSERT INTO tenant_config_event (modified_at, tenant, tenant_info, tenant_config_id) VALUES ($1, $2, $3, $4)",
    when: When::AfterInserts,
    expect: Expect::Exactly(1),
    part: Part::Anywhere,
}];

const SEEN: &str = "SELECT newest.tenant, c.tenant_key, newest.tenant_info, newest.modified_at \
    FROM tenant_config c CROSS JOIN LATERAL (\
        SELECT c.tenant, c.tenant_info, c.modified_at \
        UNION ALL SELECT tenant, tenant_info, modified_at FROM tenant_config_event WHERE tenant_config_id = c.id \
        ORDER BY modified_at DESC LIMIT 1) AS newest \
    WHERE c.id = $1";

/// Replicas that fold at once take different events; of what they write the newest stays.
const FOLD: &str = "WITH gone AS (\
        DELETE FROM tenant_config_event WHERE id IN (\
            SELECT id FROM tenant_config_event ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) \
        RETURNING id, tenant_config_id, modified_at, tenant, tenant_info\
    ), newest AS (\
        SELECT DISTINCT ON (tenant_config_id) tenant_config_id, modified_at, tenant, tenant_info FROM gone \
        ORDER BY tenant_config_id, modified_at DESC, id DESC\
    ), folded AS (\
        UPDATE tenant_config c SET modified_at = n.modified_at, tenant = n.tenant, tenant_info = n.tenant_info \
        FROM newest n WHERE c.id = n.tenant_config_id AND n.modified_at >= c.modified_at\
    ) SELECT count(*) FROM gone";

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(AppendFold)
}

struct AppendFold;

#[async_trait]
impl Touch for AppendFold {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![step(0, newest_binds(home.tenant, tour))]))
    }

    fn background(self: Arc<Self>, cx: &Ctx) -> Option<Background> {
        Some(Background::new("fold of tenant events", fold(cx.clone())))
    }

    async fn read(&self, _cx: &Ctx, home: &Home) -> Result<TenantConfig, StoreError> {
        store::tenant_config_by(&home.shard, "SELECT tenant_config with events", SEEN, home.tenant).await
    }
}

/// Folds until the service has drained, then once more.
async fn fold(cx: Ctx) -> anyhow::Result<()> {
    loop {
        let last = tokio::time::timeout(EVERY, cx.quiet.cancelled()).await.is_ok();
        for shard in cx.placement.shards() {
            // What is not folded stays, and every reader sees it.
            if let Err(error) = store::repeat_full_batches(&shard, "fold tenant_config_event", FOLD, BATCH).await {
                tracing::warn!(%error, shard = shard.name, "tenant events are not folded");
            }
        }
        if last {
            return Ok(());
        }
    }
}
