//! What is lent, to whom and until when: the parent's half of the escrow, as a pure function
//! (ledger, request, now) -> (ledger, reply).
//!
//! Every store runs this same code on a record that it loads, compares and swaps; nothing is
//! decided in a store. What a child does in between is bounded by what it was lent
//! ([`crate::lease`]). A ledger is plain data so that it can be written down; its fields are
//! changed here only.
//!
//! # Invariants
//!
//! - Seats reported + phantom seats + seats lent never exceed `total_active_users` by lending.
//! - Admissions used + lent in a minute never exceed `new_users_per_minute` by lending.
//! - A child that falls silent is counted as if it had used everything it was lent.

mod children;
mod lend;
mod outlook;
mod revoked;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{Epoch, NodeId};
use crate::seats::SeatRow;
use crate::sync::{Answer, Held, Reply, SyncRequest, Terms};
use crate::time::{Millis, Minute, Span};
use crate::watermark::WaitingCounts;
pub use revoked::{REVOKED_MAX, RevokedList};

/// The record of one room at one level.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ledger {
    /// How often this ledger has lost its memory.
    pub epoch: Epoch,
    /// Nothing is lent or given back before this; see [`Ledger::begin_epoch`].
    pub reopens_at: Option<Millis>,
    /// The facts of the room; `None` before the first request.
    pub terms: Option<Terms>,
    /// The longest seat that was ever asked for; a new epoch waits that long.
    pub longest_seat: Span,
    /// Number of the newest lease given.
    pub generation: u32,
    /// Children with a lease.
    pub children: BTreeMap<NodeId, Child>,
    /// Children whose lease ended without a word, or who said goodbye with visitors inside.
    pub departed: Vec<Departed>,
    /// Seats whose children are forgotten.
    pub settled: SeatRow,
    /// Admissions of recent minutes by children that are forgotten.
    pub settled_minutes: BTreeMap<Minute, u32>,
    /// Intervals that ended by then have given their seats back. Never falls.
    pub closed_through: Millis,
    /// Sessions that were ended early.
    pub revoked: RevokedList,
    /// Waiting visitors of children that are gone, until those visitors have asked elsewhere.
    pub left_waiting: LeftWaiting,
    /// The time of the newest request; the journal's clock never falls behind it.
    pub as_of: Millis,
}

/// A child with a lease, as its parent sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Child {
    /// The lease.
    pub generation: u32,
    /// The newest request that was answered.
    pub number: u64,
    /// What it may hold: what it said, plus what it was granted on top.
    pub held: Held,
    /// When the lease ends by the parent's clock.
    pub ends_at: Millis,
    /// The longest seat that it may give under it.
    pub longest_seat: Span,
    /// What it reported to have done to the seats.
    pub row: SeatRow,
    /// Its admissions of recent minutes.
    pub admitted: Vec<(Minute, u32)>,
    /// It treats tickets that end by then as over.
    pub closed_through: Millis,
    /// Who waits at it.
    pub waiting: WaitingCounts,
    /// Part of them: handed to it with the answer to `number`. If it does not get that answer they
    /// are still to be handed on.
    pub handed: WaitingCounts,
    /// How many slots it would like to hold.
    pub wants: u32,
    /// What its file says.
    pub terms: Terms,
}

/// A child that is gone while what it may have done still counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Departed {
    /// Who.
    pub node: NodeId,
    /// The lease that was given up.
    pub generation: u32,
    /// The newest request that was answered.
    pub number: u64,
    /// What it had reported.
    pub row: SeatRow,
    /// Seats that it may have given or prolonged without a word.
    pub phantoms: u32,
    /// When the last of those ends.
    pub ends_at: Millis,
    /// Its admissions of recent minutes; what it held of its last minute counts as used.
    pub admitted: Vec<(Minute, u32)>,
}

/// Waiting visitors of children that are gone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LeftWaiting {
    /// How many, by rank.
    pub counts: WaitingCounts,
    /// When those who still wait must have asked again.
    pub until: Millis,
}

/// What the caller of a ledger decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LendingTerms {
    /// How long a lease runs.
    pub ttl: Span,
    /// No lease runs longer than this: the end of the parent's own lease.
    pub ends_by: Millis,
}

impl Default for LendingTerms {
    fn default() -> Self {
        Self {
            ttl: LEASE_TTL,
            ends_by: Millis::NEVER,
        }
    }
}

/// How long a node may go on without its store. Ten seconds bridge a restart of a store; what
/// that costs is phantom seats after a crash, and intervals freed that much later.
pub const LEASE_TTL: Span = Span::from_secs(10);

impl Ledger {
    /// An empty ledger of a first start.
    #[must_use]
    pub fn new() -> Self {
        Self {
            epoch: Epoch(0),
            reopens_at: None,
            terms: None,
            longest_seat: Span::ZERO,
            generation: 0,
            children: BTreeMap::new(),
            departed: Vec::new(),
            settled: SeatRow::default(),
            settled_minutes: BTreeMap::new(),
            closed_through: Millis::ZERO,
            revoked: RevokedList::default(),
            left_waiting: LeftWaiting::default(),
            as_of: Millis::ZERO,
        }
    }

    /// Answers one request at `now` by the ledger's clock.
    #[must_use]
    pub fn sync(
        mut self,
        request: &SyncRequest,
        lending: LendingTerms,
        now: Millis,
    ) -> (Self, Reply) {
        self.advance(now);
        let known = self.children.get(&request.child);
        let newest = known.map(|child| child.number).or_else(|| {
            let gone = self.departed.iter().find(|gone| gone.node == request.child);
            gone.map(|gone| gone.number)
        });
        if newest.is_some_and(|newest| request.number <= newest) {
            return (self, Reply::Stale);
        }
        if known.map_or(0, |child| child.generation) != request.generation && !request.is_final {
            let number = request.number;
            return (self, Reply::Void { number });
        }
        self.handle_report(request, now);
        if request.is_leaving {
            self.handle_goodbye(request.child, now);
            let reply = self.farewell(request, now);
            return (self, reply);
        }
        self.close_intervals(now);
        self.forget_departed(now);
        let reply = self.lend(request, lending, now);
        (self, reply)
    }

    /// Starts a new epoch: the ledger cannot know what was lent before.
    ///
    /// The whole of what it may lend counts as used until every lease and every seat given under
    /// one has ended; by then each active visitor has been counted anew.
    pub fn begin_epoch(&mut self, longest_seat: Span, lending: LendingTerms, now: Millis) {
        self.epoch = Epoch(self.epoch.0 + 1);
        let longest = self.longest_seat.max(longest_seat);
        self.reopens_at = Some(now + lending.ttl + longest);
        self.revoked.begin_epoch(self.epoch);
    }

    /// Gives up all leases at once because their holders are known to be dead: whoever holds the
    /// journal's lock is alone. What they had not reported becomes phantom seats.
    pub fn presume_children_dead(&mut self, now: Millis) {
        self.as_of = self.as_of.max(now);
        for node in self.children.keys().copied().collect::<Vec<_>>() {
            self.give_up(node, now, now);
        }
    }

    /// The facts of the room are what its children's files say; where they differ the lower limit
    /// holds, and the longer seat.
    fn agree_on_terms(&mut self) {
        let terms = self.children.values().map(|child| child.terms);
        let Some(agreed) = terms.reduce(Terms::stricter) else {
            return;
        };
        self.longest_seat = self.longest_seat.max(agreed.longest_seat);
        self.terms = Some(agreed);
    }

    /// Lets time pass: leases end, phantoms end, the new epoch opens.
    fn advance(&mut self, now: Millis) {
        self.as_of = self.as_of.max(now);
        let ended: Vec<_> = self
            .children
            .iter()
            .filter(|(_, child)| child.ends_at <= now)
            .map(|(&node, child)| (node, child.ends_at))
            .collect();
        for (node, ended_at) in ended {
            self.give_up(node, ended_at, now);
        }
        if self.reopens_at.is_some_and(|at| at <= now) {
            self.reopens_at = None;
        }
        if self.left_waiting.until <= now {
            self.left_waiting.counts.clear();
        }
        self.revoked.drop_through(now);
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    fn answer(&self, request: &SyncRequest, granted: Held, ttl: Span, now: Millis) -> Answer {
        let is_older = request.revoked_version != self.revoked.version();
        Answer {
            number: request.number,
            generation: self
                .children
                .get(&request.child)
                .map_or(0, |child| child.generation),
            granted,
            ttl,
            longest_seat: self.terms.map_or(Span::ZERO, |terms| terms.longest_seat),
            revoked: is_older.then(|| (self.revoked.version(), self.revoked.to_vec())),
            inherited: WaitingCounts::new(),
            outlook: self.outlook(now),
        }
    }
}

#[cfg(test)]
mod tests;
