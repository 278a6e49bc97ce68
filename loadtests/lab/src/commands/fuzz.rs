//! `fuzz`: mutated payloads against a stack of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deploy::{PortBase, Stack, Topology};
use serde_json::json;

use crate::commands::{print_json, setup, table};
use crate::events::now_ms;
use crate::failure::{Failure, Outcome};
use crate::fuzz::{self, Findings, Options};
use crate::{binaries, duration};

/// Name of the stack; its state is kept, so that the next run starts warm.
const STACK: &str = "fuzz";

/// Arguments of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End after this many inputs; without it and --for, at Ctrl-C
    #[arg(long, value_name = "N")]
    inputs: Option<u64>,
    /// Seed of the inputs; another one at each run by default
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// End after this time, e.g. 10m
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Where inputs that were answered wrongly are kept; .rowlock/fuzz by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name of the stack
    #[arg(long, default_value = STACK)]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let options = Options {
        seed: args.seed.unwrap_or_else(now_ms),
        inputs: args.inputs,
        duration: args.duration,
    };
    let folder = args.out.unwrap_or_else(|| deploy::root().join(".rowlock/fuzz"));
    setup::ensure().await?;
    binaries::build().await?;
    let topology = Topology {
        port_base: PortBase::Free,
        ..Topology::standard(args.name)
    };
    let stack = Stack::up(topology, &mut |line| eprintln!("{line}")).await?;
    eprintln!("seed {}", options.seed);
    let stop = AtomicBool::new(false);
    let interrupted = async {
        // A handler that cannot be set leaves the other ways to end.
        match tokio::signal::ctrl_c().await {
            Ok(()) => stop.store(true, Ordering::Relaxed),
            Err(error) => eprintln!("Ctrl-C will not end this in order: {error}"),
        }
        std::future::pending::<()>().await;
    };
    let findings = tokio::select! {
        findings = fuzz::run(&stack, options, &folder, &stop) => findings,
        () = interrupted => unreachable!("it waits for ever"),
    };
    stack.down().await?;
    let findings = findings?;
    if args.json {
        print_json(&json!({
            "seed": findings.seed,
            "inputs": findings.inputs,
            "statuses": findings.statuses,
            "unanswered": findings.unanswered,
            "miscounted": findings.miscounted,
            "kept": findings.kept,
            "audit": findings.audit,
        }))?;
    } else {
        println!("{}", render(&findings));
    }
    gates(&findings)
}

fn render(findings: &Findings) -> String {
    let mut table = table(["ANSWER", "INPUTS"]);
    for (status, count) in &findings.statuses {
        table.add_row([status.to_string(), count.to_string()]);
    }
    table.add_row(["none".to_owned(), findings.unanswered.to_string()]);
    format!("{table}\n{} inputs of seed {}", findings.inputs, findings.seed)
}

fn gates(findings: &Findings) -> Outcome {
    let mut broken = Vec::new();
    if findings.bad() > 0 {
        let kept: Vec<String> = findings.kept.iter().map(|path| path.display().to_string()).collect();
        broken.push(format!(
            "{} inputs were answered wrongly: {}",
            findings.bad(),
            kept.join(", ")
        ));
    }
    for check in findings.audit.iter().filter(|check| !check.passed) {
        broken.push(format!(
            "{}: {} violations: {}",
            check.name,
            check.violations,
            check.examples.join("; ")
        ));
    }
    if findings.inputs == 0 {
        broken.push("nothing was sent".to_owned());
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::Gate(broken.join("\n")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::results::AuditCheck;

    fn findings(statuses: &[(u16, u64)]) -> Findings {
        Findings {
            seed: 1,
            inputs: statuses.iter().map(|(_, count)| count).sum(),
            statuses: BTreeMap::from_iter(statuses.iter().copied()),
            unanswered: 0,
            miscounted: 0,
            kept: Vec::new(),
            audit: Vec::new(),
        }
    }

    fn code(findings: &Findings) -> Option<u8> {
        gates(findings).err().map(|failure| failure.exit_code())
    }

    #[test]
    fn a_5xx_a_missing_answer_a_wrong_count_and_a_broken_invariant_each_fail_the_command() {
        let good = || findings(&[(201, 3), (400, 2), (422, 5)]);
        assert_eq!(code(&good()), None);
        assert_eq!(code(&findings(&[])), Some(1), "nothing sent is nothing shown");
        assert_eq!(code(&findings(&[(422, 9), (500, 1)])), Some(1));
        assert_eq!(code(&findings(&[(422, 9), (503, 1)])), Some(1));
        let unanswered = Findings {
            unanswered: 1,
            ..good()
        };
        assert_eq!(code(&unanswered), Some(1));
        let miscounted = Findings {
            miscounted: 1,
            ..good()
        };
        assert_eq!(code(&miscounted), Some(1));
        let broken = AuditCheck {
            name: "rows-per-tour".to_owned(),
            says: String::new(),
            passed: false,
            violations: 1,
            examples: vec!["tour 7: has 86 rows".to_owned()],
        };
        let partial = Findings {
            audit: vec![broken],
            ..good()
        };
        assert!(gates(&partial).unwrap_err().to_string().contains("has 86 rows"));
    }
}
