//! Report as one HTML page: no script, nothing fetched, all charts inside, so that the file can be
//! mailed. It is readable from 320 px, on paper, and by screen readers.

use std::fmt::Write as _;

use crate::chart::Chart;
use crate::chart::escape::escape;
use anteroom_sim::outcome::Outcome;
use anteroom_sim::scenario::model::Scenario;

use crate::ASSUMPTIONS;
use crate::plan;
use crate::rows::{self, GROUPS, NOTES};
use crate::variant::{Variant, blocks};
use crate::verdict;

/// Mark in every page by which a later run knows that it may overwrite it.
pub(super) const MARK: &str = "<meta name=\"generator\" content=\"anteroom simulate\">";

const STYLE: &str = include_str!("page.css");

/// Part of the page for one variant.
pub(super) struct Section<'a> {
    /// Variant that was run.
    pub(super) variant: Variant<'a>,
    /// Charts of the variant; empty if there are too many variants to draw them all.
    pub(super) charts: Vec<Chart>,
}

/// Returns the page.
pub(super) fn page(scenario: &Scenario, outcomes: &[Outcome], sections: &[Section<'_>]) -> String {
    let name = escape(&scenario.name);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{MARK}\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Rehearsal: {name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Rehearsal: {name}</h1>\n"
    );
    push_plan(&mut html, scenario);
    push_verdicts(&mut html, sections);
    push_tables(&mut html, outcomes);
    for section in sections {
        push_charts(&mut html, section);
    }
    push_undrawn(&mut html, sections);
    push_violations(&mut html, outcomes);
    html.push_str("<h2>Assumptions, and what a simulation cannot know</h2>\n<ul>\n");
    for assumption in ASSUMPTIONS {
        push(&mut html, format_args!("<li>{}</li>\n", escape(assumption)));
    }
    html.push_str("</ul>\n</main>\n</body>\n</html>\n");
    html
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    html.write_fmt(text)
        .expect("writing to a string cannot fail");
}

fn push_paragraph(html: &mut String, class: &str, text: &str) {
    push(
        html,
        format_args!("<p class=\"{class}\">{}</p>\n", unbroken(&escape(text))),
    );
}

/// Keeps a number and its unit on one line.
fn unbroken(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        let is_after_number = kept.ends_with(|last: char| last.is_ascii_digit());
        kept.push(if c == ' ' && is_after_number {
            '\u{a0}'
        } else {
            c
        });
    }
    kept
}

fn push_plan(html: &mut String, scenario: &Scenario) {
    for paragraph in scenario.about.split("\n\n") {
        push_paragraph(html, "about", paragraph);
    }
    push_paragraph(html, "plan", &plan::frame(scenario));
    for room in &scenario.rooms {
        push_paragraph(html, "plan", &plan::room(room));
    }
    let faults = plan::faults(scenario);
    if !faults.is_empty() {
        html.push_str("<p class=\"plan\">Planned faults and changes:</p>\n<ul class=\"plan\">\n");
        for fault in faults {
            push(html, format_args!("<li>{}</li>\n", escape(&fault)));
        }
        html.push_str("</ul>\n");
    }
}

fn push_verdicts(html: &mut String, sections: &[Section<'_>]) {
    html.push_str("<h2>Summary</h2>\n");
    for section in sections {
        if sections.len() > 1 {
            let title = escape(&section.variant.title());
            push(html, format_args!("<h3>{title}</h3>\n"));
        }
        for sentence in verdict::sentences(&section.variant) {
            let class = if sentence.is_bad {
                "verdict bad"
            } else {
                "verdict"
            };
            push_paragraph(html, class, &sentence.text);
        }
    }
}

fn push_tables(html: &mut String, outcomes: &[Outcome]) {
    html.push_str("<h2>Numbers</h2>\n");
    for block in blocks(outcomes) {
        push_table(html, &block);
    }
    html.push_str("<ol class=\"notes\">\n");
    for note in NOTES {
        push(html, format_args!("<li>{}</li>\n", escape(note)));
    }
    html.push_str("</ol>\n");
}

fn push_table(html: &mut String, columns: &[&Outcome]) {
    let Some(first) = columns.first() else { return };
    let room = escape(&first.room);
    push(
        html,
        format_args!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Numbers of room \
             {room}\">\n\
             <table>\n<caption>Room {room}</caption>\n<thead>\n\
             <tr><th scope=\"col\">Allocation [1]</th>"
        ),
    );
    for outcome in columns {
        push(
            html,
            format_args!("<th scope=\"col\">{}</th>", rows::column(outcome)),
        );
    }
    html.push_str("</tr>\n");
    for (at, (key, _)) in first.settings.iter().enumerate() {
        push(
            html,
            format_args!("<tr><th scope=\"row\">{}</th>", escape(key)),
        );
        for outcome in columns {
            let value = outcome.settings.get(at).map_or("", |(_, value)| value);
            push(html, format_args!("<td>{}</td>", escape(value)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</thead>\n");
    for group in &GROUPS {
        push_group(html, group, columns);
    }
    html.push_str("</table>\n</div>\n");
}

fn push_group(html: &mut String, group: &rows::Group, columns: &[&Outcome]) {
    let span = columns.len() + 1;
    push(
        html,
        format_args!(
            "<tbody>\n<tr><th class=\"group\" scope=\"rowgroup\" \
             colspan=\"{span}\"><span>{}</span></th></tr>\n",
            escape(group.title)
        ),
    );
    for row in group.rows {
        let note = row
            .note
            .map_or_else(String::new, |note| format!(" [{}]", note + 1));
        push(
            html,
            format_args!(
                "<tr><th scope=\"row\">{}{note}</th>",
                escape(row.name.trim())
            ),
        );
        for outcome in columns {
            let cell = row.cell(outcome);
            let class = if cell.is_bad { " class=\"bad\"" } else { "" };
            push(html, format_args!("<td{class}>{}</td>", escape(&cell.text)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n");
}

fn push_charts(html: &mut String, section: &Section<'_>) {
    if section.charts.is_empty() {
        return;
    }
    push(
        html,
        format_args!("<h2>{}</h2>\n", escape(&section.variant.title())),
    );
    for chart in &section.charts {
        push(
            html,
            format_args!(
                "<figure>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" \
                 aria-label=\"{}\">\n{}</div>\n\
                 <figcaption>{}</figcaption>\n</figure>\n",
                escape(&chart.title),
                chart.svg,
                escape(&chart.description)
            ),
        );
    }
}

fn push_undrawn(html: &mut String, sections: &[Section<'_>]) {
    let undrawn = sections
        .iter()
        .filter(|section| section.charts.is_empty())
        .count();
    if undrawn > 0 {
        let drawn = sections.len() - undrawn;
        let text = format!(
            "Charts are drawn for the first {drawn} of {} settings. The tables above have all.",
            sections.len()
        );
        push_paragraph(html, "plan", &text);
    }
}

fn push_violations(html: &mut String, outcomes: &[Outcome]) {
    /// The first ones describe the fault; the JSON has all.
    const SHOWN: usize = 10;
    let mut violating = outcomes
        .iter()
        .filter(|outcome| !outcome.violations.is_empty())
        .peekable();
    if violating.peek().is_some() {
        html.push_str("<h2>Violated invariants</h2>\n");
    }
    for outcome in violating {
        let name = format!("Room {}, {}", outcome.room, rows::column(outcome));
        push(html, format_args!("<h3>{}</h3>\n<ul>\n", escape(&name)));
        for violation in outcome.violations.iter().take(SHOWN) {
            let text = format!(
                "{} into the run: {} ({})",
                crate::chart::number::since_start(violation.at_ms),
                violation.seen,
                crate::json::promise(violation.promise)
            );
            push(html, format_args!("<li>{}</li>\n", escape(&text)));
        }
        html.push_str("</ul>\n");
    }
}
