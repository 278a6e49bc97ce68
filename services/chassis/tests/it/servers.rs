//! The servers tests run against, each test with a database, queue names and connections of its own.

use std::sync::Arc;

use chassis::service::{Chassis, Drain};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};
use uuid::Uuid;

/// A server URL from the environment.
pub(crate) fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo rowlock test`, which starts the servers this test needs")
    })
}

/// `url` with its host and port replaced.
pub(crate) fn redirect(url: &str, port: u16) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let (credentials, rest) = rest
        .rsplit_once('@')
        .map_or(("", rest), |(credentials, rest)| (credentials, rest));
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    let at = if credentials.is_empty() { "" } else { "@" };
    format!("{scheme}://{credentials}{at}127.0.0.1:{port}{path}")
}

/// What a service being built is given; cancelling its drain stops the background tasks.
pub(crate) fn chassis() -> Chassis {
    Chassis {
        instance_id: format!("it-{}", Uuid::new_v4().simple()),
        service: "it",
        drain: Drain::default(),
    }
}

/// A name nobody else uses, for the interfaces that take names known at compile time.
pub(crate) fn unique(prefix: &str) -> &'static str {
    Box::leak(format!("{prefix}.{}", Uuid::new_v4().simple()).into_boxed_str())
}

/// A database of the test's own.
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let server = url("ROWLOCK_TEST_POSTGRES");
        let name = format!("it_{}", Uuid::new_v4().simple());
        let mut admin = PgConnection::connect(&format!("{server}/postgres"))
            .await
            .expect("the test server answers");
        admin
            .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .await
            .expect("a database of our own");
        Self {
            url: format!("{server}/{name}"),
            name,
        }
    }

    pub(crate) async fn drop(self) {
        let server = url("ROWLOCK_TEST_POSTGRES");
        let mut admin = PgConnection::connect(&format!("{server}/postgres"))
            .await
            .expect("the test server answers");
        admin
            .execute(AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name)))
            .await
            .expect("dropped");
    }
}

/// What a [`Forwarder`] does with traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Open,
    /// Connections are reset, new ones closed at once.
    Cut,
    /// Connections stay open and nothing passes.
    Stalled,
}

/// A TCP hop in front of a server, which can be cut or stalled.
pub(crate) struct Forwarder {
    pub(crate) port: u16,
    mode: Arc<watch::Sender<Mode>>,
}

impl Forwarder {
    pub(crate) async fn to(url: &str) -> Self {
        let (_, rest) = url.split_once("://").expect("a URL has a scheme");
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        let target = rest.split('/').next().expect("a URL has a host").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let mode = Arc::new(watch::Sender::new(Mode::Open));
        let modes = Arc::clone(&mode);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *modes.borrow() == Mode::Cut {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(&target).await {
                    let (client_in, client_out) = client.into_split();
                    let (server_in, server_out) = server.into_split();
                    tokio::spawn(pump(client_in, server_out, modes.subscribe()));
                    tokio::spawn(pump(server_in, client_out, modes.subscribe()));
                }
            }
        });
        Self { port, mode }
    }

    pub(crate) fn cut(&self) {
        self.mode.send_replace(Mode::Cut);
    }

    pub(crate) fn stall(&self) {
        self.mode.send_replace(Mode::Stalled);
    }

    pub(crate) fn open(&self) {
        self.mode.send_replace(Mode::Open);
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut mode: watch::Receiver<Mode>) {
    let mut buffer = vec![0; 16 * 1024];
    let mut cut = mode.clone();
    let copy = async {
        loop {
            let count = from.read(&mut buffer).await.unwrap_or(0);
            if count == 0 || mode.wait_for(|mode| *mode != Mode::Stalled).await.is_err() {
                return;
            }
            if to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = copy => {}
        _ = cut.wait_for(|mode| *mode == Mode::Cut) => {}
    }
}
