//! `throttled`, and nobody waits for a mere touch: who finds the row locked leaves `modified_at` to the one who holds it.
//!
//! `FOR UPDATE SKIP LOCKED` is the whole trick. A change of the configuration is not a mere touch, and neither is the first one
//! after a pause, whose holder may yet roll back: these have an UPDATE of their own, which waits. So a tour sends two
//! statements, both behind the inserts, and takes no lock with either of them in the common case.
//!
//! Gives up: `modified_at` to two seconds (the window, and as much again in which it is left to others), and a round trip
//! more than `throttled`. Not to be used for the configuration itself, which is why it is not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{Bind, Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "throttled-skip-locked",
    summary: "as throttled, and a touch that would have to wait is left to whoever holds the row",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Coarse(WINDOW),
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

/// The longer interval in the statements: what is older is left to nobody.
const WINDOW: Duration = Duration::from_secs(2);

const SHAPES: [Shape; 2] = [
    Shape {
        summary: "UPDATE tenant_config if changed or overdue",
        sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 \
            WHERE id = $4 AND (modified_at < $1 - interval '2 s' OR (tenant, tenant_info) IS DISTINCT FROM ($2, $3))",
        when: When::AfterInserts,
        expect: Expect::AtMost(1),
        part: Part::Alone,
    },
    Shape {
        summary: "UPDATE tenant_config if due and free",
        sql: "UPDATE tenant_config SET modified_at = $1 WHERE id = (\
            SELECT id FROM tenant_config WHERE id = $2 AND modified_at < $1 - interval '1 s' FOR UPDATE SKIP LOCKED)",
        when: When::AfterInserts,
        expect: Expect::AtMost(1),
        part: Part::Alone,
    },
];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(ThrottledSkipLocked)
}

struct ThrottledSkipLocked;

#[async_trait]
impl Touch for ThrottledSkipLocked {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![
            step(0, changed_binds(home.tenant, tour)),
            step(1, vec![Bind::Now, Bind::Id(home.tenant.0)]),
        ]))
    }
}
