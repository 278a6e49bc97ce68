//! `locks`: who waits for which row in a running stack.

use std::io::IsTerminal;
use std::time::Duration;

use chrono::Local;

use crate::commands::{DEFAULT_STACK, print_json, running, table};
use crate::describe::Descriptions;
use crate::events::LockSample;
use crate::failure::{Failure, Outcome};
use crate::{duration, probes};

/// Longest statement that fits a terminal's line beside the other columns.
const STATEMENT_CHARS: usize = 60;

/// Arguments of `locks`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look again and again, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Time between two looks
    #[arg(long, default_value = "1s", value_parser = duration::parse)]
    interval: Duration,
    /// Print JSON, one object a look
    #[arg(long)]
    json: bool,
    /// Name of the stack
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let status = running(&args.name)?.status().await?;
    if status.postgres.is_empty() {
        return Err(Failure::Missing(format!(
            "PostgreSQL of stack `{}` is not up yet",
            args.name
        )));
    }
    let descriptions = Descriptions::ask(status.topology.replicas.keys()).await?;
    let Some(database) = descriptions.audited_databases().first().copied() else {
        return Err(Failure::Usage(format!(
            "stack `{}` runs no service with a database to look at",
            args.name
        )));
    };
    let pool = probes::connect(&format!("{}{database}", status.postgres)).await?;
    loop {
        let sample = probes::locks::sample(&pool).await?;
        if args.json {
            print_json(&sample)?;
        } else {
            if args.watch && std::io::stdout().is_terminal() {
                print!("\x1b[2J\x1b[H");
            }
            println!("{}", render(&sample));
        }
        if !args.watch {
            return Ok(());
        }
        tokio::time::sleep(args.interval).await;
    }
}

fn render(sample: &LockSample) -> String {
    let now = Local::now().format("%H:%M:%S");
    if sample.roots.is_empty() {
        return format!("{now}  nobody waits (looked for {:.1} ms)", sample.took_ms);
    }
    let mut table = table([
        "HOLDER",
        "STATE",
        "DOES",
        "TRANSACTION",
        "WAITERS",
        "LONGEST",
        "ROW",
        "WAITING STATEMENT",
    ]);
    for root in &sample.roots {
        let row = match (&root.relation, &root.row) {
            (Some(relation), Some(row)) => format!("{relation} ({row})"),
            (Some(relation), None) => relation.clone(),
            _ => "unknown".to_owned(),
        };
        let statement: String = root
            .waiting_statement
            .as_deref()
            .unwrap_or_default()
            .chars()
            .take(STATEMENT_CHARS)
            .collect();
        table.add_row([
            format!("{} ({})", root.application, root.pid),
            root.state.clone(),
            root.wait.clone(),
            format!("{:.0} ms", root.transaction_age_ms),
            format!(
                "{} ({} tuple, {} transactionid)",
                root.waiters, root.tuple_waiters, root.transactionid_waiters
            ),
            format!("{:.0} ms", root.longest_wait_ms),
            row,
            statement,
        ]);
    }
    format!(
        "{now}  {} waiting (looked for {:.1} ms)\n{table}",
        sample.waiters.len(),
        sample.took_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Root;

    #[test]
    fn a_quiet_server_says_so_and_a_queue_names_its_row() {
        assert!(render(&LockSample::default()).contains("nobody waits"));
        let root = Root {
            pid: 7,
            application: "tour-data-1".into(),
            state: "idle in transaction".into(),
            wait: "Client/ClientRead".into(),
            transaction_age_ms: 12.0,
            last_statement: "INSERT".into(),
            waiters: 8,
            tuple_waiters: 7,
            transactionid_waiters: 1,
            longest_wait_ms: 80.0,
            relation: Some("tenant_config".into()),
            row: Some("tenant_key=BEHNGT".into()),
            waiting_statement: Some("UPDATE tenant_config".into()),
        };
        let text = render(&LockSample {
            roots: vec![root],
            ..LockSample::default()
        });
        for part in [
            "tenant_config (tenant_key=BEHNGT)",
            "7 tuple, 1 transactionid",
            "Client/ClientRead",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
