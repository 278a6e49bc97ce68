//! `run`: one experiment, from its file to its report.

use std::path::PathBuf;
use std::time::Duration;

use crate::commands::{built_descriptions, print_json, setup};
use crate::experiment::{Experiment, Order, Overrides};
use crate::failure::{Failure, Outcome};
use crate::{binaries, duration, report, run};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An experiment of `cargo rowlock experiments`, or the path of a .toml file
    #[arg(required_unless_present = "resume")]
    experiment: Option<String>,
    /// Result folder of a run that was cut off: make the measurements that have no result yet, as it was begun
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "experiment", "rounds", "order", "seed", "duration", "warm_up", "users", "arms", "out", "fast_locks", "until_recovered",
    ])]
    resume: Option<PathBuf>,
    /// Rounds over all arms
    #[arg(long)]
    rounds: Option<u32>,
    /// Order of the arms: every other round backwards, or each round in an order of its own
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// Seed of a random order, which it implies; drawn and recorded by default
    #[arg(long)]
    seed: Option<u64>,
    /// Measured part of each measurement, e.g. 20s
    #[arg(long, value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Least load before the measured part, which begins when the throughput is steady
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
    /// End each load soon after its last fault was recovered from, when readers have to see what was written then; its
    /// duration at the latest
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
    let json = args.json;
    let done = match (&args.resume, &args.experiment) {
        (Some(folder), _) => {
            prepare().await?;
            run::resume(folder.clone(), args.name).await?
        }
        (None, Some(name)) => {
            let mut experiment = Experiment::find(name)?;
            let overrides = overrides(&args);
            if experiment.every.is_empty() {
                experiment.apply(&overrides)?;
                prepare().await?;
            } else {
                // Which arms there are only the built services know.
                setup::ensure().await?;
                experiment.add_every(&built_descriptions().await?)?;
                experiment.apply(&overrides)?;
            }
            let options = run::Options {
                stack: args.name,
                out: args.out,
                fast_locks: args.fast_locks,
                until_recovered: args.until_recovered,
            };
            run::run(&experiment, options).await?
        }
        (None, None) => return Err(Failure::Usage("which experiment? or --resume DIR".to_owned())),
    };
    if json {
        print_json(&done.results)?;
    } else {
        println!("{}", report::terminal_table(&done.results));
        println!("report: {}", done.folder.join("report.html").display());
    }
    run::gates(&done.results)
}

async fn prepare() -> Outcome {
    setup::ensure().await?;
    binaries::build().await
}

fn overrides(args: &Args) -> Overrides {
    Overrides {
        rounds: args.rounds,
        duration: args.duration,
        warm_up: args.warm_up,
        users: args.users,
        order: args.order,
        seed: args.seed,
        arms: args.arms.clone(),
    }
}
