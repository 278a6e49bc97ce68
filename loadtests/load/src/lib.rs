//! An HTTP load engine: a closed loop of virtual users over a [`Target`], with latency histograms, a per-second series
//! and errors by kind.
//!
//! [`run`] drives any [`Target`]; [`HttpTarget`] is the one for HTTP/1.1. The engine has a thread and a runtime of its
//! own, so that its CPU time is measured by itself and a busy caller does not delay a send.
//!
//! # What is counted
//!
//! A run is a warm-up followed by a window of `duration`. An iteration belongs to the moment it *ends*: ended in the
//! warm-up, it is counted as warm-up only; ended inside the window, it is counted, also when it began in the warm-up.
//! Iterations under way when the window closes get a grace to end in peace and are counted as `late` only. A closed
//! loop that is slow against its window is therefore not biased: what enters the window half-done stands for what
//! leaves it half-done.

mod engine;
mod error;
mod http;
mod recorder;
mod shape;
mod summary;
mod tally;
mod target;
mod url;

pub use engine::{run, run_until};
pub use error::LoadError;
pub use http::{Exchange, HttpBuilder, HttpTarget, Token, TokenSource};
pub use shape::Closed;
pub use summary::{Second, Summary};
pub use target::{Failure, Iteration, Kind, Target};
pub use url::Url;
