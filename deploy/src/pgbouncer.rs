//! PgBouncer as a child process: transaction pooling between the services and PostgreSQL.
//!
//! It stands beside PostgreSQL, so that a link goes to it and not past it. Every database is passed through under its own
//! name; users and passwords are PostgreSQL's.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use sqlx::{Connection as _, PgConnection};

use crate::DeployError;
use crate::postgres::Postgres;
use crate::process::{Kind, Launch, Stop};
use crate::secrets::write_private;

const NAME: &str = "pgbouncer";
/// More than all replicas of all services can open.
const CLIENTS_MAX: u32 = 2000;

/// The PgBouncer of one stack.
#[derive(Clone, Debug)]
pub(crate) struct PgBouncer {
    program: PathBuf,
    postgres: Postgres,
    /// Its own folder, inside PostgreSQL's: both run as the same user.
    dir: PathBuf,
    port: u16,
}

impl PgBouncer {
    pub(crate) fn new(program: &Path, postgres: Postgres, port: u16) -> Self {
        Self {
            program: program.to_owned(),
            dir: postgres.folder().join(NAME),
            postgres,
            port,
        }
    }

    /// Where clients connect.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Writes the configuration, with `connections` to PostgreSQL for each pair of user and database, and says how it is
    /// started. `passwords` are those of the
    /// users that may come beside the superuser.
    pub(crate) fn launch<'a>(
        &'a self,
        connections: u16,
        passwords: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Launch, DeployError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|error| DeployError::io(format!("make {}", self.dir.display()), error))?;
        let users: String = passwords
            .chain([self.postgres.superuser()])
            .map(|(user, password)| format!("\"{user}\" \"{password}\"\n"))
            .collect();
        let (ini, list) = (self.dir.join("pgbouncer.ini"), self.dir.join("users.txt"));
        // What a client asks of its session at the start is not PgBouncer's to promise: sessions change with each
        // transaction. It would refuse the client for it, unless told to leave it out. A service that goes through it asks for
        // nothing, and gives each of its transactions what they need; one that does ask finds out that it was left out.
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = {connections}\nmax_client_conn = {CLIENTS_MAX}\n\
             ignore_startup_parameters = extra_float_digits,options\n",
            self.postgres.port(),
            self.port,
            list.display()
        );
        write_private(&list, users.as_bytes())?;
        write_private(&ini, text.as_bytes())?;
        if let Some((user, group)) = self.postgres.user() {
            for path in [&self.dir, &ini, &list] {
                chown(path, Some(user), Some(group))
                    .map_err(|error| DeployError::io(format!("give {} to PgBouncer's user", path.display()), error))?;
            }
        }
        Ok(Launch {
            name: NAME.to_owned(),
            component: NAME.to_owned(),
            kind: Kind::Server,
            program: self.program.clone(),
            args: vec![ini.into()],
            env: Vec::new(),
            cwd: self.dir.clone(),
            user: self.postgres.user(),
            group: None,
            ports: vec![self.port],
            // At once: its clients have ended before it.
            stop: Stop::by(Signal::SIGTERM, Duration::from_secs(5)),
        })
    }

    /// Passes a query on to PostgreSQL.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        let ask = async {
            let mut connection = PgConnection::connect(&self.postgres.url("postgres", Some(self.port))).await?;
            connection.ping().await?;
            connection.close().await
        };
        ask.await.map_err(|error| error.to_string())
    }
}
