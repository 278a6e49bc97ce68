//! `gateway.replicas`: how many replicas of each service are ready, and how many are not.

use std::sync::{Arc, Weak};

use opentelemetry::KeyValue;

use super::Endpoints;

/// Publishes the numbers for as long as the endpoints are in use.
pub(super) fn observe(endpoints: &Arc<Endpoints>) {
    let endpoints: Weak<Endpoints> = Arc::downgrade(endpoints);
    chassis::telemetry::meter()
        .u64_observable_gauge("gateway.replicas")
        .with_description("Replicas in the rotation, by service and state")
        .with_unit("{replica}")
        .with_callback(move |observer| {
            let Some(endpoints) = endpoints.upgrade() else {
                return;
            };
            for rotation in endpoints.all() {
                let replicas = rotation.replicas();
                let ready = replicas.iter().filter(|replica| replica.is_ready()).count();
                for (state, count) in [("ready", ready), ("unready", replicas.len() - ready)] {
                    let attributes = [
                        KeyValue::new("service", rotation.service()),
                        KeyValue::new("state", state),
                    ];
                    observer.observe(count as u64, &attributes);
                }
            }
        })
        .build();
}
