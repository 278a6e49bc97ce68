//! Every registered alternative keeps what its `SPEC` promises, alone and together with every other that goes with it; and
//! fixes that are wrong on purpose are caught by the same means. A new file on an axis is covered without an edit here.

mod behaviour;
mod panics;
mod registry;
mod wrong;

use std::collections::BTreeMap;
use std::time::Instant;

use futures::StreamExt as _;
use futures::stream;
use tour_data::announce::Announce;
use tour_data::inserts::Inserts;
use tour_data::placement::Placement;
use tour_data::plan::{Alternatives, Isolation, Spec};
use tour_data::touch::Touch;

use self::behaviour::{Subject, Witness};
use crate::audit::audit_mixed;
use crate::support::{PgBouncer, Rig, make, specs};

/// One alternative of each axis, by name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Names {
    inserts: &'static str,
    touch: &'static str,
    announce: &'static str,
    placement: &'static str,
}

impl Names {
    fn alternatives(self) -> Alternatives {
        Alternatives {
            inserts: make::<dyn Inserts>(self.inserts)(),
            touch: make::<dyn Touch>(self.touch)(),
            announce: make::<dyn Announce>(self.announce)(),
        }
    }

    /// How many of the four are not the published ones.
    fn unpublished(self) -> usize {
        let published = published();
        [
            self.inserts != published.inserts,
            self.touch != published.touch,
            self.announce != published.announce,
            self.placement != published.placement,
        ]
        .into_iter()
        .filter(|differs| *differs)
        .count()
    }

    fn says(self) -> String {
        format!(
            "{}, {}, {}, {}",
            self.inserts, self.touch, self.announce, self.placement
        )
    }
}

fn baseline(specs: &[&'static Spec]) -> &'static str {
    specs.iter().find(|spec| spec.baseline).expect("there is one").name
}

fn published() -> Names {
    Names {
        inserts: baseline(&specs::<dyn Inserts>()),
        touch: baseline(&specs::<dyn Touch>()),
        announce: baseline(&specs::<dyn Announce>()),
        placement: baseline(&specs::<dyn Placement>()),
    }
}

/// Each alternative with the published ones of the other axes.
fn each_alone() -> Vec<Names> {
    let published = published();
    let inserts = specs::<dyn Inserts>().into_iter().map(|spec| Names {
        inserts: spec.name,
        ..published
    });
    let touches = specs::<dyn Touch>().into_iter().map(|spec| Names {
        touch: spec.name,
        ..published
    });
    let announces = specs::<dyn Announce>().into_iter().map(|spec| Names {
        announce: spec.name,
        ..published
    });
    let placements = specs::<dyn Placement>().into_iter().map(|spec| Names {
        placement: spec.name,
        ..published
    });
    let mut alone: Vec<Names> = Vec::new();
    for names in inserts.chain(touches).chain(announces).chain(placements) {
        if !alone.contains(&names) {
            alone.push(names);
        }
    }
    alone
}

fn all_together() -> Vec<Names> {
    let mut all = Vec::new();
    for inserts in specs::<dyn Inserts>() {
        for touch in specs::<dyn Touch>() {
            for announce in specs::<dyn Announce>() {
                for placement in specs::<dyn Placement>() {
                    all.push(Names {
                        inserts: inserts.name,
                        touch: touch.name,
                        announce: announce.name,
                        placement: placement.name,
                    });
                }
            }
        }
    }
    all
}

/// What was seen of many subjects on one database: messages by the one tap, rows by the one audit.
async fn judge(rig: &mut Rig, witnesses: Vec<(String, Witness)>) -> Vec<String> {
    let must_come = witnesses.iter().flat_map(|(_, witness)| witness.must_come());
    let delivered = rig.tap.messages_of(must_come).await.clone();
    rig.settled().await;
    let mut violations = Vec::new();
    let mut acknowledged = Vec::new();
    for (says, witness) in witnesses {
        let copies = witness.too_many(&delivered);
        violations.extend(
            witness
                .violations
                .iter()
                .chain(&copies)
                .map(|what| format!("{says}: {what}")),
        );
        acknowledged.extend(witness.acknowledged);
    }
    violations.extend(audit_mixed(&rig.database, &acknowledged, delivered).await);
    violations
}

#[tokio::test]
async fn every_alternative_keeps_its_promise() {
    let started = Instant::now();
    let mut rig = Rig::start().await;
    let alone = each_alone();
    let tenants = rig.tenants(alone.len()).await;
    let runs = alone.iter().zip(&tenants).map(async |(names, tenant)| {
        let running = rig
            .run(names.alternatives(), names.placement, Isolation::ReadCommitted)
            .unwrap_or_else(|refused| panic!("{}: {refused}", names.says()));
        let witness = Subject::new(&running, &names.alternatives(), tenant).in_full().await;
        // What a plan does beside its requests goes on until everything is judged.
        (running, (names.says(), witness))
    });
    let runs: Vec<_> = stream::iter(runs).buffer_unordered(3).collect().await;
    let (running, witnesses): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let violations = judge(&mut rig, witnesses).await;
    drop(running);
    eprintln!(
        "{} alternatives in {:.1} s",
        alone.len(),
        started.elapsed().as_secs_f64()
    );
    assert_eq!(violations, [""; 0]);
}

/// Behind a pooler in transaction mode, each that does not say that it takes a session of its own.
#[tokio::test]
async fn every_alternative_works_on_sessions_that_are_lent_for_a_transaction_or_says_why_not() {
    let started = Instant::now();
    let pooler = PgBouncer::start(4).await;
    let mut rig = Rig::behind(&pooler).await;
    let mut alone = each_alone();
    alone.retain(|names| {
        let chosen = names.alternatives();
        let placement = specs::<dyn Placement>()
            .into_iter()
            .find(|spec| spec.name == names.placement);
        let needs = [
            chosen.inserts.spec(),
            chosen.touch.spec(),
            chosen.announce.spec(),
            placement.expect("it is registered"),
        ];
        let why = needs.into_iter().find_map(|spec| spec.needs.session);
        let refused = rig
            .compiles(chosen, names.placement)
            .err()
            .map(|refused| refused.to_string());
        assert_eq!(refused.is_some(), why.is_some(), "{}: {refused:?}", names.says());
        assert!(
            refused.unwrap_or_default().contains(why.unwrap_or_default()),
            "{}",
            names.says()
        );
        why.is_none()
    });
    let tenants = rig.tenants(alone.len()).await;
    let runs = alone.iter().zip(&tenants).map(async |(names, tenant)| {
        let running = rig
            .run(names.alternatives(), names.placement, Isolation::ReadCommitted)
            .unwrap_or_else(|refused| panic!("{}: {refused}", names.says()));
        let witness = Subject::new(&running, &names.alternatives(), tenant).in_brief().await;
        rig.announced(witness.must_come().collect()).await;
        (names.says(), witness)
    });
    let witnesses: Vec<_> = stream::iter(runs).buffer_unordered(8).collect().await;
    let violations = judge(&mut rig, witnesses).await;
    eprintln!(
        "{} alternatives in {:.1} s",
        alone.len(),
        started.elapsed().as_secs_f64()
    );
    assert_eq!(violations, [""; 0]);
}

#[tokio::test]
async fn alternatives_go_together_or_say_why_not() {
    let started = Instant::now();
    let mut rig = Rig::start().await;
    let (mut compiled, mut refused) = (Vec::new(), BTreeMap::new());
    for names in all_together() {
        match rig.compiles(names.alternatives(), names.placement) {
            Ok(()) => compiled.push(names),
            Err(reason) => {
                let reason = reason.to_string();
                assert!(
                    reason.contains(names.inserts) && reason.contains(names.touch),
                    "{reason}"
                );
                refused.insert(names.says(), reason);
            }
        }
    }
    // The published inserter carries everything.
    assert!(
        refused.keys().all(|names| !names.starts_with(published().inserts)),
        "{refused:?}"
    );
    let combinations = compiled.len();
    compiled.retain(|names| names.unpublished() <= 2);
    let tenants = rig.tenants(compiled.len()).await;
    let runs = compiled.iter().zip(&tenants).map(async |(names, tenant)| {
        let running = rig
            .run(names.alternatives(), names.placement, Isolation::ReadCommitted)
            .unwrap_or_else(|refused| panic!("{}: {refused}", names.says()));
        let witness = Subject::new(&running, &names.alternatives(), tenant).in_brief().await;
        rig.announced(witness.must_come().collect()).await;
        (names.says(), witness)
    });
    let witnesses: Vec<_> = stream::iter(runs).buffer_unordered(12).collect().await;
    let violations = judge(&mut rig, witnesses).await;
    eprintln!(
        "{combinations} combinations and {} refused, {} of two alternatives run, in {:.1} s",
        refused.len(),
        compiled.len(),
        started.elapsed().as_secs_f64()
    );
    assert_eq!(violations, [""; 0]);
}
