//! What stores must do whose nodes decide alone and hear of each other later: how far off they may
//! be, and that they agree in the end.
//!
//! Exact for calls of which all nodes know; at worst, for calls that come at once everywhere, a
//! whole limit at each node. What comes between, and how late news are, is the store's own, and so
//! are the tests that state it.

use std::sync::Arc;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::verdict::Verdict;

use super::policies;
use crate::key::CallKey;
use crate::shared::{BoxFuture, SharedAcquire, SharedCounts};

/// Nodes that hear of each other, in a time that stands still.
pub trait Apart: Sync {
    /// Two or more. Nobody has charged the limits of this list there.
    fn nodes(&self) -> Vec<Arc<dyn SharedCounts>>;

    /// Waits until that is so, and panics if it never is.
    fn until<'a>(
        &'a self,
        what: &'a str,
        holds: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, ()>;
}

/// How far off nodes were that were all asked at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HowFarOff {
    /// What one client may call.
    pub limit: u32,
    /// How many nodes there were.
    pub nodes: usize,
    /// How many calls they admitted, by the algorithm that let most through.
    pub admitted: u32,
}

/// What one client may call.
const LIMIT: u32 = 6;

/// Runs the list, for each algorithm that the store can keep.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check(stage: &dyn Apart) -> HowFarOff {
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
        run.what_all_know_of_is_exact().await;
        admitted = admitted.max(run.all_at_once_admit_a_limit_each_and_agree_then().await);
    }
    assert!(admitted > 0, "it keeps no algorithm");
    HowFarOff {
        limit: LIMIT,
        nodes: nodes.len(),
        admitted,
    }
}

struct Run<'s> {
    stage: &'s dyn Apart,
    nodes: &'s [Arc<dyn SharedCounts>],
    name: &'static str,
    policy: Policy,
    /// The same with a limit that is never reached: it shows how much counts.
    wider: Policy,
}

impl Run<'_> {
    fn call(&self, node: &dyn SharedCounts, client: u128, policy: &Policy, cost: Cost) -> Verdict {
        let charge = SharedAcquire {
            limit: self.name,
            policy,
            key: CallKey(client),
            cost,
        };
        let mut verdicts = Vec::new();
        let decided = node.charge_now(&[charge], &mut verdicts);
        let decided = decided.unwrap_or_else(|| panic!("{}: it waits for others", self.name));
        decided.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        verdicts[0]
    }

    fn passes(&self, node: &dyn SharedCounts, client: u128) -> bool {
        self.call(node, client, &self.policy, Cost::ONE)
            .is_admitted()
    }

    /// Waits until all nodes have heard of so many calls of a client.
    async fn until_all_know(&self, client: u128, calls: u32) {
        let none = self.call(&*self.nodes[0], u128::MAX, &self.wider, Cost::Peek);
        let left = none.remaining - calls;
        let knows = |node: &Arc<dyn SharedCounts>| {
            self.call(&**node, client, &self.wider, Cost::Peek)
                .remaining
                == left
        };
        let what = format!("{}: all know of {calls} calls", self.name);
        let holds = || self.nodes.iter().all(knows);
        self.stage.until(&what, &holds).await;
    }

    async fn what_all_know_of_is_exact(&self) {
        for calls in 1..=LIMIT {
            let node = &self.nodes[calls as usize % self.nodes.len()];
            assert!(self.passes(&**node, 1), "{}: call {calls}", self.name);
            self.until_all_know(1, calls).await;
        }
        for node in self.nodes {
            assert!(!self.passes(&**node, 1), "{}: one more", self.name);
        }
    }

    async fn all_at_once_admit_a_limit_each_and_agree_then(&self) -> u32 {
        let mut sum = 0;
        for node in self.nodes {
            let calls = (0..2 * LIMIT).filter(|_| self.passes(&**node, 2));
            let admitted = u32::try_from(calls.count()).unwrap_or(u32::MAX);
            assert!(admitted <= LIMIT, "{}: {admitted} at one node", self.name);
            sum += admitted;
        }
        assert!(sum >= LIMIT, "{}: {sum} in all", self.name);
        self.until_all_know(2, sum).await;
        for node in self.nodes {
            assert!(!self.passes(&**node, 2), "{}: all is used up", self.name);
        }
        sum
    }
}
