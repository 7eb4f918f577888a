//! One store decides about every call: a message there, a message back.
//!
//! A call counts when the store decides, by its clock; when it goes on depends on the way back.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};

use super::desk::{Arrival, Desk, Store};
use crate::lab::run::Plan;

/// A state for each client.
pub(crate) struct OneStore {
    policy: Policy,
    states: BTreeMap<u32, State>,
}

impl OneStore {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            policy: plan.policy,
            states: BTreeMap::new(),
        }
    }
}

impl Store for OneStore {
    /// A question about a client's call.
    type Message = u32;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<u32>) {
        desk.send(call.client);
    }

    fn handle_message(&mut self, client: u32, desk: &mut Desk<u32>) {
        let state = self.states.entry(client).or_default();
        let verdict = self.policy.step(state, desk.now(), Cost::ONE);
        desk.tell(client, &verdict);
        // The way back changes nothing any more.
        desk.costs.messages += 1;
    }
}
