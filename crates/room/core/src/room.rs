//! Room at one node: the state machine that decides about visitors.
//!
//! Facts come in through `handle_*`, requests to the parent go out through [`Room::poll_sync`]. The
//! caller performs what a [`Verdict`] demands, and calls again. An active visitor whose check-in is
//! not due never reaches this module: its ticket decides ([`crate::ticket::Ticket::standing`]).
//!
//! This file has the state and its accessors; the transitions are in `visit`, `check_in`, `leave`,
//! `revoke` and `syncing`.

mod announcement;
pub mod check_in;
mod demand;
pub mod find;
mod leave;
mod movers;
mod position;
pub mod request_flow;
mod revoke;
pub mod revoked_visitors;
pub mod slow_refresh;
pub mod syncing;
pub mod view;
mod visit;

use alloc::vec::Vec;

use crate::allocation::{AnyAllocator, CounterKey};
use crate::estimate::PAGE_RELOAD;
use crate::figures::{Figures, MinuteFigures};
use crate::hash::LotteryKey;
use crate::id::{DataCenterId, Epoch, Incarnation, NodeId, VisitorId};
use crate::inversion::Inversions;
use crate::lease::Lease;
use crate::ledger::FORGOTTEN_AFTER;
use crate::newest_seats::{NewestEnds, NewestSeat};
use crate::order::Lottery;
use crate::origin::{OriginHealth, OriginOutcome};
use crate::queue_position::{QueuePosition, QueueReason};
use crate::rules::{AllocationKind, Draw, QueueingMethod, Rules};
use crate::seats::{SHORTEST_INTERVAL, SeatRow, SeatTerms};
use crate::statistics::RoomStatistics;
use crate::store::Identity;
use crate::sync::{LeaseBalance, LeaseUsage, Revocation, Snapshot};
use crate::ticket::Ticket;
use crate::time::{DurationMs, Minute, Timestamp};
use crate::wait_forecast::{Habits, WaitForecast};
use crate::waiting::WaitingBook;
use demand::Demand;
use movers::Moving;
use revoke::Revoked;

/// Identity of a node in a room, and the deployment's secret for lotteries.
#[derive(Clone, Copy, Debug)]
pub struct RoomIdentity {
    /// Identifier of this start of the node.
    pub node: NodeId,
    /// Process of the node. A node has another identifier in each room; a process has one for all.
    pub process: NodeId,
    /// Whether it is the only process of the deployment: its journal has all state.
    pub is_alone: bool,
    /// Data center of the node.
    pub data_center: DataCenterId,
    /// Secret for lotteries, the same on all nodes of the deployment.
    pub lottery_key: LotteryKey,
}

/// Earlier processes on the same data folder.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Predecessors {
    /// Those that have ended.
    pub ended: Vec<NodeId>,
    /// Time until which one of them was in touch with the room's parent, at least; `None` if the
    /// parent does not count on any of them.
    pub in_touch_until: Option<Timestamp>,
    /// Sessions whose tickets they rejected: the parent relies on that.
    pub revoked: Vec<Revocation>,
}

/// Limits of a room's memory.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Most waiting visitors whose newest count is remembered; more are served, and counted by
    /// their tickets alone.
    pub waiting: usize,
    /// Most visitors whose newest end is remembered.
    pub newest_ends: usize,
}

impl Default for Capacity {
    /// Four million waiting and a million active visitors: more than one node serves.
    fn default() -> Self {
        Self {
            waiting: 1 << 22,
            newest_ends: 1 << 20,
        }
    }
}

/// Request of a visitor who is not active.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Identifier in its ticket, or a fresh one for a new visitor.
    pub visitor: VisitorId,
    /// Waiting ticket of the visitor; `None` for a new one.
    pub ticket: Option<Ticket>,
    /// Whether it may wait for one round trip to the parent.
    pub may_sync: bool,
    /// Wait for its turn.
    pub turn_wait: TurnWait,
    /// Whether the response is a page. Without scripts that page refreshes by reloading itself,
    /// which is seldom; its visitor must not lose its turn for it.
    pub gets_page: bool,
    /// Whether it is a poll of a waiting page: nobody may be looking, so a turn is held.
    pub is_poll: bool,
}

/// Wait of a request for the turn of a visitor who refreshes slowly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TurnWait {
    /// No wait.
    No,
    /// Possible wait, if the turn is near.
    Possible,
    /// Wait that has begun; the request is decided again after each reply.
    Begun,
    /// Wait that has ended without the turn.
    InVain {
        /// Whether the next request is to follow at once, and waits on.
        polls_on: bool,
    },
}

/// Decision about a [`Visit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Admit, with this ticket.
    Admit(Ticket),
    /// Queue, with this ticket (none where there is no queue).
    Queue(Option<Ticket>, QueuePosition),
    /// Sync with the parent now, then visit again with `may_sync` unset.
    SyncWithParent,
    /// Wait for the next reply of the parent, then visit again. The visitor refreshes slowly, and
    /// its turn is near.
    WaitForTurn,
    /// Take the next number of this counter to [`Room::handle_number`].
    TakeNumber(CounterKey),
}

/// Decision about a check-in.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost an allocation for each check-in"
)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckIn {
    /// Pass, with the ticket as it is.
    Pass,
    /// Pass, with this ticket from now on.
    Renewed(Ticket),
    /// Sync with the parent now, then check in again with `may_sync` unset.
    SyncWithParent,
    /// Expired session: the visitor counts as new.
    Over,
}

/// Totals since the start, for metrics; they only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RoomTotals {
    /// Visitors admitted under the limits.
    pub admitted: u64,
    /// Visitors admitted outside the limits (passthrough, or an unavailable store with the rule
    /// `admit`).
    pub admitted_outside_limits: u64,
    /// Responses to waiting visitors.
    pub queued: u64,
    /// Extended seats.
    pub renewed: u64,
    /// Check-ins that were due and found no credit.
    pub passed_unrenewed: u64,
    /// Turns that a visitor extended.
    pub extended_turns: u64,
    /// Visitors who came back after their turn had passed.
    pub missed_turns: u64,
    /// Outdated tickets that were replaced by the visitor's newer one.
    pub outdated_tickets: u64,
    /// Tickets from the future.
    pub future_tickets: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// Inversions: how much later admitted visitors arrived than others who still waited.
    pub inversions: Inversions,
    /// Admissions by how the first announced wait came true.
    pub promises: PromiseCounts,
}

/// Admitted visitors with an announced wait, by how the first one came true.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PromiseCounts {
    /// Admissions within the first announced range.
    pub right: u64,
    /// Earlier admissions.
    pub early: u64,
    /// Later admissions.
    pub late: u64,
}

/// Room at one node.
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
    habits: Habits,
    forecast: WaitForecast,
    /// Last time at which an operator lowered a limit.
    limits_lowered_at: Option<Timestamp>,
    /// Time until which pages come back that a rejecting room did not count.
    counting_until: Timestamp,
    /// Whether the newest request reported waiting visitors.
    reports_waiting: bool,
    origin: OriginHealth,
    snapshot: Snapshot,
    /// Newcomers who may still enter under this snapshot, ahead of waiting visitors.
    newcomer_slots: u32,
    applied_reply: Option<u64>,
    /// Incarnation of the ledger that the row belongs to.
    parent: Option<Incarnation>,
    /// Incarnation whose void made this node start over, until it has a lease again.
    voided_by: Option<Incarnation>,
    /// Identity of the parent's store in the newest reply.
    parent_store: Option<Identity>,
    used: LeaseUsage,
    /// Epoch of a ticket or reply seen here, for a ledger that lost its record.
    witnessed: Option<Epoch>,
    /// Longest seat known to have been given by any node.
    longest_known: DurationMs,
    has_left: bool,
    /// Ended processes that this one replaces, until the parent has the report.
    replaces: Vec<NodeId>,
    has_predecessor: bool,
    /// End of the newest lease: of this process, or before its first one, of an earlier process.
    in_touch_until: Timestamp,
    demand: Demand,
    moving: Moving,
    counters: RoomTotals,
    figures: Figures,
}

impl Room {
    /// Makes a room that starts at `now`: without a lease, it admits nobody before its first sync.
    /// `before`: earlier processes on the same data folder.
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
            replaces: before.ended,
            in_touch_until: before.in_touch_until.unwrap_or(now),
            lease: Lease::default(),
            allocator: AnyAllocator::new(rules.allocation),
            row: SeatRow::default(),
            admitted: Vec::new(),
            newest: NewestEnds::new(capacity.newest_ends),
            revoked: Revoked::inherited(before.revoked),
            waiting: WaitingBook::new(capacity.waiting),
            lottery: Lottery::default(),
            habits: Habits::default(),
            limits_lowered_at: None,
            counting_until: Timestamp::ZERO,
            forecast: WaitForecast::default(),
            reports_waiting: false,
            origin: OriginHealth::default(),
            snapshot: Snapshot::default(),
            newcomer_slots: 0,
            applied_reply: None,
            parent: None,
            voided_by: None,
            parent_store: None,
            used: LeaseUsage::default(),
            witnessed: None,
            longest_known: DurationMs::ZERO,
            has_left: false,
            demand: Demand::default(),
            moving: Moving::default(),
            counters: RoomTotals::default(),
            figures: Figures::new(now),
        }
    }

    /// Returns the rules in force.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the data center that counts seats given here.
    #[must_use]
    pub fn data_center(&self) -> DataCenterId {
        self.identity.data_center
    }

    /// Returns the newest snapshot of the ledger.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the totals since the start.
    #[must_use]
    pub fn counters(&self) -> RoomTotals {
        self.counters
    }

    /// Removes and returns the figures of the minutes that have ended, oldest first: at most four.
    pub fn take_figures(&mut self, now: Timestamp) -> Vec<MinuteFigures> {
        self.figures.take_finished(now)
    }

    /// Whether the lease may be used; without one no visitor is admitted and no session extended.
    #[must_use]
    pub fn has_live_lease(&self, now: Timestamp) -> bool {
        self.lease.is_live(now)
    }

    /// Whether the parent has replied since the start. Before that this node does not know which
    /// sessions were revoked.
    #[must_use]
    pub fn has_parent_reply(&self) -> bool {
        self.applied_reply.is_some()
    }

    /// Returns the seat given last to a visitor, if it still runs.
    fn newest_seat(&self, visitor: VisitorId, now: Timestamp) -> Option<NewestSeat> {
        let over = now.max(self.snapshot.closed_through);
        self.newest.of(visitor).filter(|seat| seat.ends_at > over)
    }

    /// Returns the end of the lease; [`Timestamp::ZERO`] if there never was one.
    #[must_use]
    pub fn lease_ends_at(&self) -> Timestamp {
        self.lease.ends_at()
    }

    /// Returns the number of waiting visitors, at all nodes, as far as known.
    #[must_use]
    pub fn people_waiting(&self) -> u32 {
        self.snapshot.waiting
    }

    /// Returns the number of waiting visitors that this node counts. The sum over all nodes is the
    /// queue. A node that admits visitors that others still count may have a negative number.
    pub fn people_counted(&mut self, now: Timestamp) -> i64 {
        self.waiting.counts(now).total()
    }

    /// Returns the reason why nobody new is admitted, for a status page; `None` if there is none.
    pub fn degraded(&self, now: Timestamp) -> Option<QueueReason> {
        if !self.lease.is_live(now) {
            return Some(QueueReason::StoreUnavailable);
        }
        self.general_queue_reason(now).filter(|reason| {
            matches!(
                reason,
                QueueReason::OriginDown | QueueReason::Recovering { .. }
            )
        })
    }

    /// Records good responses of the origin.
    pub fn handle_good_responses(&mut self, count: u32, now: Timestamp) {
        self.origin.handle_good_responses(count, now);
    }

    /// Records the outcome of a request to the origin.
    pub fn handle_origin_outcome(&mut self, outcome: OriginOutcome, now: Timestamp) {
        self.origin.handle_outcome(outcome, now);
    }

    /// Applies changed rules: at once where they tighten, with the parent's consent where they
    /// widen. No visitor loses its position.
    pub fn handle_rules(&mut self, rules: Rules, now: Timestamp) {
        let old = core::mem::replace(&mut self.rules, rules);
        let lacks = |rules: &Rules, draw: Draw| !rules.draws().any(|other| other == draw);
        let ended = old.draws().filter(|draw| lacks(&rules, *draw));
        let mut changed = ended.chain(rules.draws().filter(|draw| lacks(&old, *draw)));
        if changed.any(|draw| draw.from <= now) {
            // Ranks change; tickets bring their visitors back with the next refresh.
            self.waiting.clear(now);
        }
        let rejects = |rules: &Rules| rules.queueing_method == QueueingMethod::Reject;
        if rejects(&old) && !rejects(&rules) {
            // It counted nobody, and pages of a rejecting room check at this interval.
            self.counting_until = now + PAGE_RELOAD + announcement::COUNTED_AFTER;
        }
        let (before, after) = (old.limits, rules.limits);
        if after != before {
            let is_lower = after.total_active_users < before.total_active_users
                || after.new_users_per_minute < before.new_users_per_minute;
            // A limit that was raised again is no reason any more.
            self.limits_lowered_at = is_lower.then_some(now);
        }
        if old.allocation != rules.allocation || old.limits != rules.limits {
            self.allocator = AnyAllocator::new(rules.allocation);
        }
        // Slots leased under the old limits are returned first. Credits stay: a seat is no longer
        // than the lease allows, and a visitor's next request may be its last before its seat ends.
        self.lease.give_back(LeaseBalance {
            credits: self.lease.balance().credits,
            ..LeaseBalance::default()
        });
        // The snapshot of the old limits must reject no visitor.
        self.snapshot.as_of = Timestamp::ZERO;
        self.adopt_seat_terms();
        self.demand.note_change();
        self.assert_sound();
    }

    /// Shortens seats at once, and lengthens them only as far as the lease allows: the parent
    /// computes phantom seats with the longest reported one. This includes a node that has just
    /// started: its configuration may have longer seats than the parent knows.
    fn adopt_seat_terms(&mut self) {
        self.longest_known = self.longest_known.max(self.seat_terms.longest_seat());
        let wanted = SeatTerms::of(&self.rules);
        self.seat_terms = wanted.with_seats_up_to(self.lease.longest_seat());
    }

    /// Returns the session length of seats given or extended now. It is shorter than in the rules
    /// while the parent has not agreed to more.
    #[must_use]
    pub fn session_in_force(&self) -> DurationMs {
        self.seat_terms.session
    }

    /// Whether this process may admit by tickets. Either its parent knows it, and frees no seat of
    /// a revoked session before this process rejects the ticket. Or the same holds for an earlier
    /// process on the same data folder that has ended.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.has_parent_reply() || self.has_predecessor
    }

    /// Returns the end of the newest lease of this process. Before its first lease: the end of an
    /// earlier process's lease, or the start of this one.
    #[must_use]
    pub fn in_touch_until(&self) -> Timestamp {
        self.in_touch_until.max(self.lease.ends_at())
    }

    /// Returns the time until which this node accepts tickets. A parent waits as long for a child
    /// that stopped reporting before it frees seats of revoked sessions again.
    #[must_use]
    pub fn accepts_tickets_until(&self) -> Timestamp {
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
            "the parent knows seats as long as any given here"
        );
        debug_assert!(
            self.applied_reply <= Some(self.lease.to_parts().newest),
            "a reply belongs to a request"
        );
        let held = self.lease.balance();
        debug_assert!(
            !self.has_left || (held.seats == 0 && held.credits == 0),
            "a node that has left has an empty lease"
        );
    }

    fn uses_leases(&self) -> bool {
        self.rules.allocation == AllocationKind::Leases
    }

    /// Returns the reason that queues all visitors who are not active, whatever is free.
    fn general_queue_reason(&self, now: Timestamp) -> Option<QueueReason> {
        if self.rules.queue_all {
            return Some(QueueReason::QueueAll);
        }
        if let Some(opens_at) = self.rules.opening_ahead(now) {
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

    /// Returns the statistics from which budgets are computed.
    fn statistics(&self, now: Timestamp) -> RoomStatistics {
        let unreported = self.demand.unreported_admissions();
        RoomStatistics {
            as_of: now,
            active_users: self.snapshot.active.saturating_add(unreported),
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
