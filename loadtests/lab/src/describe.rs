//! What services say of themselves (`SERVICE --describe`) before anything is started: the ground to refuse options on.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tokio::process::Command;

use crate::binaries;
use crate::facts::Promise;
use crate::failure::{Failure, Outcome};

/// The services' own descriptions, by service.
#[derive(Debug)]
pub(crate) struct Descriptions(BTreeMap<String, Description>);

#[derive(Debug, Deserialize)]
struct Description {
    config: Vec<Setting>,
    #[serde(default)]
    alternatives: Vec<Alternative>,
    #[serde(default)]
    database: Option<String>,
    #[serde(default)]
    audit: Option<serde_json::Value>,
    #[serde(default)]
    schema_settings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Setting {
    name: String,
}

/// A named way to do one thing, of which a service's configuration chooses one.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Alternative {
    pub(crate) axis: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) summary: String,
    /// Whether the published system works this way.
    #[serde(default)]
    pub(crate) baseline: bool,
    /// Absent where nobody but the service notices the difference.
    #[serde(default)]
    pub(crate) promise: Option<Promise>,
    #[serde(default)]
    pub(crate) gives_up: String,
    #[serde(default)]
    pub(crate) not_for: String,
}

impl Descriptions {
    /// Asks the built programs.
    pub(crate) async fn ask(services: impl IntoIterator<Item = &String>) -> Outcome<Self> {
        let mut all = BTreeMap::new();
        for service in services {
            all.insert(service.clone(), ask(service).await?);
        }
        Ok(Self(all))
    }

    /// One service's description by hand.
    #[cfg(test)]
    pub(crate) fn of(service: &str, says: serde_json::Value) -> Self {
        let description = serde_json::from_value(says).expect("a description");
        Self([(service.to_owned(), description)].into())
    }

    /// Refuses unknown variables, and unknown names where a variable chooses an alternative.
    pub(crate) fn check(&self, settings: &BTreeMap<String, String>) -> Outcome {
        settings
            .iter()
            .try_for_each(|(variable, value)| self.check_one(variable, value))
    }

    /// Databases of the services that ship an audit: the ones a load writes to.
    pub(crate) fn audited_databases(&self) -> Vec<&str> {
        let audited = self.0.values().filter(|description| description.audit.is_some());
        audited
            .filter_map(|description| description.database.as_deref())
            .collect()
    }

    /// Variables of a service that decide what its database is made of.
    pub(crate) fn schema_settings(&self, service: &str) -> &[String] {
        self.0
            .get(service)
            .map_or(&[], |description| &description.schema_settings)
    }

    /// Every alternative with the service it is of, as the services list them.
    pub(crate) fn alternatives(&self) -> impl Iterator<Item = (&str, &Alternative)> {
        self.0.iter().flat_map(|(service, description)| {
            let alternatives = description.alternatives.iter();
            alternatives.map(move |alternative| (service.as_str(), alternative))
        })
    }

    /// The alternatives that a variable chooses from, sorted.
    ///
    /// # Errors
    /// There is no such variable, or it chooses something else.
    pub(crate) fn choices(&self, variable: &str) -> Outcome<BTreeSet<&str>> {
        let (service, choices) = self.choices_of_known(variable)?;
        if choices.is_empty() {
            return Err(Failure::Usage(format!(
                "`{variable}` chooses no alternative of {service}"
            )));
        }
        Ok(choices)
    }

    fn check_one(&self, variable: &str, value: &str) -> Outcome {
        let (service, choices) = self.choices_of_known(variable)?;
        if choices.is_empty() || choices.contains(value) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{service} knows no {} `{value}`; known are: {}",
            axis(service, variable),
            choices.into_iter().collect::<Vec<_>>().join(", ")
        )))
    }

    /// The service that has the variable, and the alternatives that it chooses from: none where it is no axis.
    fn choices_of_known(&self, variable: &str) -> Outcome<(&str, BTreeSet<&str>)> {
        let owner = self
            .0
            .iter()
            .find(|(service, _)| variable.starts_with(&prefix(service)));
        let Some((service, description)) = owner else {
            let prefixes: Vec<String> = self.0.keys().map(|service| format!("{}…", prefix(service))).collect();
            return Err(Failure::Usage(format!(
                "`{variable}` is a variable of no service; they begin with {}",
                prefixes.join(", ")
            )));
        };
        if !description.config.iter().any(|setting| setting.name == variable) {
            let known: Vec<&str> = description.config.iter().map(|setting| setting.name.as_str()).collect();
            return Err(Failure::Usage(format!(
                "{service} has no variable `{variable}`; known are: {}",
                known.join(", ")
            )));
        }
        let axis = axis(service, variable);
        let choices = description
            .alternatives
            .iter()
            .filter(|alternative| alternative.axis == axis)
            .map(|alternative| alternative.name.as_str())
            .collect();
        Ok((service, choices))
    }
}

/// What a variable of the service chooses, if it is an axis.
fn axis(service: &str, variable: &str) -> String {
    variable[prefix(service).len()..].to_lowercase().replace('_', "-")
}

async fn ask(service: &str) -> Outcome<Description> {
    let program = binaries::path(service)?;
    if !program.is_file() {
        return Err(Failure::Usage(format!(
            "there is no service `{service}` (no program {}); services are gateway, user and tour-data",
            program.display()
        )));
    }
    let output = Command::new(&program)
        .arg("--describe")
        .output()
        .await
        .map_err(|error| Failure::Missing(format!("{} did not start: {error}", program.display())))?;
    if !output.status.success() {
        return Err(Failure::Missing(format!(
            "`{} --describe` failed ({}): {}",
            program.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::Missing(format!("`{} --describe` is not understood: {error}", program.display())))
}

/// The variable that chooses the alternative of an axis: `TOUR_DATA_TOUCH`.
pub(crate) fn variable(service: &str, axis: &str) -> String {
    format!("{}{}", prefix(service), axis.to_uppercase().replace('-', "_"))
}

/// The first sentence of what a service says, without its full stop.
pub(crate) fn first_sentence(text: &str) -> &str {
    text.split_once(". ")
        .map_or(text, |(first, _)| first)
        .trim_end_matches('.')
}

fn prefix(service: &str) -> String {
    format!("{}_", service.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptions() -> Descriptions {
        let says = serde_json::json!({
            "service": "tour-data",
            "config": [{"name": "TOUR_DATA_TOUCH"}, {"name": "TOUR_DATA_DB_POOL_MAX"}],
            "alternatives": [{"axis": "touch", "name": "none"}, {"axis": "touch", "name": "update-last"}],
            "database": "tour_data",
            "audit": [],
        });
        Descriptions::of("tour-data", says)
    }

    fn check(variable: &str, value: &str) -> Outcome {
        descriptions().check(&[(variable.to_owned(), value.to_owned())].into())
    }

    #[test]
    fn a_known_variable_with_a_known_alternative_passes() {
        check("TOUR_DATA_TOUCH", "update-last").unwrap();
        check("TOUR_DATA_DB_POOL_MAX", "5").unwrap();
        assert_eq!(descriptions().audited_databases(), ["tour_data"]);
    }

    #[test]
    fn what_is_unknown_is_wrong_usage_and_the_known_ones_are_named() {
        for (variable, value, told) in [
            ("TOUR_DATA_TOUCH", "update-frist", "none, update-last"),
            ("TOUR_DATA_POOL", "5", "TOUR_DATA_DB_POOL_MAX"),
            ("OTHER", "5", "TOUR_DATA_…"),
        ] {
            let failure = check(variable, value).unwrap_err();
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.to_string().contains(told), "{failure}");
        }
    }
}
