//! `ledger`: every published figure beside what was measured of it.

use std::path::PathBuf;

use crate::archive;
use crate::commands::{print_json, table};
use crate::failure::Outcome;
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
    let archive = archive::search(&archive::roots(args.results)?);
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
    notes(&entries);
    Ok(())
}

/// What an audit found, once for all figures it is about, and what would measure those that nothing does.
fn notes(entries: &[Entry]) {
    let mut about: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        let unmeasured = entry.measured_by.is_empty().then_some(entry.note.as_str());
        for note in entry.audit.iter().map(String::as_str).chain(unmeasured) {
            match about.iter_mut().find(|(text, _)| *text == note) {
                Some((_, figures)) => figures.push(&entry.figure),
                None => about.push((note, vec![&entry.figure])),
            }
        }
    }
    for (note, figures) in about {
        println!("\n{}:\n  {note}", figures.join(", "));
    }
}

fn measured(entry: &Entry) -> String {
    let Some(value) = entry.measured else {
        return "–".to_owned();
    };
    let interval = entry.ci95.map(|[low, high]| format!(" ({low:.3} … {high:.3})"));
    format!("{value:.3}{}", interval.unwrap_or_default())
}

/// The experiment that measured it, or the one that would.
fn by(entry: &Entry) -> String {
    match (&entry.counterpart, entry.measured_by.first()) {
        (Some(counterpart), _) => counterpart.experiment.clone(),
        (None, Some(experiment)) => format!("run {experiment}"),
        (None, None) => "see below".to_owned(),
    }
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
