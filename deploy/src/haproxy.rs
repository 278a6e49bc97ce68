//! HAProxy as a child process, in front of the gateways.

mod admin;
mod config;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;
use tokio::net::TcpStream;

use crate::{
    DeployError, Kind,
    ports::local,
    process::{Launch, Stop, run_tool},
};

const NAME: &str = "haproxy";
const CHECK_WITHIN: Duration = Duration::from_secs(10);

/// A gateway to balance over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gateway {
    /// The replica's number, from 1; the server is called `gateway-<number>`.
    pub(crate) number: u16,
    /// Where it serves.
    pub(crate) http: u16,
    /// Where it answers `/readyz`.
    pub(crate) admin: u16,
}

impl Gateway {
    fn server(&self) -> String {
        format!("gateway-{}", self.number)
    }
}

/// The HAProxy of one stack.
#[derive(Clone, Debug)]
pub(crate) struct HaProxy {
    program: PathBuf,
    dir: PathBuf,
    front: u16,
    stats: u16,
}

impl HaProxy {
    /// `dir` is its own folder; `front` is the port clients use, `stats` serves `/metrics` and `/stats`.
    pub(crate) fn new(program: &Path, dir: &Path, front: u16, stats: u16) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            front,
            stats,
        }
    }

    /// Writes the configuration, has HAProxy check it, and says how it is started.
    pub(crate) async fn launch(&self, gateways: &[Gateway]) -> Result<Launch, DeployError> {
        fs::create_dir_all(&self.dir)
            .map_err(|error| DeployError::io(format!("make {}", self.dir.display()), error))?;
        self.write(gateways)?;
        let mut launch = Launch {
            name: NAME.to_owned(),
            component: NAME.to_owned(),
            kind: Kind::Server,
            program: self.program.clone(),
            args: vec!["-c".into(), "-f".into(), "haproxy.cfg".into()],
            env: Vec::new(),
            cwd: self.dir.clone(),
            user: None,
            group: None,
            ports: vec![self.front, self.stats],
            // SIGUSR1 lets requests in flight finish; new connections are refused meanwhile.
            stop: Stop::by(Signal::SIGUSR1, Duration::from_secs(3)).orphaned_by(Signal::SIGTERM),
        };
        run_tool(&launch, CHECK_WITHIN).await?;
        // In the foreground, whatever the configuration says of daemons.
        launch.args[0] = "-db".into();
        Ok(launch)
    }

    /// Writes the configuration it would start with. One that runs is told of a change by [`HaProxy::add`] and
    /// [`HaProxy::remove`]; the file is for its next start.
    pub(crate) fn write(&self, gateways: &[Gateway]) -> Result<(), DeployError> {
        let file = self.dir.join("haproxy.cfg");
        let text = config::render(self.front, self.stats, gateways)?;
        fs::write(&file, text).map_err(|error| DeployError::io(format!("write {}", file.display()), error))
    }

    /// Succeeds when it takes connections.
    pub(crate) async fn listens(&self) -> Result<(), String> {
        let connected = TcpStream::connect(local(self.front)).await;
        connected.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Succeeds when HAProxy runs and its own checks have found every one of `gateways` ready, and knows no other.
    pub(crate) async fn probe(&self, gateways: &[Gateway]) -> Result<(), String> {
        let states = admin::states(&self.dir).await.map_err(|error| format!("{error:#}"))?;
        for gateway in gateways {
            match states.iter().find(|state| state.name == gateway.server()) {
                None => return Err(format!("{} is not known to HAProxy", gateway.server())),
                Some(state) if !state.ready => {
                    return Err(format!("{} is {}", state.name, state.says));
                }
                Some(_) => {}
            }
        }
        match states
            .iter()
            .find(|state| gateways.iter().all(|gateway| gateway.server() != state.name))
        {
            Some(other) => Err(format!("{} is still there", other.name)),
            None => Ok(()),
        }
    }

    /// Requests sent to each gateway since it was started.
    pub(crate) async fn requests(&self) -> Result<BTreeMap<String, u64>, DeployError> {
        let states = admin::states(&self.dir).await;
        let states = states.map_err(|error| DeployError::server("asking HAProxy for its counters", error))?;
        Ok(states.into_iter().map(|state| (state.name, state.requests)).collect())
    }

    /// Takes a gateway into the rotation; it gets requests as soon as its own check succeeds.
    pub(crate) async fn add(&self, gateway: Gateway) -> Result<(), DeployError> {
        admin::add(&self.dir, gateway)
            .await
            .map_err(|error| DeployError::server(format!("adding {} to HAProxy", gateway.server()), error))
    }

    /// Takes a gateway out of the rotation: no new requests, those in flight finish, then it is forgotten.
    /// Only afterwards may its process be ended.
    pub(crate) async fn remove(&self, gateway: Gateway) -> Result<(), DeployError> {
        admin::remove(&self.dir, gateway)
            .await
            .map_err(|error| DeployError::server(format!("removing {} from HAProxy", gateway.server()), error))
    }
}
