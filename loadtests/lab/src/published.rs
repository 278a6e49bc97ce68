//! Published figures: `loadtests/published/NAME.toml`, with their source and what an audit of them found.

use serde::Deserialize;

use crate::failure::{Failure, Outcome};

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
    /// Arm of an experiment that measures the same thing; a ratio of arms has none.
    pub(crate) arm: Option<String>,
    /// `throughput` (iterations a second), `p95` (milliseconds), `waiters` (sessions), `hot-ratio` (0 … 1), `generator-cpu`
    /// (1.0 is a core), `drain` (seconds), `messages`, `cycle-over-p95` (no unit); a ratio of two arms has no unit.
    pub(crate) metric: String,
    pub(crate) value: f64,
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
    /// There is no such file, it is malformed, or a note names a figure that is not there.
    pub(crate) fn find(name: &str) -> Outcome<Self> {
        let path = deploy::root().join("loadtests/published").join(format!("{name}.toml"));
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let published: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        for id in published.audits.iter().flat_map(|note| &note.figures) {
            published.figure(id).map_err(wrong)?;
        }
        Ok(published)
    }

    /// The figure with this id; the error lists the known ones.
    pub(crate) fn figure(&self, id: &str) -> Result<&Figure, String> {
        self.figures.iter().find(|figure| figure.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.figures.iter().map(|figure| figure.id.as_str()).collect();
            format!("there is no published figure `{id}`; known are: {}", known.join(", "))
        })
    }

    /// Figure of one arm.
    pub(crate) fn of_arm(&self, arm: &str, metric: &str) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.arm.as_deref() == Some(arm) && figure.metric == metric)
    }

    /// Why a figure contradicts itself, if it does.
    pub(crate) fn cannot_hold(&self, id: &str) -> Option<&str> {
        let mut notes = self.audits.iter().filter(|note| note.cannot_hold);
        notes
            .find(|note| note.figures.iter().any(|each| each == id))
            .map(|note| note.says.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_figures_are_consistent_and_say_which_cannot_hold() {
        let published = Published::find("create-tour").unwrap();
        let throughput = published.of_arm("1 replica, tuned", "throughput").unwrap();
        assert_eq!((throughput.id.as_str(), throughput.value), ("1-tuned.throughput", 2.27));
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
        for figure in published.figures.iter().filter(|figure| figure.metric == "p95") {
            let Some(arm) = &figure.arm else { continue };
            let cycle_ms = 10.0 / published.of_arm(arm, "throughput").unwrap().value * 1000.0;
            assert_eq!(
                published.cannot_hold(&figure.id).is_some(),
                cycle_ms > figure.value,
                "{}",
                figure.id
            );
        }
    }
}
