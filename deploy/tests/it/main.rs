//! The stack on this machine, with the real servers. Each test has a stack of its own name on ports of its own.

mod faults;
mod link;
mod orphans;
mod services;
mod stack;
mod support;
