//! The runs side by side, for people.

use std::fmt::Write as _;

use anteroom_chart::number::grouped;

use crate::command::Run;

/// Heads of the columns; the first two are words.
const HEADS: [&str; 10] = [
    "algorithm",
    "store",
    "calls",
    "admitted",
    "wrongly admitted",
    "wrongly refused",
    "highest",
    "at most",
    "stranded",
    "messages",
];
/// Columns of words, which begin at the left.
const WORDS: usize = 2;

/// A row for each run.
pub(crate) fn table(about: &str, runs: &[Run]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(runs.iter().map(row));
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = format!("{about}\n\n");
    for row in &rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = if at < WORDS {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(LEGEND);
    let undecided: u64 = runs.iter().map(|run| run.outcome.figures.undecided).sum();
    if undecided > 0 {
        text.push_str(&format!(
            "{} calls were refused because nobody could say in time; --json says in which runs\n",
            grouped(undecided)
        ));
    }
    text
}

const LEGEND: &str = "
wrongly admitted: although as many as the limit says had been admitted in the window before
wrongly refused: although fewer had; highest: the most of one client in any window
at most: what the algorithm over this store promises, - where it depends on how late news are
stranded: lent to nodes and never used
";

fn row(run: &Run) -> [String; 10] {
    let figures = run.outcome.figures;
    let most = run.most.map_or_else(|| "-".to_owned(), grouped);
    [
        run.algorithm.word().to_owned(),
        run.store.word().to_owned(),
        grouped(figures.calls),
        grouped(figures.admitted),
        grouped(figures.wrongly_admitted),
        grouped(figures.wrongly_refused),
        grouped(figures.highest),
        most,
        grouped(figures.stranded),
        grouped(figures.messages),
    ]
}
