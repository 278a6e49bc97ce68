//! `anonymise`: captured payloads without the people in them.

use std::path::{Path, PathBuf};

use crate::anonymise::{Document, Line, Report, Rules, SHIPPED, anonymise};
use crate::commands::{print_json, table};
use crate::failure::{Failure, Outcome};

/// Arguments of `anonymise`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Captured JSON payloads; equal values become equal ones over all of them
    #[arg(required_unless_present = "print_rules")]
    files: Vec<PathBuf>,
    /// Rules to use instead of the shipped ones
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Folder to write to; without it each FILE.json becomes FILE.anonymous.json beside it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say what would be replaced and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the shipped rules
    #[arg(long)]
    print_rules: bool,
    /// Print what was replaced and left as JSON
    #[arg(long)]
    json: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "every command takes its arguments alike")]
pub(crate) fn run(args: Args) -> Outcome {
    if args.print_rules {
        print!("{SHIPPED}");
        return Ok(());
    }
    let rules = match &args.rules {
        None => Rules::parse(SHIPPED),
        Some(path) => Rules::parse(&read(path)?),
    };
    let rules = rules.map_err(|why| match &args.rules {
        Some(path) => Failure::Usage(format!("{}: {why}", path.display())),
        None => Failure::Gate(format!("the shipped rules: {why}")),
    })?;

    let texts = args.files.iter().map(|path| read(path)).collect::<Outcome<Vec<_>>>()?;
    let mut documents = args
        .files
        .iter()
        .zip(&texts)
        .map(|(path, text)| parse(path, text))
        .collect::<Outcome<Vec<_>>>()?;
    let targets = args
        .files
        .iter()
        .map(|path| target(path, args.out.as_deref()))
        .collect::<Outcome<Vec<_>>>()?;
    let report = anonymise(&mut documents, &rules).map_err(Failure::Gate)?;
    // Nothing is written before everything has passed.
    if !args.dry_run {
        for ((document, text), target) in documents.iter().zip(&texts).zip(&targets) {
            write(document, text, target)?;
        }
    }
    if args.json {
        return print_json(&report);
    }
    print(&report);
    for target in targets.iter().filter(|_| !args.dry_run) {
        println!("{}", target.display());
    }
    Ok(())
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

fn parse(path: &Path, text: &str) -> Outcome<Document> {
    let root = serde_json::from_str(text)
        .map_err(|error| Failure::Usage(format!("{} is not JSON: {error}", path.display())))?;
    Ok(Document {
        name: path.display().to_string(),
        root,
    })
}

/// Where the result goes: never where something is already.
fn target(file: &Path, out: Option<&Path>) -> Outcome<PathBuf> {
    let wrong = || Failure::Usage(format!("{} is not the name of a file", file.display()));
    let target = match out {
        Some(folder) => folder.join(file.file_name().ok_or_else(wrong)?),
        None => file.with_extension("anonymous.json"),
    };
    if target.exists() {
        return Err(Failure::Usage(format!(
            "{} is there already; remove it, or give another folder with --out",
            target.display()
        )));
    }
    Ok(target)
}

fn write(document: &Document, captured: &str, target: &Path) -> Outcome {
    // As the captured one was written: on one line, or for people.
    let text = if captured.trim_end().contains('\n') {
        serde_json::to_string_pretty(&document.root)
    } else {
        serde_json::to_string(&document.root)
    };
    let text = text.map_err(|error| Failure::Gate(format!("{}: {error}", document.name)))?;
    let failed = |error| Failure::Usage(format!("cannot write {}: {error}", target.display()));
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(target, text + "\n").map_err(failed)
}

fn print(report: &Report) {
    for (head, lines) in [("REPLACED", &report.replaced), ("LEFT AS IT IS", &report.left)] {
        let mut listed = table([head, "VALUES", "DISTINCT", ""]);
        for Line {
            place,
            by,
            values,
            distinct,
        } in lines
        {
            let by = by.clone().unwrap_or_default();
            listed.add_row([place.clone(), values.to_string(), distinct.to_string(), by]);
        }
        println!("{listed}\n");
    }
}
