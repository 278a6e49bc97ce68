//! Write `modified_at` at most once a second: the UPDATE behind the inserts finds no row if the last one is younger than
//! that and no value differs.
//!
//! A real change of the configuration is always written. In between, a tour takes no lock and waits for nobody.
//!
//! Gives up: `modified_at` to the second. Once a second all tours that are under way find the row due and queue up for it
//! (a herd, of which all but the first find it done when their turn comes); `throttled-skip-locked` is without that. Not to
//! be used where `modified_at` is compared with the time of a single tour.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "throttled",
    summary: "UPDATE after the inserts, if the last one is older than a second or a value differs",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Coarse(WINDOW),
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

/// The interval in the statement.
const WINDOW: Duration = Duration::from_secs(1);

const SHAPES: [Shape; 1] = [Shape {
    summary: "UPDATE tenant_config if due",
    sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 \
        WHERE id = $4 AND (modified_at < $1 - interval '1 s' OR (tenant, tenant_info) IS DISTINCT FROM ($2, $3))",
    when: When::AfterInserts,
    expect: Expect::AtMost(1),
    part: Part::Ordered,
}];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(Throttled)
}

struct Throttled;

#[async_trait]
impl Touch for Throttled {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![step(0, changed_binds(home.tenant, tour))]))
    }
}
