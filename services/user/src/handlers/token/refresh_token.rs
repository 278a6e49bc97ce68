//! The refresh token grant (RFC 6749, section 6), with rotation (RFC 9700, section 4.14.2).

use crate::issuer::Issuer;
use crate::oauth::OauthError;
use crate::sessions::{self, Tokens};
use crate::store::client::Client;

pub(super) async fn grant(
    issuer: &Issuer,
    client: &Client,
    token: Option<String>,
    requested: Option<&str>,
) -> Result<Tokens, OauthError> {
    let token = token.ok_or(OauthError::InvalidRequest("refresh_token is missing"))?;
    Ok(sessions::refresh(issuer, &token, &client.client_id, Some(&client.scopes), requested).await?)
}
