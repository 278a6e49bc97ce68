//! `test`: every test of the workspace, against servers of its own.

mod oidc_provider;

use std::path::PathBuf;

use deploy::{PortBase, Stack, Topology};

use crate::binaries;
use crate::commands::setup;
use crate::failure::{Failure, Outcome};
use crate::k6;

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Passed to `cargo test --release --workspace`: a filter, `-p tour-data`, `-- --nocapture` …
    #[arg(last = true)]
    cargo: Vec<String>,
}

pub(crate) async fn run(args: Args) -> Outcome {
    setup::ensure().await?;
    setup::ensure_originals().await?;
    let foreign = Foreign {
        provider: oidc_provider::ensure().await?,
        k6: k6::ensure().await?,
    };
    binaries::build().await?;
    let topology = Topology {
        port_base: PortBase::Free,
        ..Topology::servers_only("test")
    };
    let stack = Stack::up(topology, &mut |line| eprintln!("{line}")).await?;
    let tested = test(&stack, &foreign, &args.cargo).await;
    stack.down().await?;
    tested
}

/// What the tests use that is not ours.
struct Foreign {
    provider: PathBuf,
    k6: PathBuf,
}

async fn test(stack: &Stack, foreign: &Foreign, arguments: &[String]) -> Outcome {
    let mut child = binaries::cargo()
        .args(["test", "--release", "--workspace", "--no-fail-fast"])
        .args(arguments)
        .env("ROWLOCK_TEST_POSTGRES", stack.postgres("").trim_end_matches('/'))
        .env("ROWLOCK_TEST_REDIS", stack.redis())
        .env("ROWLOCK_TEST_AMQP", stack.amqp())
        .env("ROWLOCK_TEST_OIDC_PROVIDER", &foreign.provider)
        .env("ROWLOCK_TEST_K6", &foreign.k6)
        .spawn()
        .map_err(|error| Failure::Missing(format!("cargo did not start: {error}; is Rust installed?")))?;
    // Ctrl-C reaches cargo as well (it shares the terminal's process group); the servers must still be ended after it.
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Gate(format!("the tests failed ({status})"))),
        Err(error) => Err(Failure::Gate(format!("the tests could not be waited for: {error}"))),
    }
}
