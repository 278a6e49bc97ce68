//! `POST /oauth2/revoke` (RFC 7009): a client gives back a token of its own.
//!
//! An access token is inactive from then on; a refresh token takes its session along, with every access token of it.

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::{credentials, given};
use crate::issuer::Issuer;
use crate::oauth::{OauthError, no_store};
use crate::store;

/// `token_type_hint` may be sent and makes no difference: what a token is can be seen.
#[derive(Deserialize)]
pub(crate) struct RevocationRequest {
    token: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

pub(crate) async fn revoke(
    State(issuer): State<Issuer>,
    headers: HeaderMap,
    form: Result<Form<RevocationRequest>, FormRejection>,
) -> Result<Response, OauthError> {
    let Form(request) = form.map_err(|_| credentials::NOT_A_FORM)?;
    let client = credentials::authenticate(&issuer, &headers, request.client_id, request.client_secret).await?;
    let token = given(request.token).ok_or(OauthError::InvalidRequest("token is missing"))?;
    let own = |holder: &str| {
        if holder == client.client_id {
            Ok(())
        } else {
            Err(OauthError::UnauthorizedClient("the token was issued to another client"))
        }
    };
    if let Some(access) = issuer.read(&token)? {
        own(&access.client_id)?;
        let mut connection = chassis::db::acquire(issuer.pool()).await?;
        store::revocation::revoke(&mut connection, &access.jti, access.exp).await?;
    } else {
        let hash = issuer.hasher().hash_token(&token);
        let mut connection = chassis::db::acquire(issuer.pool()).await?;
        // What is unknown is as good as revoked (section 2.2).
        if let Some(holder) = store::session::client_of(&mut connection, &hash).await? {
            own(&holder)?;
            store::session::end(&mut connection, &hash).await?;
        }
    }
    Ok(no_store(StatusCode::OK))
}
