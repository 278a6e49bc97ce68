//! OAuth 2.0 token issuer and the users behind it: credentials in, RS256 access tokens (RFC 9068) out, with JWKS,
//! introspection, revocation and discovery.
//!
//! Any number of replicas share the signing keys, which live encrypted in the database and take turns without a request
//! noticing.

mod access_token;
mod accounts;
mod bootstrap;
mod clients;
mod config;
mod failure;
mod handlers;
mod issuer;
mod keys;
mod names;
mod oauth;
mod passwords;
mod scope;
mod secret_hash;
mod sessions;
mod store;
mod users;

use anyhow::Context;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use chassis::readiness::Kind;
use chassis::service::{Action, App, Chassis, Service, StartError};
use sqlx::migrate::Migrator;

pub use config::Config;

use handlers::{auth, discovery, introspect, jwks, revoke, token, users as user_routes};
use issuer::Issuer;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/user");

/// Largest request body in bytes: all of them are a few parameters.
const BODY_LIMIT: usize = 16 * 1024;

/// Makes a new signing key, which signs after USER_KEY_LEAD.
const ROTATE_KEY: &str = "rotate-key";

/// The service.
pub struct User;

impl Service for User {
    const NAME: &'static str = "user";
    const ACTIONS: &'static [Action] = &[Action {
        name: ROTATE_KEY,
        words: &[],
    }];
    type Config = Config;

    fn describe() -> serde_json::Value {
        serde_json::json!({"database": "users"})
    }

    async fn build(config: Config, cx: Chassis) -> Result<App, StartError> {
        let pool = chassis::db::pool(&config.db, &cx)?;
        let issuer = Issuer::new(&config, pool.clone())?;
        let bootstrap = bootstrap::Bootstrap::new(&config, issuer.clone())?;
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

    /// `rotate-key`, the only one.
    async fn act(_: &str, _: &[String], config: Config) -> Result<(), StartError> {
        let keeper = bootstrap::keeper(&config)?;
        let mut connection = chassis::db::connect(&config.db).await?;
        keeper
            .rotate(&mut connection)
            .await
            .context("no new key")
            .map_err(StartError::Unavailable)
    }
}

fn router(issuer: Issuer) -> Router {
    Router::new()
        .route("/oauth2/token", post(token::issue))
        .route("/oauth2/introspect", post(introspect::introspect))
        .route("/oauth2/revoke", post(revoke::revoke))
        .route("/oauth2/jwks", get(jwks::show))
        .route("/.well-known/openid-configuration", get(discovery::openid))
        .route("/.well-known/oauth-authorization-server", get(discovery::oauth))
        .route("/api/auth/register", post(auth::register::register))
        .route("/api/auth/login", post(auth::login::login))
        .route("/api/auth/refresh", post(auth::refresh::refresh))
        .route("/api/auth/logout", post(auth::logout::logout))
        .route("/api/users/me", get(user_routes::me::me))
        .route("/api/users/{id}", get(user_routes::by_id::by_id))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(issuer)
}
