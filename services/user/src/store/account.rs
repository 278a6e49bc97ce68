//! Table `account`.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::passwords::Hashed;

/// An account without its password.
#[derive(sqlx::FromRow)]
pub(crate) struct Account {
    pub(crate) id: Uuid,
    pub(crate) username: String,
    pub(crate) email: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) created_at: DateTime<Utc>,
}

/// An account as it is written.
pub(crate) struct NewAccount {
    pub(crate) username: String,
    pub(crate) email: Option<String>,
    pub(crate) password: Hashed,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
}

#[derive(sqlx::FromRow)]
struct WithPassword {
    #[sqlx(flatten)]
    account: Account,
    #[sqlx(flatten)]
    password: Hashed,
}

/// The account of this name, in lower case, and its password.
pub(crate) async fn by_username(
    connection: &mut PgConnection,
    username: &str,
) -> sqlx::Result<Option<(Account, Hashed)>> {
    let found: Option<WithPassword> = sqlx::query_as(
        "SELECT id, username, email, tenant, scopes, created_at,
                password_hash, password_salt, password_kib, password_passes
         FROM account WHERE username = $1",
    )
    .bind(username)
    .fetch_optional(connection)
    .await?;
    Ok(found.map(|found| (found.account, found.password)))
}

/// By primary key.
pub(crate) async fn find(connection: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Account>> {
    sqlx::query_as("SELECT id, username, email, tenant, scopes, created_at FROM account WHERE id = $1")
        .bind(id)
        .fetch_optional(connection)
        .await
}

/// Creates an account. A name or address that is taken is a violation of `account_username` or `account_email`.
pub(crate) async fn insert(connection: &mut PgConnection, account: &NewAccount) -> sqlx::Result<Account> {
    sqlx::query_as(
        "INSERT INTO account (id, username, email, password_hash, password_salt, password_kib, password_passes,
                              tenant, scopes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         RETURNING id, username, email, tenant, scopes, created_at",
    )
    .bind(Uuid::now_v7())
    .bind(&account.username)
    .bind(&account.email)
    .bind(&account.password.hash)
    .bind(&account.password.salt)
    .bind(account.password.kib)
    .bind(account.password.passes)
    .bind(&account.tenant)
    .bind(&account.scopes)
    .fetch_one(connection)
    .await
}

/// Inserts or overwrites one account of the users file; its id stays.
pub(crate) async fn upsert(pool: &PgPool, account: &NewAccount) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO account (id, username, password_hash, password_salt, password_kib, password_passes, tenant, scopes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (username) DO UPDATE
         SET password_hash = excluded.password_hash, password_salt = excluded.password_salt,
             password_kib = excluded.password_kib, password_passes = excluded.password_passes,
             tenant = excluded.tenant, scopes = excluded.scopes",
    )
    .bind(Uuid::now_v7())
    .bind(&account.username)
    .bind(&account.password.hash)
    .bind(&account.password.salt)
    .bind(account.password.kib)
    .bind(account.password.passes)
    .bind(&account.tenant)
    .bind(&account.scopes)
    .execute(pool)
    .await
    .map(drop)
}
