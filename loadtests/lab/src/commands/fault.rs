//! `fault`: does something bad to a part of a running stack, for a time.

use std::time::Duration;

use deploy::Fault;

use crate::commands::{DEFAULT_STACK, print_json, running, table};
use crate::duration;
use crate::failure::Outcome;

/// Arguments of `fault`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do: `--list` names the kinds
    #[arg(required_unless_present = "list")]
    kind: Option<String>,
    /// To what: postgres, redis, rabbitmq, haproxy, a service, a replica (tour-data-2) or a link (db, redis, broker)
    #[arg(required_unless_present = "list")]
    target: Option<String>,
    /// How long
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    duration: Duration,
    /// What `slow` adds to a round trip
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    rtt: Option<Duration>,
    /// List the kinds and what they can be aimed at
    #[arg(long)]
    list: bool,
    /// Print JSON (with --list)
    #[arg(long, requires = "list")]
    json: bool,
    /// Name of the stack
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let (Some(kind), Some(target), false) = (args.kind, args.target, args.list) else {
        return list(args.json);
    };
    let fault = Fault {
        kind,
        target,
        duration: args.duration,
        added: args.rtt,
    };
    fault.check()?;
    let remote = running(&args.name)?;
    eprintln!("{} for {}", fault.says(), duration::format(fault.duration));
    remote.fault(&fault).await?;
    println!("{}: healed", fault.says());
    Ok(())
}

fn list(json: bool) -> Outcome {
    let kinds = deploy::fault_kinds();
    if json {
        return print_json(&kinds);
    }
    let mut table = table(["KIND", "WHAT IT DOES", "TARGETS"]);
    for kind in kinds {
        table.add_row([kind.name.to_owned(), kind.summary.to_owned(), kind.targets.join(", ")]);
    }
    println!("{table}");
    Ok(())
}
