//! `bench`: the project's own figures.

use serde_json::json;

use crate::bench;
use crate::binaries;
use crate::commands::{print_json, setup};
use crate::failure::{Failure, Outcome};

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Figures to measure; all by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print a JSON list of {"name", "value", "unit", "spread"}
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let chosen = bench::choose(&args.names)?;
    setup::ensure().await?;
    binaries::build().await?;
    let mut list = Vec::new();
    let (mut void, mut missing) = (Vec::new(), false);
    for measurement in chosen {
        match measurement.run().await {
            Ok(readings) => {
                for (figure, reading) in readings
                    .iter()
                    .filter(|(figure, _)| bench::is_wanted(figure, &args.names))
                {
                    if !args.json {
                        println!("{}", bench::line(figure, reading));
                    }
                    list.push(json!({
                        "name": figure.name,
                        "value": reading.value,
                        "unit": figure.unit,
                        "spread": reading.spread,
                    }));
                }
            }
            Err(error) => {
                let names: Vec<&str> = measurement.figures.iter().map(|figure| figure.name).collect();
                eprintln!("{}: {error:#}", names.join(", "));
                void.extend(names);
                missing |= matches!(Failure::from(error), Failure::Missing(_));
            }
        }
    }
    if args.json {
        print_json(&list)?;
    }
    if void.is_empty() {
        return Ok(());
    }
    let text = format!("no figure for {}", void.join(", "));
    Err(if missing {
        Failure::Missing(text)
    } else {
        Failure::Gate(text)
    })
}
