//! Who somebody is: names and passwords against the stored accounts.

use sqlx::PgConnection;

use crate::failure::Failure;
use crate::issuer::Issuer;
use crate::names;
use crate::store;
use crate::store::account::{Account, NewAccount};

/// Why an account was not created.
pub(crate) enum RegisterError {
    /// Another account has this value already.
    Taken(&'static str),
    Failure(Failure),
}

/// The account of this name if the password is right. A wrong password and an unknown name take the same time.
pub(crate) async fn authenticate(issuer: &Issuer, name: &str, password: String) -> Result<Option<Account>, Failure> {
    issuer.loaded()?;
    let found = match names::username(name) {
        Ok(username) => {
            let find = async |connection: &mut PgConnection| store::account::by_username(connection, &username).await;
            chassis::db::read(issuer.pool(), find).await?
        }
        Err(_) => None,
    };
    // Hashing must not hold a connection that another request waits for: the one above has been given back.
    let (account, stored) = found.unzip();
    let verified = issuer.passwords().verify(password, stored).await?;
    Ok(account.filter(|_| verified))
}

/// Creates an account without tenant: a stranger cannot choose for whom he acts.
pub(crate) async fn register(
    issuer: &Issuer,
    username: String,
    email: Option<String>,
    password: String,
) -> Result<Account, RegisterError> {
    let account = NewAccount {
        username,
        email,
        password: issuer.passwords().hash(password).await?,
        tenant: None,
        scopes: issuer.registration_scopes().to_vec(),
    };
    let mut connection = chassis::db::acquire(issuer.pool()).await?;
    store::account::insert(&mut connection, &account)
        .await
        .map_err(
            |error| match error.as_database_error().and_then(|error| error.constraint()) {
                Some("account_username") => RegisterError::Taken("username"),
                Some("account_email") => RegisterError::Taken("email"),
                _ => error.into(),
            },
        )
}

impl From<Failure> for RegisterError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<sqlx::Error> for RegisterError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failure(error.into())
    }
}
