//! `doctor`: what this machine has and lacks; changes nothing.

use deploy::setup;
use serde_json::json;

use crate::commands::{print_json, table};
use crate::failure::{Failure, Outcome};

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "every command takes its arguments alike")]
pub(crate) fn run(args: Args) -> Outcome {
    let tools = setup::check();
    let originals = setup::check_originals();
    let findings = setup::machine(&deploy::root().join(".rowlock"));
    let missing: Vec<String> = tools
        .iter()
        .filter(|tool| !tool.usable())
        .map(ToString::to_string)
        .collect();
    let wrong: Vec<String> = findings
        .iter()
        .filter(|finding| !finding.ok)
        .map(ToString::to_string)
        .collect();

    if args.json {
        print_json(
            &json!({ "ok": missing.is_empty() && wrong.is_empty(), "tools": tools, "originals": originals, "machine": findings }),
        )?;
    } else {
        let mut table = table(["", "NEEDED", "FOUND"]);
        for tool in &tools {
            table.add_row([mark(tool.usable()), tool.name.to_owned(), tool.to_string()]);
        }
        for tool in &originals {
            let mark = if tool.usable() { "ok" } else { "optional" };
            table.add_row([mark.to_owned(), tool.name.to_owned(), tool.to_string()]);
        }
        for finding in &findings {
            table.add_row([mark(finding.ok), finding.name.to_owned(), finding.says.clone()]);
        }
        println!("{table}");
    }
    if !missing.is_empty() {
        let missing = missing.join("; ");
        return Err(Failure::Missing(format!(
            "{missing}. `cargo rowlock setup` installs what is missing"
        )));
    }
    if !wrong.is_empty() {
        return Err(Failure::Missing(wrong.join("; ")));
    }
    Ok(())
}

fn mark(ok: bool) -> String {
    if ok { "ok".to_owned() } else { "MISSING".to_owned() }
}
