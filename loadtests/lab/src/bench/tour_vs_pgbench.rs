//! `tour.vs_pgbench`: the baseline plan through HAProxy, gateway and service against `pgbench` with the same statements.

use super::pgbench;
use super::{Figure, Measurement, Target, stack};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "tour.vs_pgbench",
        unit: "x",
        target: Target::AtLeast(0.9),
    }],
    run: || Box::pin(async { Ok(vec![pgbench::compare(stack::distant("update-first")).await?]) }),
};
