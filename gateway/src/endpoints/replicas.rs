//! Round robin over the replicas of one service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::uri::Authority;

/// A replica that refused a connection is passed over for so long, unless there is no other.
const PASS_OVER: Duration = Duration::from_secs(1);

/// One replica of a service.
pub(crate) struct Replica {
    address: SocketAddr,
    /// For metrics, where every request would otherwise format it anew.
    host: Arc<str>,
    authority: Authority,
    created: Instant,
    /// Milliseconds after `created`.
    passed_over_until: AtomicU64,
}

impl Replica {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            host: address.ip().to_string().into(),
            authority: Authority::try_from(address.to_string()).expect("an IP address and port are an authority"),
            created: Instant::now(),
            passed_over_until: AtomicU64::new(0),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn host(&self) -> &Arc<str> {
        &self.host
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Called when a connection was refused or timed out.
    pub(crate) fn pass_over(&self, now: Instant) {
        self.passed_over_until
            .store(self.millis(now + PASS_OVER), Ordering::Relaxed);
    }

    fn is_passed_over(&self, now: Instant) -> bool {
        match self.passed_over_until.load(Ordering::Relaxed) {
            0 => false,
            until => self.millis(now) < until,
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.created).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The replicas of a service and whose turn it is.
pub(crate) struct Rotation {
    service: &'static str,
    replicas: ArcSwap<Vec<Replica>>,
    turn: AtomicUsize,
}

impl Rotation {
    pub(crate) fn new(service: &'static str) -> Self {
        Self {
            service,
            replicas: ArcSwap::default(),
            turn: AtomicUsize::new(0),
        }
    }

    pub(crate) fn service(&self) -> &'static str {
        self.service
    }

    /// Whether anything changed. Requests that are under way keep the list with which they started.
    pub(crate) fn set(&self, addresses: &[SocketAddr]) -> bool {
        if self
            .replicas
            .load()
            .iter()
            .map(Replica::address)
            .eq(addresses.iter().copied())
        {
            return false;
        }
        self.replicas
            .store(Arc::new(addresses.iter().copied().map(Replica::new).collect()));
        true
    }

    /// The replicas for one request.
    pub(crate) fn candidates(&self) -> Candidates<'_> {
        Candidates {
            rotation: self,
            replicas: self.replicas.load_full(),
            tried: Vec::new(),
        }
    }
}

/// Hands out each replica at most once, so that one request tries them all and then gives up.
pub(crate) struct Candidates<'a> {
    rotation: &'a Rotation,
    replicas: Arc<Vec<Replica>>,
    /// Does not allocate until a second replica is asked for.
    tried: Vec<usize>,
}

impl Candidates<'_> {
    /// The next replica whose turn it is: of those that are not passed over, or of the others if none is left.
    pub(crate) fn next(&mut self, now: Instant) -> Option<&Replica> {
        let turn = self.rotation.turn.fetch_add(1, Ordering::Relaxed);
        let index = self
            .pick(turn, |replica| !replica.is_passed_over(now))
            .or_else(|| self.pick(turn, |_| true))?;
        self.tried.push(index);
        Some(&self.replicas[index])
    }

    fn pick(&self, turn: usize, eligible: impl Fn(&Replica) -> bool) -> Option<usize> {
        let eligible = |index: &usize| !self.tried.contains(index) && eligible(&self.replicas[*index]);
        let count = (0..self.replicas.len()).filter(eligible).count();
        (0..self.replicas.len()).filter(eligible).nth(turn.checked_rem(count)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(ports: &[u16]) -> Rotation {
        let rotation = Rotation::new("test");
        let addresses: Vec<_> = ports
            .iter()
            .map(|port| SocketAddr::from(([127, 0, 0, 1], *port)))
            .collect();
        assert_eq!(rotation.set(&addresses), !ports.is_empty());
        assert!(!rotation.set(&addresses), "the same list again is no change");
        rotation
    }

    fn first(rotation: &Rotation, now: Instant) -> u16 {
        rotation
            .candidates()
            .next(now)
            .expect("there is a replica")
            .address()
            .port()
    }

    #[test]
    fn each_replica_gets_its_turn() {
        let rotation = rotation(&[1, 2, 3]);
        let now = Instant::now();
        let order: Vec<u16> = (0..6).map(|_| first(&rotation, now)).collect();
        assert_eq!(order, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn one_request_tries_each_replica_once() {
        let rotation = rotation(&[1, 2, 3]);
        let mut candidates = rotation.candidates();
        let now = Instant::now();
        let mut ports = Vec::new();
        while let Some(replica) = candidates.next(now) {
            ports.push(replica.address().port());
        }
        ports.sort_unstable();
        assert_eq!(ports, [1, 2, 3]);
    }

    #[test]
    fn a_replica_that_refused_is_passed_over_for_a_while_and_used_if_there_is_no_other() {
        let rotation = rotation(&[1, 2]);
        let now = Instant::now();
        rotation.replicas.load()[0].pass_over(now);
        assert!((0..4).all(|_| first(&rotation, now) == 2));
        let later = now + PASS_OVER + Duration::from_millis(1);
        assert!((0..2).any(|_| first(&rotation, later) == 1));

        rotation.replicas.load()[1].pass_over(now);
        let mut candidates = rotation.candidates();
        assert!(candidates.next(now).is_some() && candidates.next(now).is_some() && candidates.next(now).is_none());
    }

    #[test]
    fn without_replicas_there_is_no_candidate() {
        assert!(rotation(&[]).candidates().next(Instant::now()).is_none());
    }
}
