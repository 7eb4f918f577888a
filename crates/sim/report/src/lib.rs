//! How is a rehearsal shown? As a table for a terminal, as JSON for programs, and as one HTML page
//! with charts for people who were not there.
//!
//! And why are there four allocations? That is a text of its own, [`story`].
//!
//! It shows what [`Outcome`](anteroom_sim::outcome::Outcome) holds and judges nothing anew. The
//! same outcomes give the same bytes.

pub mod chart;
mod charts;
mod files;
mod json;
pub mod lab;
mod look;
mod page;
mod plan;
pub mod rehearsal;
mod rows;
mod series;
pub mod story;
mod table;
mod variant;
mod verdict;

pub use files::{ReportError, write_html};
pub use json::json;
pub use table::table;

/// What a rehearsal takes for granted, and what it cannot know. Said in every form of the report.
pub const ASSUMPTIONS: [&str; 6] = [
    "Who goes in is decided by the code that runs in the gateway. Visitors, clocks, networks and \
     stores around it are simulated.",
    "The origin is not simulated: not its capacity, not its response times, not its errors. The \
     limits are taken for what it can carry; whether they are right, a load test has to say.",
    "Visitors are guesses. Arrivals scatter at random around the rates of the scenario; pages, \
     think \
     times, patience and no-shows are the scenario's. Measure your own and put them there.",
    "A decision takes no time on a node. Added latency is round trips to stores, as long as the \
     scenario says.",
    "One run is one possible day. Try other seeds before you build on a small difference.",
    "Waits are those of visitors who got in. Who left, or still waited at the end, is not in them.",
];

#[cfg(test)]
mod tests;
