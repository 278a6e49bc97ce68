//! Round robin over the replicas of one service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::Uri;
use http::uri::Authority;

use super::file::Entry;

/// A replica that refused a connection, or did not say in time whether it is ready, is passed over for so long, unless
/// there is no other.
const PASS_OVER: Duration = Duration::from_secs(1);

/// One replica of a service.
pub(crate) struct Replica {
    entry: Entry,
    /// For metrics, where every request would otherwise format it anew.
    host: Arc<str>,
    authority: Authority,
    readiness: Option<Uri>,
    /// Until the first check says otherwise: a replica is listed when it is ready.
    ready: AtomicBool,
    created: Instant,
    /// Milliseconds after `created`.
    passed_over_until: AtomicU64,
}

impl Replica {
    fn new(entry: Entry) -> Self {
        let authority = |address: SocketAddr| -> Authority {
            address
                .to_string()
                .parse()
                .expect("an IP address and port are an authority")
        };
        let readiness = entry.admin.map(|admin| {
            Uri::builder()
                .scheme("http")
                .authority(authority(admin))
                .path_and_query("/readyz")
                .build()
                .expect("scheme, authority and path make a URI")
        });
        Self {
            entry,
            host: entry.http.ip().to_string().into(),
            authority: authority(entry.http),
            readiness,
            ready: AtomicBool::new(true),
            created: Instant::now(),
            passed_over_until: AtomicU64::new(0),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.entry.http
    }

    pub(crate) fn host(&self) -> &Arc<str> {
        &self.host
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Where it says whether it is ready, if it does.
    pub(super) fn readiness(&self) -> Option<&Uri> {
        self.readiness.as_ref()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Whether this is news.
    pub(super) fn set_ready(&self, ready: bool) -> bool {
        self.ready.swap(ready, Ordering::AcqRel) != ready
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

/// What a service does with an `Idempotency-Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// A repeated one finds what the first request did.
    Honoured,
    /// Nothing.
    Ignored,
}

/// The replicas of a service and whose turn it is.
pub(crate) struct Rotation {
    service: &'static str,
    keys: Keys,
    replicas: ArcSwap<Vec<Arc<Replica>>>,
    turn: AtomicUsize,
}

impl Rotation {
    pub(crate) fn new(service: &'static str, keys: Keys) -> Self {
        Self {
            service,
            keys,
            replicas: ArcSwap::default(),
            turn: AtomicUsize::new(0),
        }
    }

    pub(crate) fn service(&self) -> &'static str {
        self.service
    }

    pub(crate) fn keys(&self) -> Keys {
        self.keys
    }

    /// Whether anything changed. Requests that are under way keep the list with which they started; what is known of
    /// a replica that stays is kept as well.
    pub(super) fn set(&self, entries: &[Entry]) -> bool {
        let known = self.replicas.load();
        if known.iter().map(|replica| replica.entry).eq(entries.iter().copied()) {
            return false;
        }
        let replica = |entry: &Entry| {
            let stays = known.iter().find(|replica| replica.entry == *entry);
            stays.cloned().unwrap_or_else(|| Arc::new(Replica::new(*entry)))
        };
        self.replicas.store(Arc::new(entries.iter().map(replica).collect()));
        true
    }

    pub(super) fn replicas(&self) -> Arc<Vec<Arc<Replica>>> {
        self.replicas.load_full()
    }

    /// Whether all replicas are ready, or which are not.
    pub(super) fn state(&self) -> Result<(), String> {
        let replicas = self.replicas();
        let unready: Vec<String> = replicas
            .iter()
            .filter(|replica| !replica.is_ready())
            .map(|replica| replica.address().to_string())
            .collect();
        match (replicas.len(), unready.as_slice()) {
            (0, _) => Err("no replica is listed".to_owned()),
            (_, []) => Ok(()),
            (all, _) => Err(format!(
                "{} of {all} replicas not ready: {}",
                unready.len(),
                unready.join(", ")
            )),
        }
    }

    /// The replicas for one request.
    pub(crate) fn candidates(&self) -> Candidates<'_> {
        Candidates {
            rotation: self,
            replicas: self.replicas(),
            tried: Vec::new(),
        }
    }
}

/// Hands out each ready replica at most once, so that one request tries them all and then gives up.
pub(crate) struct Candidates<'a> {
    rotation: &'a Rotation,
    replicas: Arc<Vec<Arc<Replica>>>,
    /// Does not allocate until a second replica is asked for.
    tried: Vec<usize>,
}

impl Candidates<'_> {
    /// The next ready replica whose turn it is: of those that are not passed over, or of the others if none is left.
    pub(crate) fn next(&mut self, now: Instant) -> Option<&Replica> {
        let turn = self.rotation.turn.fetch_add(1, Ordering::Relaxed);
        let index = self
            .pick(turn, |replica| !replica.is_passed_over(now))
            .or_else(|| self.pick(turn, |_| true))?;
        self.tried.push(index);
        Some(&self.replicas[index])
    }

    fn pick(&self, turn: usize, eligible: impl Fn(&Replica) -> bool) -> Option<usize> {
        let eligible = |index: &usize| {
            let replica = &self.replicas[*index];
            !self.tried.contains(index) && replica.is_ready() && eligible(replica)
        };
        let count = (0..self.replicas.len()).filter(eligible).count();
        (0..self.replicas.len()).filter(eligible).nth(turn.checked_rem(count)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ports: &[u16]) -> Vec<Entry> {
        let entry = |port: &u16| Entry {
            http: SocketAddr::from(([127, 0, 0, 1], *port)),
            admin: None,
        };
        ports.iter().map(entry).collect()
    }

    fn rotation(ports: &[u16]) -> Rotation {
        let rotation = Rotation::new("test", Keys::Ignored);
        let entries = entries(ports);
        assert_eq!(rotation.set(&entries), !ports.is_empty());
        assert!(!rotation.set(&entries), "the same list again is no change");
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

    #[test]
    fn a_replica_that_is_not_ready_gets_nothing_even_if_it_is_the_last_and_is_remembered_as_such() {
        let rotation = rotation(&[1, 2]);
        let now = Instant::now();
        assert!(rotation.replicas()[0].set_ready(false) && !rotation.replicas()[0].set_ready(false));
        assert!((0..4).all(|_| first(&rotation, now) == 2));
        assert!(rotation.set(&entries(&[1])));
        assert!(rotation.candidates().next(now).is_none());
        rotation.replicas()[0].set_ready(true);
        assert_eq!(first(&rotation, now), 1);
    }
}
