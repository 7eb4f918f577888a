//! Hands every response to the checkers, with what they may know of the visitor and the node.

mod events;

use anteroom_room::id::VisitorId;
use anteroom_room::order;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::{AllocationKind, QueueingMethod};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::watermark::Watermark;

use super::Simulation;
use super::replies::ticket_of;
use super::visiting::PARENT_WAIT_MAX;
use crate::checkers::inside::NodeKnowledge;
use crate::checkers::{Admission, QueuedVisitor, WaitResponse, Watched};
use crate::deployment::node::{Node, NodeReply, Request, Role, VisitorState};
use crate::visitors::Visitor;

/// Time after which a visitor at the front is late, on clocks that differ.
const LATE: DurationMs = DurationMs::from_secs(8);

impl Simulation {
    /// Records a request with an accepted ticket before the node decides it.
    pub(super) fn note_meeting(&mut self, request: &Request) {
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        let owner = self.population.visitors.get_mut(request.owner);
        let (Some(ticket), Some(visitor)) = (accepted, owner) else {
            return;
        };
        // Only a page takes a turn.
        if ticket.held_turn().is_some() && request.role != Role::Page {
            return;
        }
        let node = &mut self.deployment.nodes[request.node as usize];
        let node_now = node.clock.read(self.now);
        let seat = ticket.seats.of(node.room.data_center());
        // A seat that all others of the data center have freed is none, on a clock that is behind.
        let over = node_now.max(node.room.snapshot().closed_through);
        let is_at_home = seat.is_some_and(|seat| seat.ends_at > over);
        // A node replaces a ticket older than a sixtieth of a session, or than a sixty-first of its
        // own seat if that is shorter.
        let end = ticket.seats.ends_at().unwrap_or_default();
        let own = end.since(ticket.last_check_in_at).0 / 61;
        let session = node.room.rules().session_duration.0 / 60;
        let interval = DurationMs(session.min(own).max(1_000));
        let check_in_age = node_now.since(ticket.last_check_in_at);
        let meeting = NodeKnowledge {
            is_in_touch: node.room.has_live_lease(node_now),
            unseated_in: (!is_at_home).then_some(node.data_center),
            is_due: request.role == Role::Page && check_in_age > interval,
            session: node.room.session_in_force(),
            // Outside the limits a visitor who loses a ticket gets another one at once.
            is_renewed: node.room.rules().session_renewal
                && node.room.rules().queueing_method != QueueingMethod::Passthrough,
        };
        self.checkers
            .note_meeting(&mut visitor.watched, &ticket, meeting, self.now);
    }

    /// Checks the root's record after a write.
    pub(super) fn check_root(&mut self) {
        if self.deployment.stores.is_loss_unknown(self.now) {
            let until = self.now + self.longest_seat(self.now);
            self.checkers.handle_unknown_loss(until);
        }
        if let Some(root) = self.deployment.stores.believed_root() {
            self.checkers.check_root(root, self.now);
        }
    }

    /// Checks a request that is about to wait for its node's store. A visitor with a valid ticket
    /// waits for nothing, except for a seat in another data center, while there is a lease.
    pub(super) fn check_wait(&mut self, request: &Request) {
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        let (Some(ticket), VisitorState::Active) = (accepted, request.flow.visitor_state()) else {
            return;
        };
        // Who takes or extends a turn may wait for a credit.
        if ticket.held_turn().is_some() {
            return;
        }
        let node = &mut self.deployment.nodes[request.node as usize];
        let node_now = node.clock.read(self.now);
        let seat = ticket.seats.of(node.room.data_center());
        // A seat that all others of the data center have freed is none, on a clock that is behind.
        let over = node_now.max(node.room.snapshot().closed_through);
        let is_at_home = seat.is_some_and(|seat| seat.ends_at > over);
        if is_at_home || !node.room.has_live_lease(node_now) {
            self.checkers.check_no_wait(self.now);
        }
    }

    /// Checks that an active visitor whose request passed has not logged out.
    fn check_passed(&mut self, request: &Request) {
        if let Some(owner) = self.population.visitors.get_mut(request.owner)
            && let Some(ticket) = request.ticket
            && owner.watched.is_gone(ticket.visitor)
        {
            let accepted_at = owner.watched.accepted_at();
            self.checkers
                .check_passed_after_logout(accepted_at, self.now);
        }
    }

    /// Hands a response to the checkers.
    pub(super) fn check_response(
        &mut self,
        request: &Request,
        reply: &NodeReply,
        met_as: VisitorState,
        node_now: Timestamp,
    ) {
        let now = self.now;
        self.note_wait(request, reply, met_as);
        self.check_schedule(request, reply, met_as, node_now);
        if met_as == VisitorState::Active {
            self.check_passed(request);
        }
        let node = &self.deployment.nodes[request.node as usize];
        let rules = *node.room.rules();
        let watermark = node.room.snapshot().watermark;
        let is_outside_limits = rules.queueing_method == QueueingMethod::Passthrough
            || !node.room.has_live_lease(node_now);
        let has_order = rules.allocation == AllocationKind::Leases
            && rules.queueing_method == QueueingMethod::Fifo
            && !is_outside_limits;
        let data_center = node.data_center;
        let is_seated_anew = !has_seat(node, request, node_now);
        let lottery_key = &self.deployment.lottery_key;
        let rank_of =
            |ticket: Ticket| order::rank(ticket.bucket, ticket.visitor, &rules, lottery_key);
        let mut no_record = Watched::default();
        if met_as != VisitorState::Active
            && let Some(ticket) = request.ticket.filter(|ticket| ticket.accepted_at.is_some())
        {
            // For a visitor who has gone, the record of a logout is gone.
            if let Some(owner) = self.population.visitors.get_mut(request.owner) {
                let is_page = request.role == Role::Page;
                self.checkers
                    .check_lost_ticket(&owner.watched, &ticket, is_page, node_now, now);
            }
        }
        let owner = self.population.visitors.get_mut(request.owner);
        let own = owner.and_then(|visitor| watched_for(visitor, request, reply, now));
        let is_untracked = own.is_none();
        let watched = own.unwrap_or(&mut no_record);
        match reply {
            NodeReply::Admit(ticket) => {
                let checkers = &mut self.checkers;
                if !checkers.is_admission(watched, ticket, request.node, node_now) {
                    checkers.handle_ticket(watched, ticket, now);
                    return;
                }
                let by = (request.node, is_outside_limits);
                self.checkers.handle_admission(watched, ticket, by, now);
                if is_untracked && !is_outside_limits {
                    self.checkers.note_untracked(ticket, now);
                }
                if has_order {
                    let rank = (met_as == VisitorState::Waiting).then(|| rank_of(*ticket));
                    self.checkers
                        .check_order(Admission { rank, watermark }, now);
                }
                self.check_root();
            }
            NodeReply::Renewed(ticket) => {
                self.checkers.handle_ticket(watched, ticket, now);
                if is_seated_anew {
                    self.checkers.handle_seated(data_center, now);
                }
                self.check_root();
            }
            NodeReply::Queue(ticket, position) if has_order => {
                let rank = ticket
                    .filter(|_| met_as == VisitorState::Waiting)
                    .map(rank_of);
                self.check_queued_visitor(request, position.reason, rank, watermark);
            }
            _ => {}
        }
    }

    /// Checks a response of a node whose room has events.
    fn check_schedule(
        &mut self,
        request: &Request,
        reply: &NodeReply,
        met_as: VisitorState,
        node_now: Timestamp,
    ) {
        let node = &self.deployment.nodes[request.node as usize];
        if node.schedule.is_none() {
            return;
        }
        self.update_ceiling();
        let node = &self.deployment.nodes[request.node as usize];
        let is_outside_limits = node.room.rules().queueing_method == QueueingMethod::Passthrough;
        match reply {
            NodeReply::Admit(ticket) if ticket.accepted_at == Some(node_now) => {
                self.check_event_admission(request.node, is_outside_limits);
            }
            NodeReply::Queue(Some(ticket), _) if met_as == VisitorState::Waiting => {
                self.check_event_rank(request.node, ticket);
            }
            _ => {}
        }
    }

    /// Records a response to a waiting visitor.
    fn note_wait(&mut self, request: &Request, reply: &NodeReply, met_as: VisitorState) {
        if met_as != VisitorState::Waiting {
            return;
        }
        let (now, is_copy) = (self.now, !request.role.is_own());
        match reply {
            NodeReply::Queue(Some(ticket), _)
                if ticket.counted_until.is_none() && is_late(request, now) =>
            {
                self.checkers.handle_pause(ticket.visitor);
            }
            NodeReply::Queue(Some(ticket), position) => {
                let interval = position.refresh_after.unwrap_or_default();
                self.note_counted(request, ticket.visitor, interval);
            }
            NodeReply::Admit(ticket) => {
                self.checkers.handle_wait_over(ticket.visitor, is_copy, now);
            }
            _ => {}
        }
    }

    /// Records that a waiting visitor counts until its next request, which is due after `interval`.
    pub(super) fn note_counted(
        &mut self,
        request: &Request,
        visitor: VisitorId,
        interval: DurationMs,
    ) {
        let node = &self.deployment.nodes[request.node as usize];
        let response = WaitResponse {
            visitor,
            interval,
            is_copy: !request.role.is_own(),
            node: request.node,
            data_center: node.data_center,
        };
        self.checkers.handle_wait(&response, self.now);
    }

    /// Checks a visitor who was queued. `rank` is the rank of a waiting visitor, and `None` for a
    /// new one.
    fn check_queued_visitor(
        &mut self,
        request: &Request,
        reason: QueueReason,
        rank: Option<Timestamp>,
        watermark: Watermark,
    ) {
        let now = self.now;
        let is_eligible = match rank {
            Some(rank) => watermark.covers(rank),
            None => watermark == Watermark::Open,
        };
        if reason == QueueReason::NotYourTurn && rank.is_none() && !is_eligible {
            let observation = self.observe();
            self.checkers
                .check_queued_newcomer(observation.of(&self.deployment), now);
        }
        if reason == QueueReason::NotYourTurn && rank.is_some() && !is_eligible {
            self.checkers.check_held_back(now);
        }
        if reason != QueueReason::Full || !is_eligible {
            return;
        }
        let stores = &self.deployment.stores;
        let queued = QueuedVisitor {
            arrived_at: request.arrived_at,
            unnoticed: stores.unnoticed() + self.checkers.slack(),
        };
        // Two distant trips do not fit into the longest wait, and another visitor may have taken
        // the slots of the first. Where not even one trip fits, syncs also lose races for the
        // root's record, and no visitor waits for those.
        let has_waited = stores.has_two_levels()
            && request.parent_waits > 0
            && (self.checkers.is_root_far() || now.since(request.arrived_at) >= PARENT_WAIT_MAX);
        if has_waited && rank.is_some() {
            self.checkers.handle_slot_missed();
        }
        let Some(since) = queued.free_since(now) else {
            return;
        };
        let data_center = self.deployment.nodes[request.node as usize].data_center;
        if has_waited {
            return;
        }
        if stores.has_been_free_nearby_since(data_center, since, now) {
            self.checkers.check_queued_nearby(queued, now);
        } else if stores.has_been_free_at_root_since(since, now) {
            self.checkers.check_queued(queued, now);
        }
    }
}

/// Whether the ticket of a request has a seat in the data center of the node that it met.
fn has_seat(node: &Node, request: &Request, node_now: Timestamp) -> bool {
    let seat = request
        .ticket
        .and_then(|ticket| ticket.seats.of(node.room.data_center()));
    seat.is_some_and(|seat| seat.ends_at > node_now)
}

/// Returns the record that a response belongs to: its visitor's, unless the response names a
/// visitor whose tickets it never uses.
fn watched_for<'a>(
    visitor: &'a mut Visitor,
    request: &Request,
    reply: &NodeReply,
    now: Timestamp,
) -> Option<&'a mut Watched> {
    let ticket = ticket_of(reply)?;
    let is_own = visitor
        .ticket
        .is_some_and(|own| own.visitor == ticket.visitor);
    // A second tab has the browser's cookies: the next page uses the ticket that it gets.
    let is_entry = request.role == Role::Tab && matches!(reply, NodeReply::Admit(_));
    let is_taken = is_entry && visitor.would_adopt(ticket, now);
    let is_its =
        request.role.is_own() || is_taken || is_own || visitor.watched.is_of(ticket.visitor);
    is_its.then_some(&mut visitor.watched)
}

/// Whether the visitor of this waiting ticket had not asked for longer than the intervals at the
/// front.
fn is_late(request: &Request, now: Timestamp) -> bool {
    let last = request.ticket.map(|ticket| ticket.last_check_in_at);
    last.is_some_and(|last| now.since(last) >= LATE)
}
