//! tour-data against a real PostgreSQL, Redis and RabbitMQ: a database, an exchange and a queue of its own a test.

mod attacks;
mod audit;
mod bad_input;
mod cancel;
mod conformance;
mod deadlines;
mod deadlocks;
mod fixes;
mod oidc_provider;
mod outages;
mod outbox;
mod plan;
mod pooler;
mod process;
mod requests;
mod secrets;
mod shards;
mod statements;
mod support;
mod tenant_row;
