//! `setup`: installs the servers and the load generators that are missing.

use deploy::setup;

use crate::failure::Outcome;

/// Arguments of `setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_: Args) -> Outcome {
    ensure().await?;
    ensure_originals().await?;
    for tool in setup::check().iter().chain(&setup::check_originals()) {
        println!("{tool}");
    }
    Ok(())
}

/// Installs what is missing of the stack; does nothing where nothing is. Without root the error holds the command to type.
pub(crate) async fn ensure() -> Outcome {
    install(&setup::check()).await
}

/// The same for the load generators that ours is compared with.
pub(crate) async fn ensure_originals() -> Outcome {
    install(&setup::check_originals()).await
}

async fn install(tools: &[setup::Tool]) -> Outcome {
    Ok(setup::install(tools, &mut |line| eprintln!("{line}")).await?)
}
