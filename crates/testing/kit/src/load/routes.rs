//! Choice of the node for each request, as by a load balancer or a visitor who travels.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rand_core::Rng;

/// Choice of a node for the requests of one visitor. Unavailable nodes are chosen only if there is
/// no other, except by [`NodeChoice::Only`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeChoice {
    /// One node for all requests, near the visitor.
    Sticky,
    /// Random node of the visitor's data center for each request.
    InDataCenter,
    /// Random node of all for each request.
    Anywhere,
    /// This node for all visitors.
    Only(NodeAt),
}

/// Address at which a node serves at present, if it does. A node that starts again gets another
/// one. Clones share the value.
#[derive(Clone, Debug, Default)]
pub struct NodeAddress(Arc<Mutex<Option<SocketAddr>>>);

impl NodeAddress {
    /// Address of a node that serves.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self(Arc::new(Mutex::new(Some(address))))
    }

    /// Returns the address, while the node serves.
    #[must_use]
    pub fn get(&self) -> Option<SocketAddr> {
        *self.0.lock()
    }

    /// Sends visitors to another address, or to none.
    pub fn set(&self, address: Option<SocketAddr>) {
        *self.0.lock() = address;
    }
}

/// Number of a node: that of its data center, then its own within it. Both count from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodeAt(pub usize, pub usize);

/// Names and addresses of all nodes, data center by data center.
#[derive(Clone, Debug)]
pub struct NodeRoutes(Vec<Vec<(String, NodeAddress)>>);

/// Home of a visitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    data_center: usize,
    node: usize,
}

/// Node that a request goes to.
#[derive(Clone, Debug)]
pub(super) struct NodeTarget {
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

impl NodeRoutes {
    /// Routes to these nodes: one row for each data center, of names and addresses.
    #[must_use]
    pub const fn new(rows: Vec<Vec<(String, NodeAddress)>>) -> Self {
        Self(rows)
    }

    /// Routes to one node.
    #[must_use]
    pub fn to_one(name: &str, address: &NodeAddress) -> Self {
        Self::new(vec![vec![(name.to_owned(), address.clone())]])
    }

    /// Returns the address of any node that serves.
    pub fn anywhere(&self, rng: &mut impl Rng) -> Option<SocketAddr> {
        let mut home = self.home(50, rng);
        let goal = self.choose(NodeChoice::Anywhere, &mut home, rng);
        goal.map(|goal| goal.address)
    }

    /// Returns this node; `None` while it is unavailable.
    pub(super) fn at(&self, NodeAt(data_center, node): NodeAt) -> Option<NodeTarget> {
        goal(&self.0[data_center][node])
    }

    /// Returns a home: near the first data center in so many of a hundred cases.
    pub(super) fn home(&self, first_percent: u32, rng: &mut impl Rng) -> Home {
        let is_first = below(rng, 100) < first_percent as usize || self.0.len() == 1;
        let data_center = if is_first {
            0
        } else {
            1 + below(rng, self.0.len() - 1)
        };
        Home {
            data_center,
            node: below(rng, self.0[data_center].len()),
        }
    }

    /// Returns the node of the next request; `None` while all candidates are unavailable.
    pub(super) fn choose(
        &self,
        node_choice: NodeChoice,
        home: &mut Home,
        rng: &mut impl Rng,
    ) -> Option<NodeTarget> {
        match node_choice {
            NodeChoice::Only(at) => self.at(at),
            NodeChoice::Sticky => {
                if goal(&self.0[home.data_center][home.node]).is_none() {
                    home.node = below(rng, self.0[home.data_center].len());
                }
                let own = goal(&self.0[home.data_center][home.node]);
                own.or_else(|| self.near(home, rng))
            }
            NodeChoice::InDataCenter => self.near(home, rng),
            NodeChoice::Anywhere => any(self.0.iter().flatten(), rng),
        }
    }

    /// Returns a node in the data center of `home`, or else any.
    fn near(&self, home: &Home, rng: &mut impl Rng) -> Option<NodeTarget> {
        any(self.0[home.data_center].iter(), rng).or_else(|| any(self.0.iter().flatten(), rng))
    }
}

fn any<'a>(
    routes: impl Iterator<Item = &'a (String, NodeAddress)>,
    rng: &mut impl Rng,
) -> Option<NodeTarget> {
    let mut open: Vec<NodeTarget> = routes.filter_map(goal).collect();
    (!open.is_empty()).then(|| open.swap_remove(below(rng, open.len())))
}

fn goal((name, address): &(String, NodeAddress)) -> Option<NodeTarget> {
    address.get().map(|address| NodeTarget {
        name: name.clone(),
        address,
    })
}

/// Returns a number below `end`, which must not be 0. The bias does not matter here.
pub(super) fn below(rng: &mut impl Rng, end: usize) -> usize {
    let word = rng.next_u32() as usize;
    word % end
}
