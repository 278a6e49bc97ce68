//! What the tests share: databases, tokens, the service in this process, links that can be watched and cut.

mod broker;
mod database;
mod issuer;
mod link;
mod pgbouncer;
mod plans;
mod service;

pub(crate) use broker::{MessageTap, Names};
pub(crate) use database::Database;
pub(crate) use issuer::{Issuer, forged_signature, public_key};
pub(crate) use link::{Link, Sent};
pub(crate) use pgbouncer::PgBouncer;
pub(crate) use plans::{Rig, RunningPlan, context, make, new_tour, specs};
pub(crate) use service::{TourService, config, variables};

use std::time::Duration;

use serde_json::Value;

/// The shipped payload.
pub(crate) fn payload() -> Value {
    const TEXT: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../loadtests/payloads/create-tour.json"
    ));
    serde_json::from_str(TEXT).expect("the payload is JSON")
}

/// The variable that names a server.
pub(crate) fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo rowlock test`, which starts the servers this test needs")
    })
}

/// Asks until `check` has an answer; no machine is so busy that it takes half a minute.
pub(crate) async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = check().await {
            return answer;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited 30 s in vain until {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs async clean-up where there is no runtime to await it on, such as in `drop`.
fn block_on(clean_up: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(clean_up);
    });
    // A failed clean-up leaves something behind on a test server, which is no reason to fail the test.
    drop(thread.join());
}

/// How many tours there are.
pub(crate) async fn tours_of(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM tour").await
}
