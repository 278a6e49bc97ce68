//! Watches over one run of a stack and ends what a killed supervisor leaves behind; see `deploy::guardian`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, run] if flag == "--run" && !run.is_empty() => ExitCode::from(deploy::guardian::main(run)),
        _ => {
            eprintln!("usage: rowlock-guardian --run UUID (started by the supervisor of a stack, not by hand)");
            ExitCode::from(2)
        }
    }
}
