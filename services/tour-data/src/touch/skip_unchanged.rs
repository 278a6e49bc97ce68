//! Write the row only where a value differs: `IS DISTINCT FROM` in the WHERE clause, behind the inserts.
//!
//! Nearly every tour repeats the configuration that is there. Its UPDATE finds no row to change, so it takes no lock and
//! waits for nobody; a tour that does change something waits as with `update-last`.
//!
//! Gives up: what `modified_at` meant. It becomes the time of the last change and no longer that of the last tour. Not to
//! be used where someone reads it as a sign of life. Above READ COMMITTED a tour that changes something fails whenever
//! another one did so since its first INSERT, and is retried.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "skip-unchanged",
    summary: "UPDATE after the inserts, and only where a value differs: nothing is locked otherwise",
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
    summary: "UPDATE tenant_config if changed",
    sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 \
        WHERE id = $4 AND (tenant, tenant_info) IS DISTINCT FROM ($2, $3)",
    when: When::AfterInserts,
    expect: Expect::AtMost(1),
    part: Part::Ordered,
}];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(SkipUnchanged)
}

struct SkipUnchanged;

#[async_trait]
impl Touch for SkipUnchanged {
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
