//! Takes connections and makes their other half, on a thread of its own: connecting may block, and the bytes of others
//! must not wait for it.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::arguments::Upstream;

/// A server on the same machine that has not answered by then will not.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Out of file descriptors, for instance: wait for somebody to hang up. Also between two looks whether a link that was cut
/// is whole again.
const AFTER_ERROR: Duration = Duration::from_millis(20);
/// Connections that may wait to be taken; as many as the standard library allows.
const BACKLOG: i32 = 128;

/// A client and its server, both non-blocking and without Nagle's algorithm.
pub(super) struct Connected {
    pub(super) client: Socket,
    pub(super) server: Socket,
}

/// The receiving end: readable by epoll when there are new connections.
pub(super) struct Arrivals {
    pub(super) bell: PipeReader,
    queue: Receiver<Connected>,
    listener: Arc<TcpListener>,
}

impl Arrivals {
    /// Has the kernel refuse connections from now on. The port stays ours.
    pub(super) fn refuse(&self) -> io::Result<()> {
        SockRef::from(&*self.listener).shutdown(Shutdown::Both)
    }

    /// Takes connections again.
    pub(super) fn admit(&self) -> io::Result<()> {
        SockRef::from(&*self.listener).listen(BACKLOG)
    }

    /// Everything that has come since the last call.
    pub(super) fn take(&mut self) -> io::Result<impl Iterator<Item = Connected>> {
        // One read is enough: the bell is level-triggered and rings again when there is more.
        let _ = self.bell.read(&mut [0; 64])?;
        Ok(self.queue.try_iter())
    }
}

/// Starts the thread. It ends with the process.
pub(super) fn start(listener: TcpListener, upstream: Upstream) -> io::Result<Arrivals> {
    let (bell, mut ring) = io::pipe()?;
    let (sender, queue) = channel();
    let listener = Arc::new(listener);
    let accepting = Arc::clone(&listener);
    let builder = std::thread::Builder::new().name("accept".into());
    builder.spawn(move || while accept(&accepting, &upstream, &sender, &mut ring).is_some() {})?;
    Ok(Arrivals { bell, queue, listener })
}

/// Handles one connection; `None` when nobody takes it any more.
fn accept(
    listener: &TcpListener,
    upstream: &Upstream,
    sender: &Sender<Connected>,
    ring: &mut PipeWriter,
) -> Option<()> {
    let Ok((client, _)) = listener.accept() else {
        std::thread::sleep(AFTER_ERROR);
        return Some(());
    };
    let client = Socket::from(client);
    // When the server refuses, the client is dropped and thereby closed, at once: those who come after it must not wait
    // for a server that is back because it was not there for others.
    let server = prepare(&client).and_then(|()| connect(upstream));
    match server {
        Ok(server) => {
            sender.send(Connected { client, server }).ok()?;
            ring.write_all(&[1]).ok()
        }
        Err(error) => {
            eprintln!("rowlock-link: {upstream} does not take a connection: {error}");
            Some(())
        }
    }
}

fn connect(upstream: &Upstream) -> io::Result<Socket> {
    let (domain, address) = match upstream {
        Upstream::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
        Upstream::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let server = Socket::new(domain, Type::STREAM, None)?;
    server.connect_timeout(&address, CONNECT_WITHIN)?;
    match upstream {
        Upstream::Tcp(_) => prepare(&server)?,
        Upstream::Unix(_) => server.set_nonblocking(true)?,
    }
    Ok(server)
}

fn prepare(stream: &Socket) -> io::Result<()> {
    stream.set_tcp_nodelay(true)?;
    stream.set_nonblocking(true)
}
