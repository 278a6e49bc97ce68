//! OAuth 2.0 token issuer: client credentials in, RS256 access tokens (RFC 9068) out, with JWKS and discovery.
//!
//! Any number of replicas share one signing key, which lives encrypted in the database.

mod bootstrap;
mod clients;
mod config;
mod handlers;
mod issuer;
mod keys;
mod oauth;
mod scope;
mod secret_hash;
mod store;

use axum::Router;
use axum::routing::{get, post};
use chassis::readiness::Kind;
use chassis::service::{App, Chassis, Service, StartError};
use sqlx::migrate::Migrator;

pub use config::Config;

use issuer::Issuer;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/user");

/// The service.
pub struct User;

impl Service for User {
    const NAME: &'static str = "user";
    type Config = Config;

    fn describe() -> serde_json::Value {
        serde_json::json!({"database": "users"})
    }

    async fn build(config: Config, cx: Chassis) -> Result<App, StartError> {
        let pool = chassis::db::pool(&config.db, &cx)?;
        let issuer = Issuer::new(&config, pool.clone())?;
        let bootstrap = bootstrap::Bootstrap::new(&config, pool.clone(), issuer.clone())?;
        let background = bootstrap.start(cx.drain.clone()).await?;
        Ok(App {
            router: router(issuer.clone()),
            dependencies: vec![chassis::db::dependency(&pool, Kind::Required), issuer.dependency()],
            background: vec![background],
        })
    }

    async fn migrate(config: Config) -> Result<(), StartError> {
        chassis::db::migrate(&config.db, &MIGRATIONS).await
    }
}

fn router(issuer: Issuer) -> Router {
    Router::new()
        .route("/oauth2/token", post(handlers::token::issue))
        .route("/oauth2/jwks", get(handlers::jwks::show))
        .route("/.well-known/openid-configuration", get(handlers::discovery::openid))
        .route(
            "/.well-known/oauth-authorization-server",
            get(handlers::discovery::oauth),
        )
        .with_state(issuer)
}
