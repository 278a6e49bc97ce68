//! What the lab knows of a stack's services: only what `SERVICE --describe` says.

use std::collections::BTreeSet;
use std::path::PathBuf;

use deploy::Stack;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::describe::{first_sentence, variable};

/// The services of a stack, by their own description.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    services: Vec<(String, Value)>,
    settings: std::collections::BTreeMap<String, String>,
}

/// Where a service announces what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Messages {
    pub(crate) exchange: String,
    pub(crate) queue: String,
}

/// An invariant as SQL, shipped by the service it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) says: String,
}

/// What an alternative declares: how the configuration that readers see behaves, or how messages arrive. What it says nothing
/// of is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Promise {
    /// `exact`, `coarse(…)`, `on-change`, `eventual(…)`, `eventual-on-change(…)`, `unwritten`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) config: String,
    /// `row`, or `computed` where a reader sees more than the tenant's row holds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kept: String,
    /// `monotone`, `last-writer-wins`, `none`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) modified_at: String,
    /// `at-least-once`, `at-most-once`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) delivery: String,
    /// What may be lost, and when.
    pub(crate) loses: Vec<Loss>,
}

/// Something that may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loss {
    /// For people.
    pub(crate) text: String,
    /// What is lost of a tour.
    pub(crate) of: Lost,
    /// Any of these may be the reason.
    pub(crate) causes: Vec<Cause>,
}

/// What is lost of a tour: of its write of the configuration, or its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Lost {
    /// All of it, though the tour was acknowledged.
    Acknowledged,
    /// `modified_at` of an acknowledged tour, whose values are there.
    ModifiedAt,
    /// All of it, of a tour that was not acknowledged.
    Unacknowledged,
}

/// Why something is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// A replica of the service crashes.
    Replica,
    /// PostgreSQL ends, or cannot be reached.
    Database,
    /// Redis ends, or cannot be reached.
    Redis,
    /// The broker ends, or cannot be reached.
    Broker,
    /// It takes no fault.
    NoFault,
}

#[cfg(test)]
impl Loss {
    /// Without words.
    pub(crate) fn of(of: Lost, causes: &[Cause]) -> Self {
        Self {
            text: String::new(),
            of,
            causes: causes.to_vec(),
        }
    }
}

impl Facts {
    /// Reads the descriptions of all services in the stack's topology.
    pub(crate) fn of(stack: &Stack) -> Self {
        let topology = stack.topology();
        let services = topology
            .replicas
            .keys()
            .map(|name| (name.clone(), stack.describe(name)))
            .collect();
        Self {
            services,
            settings: topology.settings.clone(),
        }
    }

    /// Databases that have an audit: the ones a load writes to.
    pub(crate) fn databases(&self) -> BTreeSet<&str> {
        self.audited()
            .filter_map(|(_, says)| says["database"].as_str())
            .collect()
    }

    /// Queues that the services consume, with the alternatives that are in use.
    pub(crate) fn queues(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for (service, says) in &self.services {
            for queue in says["queues"].as_array().into_iter().flatten() {
                let wanted = &queue["for"];
                let in_use = match wanted["axis"].as_str() {
                    Some(axis) => wanted["name"] == self.chosen(service, says, axis).unwrap_or_default(),
                    None => true,
                };
                names.extend(queue["name"].as_str().filter(|_| in_use));
            }
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// The service that announces what it did.
    pub(crate) fn announcer(&self) -> Option<String> {
        let announces = |says: &Value| says["messages"]["exchange"].is_string();
        let mut services = self.services.iter();
        services.find_map(|(service, says)| announces(says).then(|| service.clone()))
    }

    /// Where services announce things.
    pub(crate) fn messages(&self) -> Vec<Messages> {
        self.services
            .iter()
            .filter_map(|(_, says)| {
                Some(Messages {
                    exchange: says["messages"]["exchange"].as_str()?.to_owned(),
                    queue: says["messages"]["queue"].as_str()?.to_owned(),
                })
            })
            .collect()
    }

    /// Database and invariants of every service that ships any.
    pub(crate) fn audits(&self) -> Vec<(String, Vec<AuditFile>)> {
        self.audited()
            .filter_map(|(_, says)| {
                let files = says["audit"].as_array()?.iter().filter_map(|file| {
                    Some(AuditFile {
                        name: file["name"].as_str()?.to_owned(),
                        path: deploy::root().join(file["path"].as_str()?),
                        says: file["says"].as_str().unwrap_or_default().to_owned(),
                    })
                });
                Some((says["database"].as_str()?.to_owned(), files.collect()))
            })
            .collect()
    }

    /// Promise of the alternative in use on an axis: the one set in the topology, else the service's default.
    pub(crate) fn promise(&self, axis: &str) -> Option<Promise> {
        let chosen = self.in_use().find(|alternative| alternative["axis"] == axis)?;
        Promise::deserialize(&chosen["promise"]).ok()
    }

    /// What the alternatives in use give up, as `AXIS NAME: …` and in one sentence each; the published ones are left out.
    pub(crate) fn gives_up(&self) -> Vec<String> {
        self.in_use()
            .filter(|alternative| alternative["baseline"] != true)
            .filter_map(|alternative| {
                let gives_up = first_sentence(alternative["gives_up"].as_str()?);
                let (axis, name) = (alternative["axis"].as_str()?, alternative["name"].as_str()?);
                (!gives_up.is_empty()).then(|| format!("{axis} {name}: {gives_up}"))
            })
            .collect()
    }

    /// The alternatives in use, as the services describe them.
    fn in_use(&self) -> impl Iterator<Item = &Value> {
        self.services.iter().flat_map(move |(service, says)| {
            let alternatives = says["alternatives"].as_array().into_iter().flatten();
            alternatives.filter(move |alternative| {
                let chosen = self.chosen(service, says, alternative["axis"].as_str().unwrap_or_default());
                chosen.is_some_and(|chosen| alternative["name"] == chosen)
            })
        })
    }

    /// Name of the alternative in use on an axis of a service.
    fn chosen<'a>(&'a self, service: &str, says: &'a Value, axis: &str) -> Option<&'a str> {
        let variable = variable(service, axis);
        let set = self.settings.get(&variable).map(String::as_str);
        set.or_else(|| {
            let mut fields = says["config"].as_array()?.iter();
            fields.find(|field| field["name"] == variable.as_str())?["default"].as_str()
        })
    }

    fn audited(&self) -> impl Iterator<Item = &(String, Value)> {
        self.services.iter().filter(|(_, says)| says["audit"].is_array())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts(settings: &[(&str, &str)]) -> Facts {
        let says = json!({
            "config": [{"name": "TOUR_DATA_TOUCH", "default": "update-first"}],
            "database": "tour_data",
            "audit": [{"name": "a", "path": "x/a.sql", "says": "…"}],
            "messages": {"exchange": "e", "queue": "q"},
            "queues": [
                {"name": "q"},
                {"name": "touches", "for": {"axis": "touch", "name": "queue"}},
                {"name": "touches", "for": {"axis": "touch", "name": "queue-of-two"}},
            ],
            "alternatives": [
                {"axis": "touch", "name": "update-first", "promise": {"config": "exact", "modified_at": "last-writer-wins"},
                    "baseline": true, "gives_up": "time"},
                {"axis": "touch", "name": "none", "promise": {"config": "unwritten", "modified_at": "none"},
                    "gives_up": "the feature. More follows."},
            ],
        });
        Facts {
            services: vec![("gateway".into(), json!({})), ("tour-data".into(), says)],
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn the_promise_is_that_of_the_alternative_in_use() {
        assert_eq!(facts(&[]).promise("touch").unwrap().config, "exact");
        assert_eq!(
            facts(&[("TOUR_DATA_TOUCH", "none")]).promise("touch").unwrap().config,
            "unwritten"
        );
        assert_eq!(facts(&[("TOUR_DATA_TOUCH", "unheard-of")]).promise("touch"), None);
    }

    #[test]
    fn what_is_given_up_is_said_of_what_is_not_as_published() {
        assert!(facts(&[]).gives_up().is_empty());
        assert_eq!(
            facts(&[("TOUR_DATA_TOUCH", "none")]).gives_up(),
            ["touch none: the feature"]
        );
    }

    #[test]
    fn only_audited_databases_are_probed() {
        assert_eq!(facts(&[]).databases().into_iter().collect::<Vec<_>>(), ["tour_data"]);
    }

    #[test]
    fn a_queue_is_looked_at_where_the_alternative_that_declares_it_is_in_use() {
        assert_eq!(facts(&[]).queues(), ["q"]);
        assert_eq!(facts(&[("TOUR_DATA_TOUCH", "none")]).queues(), ["q"]);
        for touch in ["queue", "queue-of-two"] {
            assert_eq!(
                facts(&[("TOUR_DATA_TOUCH", touch)]).queues(),
                ["q", "touches"],
                "{touch}"
            );
        }
    }

    #[test]
    fn the_service_that_announces_is_the_one_with_an_exchange() {
        assert_eq!(facts(&[]).announcer().as_deref(), Some("tour-data"));
    }
}
