//! An HTTP load engine over a [`Target`]: closed and open loops in plateaus and ramps, with latency histograms, a per-second
//! series and errors by kind.
//!
//! [`run`] drives any [`Target`] with a load of a [`Shape`]; [`HttpTarget`] is the target for HTTP/1.1, [`Mix`] for several
//! kinds of request, [`Spread`] for users who differ. The engine has a thread and a runtime of its own, so that its CPU time is measured by itself and a busy
//! caller does not delay a send.
//!
//! # What is counted
//!
//! A plateau is a warm-up followed by a window. An iteration belongs to the moment it *ends*: ended inside a window, it is
//! counted there, also when it began before; ended in a warm-up or a ramp, it is counted as warm-up only. Iterations under way
//! when the last window closes get a grace to end in peace and are counted as `late` only. A closed loop that is slow against
//! its window is therefore not biased: what enters the window half-done stands for what leaves it half-done.
//!
//! # Open loops
//!
//! A request has an intended time. Its latency counts from there, so that a system which stalls is charged for everybody who
//! would have come meanwhile, and not only for the few who waited inside (*coordinated omission*); the latency from the actual
//! send stands beside it. A send whose time comes when all slots are taken is late, one for which too many wait already is
//! dropped, and what has not been sent when the load ends is skipped. Each belongs to the plateau in whose window its time
//! came, and is counted there.

mod arrivals;
mod buckets;
mod engine;
mod error;
mod http;
mod limits;
mod plateau;
mod recorder;
mod schedule;
mod sends;
mod shape;
mod summary;
mod tally;
mod target;
mod url;

pub use engine::{Handle, run, run_with};
pub use error::LoadError;
pub use http::{Exchange, HttpBuilder, HttpTarget, Mix, Spread, Token, TokenSource};
pub use limits::{AbortBelow, Measure, Threshold};
pub use plateau::{OpenLoop, Part, Plateau};
pub use shape::{Shape, Spacing};
pub use summary::{Second, Summary};
pub use target::{Failure, Iteration, Kind, Target};
pub use url::Url;
