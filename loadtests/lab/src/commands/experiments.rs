//! `experiments`: what can be run, with question and duration.

use std::time::Duration;

use serde_json::json;

use crate::commands::{built_descriptions, print_json, table};
use crate::experiment::{self, Experiment};
use crate::failure::Outcome;

/// Around the load, a measurement restarts the services, restores the database, drains the queue and audits.
const AROUND_A_MEASUREMENT: Duration = Duration::from_secs(6);

/// Arguments of `experiments`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    // How many arms an experiment about every alternative has only the built services know.
    let experiments = experiment::shipped(&built_descriptions().await?)?;
    if args.json {
        let list = experiments.iter().map(|each| {
            json!({
                "name": each.name,
                "question": each.question,
                "arms": each.arms.iter().map(|arm| &arm.name).collect::<Vec<_>>(),
                "rounds": each.rounds,
                "users": each.users,
                "load_s": each.load_time().as_secs_f64(),
                "about_s": about(each).as_secs(),
            })
        });
        return print_json(&list.collect::<Vec<_>>());
    }
    let mut table = table(["NAME", "ABOUT", "ARMS", "QUESTION"]);
    for each in &experiments {
        table.add_row([
            each.name.clone(),
            format!("{} min", about(each).as_secs().div_ceil(60)),
            format!("{} × {} rounds", each.arms.len(), each.rounds),
            each.question.clone(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn about(experiment: &Experiment) -> Duration {
    let measurements = experiment.rounds * u32::try_from(experiment.arms.len()).unwrap_or(u32::MAX);
    experiment.load_time() + AROUND_A_MEASUREMENT * measurements
}
