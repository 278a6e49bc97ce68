//! An OTLP collector that keeps the bytes services send to it, to be searched and not understood.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use chassis::config::{Common, parse_from};
use chassis::service::{App, Chassis, Running, Service, StartError};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Full};
use serde::Serialize;

/// Collects until it is dropped.
pub struct Collector {
    running: Running,
    received: Received,
}

type Received = Arc<Mutex<Vec<u8>>>;

/// The collector is itself a service, since the chassis serves HTTP/2.
struct Sink;

#[derive(Clone, clap::Args, Serialize)]
struct Slot {
    #[arg(skip)]
    #[serde(skip)]
    received: Received,
}

impl Service for Sink {
    const NAME: &'static str = "sink";
    type Config = Slot;

    async fn build(slot: Slot, _: Chassis) -> Result<App, StartError> {
        let keep = async move |body: Bytes| {
            slot.received.lock().expect("not poisoned").extend_from_slice(&body);
            done()
        };
        Ok(App {
            router: Router::new().fallback(keep),
            dependencies: Vec::new(),
            background: Vec::new(),
        })
    }
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector")
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}

/// A gRPC answer with an empty message: no compression, length 0, status OK.
fn done() -> Response {
    let status = HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        HeaderValue::from_static("0"),
    )]);
    let message = Full::new(Bytes::from_static(&[0; 5])).with_trailers(std::future::ready(Some(Ok(status))));
    let mut response = Response::new(Body::new(message));
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

impl Collector {
    /// Starts to listen.
    ///
    /// # Panics
    /// No port is free.
    pub async fn start() -> Self {
        let slot: Slot = parse_from(Sink::NAME, &[]).expect("nothing to configure");
        let received = Arc::clone(&slot.received);
        let running = chassis::service::start::<Sink>(Common::default(), slot)
            .await
            .expect("starts");
        Self { running, received }
    }

    /// What goes into `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.running.http_addr)
    }

    /// Everything received, as text.
    ///
    /// # Panics
    /// An export has panicked.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().expect("not poisoned")).into_owned()
    }
}
