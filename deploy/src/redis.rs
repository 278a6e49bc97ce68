//! Redis as a child process: a cache that keeps nothing on disk.

#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::{
    DeployError, Kind,
    ports::local,
    process::{Launch, Stop},
    secrets::write_private,
};

const NAME: &str = "redis";
const ASK_WITHIN: Duration = Duration::from_secs(5);

/// The Redis server of one stack.
#[derive(Clone, Debug)]
pub(crate) struct Redis {
    program: PathBuf,
    dir: PathBuf,
    port: u16,
    password: String,
}

impl Redis {
    /// `dir` is its own folder; `program` is `redis-server`.
    pub(crate) fn new(program: &Path, dir: &Path, port: u16, password: String) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            port,
            password,
        }
    }

    /// Writes the configuration and says how the server is started.
    pub(crate) fn launch(&self) -> Result<Launch, DeployError> {
        fs::create_dir_all(&self.dir)
            .map_err(|error| DeployError::io(format!("make {}", self.dir.display()), error))?;
        let conf = self.dir.join("redis.conf");
        // No persistence: the cache is rebuilt from the database, and a snapshot's fork would disturb a measurement.
        // No process title: it would overwrite the environment, and with it the marker of the run.
        let text = format!(
            "bind 127.0.0.1\nport {}\nprotected-mode yes\nrequirepass {}\ndir \"{}\"\nsave \"\"\nappendonly no\n\
             daemonize no\nset-proc-title no\nloglevel notice\n",
            self.port,
            self.password,
            self.dir.display()
        );
        write_private(&conf, text.as_bytes())?;
        Ok(Launch {
            name: NAME.to_owned(),
            component: NAME.to_owned(),
            kind: Kind::Server,
            program: self.program.clone(),
            args: vec![conf.into()],
            env: Vec::new(),
            cwd: self.dir.clone(),
            user: None,
            group: None,
            ports: vec![self.port],
            stop: Stop::by(Signal::SIGTERM, Duration::from_secs(5)),
        })
    }

    /// Where clients connect, directly; another port gives the same over a link.
    pub(crate) fn url(&self, port: Option<u16>) -> String {
        let port = port.unwrap_or(self.port);
        format!("redis://:{}@127.0.0.1:{port}/0", self.password)
    }

    /// Answers PING.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        match self.ask("PING").await {
            Ok(answer) if answer == "+PONG" => Ok(()),
            Ok(answer) => Err(format!("answered PING with {answer}")),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    /// Forgets every key, and makes sure that none is left.
    pub(crate) async fn flush(&self) -> Result<(), DeployError> {
        let flush = async {
            let answer = self.ask("FLUSHALL SYNC").await?;
            if answer != "+OK" {
                bail!("FLUSHALL answered {answer}");
            }
            let left = self.ask("DBSIZE").await?;
            if left != ":0" {
                bail!("DBSIZE after FLUSHALL is {left}: something still writes to it");
            }
            Ok(())
        };
        flush
            .await
            .map_err(|error: anyhow::Error| DeployError::server("emptying Redis", error))
    }

    /// One inline command on a connection of its own; the first line of the answer.
    async fn ask(&self, command: &str) -> anyhow::Result<String> {
        let conversation = async {
            let mut stream = TcpStream::connect(local(self.port)).await?;
            let request = format!("AUTH {}\r\n{command}\r\n", self.password);
            stream.write_all(request.as_bytes()).await?;
            let mut lines = BufReader::new(stream).lines();
            let auth = lines.next_line().await?.context("it hung up")?;
            if auth != "+OK" {
                bail!("AUTH answered {auth}");
            }
            lines.next_line().await?.context("it hung up")
        };
        timeout(ASK_WITHIN, conversation)
            .await
            .with_context(|| format!("no answer within {} s", ASK_WITHIN.as_secs()))?
    }
}
