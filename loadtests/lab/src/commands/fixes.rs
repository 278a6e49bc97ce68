//! `fixes`: the alternatives of every axis, with what they promise, give up and were last measured at.

use std::path::PathBuf;

use crate::archive;
use crate::commands::{built_descriptions, print_json};
use crate::experiment;
use crate::failure::{Failure, Outcome};
use crate::fixes::{self, Fix, Run, render};

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
    let descriptions = built_descriptions().await?;
    let shipped = experiment::shipped(&descriptions)?;
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
