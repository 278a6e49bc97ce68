//! Bodies pass as streams, and an exchange ends with its client or in peace.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use futures::StreamExt;
use reqwest::Method;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::support::{Edge, EndpointsFile, upstream};

const PATIENCE: Duration = Duration::from_secs(20);

type Chunk = Result<Bytes, std::io::Error>;

/// A body that is fed by hand.
fn fed() -> (
    mpsc::UnboundedSender<Chunk>,
    impl futures::Stream<Item = Chunk> + Send + 'static,
) {
    let (feed, mut chunks) = mpsc::unbounded_channel();
    (feed, futures::stream::poll_fn(move |cx| chunks.poll_recv(cx)))
}

fn chunk(text: &'static str) -> Chunk {
    Ok(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn the_service_receives_the_first_chunk_before_the_client_sends_the_last() {
    let (received, mut chunks) = mpsc::unbounded_channel();
    let upstream = upstream::serve(Router::new().fallback(async move |request: Request| {
        let mut body = request.into_body().into_data_stream();
        while let Some(Ok(chunk)) = body.next().await {
            received.send(chunk).expect("the test listens");
        }
        "done"
    }))
    .await;
    let edge = Edge::before(&[upstream]).await;
    let (feed, body) = fed();
    let request = edge
        .request(Method::POST, "/api/v1/tours")
        .body(reqwest::Body::wrap_stream(body))
        .send();
    let exchange = tokio::spawn(request);

    feed.send(chunk("first")).expect("is read");
    assert_eq!(
        timeout(PATIENCE, chunks.recv()).await.expect("arrives"),
        Some(Bytes::from_static(b"first"))
    );
    feed.send(chunk("last")).expect("is read");
    drop(feed);
    let response = exchange.await.expect("does not panic").expect("answers");
    assert_eq!(response.text().await.expect("is text"), "done");
    assert_eq!(chunks.recv().await, Some(Bytes::from_static(b"last")));
}

#[tokio::test]
async fn the_client_receives_the_first_chunk_before_the_service_sends_the_last() {
    let (feed, body) = fed();
    let body = std::sync::Mutex::new(Some(Body::from_stream(body)));
    let body = Arc::new(body);
    let upstream = upstream::serve(
        Router::new().fallback(async move || body.lock().expect("no panic").take().expect("is asked for once")),
    )
    .await;
    let edge = Edge::before(&[upstream]).await;
    feed.send(chunk("first")).expect("is read");
    let mut response = edge.get("/api/v1/tours").await;
    let first = timeout(PATIENCE, response.chunk())
        .await
        .expect("arrives")
        .expect("is whole");
    assert_eq!(first, Some(Bytes::from_static(b"first")));
    feed.send(chunk("last")).expect("is read");
    drop(feed);
    assert_eq!(response.text().await.expect("is whole"), "last");
}

/// Tells when the handler's future is dropped.
struct Gone(Arc<Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_client_that_disconnects_ends_the_exchange_with_the_service() {
    let (reached, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell_reached, tell_gone) = (reached.clone(), gone.clone());
    let upstream = upstream::serve(Router::new().fallback(async move |_: Bytes| {
        let _guard = Gone(tell_gone);
        tell_reached.notify_one();
        std::future::pending::<String>().await
    }))
    .await;
    let edge = Edge::before(&[upstream]).await;
    let exchange = tokio::spawn(edge.request(Method::POST, "/api/v1/tours").body("{}").send());
    timeout(PATIENCE, reached.notified())
        .await
        .expect("the service is asked");
    exchange.abort();
    timeout(PATIENCE, gone.notified()).await.expect("the service notices");
}

#[tokio::test]
async fn a_request_in_flight_finishes_when_the_edge_stops() {
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell_reached, wait) = (reached.clone(), go_on.clone());
    let upstream = upstream::serve(Router::new().fallback(async move || {
        tell_reached.notify_one();
        wait.notified().await;
        "late"
    }))
    .await;
    let edge = Edge::start(EndpointsFile::new(&[upstream], &[])).await;
    let exchange = tokio::spawn(edge.request(Method::GET, "/api/v1/tours").send());
    timeout(PATIENCE, reached.notified())
        .await
        .expect("the service is asked");
    let addr = edge.addr();
    let stopping = tokio::spawn(edge.shutdown());
    timeout(PATIENCE, async {
        while tokio::net::TcpStream::connect(addr).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the listener closes");
    go_on.notify_one();
    let response = exchange.await.expect("does not panic").expect("answers");
    assert_eq!(response.text().await.expect("is text"), "late");
    stopping.await.expect("does not panic").expect("stops in order");
}
