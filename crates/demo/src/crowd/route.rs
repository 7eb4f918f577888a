//! Which node does a visitor's next request go to?
//!
//! Most visitors keep to one, as behind a load balancer with sticky sessions. The others show what
//! happens without: each of their requests goes to another node, in whatever data center.

use super::LoadPlan;
use crate::rng::Dice;

/// Makes these dice others than those that choose what a visitor does, so that the same crowd does
/// the same before any number of nodes.
const OTHER_RNG: u64 = 0x6E6F_6465_2D64_6963;

/// The way of one visitor through the nodes.
#[derive(Clone, Debug)]
pub(super) struct Route {
    node: u32,
    nodes: u32,
    /// `None`: this visitor keeps to its node.
    wanders: Option<Dice>,
}

impl Route {
    /// The way of visitor `number` (from 0) through so many nodes.
    pub(super) fn new(plan: &LoadPlan, number: u32, nodes: u32) -> Self {
        let nodes = nodes.max(1);
        let mut rng = Dice::new(plan.seed ^ OTHER_RNG, number);
        let is_wanderer = nodes > 1 && rng.happens(plan.wander_percent);
        Self {
            // In turn, so that every node gets its part of any crowd.
            node: number % nodes,
            nodes,
            wanders: is_wanderer.then_some(rng),
        }
    }

    /// The node for the next request, from 0.
    pub(super) fn next(&mut self) -> u32 {
        if let Some(rng) = &mut self.wanders {
            let step = rng.number(&(1..=self.nodes - 1));
            self.node = (self.node + step) % self.nodes;
        }
        self.node
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::quick_plan;

    fn route(wander_percent: u32, number: u32, nodes: u32) -> Vec<u32> {
        let plan = LoadPlan {
            wander_percent,
            ..quick_plan()
        };
        let mut route = Route::new(&plan, number, nodes);
        (0..50).map(|_| route.next()).collect()
    }

    #[test]
    fn sticky_visitors_keep_their_node_and_all_nodes_get_their_part() {
        for number in 0..12 {
            assert!(route(0, number, 6).iter().all(|node| *node == number % 6));
        }
    }

    #[test]
    fn who_wanders_is_at_another_node_each_time_and_comes_to_all() {
        let nodes = route(100, 4, 6);
        assert!(nodes.windows(2).all(|pair| pair[0] != pair[1]), "{nodes:?}");
        let seen: BTreeSet<u32> = nodes.into_iter().collect();
        assert_eq!(seen, (0..6).collect());
        assert!(route(100, 4, 2).windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn of_one_node_nobody_wanders_away() {
        assert_eq!(route(100, 7, 1), [0; 50]);
        assert_eq!(route(100, 7, 0), [0; 50]);
    }
}
