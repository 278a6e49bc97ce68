//! `down`: ends a stack that runs elsewhere.

use crate::commands::{DEFAULT_STACK, running};
use crate::failure::Outcome;

/// Arguments of `down`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the stack
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
}

pub(crate) async fn run(args: Args) -> Outcome {
    running(&args.name)?.down().await?;
    println!("stack `{}` is down", args.name);
    Ok(())
}
