//! `scale`: changes the number of replicas while the stack serves.

use crate::cli;
use crate::commands::{DEFAULT_STACK, running};
use crate::failure::Outcome;

/// Arguments of `scale`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// New number of replicas, one or more services
    #[arg(required = true, value_name = "SERVICE=N", value_parser = cli::replicas)]
    replicas: Vec<(String, u16)>,
    /// Name of the stack
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let remote = running(&args.name)?;
    for (service, replicas) in &args.replicas {
        remote.scale(service, *replicas).await?;
        println!("{service}: {replicas}");
    }
    Ok(())
}
