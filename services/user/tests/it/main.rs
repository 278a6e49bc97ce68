//! The issuer against a real PostgreSQL: one database a test.

mod clients;
mod discovery;
mod keys;
mod support;
mod token;
