//! Reports of simulations: a table for a terminal, JSON for programs, and one HTML page with charts
//! for readers.
//!
//! The text about the four allocations is in [`story`].
//!
//! A report shows an [`Outcome`](anteroom_sim::outcome::Outcome) and checks nothing again. The same
//! outcomes give the same bytes.

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

/// Assumptions and limits of a simulation, part of every form of the report.
pub const ASSUMPTIONS: [&str; 6] = [
    "The code that runs in the gateway decides who is admitted. Visitors, clocks, networks and \
     stores around it are simulated.",
    "The origin is not simulated: not its capacity, not its response times, not its errors. The \
     simulation assumes that it can carry the limits. Only a load test shows whether it can.",
    "Visitors are guesses. Arrivals scatter at random around the rates of the scenario. Pages, \
     think times, patience and no-shows are the scenario's. Replace them by your own \
     measurements.",
    "A decision takes no time on a node. Added latency is round trips to stores, as long as the \
     scenario sets.",
    "One run is one possible day. Try other seeds before you build on a small difference.",
    "Waits are those of admitted visitors. Visitors who left, or still waited at the end, are not \
     in them.",
];

#[cfg(test)]
mod tests;
