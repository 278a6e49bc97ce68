//! The cluster: made once, configured at every start.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::digest;

use super::{Postgres, SUPERUSER};
use crate::{DeployError, process::run_tool, secrets::write_private};

const INITDB_WITHIN: Duration = Duration::from_secs(120);
/// What every preset shares.
const LAB: &str = include_str!("lab.conf");

/// Makes the cluster if there is none for the present password, and writes what does not depend on the preset.
pub(super) async fn prepare(server: &Postgres) -> Result<(), DeployError> {
    if !is_ours(server) {
        initialise(server).await?;
    }
    let conf = format!(
        "# Written by Rowlock at every start; changes made here are lost.\n\
         listen_addresses = '127.0.0.1'\n\
         port = {}\n\
         unix_socket_directories = '{}'\n\
         {}\
         \n{LAB}\n\
         include '{}'\n",
        server.port,
        socket_folder(server)?,
        log_size(server),
        super::preset::FILE,
    );
    write_for(server, &server.data().join("postgresql.conf"), &conf)
}

/// On a small volume the write-ahead log must leave room for the data; by default it grows to a gigabyte.
fn log_size(server: &Postgres) -> String {
    server.volume().map_or_else(
        |_| String::new(),
        |volume| {
            format!(
                "min_wal_size = 32MB\nmax_wal_size = {}MB\n",
                (volume.bytes / 4 / 1_000_000).max(32)
            )
        },
    )
}

/// Writes a file that PostgreSQL's user owns and nobody else can read.
pub(super) fn write_for(server: &Postgres, path: &Path, text: &str) -> Result<(), DeployError> {
    write_private(path, text.as_bytes())?;
    give(server, path)
}

fn give(server: &Postgres, path: &Path) -> Result<(), DeployError> {
    let Some((uid, gid)) = server.user else {
        return Ok(());
    };
    chown(path, Some(uid), Some(gid))
        .map_err(|error| DeployError::io(format!("give {} to PostgreSQL's user", path.display()), error))
}

/// A cluster outlives the secrets when it had to be placed outside the stack's folder and that folder was removed: nobody
/// knows its password then, and nobody can want it.
fn is_ours(server: &Postgres) -> bool {
    fs::read_to_string(stamp_file(server)).is_ok_and(|stamp| stamp == stamp_of(server))
}

fn stamp_file(server: &Postgres) -> PathBuf {
    server.data().join("rowlock-password.sha256")
}

fn stamp_of(server: &Postgres) -> String {
    let hash = digest::digest(&digest::SHA256, server.password.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `initdb` into a folder beside, which takes its place only when it is complete.
async fn initialise(server: &Postgres) -> Result<(), DeployError> {
    let fresh = server.dir.join("data.new");
    let pwfile = server.dir.join("password");
    for old in [server.data(), fresh.clone()] {
        if old.exists() {
            refuse_if_running(&old)?;
            fs::remove_dir_all(&old).map_err(|error| DeployError::io(format!("remove {}", old.display()), error))?;
        }
    }
    write_for(server, &pwfile, &server.password)?;
    let mut initdb = server.tool("initdb");
    initdb.name = "initdb".to_owned();
    initdb.args = vec![
        "--pgdata".into(),
        fresh.clone().into(),
        "--pwfile".into(),
        pwfile.clone().into(),
        format!("--username={SUPERUSER}").into(),
        "--auth=scram-sha-256".into(),
        "--encoding=UTF8".into(),
        "--locale=C.UTF-8".into(),
        "--no-instructions".into(),
    ];
    let made = run_tool(&initdb, INITDB_WITHIN).await;
    fs::remove_file(&pwfile).map_err(|error| DeployError::io(format!("remove {}", pwfile.display()), error))?;
    made?;
    fs::rename(&fresh, server.data()).map_err(|error| DeployError::io(format!("rename {}", fresh.display()), error))?;
    write_for(server, &stamp_file(server), &stamp_of(server))
}

fn refuse_if_running(data: &Path) -> Result<(), DeployError> {
    let pid = fs::read_to_string(data.join("postmaster.pid"))
        .ok()
        .and_then(|text| text.lines().next()?.trim().parse::<u32>().ok());
    match pid {
        Some(pid) if Path::new(&format!("/proc/{pid}")).exists() => Err(DeployError::start(
            "postgres",
            format!(
                "has a cluster in {} whose password is not known any more, and process {pid} still runs on it; end that first",
                data.display()
            ),
            None,
        )),
        _ => Ok(()),
    }
}

/// The folder of the Unix socket, made if it is missing; nothing when there is TCP alone.
fn socket_folder(server: &Postgres) -> Result<String, DeployError> {
    let Some(folder) = server.socket_folder() else {
        return Ok(String::new());
    };
    if !folder.exists() {
        fs::create_dir(&folder)
            .and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)))
            .map_err(|error| DeployError::io(format!("make {}", folder.display()), error))?;
    }
    give(server, &folder)?;
    Ok(folder.display().to_string())
}
