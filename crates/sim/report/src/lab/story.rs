//! Text about rate limits: their mistakes, and the cost of avoiding them. It follows the article's
//! argument ("Distributed Rate-Limiting Algorithms", 2022), with numbers from the gateway's code
//! and from the models beside it.
//!
//! The program writes the text, so that it cannot contradict the code.

mod buckets;
mod facts;
mod introduction;
mod sharing;
mod windows;

use std::fmt::Arguments;
use std::fmt::Write as _;

use crate::chart::Chart;
use crate::chart::story::{self, Story, wrapped};

/// Name of its files.
const NAME: &str = "rate-limits";
/// Name of its second page.
const MANY_NODES: &str = "rate-limits-many-nodes";

/// Mark in the text by which a later run knows that it may overwrite it.
const MARK: &str = "<!-- Written by `anteroom simulate limits --story`.";

/// Computes the story. It takes seconds and gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    let mut one_node = Page::default();
    introduction::push(&mut one_node);
    windows::push(&mut one_node);
    buckets::push(&mut one_node);
    introduction::push_link(&mut one_node);
    let mut many_nodes = Page::default();
    introduction::push_second(&mut many_nodes);
    sharing::push(&mut many_nodes);
    introduction::push_choice(&mut many_nodes);
    let page = |name, page: &Page| story::Page {
        name,
        markdown: wrapped(&page.text),
    };
    let pages = vec![page(NAME, &one_node), page(MANY_NODES, &many_nodes)];
    let charts = one_node.charts.into_iter().chain(many_nodes.charts);
    let file = |chart: Chart| (chart.file_name, chart.svg);
    Story {
        name: NAME,
        mark: MARK,
        pages,
        charts: charts.map(file).collect(),
    }
}

/// Text under construction, and its charts.
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

    /// Adds a chart, with its description for readers who cannot see it.
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

    /// Adds a table: the heads of its columns, of which the first has words, then its rows.
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
