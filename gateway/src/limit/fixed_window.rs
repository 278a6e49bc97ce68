//! The published way: a counter for each minute of the clock.
//!
//! Gives up: the border. Whoever spends one minute's quota in its last second and the next one's in its first gets twice
//! the limit within two seconds.

use chassis::cache::Script;

use super::algorithm::Algorithm;

pub(super) struct FixedWindow;

impl Algorithm for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed-window"
    }

    fn script(&self) -> &'static Script {
        static SCRIPT: Script = Script::new(include_str!("fixed_window.lua"));
        &SCRIPT
    }
}
