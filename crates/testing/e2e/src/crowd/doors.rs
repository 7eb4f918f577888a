//! To which node does a request go? What a load balancer, or a visitor who travels, would choose.

use std::net::SocketAddr;

use rand_core::Rng;

use crate::cluster::NodeAt;
use crate::node::{Door, Node};

/// How requests of one visitor find their node. A node that is known to be away is never chosen as
/// long as another one is there, except by [`Wander::Only`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wander {
    /// Always the same one, near the visitor.
    Sticky,
    /// Any node of the visitor's data center, another one with each request.
    InDataCenter,
    /// Any node at all, another one with each request.
    Anywhere,
    /// This one for everybody.
    Only(NodeAt),
}

/// The doors of all nodes, data center by data center.
#[derive(Clone, Debug)]
pub struct Doors(Vec<Vec<(String, Door)>>);

/// Where somebody lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    data_center: usize,
    node: usize,
}

/// A node to send to.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

impl Doors {
    /// The door of the only node there is.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        Self(vec![vec![(node.name().to_owned(), node.door().clone())]])
    }

    pub(crate) const fn new(rows: Vec<Vec<(String, Door)>>) -> Self {
        Self(rows)
    }

    /// Any node that is there.
    pub(crate) fn anywhere(&self, rng: &mut impl Rng) -> Option<SocketAddr> {
        let mut home = self.home(50, rng);
        let goal = self.choose(Wander::Anywhere, &mut home, rng);
        goal.map(|goal| goal.address)
    }

    /// This node; `None` while it is away.
    pub(super) fn at(&self, NodeAt(data_center, node): NodeAt) -> Option<Goal> {
        goal(&self.0[data_center][node])
    }

    /// A home: near the first data center for so many of a hundred.
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

    /// Where the next request goes; `None` while all who come into question are away.
    pub(super) fn choose(
        &self,
        wander: Wander,
        home: &mut Home,
        rng: &mut impl Rng,
    ) -> Option<Goal> {
        match wander {
            Wander::Only(at) => self.at(at),
            Wander::Sticky => {
                if goal(&self.0[home.data_center][home.node]).is_none() {
                    home.node = below(rng, self.0[home.data_center].len());
                }
                let own = goal(&self.0[home.data_center][home.node]);
                own.or_else(|| self.near(home, rng))
            }
            Wander::InDataCenter => self.near(home, rng),
            Wander::Anywhere => any(self.0.iter().flatten(), rng),
        }
    }

    /// In the data center of `home`, or else anywhere.
    fn near(&self, home: &Home, rng: &mut impl Rng) -> Option<Goal> {
        any(self.0[home.data_center].iter(), rng).or_else(|| any(self.0.iter().flatten(), rng))
    }
}

fn any<'a>(doors: impl Iterator<Item = &'a (String, Door)>, rng: &mut impl Rng) -> Option<Goal> {
    let mut open: Vec<Goal> = doors.filter_map(goal).collect();
    (!open.is_empty()).then(|| open.swap_remove(below(rng, open.len())))
}

fn goal((name, door): &(String, Door)) -> Option<Goal> {
    door.address().map(|address| Goal {
        name: name.clone(),
        address,
    })
}

/// A number below `end`, which must not be 0. The bias does not matter to a crowd.
pub(super) fn below(rng: &mut impl Rng, end: usize) -> usize {
    let word = rng.next_u32() as usize;
    word % end
}
