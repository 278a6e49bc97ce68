//! The binary `rowlock`: brings the stack up, runs experiments on it, measures, and reports.

mod analysis;
mod anonymise;
mod archive;
mod audit;
mod bench;
mod binaries;
mod cli;
mod commands;
mod compare;
mod describe;
mod digest;
mod duration;
mod events;
mod experiment;
mod facts;
mod failure;
mod fixes;
mod fuzz;
mod http;
mod installed;
mod k6;
mod ledger;
mod probes;
mod published;
mod queues;
mod random;
mod report;
mod results;
mod run;
mod scaffold;
#[cfg(test)]
mod testing;
mod token;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("rowlock: the async runtime did not start: {error}");
            return ExitCode::from(3);
        }
    };
    match runtime.block_on(commands::run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rowlock: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
