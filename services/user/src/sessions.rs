//! Logins: what a user gets after proving who he is, and how it is prolonged and ended.

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::failure::Failure;
use crate::issuer::{Bearer, Issuer};
use crate::scope::{self, ScopeError};
use crate::store;
use crate::store::account::Account;
use crate::store::session::Session;

/// The client in tokens of the `/api/auth` endpoints.
pub(crate) const OWN_CLIENT: &str = "rowlock-accounts";

/// 256 bits.
const REFRESH_TOKEN_BYTES: usize = 32;

/// What a login or a refresh gives.
pub(crate) struct Tokens {
    pub(crate) access_token: String,
    pub(crate) scope: String,
    /// `None` for a client that may not use one.
    pub(crate) refresh_token: Option<String>,
}

/// Why a session is not prolonged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefreshError {
    /// One text for every reason, since whoever holds somebody else's token learns nothing from it.
    #[error("the refresh token is unknown, used, expired, revoked or another client's")]
    Invalid,
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Failure(Failure),
}

/// Begins a session of `account` at `client_id`; `scope` has been granted. Without `prolongable` it ends with its access
/// token, and nothing is stored.
pub(crate) async fn open(
    issuer: &Issuer,
    account: &Account,
    client_id: &str,
    scope: String,
    prolongable: bool,
) -> Result<Tokens, Failure> {
    let session = prolongable.then(|| Session {
        id: Uuid::now_v7(),
        account_id: account.id,
        client_id: client_id.to_owned(),
        scopes: scope.split_whitespace().map(str::to_owned).collect(),
    });
    let access_token = issue(issuer, account, client_id, session.as_ref(), &scope).await?;
    let refresh_token = match session {
        Some(session) => {
            let token = new_refresh_token()?;
            let hash = issuer.hasher().hash_token(&token);
            let mut connection = chassis::db::acquire(issuer.pool()).await?;
            let lifetime_s = issuer.refresh_lifetime_s() as f64;
            store::session::open(&mut connection, &session, &hash, lifetime_s).await?;
            Some(token)
        }
        None => None,
    };
    Ok(Tokens {
        access_token,
        scope,
        refresh_token,
    })
}

/// Takes a refresh token and gives the next, with an access token for what is asked and still granted: scopes that the
/// account or the client (`client_scopes`, `None` without such a bound) lost since the login are gone. A token that was
/// used before ends its session: one of those who presented it is not the one it was given to.
pub(crate) async fn refresh(
    issuer: &Issuer,
    token: &str,
    client_id: &str,
    client_scopes: Option<&[String]>,
    requested: Option<&str>,
) -> Result<Tokens, RefreshError> {
    let hash = issuer.hasher().hash_token(token);
    let mut connection = chassis::db::acquire(issuer.pool()).await?;
    let Some(session) = store::session::of_unused(&mut connection, &hash).await? else {
        return Err(refuse(&mut connection, &hash, client_id).await);
    };
    let account = store::account::find(&mut connection, session.account_id).await?;
    // Signing must not hold a connection that another request waits for.
    drop(connection);
    let account = account
        .filter(|_| session.client_id == client_id)
        .ok_or(RefreshError::Invalid)?;

    let mut allowed = scope::common(&session.scopes, &account.scopes);
    if let Some(client_scopes) = client_scopes {
        allowed = scope::common(&allowed, client_scopes);
    }
    // An account without scopes can log in, hence stay logged in; only asking for one of them is wrong.
    let scope = match requested {
        Some(requested) => scope::narrow(&allowed, Some(requested))?,
        None => allowed.join(" "),
    };
    let access_token = issue(issuer, &account, client_id, Some(&session), &scope).await?;

    // Last, so that nothing that goes wrong above costs the client its token.
    let next = new_refresh_token()?;
    let next_hash = issuer.hasher().hash_token(&next);
    let mut connection = chassis::db::acquire(issuer.pool()).await?;
    let lifetime_s = issuer.refresh_lifetime_s() as f64;
    if !store::session::rotate(&mut connection, &hash, &next_hash, lifetime_s).await? {
        return Err(refuse(&mut connection, &hash, client_id).await);
    }
    Ok(Tokens {
        access_token,
        scope,
        refresh_token: Some(next),
    })
}

/// Ends the session of a refresh token; an unknown token is no error, since nobody can use it either.
pub(crate) async fn end(issuer: &Issuer, token: &str) -> Result<(), Failure> {
    let mut connection = chassis::db::acquire(issuer.pool()).await?;
    store::session::end(&mut connection, &issuer.hasher().hash_token(token)).await?;
    Ok(())
}

async fn refuse(connection: &mut sqlx::PgConnection, hash: &[u8], client_id: &str) -> RefreshError {
    match store::session::end_if_reused(connection, hash, client_id).await {
        Ok(Some(session)) => {
            tracing::warn!(%session, client_id, "a refresh token was used twice: its session has been ended");
            RefreshError::Invalid
        }
        Ok(None) => RefreshError::Invalid,
        Err(error) => error.into(),
    }
}

async fn issue(
    issuer: &Issuer,
    account: &Account,
    client_id: &str,
    session: Option<&Session>,
    scope: &str,
) -> Result<String, Failure> {
    let bearer = Bearer {
        sub: &account.id.to_string(),
        client_id,
        tenant: account.tenant.as_deref(),
        session: session.map(|session| session.id),
    };
    issuer.issue(&bearer, scope).await
}

fn new_refresh_token() -> Result<String, Failure> {
    let mut bytes = [0; REFRESH_TOKEN_BYTES];
    rand::fill(&mut bytes).map_err(|error| Failure::Internal(format!("no random numbers: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl From<Failure> for RefreshError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<sqlx::Error> for RefreshError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failure(error.into())
    }
}
