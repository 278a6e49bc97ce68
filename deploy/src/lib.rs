//! The stack as data, and the runtime that brings it up on one machine.
//!
//! [`Topology`] says what shall run; [`Stack`] is that, running: PostgreSQL, Redis, RabbitMQ, HAProxy, the services and
//! the links between them as child processes on ports of their own, with all state under `.rowlock/<name>`.

use std::path::PathBuf;

pub mod control;
mod cpus;
mod error;
mod faults;
pub mod guardian;
mod haproxy;
pub mod link;
mod links;
mod pgbouncer;
mod ports;
mod postgres;
mod process;
mod rabbitmq;
mod redis;
mod schema;
mod secrets;
mod services;
pub mod setup;
mod stack;
mod state;
#[cfg(test)]
mod testing;
mod topology;
mod volume;

pub use cpus::CpuUse;
pub use error::DeployError;
pub use faults::{Fault, FaultKind, kinds as fault_kinds};
pub use links::{HoldMeter, Holds};
pub use process::{Exit, Kind, ProcessInfo};
pub use schema::changes as schema_changes;
pub use services::Client;
pub use stack::{Healed, Inflicted, Stack};
pub use topology::{LinkName, PortBase, Topology};

/// The checkout: where `migrations/`, `loadtests/` and `.rowlock/` are.
pub fn root() -> PathBuf {
    let crate_dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crate_dir
        .parent()
        .expect("this crate is a folder of the checkout")
        .to_owned()
}
