//! `load`: the load engine by itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use load::{HttpTarget, Shape, Summary, Url};

use crate::commands::{print_json, table};
use crate::duration;
use crate::failure::{Failure, Outcome};

/// Arguments of `load`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to; only addresses of this machine
    url: Url,
    /// Virtual users, each with a connection of its own
    #[arg(long, default_value_t = 10)]
    users: usize,
    /// Measured part, e.g. 20s
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    duration: Duration,
    /// Load before the measured part
    #[arg(long, default_value = "0s", value_parser = duration::parse)]
    warm_up: Duration,
    /// Pause of a user between two requests
    #[arg(long, default_value = "0s", value_parser = duration::parse)]
    think: Duration,
    /// Stop after this many requests
    #[arg(long)]
    requests: Option<u64>,
    /// Method of the request
    #[arg(long, default_value = "GET")]
    method: Method,
    /// File with the body; {{uuid}} and {{sequence}} differ in each request
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Header, e.g. "authorization: Bearer …" (repeatable); {{uuid}} and {{sequence}} differ in each request
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let mut builder = HttpTarget::builder(args.method, args.url);
    if let Some(path) = &args.body {
        let body = std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
        builder = builder.body(body);
    }
    for (name, value) in args.headers {
        builder = builder.header(name, value);
    }
    let target = builder.build().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut shape = Shape::closed(args.users)
        .warm_up(args.warm_up)
        .duration(args.duration)
        .think(args.think);
    if let Some(requests) = args.requests {
        shape = shape.max_iterations(requests);
    }
    let summary = load::run(Arc::new(target), &shape, |second| {
        eprintln!(
            "{:>4} s  {:>7} requests  p95 {:.1} ms",
            second.index + 1,
            second.ok,
            second.p95_ms
        );
    });
    let summary = summary.await.map_err(|error| Failure::Usage(error.to_string()))?;
    if args.json {
        print_json(&summary)?;
    } else {
        println!("{}", render(&summary));
    }
    if summary.ok == 0 {
        return Err(Failure::Gate("not one request succeeded".to_owned()));
    }
    Ok(())
}

fn render(summary: &Summary) -> String {
    let mut table = table([
        "REQUESTS/S",
        "OK",
        "FAILED",
        "P50 MS",
        "P95 MS",
        "P99 MS",
        "MAX MS",
        "CPU US/REQUEST",
    ]);
    table.add_row([
        format!("{:.1}", summary.throughput),
        summary.ok.to_string(),
        summary.failed().to_string(),
        format!("{:.2}", summary.latency_ms(0.50)),
        format!("{:.2}", summary.latency_ms(0.95)),
        format!("{:.2}", summary.latency_ms(0.99)),
        format!("{:.2}", summary.latency_ms(1.0)),
        format!("{:.1}", summary.cpu_us_per_iteration()),
    ]);
    let failures: String = summary
        .failures
        .iter()
        .map(|(kind, detail)| {
            format!(
                "\n{kind} ×{}: {detail}",
                summary.errors.get(kind).copied().unwrap_or_default()
            )
        })
        .collect();
    format!("{table}{failures}")
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(format!("`{text}` is not of the form NAME: VALUE")),
    }
}
