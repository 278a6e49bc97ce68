//! What is in the folders is in the registry, and says what it has to say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tour_data::announce::Announce;
use tour_data::axis::Axis;
use tour_data::inserts::Inserts;
use tour_data::placement::Placement;
use tour_data::plan::{Delivery, Loss, Lost, Promise};
use tour_data::touch::Touch;

use crate::support::specs;

fn folder<A: Axis + ?Sized>() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(A::NAME)
}

/// The alternatives, by the names of their files.
fn files<A: Axis + ?Sized>() -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder::<A>()).expect("the folder exists");
    entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("mod.rs"))
        .map(|path| {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            stem.replace('_', "-")
        })
        .collect()
}

fn check<A: Axis + ?Sized>() {
    let registered: BTreeSet<String> = specs::<A>().iter().map(|spec| spec.name.to_owned()).collect();
    assert_eq!(
        files::<A>(),
        registered,
        "{}: a file is called what its SPEC is called",
        A::NAME
    );
    assert_eq!(specs::<A>().len(), registered.len(), "{}: names are unique", A::NAME);
    assert_eq!(
        specs::<A>().iter().filter(|spec| spec.baseline).count(),
        1,
        "{}",
        A::NAME
    );
    for entry in A::registry() {
        let name = entry.spec.name;
        assert!(
            !entry.gives_up.is_empty() && !entry.not_for.is_empty(),
            "{} {name}: the module comment has to end with \"Gives up: … Not to be used …\"",
            A::NAME
        );
        for loss in losses(entry.spec.promise) {
            assert!(
                !loss.text.is_empty() && !loss.causes.is_empty(),
                "{} {name}: a loss has a text and a cause",
                A::NAME
            );
        }
        let file = folder::<A>().join(format!("{}.rs", name.replace('-', "_")));
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let past = ["PgPool", "PgConnection", "PgListener"]
            .into_iter()
            .find(|word| text.contains(word));
        assert!(
            past.is_none() || entry.spec.needs.session.is_some(),
            "{}: {past:?} goes past `chassis::db::Session`, which knows whether statements may have names; use that, or say \
             in `needs.session` why it takes sessions of the service's own",
            file.display()
        );
    }
}

fn losses(promise: Option<Promise>) -> &'static [Loss] {
    match promise {
        Some(Promise::Tenant { loses, .. } | Promise::Message { loses, .. }) => loses,
        None => &[],
    }
}

#[test]
fn a_message_of_an_acknowledged_tour_is_lost_where_it_comes_at_most_once_and_nowhere_else() {
    for spec in specs::<dyn Announce>() {
        let Some(Promise::Message { delivery, loses }) = spec.promise else {
            panic!("{} promises no message", spec.name);
        };
        let lost = loses.iter().any(|loss| loss.of == Lost::Acknowledged);
        assert_eq!(lost, delivery == Delivery::AtMostOnce, "{}", spec.name);
    }
}

#[test]
fn folder_and_registry_agree_and_every_alternative_says_what_it_gives_up_and_when_not_to_use_it() {
    check::<dyn Inserts>();
    check::<dyn Touch>();
    check::<dyn Announce>();
    check::<dyn Placement>();
}
