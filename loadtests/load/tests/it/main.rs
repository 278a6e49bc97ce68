//! The engine against targets and servers of the test's own, in this process.

mod answers;
mod engine;
mod http;
mod mix;
mod open;
mod stages;
mod support;
mod token;
