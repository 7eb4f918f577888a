//! The worked example of the article, computed by the code of the gateway.
//!
//! Names: the article's *worker* is a node here, its *counter* is a till or what stands behind one.

use anteroom_room::allocation::{curve, even};
use anteroom_room::id::DataCenterId;
use anteroom_room::rules::{AllocationKind, CurveFactor, Limits, Rules};
use anteroom_room::statistics::{Budget, RoomStatistics, Utilization};
use anteroom_room::time::Timestamp;

use super::crowd::{TwoNodes, ask_counter, at_one_node};

/// San Jose, where 20 visitors came in within the minute before.
pub(super) const SAN_JOSE: DataCenterId = DataCenterId(1);
/// London, where 30 did.
pub(super) const LONDON: DataCenterId = DataCenterId(2);
/// Delhi, where nobody did.
pub(super) const DELHI: DataCenterId = DataCenterId(3);
/// 2023-09-11T11:45:54Z.
pub(super) const AT: Timestamp = Timestamp(1_694_432_754_000);
/// The article's limits.
pub(super) const LIMITS: Limits = Limits {
    total_active_users: 200,
    new_users_per_minute: 200,
};
/// Nodes in the world, in San Jose, in Delhi.
pub(super) const NODES: [u32; 3] = [10, 3, 1];

/// What the article computes, computed again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// Slots of the minute and whose they are.
    pub(super) budget: Budget,
    /// Used over limit, in 0..=1.
    pub(super) utilization: f64,
    /// The part of all slots that history sets aside: San Jose, London, Delhi, Anywhere.
    pub(super) shares: [f64; 4],
    /// The same parts of all slots, each rounded half up: San Jose, London, Anywhere.
    pub(super) half_up: [u32; 3],
    /// `even`: San Jose's slots for a node there; Anywhere's for any node.
    pub(super) even_parts: [u32; 2],
    /// `even`: all that a node gets in San Jose, and in Delhi.
    pub(super) even_totals: [u32; 2],
    /// `curve`, exponent 1: what a node gets of Anywhere's slots.
    pub(super) curve_part: u32,
    /// By what the slots are divided for that.
    pub(super) adapted_nodes: f64,
    /// The exponent for which two nodes get 8 of 10 slots at 10 %.
    pub(super) exponent: f64,
    /// 10 slots, 2 nodes: at 10 % with that exponent, at 100 % and at 10 % with exponent 1.
    pub(super) of_ten: [u32; 3],
    /// `counters`: whether the numbers 9 and 10 of 10 let somebody in.
    pub(super) numbers: [bool; 2],
    /// `counters`: how many of 128 and of 129 arrivals at one node in San Jose get in.
    pub(super) at_one_node: [u32; 2],
    /// Two nodes with ten slots.
    pub(super) two_nodes: Vec<TwoNodes>,
}

/// The article's state of the room, as seen in San Jose.
pub(super) fn statistics() -> RoomStatistics {
    RoomStatistics {
        as_of: AT,
        active_users: 50,
        nodes_total: NODES[0],
        nodes_here: NODES[1],
        admitted_this_minute: 0,
        last_minute: vec![(SAN_JOSE, 20), (LONDON, 30)],
    }
}

/// The article's rules, with an exponent for `curve`.
pub(super) fn rules(exponent_millionths: u32) -> Rules {
    Rules {
        limits: LIMITS,
        curve_factor: CurveFactor {
            millionths: exponent_millionths,
        },
        ..Rules::default()
    }
}

/// The exponent with which 2 nodes get 8 of 10 slots each at 10 %, in millionths: the article gives
/// the 8 and not the exponent.
pub(super) fn exponent_millionths() -> u32 {
    // 10 / (2 x 0.1^factor) = 8, so 0.1^factor = 10 / (2 x 8).
    let exponent = libm::log(10.0 / (2.0 * 8.0)) / libm::log(0.1);
    u32::try_from(crate::chart::number::rounded(exponent * 1e6)).unwrap_or(0)
}

/// Computes everything.
pub(super) fn facts() -> Facts {
    let (statistics, rules) = (statistics(), rules(1_000_000));
    let budget = Budget::of(&statistics, LIMITS);
    let used = budget.utilization;
    let utilization = f64::from(used.used) / f64::from(used.limit);
    let rate = f64::from(LIMITS.new_users_per_minute);
    let weights = [20, 30, 0, 150];
    let half_up = |weight: u32| {
        let limit = LIMITS.new_users_per_minute;
        (budget.slots * weight + limit / 2) / limit
    };
    let bent = self::rules(exponent_millionths());
    let percent = |used| Utilization { used, limit: 100 };
    let article_at = |data_center| (&rules, &statistics, data_center);
    let delhi = RoomStatistics {
        nodes_here: NODES[2],
        ..statistics.clone()
    };
    Facts {
        utilization,
        shares: weights.map(|weight| f64::from(weight) / rate),
        half_up: [20, 30, 150].map(half_up),
        even_parts: [
            even::per_node(budget.share_of(SAN_JOSE), NODES[1], used, &rules),
            even::per_node(budget.anywhere, NODES[0], used, &rules),
        ],
        even_totals: [
            at_one_node(AllocationKind::Even, article_at(SAN_JOSE), 1_000),
            at_one_node(AllocationKind::Even, (&rules, &delhi, DELHI), 1_000),
        ],
        curve_part: curve::per_node(budget.anywhere, NODES[0], used, &rules),
        adapted_nodes: f64::from(NODES[0]) * utilization,
        exponent: f64::from(exponent_millionths()) / 1e6,
        of_ten: [
            curve::per_node(10, 2, percent(10), &bent),
            curve::per_node(10, 2, percent(100), &rules),
            curve::per_node(10, 2, percent(10), &rules),
        ],
        numbers: [9, 10].map(|number| ask_counter(10, number)),
        at_one_node: [128, 129]
            .map(|arrivals| at_one_node(AllocationKind::Counters, article_at(SAN_JOSE), arrivals)),
        two_nodes: two_nodes(),
        budget,
    }
}

/// The cases of the article, then the last one with leases.
fn two_nodes() -> Vec<TwoNodes> {
    let cases = [
        (AllocationKind::Even, [7, 1]),
        (AllocationKind::Curve, [7, 1]),
        (AllocationKind::Curve, [8, 7]),
        (AllocationKind::Counters, [7, 1]),
        (AllocationKind::Counters, [8, 7]),
        (AllocationKind::Leases, [8, 7]),
    ];
    cases
        .map(|(kind, arrivals)| TwoNodes::of(kind, 10, arrivals))
        .to_vec()
}

#[cfg(test)]
mod tests;
