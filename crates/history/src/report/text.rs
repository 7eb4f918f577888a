//! Report in sentences.

use std::fmt::Write as _;

use super::{AtLimit, Lengths, LimitCheck, Report};
use crate::chart::number::{counted, duration, grouped};

/// One line of a report: what it is about, and what there is to say.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) words: String,
    /// Whether it is what nobody wants to read.
    pub(super) is_bad: bool,
}

/// Returns the report as text for a terminal.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n{}\n\n", title(report), span(report));
    for line in lines(report) {
        let mark = if line.is_bad { "!" } else { " " };
        writeln!(text, "{mark} {:<16} {}", line.name, line.words)
            .expect("writing to a string cannot fail");
    }
    text
}

/// Returns the title.
pub(super) fn title(report: &Report) -> String {
    match &report.event {
        Some(event) => format!("Room {}, event {event}", report.room),
        None => format!("Room {}", report.room),
    }
}

/// Returns the time that the report is about.
pub(super) fn span(report: &Report) -> String {
    let step = counted(report.step_minutes, "minute", "minutes");
    format!(
        "{} to {} (UTC), in steps of {step}",
        report.from, report.until
    )
}

/// Returns the lines of the report.
pub(super) fn lines(report: &Report) -> Vec<Line> {
    let good = |name, words| Line {
        name,
        words,
        is_bad: false,
    };
    let mut lines = vec![
        limit("Admissions", &report.admissions, report.step_minutes),
        limit("Active visitors", &report.active, report.step_minutes),
    ];
    if report.admitted_outside_limits > 0 {
        lines.push(good(
            "Outside limits",
            format!(
                "{} were admitted while no limit applied",
                grouped(report.admitted_outside_limits)
            ),
        ));
    }
    lines.push(good(
        "Visitors",
        format!(
            "{} came, {} were admitted, {} left the queue, {} rejections, {} logouts",
            grouped(report.arrivals),
            grouped(report.admitted),
            grouped(report.abandoned),
            grouped(report.rejected),
            grouped(report.revoked)
        ),
    ));
    lines.push(good(
        "Queue",
        format!(
            "at most {} waited at once",
            grouped(report.most_waiting.into())
        ),
    ));
    lines.push(good(
        "Waits",
        lengths(&report.waits, "admitted visitors waited"),
    ));
    lines.push(good(
        "Time inside",
        lengths(&report.inside, "sessions ended"),
    ));
    lines.push(good("Fill", fill(report)));
    lines.push(good(
        "Order",
        lengths(&report.inversions, "admissions compared with the queue"),
    ));
    lines.push(good("Announced waits", announced(report)));
    lines.push(origin(report));
    if report.missing_points > 0 {
        lines.push(Line {
            name: "Gaps",
            words: format!(
                "nothing is known of {}",
                counted(report.missing_points, "step", "steps")
            ),
            is_bad: true,
        });
    }
    lines
}

fn limit(name: &'static str, check: &LimitCheck, step: u64) -> Line {
    let at = |at: &AtLimit| {
        format!(
            "{} of {} at {}",
            grouped(at.count),
            grouped(at.limit),
            at.at
        )
    };
    let nearest = check.nearest.as_ref().map(at).unwrap_or_default();
    let (mut words, is_bad) = match check.held {
        None => ("no ledger replied, so nothing can be said".to_owned(), true),
        Some(true) => (format!("the limit held; nearest: {nearest}"), false),
        Some(false) => {
            let steps = counted(check.above_total, "step was", "steps were");
            (format!("{steps} above the limit; worst: {nearest}"), true)
        }
    };
    if check.held.is_some() && check.unchecked > 0 {
        let steps = counted(check.unchecked, "step", "steps");
        words.push_str(&format!("; {steps} without a known limit"));
    }
    if step > 1 && name == "Admissions" {
        words.push_str("; single minutes are not known any more");
    }
    Line {
        name,
        words,
        is_bad,
    }
}

fn lengths(lengths: &Lengths, what: &str) -> String {
    let count = grouped(lengths.count);
    let (Some(p50), Some(p90), Some(p99), Some(max)) = (
        lengths.p50_ms,
        lengths.p90_ms,
        lengths.p99_ms,
        lengths.max_ms,
    ) else {
        return format!("{count} {what}");
    };
    let [p50, p90, p99, max] = [p50, p90, p99, max].map(duration);
    format!("{count} {what}; half {p50}, nine of ten {p90}, 99 of 100 {p99}, longest {max}")
}

fn fill(report: &Report) -> String {
    let fill = &report.fill;
    let (Some(active), Some(admissions)) = (fill.active_per_mille, fill.admissions_per_mille)
    else {
        return "nobody waited for a whole step".to_owned();
    };
    format!(
        "while visitors waited, {} % of the seats and {} % of the admissions were used",
        tenths(active),
        tenths(admissions)
    )
}

fn announced(report: &Report) -> String {
    let announced = &report.announced;
    let left = format!(
        "{} left before their range had passed",
        grouped(announced.left_before)
    );
    match announced.right_per_mille {
        None => format!("none could be checked; {left}"),
        Some(right) => format!(
            "{} % were right ({} right, {} earlier, {} later, {} left after it); {left}",
            tenths(right),
            grouped(announced.right),
            grouped(announced.early),
            grouped(announced.late),
            grouped(announced.left_after)
        ),
    }
}

fn origin(report: &Report) -> Line {
    let origin = &report.origin;
    Line {
        name: "Origin",
        words: format!(
            "{}; {} server errors, {} requests without a response",
            lengths(&origin.latency, "responses"),
            grouped(origin.server_errors),
            grouped(origin.without_response)
        ),
        is_bad: origin.server_errors + origin.without_response > 0,
    }
}

/// Returns per mille in percent: `97.5`.
fn tenths(per_mille: u64) -> String {
    format!("{}.{}", per_mille / 10, per_mille % 10)
}
