//! `ledger`: every published figure beside what was measured of it.

use std::path::PathBuf;

use crate::archive;
use crate::commands::{print_json, table};
use crate::failure::{Failure, Outcome};
use crate::ledger::{self, Entry, Standing};
use crate::published::{self, Published};

/// Arguments of `ledger`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also look here: a result folder, or a folder of some (repeatable)
    #[arg(long, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Print a JSON list of {"published", "measured", "verdict", …}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Outcome {
    let mut roots = vec![archive::default_root()];
    for folder in args.results {
        if !folder.is_dir() {
            return Err(Failure::Usage(format!(
                "--results: there is no folder {}",
                folder.display()
            )));
        }
        roots.push(folder);
    }
    let archive = archive::search(&roots);
    let mut entries = Vec::new();
    for story in published::names()? {
        entries.extend(ledger::entries(&story, &Published::find(&story)?, &archive));
    }
    if args.json {
        return print_json(&entries);
    }
    let mut table = table(["FIGURE", "PUBLISHED", "MEASURED", "VERDICT", "BY", "WHEN AND WHERE"]);
    for entry in &entries {
        table.add_row([
            entry.figure.clone(),
            format!("{} {}", entry.published, entry.unit),
            measured(entry),
            standing(entry.verdict).to_owned(),
            by(entry),
            whence(entry),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn measured(entry: &Entry) -> String {
    let Some(value) = entry.measured else {
        return "–".to_owned();
    };
    let interval = entry.ci95.map(|[low, high]| format!(" ({low:.3} … {high:.3})"));
    format!("{value:.3}{}", interval.unwrap_or_default())
}

fn by(entry: &Entry) -> String {
    let measured = entry.counterpart.as_ref();
    measured.map_or_else(|| entry.note.clone(), |counterpart| counterpart.experiment.clone())
}

fn whence(entry: &Entry) -> String {
    let Some(counterpart) = &entry.counterpart else {
        return "–".to_owned();
    };
    let environment = &counterpart.environment;
    format!(
        "{}, {} × {}, Rowlock {}",
        counterpart.date, environment.cpus, environment.cpu_model, environment.rowlock
    )
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Reproduced => "reproduced",
        Standing::NotReproduced => "not reproduced",
        Standing::Inconclusive => "inconclusive",
        Standing::CannotHold => "cannot hold",
        Standing::NotComparable => "another machine",
        Standing::NotMeasured => "not measured",
    }
}
