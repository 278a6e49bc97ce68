//! Experiments: `loadtests/experiments/NAME.toml`, one a file.
//!
//! A file says which arms are compared under which load, and what is claimed of them. Everything that can be checked
//! without a running stack is checked while it is read; an error names file, key and the values that are known.

mod arrivals;
mod check;
mod claim;
mod curve;
mod every;
mod fault;
mod noise;
mod order;
mod overrides;
mod tenants;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use deploy::LinkName;
use serde::{Deserialize, Serialize};

use crate::describe::Descriptions;
use crate::failure::{Failure, Outcome};
use crate::results::CheckId;
use crate::{digest, duration};

pub(crate) use arrivals::{ArmLoad, Arrivals};
pub(crate) use claim::{ClaimSpec, Expect, Metric};
pub(crate) use curve::{Axis, CurveSpec};
pub(crate) use every::Every;
pub(crate) use fault::{FaultSpec, Moment};
pub(crate) use order::Order;
pub(crate) use overrides::Overrides;
pub(crate) use tenants::Tenants;

/// Name of the copy in a result folder: the experiment as it was run, overrides included.
pub(crate) const FILE: &str = "experiment.toml";

/// An experiment as it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    /// The file's name unless the file says otherwise (the copy in a result folder does).
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) question: String,
    #[serde(default)]
    pub(crate) hypothesis: String,
    /// `loadtests/published/NAME.toml` with the figures to compare to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<String>,
    /// Virtual users of the closed loop; with a `rate` the most requests that are under way at once.
    pub(crate) users: usize,
    /// Requests a second: an open loop, whose sends do not wait for answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    /// Distances between the sends of an open loop; all alike when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arrivals: Option<Arrivals>,
    /// Tenants that the users are divided among, each user working for one with a token of its own. The first is the
    /// payload's.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) tenants: u16,
    /// Share of the users that work for the first tenant, 0 … 1; the others are divided evenly. All are when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hot_share: Option<f64>,
    /// Least load before the measured part of each measurement, which begins when the throughput is steady.
    #[serde(with = "duration")]
    pub(crate) warm_up: Duration,
    /// Measured part of each measurement.
    #[serde(with = "duration")]
    pub(crate) duration: Duration,
    pub(crate) rounds: u32,
    #[serde(default, skip_serializing_if = "Order::is_default")]
    pub(crate) order: Order,
    /// Of a random order; drawn and recorded when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// The preflight check that has to stop every arm: a mistake made on purpose has to be noticed before it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expect_preflight: Option<CheckId>,
    pub(crate) token: TokenUse,
    /// Pause of a user between two iterations.
    #[serde(default, with = "duration", skip_serializing_if = "Duration::is_zero")]
    pub(crate) think: Duration,
    /// File in `loadtests/payloads/`.
    pub(crate) payload: String,
    /// Rows that one acknowledged request must have left behind.
    pub(crate) rows_per_tour: u32,
    /// Share of the requests that change the tenant's configuration, 0 … 1; the others write it as the payload has it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) changes: f64,
    /// How long a request without an answer, or with 429, 502, 503 or 504, is repeated under its key, as a client would
    /// that wants its tour; it is not when absent.
    #[serde(default, with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<Duration>,
    /// Adds the first arm once more, to see what differs between two arms that are the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) noise_floor: bool,
    #[serde(default)]
    pub(crate) common: Common,
    #[serde(rename = "arm")]
    pub(crate) arms: Vec<Arm>,
    /// Axes of which each alternative has an arm, also one that the file does not name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) every: Vec<Every>,
    /// Faults of the measurements, in the order in which they are inflicted.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub(crate) faults: Vec<FaultSpec>,
    #[serde(default, rename = "curve", skip_serializing_if = "Vec::is_empty")]
    pub(crate) curves: Vec<CurveSpec>,
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub(crate) claims: Vec<ClaimSpec>,
}

fn one() -> u16 {
    1
}

fn is_one(count: &u16) -> bool {
    *count == 1
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// When a virtual user fetches an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TokenUse {
    /// Never.
    None,
    /// Once a user.
    Once,
    /// In every iteration, outside the published latency.
    PerIteration,
    /// In every iteration, inside the published latency.
    PerIterationTimed,
}

impl std::fmt::Display for TokenUse {
    /// As in the file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Once => "once",
            Self::PerIteration => "per-iteration",
            Self::PerIterationTimed => "per-iteration-timed",
        })
    }
}

/// Topology common to all arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Common {
    /// Preset: `deploy/postgres/NAME.conf`.
    pub(crate) postgres: String,
    /// Emulated round trip of each link.
    #[serde(with = "duration::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) rtt: BTreeMap<LinkName, Duration>,
    /// Service → replicas; one each where nothing is said.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) replicas: BTreeMap<String, u16>,
    /// Service → cores that each of its replicas may use; all there are where nothing is said.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cpus: BTreeMap<String, f64>,
    /// Environment variables of the services.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) settings: BTreeMap<String, String>,
    /// Connections to PostgreSQL that a PgBouncer keeps for a database; 0 is without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pgbouncer: Option<u16>,
    /// Changes of the schema beyond the migrations: names of `migrations/<service>/changes/<name>.sql`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) schema: Vec<String>,
    /// Server → size in MB of a volume that it has for its data alone, so that it can be filled; takes root.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) volumes_mb: BTreeMap<String, u64>,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            postgres: "default".to_owned(),
            rtt: BTreeMap::new(),
            replicas: BTreeMap::new(),
            cpus: BTreeMap::new(),
            settings: BTreeMap::new(),
            pgbouncer: None,
            schema: Vec::new(),
            volumes_mb: BTreeMap::new(),
        }
    }
}

/// One arm: a name and what differs from the common topology.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arm {
    pub(crate) name: String,
    /// Virtual users, where they are not those of the experiment; the next six likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) users: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenants: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hot_share: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arrivals: Option<Arrivals>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<TokenUse>,
    #[serde(default, with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) think: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) postgres: Option<String>,
    /// The preset is reloaded and PostgreSQL not restarted, so that what needs a restart does not take effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reload_only: bool,
    #[serde(default, with = "duration::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) rtt: BTreeMap<LinkName, Duration>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) replicas: BTreeMap<String, u16>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cpus: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) settings: BTreeMap<String, String>,
    /// What the program of a service is told to do to its database before the arm, by service, in order:
    /// `tour-data = ["move-tenant BEHNGT shard_1"]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) act: BTreeMap<String, Vec<String>>,
    /// Variables of one replica alone, as `gateway-2 = { … }`: a mistake to be made on purpose.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) replica_settings: BTreeMap<String, BTreeMap<String, String>>,
    /// HAProxy knows the first gateway alone: a mistake to be made on purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) front_single: bool,
    /// The preflight check that has to stop this arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expect_preflight: Option<CheckId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pgbouncer: Option<u16>,
    /// Changes of the schema beyond the common ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) schema: Vec<String>,
}

impl Experiment {
    /// Finds an experiment by the name of its file in `loadtests/experiments/`, or by path when it ends in `.toml`.
    pub(crate) fn find(name: &str) -> Outcome<Self> {
        if name.ends_with(".toml") {
            return Self::read(Path::new(name));
        }
        let known = names()?;
        if !known.iter().any(|each| each == name) {
            return Err(Failure::Usage(format!(
                "there is no experiment `{name}`; known are: {} (or give the path of a .toml file)",
                known.join(", ")
            )));
        }
        Self::read(&folder().join(format!("{name}.toml")))
    }

    /// Reads and checks one file.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&text, &name).map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))
    }

    /// Reads the copy in a result folder.
    pub(crate) fn of_results(results: &Path) -> Outcome<Self> {
        Self::read(&results.join(FILE))
    }

    /// Parses and checks the text of a file called `name`; the error names the key and what would be right.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, String> {
        let mut experiment: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if experiment.name.is_empty() {
            name.clone_into(&mut experiment.name);
        }
        experiment.add_noise_arm();
        experiment.check()?;
        Ok(experiment)
    }

    /// Writes the copy that makes a result folder complete.
    pub(crate) fn write_copy(&self, results: &Path) -> anyhow::Result<()> {
        let path = results.join(FILE);
        let text = toml::to_string_pretty(self).context("the experiment could not be written as TOML")?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Digest of the copy in a result folder, to tell whether it is what it was.
    pub(crate) fn copy_digest(results: &Path) -> anyhow::Result<String> {
        digest::of_files([results.join(FILE)]).context("cannot read the copy of the experiment")
    }

    /// Time under load over all measurements; bringing up and switching arms come on top.
    pub(crate) fn load_time(&self) -> Duration {
        let measurements = self.rounds * u32::try_from(self.arms.len()).unwrap_or(u32::MAX);
        (self.warm_up + self.duration) * measurements
    }

    /// Changes of the schema that an arm has, in the order in which they are made.
    pub(crate) fn schema_of(&self, arm: &Arm) -> Vec<String> {
        [self.common.schema.clone(), arm.schema.clone()].concat()
    }

    /// The payload's file.
    pub(crate) fn payload_path(&self) -> PathBuf {
        deploy::root().join("loadtests/payloads").join(&self.payload)
    }

    fn arm_names(&self) -> Vec<String> {
        self.arms.iter().map(|arm| format!("`{}`", arm.name)).collect()
    }
}

/// Names of the shipped experiments, sorted.
pub(crate) fn names() -> Outcome<Vec<String>> {
    let folder = folder();
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| Failure::Missing(format!("cannot list {}: {error}", folder.display())))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_suffix(".toml")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}

/// The shipped experiments by name, each with an arm for every alternative that it is about.
pub(crate) fn shipped(descriptions: &Descriptions) -> Outcome<Vec<Experiment>> {
    let complete = |name: &String| {
        let mut experiment = Experiment::find(name)?;
        experiment.add_every(descriptions)?;
        Ok(experiment)
    };
    names()?.iter().map(complete).collect()
}

fn folder() -> PathBuf {
    deploy::root().join("loadtests/experiments")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_experiment_reads_and_survives_its_copy() {
        for name in names().unwrap() {
            let experiment = Experiment::find(&name).unwrap();
            assert_eq!(experiment.name, name);
            let copy = toml::to_string_pretty(&experiment).unwrap();
            assert_eq!(Experiment::parse(&copy, "elsewhere").unwrap(), experiment);
        }
    }

    #[test]
    fn the_demo_loads_for_at_most_ninety_seconds() {
        let demo = Experiment::find("row-lock-demo").unwrap();
        assert!(demo.load_time() <= Duration::from_secs(90), "{:?}", demo.load_time());
    }

    #[test]
    fn an_unknown_experiment_is_wrong_usage_and_names_the_known_ones() {
        let failure = Experiment::find("no-such").unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("row-lock-demo"), "{failure}");
    }
}
