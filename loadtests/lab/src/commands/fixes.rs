//! `fixes`: the alternatives of every axis, with what they promise, give up and were last measured at.

use std::path::PathBuf;

use deploy::Topology;

use crate::commands::{DEFAULT_STACK, print_json};
use crate::describe::Descriptions;
use crate::experiment::{self, Experiment};
use crate::failure::{Failure, Outcome};
use crate::fixes::{self, Fix, Run, render};
use crate::{archive, binaries};

/// Arguments of `fixes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List this axis alone: inserts, touch, announce, placement
    #[arg(long)]
    axis: Option<String>,
    /// Print the table of the README
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Also look here for measurements: a result folder, or a folder of some (repeatable)
    #[arg(long, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Print a JSON list of {"axis", "name", "promise", "gives_up", "measured", …}
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let roots = archive::roots(args.results)?;
    binaries::build().await?;
    let services = Topology::standard(DEFAULT_STACK).replicas;
    let descriptions = Descriptions::ask(services.keys()).await?;
    let shipped: Vec<Experiment> = experiment::names()?
        .iter()
        .map(|name| Experiment::find(name))
        .collect::<Result<_, _>>()?;
    let runs = Run::undisturbed(archive::search(&roots));
    let mut fixes = fixes::list(&descriptions, &shipped, &runs);
    if let Some(axis) = args.axis {
        fixes = only(fixes, &axis)?;
    }
    if args.json {
        return print_json(&fixes);
    }
    let text = if args.markdown {
        render::markdown(&fixes)
    } else {
        render::text(&fixes)
    };
    print!("{text}");
    Ok(())
}

fn only(fixes: Vec<Fix>, axis: &str) -> Outcome<Vec<Fix>> {
    let mut known: Vec<String> = fixes.iter().map(|fix| fix.axis.clone()).collect();
    known.dedup();
    let of_axis: Vec<Fix> = fixes.into_iter().filter(|fix| fix.axis == axis).collect();
    if of_axis.is_empty() {
        return Err(Failure::Usage(format!(
            "there is no axis `{axis}`; axes are: {}",
            known.join(", ")
        )));
    }
    Ok(of_axis)
}
