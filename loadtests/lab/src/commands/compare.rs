//! `compare`: two runs of one experiment against each other.

use std::path::PathBuf;

use serde_json::json;

use crate::archive::Archived;
use crate::commands::{print_json, table};
use crate::compare::{self, Change, Finding, Run};
use crate::failure::Outcome;
use crate::report;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Result folder of the run to compare to, or its results.json
    a: PathBuf,
    /// Result folder of the run that is compared, or its results.json
    b: PathBuf,
    /// Print JSON; of runs that cannot be compared, the reasons
    #[arg(long)]
    json: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "every command takes its arguments alike")]
pub(crate) fn run(args: Args) -> Outcome {
    let [a, b] = [&args.a, &args.b].map(|path| Run::of(Archived::read(path)?));
    let changes = match compare::compare(&a?, &b?) {
        Ok(changes) => changes,
        Err(reasons) => {
            if args.json {
                print_json(&json!({ "comparable": false, "reasons": reasons }))?;
            }
            return Err(compare::refusal(&reasons));
        }
    };
    if args.json {
        return print_json(&json!({ "comparable": true, "changes": changes }));
    }
    println!("{}: B against A ({})\n", changes.experiment, changes.method);
    let mut table = table(["ARM", "FIGURE", "A", "B", "B ÷ A", "FINDING"]);
    for arm in &changes.arms {
        for (figure, change) in [("throughput /s", &arm.throughput), ("p95 ms", &arm.p95)] {
            table.add_row([
                arm.arm.clone(),
                figure.to_owned(),
                format!("{:.2}", change.a),
                format!("{:.2}", change.b),
                ratio(change),
                finding(change.finding).to_owned(),
            ]);
        }
    }
    println!("{table}\n");
    for claim in &changes.claims {
        let (a, b) = (report::verdict(claim.a), report::verdict(claim.b));
        println!("{}: {a} in A, {b} in B", claim.text);
    }
    for difference in &changes.differences {
        println!("{difference}");
    }
    Ok(())
}

fn ratio(change: &Change) -> String {
    let interval = change.ci95.map(|[low, high]| format!(" ({low:.2} … {high:.2})"));
    format!("{:.2}{}", change.ratio, interval.unwrap_or_default())
}

fn finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Higher => "higher",
        Finding::Lower => "lower",
        Finding::NoDifferenceShown => "no difference shown",
        Finding::Inconclusive => "inconclusive: fewer than 4 rounds with this figure",
    }
}
