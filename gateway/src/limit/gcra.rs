//! The generic cell rate algorithm: one point in time a subject, at which everything it has used is paid off.
//!
//! After a burst of at most a minute's quota, requests pass evenly spaced, and there is no border at which twice the
//! limit would. Gives up: a count that can be read with the eye.

use chassis::cache::Script;

use super::algorithm::Algorithm;

pub(super) struct Gcra;

impl Algorithm for Gcra {
    fn name(&self) -> &'static str {
        "gcra"
    }

    fn script(&self) -> &'static Script {
        static SCRIPT: Script = Script::new(include_str!("gcra.lua"));
        &SCRIPT
    }
}
