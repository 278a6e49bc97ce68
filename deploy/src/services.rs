//! The services: what they say of themselves, the environment a replica gets, and when it is ready.
//!
//! Nothing here knows a service by name. `SERVICE --describe` lists the variables it takes; the ones the stack can fill
//! (addresses, URLs, files, secrets) are filled, so a new service needs no change here.

mod database;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::DeployError;
use crate::ports::{ReplicaPorts, local};
use crate::process::{Kind, Launch, Process, Spawner, Stop, run_tool, sibling};
use crate::state::replace;
use crate::topology::{Topology, prefix_of};

const DESCRIBE_WITHIN: Duration = Duration::from_secs(10);
const READY_WITHIN: Duration = Duration::from_secs(45);
/// A service drains for 10 s by default; the rest is for flushing its telemetry.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// The OAuth client as which services ask the issuer about tokens.
const RESOURCE_SERVER: &str = "rowlock-gateway";

/// An OAuth client the stack was given; its tokens carry the scopes `tours:read` and `tours:write`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Client {
    /// `client_id`.
    pub id: String,
    /// `client_secret`.
    pub secret: String,
    /// Key of the tenant its tokens are for.
    pub tenant: String,
}

/// What a service says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    service: String,
    program: PathBuf,
    json: Value,
}

/// What the stack has to offer to a service.
#[derive(Debug)]
pub(crate) struct Wiring {
    /// URL by database, over the link if there is one.
    pub(crate) databases: BTreeMap<String, String>,
    /// URL by database through PgBouncer, where there is one.
    pub(crate) pooled: BTreeMap<String, String>,
    pub(crate) redis: String,
    pub(crate) amqp: String,
    /// URL of HAProxy: where tokens are issued.
    pub(crate) issuer: String,
    pub(crate) endpoints_file: PathBuf,
    pub(crate) clients_file: PathBuf,
    pub(crate) users_file: PathBuf,
    /// Secret of the client that may ask about tokens.
    pub(crate) introspection_secret: String,
    pub(crate) secret_pepper: String,
    pub(crate) key_encryption_secret: String,
    /// Folder of the control group by replica, for those whose CPU is limited.
    pub(crate) groups: BTreeMap<String, PathBuf>,
}

/// One running replica.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    /// Counted from 1.
    pub(crate) number: u16,
    pub(crate) ports: ReplicaPorts,
    pub(crate) process: Process,
}

impl Description {
    /// Asks the service's program, which must have been built.
    pub(crate) async fn ask(service: &str) -> Result<Self, DeployError> {
        let program = sibling(service)?;
        let tool = Launch::tool(format!("{service} --describe"), program.clone(), &["--describe"]);
        let output = run_tool(&tool, DESCRIBE_WITHIN).await?;
        let json = serde_json::from_slice(&output)
            .map_err(|error| DeployError::server(format!("read what {service} --describe printed"), error))?;
        Ok(Self {
            service: service.to_owned(),
            program,
            json,
        })
    }

    pub(crate) fn json(&self) -> &Value {
        &self.json
    }

    /// The database it owns.
    pub(crate) fn database(&self) -> Option<&str> {
        self.json["database"].as_str()
    }

    /// The relation of its database whose row everybody wants.
    pub(crate) fn hot_relation(&self) -> Option<&str> {
        self.json["hot"]["relation"].as_str()
    }

    /// True when it takes a file of endpoints, that is, when it balances over other services.
    pub(crate) fn balances(&self) -> bool {
        self.takes("ENDPOINTS_FILE")
    }

    /// True when it has a variable of this name after its prefix.
    pub(crate) fn takes(&self, field: &str) -> bool {
        self.variables()
            .contains(format!("{}{field}", prefix_of(&self.service)).as_str())
    }

    fn variables(&self) -> BTreeSet<&str> {
        let fields = self.json["config"].as_array().into_iter().flatten();
        fields.filter_map(|field| field["name"].as_str()).collect()
    }

    /// Refuses settings the service does not take, and those the stack itself decides.
    pub(crate) fn check_settings(&self, topology: &Topology) -> Result<(), DeployError> {
        let known = self.variables();
        let prefix = prefix_of(&self.service);
        let replicas = topology.replicas.get(&self.service).copied().unwrap_or_default();
        let own = (1..=replicas).flat_map(|number| topology.settings_of_replica(&format!("{}-{number}", self.service)));
        for (name, value) in topology.settings_of(&self.service).chain(own) {
            if !known.contains(name) {
                let known: Vec<&str> = known.into_iter().collect();
                let known = known.join(", ");
                let service = &self.service;
                return Err(DeployError::Usage(format!(
                    "{service} has no setting {name}; it has {known}"
                )));
            }
            let field = &name[prefix.len()..];
            if WIRED.contains(&field) {
                return Err(DeployError::Usage(format!(
                    "the stack itself sets {name}; it cannot be a setting"
                )));
            }
            if field == PREPARED && value != WITHOUT_NAMES && topology.pgbouncer.is_some() {
                return Err(DeployError::Usage(format!(
                    "{name}={value} does not go with a PgBouncer: it lends a session of PostgreSQL for a transaction, and a \
                     statement with a name stays behind in it for others to meet"
                )));
            }
        }
        Ok(())
    }

    /// Starts one replica.
    pub(crate) fn start(
        &self,
        number: u16,
        ports: ReplicaPorts,
        topology: &Topology,
        wiring: &Wiring,
        cwd: &Path,
        spawner: &Spawner,
    ) -> Result<Replica, DeployError> {
        let name = format!("{}-{number}", self.service);
        let mut env = self.environment(|field| match field {
            "HTTP_ADDR" => Some(local(ports.http).to_string()),
            "ADMIN_ADDR" => Some(local(ports.admin).to_string()),
            "INSTANCE_ID" => Some(name.clone()),
            "DB_URL" => self.database_url(wiring).cloned(),
            PREPARED if !wiring.pooled.is_empty() => Some(WITHOUT_NAMES.to_owned()),
            _ => wiring.value(field),
        });
        // Of two values of one variable the later one counts.
        let settings = topology
            .settings_of(&self.service)
            .chain(topology.settings_of_replica(&name));
        env.extend(settings.map(|(name, value)| (name.into(), value.into())));
        let launch = Launch {
            component: self.service.clone(),
            kind: Kind::Service,
            program: self.program.clone(),
            args: Vec::new(),
            env,
            cwd: cwd.to_owned(),
            user: None,
            group: wiring.groups.get(&name).cloned(),
            ports: vec![ports.http, ports.admin],
            stop: Stop::by(Signal::SIGTERM, STOP_WITHIN),
            name,
        };
        Ok(Replica {
            number,
            ports,
            process: spawner.spawn(&launch)?,
        })
    }

    /// True when it can do without named statements: those belong to a session, and through PgBouncer a client has none of
    /// its own.
    pub(crate) fn can_be_pooled(&self) -> bool {
        self.takes(PREPARED)
    }

    /// Through PgBouncer if there is one and the service can do without named statements.
    fn database_url<'a>(&self, wiring: &'a Wiring) -> Option<&'a String> {
        let pooled = Some(&wiring.pooled).filter(|pooled| self.can_be_pooled() && !pooled.is_empty());
        pooled.unwrap_or(&wiring.databases).get(self.database()?)
    }

    fn environment<F>(&self, value: F) -> Vec<(std::ffi::OsString, std::ffi::OsString)>
    where
        F: Fn(&str) -> Option<String>,
    {
        let prefix = prefix_of(&self.service);
        let known = self.variables();
        let filled = known
            .into_iter()
            .filter_map(|name| Some((name, value(name.strip_prefix(&prefix)?)?)));
        filled.map(|(name, value)| (name.into(), value.into())).collect()
    }
}

/// The field that says whether statements have names. Who has it can do without.
const PREPARED: &str = "DB_PREPARED";
const WITHOUT_NAMES: &str = "false";

/// Fields the stack fills; the rest of a service's configuration is its default or a setting of the topology.
const WIRED: [&str; 18] = [
    "HTTP_ADDR",
    "ADMIN_ADDR",
    "INSTANCE_ID",
    "DB_URL",
    "REDIS_URL",
    "AMQP_URL",
    "ISSUER",
    "AUTH_ISSUER",
    "AUTH_JWKS_URL",
    "AUTH_INTROSPECTION_URL",
    "AUTH_CLIENT_ID",
    "AUTH_CLIENT_SECRET",
    "ENDPOINTS_FILE",
    "CLIENTS_FILE",
    "USERS_FILE",
    "SECRET_PEPPER",
    "TRUSTED_PROXIES",
    "KEY_ENCRYPTION_SECRET",
];

impl Wiring {
    fn value(&self, field: &str) -> Option<String> {
        Some(match field {
            "REDIS_URL" => self.redis.clone(),
            "AMQP_URL" => self.amqp.clone(),
            "ISSUER" | "AUTH_ISSUER" => self.issuer.clone(),
            "AUTH_JWKS_URL" => format!("{}/oauth2/jwks", self.issuer),
            "AUTH_INTROSPECTION_URL" => format!("{}/oauth2/introspect", self.issuer),
            "AUTH_CLIENT_ID" => RESOURCE_SERVER.to_owned(),
            "AUTH_CLIENT_SECRET" => self.introspection_secret.clone(),
            "ENDPOINTS_FILE" => self.endpoints_file.display().to_string(),
            "CLIENTS_FILE" => self.clients_file.display().to_string(),
            "USERS_FILE" => self.users_file.display().to_string(),
            // HAProxy, for whoever counts by the client's address.
            "TRUSTED_PROXIES" => "1".to_owned(),
            "SECRET_PEPPER" => self.secret_pepper.clone(),
            "KEY_ENCRYPTION_SECRET" => self.key_encryption_secret.clone(),
            _ => return None,
        })
    }
}

impl Replica {
    /// Name of its process.
    pub(crate) fn name(&self, service: &str) -> String {
        format!("{service}-{}", self.number)
    }

    /// Waits until the replica can serve and all it depends on is there, what it can do without included: a measurement
    /// must not begin on a stack that is still coming up.
    pub(crate) async fn ready(&self, http: &reqwest::Client) -> Result<(), DeployError> {
        let url = format!("http://{}/readyz", local(self.ports.admin));
        self.process.ready(READY_WITHIN, || ready_by(http, &url)).await
    }
}

/// Waits until a service's process answers that it lives, whatever else is away.
pub(crate) async fn alive(process: &Process, http: &reqwest::Client) -> Result<(), DeployError> {
    let admin = process.info().ports.get(1).copied().unwrap_or_default();
    let url = format!("http://{}/livez", local(admin));
    let ask = || async {
        let answer = http
            .get(&url)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status);
        answer
            .map(|_| ())
            .map_err(|error| format!("{:#}", anyhow::Error::new(error)))
    };
    process.ready(READY_WITHIN, ask).await
}

async fn ready_by(http: &reqwest::Client, url: &str) -> Result<(), String> {
    let answer = http
        .get(url)
        .send()
        .await
        .map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
    let status = answer.status();
    let body = answer
        .text()
        .await
        .map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
    let json: Value = serde_json::from_str(&body).unwrap_or_default();
    let dependencies = json["dependencies"].as_array().into_iter().flatten();
    let away: Vec<String> = dependencies
        .filter(|dependency| dependency["ok"] != true)
        .map(|dependency| format!("{}: {}", dependency["name"], dependency["error"]))
        .collect();
    if status.is_success() && away.is_empty() {
        return Ok(());
    }
    Err(format!(
        "/readyz answered {status} ({})",
        if away.is_empty() { body } else { away.join("; ") }
    ))
}

/// Writes where the replicas of each service are, for those that balance over them.
pub(crate) fn write_endpoints(path: &Path, services: &BTreeMap<String, Vec<ReplicaPorts>>) -> Result<(), DeployError> {
    let services: BTreeMap<&str, Vec<Value>> = services
        .iter()
        .map(|(service, replicas)| {
            let at = |ports: &ReplicaPorts| json!({"http": local(ports.http), "admin": local(ports.admin)});
            (service.as_str(), replicas.iter().map(at).collect())
        })
        .collect();
    replace(path, json!({ "services": services }).to_string().as_bytes())
}

/// Writes the OAuth clients that the issuer is to know. For each of `users` it is to know a user as well, of the same name,
/// password and tenant, for scripts that use the password grant; a password takes far longer to hash than a secret.
pub(crate) fn write_clients<'a>(
    wiring: &Wiring,
    clients: impl Iterator<Item = &'a Client>,
    users: &[Client],
) -> Result<(), DeployError> {
    const SCOPES: [&str; 2] = ["tours:read", "tours:write"];
    let resource_server = json!({
        "client_id": RESOURCE_SERVER,
        "client_secret": wiring.introspection_secret,
        "scopes": [],
        "introspect": true,
    });
    let entries = clients.map(|client| {
        json!({
            "client_id": client.id,
            "client_secret": client.secret,
            "tenant": client.tenant,
            "scopes": SCOPES,
            "grants": ["client_credentials", "password", "refresh_token"],
        })
    });
    let entries: Vec<Value> = entries.chain([resource_server]).collect();
    replace(&wiring.clients_file, Value::from(entries).to_string().as_bytes())?;
    let users = users.iter().map(
        |client| json!({"username": client.id, "password": client.secret, "tenant": client.tenant, "scopes": SCOPES}),
    );
    replace(&wiring.users_file, Value::from_iter(users).to_string().as_bytes())
}

/// Fetches a token the way a client does, through the front.
pub(crate) async fn fetch_token(http: &reqwest::Client, front: &str, client: &Client) -> Result<(), String> {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", &client.id),
        ("client_secret", &client.secret),
    ];
    let request = http.post(format!("{front}/oauth2/token")).form(&form);
    let answer = request
        .send()
        .await
        .map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
    let status = answer.status();
    let body = answer
        .text()
        .await
        .map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("{front}/oauth2/token answered {status}: {body}"))
    }
}
