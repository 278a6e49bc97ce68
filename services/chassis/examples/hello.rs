//! A whole service on the chassis, as small as one gets; the integration tests run it as a process.

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use chassis::config::{Address, HumanDuration, Secret};
use chassis::problem::Json;
use chassis::service::{self, App, Background, Chassis, Service, StartError};
use http::StatusCode;
use serde::Serialize;
use tokio::sync::Notify;

struct Hello;

/// What the service can be told.
#[derive(Clone, clap::Args, Serialize)]
struct Config {
    /// Who is greeted
    #[arg(long, default_value = "world")]
    name: String,
    /// How
    #[arg(long, value_enum, default_value = "polite")]
    tone: Tone,
    /// How long /slow takes
    #[arg(long, default_value = "1s")]
    pause: HumanDuration,
    /// Key of an imaginary upstream
    #[arg(long)]
    api_key: Secret,
    /// Where the imaginary upstream is
    #[arg(long)]
    upstream: Option<Address>,
}

#[derive(Clone, Copy, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Tone {
    Polite,
    Short,
}

impl Service for Hello {
    const NAME: &'static str = "hello";
    type Config = Config;

    async fn build(config: Config, cx: Chassis) -> Result<App, StartError> {
        if config.name.is_empty() {
            return Err(StartError::Config("HELLO_NAME must name somebody".to_owned()));
        }
        let crash = Arc::new(Notify::new());
        let router = Router::new()
            .route(
                "/hello/{whom}",
                get({
                    let config = config.clone();
                    async move |axum::extract::Path(whom): axum::extract::Path<String>| {
                        tracing::info!(whom, "greeting");
                        Json(match config.tone {
                            Tone::Polite => format!("Good day, {whom}; {} sends regards", config.name),
                            Tone::Short => format!("Hi {whom}"),
                        })
                    }
                }),
            )
            .route("/slow", get(async move || tokio::time::sleep(*config.pause).await))
            .route(
                "/crash",
                post({
                    let crash = Arc::clone(&crash);
                    async move || {
                        crash.notify_one();
                        StatusCode::ACCEPTED
                    }
                }),
            );
        let watch = Background::new("watch", async move {
            tokio::select! {
                () = cx.drain.cancelled() => Ok(()),
                () = crash.notified() => Err(anyhow::anyhow!("asked to crash")),
            }
        });
        Ok(App {
            router,
            dependencies: Vec::new(),
            background: vec![watch],
        })
    }
}

fn main() -> ExitCode {
    service::main::<Hello>()
}
