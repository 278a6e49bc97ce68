//! `report.md`.

use std::fmt::Write;

use super::{deadlocks, noise, published, table, verdict};
use crate::experiment::Experiment;
use crate::published::Published;
use crate::results::Results;

/// Writes the report as Markdown.
pub(super) fn render(experiment: &Experiment, results: &Results, published: Option<&Published>) -> String {
    let mut text = format!("# {}\n\n**{}**\n\n", results.experiment, results.question);
    if !experiment.hypothesis.is_empty() {
        text += &format!("{}\n\n", experiment.hypothesis.trim());
    }
    for failure in &results.failures {
        text += &format!("> **Failed:** {failure}\n>\n");
    }
    for refused in &results.refused {
        text += &format!(
            "> **{}** was stopped before it was measured, as it has to be, by `{}`: {}\n>\n",
            refused.arm, refused.id, refused.says
        );
    }
    let tables = [
        ("Ranking", table::ranking(results)),
        ("Arms", Some(table::full(results))),
    ];
    for (title, table) in tables {
        let Some(table) = table else { continue };
        text += &format!("\n## {title}\n\n");
        let lines = table.rows.into_iter().map(|(name, cells)| [vec![name], cells].concat());
        rows(&mut text, &table.header, lines);
    }

    text += "\n## What limits each arm\n\n";
    for arm in &results.arms {
        text += &format!("- **{}**: {}\n", arm.name, arm.bottleneck.text);
    }
    if let Some(floor) = &results.noise_floor {
        text += &format!("\n## Noise floor\n\n{}\n", noise::sentence(floor));
    }
    claims(&mut text, results);
    curves(&mut text, results);
    beside(&mut text, results, published);
    text += &deadlocks::section(results);
    faults(&mut text, results);
    last_changes(&mut text, results);
    preflight(&mut text, results);
    audit(&mut text, results);
    environment(&mut text, results);
    text
}

fn claims(text: &mut String, results: &Results) {
    if results.claims.is_empty() {
        return;
    }
    *text += "\n## Claims\n\n";
    let header = ["claim", "published", "measured", "95 % interval", "verdict", "why"].map(str::to_owned);
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
    let claims = results.claims.iter().map(|claim| {
        let must = if claim.must { " (must)" } else { "" };
        vec![
            format!("{}{must}", claim.text),
            number(claim.published),
            number(claim.measured),
            claim
                .ci95
                .map_or_else(|| "–".to_owned(), |ci95| table::interval(Some(ci95))),
            verdict(claim.verdict).to_owned(),
            claim.note.clone(),
        ]
    });
    rows(text, &header, claims);
}

fn curves(text: &mut String, results: &Results) {
    for curve in &results.curves {
        let _ = write!(
            text,
            "\n## {}\n\n- {}\n- {}\n\n",
            curve.title, curve.knee.says, curve.scalability.says
        );
        let header = [
            curve.x_label.as_str(),
            "arm",
            "throughput /s",
            "95 % interval",
            "by the fit /s",
            "ceiling by the hold time /s",
            "p95 ms",
        ];
        let points = curve.points.iter().map(|point| {
            let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
            vec![
                point.x.to_string(),
                point.arm.clone(),
                format!("{:.2}", point.throughput),
                table::interval(point.ci95),
                number(curve.scalability.fit.map(|fit| fit.at(point.x))),
                number(point.ceiling_per_s),
                table::ms(point.p95_ms),
            ]
        });
        rows(text, &header.map(str::to_owned), points);
    }
}

fn beside(text: &mut String, results: &Results, published: Option<&Published>) {
    let figures = published::beside(results, published);
    let Some(story) = published.filter(|_| !figures.is_empty()) else {
        return;
    };
    let _ = write!(
        text,
        "\n## Published beside measured\n\n{}: {}\n\n",
        story.title, story.source
    );
    let header = ["arm", "metric", "published", "measured", "audit"].map(str::to_owned);
    let figures = figures.into_iter().map(|figure| {
        let audit = figure
            .cannot_hold
            .map(|why| format!("cannot hold: {why}"))
            .unwrap_or_default();
        vec![
            figure.arm,
            figure.metric,
            format!("{:.2}", figure.published),
            format!("{:.2}", figure.measured),
            audit,
        ]
    });
    rows(text, &header, figures);
}

fn faults(text: &mut String, results: &Results) {
    if results.arms.iter().all(|arm| arm.faults.is_empty()) {
        return;
    }
    *text += "\n## Faults\n\n";
    let header = [
        "arm",
        "fault",
        "first tour acknowledged s after its end",
        "longest time without one s",
        "requests repeated",
    ];
    let faults = results.arms.iter().flat_map(|arm| {
        arm.faults.iter().map(|fault| {
            vec![
                arm.name.clone(),
                format!("{} {}", fault.kind, fault.target),
                format!("{:.2}", fault.recovery_s),
                format!("{:.2}", fault.longest_gap_s),
                fault.repeated.to_string(),
            ]
        })
    });
    rows(text, &header.map(str::to_owned), faults);
}

fn last_changes(text: &mut String, results: &Results) {
    if results.arms.iter().all(|arm| arm.last_changes.is_empty()) {
        return;
    }
    *text += "\n## Faults at the 201 of a change that nothing follows\n\n";
    let header = ["arm", "fault", "answered again after s", "change seen after s"];
    let changes = results.arms.iter().flat_map(|arm| {
        arm.last_changes.iter().map(|change| {
            let seen = change.seen_s.map(|after| format!("{after:.2}"));
            vec![
                arm.name.clone(),
                format!("{} {}", change.kind, change.target),
                format!("{:.2}", change.answered_s),
                seen.unwrap_or_else(|| "never".to_owned()),
            ]
        })
    });
    rows(text, &header.map(str::to_owned), changes);
}

fn preflight(text: &mut String, results: &Results) {
    if results.arms.iter().all(|arm| arm.preflight.is_empty()) {
        return;
    }
    *text += "\n## Preflight\n\n";
    let header = ["arm", "check", "passed", "found"].map(str::to_owned);
    let checks = results.arms.iter().flat_map(|arm| {
        arm.preflight.iter().map(|check| {
            let passed = if check.ok { "yes" } else { "**no**" };
            vec![
                arm.name.clone(),
                check.id.to_string(),
                passed.to_owned(),
                check.says.clone(),
            ]
        })
    });
    rows(text, &header, checks);
}

fn audit(text: &mut String, results: &Results) {
    *text += "\n## Audit\n\n";
    let header = ["arm", "invariant", "says", "violations", "example"].map(str::to_owned);
    let checks = results.arms.iter().flat_map(|arm| {
        arm.audit.checks.iter().map(|check| {
            let violations = if check.passed {
                "0".to_owned()
            } else {
                format!("**{}**", check.violations)
            };
            let example = check.examples.first().cloned().unwrap_or_default();
            vec![
                arm.name.clone(),
                check.name.clone(),
                check.says.clone(),
                violations,
                example,
            ]
        })
    });
    rows(text, &header, checks);
    for arm in results.arms.iter().filter(|arm| arm.audit.may_lose_ms > 0) {
        *text += &format!(
            "\n**{}** bought its speed with durability: its PostgreSQL preset declares that a crash of the server may cost \
             what was acknowledged in the last {} ms before it. Declared loss: {}.\n",
            arm.name, arm.audit.may_lose_ms, arm.audit.declared_losses
        );
    }
}

fn environment(text: &mut String, results: &Results) {
    let environment = &results.environment;
    let servers: Vec<String> = environment
        .servers
        .iter()
        .map(|(server, version)| format!("{server} {version}"))
        .collect();
    let _ = write!(
        text,
        "\n## Environment\n\n{} × {}, {} MB, Linux {}; {}; Rowlock {}; {} rounds of {} s with {} users; started {}\n",
        environment.cpus,
        environment.cpu_model,
        environment.memory_mb,
        environment.kernel,
        servers.join(", "),
        environment.rowlock,
        results.rounds,
        results.duration_s,
        results.users,
        environment.started_at,
    );
}

/// Appends a table.
pub(crate) fn rows(text: &mut String, header: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| cell.replace('|', "\\|").replace('\n', " "))
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    *text += &line(header);
    *text += &format!("|{}\n", "---|".repeat(header.len()));
    for row in rows {
        *text += &line(&row);
    }
}
