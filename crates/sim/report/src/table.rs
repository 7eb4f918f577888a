//! Table for a terminal of 100 columns: one row for each value, one column for each allocation and
//! setting.

use std::fmt::Write as _;

use anteroom_sim::outcome::Outcome;

use crate::ASSUMPTIONS;
use crate::rows::{self, GROUPS, NOTES};
use crate::variant::{Variant, blocks};
use crate::verdict;

const WIDTH: usize = 100;
const NAME: usize = 43;
const COLUMN: usize = 14;

/// Returns outcomes as text of at most 100 columns: summary, table, notes, and assumptions. It ends
/// with a line feed.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for variant in Variant::all(outcomes) {
        push_wrapped(&mut text, "", &one_line(&variant.title()));
        for sentence in verdict::sentences(&variant) {
            push_wrapped(&mut text, "  ", &one_line(&sentence.text));
        }
        text.push('\n');
    }
    for block in blocks(outcomes) {
        push_block(&mut text, &block);
    }
    for (at, note) in NOTES.iter().enumerate() {
        push_wrapped(&mut text, "", &format!("[{}] {note}", at + 1));
    }
    text.push_str("\nAssumptions, and what a simulation cannot know:\n");
    for assumption in ASSUMPTIONS {
        push_wrapped(&mut text, "- ", assumption);
    }
    text
}

fn push_block(text: &mut String, columns: &[&Outcome]) {
    let Some(first) = columns.first() else { return };
    let name = format!("room {}", one_line(&first.room));
    let heads = columns
        .iter()
        .map(|outcome| rows::column(outcome).to_owned());
    push_row(text, &format!("{} [1]", fitted(&name, NAME - 5)), heads);
    for (at, (key, _)) in first.settings.iter().enumerate() {
        let value = |outcome: &&Outcome| {
            outcome
                .settings
                .get(at)
                .map_or("", |(_, value)| value)
                .to_owned()
        };
        push_row(
            text,
            &tail(&one_line(key), NAME - 1),
            columns.iter().map(value),
        );
    }
    text.push_str(&"-".repeat(NAME + COLUMN * columns.len()));
    text.push('\n');
    for group in &GROUPS {
        text.push_str(group.title);
        text.push('\n');
        for row in group.rows {
            let note = row
                .note
                .map_or_else(String::new, |note| format!(" [{}]", note + 1));
            let name = format!("  {}{note}", row.name);
            push_row(
                text,
                &name,
                columns.iter().map(|outcome| row.cell(outcome).text),
            );
        }
    }
    text.push('\n');
}

fn push_row(text: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let mut line = format!("{name:<NAME$}");
    for cell in cells {
        let cell = fitted(&one_line(&cell), COLUMN - 1);
        write!(line, "{cell:>COLUMN$}").expect("writing to a string cannot fail");
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Replaces control characters, so that a text stays on its line.
fn one_line(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).collect()
}

/// Cuts a text at the end if it is too long.
fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(std::iter::once('…')).collect()
}

/// Cuts a text at the front if it is too long, because the end of a key distinguishes it.
fn tail(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept = text.chars().skip(count + 1 - width);
    std::iter::once('…').chain(kept).collect()
}

/// Breaks lines at spaces; the first one starts with `lead`, and later ones are indented as far. A
/// word that is too long gets its own line.
fn push_wrapped(text: &mut String, lead: &str, paragraph: &str) {
    let mut line = lead.to_owned();
    let mut is_empty = true;
    for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
        let wide = line.chars().count() + 1 + word.chars().count();
        if !is_empty && wide > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(lead.chars().count());
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}
