//! What the tests of several services share. No service depends on it.

mod collector;
mod process;
mod secrets;

pub use collector::Collector;
pub use process::{Finished, Process, run};
pub use secrets::Search;
