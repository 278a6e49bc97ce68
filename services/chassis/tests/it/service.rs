//! Services made of a router, for tests that start one in this process.

use std::future::Future;

use axum::Router;
use chassis::config::{Common, parse_from};
use chassis::readiness::Dependency;
use chassis::service::{App, Background, Chassis, Running, Service, StartError, start};
use serde::Serialize;
use std::sync::Mutex;

/// The parts of one service; the service itself has nothing to configure.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) router: Router,
    pub(crate) dependencies: Vec<Dependency>,
    /// Given the drain, since that exists only once the service is being built.
    pub(crate) background: Vec<Task>,
}

pub(crate) type Task = Box<dyn FnOnce(Chassis) -> Background + Send>;

/// A background task from a function of what the chassis gives.
pub(crate) fn task<F: Future<Output = anyhow::Result<()>> + Send + 'static>(
    name: &'static str,
    run: impl FnOnce(Chassis) -> F + Send + 'static,
) -> Task {
    Box::new(move |cx| Background::new(name, run(cx)))
}

struct Assembled;

/// `Service::build` takes a configuration that can be cloned and shown; the parts can be neither, so they travel in it
/// as a slot to be emptied.
#[derive(Clone, clap::Args, Serialize)]
struct Slot {
    #[arg(skip)]
    #[serde(skip)]
    parts: std::sync::Arc<Mutex<Parts>>,
}

impl Service for Assembled {
    const NAME: &'static str = "assembled";
    type Config = Slot;

    async fn build(slot: Slot, cx: Chassis) -> Result<App, StartError> {
        let Parts {
            router,
            dependencies,
            background,
        } = std::mem::take(&mut *slot.parts.lock().expect("parts"));
        let background = background.into_iter().map(|task| task(cx.clone())).collect();
        Ok(App {
            router,
            dependencies,
            background,
        })
    }
}

/// Starts a service on free ports.
pub(crate) async fn run(common: Common, parts: Parts) -> Running {
    let slot: Slot = parse_from(Assembled::NAME, &[]).expect("nothing to configure");
    *slot.parts.lock().expect("parts") = parts;
    start::<Assembled>(common, slot).await.expect("the service starts")
}

/// Starts a service that is only a router.
pub(crate) async fn serve(router: Router) -> Running {
    run(
        Common::default(),
        Parts {
            router,
            ..Parts::default()
        },
    )
    .await
}
