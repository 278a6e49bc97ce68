//! Puts a network's round trip between two processes of one machine; see `deploy::link`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(deploy::link::main(&arguments))
}
