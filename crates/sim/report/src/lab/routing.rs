//! Routing of requests to nodes.

use anteroom_limit::time::TimestampUs;

use crate::lab::rng::{LabRng, Purpose, mixed};
use crate::lab::traffic::Request;

/// Distribution of requests over nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Routing {
    /// Any node, at random: a load balancer without memory.
    Spread(Vec<Grown>),
    /// One node after the other.
    Turn,
    /// Constant node for each client, as long as the number of nodes is the same.
    Sticky(Vec<Grown>),
}

impl Routing {
    fn grown(&self) -> &[Grown] {
        match self {
            Self::Spread(grown) | Self::Sticky(grown) => grown,
            Self::Turn => &[],
        }
    }

    /// Returns how many of `nodes` the requests of one client may reach.
    pub(crate) fn nodes_of_one_client(&self, nodes: u32) -> u32 {
        match self {
            Self::Spread(_) | Self::Turn => nodes,
            // A client moves at most once whenever nodes are added.
            Self::Sticky(grown) => nodes.min(u32::try_from(grown.len().max(1)).unwrap_or(nodes)),
        }
    }
}

/// Number of nodes from a moment on. With sticky clients only as many clients move as must. The
/// first entry is the start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grown {
    /// First moment with this number.
    pub at: TimestampUs,
    /// Number of nodes.
    pub nodes: u32,
}

/// Returns the node of each request, from 0.
pub(crate) fn route(routing: &Routing, nodes: u32, seed: u64, requests: &[Request]) -> Vec<u32> {
    let nodes_at = |at| {
        let newest = routing.grown().iter().rev().find(|grown| grown.at <= at);
        newest.map_or(nodes, |grown| grown.nodes)
    };
    match routing {
        Routing::Spread(_) => {
            let mut rng = LabRng::new(seed, Purpose::Routing);
            let node_of = |request: &Request| rng.below(nodes_at(request.at));
            requests.iter().map(node_of).collect()
        }
        Routing::Turn => (0..nodes.max(1)).cycle().take(requests.len()).collect(),
        Routing::Sticky(_) => {
            let node_of = |request: &Request| home(seed, request.client, nodes_at(request.at));
            requests.iter().map(node_of).collect()
        }
    }
}

/// Returns the node that ranks highest with this client (rendezvous hashing): a node that is added
/// takes clients from all others and leaves the rest where they are.
fn home(seed: u64, client: u32, nodes: u32) -> u32 {
    let rank = |node: &u32| mixed(seed ^ (u64::from(client) << 32 | u64::from(*node)));
    (0..nodes).max_by_key(rank).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_added_node_takes_its_share_and_no_other_client_moves() {
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
    fn sticky_requests_move_only_when_nodes_are_added() {
        let request = |secs: u64| Request {
            at: TimestampUs(secs * 1_000_000),
            client: 7,
        };
        let requests: Vec<Request> = (0..60).map(request).collect();
        let grown = Grown {
            at: TimestampUs(30_000_000),
            nodes: 64,
        };
        let nodes = route(&Routing::Sticky(vec![grown]), 1, 1, &requests);
        assert_eq!(nodes[..30], [0; 30]);
        assert!(nodes[30..].iter().all(|node| *node == home(1, 7, 64)));
        let spread = route(&Routing::Spread(Vec::new()), 3, 1, &requests);
        assert!((0..3).all(|node| spread.contains(&node)));
        let turn = route(&Routing::Turn, 3, 1, &requests);
        assert_eq!(turn[..5], [0, 1, 2, 0, 1]);
    }

    #[test]
    fn spread_requests_reach_new_nodes_from_their_arrival() {
        let request = |secs: u64| Request {
            at: TimestampUs(secs * 1_000_000),
            client: 7,
        };
        let requests: Vec<Request> = (0..60).map(request).collect();
        let grown = [(0, 1), (30, 3)].map(|(secs, nodes)| Grown {
            at: TimestampUs(secs * 1_000_000),
            nodes,
        });
        let nodes = route(&Routing::Spread(grown.to_vec()), 3, 1, &requests);
        assert_eq!(nodes[..30], [0; 30]);
        assert!((0..3).all(|node| nodes[30..].contains(&node)));
    }

    #[test]
    fn a_sticky_client_uses_one_node_more_whenever_nodes_are_added() {
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
