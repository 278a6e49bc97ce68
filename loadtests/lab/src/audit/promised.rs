//! What a touch promises of when a reader sees what, as times.

use std::time::Duration;

use crate::duration;

/// A promise such as `coarse(1000ms)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Promised {
    /// Longest time from a 201 until a reader sees the tour, or a later one; `None` where none is promised to be seen.
    pub(super) late: Option<Duration>,
    /// How much older than such a tour `modifiedAt` may be; `None` where it does not follow tours that change nothing.
    pub(super) old: Option<Duration>,
}

impl Promised {
    /// Reads what the service's description says. Of what is unknown nothing is promised.
    pub(super) fn of(config: &str) -> Self {
        let (kind, window) = match config.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((kind, window)) => (kind, duration::parse(window).ok()),
            None => (config, Some(Duration::ZERO)),
        };
        let at_once = Some(Duration::ZERO);
        let (late, old) = match (kind, window) {
            ("exact", _) => (at_once, at_once),
            ("coarse", Some(window)) => (at_once, Some(window)),
            ("on-change", _) => (at_once, None),
            ("eventual", Some(window)) => (Some(window), at_once),
            ("eventual-on-change", Some(window)) => (Some(window), None),
            _ => (None, None),
        };
        Self { late, old }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_promise_says_how_late_and_how_old() {
        let ms = |ms| Some(Duration::from_millis(ms));
        for (config, late, old) in [
            ("exact", ms(0), ms(0)),
            ("coarse(1000ms)", ms(0), ms(1000)),
            ("on-change", ms(0), None),
            ("eventual(500ms)", ms(500), ms(0)),
            ("eventual-on-change(2000ms)", ms(2000), None),
            ("unwritten", None, None),
            ("coarse(soon)", None, None),
            ("", None, None),
        ] {
            assert_eq!(Promised::of(config), Promised { late, old }, "{config}");
        }
    }
}
