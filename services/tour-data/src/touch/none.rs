//! Control: the tenant row is not written.
//!
//! Shows what the rest of the path can do, and that a diagnosis does not blame a row that nobody waits for.
//!
//! Gives up: the feature. `tenant_config` keeps what it had, so this is no fix. Not to be used but
//! to measure against.

use std::sync::Arc;

use super::Touch;
use crate::plan::{Config, Kept, Needs, Order, Promise, Spec};

pub(super) static SPEC: Spec = Spec {
    name: "none",
    summary: "control: tours do not write the tenant row",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Unwritten,
        modified_at: Order::None,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(Untouched)
}

struct Untouched;

impl Touch for Untouched {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }
}
