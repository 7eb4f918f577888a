//! Limits that many nodes share through leases: each decides requests locally, and together they
//! never exceed a limit.
//!
//! [`LeasedCounts`] drives [`anteroom_limit::leases`] over a store of records
//! ([`crate::lease_store`]). It decides a request from a lease that the store granted before,
//! without a round trip. When a lease runs low, the node asks for the next one in the background. A
//! request waits for the store only when no balance is left.
//!
//! # Guarantees
//!
//! However many nodes there are, and whatever is lost, late, wiped or restarted: a limit admits no
//! more than its algorithm does. It may admit less: the unspent rest of a lease stays counted until
//! the limit's window has passed. `docs/decisions/15-requests-are-leased-prepaid.md` gives the
//! reasons and the exceptions.
//!
//! Deliberately absent: what to do with a request while the store is unavailable (the caller
//! decides), and refunds to the store.

mod clients;
mod clock;
mod counts;
mod deciding;
mod error;
pub mod fuzz;
mod inner;
mod lease_request;
mod members;
mod permits;
mod random;
pub mod record;
mod settings;
mod stats;
mod watch;

pub use clock::{BootClock, Clock};
pub use counts::{LeasedCounts, NoRandomnessError};
pub use settings::Settings;
pub use stats::LeaseStats;
