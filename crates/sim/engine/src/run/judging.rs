//! Every answer is laid before the judge, with what it may know of the visitor and the node.

use anteroom_room::decision::QueueReason;
use anteroom_room::order;
use anteroom_room::rules::{AllocationKind, QueueingMethod};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::watermark::Watermark;

use super::Simulation;
use super::answering::ticket_of;
use super::visiting::PATIENCE;
use crate::crowd::Visitor;
use crate::deployment::node::{Node, NodeReply, Request, Role, VisitorState};
use crate::judge::inside::NodeKnowledge;
use crate::judge::{Admission, InvalidValue, Watched};

impl Simulation {
    /// A visitor is about to bring an accepted ticket to a node.
    pub(super) fn note_meeting(&mut self, request: &Request) {
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        let (Some(ticket), Some(visitor)) = (accepted, self.crowd.visitors.get_mut(request.owner))
        else {
            return;
        };
        let node = &mut self.deployment.nodes[request.node as usize];
        let node_now = node.clock.read(self.now);
        let seat = ticket.seats.of(node.room.data_center());
        let is_at_home = seat.is_some_and(|seat| seat.ends_at > node_now);
        // A ticket is exchanged when it is older than a sixtieth of a session, or than a
        // sixty-first of its own seat if that is shorter.
        let end = ticket.seats.ends_at().unwrap_or_default();
        let own = end.since(ticket.last_check_in_at).0 / 61;
        let session = node.room.rules().session_duration.0 / 60;
        let interval = DurationMs(session.min(own).max(1_000));
        let check_in_age = node_now.since(ticket.last_check_in_at);
        let meeting = NodeKnowledge {
            is_in_touch: node.room.has_live_lease(node_now),
            away_in: (!is_at_home).then_some(node.data_center),
            is_due: request.role == Role::Page && check_in_age > interval,
            session: node.room.session_in_force(),
            // Outside of the limits whoever loses a ticket gets another one at once.
            is_renewed: node.room.rules().session_renewal
                && node.room.rules().queueing_method != QueueingMethod::Passthrough,
        };
        self.judge
            .note_meeting(&mut visitor.watched, &ticket, meeting, self.now);
    }

    /// The root has written its record.
    pub(super) fn check_root(&mut self) {
        if let Some(root) = self.deployment.stores.believed_root() {
            self.judge.check_root(root, self.now);
        }
    }

    /// A request is about to wait for its node's store. Whoever has a valid ticket waits for
    /// nothing; only a seat in another data center than its own is worth a moment, while there is a
    /// lease.
    pub(super) fn judge_wait(&mut self, request: &Request) {
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        let (Some(ticket), VisitorState::Inside) = (accepted, request.passage.met_as()) else {
            return;
        };
        let node = &mut self.deployment.nodes[request.node as usize];
        let node_now = node.clock.read(self.now);
        let seat = ticket.seats.of(node.room.data_center());
        let is_at_home = seat.is_some_and(|seat| seat.ends_at > node_now);
        if is_at_home || !node.room.has_live_lease(node_now) {
            self.judge.check_made_to_wait(self.now);
        }
    }

    /// Lays an answer before the judge.
    pub(super) fn judge_answer(
        &mut self,
        request: &Request,
        said: &NodeReply,
        met_as: VisitorState,
        node_now: Timestamp,
    ) {
        let now = self.now;
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
        let mut nobody = Watched::default();
        if met_as != VisitorState::Inside
            && let Some(ticket) = request.ticket.filter(|ticket| ticket.accepted_at.is_some())
        {
            // Of a visitor who has gone meanwhile nobody knows whether it logged out.
            if let Some(owner) = self.crowd.visitors.get_mut(request.owner) {
                let is_page = request.role == Role::Page;
                self.judge
                    .check_refused_ticket(&owner.watched, &ticket, is_page, node_now, now);
            }
        }
        if met_as == VisitorState::Inside
            && let Some(owner) = self.crowd.visitors.get_mut(request.owner)
            && let Some(ticket) = request.ticket
            && owner.watched.is_gone(ticket.visitor)
        {
            let accepted_at = owner.watched.accepted_at();
            self.judge.check_passed_after_logout(accepted_at, now);
        }
        let owner = self.crowd.visitors.get_mut(request.owner);
        let own = owner.and_then(|visitor| watched_for(visitor, request, said));
        let is_stray = own.is_none();
        let watched = own.unwrap_or(&mut nobody);
        match said {
            NodeReply::Admit(ticket) => {
                let judge = &mut self.judge;
                if !judge.is_admission(watched, ticket, request.node, node_now) {
                    judge.handle_ticket(watched, ticket, now);
                    return;
                }
                let by = (request.node, is_outside_limits);
                self.judge.handle_admission(watched, ticket, by, now);
                if is_stray && !is_outside_limits {
                    self.judge.note_stray(ticket, now);
                }
                if has_order {
                    let rank = (met_as == VisitorState::Waiting).then(|| rank_of(*ticket));
                    self.judge.check_order(Admission { rank, watermark }, now);
                }
                self.check_root();
            }
            NodeReply::Renewed(ticket) => {
                self.judge.handle_ticket(watched, ticket, now);
                if is_seated_anew {
                    self.judge.handle_seated(data_center, now);
                }
                self.check_root();
            }
            NodeReply::Queue(ticket, place) if has_order => {
                let rank = ticket
                    .filter(|_| met_as == VisitorState::Waiting)
                    .map(rank_of);
                self.judge_refusal(request, place.reason, rank, watermark);
            }
            _ => {}
        }
    }

    /// Somebody was told to wait. `rank` of those who had waited before; `None` for newcomers.
    fn judge_refusal(
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
            let glance = self.glance();
            self.judge
                .check_turned_away(glance.of(&self.deployment), now);
        }
        if reason == QueueReason::NotYourTurn && rank.is_some() && !is_eligible {
            self.judge.check_held_back(now);
        }
        if reason != QueueReason::Full || !is_eligible {
            return;
        }
        let stores = &self.deployment.stores;
        let refusal = InvalidValue {
            arrived_at: request.arrived_at,
            unnoticed: stores.unnoticed() + self.judge.slack(),
        };
        // Two far trips do not fit into the wait that is promised, and what the first one brought
        // somebody else may have taken. Where not even one fits, errands also lose races for the
        // root's record, and nobody waits for those.
        let has_waited = stores.has_two_levels()
            && request.asked > 0
            && (self.judge.is_root_far() || now.since(request.arrived_at) >= PATIENCE);
        if has_waited && rank.is_some() {
            self.judge.handle_called_in_vain();
        }
        let Some(since) = refusal.free_since(now) else {
            return;
        };
        let data_center = self.deployment.nodes[request.node as usize].data_center;
        if has_waited {
            return;
        }
        if stores.has_been_free_nearby_since(data_center, since, now) {
            self.judge.check_refused_nearby(refusal, now);
        } else if stores.has_been_free_at_root_since(since, now) {
            self.judge.check_refusal(refusal, now);
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

/// The judge's notes that an answer belongs to: its visitor's, unless the answer is about somebody
/// whom that visitor will never be.
fn watched_for<'a>(
    visitor: &'a mut Visitor,
    request: &Request,
    said: &NodeReply,
) -> Option<&'a mut Watched> {
    let ticket = ticket_of(said)?;
    let is_own = visitor
        .ticket
        .is_some_and(|own| own.visitor == ticket.visitor);
    let is_its = request.role == Role::Page || is_own || visitor.watched.is_of(ticket.visitor);
    is_its.then_some(&mut visitor.watched)
}
