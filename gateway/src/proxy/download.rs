//! The body of a replica's answer on its way to the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::Incoming;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// Passes frames on, and gives up on a replica that pauses for too long: the head has been sent by then, so cutting the
/// connection is all that tells the client.
pub(super) struct Download {
    inner: Incoming,
    longest_pause: Duration,
    /// Runs only while the replica owes a frame; an answer that arrives at once never makes one.
    pause: Option<Pin<Box<Sleep>>>,
}

/// Why an answer ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("the replica paused for more than {0:?} in the middle of its answer")]
    Paused(Duration),
    #[error("the replica broke off its answer: {0}")]
    Broken(#[from] hyper::Error),
}

impl Download {
    pub(super) fn new(inner: Incoming, longest_pause: Duration) -> Self {
        Self {
            inner,
            longest_pause,
            pause: None,
        }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = DownloadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, DownloadError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            this.pause = None;
            return Poll::Ready(frame.map(|frame| Ok(frame?)));
        }
        let longest_pause = this.longest_pause;
        let pause = this
            .pause
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(longest_pause)));
        ready!(pause.as_mut().poll(cx));
        let error = DownloadError::Paused(longest_pause);
        tracing::warn!(%error, "an answer was cut off");
        Poll::Ready(Some(Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
