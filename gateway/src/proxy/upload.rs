//! A client's request body on its way to a replica: counted, streamed, and given back if no replica took it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, SizeHint};

/// How much of a refused body is still read, and for how long. A client that is busy sending would otherwise meet a
/// closed connection instead of the answer.
const DISCARD_BYTES: usize = 1 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// What the handler knows of the body, whoever holds it.
pub(super) struct Upload {
    /// Holds the body until a connection begins to send it, which is what makes another attempt possible: the client
    /// drops the request of an attempt that could not connect.
    unsent: Mutex<Option<Body>>,
    limit: u64,
    size: SizeHint,
    empty: bool,
    failure: AtomicU8,
    waits_for_client: AtomicBool,
}

/// Why the body did not arrive whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    TooLarge = 1,
    Broken = 2,
}

/// Ends the exchange with the replica; what the client is told follows from [`Upload::failure`].
#[derive(Debug, thiserror::Error)]
pub(super) enum UploadError {
    #[error("the request body is over the limit")]
    TooLarge,
    #[error("the client broke off its request body: {0}")]
    Broken(#[from] axum::Error),
}

impl Upload {
    /// Gives the body back if it announces to be larger than `limit`.
    pub(super) fn new(body: Body, limit: u64) -> Result<Arc<Self>, Body> {
        let size = body.size_hint();
        if size.lower() > limit {
            return Err(body);
        }
        Ok(Arc::new(Self {
            limit,
            size,
            empty: body.is_end_stream(),
            unsent: Mutex::new(Some(body)),
            failure: AtomicU8::new(0),
            waits_for_client: AtomicBool::new(false),
        }))
    }

    /// The body for one attempt.
    pub(super) fn body(self: &Arc<Self>) -> UploadBody {
        UploadBody {
            upload: Arc::clone(self),
            sending: None,
            sent: 0,
        }
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        [Failure::TooLarge, Failure::Broken]
            .into_iter()
            .find(|failure| *failure as u8 == self.failure.load(Ordering::Acquire))
    }

    /// Whether it is the client whose next bytes are missing, not the replica that does not take them.
    pub(super) fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Acquire)
    }

    fn fail(&self, failure: Failure) {
        self.failure.store(failure as u8, Ordering::Release);
    }
}

/// The body as the HTTP client sees it.
pub(super) struct UploadBody {
    upload: Arc<Upload>,
    sending: Option<Body>,
    sent: u64,
}

impl hyper::body::Body for UploadBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        if this.sending.is_none() {
            this.sending = this.upload.unsent.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        let Some(body) = &mut this.sending else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        this.upload
            .waits_for_client
            .store(polled.is_pending(), Ordering::Release);
        polled.map(|frame| match frame? {
            Ok(frame) => {
                this.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
                if this.sent <= this.upload.limit {
                    return Some(Ok(frame));
                }
                this.upload.fail(Failure::TooLarge);
                if let Some(rest) = this.sending.take() {
                    discard(rest);
                }
                Some(Err(UploadError::TooLarge))
            }
            Err(error) => {
                this.upload.fail(Failure::Broken);
                Some(Err(error.into()))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.sending {
            Some(body) => body.is_end_stream(),
            None => self.upload.empty,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.sending {
            Some(body) => body.size_hint(),
            None => self.upload.size,
        }
    }
}

/// Reads a little more of a body that nobody wants.
pub(super) fn discard(mut body: Body) {
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, async move {
        let mut discarded = 0;
        while let Some(Ok(frame)) = body.frame().await {
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > DISCARD_BYTES {
                break;
            }
        }
    }));
}
