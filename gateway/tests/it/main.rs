//! The edge in front of services that are made for the test.

mod deadlines;
mod headers;
mod health;
mod introspection;
mod limits;
mod overload;
mod rate_limit;
mod retries;
mod rotation;
mod routing;
mod secrets;
mod streaming;
mod support;
mod tokens;
