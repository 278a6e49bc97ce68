//! PostgreSQL as a child process: its cluster, its presets, its databases and their snapshots.

mod cluster;
mod databases;
mod normal;
mod old_snapshot;
mod place;
mod preset;
#[cfg(test)]
mod tests;
mod user;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

pub(crate) use databases::Database;
pub(crate) use old_snapshot::OldSnapshot;
pub(crate) use place::name_for;
pub(crate) use preset::{Applied, Preset};
pub(crate) use user::unprivileged_user;

use crate::{
    DeployError, Kind,
    process::{Launch, Stop},
    schema::Change,
    volume::Volume,
};

const NAME: &str = "postgres";
/// Owner of the cluster. The lab's probes use it too: they must see every session's statements.
const SUPERUSER: &str = "rowlock";
/// Longest path of a Unix socket, without its final zero byte.
const SOCKET_PATH_MAX: usize = 107;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The PostgreSQL server of one stack.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    /// The folder of `postgres`, `initdb`, `pgbench`.
    bin: PathBuf,
    /// Its own folder: `data`, `socket`.
    dir: PathBuf,
    port: u16,
    password: String,
    /// Whom it runs as, when that is not us.
    user: Option<(u32, u32)>,
    /// What its folder is mounted on, when it has a volume of its own.
    volume: Option<Volume>,
}

impl Postgres {
    /// `stack` is the stack's own state folder, which identifies it; the cluster may have to live elsewhere. `bytes` is
    /// the size of a volume of its own.
    pub(crate) fn new(
        bin: &Path,
        stack: &Path,
        port: u16,
        password: String,
        bytes: Option<u64>,
    ) -> Result<Self, DeployError> {
        let (dir, user) = place::choose(stack)?;
        let volume = bytes.map(|bytes| Volume {
            at: dir.clone(),
            bytes,
            user,
        });
        Ok(Self {
            volume,
            bin: bin.to_owned(),
            dir,
            port,
            password,
            user,
        })
    }

    /// Makes the cluster if there is none yet, writes its configuration for `preset`, and says how it is started.
    pub(crate) async fn launch(&self, preset: &Preset) -> Result<Launch, DeployError> {
        if let Some(volume) = &self.volume {
            volume.mount().await?;
        }
        cluster::prepare(self).await?;
        preset::write(self, preset)?;
        Ok(Launch {
            args: vec!["-D".into(), self.data().into()],
            ports: vec![self.port],
            ..self.tool("postgres")
        })
    }

    /// The volume its data lies on.
    ///
    /// # Errors
    /// It lies on the disk that everything else lies on as well.
    pub(crate) fn volume(&self) -> Result<&Volume, DeployError> {
        self.volume.as_ref().ok_or_else(|| DeployError::Missing {
            what: "a volume that PostgreSQL has to itself".to_owned(),
            remedy: "its disk is everybody's and will not be filled; bring the stack up as root with --volume postgres=256MB"
                .to_owned(),
        })
    }

    /// Where its Unix socket is while it runs; `None` when that path would be too long for one: then there is TCP alone.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        let folder = self.socket_folder()?;
        Some(folder.join(format!(".s.PGSQL.{}", self.port)))
    }

    fn socket_folder(&self) -> Option<PathBuf> {
        let folder = self.dir.join("socket");
        let length = folder.as_os_str().len() + format!("/.s.PGSQL.{}", self.port).len();
        (length <= SOCKET_PATH_MAX && !folder.to_string_lossy().contains('\'')).then_some(folder)
    }

    /// Accepts connections and answers.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        let answer = async {
            let mut connection = self.connect("postgres").await?;
            connection.ping().await?;
            connection.close().await
        };
        answer.await.map_err(|error: sqlx::Error| error.to_string())
    }

    /// Superuser URL of a database; another port gives the same over a link.
    pub(crate) fn url(&self, database: &str, port: Option<u16>) -> String {
        self.url_as(SUPERUSER, &self.password, database, port)
    }

    /// The URL a service uses, as the owner of its own database.
    pub(crate) fn url_as(&self, role: &str, password: &str, database: &str, port: Option<u16>) -> String {
        let port = port.unwrap_or(self.port);
        format!("postgres://{role}:{password}@127.0.0.1:{port}/{database}")
    }

    /// Writes `preset` and reloads the running server. Afterwards either every parameter of it is in force, or the server
    /// has to be restarted, which the caller does before it calls [`Postgres::verify`].
    pub(crate) async fn apply(&self, preset: &Preset) -> Result<Applied, DeployError> {
        preset::apply(self, preset)
            .await
            .map_err(|error| DeployError::server(format!("applying PostgreSQL's preset {}", preset.name()), error))
    }

    /// The parameters of `preset` that are not in force, as `NAME should be … and is …`.
    pub(crate) async fn not_in_force(&self, preset: &Preset) -> Result<Vec<String>, DeployError> {
        preset::not_in_force(self, preset)
            .await
            .map_err(|error| DeployError::server(format!("PostgreSQL's preset {}", preset.name()), error))
    }

    /// Makes sure that the server's own account of every parameter of `preset` agrees with it.
    pub(crate) async fn verify(&self, preset: &Preset) -> Result<(), DeployError> {
        preset::verify(self, preset)
            .await
            .map_err(|error| DeployError::server(format!("PostgreSQL's preset {}", preset.name()), error))
    }

    /// Makes role and snapshot database of a service, if they are not there; its migrations are to run against
    /// [`Database::snapshot`] then, and [`Postgres::restore`] makes the database itself.
    pub(crate) async fn prepare_snapshot(&self, database: &Database) -> Result<(), DeployError> {
        databases::prepare_snapshot(self, database)
            .await
            .map_err(|error| DeployError::server(format!("preparing database {}", database.name), error))
    }

    /// Drops the snapshot, so that [`Postgres::prepare_snapshot`] makes a new one.
    pub(crate) async fn drop_snapshot(&self, database: &Database) -> Result<(), DeployError> {
        databases::drop_snapshot(self, database)
            .await
            .map_err(|error| DeployError::server(format!("dropping the snapshot of {}", database.name), error))
    }

    /// Replaces the database by a copy of its snapshot, ending every session on it, and checks that every table has the
    /// snapshot's rows.
    pub(crate) async fn restore(&self, database: &Database) -> Result<(), DeployError> {
        databases::restore(self, database)
            .await
            .map_err(|error| DeployError::server(format!("restoring database {}", database.name), error))
    }

    /// Makes a change of the schema in a database, all of it or nothing.
    pub(crate) async fn change(&self, database: &Database, change: &Change) -> Result<(), DeployError> {
        let what = || format!("making the schema change `{}` in {}", change.name, database.name);
        databases::change(self, database, change)
            .await
            .map_err(|error| DeployError::server(what(), error))
    }

    /// Writes out everything that is still in memory alone: what comes next starts with nothing left to write from before.
    pub(crate) async fn checkpoint(&self) -> Result<(), DeployError> {
        databases::checkpoint(self)
            .await
            .map_err(|error| DeployError::server("a checkpoint of PostgreSQL", error))
    }

    /// The tables of a database that differ from its snapshot, as `TABLE: … rows instead of …`.
    pub(crate) async fn differs(&self, database: &Database) -> Result<Vec<String>, DeployError> {
        databases::differs(self, &database.snapshot(), &database.name)
            .await
            .map_err(|error| DeployError::server(format!("comparing {} with its snapshot", database.name), error))
    }

    /// Its own folder; whoever runs as its user may have files there.
    pub(crate) fn folder(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// User and group it runs as, when those are not ours.
    pub(crate) fn user(&self) -> Option<(u32, u32)> {
        self.user
    }

    /// Name and password.
    pub(crate) fn superuser(&self) -> (&str, &str) {
        (SUPERUSER, &self.password)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// One of PostgreSQL's programs, run as its user; also the skeleton of the server's own launch.
    fn tool(&self, program: &str) -> Launch {
        Launch {
            name: NAME.to_owned(),
            component: NAME.to_owned(),
            kind: Kind::Server,
            program: self.bin.join(program),
            args: Vec::new(),
            // The user it runs as may not be able to enter ours.
            env: vec![
                ("HOME".into(), self.dir.clone().into()),
                ("LC_ALL".into(), "C.UTF-8".into()),
            ],
            cwd: self.dir.clone(),
            user: self.user,
            group: None,
            ports: Vec::new(),
            // SIGINT is the fast shutdown: sessions are ended, a checkpoint is written. SIGQUIT is the immediate one: every
            // session ends at once, and the next start recovers as after a crash.
            stop: Stop::by(Signal::SIGINT, Duration::from_secs(30))
                .orphaned_by(Signal::SIGQUIT)
                .crashed_by(Signal::SIGQUIT),
        }
    }

    async fn connect(&self, database: &str) -> Result<PgConnection, sqlx::Error> {
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username(SUPERUSER)
            .password(&self.password)
            .database(database)
            .application_name("rowlock-deploy");
        let connect = PgConnection::connect_with(&options);
        tokio::time::timeout(CONNECT_WITHIN, connect)
            .await
            .unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut))
    }
}
