//! The trap: `INSERT … ON CONFLICT DO UPDATE … WHERE` a value differs, as many an ORM's "save if changed" is written.
//!
//! It looks like `skip-unchanged` and is not: ON CONFLICT locks the row before it looks at the WHERE clause, so a tour that
//! changes nothing waits for the row all the same, and everybody waits for it until it commits. It stands where the
//! published UPDATE does.
//!
//! Gives up: concurrency within a tenant, as the baseline does, and `modified_at` as a sign of life, as `skip-unchanged`
//! does. Not to be used: it has the cost of the one and the meaning of the other. It is here to be recognised.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{Bind, Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "upsert-unchanged",
    summary: "the trap: INSERT … ON CONFLICT DO UPDATE … WHERE changed locks the row even where nothing changes",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::OnChange,
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [Shape {
    summary: "UPSERT tenant_config if changed",
    sql: "INSERT INTO tenant_config AS c (id, tenant, tenant_key, tenant_info, modified_at) VALUES ($4, $2, $5, $3, $1) \
        ON CONFLICT (id) DO UPDATE \
        SET modified_at = excluded.modified_at, tenant = excluded.tenant, tenant_info = excluded.tenant_info \
        WHERE (c.tenant, c.tenant_info) IS DISTINCT FROM (excluded.tenant, excluded.tenant_info)",
    when: When::BeforeInserts,
    expect: Expect::AtMost(1),
    part: Part::Anywhere,
}];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(UpsertUnchanged)
}

struct UpsertUnchanged;

#[async_trait]
impl Touch for UpsertUnchanged {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        let mut binds = changed_binds(home.tenant, tour);
        binds.push(Bind::Text(tour.tenant.key.as_str().to_owned()));
        Ok(Steps(vec![step(0, binds)]))
    }
}
