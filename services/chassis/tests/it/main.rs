//! The chassis against real servers and real sockets.

mod admin;
mod auth;
mod bounds;
mod broker;
mod cache;
mod collector;
mod config;
mod db;
mod lifecycle;
mod problem;
mod process;
mod servers;
mod service;
mod telemetry;
