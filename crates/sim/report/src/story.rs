//! Text about the four allocations and their costs. Its numbers come from the gateway's code, and a
//! test checks them against the article that describes the first three.
//!
//! The program writes the text, so that it cannot contradict the code.

mod arrivals;
mod article;
mod curves;
mod markdown;
mod rehearsals;
mod room;
mod text;

use crate::chart::story::Story;

/// Name of its files.
const NAME: &str = "allocations";
/// Name of its second page.
const SIMULATED: &str = "allocations-simulated";
/// Mark in the text by which a later run knows that it may overwrite it.
const MARK: &str = "<!-- Written by `anteroom simulate --story`.";

/// Computes the story. It takes seconds and gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    text::tell()
}
