//! The list of fixes for people: as text, and as the table of the README.

use std::fmt::Write as _;

use super::{Fix, Measured};
use crate::describe::{first_sentence, variable};
use crate::facts::Promise;
use crate::report::markdown_table;

/// One paragraph an alternative, under its axis.
pub(crate) fn text(fixes: &[Fix]) -> String {
    let mut text = String::new();
    let mut axis = "";
    for fix in fixes {
        if fix.axis != axis {
            axis = &fix.axis;
            let _ = write!(text, "{}{axis}\n\n", if text.is_empty() { "" } else { "\n" });
        }
        let published = if fix.baseline { " (as published)" } else { "" };
        let _ = writeln!(text, "  {}{published}: {}", fix.name, fix.summary);
        let _ = writeln!(text, "    promises  {}", promise(fix.promise.as_ref()));
        let _ = writeln!(text, "    gives up  {}", or_dash(&fix.gives_up));
        let _ = writeln!(text, "    beware    {}", or_dash(&fix.not_for));
        let _ = writeln!(text, "    measured  {}", in_full(fix));
    }
    text
}

/// The README's table, and below it where its figures are from.
pub(crate) fn markdown(fixes: &[Fix]) -> String {
    let header = ["axis", "alternative", "idea", "promise", "gives up", "throughput"].map(str::to_owned);
    let rows = fixes.iter().map(|fix| {
        let published = if fix.baseline { " (as published)" } else { "" };
        vec![
            fix.axis.clone(),
            format!("`{}`{published}", fix.name),
            fix.summary.clone(),
            promise(fix.promise.as_ref()),
            or_dash(first_sentence(&fix.gives_up)).to_owned(),
            in_short(fix),
        ]
    });
    let mut text = String::new();
    markdown_table(&mut text, &header, rows);
    let mut told: Vec<String> = Vec::new();
    for measured in fixes.iter().filter_map(|fix| fix.measured.as_ref()) {
        let source = format!(
            "`{}` of {}, {}",
            measured.experiment,
            day(measured),
            rounds(measured.rounds)
        );
        if !told.contains(&source) {
            told.push(source);
        }
    }
    if !told.is_empty() {
        let _ = write!(
            text,
            "\nThroughput against the published way of the same axis, all else alike; in brackets the 95 % interval. From {}.\n",
            told.join("; ")
        );
    }
    text
}

/// What is promised, in the words of `--describe`.
fn promise(promise: Option<&Promise>) -> String {
    let Some(promise) = promise else {
        return "leaves the promises of the others as they are".to_owned();
    };
    let mut said = Vec::new();
    for (what, how) in [
        ("config", &promise.config),
        ("modified_at", &promise.modified_at),
        ("delivery", &promise.delivery),
    ] {
        if !how.is_empty() {
            said.push(format!("{what} {how}"));
        }
    }
    if promise.kept == "computed" {
        said.push("computed on read".to_owned());
    }
    if promise.loses.is_empty() {
        said.push("loses nothing".to_owned());
    } else {
        let losses: Vec<&str> = promise.loses.iter().map(|loss| loss.text.as_str()).collect();
        said.push(format!("may lose {}", losses.join("; ")));
    }
    said.join(", ")
}

fn in_full(fix: &Fix) -> String {
    let Some(measured) = &fix.measured else {
        return match &fix.measured_by {
            Some(experiment) => format!("not measured; `cargo rowlock run {experiment}` does"),
            None => format!(
                "not measured; an experiment would, with two arms that differ in {}={} alone",
                variable(&fix.service, &fix.axis),
                fix.name
            ),
        };
    };
    let source = format!(
        "{}, {}, {}",
        measured.experiment,
        day(measured),
        rounds(measured.rounds)
    );
    let figure = if measured.arm == measured.against {
        format!("{:.2} tours/s, which the others are held against", measured.throughput)
    } else {
        let (ratio, throughput) = (ratio(measured), measured.throughput);
        format!(
            "{ratio}: {throughput:.2} tours/s in \"{}\" against \"{}\"",
            measured.arm, measured.against
        )
    };
    format!("{figure}{}{} ({source})", late(measured), broken(measured))
}

/// What readers paid for it.
fn late(measured: &Measured) -> String {
    let staleness = measured.staleness.as_ref().filter(|staleness| staleness.changes > 0);
    staleness.map_or_else(String::new, |staleness| {
        format!(
            "; a change was not seen for {:.0} ms, at most {:.0}",
            staleness.p50_ms, staleness.max_ms
        )
    })
}

fn in_short(fix: &Fix) -> String {
    match &fix.measured {
        None => {
            let command = fix
                .measured_by
                .as_ref()
                .map(|name| format!("; `cargo rowlock run {name}`"));
            format!("not measured{}", command.unwrap_or_default())
        }
        Some(measured) if measured.arm == measured.against => {
            format!("{:.2} tours/s{}", measured.throughput, broken(measured))
        }
        Some(measured) => format!("{}{}", ratio(measured), broken(measured)),
    }
}

fn ratio(measured: &Measured) -> String {
    let interval = measured.ci95.map(|[low, high]| format!(" ({low:.2} … {high:.2})"));
    format!("{:.2}x{}", measured.throughput_ratio, interval.unwrap_or_default())
}

/// A figure that was bought with the invariants is none.
fn broken(measured: &Measured) -> &'static str {
    if measured.audit_passed {
        ""
    } else {
        ", and its audit FAILED"
    }
}

fn rounds(rounds: u32) -> String {
    format!("{rounds} {}", if rounds == 1 { "round" } else { "rounds" })
}

/// The date of a time in RFC 3339.
fn day(measured: &Measured) -> &str {
    measured.date.split('T').next().unwrap_or_default()
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}
