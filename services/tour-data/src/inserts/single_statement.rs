//! The whole transaction in one statement: a WITH that inserts into the five tables and then writes the tenant row.
//!
//! One round trip from the first row to the flush, so that the row is locked for no network at all. The trap is the order:
//! the parts of a WITH run in no promised order, and the naive statement locks the tenant row first. A touch that comes
//! after the inserts is made to depend on them; one that comes before them is left to PostgreSQL.
//!
//! Gives up: everything that needs an answer on the way (a lock before the clock is read, a statement of another service),
//! and a plan that a person can read. An answer that is lost leaves it open whether there is a tour, as one to COMMIT does.
//! Not to be used where statements come from an ORM, or the tour is so large that its arrays hurt.

use std::sync::Arc;

use super::shared::fused::Fused;
use super::shared::tables::{MANY, TOUR};
use super::{Inserts, Program};
use crate::plan::{Clock, Incompatible, Needs, Shape, Spec};

pub(super) static SPEC: Spec = Spec {
    name: "single-statement",
    summary: "one WITH that inserts into all tables and then writes the tenant row: one round trip, COMMIT included",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(SingleStatement)
}

struct SingleStatement;

impl Inserts for SingleStatement {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        let mut parameters = TOUR.columns.len();
        let mut parts = vec![format!("{}_rows AS ({} RETURNING 1)", TOUR.name, TOUR.insert_one(1))];
        let mut counts = vec![format!("(SELECT count(*) FROM {}_rows)", TOUR.name)];
        for table in MANY {
            let insert = table.insert_many(parameters + 1);
            parts.push(format!("{}_rows AS ({insert} RETURNING 1)", table.name));
            counts.push(format!("(SELECT count(*) FROM {}_rows)", table.name));
            parameters += table.columns.len();
        }
        let rows = format!(
            "WITH {}, written AS (SELECT {} AS rows)",
            parts.join(", "),
            counts.join(" + ")
        );
        Ok(Arc::new(Fused::compile(rows, parameters, extra, needs, clock)?))
    }
}
