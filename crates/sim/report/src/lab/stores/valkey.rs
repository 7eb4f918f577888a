//! Store that decides about every request: a message to it, a message back.
//!
//! A request counts when the store decides, by its clock; when it goes on depends on the delay of
//! the reply.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};

use super::scheduler::{Arrival, Scheduler, Store};
use crate::lab::run::Plan;

/// State by client.
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
    /// Request of a client, sent to the store.
    type Message = u32;

    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<u32>) {
        scheduler.send(request.client);
    }

    fn handle_message(&mut self, client: u32, scheduler: &mut Scheduler<u32>) {
        let state = self.states.entry(client).or_default();
        let verdict = self.policy.step(state, scheduler.now(), Cost::ONE);
        scheduler.record(client, &verdict);
        // The reply to the node changes nothing more.
        scheduler.costs.messages += 1;
    }
}
