//! Why are there four allocations, and what does each of them cost? Told with numbers from the code
//! that runs in the gateway, and checked against the article that the first three come from.
//!
//! The text is generated, so that it cannot say what the code does not do.

mod article;
mod crowd;
mod curves;
mod rehearsals;
mod tell;

use crate::chart::story::Story;

/// What its files are called.
const NAME: &str = "allocations";
/// Stands in the text, so that a later run knows that it may overwrite it.
const MARK: &str = "<!-- Written by `anteroom simulate --story`.";

/// Computes the story. Takes seconds; gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    tell::tell()
}
