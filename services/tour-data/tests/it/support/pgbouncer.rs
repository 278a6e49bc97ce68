//! A PgBouncer of the test's own before the server that all share. It lends a session for a transaction, and the next one
//! to whoever comes next.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reqwest::Url;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::{eventually, server};

/// Where Debian puts it, which is not on every user's path.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

pub(crate) struct PgBouncer {
    pub(crate) addr: SocketAddr,
    process: Child,
    configuration: PathBuf,
}

impl PgBouncer {
    /// Keeps so many sessions to a database.
    pub(crate) async fn start(sessions: u16) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = free.local_addr().expect("it is bound");
        let configuration = std::env::temp_dir().join(format!("pgbouncer-{}.ini", Uuid::new_v4().simple()));
        let mut options = std::fs::OpenOptions::new();
        // It holds the server's password.
        let file = options.write(true).create_new(true).mode(0o600).open(&configuration);
        std::io::Write::write_all(&mut file.expect("a file"), text(addr, sessions).as_bytes()).expect("it is written");
        let program = if Path::new(PROGRAM).exists() {
            PROGRAM
        } else {
            "pgbouncer"
        };
        drop(free);
        let process = Command::new(program)
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("PgBouncer is installed: `cargo rowlock setup` does it");
        let pooler = Self {
            addr,
            process,
            configuration,
        };
        eventually("PgBouncer takes connections", async || {
            TcpStream::connect(addr).await.ok()
        })
        .await;
        pooler
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Whether it could be ended is no matter of the test.
        drop(self.process.kill());
        drop(self.process.wait());
        drop(std::fs::remove_file(&self.configuration));
    }
}

/// In turns, so that a client hardly ever meets the session again that it had before.
fn text(addr: SocketAddr, sessions: u16) -> String {
    let server = Url::parse(&server("ROWLOCK_TEST_POSTGRES")).expect("a URL");
    let (host, port) = (server.host_str().expect("a host"), server.port().unwrap_or(5432));
    let (user, password) = (server.username(), server.password().unwrap_or_default());
    // It refuses to work as root.
    let root = std::fs::metadata("/proc/self").expect("there is one").uid() == 0;
    let change = if root { "user = postgres\n" } else { "" };
    format!(
        "[databases]\n* = host={host} port={port} user={user} password={password}\n\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
         default_pool_size = {sessions}\nmax_client_conn = 500\nserver_round_robin = 1\n\
         ignore_startup_parameters = extra_float_digits,options\n{change}",
        addr.port()
    )
}
