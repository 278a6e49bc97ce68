//! `report`: renders the report of a result folder again.

use std::path::PathBuf;

use crate::commands::print_json;
use crate::experiment::Experiment;
use crate::failure::Outcome;
use crate::{events, report, run};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Result folder of a run
    folder: PathBuf,
    /// Print results.json instead of the table
    #[arg(long)]
    json: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "every command takes its arguments alike")]
pub(crate) fn run(args: Args) -> Outcome {
    let experiment = Experiment::of_results(&args.folder)?;
    let events = events::read(&args.folder)?;
    let results = run::conclude(&args.folder, &experiment, &events)?;
    if args.json {
        print_json(&results)?;
    } else {
        println!("{}", report::terminal_table(&results));
        println!("{}", args.folder.join("report.md").display());
    }
    run::gates(&results)
}
