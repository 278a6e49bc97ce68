//! `load`: the load engine by itself.

mod progress;
mod render;
mod requests;
mod shape;

use std::sync::Arc;

use ::load::LoadError;

use crate::commands::print_json;
use crate::failure::{Failure, Outcome};
use progress::Progress;

/// Arguments of `load`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    requests: requests::Args,
    #[command(flatten)]
    shape: shape::Args,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let seed = args.shape.seed.unwrap_or_else(rand::random);
    let shape = args.shape.shape(seed)?;
    let mix = Arc::new(args.requests.mix(seed)?);
    let mut progress = Progress::new(&shape, args.shape.unit());
    let summary = ::load::run(mix, &shape, |second| progress.see(second)).await;
    progress.end();
    let summary = summary.map_err(|error| failure(&error))?;
    if args.json {
        print_json(&summary)?;
    } else {
        println!("{}", render::summary(&summary, args.shape.unit()));
    }
    match summary.aborted {
        Some(reason) => Err(Failure::Gate(format!("the load was ended before its time: {reason}"))),
        None if summary.ok == 0 => Err(Failure::Gate("not one request succeeded".to_owned())),
        None => Ok(()),
    }
}

fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::Start(_) | LoadError::Panicked => Failure::Gate(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    }
}
