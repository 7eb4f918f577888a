//! Runs side by side, as a table.

use std::fmt::Write as _;

use crate::chart::number::grouped;

use crate::lab::comparison::{Comparison, LeftOut, Run};
use crate::lab::outcome::LimitStatistics;

/// Column of the table.
struct Column {
    head: &'static str,
    cell: fn(&Run) -> String,
    /// Whether a run has a value for it; a column without values is left out.
    is_needed: fn(&LimitStatistics) -> bool,
    /// Explanation, unless the head is enough.
    legend: &'static str,
}

const ALWAYS: fn(&LimitStatistics) -> bool = |_| true;

/// All columns; the first two are words.
const COLUMNS: [Column; 13] = [
    Column::new("algorithm", |run| run.algorithm.name().to_owned(), ""),
    Column::new("store", |run| run.store.word().to_owned(), ""),
    Column::new("requests", |run| grouped(run.outcome.stats.requests), ""),
    Column::new("allowed", |run| grouped(run.outcome.stats.admitted), ""),
    Column::new(
        "wrongly allowed",
        |run| grouped(run.outcome.stats.wrongly_allowed),
        "although the window before was full",
    ),
    Column::new(
        "wrongly rejected",
        |run| grouped(run.outcome.stats.wrongly_rejected),
        "although the window before was not full",
    ),
    Column::new(
        "highest",
        |run| grouped(run.outcome.stats.highest),
        "most allowed requests of one client in any window",
    ),
    Column::new(
        "at most",
        |run| grouped(run.most),
        "bound of the algorithm over this store",
    ),
    Column::new(
        "stranded",
        |run| grouped(run.outcome.stats.stranded),
        "leased to nodes and never used",
    ),
    Column::new("messages", |run| grouped(run.outcome.stats.messages), ""),
    Column {
        head: "undecided",
        cell: |run| grouped(run.outcome.stats.undecided),
        is_needed: |stats| stats.undecided > 0,
        legend: "rejected because no decision came in time",
    },
    Column {
        head: "report lag",
        cell: |run| format!("{} ms", grouped(run.outcome.stats.lag.0.div_ceil(1_000))),
        is_needed: |stats| stats.lag.0 > 0,
        legend: "longest time until a node learned of a request",
    },
    Column {
        head: "writes lost",
        cell: |run| {
            let stats = run.outcome.stats;
            let [lost, all] = [stats.writes_lost, stats.writes].map(grouped);
            format!("{lost} of {all}")
        },
        is_needed: |stats| stats.writes > 0,
        legend: "failed because another writer was faster",
    },
];
/// Number of columns with words, which are aligned left.
const WORDS: usize = 2;

impl Column {
    /// Creates a column that is always shown.
    const fn new(head: &'static str, cell: fn(&Run) -> String, legend: &'static str) -> Self {
        Self {
            head,
            cell,
            is_needed: ALWAYS,
            legend,
        }
    }
}

/// Returns a row for each run, below the inputs.
pub(crate) fn table(comparison: &Comparison) -> String {
    let Comparison { runs, traffic, .. } = comparison;
    let is_needed = |column: &&Column| {
        let mut runs = runs.iter();
        runs.any(|run| (column.is_needed)(&run.outcome.stats))
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_needed).collect();
    let heads = columns.iter().map(|column| column.head.to_owned());
    let mut rows: Vec<Vec<String>> = vec![heads.collect()];
    rows.extend(runs.iter().map(|run| {
        let cells = columns.iter().map(|column| (column.cell)(run));
        cells.collect()
    }));
    let input = comparison.input.words();
    let mut text = format!("traffic: {}\ninputs: {input}\n\n", traffic.about);
    push_rows(&mut text, &rows);
    text.push('\n');
    for column in columns.iter().filter(|column| !column.legend.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", column.head, column.legend);
    }
    push_left_out(&mut text, &comparison.left_out);
    text
}

fn push_rows(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if at < WORDS {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Adds a line for each store and reason.
fn push_left_out(text: &mut String, left_out: &[LeftOut]) {
    let is_same = |a: &LeftOut, b: &LeftOut| (a.store, &a.reason) == (b.store, &b.reason);
    for same in left_out.chunk_by(is_same) {
        let words: Vec<&str> = same.iter().map(|one| one.algorithm.name()).collect();
        let LeftOut { store, reason, .. } = &same[0];
        let _ = writeln!(
            text,
            "left out over {}: {}: {reason}",
            store.word(),
            words.join(", ")
        );
    }
}
