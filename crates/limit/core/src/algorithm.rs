//! Trait that all algorithms implement.

use core::fmt::Debug;

use crate::cost::Cost;
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// Rate-limit algorithm. The implementor holds the settings; the state holds what is remembered of
/// one client.
///
/// # Invariants
///
/// - A peek and a rejected request leave the state as it was.
/// - For the same state a later time never allows less. A clock that goes back allows no more than
///   one that stands still, and no state goes back with it. After a clock ran far ahead, its
///   clients wait until it is there again. So callers provide a clock that does not leap.
/// - Nothing overflows and nothing panics, whatever the state and the time are. At the end of time
///   numbers saturate.
/// - Rate and burst may change between any two steps: what was spent stays spent. Each algorithm
///   documents how it keeps it.
pub trait Algorithm {
    /// State of one client. The default is that of a client without requests.
    type State: Clone + Debug + Default + Eq;

    /// Decides about a request at `now`, and takes its cost if it is allowed.
    fn step(&self, state: &mut Self::State, now: TimestampUs, cost: Cost) -> Verdict;

    /// Whether the state may be forgotten: from now on, a new client would get the same verdicts.
    fn is_idle(&self, state: &Self::State, now: TimestampUs) -> bool;

    /// Returns the largest cost that is allowed in any window, if the settings stay as they are and
    /// no request costs more than `cost_max`. A window begins anywhere and excludes its last
    /// instant.
    fn window_cost_max(&self, cost_max: u32) -> u64;
}
