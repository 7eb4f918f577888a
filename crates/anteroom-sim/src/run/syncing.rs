//! Nodes talk to their stores: one round at a time, on a period and when somebody asks.
//!
//! A request or reply may get lost, come late or come twice; a round that gets no answer fails
//! after a while, and while a store fails nobody waits for it.

use anteroom_core::planted::{Bug, is_planted};
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_core::time::{Millis, Span};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use super::visiting::PATIENCE;
use crate::deployment::network::Copies;
use crate::deployment::node::Request;

/// A round that takes longer has failed, as in the gateway.
pub(super) const ROUND_TIME_OUT: Span = Span(2_000);
/// Pause after a failed round, as in the gateway.
pub(super) const PAUSE_AFTER_FAILURE: Span = Span(500);

/// A node may hold more than was in use: all nodes together at most one in so many of the slots that
/// are left over when everybody who waits has got one.
const KEPT_FOR_CHANCE: u32 = 8;

/// How old the row is that a planted bug keeps.
const OLD_ROW: Span = Span(3_000);

/// Something on its way between a node and a store.
#[derive(Clone, Debug)]
pub(super) struct Message {
    node: u32,
    life: u32,
    round: u32,
    sent_at: Millis,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Request(SyncRequest),
    Reply(Reply),
}

/// How often somebody asks upwards before it is told what there is.
const TRIES: u8 = 4;

impl Simulation {
    /// A request waits for what comes from above.
    pub(super) fn park(&mut self, mut request: Request) {
        let index = request.node;
        let node = &self.deployment.nodes[index as usize];
        let data_center = node.data_center;
        let asks_world = request.asked > 0 && self.deployment.stores.has_two_levels();
        if node.talk.is_failing || (asks_world && self.is_world_failing(data_center)) {
            request.may_ask_parent = false;
            self.decide(request);
            return;
        }
        let gives_up_at = request.arrived_at + PATIENCE;
        // What one answer brings, somebody else may take: patience is the limit, not one try.
        request.asked += 1;
        request.may_ask_parent = request.asked < TRIES;
        let key = self.parked.insert(request);
        self.plan(gives_up_at, Event::PatienceEnds { request: key });
        if asks_world {
            self.ask_world(data_center, key);
            return;
        }
        let talk = &mut self.deployment.nodes[index as usize].talk;
        talk.asking_next.push(key);
        self.hurry(index);
    }

    /// Has a node begin a round as soon as it can.
    pub(super) fn hurry(&mut self, node: u32) {
        let talk = &mut self.deployment.nodes[node as usize].talk;
        if talk.is_under_way {
            talk.is_wanted = true;
        } else if !talk.is_failing {
            self.begin_round(node);
        }
    }

    pub(super) fn handle_round_due(&mut self, index: u32, round: u32) {
        let node = &self.deployment.nodes[index as usize];
        if !node.is_alive || node.talk.round != round || node.talk.is_under_way {
            return;
        }
        if node.paused_until > self.now {
            let at = node.paused_until;
            self.plan(at, Event::RoundDue { node: index, round });
            return;
        }
        self.begin_round(index);
    }

    fn begin_round(&mut self, index: u32) {
        let now = self.now;
        let node = &mut self.deployment.nodes[index as usize];
        if node.is_draining {
            return;
        }
        let node_now = node.clock.read(now);
        let talk = &mut node.talk;
        talk.round = talk.round.wrapping_add(1);
        talk.is_under_way = true;
        talk.is_wanted = false;
        talk.sent_at = now;
        talk.asking.append(&mut talk.asking_next);
        let request = node.room.poll_sync(node_now);
        if is_planted(Bug::RestartWritesOldRow) {
            let is_old = |told: &SyncRequest| told.sent_at + OLD_ROW < node_now;
            if node.last_told.as_deref().is_none_or(is_old) {
                node.last_told = Some(Box::new(request.clone()));
            }
        }
        let used = node.uses.tell(now);
        let outlook = node.room.outlook();
        let for_chance = outlook.slots_to_spare / (KEPT_FOR_CHANCE * outlook.nodes.max(1));
        let kept = request.held.seats.saturating_sub(for_chance);
        self.judge.check_kept(kept, used, now);
        self.note(|deployment| {
            let name = deployment.name_of(index);
            let (held, wants) = (request.held, request.wants);
            let (seats, slots, credits) = (held.seats, held.admissions, held.credits);
            format!("{name} asks its store: holds {seats} seats, {slots} admissions, {credits} credits, {wants:?}")
        });
        self.send_request(index, request);
    }

    /// A planted bug: a node that starts tells once more what it had told before.
    pub(super) fn write_old_row(&mut self, index: u32) {
        let node = &mut self.deployment.nodes[index as usize];
        if let Some(mut old) = node.last_told.take() {
            // Newer than all that came after it.
            old.number += 1_000;
            old.is_final = true;
            self.send_request(index, *old);
        }
    }

    /// Sends the last request of a node's life.
    pub(super) fn send_goodbye(&mut self, index: u32) {
        let node = &mut self.deployment.nodes[index as usize];
        let node_now = node.clock.read(self.now);
        node.talk.sent_at = self.now;
        let request = node.room.poll_goodbye(node_now);
        self.send_request(index, request);
    }

    fn send_request(&mut self, index: u32, request: SyncRequest) {
        self.measure.local_calls += 1;
        let node = &self.deployment.nodes[index as usize];
        let message = Message {
            node: index,
            life: node.life,
            round: node.talk.round,
            sent_at: self.now,
            body: Body::Request(request),
        };
        self.send(message);
    }

    /// Sends a message one way, in whichever direction it goes.
    fn send(&mut self, message: Message) {
        let copies = self.copies(message.node);
        let (node, round) = (message.node, message.round);
        // A message that comes too late may as well be lost, as far as its round goes.
        let in_time =
            |after: Option<Span>| after.is_some_and(|after| after.times(3) < ROUND_TIME_OUT);
        if !in_time(copies.first) && !in_time(copies.second) {
            let at = message.sent_at + ROUND_TIME_OUT;
            self.plan(at, Event::RoundFails { node, round });
        }
        if let Some(after) = copies.second {
            self.plan_message(message.clone(), after);
        }
        if let Some(after) = copies.first {
            self.plan_message(message, after);
        }
    }

    fn plan_message(&mut self, message: Message, after: Span) {
        let is_request = matches!(message.body, Body::Request(_));
        let message = self.messages.insert(message);
        let event = if is_request {
            Event::AtStore { message }
        } else {
            Event::AtNode { message }
        };
        self.plan(self.now + after, event);
    }

    fn copies(&mut self, index: u32) -> Copies {
        let now = self.now;
        let data_center = self.deployment.nodes[index as usize].data_center;
        let plan = &self.deployment.data_centers[data_center as usize].plan;
        let delay = plan.to_store;
        let is_linked = self.deployment.is_linked(index, now);
        if is_linked {
            self.deployment.network.send(delay, now)
        } else {
            Copies::default()
        }
    }

    pub(super) fn handle_message_at_store(&mut self, key: Key) {
        let Some(message) = self.messages.remove(key) else {
            return;
        };
        let Body::Request(request) = message.body else {
            return;
        };
        let data_center = self.deployment.nodes[message.node as usize].data_center;
        let stores = &mut self.deployment.stores;
        match stores.local(data_center).sync(request, self.now) {
            Some(reply) => {
                let body = Body::Reply(reply);
                self.send(Message { body, ..message });
                self.hurry_uplink(data_center);
            }
            None => {
                let (node, round) = (message.node, message.round);
                let at = message.sent_at + ROUND_TIME_OUT;
                self.plan(at, Event::RoundFails { node, round });
            }
        }
    }

    pub(super) fn handle_message_at_node(&mut self, key: Key) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        let node = &mut self.deployment.nodes[message.node as usize];
        let is_for_this_life = node.is_alive && node.life == message.life;
        if is_for_this_life && node.paused_until > self.now {
            let at = node.paused_until;
            self.plan(at, Event::AtNode { message: key });
            return;
        }
        let Some(message) = self.messages.remove(key) else {
            return;
        };
        let Body::Reply(reply) = message.body else {
            return;
        };
        if !is_for_this_life {
            return;
        }
        let node_now = node.clock.read(self.now);
        let told = self.trace.is_some().then(|| tell(&reply));
        // A reply that counts no more ends the round all the same: nothing else will come.
        node.room.handle_reply(reply, node_now);
        if node.talk.is_under_way && node.talk.round == message.round {
            self.note_told(message.node, told);
            self.end_round(message.node, true);
        }
    }

    fn note_told(&mut self, index: u32, told: Option<String>) {
        if let Some(told) = told {
            self.note(|deployment| format!("{} hears: {told}", deployment.name_of(index)));
        }
    }

    pub(super) fn handle_round_failure(&mut self, index: u32, round: u32) {
        let node = &self.deployment.nodes[index as usize];
        if node.is_alive && node.talk.is_under_way && node.talk.round == round {
            if node.paused_until > self.now {
                let at = node.paused_until;
                self.plan(at, Event::RoundFails { node: index, round });
                return;
            }
            self.note(|deployment| format!("{} hears nothing", deployment.name_of(index)));
            self.end_round(index, false);
        }
    }

    fn end_round(&mut self, index: u32, is_success: bool) {
        let talk = &mut self.deployment.nodes[index as usize].talk;
        talk.is_failing = !is_success;
        let mut asking = std::mem::take(&mut talk.asking);
        // Whoever asks once more waits for the next round, together with the others.
        for key in asking.drain(..) {
            if let Some(mut request) = self.parked.remove(key) {
                request.may_ask_parent &= is_success;
                self.resume(request);
            }
        }
        let node = &mut self.deployment.nodes[index as usize];
        node.talk.asking = asking;
        node.talk.is_under_way = false;
        if is_success && node.talk.is_wanted {
            self.begin_round(index);
            return;
        }
        let pause_ends_at = if is_success {
            node.talk.sent_at + node.pause()
        } else {
            self.now + PAUSE_AFTER_FAILURE
        };
        let round = node.talk.round;
        self.plan(pause_ends_at, Event::RoundDue { node: index, round });
    }
}

/// A reply in a line for the trace.
pub(super) fn tell(reply: &Reply) -> String {
    match reply {
        Reply::Stale => "stale".to_owned(),
        Reply::Void { .. } => "void".to_owned(),
        Reply::Lent(answer) => {
            let (granted, outlook) = (answer.granted, &answer.outlook);
            format!(
                "{} seats, {} admissions, {} credits; inside {}, phantoms {}, lent {}, free {} and \
                 {}, waiting {}, {:?}",
                granted.seats,
                granted.admissions,
                granted.credits,
                outlook.inside,
                outlook.phantoms,
                outlook.lent,
                outlook.seats_free,
                outlook.admissions_free,
                outlook.waiting,
                outlook.watermark,
            )
        }
    }
}
