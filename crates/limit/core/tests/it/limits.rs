//! What all algorithms promise, over any sequence of calls, peeks, refunds and moments: no window
//! has more than its bound, what a verdict says comes true, and nothing overflows.
//!
//! The naive model remembers every call that was admitted; the algorithms do not.

mod bounds;
mod estimates;
mod extremes;
mod greedy;
mod late;
mod model;
mod moves;
mod promises;
