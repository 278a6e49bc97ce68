//! The commands, one a file: its arguments and what it does.

pub(crate) mod anonymise;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod experiments;
pub(crate) mod fault;
pub(crate) mod fixes;
pub(crate) mod fuzz;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod locks;
pub(crate) mod logs;
pub(crate) mod new;
pub(crate) mod ps;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod setup;
pub(crate) mod test;
pub(crate) mod up;

use deploy::Topology;
use deploy::control::Remote;

use crate::binaries;
use crate::cli::Command;
use crate::describe::Descriptions;
use crate::failure::{Failure, Outcome};

/// Name of the stack that `up` starts and the other commands look for.
pub(crate) const DEFAULT_STACK: &str = "default";

/// Runs one command to its end.
pub(crate) async fn run(command: Command) -> Outcome {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::Test(args) => test::run(args).await,
        Command::Setup(args) => setup::run(args).await,
        Command::Doctor(args) => doctor::run(args),
        Command::Up(args) => up::run(args).await,
        Command::Down(args) => down::run(args).await,
        Command::Ps(args) => ps::run(args).await,
        Command::Logs(args) => logs::run(args).await,
        Command::Scale(args) => scale::run(args).await,
        Command::Fault(args) => fault::run(args).await,
        Command::Experiments(args) => experiments::run(args).await,
        Command::Run(args) => run::run(args).await,
        Command::Report(args) => report::run(args),
        Command::Fixes(args) => fixes::run(args).await,
        Command::New(args) => new::run(args),
        Command::Ledger(args) => ledger::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Locks(args) => locks::run(args).await,
        Command::Load(args) => load::run(args).await,
        Command::Anonymise(args) => anonymise::run(args),
        Command::Fuzz(args) => fuzz::run(args).await,
        Command::Bench(args) => bench::run(args).await,
    }
}

/// The running stack of that name, or an error that says how to start it.
fn running(name: &str) -> Outcome<Remote> {
    Remote::find(name).ok_or_else(|| {
        let option = if name == DEFAULT_STACK {
            String::new()
        } else {
            format!(" --name {name}")
        };
        Failure::Missing(format!(
            "no stack `{name}` is running; `cargo rowlock up{option}` starts it"
        ))
    })
}

/// What all services say of themselves, once they are built.
async fn built_descriptions() -> Outcome<Descriptions> {
    binaries::build().await?;
    Descriptions::ask(Topology::standard(DEFAULT_STACK).replicas.keys()).await
}

/// Prints a value as JSON on standard output.
fn print_json(value: &impl serde::Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Gate(error.to_string()))?;
    println!("{text}");
    Ok(())
}

/// A table without lines, as `ps` prints one.
fn table<const N: usize>(head: [&str; N]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(head);
    table
}
