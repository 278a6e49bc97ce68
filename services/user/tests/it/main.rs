//! The issuer against a real PostgreSQL: one database a test.

mod accounts;
mod clients;
mod collector;
mod discovery;
mod introspection;
mod keys;
mod password;
mod process;
mod rotation;
mod secrets;
mod sessions;
mod support;
mod token;
