//! Visitors send requests: when, to which node, and with what.

use anteroom_room::decision::QueueReason;
use anteroom_room::sync_loop::PATIENCE as PATIENCE_OF_ALL;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use crate::crowd::{CopyUse, Phase, TicketCopy};
use crate::deployment::node::{NodeReply, Request, Role, Sent, VisitorState};
use crate::rng::Draw;

/// Longest wait of a visitor for an answer from above, as in the gateway.
pub(super) const PATIENCE: DurationMs = PATIENCE_OF_ALL;
/// Whoever finds nobody, or whose node dies, tries again about now.
const RETRY_FROM: DurationMs = DurationMs(1_000);
const RETRY_TO: DurationMs = DurationMs(2_000);

impl Simulation {
    pub(super) fn plan_arrival(&mut self, stream: usize) {
        let next = self.crowd.streams[stream].next(self.scenario.starts_at);
        if let (Some(at), Ok(stream)) = (next, u32::try_from(stream)) {
            self.plan(at, Event::Arrives { stream });
        }
    }

    pub(super) fn handle_arrival(&mut self, stream: u32) {
        let stream = stream as usize;
        let mut visitor = self.crowd.newcomer(stream, self.now);
        let data_center = &self.deployment.data_centers[visitor.data_center as usize];
        visitor.node = data_center.first_node + visitor.lot.below(data_center.plan.nodes);
        self.measure.handle_arrival(visitor.data_center);
        let key = self.crowd.visitors.insert(visitor);
        self.plan_arrival(stream);
        self.reach(key);
    }

    /// A visitor's next request: whether it still sends one, and to which node.
    pub(super) fn handle_ask(&mut self, key: Key) {
        let now = self.now;
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        if visitor.phase != Phase::Inside {
            if now >= visitor.stops_at {
                self.part(key);
                return;
            }
            if now >= visitor.leaves_at {
                self.measure.handle_abandoned();
                self.part(key);
                return;
            }
        }
        let behaviour = &self.crowd.behaviour;
        if visitor.lot.chance(behaviour.changes_data_center) {
            let count = u32::try_from(self.deployment.data_centers.len()).unwrap_or(1);
            let step = 1 + visitor.lot.below(count - 1);
            let other = (visitor.data_center + step) % count;
            let is_waiting = visitor.phase == Phase::Waiting;
            if is_waiting {
                let (arrived_at, is_followed) = (visitor.arrived_at, visitor.keeps_cookies);
                self.measure
                    .handle_part(visitor.data_center, arrived_at, is_followed);
                self.measure.handle_join(other, arrived_at, is_followed);
            }
            let plan = &self.deployment.data_centers[other as usize];
            visitor.data_center = other;
            visitor.node = plan.first_node + visitor.lot.below(plan.plan.nodes);
        } else if visitor.lot.chance(behaviour.changes_node) {
            let plan = &self.deployment.data_centers[visitor.data_center as usize];
            let step = 1 + visitor.lot.below(plan.plan.nodes.saturating_sub(1));
            visitor.node =
                plan.first_node + (visitor.node - plan.first_node + step) % plan.plan.nodes;
        }
        self.reach(key);
    }

    /// Sends the request on its way to the visitor's node, or another one if that is dead.
    fn reach(&mut self, key: Key) {
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        match self.deployment.route(visitor.node) {
            // What a load balancer changes, no visitor remembers: it counts where it stands.
            Some(node) if node == visitor.node => self.handle_reach(key),
            Some(node) => self.deliver(key, node),
            None => self.retry(key),
        }
    }

    pub(super) fn handle_reach(&mut self, key: Key) {
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        let node = visitor.node;
        self.deliver(key, node);
    }

    fn deliver(&mut self, key: Key, node: u32) {
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        let met = &self.deployment.nodes[node as usize];
        if !met.is_open() {
            self.retry(key);
            return;
        }
        if met.paused_until > self.now {
            let at = met.paused_until;
            self.plan(at, Event::Reaches { visitor: key });
            return;
        }
        let sent = Sent {
            role: Role::Page,
            owner: key,
            ticket: visitor.ticket.filter(|_| visitor.keeps_cookies),
            fresh: visitor.fresh_id(),
        };
        let request = Request::new(sent, (node, met), self.now);
        self.note_meeting(&request);
        self.decide(request);
    }

    /// A copy of a ticket is sent: by a second tab, or long after.
    pub(super) fn handle_copy(&mut self, key: Key) {
        let Some(TicketCopy {
            ticket,
            owner,
            node,
            use_as,
        }) = self.crowd.copies.remove(key)
        else {
            return;
        };
        let met = &self.deployment.nodes[node as usize];
        if !met.is_open() {
            self.drop_copy(owner);
            return;
        }
        if met.paused_until > self.now {
            let at = met.paused_until;
            let copy = self.crowd.copies.insert(TicketCopy {
                ticket,
                owner,
                node,
                use_as,
            });
            self.plan(at, Event::CopySent { copy });
            return;
        }
        let Some(visitor) = self.crowd.visitors.get_mut(owner) else {
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
        };
        let request = Request::new(sent, (node, met), self.now);
        self.decide(request);
    }

    /// Has a node decide, as far as it can at once.
    pub(super) fn decide(&mut self, mut request: Request) {
        let index = request.node;
        let node = &mut self.deployment.nodes[index as usize];
        let now = node.clock.read(self.now);
        let (said, met_as) = node.ask(&mut request, now, self.now);
        if is_use(&request, &said) {
            node.uses.note(1);
        }
        // Somebody may have passed for want of a credit, and is in no hurry itself.
        let wants_sync = node.sync_loop.is_hurried();
        match said {
            NodeReply::AskParent => self.park(request),
            NodeReply::TakeNumber(key) => self.take_number(request, key),
            said => self.answer(&request, said, met_as, now),
        }
        if wants_sync {
            self.drive_soon(index);
        }
    }

    /// A request that waits for an answer is told that there is none any more.
    pub(super) fn handle_patience_end(&mut self, key: Key) {
        let Some(request) = self.parked.get_mut(key) else {
            return;
        };
        let paused_until = self.deployment.nodes[request.node as usize].paused_until;
        if paused_until > self.now {
            self.plan(paused_until, Event::PatienceEnds { request: key });
            return;
        }
        if let Some(request) = self.parked.remove(key) {
            let node = &mut self.deployment.nodes[request.node as usize];
            node.waiting.retain(|(waiting, _)| *waiting != key);
            self.end_wait(request, false);
        }
    }

    /// Goes on with a request that has waited.
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
            Role::Page => self.retry(request.owner),
            Role::Part => {}
            Role::Tab | Role::Replay => self.drop_copy(request.owner),
        }
    }

    fn retry(&mut self, key: Key) {
        if let Some(visitor) = self.crowd.visitors.get_mut(key) {
            let at = self.now + visitor.lot.between(RETRY_FROM, RETRY_TO);
            self.plan(at, Event::Asks { visitor: key });
        }
    }

    /// A visitor leaves, from wherever it is.
    pub(super) fn part(&mut self, key: Key) {
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        if visitor.phase == Phase::Waiting {
            let (data_center, arrived_at) = (visitor.data_center, visitor.arrived_at);
            let is_followed = visitor.keeps_cookies;
            self.measure
                .handle_part(data_center, arrived_at, is_followed);
        }
        visitor.phase = Phase::Gone;
        if visitor.copies == 0 {
            self.crowd.visitors.remove(key);
        }
    }

    /// One copy of a ticket less is about.
    pub(super) fn drop_copy(&mut self, owner: Key) {
        let Some(visitor) = self.crowd.visitors.get_mut(owner) else {
            return;
        };
        visitor.copies = visitor.copies.saturating_sub(1);
        if visitor.copies == 0 && visitor.phase == Phase::Gone {
            self.crowd.visitors.remove(owner);
        }
    }

    /// Plans that a copy of this ticket is sent.
    pub(super) fn plan_copy(&mut self, copy: TicketCopy, at: Timestamp) {
        if let Some(visitor) = self.crowd.visitors.get_mut(copy.owner) {
            visitor.copies = visitor.copies.saturating_add(1);
            let copy = self.crowd.copies.insert(copy);
            self.plan(at, Event::CopySent { copy });
        }
    }

    /// The origin ends the session of a ticket.
    pub(super) fn log_out(&mut self, owner: Key, ticket: anteroom_room::ticket::Ticket, node: u32) {
        let met = &mut self.deployment.nodes[node as usize];
        let node_now = met.clock.read(self.now);
        let is_new = met.room.handle_revoke(ticket, node_now);
        self.digest.add(u64::from(is_new));
        let Some(visitor) = self.crowd.visitors.get_mut(owner) else {
            return;
        };
        if is_new && visitor.watched.is_of(ticket.visitor) {
            self.judge.handle_log_out(&mut visitor.watched, self.now);
        } else if is_new {
            self.judge.handle_stray_log_out(ticket.visitor, self.now);
        }
        if is_new {
            self.deployment.nodes[node as usize].renew_view();
            self.hurry(node);
        }
        self.note(|deployment| {
            let name = deployment.name_of(node);
            format!("{name} ends a session (news: {is_new})")
        });
    }
}

/// Whether a slot was taken, or asked for in vain.
fn is_use(request: &Request, said: &NodeReply) -> bool {
    match said {
        NodeReply::Admit(_) | NodeReply::AskParent => true,
        // It may have come from elsewhere and got its first seat here.
        NodeReply::Renewed(renewed) => request
            .ticket
            .is_none_or(|ticket| ticket.seats.iter().count() < renewed.seats.iter().count()),
        NodeReply::Queue(_, place) => place.reason == QueueReason::Full,
        NodeReply::Pass | NodeReply::TakeNumber(_) => false,
    }
}

/// How somebody was met, in a word for the digest.
pub(super) fn code_of(said: &NodeReply, met_as: VisitorState) -> u64 {
    let said = match said {
        NodeReply::Pass => 0,
        NodeReply::Renewed(_) => 1,
        NodeReply::Admit(_) => 2,
        NodeReply::Queue(..) => 3,
        NodeReply::AskParent => 4,
        NodeReply::TakeNumber(_) => 5,
    };
    let met_as = match met_as {
        VisitorState::Inside => 0,
        VisitorState::Waiting => 1,
        VisitorState::New => 2,
    };
    said * 4 + met_as
}
