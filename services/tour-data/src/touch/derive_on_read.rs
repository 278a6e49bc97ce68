//! Do not write `modified_at` at all: the newest tour says when the tenant was last touched.
//!
//! A tour updates the row only if a value differs, as with `skip-unchanged`. A reader computes `modified_at` from the tours:
//! the greatest `created_at` among the newest by id. Ids begin with the time at which they were made, so the index that
//! pages through tours finds the newest without an index of its own.
//!
//! Gives up: the row for whoever reads it by other ways; a read that costs an index scan of a few dozen entries; tours that
//! are deleted take their touch with them. Not to be used where tours are archived early or the row is replicated elsewhere.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::store::{self, StoreError, TenantConfig};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "derive-on-read",
    summary: "modified_at is computed from the newest tours by whoever reads it; values are written where they differ",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Computed,
        loses: &[],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [Shape {
    summary: "UPDATE tenant_config if changed",
    sql: "UPDATE tenant_config SET modified_at = greatest(modified_at, $1), tenant = $2, tenant_info = $3 \
        WHERE id = $4 AND (tenant, tenant_info) IS DISTINCT FROM ($2, $3)",
    when: When::AfterInserts,
    expect: Expect::AtMost(1),
    part: Part::Ordered,
}];

/// Ids are made a moment after `created_at` is read, so the newest by id need not be the newest by time: among this many
/// it is.
const DERIVED: &str = "SELECT c.tenant, c.tenant_key, c.tenant_info, greatest(c.modified_at, (\
        SELECT max(created_at) FROM (\
            SELECT created_at FROM tour WHERE tenant_config_id = c.id ORDER BY id DESC LIMIT 64) AS newest\
    )) AS modified_at FROM tenant_config c WHERE c.id = $1";

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(DeriveOnRead)
}

struct DeriveOnRead;

#[async_trait]
impl Touch for DeriveOnRead {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![step(0, changed_binds(home.tenant, tour))]))
    }

    async fn read(&self, _cx: &Ctx, home: &Home) -> Result<TenantConfig, StoreError> {
        store::tenant_config_by(&home.shard, "SELECT tenant_config with tours", DERIVED, home.tenant).await
    }
}
