//! What do limits of calls get wrong, and what does it cost to get them right? The article's
//! argument ("Distributed Rate-Limiting Algorithms", 2022), with figures from the code that runs in
//! the gateway and from the models beside it.
//!
//! The text is generated, so that it cannot say what the code does not do.

mod buckets;
mod facts;
mod opening;
mod sharing;
mod windows;

use std::fmt::Arguments;
use std::fmt::Write as _;

use crate::chart::Chart;
use crate::chart::story::{Story, wrapped};

/// What its files are called.
const NAME: &str = "rate-limits";

/// Stands in the text, so that a later run knows that it may overwrite it.
const MARK: &str = "<!-- Written by `anteroom simulate limits --story`.";

/// Computes the story. Takes seconds; gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    let mut page = Page::default();
    opening::push(&mut page);
    windows::push(&mut page);
    buckets::push(&mut page);
    sharing::push(&mut page);
    opening::push_choice(&mut page);
    let file = |chart: Chart| (chart.file_name, chart.svg);
    Story {
        name: NAME,
        mark: MARK,
        markdown: wrapped(&page.text),
        charts: page.charts.into_iter().map(file).collect(),
    }
}

/// The text as far as it is written, and the charts that it shows.
#[derive(Debug, Default)]
struct Page {
    text: String,
    charts: Vec<Chart>,
}

impl Page {
    fn push(&mut self, what: Arguments<'_>) {
        self.text
            .write_fmt(what)
            .expect("writing to a string cannot fail");
    }

    /// Shows a chart, with its description for those who cannot see it.
    fn show(&mut self, chart: Chart) {
        let Chart {
            title,
            description,
            file_name,
            ..
        } = &chart;
        let line = format!("![{title}. {description}]({NAME}/{file_name})\n\n");
        self.text.push_str(&line);
        self.charts.push(chart);
    }

    /// A table: heads of its columns, of which the first is of words, then its rows.
    fn table<const N: usize>(&mut self, heads: [&str; N], rows: &[[String; N]]) {
        let mut line = |cells: &[String]| {
            self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
        };
        line(&heads.map(str::to_owned));
        let rule = |at: usize| if at == 0 { "---" } else { "---:" };
        line(&std::array::from_fn::<String, N, _>(|at| {
            rule(at).to_owned()
        }));
        for row in rows {
            line(row);
        }
        self.text.push('\n');
    }
}
