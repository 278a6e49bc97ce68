//! `ps`: the processes of a running stack.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::commands::{DEFAULT_STACK, print_json, running, table};
use crate::failure::Outcome;

/// Arguments of `ps`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the stack
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let status = running(&args.name)?.status().await?;
    if args.json {
        return print_json(&json!({
            "name": status.topology.name,
            "ready": status.ready,
            "front": format!("http://{}", status.front),
            "supervisor": status.supervisor,
            "replicas": status.topology.replicas,
            "processes": status.processes,
        }));
    }
    let mut table = table(["NAME", "PID", "PORTS", "UP", "LOG"]);
    for process in &status.processes {
        let ports: Vec<String> = process.ports.iter().map(u16::to_string).collect();
        let up = SystemTime::now().duration_since(process.started).unwrap_or_default();
        table.add_row([
            process.name.clone(),
            process.pid.to_string(),
            ports.join(","),
            age(up),
            process.log.display().to_string(),
        ]);
    }
    let front = if status.ready {
        format!("http://{}", status.front)
    } else {
        "not ready yet".to_owned()
    };
    println!("{table}\n\n{front}");
    Ok(())
}

fn age(up: Duration) -> String {
    match up.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
    }
}
