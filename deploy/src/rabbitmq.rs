//! RabbitMQ as a child process: one node that needs no epmd, no plugin and no file outside its own folder.

mod boot;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use lapin::{Connection, ConnectionProperties};
use nix::sys::signal::Signal;
use tokio::{io::AsyncWriteExt, net::TcpStream, process::Command, time::timeout};

use crate::{
    DeployError, Kind,
    ports::{Port, Ports, local},
    process::{Launch, Stop},
    secrets::{Secrets, write_private},
    setup::Binaries,
};

const NAME: &str = "rabbitmq";
const USER: &str = "rowlock";
/// Constant, because it names the database's folder too, and nodes of different stacks never meet.
const NODE: &str = "rowlock@localhost";
const PROBE_WITHIN: Duration = Duration::from_secs(3);
const PURGE_WITHIN: Duration = Duration::from_secs(20);

/// Purges every queue there is and counts what is left. AMQP has no way to ask which queues there are, and the
/// management plugin that has would cost memory and a longer start.
const PURGE_ALL: &str = "Queues = rabbit_amqqueue:list(), \
    [catch rabbit_amqqueue:purge(Queue) || Queue <- Queues], \
    lists:sum([Left || Queue <- Queues, {ok, Left, _} <- [catch rabbit_amqqueue:stat(Queue)]]).\n";

/// The RabbitMQ server of one stack.
#[derive(Clone, Debug)]
pub(crate) struct RabbitMq {
    program: PathBuf,
    erl_call: PathBuf,
    dir: PathBuf,
    port: u16,
    distribution: u16,
    password: String,
    cookie: String,
}

impl RabbitMq {
    /// `stack` is the stack's state folder, in which it has its own.
    pub(crate) fn new(
        programs: &Binaries,
        stack: &Path,
        ports: &Ports,
        secrets: &mut Secrets,
    ) -> Result<Self, DeployError> {
        Ok(Self {
            program: programs.rabbitmq.clone(),
            erl_call: programs.erl_call.clone(),
            dir: stack.join("rabbitmq"),
            port: ports.of(Port::Amqp),
            distribution: ports.of(Port::ErlangDistribution),
            password: secrets.get("rabbitmq")?,
            cookie: secrets.get("erlang-cookie")?,
        })
    }

    /// Writes the configuration and says how the server is started.
    pub(crate) fn launch(&self) -> Result<Launch, DeployError> {
        let home = self.home();
        fs::create_dir_all(&home).map_err(|error| DeployError::io(format!("make {}", home.display()), error))?;
        write_private(&home.join(".erlang.cookie"), self.cookie.as_bytes())?;
        write_private(&self.config_file(), self.config().as_bytes())?;
        let plugins = self.dir.join("enabled_plugins");
        write_private(&plugins, b"[].\n")?;
        Ok(Launch {
            name: NAME.to_owned(),
            component: NAME.to_owned(),
            kind: Kind::Server,
            program: self.program.clone(),
            args: Vec::new(),
            env: self.environment(&plugins),
            cwd: self.dir.clone(),
            user: None,
            group: None,
            ports: vec![self.port, self.distribution],
            stop: Stop::by(Signal::SIGTERM, Duration::from_secs(20)),
        })
    }

    /// Where clients connect, directly; another port gives the same over a link.
    pub(crate) fn url(&self, port: Option<u16>) -> String {
        let port = port.unwrap_or(self.port);
        format!("amqp://{USER}:{}@127.0.0.1:{port}/%2f", self.password)
    }

    /// Opens an AMQP connection and closes it again.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        let handshake = async {
            // lapin retries a refused connection for long; asking the port first keeps the answer quick.
            drop(TcpStream::connect(local(self.port)).await?);
            let connection = Connection::connect(&self.url(None), ConnectionProperties::default()).await?;
            connection.close(200, "ready".into()).await?;
            anyhow::Ok(())
        };
        match timeout(PROBE_WITHIN, handshake).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err(format!(
                "the AMQP handshake took longer than {} s",
                PROBE_WITHIN.as_secs()
            )),
        }
    }

    /// Empties every queue, and makes sure that no message is left in one.
    pub(crate) async fn purge(&self) -> Result<(), DeployError> {
        let purge = async {
            match self.evaluate(PURGE_ALL).await?.trim() {
                "{ok, 0}" => Ok(()),
                answer => bail!("purging its queues left messages: {answer}"),
            }
        };
        timeout(PURGE_WITHIN, purge)
            .await
            .unwrap_or_else(|_| Err(anyhow::anyhow!("purging took longer than {} s", PURGE_WITHIN.as_secs())))
            .map_err(|error| DeployError::server("emptying the queues of RabbitMQ", error))
    }

    /// Raises the limit of free space above what any disk has, so that the broker's disk alarm goes off and it takes no
    /// more messages; gives the limit there was, in bytes.
    pub(crate) async fn leave_no_space(&self) -> Result<u64, DeployError> {
        let before = self.free_space_limit().await?;
        self.limit_space(u64::MAX >> 1).await?;
        Ok(before)
    }

    /// Sets the limit of free space, in bytes, and makes sure that the broker has looked at it.
    pub(crate) async fn limit_space(&self, bytes: u64) -> Result<(), DeployError> {
        self.ask(&format!(
            "rabbit_disk_monitor:set_disk_free_limit({bytes}), rabbit_disk_monitor:get_disk_free_limit().\n"
        ))
        .await?;
        let limit = self.free_space_limit().await?;
        if limit == bytes {
            return Ok(());
        }
        let reason = anyhow::anyhow!("the limit is {limit} bytes and should be {bytes}");
        Err(DeployError::server("setting the disk limit of RabbitMQ", reason))
    }

    async fn free_space_limit(&self) -> Result<u64, DeployError> {
        let answer = self.ask("rabbit_disk_monitor:get_disk_free_limit().\n").await?;
        let number = answer
            .trim()
            .strip_prefix("{ok, ")
            .and_then(|rest| rest.strip_suffix('}'));
        number.and_then(|number| number.parse().ok()).ok_or_else(|| {
            let reason = anyhow::anyhow!("its disk monitor answered {answer}");
            DeployError::server("asking RabbitMQ for its disk limit", reason)
        })
    }

    async fn ask(&self, expression: &str) -> Result<String, DeployError> {
        timeout(PURGE_WITHIN, self.evaluate(expression))
            .await
            .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {} s", PURGE_WITHIN.as_secs())))
            .map_err(|error| DeployError::server("asking RabbitMQ", error))
    }

    /// Has the node evaluate an expression, over its distribution port and with the cookie from its home.
    async fn evaluate(&self, expression: &str) -> anyhow::Result<String> {
        let mut child = Command::new(&self.erl_call)
            .args(["-address", &local(self.distribution).to_string(), "-e"])
            .env_clear()
            .env("HOME", self.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", self.erl_call.display()))?;
        let mut stdin = child.stdin.take().context("erl_call without input")?;
        stdin.write_all(expression.as_bytes()).await?;
        drop(stdin);
        let output = child.wait_with_output().await?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!(
                "erl_call ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&said).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// In Erlang's own notation: the `.conf` format would first be translated by a schema compiler at every start.
    fn config_file(&self) -> PathBuf {
        self.dir.join("rabbitmq.config")
    }

    fn config(&self) -> String {
        let (port, password) = (self.port, &self.password);
        // The memory limit is the broker's own flow control: far above what the lab queues, far below the machine.
        format!(
            "[{{rabbit, [\n\
             \x20 {{tcp_listeners, [{{\"127.0.0.1\", {port}}}]}},\n\
             \x20 {{default_user, <<\"{USER}\">>}},\n\
             \x20 {{default_pass, <<\"{password}\">>}},\n\
             \x20 {{vm_memory_high_watermark, {{absolute, \"512MiB\"}}}},\n\
             \x20 {{num_tcp_acceptors, 2}}\n\
             ]}}].\n"
        )
    }

    fn environment(&self, plugins: &Path) -> Vec<(OsString, OsString)> {
        // `-erl_epmd_port` fixes the distribution port without asking an epmd, and `-sname` starts the distribution with
        // the virtual machine: otherwise the broker would start a second one just to have an epmd started.
        // The schedulers sleep when they have nothing to do: by default they spin first, on cores that all servers share.
        let erl = format!(
            "+sbwt none +sbwtdcpu none +sbwtdio none -start_epmd false -erl_epmd_port {} -sname {NODE} -kernel inet_dist_use_interface {{127,0,0,1}}",
            self.distribution
        );
        let variables: [(&str, OsString); 14] = [
            ("HOME", self.home().into()),
            ("LANG", "C.UTF-8".into()),
            ("RABBITMQ_NODENAME", NODE.into()),
            ("RABBITMQ_CONFIG_FILE", self.config_file().into()),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", plugins.into()),
            ("RABBITMQ_MNESIA_BASE", self.dir.join("mnesia").into()),
            ("RABBITMQ_LOG_BASE", self.dir.clone().into()),
            // To the standard output, which is the process's log.
            ("RABBITMQ_LOGS", "-".into()),
            // The machine's own /etc/rabbitmq/rabbitmq-env.conf is for the machine's own broker.
            ("RABBITMQ_CONF_ENV_FILE", "/dev/null".into()),
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", erl.into()),
            // The tables for a million processes and five million atoms are 13 MB that a lab's broker never fills.
            ("RABBITMQ_MAX_NUMBER_OF_PROCESSES", "65536".into()),
            ("RABBITMQ_MAX_NUMBER_OF_ATOMS", "1048576".into()),
            // Has the start script become the virtual machine instead of waiting for it: SIGTERM then reaches what has to
            // handle it, and the broker is down in 1 s instead of 6.
            ("RUNNING_UNDER_SYSTEMD", "true".into()),
            ("ERL_AFLAGS", boot::flags().into()),
        ];
        variables
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect()
    }
}
