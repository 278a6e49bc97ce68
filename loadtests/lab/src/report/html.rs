//! `report.html`: one file, no script, no network; under a megabyte whatever the length of the run.

use anyhow::Context;
use minijinja::value::Serde;
use minijinja::{Environment, context};

use super::{noise, plot, published, table, verdict};
use crate::events::Stamped;
use crate::experiment::Experiment;
use crate::published::Published;
use crate::results::Results;

/// Fills the page.
pub(super) fn render(
    experiment: &Experiment,
    results: &Results,
    published: Option<&Published>,
    events: &[Stamped],
) -> anyhow::Result<String> {
    let mut pages = Environment::new();
    // The name's ending turns on escaping: arm names and errors are data.
    pages
        .add_template("report.html", include_str!("page.html"))
        .context("the report's page is malformed")?;
    let tables = [
        ("Ranking", table::ranking(results)),
        ("Arms", Some(table::full(results))),
    ];
    let tables: Vec<_> = tables
        .into_iter()
        .filter_map(|(title, table)| {
            let table = table?;
            Some(context! { title, header => table.header, rows => table.rows })
        })
        .collect();
    let claims: Vec<_> = results
        .claims
        .iter()
        .map(|claim| context! { claim => Serde(claim), verdict => verdict(claim.verdict), interval => claim.ci95.map(|ci95| table::interval(Some(ci95))) })
        .collect();
    let mut plots = vec![plot::throughput::draw(results), plot::latency::draw(results)];
    plots.extend(results.curves.iter().map(plot::curve::draw));
    plots.extend([plot::timeline::draw(results, events), plot::waits::draw(results)]);
    let page = pages
        .get_template("report.html")
        .context("the report's page is missing")?;
    page.render(context! {
        results => Serde(results),
        hypothesis => experiment.hypothesis.as_str(),
        tables,
        claims,
        preflight => results.arms.iter().any(|arm| !arm.preflight.is_empty()),
        noise_floor => results.noise_floor.as_ref().map(noise::sentence),
        plots => Serde(&plots),
        story => published.map(|story| context! { title => story.title.as_str(), source => story.source.as_str() }),
        beside => Serde(published::beside(results, published)),
    })
    .context("the report's page could not be filled")
}
