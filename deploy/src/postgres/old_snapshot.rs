//! A session that holds a snapshot: nothing that was deleted or overwritten since can be removed from its database.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use sqlx::{Connection as _, Executor as _, PgConnection};

use super::Postgres;
use crate::DeployError;

/// For the few statements that it takes; a server that is stopped or out of disk would keep the fault waiting for ever.
const WITHIN: Duration = Duration::from_secs(10);

/// The session; the snapshot ends with it.
#[derive(Debug)]
pub(crate) struct OldSnapshot {
    session: PgConnection,
    database: String,
}

impl OldSnapshot {
    /// Opens the session, and makes sure that the server knows of its snapshot.
    pub(crate) async fn open(server: &Postgres, database: &str) -> Result<Self, DeployError> {
        let opened = async {
            let mut session = server.connect(database).await?;
            session
                .execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                .await?;
            // The snapshot is that of the first statement, and kept to the end of the transaction.
            let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
                .fetch_one(&mut session)
                .await?;
            let mut other = server.connect(database).await?;
            let held = sqlx::query_scalar("SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = $1");
            let held: Option<bool> = held.bind(pid).fetch_optional(&mut other).await?;
            other.close().await?;
            ensure!(held == Some(true), "PostgreSQL shows no snapshot of session {pid}");
            anyhow::Ok(session)
        };
        let session = within(opened)
            .await
            .map_err(|error| DeployError::server(format!("keeping a snapshot of database {database} open"), error))?;
        Ok(Self {
            session,
            database: database.to_owned(),
        })
    }

    /// Ends the session.
    ///
    /// # Errors
    /// It was ended before, and its snapshot with it; or the server does not answer, and keeps the snapshot until it notices
    /// that the connection is gone.
    pub(crate) async fn close(mut self) -> Result<(), DeployError> {
        let closed = async {
            let committed = self.session.execute("COMMIT").await;
            committed.context("the session was ended before its time")?;
            self.session.close().await?;
            anyhow::Ok(())
        };
        within(closed).await.map_err(|error| {
            DeployError::server(
                format!("the snapshot of database {} that was kept open", self.database),
                error,
            )
        })
    }
}

async fn within<T>(asked: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(WITHIN, asked)
        .await
        .with_context(|| format!("no answer within {} s", WITHIN.as_secs()))?
}
