//! Statistics of a room, a few seconds old, and the budget of a minute that follows from them.
//!
//! This module does not know how nodes exchange and sum up rows.

use alloc::vec::Vec;

use crate::id::DataCenterId;
use crate::rules::Limits;
use crate::time::{Minute, Timestamp};

/// Statistics of a room at this node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RoomStatistics {
    /// Time at which they were put together.
    pub as_of: Timestamp,
    /// Active visitors in all data centers.
    pub active_users: u32,
    /// Nodes in all data centers.
    pub nodes_total: u32,
    /// Nodes in this data center.
    pub nodes_here: u32,
    /// Admissions in the minute of `as_of`, up to that time, in all data centers.
    pub admitted_this_minute: u32,
    /// Admissions of the last full minute, by data center.
    pub last_minute: Vec<(DataCenterId, u32)>,
}

/// Slots of one minute and their owners, fixed by the first snapshot used in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Budget {
    /// Minute that the budget is for.
    pub minute: Minute,
    /// Slots that both limits leave free, never below 0.
    pub slots: u32,
    /// Slots set aside for each data center by its traffic.
    pub shares: Vec<(DataCenterId, u32)>,
    /// Slots for any data center.
    pub anywhere: u32,
    /// Utilization of the room.
    pub utilization: Utilization,
}

/// A quotient of two counts in 0..=1, kept exact.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Utilization {
    /// Amount in use.
    pub used: u32,
    /// Limit; at least 1.
    pub limit: u32,
}

impl Budget {
    /// Returns the budget that follows from `statistics` for the minute in which it was put
    /// together.
    ///
    /// A data center's share is what it admitted in the last full minute over the limit of a
    /// minute, scaled down if that sums to more than 1; Anywhere is the rest.
    #[must_use]
    pub fn of(statistics: &RoomStatistics, limits: Limits) -> Self {
        let free = limits
            .total_active_users
            .saturating_sub(statistics.active_users);
        // Nothing was admitted yet in a minute that just began; a budget that is fixed later (new
        // limits, a restart) must not count those who came before.
        let admissions = limits
            .new_users_per_minute
            .saturating_sub(statistics.admitted_this_minute);
        let slots = free.min(admissions);
        let weights = statistics.last_minute.iter().map(|(_, count)| *count);
        let admitted: u64 = weights.clone().map(u64::from).sum();
        let whole = admitted.max(u64::from(limits.new_users_per_minute));
        let (parts, anywhere) = split(slots, weights, whole);
        let shares = statistics.last_minute.iter().map(|(dc, _)| *dc).zip(parts);
        Self {
            minute: statistics.as_of.minute(),
            slots,
            shares: shares.collect(),
            anywhere,
            utilization: Utilization::of(statistics, limits),
        }
    }

    /// Returns the slots set aside for a data center.
    #[must_use]
    pub fn share_of(&self, data_center: DataCenterId) -> u32 {
        self.shares
            .iter()
            .find(|(known, _)| *known == data_center)
            .map_or(0, |&(_, slots)| slots)
    }
}

impl Utilization {
    /// Returns the larger of seats over their limit and admissions over theirs: of the last full
    /// minute, or of this one if it already saw more.
    fn of(statistics: &RoomStatistics, limits: Limits) -> Self {
        let last_minute = statistics
            .last_minute
            .iter()
            .fold(0u32, |sum, (_, count)| sum.saturating_add(*count));
        let admitted = last_minute.max(statistics.admitted_this_minute);
        let seats = Self {
            used: statistics.active_users.min(limits.total_active_users),
            limit: limits.total_active_users,
        };
        let admissions = Self {
            used: admitted.min(limits.new_users_per_minute),
            limit: limits.new_users_per_minute,
        };
        let crosswise = |a: Self, b: Self| u64::from(a.used) * u64::from(b.limit);
        if crosswise(admissions, seats) > crosswise(seats, admissions) {
            admissions
        } else {
            seats
        }
    }
}

/// Splits `slots` by `weights` over `whole`, by largest remainder; the rest of the weight is
/// Anywhere, which also wins ties. The parts sum to `slots` exactly, which rounding each one half
/// up would not (15 + 23 + 113 = 151 of 150).
fn split(slots: u32, weights: impl Iterator<Item = u32> + Clone, whole: u64) -> (Vec<u32>, u32) {
    let whole = whole.max(1);
    let slots = u64::from(slots);
    let given: u64 = weights.clone().map(u64::from).sum();
    let exact = |weight: u64| (slots * weight / whole, slots * weight % whole);
    let mut parts: Vec<(u64, u64)> = weights.map(|weight| exact(u64::from(weight))).collect();
    parts.push(exact(whole - given));
    let distributed: u64 = parts.iter().map(|(floor, _)| floor).sum();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    // Largest remainder first; on a tie the later one, and Anywhere is last of all.
    order.sort_by_key(|&at| core::cmp::Reverse((parts[at].1, at)));
    let left = usize::try_from(slots - distributed).unwrap_or(0);
    for &at in order.iter().take(left) {
        parts[at].0 += 1;
    }
    let mut parts: Vec<u32> = parts
        .into_iter()
        .map(|(part, _)| u32::try_from(part).unwrap_or(u32::MAX))
        .collect();
    let anywhere = parts.pop().unwrap_or(0);
    (parts, anywhere)
}
