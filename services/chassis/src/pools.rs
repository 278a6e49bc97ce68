//! What every connection pool tells about itself, by the OpenTelemetry names `db.client.connection.*`.

use std::{sync::LazyLock, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Histogram, UpDownCounter},
};

use crate::telemetry;

/// A pool at one moment, in connections.
pub(crate) struct PoolState {
    pub(crate) used: u64,
    pub(crate) idle: u64,
    pub(crate) max: u64,
}

/// Publishes `state` whenever metrics are read; `None` once the pool is closed.
pub(crate) fn observe(
    system: &'static str,
    pool: &str,
    state: impl Fn() -> Option<PoolState> + Send + Sync + Clone + 'static,
) {
    let meter = telemetry::meter();
    let common = [
        KeyValue::new("db.system.name", system),
        KeyValue::new("db.client.connection.pool.name", pool.to_owned()),
    ];
    let with_state =
        |name: &'static str| [common.as_slice(), &[KeyValue::new("db.client.connection.state", name)]].concat();
    let (used, idle) = (with_state("used"), with_state("idle"));
    let for_count = state.clone();
    meter
        .u64_observable_gauge("db.client.connection.count")
        .with_description("Connections of the pool, by state")
        .with_unit("{connection}")
        .with_callback(move |observer| {
            if let Some(now) = for_count() {
                observer.observe(now.used, &used);
                observer.observe(now.idle, &idle);
            }
        })
        .build();
    meter
        .u64_observable_gauge("db.client.connection.max")
        .with_description("Most connections the pool may open")
        .with_unit("{connection}")
        .with_callback(move |observer| {
            if let Some(now) = state() {
                observer.observe(now.max, &common);
            }
        })
        .build();
}

/// Records how long a caller waited for a connection.
pub(crate) fn record_wait(system: &'static str, waited: Duration) {
    static WAIT: LazyLock<Histogram<f64>> = LazyLock::new(|| {
        telemetry::duration_histogram(
            "db.client.connection.wait_time",
            "Time a caller waited for a connection of the pool",
        )
    });
    WAIT.record(waited.as_secs_f64(), &[KeyValue::new("db.system.name", system)]);
}

/// A caller that waits for a connection; counted in `db.client.connection.pending_requests` until it is dropped.
pub(crate) struct Pending(KeyValue);

static PENDING: LazyLock<UpDownCounter<i64>> = LazyLock::new(|| {
    telemetry::meter()
        .i64_up_down_counter("db.client.connection.pending_requests")
        .with_description("Callers that wait for a connection of the pool")
        .with_unit("{request}")
        .build()
});

impl Pending {
    pub(crate) fn new(system: &'static str) -> Self {
        let system = KeyValue::new("db.system.name", system);
        PENDING.add(1, std::slice::from_ref(&system));
        Self(system)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        PENDING.add(-1, std::slice::from_ref(&self.0));
    }
}
