//! The command line of `rowlock-link`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const USAGE: &str = "usage: rowlock-link --listen 127.0.0.1:PORT --upstream 127.0.0.1:PORT|/PATH/OF/A/SOCKET [--rtt-us N] [--watch RELATION]…";
/// The longest round trip: once around the Earth many times; a larger number is a mistaken unit.
const LONGEST: Duration = Duration::from_secs(10);

/// The server's end. A Unix socket costs the machine less CPU than loopback TCP: the less the emulation takes, the sooner
/// what it is there to show is what limits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Upstream {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// What a link connects and how far apart it makes them.
#[derive(Debug, PartialEq)]
pub(super) struct Arguments {
    pub(super) listen: SocketAddr,
    pub(super) upstream: Upstream,
    pub(super) rtt: Duration,
    /// Relations of the PostgreSQL behind it whose locked rows are timed.
    pub(super) watch: Vec<String>,
}

impl Arguments {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut listen, mut upstream, mut rtt, mut watch) = (None, None, Duration::ZERO, Vec::new());
        for pair in arguments.chunks(2) {
            let [flag, value] = pair else {
                return Err(format!("`{}` needs a value", pair[0]));
            };
            match flag.as_str() {
                "--listen" => listen = Some(loopback(flag, value)?),
                "--upstream" => upstream = Some(upstream_of(flag, value)?),
                "--rtt-us" => rtt = round_trip(value)?,
                "--watch" => watch.push(value.to_lowercase()),
                _ => return Err(format!("`{flag}` is no option")),
            }
        }
        Ok(Self {
            listen: listen.ok_or("--listen is missing")?,
            upstream: upstream.ok_or("--upstream is missing")?,
            rtt,
            watch,
        })
    }
}

fn upstream_of(flag: &str, value: &str) -> Result<Upstream, String> {
    if value.starts_with('/') {
        return Ok(Upstream::Unix(value.into()));
    }
    loopback(flag, value).map(Upstream::Tcp)
}

fn loopback(flag: &str, value: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = value
        .parse()
        .map_err(|_| format!("{flag} takes an address and a port, not `{value}`"))?;
    if !address.ip().is_loopback() {
        return Err(format!(
            "{flag} takes an address of this machine's loopback interface, not `{value}`"
        ));
    }
    Ok(address)
}

/// A round trip in whole µs.
pub(super) fn round_trip(value: &str) -> Result<Duration, String> {
    let micros: u64 = value
        .parse()
        .map_err(|_| format!("a round trip is a whole number of µs, not `{value}`"))?;
    let rtt = Duration::from_micros(micros);
    if rtt > LONGEST {
        return Err(format!(
            "a round trip of {micros} µs is longer than {} s; the unit is µs",
            LONGEST.as_secs()
        ));
    }
    Ok(rtt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments, String> {
        Arguments::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn addresses_and_round_trip_are_read() {
        let arguments =
            parse("--listen 127.0.0.1:0 --upstream 127.0.0.1:5432 --rtt-us 500 --watch a --watch b").unwrap();
        assert_eq!(arguments.watch, ["a", "b"]);
        assert_eq!(arguments.rtt, Duration::from_micros(500));
        assert_eq!(arguments.upstream, Upstream::Tcp("127.0.0.1:5432".parse().unwrap()));
        let arguments = parse("--listen 127.0.0.1:0 --upstream /run/s/.s.PGSQL.5432").unwrap();
        assert_eq!(arguments.upstream, Upstream::Unix("/run/s/.s.PGSQL.5432".into()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, reason) in [
            ("--listen 127.0.0.1:0", "--upstream is missing"),
            ("--listen 0.0.0.0:1 --upstream 127.0.0.1:1", "loopback"),
            ("--listen 127.0.0.1:1 --upstream 10.0.0.1:1", "loopback"),
            ("--listen here --upstream 127.0.0.1:1", "`here`"),
            ("--listen 127.0.0.1:1 --upstream 127.0.0.1:1 --rtt-us 1ms", "`1ms`"),
            (
                "--listen 127.0.0.1:1 --upstream 127.0.0.1:1 --rtt-us 10000001",
                "longer than 10 s",
            ),
            ("--speed 3", "`--speed` is no option"),
            ("--listen", "needs a value"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
