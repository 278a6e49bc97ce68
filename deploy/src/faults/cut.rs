//! A network that is gone: connections over the link are reset, and new ones refused until the fault ends.

use std::sync::Arc;

use super::{Crashes, Fault, Heal, On, Spec, Step};
use crate::links::Link;

pub(super) static SPEC: Spec = Spec {
    name: "cut",
    summary: "resets the connections over the link and refuses new ones",
    crashes: Crashes::Not,
    on: On::Link(inflict),
};

fn inflict<'a>(link: &'a Arc<Link>, _: &'a Fault) -> Step<'a, Heal> {
    Box::pin(async move {
        link.cut().await?;
        let link = Arc::clone(link);
        let heal: Heal = Box::new(move |_| Box::pin(async move { link.mend().await }));
        Ok(heal)
    })
}
