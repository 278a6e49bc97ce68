//! One alternative of each axis, and what it gives up together.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Context;

use crate::describe::{self, Alternative, Descriptions};
use crate::facts::Promise;

/// The axes along which a tour is written and told of. Where a tenant lives is not one of them: all tours are one tenant's.
const AXES: [&str; 3] = ["inserts", "touch", "announce"];
/// Their places.
pub(super) const INSERTS: usize = 0;
pub(super) const TOUCH: usize = 1;
pub(super) const ANNOUNCE: usize = 2;

/// What there is to combine.
pub(super) struct Axes<'a>([Axis<'a>; 3]);

struct Axis<'a> {
    /// Of the configuration.
    variable: String,
    published: &'a Alternative,
    all: Vec<&'a Alternative>,
}

impl<'a> Axes<'a> {
    /// From what the services say of themselves.
    ///
    /// # Errors
    /// An axis is missing, or nothing on it is published.
    pub(super) fn of(descriptions: &'a Descriptions) -> anyhow::Result<Self> {
        let axis = |name: &str| -> anyhow::Result<Axis<'a>> {
            let known = descriptions.alternatives().filter(|(_, known)| known.axis == name);
            let (services, all): (Vec<&str>, Vec<&Alternative>) = known.unzip();
            let published = all.iter().copied().find(|known| known.baseline);
            Ok(Axis {
                variable: describe::variable(services.first().copied().unwrap_or_default(), name),
                published: published.with_context(|| format!("no service says how it does `{name}` as published"))?,
                all,
            })
        };
        let [inserts, touch, announce] = AXES.map(axis);
        Ok(Self([inserts?, touch?, announce?]))
    }

    /// The published way.
    pub(super) fn published(&self) -> Combination<'_> {
        Combination(self.0.each_ref().map(|axis| Choice {
            variable: &axis.variable,
            chosen: axis.published,
            published: axis.published,
        }))
    }

    /// Every alternative of an axis.
    pub(super) fn all(&self, axis: usize) -> impl Iterator<Item = &'a Alternative> {
        self.0[axis].all.iter().copied()
    }

    /// Every one but the published one.
    pub(super) fn others(&self, axis: usize) -> impl Iterator<Item = &'a Alternative> {
        self.all(axis).filter(|known| !known.baseline)
    }

    /// An alternative by its name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(&self, axis: usize, name: &str) -> anyhow::Result<&'a Alternative> {
        let found = self.0[axis].all.iter().copied().find(|known| known.name == name);
        found.with_context(|| format!("there is no {} `{name}`", AXES[axis]))
    }
}

/// One alternative of each axis.
#[derive(Debug, Clone)]
pub(super) struct Combination<'a>([Choice<'a>; 3]);

#[derive(Debug, Clone, Copy)]
struct Choice<'a> {
    variable: &'a str,
    chosen: &'a Alternative,
    published: &'a Alternative,
}

impl<'a> Combination<'a> {
    /// The same with another alternative of an axis.
    pub(super) fn with(&self, axis: usize, chosen: &'a Alternative) -> Self {
        let mut other = self.clone();
        other.0[axis].chosen = chosen;
        other
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let choices = self.0.iter();
        choices
            .map(|choice| (choice.variable.to_owned(), choice.chosen.name.clone()))
            .collect()
    }

    /// Whether whoever relies on what is promised as published can rely on it.
    pub(super) fn is_exact(&self) -> bool {
        self.0.iter().all(Choice::is_exact)
    }

    /// Whether it does at all what it is to do faster: a control that leaves the row alone is no fix.
    pub(super) fn is_fix(&self) -> bool {
        let mut promises = self.0.iter().filter_map(|choice| choice.chosen.promise.as_ref());
        !promises.any(|promise| promise.config == "unwritten")
    }

    /// What it gives up against the published way, in the alternatives' own words.
    pub(super) fn gives_up(&self) -> String {
        let lesser = self.0.iter().filter(|choice| !choice.is_exact());
        let words: Vec<String> = lesser
            .map(|choice| format!("{}: {}", choice.chosen.name, choice.chosen.gives_up))
            .collect();
        match words.as_slice() {
            [] => "gives nothing up".to_owned(),
            words => format!("gives up, by {}", words.join(" And by ")),
        }
    }
}

impl fmt::Display for Combination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|choice| choice.chosen.name.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

impl Choice<'_> {
    fn is_exact(&self) -> bool {
        self.chosen.name == self.published.name
            || match (&self.chosen.promise, &self.published.promise) {
                // Nobody but the service notices.
                (None, _) => true,
                (Some(chosen), Some(published)) => is_as_good(chosen, published),
                (Some(_), None) => false,
            }
    }
}

/// Whether the promise of a touch is kept in full by another.
fn is_as_good(promise: &Promise, published: &Promise) -> bool {
    // When a message is out is in no promise, so another way to send it is not known to be as good.
    let of_messages = !promise.delivery.is_empty() || !published.delivery.is_empty();
    let is = |value: &str, published: &str, best: &str| value == published || value == best;
    !of_messages
        && is(&promise.config, &published.config, "exact")
        && is(&promise.kept, &published.kept, "row")
        && is(&promise.modified_at, &published.modified_at, "monotone")
        && promise.loses.iter().all(|loss| published.loses.contains(loss))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn touch(name: &str, baseline: bool, promise: &Value) -> Value {
        json!({"axis": "touch", "name": name, "baseline": baseline, "promise": promise, "gives_up": format!("{name}'s price.")})
    }

    fn row(modified_at: &str) -> Value {
        json!({"config": "exact", "kept": "row", "modified_at": modified_at, "loses": []})
    }

    fn loss(of: &str) -> Value {
        json!({"text": "the last", "of": of, "causes": ["replica"]})
    }

    fn announce(name: &str, baseline: bool, loses: &[Value]) -> Value {
        let promise = json!({"delivery": "at-least-once", "loses": loses});
        json!({"axis": "announce", "name": name, "baseline": baseline, "promise": promise, "gives_up": "The moment."})
    }

    pub(in super::super) fn descriptions() -> Descriptions {
        let says = json!({
            "config": [],
            "alternatives": [
                {"axis": "inserts", "name": "row", "baseline": true},
                {"axis": "inserts", "name": "batch"},
                touch("first", true, &row("last-writer-wins")),
                touch("last", false, &row("last-writer-wins")),
                touch("queued", false, &row("monotone")),
                touch("late", false, &json!({"config": "eventual(1000ms)", "kept": "row", "modified_at": "monotone"})),
                touch("beside", false, &json!({"config": "exact", "kept": "computed", "modified_at": "monotone"})),
                touch("forgetful", false, &json!({"config": "exact", "kept": "row", "modified_at": "monotone",
                    "loses": [loss("acknowledged")]})),
                touch("none", false, &json!({"config": "unwritten", "kept": "row", "modified_at": "none"})),
                announce("confirmed", true, &[loss("unacknowledged")]),
                announce("stored", false, &[]),
            ],
        });
        Descriptions::of("tour-data", says)
    }

    #[test]
    fn what_promises_all_that_is_published_gives_nothing_up_and_the_rest_says_what() {
        let descriptions = descriptions();
        let axes = Axes::of(&descriptions).unwrap();
        let with = |axis, name: &str| axes.published().with(axis, axes.find(axis, name).unwrap());
        for exact in ["first", "last", "queued"] {
            assert!(with(TOUCH, exact).is_exact(), "{exact}");
        }
        for lesser in ["late", "beside", "forgetful", "none"] {
            let combination = with(TOUCH, lesser);
            assert!(!combination.is_exact(), "{lesser}");
            assert_eq!(
                combination.gives_up(),
                format!("gives up, by {lesser}: {lesser}'s price.")
            );
        }
        assert!(with(INSERTS, "batch").is_exact());
        assert!(!with(ANNOUNCE, "stored").is_exact());
        assert!(!with(TOUCH, "none").is_fix() && with(TOUCH, "late").is_fix());
    }

    #[test]
    fn a_combination_is_the_settings_that_make_it() {
        let descriptions = descriptions();
        let axes = Axes::of(&descriptions).unwrap();
        let combination = axes.published().with(TOUCH, axes.find(TOUCH, "last").unwrap());
        assert_eq!(combination.to_string(), "row, last, confirmed");
        let settings: Vec<(String, String)> = combination.settings().into_iter().collect();
        let expected = [
            ("TOUR_DATA_ANNOUNCE", "confirmed"),
            ("TOUR_DATA_INSERTS", "row"),
            ("TOUR_DATA_TOUCH", "last"),
        ];
        assert_eq!(
            settings,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(axes.others(TOUCH).count(), 6);
        assert!(axes.find(TOUCH, "nowhere").is_err());
    }
}
