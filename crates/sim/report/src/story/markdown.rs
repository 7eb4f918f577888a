//! Markdown of the page, piece by piece.

use std::fmt::Write as _;

use crate::chart::Chart;

/// Adds a chart, with its description for readers who cannot see it.
pub(super) fn push_chart(text: &mut String, charts: &[Chart], slug: &str) {
    let chart = charts
        .iter()
        .find(|chart| chart.file_name == format!("{slug}.svg"));
    let chart = chart.expect("the text shows charts that are drawn");
    push(
        text,
        format_args!(
            "![{}. {}](allocations/{})\n\n",
            chart.title, chart.description, chart.file_name
        ),
    );
}

pub(super) fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what)
        .expect("writing to a string cannot fail");
}
