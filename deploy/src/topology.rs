//! What shall run, as data.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::DeployError;
use crate::postgres::Preset;
use crate::schema;

/// Base of the standard port layout.
const STANDARD_BASE: u16 = 17400;
/// A new cluster with the databases of the services takes about half of it.
const VOLUME_MIN: u64 = 192_000_000;
/// A longer round trip than this is a typing error, and would outlast every timeout of the services.
const RTT_MAX: Duration = Duration::from_millis(500);

/// PostgreSQL takes a hundred sessions, and others need some of them.
const POOLED: RangeInclusive<u16> = 1..=80;

/// A stack: which services how often, with which settings, on which servers, at which distance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Names the stack; its state is in `.rowlock/<name>`. Lower case letters, digits and dashes.
    pub name: String,
    /// Where its ports are.
    pub port_base: PortBase,
    /// Replicas by service; empty for the servers alone.
    pub replicas: BTreeMap<String, u16>,
    /// Variables for the service whose prefix they carry: `TOUR_DATA_TOUCH` → `update-last`.
    pub settings: BTreeMap<String, String>,
    /// Variables for one replica alone, by replica: `gateway-2` → `GATEWAY_RATE_LIMIT` → `60`. Replicas of one service that
    /// run under different environments are a published mistake, to be made on purpose.
    #[serde(default)]
    pub replica_settings: BTreeMap<String, BTreeMap<String, String>>,
    /// Tenants that there is a client for, each with its own: see [`Stack::load_clients`](crate::Stack::load_clients).
    #[serde(default = "one")]
    pub tenants: u16,
    /// What the program of a service is told to do to the database that it finds, by service, each as it would be typed:
    /// `tour-data` → `move-tenant BEHNGT shard_1`. It is done once, to the snapshot that the database is restored from.
    #[serde(default)]
    pub act: BTreeMap<String, Vec<String>>,
    /// HAProxy's configuration has a line for the first gateway alone, however many there are: a published mistake, to be
    /// made on purpose.
    #[serde(default)]
    pub front_single: bool,
    /// Cores that each replica of a service may use, by service; takes control groups that this process may change. A
    /// service that is not named may use all there are.
    #[serde(default)]
    pub cpus: BTreeMap<String, f64>,
    /// The PostgreSQL preset: a file name in `deploy/postgres` without `.conf`.
    pub postgres_preset: String,
    /// The preset is applied to a running server by a reload alone: what needs a restart stays as preset `default` has it.
    /// A published mistake, to be made on purpose.
    #[serde(default)]
    pub postgres_reload_only: bool,
    /// Connections to PostgreSQL that a PgBouncer before it keeps for a database, in transaction pooling; without one there
    /// is no PgBouncer. The services that can do without named statements go through it, the others past it.
    #[serde(default)]
    pub pgbouncer: Option<u16>,
    /// Changes of the schema beyond the migrations, by name and in this order: `migrations/<service>/changes/<name>.sql`.
    #[serde(default)]
    pub schema: Vec<String>,
    /// Emulated round trip by link; a link that is not named is a direct connection.
    pub rtt: BTreeMap<LinkName, Duration>,
    /// Size in bytes of the volume that a server has for its data alone, by server (`postgres`); takes root. A server that
    /// is not named uses the disk that the stack's state is on.
    #[serde(default)]
    pub volumes: BTreeMap<String, u64>,
}

/// Where the ports of a stack come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortBase {
    /// The layout starts at this port.
    Fixed(u16),
    /// The first block of free ports that is found; for tests, and stacks beside one another.
    Free,
}

/// A connection that can be given a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkName {
    /// Services to PostgreSQL.
    Db,
    /// Services to Redis.
    Redis,
    /// Services to RabbitMQ.
    Broker,
}

impl LinkName {
    /// Every link there is.
    pub const ALL: [Self; 3] = [Self::Db, Self::Redis, Self::Broker];

    /// The name in options and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Db => "db",
            Self::Redis => "redis",
            Self::Broker => "broker",
        }
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LinkName {
    type Err = DeployError;

    fn from_str(text: &str) -> Result<Self, DeployError> {
        Self::ALL.into_iter().find(|link| link.as_str() == text).ok_or_else(|| {
            DeployError::Usage(format!(
                "there is no link `{text}`; links are db, redis and broker (--rtt db=1ms)"
            ))
        })
    }
}

impl Topology {
    /// One replica of each service, the default preset, no emulated distance, the standard ports.
    pub fn standard(name: impl Into<String>) -> Self {
        let replicas = ["gateway", "tour-data", "user"].map(|service| (service.to_owned(), 1));
        Self {
            replicas: replicas.into(),
            ..Self::servers_only(name)
        }
    }

    /// PostgreSQL, Redis and RabbitMQ alone.
    pub fn servers_only(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            port_base: PortBase::Fixed(STANDARD_BASE),
            replicas: BTreeMap::new(),
            settings: BTreeMap::new(),
            replica_settings: BTreeMap::new(),
            tenants: 1,
            act: BTreeMap::new(),
            front_single: false,
            cpus: BTreeMap::new(),
            postgres_preset: Preset::DEFAULT.to_owned(),
            postgres_reload_only: false,
            pgbouncer: None,
            schema: Vec::new(),
            rtt: BTreeMap::new(),
            volumes: BTreeMap::new(),
        }
    }

    /// The settings of one service: those with its prefix.
    pub(crate) fn settings_of<'a>(&'a self, service: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let prefix = prefix_of(service);
        self.settings
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .filter(move |(k, _)| k.starts_with(&prefix))
    }

    /// What one replica is told differently from the others of its service.
    pub(crate) fn settings_of_replica<'a>(
        &'a self,
        replica: &str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let own = self.replica_settings.get(replica).into_iter().flatten();
        own.map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Refuses what can be seen to be wrong before anything is started.
    pub(crate) fn check(&self) -> Result<(), DeployError> {
        check_name(&self.name)?;
        for (service, replicas) in &self.replicas {
            check_replicas(service, *replicas)?;
        }
        let orphan = self.settings.keys().find(|setting| {
            !self
                .replicas
                .keys()
                .any(|service| setting.starts_with(&prefix_of(service)))
        });
        if let Some(setting) = orphan {
            let services: Vec<&str> = self.replicas.keys().map(String::as_str).collect();
            let services = services.join(", ");
            return Err(DeployError::Usage(format!(
                "the setting {setting} has the prefix of no service of this stack ({services})"
            )));
        }
        self.check_replica_settings()?;
        if self.tenants == 0 {
            return Err(DeployError::Usage(
                "a stack for no tenant is not possible: at least one".to_owned(),
            ));
        }
        if let Some(service) = self.act.keys().find(|service| !self.replicas.contains_key(*service)) {
            return Err(DeployError::Usage(format!(
                "there is no service `{service}` in this stack to be told what to do"
            )));
        }
        for (service, cores) in &self.cpus {
            if !self.replicas.contains_key(service) {
                return Err(DeployError::Usage(format!(
                    "there is no service `{service}` to limit the CPU of"
                )));
            }
            crate::cpus::check(service, *cores)?;
        }
        for (server, bytes) in &self.volumes {
            check_volume(server, *bytes)?;
        }
        if let Some(connections) = self.pgbouncer.filter(|connections| !POOLED.contains(connections)) {
            let (least, most) = (POOLED.start(), POOLED.end());
            return Err(DeployError::Usage(format!(
                "a PgBouncer with {connections} connections to PostgreSQL is not possible: {least} to {most}"
            )));
        }
        self.check_schema()?;
        if let Some((link, rtt)) = self.rtt.iter().find(|(_, rtt)| **rtt > RTT_MAX) {
            return Err(DeployError::Usage(format!(
                "a round trip of {rtt:?} on the link {link} is too long; at most {RTT_MAX:?}"
            )));
        }
        Ok(())
    }
}

impl Topology {
    fn check_schema(&self) -> Result<(), DeployError> {
        let changes = schema::read(&self.schema)?;
        let stray = changes
            .iter()
            .find(|change| !self.replicas.contains_key(&change.service));
        stray.map_or(Ok(()), |change| {
            Err(DeployError::Usage(format!(
                "the schema change `{}` is for the database of {}, which is no service of this stack",
                change.name, change.service
            )))
        })
    }

    fn check_replica_settings(&self) -> Result<(), DeployError> {
        for (replica, settings) in &self.replica_settings {
            let service = self.replicas.iter().find(|(service, replicas)| {
                let number = replica
                    .strip_prefix(service.as_str())
                    .and_then(|rest| rest.strip_prefix('-'));
                let number = number.and_then(|number| number.parse::<u16>().ok());
                number.is_some_and(|number| (1..=**replicas).contains(&number))
            });
            let Some((service, _)) = service else {
                return Err(DeployError::Usage(format!(
                    "there is no replica `{replica}` in this stack; replicas are called SERVICE-NUMBER, from 1"
                )));
            };
            if let Some(setting) = settings
                .keys()
                .find(|setting| !setting.starts_with(&prefix_of(service)))
            {
                return Err(DeployError::Usage(format!("{setting} is no setting of {replica}")));
            }
        }
        Ok(())
    }
}

/// Of a topology that was written down before there was more than one.
fn one() -> u16 {
    1
}

/// A name is a folder, part of a broker's node name, and typed by hand.
pub(crate) fn check_name(name: &str) -> Result<(), DeployError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=32).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('-') {
        return Ok(());
    }
    Err(DeployError::Usage(format!(
        "`{name}` cannot name a stack: 1 to 32 lower case letters, digits and dashes, for example `default`"
    )))
}

pub(crate) fn check_replicas(service: &str, replicas: u16) -> Result<(), DeployError> {
    if (1..=crate::ports::REPLICAS_MAX).contains(&replicas) {
        return Ok(());
    }
    let most = crate::ports::REPLICAS_MAX;
    Err(DeployError::Usage(format!(
        "{service}={replicas} is out of range: 1 to {most} replicas of a service"
    )))
}

fn check_volume(server: &str, bytes: u64) -> Result<(), DeployError> {
    if server != "postgres" {
        return Err(DeployError::Usage(format!(
            "`{server}` cannot have a volume of its own; postgres can"
        )));
    }
    if bytes < VOLUME_MIN {
        return Err(DeployError::Usage(format!(
            "a volume of {bytes} bytes is too small for an empty cluster and its log; at least {VOLUME_MIN}"
        )));
    }
    Ok(())
}

/// `tour-data` → `TOUR_DATA_`.
pub(crate) fn prefix_of(service: &str) -> String {
    format!("{}_", service.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_belongs_to_no_service_is_refused_by_name() {
        let mut topology = Topology::standard("t");
        topology.settings.insert("TOUR_TOUCH".into(), "none".into());
        let error = topology.check().unwrap_err();
        assert!(
            error.to_string().contains("TOUR_TOUCH") && error.exit_code() == 2,
            "{error}"
        );
    }

    #[test]
    fn a_service_gets_the_settings_with_its_prefix_only() {
        let mut topology = Topology::standard("t");
        topology.settings.insert("TOUR_DATA_TOUCH".into(), "none".into());
        topology.settings.insert("USER_AUDIENCE".into(), "a".into());
        topology.check().unwrap();
        assert_eq!(
            topology.settings_of("tour-data").collect::<Vec<_>>(),
            [("TOUR_DATA_TOUCH", "none")]
        );
    }

    #[test]
    fn what_is_meant_for_one_replica_names_one_that_there_is() {
        let mut topology = Topology::standard("t");
        topology.replicas.insert("gateway".into(), 2);
        let own = BTreeMap::from([("GATEWAY_RATE_LIMIT".to_owned(), "60".to_owned())]);
        topology.replica_settings.insert("gateway-2".into(), own.clone());
        topology.check().unwrap();
        assert_eq!(topology.settings_of_replica("gateway-1").count(), 0);
        assert_eq!(
            topology.settings_of_replica("gateway-2").collect::<Vec<_>>(),
            [("GATEWAY_RATE_LIMIT", "60")]
        );
        for replica in ["gateway-3", "gateway", "gateway-0", "user-1"] {
            topology.replica_settings = [(replica.to_owned(), own.clone())].into();
            let error = topology.check().unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(replica), "{error}");
        }
    }

    #[test]
    fn nobody_to_work_for_and_nobody_to_be_told_are_refused() {
        let mut topology = Topology::standard("t");
        topology.tenants = 0;
        assert!(topology.check().unwrap_err().to_string().contains("at least one"));
        topology.tenants = 1;
        topology.act.insert("tours".into(), vec!["migrate".into()]);
        let error = topology.check().unwrap_err();
        assert!(
            error.exit_code() == 2 && error.to_string().contains("`tours`"),
            "{error}"
        );
    }

    #[test]
    fn a_limit_that_is_none_is_refused() {
        for (service, cores) in [
            ("tour-data", 0.0),
            ("tour-data", 1000.0),
            ("tour-data", f64::NAN),
            ("tours", 0.5),
        ] {
            let mut topology = Topology::standard("t");
            topology.cpus.insert(service.into(), cores);
            assert_eq!(topology.check().unwrap_err().exit_code(), 2, "{service} {cores}");
        }
    }

    #[test]
    fn a_schema_change_is_one_that_there_is_for_a_service_that_there_is() {
        let mut topology = Topology::standard("t");
        topology.schema.push("tour-foreign-key".into());
        topology.check().unwrap();
        topology.replicas.remove("tour-data");
        let error = topology.check().unwrap_err();
        assert!(
            error.exit_code() == 2 && error.to_string().contains("tour-data"),
            "{error}"
        );
        topology.schema = vec!["tour-index".into()];
        let error = topology.check().unwrap_err();
        assert!(
            error.exit_code() == 2 && error.to_string().contains("`tour-index`"),
            "{error}"
        );
    }

    #[test]
    fn names_that_would_leave_the_state_folder_are_refused() {
        for name in ["", "..", "a/b", "-x", "Upper"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
