//! HTTP/1.1 as a target: one keep-alive connection a user, requests from templates.

mod answer;
mod builder;
mod connection;
mod input;
mod mix;
mod repeat;
mod request;
mod spread;
mod template;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use uuid::Uuid;

use crate::target::{Failure, Iteration, Kind, Target};
use connection::{Client, Keep};
use repeat::Repeat;
use request::Request;
use template::Unique;
use token::Tokens;

pub use builder::HttpBuilder;
pub use mix::Mix;
pub use spread::Spread;
pub use token::{Token, TokenSource};

/// A complete answer, as the hook of [`HttpBuilder::on_response`] sees it.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The status, expected or not.
    pub status: StatusCode,
    /// The answer's headers.
    pub headers: &'a HeaderMap,
    /// The answer's body.
    pub body: &'a [u8],
    /// What `{{uuid}}` stood for in this request.
    pub uuid: Uuid,
    /// What `{{sequence}}` stood for in this request.
    pub sequence: u64,
    /// When the request began to be sent, or the connection to be made; of a repeated request, for the first time.
    pub sent_at: SystemTime,
    /// When the last byte of the answer was there.
    pub acked_at: SystemTime,
}

type Hook = Box<dyn Fn(&Exchange<'_>) -> Result<(), Failure> + Send + Sync>;

/// One kind of request over HTTP/1.1, made by every user on a connection of its own.
///
/// The timed part of an iteration is one request: from its first byte, or from the connection attempt when the user has
/// no open connection, to the last byte of the answer. Rendering is outside of it; so is the token, unless
/// [`Token::PerIteration`] says otherwise.
///
/// A request that gets no answer, or one that asks to come again, fails the iteration; with [`HttpBuilder::repeat`] it is
/// repeated first, unchanged, and all of that is timed.
///
/// A connection that broke under a request counts as an error and is made anew with the next iteration. One that the
/// server closed while it was idle is replaced without one, because nothing was lost.
pub struct HttpTarget {
    address: SocketAddr,
    uri: Uri,
    method: Method,
    request: Request,
    expect: Option<StatusCode>,
    timeout: Duration,
    tokens: Option<Arc<Tokens>>,
    hook: Option<Hook>,
    repeat: Option<Repeat>,
    sequence: AtomicU64,
    /// Somebody will see what makes a request unique: a template has fields, or there is a hook.
    unique: bool,
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTarget")
            .field("method", &self.method)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// What a virtual user of [`HttpTarget`] keeps.
#[derive(Debug)]
pub struct User {
    client: Client,
    tokens: Option<token::UserTokens>,
}

impl Target for HttpTarget {
    type User = User;

    async fn user(&self, _index: usize) -> Result<User, Failure> {
        Ok(User {
            client: Client::new(self.address, self.timeout),
            tokens: self.tokens.as_ref().map(|tokens| tokens.user(self.timeout)),
        })
    }

    async fn iterate(&self, user: &mut User) -> Iteration {
        let unique = Unique::new(self.sequence.fetch_add(1, Ordering::Relaxed) + 1, self.unique);
        let mut first = None;
        let mut attempts = self.repeat.as_ref().map(Repeat::begin);
        loop {
            let iteration = self.attempt(user, &unique, &mut first).await;
            let (Err(failure), Some(attempts)) = (&iteration.outcome, &mut attempts) else {
                return iteration;
            };
            match attempts.next(failure, user.client.headers()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return iteration,
            }
        }
    }
}

/// When a request was begun for the first time.
#[derive(Clone, Copy)]
struct Begun {
    at: Instant,
    wall: Option<SystemTime>,
    /// Time before it that counts as part of it.
    token: Duration,
}

impl User {
    /// The bearer token of the next request, if it has one, and how much of the latency getting it was.
    async fn bearer(&mut self) -> Result<(Option<HeaderValue>, Duration), Failure> {
        let Some(tokens) = &mut self.tokens else {
            return Ok((None, Duration::ZERO));
        };
        let begun = Instant::now();
        let bearer = tokens.bearer().await?;
        Ok((
            Some(bearer),
            if tokens.timed() {
                begun.elapsed()
            } else {
                Duration::ZERO
            },
        ))
    }
}

impl HttpTarget {
    /// How many requests were repeated.
    pub fn repeated(&self) -> u64 {
        self.repeat.as_ref().map_or(0, Repeat::count)
    }

    /// One exchange; `first` is set by the first that gets as far as a request.
    async fn attempt(&self, user: &mut User, unique: &Unique, first: &mut Option<Begun>) -> Iteration {
        let (bearer, token) = match user.bearer().await {
            Ok(bearer) => bearer,
            Err(failure) => {
                return Iteration {
                    timed: Duration::ZERO,
                    outcome: Err(failure),
                };
            }
        };
        self.request.render(unique, bearer.as_ref(), user.client.request());
        let sent = Instant::now();
        let begun = *first.get_or_insert_with(|| Begun {
            at: sent,
            wall: self.hook.as_ref().map(|_| SystemTime::now()),
            token,
        });
        let keep = if self.hook.is_some() {
            Keep::Whole
        } else {
            Keep::Nothing
        };
        let answer = user.client.exchange(self.request.head_only, keep, sent).await;
        let timed = begun.token + begun.at.elapsed();
        let outcome = answer.and_then(|status| self.judge(status, &user.client, unique, begun.wall));
        Iteration { timed, outcome }
    }

    fn judge(
        &self,
        status: StatusCode,
        answer: &Client,
        unique: &Unique,
        sent_at: Option<SystemTime>,
    ) -> Result<(), Failure> {
        let verdict = match (&self.hook, sent_at) {
            (Some(hook), Some(sent_at)) => hook(&Exchange {
                status,
                headers: answer.headers(),
                body: answer.body(),
                uuid: unique.uuid,
                sequence: unique.sequence,
                sent_at,
                acked_at: SystemTime::now(),
            }),
            _ => Ok(()),
        };
        let expected = match self.expect {
            Some(expected) => status == expected,
            None => status.is_success(),
        };
        if expected {
            return verdict;
        }
        Err(Failure::new(
            Kind::Status(status.as_u16()),
            String::from_utf8_lossy(answer.body()),
        ))
    }
}
