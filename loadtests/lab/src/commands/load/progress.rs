//! How far a load has come: a bar where there is a terminal, a line a second elsewhere, both on standard error.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use load::{Second, Shape};

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    unit: &'static str,
}

impl Progress {
    pub(super) fn new(shape: &Shape, unit: &'static str) -> Self {
        let length = shape.length().as_secs_f64().ceil() as u64;
        let bar = || {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} s {wide_msg}");
            ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        };
        Self {
            bar: std::io::stderr().is_terminal().then(bar),
            unit,
        }
    }

    pub(super) fn see(&mut self, second: &Second) {
        let ended = second.start_s + second.length_s;
        let failed: u64 = second.errors.values().sum();
        let mut text = format!(
            "{:.0}{}  {:.1} requests/s  p95 {:.1} ms",
            second.level,
            self.unit,
            second.ok as f64 / second.length_s,
            second.p95_ms
        );
        if failed > 0 {
            text.push_str(&format!("  {failed} failed"));
        }
        if second.warm_up {
            text.push_str("  (not measured)");
        }
        match &self.bar {
            Some(bar) => {
                bar.set_position(ended as u64);
                bar.set_message(text);
            }
            None => eprintln!("{ended:>6.1} s  {text}"),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
