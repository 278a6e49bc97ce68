//! Which port of 127.0.0.1 each part of a stack gets.
//!
//! Every port is an offset from one base, so a stack is moved as a whole. All stay below 32768, where Linux begins to
//! hand out ports for outgoing connections: a port of the layout cannot be lost to a client's socket.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rand::seq::SliceRandom as _;

use crate::error::DeployError;
use crate::topology::PortBase;

/// Most replicas of one service.
pub(crate) const REPLICAS_MAX: u16 = 16;
/// Most services of one stack.
const SERVICES_MAX: u16 = 12;
/// Offset of the first service port.
const SERVICES_AT: u16 = 20;
/// Ports one layout spans.
const SPAN: u16 = SERVICES_AT + SERVICES_MAX * REPLICAS_MAX * 2;
/// First port Linux gives to outgoing connections by default.
const EPHEMERAL: u16 = 32768;
/// Lowest base: ports below 1024 need privileges, and the well-known ones of the servers end at 15692.
const LOWEST: u16 = 1024;
/// Where [`PortBase::Free`] begins to look, above the standard layout.
const FREE_FROM: u16 = 18000;

/// A fixed place in the layout; the discriminant is the offset from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Front = 0,
    HaproxyStats = 1,
    Postgres = 2,
    Redis = 3,
    Amqp = 4,
    ErlangDistribution = 5,
    LinkDb = 6,
    LinkRedis = 7,
    LinkBroker = 8,
    Control = 9,
    PgBouncer = 10,
}

impl Port {
    const ALL: [Self; 11] = [
        Self::Front,
        Self::HaproxyStats,
        Self::Postgres,
        Self::Redis,
        Self::Amqp,
        Self::ErlangDistribution,
        Self::LinkDb,
        Self::LinkRedis,
        Self::LinkBroker,
        Self::Control,
        Self::PgBouncer,
    ];

    fn purpose(self) -> &'static str {
        match self {
            Self::Front => "HAProxy, the front of the stack",
            Self::HaproxyStats => "HAProxy statistics",
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis",
            Self::Amqp => "RabbitMQ",
            Self::ErlangDistribution => "RabbitMQ's Erlang distribution",
            Self::LinkDb => "the link to PostgreSQL",
            Self::LinkRedis => "the link to Redis",
            Self::LinkBroker => "the link to RabbitMQ",
            Self::Control => "control of the stack from other terminals",
            Self::PgBouncer => "PgBouncer",
        }
    }
}

/// Two ports of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplicaPorts {
    /// Where it serves.
    pub(crate) http: u16,
    /// Where it tells about itself.
    pub(crate) admin: u16,
}

/// The layout of one stack.
#[derive(Debug)]
pub(crate) struct Ports {
    base: u16,
    /// Services in the order they were first seen: a service keeps its ports while the stack is up.
    services: Vec<String>,
}

impl Ports {
    /// Chooses the base and makes sure that nobody listens on a fixed port of the layout. Also gives the listener of the
    /// control port: it holds the block against another stack that starts at this moment.
    pub(crate) fn reserve(base: PortBase) -> Result<(Self, TcpListener), DeployError> {
        match base {
            PortBase::Fixed(base) => Self::reserve_at(base),
            PortBase::Free => {
                let mut bases: Vec<u16> = (FREE_FROM..EPHEMERAL - SPAN).step_by(usize::from(SPAN)).collect();
                bases.shuffle(&mut rand::rng());
                let mut last = None;
                for base in bases {
                    match Self::reserve_at(base) {
                        Ok(reserved) => return Ok(reserved),
                        Err(error) => last = Some(error),
                    }
                }
                Err(last.expect("there is more than one block of ports"))
            }
        }
    }

    fn reserve_at(base: u16) -> Result<(Self, TcpListener), DeployError> {
        let highest = EPHEMERAL - SPAN;
        if !(LOWEST..=highest).contains(&base) {
            return Err(DeployError::Usage(format!(
                "--port-base {base} is out of range: {LOWEST} to {highest} (a stack spans {SPAN} ports, and those from \
                 {EPHEMERAL} on belong to outgoing connections)"
            )));
        }
        let ports = Self {
            base,
            services: Vec::new(),
        };
        let control = ports.free(ports.of(Port::Control), Port::Control.purpose())?;
        for port in Port::ALL.into_iter().filter(|port| *port != Port::Control) {
            ports.free(ports.of(port), port.purpose())?;
        }
        Ok((ports, control))
    }

    /// The base of the layout.
    pub(crate) fn base(&self) -> u16 {
        self.base
    }

    /// The port of a fixed part.
    pub(crate) fn of(&self, port: Port) -> u16 {
        self.base + port as u16
    }

    /// The ports of a replica, counted from 1.
    pub(crate) fn replica(&mut self, service: &str, replica: u16) -> Result<ReplicaPorts, DeployError> {
        let known = self.services.iter().position(|known| known == service);
        let index = known.unwrap_or_else(|| {
            self.services.push(service.to_owned());
            self.services.len() - 1
        });
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        if index >= SERVICES_MAX {
            return Err(DeployError::Usage(format!(
                "a stack has room for {SERVICES_MAX} services, {service} is one more"
            )));
        }
        let http = self.base + SERVICES_AT + (index * REPLICAS_MAX + replica - 1) * 2;
        let ports = ReplicaPorts { http, admin: http + 1 };
        self.free(ports.http, &format!("{service}-{replica}"))?;
        self.free(ports.admin, &format!("{service}-{replica}, admin"))?;
        Ok(ports)
    }

    fn free(&self, port: u16, purpose: &str) -> Result<TcpListener, DeployError> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                let above = self.base.saturating_add(1000);
                let suggestion = if above <= EPHEMERAL - SPAN { above } else { FREE_FROM };
                DeployError::PortTaken {
                    port,
                    purpose: purpose.to_owned(),
                    suggestion,
                }
            }
            _ => DeployError::io(format!("bind port {port} ({purpose})"), error),
        })
    }
}

/// A port on the only address the stack uses.
pub(crate) fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named_with_its_purpose_and_the_way_out() {
        let (ports, control) = Ports::reserve(PortBase::Free).unwrap();
        let redis = ports.of(Port::Redis);
        drop(control);
        let _taken = TcpListener::bind(("127.0.0.1", redis)).unwrap();
        let error = Ports::reserve(PortBase::Fixed(ports.base())).unwrap_err().to_string();
        assert!(
            error.contains(&redis.to_string()) && error.contains("Redis") && error.contains("--port-base"),
            "{error}"
        );
    }

    #[test]
    fn two_stacks_on_free_ports_get_different_blocks() {
        let (first, _held) = Ports::reserve(PortBase::Free).unwrap();
        let (second, _also_held) = Ports::reserve(PortBase::Free).unwrap();
        assert!(first.base().abs_diff(second.base()) >= SPAN);
    }

    #[test]
    fn replicas_never_share_a_port_and_stay_in_the_layout() {
        let (mut ports, _held) = Ports::reserve(PortBase::Free).unwrap();
        let mut seen: Vec<u16> = Port::ALL.iter().map(|port| ports.of(*port)).collect();
        for service in ["gateway", "tour-data", "user"] {
            for replica in 1..=REPLICAS_MAX {
                let ReplicaPorts { http, admin } = ports.replica(service, replica).unwrap();
                seen.extend([http, admin]);
            }
        }
        assert!(
            seen.iter()
                .all(|port| (ports.base()..ports.base() + SPAN).contains(port))
        );
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn a_base_that_reaches_the_ports_of_outgoing_connections_is_refused() {
        assert_eq!(Ports::reserve(PortBase::Fixed(32700)).unwrap_err().exit_code(), 2);
    }
}
