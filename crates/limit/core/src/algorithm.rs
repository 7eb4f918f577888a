//! What do all algorithms have in common?

use core::fmt::Debug;

use crate::cost::Cost;
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// One way to say whether a call is over its limit. The settings are the implementor; what is
/// remembered of one client is its state.
///
/// # Invariants
///
/// - A peek and a call that is rejected leave the state as it was.
/// - For the same state a later moment never admits less: a clock that goes back admits no more
///   than one that stands still, and no state goes back with it. So a clock that once ran far ahead
///   holds its clients back until it is there again: callers bring one that does not leap.
/// - Nothing overflows and nothing panics, whatever the state and the time are; at the end of time
///   figures saturate.
/// - Settings may change between two steps, the calls and the burst at any time: what was spent
///   stays spent. How each algorithm keeps it is said where it differs.
pub trait Algorithm {
    /// What is remembered of one client. The default is one who never called.
    type State: Clone + Debug + Default + Eq;

    /// Decides about a call at `now`, and charges it if it goes through.
    fn step(&self, state: &mut Self::State, now: TimestampUs, cost: Cost) -> Verdict;

    /// Whether the state may be forgotten: from now on, one who never called would be told the
    /// same.
    fn is_idle(&self, state: &Self::State, now: TimestampUs) -> bool;

    /// How much is admitted in any window at most, while the settings stay as they are and no
    /// call counts more than `cost_max`: in any stretch of time as long as the window, wherever
    /// it begins, without its last instant.
    fn most_in_any_window(&self, cost_max: u32) -> u64;
}
