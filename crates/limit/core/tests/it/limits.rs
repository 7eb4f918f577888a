//! Properties of all algorithms, over any sequence of requests, peeks, refunds and times: no window
//! exceeds its bound, verdicts come true, and nothing overflows.
//!
//! The naive model remembers every allowed request; the algorithms do not.

mod bounds;
mod estimates;
mod extremes;
mod greedy;
mod late;
mod model;
mod moves;
mod promises;
