//! Choice of the node for a visitor's next request.
//!
//! Most visitors keep one node, as behind a load balancer with sticky sessions. The others send
//! each request to another node, in any data center.

use super::plan::LoadPlan;
use crate::rng::ChoiceRng;

/// Makes these random numbers differ from those of a visitor's choices, so that visitors make the
/// same choices with any number of nodes.
const OTHER_RNG: u64 = 0x6E6F_6465_2D64_6963;

/// Sequence of nodes that one visitor uses.
#[derive(Clone, Debug)]
pub(super) struct Route {
    node: u32,
    nodes: u32,
    /// `None` = this visitor keeps its node.
    wanders: Option<ChoiceRng>,
}

impl Route {
    /// Creates the sequence of visitor `number` (from 0) with this number of nodes.
    pub(super) fn new(plan: &LoadPlan, number: u32, nodes: u32) -> Self {
        let nodes = nodes.max(1);
        let mut rng = ChoiceRng::new(plan.seed ^ OTHER_RNG, number);
        let is_wanderer = nodes > 1 && rng.happens(plan.wander_percent);
        Self {
            // In turn, so that every node gets its share of visitors.
            node: number % nodes,
            nodes,
            wanders: is_wanderer.then_some(rng),
        }
    }

    /// Returns the node for the next request, from 0.
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
    fn sticky_visitors_keep_their_node_and_spread_over_all() {
        for number in 0..12 {
            assert!(route(0, number, 6).iter().all(|node| *node == number % 6));
        }
    }

    #[test]
    fn a_wandering_visitor_changes_node_each_time_and_uses_all() {
        let nodes = route(100, 4, 6);
        assert!(nodes.windows(2).all(|pair| pair[0] != pair[1]), "{nodes:?}");
        let seen: BTreeSet<u32> = nodes.into_iter().collect();
        assert_eq!(seen, (0..6).collect());
        assert!(route(100, 4, 2).windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn with_one_node_all_visitors_use_it() {
        assert_eq!(route(100, 7, 1), [0; 50]);
        assert_eq!(route(100, 7, 0), [0; 50]);
    }
}
