//! Counters: a request takes a number from a shared counter and brings it back.

use anteroom_room::allocation::{CounterKey, CounterScope};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use super::visiting::NUMBER_WAIT_MAX;
use crate::deployment::network::{Copies, joined};
use crate::deployment::node::Request;
use crate::scenario::model::{Delay, StoreRef};

impl Simulation {
    pub(super) fn take_number(&mut self, mut request: Request, key: CounterKey) {
        request.number = Some((key, None));
        let node = request.node;
        match key.scope {
            CounterScope::DataCenter(_) => self.measure.local_requests += 1,
            CounterScope::Anywhere => self.measure.global_requests += 1,
        }
        let sent = self.send_to_counter(node, key);
        let request = self.parked.insert(request);
        match sent.first {
            Some(after) if after < NUMBER_WAIT_MAX => {
                self.plan(self.now + after, Event::AtCounter { request });
            }
            _ => self.plan(self.now + NUMBER_WAIT_MAX, Event::NumberBack { request }),
        }
    }

    pub(super) fn handle_request_at_counter(&mut self, key: Key) {
        let now = self.now;
        let Some(request) = self.parked.get_mut(key) else {
            return;
        };
        let Some((counter, _)) = request.number else {
            return;
        };
        let node = request.node;
        let data_center = self.deployment.nodes[node as usize].data_center;
        let store_place = match counter.scope {
            CounterScope::DataCenter(_) => StoreRef::Local(data_center as usize),
            CounterScope::Anywhere => StoreRef::Global,
        };
        let store = self.deployment.stores.at(store_place);
        let taken = store.take_number(counter, now);
        let back = self.send_to_counter(node, counter).first;
        let Some(request) = self.parked.get_mut(key) else {
            return;
        };
        let given_up_at = request.arrived_at.max(now) + NUMBER_WAIT_MAX;
        let returns_at = back.map_or(given_up_at, |after| now + after);
        if let Some(number) = taken.filter(|_| returns_at < given_up_at) {
            request.number = Some((counter, Some(number)));
        }
        self.plan(
            returns_at.min(given_up_at),
            Event::NumberBack { request: key },
        );
    }

    pub(super) fn handle_number_back(&mut self, key: Key) {
        let Some(request) = self.parked.get_mut(key) else {
            return;
        };
        let paused_until = self.deployment.nodes[request.node as usize].paused_until;
        if paused_until > self.now {
            self.plan(paused_until, Event::NumberBack { request: key });
            return;
        }
        if let Some(request) = self.parked.remove(key) {
            self.resume(request);
        }
    }

    /// Sends a message one way between a node and a counter.
    fn send_to_counter(&mut self, node: u32, key: CounterKey) -> Copies {
        let data_center = self.deployment.nodes[node as usize].data_center;
        let plan = &self.deployment.data_centers[data_center as usize].plan;
        let is_far = key.scope == CounterScope::Anywhere;
        let delay: Delay = if is_far {
            joined(plan.to_store, plan.to_global)
        } else {
            plan.to_store
        };
        if !self.deployment.is_linked(node, is_far, false, self.now) {
            return Copies::default();
        }
        self.deployment.network.send(delay, self.now)
    }
}
