//! The command line: one variant a command; each command's file holds its own arguments.

use clap::{Parser, Subcommand};

use crate::commands::{
    anonymise, bench, compare, demo, doctor, down, experiments, fault, fixes, fuzz, ledger, load, locks, logs, new, ps,
    report, run, scale, setup, test, up,
};

/// Rowlock: a production-shaped system with a real bottleneck in it, and a lab around it.
///
/// Exit status: 0 done and every gate held; 1 a gate or a claim marked `must` failed; 2 wrong usage or configuration;
/// 3 something needed is missing or did not start.
#[derive(Debug, Parser)]
#[command(name = "rowlock", bin_name = "cargo rowlock", version, about, long_about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set up what is missing, run the short row-lock experiment, write and name the report
    Demo(demo::Args),
    /// Set up what is missing, run every test against real servers
    Test(test::Args),
    /// Install the servers that are missing (PostgreSQL, Redis, RabbitMQ, HAProxy) and two load generators; needs root
    Setup(setup::Args),
    /// Say what is missing on this machine, change nothing
    Doctor(doctor::Args),
    /// Bring the stack up and keep it up until Ctrl-C
    Up(up::Args),
    /// End a stack that runs in another terminal or in the background
    Down(down::Args),
    /// List the processes of a running stack
    Ps(ps::Args),
    /// Print the log of one service or server of a running stack
    Logs(logs::Args),
    /// Change the number of replicas of a running stack, without a restart
    Scale(scale::Args),
    /// Inflict a fault on a running stack (kill, stop, cut a link …); it heals by itself
    Fault(fault::Args),
    /// List the experiments, with question and duration
    Experiments(experiments::Args),
    /// Run an experiment and write its report
    Run(run::Args),
    /// Render the report of a result folder again
    Report(report::Args),
    /// List the alternatives of each axis: what they promise, what they give up, what was last measured of them
    Fixes(fixes::Args),
    /// Begin an alternative of an axis: write its one file, which compiles and keeps its promise as it is
    New(new::Args),
    /// Every published figure beside its latest measured counterpart
    Ledger(ledger::Args),
    /// Two runs of one experiment against each other; what is not comparable is refused (exit 2)
    Compare(compare::Args),
    /// Show who waits for which row in a running stack
    Locks(locks::Args),
    /// The load engine by itself, against a URL on this machine
    Load(load::Args),
    /// Take the people out of captured JSON payloads, and keep their structure
    Anonymise(anonymise::Args),
    /// Send mutated payloads to a stack of its own; no answer may be a 5xx, no tour may be written in part
    Fuzz(fuzz::Args),
    /// Measure the project's own figures
    Bench(bench::Args),
}

/// A `key=value` argument.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form KEY=VALUE")),
    }
}

/// A `service=replicas` argument.
pub(crate) fn replicas(text: &str) -> Result<(String, u16), String> {
    let (service, number) = pair(text)?;
    match number.parse() {
        Ok(number) => Ok((service, number)),
        Err(_) => Err(format!("`{number}` is not a number of replicas")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn replicas_are_a_service_and_a_number() {
        assert_eq!(replicas("tour-data=2").unwrap(), ("tour-data".to_owned(), 2));
        assert!(replicas("tour-data").unwrap_err().contains("KEY=VALUE"));
        assert!(replicas("tour-data=many").unwrap_err().contains("many"));
    }
}
