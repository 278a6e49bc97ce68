//! Several kinds of request in one load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::routing::{get as on_get, post as on_post};
use load::{HttpTarget, Mix};

use crate::support::{errors, limited, run, serve, url};

type Seen = Arc<[AtomicU64; 2]>;

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_mix_come_by_weight_and_the_server_sees_what_was_drawn() {
    let seen = Seen::default();
    let read = |State(seen): State<Seen>| async move { seen[0].fetch_add(1, Ordering::SeqCst).to_string() };
    let write = |State(seen): State<Seen>, body: String| async move {
        assert!(body.starts_with("number "));
        seen[1].fetch_add(1, Ordering::SeqCst).to_string()
    };
    let router = axum::Router::new()
        .route("/read", on_get(read))
        .route("/write", on_post(write));
    let address = serve(router.with_state(Arc::clone(&seen))).await;
    let reading = HttpTarget::builder(http::Method::GET, url(address, "/read"));
    let writing = HttpTarget::builder(http::Method::POST, url(address, "/write")).body("number {{sequence}}");
    let mix = Mix::new(vec![(9, reading.build().unwrap()), (1, writing.build().unwrap())], 3).unwrap();
    let summary = run(mix, &limited(4, 2000)).await;
    assert_eq!((summary.ok, errors(&summary)), (2000, vec![]));
    let seen = [0, 1].map(|part| seen[part].load(Ordering::SeqCst));
    let counted: Vec<u64> = summary.parts.iter().map(|part| part.ok).collect();
    assert_eq!(counted, seen);
    assert_eq!(summary.parts[1].name, format!("POST http://{address}/write"));
    assert_eq!(summary.parts[0].latency.len(), seen[0]);
    assert!(
        (1700..=1900).contains(&seen[0]) && seen[0] + seen[1] == 2000,
        "{seen:?}"
    );
}
