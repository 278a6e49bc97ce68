//! The client credentials grant (RFC 6749, section 4.4): a program acts for itself, without a refresh token.

use crate::issuer::{Bearer, Issuer};
use crate::oauth::OauthError;
use crate::scope;
use crate::sessions::Tokens;
use crate::store::client::Client;

pub(super) async fn grant(issuer: &Issuer, client: &Client, requested: Option<&str>) -> Result<Tokens, OauthError> {
    let scope = scope::narrow(&client.scopes, requested)?;
    let bearer = Bearer {
        sub: &client.client_id,
        client_id: &client.client_id,
        tenant: client.tenant.as_deref(),
        session: None,
    };
    Ok(Tokens {
        access_token: issuer.issue(&bearer, &scope).await?,
        scope,
        refresh_token: None,
    })
}
