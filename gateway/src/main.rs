//! The edge's process: everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::service::main::<gateway::Gateway>()
}
