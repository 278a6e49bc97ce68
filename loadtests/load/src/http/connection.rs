//! One keep-alive connection and the user who owns it, in one task.
//!
//! The usual way to use hyper gives the connection a task of its own; each request then costs two task switches. Here
//! the user's own future polls the connection while it waits for the answer.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until, timeout};

use crate::target::{Failure, Kind};

/// The largest answer that is kept in memory, bytes.
const BODY_LIMIT: usize = 16 << 20;
/// The largest part of an answer that is kept for the sake of an error message, bytes.
const EXCERPT: usize = 400;

/// How much of an answer's body the caller wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of it, up to [`BODY_LIMIT`].
    Whole,
    /// Its start, and that only if the answer is not a success.
    Nothing,
}

/// The head of an answer; its body is at [`Client::body`].
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// Makes requests, one at a time, on a connection that it opens when it has none.
#[derive(Debug)]
pub(super) struct Client {
    address: SocketAddr,
    timeout: Duration,
    connection: Option<Connection>,
    deadline: Option<Deadline>,
    body: BytesMut,
}

impl Client {
    pub(super) fn new(address: SocketAddr, timeout: Duration) -> Self {
        Self {
            address,
            timeout,
            connection: None,
            deadline: None,
            body: BytesMut::new(),
        }
    }

    /// What was kept of the last answer's body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Gives the connection up; the next request opens another.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }

    /// Sends a request and reads the whole answer within the timeout, which began `now`.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        keep: Keep,
        now: Instant,
    ) -> Result<Answer, Failure> {
        self.body.clear();
        // The connection goes back only after a complete answer: whatever broke or timed out is closed by the drop.
        let (mut connection, reused) = match self.connection.take() {
            Some(connection) => (connection, true),
            None => (Connection::open(self.address, self.timeout).await?, false),
        };
        let by = now + self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Deadline::new(by));
        deadline.set(by);
        let response = match connection.send(request, deadline).await {
            Ok(response) => response,
            // Closed while it was idle, and nothing of the request was sent: a fresh connection, not an error.
            Err(Unsent::Returned(request)) if reused => {
                connection = Connection::open(self.address, self.timeout).await?;
                connection
                    .send(*request, deadline)
                    .await
                    .map_err(|unsent| unsent.failure(self.timeout))?
            }
            Err(unsent) => return Err(unsent.failure(self.timeout)),
        };
        let (head, mut body) = response.into_parts();
        let limit = match keep {
            Keep::Whole => BODY_LIMIT,
            Keep::Nothing if head.status.is_success() => 0,
            Keep::Nothing => EXCERPT,
        };
        while !body.is_end_stream() {
            let frame = connection
                .serve(deadline, |cx| Pin::new(&mut body).poll_frame(cx))
                .await;
            let mut data = match frame.map_err(|lost| lost.failure(self.timeout))? {
                None => break,
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Err(broken(&error)),
            };
            let room = limit - self.body.len();
            if keep == Keep::Whole && data.len() > room {
                return Err(Failure::new(
                    Kind::Body,
                    format!("the answer is larger than {} MiB", BODY_LIMIT >> 20),
                ));
            }
            data.truncate(room);
            self.body.extend_from_slice(&data);
        }
        if connection.io.is_some() {
            self.connection = Some(connection);
        }
        Ok(Answer {
            status: head.status,
            headers: head.headers,
        })
    }
}

/// Why waiting on a connection was given up.
enum Lost {
    Timeout,
    Ended,
}

impl Lost {
    fn failure(self, timeout: Duration) -> Failure {
        match self {
            Self::Timeout => Failure::new(Kind::Timeout, format!("no complete answer within {timeout:?}")),
            Self::Ended => Failure::new(Kind::Closed, "the connection was closed before the answer was complete"),
        }
    }
}

/// Why there was no answer.
enum Unsent {
    /// The connection was found closed before anything was sent.
    Returned(Box<Request<Full<Bytes>>>),
    Broken(hyper::Error),
    Lost(Lost),
}

impl Unsent {
    fn failure(self, timeout: Duration) -> Failure {
        match self {
            Self::Returned(_) => Failure::new(Kind::Closed, "the connection was closed as soon as it was made"),
            Self::Broken(error) => broken(&error),
            Self::Lost(lost) => lost.failure(timeout),
        }
    }
}

fn broken(error: &hyper::Error) -> Failure {
    let kind = if error.is_parse() { Kind::Protocol } else { Kind::Closed };
    let cause = std::error::Error::source(error)
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    Failure::new(kind, format!("{error}{cause}"))
}

type Io = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

#[derive(Debug)]
struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` when it has ended.
    io: Option<Io>,
}

impl Connection {
    async fn open(address: SocketAddr, within: Duration) -> Result<Self, Failure> {
        let refused =
            |error: std::io::Error| Failure::new(Kind::Connect, format!("cannot connect to {address}: {error}"));
        let stream = timeout(within, TcpStream::connect(address))
            .await
            .map_err(|_| Failure::new(Kind::Connect, format!("no connection to {address} within {within:?}")))?
            .map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let (sender, io) = http1::Builder::new()
            .writev(false)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(&error))?;
        Ok(Self { sender, io: Some(io) })
    }

    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        deadline: &mut Deadline,
    ) -> Result<hyper::Response<Incoming>, Unsent> {
        let mut answer = pin!(self.sender.try_send_request(request));
        match serve(&mut self.io, deadline, true, |cx| answer.as_mut().poll(cx)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut error)) => Err(match error.take_message() {
                Some(request) => Unsent::Returned(Box::new(request)),
                None => Unsent::Broken(error.into_error()),
            }),
            Err(lost) => Err(Unsent::Lost(lost)),
        }
    }

    async fn serve<T>(
        &mut self,
        deadline: &mut Deadline,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Lost> {
        serve(&mut self.io, deadline, false, poll).await
    }
}

/// Polls the connection until `poll` has what comes out of it. `sent` says that a request was just handed over: its answer
/// cannot be there before the first wait.
///
/// What is waited for is made by the connection's own poll, so it needs no wake-up of its own. And the connection gets
/// the task's waker only when the task is about to wait: otherwise handing over the next request would wake the very
/// task that does so, and each request would cost one more pass through the scheduler.
async fn serve<T>(
    io: &mut Option<Io>,
    deadline: &mut Deadline,
    mut sent: bool,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Result<T, Lost> {
    let mut pass = |cx: &mut Context<'_>| {
        let mut quiet = Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = poll(&mut quiet) {
            return Poll::Ready(Ok(value));
        }
        if io.as_mut().is_some_and(|io| Pin::new(io).poll(cx).is_ready()) {
            // Dropped before `poll` is asked again: a request that hyper had not taken up yet comes back only then.
            *io = None;
        }
        match poll(&mut quiet) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending if io.is_none() => Poll::Ready(Err(Lost::Ended)),
            Poll::Pending => Poll::Pending,
        }
    };
    poll_fn(|cx| {
        if !std::mem::take(&mut sent) {
            let done = pass(&mut Context::from_waker(Waker::noop()));
            if done.is_ready() {
                return done;
            }
        }
        let done = pass(cx);
        if done.is_ready() {
            return done;
        }
        deadline.poll(cx).map(|()| Err(Lost::Timeout))
    })
    .await
}

/// A deadline that moves with every request, but whose timer is armed anew only when it has run out: moving a timer
/// costs more than everything else this module does for a request.
#[derive(Debug)]
struct Deadline {
    at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    fn new(at: Instant) -> Self {
        Self {
            at,
            timer: Box::pin(sleep_until(at.into())),
        }
    }

    /// Deadlines only ever move into the future, so the armed timer is never too late.
    fn set(&mut self, at: Instant) {
        self.at = at;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.at {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.at.into());
        }
        Poll::Pending
    }
}
