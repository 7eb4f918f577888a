//! Requests of visitors: their time, their node and their ticket.

use anteroom_room::queue_position::QueueReason;
use anteroom_room::sync_loop::{WAIT_MAX, WAIT_TIMEOUT};
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use crate::deployment::node::{NodeReply, Request, Role, Sent, VisitorState};
use crate::rng::Draw;
use crate::visitors::{CopyUse, Phase, TicketCopy};

/// Longest wait of a request for a reply of the node's parent, as in the gateway.
pub(super) const PARENT_WAIT_MAX: DurationMs = WAIT_MAX;
/// Longest wait of a visitor for a number.
pub(super) const NUMBER_WAIT_MAX: DurationMs = WAIT_TIMEOUT;
/// Delay after which a visitor retries when no node is open, or its node crashes.
const RETRY_FROM: DurationMs = DurationMs(1_000);
const RETRY_TO: DurationMs = DurationMs(2_000);

impl Simulation {
    pub(super) fn plan_arrival(&mut self, stream: usize) {
        let next = self.population.streams[stream].next(self.scenario.starts_at);
        if let (Some(at), Ok(stream)) = (next, u32::try_from(stream)) {
            self.plan(at, Event::Arrives { stream });
        }
    }

    pub(super) fn handle_arrival(&mut self, stream: u32) {
        let stream = stream as usize;
        let mut visitor = self.population.newcomer(stream, self.now);
        let data_center = &self.deployment.data_centers[visitor.data_center as usize];
        visitor.node = data_center.first_node + visitor.rng.below(data_center.plan.nodes);
        self.measure.handle_arrival(visitor.data_center);
        let key = self.population.visitors.insert(visitor);
        self.plan_arrival(stream);
        self.send_request(key);
    }

    /// Decides whether a visitor sends its next request, and to which node.
    pub(super) fn handle_next_request(&mut self, key: Key) {
        let now = self.now;
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        if visitor.phase != Phase::Inside {
            if now >= visitor.stops_at {
                self.depart(key);
                return;
            }
            if now >= visitor.leaves_at {
                self.measure.handle_abandoned();
                self.leave_queue(key);
                self.depart(key);
                return;
            }
        }
        let behaviour = &self.population.behaviour;
        if visitor.rng.chance(behaviour.changes_data_center) {
            let count = u32::try_from(self.deployment.data_centers.len()).unwrap_or(1);
            let step = 1 + visitor.rng.below(count - 1);
            let other = (visitor.data_center + step) % count;
            let is_waiting = visitor.phase == Phase::Waiting;
            if is_waiting {
                let (arrived_at, is_followed) = (visitor.arrived_at, visitor.keeps_cookies);
                self.measure
                    .handle_dequeued(visitor.data_center, arrived_at, is_followed);
                self.measure.handle_queued(other, arrived_at, is_followed);
            }
            let plan = &self.deployment.data_centers[other as usize];
            visitor.data_center = other;
            visitor.node = plan.first_node + visitor.rng.below(plan.plan.nodes);
        } else if visitor.rng.chance(behaviour.changes_node) {
            let plan = &self.deployment.data_centers[visitor.data_center as usize];
            let step = 1 + visitor.rng.below(plan.plan.nodes.saturating_sub(1));
            visitor.node =
                plan.first_node + (visitor.node - plan.first_node + step) % plan.plan.nodes;
        }
        self.send_request(key);
    }

    /// Sends the request to the visitor's node, or to another one if that is down.
    fn send_request(&mut self, key: Key) {
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        match self.deployment.route(visitor.node) {
            // A change by the load balancer is not stored in the visitor: routing starts from its
            // own node.
            Some(node) if node == visitor.node => self.handle_arrived_request(key),
            Some(node) => self.deliver(key, node),
            None => self.retry(key),
        }
    }

    pub(super) fn handle_arrived_request(&mut self, key: Key) {
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        let node = visitor.node;
        self.deliver(key, node);
    }

    fn deliver(&mut self, key: Key, node: u32) {
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        let target = &self.deployment.nodes[node as usize];
        if !target.is_open() {
            self.retry(key);
            return;
        }
        if target.paused_until > self.now {
            let at = target.paused_until;
            self.plan(at, Event::ReachesNode { visitor: key });
            return;
        }
        let waits = visitor.is_throttled && !visitor.keeps_interval;
        let is_poll = (visitor.is_away || waits) && visitor.phase == Phase::Waiting;
        let role = if is_poll {
            Role::Poll
        } else if std::mem::take(&mut visitor.wants_extension) {
            Role::Extension
        } else {
            Role::Page
        };
        let sent = Sent {
            role,
            owner: key,
            ticket: visitor.ticket.filter(|_| visitor.keeps_cookies),
            fresh: visitor.fresh_id(),
            waits,
        };
        let request = Request::new(sent, (node, target), self.now);
        self.note_meeting(&request);
        self.decide(request);
    }

    /// Sends a copy of a ticket: from a second tab, or much later.
    pub(super) fn handle_copy(&mut self, key: Key) {
        let Some(TicketCopy {
            ticket,
            owner,
            node,
            use_as,
        }) = self.population.copies.remove(key)
        else {
            return;
        };
        let target = &self.deployment.nodes[node as usize];
        if !target.is_open() {
            self.drop_copy(owner);
            return;
        }
        if target.paused_until > self.now {
            let at = target.paused_until;
            let copy = self.population.copies.insert(TicketCopy {
                ticket,
                owner,
                node,
                use_as,
            });
            self.plan(at, Event::CopySent { copy });
            return;
        }
        let Some(visitor) = self.population.visitors.get_mut(owner) else {
            return;
        };
        if use_as == CopyUse::LogOut {
            self.log_out(owner, ticket, node);
            self.drop_copy(owner);
            return;
        }
        let sent = Sent {
            role: if use_as == CopyUse::Tab {
                Role::Tab
            } else {
                Role::Replay
            },
            owner,
            ticket: Some(ticket),
            fresh: visitor.fresh_id(),
            waits: false,
        };
        let request = Request::new(sent, (node, target), self.now);
        self.decide(request);
    }

    /// Makes a node decide a request, as far as possible at once.
    pub(super) fn decide(&mut self, mut request: Request) {
        let index = request.node;
        let node = &mut self.deployment.nodes[index as usize];
        let now = node.clock.read(self.now);
        let (reply, met_as) = node.decide(&mut request, now, self.now);
        if is_use(&request, &reply) {
            node.uses.note(1);
        }
        // A visitor may have passed without a credit, and a request for one is due.
        let wants_sync = node.sync_loop.is_sync_requested();
        match reply {
            NodeReply::AskParent => self.park(request),
            NodeReply::WaitForTurn => self.park_for_turn(request),
            NodeReply::TakeNumber(key) => self.take_number(request, key),
            reply => self.handle_reply(&request, reply, met_as, now),
        }
        if wants_sync {
            self.drive_soon(index);
        }
    }

    /// Ends the wait of a request for a reply of the parent.
    pub(super) fn handle_wait_end(&mut self, key: Key) {
        let Some(request) = self.parked.get_mut(key) else {
            return;
        };
        let paused_until = self.deployment.nodes[request.node as usize].paused_until;
        if paused_until > self.now {
            self.plan(paused_until, Event::WaitEnds { request: key });
            return;
        }
        if let Some(request) = self.parked.remove(key) {
            let node = &mut self.deployment.nodes[request.node as usize];
            node.waiting.retain(|(waiting, _)| *waiting != key);
            self.end_wait(request, false);
        }
    }

    /// Continues a request that has waited.
    pub(super) fn resume(&mut self, request: Request) {
        let node = &self.deployment.nodes[request.node as usize];
        if node.incarnation == request.incarnation {
            self.decide(request);
        } else {
            self.give_up_request(&request);
        }
    }

    fn give_up_request(&mut self, request: &Request) {
        match request.role {
            Role::Page | Role::Poll | Role::Extension => self.retry(request.owner),
            Role::Subresource => {}
            Role::Tab | Role::Replay => self.drop_copy(request.owner),
        }
    }

    fn retry(&mut self, key: Key) {
        if let Some(visitor) = self.population.visitors.get_mut(key) {
            let at = self.now + visitor.rng.between(RETRY_FROM, RETRY_TO);
            self.plan(at, Event::SendsRequest { visitor: key });
        }
    }

    /// Removes a visitor, whatever its state.
    pub(super) fn depart(&mut self, key: Key) {
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        if visitor.phase == Phase::Waiting {
            let (data_center, arrived_at) = (visitor.data_center, visitor.arrived_at);
            let is_followed = visitor.keeps_cookies;
            if self.measure.is_first(arrived_at) {
                self.checkers.handle_first_left(self.now);
            }
            self.measure
                .handle_dequeued(data_center, arrived_at, is_followed);
        }
        visitor.phase = Phase::Gone;
        if visitor.copies == 0 {
            self.population.visitors.remove(key);
        }
    }

    /// Removes one copy of a visitor's ticket.
    pub(super) fn drop_copy(&mut self, owner: Key) {
        let Some(visitor) = self.population.visitors.get_mut(owner) else {
            return;
        };
        visitor.copies = visitor.copies.saturating_sub(1);
        if visitor.copies == 0 && visitor.phase == Phase::Gone {
            self.population.visitors.remove(owner);
        }
    }

    /// Plans to send a copy of this ticket.
    pub(super) fn plan_copy(&mut self, copy: TicketCopy, at: Timestamp) {
        if let Some(visitor) = self.population.visitors.get_mut(copy.owner) {
            visitor.copies = visitor.copies.saturating_add(1);
            let copy = self.population.copies.insert(copy);
            self.plan(at, Event::CopySent { copy });
        }
    }

    /// Leaves the queue by the form of the page, with a copy of the ticket for another node. Only
    /// visitors who send old tickets do so.
    fn leave_queue(&mut self, key: Key) {
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        let is_copied = visitor.replays && visitor.keeps_cookies;
        let ticket = visitor.ticket.filter(|ticket| ticket.accepted_at.is_none());
        let Some(ticket) = ticket.filter(|_| is_copied) else {
            return;
        };
        let plan = &self.deployment.data_centers[visitor.data_center as usize];
        let (first, nodes) = (plan.first_node, plan.plan.nodes);
        let other = first + (visitor.node - first + 1) % nodes;
        for node in [visitor.node, other] {
            let target = &mut self.deployment.nodes[node as usize];
            if !target.is_open() || target.paused_until > self.now {
                continue;
            }
            let node_now = target.clock.read(self.now);
            let is_new = target.room.handle_leave(&ticket, node_now);
            self.digest.add(u64::from(is_new));
            self.note(|deployment| {
                let name = deployment.name_of(node);
                format!("a visitor leaves the queue at {name} (first time: {is_new})")
            });
        }
        self.checkers.handle_left_queue(ticket.visitor, self.now);
    }

    /// Ends the session of a ticket, as the origin does.
    pub(super) fn log_out(&mut self, owner: Key, ticket: anteroom_room::ticket::Ticket, node: u32) {
        let target = &mut self.deployment.nodes[node as usize];
        let node_now = target.clock.read(self.now);
        let is_new = target.room.handle_revoke(ticket, node_now);
        self.digest.add(u64::from(is_new));
        let Some(visitor) = self.population.visitors.get_mut(owner) else {
            return;
        };
        if is_new && visitor.watched.is_of(ticket.visitor) {
            self.checkers.handle_log_out(&mut visitor.watched, self.now);
        } else if is_new {
            self.checkers
                .handle_untracked_log_out(ticket.visitor, self.now);
        }
        if is_new {
            self.deployment.nodes[node as usize].renew_view();
            self.hurry(node);
        }
        self.note(|deployment| {
            let name = deployment.name_of(node);
            format!("{name} ends a session (first time: {is_new})")
        });
    }
}

/// Whether a slot was taken, or requested in vain.
fn is_use(request: &Request, reply: &NodeReply) -> bool {
    match reply {
        NodeReply::Admit(_) | NodeReply::AskParent | NodeReply::WaitForTurn => true,
        // It may have come from another data center and got its first seat here.
        NodeReply::Renewed(renewed) => request
            .ticket
            .is_none_or(|ticket| ticket.seats.iter().count() < renewed.seats.iter().count()),
        NodeReply::Queue(_, position) => position.reason == QueueReason::Full,
        NodeReply::Pass | NodeReply::MayCome | NodeReply::TakeNumber(_) => false,
    }
}

/// Returns a code of the reply and the visitor's state for the digest.
pub(super) fn code_of(reply: &NodeReply, met_as: VisitorState) -> u64 {
    let reply = match reply {
        NodeReply::Pass => 0,
        NodeReply::Renewed(_) => 1,
        NodeReply::Admit(_) => 2,
        NodeReply::Queue(..) => 3,
        NodeReply::AskParent => 4,
        NodeReply::TakeNumber(_) => 5,
        NodeReply::MayCome => 6,
        NodeReply::WaitForTurn => 7,
    };
    let met_as = match met_as {
        VisitorState::Active => 0,
        VisitorState::Waiting => 1,
        VisitorState::New => 2,
    };
    reply * 4 + met_as
}
