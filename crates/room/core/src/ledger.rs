//! What is lent, to whom and until when: the parent's half of the escrow, as a pure function
//! (ledger, request, now) -> (ledger, reply).
//!
//! Every store runs this same code on a record that it loads, compares and swaps; nothing is
//! decided in a store. What a child does in between is bounded by what it was lent
//! ([`crate::lease`]). It is written down as [`LedgerParts`].
//!
//! There is one ledger at the root, which lends what the limits allow, and one below it for each
//! data center, which lends what it was lent itself ([`Upstream`]).
//!
//! # Invariants
//!
//! - Seats reported + phantom seats + seats lent never exceed `total_active_users` by lending.
//! - Admissions used + lent in a minute never exceed `new_users_per_minute` by lending.
//! - A child that falls silent is counted as if it had used everything it was lent.
//! - A ledger that has lost its memory counts everything as used until it cannot be any more.
//!
//! # Which clock
//!
//! A store's clock measures how long a lease runs, and nothing else. Whatever ends in a ticket or
//! is counted by the minute is told by the clocks that write tickets, which the children's requests
//! bring along. A store whose clock is stepped, or hours off, therefore ends leases early or at
//! most once their length late, both of which are harmless, and mistakes no minute for another.

mod asking;
mod checks;
mod children;
mod closing;
mod due;
mod lend;
mod lending_terms;
mod parts;
mod reserve;
mod revoked;
mod snapshot;
mod sums;
mod upstream;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{DataCenterId, Epoch, Incarnation, NodeId};
use crate::seats::SeatRow;
use crate::sync::{Answer, LeaseBalance, LeaseUsage, Reply, RoomFacts, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::watermark::WaitingCounts;
use children::{LATEST_ASK, QUIET_AFTER};
pub use due::{UPSTREAM_PERIOD, UPSTREAM_TIME_OUT_MAX};
pub use lending_terms::{LEASE_TTL, LeaseTerms};
pub use parts::{LedgerParts, UnsoundLedger};
pub use reserve::Reserve;
pub use revoked::{FORGOTTEN_AFTER, Logouts, REVOKED_MAX, RevokedList, UnreleasedSeat};
use sums::Sums;
pub use upstream::{Upstream, UpstreamDemand};

/// The record of one room at one level.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// This life of the record.
    incarnation: Incarnation,
    /// Where it gets what it lends; `None` for the root, which lends what the limits allow.
    upstream: Option<Box<Upstream>>,
    /// Nothing is lent while this lasts: the ledger may have lost its memory.
    reserve: Option<Reserve>,
    /// Whether a reserve was held in this life; another witness of the same loss begins no second.
    has_reserved: bool,
    /// The facts of the room; `None` before the first request.
    terms: Option<RoomFacts>,
    /// How often they have changed.
    terms_version: u32,
    /// The longest seat that was ever asked for; a reserve waits that long.
    longest_seat: DurationMs,
    /// Number of the newest lease given.
    generation: u32,
    /// Children with a lease.
    children: BTreeMap<NodeId, Child>,
    /// Children whose lease ended without a word, or who said goodbye with visitors inside.
    departed: Vec<DepartedChild>,
    /// The data centers whose seats are counted here.
    groups: BTreeMap<DataCenterId, Group>,
    /// Admissions of recent minutes by children that are forgotten.
    settled_minutes: BTreeMap<Minute, u32>,
    /// Sessions that were ended early.
    revoked: RevokedList,
    /// Who knows of them, and whose seats are to be freed then.
    logouts: Logouts,
    /// Waiting visitors of children that are gone, until those visitors have asked elsewhere.
    left_waiting: OrphanedWaiting,
    /// The latest time that the children's clocks have shown. Never falls.
    heard_at: Timestamp,
    /// What it showed when a child first spoke to this life.
    began_at: Option<Timestamp>,
    /// The time of the newest request by the ledger's own clock. A journal's clock never falls
    /// behind it; a store's may be stepped back.
    as_of: Timestamp,
    /// What follows from the rest.
    sums: Sums,
}

/// A child with a lease, as its parent sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Child {
    /// The process that speaks for it.
    pub process: NodeId,
    /// Where it is.
    pub data_center: DataCenterId,
    /// The lease.
    pub generation: u32,
    /// The newest request that was answered.
    pub number: u64,
    /// What it may hold: what it said, plus what it was granted on top.
    pub held: LeaseBalance,
    /// What it has used of all that it was lent.
    pub used: LeaseUsage,
    /// When the lease ends by the parent's clock.
    pub ends_at: Timestamp,
    /// If it has not spoken by then, by the same clock, those who wait at it are left to others.
    pub quiet_at: Timestamp,
    /// By when it has ended by the child's own clock.
    pub ends_there_at: Timestamp,
    /// The longest seat that it may give under it.
    pub longest_seat: DurationMs,
    /// What it reported to have done to the seats.
    pub row: SeatRow,
    /// Its admissions of recent minutes.
    pub admitted: Vec<(Minute, u32)>,
    /// It treats tickets that end by then as over.
    pub closed_through: Timestamp,
    /// What its clock showed when it spoke last.
    pub sent_at: Timestamp,
    /// Whether that clock agreed with others when it came.
    pub is_clock_trusted: bool,
    /// Nodes that it speaks for.
    pub nodes: u32,
    /// Who waits at it.
    pub waiting: WaitingCounts,
    /// Part of them: handed to it with the answer to `number`. If it does not get that answer they
    /// are still to be handed on.
    pub handed: WaitingCounts,
    /// How much it would like to hold.
    pub wants: crate::sync::LeaseDemand,
    /// Up to which version of the list of revocations it refuses tickets, and so does everybody
    /// below.
    pub refuses_through: u64,
    /// What its file says.
    pub terms: RoomFacts,
    /// The version of the agreed terms under which all was lent that it holds.
    pub terms_version: u32,
}

/// A child that is gone while what it may have done still counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DepartedChild {
    /// Who.
    pub node: NodeId,
    /// Where it was.
    pub data_center: DataCenterId,
    /// The lease that was given up.
    pub generation: u32,
    /// The newest request that was answered.
    pub number: u64,
    /// What it had reported.
    pub row: SeatRow,
    /// Seats that it may have given or prolonged without a word.
    pub phantoms: u32,
    /// When the last of those ends.
    pub ends_at: Timestamp,
    /// Its admissions of recent minutes; what it held of its last minute counts as used.
    pub admitted: Vec<(Minute, u32)>,
}

/// What is known of a data center's seats beside what its children report.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Group {
    /// All its live children treat tickets that end by then as over. Never falls.
    pub ready_through: Timestamp,
    /// Intervals that ended by then have given their seats back. Never falls.
    pub closed_through: Timestamp,
    /// Seats whose children are forgotten, and seats freed by a logout.
    pub settled: SeatRow,
}

/// Waiting visitors of children that are gone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OrphanedWaiting {
    /// How many, by rank.
    pub counts: WaitingCounts,
    /// When those who still wait must have asked again.
    pub until: Timestamp,
}

impl Ledger {
    /// An empty ledger in the journal of one process: nothing was ever lent.
    #[must_use]
    pub fn new() -> Self {
        Self {
            incarnation: Incarnation::ALONE,
            upstream: None,
            reserve: None,
            has_reserved: false,
            terms: None,
            terms_version: 0,
            longest_seat: DurationMs::ZERO,
            generation: 0,
            children: BTreeMap::new(),
            departed: Vec::new(),
            groups: BTreeMap::new(),
            settled_minutes: BTreeMap::new(),
            revoked: RevokedList::default(),
            logouts: Logouts::default(),
            left_waiting: OrphanedWaiting::default(),
            heard_at: Timestamp::ZERO,
            began_at: None,
            as_of: Timestamp::ZERO,
            sums: Sums::default(),
        }
    }

    /// An empty ledger at the root of a deployment that is known to be new.
    #[must_use]
    pub fn first_start(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            ..Self::new()
        }
    }

    /// The epoch under which seats are given: the life of the root.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        match &self.upstream {
            Some(upstream) => upstream.snapshot.epoch,
            None => self.incarnation.epoch(),
        }
    }

    /// This life of the record.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Where it gets what it lends; `None` for the root.
    #[must_use]
    pub fn upstream(&self) -> Option<&Upstream> {
        self.upstream.as_deref()
    }

    /// The reserve, while nothing is lent because of it.
    #[must_use]
    pub fn reserve(&self) -> Option<Reserve> {
        self.reserve
    }

    /// The facts of the room; `None` before the first request.
    #[must_use]
    pub fn terms(&self) -> Option<RoomFacts> {
        self.terms
    }

    /// The longest seat that was ever asked for.
    #[must_use]
    pub fn longest_seat(&self) -> DurationMs {
        self.longest_seat
    }

    /// Children with a lease.
    #[must_use]
    pub fn children(&self) -> &BTreeMap<NodeId, Child> {
        &self.children
    }

    /// Children that are gone while what they may have done still counts.
    #[must_use]
    pub fn departed(&self) -> &[DepartedChild] {
        &self.departed
    }

    /// The latest time that the children's clocks have shown.
    #[must_use]
    pub fn heard_at(&self) -> Timestamp {
        self.heard_at
    }

    /// The time of the newest request by the ledger's own clock.
    #[must_use]
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// Answers one request at `now` by the ledger's clock: for those who may have to do it again
    /// on a newer record.
    #[must_use]
    pub fn sync(
        mut self,
        request: &SyncRequest,
        lending: LeaseTerms,
        now: Timestamp,
    ) -> (Self, Reply) {
        let reply = self.handle_sync(request.clone(), lending, now);
        (self, reply)
    }

    /// The same in place.
    pub fn handle_sync(
        &mut self,
        mut request: SyncRequest,
        lending: LeaseTerms,
        now: Timestamp,
    ) -> Reply {
        let reply = self.answer_sync(&mut request, lending, now);
        self.assert_sound();
        reply
    }

    fn answer_sync(
        &mut self,
        request: &mut SyncRequest,
        lending: LeaseTerms,
        now: Timestamp,
    ) -> Reply {
        self.bound_leases(lending, now);
        self.advance(now);
        let is_clock_trusted = self.hear(request, lending);
        self.handle_witness(request, lending);
        let (child, number, incarnation) = (request.child, request.number, self.incarnation);
        let void = Reply::Void {
            child,
            number,
            incarnation,
        };
        if request
            .parent
            .is_some_and(|incarnation| incarnation != self.incarnation)
        {
            return void;
        }
        let known = self.children.get(&request.child);
        let newest = known.map(|child| child.number).or_else(|| {
            let gone = self.departed.iter().find(|gone| gone.node == request.child);
            gone.map(|gone| gone.number)
        });
        if newest.is_some_and(|newest| number <= newest) {
            return Reply::Stale;
        }
        let is_void = known.map(|child| child.generation) != request.generation;
        if is_void && !request.is_final {
            return void;
        }
        self.handle_report(request, is_clock_trusted);
        if request.is_leaving {
            self.handle_goodbye(request, now);
            return self.farewell(request, now);
        }
        self.free_logged_out();
        self.close_intervals(request.data_center);
        self.end_reserve();
        self.forget_departed();
        self.lend(request, lending, now)
    }

    /// Gives up all leases at once because their holders are known to be dead: whoever holds the
    /// journal's lock is alone. What they had not reported becomes phantom seats.
    pub fn presume_children_dead(&mut self, now: Timestamp) {
        self.as_of = self.as_of.max(now);
        for node in self.children.keys().copied().collect::<Vec<_>>() {
            if let Some(child) = self.children.get_mut(&node) {
                // The clock of the journal is that of its nodes.
                child.ends_there_at = child.ends_there_at.min(now);
            }
            self.give_up(node, now);
        }
        self.assert_sound();
    }

    /// Intervals of this data center that ended by then have given their seats back.
    #[must_use]
    pub fn closed_through(&self, data_center: DataCenterId) -> Timestamp {
        self.groups
            .get(&data_center)
            .map_or(Timestamp::ZERO, |group| group.closed_through)
    }

    /// The facts of the room are what its children's files say; where they differ the lower limit
    /// holds, and the longer seat.
    fn agree_on_terms(&mut self) {
        if !core::mem::take(&mut self.sums.are_terms_old) {
            return;
        }
        let terms = self.children.values().map(|child| child.terms);
        let Some(agreed) = terms.reduce(RoomFacts::stricter) else {
            return;
        };
        if self.terms == Some(agreed) {
            return;
        }
        self.longest_seat = self.longest_seat.max(agreed.longest_seat);
        self.terms = Some(agreed);
        self.terms_version = self.terms_version.wrapping_add(1);
        if let Some(upstream) = &mut self.upstream {
            upstream.handle_new_terms();
        }
    }

    /// A clock that was stepped back must not make leases longer: none runs for longer from now on
    /// than it would if it were given now.
    fn bound_leases(&mut self, lending: LeaseTerms, now: Timestamp) {
        if now >= self.as_of {
            return;
        }
        let (ends_at, quiet_at) = (now + lending.ttl, now + QUIET_AFTER);
        for child in self.children.values_mut() {
            child.ends_at = child.ends_at.min(ends_at);
            if child.quiet_at != Timestamp::NEVER {
                child.quiet_at = child.quiet_at.min(quiet_at);
            }
        }
        self.sums.next_end = self.sums.next_end.min(ends_at);
        self.sums.next_quiet = self.sums.next_quiet.min(quiet_at);
        self.left_waiting.until = self.left_waiting.until.min(now + LATEST_ASK);
    }

    /// Lets time pass: leases end.
    fn advance(&mut self, now: Timestamp) {
        self.as_of = if self.incarnation == Incarnation::ALONE {
            self.as_of.max(now)
        } else {
            now
        };
        let is_over = |child: &Child| child.ends_at <= now;
        if self.sums.next_end <= now {
            let ended = self.children.iter().filter(|(_, child)| is_over(child));
            let ended: Vec<_> = ended.map(|(&node, _)| node).collect();
            for node in ended {
                self.give_up(node, now);
            }
            let next = self.children.values().map(|child| child.ends_at).min();
            self.sums.next_end = next.unwrap_or(Timestamp::NEVER);
        }
        self.hush(now);
        if self.left_waiting.until <= now && !self.left_waiting.counts.is_empty() {
            self.take_left_waiting();
        }
        let agreed = self.agreed_now();
        self.revoked.drop_through(agreed);
        if let Some(upstream) = &mut self.upstream {
            upstream.unconfirmed.retain(|entry| entry.until > agreed);
        }
    }

    fn answer(
        &self,
        request: &SyncRequest,
        granted: LeaseBalance,
        ttl: DurationMs,
        now: Timestamp,
    ) -> Answer {
        // Versions of another life are not comparable.
        let known = if request.parent == Some(self.incarnation) {
            request.revoked_version
        } else {
            0
        };
        let news = self.revoked.since(known, &request.revocations);
        let version = self.revoked.version();
        let is_news = !news.is_empty() || request.revoked_version != version;
        let child = self.children.get(&request.child);
        let at = self.heard_at.max(request.sent_at);
        Answer {
            child: request.child,
            number: request.number,
            incarnation: self.incarnation,
            generation: child.map(|child| child.generation),
            granted,
            ttl,
            longest_seat: self.longest_to_lend(),
            revoked: is_news.then_some((version, news)),
            inherited: WaitingCounts::new(),
            snapshot: self.snapshot_at(request.data_center, at, now),
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
