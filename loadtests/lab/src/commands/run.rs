//! `run`: one experiment, from its file to its report.

use std::path::PathBuf;
use std::time::Duration;

use crate::commands::{print_json, setup};
use crate::experiment::{Experiment, Overrides};
use crate::failure::Outcome;
use crate::{binaries, duration, report, run};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An experiment of `cargo rowlock experiments`, or the path of a .toml file
    experiment: String,
    /// Rounds over all arms
    #[arg(long)]
    rounds: Option<u32>,
    /// Measured part of each measurement, e.g. 20s
    #[arg(long, value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Load before the measured part
    #[arg(long, value_parser = duration::parse)]
    warm_up: Option<Duration>,
    /// Virtual users
    #[arg(long)]
    users: Option<usize>,
    /// Arm to keep (repeatable); all by default
    #[arg(long = "arm", value_name = "NAME")]
    arms: Vec<String>,
    /// Result folder; .rowlock/results/NAME-TIME by default
    #[arg(long)]
    out: Option<PathBuf>,
    /// Sample the lock table every 250 ms instead of every 3 s
    #[arg(long)]
    fast_locks: bool,
    /// End each load two seconds after its last fault was recovered from, its duration at the latest
    #[arg(long)]
    until_recovered: bool,
    /// Name of the stack that is brought up; its state is kept under that name
    #[arg(long, default_value = run::STACK)]
    name: String,
    /// Print results.json instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let mut experiment = Experiment::find(&args.experiment)?;
    experiment.apply(&Overrides {
        rounds: args.rounds,
        duration: args.duration,
        warm_up: args.warm_up,
        users: args.users,
        arms: args.arms,
    })?;
    setup::ensure().await?;
    binaries::build().await?;
    let options = run::Options {
        stack: args.name,
        out: args.out,
        fast_locks: args.fast_locks,
        until_recovered: args.until_recovered,
    };
    let done = run::run(&experiment, options).await?;
    if args.json {
        print_json(&done.results)?;
    } else {
        println!("{}", report::terminal_table(&done.results));
        println!("report: {}", done.folder.join("report.html").display());
    }
    run::gates(&done.results)
}
