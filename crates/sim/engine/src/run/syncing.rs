//! Drives each node's sync loop: its actions become messages to stores, and their replies return to
//! it.
//!
//! A message to a ledger has four legs: load, loaded record, write, result. Each may be lost, late
//! or duplicated. The simulation is worse than reality: a message continues after its loop has
//! given it up, and a copy of a message continues with its own retries.

use crate::scenario::model::Delay;
use anteroom_room::id::Incarnation;
use anteroom_room::ledger_exchange::{
    Delivery, Exchange, InitialLedger, Leaving, LedgerOperation, LedgerRole, NextStep, PAUSE_MAX,
    Tries, WriteOutcome,
};
use anteroom_room::store::StoreFacts;
use anteroom_room::sync::Reply;
use anteroom_room::sync_loop::{Action, Sync};
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use crate::deployment::ledgers::{Draft, Loaded, Outcome, Store, Visit};
use crate::deployment::network::joined;
use crate::deployment::node::Request;
use crate::rng::Draw;

/// Slots that nodes may keep unused: together at most one in this many of the slots that remain
/// after all waiting visitors have one.
const SPARE_DIVISOR: u32 = 8;

/// Message between a node and a store.
#[derive(Clone, Debug)]
pub(super) struct Message {
    node: u32,
    incarnation: u32,
    purpose: Purpose,
    operation: LedgerOperation,
    tries: Tries,
    leaving: Leaving,
    /// Start of this leg and of the one that it replies to.
    sent_at: Timestamp,
    leg: Leg,
}

/// Recipient and purpose of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Purpose {
    /// Sync with its parent.
    Sync { round: u64 },
    /// Upstream sync of its data center's ledger with the root's.
    AskRoot { upstream_sync: u64 },
    /// Reply of the root for its data center's ledger; `is_last` is set for the last one of its
    /// loop.
    Deliver { is_last: bool },
}

#[derive(Clone, Debug)]
enum Leg {
    Load,
    Loaded(Loaded),
    Write(Draft),
    Written(Outcome),
}

/// Time for which a visitor counts whose request waits for its turn: until after the next reply.
const COUNTS_BETWEEN_REPLIES: DurationMs = DurationMs(1_000);

impl Leg {
    fn is_for_store(&self) -> bool {
        matches!(self, Self::Load | Self::Write(_))
    }
}

impl Simulation {
    /// Parks a request until a reply of the parent.
    pub(super) fn park(&mut self, mut request: Request) {
        let index = request.node;
        self.check_wait(&request);
        let node = &mut self.deployment.nodes[index as usize];
        let is_second_used_up = node.room.snapshot().is_second_used_up;
        let round = node.sync_loop.round();
        let Some(wanted) = request.wait_deadline.begin(round, is_second_used_up) else {
            request.flow.set_may_sync(false);
            self.decide(request);
            return;
        };
        request.parent_waits += 1;
        let gives_up_at = request.wait_deadline.ends_at();
        let key = self.parked.insert(request);
        self.plan(gives_up_at, Event::WaitEnds { request: key });
        let node = &mut self.deployment.nodes[index as usize];
        node.waiting.push((key, wanted));
        self.hurry(index);
    }

    /// Parks a request of a visitor whose turn is near until the next reply of the parent.
    pub(super) fn park_for_turn(&mut self, mut request: Request) {
        let index = request.node;
        let round = self.deployment.nodes[index as usize].sync_loop.round();
        let Some(wanted) = request.wait_deadline.begin_turn(round, self.now) else {
            request.flow.end_wait_for_turn();
            self.decide(request);
            return;
        };
        request.waits_for_turn = true;
        let gives_up_at = request.wait_deadline.turn_ends_at();
        let visitor = request.flow.visitor();
        let counts_for = COUNTS_BETWEEN_REPLIES.min(gives_up_at.since(self.now));
        self.note_counted(&request, visitor, counts_for);
        let key = self.parked.insert(request);
        let node = &mut self.deployment.nodes[index as usize];
        node.waiting.push((key, wanted));
        self.plan(gives_up_at, Event::WaitEnds { request: key });
    }

    /// Continues a request whose wait is over.
    pub(super) fn end_wait(&mut self, mut request: Request, is_answered: bool) {
        let index = request.node;
        let round = self.deployment.nodes[index as usize].sync_loop.round();
        if std::mem::take(&mut request.waits_for_turn) {
            if !is_answered {
                request.flow.end_wait_for_turn();
            }
            self.resume(request);
            return;
        }
        let may_ask_again = request.wait_deadline.end(is_answered, round);
        self.note(|deployment| {
            let (name, visitor) = (deployment.name_of(index), request.owner.index);
            format!("{name} ends the wait of visitor {visitor}; {round:?}")
        });
        request.flow.set_may_sync(may_ask_again);
        self.resume(request);
    }

    /// Makes a node sync as soon as it can.
    pub(super) fn hurry(&mut self, index: u32) {
        self.deployment.nodes[index as usize]
            .sync_loop
            .request_sync();
        self.drive(index);
    }

    /// Polls a node's loop at this moment, after the present event.
    pub(super) fn drive_soon(&mut self, index: u32) {
        self.plan_poll(index, self.now);
    }

    pub(super) fn handle_loop_due(&mut self, index: u32, at: Timestamp) {
        let node = &mut self.deployment.nodes[index as usize];
        if node.is_alive() && node.looked_at == Some(at) {
            node.looked_at = None;
            self.drive(index);
        }
    }

    /// Performs all actions that a node's loop wants now, and plans its next poll.
    pub(super) fn drive(&mut self, index: u32) {
        let node = &self.deployment.nodes[index as usize];
        if !node.is_alive() {
            return;
        }
        if node.paused_until > self.now {
            self.plan_poll(index, node.paused_until);
            return;
        }
        if node.awaits_record() {
            // Until it is read, each attempt to sync fails.
            return;
        }
        loop {
            self.end_waits(index);
            let now = self.now;
            let node = &mut self.deployment.nodes[index as usize];
            let is_awaited = !node.waiting.is_empty();
            let Some(action) = node.sync_loop.poll_action(is_awaited, now) else {
                break;
            };
            self.perform(index, action);
        }
        // A sync may just have failed, or the loop ended.
        self.end_waits(index);
        let node = &self.deployment.nodes[index as usize];
        let is_awaited = !node.waiting.is_empty();
        if let Some(at) = node.sync_loop.next_deadline(is_awaited, self.now) {
            self.plan_poll(
                index,
                at.max(self.now + DurationMs(u64::from(at <= self.now))),
            );
        }
    }

    fn plan_poll(&mut self, index: u32, at: Timestamp) {
        let node = &mut self.deployment.nodes[index as usize];
        if node.looked_at.is_none_or(|planned| at < planned) {
            node.looked_at = Some(at);
            self.plan(at, Event::LoopDue { node: index, at });
        }
    }

    /// Continues the requests that waited for a sync that is over.
    fn end_waits(&mut self, index: u32) {
        let node = &mut self.deployment.nodes[index as usize];
        if node.waiting.is_empty() {
            return;
        }
        let round = if node.sync_loop.is_finished() {
            node.sync_loop.last_round()
        } else {
            node.sync_loop.round()
        };
        let is_over = |(_, wanted): &(Key, u64)| *wanted <= round.ended;
        let over: Vec<(Key, u64)> = node.waiting.extract_if(.., |wait| is_over(wait)).collect();
        for (key, _) in over {
            if let Some(request) = self.parked.remove(key) {
                self.end_wait(request, true);
            }
        }
    }

    fn perform(&mut self, index: u32, action: Action) {
        let (purpose, operation) = match action {
            Action::Sync(sync) => (Purpose::Sync { round: sync.round }, self.sync(index, sync)),
            Action::Goodbye(sync) => {
                let node = &mut self.deployment.nodes[index as usize];
                node.leave_folder();
                let mut request = node.room.poll_goodbye(node.clock.read(self.now));
                sync.parent_view.stamp(&mut request, self.now);
                let purpose = Purpose::Sync { round: sync.round };
                let (root_reply, is_wanted) = (sync.root_reply, sync.is_wanted);
                let operation = LedgerOperation::Sync {
                    request: Box::new(request),
                    root_reply,
                    is_wanted,
                };
                (purpose, operation)
            }
            Action::SyncUpstream {
                upstream_sync,
                request,
            } => {
                let operation = LedgerOperation::Sync {
                    request: Box::new(request),
                    root_reply: None,
                    is_wanted: false,
                };
                self.trace_request(index, "sends the root", &operation);
                (Purpose::AskRoot { upstream_sync }, operation)
            }
            Action::Deliver(delivery) => (
                Purpose::Deliver { is_last: true },
                LedgerOperation::Deliver(delivery),
            ),
        };
        self.begin_message(index, purpose, operation);
    }

    fn sync(&mut self, index: u32, sync: Sync) -> LedgerOperation {
        let now = self.now;
        let node = &mut self.deployment.nodes[index as usize];
        let node_now = node.clock.read(now);
        let mut request = node.room.poll_sync(node_now);
        sync.parent_view.stamp(&mut request, now);
        let used = node.uses.take_recent(now);
        let snapshot = node.room.snapshot();
        let spare = snapshot.slots_to_spare / (SPARE_DIVISOR * snapshot.nodes.max(1));
        let kept = request.balance.seats.saturating_sub(spare);
        self.checkers.check_kept(kept, used, now);
        let operation = LedgerOperation::Sync {
            request: Box::new(request),
            root_reply: sync.root_reply,
            is_wanted: sync.is_wanted,
        };
        self.trace_request(index, "sends its store", &operation);
        operation
    }

    fn begin_message(&mut self, index: u32, purpose: Purpose, operation: LedgerOperation) {
        let node = &self.deployment.nodes[index as usize];
        let (incarnation, was_contended) = (node.incarnation, node.is_root_contended);
        let role = self.role_of(index, purpose);
        let is_possible = operation.request_to_leave(role).is_some();
        let message = Message {
            node: index,
            incarnation,
            purpose,
            operation,
            tries: Tries::default(),
            leaving: Leaving::new(is_possible, was_contended),
            sent_at: self.now,
            leg: Leg::Load,
        };
        self.send(message, DurationMs::ZERO);
    }

    /// Sends a message on its next leg, after a pause.
    fn send(&mut self, message: Message, pause: DurationMs) {
        let now = self.now;
        let node = &self.deployment.nodes[message.node as usize];
        let data_center = node.data_center;
        let plan = &self.deployment.data_centers[data_center as usize].plan;
        let is_far = matches!(message.purpose, Purpose::AskRoot { .. });
        let delay: Delay = if is_far {
            joined(plan.to_store, plan.to_global)
        } else {
            plan.to_store
        };
        if message.leg.is_for_store() {
            if is_far {
                self.measure.global_requests += 1;
            } else {
                self.measure.local_requests += 1;
            }
        }
        let is_answer = matches!(message.leg, Leg::Written(_));
        let deployment = &self.deployment;
        if !deployment.is_linked(message.node, is_far, is_answer, now) {
            return;
        }
        let copies = self.deployment.network.send(delay, now);
        for after in [copies.second, copies.first].into_iter().flatten() {
            let message = self.messages.insert(message.clone());
            self.plan(now + pause + after, Event::Message { message });
        }
    }

    pub(super) fn handle_message(&mut self, key: Key) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        if message.leg.is_for_store() {
            let message = self.messages.remove(key);
            if let Some(message) = message {
                self.handle_at_store(message);
            }
            return;
        }
        let node = &self.deployment.nodes[message.node as usize];
        let is_for_this_incarnation = node.is_alive() && node.incarnation == message.incarnation;
        if is_for_this_incarnation && node.paused_until > self.now {
            let at = node.paused_until;
            self.plan(at, Event::Message { message: key });
            return;
        }
        let message = self.messages.remove(key);
        if let Some(message) = message.filter(|_| is_for_this_incarnation) {
            self.handle_at_node(message);
        }
    }

    fn role_of(&mut self, node: u32, purpose: Purpose) -> LedgerRole {
        self.store_of(node, purpose).role()
    }

    fn store_of(&mut self, node: u32, purpose: Purpose) -> &mut Store {
        let data_center = self.deployment.nodes[node as usize].data_center;
        let stores = &mut self.deployment.stores;
        match purpose {
            Purpose::AskRoot { .. } => stores.global(),
            Purpose::Sync { .. } | Purpose::Deliver { .. } => stores.local(data_center),
        }
    }

    fn handle_at_store(&mut self, message: Message) {
        let now = self.now;
        let store = self.store_of(message.node, message.purpose);
        let visit = Visit {
            operation: &message.operation,
            leaving: message.leaving,
            has_lost: message.tries.has_lost(),
        };
        let leg = match &message.leg {
            Leg::Load => store.load(visit, now).map(Leg::Loaded),
            Leg::Write(draft) => store.write(draft, visit, now).map(Leg::Written),
            Leg::Loaded(_) | Leg::Written(_) => return,
        };
        let is_root = matches!(message.purpose, Purpose::AskRoot { .. })
            || !self.deployment.stores.has_two_levels();
        if is_root && matches!(leg, Some(Leg::Written(Outcome::Written(_)))) {
            self.check_root();
        }
        if !self.comebacks.is_empty() && matches!(leg, Some(Leg::Written(Outcome::Written(_)))) {
            self.note_reopened();
        }
        // A store that is down sends no reply.
        if let Some(leg) = leg {
            self.send(Message { leg, ..message }, DurationMs::ZERO);
        }
    }

    fn handle_at_node(&mut self, mut message: Message) {
        let (next, loaded, exchange) = match std::mem::replace(&mut message.leg, Leg::Load) {
            Leg::Loaded(loaded) => (NextStep::Decide, Some(loaded), None),
            Leg::Written(outcome) => {
                let (written, loaded, exchange) = match outcome {
                    Outcome::Written(exchange) => (WriteOutcome::Yes, None, *exchange),
                    Outcome::Conflict(loaded) => (WriteOutcome::Conflict, Some(*loaded), None),
                    Outcome::OtherStore => (WriteOutcome::OtherStore, None, None),
                };
                message.leaving.handle_written(written);
                let took = self.now.since(message.sent_at);
                let next = message.tries.handle_written(written, took);
                (next, loaded, exchange)
            }
            Leg::Load | Leg::Write(_) => return,
        };
        message.sent_at = self.now;
        match (next, loaded) {
            (NextStep::Done, _) => self.handle_done(message, exchange),
            (NextStep::Decide, Some(mut loaded)) => {
                let are_others_left = !loaded.left.is_empty();
                message
                    .leaving
                    .handle_loaded(loaded.is_own_left, are_others_left);
                if let Some(exchange) = loaded.applied.take() {
                    self.handle_done(message, Some(*exchange));
                    return;
                }
                message.leg = Leg::Write(self.draft(&message, loaded));
                self.send(message, DurationMs::ZERO);
            }
            (NextStep::Decide | NextStep::Load, _) => {
                message.leg = Leg::Load;
                self.send(message, DurationMs::ZERO);
            }
            (NextStep::Pause, _) => {
                message.leg = Leg::Load;
                let pause = self
                    .deployment
                    .start_rng()
                    .between(DurationMs::ZERO, PAUSE_MAX);
                self.send(message, pause);
            }
            (NextStep::GiveUp, _) => self.handle_given_up(&message),
        }
    }

    fn draft(&mut self, message: &Message, loaded: Loaded) -> Draft {
        let role = self.role_of(message.node, message.purpose);
        let seen = loaded.seen;
        let is_same = |before: StoreFacts| before.identity == seen.store.identity;
        let incarnation = if seen.written_to.is_some_and(is_same) {
            Incarnation::ALONE
        } else {
            Incarnation::first(self.deployment.start_rng().word())
        };
        Draft {
            expected: seen.expected,
            opening: InitialLedger::of(role, seen, incarnation, loaded.is_first_start),
            left: loaded.left,
        }
    }

    /// Handles a message that is complete.
    fn handle_done(&mut self, message: Message, exchange: Option<Exchange>) {
        let (index, now) = (message.node, self.now);
        self.note_contention(&message);
        match (message.purpose, exchange) {
            (Purpose::Sync { round }, Some(exchange)) => {
                self.handle_exchange(index, round, &message.operation, &exchange);
            }
            (Purpose::AskRoot { upstream_sync }, Some(exchange)) => {
                let reply = exchange.reply;
                self.note_reply(index, "receives from the root", &reply);
                let node_loop = &mut self.deployment.nodes[index as usize].sync_loop;
                if node_loop.is_upstream_sync_pending(upstream_sync) {
                    node_loop.handle_root_reply(upstream_sync, reply, now);
                } else {
                    // Worse than reality: a reply that no request waits for is delivered
                    // nevertheless.
                    let purpose = Purpose::Deliver { is_last: false };
                    let delivery = Delivery {
                        reply,
                        record_time: None,
                    };
                    self.begin_message(index, purpose, LedgerOperation::Deliver(delivery));
                }
            }
            (Purpose::Deliver { is_last: true }, _) => {
                let node = &mut self.deployment.nodes[index as usize];
                node.sync_loop.handle_delivered();
            }
            _ => {}
        }
        self.drive(index);
    }

    fn handle_exchange(
        &mut self,
        index: u32,
        round: u64,
        operation: &LedgerOperation,
        exchange: &Exchange,
    ) {
        let LedgerOperation::Sync { request, .. } = operation else {
            return;
        };
        self.note_reply(index, "receives", &exchange.reply);
        let now = self.now;
        let drawn = self.deployment.start_rng().unit();
        let node = &mut self.deployment.nodes[index as usize];
        let node_now = node.clock.read(now);
        // The room sees outdated replies and has to ignore them.
        node.room.handle_reply(exchange.reply.clone(), node_now);
        node.renew_view();
        if !request.is_leaving {
            node.note_joined();
        }
        let jittered = |period: DurationMs| jittered(period, drawn);
        let both = (&**request, exchange);
        let is_present = node
            .sync_loop
            .handle_exchange(round, both, &node.room, jittered, now);
        let data_center = node.data_center;
        if is_present && exchange.upstream_sync.is_some() {
            let store = self.deployment.stores.local(data_center);
            if let Some((kept, used)) = store.take_kept() {
                self.checkers.check_kept(kept, used, now);
            }
        }
    }

    /// Notes whether a message to the root met other writers.
    fn note_contention(&mut self, message: &Message) {
        let role = self.role_of(message.node, message.purpose);
        if matches!(role, LedgerRole::Root(_)) {
            let node = &mut self.deployment.nodes[message.node as usize];
            node.is_root_contended = message.leaving.has_met_others();
        }
    }

    /// Handles a message that lost every race for its record.
    fn handle_given_up(&mut self, message: &Message) {
        self.note_contention(message);
        let (index, now) = (message.node, self.now);
        let node = &mut self.deployment.nodes[index as usize];
        match message.purpose {
            Purpose::Sync { round } => {
                node.sync_loop.handle_failure(round, now);
            }
            Purpose::AskRoot { upstream_sync } => {
                node.sync_loop.handle_root_failure(upstream_sync, now);
            }
            Purpose::Deliver { is_last: true } => node.sync_loop.handle_delivered(),
            Purpose::Deliver { is_last: false } => {}
        }
        self.drive(index);
    }

    fn note_reply(&mut self, index: u32, how: &str, reply: &Reply) {
        if self.trace.is_some() {
            let text = describe(reply);
            self.note(|deployment| format!("{} {how}: {text}", deployment.name_of(index)));
        }
    }

    fn trace_request(&mut self, index: u32, how: &str, operation: &LedgerOperation) {
        let LedgerOperation::Sync { request, .. } = operation else {
            return;
        };
        self.note(|deployment| {
            let name = deployment.name_of(index);
            let (held, wants) = (request.balance, request.demand);
            let (seats, slots, credits) = (held.seats, held.admissions, held.credits);
            let waiting = &request.waiting;
            format!(
                "{name} {how}: {seats} seats, {slots} admissions, {credits} credits, \
                 {wants:?}, {waiting:?}"
            )
        });
    }
}

/// Returns a period that is up to a sixteenth shorter or longer, as in the gateway.
fn jittered(period: DurationMs, drawn: f64) -> DurationMs {
    let eighth = period.0 as f64 / 8.0;
    DurationMs(period.0 - period.0 / 16 + crate::rng::whole(eighth * drawn))
}

/// Returns a reply as one line for the trace.
pub(super) fn describe(reply: &Reply) -> String {
    match reply {
        Reply::Stale => "stale".to_owned(),
        Reply::Void { .. } => "void".to_owned(),
        Reply::Granted(grant) => {
            let (granted, snapshot) = (grant.granted, &grant.snapshot);
            format!(
                "{} seats, {} admissions, {} credits; active {}, phantoms {}, leased {}, free {} \
                 and {}, waiting {}, {:?}{}",
                granted.seats,
                granted.admissions,
                granted.credits,
                snapshot.active,
                snapshot.phantoms,
                snapshot.leased,
                snapshot.seats_free,
                snapshot.admissions_free,
                snapshot.waiting,
                snapshot.watermark,
                if grant.is_safe { "" } else { ", not safe" },
            )
        }
    }
}
