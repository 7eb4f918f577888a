//! Data centers talk to the world: a node carries the request of its store's ledger up, and the
//! reply down.
//!
//! If that node dies, the round is lost; the next one is carried by another. Legs of a round: the
//! node has the store draw a request, takes it to the world, brings the reply to the store, and
//! hears that it was written.

use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_core::time::{Millis, Span};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use super::syncing::{PAUSE_AFTER_FAILURE, ROUND_TIME_OUT, tell};
use crate::deployment::network::joined;
use crate::dice::Draw;
use anteroom_scenario::model::Delay;

/// When a data center asks the world first, after all has started.
const FIRST_FROM: Span = Span(300);
const FIRST_TO: Span = Span(500);

/// A round between a data center and the world, on one of its legs.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    data_center: u32,
    round: u32,
    node: u32,
    life: u32,
    sent_at: Millis,
    leg: Leg,
}

#[derive(Clone, Debug)]
enum Leg {
    ToStore,
    ToWorld(SyncRequest),
    BackToStore(Reply),
    BackToNode,
}

impl Simulation {
    pub(super) fn plan_uplinks(&mut self) {
        if !self.deployment.stores.has_two_levels() {
            return;
        }
        for (data_center, _) in (0u32..).zip(self.scenario.data_centers.clone()) {
            // A node that starts talks to its own store first.
            let after = self.deployment.lives().between(FIRST_FROM, FIRST_TO);
            let round = 0;
            self.plan(self.now + after, Event::UplinkDue { data_center, round });
        }
    }

    /// Has a data center ask the world as soon as it can, on behalf of somebody who waits for it.
    pub(super) fn ask_world(&mut self, data_center: u32, request: Key) {
        let uplink = &mut self.deployment.data_centers[data_center as usize].uplink;
        uplink.talk.asking_next.push(request);
        if uplink.talk.is_under_way {
            uplink.talk.is_wanted = true;
        } else {
            self.begin_uplink(data_center);
        }
    }

    /// Whether nobody waits for the world, because it did not answer.
    pub(super) fn is_world_failing(&self, data_center: u32) -> bool {
        let uplink = &self.deployment.data_centers[data_center as usize].uplink;
        uplink.talk.is_failing
    }

    pub(super) fn handle_uplink_due(&mut self, data_center: u32, round: u32) {
        let uplink = &self.deployment.data_centers[data_center as usize].uplink;
        if uplink.talk.round == round && !uplink.talk.is_under_way {
            self.begin_uplink(data_center);
        }
    }

    /// The first node from the last carrier on that can carry a round.
    fn elect(&self, data_center: u32) -> Option<u32> {
        let found = &self.deployment.data_centers[data_center as usize];
        let count = found.plan.nodes;
        let candidates = (0..count).map(|step| (found.uplink.carrier + step) % count);
        let mut nodes = candidates.map(|offset| found.first_node + offset);
        nodes.find(|&node| {
            let node = &self.deployment.nodes[node as usize];
            node.is_alive && node.paused_until <= self.now
        })
    }

    fn begin_uplink(&mut self, data_center: u32) {
        let carrier = self.elect(data_center);
        let found = &mut self.deployment.data_centers[data_center as usize];
        let talk = &mut found.uplink.talk;
        talk.round = talk.round.wrapping_add(1);
        talk.is_wanted = false;
        talk.sent_at = self.now;
        talk.asking.append(&mut talk.asking_next);
        let round = talk.round;
        let Some(node) = carrier else {
            talk.is_failing = true;
            let at = self.now + PAUSE_AFTER_FAILURE;
            self.plan(at, Event::UplinkDue { data_center, round });
            return;
        };
        talk.is_under_way = true;
        found.uplink.carrier = node - found.first_node;
        let errand = Errand {
            data_center,
            round,
            node,
            life: self.deployment.nodes[node as usize].life,
            sent_at: self.now,
            leg: Leg::ToStore,
        };
        self.measure.local_calls += 1;
        self.send_errand(errand);
    }

    /// Sends an errand on its next leg.
    fn send_errand(&mut self, errand: Errand) {
        let plan = &self.deployment.data_centers[errand.data_center as usize].plan;
        let now = self.now;
        let goes_far = matches!(errand.leg, Leg::ToWorld(_) | Leg::BackToStore(_));
        let delay: Delay = if goes_far {
            joined(plan.to_store, plan.to_world)
        } else {
            plan.to_store
        };
        let network = &self.deployment.network;
        let is_linked = self.deployment.is_linked(errand.node, now)
            && (!goes_far || network.is_world_linked(errand.data_center, now));
        if !is_linked {
            self.lose_errand(&errand);
            return;
        }
        let copies = self.deployment.network.send(delay, now);
        let in_time = |after: Option<Span>| after.is_some_and(|a| a.times(5) < ROUND_TIME_OUT);
        if !in_time(copies.first) && !in_time(copies.second) {
            self.lose_errand(&errand);
        }
        if let Some(after) = copies.second {
            let errand = self.errands.insert(errand.clone());
            self.plan(now + after, Event::ErrandArrives { errand });
        }
        if let Some(after) = copies.first {
            let errand = self.errands.insert(errand);
            self.plan(now + after, Event::ErrandArrives { errand });
        }
    }

    /// Nothing will come of this errand, or not in time.
    fn lose_errand(&mut self, errand: &Errand) {
        let at = errand.sent_at + ROUND_TIME_OUT;
        let (data_center, round) = (errand.data_center, errand.round);
        self.plan(at, Event::UplinkFails { data_center, round });
    }

    pub(super) fn handle_errand(&mut self, key: Key) {
        let Some(errand) = self.errands.get_mut(key) else {
            return;
        };
        let carrier = &self.deployment.nodes[errand.node as usize];
        let is_carried = carrier.is_alive && carrier.life == errand.life;
        if is_carried && carrier.paused_until > self.now {
            let at = carrier.paused_until;
            self.plan(at, Event::ErrandArrives { errand: key });
            return;
        }
        let Some(mut errand) = self.errands.remove(key) else {
            return;
        };
        let now = self.now;
        self.trace_errand(&errand);
        let stores = &mut self.deployment.stores;
        let leg = std::mem::replace(&mut errand.leg, Leg::BackToNode);
        let next = match leg {
            _ if !is_carried => None,
            Leg::ToStore => {
                let store = stores.local(errand.data_center);
                let request = store.poll_upstream(now);
                if let Some((kept, used)) = request.as_ref().and_then(|_| store.kept(now)) {
                    self.judge.check_kept(kept, used, now);
                }
                request.map(Leg::ToWorld)
            }
            Leg::ToWorld(request) => {
                self.measure.world_calls += 1;
                stores.world().sync(request, now).map(Leg::BackToStore)
            }
            Leg::BackToStore(reply) => {
                self.measure.local_calls += 1;
                stores
                    .local(errand.data_center)
                    .handle_upstream(reply, now)
                    .then_some(Leg::BackToNode)
            }
            Leg::BackToNode => {
                self.end_uplink(errand.data_center, errand.round, true);
                return;
            }
        };
        match next {
            Some(leg) => {
                errand.leg = leg;
                self.send_errand(errand);
            }
            None => self.lose_errand(&errand),
        }
    }

    fn trace_errand(&mut self, errand: &Errand) {
        if self.trace.is_none() {
            return;
        }
        let told = match &errand.leg {
            Leg::ToWorld(request) => {
                let (held, wants) = (request.held, request.wants);
                let (seats, slots, credits) = (held.seats, held.admissions, held.credits);
                format!(
                    "asks the world: holds {seats} seats, {slots} admissions, {credits} credits, {wants:?}"
                )
            }
            Leg::BackToStore(reply) => format!("hears from the world: {}", tell(reply)),
            Leg::ToStore | Leg::BackToNode => return,
        };
        let index = errand.data_center as usize;
        self.note(|deployment| {
            let name = &deployment.data_centers[index].plan.name;
            format!("{name} {told}")
        });
    }

    pub(super) fn handle_uplink_failure(&mut self, data_center: u32, round: u32) {
        self.end_uplink(data_center, round, false);
    }

    fn end_uplink(&mut self, data_center: u32, round: u32, is_success: bool) {
        let found = &mut self.deployment.data_centers[data_center as usize];
        let talk = &mut found.uplink.talk;
        if !talk.is_under_way || talk.round != round {
            return;
        }
        talk.is_under_way = false;
        talk.is_failing = !is_success;
        let mut asking = std::mem::take(&mut talk.asking);
        let (is_wanted, sent_at) = (talk.is_wanted, talk.sent_at);
        if !is_success {
            found.uplink.carrier = (found.uplink.carrier + 1) % found.plan.nodes;
        }
        // What came down is fetched from the data center's store.
        for key in asking.drain(..) {
            if let Some(request) = self.parked.get_mut(key) {
                let node = request.node;
                let talk = &mut self.deployment.nodes[node as usize].talk;
                talk.asking_next.push(key);
                self.hurry(node);
            }
        }
        self.deployment.data_centers[data_center as usize]
            .uplink
            .talk
            .asking = asking;
        if is_success && is_wanted {
            self.begin_uplink(data_center);
            return;
        }
        let period = self.deployment.stores.local(data_center).upstream_period();
        let at = if is_success {
            sent_at + period
        } else {
            self.now + PAUSE_AFTER_FAILURE
        };
        self.plan_uplink(data_center, at);
    }

    /// A node has spoken to its store: an idle data center may have something to tell now.
    pub(super) fn hurry_uplink(&mut self, data_center: u32) {
        let uplink = &self.deployment.data_centers[data_center as usize].uplink;
        if uplink.talk.is_under_way || uplink.talk.is_failing {
            return;
        }
        let (sent_at, due_at) = (uplink.talk.sent_at, uplink.due_at);
        let period = self.deployment.stores.local(data_center).upstream_period();
        let at = self.now.max(sent_at + period);
        if at < due_at {
            self.plan_uplink(data_center, at);
        }
    }

    fn plan_uplink(&mut self, data_center: u32, at: Millis) {
        let uplink = &mut self.deployment.data_centers[data_center as usize].uplink;
        uplink.due_at = at;
        let round = uplink.talk.round;
        self.plan(at, Event::UplinkDue { data_center, round });
    }
}
