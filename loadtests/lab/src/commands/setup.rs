//! `setup`: installs the servers that are missing.

use deploy::setup;

use crate::failure::Outcome;

/// Arguments of `setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_: Args) -> Outcome {
    ensure().await?;
    for tool in setup::check() {
        println!("{tool}");
    }
    Ok(())
}

/// Installs what is missing; does nothing where nothing is. Without root the error holds the command to type.
pub(crate) async fn ensure() -> Outcome {
    if setup::check().iter().all(setup::Tool::usable) {
        return Ok(());
    }
    setup::install(&mut |line| eprintln!("{line}")).await?;
    Ok(())
}
