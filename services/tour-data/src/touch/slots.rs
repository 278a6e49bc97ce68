//! Sixteen rows a tenant instead of one: each tour writes one of them, chosen by its id, and a reader folds them.
//!
//! Tours of one tenant then collide one time in sixteen or so. The newest tour wins, by its time of creation, so that the
//! order in which slots are written does not matter.
//!
//! Gives up: cheap reads (seventeen rows instead of one), the row itself for whoever reads it by other ways, and the
//! database's word on which tour was last: the clocks of the replicas decide. Random slots still collide, and the more tours
//! are under way the more often. Made for counters and maxima. Not to be used for a value that must be unique, such as the
//! tenant's key.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, newest_binds, step};
use crate::placement::Home;
use crate::plan::{Bind, Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::store::{self, StoreError, TenantConfig};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "slots",
    summary: "one of sixteen rows a tenant is updated after the inserts; readers fold them, the newest wins",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Computed,
        loses: &[],
    }),
    needs: Needs::NONE,
};

/// Of each tenant, numbered from 0; a trigger makes them with the tenant.
const SLOTS: u128 = 16;

const SHAPES: [Shape; 1] = [Shape {
    summary: "UPDATE tenant_config_slot",
    sql: "UPDATE tenant_config_slot SET modified_at = greatest(modified_at, $1), \
        tenant = CASE WHEN $1 >= modified_at THEN $2 ELSE tenant END, \
        tenant_info = CASE WHEN $1 >= modified_at THEN $3 ELSE tenant_info END \
        WHERE tenant_config_id = $4 AND slot = $5",
    when: When::AfterInserts,
    expect: Expect::Exactly(1),
    part: Part::Ordered,
}];

const FOLDED: &str = "SELECT newest.tenant, c.tenant_key, newest.tenant_info, newest.modified_at \
    FROM tenant_config c CROSS JOIN LATERAL (\
        SELECT c.tenant, c.tenant_info, c.modified_at \
        UNION ALL SELECT tenant, tenant_info, modified_at FROM tenant_config_slot WHERE tenant_config_id = c.id \
        ORDER BY modified_at DESC LIMIT 1) AS newest \
    WHERE c.id = $1";

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(Slots)
}

struct Slots;

#[async_trait]
impl Touch for Slots {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        let mut binds = newest_binds(home.tenant, tour);
        // The last bits of a UUID are random; those before them are the time.
        let slot = tour.id.as_u128() % SLOTS;
        binds.push(Bind::Id(i64::try_from(slot).expect("there are few slots")));
        Ok(Steps(vec![step(0, binds)]))
    }

    async fn read(&self, _cx: &Ctx, home: &Home) -> Result<TenantConfig, StoreError> {
        store::tenant_config_by(&home.shard, "SELECT tenant_config with slots", FOLDED, home.tenant).await
    }
}
