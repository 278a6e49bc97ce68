//! `inserts.vs_pgbench`: a tour in a few statements through HAProxy, gateway and service against `pgbench` with the same
//! statements. With the lock out of the way it is about what the services cost, on cores that they share with PostgreSQL.

use super::pgbench;
use super::{Figure, Measurement, Target, stack};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "inserts.vs_pgbench",
        unit: "x",
        target: Target::AtLeast(0.5),
    }],
    run: || {
        Box::pin(async {
            let mut topology = stack::distant("update-last");
            let setting = ("TOUR_DATA_INSERTS".to_owned(), "multi-row".to_owned());
            topology.settings.extend([setting]);
            Ok(vec![pgbench::compare(topology).await?])
        })
    },
};
