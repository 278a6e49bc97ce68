//! A stored function inserts the rows; it is called once, and the tenant row is written in the same statement.
//!
//! `create_tour` takes the columns as arrays and keeps the plans of its five INSERTs for the life of the session. One round
//! trip, as with `single-statement`, and the SQL is where other programs can call it too.
//!
//! Gives up: one place for the code. The function is part of the schema, so a new column is a migration of the function
//! before it is one of the service, and two versions of the service share it while they are replaced. The order of rows and
//! tenant row has the same trap and the same way out as `single-statement`. Not to be used where nobody owns the database.

use std::sync::Arc;

use super::shared::fused::Fused;
use super::shared::tables::{MANY, TOUR};
use super::{Inserts, Program};
use crate::plan::{Clock, Incompatible, Needs, Shape, Spec};

pub(super) static SPEC: Spec = Spec {
    name: "function",
    summary: "a stored function inserts all rows, called in one statement that then writes the tenant row",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(Function)
}

struct Function;

impl Inserts for Function {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        let parameters = TOUR.columns.len() + MANY.iter().map(|table| table.columns.len()).sum::<usize>();
        let arguments: Vec<String> = (1..=parameters).map(|number| format!("${number}")).collect();
        let rows = format!(
            "WITH written AS MATERIALIZED (SELECT create_tour({}) AS rows)",
            arguments.join(", ")
        );
        Ok(Arc::new(Fused::compile(rows, parameters, extra, needs, clock)?))
    }
}
