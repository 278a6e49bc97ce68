//! What every service of Rowlock stands on.
//!
//! A service implements [`service::Service`]: a name, a configuration and a function that builds its router. The
//! chassis does the rest of the process's life: it parses the configuration whole before a port is bound, starts
//! telemetry, serves the router beside an admin port, and drains in two stages when told to stop.

pub mod auth;
pub mod body;
pub mod broker;
pub mod cache;
pub mod config;
pub mod db;
pub mod deadline;
pub mod idempotency;
pub mod outbox;
pub mod problem;
pub mod readiness;
pub mod service;
pub mod telemetry;

mod admin;
mod admission;
mod describe;
mod http;
mod lifecycle;
mod pools;
mod serve;
