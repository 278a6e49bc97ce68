//! `demo`: from a machine that has only Rust to the finding, in one command.

use crate::commands::setup;
use crate::experiment::Experiment;
use crate::failure::Outcome;
use crate::{binaries, report, run};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_: Args) -> Outcome {
    let experiment = Experiment::find("row-lock-demo")?;
    setup::ensure().await?;
    binaries::build().await?;
    println!("{}\n{}\n", experiment.question, experiment.hypothesis);
    let done = run::run(&experiment, run::Options::default()).await?;
    println!("{}", report::terminal_table(&done.results));
    for arm in &done.results.arms {
        println!("{}: {}", arm.name, arm.bottleneck.text);
    }
    println!();
    for claim in &done.results.claims {
        println!("{:<16} {}", report::verdict(claim.verdict), claim.text);
    }
    println!("\nreport: {}", done.folder.join("report.html").display());
    run::gates(&done.results)
}
