//! Worked example of the article, computed by the code of the gateway.
//!
//! The article's *worker* is a node here; its *counter* is an allocation or the shared counter
//! behind one.

use anteroom_room::allocation::{curve, even};
use anteroom_room::rules::AllocationKind;
use anteroom_room::statistics::{Budget, RoomStatistics, Utilization};

use super::arrivals::{TwoNodes, at_one_node, counter_admits};
use super::room::{AT, DELHI, LIMITS, LONDON, NODES, SAN_JOSE, exponent_millionths, rules};

/// Results of the article's computations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// Slots of the minute, by data center.
    pub(super) budget: Budget,
    /// Utilization, in 0..=1.
    pub(super) utilization: f64,
    /// Shares of all slots by history: San Jose, London, Delhi, Anywhere.
    pub(super) shares: [f64; 4],
    /// Slots by the same shares, each rounded half up: San Jose, London, Anywhere.
    pub(super) half_up: [u32; 3],
    /// `even`: San Jose's slots for a node there; Anywhere's for any node.
    pub(super) even_parts: [u32; 2],
    /// `even`: all slots of a node in San Jose, and in Delhi.
    pub(super) even_totals: [u32; 2],
    /// `curve`, exponent 1: Anywhere's slots of a node.
    pub(super) curve_part: u32,
    /// `curve`, exponent 1: divisor of the slots.
    pub(super) adapted_nodes: f64,
    /// Exponent for which two nodes get 8 of 10 slots at 10 %.
    pub(super) exponent: f64,
    /// Slots of 10 at 2 nodes: at 10 % with that exponent, at 100 % and at 10 % with exponent 1.
    pub(super) of_ten: [u32; 3],
    /// `counters`: whether the numbers 9 and 10 of 10 admit a visitor.
    pub(super) numbers: [bool; 2],
    /// `counters`: admitted visitors of 128 and of 129 arrivals at one node in San Jose.
    pub(super) at_one_node: [u32; 2],
    /// Two nodes with ten slots.
    pub(super) two_nodes: Vec<TwoNodes>,
}

/// Returns the article's state of the room, as seen in San Jose.
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
        numbers: [9, 10].map(|number| counter_admits(10, number)),
        at_one_node: [128, 129]
            .map(|arrivals| at_one_node(AllocationKind::Counters, article_at(SAN_JOSE), arrivals)),
        two_nodes: two_nodes(),
        budget,
    }
}

/// Returns the cases of the article, then the last one with leases.
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
