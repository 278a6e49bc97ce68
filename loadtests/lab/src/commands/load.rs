//! `load`: the load engine by itself.

mod progress;
mod render;
mod requests;
mod shape;

use std::sync::Arc;

use ::load::{LoadError, Mix};
use serde_json::json;

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
    let requests = args.requests.read()?;
    let mix = Arc::new(requests::mix(&requests, seed)?);
    let mut progress = Progress::new(&shape, args.shape.unit());
    let summary = ::load::run(Arc::clone(&mix), &shape, |second| progress.see(second)).await;
    progress.end();
    let summary = summary.map_err(|error| failure(&error))?;
    if args.json {
        let mut value = serde_json::to_value(&summary).map_err(|error| Failure::Gate(error.to_string()))?;
        value["requests"] = drawn(&requests, &mix).collect();
        print_json(&value)?;
    } else {
        println!("{}", render::summary(&summary, args.shape.unit()));
        if requests.len() > 1 {
            println!("{}", render::drawn(&requests, &mix.drawn()));
        }
    }
    match summary.aborted {
        Some(reason) => Err(Failure::Gate(format!("the load was ended before its time: {reason}"))),
        None if summary.ok == 0 => Err(Failure::Gate("not one request succeeded".to_owned())),
        None => Ok(()),
    }
}

fn drawn(requests: &[requests::Request], mix: &Mix) -> impl Iterator<Item = serde_json::Value> {
    requests.iter().zip(mix.drawn()).map(|(request, drawn)| {
        json!({
            "method": request.method.as_str(),
            "url": request.url.to_string(),
            "weight": request.weight,
            "drawn": drawn,
        })
    })
}

fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::Start(_) | LoadError::Panicked => Failure::Gate(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    }
}
