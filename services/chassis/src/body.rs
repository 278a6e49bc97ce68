//! Request bodies of clients that are slow, or that nobody wants.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// How much of a refused body is still read, and for how long. A client that is busy sending would otherwise meet a
/// closed connection instead of the answer, and whoever sends the next request on it meets it too. The time is what
/// bounds: reading costs less than a client that comes again.
const DISCARD_BYTES: usize = 32 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// The client let the service wait for its body for too long.
#[derive(Debug, thiserror::Error)]
#[error("the request body did not arrive within {0:?}")]
pub struct TooSlow(Duration);

/// Whether a body ended with [`TooSlow`], however often that error was wrapped.
pub fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<TooSlow>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Reads a little more of a body that nobody wants, in a task of its own.
pub fn discard(body: Body) {
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, async move {
        let mut body = body.into_data_stream();
        let mut discarded = 0;
        while let Some(Ok(data)) = body.next().await {
            discarded += data.len();
            if discarded > DISCARD_BYTES {
                break;
            }
        }
    }));
}

/// A body whose sender may keep its reader waiting for so long in all. Only waiting counts: a reader that takes its
/// time, because it passes the body on, does not use up the client's.
///
/// What nobody has read when it is dropped, because the request was refused for its token, say, is discarded: a server that
/// closed the connection on it would break the next request that a client has already sent on the same one.
pub(crate) struct Timed {
    inner: Body,
    /// The rest is discarded on drop.
    rest: Rest,
    budget: Duration,
    left: Duration,
    /// Since when the client owes the next bytes; a body that arrives with its head never makes a timer.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// What becomes of the part of a body that nobody reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Discard,
    /// It is not on its way, or its sender was too slow already.
    Leave,
}

impl Timed {
    pub(crate) fn new(inner: Body, budget: Duration, rest: Rest) -> Self {
        Self {
            inner,
            rest,
            budget,
            left: budget,
            waiting: None,
        }
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            if let Some((since, _)) = this.waiting.take() {
                this.left = this.left.saturating_sub(since.elapsed());
            }
            return Poll::Ready(frame);
        }
        let left = this.left;
        let (_, timer) = this
            .waiting
            .get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        ready!(timer.as_mut().poll(cx));
        this.rest = Rest::Leave;
        Poll::Ready(Some(Err(axum::Error::new(TooSlow(this.budget)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        // Without a runtime there is no connection either.
        let running = tokio::runtime::Handle::try_current().is_ok();
        if self.rest == Rest::Discard && running && !self.inner.is_end_stream() {
            discard(std::mem::take(&mut self.inner));
        }
    }
}

/// An answer that keeps something alive until it has been sent or given up.
pub(crate) struct Holding<T> {
    inner: Body,
    _held: T,
}

impl<T> Holding<T> {
    pub(crate) fn new(inner: Body, held: T) -> Self {
        Self { inner, _held: held }
    }
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
