//! Chatty servers: whoever lets a call through tells all others, and each decides by what it has heard.

use std::collections::BTreeMap;

use anteroom_limits::algorithm::Algorithm as _;
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::time::Micros;

use super::desk::{Arrival, Desk, Store};
use crate::run::Plan;

/// What each node believes of each client.
pub(crate) struct Gossip {
    policy: Policy,
    raised: Policy,
    nodes: u32,
    believed: BTreeMap<(u32, u32), State>,
}

/// "I let a call of this client through."
pub(crate) struct Count {
    to: u32,
    client: u32,
    at: Micros,
}

impl Gossip {
    /// `raised` is the same algorithm with a limit that nobody reaches: what others let through is added,
    /// also where this node would not have.
    pub(crate) fn new(plan: &Plan, raised: Policy) -> Self {
        Self {
            policy: plan.policy,
            raised,
            nodes: plan.nodes,
            believed: BTreeMap::new(),
        }
    }
}

impl Store for Gossip {
    type Message = Count;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Count>) {
        let at = desk.now();
        let state = self.believed.entry((call.node, call.client)).or_default();
        let verdict = self.policy.step(state, at, Cost::ONE);
        desk.tell(call.client, &verdict);
        if !verdict.is_admitted() {
            return;
        }
        for to in (0..self.nodes).filter(|to| *to != call.node) {
            desk.send(Count {
                to,
                client: call.client,
                at,
            });
        }
    }

    /// Counted as of when it went through; if that was in a window that is over here, in the newest.
    fn handle_message(&mut self, count: Count, desk: &mut Desk<Count>) {
        desk.hear(count.at);
        let state = self.believed.entry((count.to, count.client)).or_default();
        self.raised.step(state, count.at, Cost::ONE);
    }
}
