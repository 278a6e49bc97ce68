//! Changing a running HAProxy through its admin socket.

use std::{fs::File, os::fd::AsRawFd as _, path::Path, time::Duration};

use anyhow::{Context, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::{Instant, sleep, timeout},
};

use super::{
    Gateway,
    config::{BACKEND, CHECK, SOCKET},
};

const ASK_WITHIN: Duration = Duration::from_secs(5);
/// A little more than the longest a request may take at the gateway.
const DRAINED_WITHIN: Duration = Duration::from_secs(65);
const POLL: Duration = Duration::from_millis(25);

/// A server of the backend as HAProxy sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) name: String,
    /// Up, and by its own check rather than by the benefit of the doubt every server has at the start.
    pub(super) ready: bool,
    /// Requests in flight.
    sessions: u64,
    /// Requests it was sent in all; checks are none.
    pub(super) requests: u64,
    /// HAProxy's own words: `UP (L7OK)`.
    pub(super) says: String,
}

pub(super) async fn states(dir: &Path) -> anyhow::Result<Vec<State>> {
    parse_states(&ask(dir, &format!("show stat {BACKEND} 4 -1")).await?)
}

pub(super) async fn add(dir: &Path, gateway: Gateway) -> anyhow::Result<()> {
    let Gateway { http, admin, .. } = gateway;
    let server = format!("{BACKEND}/{}", gateway.server());
    expect(
        dir,
        &format!("add server {server} 127.0.0.1:{http} port {admin} {CHECK}"),
        "New server registered.",
    )
    .await?;
    expect(dir, &format!("enable health {server}"), "").await?;
    expect(dir, &format!("enable server {server}"), "").await
}

pub(super) async fn remove(dir: &Path, gateway: Gateway) -> anyhow::Result<()> {
    let name = gateway.server();
    let server = format!("{BACKEND}/{name}");
    expect(dir, &format!("set server {server} state drain"), "").await?;
    let deadline = Instant::now() + DRAINED_WITHIN;
    loop {
        let state = states(dir).await?.into_iter().find(|state| state.name == name);
        match state {
            Some(state) if state.sessions > 0 => {
                if Instant::now() > deadline {
                    bail!("{} requests are still in flight", state.sessions);
                }
            }
            _ => break,
        }
        sleep(POLL).await;
    }
    expect(dir, &format!("set server {server} state maint"), "").await?;
    // Connections kept for reuse stand in the way until HAProxy has closed them.
    loop {
        let answer = ask(dir, &format!("del server {server}")).await?;
        match answer.trim() {
            "Server deleted." => return Ok(()),
            answer if Instant::now() > deadline => bail!("del server: {answer}"),
            _ => sleep(POLL).await,
        }
    }
}

async fn expect(dir: &Path, command: &str, answer: &str) -> anyhow::Result<()> {
    let got = ask(dir, command).await?;
    if got.trim() != answer {
        bail!("`{command}` answered {:?}", got.trim());
    }
    Ok(())
}

async fn ask(dir: &Path, command: &str) -> anyhow::Result<String> {
    let conversation = async {
        // Through the folder's descriptor, so that the length of its path does not matter.
        let folder = File::open(dir).with_context(|| dir.display().to_string())?;
        let path = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
        let mut stream = UnixStream::connect(path).await.context("its admin socket")?;
        stream.write_all(format!("{command}\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    timeout(ASK_WITHIN, conversation)
        .await
        .with_context(|| format!("no answer to `{command}` within {} s", ASK_WITHIN.as_secs()))?
}

/// CSV with a header line `# pxname,svname,…`; columns are found by name, their order differs by version.
fn parse_states(csv: &str) -> anyhow::Result<Vec<State>> {
    let mut lines = csv.lines().filter(|line| !line.trim().is_empty());
    let header: Vec<&str> = lines
        .next()
        .and_then(|line| line.strip_prefix("# "))
        .with_context(|| format!("no header in {csv:?}"))?
        .split(',')
        .collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .with_context(|| format!("no column {name}"))
    };
    let (name, status, check, sessions, requests) = (
        column("svname")?,
        column("status")?,
        column("check_status")?,
        column("scur")?,
        column("stot")?,
    );
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let field = |at: usize| fields.get(at).copied().unwrap_or_default();
            Ok(State {
                name: field(name).to_owned(),
                ready: field(status) == "UP" && field(check) == "L7OK",
                sessions: field(sessions).parse().context("scur")?,
                requests: field(requests).parse().context("stot")?,
                says: format!("{} ({})", field(status), field(check)),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_only_when_its_own_check_says_so() {
        let csv = "# pxname,svname,scur,stot,status,check_status,\n\
                   gateways,gateway-1,3,41,UP,L7OK,\n\
                   gateways,gateway-2,0,0,UP,INI,\n\
                   gateways,gateway-3,0,0,DOWN,L7STS,\n\n";
        let states = parse_states(csv).unwrap();
        let ready: Vec<bool> = states.iter().map(|state| state.ready).collect();
        assert_eq!(ready, [true, false, false]);
        assert_eq!((states[0].sessions, states[0].requests), (3, 41));
        assert_eq!(states[2].says, "DOWN (L7STS)");
    }
}
