//! The issuer against a real PostgreSQL: one database a test.

mod accounts;
mod clients;
mod discovery;
mod introspection;
mod keys;
mod password;
mod rotation;
mod secrets;
mod sessions;
mod support;
mod token;
