//! The edge in front of services that are made for the test.

mod headers;
mod introspection;
mod limits;
mod rotation;
mod routing;
mod streaming;
mod support;
mod tokens;
