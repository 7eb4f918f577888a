//! Many nodes decide about calls by themselves, and never above a limit together: counts by leases.
//!
//! [`LeasedCounts`] is what drives [`anteroom_limit::lending`] over a store of records
//! ([`crate::lent`]). A call is decided from what was lent to this node before, without a round
//! trip; when that runs low more is asked for beside the calls, and only when nothing is left does
//! a call wait for an answer.
//!
//! # What holds
//!
//! However many nodes, whatever is lost, late, wiped or restarted: a limit admits no more than its
//! algorithm does. It may admit less: a lease that is not spent is lost until its charge is over.
//! Why, and what is not covered, is said in `docs/decisions/15-calls-are-lent-prepaid.md`.
//!
//! Deliberately absent: what to do with a call while the store is away (the caller says that), and
//! calls that are given back to the store.

mod clients;
mod clock;
mod counts;
mod draws;
mod error;
pub mod fuzz;
mod inner;
mod pass;
mod permits;
pub mod record;
mod round;
mod settings;
mod stats;
mod watch;

pub use clock::{BootClock, Clock};
pub use counts::{LeasedCounts, NoRandomnessError};
pub use settings::Settings;
pub use stats::LeaseStats;
