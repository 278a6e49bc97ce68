//! `POST /oauth2/introspect` (RFC 7662): does this access token count, and what does it say?
//!
//! Refresh tokens are not looked up: they are for this service only, and a resource server that heard "active" about one
//! might let its bearer in.

use axum::Json;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{credentials, given};
use crate::access_token::AccessToken;
use crate::issuer::Issuer;
use crate::oauth::{OauthError, no_store};

/// `token_type_hint` may be sent and makes no difference.
#[derive(Deserialize)]
pub(crate) struct IntrospectionRequest {
    token: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

#[derive(Serialize)]
struct Active {
    active: bool,
    scope: String,
    client_id: String,
    sub: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    exp: i64,
    iat: i64,
    iss: String,
    aud: String,
    jti: String,
    token_type: &'static str,
}

/// All that is said about a token that does not count, whatever the reason (RFC 7662, section 2.2).
#[derive(Serialize)]
struct Inactive {
    active: bool,
}

pub(crate) async fn introspect(
    State(issuer): State<Issuer>,
    headers: HeaderMap,
    form: Result<Form<IntrospectionRequest>, FormRejection>,
) -> Result<Response, OauthError> {
    let Form(request) = form.map_err(|_| credentials::NOT_A_FORM)?;
    let client = credentials::authenticate(&issuer, &headers, request.client_id, request.client_secret).await?;
    if !client.introspect {
        return Err(OauthError::UnauthorizedClient(
            "this client may not ask about tokens; the clients file says which may (introspect)",
        ));
    }
    let token = given(request.token).ok_or(OauthError::InvalidRequest("token is missing"))?;
    let active = issuer.active(&token).await?;
    Ok(match active {
        Some(token) => no_store(Json(Active::from(token))),
        None => no_store(Json(Inactive { active: false })),
    })
}

impl From<AccessToken> for Active {
    fn from(token: AccessToken) -> Self {
        Self {
            active: true,
            scope: token.scope,
            client_id: token.client_id,
            sub: token.sub,
            tenant: token.tenant,
            exp: token.exp,
            iat: token.iat,
            iss: token.iss,
            aud: token.aud,
            jti: token.jti,
            token_type: "Bearer",
        }
    }
}
