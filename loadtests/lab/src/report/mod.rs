//! The report of a run: one table on the terminal, the same in `report.md`, and with plots in one self-contained
//! `report.html`.

mod deadlocks;
mod html;
mod markdown;
mod noise;
mod plot;
mod published;
mod table;

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::events::Stamped;
use crate::experiment::Experiment;
use crate::published::Published;
use crate::results::{Results, Verdict};

pub(crate) use markdown::rows as markdown_table;

/// Where a report was written.
#[derive(Debug)]
pub(crate) struct ReportFiles {
    pub(crate) markdown: PathBuf,
    pub(crate) html: PathBuf,
}

/// Writes `report.md` and `report.html` into `folder`.
///
/// # Errors
/// A file cannot be written, or the published figures that the experiment names cannot be read.
pub(crate) fn write(
    folder: &Path,
    experiment: &Experiment,
    results: &Results,
    events: &[Stamped],
) -> anyhow::Result<ReportFiles> {
    let published = experiment.published.as_deref().map(Published::find).transpose();
    let published = published?;
    let files = ReportFiles {
        markdown: folder.join("report.md"),
        html: folder.join("report.html"),
    };
    save(
        &files.markdown,
        &markdown::render(experiment, results, published.as_ref()),
    )?;
    save(
        &files.html,
        &html::render(experiment, results, published.as_ref(), events)?,
    )?;
    Ok(files)
}

/// The short form for a terminal: arms as columns, or as a ranking where they are many.
pub(crate) fn terminal_table(results: &Results) -> String {
    let mut text = comfy_table::Table::new();
    text.load_style(comfy_table::presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    let table = table::ranking(results).unwrap_or_else(|| table::short(results));
    text.set_header(table.header);
    for (name, cells) in table.rows {
        text.add_row(std::iter::once(name).chain(cells));
    }
    let refused = results.refused.iter().map(|refused| {
        format!(
            "\n{}: stopped before it was measured, as it has to be, by `{}`: {}",
            refused.arm, refused.id, refused.says
        )
    });
    let off = results.arms.iter().filter_map(|arm| {
        let little = arm.little.as_ref()?;
        Some(format!(
            "\n{}: Little's law is off by {:+.1} %: {}",
            arm.name,
            little.worst * 100.0,
            little.cause.as_ref()?
        ))
    });
    format!("{text}{}", refused.chain(off).collect::<String>())
}

/// How a verdict is written.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::NotReproduced => "not reproduced",
        Verdict::Inconclusive => "inconclusive",
        Verdict::CannotHold => "cannot hold",
    }
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
pub(crate) mod tests;
