//! A network that is slow: another delay on top of the link's own, until the fault ends.

use std::sync::Arc;

use super::{ADDED, Crashes, Fault, Heal, On, Spec, Step};
use crate::links::Link;

pub(super) static SPEC: Spec = Spec {
    name: "slow",
    summary: "adds to the link's round trip (--rtt, 50 ms by default)",
    crashes: Crashes::Not,
    on: On::Link(inflict),
};

fn inflict<'a>(link: &'a Arc<Link>, fault: &'a Fault) -> Step<'a, Heal> {
    Box::pin(async move {
        let before = link.added();
        link.set(before + fault.added.unwrap_or(ADDED)).await?;
        let link = Arc::clone(link);
        let heal: Heal = Box::new(move |_| Box::pin(async move { link.set(before).await }));
        Ok(heal)
    })
}
