//! One room at one node: the state machine that meets visitors.
//!
//! Facts come in through `handle_*`, requests to the parent go out through [`Room::poll_sync`].
//! The caller performs what a [`Verdict`] asks for, and asks again. A visitor who is inside and
//! whose check-in is not due never comes here at all: its ticket says everything
//! ([`crate::ticket::Ticket::standing`]).
//!
//! The file holds the state and its small questions; what happens is in `visit`,
//! `check_in`, `revoke` and `syncing`.

pub mod check_in;
mod demand;
mod moving;
pub mod passage;
mod place;
mod revoke;
pub mod revoked_visitors;
pub mod syncing;
pub mod view;
mod visit;

use alloc::vec::Vec;

use crate::allocation::{AnyAllocator, CounterKey};
use crate::decision::{QueuePosition, QueueReason};
use crate::hash::LotteryKey;
use crate::id::{DataCenterId, Epoch, Incarnation, NodeId, VisitorId};
use crate::inversion::Inversions;
use crate::lease::Lease;
use crate::ledger::FORGOTTEN_AFTER;
use crate::newest::{NewestEnds, NewestSeat};
use crate::order::Lottery;
use crate::origin::{OriginHealth, OriginOutcome};
use crate::rules::{AllocationKind, QueueingMethod, Rules};
use crate::seats::{SHORTEST_INTERVAL, SeatRow, SeatTerms};
use crate::statistics::RoomStatistics;
use crate::sync::{LeaseBalance, LeaseUsage, Revocation, Snapshot};
use crate::ticket::Ticket;
use crate::time::{DurationMs, Minute, Timestamp};
use crate::waiting::WaitingBook;
use crate::watermark::WaitingCounts;
use demand::Demand;
use moving::Moving;
use revoke::Revoked;

/// Who this node is, and the deployment's secret for lotteries.
#[derive(Clone, Copy, Debug)]
pub struct RoomIdentity {
    /// This life of the node.
    pub node: NodeId,
    /// The process that runs it. A node has another life in each room, and a process one name.
    pub process: NodeId,
    /// Whether it is the only process that will ever meet visitors: its journal is its memory.
    pub is_alone: bool,
    /// Its data center.
    pub data_center: DataCenterId,
    /// The same on all nodes of the deployment.
    pub lottery_key: LotteryKey,
}

/// What a process knows of those that ran on its data folder before it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Predecessors {
    /// All that are dead.
    pub dead: Vec<NodeId>,
    /// Until when one of them was in touch with the room's parent at least, if the parent still
    /// counts it: it knew it, and heard no goodbye.
    pub in_touch_until: Option<Timestamp>,
    /// Which tickets they refused: the parent relies on that.
    pub revoked: Vec<Revocation>,
}

/// Bounds of a room's memory.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Most waiting visitors that are counted; more are served.
    pub waiting: usize,
    /// Most visitors whose newest end is remembered.
    pub newest_ends: usize,
}

impl Default for Capacity {
    /// Four million who wait and a million who are inside: more than one node serves.
    fn default() -> Self {
        Self {
            waiting: 1 << 22,
            newest_ends: 1 << 20,
        }
    }
}

/// Somebody who is not inside asks to come in.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The id of its ticket, or a fresh one for somebody new.
    pub visitor: VisitorId,
    /// Its waiting ticket; `None` for somebody new.
    pub ticket: Option<Ticket>,
    /// Whether it may wait for one round trip to the parent.
    pub may_ask_parent: bool,
    /// Whether it is answered with a page. Where scripts do not run, that page asks again by
    /// loading itself, which is seldom; its visitor must not lose its turn for it.
    pub gets_page: bool,
}

/// What becomes of a [`Visit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Come in, with this ticket.
    Admit(Ticket),
    /// Wait, with this ticket (none where there is no queue).
    Queue(Option<Ticket>, QueuePosition),
    /// Sync with the parent now, then ask again without the right to wait once more.
    AskParent,
    /// Take the next number of this counter and bring it to [`Room::handle_number`].
    TakeNumber(CounterKey),
}

/// What becomes of a check-in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckIn {
    /// Pass; the ticket stays as it is.
    Pass,
    /// Pass, and carry this ticket from now on.
    Renewed(Ticket),
    /// Sync with the parent now, then check in again without the right to wait once more.
    AskParent,
    /// Not inside any more: treated as somebody new.
    Over,
}

/// What happened so far, for metrics; every figure only rises.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RoomTotals {
    /// Visitors let in under the limits.
    pub admitted: u64,
    /// Visitors let in outside the limits (passthrough, or the store was away and the room's rule
    /// says admit).
    pub admitted_outside_limits: u64,
    /// Answers that said wait.
    pub queued: u64,
    /// Seats prolonged.
    pub renewed: u64,
    /// Check-ins that were due and found no credit.
    pub passed_unrenewed: u64,
    /// Older tickets of one visitor that were handed the newer end.
    pub older_tickets: u64,
    /// Tickets from the future.
    pub future_tickets: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// How far those who had waited went in out of order.
    pub inversions: Inversions,
}

/// One room at one node.
#[derive(Debug)]
pub struct Room {
    identity: RoomIdentity,
    rules: Rules,
    seat_terms: SeatTerms,
    lease: Lease,
    allocator: AnyAllocator,
    row: SeatRow,
    admitted: Vec<(Minute, u32)>,
    newest: NewestEnds,
    revoked: Revoked,
    waiting: WaitingBook,
    lottery: Lottery,
    throughput: crate::estimate::Throughput,
    /// Who waits here, as the parent knows it that gave the outlook.
    told_waiting: WaitingCounts,
    /// The same of the newest request.
    telling_waiting: WaitingCounts,
    origin: OriginHealth,
    snapshot: Snapshot,
    /// Newcomers who may still go in under this outlook, ahead of those who wait.
    newcomer_slots: u32,
    answered: Option<u64>,
    /// The life of the ledger to which the row belongs.
    parent: Option<Incarnation>,
    used: LeaseUsage,
    /// The epoch of a ticket or an answer seen here, for a ledger that has lost its memory.
    witnessed: Option<Epoch>,
    /// The longest seat known to have been given by anybody.
    longest_known: DurationMs,
    has_left: bool,
    /// Dead processes whose places this one takes, until the parent has heard of it.
    replaces: Vec<NodeId>,
    has_predecessor: bool,
    /// When the newest lease ended: of this process, or before its first one of those before it.
    in_touch_until: Timestamp,
    demand: Demand,
    moving: Moving,
    counters: RoomTotals,
}

impl Room {
    /// A room as it starts at `now`: without a lease, it admits nobody before its first sync.
    /// `before`: who ran on the same data folder.
    #[must_use]
    pub fn new(
        identity: RoomIdentity,
        before: Predecessors,
        rules: Rules,
        capacity: Capacity,
        now: Timestamp,
    ) -> Self {
        Self {
            identity,
            rules,
            seat_terms: SeatTerms::of(&rules).with_seats_up_to(DurationMs::ZERO),
            has_predecessor: before.in_touch_until.is_some(),
            replaces: before.dead,
            in_touch_until: before.in_touch_until.unwrap_or(now),
            lease: Lease::default(),
            allocator: AnyAllocator::new(rules.allocation),
            row: SeatRow::default(),
            admitted: Vec::new(),
            newest: NewestEnds::new(capacity.newest_ends),
            revoked: Revoked::inherited(before.revoked),
            waiting: WaitingBook::new(capacity.waiting),
            lottery: Lottery::default(),
            throughput: crate::estimate::Throughput::default(),
            told_waiting: WaitingCounts::new(),
            telling_waiting: WaitingCounts::new(),
            origin: OriginHealth::default(),
            snapshot: Snapshot::default(),
            newcomer_slots: 0,
            answered: None,
            parent: None,
            used: LeaseUsage::default(),
            witnessed: None,
            longest_known: DurationMs::ZERO,
            has_left: false,
            demand: Demand::default(),
            moving: Moving::default(),
            counters: RoomTotals::default(),
        }
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The data center that counts seats given here.
    #[must_use]
    pub fn data_center(&self) -> DataCenterId {
        self.identity.data_center
    }

    /// The room as its ledger saw it last.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> RoomTotals {
        self.counters
    }

    /// Whether the lease may be used; without one nobody is admitted or prolonged.
    #[must_use]
    pub fn has_live_lease(&self, now: Timestamp) -> bool {
        self.lease.is_live(now)
    }

    /// Whether the parent has answered in this life. Before that this node does not know which
    /// sessions were ended.
    #[must_use]
    pub fn has_heard_from_parent(&self) -> bool {
        self.answered.is_some()
    }

    /// The seat given last to a visitor, if it still runs.
    fn newest_seat(&self, visitor: VisitorId, now: Timestamp) -> Option<NewestSeat> {
        let over = now.max(self.snapshot.closed_through);
        self.newest.of(visitor).filter(|seat| seat.ends_at > over)
    }

    /// When the lease ends; [`Timestamp::ZERO`] if there never was one.
    #[must_use]
    pub fn lease_ends_at(&self) -> Timestamp {
        self.lease.ends_at()
    }

    /// How many wait, as far as it is known: here, and at other nodes.
    pub fn people_waiting(&mut self, now: Timestamp) -> u32 {
        let told = self.told_waiting.total();
        let elsewhere = self.snapshot.waiting.saturating_sub(told);
        self.waiting.people_waiting(now).saturating_add(elsewhere)
    }

    /// Why nobody new is let in at all, if that is so: what a status page shows.
    pub fn degraded(&self, now: Timestamp) -> Option<QueueReason> {
        if !self.lease.is_live(now) {
            return Some(QueueReason::StoreAway);
        }
        self.hold(now).filter(|reason| {
            matches!(
                reason,
                QueueReason::OriginDown | QueueReason::Recovering { .. }
            )
        })
    }

    /// Takes note of requests to the origin that went well.
    pub fn handle_good_answers(&mut self, count: u32, now: Timestamp) {
        self.origin.handle_good_answers(count, now);
    }

    /// Takes note of how a request to the origin went.
    pub fn handle_origin_outcome(&mut self, outcome: OriginOutcome, now: Timestamp) {
        self.origin.handle_outcome(outcome, now);
    }

    /// Applies changed rules: at once where they tighten, with the parent's consent where they
    /// widen. Nobody loses a place.
    pub fn handle_rules(&mut self, rules: Rules) {
        let old = core::mem::replace(&mut self.rules, rules);
        let is_drawn = old.draw || rules.draw;
        if is_drawn && (old.opens_at != rules.opens_at || old.draw != rules.draw) {
            // Ranks change; tickets bring their holders back with the next ask.
            self.waiting.clear();
        }
        if old.allocation != rules.allocation || old.limits != rules.limits {
            self.allocator = AnyAllocator::new(rules.allocation);
        }
        // What was lent under the old limits goes back first. The right to prolong seats stays: a
        // seat is no longer than the lease says, and whoever comes now may come for the last time
        // before its seat ends.
        self.lease.give_back(LeaseBalance {
            credits: self.lease.held().credits,
            ..LeaseBalance::default()
        });
        // What the parent said of the old limits is worth no refusal.
        self.snapshot.as_of = Timestamp::ZERO;
        self.adopt_seat_terms();
        self.demand.note_change();
        self.assert_sound();
    }

    /// Shortens seats at once, lengthens them only as far as the lease allows: the parent computes
    /// phantom seats with the longest one that it knows of. A node that has just started is no
    /// exception: its file may ask for longer seats than its parent has heard of.
    fn adopt_seat_terms(&mut self) {
        self.longest_known = self.longest_known.max(self.seat_terms.longest_seat());
        let wanted = SeatTerms::of(&self.rules);
        self.seat_terms = wanted.with_seats_up_to(self.lease.longest_seat());
    }

    /// How long a session lasts that is given or extended now. Shorter than the rules ask for while
    /// the parent has not agreed to more.
    #[must_use]
    pub fn session_in_force(&self) -> DurationMs {
        self.seat_terms.session
    }

    /// Whether this process may let anybody pass by its ticket: either its parent knows of it and
    /// frees no seat of an ended session before this process refuses its ticket, or the same holds
    /// for a process before it that ran on the same data folder and is dead.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.has_heard_from_parent() || self.has_predecessor
    }

    /// When the newest lease of this process ends or ended. Before its first lease: until when a
    /// process before it was in touch, or when this one began.
    #[must_use]
    pub fn in_touch_until(&self) -> Timestamp {
        self.in_touch_until.max(self.lease.ends_at())
    }

    /// Until when a ticket is believed. The parent waits so long for a child that fell silent
    /// before it frees the seats of ended sessions again, and no longer for a process that took
    /// that child's place.
    #[must_use]
    pub fn believes_until(&self) -> Timestamp {
        if self.identity.is_alone {
            return Timestamp::NEVER;
        }
        self.in_touch_until() + FORGOTTEN_AFTER
    }

    /// Panics in a debug build if this is a room that no sequence of transitions makes.
    fn assert_sound(&self) {
        debug_assert_eq!(self.lease.check(), Ok(()));
        debug_assert!(
            self.seat_terms.longest_seat()
                <= self.lease.longest_seat().max(SHORTEST_INTERVAL.times(2)),
            "the parent knows of seats as long as any that is given here"
        );
        debug_assert!(
            self.answered <= Some(self.lease.to_parts().newest),
            "nobody answers what was not asked"
        );
        let held = self.lease.held();
        debug_assert!(
            !self.has_left || (held.seats == 0 && held.credits == 0),
            "whoever has left holds nothing"
        );
    }

    fn uses_leases(&self) -> bool {
        self.rules.allocation == AllocationKind::Leases
    }

    /// What holds everybody who is not inside, whatever is free.
    fn hold(&self, now: Timestamp) -> Option<QueueReason> {
        if self.rules.queue_all {
            return Some(QueueReason::QueueAll);
        }
        if let Some(opens_at) = self.rules.opens_at.filter(|at| now < *at) {
            return Some(QueueReason::NotOpenYet { opens_at });
        }
        match self.rules.queueing_method {
            QueueingMethod::Reject => return Some(QueueReason::Rejecting),
            QueueingMethod::Passthrough => return None,
            QueueingMethod::Fifo | QueueingMethod::Random => {}
        }
        if !self.origin.may_admit(now) {
            return Some(QueueReason::OriginDown);
        }
        self.recovering(now)
    }

    fn recovering(&self, now: Timestamp) -> Option<QueueReason> {
        self.snapshot
            .reopens_at
            .filter(|at| now < *at)
            .map(|reopens_at| QueueReason::Recovering { reopens_at })
    }

    /// The statistics from which budgets are computed.
    fn statistics(&self, now: Timestamp) -> RoomStatistics {
        let unreported = self.demand.unreported_admissions();
        RoomStatistics {
            as_of: now,
            active_users: self.snapshot.inside.saturating_add(unreported),
            nodes_total: self.snapshot.nodes.max(1),
            nodes_here: self.snapshot.nodes_here.max(1),
            admitted_this_minute: self
                .admitted_in(now.minute())
                .max(self.snapshot.admitted_in(now.minute())),
            last_minute: self.snapshot.traffic.to_vec(),
        }
    }

    fn admitted_in(&self, minute: Minute) -> u32 {
        self.admitted
            .iter()
            .find(|(known, _)| *known == minute)
            .map_or(0, |&(_, count)| count)
    }
}

#[cfg(test)]
mod tests;
