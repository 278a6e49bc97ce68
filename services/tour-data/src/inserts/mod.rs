//! Axis `inserts`: how the rows of a tour get in.
//!
//! An alternative is one file in this folder that defines `SPEC` and `make`; the build finds it. What several of them stand
//! on is in `shared/`.

use std::sync::Arc;

use async_trait::async_trait;

use crate::axis::{Axis, Entry};
use crate::placement::Home;
use crate::plan::{Clock, Incompatible, Isolation, Needs, Shape, Spec, Steps, TxError};
use crate::tour::NewTour;

mod shared;

include!(concat!(env!("OUT_DIR"), "/inserts.rs"));

/// A way to write the rows.
pub trait Inserts: Send + Sync {
    /// Its name.
    fn spec(&self) -> &'static Spec;

    /// Takes the statements of touch and announcement in, once at start.
    ///
    /// # Errors
    /// [`Incompatible`] if it cannot carry one of them, or cannot give what they need.
    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible>;
}

/// An inserter with everything it will ever send.
#[async_trait]
pub trait Program: Send + Sync {
    /// Runs the transaction once, from BEGIN to COMMIT.
    ///
    /// # Errors
    /// Unless it is [`TxError::CommitUnknown`], nothing was written and no lock is held.
    async fn commit(
        &self,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError>;
}

/// What a committed transaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Rows of the five tour tables.
    pub rows: u64,
    /// Statements sent, BEGIN and COMMIT included.
    pub statements: u64,
}

impl Axis for dyn Inserts {
    const NAME: &'static str = "inserts";
    type Make = fn() -> Arc<dyn Inserts>;

    fn registry() -> &'static [Entry<Self>] {
        REGISTRY
    }
}
