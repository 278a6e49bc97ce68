//! `/api/auth/*`: accounts and logins as JSON, for programs that speak no OAuth.

pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod refresh;
pub(crate) mod register;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use chassis::problem::{Json, Problem};
use serde::Serialize;

use crate::issuer::Issuer;
use crate::oauth::no_store;
use crate::sessions::Tokens;

/// Answer to a login and to a refresh.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoggedIn {
    access_token: String,
    token_type: &'static str,
    /// Seconds, as the next one.
    expires_in: i64,
    refresh_token: Option<String>,
    refresh_expires_in: i64,
    scope: String,
}

fn logged_in(issuer: &Issuer, tokens: Tokens) -> Response {
    no_store(Json(LoggedIn {
        access_token: tokens.access_token,
        token_type: "Bearer",
        expires_in: issuer.lifetime_s(),
        refresh_token: tokens.refresh_token,
        refresh_expires_in: issuer.refresh_lifetime_s(),
        scope: tokens.scope,
    }))
}

/// 401 for credentials in a body; the challenge says how one is let in elsewhere (RFC 9110, section 11.6.1).
fn unauthorized(slug: &'static str, title: &'static str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, slug, title)
        .detail(detail)
        .header(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static(r#"Bearer realm="rowlock""#),
        )
}
