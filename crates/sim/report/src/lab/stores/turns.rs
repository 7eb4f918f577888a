//! Turns: requests of one node for one client that swap its state do so one after the other.

use std::collections::{BTreeMap, VecDeque};

use anteroom_limit::swapping::WAITING_MAX;

/// Client at a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct NodeClient {
    pub(crate) node: u32,
    pub(crate) client: u32,
}

/// Waiting requests, behind the one that has the turn.
pub(crate) struct Turns<T>(BTreeMap<NodeClient, VecDeque<T>>);

/// Time of a request's turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    Now,
    Later,
    /// Rejected: too many requests wait.
    Full,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Turns<T> {
    /// Adds a request to the queue.
    pub(crate) fn enqueue(&mut self, node_client: NodeClient, request: T) -> Turn {
        let Some(queue) = self.0.get_mut(&node_client) else {
            self.0.insert(node_client, VecDeque::new());
            return Turn::Now;
        };
        // One request has the turn.
        if queue.len() + 1 >= WAITING_MAX {
            return Turn::Full;
        }
        queue.push_back(request);
        Turn::Later
    }

    /// Takes the first waiting request, if it is one of these.
    pub(crate) fn take_first_if(
        &mut self,
        node_client: NodeClient,
        is_one: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let queue = self.0.get_mut(&node_client)?;
        queue.pop_front_if(|first| is_one(first))
    }

    /// Ends a turn and returns the request that has the next one.
    pub(crate) fn next(&mut self, node_client: NodeClient) -> Option<T> {
        let next = self.0.get_mut(&node_client)?.pop_front();
        if next.is_none() {
            self.0.remove(&node_client);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_and_never_too_many() {
        let (here, there) = (
            NodeClient { node: 0, client: 0 },
            NodeClient { node: 1, client: 0 },
        );
        let mut turns = Turns::default();
        assert_eq!(turns.enqueue(here, 0), Turn::Now);
        for request in 1..WAITING_MAX {
            assert_eq!(turns.enqueue(here, request), Turn::Later);
        }
        assert_eq!(turns.enqueue(here, 999), Turn::Full);
        assert_eq!(turns.enqueue(there, 0), Turn::Now);
        assert_eq!(turns.take_first_if(here, |request| *request == 2), None);
        assert_eq!(turns.take_first_if(here, |request| *request == 1), Some(1));
        assert_eq!(turns.next(here), Some(2));
        assert_eq!(turns.next(there), None);
        assert_eq!(turns.enqueue(there, 0), Turn::Now);
    }
}
