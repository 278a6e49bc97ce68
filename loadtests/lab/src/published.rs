//! Published figures: `loadtests/published/NAME.toml`, with their source and what an audit of them found.

use serde::Deserialize;

use crate::experiment::Metric;
use crate::failure::{Failure, Outcome};

/// Unit of a figure that is the first of two arms ÷ the second.
const RATIO: &str = "ratio";

/// The figures of one story.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) title: String,
    pub(crate) source: String,
    #[serde(rename = "figure")]
    pub(crate) figures: Vec<Figure>,
    #[serde(rename = "audit", default)]
    pub(crate) audits: Vec<Note>,
}

/// One figure, as published.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    pub(crate) id: String,
    /// The figure in words, as the source has it.
    pub(crate) says: String,
    pub(crate) metric: Metric,
    pub(crate) value: f64,
    /// The metric's own, or `ratio` for one arm ÷ another.
    pub(crate) unit: String,
    /// Arm of the experiments in `measured_by` that measures the same thing; a figure without one is measured by the claims
    /// that name it.
    pub(crate) arm: Option<String>,
    /// Experiments that measure it, the one to run first.
    #[serde(default)]
    pub(crate) measured_by: Vec<String>,
    /// Where none does: what would.
    pub(crate) would: Option<String>,
}

/// What an audit says about some of the figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) figures: Vec<String>,
    pub(crate) says: String,
    /// The figures contradict themselves or each other.
    #[serde(default)]
    pub(crate) cannot_hold: bool,
}

impl Published {
    /// Reads `loadtests/published/NAME.toml`.
    ///
    /// # Errors
    /// There is no such file, it is malformed, a figure contradicts its own description, or a note names a figure that is not
    /// there.
    pub(crate) fn find(name: &str) -> Outcome<Self> {
        let path = folder().join(format!("{name}.toml"));
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let published: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        published.check().map_err(wrong)?;
        Ok(published)
    }

    fn check(&self) -> Result<(), String> {
        for id in self.audits.iter().flat_map(|note| &note.figures) {
            self.figure(id)?;
        }
        for (index, figure) in self.figures.iter().enumerate() {
            let wrong = |why: String| Err(format!("figure `{}`: {why}", figure.id));
            if self.figures[..index].iter().any(|other| other.id == figure.id) {
                return wrong("there are two of that id".to_owned());
            }
            let own = figure.metric.unit();
            if figure.unit != own && figure.unit != RATIO {
                return wrong(format!(
                    "unit = `{}`: {} is counted in `{own}`, and two arms have a `{RATIO}`",
                    figure.unit, figure.metric
                ));
            }
            if figure.measured_by.is_empty() != figure.would.is_some() {
                return wrong("it needs `measured_by`, or `would` where nothing measures it, and not both".to_owned());
            }
        }
        Ok(())
    }

    /// The figure with this id; the error lists the known ones.
    pub(crate) fn figure(&self, id: &str) -> Result<&Figure, String> {
        self.figures.iter().find(|figure| figure.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.figures.iter().map(|figure| figure.id.as_str()).collect();
            format!("there is no published figure `{id}`; known are: {}", known.join(", "))
        })
    }

    /// What the audit says of a figure, the gravest first.
    pub(crate) fn notes(&self, id: &str) -> Vec<&Note> {
        let about = self
            .audits
            .iter()
            .filter(|note| note.figures.iter().any(|each| each == id));
        let mut notes: Vec<&Note> = about.collect();
        notes.sort_by_key(|note| !note.cannot_hold);
        notes
    }

    /// Why a figure contradicts itself, if it does.
    pub(crate) fn cannot_hold(&self, id: &str) -> Option<&str> {
        let gravest = self.notes(id).into_iter().next()?;
        gravest.cannot_hold.then_some(gravest.says.as_str())
    }
}

/// Names of the stories, sorted.
pub(crate) fn names() -> Outcome<Vec<String>> {
    let folder = folder();
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| Failure::Missing(format!("cannot list {}: {error}", folder.display())))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn folder() -> std::path::PathBuf {
    deploy::root().join("loadtests/published")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{self, Experiment};

    fn stories() -> Vec<(String, Published)> {
        let names = names().unwrap().into_iter();
        names
            .map(|name| (name.clone(), Published::find(&name).unwrap()))
            .collect()
    }

    #[test]
    fn the_shipped_figures_are_consistent_and_say_which_cannot_hold() {
        let published = Published::find("create-tour").unwrap();
        let throughput = published.figure("1-tuned.throughput").unwrap();
        assert_eq!(
            (throughput.arm.as_deref(), throughput.value),
            (Some("1 replica, tuned"), 2.27)
        );
        assert!(published.cannot_hold("1-tuned.p95").unwrap().contains("closed loop"));
        assert_eq!(published.cannot_hold("1-untuned.p95"), None);
        assert!(
            published
                .figure("unheard-of")
                .unwrap_err()
                .contains("1-untuned.throughput")
        );
    }

    #[test]
    fn a_pair_of_throughput_and_percentile_that_a_closed_loop_cannot_show_is_marked() {
        let published = Published::find("create-tour").unwrap();
        let p95s = published.figures.iter().filter(|figure| figure.metric == Metric::P95);
        for figure in p95s.filter(|figure| figure.unit != RATIO) {
            let throughput = published.figure(&figure.id.replace(".p95", ".throughput")).unwrap();
            let cycle_ms = 10.0 / throughput.value * 1000.0;
            assert_eq!(
                published.cannot_hold(&figure.id).is_some(),
                cycle_ms > figure.value,
                "{}",
                figure.id
            );
        }
    }

    #[test]
    fn every_figure_with_a_counterpart_names_an_experiment_that_has_it() {
        for (story, published) in stories() {
            for figure in &published.figures {
                for name in &figure.measured_by {
                    let experiment = Experiment::find(name).unwrap();
                    assert_eq!(experiment.published.as_deref(), Some(story.as_str()), "{name}");
                    let has = match &figure.arm {
                        Some(arm) => experiment.arms.iter().any(|each| each.name == *arm),
                        None => experiment.claims.iter().any(|claim| {
                            claim.figure.as_deref() == Some(figure.id.as_str())
                                && claim.metric == figure.metric
                                && (claim.arms.len() == 2) == (figure.unit == RATIO && figure.metric.unit() != RATIO)
                        }),
                    };
                    assert!(has, "{name} has nothing that measures `{}`", figure.id);
                }
            }
        }
    }

    #[test]
    fn every_claim_that_names_a_figure_is_named_by_it() {
        let published: std::collections::BTreeMap<String, Published> = stories().into_iter().collect();
        for name in experiment::names().unwrap() {
            let experiment = Experiment::find(&name).unwrap();
            for id in experiment.claims.iter().filter_map(|claim| claim.figure.as_ref()) {
                let story = &published[experiment.published.as_ref().unwrap()];
                let figure = story.figure(id).unwrap();
                assert!(figure.measured_by.contains(&name), "`{id}` does not name {name}");
            }
        }
    }

    #[test]
    fn a_figure_in_another_unit_or_measured_by_nothing_is_refused() {
        let story = |figure: &str| {
            let text =
                format!("title = \"t\"\nsource = \"s\"\n[[figure]]\nid = \"a\"\nsays = \"…\"\nvalue = 1\n{figure}");
            toml::from_str::<Published>(&text).unwrap().check()
        };
        let good = "metric = \"p95\"\nunit = \"ms\"\nwould = \"a run\"";
        assert_eq!(story(good), Ok(()));
        assert!(
            story(&good.replace("\"ms\"", "\"s\""))
                .unwrap_err()
                .contains("counted in `ms`")
        );
        assert!(
            story(&good.replace("would", "arm"))
                .unwrap_err()
                .contains("`measured_by`")
        );
    }
}
