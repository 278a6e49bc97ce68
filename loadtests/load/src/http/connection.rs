//! One keep-alive connection and the user who owns it, in one task.
//!
//! A client of HTTP as one writes it for a load: requests one at a time, each from one buffer in one write, and the answer
//! taken apart where it was read. A client library gives the connection a task of its own, queues requests and hands bodies
//! over in pieces, which `cargo rowlock bench load.cpu_us_per_request` shows.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until, timeout};

use super::answer::{Body, Head, Malformed, Piece};
use super::input::Input;
use crate::target::{Failure, Kind};

/// The largest answer that is kept in memory, bytes.
const BODY_LIMIT: usize = 16 << 20;
/// The largest part of an answer that is kept for the sake of an error message, bytes.
const EXCERPT: usize = 400;

/// How much of an answer the caller wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of it, the body up to [`BODY_LIMIT`].
    Whole,
    /// Its headers and the start of its body, and that only if it is not a success.
    Nothing,
}

/// Makes requests, one at a time, on a connection that it opens when it has none.
#[derive(Debug)]
pub(super) struct Client {
    address: SocketAddr,
    timeout: Duration,
    /// Owes nothing and has nothing to say.
    idle: Option<TcpStream>,
    deadline: Option<Deadline>,
    request: Vec<u8>,
    input: Input,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, timeout: Duration) -> Self {
        Self {
            address,
            timeout,
            idle: None,
            deadline: None,
            request: Vec::new(),
            input: Input::default(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        }
    }

    /// Where the next request is written.
    pub(super) fn request(&mut self) -> &mut Vec<u8> {
        &mut self.request
    }

    /// What a request may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What was kept of the last answer's headers.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// What was kept of the last answer's body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Gives the connection up; the next request opens another.
    pub(super) fn close(&mut self) {
        self.idle = None;
    }

    /// Sends the request and reads the whole answer within the timeout, which began `now`. `head_only` says that the answer
    /// has no body.
    pub(super) async fn exchange(&mut self, head_only: bool, keep: Keep, now: Instant) -> Result<StatusCode, Failure> {
        self.headers.clear();
        self.body.clear();
        // The connection goes back only after a complete answer: whatever broke or timed out is closed by the drop.
        let stream = match self.idle.take().filter(is_quiet) {
            Some(stream) => stream,
            // One that was closed while it was idle took nothing with it: no error.
            None => open(self.address, self.timeout).await?,
        };
        self.input.clear();
        let by = now + self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Deadline::new(by));
        deadline.set(by);
        let mut exchange = Exchange {
            stream,
            unsent: &self.request,
            refused: false,
            input: &mut self.input,
            deadline,
            timeout: self.timeout,
            has_read: false,
        };
        let head = exchange.head(head_only, keep, &mut self.headers).await?;
        let limit = match keep {
            Keep::Whole => BODY_LIMIT,
            Keep::Nothing if head.status.is_success() => 0,
            Keep::Nothing => EXCERPT,
        };
        exchange.body(head.body, keep, limit, &mut self.body).await?;
        if head.keep_alive && exchange.unsent.is_empty() && exchange.input.unused().is_empty() {
            self.idle = Some(exchange.stream);
        }
        Ok(head.status)
    }
}

/// One request under way, and its answer.
struct Exchange<'a> {
    stream: TcpStream,
    unsent: &'a [u8],
    /// The other side takes no more of the request. It may have answered before it stopped to.
    refused: bool,
    input: &'a mut Input,
    deadline: &'a mut Deadline,
    timeout: Duration,
    /// Whether something of the answer has come.
    has_read: bool,
}

impl Exchange<'_> {
    async fn head(&mut self, only: bool, keep: Keep, headers: &mut HeaderMap) -> Result<Head, Failure> {
        let wanted = |status: StatusCode| keep == Keep::Whole || !status.is_success();
        loop {
            let Some(head) = Head::parse(self.input.unused(), only, headers, wanted)? else {
                self.more().await?.then_some(()).ok_or_else(ended)?;
                continue;
            };
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(Malformed("the server changed to a protocol that nobody asked for".into()).into());
            }
            self.input.used(head.length);
            if !head.status.is_informational() {
                return Ok(head);
            }
            headers.clear();
        }
    }

    /// Reads all of the body; the start of it, up to `limit`, goes to `out`.
    async fn body(&mut self, mut body: Body, keep: Keep, limit: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
        while !body.has_ended() {
            let Some(piece) = body.next(self.input.unused())? else {
                match (self.more().await?, body) {
                    (true, _) => continue,
                    (false, Body::UntilClose) => return Ok(()),
                    (false, _) => return Err(ended()),
                }
            };
            let (Piece::Data(length) | Piece::Framing(length)) = piece;
            if let Piece::Data(length) = piece {
                let room = limit - out.len();
                if keep == Keep::Whole && length > room {
                    let text = format!("the answer is larger than {} MiB", BODY_LIMIT >> 20);
                    return Err(Failure::new(Kind::Body, text));
                }
                out.extend_from_slice(&self.input.unused()[..length.min(room)]);
            }
            self.input.used(length);
        }
        Ok(())
    }

    /// Waits for more of the answer, and sends what is left of the request meanwhile; false when there is no more.
    async fn more(&mut self) -> Result<bool, Failure> {
        let Self {
            stream,
            unsent,
            refused,
            input,
            deadline,
            timeout,
            has_read,
        } = self;
        let mut room = ReadBuf::new(input.room()?);
        let length = poll_fn(|cx| {
            while !unsent.is_empty() && !*refused {
                match Pin::new(&mut *stream).poll_write(cx, unsent) {
                    Poll::Ready(Ok(0) | Err(_)) => *refused = true,
                    Poll::Ready(Ok(sent)) => *unsent = &unsent[sent..],
                    Poll::Pending => break,
                }
            }
            match Pin::new(&mut *stream).poll_read(cx, &mut room) {
                Poll::Ready(Ok(())) => Poll::Ready(Ok(room.filled().len())),
                Poll::Ready(Err(error)) => Poll::Ready(Err(broken(&error))),
                Poll::Pending => deadline.poll(cx).map(|()| Err(late(*timeout))),
            }
        })
        .await?;
        input.filled(length);
        // Where there is always more to read nobody asks the timer. Most answers are one read, which is spared the clock.
        if std::mem::replace(has_read, true) && Instant::now() >= deadline.at {
            return Err(late(*timeout));
        }
        Ok(length > 0)
    }
}

async fn open(address: SocketAddr, within: Duration) -> Result<TcpStream, Failure> {
    let refused = |error: io::Error| Failure::new(Kind::Connect, format!("cannot connect to {address}: {error}"));
    let stream = timeout(within, TcpStream::connect(address))
        .await
        .map_err(|_| Failure::new(Kind::Connect, format!("no connection to {address} within {within:?}")))?
        .map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    Ok(stream)
}

/// Whether an idle connection is still open and nothing unasked came over it. Costs no call of the kernel unless something
/// happened to it.
fn is_quiet(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl From<Malformed> for Failure {
    fn from(Malformed(what): Malformed) -> Self {
        Self::new(Kind::Protocol, what)
    }
}

fn ended() -> Failure {
    Failure::new(Kind::Closed, "the connection was closed before the answer was complete")
}

fn broken(error: &io::Error) -> Failure {
    Failure::new(
        Kind::Closed,
        format!("the connection broke before the answer was complete: {error}"),
    )
}

fn late(timeout: Duration) -> Failure {
    Failure::new(Kind::Timeout, format!("no complete answer within {timeout:?}"))
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
