//! A client's request body on its way to a replica: counted, streamed, and sent again if another replica has to take it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use chassis::body::{discard, is_too_slow};
use hyper::body::{Body as _, Frame, SizeHint};

/// What the handler knows of the body, whoever holds it.
pub(super) struct Upload {
    source: Mutex<Source>,
    /// What was read is kept, so that another replica can be sent all of it. `limit` bounds that as well.
    repeatable: bool,
    limit: u64,
    size: SizeHint,
    failure: AtomicU8,
    waits_for_client: AtomicBool,
}

struct Source {
    /// None once it has been read to its end or given up.
    body: Option<Body>,
    read: u64,
    kept: Vec<Bytes>,
    /// The attempt that may read; an earlier one, whose connection may not have noticed yet, must not take its bytes.
    attempt: u32,
}

/// Why the body did not arrive whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    TooLarge = 1,
    Broken = 2,
    TooSlow = 3,
}

/// Ends the exchange with the replica; what the client is told follows from [`Upload::failure`].
#[derive(Debug, thiserror::Error)]
pub(super) enum UploadError {
    #[error("the request body is over the limit")]
    TooLarge,
    #[error("the client broke off its request body: {0}")]
    Broken(#[from] axum::Error),
    #[error("the request goes to another replica")]
    Superseded,
}

impl Upload {
    /// Gives the body back if it announces to be larger than `limit`.
    pub(super) fn new(body: Body, limit: u64, repeatable: bool) -> Result<Arc<Self>, Body> {
        let size = body.size_hint();
        if size.lower() > limit {
            return Err(body);
        }
        let source = Source {
            body: (!body.is_end_stream()).then_some(body),
            read: 0,
            kept: Vec::new(),
            attempt: 0,
        };
        Ok(Arc::new(Self {
            source: Mutex::new(source),
            repeatable,
            limit,
            size,
            failure: AtomicU8::new(0),
            waits_for_client: AtomicBool::new(false),
        }))
    }

    /// The body for the next attempt. Of one that is not repeatable nothing may have been read by another attempt.
    pub(super) fn body(self: &Arc<Self>) -> UploadBody {
        let mut source = self.source();
        source.attempt += 1;
        UploadBody {
            attempt: source.attempt,
            upload: Arc::clone(self),
            next: 0,
            sent: 0,
        }
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        [Failure::TooLarge, Failure::Broken, Failure::TooSlow]
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

    fn source(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body as the HTTP client sees it.
pub(super) struct UploadBody {
    upload: Arc<Upload>,
    attempt: u32,
    /// Index of the next kept piece.
    next: usize,
    sent: u64,
}

impl UploadBody {
    fn piece(&mut self, data: Bytes) -> Frame<Bytes> {
        self.next += 1;
        self.sent += data.len() as u64;
        Frame::data(data)
    }
}

impl hyper::body::Body for UploadBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        let upload = Arc::clone(&this.upload);
        let mut source = upload.source();
        if source.attempt != this.attempt {
            return Poll::Ready(Some(Err(UploadError::Superseded)));
        }
        if let Some(data) = source.kept.get(this.next).cloned() {
            return Poll::Ready(Some(Ok(this.piece(data))));
        }
        let Some(body) = &mut source.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        upload.waits_for_client.store(polled.is_pending(), Ordering::Release);
        let frame = match polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {
                source.body = None;
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                source.body = None;
                upload.fail(if is_too_slow(&error) {
                    Failure::TooSlow
                } else {
                    Failure::Broken
                });
                return Poll::Ready(Some(Err(error.into())));
            }
        };
        // Trailers have no meaning to any service here, and the header that announces them is not passed on.
        let data = frame.into_data().unwrap_or_default();
        source.read += data.len() as u64;
        if source.read > upload.limit {
            upload.fail(Failure::TooLarge);
            if let Some(rest) = source.body.take() {
                discard(rest);
            }
            return Poll::Ready(Some(Err(UploadError::TooLarge)));
        }
        if upload.repeatable {
            source.kept.push(data.clone());
        }
        Poll::Ready(Some(Ok(this.piece(data))))
    }

    fn is_end_stream(&self) -> bool {
        let source = self.upload.source();
        let all_sent = !self.upload.repeatable || self.next >= source.kept.len();
        all_sent && source.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match self.upload.size.exact() {
            Some(size) => SizeHint::with_exact(size.saturating_sub(self.sent)),
            None => SizeHint::default(),
        }
    }
}
