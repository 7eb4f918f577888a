//! To which node does each call go?

use anteroom_limit::time::TimestampUs;

use crate::lab::rng::{Dice, Purpose, mixed};
use crate::lab::traffic::Call;

/// How calls are spread over nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Routing {
    /// Any node, at random: a load balancer without memory.
    Spread(Vec<Grown>),
    /// One node after the other.
    Turn,
    /// The same node for the same client, as long as there are as many nodes.
    Sticky(Vec<Grown>),
}

impl Routing {
    fn grown(&self) -> &[Grown] {
        match self {
            Self::Spread(grown) | Self::Sticky(grown) => grown,
            Self::Turn => &[],
        }
    }

    /// How many nodes the calls of one client may go to, of so many that there are at most.
    pub(crate) fn nodes_of_one_client(&self, nodes: u32) -> u32 {
        match self {
            Self::Spread(_) | Self::Turn => nodes,
            // It moves at most once whenever nodes come.
            Self::Sticky(grown) => nodes.min(u32::try_from(grown.len().max(1)).unwrap_or(nodes)),
        }
    }
}

/// From a moment on there are more nodes, or fewer. With sticky clients those who stay have theirs;
/// of all clients only as many move as must. What holds at the beginning is the first one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grown {
    /// From when on.
    pub at: TimestampUs,
    /// How many there are then.
    pub nodes: u32,
}

/// The node of each call, from 0.
pub(crate) fn route(routing: &Routing, nodes: u32, seed: u64, calls: &[Call]) -> Vec<u32> {
    let nodes_at = |at| {
        let newest = routing.grown().iter().rev().find(|grown| grown.at <= at);
        newest.map_or(nodes, |grown| grown.nodes)
    };
    match routing {
        Routing::Spread(_) => {
            let mut rng = Dice::new(seed, Purpose::Routing);
            let node_of = |call: &Call| rng.below(nodes_at(call.at));
            calls.iter().map(node_of).collect()
        }
        Routing::Turn => (0..nodes.max(1)).cycle().take(calls.len()).collect(),
        Routing::Sticky(_) => {
            let node_of = |call: &Call| home(seed, call.client, nodes_at(call.at));
            calls.iter().map(node_of).collect()
        }
    }
}

/// The node that ranks highest with this client (rendezvous hashing): a node that is added takes
/// clients from all others and leaves the rest where they are.
fn home(seed: u64, client: u32, nodes: u32) -> u32 {
    let rank = |node: &u32| mixed(seed ^ (u64::from(client) << 32 | u64::from(*node)));
    (0..nodes).max_by_key(rank).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_added_takes_its_part_and_nobody_else_moves() {
        let before: Vec<u32> = (0..3_000).map(|client| home(1, client, 2)).collect();
        let after: Vec<u32> = (0..3_000).map(|client| home(1, client, 3)).collect();
        let moved = before
            .iter()
            .zip(&after)
            .filter(|(before, after)| before != after);
        let moved: Vec<_> = moved.collect();
        assert!((900..1_100).contains(&moved.len()), "{}", moved.len());
        assert!(moved.iter().all(|(_, after)| **after == 2));
    }

    #[test]
    fn sticky_calls_move_only_when_nodes_come() {
        let call = |secs: u64| Call {
            at: TimestampUs(secs * 1_000_000),
            client: 7,
        };
        let calls: Vec<Call> = (0..60).map(call).collect();
        let grown = Grown {
            at: TimestampUs(30_000_000),
            nodes: 64,
        };
        let nodes = route(&Routing::Sticky(vec![grown]), 1, 1, &calls);
        assert_eq!(nodes[..30], [0; 30]);
        assert!(nodes[30..].iter().all(|node| *node == home(1, 7, 64)));
        let spread = route(&Routing::Spread(Vec::new()), 3, 1, &calls);
        assert!((0..3).all(|node| spread.contains(&node)));
        let turn = route(&Routing::Turn, 3, 1, &calls);
        assert_eq!(turn[..5], [0, 1, 2, 0, 1]);
    }

    #[test]
    fn homeless_calls_go_to_new_nodes_from_their_arrival() {
        let call = |secs: u64| Call {
            at: TimestampUs(secs * 1_000_000),
            client: 7,
        };
        let calls: Vec<Call> = (0..60).map(call).collect();
        let grown = [(0, 1), (30, 3)].map(|(secs, nodes)| Grown {
            at: TimestampUs(secs * 1_000_000),
            nodes,
        });
        let nodes = route(&Routing::Spread(grown.to_vec()), 3, 1, &calls);
        assert_eq!(nodes[..30], [0; 30]);
        assert!((0..3).all(|node| nodes[30..].contains(&node)));
    }

    #[test]
    fn a_client_that_sticks_meets_one_node_more_whenever_nodes_come() {
        let grown = |count| {
            let grown = (0..count).map(|at| Grown {
                at: TimestampUs(at),
                nodes: 2 + 2 * u32::try_from(at).unwrap(),
            });
            grown.collect()
        };
        let of = |routing: Routing, nodes| routing.nodes_of_one_client(nodes);
        assert_eq!(of(Routing::Spread(Vec::new()), 6), 6);
        assert_eq!(of(Routing::Spread(grown(3)), 6), 6);
        assert_eq!(of(Routing::Sticky(Vec::new()), 6), 1);
        assert_eq!(of(Routing::Sticky(grown(3)), 6), 3);
        assert_eq!(of(Routing::Sticky(grown(30)), 6), 6);
    }
}
