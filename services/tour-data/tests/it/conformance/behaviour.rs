//! What is done to a plan, and what must be seen.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use serde_json::{Value, json};
use tour_data::plan::{Alternatives, Committed, Config, CreateError, Delivery, Order, Plan, Promise};
use tour_data::store::TenantConfig;
use tour_data::tour::TenantKey;

use crate::audit::Acknowledged;
use crate::support::{RunningPlan, new_tour, payload};

/// No machine is so busy that something that is promised within a second takes this long.
const AT_LAST: Duration = Duration::from_secs(20);

/// Between two reads of one who reads beside the writers: often enough to see most of what they write.
const READ_EVERY: Duration = Duration::from_millis(2);

/// A plan at work for one tenant.
pub(super) struct Subject {
    plan: Arc<Plan>,
    tenant: TenantKey,
    config: Config,
    modified_at: Order,
    witness: Witness,
    /// When readers saw what, in the order in which they did.
    sightings: Vec<DateTime<Utc>>,
}

/// What was acknowledged, and what was amiss.
#[derive(Default)]
pub(super) struct Witness {
    pub(super) violations: Vec<String>,
    pub(super) acknowledged: Vec<Acknowledged>,
    /// How often a tour was asked for, by its id.
    attempts: BTreeMap<String, i32>,
    may_be_lost: bool,
    /// The plan ended before all was judged, and its background work with it: what happens at least once may be repeated.
    cut_short: bool,
}

impl Witness {
    /// Ids of the messages that are promised.
    pub(super) fn must_come(&self) -> impl Iterator<Item = String> {
        let ids: Vec<String> = self.attempts.keys().cloned().collect();
        ids.into_iter()
    }

    /// Without a fault a tour is announced as often as it is asked for at most, and once only where nothing else is promised.
    pub(super) fn too_many(&self, delivered: &BTreeMap<String, i32>) -> Vec<String> {
        let allowed = |attempts: i32| match (self.may_be_lost, self.cut_short) {
            (true, _) => 1,
            (false, true) => i32::MAX,
            (false, false) => attempts,
        };
        let excess = self.attempts.iter().filter_map(|(id, attempts)| {
            let copies = delivered.get(id).copied().unwrap_or_default();
            (copies > allowed(*attempts))
                .then(|| format!("tour {id} was announced {copies} times, asked for {attempts}"))
        });
        excess.collect()
    }
}

/// A payload with these values of the configuration.
fn tour_of(tenant: &TenantKey, info: &str, stops: usize) -> Value {
    let mut tour = payload();
    tour["tenantConfig"] =
        json!({"tenant": format!("Beverages {tenant}"), "tenantKey": tenant.as_str(), "tenantInfo": info});
    tour["stops"].as_array_mut().expect("a list").truncate(stops);
    tour
}

impl Subject {
    pub(super) fn new(running: &RunningPlan, chosen: &Alternatives, tenant: &str) -> Self {
        let Some(Promise::Tenant {
            config, modified_at, ..
        }) = chosen.touch.spec().promise
        else {
            panic!("{} promises nothing", chosen.touch.spec().name)
        };
        let Some(Promise::Message { delivery, .. }) = chosen.announce.spec().promise else {
            panic!("{} promises no message", chosen.announce.spec().name)
        };
        Self {
            plan: Arc::clone(&running.plan),
            tenant: TenantKey::parse(tenant).expect("a key"),
            config,
            modified_at,
            witness: Witness {
                may_be_lost: delivery == Delivery::AtMostOnce,
                ..Witness::default()
            },
            sightings: Vec::new(),
        }
    }

    /// Two small tours, of which the second changes the configuration.
    pub(super) async fn in_brief(mut self) -> Witness {
        self.witness.cut_short = true;
        for info in ["brief", "and changed"] {
            let tour = tour_of(&self.tenant, info, 1);
            let rows = rows_of(&tour);
            if let Some((sent_at, _)) = self.create(&tour, None, rows).await {
                self.sees(info, sent_at, true).await;
            }
        }
        self.witness
    }

    /// Everything that a client can do.
    pub(super) async fn in_full(mut self) -> Witness {
        let whole = tour_of(&self.tenant, "night shift", usize::MAX);
        let before = self.read().await;
        let Some((sent_at, first)) = self.create(&whole, Some("first"), 87).await else {
            return self.witness;
        };
        if self.config == Config::Unwritten {
            let after = self.read().await;
            self.hold(before == after, format!("{after:?} is seen after {before:?}"));
        }
        self.sees("night shift", sent_at, true).await;
        self.document_is(&first, &whole).await;
        self.repeats(&whole, &first).await;
        self.at_once().await;
        // A change and its undoing, one after the other, and each repeated: none may be taken for one that changes nothing.
        for info in ["early shift", "late shift", "early shift", "night shift"] {
            for changed in [true, false] {
                let tour = tour_of(&self.tenant, info, 2);
                let rows = rows_of(&tour);
                if let Some((sent_at, _)) = self.create(&tour, None, rows).await {
                    self.sees(info, sent_at, changed).await;
                }
            }
        }
        if self.modified_at == Order::Monotone {
            let sorted = self.sightings.is_sorted();
            let sightings = format!("modified_at went backwards: {:?}", self.sightings);
            self.hold(sorted, sightings);
        }
        self.witness
    }

    /// An idempotency key that no other subject uses: keys belong to a tenant, but what is acknowledged is judged together.
    fn key(&self, name: &str) -> String {
        format!("{}-{name}", self.tenant)
    }

    fn hold(&mut self, holds: bool, otherwise: String) {
        if !holds {
            self.witness.violations.push(otherwise);
        }
    }

    /// A tour, with the moment before it was sent.
    async fn create(&mut self, tour: &Value, key: Option<&str>, rows: u64) -> Option<(DateTime<Utc>, Committed)> {
        let key = key.map(|key| self.key(key));
        let key = key.as_deref();
        let sent_at = Utc::now();
        let created = self.plan.create(new_tour(tour.clone(), key)).await;
        let acked_at = Utc::now();
        match created {
            Ok(done) => {
                self.hold(
                    done.rows == rows,
                    format!("{} rows are acknowledged, expected {rows}", done.rows),
                );
                self.acknowledge(&done, key, [sent_at, acked_at]);
                Some((sent_at, done))
            }
            Err(error) => {
                self.witness.violations.push(format!("a tour failed: {error}"));
                None
            }
        }
    }

    fn acknowledge(&mut self, done: &Committed, key: Option<&str>, [sent_at, acked_at]: [DateTime<Utc>; 2]) {
        *self.witness.attempts.entry(done.tour_id.to_string()).or_default() += 1;
        if !done.replayed {
            self.witness.acknowledged.push(Acknowledged {
                tour: done.tour_id,
                key: key.map(str::to_owned),
                tenant: self.tenant.to_string(),
                rows: i32::try_from(done.rows).expect("a tour is small"),
                sent_at,
                acked_at,
            });
        }
    }

    async fn read(&mut self) -> TenantConfig {
        let config = self
            .plan
            .tenant_config(&self.tenant)
            .await
            .expect("the configuration can be read");
        self.sightings.push(config.modified_at);
        config
    }

    /// Holds what a reader sees after a 201 against the promise. `changed`: the tour brought other values than were there.
    async fn sees(&mut self, info: &str, sent_at: DateTime<Utc>, changed: bool) {
        let due = |seen: &TenantConfig, not_before: Option<DateTime<Utc>>| {
            seen.tenant_info.as_deref() == Some(info) && not_before.is_none_or(|due| seen.modified_at >= due)
        };
        let of_change = changed.then_some(sent_at);
        let (not_before, at_last) = match self.config {
            Config::Exact => (Some(sent_at), false),
            Config::Coarse(window) => (Some(sent_at - window), false),
            Config::OnChange => (of_change, false),
            Config::Eventual(_) => (Some(sent_at), true),
            Config::EventualOnChange(_) => (of_change, true),
            Config::Unwritten => return,
        };
        let deadline = tokio::time::Instant::now() + if at_last { AT_LAST } else { Duration::ZERO };
        let mut seen = self.read().await;
        while !due(&seen, not_before) && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
            seen = self.read().await;
        }
        let otherwise = format!("{seen:?} is seen after {info:?} was sent at {sent_at}");
        self.hold(due(&seen, not_before), otherwise);
    }

    /// Reading gives back what was sent.
    async fn document_is(&mut self, done: &Committed, tour: &Value) {
        let document = self
            .plan
            .tour(&self.tenant, done.tour_id)
            .await
            .expect("the tour can be read");
        let document = serde_json::to_value(document.expect("it is there")).expect("JSON");
        for member in [
            "tourNumber",
            "tripNumber",
            "tourStatus",
            "tourDate",
            "vehicle",
            "driver",
            "stops",
        ] {
            let otherwise = format!("{member} is read as {}", document[member]);
            self.hold(document[member] == tour[member], otherwise);
        }
    }

    /// The same request again, and another one under its key.
    async fn repeats(&mut self, tour: &Value, first: &Committed) {
        if let Some((_, again)) = self.create(tour, Some("first"), 87).await {
            let same = again.tour_id == first.tour_id && again.created_at == first.created_at && again.replayed;
            self.hold(same, format!("repeated, {first:?} is {again:?}"));
        }
        let mut other = tour.clone();
        other["tourNumber"] = json!("another");
        let reused = self.plan.create(new_tour(other, Some(&self.key("first")))).await;
        let refused = matches!(reused, Err(CreateError::KeyReused));
        self.hold(refused, format!("another tour under the same key is {reused:?}"));
    }

    /// What a reader sees in the meantime.
    async fn reads_until(&self, done: &Cell<bool>) -> Vec<DateTime<Utc>> {
        let mut seen = Vec::new();
        while !done.get() {
            let config = self.plan.tenant_config(&self.tenant).await;
            seen.push(config.expect("the configuration can be read").modified_at);
            tokio::time::sleep(READ_EVERY).await;
        }
        seen
    }

    /// One key from many clients at once, beside tours without one, each with a configuration of its own, and a reader.
    async fn at_once(&mut self) {
        let shared = tour_of(&self.tenant, "shared", 3);
        let sent_at = Utc::now();
        let key = self.key("shared");
        let same = join_all((0..4).map(|_| self.plan.create(new_tour(shared.clone(), Some(&key)))));
        let different: Vec<Value> = (0..6)
            .map(|n| tour_of(&self.tenant, &format!("client {n}"), 3))
            .collect();
        let different = different
            .iter()
            .map(|tour| self.plan.create(new_tour(tour.clone(), None)));
        let written = Cell::new(false);
        let writing = async {
            let both = futures::join!(same, join_all(different));
            written.set(true);
            both
        };
        let ((same, different), seen) = futures::join!(writing, self.reads_until(&written));
        self.sightings.extend(seen);
        let acked_at = Utc::now();
        let keyed = same.into_iter().map(|done| (Some(key.as_str()), done));
        let mut written = 0;
        for (key, done) in keyed.chain(different.into_iter().map(|done| (None, done))) {
            match done {
                Ok(done) => {
                    written += usize::from(!done.replayed);
                    self.acknowledge(&done, key, [sent_at, acked_at]);
                }
                Err(error) => self
                    .witness
                    .violations
                    .push(format!("a tour beside others failed: {error}")),
            }
        }
        self.hold(written == 7, format!("{written} of 7 tours are new"));
        let tours = self.witness.attempts.len();
        self.hold(tours == 8, format!("{tours} tours in all, expected 8"));
    }
}

/// Rows that a payload has in the database: the tour; a stop and its address; an order and its address; a position.
fn rows_of(tour: &Value) -> u64 {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let stops = list(&tour["stops"]);
    let orders: Vec<Value> = stops.iter().flat_map(|stop| list(&stop["orders"])).collect();
    let positions: usize = orders.iter().map(|order| list(&order["positions"]).len()).sum();
    (1 + 2 * stops.len() + 2 * orders.len() + positions) as u64
}
