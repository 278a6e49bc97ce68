//! `POST /oauth2/token` (RFC 6749, section 3.2), one grant a file.

mod client_credentials;
mod password;
mod refresh_token;

use axum::Json;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{credentials, given, grant};
use crate::issuer::Issuer;
use crate::oauth::{OauthError, no_store};
use crate::sessions::Tokens;
use crate::store::client::Client;

/// Unknown parameters are ignored and empty ones count as absent, as the RFC asks; a repeated one does not
/// deserialize.
#[derive(Deserialize)]
pub(crate) struct TokenRequest {
    grant_type: Option<String>,
    scope: Option<String>,
    username: Option<String>,
    password: Option<String>,
    refresh_token: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

#[derive(Serialize)]
struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    expires_in: i64,
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
}

pub(crate) async fn issue(
    State(issuer): State<Issuer>,
    headers: HeaderMap,
    form: Result<Form<TokenRequest>, FormRejection>,
) -> Result<Response, OauthError> {
    let Form(request) = form.map_err(|_| credentials::NOT_A_FORM)?;
    let kind = match given(request.grant_type) {
        Some(kind) if grant::ALL.contains(&kind.as_str()) => kind,
        Some(_) => return Err(OauthError::UnsupportedGrantType),
        None => return Err(OauthError::InvalidRequest("grant_type is missing")),
    };
    let client = credentials::authenticate(&issuer, &headers, request.client_id, request.client_secret).await?;
    if !client.grants.contains(&kind) {
        return Err(OauthError::UnauthorizedClient(
            "this client may not use this grant type",
        ));
    }
    let scope = given(request.scope);
    let scope = scope.as_deref();
    let tokens = match kind.as_str() {
        grant::PASSWORD => {
            let user = given(request.username).zip(given(request.password));
            password::grant(&issuer, &client, user, scope).await?
        }
        grant::REFRESH_TOKEN => refresh_token::grant(&issuer, &client, given(request.refresh_token), scope).await?,
        _ => client_credentials::grant(&issuer, &client, scope).await?,
    };
    Ok(respond(&issuer, tokens))
}

fn respond(issuer: &Issuer, tokens: Tokens) -> Response {
    no_store(Json(TokenResponse {
        access_token: tokens.access_token,
        token_type: "Bearer",
        expires_in: issuer.lifetime_s(),
        scope: tokens.scope,
        refresh_token: tokens.refresh_token,
    }))
}

/// Whether a client may take a refresh token home.
fn may_refresh(client: &Client) -> bool {
    client.grants.iter().any(|name| name == grant::REFRESH_TOKEN)
}
