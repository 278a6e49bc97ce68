//! A TCP forwarder between the service and a server: it can be cut, and it reads along what goes to PostgreSQL.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A statement that PostgreSQL was asked to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Number of the turnaround on its connection: how often the client had spoken after the server did.
    pub(crate) turnaround: u64,
    /// Whether it was prepared under a name.
    pub(crate) named: bool,
    pub(crate) sql: String,
}

#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    _server: Arc<Abort>,
}

struct Shared {
    up: watch::Sender<bool>,
    sent: Mutex<Vec<Sent>>,
    /// The connection that sends this statement is cut before its answer gets through.
    cut_at: Mutex<Option<&'static str>>,
}

struct Abort(JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Link {
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            up: watch::Sender::new(true),
            sent: Mutex::default(),
            cut_at: Mutex::default(),
        });
        let accepting = accept(listener, server, Arc::clone(&shared));
        Self {
            addr,
            shared,
            _server: Arc::new(Abort(tokio::spawn(accepting))),
        }
    }

    /// Breaks what is connected and refuses what comes.
    pub(crate) fn cut(&self) {
        self.shared.up.send_replace(false);
    }

    pub(crate) fn restore(&self) {
        self.shared.up.send_replace(true);
    }

    /// Once: lets `statement` through to the server and nothing back.
    pub(crate) fn lose_answer_to(&self, statement: &'static str) {
        *self.shared.cut_at.lock().expect("not poisoned") = Some(statement);
    }

    /// Statements since the last call.
    pub(crate) fn take_sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.shared.sent.lock().expect("not poisoned"))
    }
}

async fn accept(listener: TcpListener, server: String, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.expect("it listens");
        if *shared.up.borrow() {
            tokio::spawn(forward(client, server.clone(), Arc::clone(&shared)));
        }
    }
}

async fn forward(client: TcpStream, server: String, shared: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("the option exists");
    }
    let mut up = shared.up.subscribe();
    let turn = Mutex::new(Turn::default());
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Whichever ends first takes the other with it: both sockets close.
    tokio::select! {
        () = requests(from_client, to_server, &turn, &shared) => {}
        () = answers(from_server, to_client, &turn) => {}
        _ = up.wait_for(|up| !up) => {}
    }
}

/// Who spoke last on a connection.
#[derive(Default)]
struct Turn {
    number: u64,
    server_spoke: bool,
    lose_answer: bool,
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, turn: &Mutex<Turn>, shared: &Shared) {
    let mut buffer = vec![0; 64 * 1024];
    let mut protocol = Protocol::default();
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        {
            let mut turn = turn.lock().expect("not poisoned");
            if std::mem::take(&mut turn.server_spoke) {
                turn.number += 1;
            }
            let mut cut_at = shared.cut_at.lock().expect("not poisoned");
            for (named, sql) in protocol.statements(&buffer[..read]) {
                if cut_at.as_deref() == Some(sql.as_str()) {
                    *cut_at = None;
                    turn.lose_answer = true;
                }
                shared.sent.lock().expect("not poisoned").push(Sent {
                    turnaround: turn.number,
                    named,
                    sql,
                });
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, turn: &Mutex<Turn>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        {
            let mut turn = turn.lock().expect("not poisoned");
            if turn.lose_answer {
                return;
            }
            turn.server_spoke = true;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// The client's half of PostgreSQL's protocol, as far as it says which statements run.
#[derive(Default)]
struct Protocol {
    unread: Vec<u8>,
    started: bool,
    prepared: HashMap<Vec<u8>, String>,
}

impl Protocol {
    /// Statements run by the messages that `bytes` completes, and whether each has a name: simple queries, and prepared ones
    /// at their Bind.
    fn statements(&mut self, bytes: &[u8]) -> Vec<(bool, String)> {
        self.unread.extend_from_slice(bytes);
        let mut run = Vec::new();
        loop {
            // The first message has no type byte.
            let head = usize::from(self.started);
            let Some(length) = self.unread.get(head..head + 4) else {
                return run;
            };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if self.unread.len() < head + length {
                return run;
            }
            let message: Vec<u8> = self.unread.drain(..head + length).collect();
            if !std::mem::replace(&mut self.started, true) {
                continue;
            }
            let mut texts = message[5..].split(|byte| *byte == 0);
            let mut text = || texts.next().unwrap_or_default();
            match message[0] {
                b'Q' => run.push((false, String::from_utf8_lossy(text()).into_owned())),
                b'P' => {
                    let name = text().to_vec();
                    self.prepared.insert(name, String::from_utf8_lossy(text()).into_owned());
                }
                b'B' => {
                    let _portal = text();
                    let name = text();
                    let sql = self.prepared.get(name).expect("it was prepared before").clone();
                    run.push((!name.is_empty(), sql));
                }
                _ => {}
            }
        }
    }
}
