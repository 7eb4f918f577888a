//! Conformance list of stores whose nodes decide alone and exchange counts later: bounds on their
//! error, and agreement in the end.
//!
//! They are exact for requests that all nodes know of. At worst, for requests at all nodes at once,
//! each node admits a whole limit. What lies between, and the delay of updates, differs by store,
//! and each store tests its own.

use std::sync::Arc;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::verdict::Verdict;

use super::policies;
use crate::key::ClientKey;
use crate::shared::{BoxFuture, SharedAcquire, SharedCounts};

/// Nodes that exchange counts, while their clock stands still.
pub trait Distributed: Sync {
    /// Returns two or more nodes, on which the limits of this list are unused.
    fn nodes(&self) -> Vec<Arc<dyn SharedCounts>>;

    /// Waits until `holds` returns true, and panics if that takes too long.
    fn until<'a>(
        &'a self,
        what: &'a str,
        holds: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, ()>;
}

/// Overshoot of nodes that received all requests at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Overshoot {
    /// Requests that one client is allowed.
    pub limit: u32,
    /// Number of nodes.
    pub nodes: usize,
    /// Requests that they admitted together, by the algorithm that admitted most.
    pub admitted: u32,
}

/// Requests that one client is allowed.
const LIMIT: u32 = 6;

/// Runs the list, for each algorithm that the store can keep.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check(stage: &dyn Distributed) -> Overshoot {
    let nodes = stage.nodes();
    assert!(nodes.len() > 1, "one node is alone, and exact");
    let mut admitted = 0;
    for (at, (name, policy)) in policies(LIMIT).into_iter().enumerate() {
        if nodes[0].check(name, &policy).is_err() {
            continue;
        }
        let (_, wider) = policies(3 * LIMIT * u32::try_from(nodes.len()).unwrap_or(1))[at];
        let run = Run {
            stage,
            nodes: &nodes,
            name,
            policy,
            wider,
        };
        run.shared_counts_are_exact().await;
        admitted = admitted.max(
            run.concurrent_nodes_admit_a_limit_each_and_agree_later()
                .await,
        );
    }
    assert!(admitted > 0, "it keeps no algorithm");
    Overshoot {
        limit: LIMIT,
        nodes: nodes.len(),
        admitted,
    }
}

struct Run<'s> {
    stage: &'s dyn Distributed,
    nodes: &'s [Arc<dyn SharedCounts>],
    name: &'static str,
    policy: Policy,
    /// Policy of the same algorithm with a limit that is never reached: it shows the count.
    wider: Policy,
}

impl Run<'_> {
    fn acquire(
        &self,
        node: &dyn SharedCounts,
        client: u128,
        policy: &Policy,
        cost: Cost,
    ) -> Verdict {
        let request = SharedAcquire {
            limit: self.name,
            policy,
            key: ClientKey(client),
            cost,
        };
        let mut verdicts = Vec::new();
        let decided = node.try_acquire_now(&[request], &mut verdicts);
        let decided = decided.unwrap_or_else(|| panic!("{}: it waits for other nodes", self.name));
        decided.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        verdicts[0]
    }

    fn is_admitted(&self, node: &dyn SharedCounts, client: u128) -> bool {
        self.acquire(node, client, &self.policy, Cost::ONE)
            .is_allowed()
    }

    /// Waits until all nodes know of `requests` requests of a client.
    async fn until_all_know(&self, client: u128, requests: u32) {
        let none = self.acquire(&*self.nodes[0], u128::MAX, &self.wider, Cost::Peek);
        let left = none.remaining - requests;
        let knows = |node: &Arc<dyn SharedCounts>| {
            self.acquire(&**node, client, &self.wider, Cost::Peek)
                .remaining
                == left
        };
        let what = format!("{}: all know of {requests} requests", self.name);
        let holds = || self.nodes.iter().all(knows);
        self.stage.until(&what, &holds).await;
    }

    async fn shared_counts_are_exact(&self) {
        for requests in 1..=LIMIT {
            let node = &self.nodes[requests as usize % self.nodes.len()];
            assert!(
                self.is_admitted(&**node, 1),
                "{}: request {requests}",
                self.name
            );
            self.until_all_know(1, requests).await;
        }
        for node in self.nodes {
            assert!(!self.is_admitted(&**node, 1), "{}: one more", self.name);
        }
    }

    async fn concurrent_nodes_admit_a_limit_each_and_agree_later(&self) -> u32 {
        let mut sum = 0;
        for node in self.nodes {
            let admitted = (0..2 * LIMIT).filter(|_| self.is_admitted(&**node, 2));
            let admitted = u32::try_from(admitted.count()).unwrap_or(u32::MAX);
            assert!(admitted <= LIMIT, "{}: {admitted} at one node", self.name);
            sum += admitted;
        }
        assert!(sum >= LIMIT, "{}: {sum} in all", self.name);
        self.until_all_know(2, sum).await;
        for node in self.nodes {
            assert!(
                !self.is_admitted(&**node, 2),
                "{}: all is used up",
                self.name
            );
        }
        sum
    }
}
