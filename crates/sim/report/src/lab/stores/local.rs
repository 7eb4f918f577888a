//! Counting without sharing: each node counts alone.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};

use super::scheduler::{Arrival, Scheduler, Store};
use crate::lab::run::Plan;

/// State by node and client.
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

    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<()>) {
        let state = self
            .states
            .entry((request.node, request.client))
            .or_default();
        let verdict = self.policy.step(state, scheduler.now(), Cost::ONE);
        scheduler.record(request.client, &verdict);
    }

    fn handle_message(&mut self, (): (), _desk: &mut Scheduler<()>) {}
}
