//! The password grant (RFC 6749, section 4.3). OAuth 2.1 drops it; the published load scripts use it.

use super::may_refresh;
use crate::issuer::Issuer;
use crate::oauth::OauthError;
use crate::sessions::Tokens;
use crate::store::client::Client;
use crate::{accounts, scope, sessions};

pub(super) async fn grant(
    issuer: &Issuer,
    client: &Client,
    user: Option<(String, String)>,
    requested: Option<&str>,
) -> Result<Tokens, OauthError> {
    let (username, password) = user.ok_or(OauthError::InvalidRequest("username or password is missing"))?;
    let account = accounts::authenticate(issuer, &username, password).await?;
    // A client that belongs to a tenant must not become a way into another one.
    let account = account
        .filter(|account| client.tenant.is_none() || client.tenant == account.tenant)
        .ok_or_else(|| OauthError::InvalidGrant("the user name or the password is wrong".to_owned()))?;
    let scope = scope::narrow(&scope::common(&account.scopes, &client.scopes), requested)?;
    Ok(sessions::open(issuer, &account, &client.client_id, scope, may_refresh(client)).await?)
}
