//! Each node counts by itself.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};

use super::desk::{Arrival, Desk, Store};
use crate::lab::run::Plan;

/// A state for each node and client.
pub(crate) struct Local {
    policy: Policy,
    states: BTreeMap<(u32, u32), State>,
}

impl Local {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            policy: plan.policy,
            states: BTreeMap::new(),
        }
    }
}

impl Store for Local {
    type Message = ();

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<()>) {
        let state = self.states.entry((call.node, call.client)).or_default();
        let verdict = self.policy.step(state, desk.now(), Cost::ONE);
        desk.tell(call.client, &verdict);
    }

    fn handle_message(&mut self, (): (), _desk: &mut Desk<()>) {}
}
